"""The handling of Ctrl-C and SIGTERM, from the first import to the last line of a command.

It uses the standard library only, as it is imported before everything else.

A terminal that is closed sends SIGHUP, and Ctrl-\\ sends SIGQUIT: both end a command as SIGTERM does, with their number in its
exit code.

A signal raises an exception in the main thread, and is remembered: if a library in between swallows the exception or raises
another in its place, the command still ends as a command that was stopped. While a module is being imported, the exception
waits: an exception during the initialization of an extension module may end the whole process (DuckDB's does so, by SIGABRT).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn


class _Waiting:
    """A signal that came in the middle of an import.

    Attributes:
        number: the signal's number.
        again: whether another signal came before it.
        until: time (of `time.monotonic`) at which it is raised even if the import still runs.
    """

    def __init__(self, number: int, again: bool, until: float) -> None:
        self.number, self.again, self.until = number, again, until


_seen: int | None = None
_decided = False
_waiting: _Waiting | None = None
_by_it = False
_instead: Callable[[], object] | None = None
_softly = False
_writing = False
_ending: threading.Timer | None = None
#: what Python does with an exception that it has to drop
_unraisable: Callable[[Any], object] = sys.__unraisablehook__
#: seconds that a command's last output may take, behind a signal or a limit: enough on a busy machine, if somebody reads it
_LAST_SECONDS = 4.0
#: seconds between checks whether an import is over
_AGAIN = 0.02
#: the most seconds that a signal waits for an import, so that an import that hangs can be stopped
_AT_MOST = 10.0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came. It is not KeyboardInterrupt itself, with which Python would end by the signal, whatever the exit code is.

    Attributes: signal_number: which signal came first, by which the command ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self.signal_number = _seen or signal.SIGINT


#: signals that end a command as SIGTERM does
_TERMINATE = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Terminated(BaseException):
    """SIGTERM came, or another signal that ends a command as SIGTERM does. Attributes: as of `Interrupted`."""

    def __init__(self) -> None:
        super().__init__()
        self.signal_number = _seen or signal.SIGTERM


def watch() -> None:
    """Handle the signals from now on.

    A signal that this process ignores (Ctrl-C in a shell's background, SIGHUP under nohup) stays ignored.
    """
    global _seen, _decided, _waiting, _instead, _softly, _unraisable
    _seen, _decided, _waiting, _instead, _softly = None, False, None, None, False
    if sys.unraisablehook is not _dropped:
        _unraisable, sys.unraisablehook = sys.unraisablehook, _dropped
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _came)
    for number in _TERMINATE:
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _came)


def _dropped(what: Any) -> None:
    """Say nothing of a signal's exception that Python drops because it came in a destructor, and raise it once more soon."""
    global _waiting
    if not isinstance(what.exc_value, (Interrupted, Terminated)):
        _unraisable(what)
    elif _seen is not None and not _decided and _waiting is None:
        _waiting = _Waiting(_seen, False, time.monotonic() + _AT_MOST)
        signal.signal(signal.SIGALRM, _look_again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)


def end_by_it() -> None:
    """Let Ctrl-C end this process by the signal itself, after everything is printed, so that the calling shell ends, too."""
    global _by_it
    _by_it = True


def leave(code: int) -> NoReturn:
    """End the process with this exit code, or by SIGINT if `end_by_it` was called and Ctrl-C came."""
    if _by_it and _seen == signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


@contextlib.contextmanager
def instead(call: Callable[[], object]) -> Iterator[None]:
    """Within this block the first signal raises nothing: it calls `call`, which lets the work end by itself. A second one raises.

    When the block has ended, the command still ends as a command that was stopped (`check`).

    Args: call: a function that only sets a mark, as it is called in the middle of anything.
    """
    global _instead, _softly
    _instead = call
    try:
        yield
    finally:
        _instead, _softly = None, False
    check()


def seen() -> int | None:
    """Return the number of the first signal that came, None if none has come."""
    return _seen


def check() -> None:
    """Raise Interrupted or Terminated if a signal has come that was not handled.

    The exception that the signal raised may have been swallowed, as an exception in a destructor is. Within `instead`, the first
    signal was handled.
    """
    global _waiting
    if _seen is not None and not _decided and not _softly:
        # a signal that waits for an import must not be raised once more, while the command already ends because of it
        _waiting = None
        raise Interrupted if _seen == signal.SIGINT else Terminated


def decided() -> None:
    """Ignore signals from now on: it is decided how the command ends, and its last output is being written."""
    global _decided
    _decided = True


@contextlib.contextmanager
def last_output(code: int | None) -> Iterator[None]:
    """Write a command's last output in the block. A signal does not cut it in two, but ends the process if nobody reads it.

    Args: code: the exit code of a command that ends because of a signal or a limit, which end it then without a further signal;
        None: a command that ends by itself, and waits for its reader.
    """
    global _writing
    decided()
    outer, _writing = _writing, True
    if code is not None:
        _end_soon(code)
    try:
        yield
    finally:
        _writing = outer
        if not outer:
            _do_not_end()


def _end_soon(code: int) -> None:
    """End the process soon if its last output is not written by then.

    A thread does it: a main thread that waits for a lock of Python's streams, which another thread holds while nobody reads it,
    hears no signal.
    """
    global _ending
    if _ending is not None:
        return
    by_it = _by_it and code == 128 + signal.SIGINT
    if by_it:
        # only the main thread can set it; another Ctrl-C then ends the process at once
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _ending = threading.Timer(_LAST_SECONDS, _end, (code, by_it))
    _ending.daemon = True
    # where no thread can be started, the reader is waited for
    with contextlib.suppress(RuntimeError):
        _ending.start()


def _do_not_end() -> None:
    global _ending
    if _ending is not None:
        _ending.cancel()
    _ending = None


def _end(code: int, by_it: bool) -> None:
    if by_it:
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


def ignore() -> None:
    """Ignore all these signals: the command has ended, and a signal during Python's shutdown must not change the exit code."""
    decided()
    for number in (signal.SIGINT, signal.SIGALRM, *_TERMINATE):
        signal.signal(number, signal.SIG_IGN)


def _came(number: int, frame: Any) -> None:
    global _seen, _waiting, _instead, _softly
    if _decided:
        if _writing:
            _end_soon(128 + number)
        return
    # after one that raised nothing, the next is like a first one
    again, _softly = _seen is not None and not _softly, False
    _seen = _seen or number
    if _instead is not None:
        call, _instead, _softly = _instead, None, True
        call()
        return
    if _waiting is not None:
        return  # the signal that waits already is raised soon
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
    """Whether a module is being imported in this frame or in a caller's."""
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
    """Return the word for how a signal has stopped a command: "interrupted" or "terminated"."""
    return "interrupted" if number == signal.SIGINT else "terminated"


def _kind(number: int) -> str:
    return "Interrupted" if number == signal.SIGINT else "Terminated"


def say_early(number: int) -> int:
    """Print that a signal stopped the command before anything was started. Returns: the exit code."""
    with last_output(128 + number):
        return say(_kind(number), f"{words(number)}; nothing was started", 128 + number)


def say_between() -> int:
    """Print that a signal stopped the command, if no other code has: whether anything was done is not known here.

    Returns: the exit code.
    """
    number = _seen or signal.SIGINT
    with last_output(128 + number):
        return say(_kind(number), words(number), 128 + number)


def say(kind: str, text: str, code: int) -> int:
    """Print why the process ends before a command was run: as JSON with --json, else (or if stdout is gone) in words.

    Returns: the exit code.
    """
    if "--json" in sys.argv:
        import json

        try:
            # with the keys of every failure (`akrunner.outcomes.head`)
            none: dict[str, Any] = {
                "error_code": None,
                "failure": None,
                "others": [],
                "warnings": [],
                "work_dir": None,
                "run": None,
                "log": None,
            }
            print(json.dumps({"ok": False, "error": kind, "message": text, "exit_code": code, **none}), flush=True)
            return code
        except OSError:
            pass  # Python tries to flush the rest when it ends, in vain
    try:
        print(f"akrunner: {text}", file=sys.stderr)
    except OSError:
        pass  # the terminal is gone
    return code
