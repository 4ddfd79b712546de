"""The entry point of the `akrunner` command and of `python -m akrunner`, which sets up the process before other imports.

This module imports little at its top, because Python's own handler of Ctrl-C, which prints a traceback, is active until then.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_RESERVE = 8 << 20


def main() -> NoReturn:
    """Run the console script and end the process.

    The process ends by `os._exit`, after all output is written and every exit handler has run: when Python itself shuts down,
    libraries stop their threads, and a library that could not start its threads (`ulimit -v`) waits for them for ever.
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
        # the signal came after the command was loaded and before it ran, or after it ran
        code = signals.say_between()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 70
    signals.ignore()
    logging = sys.modules.get("logging")
    if logging is not None:
        # it flushes the streams, too
        atexit.unregister(logging.shutdown)
    try:
        atexit._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    # everything was written before; what is left was given up, or another thread is stuck in writing it
    with signals.last_output(code):
        if logging is not None:
            logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
    signals.leave(code)


def _at_once(number: int, frame: object) -> None:
    """Handle Ctrl-C until `signals.watch` does: print one line (JSON with --json) and end the process with code 130.

    An exception would print a traceback from whichever module is being imported.
    """
    text = b"interrupted; nothing was started"
    told = (
        b'{"ok": false, "error": "Interrupted", "message": "%s", "exit_code": 130, "error_code": null, "failure": null, "others": [], "warnings": [], '
        b'"work_dir": null, "run": null, "log": null}\n' % text
    )
    as_json = "--json" in sys.argv
    try:
        os.write(1, told) if as_json else os.write(2, b"akrunner: %s\n" % text)
    except OSError:
        pass
    os._exit(130)


def _run() -> int:
    from akrunner.cli import signals

    _stand_in()
    # reserved address space, never written to: if an import finds no memory, it is freed, to have room for printing the error
    reserve = [bytearray(_RESERVE)]
    # nothing of what imports make is garbage: to look through it again and again takes a tenth of their time
    gc.disable()
    try:
        from akrunner.launch import cramped

        cramped.lean()
        from akrunner.cli import main as commands

        commands.load(sys.argv[1:])
    except BaseException as e:
        # an import that a signal interrupts may end in any exception
        number = signals.seen()
        if number is not None:
            return signals.say_early(number)
        if isinstance(e, SystemError) or (isinstance(e, OSError) and e.errno == errno.ENOMEM):
            # C code raises SystemError if it has no memory even for the exception; importing raises ENOMEM
            e = MemoryError()
        if isinstance(e, (ImportError, MemoryError)):
            # the frames of its traceback keep the half-imported modules in memory
            e = e.with_traceback(None)
            reserve.clear()
            return _say_no_room(e)
        raise
    finally:
        gc.freeze()
        gc.enable()
    reserve.clear()
    number = signals.seen()
    return commands.main() if number is None else signals.say_early(number)


def _say_no_room(error: BaseException) -> int:
    """Print why an import failed: too little memory, or a broken installation. Returns: the exit code."""
    from akrunner.cli import signals
    from akrunner.foreign import in_words

    return signals.say("ConfigError", f"{in_words(error)}; nothing was started", 2)


def _stand_in() -> None:
    """Open /dev/null in place of each standard stream that was closed (`>&-`).

    Otherwise a pipe to a task would get the stream's file descriptor, and prints would go into that pipe.
    """
    for fd, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(fd)
        except OSError:
            # stdout's stand-in is read-only, so that writing to the closed stdout is an error
            os.open(os.devnull, mode)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)


if __name__ == "__main__":
    main()
