"""Directories of all kinds."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from akrunner.checkup import disks
from akrunner.checkup.disks import Place
from akrunner.checkup.lines import BROKEN, LOOK, OK


class Disk:
    """Stands in for what `os.statvfs` gives: a disk that has room."""

    def __init__(self, **other: int) -> None:
        self.f_frsize, self.f_bavail, self.f_blocks = 4096, 1 << 30, 1 << 31
        self.f_files, self.f_favail, self.f_flag = 1 << 20, 1 << 20, 0
        vars(self).update(other)


def looked(
    monkeypatch: pytest.MonkeyPatch, path: Path, kind: str = "ext4", runs: bool = False, needed: bool = True, **disk: int
) -> Any:
    monkeypatch.setattr(disks, "kind_of", lambda path: (kind, "server:/export"))
    monkeypatch.setattr(disks.os, "statvfs", lambda path: Disk(**disk))
    (line,) = disks.looked_at(Place("temp", str(path), "TMPDIR=DIR", needed, runs))
    return line


def test_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert looked(monkeypatch, tmp_path).state == OK
    little = looked(monkeypatch, tmp_path, f_bavail=1 << 18)
    assert little.state == LOOK and "1.0 GiB free" in little.found and "TMPDIR=DIR" in little.do
    assert looked(monkeypatch, tmp_path, f_bavail=5 << 8).state == LOOK, "a small job runs in 5 MiB"
    assert looked(monkeypatch, tmp_path, f_bavail=1 << 7).state == BROKEN
    assert looked(monkeypatch, tmp_path, f_bavail=1 << 7, needed=False).state == LOOK
    assert looked(monkeypatch, tmp_path, f_favail=300).state == LOOK
    nodes = looked(monkeypatch, tmp_path, f_favail=3)
    assert nodes.state == BROKEN and "3 more files fit" in nodes.found


def test_kinds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    memory = looked(monkeypatch, tmp_path, "tmpfs")
    assert memory.state == LOOK and "in memory (tmpfs)" in memory.found
    assert "over the network (nfs4)" in looked(monkeypatch, tmp_path, "nfs4").found
    assert looked(monkeypatch, tmp_path, f_flag=os.ST_NOEXEC).state == OK, "nothing in it is run"
    assert "noexec" in looked(monkeypatch, tmp_path, f_flag=os.ST_NOEXEC, runs=True).found


def test_what_is_not_there_or_no_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "(it will be made when it is needed)" in looked(monkeypatch, tmp_path / "a" / "b").found
    (tmp_path / "file").write_text("")
    assert looked(monkeypatch, tmp_path / "file").state == BROKEN
    assert os.listdir(tmp_path) == ["file"], "nothing was left"


def test_that_it_can_be_written_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert looked(monkeypatch, tmp_path).state == OK
    assert os.listdir(tmp_path) == [], "nothing was left"

    def refused(path: str, flags: int, mode: int = 0o777) -> int:
        raise OSError(30, "Read-only file system", path)

    monkeypatch.setattr(disks.os, "open", refused)
    line = looked(monkeypatch, tmp_path)
    assert line.state == BROKEN and "it is read-only" in line.found


@pytest.mark.parametrize(
    "number, free, words, do",
    [
        (errno.EROFS, {}, "it is read-only", "mount it"),
        (errno.ENOSPC, {"f_bavail": 0}, "it is full: 0 MiB free", "make room"),
        (errno.ENOSPC, {"f_favail": 0}, "no inodes left", "remove small files"),
        (errno.EDQUOT, {}, "quota", "remove files of yours"),
        (errno.EACCES, {}, "cannot be written by this user", ""),
        (errno.ENOENT, {}, "no file can be made there (proc takes none)", ""),
    ],
)
def test_why_a_directory_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, free: Any, words: str, do: str
) -> None:
    def refused(path: str, flags: int, mode: int = 0o777) -> int:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(disks.os, "open", refused)
    monkeypatch.setattr(disks.os, "geteuid", lambda: 1000)
    line = looked(monkeypatch, tmp_path, "proc", **free)
    assert line.state == BROKEN and words in line.found and line.do.startswith(do or "TMPDIR=DIR names")
    below = looked(monkeypatch, tmp_path / "a", "proc", **free)
    assert f"a is not there, and cannot be made in {tmp_path}: " in below.found and "will be made" not in below.found
    monkeypatch.setattr(disks.leftovers, "temp_directory", lambda: "/")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    last = disks.temp()[-1]
    assert last.about == "TMPDIR" and words in last.found and last.do.startswith(do or "name another directory, or unset")


def test_files_that_may_not_be_large_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(fd: int, what: bytes) -> int:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(disks.os, "write", refused)
    assert looked(monkeypatch, tmp_path).state == OK and os.listdir(tmp_path) == []
    monkeypatch.setattr(disks.leftovers, "temp_directory", lambda: str(tmp_path))
    monkeypatch.delenv("TMPDIR", raising=False)
    assert [line.state for line in disks.temp()] == [OK], "the line of ulimit -f says it"


def test_a_temp_directory_that_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(disks.leftovers, "temp_directory", lambda: str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    for named, words, do in (
        (f"{tmp_path}/file", "file is a file, no directory", "name a directory"),
        (f"{tmp_path}/file/x", f"nor can it be made in {tmp_path}/file: it is no directory", "name another"),
        (f"{tmp_path}/none of it", "is not there", f"mkdir -p '{tmp_path}/none of it'"),
        (f"{tmp_path}/link", "is a link to what is not there", "make what it leads to"),
        ("relative", "is not absolute", "whole path"),
        ("{", "something that is no path", "whole path"),
    ):
        monkeypatch.setenv("TMPDIR", named)
        line = disks.temp()[-1]
        assert line.about == "TMPDIR" and line.state == LOOK and words in line.found and do in line.do
    monkeypatch.setenv("TMPDIR", ".")
    monkeypatch.setattr(disks.leftovers, "temp_directory", lambda: str(tmp_path))
    line = disks.temp()[-1]
    assert "not absolute" in line.found and line.do == f"TMPDIR={tmp_path}"
    (line,) = disks.looked_at(Place("logs", "relative/akrunner", "XDG_STATE_HOME", needed=False))
    assert line.state == LOOK and "is not absolute" in line.found


def test_the_file_system_of_a_directory(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\ntmpfs /run/a\\040b tmpfs rw 0 0\nserver:/x /run/a\\040b/c nfs4 rw 0 0\nbad\n")
    assert disks.kind_of("/run/a b/d", str(mounts)) == ("tmpfs", "tmpfs")
    assert disks.kind_of("/run/a b/c/d", str(mounts)) == ("nfs4", "server:/x")
    assert disks.kind_of("/run/a bc", str(mounts)) == ("ext4", "/dev/vda")
    assert disks.kind_of("/run", str(tmp_path / "none")) == ("", "")


def test_the_temp_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(disks.leftovers, "temp_directory", lambda: str(tmp_path))
    monkeypatch.setenv("TMPDIR", "/nowhere/at/all")
    assert disks.temp()[-1].about == "TMPDIR" and disks.temp()[-1].state == LOOK

    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(disks.leftovers, "temp_directory", none)
    assert [line.state for line in disks.temp()] == [BROKEN]


def test_a_current_directory_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> str:
        raise FileNotFoundError(2, "No such file or directory")

    assert disks.current()[0].about == "current directory"
    monkeypatch.setattr(disks.os, "getcwd", gone)
    assert disks.current()[0].state == BROKEN


def test_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disks.clock()[0].state == OK
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(disks, "_disk_skew", lambda: ("/mnt/t", -300.0))
        (line,) = disks.clock()
        assert line.state == LOOK and "the disk of /mnt/t is 300 s behind" in line.found
        elsewhere.setattr(disks, "_disk_skew", lambda: ("", 0.0))
        assert "disk" not in disks.clock()[0].found
    monkeypatch.setattr(disks.time, "time", lambda: 1e9)
    assert "newer" in disks.clock()[0].found
