"""Who watches a JobManager: what it asks, what an answer of another job's cluster says, and its own faults. (What a cluster that falls
silent does to it is in test_rest.py.)"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.engines.flink.host import watch as watch_module
from akrunner.engines.flink.host.watch import Watch
from akrunner.engines.flink.rest import Address
from akrunner.errors import ClusterError, JobManagerLostError


class Cluster:
    """In place of a REST service. Attributes: answer: what it says of a job's state; an error is raised."""

    master = "flink:8081"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: Any = "RUNNING"

    def state(self, job: str) -> str:
        self.asked.append(job)
        return self._said()

    def overview(self) -> None:
        self.asked.append("overview")
        self._said()

    def close(self) -> None:
        self.asked.append("close")

    def _said(self) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return str(self.answer)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(watch_module, "Rest", lambda master, seconds, keep: made)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(watch_module, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


Watching = Callable[[Callable[[], str]], Watch]


@pytest.fixture
def watching(cluster: Cluster, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watching]:
    """Makes a watch whose thread asks nothing."""
    monkeypatch.setattr(watch_module, "_EVERY_SECONDS", 1000.0)
    made: list[Watch] = []

    def make(job: Callable[[], str]) -> Watch:
        made.append(Watch(Address.of("flink:8081"), job))
        return made[-1]

    yield make
    for one in made:
        one.close()
        one._thread.join(30)
        assert not one._thread.is_alive()


def test_until_the_job_is_known_the_cluster_is_asked(watching: Watching, cluster: Cluster) -> None:
    ids = iter(["", "abc"])
    watch = watching(lambda: next(ids))
    assert watch.state == ""
    assert watch.asked() and watch.state == "" and cluster.asked == ["overview"]
    assert watch.asked() and watch.state == "RUNNING" and cluster.asked == ["overview", "abc"]


def test_another_cluster_at_the_address_counts_as_gone(watching: Watching, cluster: Cluster, clock: SimpleNamespace) -> None:
    watch = watching(lambda: "abc")
    assert watch.asked()
    cluster.answer = ClusterError("master=: there is no http://flink:8081/jobs/abc/status", missing=True)
    assert not watch.asked() and not watch.asked()
    watch.check()
    clock.now += 8.1
    with pytest.raises(JobManagerLostError) as caught:
        watch.check()
    assert str(caught.value) == (
        "the JobManager at flink:8081 is gone: one that does not know the job abc answers in its place; what it ran has ended with it, "
        "or cannot be known"
    )
    assert watch.state == "RUNNING", "the last word that was heard"


def test_an_answer_makes_good_what_was_missed(watching: Watching, cluster: Cluster, clock: SimpleNamespace) -> None:
    watch = watching(lambda: "abc")
    assert watch.asked()
    for _ in range(3):
        clock.now += 7.0
        cluster.answer = ClusterError("master=: no answer")
        assert not watch.asked() and not watch.asked()
        cluster.answer = "RUNNING"
        assert watch.asked()
        watch.check()


def test_one_question_in_vain_is_no_silence(watching: Watching, cluster: Cluster, clock: SimpleNamespace) -> None:
    watch = watching(lambda: "abc")
    assert watch.asked()
    cluster.answer = ClusterError("master=: no answer")
    assert not watch.asked()
    clock.now += 100.0
    watch.check()


def test_a_fault_of_its_own_is_the_reason(cluster: Cluster, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "_EVERY_SECONDS", 0.001)
    asked = threading.Event()

    def job() -> str:
        if len(cluster.asked) == 0:
            return "abc"
        if watch._unanswered >= 3:
            asked.set()
        raise AttributeError("no such thing")

    watch = Watch(Address.of("flink:8081"), job)
    assert asked.wait(30)
    clock.now += 8.1
    with pytest.raises(JobManagerLostError, match="flink:8081 is gone: AttributeError: no such thing; what it ran"):
        watch.check()
    watch.close()
    watch._thread.join(30)
    assert not watch._thread.is_alive()
