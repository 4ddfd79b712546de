"""Archives that want out, that never end, that lie: nothing is written outside, and the error says what is wrong."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import PythonEnvError, UserFilesError
from akrunner.launch import archives, limits
from akrunner.launch.environments import _leads_to_an_interpreter
from akrunner.launch.files import collect, lay_out
from akrunner.launch.trees import Blame, Tree, walk
from tests.conftest import no_file_longer_than

BLAME = Blame("user_files", UserFilesError, "the work dir", "a.zip")
LINK, HARD = 0o120777, "hard"

#: (name, content or target, mode)
Entry = tuple[str, bytes, Any]


def zipped(path: Path, *entries: Entry, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, method
            archive.writestr(info, data)
    return path


def tarred(path: Path, *entries: Entry) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as archive:
        for name, data, mode in entries:
            info = tarfile.TarInfo(name)
            if mode in (LINK, HARD):
                info.type, info.linkname = tarfile.SYMTYPE if mode == LINK else tarfile.LNKTYPE, data.decode()
                archive.addfile(info)
            else:
                info.size, info.mode = len(data), mode & 0o7777
                archive.addfile(info, io.BytesIO(data))
    return path


def packed(kind: str, path: Path, *entries: Entry) -> Path:
    return (zipped if kind == "zip" else tarred)(path.with_suffix("." + kind), *entries)


def outside(tmp_path: Path) -> list[str]:
    """What lies beside the work dir and is no archive."""
    return sorted(p.name for p in tmp_path.iterdir() if p.suffix not in (".zip", ".tar", ".tgz", ".py"))


def tried(tmp_path: Path, *files: Any) -> str:
    """What `collect`, and `lay_out` for its own sake, say to it. Nothing but the work dir may have been touched."""
    (tmp_path / "s.py").write_text("def main(task_config): pass\n")
    before = outside(tmp_path)
    with pytest.raises(UserFilesError) as e:
        collect(tmp_path / "s.py", list(files))
    work = tmp_path / "work"
    with pytest.raises(UserFilesError):
        tree = Tree(str(work), BLAME)
        for path in files:
            if archives.is_archive(str(path)):
                archives.extract(str(path), tree)
            else:
                for real, place in walk(str(path), BLAME):
                    tree.file(f"{os.path.basename(path)}/{place}", [Path(real).read_bytes()])
        tree.check_links()
    assert outside(tmp_path) == sorted({*before, "work"})
    return str(e.value)


@pytest.mark.parametrize("kind", ["zip", "tar", "tgz"])
def test_two_archives_whose_links_point_at_each_other(tmp_path: Path, kind: str) -> None:
    one = packed(kind, tmp_path / "1", ("a/x12/up", b"../x12", LINK), ("a/x12/b", b"", 0o100644))
    two = packed(kind, tmp_path / "2", ("out", b"a/x12/up/../x12/../../..", LINK), ("out/evil", b"x", 0o100644))
    assert "files should lie in 'out', but it is a link" in tried(tmp_path, one, two)
    three = packed(kind, tmp_path / "3", ("out", b"a/x12/up/../x12/../../..", LINK))
    assert "3" in tried(tmp_path, one, three) and "would lie outside the work dir" in tried(tmp_path, three, one)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_and_a_directory(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "pkg" / "out"
    folder.mkdir(parents=True)
    (folder / "evil").write_text("x")
    assert "it is a link" in tried(tmp_path, packed(kind, tmp_path / "1", ("pkg/out", b"../..", LINK)), tmp_path / "pkg")
    assert "it is a link" in tried(tmp_path, packed(kind, tmp_path / "2", ("pkg", b".", LINK)), tmp_path / "pkg")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([("l", b"..", LINK), ("l/evil", b"x", 0o644)], "it is a link"),
        ([("l", b"/etc", LINK), ("h", b"l/passwd", HARD)], "leads through a link"),
        ([("l", b"/etc/passwd", LINK), ("h", b"l", HARD)], "leads through a link"),
        ([("h", b"/etc/passwd", HARD)], "outside the work dir"),
        ([("h", b"nothing", HARD)], "there is no 'nothing'"),
        ([("d/x", b"1", 0o644), ("d", b"/tmp", LINK)], "a directory elsewhere"),
        ([("d", b"1", 0o644), ("d/x", b"1", 0o644)], "but it is a file"),
        ([("l", b"nowhere/../../..", LINK)], "outside the work dir"),
        ([("l", b"/proc/self/cwd", LINK)], "outside the work dir"),
        ([("x" * 256, b"", 0o644)], "is too long"),
        ([("/".join("d" * 150), b"", 0o644)], "directories deep"),
    ],
)
def test_tars_that_want_out(tmp_path: Path, entries: list[Entry], words: str) -> None:
    assert words in tried(tmp_path, tarred(tmp_path / "a.tgz", *entries))


def test_members_that_want_out_may_be_left_out(tmp_path: Path) -> None:
    """The files beside them come."""
    odd: list[Entry] = [
        ("l", b"/etc", LINK), ("h", b"l", HARD), ("g", b"nothing", HARD), ("..", b"x", 0o644), ("a\\b", b"x", 0o644), ("k", b"a", LINK),
    ]  # fmt: skip
    why: list[str] = []
    with open(tarred(tmp_path / "a.tar", ("a", b"1", 0o644), *odd, ("z", b"2", 0o644)), "rb") as stream:
        archives.unpack(stream, str(tmp_path / "out"), BLAME, left_out=lambda error: why.append(str(error)))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "k", "z"]
    for words in (
        "'l', a link that leads to '/etc'",
        "leads through a link",
        "there is no 'nothing'",
        "'..', which would",
        "a backslash",
    ):
        assert sum(words in one for one in why) == 1, words
    assert len(why) == 5 and outside(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["/a", "../a", "a/../../b", "..", "C:\\a", "c:a", "..\\a", "\\a", "a\\b", "x" * 300])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names(tmp_path: Path, kind: str, name: str) -> None:
    said = tried(tmp_path, packed(kind, tmp_path / "a", (name, b"x", 0o644)))
    assert said.startswith("user_files: ") and ("outside the work dir" in said or "backslash" in said or "too long" in said)


def test_a_nul_in_a_name(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", ("a.txt?.py", b"x", 0o644))
    path.write_bytes(path.read_bytes().replace(b"a.txt?.py", b"a.txt\0.py"))
    assert "NUL" in tried(tmp_path, path)


def test_what_a_zip_may_not_be(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        assert "'a' twice" in tried(tmp_path, zipped(tmp_path / "1.zip", ("a", b"1", 0o644), ("a", b"2", 0o644)))
    path = zipped(tmp_path / "2.zip", ("a", b"1", 0o644), method=zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    assert "encrypted" in tried(tmp_path, path)
    assert "pack it again" in tried(tmp_path, zipped(tmp_path / "3.zip", ("a", b"1", 0o644), method=zipfile.ZIP_BZIP2))
    assert "a device or a pipe" in tried(tmp_path, zipped(tmp_path / "4.zip", ("a", b"", stat.S_IFIFO | 0o644)))
    path = zipped(tmp_path / "5.zip", ("a", b"content", 0o644), method=zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"content", b"CONTENT"))
    assert "not an archive that can be read: Bad CRC-32" in tried(tmp_path, path)


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tgz"])
def test_cut_short(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    pack = zipped if name == "a.zip" else tarred
    whole = pack(path, ("a", os.urandom(2000), 0o644), ("b", b"2" * 512, 0o644)).read_bytes()
    step = 512 if name == "a.tar" else len(whole) // 7
    last = whole.rindex(b"2" * 512) + 512 if name == "a.tar" else len(whole)
    for size in range(0, last, step):
        path.write_bytes(whole[:size])
        assert "not an archive that can be read" in tried(tmp_path, path)


def test_a_damaged_header_is_no_end(tmp_path: Path) -> None:
    path = tarred(tmp_path / "a.tar", ("a", b"1", 0o644), ("b", b"2", 0o644))
    data = bytearray(path.read_bytes())
    data[1024] ^= 0xFF
    path.write_bytes(data)
    assert "cut short, or damaged" in tried(tmp_path, path)


def test_the_last_byte_of_a_compressed_tar_counts(tmp_path: Path) -> None:
    path = tarred(tmp_path / "a.tgz", ("a", b"1", 0o644))
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    assert "not an archive that can be read" in tried(tmp_path, path)


@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_modes(tmp_path: Path, kind: str) -> None:
    path = packed(kind, tmp_path / "a", ("suid", b"1", 0o106755), ("d/plain", b"1", 0o101666), ("d/l", b"../suid", LINK))
    archives.unpack(str(path), str(tmp_path / "out"), BLAME)
    modes = {p.name: p.stat().st_mode & 0o7777 for p in (tmp_path / "out").rglob("*")}
    assert modes == {"suid": 0o700, "plain": 0o600, "d": 0o700, "l": 0o700}


def test_hard_links_come_out_as_copies_and_the_last_of_a_name_wins(tmp_path: Path) -> None:
    path = tarred(tmp_path / "a.tgz", ("a", b"1", 0o644), ("b", b"a", HARD), ("a", b"2", 0o644))
    archives.unpack(str(path), str(tmp_path / "out"), BLAME)
    assert (tmp_path / "out" / "a").read_bytes() == b"2" and (tmp_path / "out" / "b").read_bytes() == b"1"
    assert (tmp_path / "out" / "b").stat().st_nlink == 1


def test_environments(tmp_path: Path) -> None:
    """A venv's bin/python leads to the interpreter it was made from; nothing else leads out, and nothing is written through it."""
    blame = Blame("python_env", PythonEnvError)
    good = tarred(tmp_path / "a.tgz", ("v/bin/python3", b"/usr/bin/python3", LINK), ("v/bin/python", b"python3", LINK))
    archives.unpack(str(good), str(tmp_path / "good"), blame, may_lead_out=_leads_to_an_interpreter)
    assert os.readlink(tmp_path / "good" / "v" / "bin" / "python3") == "/usr/bin/python3"
    for i, entries in enumerate(
        [
            [("v/lib", b"/usr/lib", LINK)],
            [("v/bin", b"/usr/bin", LINK)],
            [("bin/python", str(tmp_path).encode(), LINK), ("bin/python/evil", b"x", 0o644)],
        ]
    ):
        bad = tarred(tmp_path / f"{i}.tgz", *entries)
        with pytest.raises(PythonEnvError, match=r"python_env: .*(outside its directory|it is a link)"):
            archives.unpack(str(bad), str(tmp_path / f"bad{i}"), blame, may_lead_out=_leads_to_an_interpreter)
    assert not (tmp_path / "evil").exists()


# -- sizes


def bomb(path: Path, megabytes: int) -> Path:
    block = bytes(1 << 20)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros", "w", force_zip64=True) as out:
            for _ in range(megabytes):
                out.write(block)
        return path
    with gzip.open(path, "wb", compresslevel=1) as out:
        info = tarfile.TarInfo("zeros")
        info.size = megabytes << 20
        out.write(info.tobuf())
        for _ in range(megabytes):
            out.write(block)
        out.write(bytes(1024))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.zip", "a.tgz"])
def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(limits, "ALWAYS", 8 << 20)
    path = bomb(tmp_path / name, 20)
    said = tried(tmp_path, path)
    assert (
        f"{name} unpacks to more than" in said
        and f" MB; if it should, write {path}#max=" in said
        and "AKRUNNER_MAX_UNPACKED=" in said
    )
    wanted = said.partition("#max=")[2].partition(",")[0]
    script = tmp_path / "s.py"
    for _ in range(3):
        # what it says to write is enough in the end
        try:
            spec = collect(script, [f"{path}#max={wanted}"])
            break
        except UserFilesError as e:
            wanted = str(e).partition("#max=")[2].partition(",")[0]
    (tmp_path / "laid").mkdir()
    lay_out(spec, str(tmp_path / "laid"))
    assert (tmp_path / "laid" / "zeros").stat().st_size == 20 << 20
    monkeypatch.setenv("AKRUNNER_MAX_UNPACKED", "30MB")
    assert collect(script, [path])
    monkeypatch.setenv("AKRUNNER_MAX_UNPACKED", "1MB")
    tried(tmp_path, path)


def test_sizes_are_counted_and_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ALWAYS", 1 << 20)
    path = bomb(tmp_path / "a.zip", 4)
    data = path.read_bytes()
    # both headers say 10 bytes
    lies = data.replace((4 << 20).to_bytes(8, "little"), (10).to_bytes(8, "little")).replace(
        (4 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little")
    )
    path.write_bytes(lies)
    assert "not an archive that can be read" in tried(tmp_path, path)
    hard = tarred(tmp_path / "b.tgz", ("a", bytes(600_000), 0o644), ("b", b"a", HARD))
    assert "unpacks to more than" in tried(tmp_path, hard)
    with gzip.open(tmp_path / "c.tgz", "wb") as out:
        out.write(bytes(8 << 20))
    assert "unpacks to more than" in tried(tmp_path, tmp_path / "c.tgz")


def test_members_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_MAX_MEMBERS", "3")
    for kind in ("zip", "tgz"):
        path = packed(kind, tmp_path / "a", *[(str(i), b"", 0o644) for i in range(4)])
        assert "more than 3 files; if it should, set AKRUNNER_MAX_MEMBERS=30" in tried(tmp_path, path)


@pytest.mark.slow
def test_headers_are_not_read_into_memory(tmp_path: Path) -> None:
    """A long name of 80 MB in a tar, and a zip's link of 60 MB: both small files."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 80 << 20
    with gzip.open(tmp_path / "a.tgz", "wb", compresslevel=1) as out:
        out.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(80):
            out.write(b"x" * (1 << 20))
    linked = zipped(tmp_path / "b.zip", ("l", b"x" * (60 << 20), LINK))
    # and one whose header says that it is short
    data = linked.read_bytes().replace((60 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    (tmp_path / "c.zip").write_bytes(data)
    tracemalloc.start()
    try:
        for name in ("a.tgz", "b.zip", "c.zip"):
            tried(tmp_path, tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


def test_a_stream_of_a_tar(tmp_path: Path) -> None:
    """As an agent sends it: no seeking, and no end but its own."""
    data = tarred(tmp_path / "a.tar", ("d/a", b"1" * 3000, 0o755)).read_bytes()

    class Pipe(io.RawIOBase):
        source = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            return self.source.readinto(memoryview(buffer)[:700])

    archives.unpack(io.BufferedReader(Pipe()), str(tmp_path / "out"), BLAME)
    assert (tmp_path / "out" / "d" / "a").read_bytes() == b"1" * 3000
    with pytest.raises(UserFilesError, match="what came is not an archive"):
        archives.unpack(io.BytesIO(data[:1000]), str(tmp_path / "cut"), BLAME)


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As little room as one byte of a file may have."""
    path = zipped(tmp_path / "a.zip", ("a", zlib.compress(os.urandom(1 << 16)), 0o644))
    refused = pytest.raises(UserFilesError, match=r"user_files: cannot write 'a' in .*: the file would be larger than allowed")
    with no_file_longer_than(1000), refused:
        archives.unpack(str(path), str(tmp_path / "out"), BLAME)


@pytest.mark.parametrize(
    ("text", "size"), [("20GB", 20 * 10**9), ("1.5GB", None), ("512MiB", 512 << 20), ("0", None), ("-1", None), ("7", 7)]
)
def test_sizes(text: str, size: Any, tmp_path: Path) -> None:
    if size is None:
        with pytest.raises(ValueError, match="give a size like 20GB"):
            limits.parsed(text, "max")
    else:
        assert limits.parsed(text, "max") == size


@pytest.mark.slow
def test_a_zip_of_too_many_members_is_refused_by_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("0", b"")
        # the same file under 70,000 names: more than 65,535 need a larger record
        (one,) = archive.filelist
        archive.filelist *= 70_000
        archive.NameToInfo.update({f"{i}": one for i in range(70_000)})
        archive.comment = b"a comment"
    monkeypatch.setenv("AKRUNNER_MAX_MEMBERS", "69999")
    with monkeypatch.context() as no_reading:
        no_reading.setattr(zipfile, "ZipFile", lambda file: pytest.fail("its list was read"))
        assert "more than 69,999 files" in tried(tmp_path, path)
    # one that lies about it
    data = path.read_bytes()
    large = data.rfind(b"PK\6\6") + 24
    path.write_bytes(data[:large] + (3).to_bytes(8, "little") * 2 + data[large + 16 :])
    assert "more than 69,999 files" in tried(tmp_path, path)
