"""What a job has registered with the guard process, and that all of it is forgotten when the job is over."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner import leftovers
from akrunner.launch.guard import Guard


class Keeper:
    """Stands for `akrunner.leftovers`: what is registered there now."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self.lost = 0


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    made = Keeper()
    made.held.append("another job's")
    for name in ("watch", "mark", "register"):
        monkeypatch.setattr(leftovers, name, made.held.append)
    for name in ("unwatch", "unmark", "forget"):
        monkeypatch.setattr(leftovers, name, lambda one: made.held.remove(one) if one in made.held else None)
    monkeypatch.setattr(leftovers, "guards", lambda: made.lost)
    return made


def test_all_is_registered_and_all_is_forgotten_in_the_end(keeper: Keeper) -> None:
    with Guard() as guard:
        guard.remove("/work")
        guard.watch_mark("job-1")
        guard.watch(17)
        assert keeper.held == ["another job's", "/work", "job-1", 17]
    assert keeper.held == ["another job's"]


def test_all_is_forgotten_after_an_error(keeper: Keeper) -> None:
    with pytest.raises(KeyError), Guard() as guard:
        guard.remove("/work")
        guard.watch(17)
        raise KeyError("the job failed")
    assert keeper.held == ["another job's"]


def test_what_has_ended_by_itself_is_forgotten_at_once(keeper: Keeper) -> None:
    with Guard() as guard:
        guard.watch(17)
        guard.watch(18)
        guard.watch_mark("job-1")
        guard.forget(17)
        guard.forget_mark("job-1")
        assert keeper.held == ["another job's", 18]
        guard.forget(99)  # never watched
        guard.forget_mark("none")
        keeper.held.append(17)  # by now the number of a process group of another job
    assert keeper.held == ["another job's", 17]


def test_a_guard_that_was_replaced_is_told_of_once(keeper: Keeper) -> None:
    keeper.lost = 3
    with Guard() as guard:
        assert guard.check() is None
        keeper.lost = 4
        assert "was killed itself; another one took its place" in str(guard.check())
        assert guard.check() is None
