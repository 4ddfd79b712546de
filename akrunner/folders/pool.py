"""Reading of many small files in order, ahead of the thread that takes them.

::

    batches of names -> advised: the system is asked to read their files, two batches ahead, without waiting for them
                     -> one thread: open, read, close -> [bytes, or why there are none] of one batch, while the next is read
                        many threads where opening a file takes long (a file system on the network), and for URLs

Many small files on this machine's disks are read by a process of its own (`helper`), which reports if threads would be better.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from akrunner.arrays import Octets
from akrunner.checks import kind_in_words
from akrunner.codec import crc32c
from akrunner.folders import helper_process
from akrunner.folders.gathered import MOST_BYTES, NAME, SIZE, numbers
from akrunner.folders.helper import PIECES, Helper, can_help
from akrunner.folders.remote import Fetcher, Unfetched, too_large
from akrunner.foreign import in_words

#: most bytes and rows of files that are read, or written, together
BATCH_BYTES, BATCH_ROWS = 16 << 20, 1024
#: how many threads read files, if nothing else is asked for; more than there are cores, as they wait for the disk
THREADS = 16
#: how many files one thread reads before it takes others
_AT_ONCE = 64
#: how many threads fetch URLs, for each thread that reads files
_FAR = 4
#: bytes of files from URLs after which a batch is handed on though it is not complete
_TOGETHER = 32 << 20
#: how many batches ahead the system is asked to read, and how many batches are read before they are taken
_ADVISED, _READ = 2, 2
#: how many files of a batch are opened to measure how long it takes; seconds for one above which several are opened at once
_TRIED, _SLOW = 8, 0.0003
#: seconds for one file above which several are read at a time, although the system was asked to read them ahead
_LATE = 0.003
#: errors that are this process's, not the fault of a file
_OURS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
#: why a local file cannot be read that is not there
NOT_THERE = "there is no such file"
#: errors that may pass; when one does, nothing that a listing shows (size, time) changes, so the file has to be tried again
_PASSING = (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT)


#: why a row of a list has no file
NO_PATH = "its path is empty"
#: why a file of no bytes has none
EMPTY = "it is empty"
#: a batch to read: (key, names, sizes they were listed with)
_Asked = tuple[Any, list[bytes], list[int]]


@dataclass
class Batch:
    """Files that were read.

    Attributes:
        key: the key that the batch was asked for with.
        datas: the bytes of each file; None for one that could not be read.
        problems: row -> why the file cannot be packed, half a sentence.
        first: how many files of the batch that was asked for came before, in batches of the same key.
        crcs: CRC-32C of each file [rows]; None: not known.
    """

    key: Any
    datas: list[Octets | None]
    problems: dict[int, str]
    first: int = 0
    crcs: crc32c.U32 | None = None


#: what a thread does with each file that it has read: (bytes) -> (bytes to pack, why the file cannot be packed or "")
Worked = Callable[[bytes], tuple[bytes, str]]
#: for each of some files: (bytes or None, why there are none or "")
_Read = list[tuple[bytes | None, str]]


class Pool:
    """Threads that read files below a directory, or URLs.

    Args:
        base: the directory that names are relative to; None: there is none.
        threads: how many threads read files.
        work: called with the bytes of each file, by the thread that has read it; None: nothing is done with them.
        most: most bytes that a file may have.
        unfetched: URL -> why it could not be fetched a moment ago; it is not tried again.
    """

    def __init__(
        self,
        base: str | None,
        threads: int,
        work: Worked | None = None,
        most: int = MOST_BYTES,
        unfetched: Mapping[bytes, str] | None = None,
    ) -> None:
        self._threads = threads
        self._unfetched = unfetched or {}
        self._work = work
        self._fd = os.open(base, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY) if base is not None else None
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="akrunner-files")
        self._fetcher = Fetcher(most)
        # more threads than for files, as a server takes longer to answer than a disk
        self._far = ThreadPoolExecutor(_FAR * threads, thread_name_prefix="akrunner-files")
        #: whether one thread alone took long, as happens where the system does not read ahead though it is asked to
        self._late = False
        self._tickets = 0
        self._helper: Helper | None = None
        # one thread is enough for files that are in memory already: several would only take turns, and wait for each other
        self._near = ThreadPoolExecutor(1 if work is None else threads, thread_name_prefix="akrunner-files")

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._fetcher.stop()
        self._unhelped()
        for executor in (self._executor, self._near, self._far):
            executor.shutdown(wait=True, cancel_futures=True)
        if self._fd is not None:
            os.close(self._fd)

    def help(self) -> None:
        """Have a helper process read the files, if one can be started. It pays for many small files."""
        if self._work is None and can_help():
            # if no process can be started, this one reads the files
            with contextlib.suppress(OSError):
                self._helper = Helper(self._fd, BATCH_BYTES, self._fetcher.most, _TRIED, _SLOW, _LATE)

    def _unhelped(self) -> None:
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.close()

    def read(self, asked: Iterable[_Asked]) -> Iterator[Batch]:
        """Read files, batch by batch.

        Args: asked: (key, names, sizes they were listed with; -1: unknown) of each batch.
        Returns: the batches, in order. With a helper, a batch's bytes are overwritten once the next batch but one is asked for.
        """
        rest = iter(asked)
        waiting: deque[_Asked] = deque()
        yield from self._helped(rest, waiting)
        yield from self._threaded(itertools.chain(waiting, rest))

    def _helped(self, asked: Iterator[_Asked], waiting: deque[_Asked]) -> Iterator[Batch]:
        """Give the batches that the helper reads, until it ends or is too slow.

        Args: waiting: on return it has the batches that the helper was asked for and has not read.
        """
        pieces = itertools.cycle(range(PIECES))
        while self._helper is not None:
            one = next(asked, None)
            if one is not None:
                self._helper.ask(next(pieces), one[1], one[2])
                waiting.append(one)
            if not waiting:
                return
            if one is not None and len(waiting) < PIECES - 1:
                continue
            answer = self._helper.answer(len(waiting[0][1]))
            if answer is None:
                self._unhelped()
                return
            key, names, sizes = waiting.popleft()
            if not waiting:
                self._helper.ends()
            batch = Batch(key, answer.datas, {}, crcs=answer.crcs)
            for i in answer.missing:
                # the helper does not say why it could not read a file, so it is tried here
                ((data, why),) = self._some([names[i]], [sizes[i]])
                batch.datas[i], answer.crcs[i] = data, crc32c.crc_of(data or b"")
                if why:
                    batch.problems[i] = why
            yield batch
            if answer.late:
                self._unhelped()

    def _threaded(self, asked: Iterable[_Asked]) -> Iterator[Batch]:
        advised: deque[tuple[Any, list[bytes], list[int], Future[bool] | None]] = deque()
        under_way: deque[tuple[Any, list[Future[_Read]], int | None]] = deque()
        try:
            for key, names, sizes in asked:
                advised.append((key, names, sizes, self._advised(names, sizes)))
                if len(advised) > _ADVISED:
                    under_way.append(self._submitted(*advised.popleft()))
                if len(under_way) > _READ:
                    yield from self._gathered(*under_way.popleft())
            while advised or under_way:
                if advised:
                    under_way.append(self._submitted(*advised.popleft()))
                if len(under_way) > _READ or not advised:
                    yield from self._gathered(*under_way.popleft())
        finally:
            for _, futures, _ in under_way:
                for future in futures:
                    future.cancel()

    def _advised(self, names: list[bytes], sizes: list[int]) -> Future[bool] | None:
        if any(map(is_url, names)):
            return None
        # files of unknown size may be devices, which must not be opened; those that are too large are not read
        files = [name for name, size in zip(names, sizes) if 0 < size <= self._fetcher.most]
        return self._near.submit(helper_process.advised, files, self._fd, _TRIED, _SLOW)

    def _submitted(
        self, key: Any, names: list[bytes], sizes: list[int], advised: Future[bool] | None
    ) -> tuple[Any, list[Future[_Read]], int | None]:
        """Give a batch to threads.

        Returns: (its key, its futures, the ticket of the first file if each file has a future of its own; else None).
        """
        if advised is None:
            first = self._tickets
            self._tickets += len(names)
            return (
                key,
                [self._far.submit(self._some, [one], [size], first + i) for i, (one, size) in enumerate(zip(names, sizes))],
                first,
            )
        near = advised.result() and not self._late
        executor = self._near if near else self._executor
        step = max(1, len(names) if near and self._work is None else min(_AT_ONCE, -(-len(names) // self._threads)))
        pieces = [(names[i : i + step], sizes[i : i + step]) for i in range(0, len(names), step)]
        return key, [executor.submit(self._some, some, known) for some, known in pieces], None

    def _some(self, names: list[bytes], sizes: list[int], ticket: int | None = None) -> _Read:
        began = time.monotonic()
        found = [
            (None, self._unfetched[name])
            if name in self._unfetched
            else self._fetcher.get(name.decode("utf-8", "surrogateescape"), size, ticket)
            if is_url(name)
            else self._one(name, size)
            for name, size in zip(names, sizes)
        ]
        self._late = self._late or (len(names) > _AT_ONCE and time.monotonic() - began > len(names) * _LATE)
        if self._work is None:
            return found
        return [self._worked(data) if data is not None else (None, why) for data, why in found]

    def _worked(self, data: bytes) -> tuple[bytes | None, str]:
        assert self._work is not None
        made, why = self._work(data)
        # for a broken file return the bytes that were read, so that a person can look at them
        return (data, why) if why else (made, "")

    def _gathered(self, key: Any, futures: list[Future[_Read]], ticket: int | None) -> Iterator[Batch]:
        """Collect a batch's files: in one batch, or in several if each file has a future of its own and they are large."""
        batch, size, room = Batch(key, [], {}), 0, self._fetcher.room
        for i in range(len(futures)):
            if ticket is not None:
                room.want(ticket + i)
            for data, why in futures[i].result():
                if why or data is None:
                    batch.problems[len(batch.datas)] = why
                batch.datas.append(data)
                size += len(data or b"")
            if ticket is not None:
                # drop the future, which would keep the file's bytes in memory
                futures[i] = Future()
                if size >= _TOGETHER and i + 1 < len(futures):
                    yield batch
                    self._give(ticket + batch.first, len(batch.datas))
                    batch, size = Batch(key, [], {}, i + 1), 0
        yield batch
        if ticket is not None:
            self._give(ticket + batch.first, len(batch.datas))

    def _give(self, first: int, tickets: int) -> None:
        for ticket in range(first, first + tickets):
            self._fetcher.room.give(ticket)

    def _one(self, name: bytes, size: int) -> tuple[bytes | None, str]:
        if not name:
            return None, NO_PATH
        if size == 0:
            # not read: the system's own files have size 0 and may still give bytes, which in some of them are lost once read
            return None, EMPTY
        try:
            if size < 0 and not stat.S_ISREG(mode := os.stat(name, dir_fd=self._fd).st_mode):
                return None, f"it is {kind_in_words(mode)}, not a file"
            fd = os.open(name, helper_process.FLAGS, dir_fd=self._fd)
        except (OSError, ValueError) as e:
            if isinstance(e, OSError) and e.errno in _OURS:
                raise
            return None, self._unopened(name, e)
        try:
            if size < 0:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode):
                    return None, f"it is {kind_in_words(found.st_mode)}, not a file"
                size = found.st_size
                if not size:
                    return None, EMPTY
            if size > self._fetcher.most:
                return None, too_large(size, self._fetcher.most)
            data = os.read(fd, size + 1)
            while len(data) < size:
                more = os.read(fd, size + 1 - len(data))
                if not more:
                    break
                data += more
        except OSError as e:
            return None, why_not(e)
        finally:
            os.close(fd)
        if len(data) != size:
            return None, "it was changed while it was read"
        return (data, "") if data else (None, EMPTY)

    def _unopened(self, name: bytes, error: Exception) -> str:
        """Return why a file cannot be opened; it may also not be a regular file."""
        try:
            mode = os.stat(name, dir_fd=self._fd).st_mode
        except (OSError, ValueError):
            return why_not(error)
        return why_not(error) if stat.S_ISREG(mode) else f"it is {kind_in_words(mode)}, not a file"


def asked_of(listing: pa.Table, first: int, end: int) -> Iterator[tuple[tuple[int, int], list[bytes], list[int]]]:
    """Yield the batches of some rows of a listing, as `Pool.read` is asked for them: (first row and end, names, sizes)."""
    while first < end:
        sizes = numbers(listing.column(SIZE)[first : min(first + BATCH_ROWS, end)])
        # a file of unknown size is counted as one of some size
        ends = np.cumsum(np.where(sizes < 0, BATCH_BYTES // 64, sizes))
        count = max(1, int(np.searchsorted(ends, BATCH_BYTES, side="right")))
        yield (first, first + count), listing.column(NAME)[first : first + count].to_pylist(), sizes[:count].tolist()
        first += count


def is_url(name: bytes) -> bool:
    """Whether a name is a URL, not a path. `file://` was taken off before."""
    return b"://" in name[:16]


def why_not(error: Exception) -> str:
    """Return why a file cannot be read, as half a sentence; as an `Unfetched` if the error may pass."""
    if isinstance(error, FileNotFoundError):
        return NOT_THERE
    if isinstance(error, BlockingIOError):
        # EAGAIN: its usual words are about processes
        return "it cannot be read now: it is locked, or no plain file"
    words = in_words(error)
    return Unfetched(words) if isinstance(error, OSError) and error.errno in _PASSING else words


@contextlib.contextmanager
def reading(base: str | None, threads: int, work: Worked | None = None) -> Iterator[Pool]:
    """Give a pool that lasts as long as the `with` block."""
    with Pool(base, threads, work) as pool:
        yield pool
