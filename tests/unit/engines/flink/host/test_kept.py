"""When a process that submits to Flink waits for the next job, which job takes it, and when it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.engines.flink.host import kept
from akrunner.engines.flink.rest import Address
from akrunner.spares import registry

THERE = Address.of("flink:8081")


class Client:
    """In place of the process. Attributes: given: what it was made with."""

    made: list[Client] = []

    def __init__(self, *given: Any) -> None:
        self.given, self.alive, self.idle, self.well, self.closed = given, True, True, True, 0
        Client.made.append(self)

    def is_well(self) -> bool:
        return self.well

    def close(self) -> None:
        self.closed += 1
        self.alive = False


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pool of warm workers, no notebook, and nothing that is kept."""
    Client.made.clear()
    monkeypatch.setattr(kept, "Client", Client)
    monkeypatch.setattr(kept, "_kept", [])
    monkeypatch.setattr(kept, "_given", {})
    monkeypatch.setattr(registry, "_pools", [SimpleNamespace(knows=lambda python: False)])
    monkeypatch.delenv("AKRUNNER_WARM", raising=False)
    yield
    kept.close()


def start(python: str = "/py", java: str = "/java", cluster: Address | None = THERE) -> Any:
    return kept.start(python, java, cluster)


def test_the_next_job_takes_what_the_last_one_has_given_back() -> None:
    first = start()
    assert first.given == ("/py", "/java", THERE) and kept.waiting() == 0
    kept.over(first)
    assert kept.waiting() == registry.waiting_beside() == 1 and not first.closed
    assert start() is first and kept.waiting() == 0
    assert start() is not first, "a job has it"


@pytest.mark.parametrize(
    "other",
    [
        {"python": "/other"},
        {"java": "/other"},
        {"cluster": Address.of("flink:8082")},
        {"cluster": Address.of("http://me:geheim@flink:8081")},
    ],
    ids=["an interpreter", "a Java", "a cluster", "credentials"],
)
def test_a_job_that_wants_another_one_does_not_take_it(other: dict[str, Any]) -> None:
    first = start()
    kept.over(first)
    assert start(**other) is not first and start() is first


def test_a_variable_counts_if_it_may_be_read_there(monkeypatch: pytest.MonkeyPatch) -> None:
    first = start()
    kept.over(first)
    monkeypatch.setenv("FLINK_CONF_DIR", "/other")
    assert start() is not first
    monkeypatch.delenv("FLINK_CONF_DIR")
    for name in ("XDG_STATE_HOME", "TMPDIR", "AKRUNNER_PROJECT"):
        monkeypatch.setenv(name, "/other")
    assert start() is first


@pytest.mark.parametrize("what", ["no warm workers", "AKRUNNER_WARM", "local"])
def test_without_warm_workers_and_with_a_cluster_inside_it_goes_with_its_job(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start()
    if what == "no warm workers":
        monkeypatch.setattr(registry, "_pools", [])
    elif what == "AKRUNNER_WARM":
        monkeypatch.setenv("AKRUNNER_WARM", "0")
    else:
        first = start(cluster=None)
    kept.over(first)
    assert first.closed == 1 and kept.waiting() == 0
    assert start() is not first


def test_in_a_notebook_it_is_kept_without_being_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_pools", [])
    monkeypatch.setattr(registry, "in_notebook", lambda: True)
    first = start()
    kept.over(first)
    assert start() is first


def test_one_that_has_died_or_has_a_job_left_is_not_kept() -> None:
    first = start()
    first.idle = False
    kept.over(first)
    assert first.closed == 1 and kept.waiting() == 0


def test_one_that_died_or_changed_while_it_waited_is_not_taken() -> None:
    first = start()
    kept.over(first)
    first.well = False
    assert start() is not first and first.closed == 1, "nothing of it is left"


def test_few_are_kept() -> None:
    three = [start() for _ in range(3)]
    for one in three:
        kept.over(one)
    assert [one.closed for one in three] == [1, 0, 0] and kept.waiting() == 2


def test_all_end_with_the_last_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    first = start()
    kept.over(first)
    registry.close_beside()
    assert not first.closed, "there is another pool"
    monkeypatch.setattr(registry, "_pools", [])
    registry.close_beside()
    assert first.closed == 1 and kept.waiting() == 0


def test_one_that_nobody_takes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "IDLE_SECONDS", 0.01)
    gone = threading.Event()
    monkeypatch.setattr(Client, "close", lambda self: gone.set())
    kept.over(start())
    assert gone.wait(60) and kept.waiting() == 0


def test_a_child_made_by_fork_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, works = start(), start()
    kept.over(waits)
    monkeypatch.setattr(kept, "_parents", [])
    kept._kept[0].timer.cancel()
    # a thread of the parent's has it just then
    kept._lock.acquire()
    kept._forked()
    assert start() not in (waits, works) and waits.closed == works.closed == 0
