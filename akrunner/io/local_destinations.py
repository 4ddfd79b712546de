"""Destinations on this machine's file systems: until an output is complete, it lies beside its final path under a hidden
name."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from typing import IO

from akrunner import leftovers
from akrunner.checks import holds_no_files, is_within
from akrunner.errors import SinkError, WriteError
from akrunner.io.manifests import NAME, Seal
from akrunner.io.piped import Piped, check_writable, opened
from akrunner.io.rename import move_new, swap, sync
from akrunner.io.unfinished import (
    came_meanwhile,
    check_ours,
    check_still_ours,
    exists_already,
    folder_exists_already,
    is_directory,
    is_file,
    is_partial,
    partial_of,
)

#: how many files of a directory may be open at once; a process may usually open 1024
_OPEN_FILES = 500
#: how many seconds to wait for another job that is putting its files into the same directory, and how often to look
_PATIENCE, _TICK = 60.0, 0.05


class Straight:
    """A pipe, a terminal, /dev/null or /dev/stdout: what is written is gone at once, and cannot be taken back."""

    at: str | None = None

    def __init__(self, path: str, shown: str) -> None:
        self._path = path
        mode = os.stat(path).st_mode
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
            raise SinkError(f"output: {shown} is a {'socket' if stat.S_ISSOCK(mode) else 'disk'}; name a file")
        check_writable(path)
        self._stream: Piped | None = None

    def open(self) -> IO[bytes]:
        if self._stream is not None:
            raise WriteError(
                f"output: what went to {self._path} cannot be taken back, so the job was not started again (max_restarts=)"
            )
        # fail if a pipe has no reader, instead of waiting for one for ever
        self._stream = opened(self._path, self._path)
        return self._stream

    def commit(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def abort(self) -> None:
        # a reader that does not read must not hold up the end of a job that has failed
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.drop()


class LocalFile:
    """A file that is written beside its final path, then renamed. A symbolic link stays; the file that it points at is
    replaced."""

    def __init__(self, path: str, shown: str, overwrite: bool) -> None:
        self._shown, self._overwrite = shown, overwrite
        self._target = os.path.realpath(path)
        folder = os.path.dirname(self._target)
        if os.path.isdir(self._target):
            raise is_directory(shown)
        if os.path.lexists(self._target) and not overwrite:
            raise exists_already(shown)
        if not os.path.isdir(folder):
            raise SinkError(f"output: there is no directory {folder}; make it first")
        if holds_no_files(folder):
            raise SinkError(f"output: {folder} is the system's own, and keeps no files; name another directory")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise SinkError(f"output: nothing may be written in {folder}")
        self.at: str | None = partial_of(self._target)
        self._partial = self.at
        self._stream: IO[bytes] | None = None

    def open(self) -> IO[bytes]:
        leftovers.register(self._partial)
        self._stream = open(self._partial, "xb")
        return self._stream

    def commit(self) -> None:
        assert self._stream is not None
        sync(self._stream)
        self._stream.close()
        try:
            os.replace(self._partial, self._target) if self._overwrite else move_new(self._partial, self._target)
        except FileExistsError:
            raise came_meanwhile(self._shown) from None
        leftovers.forget(self._partial)

    def abort(self) -> None:
        # do each step even if the one before it failed
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.close()
        with contextlib.suppress(OSError):
            os.remove(self._partial)
        leftovers.forget(self._partial)


class LocalFolder:
    """A directory that is written beside its final path; or inside it, if it is the root of a mount or holds the working
    directory, or if nothing may be written to its parent directory.

    Attributes:
        partial, most, adds: as in `akrunner.io.destinations.FolderDestination`.
    """

    most = _OPEN_FILES

    def __init__(self, path: str, shown: str, overwrite: bool, append: bool = False) -> None:
        self._shown, self._overwrite, self._append = shown, overwrite, append
        self._target = os.path.realpath(path)
        if os.path.exists(self._target) and not os.path.isdir(self._target):
            raise is_file(shown)
        if holds_no_files(self._target):
            raise SinkError(f"output: {self._target} is the system's own, and keeps no files; name another directory")
        self._there = os.path.isdir(self._target)
        held = os.listdir(self._target) if self._there else []
        if held and not overwrite and not append:
            raise folder_exists_already(shown)
        names = [os.path.join(found, name) for found, _, names in os.walk(self._target) for name in names]
        check_ours(shown, names)
        self.adds = append and bool(names)
        above = os.path.dirname(self._target)
        self._inside = self._there and (_is_mounted(self._target) or _is_around(self._target) or not os.access(above, os.W_OK))
        if self._inside:
            self.partial = os.path.join(self._target, os.path.basename(partial_of("akrunner")))
        else:
            # the directories above it are made only when the job has succeeded
            while not os.path.exists(above):
                above = os.path.dirname(above)
            self.partial = partial_of(os.path.join(above, os.path.basename(self._target)))
        writable = os.path.dirname(self.partial)
        if not os.path.isdir(writable) or not os.access(writable, os.W_OK | os.X_OK):
            raise SinkError(f"output: nothing may be written in {writable}")
        self.at: str | None = self.partial
        self._streams: dict[str, IO[bytes]] = {}
        #: "" (the directory itself), or the name of a file that is finished -> what it was then
        self._made: dict[str, os.stat_result] = {}

    def make(self) -> None:
        """Make the directory, if it is not there yet. Raises: WriteError: it was there, and somebody has removed it."""
        if self._made:
            self._check_there("")
            return
        leftovers.register(self.partial)
        os.makedirs(self.partial, exist_ok=True)
        self._made[""] = os.stat(self.partial)

    def _check_there(self, name: str) -> None:
        """Check that what was made is there still. Raises: WriteError: it is not, and its rows would be missing without a word."""
        path = os.path.join(self.partial, name) if name else self.partial
        if not os.path.lexists(path) or not os.path.samestat(self._made[name], os.lstat(path)):
            raise WriteError(f"output: {path} was removed while the job ran, and rows with it")

    def open(self, name: str) -> IO[bytes]:
        path = os.path.join(self.partial, name)
        if "/" in name:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self._streams[name] = open(path, "wb")
        return self._streams[name]

    def finish(self, name: str) -> None:
        """Write all of a file to the disk, and close it."""
        stream = self._streams.pop(name)
        try:
            sync(stream)
            self._made[name] = os.fstat(stream.fileno())
        finally:
            stream.close()

    def empty(self) -> bool:
        return not os.listdir(self.partial)

    def commit(self, seal: Seal | None = None) -> None:
        """Put the files into place.

        Args:
            seal: makes the directory's manifest.
        """
        for name in list(self._streams):
            self.finish(name)
        for name in self._made:
            self._check_there(name)
        with _alone(self._target, self._shown):
            if os.path.isdir(self._target):
                self._put(seal)
                new = False
            else:
                self._seal(seal, [])
                new = True
        if new:
            self._move_new(seal)
        with contextlib.suppress(OSError):
            shutil.rmtree(self.partial)
        leftovers.forget(self.partial)

    def _put(self, seal: Seal | None) -> None:
        """Put the files into the directory that is there."""
        # another job may be writing here, too; what a dead job left is removed by its guard, or at the next start
        old = [name for name in _names(self._target) if not is_partial(name.partition("/")[0])]
        if old and not self._overwrite and not self._append:
            raise came_meanwhile(self._shown)
        if self._overwrite:
            # a link to a directory is only cut
            check_still_ours(self._shown, [name for name in old if not os.path.isdir(os.path.join(self._target, name))])
        if self._append and self.empty():
            return
        self._seal(seal, old if self._append else [])
        if self._inside or not (self._swapped_with(old) if self._append else swap(self.partial, self._target)):
            self._move_in(old)

    def _seal(self, seal: Seal | None, old: list[str]) -> None:
        """Write the manifest beside the new files.

        Args:
            old: the files that stay.
        """
        there = None
        if NAME in old:
            with open(os.path.join(self._target, NAME), "rb") as f:
                there = f.read()
        text = seal(there, [name for name in old if name != NAME]) if seal is not None else None
        if text is not None:
            with open(os.path.join(self.partial, NAME), "wb") as f:
                f.write(text)
                sync(f)

    def _swapped_with(self, old: list[str]) -> bool:
        """Link the old files beside the new ones, and swap the directories in one step. Return False, and change nothing that
        is in place, if the file system cannot do that."""
        linked: list[str] = []
        try:
            for name in old:
                path = os.path.join(self.partial, name)
                if name == NAME and os.path.exists(path):
                    continue
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.link(os.path.join(self._target, name), path, follow_symlinks=False)
                linked.append(path)
            for found, _, _ in os.walk(self._target):
                inside = os.path.relpath(found, self._target)
                if not is_partial(inside.partition("/")[0]):
                    path = os.path.join(self.partial, inside)
                    os.makedirs(path, exist_ok=True)
                    os.chmod(path, stat.S_IMODE(os.stat(found).st_mode))
            if not swap(self.partial, self._target):
                raise OSError("no swap")
        except OSError:
            # some file systems have no links, and files of other users cannot be linked
            for path in linked:
                os.remove(path)
            return False
        # what others put into the old directory meanwhile, or are still writing in it
        for name in _names(self.partial):
            path = os.path.join(self._target, name)
            if not os.path.lexists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.rename(os.path.join(self.partial, name), path)
        return True

    def _move_new(self, seal: Seal | None) -> None:
        os.makedirs(os.path.dirname(self._target), exist_ok=True)
        try:
            move_new(self.partial, self._target)
        except OSError:
            # a directory that was made meanwhile is used if it is empty, may be replaced, or may be added to
            if not os.path.isdir(self._target):
                raise
            with _alone(self._target, self._shown):
                self._put(seal)

    def _move_in(self, old: list[str]) -> None:
        """Move the files in one by one, then remove the old ones, unless the new ones are added to them: for a moment a reader
        sees some of both, but never an empty directory."""
        new = sorted(_names(self.partial), key=lambda name: (name == NAME, name))
        done: list[str] = []
        try:
            for name in new:
                path = os.path.join(self._target, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if self._append and name != NAME:
                    move_new(os.path.join(self.partial, name), path)
                    done.append(path)
                else:
                    os.replace(os.path.join(self.partial, name), path)
        except Exception:
            for path in done:
                os.remove(path)
            raise
        if self._append:
            return
        for name in sorted(set(old) - set(new)):
            os.remove(os.path.join(self._target, name))
        for found, _, _ in sorted(os.walk(self._target), reverse=True):
            inside = os.path.relpath(found, self._target)
            if inside != "." and not is_partial(inside.partition("/")[0]):
                with contextlib.suppress(OSError):
                    # those that have files in them stay
                    os.rmdir(found)

    def abort(self) -> None:
        for stream in self._streams.values():
            with contextlib.suppress(OSError, ValueError):
                stream.close()
        self._streams, self._made = {}, {}
        shutil.rmtree(self.partial, ignore_errors=True)
        leftovers.forget(self.partial)


def _names(folder: str) -> list[str]:
    """Return the paths in a directory of all files beneath it. A link to a directory counts as a file."""
    found = []
    for above, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(above, name))]
        found += [os.path.relpath(os.path.join(above, name), folder) for name in (*files, *links)]
    return found


@contextlib.contextmanager
def _alone(folder: str, shown: str) -> Iterator[None]:
    """Keep other jobs from putting files into a directory within this context; do nothing if there is no such directory.

    Raises:
        WriteError: another job has not ended doing so in time.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        fd = _opened(folder)
        if fd is None:
            yield
            return
        try:
            if _is_locked(fd):
                # the other job may have swapped the directory while this one waited
                if _is_at(fd, folder):
                    yield
                    return
            elif time.monotonic() >= deadline:
                raise WriteError(
                    f"output: another job has been putting its files into {shown} for {_PATIENCE:.0f} s, so none were put there"
                )
        finally:
            os.close(fd)
        time.sleep(_TICK)


def _opened(folder: str) -> int | None:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _is_at(fd: int, folder: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(folder))
    except FileNotFoundError:
        return False


def _is_locked(fd: int) -> bool:
    """Lock an open directory, and say whether that was possible now. Where the file system has no locks, it counts as locked."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _is_mounted(path: str) -> bool:
    if os.path.ismount(path):
        return True
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
            return any(line.split()[4].replace("\\040", " ") == path for line in f)
    except OSError:
        return False


def _is_around(path: str) -> bool:
    """Whether the path is, or holds, this process's working directory: a swap would take that directory away from the user's
    shell."""
    return is_within(os.path.realpath(os.getcwd()), path)
