"""The logs of a run's tasks: bounded in size, written while the tasks print, and readable at any moment.

::

    000-0.txt           the first bytes of the first attempt stay
    000-524288.txt      pieces follow, named by the attempt and by the place of their first byte;
    000-1048576.txt     of these the last two stay
    001-0.txt           the log of the second attempt

A reader knows by the names alone what is missing, also when the process that wrote them was killed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import IO

from akrunner.leftovers.private import private_dir, private_file

FOLDER = "logs"
PIECE_BYTES = 512 << 10
#: how many attempts after the first one are kept: the newest
_ATTEMPTS = 10
_NAME = re.compile(r"(\d{3,})-(\d+)\.txt")
_CHUNK = 1 << 16


class LogCopy:
    """The copy of one task's log. An error ends the copy, and nothing else.

    Args:
        run: the run's directory.
        task: the task's name, "worker:0".
        attempt: the number of attempts before this one.
        piece: the bytes of a piece.
    Attributes:
        error: why the copy is not whole; None: it is.
    """

    def __init__(self, run: str, task: str, attempt: int = 0, piece: int = PIECE_BYTES) -> None:
        self.error: OSError | None = None
        self._folder = os.path.join(run, FOLDER, _key(task))
        self._attempt, self._piece = attempt, piece
        self._at = 0
        self._file: IO[bytes] | None = None
        self._later: deque[str] = deque()
        self._closed = False

    def write(self, chunk: bytes) -> None:
        """Add what the task has printed."""
        if self.error is not None or self._closed:
            return
        try:
            rest = memoryview(chunk)
            while rest:
                file, room = self._file, self._piece - self._at % self._piece
                if file is None or room == self._piece:
                    file = self._next()
                written = file.write(rest[:room])
                self._at += written
                rest = rest[written:]
        except OSError as e:
            self.error = e
            self._let_go()
        except ValueError:
            # it was closed at this moment, by the thread that waits no longer for the log's end
            pass

    def close(self) -> None:
        """End the copy. What is printed from now on is not in it."""
        self._closed = True
        self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            # what could not be written is known already
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _next(self) -> IO[bytes]:
        """Open the next piece, and remove the one that is neither the first nor among the last two."""
        self._let_go()
        if self._at == 0:
            private_dir(os.path.dirname(self._folder))
            private_dir(self._folder)
            _forget_attempts(self._folder, self._attempt)
        path = os.path.join(self._folder, f"{self._attempt:03d}-{self._at}.txt")
        self._file = private_file(path, "wb", buffering=0)
        if self._at:
            self._later.append(path)
        if len(self._later) > 2:
            os.unlink(self._later.popleft())
        return self._file


def _forget_attempts(folder: str, attempt: int) -> None:
    for number, _, name in _pieces(folder):
        if 0 < number <= attempt - _ATTEMPTS:
            os.unlink(os.path.join(folder, name))


def tasks(run: str) -> list[str]:
    """Return the names of the tasks that have printed something."""
    with contextlib.suppress(OSError):
        names = sorted(os.listdir(os.path.join(run, FOLDER)), key=_order)
        return [_task(name) for name in names]
    return []


class LogReader:
    """Reads the log of one task, and later what has come since.

    Args:
        run: the run's directory.
        task: the task's name.
    """

    def __init__(self, run: str, task: str) -> None:
        self._folder = os.path.join(run, FOLDER, _key(task))
        self._attempt, self._at = 0, 0
        self._rest = b""

    def lines(self, last: bool) -> Iterator[str]:
        """Yield the lines that were not yielded before. Args: last: whether no more will come, so that a line without an end is one."""
        for attempt, begin, name in _pieces(self._folder):
            if attempt < self._attempt or (attempt == self._attempt and not self._has_more(begin, name)):
                continue
            if attempt > self._attempt:
                yield from self._cut(f"[... the tasks were started again: attempt {attempt + 1} ...]")
                self._attempt, self._at = attempt, 0
            if begin > self._at:
                yield from self._cut(f"[... {begin - self._at:,} bytes are not kept ...]")
                self._at = begin
            yield from self._piece(name, begin)
        if last:
            yield from self._cut("")

    def _has_more(self, begin: int, name: str) -> bool:
        with contextlib.suppress(OSError):
            return begin + os.stat(os.path.join(self._folder, name)).st_size > self._at
        return False

    def _cut(self, words: str) -> Iterator[str]:
        """Yield the line that has no end, and then some words."""
        if self._rest:
            yield _text(self._rest)
            self._rest = b""
        if words:
            yield words

    def _piece(self, name: str, begin: int) -> Iterator[str]:
        try:
            file = open(os.path.join(self._folder, name), "rb")
        except OSError:
            # it was removed at this moment: the next piece tells how much is missing
            return
        with file:
            file.seek(self._at - begin)
            while chunk := file.read(_CHUNK):
                self._at += len(chunk)
                *whole, self._rest = (self._rest + chunk).split(b"\n")
                yield from map(_text, whole)


def _pieces(folder: str) -> Sequence[tuple[int, int, str]]:
    """Return attempt, first byte and name of each piece, in order."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted((int(found[1]), int(found[2]), name) for name in names if (found := _NAME.fullmatch(name)))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").rstrip("\r")


def _key(task: str) -> str:
    return task.replace(":", "-")


def _task(key: str) -> str:
    role, _, index = key.rpartition("-")
    return f"{role}:{index}"


def _order(key: str) -> tuple[int, str, int]:
    role, _, index = key.rpartition("-")
    ranked = ("chief", "worker", "ps", "evaluator")
    return ranked.index(role) if role in ranked else len(ranked), role, int(index) if index.isdigit() else 0
