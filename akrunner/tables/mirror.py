"""Copies objects of a bucket to files of a directory, before a job starts.

::

    list (a thousand at a time) -> is there room, is it allowed? -> threads, 8 MB at a time -> BUCKET.coming/NUMBER -> file
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from akrunner.errors import ConfigError, SourceError
from akrunner.foreign import ours
from akrunner.io.limits import deadline, waited
from akrunner.launch.limits import downloading, shown
from akrunner.launch.trees import Blame
from akrunner.tables.objects import Bucket, Found

THREADS = 8
_PIECE = 8 << 20
_SAID_EVERY = 5.0
_LONGEST_NAME = 250


class Mirror:
    """Local copies of a bucket's objects.

    Attributes:
        bucket: the bucket.
        root: the directory that stands for the bucket.
    """

    def __init__(self, bucket: Bucket, root: str, uri: str, say: Callable[[str], None]) -> None:
        self.bucket, self.root, self._uri, self._say = bucket, root, uri, say
        # beside the files, because any name among the files may be an object's
        self._coming = f"{root}.coming"
        self._numbers = itertools.count()

    def path(self, key: str) -> str:
        return os.path.join(self.root, key)

    def fetch(self, key: str, whole: bool) -> list[str]:
        """Copy an object, or all objects in a directory.

        Args:
            whole: whether objects below `key` are copied too.
        Returns:
            The keys of the objects that were copied.
        Raises:
            SourceError: the bucket cannot be read.
            ConfigError: the objects are too large.
            JobTimeoutError: the time of the job that wants them is over.
        """
        over = threading.Event()
        if deadline() is None:
            return self._fetched(key, whole, over)
        return waited(lambda: self._fetched(key, whole, over), over.set, f"the copy of {self._uri}")

    def _fetched(self, key: str, whole: bool, over: threading.Event) -> list[str]:
        """Copy as `fetch` does. Args: over: set when the caller no longer wants the copies."""
        with ours(SourceError, f"{self._uri}: cannot read it at {self.bucket.endpoint}"):
            found = self._wanted(key, whole)
            total = sum(one.size for one in found)
            self._check_room(total)
            self._copy(found, total, whole, over)
        return [one.key for one in found]

    def _wanted(self, key: str, whole: bool) -> list[Found]:
        """Return the objects to copy; those whose keys cannot be names of files are left out, and reported to `say`.

        Raises:
            ConfigError: there are more objects, or bytes, than allowed.
        """
        budget = downloading("a copy of it", Blame(self._uri, ConfigError))
        every: dict[str, Found] = {}
        folders: set[str] = set()
        odd: list[str] = []
        for one in self.bucket.listed(key):
            if one.key != key and not (whole and (not key or key.endswith("/") or one.key.startswith(key + "/"))):
                if not whole:
                    # the object that is asked for comes first in the list
                    break
                continue
            if one.key.endswith("/"):
                continue
            if not _is_path(one.key):
                odd.append(one.key)
                continue
            budget.member()
            budget.take(one.size)
            every[one.key] = one
            parts = one.key.split("/")
            folders.update("/".join(parts[:number]) for number in range(1, len(parts)))
        # an object that has the name of a directory: if it is empty, it is a marker that programs leave
        odd += [name for name in every if name in folders and every[name].size]
        if odd:
            self._say(f"{self._uri}: {len(odd)} objects cannot be files, and are left out: {', '.join(map(repr, odd[:3]))}")
        return [one for name, one in every.items() if name not in folders]

    def _check_room(self, total: int) -> None:
        os.makedirs(self.root, exist_ok=True)
        os.makedirs(self._coming, exist_ok=True)
        free = shutil.disk_usage(self.root).free
        if total > free:
            raise ConfigError(
                f"{self._uri} has {shown(total)}, and {shown(free)} are free for a copy in {os.path.dirname(self.root)}: set "
                "TMPDIR, name only the directory the script reads, or a copy of yours (--oss-root BUCKET=DIR)"
            )

    def _copy(self, found: list[Found], total: int, told: bool, over: threading.Event) -> None:
        progress = _Progress(self._uri, len(found), total, self._say)
        with ThreadPoolExecutor(THREADS, "akrunner-oss") as pool:
            tasks = [pool.submit(self._one, one, progress, over) for one in found]
            try:
                for task in tasks:
                    task.result()
            except BaseException:
                over.set()
                pool.shutdown(cancel_futures=True)
                raise
        if told:
            progress.end()

    def _one(self, found: Found, progress: _Progress, over: threading.Event) -> None:
        target = self.path(found.key)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        coming = os.path.join(self._coming, str(next(self._numbers)))
        with open(coming, "wb") as file:
            for start in range(0, found.size, _PIECE):
                if over.is_set():
                    return
                data = self.bucket.piece(found, start, min(_PIECE, found.size - start))
                file.write(data)
                progress.came(len(data))
        os.replace(coming, target)
        progress.done()


class _Progress:
    """Reports now and then how far a copy is."""

    def __init__(self, uri: str, files: int, size: int, say: Callable[[str], None]) -> None:
        self._uri, self._files, self._size, self._say = uri, files, size, say
        self._lock = threading.Lock()
        self._came = self._done = 0
        self._next = time.monotonic() + _SAID_EVERY

    def came(self, size: int) -> None:
        with self._lock:
            self._came += size
            now = time.monotonic()
            if now < self._next:
                return
            self._next = now + _SAID_EVERY
            words = f"{self._uri}: {self._done:,} of {self._files:,} files, {shown(self._came)} of {shown(self._size)}"
        self._say(words)

    def done(self) -> None:
        with self._lock:
            self._done += 1

    def end(self) -> None:
        if self._files:
            self._say(
                f"{self._uri}: {self._files:,} file{'s' * (self._files > 1)}, {shown(self._size)}, copied to this machine"
            )


def _is_path(key: str) -> bool:
    """Whether a file below a directory can have this name."""
    parts = key.split("/")
    return "\0" not in key and all(part not in ("", ".", "..") and len(os.fsencode(part)) <= _LONGEST_NAME for part in parts)
