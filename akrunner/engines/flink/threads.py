"""Threads that report their failure before they die. Standard library only: agents use them too."""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable
from typing import Any

#: called with (the thread's name, what it raised)
Failed = Callable[[str, BaseException], None]


def started(name: str, failed: Failed, target: Callable[..., None], *given: Any) -> threading.Thread:
    """Start a daemon thread.

    Args:
        failed: called in the thread itself with whatever `target` raises.
    """

    def run() -> None:
        try:
            target(*given)
        except BaseException as e:
            # the other end, which it would tell, may be gone
            with contextlib.suppress(OSError):
                failed(name, e)

    thread = threading.Thread(target=run, name=f"akrunner-{name}", daemon=True)
    thread.start()
    return thread


def words_of(name: str, error: BaseException, where: str = "") -> str:
    """Return the words in which users are told that a thread of akrunner's own has failed, with its traceback. Args: where: on
    which machine, if not on the host's."""
    return f"akrunner's own thread {name!r}{where} failed:\n{trace_of(error)}"


def trace_of(error: BaseException, limit: int = 1 << 15) -> str:
    """Return the traceback of an error; if it is longer than `limit` characters, its end."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))[-limit:].rstrip()
