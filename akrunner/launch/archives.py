"""Archives, unpacked: the one place that does it, for user files, models, environments and what goes to and from Flink's machines.

::

    .zip      zipfile    --+
    .tar.*    tarfile    --+-- Member, bytes --> Budget --> Tree (akrunner.launch.trees) --> check_links
    a stream  tarfile    --+

Bytes are counted while they are read, in steps of 1 MiB, whatever headers say. Standard library only: Flink's agents use it.
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
from akrunner.launch import limits
from akrunner.launch.trees import CHUNK, Blame, Tree, checked, opened

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_COMPRESSED: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\0", lzma.open),
)
#: a header of a tar that is longer is not read into memory
_LONGEST_READ = 4 << 20
#: of a zip's list of members, for each one that is allowed
_LISTED = 128
_LONGEST_LINK = 4096
#: bytes of a zip's last record, of the comment behind it, and of the two records before it where numbers are large
_END_RECORD, _LONGEST_COMMENT, _LARGE_RECORDS = 22, 65535, 76

Archive = str | BinaryIO


@dataclass(frozen=True)
class Member:
    """Attributes: name: as `trees.checked` gives it; kind: "file", "directory", "link" or "hard link"; target: of a link."""

    name: str
    kind: str
    executable: bool = False
    mtime: float | None = None
    target: str = ""


#: a member, and what opens it
_Found = tuple[Member, Callable[[], IO[bytes]]]


def is_archive(path: str) -> bool:
    """By its name."""
    return path.lower().endswith((".zip", *_TARS))


def unpack(
    archive: Archive,
    directory: str,
    blame: Blame,
    most: int = 0,
    shown: str = "",
    may_lead_out: Callable[[str], bool] = lambda place: False,
) -> None:
    """Unpack into a directory of its own.

    Args:
        archive: its path (what is not called as a tar is a zip), or a stream of a plain tar.
        most: bytes it may unpack to; 0: what `akrunner.launch.limits` has for all.
        shown: what it is called in errors, "" for its path.
        may_lead_out: whether the link at a place may lead outside; nothing is written through it all the same.
    Raises: `blame.kind`: it is damaged, too large, or something in it would lie or lead outside. What came before that is there.
    """
    tree = Tree(directory, blame)
    extract(archive, tree, most=most, shown=shown)
    tree.check_links(may_lead_out)


def extract(archive: Archive, tree: Tree, place: str = "", most: int = 0, shown: str = "") -> dict[str, str]:
    """Unpack into a tree. Whoever made the tree looks at its links when all is there.

    Args: place: in the tree, "" for itself; the others and raises: as `unpack`.
    Returns: where files lie in the tree -> the members they are.
    """
    blame = tree.blame
    shown = shown or (archive if isinstance(archive, str) else "what came")
    budget = _budget(archive, shown, blame, most)
    files = {}
    for member, source in _members(archive, shown, blame, budget):
        at = posixpath.join(place, member.name) if member.name else place
        if member.kind == "directory":
            if at:
                tree.directory(at)
        elif member.kind == "link":
            tree.link(at, member.target, f"{shown} holds {member.name!r}, a link that")
        else:
            if member.kind == "hard link":
                # comes out as a copy
                linked = tree.laid(posixpath.join(place, _name(member.target, shown, blame)))
                source = functools.partial(opened, linked, blame)
            tree.file(at, _pieces(source, shown, blame, budget), member.executable, member.mtime)
            files[at] = member.name
    return files


def read(archive: str, name: str, blame: Blame, longest: int, most: int = 0) -> bytes:
    """One file of an archive. Raises: `blame.kind`: there is none, it is longer than `longest` bytes, or the archive is damaged."""
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


def _members(archive: Archive, shown: str, blame: Blame, budget: limits.Budget) -> Iterator[_Found]:
    """Every member, in order; each is to be read before the next one is asked for."""
    with blame.ours(f"{shown} is not an archive that can be read"):
        with contextlib.ExitStack() as stack:
            if not isinstance(archive, str):
                yield from _in_tar(archive, shown, blame, budget)
                return
            file = stack.enter_context(opened(archive, blame))
            if not archive.lower().endswith(_TARS):
                yield from _in_zip(file, shown, blame, budget)
                return
            magic = file.read(6)
            file.seek(0)
            opener = next((opener for sign, opener in _COMPRESSED if magic.startswith(sign)), None)
            plain: Any = stack.enter_context(opener(file)) if opener is not None else file
            yield from _in_tar(plain, shown, blame, budget)
            # whether it is whole is known, for a compressed one, at its very end
            while piece := plain.read(CHUNK):
                budget.take(len(piece))


def _in_zip(file: BinaryIO, shown: str, blame: Blame, budget: limits.Budget) -> Iterator[_Found]:
    seen: set[str] = set()
    # a list of members takes long to read
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
                # Python's zipfile would decompress the others in one piece, however large
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
    """How many members a zip says it has, 0 when it says nothing: in its last record, or the larger one that stands before that."""
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


def _in_tar(file: IO[bytes], shown: str, blame: Blame, budget: limits.Budget) -> Iterator[_Found]:
    forward: Any = _Forward(file)
    archive: Any
    with tarfile.open(fileobj=forward, mode="r:") as archive:
        while (info := archive.next()) is not None:
            archive.members.clear()  # it would keep all of them
            budget.member()
            name, executable = _name(info.name, shown, blame), bool(info.mode & 0o111)
            if info.isdir():
                yield Member(name, "directory"), _nothing
            elif not name:
                raise blame.error(f"{shown} holds a file without a name")
            elif info.issym():
                yield Member(name, "link", target=info.linkname), _nothing
            elif info.islnk():
                yield Member(name, "hard link", executable, info.mtime, info.linkname), _nothing
            elif info.isreg():
                yield Member(name, "file", executable, info.mtime), functools.partial(_tar_file, archive, info)
            else:
                raise blame.error(f"{shown} holds {name!r}, which is a device or a pipe")
    if forward.last != bytes(tarfile.BLOCKSIZE):
        # tarfile takes a damaged header, and the end of the file, for the end of the archive
        raise blame.error(f"{shown} is not an archive that can be read to its end: it is cut short, or damaged")


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
    """A file that does not read what is announced into memory without bounds."""

    def __init__(self, file: BinaryIO, longest: int) -> None:
        super().__init__(io.FileIO(file.fileno(), closefd=False))
        self._longest = max(longest, 1 << 20)

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > self._longest:
            raise zipfile.BadZipFile("its list of members is too long (AKRUNNER_MAX_MEMBERS)")
        return super().read(self._longest if size is None or size < 0 else size)


class _Forward:
    """What tarfile reads from: never back, never much at a time. Attributes: last: what it read last."""

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
