"""Uploads files of a directory to a bucket, while a job runs and at its end.

::

    a look      reads TensorFlow's `checkpoint` files first, then uploads the other new files, then the `checkpoint` files as
                they were read: so a `checkpoint` in the bucket never names a file that is not there. Files that a program is
                about to rename wait
    the last    uploads everything that is there, whatever its name, because nothing is renamed any more
    deletes     a file that the script removes (an older checkpoint) is removed from the bucket too, if this job has uploaded
                it or copied it from there
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator

from akrunner.errors import WriteError
from akrunner.foreign import in_words, ours
from akrunner.tables.objects import Bucket

#: TensorFlow's file that names the newest checkpoint; a larger one is something else
_STATE, _LONGEST_STATE = "checkpoint", 1 << 20
#: files and directories that a program is about to rename
_UNFINISHED = re.compile(r"(\.tempstate\d+|\.tmp[0-9a-f]*|\.part|_temp/.*|(^|/)temp-\d+/.*)$")
#: (bytes of a file, the time in ns at which it was last written)
_Stamp = tuple[int, int]


class Upload:
    """One directory, and the objects it is uploaded to."""

    def __init__(
        self,
        bucket: Bucket,
        prefix: str,
        root: str,
        uri: str,
        known: Iterable[str],
        deletes: bool,
        say: Callable[[str], None],
    ) -> None:
        """Note the files that need no upload.

        Args:
            prefix: the beginning of the objects' keys.
            known: names of the files that are in the bucket already, as they are now.
            deletes: whether files that are removed here are removed from the bucket.
        """
        self._bucket, self._prefix, self._root, self._uri, self._deletes, self._say = bucket, prefix, root, uri, deletes, say
        stamps = dict(self._files())
        self._there: dict[str, _Stamp] = {name: stamps[name] for name in known if name in stamps}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def start(self, every: float) -> None:
        """Start a thread that uploads what is new every `every` seconds."""
        self._thread = threading.Thread(target=self._run, args=(every,), name="akrunner-upload", daemon=True)
        self._thread.start()

    def _run(self, every: float) -> None:
        while not self._over.wait(every):
            try:
                self.look()
                self._failing = False
            except Exception as e:
                if not self._failing:
                    self._say(f"{self._uri}: cannot upload what is new, and will try again: {in_words(e)}")
                self._failing = True

    def finish(self) -> None:
        """Stop the thread, and upload all that is left.

        Raises:
            WriteError: a file could not be uploaded.
        """
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        with ours(WriteError, f"{self._uri}: cannot upload what the job has written there"):
            self.look(last=True)

    def look(self, last: bool = False) -> None:
        """Upload what is new.

        Args:
            last: whether files that look as if a program would rename them are uploaded too.
        Raises:
            oss2's exceptions, OSError: an upload failed.
        """
        if not os.path.isdir(self._root):
            return
        states = dict(self._states())
        files = {name: stamp for name, stamp in self._files() if name not in states}
        for name, stamp in files.items():
            if not last and _UNFINISHED.search(name):
                continue
            if self._there.get(name) != stamp and not self._over_a_file_that_is_gone(name, stamp):
                self._there[name] = stamp
        for name, (stamp, data) in states.items():
            if self._there.get(name) != stamp:
                self._bucket.put_bytes(self._prefix + name, data)
                self._there[name] = stamp
        gone = [name for name in self._there if name not in files and name not in states]
        if self._deletes and gone:
            self._bucket.remove([self._prefix + name for name in gone])
        for name in gone:
            del self._there[name]

    def _over_a_file_that_is_gone(self, name: str, stamp: _Stamp) -> bool:
        """Upload a file. Returns whether it does not exist any more."""
        try:
            self._bucket.put_file(self._prefix + name, os.path.join(self._root, name), stamp[0])
        except FileNotFoundError:
            return True
        return False

    def _states(self) -> Iterator[tuple[str, tuple[_Stamp, bytes]]]:
        for name, stamp in self._files():
            if os.path.basename(name) == _STATE and stamp[0] <= _LONGEST_STATE:
                try:
                    with open(os.path.join(self._root, name), "rb") as file:
                        yield name, (stamp, file.read(_LONGEST_STATE))
                except FileNotFoundError:
                    continue

    def _files(self) -> Iterator[tuple[str, _Stamp]]:
        """Yield the plain files below the directory; no links are followed."""
        folders: list[str] = [self._root]
        while folders:
            try:
                entries = list(os.scandir(folders.pop()))
            except FileNotFoundError:
                continue
            for entry in entries:
                name = os.path.relpath(entry.path, self._root)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    try:
                        stat = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    yield name, (stat.st_size, stat.st_mtime_ns)
