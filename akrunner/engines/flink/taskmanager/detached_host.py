"""In a TaskManager: the process that is a detached job's host (`akrunner.detached.host`), and the connection to it.

::

    submitter, which may then end --- job graph, archive of the order --->  Flink job
    host subtask    starts the host process beside it; its lines go to the TaskManager's log
    host process    Supervisor, feeder, sink, ControlServer <--- words, rows ---> agents in the other subtasks

Both ends get their keys from the submitter, through Flink's job; the host gets its keys through its pipe. Imports no more
than `akrunner.engines.flink.taskmanager.agent`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, TypedDict

from akrunner.engines.flink.connections import greet
from akrunner.engines.flink.keys import Door, Keys
from akrunner.engines.flink.taskmanager.agent import JobFailed, watch_java
from akrunner.engines.flink.threads import words_of

#: the directory of the order, as Flink unpacks it for its Python
FOLDER = "akrunner-job"
START, WAIT = "start", "wait"
_CONNECT_SECONDS = 5.0
_END_SECONDS = 20.0
#: how much is shown of what a host that has died has printed: enough for a traceback
_LAST_LINES, _LAST_CHARACTERS = 40, 1 << 16


class Word(TypedDict, total=False):
    """A line of the host process.

    Attributes:
        addresses, port, rows, machine: where agents reach it: its addresses, the port of the service and that of rows, and the
            name of its machine.
        log: a line for the TaskManager's log.
        done: the job has succeeded.
        failed: why it has failed.
    """

    addresses: list[str]
    port: int
    rows: int
    machine: str
    log: str
    done: bool
    failed: str


class Host:
    """The host process. It ends when this process does.

    Args:
        module: the module that it runs, as `python -m` takes it.
        tag: marks its lines in the log.
        secrets: values that are written to its pipe.
    """

    def __init__(self, module: str, tag: str, secrets: Mapping[str, Any]) -> None:
        watch_java(self._unwatched)
        self._tag = tag
        # the directories that Flink has put on this process's module path are not on a child's
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._said = os.path.join(FOLDER, "stderr.txt")
        with open(self._said, "wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, FOLDER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environ,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        # a process that has died at once says why when its output is read
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(secrets).encode() + b"\n")
            self._process.stdin.flush()

    def _unwatched(self, name: str, error: BaseException) -> None:
        """End the host now, because the thread that would end it with its TaskManager has failed."""
        logging.error("akrunner[%s] %s", self._tag, words_of(name, error))
        self._process.kill()

    def told(self) -> str:
        """Return where the host is, for the subtasks.

        Raises:
            JobFailed: the host failed before it said so.
        """
        word = self._hear()
        while "addresses" not in word:
            word = self._hear()
        return json.dumps(word)

    def wait(self) -> None:
        """Wait until the job has ended.

        Raises:
            JobFailed: it failed.
        """
        while "done" not in self._hear():
            pass
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _hear(self) -> Word:
        """Return the host's next message; write lines for the log to the log."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word: Word = json.loads(line)
            if "failed" in word:
                raise JobFailed(marked(word["failed"]))
            if "log" not in word:
                return word
            logging.info("%s", f"akrunner[{self._tag}] {word['log']}")
        code = self._process.wait()
        with open(self._said, errors="replace") as f:
            said = f.read()[-_LAST_CHARACTERS:].strip().splitlines()
        last = "\n".join(said[-_LAST_LINES:]) if said else "it said nothing"
        raise JobFailed(marked(f"JobError: the job's host ended with exit code {code}: {last}"))


def reached(told: str, keys: Keys) -> Door:
    """Return the door of the host: the first of its addresses at which the host proves itself from here, and no other program
    that has the same address answers.

    Raises:
        OSError: it answers at none of them.
    """
    word: Word = json.loads(told)
    for address in word["addresses"]:
        door = Door(address, word["port"], word["rows"], keys)
        try:
            greet(door, _CONNECT_SECONDS)
        except OSError:
            continue
        return door
    raise OSError(f"the job's host on {word['machine']} does not answer from {socket.gethostname()}: {word['addresses']}")


_BEGIN, _END = "<<akrunner", "akrunner>>"


def marked(text: str) -> str:
    """Return words in a form in which they can be found again in Java's exceptions."""
    return f"{_BEGIN}\n{text}\n{_END}"


def unmarked(text: str) -> str | None:
    """Return the words that `marked` has put into a text; None if there are none."""
    _, begin, rest = text.partition(_BEGIN + "\n")
    inside, end, _ = rest.partition("\n" + _END)
    return inside if begin and end else None
