"""The `akrunner` command, and `python -m akrunner`: what must be so before anything is imported."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """The console script. Returns: the exit code."""
    from akrunner.cli import signals

    signals.watch()
    try:
        return _run()
    finally:
        signals.ignore()


def _run() -> int:
    from akrunner.cli import signals

    _stand_in()
    try:
        from akrunner.cli.main import main as command
    except BaseException:
        # an import that is interrupted may end in any exception
        number = signals.seen()
        if number is None:
            raise
        return signals.say_early(number)
    number = signals.seen()
    return command() if number is None else signals.say_early(number)


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
    try:
        code = main()
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    sys.exit(code)
