"""`FlinkEngine`: its arguments, what is checked before a job is submitted, and which processes and subtasks are kept for the next job."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import engine as engine_module
from akrunner.engines.flink.host import kept
from akrunner.engines.flink.host.client import Submission
from akrunner.engines.flink.host.table import FlinkTable
from akrunner.engines.flink.rest import Address
from akrunner.errors import ConfigError, StartError
from akrunner.io.table import TableSource
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ResourceSpec, ScriptSpec, SupervisionSpec

SCHEMA = Schema.from_arrow(pa.schema([("a", pa.int64())]))


def job(**options: Any) -> JobSpec:
    return JobSpec(ScriptSpec("s.py", "s.py"), SCHEMA, "/py", **options)


# -- its arguments


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"master": 8081}, "master must be text, not 8081"),
        ({"master": "flink"}, "master='flink'"),
        ({"host": ""}, "host"),
        ({"host": "a b"}, "host"),
        ({"python": ""}, "python"),
        ({"python_executable": 3}, "python_executable"),
        ({"parallelism": 0}, "parallelism"),
        ({"parallelism": 1.5}, "parallelism"),
        ({"port": 0}, "port"),
        ({"port": 65535}, "port"),
        ({"tls": "yes"}, "tls"),
        ({"files_there": 1}, "files_there"),
        ({"java_operators": None}, "java_operators"),
        ({"slot_timeout": 0}, "slot_timeout"),
        ({"slot_timeout": "soon"}, "slot_timeout"),
        ({"options": "a=b"}, "options"),
        ({"options": {"a": object()}}, "options"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=f"^{words}"):
        FlinkEngine(**given)


def test_by_default_it_is_a_cluster_of_this_pythons_own() -> None:
    engine = FlinkEngine()
    assert (engine.master, engine.python, engine.python_executable) == ("local", sys.executable, sys.executable)
    assert engine.capabilities.pyflink and not engine.capabilities.here
    assert not engine.capabilities.detaches and not engine.capabilities.unpacks


def test_a_cluster_elsewhere_unpacks_and_keeps_jobs_of_its_own() -> None:
    engine = FlinkEngine("flink:8081", python="envs/py", parallelism=3, port=65534)
    assert engine.capabilities.detaches and engine.capabilities.unpacks and engine.capabilities.parallelism == 3
    assert engine.python.endswith("/envs/py") and engine.python.startswith("/") and engine.python_executable == engine.python


def test_the_same_engine_is_made_in_another_process() -> None:
    given: dict[str, Any] = {
        "python": "/py", "python_executable": "/there/py", "parallelism": 3, "host": "10.0.0.1", "port": 7001, "tls": False,
        "slot_timeout": 5.0, "files_there": False, "java_operators": False, "options": {"rest.port": "1"},
    }  # fmt: skip
    engine = FlinkEngine("https://me:geheim@flink/a", **given)
    again = pickle.loads(pickle.dumps(engine))
    assert {name: getattr(again, name) for name in given} == given
    assert again.master == engine.master == "https://flink:443/a"
    assert again._address.headers == engine._address.headers != {}
    assert "geheim" not in repr(engine) + engine.master


def test_another_process_may_have_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data, own = pickle.dumps(FlinkEngine(python="envs/py")), pickle.dumps(FlinkEngine())
    monkeypatch.chdir("/")
    again = pickle.loads(data)
    assert again.python == again.python_executable == str(tmp_path / "envs" / "py")
    monkeypatch.setattr(sys, "executable", "/other/py")
    assert pickle.loads(own).python == "/other/py", "that process's own, if none was given"


# -- what is checked


class Clusters:
    """In place of Java, of PyFlink and of a cluster: what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.version = "2.3.0"
        self.error: Exception | None = None

    def java_home(self, python: str) -> str:
        self.asked.append("java")
        if self.error is not None:
            raise self.error
        return "/java"

    def pyflink_version(self, python: str) -> str:
        self.asked.append("pyflink")
        return "2.3.0"

    def check_version(self, cluster: Any, python: str, version: str) -> None:
        self.asked.append(("version", cluster.master, version))

    def check_slots(self, cluster: Any, needed: int) -> None:
        self.asked.append(("slots", cluster.master, needed))


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    made = Clusters()
    for name in ("java_home", "pyflink_version", "check_version", "check_slots"):
        monkeypatch.setattr(engine_module, name, getattr(made, name))
    monkeypatch.setattr(kept, "Client", Client)
    clients.clear()
    return made


@pytest.mark.parametrize("resources", [ResourceSpec(gpus_per_worker=1), ResourceSpec(cpus_per_worker=2)])
def test_shares_of_a_machine_are_the_clusters_to_say(resources: ResourceSpec, clusters: Clusters) -> None:
    with pytest.raises(ConfigError, match="gpus_per_worker, cpus_per_worker: .*leave them out"):
        FlinkEngine().check(job(resources=resources))
    assert clusters.asked == []


def test_the_local_cluster_needs_java_and_pyflink_once(clusters: Clusters) -> None:
    engine = FlinkEngine()
    engine.check(job())
    engine.check(job())
    assert clusters.asked == ["java", "pyflink"]


def test_a_cluster_needs_its_version_and_a_slot_for_each_task(clusters: Clusters) -> None:
    engine = FlinkEngine("flink:8081")
    engine.check(job(cluster=ClusterSpec(2, 1)))
    assert clusters.asked == ["java", "pyflink", ("version", "flink:8081", "2.3.0"), ("slots", "flink:8081", 3)]


def test_without_java_nothing_else_is_asked(clusters: Clusters) -> None:
    clusters.error = ConfigError("Flink needs Java 11 or 17")
    with pytest.raises(ConfigError, match="Flink needs Java"):
        FlinkEngine("flink:8081").check(job())
    assert clusters.asked == ["java"]


def table(master: str = "local", checkpoints: bool = False, compile: bool = True) -> Any:
    """A program's table, in place of PyFlink's."""
    made = SimpleNamespace(
        master=master, has_checkpoints=checkpoints, operators_compile=lambda: compile, table="the table", modes=[],
        slots=lambda job: 7,
    )  # fmt: skip
    made.check = made.modes.append
    return made


@pytest.mark.parametrize("master", ["local", "program:8081"])
def test_the_cluster_of_a_programs_table_is_the_programs(master: str, clusters: Clusters) -> None:
    source = table(master)
    FlinkEngine("flink:8081").check(job(mode="stream"), source)
    assert source.modes == ["stream"]
    asked = ["pyflink", ("version", master, "2.3.0"), ("slots", master, 7)]
    assert clusters.asked == (asked if master != "local" else [])


@pytest.mark.parametrize(
    ("options", "source", "restarts", "words"),
    [
        ({}, table(), -1, "max_restarts"),
        ({"supervision": SupervisionSpec(max_restarts=1)}, table(), 0, "max_restarts: Flink starts a program's own job again"),
        ({"mode": "stream"}, table(), 1, "max_restarts: Flink starts a program's own job again"),
        ({"mode": "stream"}, table(checkpoints=True, compile=False), 0, "java_operators: without them no checkpoint"),
        (
            {"mode": "stream", "cluster": ClusterSpec(1, 1)},
            table(checkpoints=True),
            0,
            "num_ps=, evaluator=: tasks without rows",
        ),
        ({"resources": ResourceSpec(gpus_per_worker=1)}, table(), 0, "gpus_per_worker, cpus_per_worker"),
    ],
)
def test_what_a_program_cannot_run_is_said_before_it_is_built(
    options: dict[str, Any], source: Any, restarts: int, words: str, clusters: Clusters
) -> None:
    with pytest.raises(ConfigError, match=f"^{words}"):
        FlinkEngine().attach(job(**options), source, None, restarts)


def test_operators_in_java_are_not_tried_where_they_are_not_wanted() -> None:
    def tried() -> bool:
        raise AssertionError

    source = table()
    source.operators_compile = tried
    assert not FlinkEngine(java_operators=False)._in_java(source)


@pytest.mark.parametrize("master", ["local", "flink:8081"])
def test_machines_read_and_write_files_themselves_only_on_a_cluster(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Parts:
        spread = True

    monkeypatch.setattr(engine_module, "PartsSink", Parts)
    monkeypatch.setattr("akrunner.engines.flink.host.files.SharedFiles.of", lambda *given: given)
    there = master != "local"
    parts: Any = Parts()
    engine = FlinkEngine(master)
    found = engine._files(job(cluster=ClusterSpec(2)), "source")  # type: ignore[arg-type]
    assert found == (("source", 2, True, False) if there else None)
    clear = FlinkEngine("flink:8081", tls=False, files_there=True)
    assert clear._files(job(), "source") == ("source", 1, False, True)  # type: ignore[arg-type,comparison-overlap]
    program = FlinkTable(pa.schema([]), lambda: iter(()), "the PyFlink table", elsewhere=True, table="t")
    assert clear._files(job(), program) is None, "Flink itself brings those rows"
    for must, mode in ((FlinkEngine(master, files_there=True), "stream"), (FlinkEngine("local", files_there=True), "batch")):
        with pytest.raises(ConfigError, match=r"^files_there=True \(--flink-files-there\)"):
            must._files(job(mode=mode), "source")  # type: ignore[arg-type]
    assert engine._files(job(mode="stream"), "source") is None  # type: ignore[arg-type]
    held = TableSource(pa.schema([]), lambda: iter(()), held=lambda readers, trusted: None)  # type: ignore[arg-type,return-value]
    monkeypatch.setattr("akrunner.engines.flink.host.databases.SharedTable.of", lambda *given: given)
    assert clear._files(job(), held) == (held, 1, False, True)  # type: ignore[comparison-overlap]
    assert (engine._parts(parts) is parts) is there and engine._parts(None) is None
    here = FlinkEngine(master, files_there=False)
    assert here._files(job(), "source") is None and here._parts(parts) is None  # type: ignore[arg-type]
    parts.spread = False
    assert engine._parts(parts) is None


# -- what is kept


class Client:
    """In place of the process with Java."""

    def __init__(self, python: str, java: str, cluster: Address | None) -> None:
        self.alive = True
        self.closed = False
        self.orders: list[Any] = []
        self.answer: tuple[str, str | None] = ("j1", None)
        clients.append(self)

    def submit(self, order: Any) -> Submission:
        self.orders.append(order)
        made = Submission()
        made.id, made.failed = self.answer
        made.known.set()
        return made

    def close(self) -> None:
        self.closed = True


clients: list[Client] = []


class Subtasks:
    """In place of a Flink job."""

    def __init__(self, client: Any, host: str, count: int, order: Any, *given: Any) -> None:
        self.client, self.host, self.count, self.order = client, host, count, order
        self.submitted = Submission()
        self.lost = False
        self.usable = True
        self.closed = False

    def can_be_used(self) -> bool:
        return self.usable

    def close(self) -> None:
        self.closed = True
        self.submitted.ended.set()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, clusters: Clusters) -> Callable[..., FlinkEngine]:
    monkeypatch.setattr("akrunner.engines.flink.host.subtasks.Subtasks", Subtasks)
    monkeypatch.setattr(engine_module, "issued", lambda tls: SimpleNamespace(host=tls, agents=tls))
    return FlinkEngine


def test_each_job_has_subtasks_of_its_own(made: Callable[..., FlinkEngine]) -> None:
    engine = made(python_executable="/there/py", options={"a": "b"})
    taken: Any = engine.acquire(2, "akrunner s.py")
    assert (taken.count, taken.host) == (2, "127.0.0.1")
    assert taken.order == {"python": "/there/py", "options": {"a": "b"}, "name": "akrunner s.py"}
    engine.release(taken)
    assert taken.closed and clients[0].closed


@pytest.mark.parametrize("kept", [False, True])
def test_a_client_goes_if_its_job_has_no_port(
    kept: bool, made: Callable[..., FlinkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not one that is kept for the next job."""

    def taken(*given: Any) -> None:
        raise ConfigError("cannot listen")

    monkeypatch.setattr("akrunner.engines.flink.host.subtasks.Subtasks", taken)
    engine = made()
    engine._keeps = kept
    with pytest.raises(ConfigError, match="cannot listen"):
        engine.acquire(2, "akrunner s.py")
    assert [client.closed for client in clients] == [not kept]


def test_within_the_block_they_are_kept_if_they_are_enough(made: Callable[..., FlinkEngine]) -> None:
    with made(host="10.0.0.1") as engine:
        first: Any = engine.acquire(3, "one")
        assert first.host == "10.0.0.1"
        engine.release(first)
        assert not first.closed and engine.acquire(2, "two") is first
        engine.release(first)
        more: Any = engine.acquire(4, "three")
        assert more is not first and first.closed, "its slots may be needed"
        assert len(clients) == 1 and not clients[0].closed
        engine.release(more)
        more.usable = False
        assert engine.acquire(4, "four") is not more and more.closed
    assert clients[0].closed and engine._client is None


def test_what_is_kept_needs_no_check(made: Callable[..., FlinkEngine], clusters: Clusters) -> None:
    with made("flink:8081", host="10.0.0.1") as engine:
        engine.release(engine.acquire(2, "one"))
        clusters.asked.clear()
        engine.check(job(cluster=ClusterSpec(2)))
        assert clusters.asked == [] and len(engine._kept) == 1
        engine.check(job(cluster=ClusterSpec(3)))
        assert clusters.asked[-1] == ("slots", "flink:8081", 3) and engine._kept == []


@pytest.mark.parametrize("why", ["lost", "not ended", "dead"])
def test_a_client_that_is_not_well_is_not_used_again(why: str, made: Callable[..., FlinkEngine]) -> None:
    with made() as engine:
        taken: Any = engine.acquire(1, "one")
        taken.usable = False
        taken.lost = why == "lost"
        if why == "not ended":
            taken.close = lambda: None
        clients[0].alive = why != "dead"
        engine.release(taken)
        assert clients[0].closed
        engine.acquire(1, "two")
        assert len(clients) == 2


def test_attempts_of_a_job_share_a_process_and_jobs_beside_each_other_do_not(made: Callable[..., FlinkEngine]) -> None:
    engine = made("flink:8081", host="10.0.0.1")
    with engine._client_kept():
        first = engine._live_client()
        assert engine._live_client() is first
        with engine._client_kept():
            assert engine._live_client() is not first
        assert not first.closed  # type: ignore[attr-defined]
    assert first.closed and engine._client is None  # type: ignore[attr-defined]


def test_a_kept_client_that_has_died_leaves_nothing(made: Callable[..., FlinkEngine]) -> None:
    with made("flink:8081", host="10.0.0.1") as engine:
        first: Any = engine._live_client()
        first.alive = False
        second: Any = engine._live_client()
        assert second is not first and first.closed and not second.closed


def test_a_local_cluster_goes_with_each_attempt(made: Callable[..., FlinkEngine]) -> None:
    engine = made()
    with engine._client_kept():
        assert engine._live_client() is not engine._live_client()


# -- a detached job


def test_a_detached_jobs_id_is_known_and_its_keys_are_divided(
    made: Callable[..., FlinkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module.dataclasses, "asdict", lambda keys: {"tls": keys})
    engine = made("flink:8081", port=7001)
    assert engine.detach(job(cluster=ClusterSpec(2)), "akrunner.detached.host", "/a.zip", "akrunner s.py", "tag") == "j1"
    (order,) = clients[0].orders
    assert order["host"] == {"keys": {"tls": True}, "port": 7001} and order["agents"] == {"tls": True}
    assert (order["subtasks"], order["module"], order["archive"], order["tag"]) == (
        2,
        "akrunner.detached.host",
        "/a.zip",
        "tag",
    )
    assert clients[0].closed, "the job goes on without it"


def test_a_detached_job_that_flink_does_not_take_is_said(
    made: Callable[..., FlinkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module.dataclasses, "asdict", lambda keys: {})
    for fault in (False, True):
        monkeypatch.setattr(Client, "submit", lambda self, order, fault=fault: refused(fault))
        with pytest.raises(StartError, match="^Flink did not take the job: no such jar$") as caught:
            made("flink:8081").detach(job(), "m", "/a.zip", "n", "t")
        assert caught.value.fault is fault and clients[-1].closed


def refused(fault: bool) -> Submission:
    submission = Submission()
    submission.fails("no such jar", fault)
    return submission


def test_there_is_no_sql_without_pyflink_in_this_process() -> None:
    assert FlinkEngine(python="/another").sql(1) is None
    assert FlinkEngine().sql(1) is None
