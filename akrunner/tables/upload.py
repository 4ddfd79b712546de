"""Files of a directory -> objects of a bucket, while a job runs and at its end.

::

    a look      what TensorFlow's `checkpoint` files say is read first, then the other files that are new go up, then what they said: in the
                bucket, too, a `checkpoint` never names a file that is not there; what a program is about to rename waits
    the last    everything that is there, whatever it is called: nobody renames it any more
    deletes     a file that the script has removed (older checkpoints) is removed there, too, if this job has brought it
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
#: files and directories a program is about to rename
_UNFINISHED = re.compile(r"(\.tempstate\d+|\.tmp[0-9a-f]*|\.part|_temp/.*|(^|/)temp-\d+/.*)$")
#: (bytes, when it was last written)
_Stamp = tuple[int, int]


class Upload:
    """One directory and its objects."""

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
        """Args: prefix: of keys; known: names of files that are there already, as they are now; deletes: whether what is removed here is removed there."""
        self._bucket, self._prefix, self._root, self._uri, self._deletes, self._say = bucket, prefix, root, uri, deletes, say
        stamps = dict(self._files())
        self._there: dict[str, _Stamp] = {name: stamps[name] for name in known if name in stamps}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def start(self, every: float) -> None:
        """Look now and then, from now on."""
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
        """The last look. Raises: WriteError: something could not be uploaded."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        with ours(WriteError, f"{self._uri}: cannot upload what the job has written there"):
            self.look(last=True)

    def look(self, last: bool = False) -> None:
        """Upload what is new. Args: last: also what looks as if a program would rename it. Raises: the library's exceptions."""
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
        """Upload a file. Returns: whether there is none any more."""
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
        """Plain files below the directory; no links are followed."""
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
