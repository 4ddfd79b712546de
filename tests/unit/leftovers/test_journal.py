"""The journal of what a process holds: what is written into it, what is read back, and what of it may be removed."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from akrunner.leftovers import journal
from akrunner.leftovers.journal import Journal, clear_dead
from akrunner.wire.ending import started

#: no process has such a number
GONE = 2**22 + 5


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of journals."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "state" / "akrunner" / "leftovers"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def things(tmp_path: Path) -> Path:
    """A directory with others in it that somebody may have held."""
    for name in ("a", "b", "outer/inner", "mine"):
        (tmp_path / "things" / name).mkdir(parents=True)
    return tmp_path / "things"


def written(state: Path, name: str, *held: Path, pid: int = GONE, start: str = "1", **about: str) -> Path:
    """A journal that another process has left."""
    head = {"pid": pid, "start": start, **journal._here(), **about}
    path = state / name
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *(["+", "path", str(one)] for one in held)]))
    return path


def test_what_is_written_is_read_back(state: Path) -> None:
    mine = Journal()
    assert os.path.dirname(mine.path) == str(state) and os.path.basename(mine.path).startswith(f"{os.getpid()}-")
    for line in (["+", "path", "/a"], ["+", "path", "/b"], ["-", "path", "/a"], ["+", "mark", "m"], ["+", "group", 7, "3"]):
        mine.write(json.dumps(line).encode() + b"\n")
    found = journal._read(mine.path)
    assert found is not None
    host, held = found
    assert host == {"pid": os.getpid(), "start": started(os.getpid()), **journal._here()}
    assert held.lines() == [["+", "mark", "m"], ["+", "group", 7, "3"], ["+", "path", "/b"]]
    assert os.stat(mine.path).st_mode & 0o777 == 0o600
    path = mine.path
    mine.close()
    mine.close()
    assert not os.path.exists(path) and mine.path == ""
    mine.write(b"nobody hears it\n")
    assert os.listdir(state) == []


def test_two_of_one_process_are_two_files_and_one_that_is_let_go_stays(state: Path) -> None:
    one, other = Journal(), Journal()
    assert one.path != other.path
    one.drop()
    assert sorted(os.listdir(state)) == sorted(os.path.basename(made.path) for made in (one, other))
    one.close()
    other.close()
    assert os.listdir(state) == []


def test_nobody_else_gets_the_lock_of_one_that_is_held(state: Path) -> None:
    mine = Journal()
    with open(mine.path) as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    mine.close()


def test_without_a_place_for_it_everything_works(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **more: Any) -> Any:
        raise OSError(28, "full")

    monkeypatch.setattr(journal, "private_file", refuse)
    mine = Journal()
    mine.write(b"x\n")
    mine.close()
    assert mine.path == "" and os.listdir(state) == []
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert Journal().path == ""
    clear_dead()


def test_a_line_that_is_cut_short_is_left_out_and_the_rest_counts(state: Path, things: Path) -> None:
    path = written(state, f"{GONE}-x", things / "a")
    path.write_text(path.read_text() + json.dumps(["+", "path", str(things / "b")])[:-1])
    found = journal._read(str(path))
    assert found is not None and list(found[1].paths) == [str(things / "a")]
    found = journal._read(str(path), wholly=False)
    assert found is not None and not found[1]


def test_a_line_no_journal_has_makes_it_none(state: Path, things: Path) -> None:
    path = written(state, f"{GONE}-x", things / ("x" * 70_000))
    assert journal._read(str(path)) is None and journal._read(str(path), wholly=False) is not None
    path = written(state, f"{GONE}-y", start=3)  # type: ignore[arg-type]
    assert journal._read(str(path)) is None


def test_what_a_dead_process_held_goes_and_its_journal(state: Path, things: Path) -> None:
    (things / "file").touch()
    written(state, f"{GONE}-x", things / "a", things / "file", things / "never")
    clear_dead()
    assert sorted(path.name for path in things.iterdir()) == ["b", "mine", "outer"] and os.listdir(state) == []


def test_what_a_living_one_holds_stays_also_above_and_below(state: Path, things: Path) -> None:
    mine = Journal()
    mine.write(json.dumps(["+", "path", str(things / "a")]).encode() + b"\n")
    mine.write(json.dumps(["+", "path", str(things / "outer")]).encode() + b"\n")
    mine.write(json.dumps(["+", "path", str(things / "mine" / "in")]).encode() + b"\n")
    written(state, f"{GONE}-x", things / "a", things / "outer" / "inner", things / "mine", things / "b")
    clear_dead()
    assert sorted(path.name for path in things.iterdir()) == ["a", "mine", "outer"] and (things / "outer" / "inner").is_dir()
    assert os.listdir(state) == [os.path.basename(mine.path)]
    mine.close()


@pytest.mark.parametrize(
    "path, owned, may",
    [
        ("a", [], True),
        ("a", ["a"], False),
        ("a", ["ab"], True),
        ("outer", ["outer/inner"], False),
        ("outer/inner", ["outer"], False),
        ("outer/../a", [], False),
        ("never", [], False),
        ("link/inner", [], False),
        ("link", [], True),
    ],
)
def test_what_may_go(path: str, owned: list[str], may: bool, things: Path) -> None:
    (things / "link").symlink_to(things / "outer")
    assert journal._may_go(f"{things}/{path}", {f"{things}/{one}" for one in owned}) is may


@pytest.mark.parametrize("path", ["relative", "/", "/proc", "\ud800", "/a\0b"])
def test_what_may_never_go(path: str) -> None:
    assert not journal._may_go(path, set())


def test_what_is_another_users_stays(state: Path, things: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert journal._may_go(str(things / "a"), set())
    monkeypatch.setattr(journal.os, "geteuid", lambda: things.stat().st_uid + 1)
    assert not journal._may_go(str(things / "a"), set())
    assert journal._read(str(written(state, f"{GONE}-x"))) is None


@pytest.mark.parametrize("start, dead", [("", False), ("1", True)])
def test_a_number_that_is_another_processes_now_is_told_by_its_start(start: str, dead: bool, state: Path) -> None:
    host = {"pid": os.getpid(), "start": start, **journal._here()}
    assert journal._is_dead(host, "") is dead
    assert not journal._is_dead({**host, "start": started(os.getpid())}, "")
    assert journal._is_dead({**host, "pid": GONE}, "")


@pytest.mark.parametrize("days, stays", [(29, True), (31, False)])
def test_one_of_before_the_machine_was_started_anew_goes_after_a_month(
    days: int, stays: bool, state: Path, things: Path
) -> None:
    path = written(state, f"{GONE}-x", things / "a", boot="another")
    when = time.time() - days * 86400
    os.utime(path, (when, when))
    clear_dead()
    assert path.exists() is stays and (things / "a").is_dir(), "what it names may be another's by now"


def test_one_that_somebody_is_at_is_left_to_them(state: Path, things: Path) -> None:
    path = written(state, f"{GONE}-x", things / "a")
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        clear_dead()
        assert path.exists() and (things / "a").is_dir()
    clear_dead()
    assert not path.exists() and not (things / "a").exists()


def test_what_cannot_be_removed_is_left_for_the_next_start(state: Path, things: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(state, f"{GONE}-x", things / "a")
    with monkeypatch.context() as patched:
        patched.setattr("akrunner.wire.ending.remove", lambda path: False)
        clear_dead()
    assert path.exists() and (things / "a").is_dir()


def test_time_that_is_over_leaves_the_rest_to_the_next_start(
    state: Path, things: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        written(state, f"{GONE}-{name}", things / name)
    clock = iter([0.0, 0.1, 0.2, 0.3, 9.0])
    with monkeypatch.context() as patched:
        patched.setattr(journal.time, "monotonic", lambda: next(clock))
        clear_dead()
    assert len(os.listdir(state)) == 1 and (things / "a").exists() != (things / "b").exists()
    clear_dead()
    assert os.listdir(state) == []
