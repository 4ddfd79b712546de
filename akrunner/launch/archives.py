"""Unpacks every archive that akrunner handles: user files, models, environments, and the archives that go to and from Flink's
machines.

::

    .zip      zipfile    --+
    .tar.*    tarfile    --+-- Member, bytes --> Budget --> Tree (akrunner.launch.trees) --> check_links
    a stream  tarfile    --+

Bytes are counted while they are read, in steps of 1 MiB, whatever the headers say. Standard library only: Flink's agents use
it.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import os
import posixpath
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO

from akrunner.checks import kind_in_words
from akrunner.errors import AkrunnerError
from akrunner.launch import limits
from akrunner.launch.trees import CHUNK, Blame, Tree, checked, opened

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_COMPRESSED: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\0", lzma.open),
)
#: bytes; a longer header of a tar is not read into memory
_LONGEST_READ = 4 << 20
#: bytes that a zip's list of members may take for each member that is allowed
_LISTED = 128
_LONGEST_LINK = 4096
#: a member of a tar that has this word, which is a reason, is in place of a file that its sender could not read
UNREAD = "AKRUNNER.unread"
#: bytes of a zip's last record, of the comment behind it, and of the two records before it that a zip with large numbers has
_END_RECORD, _LONGEST_COMMENT, _LARGE_RECORDS = 22, 65535, 76

Archive = str | BinaryIO


@dataclass(frozen=True)
class Member:
    """One member of an archive.

    Attributes:
        name: the path within the archive, as `trees.checked` returns it.
        kind: "file", "directory", "link" or "hard link".
        executable: whether it may be run as a program.
        mtime: when it was changed, in seconds since the epoch; None: not known.
        target: where a link leads; for a hard link, the member it is a copy of.
    """

    name: str
    kind: str
    executable: bool = False
    mtime: float | None = None
    target: str = ""


#: a member, and the function that opens it
_Found = tuple[Member, Callable[[], IO[bytes]]]
#: is told why a member is left out
LeftOut = Callable[[AkrunnerError], None]


def is_archive(path: str) -> bool:
    """Whether a path names an archive, judged by its ending alone."""
    return path.lower().endswith((".zip", *_TARS))


def unpack(
    archive: Archive,
    directory: str,
    blame: Blame,
    most: int = 0,
    shown: str = "",
    may_lead_out: Callable[[str], bool] = lambda place: False,
    left_out: LeftOut | None = None,
) -> None:
    """Unpack an archive into a directory of its own.

    Args:
        archive: its path (a file whose name does not end as a tar's does is a zip), or a stream of a plain tar.
        most: the number of bytes it may unpack to; 0: the limit that `akrunner.launch.limits` sets for all archives.
        shown: what errors call the archive; "": its path.
        may_lead_out: whether the link at a path may lead outside the directory; nothing is written through such a link all the
            same.
        left_out: of a tar: leave out members that would lie or lead outside the directory, that are no files, or that its sender
            could not read, and call this with the reason, for each. None: they are errors.
    Raises:
        `blame.kind`: the archive is damaged or too large, or something in it would lie or lead outside the directory. The
            members before the bad one stay unpacked.
    """
    tree = Tree(directory, blame)
    try:
        extract(archive, tree, most=most, shown=shown, left_out=left_out)
    except BaseException:
        if left_out is not None:
            # what came stays
            tree.check_links(may_lead_out, left_out)
        raise
    tree.check_links(may_lead_out, left_out)


def extract(
    archive: Archive, tree: Tree, place: str = "", most: int = 0, shown: str = "", left_out: LeftOut | None = None
) -> dict[str, str]:
    """Unpack an archive into a tree. The caller, who made the tree, must check its links when everything is there.

    Args:
        place: the directory in the tree to unpack into, "" for the tree itself.
        archive, most, shown, left_out: as `unpack`.
    Returns:
        The path of each file in the tree -> the name of its member in the archive.
    Raises:
        `blame.kind`: as `unpack`.
    """
    blame = tree.blame
    shown = shown or (archive if isinstance(archive, str) else "what came")
    budget = _budget(archive, shown, blame, most)
    files = {}
    for member, source in _members(archive, shown, blame, budget, left_out):
        at = posixpath.join(place, member.name) if member.name else place
        if member.kind == "directory":
            if at:
                tree.directory(at)
        elif member.kind == "link":
            tree.link(at, member.target, f"{shown} holds {member.name!r}, a link that")
        else:
            if member.kind == "hard link":
                # a hard link is unpacked as a copy
                linked = _linked(tree, place, member, shown, left_out)
                if linked is None:
                    continue
                source = functools.partial(opened, linked, blame)
            tree.file(at, _pieces(source, shown, blame, budget), member.executable, member.mtime)
            files[at] = member.name
    return files


def _linked(tree: Tree, place: str, member: Member, shown: str, left_out: LeftOut | None) -> str | None:
    """Return the path of the file that a hard link is a copy of; None if it was left out."""
    try:
        return tree.laid(posixpath.join(place, _name(member.target, shown, tree.blame)))
    except tree.blame.kind as e:
        if left_out is None:
            raise
        left_out(e)
        return None


def read(archive: str, name: str, blame: Blame, longest: int, most: int = 0) -> bytes:
    """Read one file of an archive.

    Raises:
        `blame.kind`: the archive has no such file, the file is longer than `longest` bytes, or the archive is damaged.
    """
    found: bytes | None = None
    budget = _budget(archive, archive, blame, most)
    for member, source in _members(archive, archive, blame, budget):
        if member.name == name and member.kind == "file":
            data = bytearray()
            for piece in _pieces(source, archive, blame, budget):
                data += piece
                if len(data) > longest:
                    raise blame.error(f"{archive} holds {name!r}, which is longer than {limits.shown(longest)}")
            found = bytes(data)
    if found is None:
        raise blame.error(f"{archive} has no {name}")
    return found


def _budget(archive: Archive, shown: str, blame: Blame, most: int) -> limits.Budget:
    packed = None
    if isinstance(archive, str):
        with blame.ours(f"cannot read {shown}"):
            packed = os.path.getsize(archive)
    return limits.unpacking(shown, blame, packed, most)


def _members(
    archive: Archive, shown: str, blame: Blame, budget: limits.Budget, left_out: LeftOut | None = None
) -> Iterator[_Found]:
    """Yield every member, in order; the caller must read each member before it asks for the next one."""
    with blame.ours(f"{shown} is not an archive that can be read"):
        with contextlib.ExitStack() as stack:
            if not isinstance(archive, str):
                yield from _in_tar(archive, shown, blame, budget, left_out)
                return
            file = stack.enter_context(opened(archive, blame))
            if not archive.lower().endswith(_TARS):
                yield from _in_zip(file, shown, blame, budget)
                return
            magic = file.read(6)
            file.seek(0)
            opener = next((opener for sign, opener in _COMPRESSED if magic.startswith(sign)), None)
            plain: Any = stack.enter_context(opener(file)) if opener is not None else file
            yield from _in_tar(plain, shown, blame, budget, left_out)
            # only at its very end does a compressed tar show whether it is whole
            while piece := plain.read(CHUNK):
                budget.take(len(piece))


def _in_zip(file: BinaryIO, shown: str, blame: Blame, budget: limits.Budget) -> Iterator[_Found]:
    seen: set[str] = set()
    # check the announced number first: a long list of members takes long to read
    budget.announced(_listed(file))
    with zipfile.ZipFile(_Sparing(file, budget.members * _LISTED)) as archive:
        budget.announced(len(archive.infolist()))
        announced = sum(info.file_size for info in archive.infolist())
        if announced > budget.most:
            budget.take(announced)
        for info in archive.infolist():
            budget.member()
            mode = info.external_attr >> 16
            name = _name(info.orig_filename if "\0" in info.orig_filename else info.filename, shown, blame)
            if info.flag_bits & 1:
                raise blame.error(f"{shown} is encrypted; unpack it, and give what was in it")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                # Python's zipfile would decompress other kinds in one piece, however large
                raise blame.error(f"{shown} holds {name!r} in a compression other than zip's usual one; pack it again")
            if info.is_dir():
                yield Member(name, "directory"), _nothing
                continue
            if name in seen or not name:
                raise blame.error(f"{shown} holds {info.filename!r} twice" if name else f"{shown} holds a file without a name")
            seen.add(name)
            if stat.S_ISLNK(mode):
                with archive.open(info) as link:
                    yield Member(name, "link", target=link.read(_LONGEST_LINK).decode()), _nothing
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise blame.error(
                    f"{shown} holds {name!r}, which is {kind_in_words(mode)}: a device or a pipe does not come out"
                )
            else:
                yield Member(name, "file", bool(mode & 0o111)), functools.partial(archive.open, info)


def _listed(file: BinaryIO) -> int:
    """Return how many members a zip says it has, in its last record or in the larger record before it; 0 if it says nothing."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_RECORD - _LONGEST_COMMENT - _LARGE_RECORDS))
    end = file.read()
    file.seek(0)
    at = end.rfind(b"PK\5\6")
    members = int.from_bytes(end[at + 10 : at + 12], "little") if at >= 0 else 0
    if members == 0xFFFF and end[max(0, at - 20) :].startswith(b"PK\6\7"):
        large = end.rfind(b"PK\6\6", 0, at - 20)
        members = int.from_bytes(end[large + 32 : large + 40], "little") if large >= 0 else members
    return members


def _in_tar(file: IO[bytes], shown: str, blame: Blame, budget: limits.Budget, left_out: LeftOut | None) -> Iterator[_Found]:
    forward: Any = _Forward(file)
    archive: Any
    with tarfile.open(fileobj=forward, mode="r:") as archive:
        while (info := archive.next()) is not None:
            archive.members.clear()  # otherwise tarfile keeps every member in memory
            budget.member()
            try:
                member = _of_tar(info, shown, blame)
            except blame.kind as e:
                if left_out is None:
                    raise
                left_out(e)
                continue
            yield member, functools.partial(_tar_file, archive, info) if member.kind == "file" else _nothing
    if forward.last != bytes(tarfile.BLOCKSIZE):
        # tarfile takes a damaged header, or the end of the file, for the end of the archive
        raise blame.error(f"{shown} is not an archive that can be read to its end: it is cut short, or damaged")


def _of_tar(info: tarfile.TarInfo, shown: str, blame: Blame) -> Member:
    """Return a member of a tar. Raises: `blame.kind`: it cannot be unpacked."""
    name, executable = _name(info.name, shown, blame), bool(info.mode & 0o111)
    if UNREAD in info.pax_headers:
        raise blame.error(f"{shown} lacks {name!r}, which cannot be read there: {info.pax_headers[UNREAD]}")
    if info.isdir():
        return Member(name, "directory")
    if not name:
        raise blame.error(f"{shown} holds a file without a name")
    if info.issym():
        return Member(name, "link", target=info.linkname)
    if info.islnk():
        return Member(name, "hard link", executable, info.mtime, info.linkname)
    if not info.isreg():
        raise blame.error(f"{shown} holds {name!r}, which is a device or a pipe")
    return Member(name, "file", executable, info.mtime)


def _tar_file(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(info)
    assert file is not None
    return file


def _pieces(source: Callable[[], IO[bytes]], shown: str, blame: Blame, budget: limits.Budget) -> Iterator[bytes]:
    with blame.ours(f"{shown} is not an archive that can be read"), source() as file:
        while piece := file.read(CHUNK):
            budget.take(len(piece))
            yield piece


def _name(name: str, shown: str, blame: Blame) -> str:
    try:
        return checked(name, blame.place)
    except ValueError as e:
        shortened = name if len(name) <= 200 else name[:200] + "..."
        raise blame.error(f"{shown} holds {shortened!r}, which {e}") from None


def _nothing() -> IO[bytes]:
    return io.BytesIO()


class _Sparing(io.BufferedReader):
    """A file for `zipfile` that refuses to read more than `longest` bytes (at least 1 MiB) at once, whatever the zip
    announces.
    """

    def __init__(self, file: BinaryIO, longest: int) -> None:
        super().__init__(io.FileIO(file.fileno(), closefd=False))
        self._longest = max(longest, 1 << 20)

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > self._longest:
            raise zipfile.BadZipFile("its list of members is too long (AKRUNNER_MAX_MEMBERS)")
        return super().read(self._longest if size is None or size < 0 else size)


class _Forward:
    """The stream that tarfile reads from: it never goes back, and never reads much at a time.

    Attributes:
        last: the bytes read last.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._at = 0
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_READ:
            raise tarfile.ReadError("a header is too long")
        self.last = self._file.read(size)
        self._at += len(self.last)
        return self.last

    def tell(self) -> int:
        return self._at

    def seek(self, at: int, whence: Any = 0) -> int:
        if at < self._at:
            raise tarfile.ReadError("it leads backwards")
        while self._at < at and self.read(min(CHUNK, at - self._at)):
            pass
        return self._at
