"""Ctrl-C and SIGTERM, from the first import to the last line. Standard library only: it comes before everything else.

A terminal that is closed sends SIGHUP, and Ctrl-\\ SIGQUIT: both count as SIGTERM.

A signal raises an exception in the main thread and is remembered: libraries in between may turn the exception into one of theirs, or
into nothing, and the command still ends as one that was stopped.
"""

from __future__ import annotations

import signal
import sys
from typing import Any, Optional

_seen: Optional[int] = None
_decided = False


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came. Not Python's own, with which the interpreter ends itself by a signal, whatever the exit code is."""


#: each of them is told, and counts, as SIGTERM
_TERMINATE = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Terminated(BaseException):
    """SIGTERM came, or its like."""


def watch() -> None:
    """From now on they are remembered. What is ignored (Ctrl-C in a shell's background, SIGHUP under nohup) goes on being ignored."""
    global _seen, _decided
    _seen, _decided = None, False
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _came)
    for number in _TERMINATE:
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _came)


def seen() -> Optional[int]:
    """The first that came, None when none has."""
    return _seen


def check() -> None:
    """Raises: what came, if it was swallowed: an exception in a destructor goes nowhere."""
    if _seen is not None and not _decided:
        raise Interrupted if _seen == signal.SIGINT else Terminated


def decided() -> None:
    """How the command ends is decided, and being said: what comes now is too late to change it."""
    global _decided
    _decided = True


def ignore() -> None:
    """The command has ended, and Python's own end takes a moment yet: a signal must not become its exit code."""
    decided()
    for number in (signal.SIGINT, *_TERMINATE):
        signal.signal(number, signal.SIG_IGN)


def _came(number: int, frame: Any) -> None:
    global _seen
    again = _seen is not None
    if _decided:
        return
    if number in _TERMINATE:
        number = signal.SIGTERM
    _seen = _seen or number
    if number == signal.SIGTERM:
        if not again:
            raise Terminated
        return
    raise Interrupted


def words(number: int) -> str:
    """What a command that a signal has stopped is called: "interrupted"."""
    return "interrupted" if number == signal.SIGINT else "terminated"


def say_early(number: int) -> int:
    """What is said when nothing has been imported yet. Returns: the exit code."""
    decided()
    text = f"{words(number)}; nothing was started"
    code = 128 + number
    if "--json" in sys.argv:
        kind = "Interrupted" if number == signal.SIGINT else "Terminated"
        print(f'{{"ok": false, "error": "{kind}", "message": "{text}", "exit_code": {code}}}')
    else:
        print(f"akrunner: {text}", file=sys.stderr)
    return code
