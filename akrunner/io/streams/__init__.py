"""Systems that keep streams of rows behind a URL. Each has a module, which is found by the URL's scheme and imported when a job
names one.

::

    kafka://broker:9092/topic?group=g      -> kafka
    redis://host:6379/stream?group=g       -> redis
    files:///data/incoming?group=g         -> files

`base` says what such a system is, `arriving` when what was made of the rows is safe, so that their position may be stored.

To add one, write a module with a `StreamSystem` called SYSTEM, and add a row to `_MODULES`, and the
scheme to `STREAMS` of `akrunner.io.systems` (a test compares them). docs/extending.md has the list of what else names systems.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

from akrunner.errors import ConfigError
from akrunner.io.streams.base import StreamSink, StreamSystem

__all__ = ["StreamSink", "StreamSystem", "check_restarts", "is_stream", "system_of"]

#: scheme of a URL -> the module that has its SYSTEM
_MODULES: Mapping[str, str] = {"kafka": "kafka", "redis": "redis", "rediss": "redis", "files": "files"}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_stream(given: Any) -> bool:
    """Whether it is the URL of a stream in one of these systems. (No path is: it would have one slash of the two.)"""
    return isinstance(given, str) and _scheme(given) in _MODULES


def system_of(url: str) -> StreamSystem:
    """Return the system that reads and writes a URL; nothing is opened.

    Args:
        url: a URL for which `is_stream` is true.
    """
    system: StreamSystem = importlib.import_module(f"akrunner.io.streams.{_MODULES[_scheme(url)]}").SYSTEM
    return system


def check_restarts(output: str, restarts: int, resume: bool = False) -> None:
    """Check that rows go to a stream once, although a job may be started again.

    Args:
        output: the stream's URL.
        restarts: how many times the job may be started again after a failure.
        resume: whether the job goes on with the saves of an earlier one.
    Raises:
        ConfigError: the output is written in transactions, and a job that is started again in another place than behind the last
            one would write rows twice, or leave them out.
    """
    if not re.search(r"[?&]transactional_id=", output):
        return
    if resume:
        raise ConfigError(
            "resume= (--resume) begins where a model was saved, and transactional_id= where the last transaction has ended; leave out "
            "one of them"
        )
    if restarts:
        raise ConfigError(
            "max_restarts= (--max-restarts) starts a job again in the middle of a transaction, whose rows would be written twice; "
            "leave it out, and start the job again when it has failed: it goes on behind the last transaction"
        )


def _scheme(given: Any) -> str:
    found = _SCHEME.match(given) if isinstance(given, str) else None
    return found[1].lower() if found is not None else ""
