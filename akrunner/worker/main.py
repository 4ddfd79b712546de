"""Entry point of the bundle.

::

    python bundle.zip run READ_FD WRITE_FD                    run one task of a job
    python bundle.zip spare READ_FD WRITE_FD SOCKET_FD        wait for a job as a warm worker, then run its task
    python bundle.zip replay TASK_DIR                         run a task again over the rows that were kept
"""

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
    """Run the command of the command line. Args: argv: the arguments without the program's name. Returns: the exit code."""
    if argv[:1] == ["run"] and len(argv) == 3:
        settle()
        return run(int(argv[1]), int(argv[2]))
    if argv[:1] == ["spare"] and len(argv) == 4:
        settle()
        # imported only here, so that other processes do not load it
        from akrunner.worker import spare

        return run(*spare.wait_for_job(*map(int, argv[1:])))
    if argv[:1] == ["replay"] and len(argv) >= 2:
        return replay.main(argv[1:])
    sys.stderr.write("usage: python BUNDLE replay TASK_DIR [--cluster]\n")
    return 2


def settle() -> None:
    """Prepare a process that runs a task: its output streams, its signal for stacks, its end with its parent."""
    for stream in (sys.stdout, sys.stderr):
        # line buffering, so that the last lines before a crash are in the log
        cast(Any, stream).reconfigure(line_buffering=True, errors="backslashreplace")
    faulthandler.enable()
    faulthandler.register(STACKS_SIGNAL, all_threads=True)
    ending.wake_when_parent_dies()


def run(read_fd: int, write_fd: int) -> NoReturn:
    """Run the task that the host describes over the pipes. Never returns: the process ends after its last message."""
    link = Link(read_fd, write_fd)
    try:
        context = link.handshake()
    except OSError:
        host_is_gone()
    task = Task(link, context)
    closed = task.run()
    task.say_and_stay(closed)
    # if an exit handler hangs, the host ends this process
    task.say_left(task.alone(last_things))
    end_far()
    leave(closed, link)
