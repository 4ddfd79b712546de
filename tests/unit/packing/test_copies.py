"""Copies of broken files: nothing that is there is written over."""

from __future__ import annotations

import csv
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from akrunner import leftovers
from akrunner.errors import WriteError
from akrunner.packing import copies
from akrunner.packing.copies import keep, write_list


def rows_of(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "bad_rows.csv").read_text().splitlines()))


def test_a_copy_is_written_over_nothing(tmp_path: Path) -> None:
    whole = b"x" * (3 << 20)
    for name in ("in/a/bad.jpg", "to/a/bad.jpg"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(whole)
    base, folder = str(tmp_path / "in"), str(tmp_path / "to")
    # the same bytes are the copy, others stay, and the copy has a name of its own
    assert keep(base, b"a/bad.jpg", None, "", folder) == ("a/bad.jpg", "")
    (tmp_path / "to" / "a" / "bad.jpg").write_bytes(b"somebody's")
    place, no = keep(base, b"a/bad.jpg", None, "", folder)
    assert not no and place != "a/bad.jpg" and (tmp_path / "to" / place).read_bytes() == whole
    assert keep(base, b"a/bad.jpg", None, "", folder) == (place, "")
    assert (tmp_path / "to" / "a" / "bad.jpg").read_bytes() == b"somebody's"
    # the directory of all is where the files are
    assert keep(str(tmp_path), b"in/a/bad.jpg", None, "", str(tmp_path)) == ("in/a/bad.jpg", "")
    assert (tmp_path / "in" / "a" / "bad.jpg").read_bytes() == whole
    assert {path.name for path in (tmp_path / "to" / "a").iterdir()} == {"bad.jpg", os.path.basename(place)}


def test_a_link_is_not_followed_out_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "bad.jpg").write_bytes(b"bad")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "a").symlink_to(tmp_path / "elsewhere")
    place, no = keep(str(tmp_path / "in"), b"a/bad.jpg", None, "", str(tmp_path / "to"))
    assert not place and no
    assert not list((tmp_path / "elsewhere").iterdir())


def test_paths_that_lead_to_two_files_are_two_copies(tmp_path: Path) -> None:
    (tmp_path / "in" / "in").mkdir(parents=True)
    (tmp_path / "in" / "x.jpg").write_bytes(b"one")
    (tmp_path / "in" / "in" / "x.jpg").write_bytes(b"two")
    to = tmp_path / "to"
    names = (b"in/x.jpg", b"../in/x.jpg", os.fsencode(tmp_path / "in" / "x.jpg"))
    places = [keep(str(tmp_path / "in"), name, None, "", str(to))[0] for name in names]
    assert len(set(places)) == 3 and [(to / place).read_bytes() for place in places] == [b"two", b"one", b"one"]


def test_only_files_are_copied_and_no_larger_ones_than_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to = str(tmp_path / "to")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.png")
    os.mkfifo("pipe.png")
    os.symlink("/dev/zero", "zero.png")
    Path("large.png").write_bytes(b"x" * 101)
    said = {name: keep(None, name.encode(), None, "", to, 100) for name in ("socket.png", "pipe.png", "zero.png", "large.png")}
    assert said["socket.png"] == ("", "it is a socket, not a file")
    assert said["pipe.png"] == ("", "it is a pipe, not a file")
    assert said["zero.png"] == ("", "it is a device, not a file")
    assert said["large.png"][1].startswith("it has 101 bytes; the most is 100")
    # a file of the system's own, which says it has none, is not drained
    assert keep(None, b"/proc/self/status", None, "", to)[1] == ""
    assert all(not path.stat().st_size for path in (tmp_path / "to").rglob("*") if path.is_file())


def test_the_table_has_a_row_for_each_and_of_earlier_runs(tmp_path: Path) -> None:
    none = ("(no path)", "there is none", "", "it has no path")
    write_list(str(tmp_path), [none, none, ("a\0b", "why\0", "", "no"), ("old", "x", "old", "")])
    assert [row["path"] for row in rows_of(tmp_path)] == ["(no path)", "(no path)", "a\\0b", "old"]
    write_list(str(tmp_path), [("new", "x", "new", ""), ("old", "y", "old-1", "")])
    assert [row["copy"] for row in rows_of(tmp_path)] == ["", "", "", "new", "old-1"]
    assert [path.name for path in tmp_path.iterdir()] == ["bad_rows.csv"]


def test_a_table_of_somebody_else_stays(tmp_path: Path) -> None:
    (tmp_path / "bad_rows.csv").write_text("mine\n")
    assert "stays as it is" in copies.check_list(str(tmp_path))
    with pytest.raises(WriteError, match="not pack's"):
        write_list(str(tmp_path), [("a", "b", "", "c")])
    assert (tmp_path / "bad_rows.csv").read_text() == "mine\n"


def test_two_runs_that_write_the_table_at_once_lose_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, other, found = copies._read, threading.Event(), threading.Event()

    def slow(path: str) -> Any:
        # the first holds what it has read until the other has had every chance to read the same
        rows = real(path)
        if threading.current_thread() is first:
            other.set()
            found.wait(0.5)
        else:
            found.set()
        return rows

    write_list(str(tmp_path), [("a", "x", "a", "")])
    monkeypatch.setattr(copies, "_read", slow)
    first = threading.Thread(target=write_list, args=(str(tmp_path), [("b", "x", "b", "")]))
    first.start()
    other.wait()
    write_list(str(tmp_path), [("c", "x", "c", "")])
    first.join()
    assert [row["path"] for row in rows_of(tmp_path)] == ["a", "b", "c"]
    assert [path.name for path in tmp_path.iterdir()] == ["bad_rows.csv"]


def test_a_copy_that_cannot_be_noted_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "bad.jpg").write_bytes(b"bad")
    monkeypatch.setattr(leftovers, "register", full)
    closed: list[int] = []
    opened: list[int] = []
    open_, close = copies._opened, os.close
    monkeypatch.setattr(copies, "_opened", lambda *given: opened.append(open_(*given)) or opened[-1])
    monkeypatch.setattr(os, "close", lambda fd: (closed.append(fd), close(fd)))
    with pytest.raises(WriteError, match="cannot copy"):
        keep(str(tmp_path), b"bad.jpg", None, "", str(tmp_path / "to"))
    assert len(opened) == 1 and opened[0] in closed
