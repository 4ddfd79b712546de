"""Ctrl-C and SIGTERM, from the first import to the last line. Standard library only: it comes before everything else.

A terminal that is closed sends SIGHUP, and Ctrl-\\ SIGQUIT: both end a command as SIGTERM does, and its exit code has their number.

A signal raises an exception in the main thread and is remembered: libraries in between may turn the exception into one of theirs, or
into nothing, and the command still ends as one that was stopped. While a module is being imported the exception waits: an extension
module that meets one in the middle of its making may end the whole process (DuckDB's does, by SIGABRT).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, NoReturn


class _Waiting:
    """A signal that came in the middle of an import. Attributes: again: it was not the first; until: when it waits no longer."""

    def __init__(self, number: int, again: bool, until: float) -> None:
        self.number, self.again, self.until = number, again, until


_seen: int | None = None
_decided = False
_waiting: _Waiting | None = None
_by_it = False
#: seconds between looks whether an import is over
_AGAIN = 0.02
#: no import takes longer, so that whatever hangs in one can be stopped
_AT_MOST = 10.0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came. Not Python's own, with which the interpreter ends itself by a signal, whatever the exit code is."""


#: each of them is told as SIGTERM
_TERMINATE = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Terminated(BaseException):
    """SIGTERM came, or its like."""


def watch() -> None:
    """From now on they are remembered. What is ignored (Ctrl-C in a shell's background, SIGHUP under nohup) goes on being ignored."""
    global _seen, _decided, _waiting
    _seen, _decided, _waiting = None, False, None
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _came)
    for number in _TERMINATE:
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _came)


def end_by_it() -> None:
    """Ctrl-C is to end this process as it ends one that knows nothing of it, once everything is said: so a shell knows that it is to end, too."""
    global _by_it
    _by_it = True


def leave(code: int) -> NoReturn:
    """End the process."""
    if _by_it and _seen == signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


def seen() -> int | None:
    """The first that came, None when none has."""
    return _seen


def check() -> None:
    """Raises: what came, if it was swallowed: an exception in a destructor goes nowhere."""
    global _waiting
    if _seen is not None and not _decided:
        # one that waits for an import to end is not raised a second time, in the middle of what the first has ended
        _waiting = None
        raise Interrupted if _seen == signal.SIGINT else Terminated


def decided() -> None:
    """How the command ends is decided, and being said: what comes now is too late to change it."""
    global _decided
    _decided = True


def ignore() -> None:
    """The command has ended, and Python's own end takes a moment yet: a signal must not become its exit code."""
    decided()
    for number in (signal.SIGINT, signal.SIGALRM, *_TERMINATE):
        signal.signal(number, signal.SIG_IGN)


def _came(number: int, frame: Any) -> None:
    global _seen, _waiting
    if _decided:
        return
    again = _seen is not None
    _seen = _seen or number
    if _waiting is not None:
        return  # one that has come already is raised soon
    if _imports(frame):
        _waiting = _Waiting(number, again, time.monotonic() + _AT_MOST)
        signal.signal(signal.SIGALRM, _look_again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        return
    _raise(number, again)


def _look_again(_: int, frame: Any) -> None:
    global _waiting
    waiting = _waiting
    if waiting is None or _decided:
        return
    if _imports(frame) and time.monotonic() < waiting.until:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        return
    _waiting = None
    _raise(waiting.number, waiting.again)


def _imports(frame: Any) -> bool:
    """Whether a module was being imported."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _raise(number: int, again: bool) -> None:
    if number not in _TERMINATE:
        raise Interrupted
    if not again:
        raise Terminated


def words(number: int) -> str:
    """What a command that a signal has stopped is called: "interrupted"."""
    return "interrupted" if number == signal.SIGINT else "terminated"


def _kind(number: int) -> str:
    return "Interrupted" if number == signal.SIGINT else "Terminated"


def say_early(number: int) -> int:
    """What is said when nothing has been imported yet. Returns: the exit code."""
    decided()
    return say(_kind(number), f"{words(number)}; nothing was started", 128 + number)


def say_between() -> int:
    """What is said when nobody else says it: whether anything was done is not known here. Returns: the exit code."""
    decided()
    number = _seen or signal.SIGINT
    return say(_kind(number), words(number), 128 + number)


def say(kind: str, text: str, code: int) -> int:
    """Say why a command ends that was never reached: in words if stdout takes no JSON. Returns: the exit code."""
    if "--json" in sys.argv:
        import json

        try:
            print(json.dumps({"ok": False, "error": kind, "message": text, "exit_code": code}), flush=True)
            return code
        except OSError:
            pass  # what is left of it Python tries again at its end, in vain
    try:
        print(f"akrunner: {text}", file=sys.stderr)
    except OSError:
        pass  # the terminal is gone
    return code
