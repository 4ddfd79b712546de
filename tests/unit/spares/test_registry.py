"""Which pools of warm workers jobs of this process may take from, and when one comes by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.spares import registry
from akrunner.spares.wanted import Wanted

MINE = Wanted("/python", {}, "", (), {}, {})


class Pool:
    """Attributes: given: what it was made with; closed: how often."""

    made: list[Pool] = []

    def __init__(self, *given: Any, pythons: tuple[str, ...] = (), **more: Any) -> None:
        self.given, self.more, self._pythons, self.closed = given, more, pythons, 0
        Pool.made.append(self)

    def knows(self, python: str) -> bool:
        return python in self._pythons

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No pools, and no notebook."""
    Pool.made.clear()
    monkeypatch.setattr(registry, "_pools", [])
    monkeypatch.setattr(registry, "_own", [])
    monkeypatch.setattr(registry, "Pool", Pool)
    monkeypatch.setattr(registry, "memory_bytes", lambda: 4096)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    yield


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))


def add(pool: Any) -> Any:
    registry.add(pool)
    return pool


def test_the_newest_comes_first_and_before_it_those_that_know_the_interpreter() -> None:
    old, older = add(Pool(pythons=("/a",))), add(Pool())
    new = add(Pool(pythons=("/b",)))
    assert registry.pools() == [new, older, old]
    assert registry.pools("/a") == [old, new, older] and registry.pools("/b") == [new, older, old]


def test_one_that_is_removed_is_taken_from_no_more() -> None:
    one, other = add(Pool()), add(Pool())
    registry.remove(one)
    registry.remove(one)
    assert registry.pools() == [other] and one.closed == 0


@pytest.mark.parametrize(
    "shell, kernel",
    [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)],
    ids=["no shell", "terminal", "kernel"],
)
def test_whether_this_is_a_notebook(shell: Any, kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not registry.in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert registry.in_notebook() is kernel
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    assert not registry.in_notebook()


def test_in_a_notebook_the_first_job_leaves_workers_for_the_next(notebook: None) -> None:
    registry.after_job([MINE] * 3)
    (own,) = registry.pools()
    wants, workers, preload, _, most = own.given  # type: ignore[attr-defined]
    assert (wants, workers, preload, most) == ([MINE] * 3, 2, ("tensorflow",), 1024)
    assert own.more == {"hurry": False}  # type: ignore[attr-defined]
    registry.after_job([MINE])
    assert len(Pool.made) == 1, "one is enough"


def test_nothing_comes_by_itself_elsewhere_or_for_nothing(notebook: None, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.after_job([])
    asked_for = add(Pool())
    registry.after_job([MINE])
    registry.remove(asked_for)
    monkeypatch.delitem(sys.modules, "IPython")
    registry.after_job([MINE])
    assert Pool.made == [asked_for] and registry.pools() == []


def test_what_has_come_by_itself_goes_when_somebody_keeps_others(notebook: None) -> None:
    registry.after_job([MINE])
    (own,) = Pool.made
    other = add(Pool())
    assert registry.pools() == [other] and own.closed == 1
    add(Pool())
    assert own.closed == 1 and other.closed == 0


@pytest.mark.parametrize("error", [OSError("no place"), RuntimeError("no threads")])
def test_one_nobody_has_asked_for_fails_without_a_word(
    error: Exception, notebook: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any, **more: Any) -> Any:
        raise error

    monkeypatch.setattr(registry, "Pool", refuse)
    registry.after_job([MINE])
    assert registry.pools() == []


def test_a_child_made_by_fork_has_none_of_its_parents(notebook: None) -> None:
    registry.after_job([MINE])
    registry._forked()
    assert registry.pools() == []
    other = add(Pool())
    assert registry.pools() == [other] and [pool.closed for pool in Pool.made] == [0, 0]
