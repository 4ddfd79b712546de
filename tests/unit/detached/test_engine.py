"""The engine in a detached job's host: it tells where it is, has the same subtasks for every attempt, and leaves with them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from akrunner.detached import engine as detached_engine
from akrunner.detached.engine import DetachedEngine, addresses
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.errors import ConfigError, ScriptFailedError
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ResourceSpec, ScriptSpec

JOB = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "/py", cluster=ClusterSpec(3))
KEYS = {"token": "t", "authority": "a", "certificate": "c", "key": "k"}
made: list[Subtasks] = []


class Subtasks:
    """In place of the job's. It is submitted as the real one is."""

    def __init__(self, client: Any, host: str, count: int, order: Any, keys: Any, port: int | None = None) -> None:
        self.given = host, count, keys, port
        self.done: list[str] = []
        self.submitted = client.submit({"subtasks": count, "door": {"port": 7001, "rows": 7002}})
        made.append(self)

    def leave(self) -> None:
        self.done.append("left")

    def disconnect(self) -> None:
        self.done.append("disconnected")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    made.clear()
    monkeypatch.setattr(detached_engine, "Subtasks", Subtasks)
    monkeypatch.setattr(detached_engine, "addresses", lambda: ["10.0.0.1", "127.0.0.1"])
    monkeypatch.setattr(socket, "gethostname", lambda: "node-1")
    yield []


def test_it_says_once_where_it_is_and_runs_with_the_subtasks_that_come(
    said: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: DetachedEngine, *given: Any) -> str:
        assert given == (JOB, "source", "sink", None, None)
        first, second = self.acquire(3, "one"), self.acquire(3, "two")
        assert first is second is made[0]
        self.release(first)
        assert made[0].done == [], "they stay until the job ends"
        return "its outcome"

    monkeypatch.setattr(FlinkEngine, "run", run)
    engine = DetachedEngine(lambda **told: said.append(told), True, KEYS, 7001)
    assert said == [] and engine.master == "detached"
    assert engine.run(JOB, "source", "sink", None) == "its outcome"  # type: ignore[arg-type, comparison-overlap]
    assert said == [{"addresses": ["10.0.0.1", "127.0.0.1"], "port": 7001, "rows": 7002, "machine": "node-1"}]
    host, count, keys, port = made[0].given
    assert (host, count, port) == ("0.0.0.0", 3, 7001)
    assert (keys.host.token, keys.host.key, keys.agents.token) == ("t", "k", ""), "the agents have theirs"
    assert made[0].done == ["left", "disconnected"]
    assert not made[0].submitted.ended.is_set()


def test_they_leave_after_a_failure_too(said: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: DetachedEngine, *given: Any) -> None:
        raise ScriptFailedError("its script failed")

    monkeypatch.setattr(FlinkEngine, "run", run)
    with pytest.raises(ScriptFailedError):
        DetachedEngine(lambda **told: None, True, KEYS, None).run(JOB, "source", None, None)  # type: ignore[arg-type]
    assert made[0].done == ["left", "disconnected"]


def test_its_client_has_checked_all_but_what_no_cluster_gives() -> None:
    engine = DetachedEngine(lambda **told: None, True, KEYS, None)
    engine.check(JOB)
    with pytest.raises(ConfigError, match="gpus_per_worker, cpus_per_worker"):
        engine.check(JobSpec(JOB.script, JOB.schema, "/py", resources=ResourceSpec(gpus_per_worker=1)))


@pytest.mark.parametrize("files_there", [True, False])
def test_machines_of_the_cluster_may_read_files_themselves(files_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.engines.flink.host.files.SharedFiles.of", lambda source, tasks, *how: tasks)
    engine = DetachedEngine(lambda **told: None, files_there, KEYS, None)
    assert engine._files(JOB, "source") == (3 if files_there else None)  # type: ignore[arg-type]


def test_addresses_that_others_reach_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def address(text: str, family: int = socket.AF_INET) -> Any:
        return SimpleNamespace(address=text, family=family)

    cards = {
        "lo": [address("127.0.0.1"), address("::1", socket.AF_INET6)],
        "eth0": [address("fe80::1", socket.AF_INET6), address("10.1.2.3"), address("00:11", psutil.AF_LINK)],
        "eth1": [address("10.9.9.9")],
        "wlan0": [address("192.168.0.7")],
    }
    up = {name: SimpleNamespace(isup=name != "eth1") for name in cards}
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: cards)
    monkeypatch.setattr(psutil, "net_if_stats", lambda: up)
    assert addresses() == ["10.1.2.3", "192.168.0.7", "127.0.0.1"]
