"""Threads of ours, none of which may die without a word. Standard library only: agents have them too."""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable
from typing import Any

#: (the thread's name, what it raised)
Failed = Callable[[str, BaseException], None]


def started(name: str, failed: Failed, target: Callable[..., None], *given: Any) -> threading.Thread:
    """Start a daemon thread. Args: failed: told, in the thread itself, what `target` raises, whatever that is."""

    def run() -> None:
        try:
            target(*given)
        except BaseException as e:
            # whom it tells may have gone
            with contextlib.suppress(OSError):
                failed(name, e)

    thread = threading.Thread(target=run, name=f"akrunner-{name}", daemon=True)
    thread.start()
    return thread


def trace_of(error: BaseException, limit: int = 1 << 15) -> str:
    """Its traceback, the end of it if it is long."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))[-limit:].rstrip()
