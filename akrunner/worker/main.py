"""Entry of the bundle: `python bundle.zip run READ_FD WRITE_FD`, `python bundle.zip spare READ_FD WRITE_FD SOCKET_FD`, or
`python bundle.zip replay TASK_DIR`."""

from __future__ import annotations

import faulthandler
import sys
from typing import Any, List, NoReturn, cast

from akrunner.wire import STACKS_SIGNAL, ending
from akrunner.worker import replay
from akrunner.worker.leaving import end_far, last_things
from akrunner.worker.link import Link, host_is_gone
from akrunner.worker.task import Task, leave


def main(argv: List[str]) -> int:
    """Run one task. Args: argv: without the program's name."""
    if argv[:1] == ["run"] and len(argv) == 3:
        settle()
        return run(int(argv[1]), int(argv[2]))
    if argv[:1] == ["spare"] and len(argv) == 4:
        settle()
        # not before it is asked for: a module of it is in no cold start
        from akrunner.worker import spare

        return run(*spare.wait_for_job(*map(int, argv[1:])))
    if argv[:1] == ["replay"] and len(argv) >= 2:
        return replay.main(argv[1:])
    sys.stderr.write("usage: python BUNDLE replay TASK_DIR [--cluster]\n")
    return 2


def settle() -> None:
    """What a process that runs a task does first of all."""
    for stream in (sys.stdout, sys.stderr):
        # so that the last lines before a crash are in the log
        cast(Any, stream).reconfigure(line_buffering=True, errors="backslashreplace")
    faulthandler.enable()
    faulthandler.register(STACKS_SIGNAL, all_threads=True)
    ending.wake_when_parent_dies()


def run(read_fd: int, write_fd: int) -> NoReturn:
    """The task of one job, told by the host over the pipes. Never returns: the process ends when the last word is said."""
    link = Link(read_fd, write_fd)
    try:
        context = link.handshake()
    except OSError:
        host_is_gone()
    task = Task(link, context)
    closed = task.run()
    task.say_and_stay(closed)
    # what hangs in an exit handler is ended by the host
    task.say_left(task.alone(last_things))
    end_far()
    leave(closed, link)
