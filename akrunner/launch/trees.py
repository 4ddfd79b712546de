"""Directories into which files from outside are written, and directories from which files are taken.

::

    archive, download, bucket, user directory --names checked--> Tree: writes through no link --> check_links: none leads out

Standard library only: Flink's agents use it.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from akrunner.checks import is_within, kind_in_words
from akrunner.errors import AkrunnerError, UserFilesError
from akrunner.foreign import ours, redacted, secrets

CHUNK = 1 << 20
_LONGEST_NAME = 255
_LONGEST_PATH = 2000
_DEEPEST = 100
_MOST = 1_000_000
#: files below these are regular by their mode, but have no end, or other contents at each reading
_NO_DISK = ("/proc/", "/sys/")


@dataclass(frozen=True)
class Blame:
    """What an error names as its cause, if something is wrong with a file from outside.

    Attributes:
        parameter: the parameter that brought the file, such as `user_files`.
        kind: the type of the exception.
        place: the directory, in words, outside of which nothing may lie.
        given: what the user wrote, for errors that say what to write instead; "": it takes no `#max=`.
    """

    parameter: str
    kind: type[AkrunnerError] = UserFilesError
    place: str = "its directory"
    given: str = ""

    def error(self, text: str) -> AkrunnerError:
        return self.kind(redacted(f"{self.parameter}: {text}", secrets(self.given)))

    def ours(self, doing: str, at: str | None = None) -> contextlib.AbstractContextManager[None]:
        """Return a context manager as `akrunner.foreign.ours` does, for this parameter and kind of exception."""
        return ours(self.kind, f"{self.parameter}: {doing}", at)


def checked(name: str, outside: str = "its directory") -> str:
    """Check a relative path from outside, and return it without "." and empty components, joined by "/"; "" for the directory
    itself.

    Args:
        outside: the directory, in words, outside of which it must not lie.
    Raises:
        ValueError: why the path is refused, as "is ..." or "would ...".
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    windows = name.replace("\\", "/")
    if windows.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in windows.split("/"):
        raise ValueError(f"would lie outside {outside}")
    if "\0" in name or "\\" in name:
        raise ValueError("has a NUL or a backslash in it")
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts) or len(os.fsencode(name)) > _LONGEST_PATH:
        raise ValueError("is too long")
    if len(parts) > _DEEPEST:
        raise ValueError(f"is more than {_DEEPEST} directories deep")
    return "/".join(parts)


def component(name: str) -> str:
    """Check the name of a file from outside, and return it.

    Raises:
        ValueError: it is not one printable path component, or `checked` refuses it.
    """
    if "/" in name or not name or checked(name) != name:
        raise ValueError("is not the name of a file")
    if not name.isprintable():
        raise ValueError("has signs in it that cannot be shown")
    return name


def opened(path: str, blame: Blame) -> BinaryIO:
    """Open a file that lies on a disk, to read it.

    Raises:
        `blame.kind`: it is a pipe, a device or a directory, is below /proc or /sys, or cannot be read.
    """
    with blame.ours(f"cannot read {path}"):
        # with O_NONBLOCK, opening a pipe that has no writer does not block
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            check_kind(path, os.fstat(descriptor).st_mode, blame)
            file = open(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise
    return file


def check_kind(path: str, mode: int, blame: Blame) -> None:
    """Raises: `blame.kind`: it is no file that lies on a disk."""
    if not stat.S_ISREG(mode):
        raise blame.error(f"{path} is {kind_in_words(mode)}, not a file")
    if os.path.realpath(path).startswith(_NO_DISK):
        raise blame.error(f"{path} is made up by the system whenever it is read; copy it to a file first")


def pieces_of(path: str, blame: Blame) -> Iterator[bytes]:
    """Yield the bytes of a file that lies on a disk. Raises: as `opened`."""
    with opened(path, blame) as file:
        while True:
            with blame.ours(f"cannot read {path}"):
                piece = file.read(CHUNK)
            if not piece:
                return
            yield piece


def walk(directory: str, blame: Blame, skip: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, path within the directory) of every file in a directory, in order. Links are followed as long as they stay
    in the directory.

    Args:
        skip: the name of directories to leave out.
    Raises:
        `blame.kind`: a link leads outside, to nothing or round in a circle; there is a pipe or a device; there are more than a
            million files; or something cannot be read.
    """
    root = os.path.realpath(directory)
    pending: list[tuple[str, str, tuple[str, ...]]] = [(directory, "", (root,))]
    found = 0
    while pending:
        folder, inside, above = pending.pop(0)
        with blame.ours(f"cannot read {folder}"):
            names = sorted(os.listdir(folder))
        found += len(names)
        if found > _MOST:
            raise blame.error(f"{directory} holds more than {_MOST:,} files; pack them")
        for name in names:
            path, place = os.path.join(folder, name), posixpath.join(inside, name)
            real = os.path.realpath(path)
            if os.path.islink(path) and not is_within(real, root):
                raise blame.error(
                    f"{path} is a link to {real}, outside {directory}; name what it leads to as well, or remove it"
                )
            with blame.ours(f"cannot read {path}"):
                mode = os.stat(path).st_mode
            if not stat.S_ISDIR(mode):
                check_kind(path, mode, blame)
                yield path, place
            elif real in above or len(above) > _DEEPEST:
                raise blame.error(f"{path} leads to a directory that it lies in, or lies too deep")
            elif name != skip:
                pending.append((path, place, (*above, real)))


class Tree:
    """A directory into which archives and files are written, one after another. It is made if it does not exist.

    A parent directory that is a link is refused, and what already lies at a path is unlinked, never opened: nothing is written
    through a link, wherever it leads. Files get the mode 0600, or 0700 if they are executable; directories get 0700.
    """

    def __init__(self, root: str, blame: Blame, checking: bool = False) -> None:
        """Args: checking: give files their sizes, but do not write their bytes."""
        self.blame = blame
        self._root = root
        self._checking = checking
        self._real: set[str] = {""}
        self._links: list[tuple[str, str]] = []
        with blame.ours(f"cannot make {root}", root):
            os.makedirs(root, mode=0o700, exist_ok=True)

    def directory(self, place: str) -> str:
        """Make a directory, and those it lies in. Args: place: its path in the tree, as from `checked`. Returns: its path."""
        path, at = self._root, ""
        for part in place.split("/"):
            path, at = os.path.join(path, part), posixpath.join(at, part)
            if at in self._real:
                continue
            with self._writing(place):
                try:
                    os.mkdir(path, 0o700)
                except FileExistsError:
                    mode = os.lstat(path).st_mode
                    if not stat.S_ISDIR(mode):
                        what = "a file" if stat.S_ISREG(mode) else kind_in_words(mode)
                        raise self.blame.error(f"files should lie in {at!r}, but it is {what} and not a directory") from None
            self._real.add(at)
        return path

    def file(self, place: str, pieces: Iterable[bytes], executable: bool = False, mtime: float | None = None) -> None:
        """Write a file.

        Args:
            place: its path in the tree, as from `checked`.
            pieces: its bytes; iterating must raise only exceptions of akrunner.
            mtime: seconds since the epoch; None: now.
        """
        path = self._clear(place)
        with self._writing(place):
            mode = 0o700 if executable else 0o600
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode), "wb") as out:
                size = 0
                for piece in pieces:
                    size += len(piece)
                    if not self._checking:
                        out.write(piece)
                out.truncate(size)
            if mtime is not None and 0 <= mtime < 1 << 33:
                os.utime(path, (int(mtime), int(mtime)))

    def link(self, place: str, target: str, said: str) -> None:
        """Make a link; `check_links` checks later where it leads. Args: said: what errors call it."""
        path = self._clear(place)
        with self._writing(place):
            os.symlink(target, path)
        self._links.append((place, said))

    def laid(self, place: str) -> str:
        """Return the path of a file that was written before.

        Raises:
            `blame.kind`: there is no such file, or it, or a directory above it, is a link.
        """
        path = self._root
        for part in place.split("/"):
            path = os.path.join(path, part)
            if os.path.islink(path):
                raise self.blame.error(f"{place!r} leads through a link")
        if not os.path.isfile(path):
            raise self.blame.error(f"there is no {place!r} to link to")
        return path

    def check_links(
        self,
        may_lead_out: Callable[[str], bool] = lambda place: False,
        left_out: Callable[[AkrunnerError], None] | None = None,
    ) -> None:
        """Check where all links lead, now that everything is there.

        Args:
            may_lead_out: whether the link at a path may lead outside the directory.
            left_out: remove each other link that does, and call this with the reason. None: it is an error.
        Raises:
            `blame.kind`: another link leads outside the directory.
        """
        root = os.path.realpath(self._root)
        for place, said in self._links:
            path = os.path.join(self._root, place)
            with self.blame.ours(f"{said} cannot be followed"):
                target = os.readlink(path) if os.path.islink(path) else ""
                inside = not target.startswith("/") and is_within(os.path.realpath(path), root)
            if not inside and not may_lead_out(place):
                error = self.blame.error(f"{said} leads to {target!r}, which would lie outside {self.blame.place}")
                if left_out is None:
                    raise error
                with self.blame.ours(f"{said} cannot be removed"):
                    os.unlink(path)
                left_out(error)

    def _clear(self, place: str) -> str:
        """Return the path of a file or link that is to be made; its directory is made, and what lies at the path is removed."""
        folder, _, name = place.rpartition("/")
        path = os.path.join(self.directory(folder) if folder else self._root, name)
        with self._writing(place):
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    raise self.blame.error(f"{place!r} is a file here and a directory elsewhere; rename one")
                os.unlink(path)
        return path

    def _writing(self, place: str) -> contextlib.AbstractContextManager[None]:
        return self.blame.ours(f"cannot write {place!r} in {self._root}", self._root)
