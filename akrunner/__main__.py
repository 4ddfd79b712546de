"""The `akrunner` command, and `python -m akrunner`: what must be so before anything is imported.

The fewer imports stand up here, the shorter is the time in which Ctrl-C is Python's own, with a traceback.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_RESERVE = 8 << 20


def main() -> NoReturn:
    """The console script; the process ends here.

    By `os._exit` once everything is said and every exit handler has run: at Python's own end libraries take their threads down, and
    one that could not start them (`ulimit -v`) waits for them for ever.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _at_once)
    import atexit

    from akrunner.cli import signals

    signals.watch()
    try:
        code = _run()
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    except (signals.Interrupted, signals.Terminated):
        # it came between what is loaded and what is run, or behind that
        code = signals.say_between()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 70
    signals.ignore()
    try:
        atexit._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    signals.leave(code)


def _at_once(number: int, frame: object) -> None:
    """Ctrl-C, before there is anything that remembers it: an exception would be a traceback out of whatever is being imported."""
    text = b"interrupted; nothing was started"
    told = b'{"ok": false, "error": "Interrupted", "message": "%s", "exit_code": 130}\n' % text
    as_json = "--json" in sys.argv
    try:
        os.write(1, told) if as_json else os.write(2, b"akrunner: %s\n" % text)
    except OSError:
        pass
    os._exit(130)


def _run() -> int:
    from akrunner.cli import signals

    _stand_in()
    # address space, untouched: what is said where an import finds no memory needs some, too
    reserve = [bytearray(_RESERVE)]
    try:
        from akrunner.launch import cramped

        cramped.lean()
        from akrunner.cli import main as commands

        commands.load(sys.argv[1:])
    except BaseException as e:
        # an import that is interrupted may end in any exception
        number = signals.seen()
        if number is not None:
            return signals.say_early(number)
        if isinstance(e, SystemError) or (isinstance(e, OSError) and e.errno == errno.ENOMEM):
            # what C code raises that had no room even for the exception, and what importing does
            e = MemoryError()
        if isinstance(e, (ImportError, MemoryError)):
            # its frames hold what was being imported
            e = e.with_traceback(None)
            reserve.clear()
            return _say_no_room(e)
        raise
    reserve.clear()
    number = signals.seen()
    return commands.main() if number is None else signals.say_early(number)


def _say_no_room(error: BaseException) -> int:
    """An import that failed: for want of memory, or for a fault of the installation. Returns: the exit code."""
    from akrunner.cli import signals
    from akrunner.foreign import in_words

    return signals.say("ConfigError", f"{in_words(error)}; nothing was started", 2)


def _stand_in() -> None:
    """For what was closed (`>&-`): else a pipe to a task would have its number, and be printed into."""
    for fd, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(fd)
        except OSError:
            # stdout's cannot be written, so that its loss is noticed
            os.open(os.devnull, mode)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)


if __name__ == "__main__":
    main()
