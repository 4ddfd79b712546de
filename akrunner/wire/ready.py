"""Whether a pipe or a socket can be read or written.

Asks `poll`, because `select` fails in a process with more than 1,024 open files.
"""

import select
from typing import Any, Optional


def readable(end: Any, seconds: Optional[float]) -> bool:
    """Wait until there is something to read or the other end has closed. Returns: whether that came in time.

    Args:
        end: a file, or its descriptor.
        seconds: the longest time to wait; None for no limit.
    """
    return _ready(end, select.POLLIN, seconds)


def writable(end: Any, seconds: Optional[float]) -> bool:
    """Wait until something can be written or the other end has closed. Takes and returns the same as `readable`."""
    return _ready(end, select.POLLOUT, seconds)


def _ready(end: Any, event: int, seconds: Optional[float]) -> bool:
    poll = select.poll()
    poll.register(end, event)
    return bool(poll.poll(None if seconds is None else seconds * 1000))
