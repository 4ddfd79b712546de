"""Destinations on this machine's file systems: until an output is complete, it lies beside its final path under a hidden
name."""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import stat
from typing import IO

from akrunner import leftovers
from akrunner.checks import holds_no_files, is_within
from akrunner.errors import SinkError, WriteError
from akrunner.io.rename import move_new, swap, sync
from akrunner.io.unfinished import came_meanwhile, check_ours, exists_already, is_directory, is_file, is_partial, partial_of

#: prefixes of paths that name an open file descriptor
_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def is_special(path: str) -> bool:
    """Whether a path names a pipe, a device or an open descriptor: what is written there cannot be taken back."""
    if path in _STANDARD or path.startswith(_DESCRIPTORS):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


class Straight:
    """A pipe, a terminal, /dev/null or /dev/stdout: what is written is gone at once, and cannot be taken back."""

    at: str | None = None

    def __init__(self, path: str, shown: str) -> None:
        self._path = path
        mode = os.stat(path).st_mode
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
            raise SinkError(f"output: {shown} is a {'socket' if stat.S_ISSOCK(mode) else 'disk'}; name a file")
        self._stream: IO[bytes] | None = None

    def open(self) -> IO[bytes]:
        if self._stream is not None:
            raise WriteError(
                f"output: what went to {self._path} cannot be taken back, so the job was not started again (max_restarts=)"
            )
        if self._path in _STANDARD or self._path.startswith(_DESCRIPTORS):
            number = _STANDARD.get(self._path)
            fd = os.dup(int(posixpath.basename(self._path)) if number is None else number)
        else:
            # fail if the pipe has no reader, instead of waiting for one for ever
            fd = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.set_blocking(fd, True)
        self._stream = open(fd, "wb")
        return self._stream

    def commit(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def abort(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.close()


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
    directory, or if nothing may be written to its parent directory."""

    def __init__(self, path: str, shown: str, overwrite: bool) -> None:
        self._shown, self._overwrite = shown, overwrite
        self._target = os.path.realpath(path)
        if os.path.exists(self._target) and not os.path.isdir(self._target):
            raise is_file(shown)
        if holds_no_files(self._target):
            raise SinkError(f"output: {self._target} is the system's own, and keeps no files; name another directory")
        self._there = os.path.isdir(self._target)
        held = os.listdir(self._target) if self._there else []
        if held and not overwrite:
            raise exists_already(shown)
        check_ours(shown, [os.path.join(found, name) for found, _, names in os.walk(self._target) for name in names])
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
        self._streams: list[IO[bytes]] = []

    def make(self) -> None:
        leftovers.register(self.partial)
        os.makedirs(self.partial, exist_ok=True)

    def open(self, name: str) -> IO[bytes]:
        stream = open(os.path.join(self.partial, name), "wb")
        self._streams.append(stream)
        return stream

    def empty(self) -> bool:
        return not os.listdir(self.partial)

    def commit(self) -> None:
        for stream in self._streams:
            sync(stream)
            stream.close()
        if self._inside or (self._there and not self._swapped()):
            self._move_in()
        elif not self._there:
            self._move_new()
        with contextlib.suppress(OSError):
            shutil.rmtree(self.partial)
        leftovers.forget(self.partial)

    def _swapped(self) -> bool:
        if not os.path.isdir(self._target):
            return False
        if not self._overwrite and os.listdir(self._target):
            raise came_meanwhile(self._shown)
        return swap(self.partial, self._target)

    def _move_new(self) -> None:
        os.makedirs(os.path.dirname(self._target), exist_ok=True)
        try:
            move_new(self.partial, self._target)
        except OSError:
            # a directory that was made meanwhile is used if it is empty or may be replaced
            if not os.path.isdir(self._target):
                raise
            if not self._swapped():
                self._move_in()

    def _move_in(self) -> None:
        """Move the files in one by one, then remove the old ones: for a moment a reader sees some of both, but never an empty
        directory."""
        os.makedirs(self._target, exist_ok=True)
        # another job may be writing here, too; what a dead job left is removed by its guard, or at the next start
        old = [name for name in os.listdir(self._target) if not is_partial(name)]
        if old and not self._overwrite:
            raise came_meanwhile(self._shown)
        new = os.listdir(self.partial)
        for name in new:
            os.replace(os.path.join(self.partial, name), os.path.join(self._target, name))
        for name in set(old) - set(new):
            path = os.path.join(self._target, name)
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)

    def abort(self) -> None:
        for stream in self._streams:
            with contextlib.suppress(OSError, ValueError):
                stream.close()
        self._streams = []
        shutil.rmtree(self.partial, ignore_errors=True)
        leftovers.forget(self.partial)


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
