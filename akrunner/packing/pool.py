"""Many small files read by several threads, in order, a batch ahead of whoever packs them.

::

    batches of names -> threads: open, read, close -> [bytes or why not] of one batch, while the next one is read
                        one thread, if the files are in memory
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from akrunner.checks import kind_in_words
from akrunner.foreign import in_words
from akrunner.packing.remote import Fetcher, too_large
from akrunner.packing.settings import MOST_BYTES

#: files that one thread reads at a time
_AT_ONCE = 64
#: of URLs, for each that reads files
_FAR = 4
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass
class Batch:
    """Files that were read. Attributes: key: whatever the batch was asked for with; datas: None of what could not be read; problems: row -> why, half a sentence."""

    key: Any
    datas: List[Optional[bytes]]
    problems: Dict[int, str]


#: what one thread does with each file it has read: (bytes) -> (bytes, why it is no good or "")
Worked = Callable[[bytes], Tuple[bytes, str]]


class Pool:
    """Threads that read files below a directory, or URLs.

    Args: base: the directory that relative names are below; threads: how many; work: done with each file by the thread that has read it; most: bytes a
    file may have.
    """

    def __init__(self, base: Optional[str], threads: int, work: Optional[Worked] = None, most: int = MOST_BYTES) -> None:
        self._threads = threads
        self._work = work
        self._fd = os.open(base, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY) if base is not None else None
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="akrunner-pack")
        # files that are in memory need nobody to wait for them: several threads would only take turns, and wait for each other
        self._fetcher = Fetcher(most)
        # a server's answer is waited for longer than a disk's
        self._far = ThreadPoolExecutor(_FAR * threads, thread_name_prefix="akrunner-pack")
        self._near = ThreadPoolExecutor(1 if work is None else threads, thread_name_prefix="akrunner-pack")

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self._fetcher.stop()
        for executor in (self._executor, self._near, self._far):
            executor.shutdown(wait=True, cancel_futures=True)
        if self._fd is not None:
            os.close(self._fd)

    def read(self, asked: Iterable[Tuple[Any, List[bytes], List[int]]]) -> Iterator[Batch]:
        """Args: asked: (key, names, sizes they were listed with, -1: unknown) of each batch."""
        under_way: Deque[Tuple[Any, int, List["Future[List[Tuple[Optional[bytes], str]]]"]]] = deque()
        try:
            for key, names, sizes in asked:
                under_way.append((key, len(names), self._submitted(names, sizes)))
                if len(under_way) > 2:
                    yield _gathered(*under_way.popleft())
            while under_way:
                yield _gathered(*under_way.popleft())
        finally:
            for _, _, futures in under_way:
                for future in futures:
                    future.cancel()

    def _submitted(self, names: List[bytes], sizes: List[int]) -> List["Future[List[Tuple[Optional[bytes], str]]]"]:
        step = 1 if names and is_url(names[0]) else max(1, min(_AT_ONCE, -(-len(names) // self._threads)))
        pieces = [(names[i : i + step], sizes[i : i + step]) for i in range(0, len(names), step)]
        return [self._executor_for(some).submit(self._some, some, known) for some, known in pieces]

    def _executor_for(self, names: List[bytes]) -> ThreadPoolExecutor:
        if is_url(names[0]):
            return self._far
        return self._near if self._is_near(names) else self._executor

    def _is_near(self, names: List[bytes]) -> bool:
        """Whether files are in memory, by the first and the last of them. Not known: they are not."""
        for name in (names[0], names[-1]):
            try:
                fd = os.open(name, _FLAGS, dir_fd=self._fd)
            except (OSError, ValueError):
                return False
            try:
                os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
            except OSError:
                # it would have to wait (EAGAIN), or this file system cannot tell
                return False
            finally:
                os.close(fd)
        return True

    def _some(self, names: List[bytes], sizes: List[int]) -> List[Tuple[Optional[bytes], str]]:
        found = [
            self._fetcher.get(name.decode("utf-8", "surrogateescape"), size) if is_url(name) else self._one(name, size)
            for name, size in zip(names, sizes)
        ]
        if self._work is None:
            return found
        return [self._worked(data) if data is not None else (None, why) for data, why in found]

    def _worked(self, data: bytes) -> Tuple[Optional[bytes], str]:
        assert self._work is not None
        made, why = self._work(data)
        return (None, why) if why else (made, "")

    def _one(self, name: bytes, size: int) -> Tuple[Optional[bytes], str]:
        try:
            fd = os.open(name, _FLAGS, dir_fd=self._fd)
        except (OSError, ValueError) as e:
            return None, why_not(e)
        try:
            if size < 0:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode):
                    return None, f"it is {kind_in_words(found.st_mode)}, not a file"
                size = found.st_size
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
            return None, "it was changed while it was packed"
        return (data, "") if data else (None, "it is empty")


def _gathered(key: Any, rows: int, futures: Sequence["Future[List[Tuple[Optional[bytes], str]]]"]) -> Batch:
    batch = Batch(key, [], {})
    for future in futures:
        for data, why in future.result():
            if data is None:
                batch.problems[len(batch.datas)] = why
            batch.datas.append(data)
    assert len(batch.datas) == rows
    return batch


def is_url(name: bytes) -> bool:
    """Whether a name is no path. `file://` was taken off before."""
    return b"://" in name[:16]


def why_not(error: Exception) -> str:
    """Half a sentence: why a file cannot be read."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return in_words(error)


@contextlib.contextmanager
def reading(base: Optional[str], threads: int, work: Optional[Worked] = None) -> Iterator[Pool]:
    """A pool for as long as a block."""
    with Pool(base, threads, work) as pool:
        yield pool
