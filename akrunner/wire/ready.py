"""Whether a pipe or a socket can be read or written: by `poll`, as `select` fails in a process with more than 1,024 files open."""

import select
from typing import Any, Optional


def readable(end: Any, seconds: Optional[float]) -> bool:
    """Wait until there is something to read, or the other end has closed. Args: end: a file, or its descriptor; seconds: at most, None: for ever."""
    return _ready(end, select.POLLIN, seconds)


def writable(end: Any, seconds: Optional[float]) -> bool:
    """Wait until there is room for something, or the other end has closed. Args: as of `readable`."""
    return _ready(end, select.POLLOUT, seconds)


def _ready(end: Any, event: int, seconds: Optional[float]) -> bool:
    poll = select.poll()
    poll.register(end, event)
    return bool(poll.poll(None if seconds is None else seconds * 1000))
