"""Outputs on this machine's disks: hidden until they are committed, and gone when they are not."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import JobTimeoutError, SinkError, WriteError
from akrunner.io import local_destinations
from akrunner.io.limits import limited
from akrunner.io.local_destinations import LocalFile, LocalFolder, Straight


class Held:
    """In place of the guard. Attributes: paths: what it would remove if this process died."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.register: Callable[[str], None] = self.paths.add
        self.forget: Callable[[str], None] = self.paths.discard


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    stand_in = Held()
    monkeypatch.setattr(local_destinations, "leftovers", stand_in)
    return stand_in


def written(place: Any, data: bytes = b"new") -> None:
    place.open().write(data)


# -- one file


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_there_when_it_is_whole(tmp_path: Path, held: Held, overwrite: bool) -> None:
    place = LocalFile(str(tmp_path / "o.csv"), "o.csv", overwrite)
    assert os.listdir(tmp_path) == []
    written(place)
    assert held.paths == {place.at} and os.listdir(tmp_path) == [os.path.basename(str(place.at))]
    place.commit()
    assert os.listdir(tmp_path) == ["o.csv"] and (tmp_path / "o.csv").read_bytes() == b"new" and not held.paths
    place.abort()
    assert (tmp_path / "o.csv").read_bytes() == b"new"


def test_a_file_that_is_given_up_leaves_nothing_and_can_be_begun_again(tmp_path: Path, held: Held) -> None:
    (tmp_path / "o.csv").write_bytes(b"old")
    place = LocalFile(str(tmp_path / "o.csv"), "o.csv", True)
    place.abort()
    written(place)
    place.abort()
    assert os.listdir(tmp_path) == ["o.csv"] and (tmp_path / "o.csv").read_bytes() == b"old" and not held.paths
    written(place)
    place.commit()
    assert (tmp_path / "o.csv").read_bytes() == b"new"


def test_a_file_that_came_meanwhile_stays(tmp_path: Path) -> None:
    place = LocalFile(str(tmp_path / "o.csv"), "o.csv", False)
    written(place)
    (tmp_path / "o.csv").write_bytes(b"theirs")
    with pytest.raises(WriteError, match=r"output: o\.csv was created by somebody else"):
        place.commit()
    place.abort()
    assert os.listdir(tmp_path) == ["o.csv"] and (tmp_path / "o.csv").read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("path", "overwrite", "words"),
    [
        ("there", True, "is a directory; name a file in it"),
        ("old.csv", False, "exists; give overwrite=True"),
        ("gone/o.csv", False, "there is no directory .*gone; make it first"),
        ("/proc/o.csv", False, "/proc is the system's own, and keeps no files"),
        ("/dev/o.csv", True, "/dev is the system's own"),
    ],
)
def test_where_no_file_can_be(tmp_path: Path, path: str, overwrite: bool, words: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "old.csv").touch()
    with pytest.raises(SinkError, match=f"output: .*{words}"):
        LocalFile(str(tmp_path / path), path, overwrite)


@pytest.mark.parametrize("make", [LocalFile, LocalFolder])
def test_a_directory_that_may_not_be_written(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # root may write anywhere
    monkeypatch.setattr(local_destinations.os, "access", lambda path, mode: False)
    with pytest.raises(SinkError, match=f"output: nothing may be written in {tmp_path}"):
        make(str(tmp_path / "o"), "o", False)


# -- a directory


def filled(place: LocalFolder, **files: str) -> None:
    place.make()
    for name, text in files.items():
        place.open(name).write(text.encode())


def content(path: Path) -> dict[str, str]:
    return {name: (path / name).read_text() for name in os.listdir(path)}


@pytest.fixture(params=["swapped", "moved one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a directory takes the place of an old one."""
    if request.param != "swapped":
        monkeypatch.setattr(local_destinations, "swap", lambda one, other: False)
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("old", [None, {}, {"part-0": "old", "_SUCCESS": ""}])
def test_a_directory_is_there_when_all_its_files_are_whole(tmp_path: Path, held: Held, old: Any) -> None:
    path = tmp_path / "out"
    if old is not None:
        path.mkdir()
        for name, text in old.items():
            (path / name).write_text(text)
    place = LocalFolder(f"{path}/", "out/", bool(old))
    assert not held.paths
    place.make()
    assert place.empty() and held.paths == {place.partial}
    filled(place, **{"part-0": "new", "part-1": "more"})
    assert not place.empty() and (not path.exists() if old is None else content(path) == old)
    place.commit()
    assert content(path) == {"part-0": "new", "part-1": "more"} and os.listdir(tmp_path) == ["out"] and not held.paths


@pytest.mark.usefixtures("way")
def test_what_no_job_has_written_is_not_replaced_either_if_it_came_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "part-0").write_text("old")
    place = LocalFolder(str(path), "out/", True)
    filled(place, **{"part-0": "new"})
    (path / "model.h5").write_text("x")
    with pytest.raises(
        WriteError, match=r"^output: out/ holds what no job has written \(model.h5\); .* came while the job ran, and nothing"
    ):
        place.commit()
    place.abort()
    assert content(path) == {"part-0": "old", "model.h5": "x"} and os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("gone", ["", "part-0", "part-1"], ids=["all", "finished", "open"])
def test_what_somebody_removed_meanwhile_is_missed(tmp_path: Path, held: Held, gone: str) -> None:
    place = LocalFolder(str(tmp_path / "out"), "out", False)
    place.make()
    filled(place, **{"part-0": "new", "part-1": "more"})
    place.finish("part-0")
    removed = Path(place.partial, gone)
    removed.unlink() if gone else shutil.rmtree(removed)
    with pytest.raises(WriteError, match=f"^output: {removed}.* was removed while the job ran, and rows with it$"):
        place.commit()
    if not gone:
        with pytest.raises(WriteError, match="was removed while the job ran"):
            place.make()
    place.abort()
    assert os.listdir(tmp_path) == [] and not held.paths
    # of a job that starts again
    filled(place, **{"part-0": "new"})
    place.commit()
    assert content(tmp_path / "out") == {"part-0": "new"}


def test_a_directory_that_is_given_up_leaves_what_was_there(tmp_path: Path, held: Held) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "part-0").write_text("old")
    place = LocalFolder(str(path), "out", True)
    for _ in range(2):
        filled(place, **{"part-0": "new"})
        place.abort()
        assert content(path) == {"part-0": "old"} and os.listdir(tmp_path) == ["out"] and not held.paths


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("before", ["there", "a mount", "not there"])
def test_files_that_came_meanwhile_stay(tmp_path: Path, before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    if before != "not there":
        path.mkdir()
    monkeypatch.setattr(local_destinations, "_is_mounted", lambda path: before == "a mount")
    place = LocalFolder(str(path), "out", False)
    filled(place, **{"part-0": "new"})
    path.mkdir(exist_ok=True)
    (path / "theirs").write_text("theirs")
    with pytest.raises(WriteError, match="output: out was created by somebody else"):
        place.commit()
    place.abort()
    assert content(path) == {"theirs": "theirs"} and os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("way")
def test_an_empty_directory_that_came_meanwhile_is_used(tmp_path: Path) -> None:
    path = tmp_path / "out"
    place = LocalFolder(str(path), "out", False)
    filled(place, **{"part-0": "new"})
    path.mkdir()
    place.commit()
    assert content(path) == {"part-0": "new"} and os.listdir(tmp_path) == ["out"]


def test_directories_above_are_made_at_the_end(tmp_path: Path) -> None:
    place = LocalFolder(str(tmp_path / "a" / "b" / "out"), "out", False)
    filled(place, **{"part-0": "new"})
    assert not (tmp_path / "a").exists()
    place.commit()
    assert content(tmp_path / "a" / "b" / "out") == {"part-0": "new"} and os.listdir(tmp_path) == ["a"]


def test_old_directories_within_are_removed_and_links_only_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_destinations, "swap", lambda one, other: False)
    path, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (path / "year=2025").mkdir(parents=True)
    (path / "year=2025" / "part-0").write_text("old")
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    (path / "link").symlink_to(elsewhere)
    place = LocalFolder(str(path), "out", True)
    filled(place, **{"part-0": "new"})
    place.commit()
    assert content(path) == {"part-0": "new"} and content(elsewhere) == {"kept": "kept"}


def test_the_working_directory_is_written_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    (path / "deep").mkdir(parents=True)
    monkeypatch.chdir(path / "deep")
    number = path.stat().st_ino
    place = LocalFolder(str(path), "out", True)
    assert os.path.dirname(place.partial) == str(path)
    filled(place, **{"part-0": "new"})
    place.commit()
    assert path.stat().st_ino == number and "part-0" in os.listdir(path)
    # a directory with a name that only begins as it does is another
    other = LocalFolder(str(tmp_path / "out2"), "out2", False)
    assert os.path.dirname(other.partial) == str(tmp_path)


def test_what_another_job_writes_in_the_same_directory_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_destinations, "_is_mounted", lambda path: True)
    one, other = (LocalFolder(str(tmp_path), "out", True) for _ in range(2))
    filled(one, **{"part-0": "one"})
    filled(other, **{"part-0": "other"})
    one.commit()
    assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(other.partial), "part-0"])
    other.commit()
    assert content(tmp_path) == {"part-0": "other"}


@pytest.mark.parametrize(
    ("path", "overwrite", "words"),
    [
        ("file", True, "is a file; leave out the /"),
        ("old", False, "exists; give overwrite=True"),
        ("home", True, r"holds what no job has written \(thesis.tex\)"),
        ("/proc/out", False, "is the system's own, and keeps no files"),
    ],
)
def test_where_no_directory_can_be(tmp_path: Path, path: str, overwrite: bool, words: str) -> None:
    (tmp_path / "file").touch()
    for name in ("old/part-0", "home/deep/thesis.tex"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    with pytest.raises(SinkError, match=f"output: .*{words}"):
        LocalFolder(str(tmp_path / path), path, overwrite)


# -- pipes and devices


def test_a_pipe_has_its_bytes_at_once_and_is_opened_once(tmp_path: Path) -> None:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    place = Straight(path, "pipe")
    with pytest.raises(OSError, match="No such device"):
        place.open()
    place.commit()
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    stream = place.open()
    stream.write(b"rows")
    stream.flush()
    assert os.read(reader, 100) == b"rows"
    with pytest.raises(WriteError, match=r"what went to .*pipe cannot be taken back, .*\(max_restarts=\)"):
        place.open()
    place.commit()
    place.abort()
    assert stream.closed and os.read(reader, 100) == b""
    os.close(reader)


def test_an_output_that_is_given_up_waits_for_no_reader(tmp_path: Path) -> None:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    place = Straight(path, "pipe")
    stream = place.open()
    with limited(0.2, None), pytest.raises(JobTimeoutError, match="waited for whoever reads .*pipe"):
        stream.write(bytes(1 << 20))
    begun = time.monotonic()
    place.abort()
    assert stream.closed and time.monotonic() - begun < 10
    os.close(reader)


def test_an_open_descriptor_is_written_and_stays_open(tmp_path: Path) -> None:
    with open(tmp_path / "o", "wb") as file:
        for prefix in ("/dev/fd/", "/proc/self/fd/"):
            place = Straight(f"{prefix}{file.fileno()}", "o")
            place.open().write(b"rows")
            place.commit()
        file.write(b" and more")
    assert (tmp_path / "o").read_bytes() == b"rowsrows and more"


def test_a_socket_is_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(SinkError, match="output: o is a socket; name a file"):
            Straight("socket", "o")


# -- files that are added


def adding(path: Path, **files: str) -> LocalFolder:
    place = LocalFolder(str(path), "out", False, True)
    filled(place, **files)
    return place


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("mount", [False, True])
def test_files_are_added_to_those_that_are_there(tmp_path: Path, mount: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    monkeypatch.setattr(local_destinations, "_is_mounted", lambda path: mount)
    place = adding(path, **{"part-0": "old", "d=1/part-0": "old"})
    assert not place.adds
    place.commit()
    path.chmod(0o750)
    (path / "d=1").chmod(0o700)
    place = adding(path, **{"part-1": "new", "d=1/part-1": "new", "d=2/part-1": "new"})
    assert place.adds and len(names(path)) == 2
    place.commit()
    old, new = dict.fromkeys(("part-0", "d=1/part-0"), "old"), dict.fromkeys(("part-1", "d=1/part-1", "d=2/part-1"), "new")
    assert names(path) == {**old, **new} and os.listdir(tmp_path) == ["out"]
    assert [one.stat().st_mode & 0o777 for one in (path, path / "d=1")] == [0o750, 0o700]
    given_up = adding(path, **{"part-2": "new"})
    given_up.abort()
    assert names(path) == {**old, **new} and os.listdir(tmp_path) == ["out"]


def names(path: Path) -> dict[str, str]:
    """The files beneath a directory that are no other job's, and what is in them."""
    return {
        str(one.relative_to(path)): one.read_text() for one in path.rglob("*") if one.is_file() and ".partial" not in str(one)
    }


@pytest.mark.usefixtures("way")
def test_two_jobs_add_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "out"
    one, other = adding(path, **{"part-1": "one"}), adding(path, **{"part-2": "other"})
    one.commit()
    third = adding(path, **{"part-3": "third"})
    other.commit()
    third.commit()
    assert names(path) == {"part-1": "one", "part-2": "other", "part-3": "third"} and os.listdir(tmp_path) == ["out"]


def test_what_comes_between_the_links_and_the_swap_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    adding(path, **{"part-0": "old"}).commit()
    real = local_destinations.swap

    def late(one: str, other: str) -> bool:
        (path / "d=1").mkdir()
        (path / "d=1" / "part-9").write_text("theirs")
        return real(one, other)

    monkeypatch.setattr(local_destinations, "swap", late)
    adding(path, **{"part-1": "new"}).commit()
    assert names(path) == {"part-0": "old", "part-1": "new", "d=1/part-9": "theirs"}


def test_an_addition_that_fails_in_the_middle_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    adding(path, **{"part-0": "old"}).commit()
    place = adding(path, **{"part-1": "new", "part-2": "new"})
    monkeypatch.setattr(local_destinations, "swap", lambda one, other: False)
    real = local_destinations.move_new

    def moved(source: str, target: str) -> None:
        if target.endswith("part-2"):
            raise OSError("broke")
        real(source, target)

    monkeypatch.setattr(local_destinations, "move_new", moved)
    with pytest.raises(OSError, match="broke"):
        place.commit()
    place.abort()
    assert names(path) == {"part-0": "old"} and os.listdir(tmp_path) == ["out"]


def test_nothing_to_add_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out"
    adding(path, **{"part-0": "old"}).commit()
    number = path.stat().st_ino
    place = adding(path)
    place.commit(lambda there, others: b"a manifest")
    assert path.stat().st_ino == number and names(path) == {"part-0": "old"} and os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("append", [False, True])
def test_the_manifest_is_made_of_what_is_there_in_the_end(tmp_path: Path, append: bool) -> None:
    path, asked = tmp_path / "out", []

    def seal(there: bytes | None, others: Sequence[str]) -> bytes:
        asked.append((there, sorted(others)))
        return b"new"

    for text in ("one", "two"):
        place = LocalFolder(str(path), "out", not append, append)
        filled(place, **{f"part-{text}": text})
        place.commit(seal)
    kept = {"part-one": "one"} if append else {}
    assert asked == [(None, []), (b"new", ["part-one"]) if append else (None, [])]
    assert names(path) == {**kept, "part-two": "two", "_SUCCESS": "new"}


def test_a_job_does_not_wait_for_ever_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    adding(path, **{"part-0": "old"}).commit()
    monkeypatch.setattr(local_destinations, "_PATIENCE", 0.0)
    place = adding(path, **{"part-1": "new"})
    with local_destinations._alone(str(path), "out"), pytest.raises(WriteError, match="another job has been putting its files"):
        place.commit()
    place.abort()
    assert names(path) == {"part-0": "old"}
