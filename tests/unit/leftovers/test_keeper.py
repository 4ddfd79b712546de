"""What this process holds is told to its guard and its journal, and a guard that is lost is replaced. (Guards are stand-ins here.)"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.leftovers import journal, keeper
from akrunner.wire import ending


class Guard:
    """Attributes: told: its lines; there: whether it runs; left, killed, dropped: how often; hears: whether it takes what it is told."""

    made: list[Guard] = []
    refused = 0

    def __init__(self, journal: str) -> None:
        if Guard.refused:
            Guard.refused -= 1
            raise OSError(11, "no processes")
        self.journal, self.pid = journal, 2**22 + 7 + len(Guard.made)
        self.told: list[Any] = []
        self.there = self.hears = True
        self.left = self.killed = self.dropped = 0
        Guard.made.append(self)

    def say(self, line: bytes) -> bool:
        if line and self.hears:
            self.told.append(json.loads(line))
        return self.hears

    def is_there(self) -> bool:
        return self.there

    def leave(self) -> None:
        self.left += 1

    def kill(self) -> None:
        self.killed += 1

    def drop(self) -> None:
        self.dropped += 1


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of journals. This process holds nothing yet, whatever other tests hold; afterwards it holds nothing any more."""
    Guard.made.clear()
    Guard.refused = 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(keeper, "_Guard", Guard)
    monkeypatch.setattr(keeper, "_keepers", [keeper._Keeper()])
    yield tmp_path / "state" / "akrunner" / "leftovers"
    assert keeper._keepers[0]._guard is None and keeper._keepers[0]._journal is None


def held() -> list[Any]:
    """What the journal says is held."""
    path = keeper._keepers[0]._journal
    found = journal._read(path.path) if path is not None else None
    assert found is not None
    return found[1].lines()


def test_the_guard_is_there_as_long_as_anything_is_held(state: Path) -> None:
    keeper.register("/x/a")
    keeper.register("/x/b")
    keeper.mark("m")
    keeper.forget("/x/a")
    (guard,) = Guard.made
    assert guard.journal == str(state / os.listdir(state)[0])
    assert guard.told == [["+", "path", "/x/a"], ["+", "path", "/x/b"], ["+", "mark", "m"], ["-", "path", "/x/a"]]
    assert held() == [["+", "mark", "m"], ["+", "group", guard.pid, ""], ["+", "path", "/x/b"]]
    keeper.unmark("m")
    assert guard.left == 0
    keeper.forget("/x/b")
    assert guard.left == 1 and os.listdir(state) == []
    keeper.register("/x/a")
    assert len(Guard.made) == 2
    keeper.forget("/x/a")


def test_what_nobody_holds_is_forgotten_without_a_guard(state: Path) -> None:
    keeper.forget("/x/a")
    keeper.unwatch(2**22 + 5)
    assert Guard.made == [] and not state.exists()


def test_a_path_is_held_by_where_it_is(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "end").symlink_to("/nowhere")
    monkeypatch.chdir(tmp_path)
    for path in ("real/../real/a", str(tmp_path / "link" / "b"), "link/end", "link"):
        keeper.register(path)
    assert [line[2] for line in held() if line[1] == "path"] == [
        f"{tmp_path}/real/a",
        f"{tmp_path}/real/b",
        f"{tmp_path}/real/end",
        f"{tmp_path}/link",
    ]
    monkeypatch.chdir("/")
    for name in ("real/a", "link/b", "real/end", "link"):
        keeper.forget(str(tmp_path / name))


def test_a_group_is_held_with_when_it_was_started(state: Path) -> None:
    keeper.watch(os.getpid())
    assert Guard.made[0].told == [["+", "group", os.getpid(), ending.started(os.getpid())]]
    keeper.unwatch(os.getpid())
    assert Guard.made[0].told[1:] == [["-", "group", os.getpid()]] and Guard.made[0].left == 1


def test_a_block_keeps_one_guard_for_what_comes_and_goes(state: Path) -> None:
    with keeper.together():
        assert Guard.made == []
        for name in ("/x/a", "/x/b"):
            keeper.register(name)
            keeper.forget(name)
        with pytest.raises(KeyError), keeper.together():
            raise KeyError
        assert len(Guard.made) == 1 and Guard.made[0].left == 0
        keeper.register("/x/c")
    assert Guard.made[0].left == 0, "it holds something"
    keeper.forget("/x/c")
    assert Guard.made[0].left == 1


@pytest.mark.parametrize("lost", ["gone", "stuck"])
def test_a_guard_that_is_lost_is_replaced_by_one_that_knows_all(lost: str, state: Path) -> None:
    keeper.register("/x/a")
    keeper.mark("m")
    assert keeper.guards() == 0
    first = Guard.made[0]
    first.there, first.hears = lost != "gone", lost != "stuck"
    assert keeper.guards() == 1 and first.killed == 1
    assert Guard.made[1].told == [["+", "mark", "m"], ["+", "path", "/x/a"]]
    assert ["+", "group", first.pid, ""] not in held() and ["+", "group", Guard.made[1].pid, ""] in held()
    assert keeper.guards() == 1
    keeper.forget("/x/a")
    keeper.unmark("m")
    assert keeper.guards() == 1 and len(Guard.made) == 2, "none is needed"


def test_what_a_guard_did_not_hear_the_next_one_is_told(state: Path) -> None:
    keeper.register("/x/a")
    Guard.made[0].hears = False
    keeper.register("/x/b")
    assert Guard.made[1].told == [["+", "path", "/x/a"], ["+", "path", "/x/b"]] and Guard.made[0].killed == 1
    for name in ("/x/a", "/x/b"):
        keeper.forget(name)


def test_a_guard_that_cannot_be_started_is_tried_again_a_second_later(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(keeper.time, "monotonic", lambda: now[0])
    Guard.refused = 1
    keeper.register("/x/a")
    keeper.register("/x/b")
    assert Guard.made == [] and held() == [["+", "path", "/x/a"], ["+", "path", "/x/b"]]
    now[0] += 1
    assert keeper.guards() == 0
    assert Guard.made[0].told == [["+", "path", "/x/a"], ["+", "path", "/x/b"]]
    for name in ("/x/a", "/x/b"):
        keeper.forget(name)


def test_every_guard_knows_how_long_to_bear_a_process_that_is_stopped(state: Path) -> None:
    keeper.keep_awake(5)
    keeper.register("/x/a")
    assert Guard.made[0].told == [["+", "path", "/x/a"], ["awake", 5]]
    keeper.keep_awake(6)
    assert Guard.made[0].told[2:] == [["awake", 6]]
    keeper.forget("/x/a")


def test_a_temp_folder_goes_when_it_is_dropped(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    one, other = keeper.temp_folder("akrunner-x-"), keeper.temp_folder("akrunner-x-")
    assert os.path.dirname(one) == str(tmp_path) and os.path.basename(one).startswith("akrunner-x-") and one != other
    assert os.stat(one).st_mode & 0o777 == 0o700 and [line[2] for line in held()[1:]] == [one, other]
    (Path(one) / "in").touch()
    keeper.drop(one)
    monkeypatch.setattr(keeper.ending, "remove", lambda path: False)
    keeper.drop(other)
    assert [line[2] for line in held()[1:]] == [other], "it is left to the guard"
    keeper.forget(other)


def test_a_child_made_by_fork_holds_nothing_and_takes_nothing_from_its_parent(state: Path) -> None:
    parent = keeper._keepers[0]
    with keeper.together():
        keeper.register("/x/a")
        lines = held()
        keeper._forked()
        try:
            assert Guard.made[0].dropped == 1 and keeper._keepers[0] is not parent
            keeper.register("/x/b")
            assert len(Guard.made) == 2 and held() == [["+", "group", Guard.made[1].pid, ""], ["+", "path", "/x/b"]]
            keeper.forget("/x/b")
        finally:
            child, keeper._keepers[0] = keeper._keepers[0], parent
        assert child._guard is None and held() == lines and Guard.made[0].left == 0
    keeper.forget("/x/a")
