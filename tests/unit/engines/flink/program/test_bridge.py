"""Tables of a PyFlink program: their types in Arrow and in Flink, what their environment allows, and where their jobs run; a stand-in takes
PyFlink's place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec
from tests.unit.engines.flink.pyflink_stand_in import (
    Configuration,
    DataStream,
    JobClient,
    Py4JError,
    Table,
    TableResult,
    imported,
)
from tests.unit.engines.flink.test_rest import answering, saying


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    with imported("program.bridge") as made:
        yield made


@pytest.fixture
def bridge(module: Any) -> Any:
    module.operators_compile.cache_clear()
    return module


def job(**options: Any) -> JobSpec:
    return JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "/py", **options)


# -- tables and their types


def test_a_table_is_itself_and_a_stream_is_made_one(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table()
    assert bridge.table_of(table) is table
    made: list[Any] = []

    def create(environment: Any) -> Any:
        made.append(environment._j_stream_execution_environment)
        return SimpleNamespace(from_data_stream=lambda stream: ("a table of", stream))

    monkeypatch.setattr(bridge.StreamTableEnvironment, "create", create, raising=False)
    stream = DataStream(SimpleNamespace(getExecutionEnvironment=lambda: "its environment"))
    assert bridge.table_of(stream) == ("a table of", stream) and made == ["its environment"]


@pytest.mark.parametrize("source", [None, 3, "table", [1]])
def test_anything_else_is_no_table(source: Any, bridge: Any) -> None:
    words = f"^source: a PyFlink Table or DataStream is a table, not {type(source).__name__}$"
    with pytest.raises(ConfigError, match=words):
        bridge.table_of(source)


def typed(*precisions: int | None) -> Table:
    """A table whose columns have that precision."""
    types = [SimpleNamespace(getLogicalType=lambda one=one: SimpleNamespace(getPrecision=lambda: one)) for one in precisions]
    resolved = SimpleNamespace(getColumnDataTypes=lambda: types)
    return Table(SimpleNamespace(getResolvedSchema=lambda: resolved), None, tuple("abcdefghijk"[: len(precisions)]))


def test_a_moment_is_as_precise_as_its_column(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def schema(names: list[str], kinds: Any) -> pa.Schema:
        return pa.schema([(name, pa.timestamp("ms", "UTC" if name == "b" else None)) for name in names])

    monkeypatch.setattr(bridge, "create_arrow_schema", schema)
    found = bridge.arrow_schema(typed(0, 1, 3, 4, 6, 7, 9))
    assert [field.type.unit for field in found] == ["s", "ms", "ms", "us", "us", "ns", "ns"]
    assert [field.type.tz for field in found] == [None, "UTC", None, None, None, None, None]


def test_other_columns_stay_as_they_are(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    monkeypatch.setattr(bridge, "create_arrow_schema", lambda names, kinds: schema)
    assert bridge.arrow_schema(typed(None, None)) == schema


@pytest.mark.parametrize("error", [ValueError("field_type MAP is not supported."), TypeError("Unsupported type: MULTISET.")])
def test_a_type_that_arrow_does_not_have_is_said(error: Exception, bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(names: Any, kinds: Any) -> None:
        raise error

    monkeypatch.setattr(bridge, "create_arrow_schema", fails)
    with pytest.raises(ConfigError, match=r"^source: .*supported.* CAST\(column AS STRING\)|^source: Unsupported type"):
        bridge.arrow_schema(typed(None))


@pytest.mark.parametrize(
    ("arrow", "flink"),
    [
        (pa.int8(), "TINYINT()"), (pa.int16(), "SMALLINT()"), (pa.int32(), "INT()"), (pa.int64(), "BIGINT()"),
        (pa.float32(), "FLOAT()"), (pa.float64(), "DOUBLE()"), (pa.bool_(), "BOOLEAN()"),
        (pa.string(), "STRING()"), (pa.large_string(), "STRING()"), (pa.binary(), "BYTES()"), (pa.large_binary(), "BYTES()"),
        (pa.date32(), "DATE()"), (pa.time32("ms"), "TIME(3)"), (pa.time64("us"), "TIME(3)"), (pa.decimal128(38, 9), "DECIMAL(38, 9)"),
        (pa.decimal256(38, 38), "DECIMAL(38, 38)"),
        (pa.timestamp("s"), "TIMESTAMP(0)"), (pa.timestamp("ms"), "TIMESTAMP(3)"), (pa.timestamp("us"), "TIMESTAMP(6)"),
        (pa.timestamp("us", "UTC"), "TIMESTAMP_LTZ(6)"), (pa.timestamp("s", "Asia/Tokyo"), "TIMESTAMP_LTZ(0)"),
        (pa.timestamp("ns"), "TIMESTAMP(9)"), (pa.list_(pa.float32()), "ARRAY(FLOAT())"), (pa.list_(pa.int64(), 3), "ARRAY(BIGINT())"),
        (pa.large_list(pa.list_(pa.string())), "ARRAY(ARRAY(STRING()))"),
    ],
)  # fmt: skip
def test_a_column_has_flinks_type(arrow: pa.DataType, flink: str, bridge: Any) -> None:
    assert str(bridge.flink_type("a", arrow)) == flink


@pytest.mark.parametrize(
    "arrow",
    [
        pa.uint64(), pa.date64(), pa.string_view(), pa.binary(3), pa.null(), pa.duration("s"),
        pa.map_(pa.string(), pa.int64()), pa.struct([("x", pa.int64())]), pa.decimal256(39, 2), pa.decimal256(76, 0),
        pa.decimal128(5, -2), pa.decimal128(2, 5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("in_list", [True, False])
def test_a_type_that_flink_does_not_have_is_said(in_list: bool, arrow: pa.DataType, bridge: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        bridge.flink_type("a", pa.list_(arrow) if in_list else arrow)
    assert str(caught.value) == f"column 'a': Flink has no {arrow}"


# -- its environment


class Environment:
    """In place of the program's. Args: checkpoints: whether Flink takes any; settings: its configuration."""

    def __init__(self, checkpoints: bool = False, parallelism: int = 1, settings: Configuration | None = None) -> None:
        self.checkpoints = checkpoints
        self.parallelism = parallelism
        self.settings = settings or Configuration()
        self._j_stream_execution_environment = self
        self.files: list[str] = []

    def get_checkpoint_config(self) -> Any:
        return SimpleNamespace(is_checkpointing_enabled=lambda: self.checkpoints)

    def get_parallelism(self) -> int:
        return self.parallelism

    def add_python_file(self, path: str) -> None:
        self.files.append(path)


@pytest.fixture
def environment(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> Environment:
    made = Environment()
    monkeypatch.setattr(bridge, "_environment", lambda table: made)
    monkeypatch.setattr(bridge, "get_j_env_configuration", lambda j_environment: j_environment.settings)
    return made


def table_in(kind: str, bridge: Any) -> Table:
    made = bridge.StreamTableEnvironment() if kind != "other" else SimpleNamespace()
    made._j_tenv = SimpleNamespace(
        getClass=lambda: (
            "class org.apache.flink." + ("TableEnvironmentImpl" if kind == "plain" else "StreamTableEnvironmentImpl")
        )
    )
    return Table(None, made)


@pytest.mark.parametrize("kind", ["plain", "other"])
def test_an_environment_without_streams_does_not_do(kind: str, bridge: Any, environment: Environment) -> None:
    with pytest.raises(ConfigError, match=r"^source: .*StreamTableEnvironment.create\("):
        bridge.check(table_in(kind, bridge), "stream")


@pytest.mark.parametrize(
    ("mode", "checkpoints", "fits"),
    [("stream", True, True), ("batch", False, True), ("batch", True, False), ("train", True, False)],
)
def test_a_whole_table_holds_up_checkpoints(
    mode: str, checkpoints: bool, fits: bool, bridge: Any, environment: Environment
) -> None:
    environment.checkpoints = checkpoints
    table = table_in("stream", bridge)
    assert bridge.has_checkpoints(table) is checkpoints
    if fits:
        bridge.check(table, mode)
    else:
        with pytest.raises(ConfigError, match=f"^mode '{mode}': .*leave execution.checkpointing.interval out"):
            bridge.check(table, mode)


@pytest.mark.parametrize(
    ("settings", "master"),
    [
        ({}, "local"),
        ({"execution.target": "local", "rest.address": "flink"}, "local"),
        ({"execution.target": "remote"}, "127.0.0.1:8081"),
        ({"execution.target": "remote", "rest.address": "flink", "rest.port": "80"}, "flink:80"),
        ({"execution.target": "remote", "rest.address": "flink", "rest.path": "/a"}, "http://flink:8081/a"),
        ({"execution.target": "remote", "rest.address": "flink", "security.ssl.rest.enabled": "true"}, "https://flink:8081"),
    ],
)
def test_a_tables_cluster_is_in_its_settings(
    settings: dict[str, str], master: str, bridge: Any, environment: Environment
) -> None:
    environment.settings.values.update(settings)
    assert bridge.master(Table()) == master


@pytest.mark.parametrize(
    ("parallelism", "cluster", "slots"),
    [(1, ClusterSpec(1), 1), (4, ClusterSpec(2), 4), (1, ClusterSpec(3, 2), 5), (8, ClusterSpec(3, 2), 10)],
)
def test_tasks_share_the_slots_of_the_query(
    parallelism: int, cluster: ClusterSpec, slots: int, bridge: Any, environment: Environment
) -> None:
    environment.parallelism = parallelism
    assert bridge.slots(Table(), job(cluster=cluster)) == slots


@pytest.mark.parametrize(
    ("mode", "seconds", "millis"), [("stream", 0.02, 10), ("stream", 1, 500), ("stream", 0.0001, 1), ("batch", 1, 0)]
)
def test_half_of_a_streams_delay_is_for_the_way_in(mode: str, seconds: float, millis: int, bridge: Any) -> None:
    assert bridge._flush_millis(job(mode=mode, flush_seconds=seconds)) == millis


# -- its job


class Stream:
    """In place of a stream: what was done to it."""

    def __init__(self, done: list[Any]) -> None:
        self.done = done

    def __getattr__(self, name: str) -> Any:
        def noted(*given: Any, **named: Any) -> Stream:
            self.done.append((name, *given))
            return self

        return noted


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_its_tasks_are_built_into_its_job(
    mode: str, bridge: Any, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []
    fed: list[Any] = []
    monkeypatch.setattr(bridge, "arrow_schema", lambda table: "its schema")
    monkeypatch.setattr(bridge.rows, "fed", lambda *given: fed.append(given) or Stream(done))
    monkeypatch.setattr(
        environment, "from_collection", lambda numbers, type_info: Stream([("numbers", numbers)]), raising=False
    )
    environment.settings = Configuration(python_executable="the program's")
    table, order = Table(), {"door": {"host": "h"}, "subtasks": 3, "name": "n"}
    options = {"execution.buffer-timeout.interval": "7 ms", "a": "b"}
    bridge._places(table, job(mode=mode, cluster=ClusterSpec(2, 1)), "/p.zip", order, options, False, True)
    ((source, schema, subtask, count, chunk_rows, flush),) = fed
    assert (source, schema, count, chunk_rows, flush) == (table, "its schema", 2, 8192, 10 if mode == "stream" else 0)
    assert subtask._door == {"host": "h"} and subtask._goes_on
    values = environment.settings.values
    assert values["taskmanager.numberOfTaskSlots"] == "3" and values["a"] == "b"
    assert values["python.executable"] == "the program's", "what it has set stays"
    assert values["python.fn-execution.bundle.time"] == ("10" if mode == "stream" else "50")
    assert values["execution.buffer-timeout.interval"] == "7 ms", "the user's word counts"
    assert environment.files == ["/p.zip"]
    assert [name for name, *_ in done] == ["union"], "the tasks without rows are beside it"


def test_akrunner_is_sent_once(bridge: Any, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "packed", lambda table, job: Stream([]))
    environment.settings = Configuration(python_files="/other.py,/p.zip")
    bridge._places(Table(), job(), "/p.zip", {"door": {}, "subtasks": 1}, {}, True, False)
    assert environment.files == []


class Steps(list[str]):
    """In place of Java's list of what a program has built."""

    def removeAll(self, others: list[str]) -> None:
        self[:] = [one for one in self if one not in others]

    addAll = list.extend


@pytest.mark.parametrize("fails", [True, False])
def test_what_is_built_apart_stays_out_of_the_programs_jobs(fails: bool, bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(["the program's"])
    java: Any = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(ArrayList=list)))
    monkeypatch.setattr(bridge, "get_gateway", lambda: SimpleNamespace(jvm=java))
    environment = SimpleNamespace(_j_stream_execution_environment=SimpleNamespace(getTransformations=lambda: steps))
    try:
        with bridge._apart(environment):
            assert steps == []
            steps.append("ours")
            if fails:
                raise ValueError("no such table")
    except ValueError:
        assert fails
    assert steps == ["the program's"]


def test_a_running_job_is_watched_by_a_connection_of_its_own(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    status = SimpleNamespace(result=lambda: "JobStatus.RUNNING")
    theirs = SimpleNamespace(
        get_job_status=lambda: status, cancel=lambda: SimpleNamespace(result=lambda: done.append("cancelled")),
        get_job_execution_result=lambda: SimpleNamespace(result=lambda: done.append("waited")),
    )  # fmt: skip
    gateway = SimpleNamespace(_gateway_client="theirs", close=lambda: done.append("closed"))
    monkeypatch.setattr(bridge, "get_gateway", lambda: SimpleNamespace(gateway_parameters="where"))
    monkeypatch.setattr(bridge, "JavaGateway", lambda gateway_parameters: gateway)
    monkeypatch.setattr(bridge, "JavaObject", lambda target, client: (target, client))
    monkeypatch.setattr(bridge, "JobClient", lambda found: theirs if found == ("o1", "theirs") else None)
    client = SimpleNamespace(_j_job_client=SimpleNamespace(_target_id="o1"), get_job_id=lambda: 17)
    running = bridge.Running(client, "local")
    assert (running.id, running.state()) == ("17", "RUNNING")
    running.result()
    running.cancel()
    running.close()
    assert done == ["waited", "cancelled", "closed"]


def test_a_cluster_elsewhere_is_asked_itself_for_a_jobs_state(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "get_gateway", lambda: SimpleNamespace(gateway_parameters="where"))
    gateway = SimpleNamespace(_gateway_client="theirs", close=lambda: None)
    monkeypatch.setattr(bridge, "JavaGateway", lambda gateway_parameters: gateway)
    for name in ("JavaObject", "JobClient"):
        monkeypatch.setattr(bridge, name, lambda *given: None)
    client = SimpleNamespace(_j_job_client=SimpleNamespace(_target_id="o1"), get_job_id=lambda: 17)
    heard: list[bytes] = []
    with answering(saying(b'{"status": "RUNNING"}'), heard) as master:
        running = bridge.Running(client, master)
        assert running.state() == "RUNNING" and heard[0].startswith(b"GET /jobs/17/status ")
        running.close()


def test_a_local_cluster_that_is_gone_with_its_job_leaves_the_reason(bridge: Any) -> None:
    running = object.__new__(bridge.Running)
    running._rest = None
    says: dict[str, Exception | None] = {
        "status": Py4JError("MiniCluster is not yet running or has already been shut down."),
        "result": None,
    }

    def later(what: str) -> Any:
        def result() -> str:
            error = says[what]
            if error is not None:
                raise error
            return "JobStatus.RUNNING"

        return lambda: SimpleNamespace(result=result)

    running._ours = SimpleNamespace(get_job_status=later("status"), get_job_execution_result=later("result"))
    assert running.state() == "FINISHED"
    says["result"] = Py4JError("Caused by: no such file")
    with pytest.raises(Py4JError, match="no such file"):
        running.state()
    says["status"] = Py4JError("Connection refused")
    with pytest.raises(Py4JError, match="Connection refused"):
        running.state()


def test_what_was_executed_is_a_job_or_is_not_taken(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "Running", lambda client, master: ("runs", client, master))
    monkeypatch.setattr(bridge, "master", lambda table: f"{table}:8081")
    client = JobClient()
    assert bridge.running(TableResult(client), "t") == ("runs", client, "t:8081") == bridge.running(client, "t")
    for nothing in (TableResult(None), 60.0):
        with pytest.raises(
            ConfigError, match=r"^result: must be what execute_insert\(\), .* returned for the job's table, not "
        ):
            bridge.running(nothing, "t")


# -- operators in Java


class Compiler:
    """In place of Flink's. Args: error: what it says of each source."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.seen: list[str] = []

    def compile(self, loader: Any, name: str, source: str) -> None:
        assert f"class {name}" in source and loader == "its loader"
        self.seen.append(name)
        if self._error is not None:
            raise self._error


def compiling(compiler: Compiler, bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    generated = SimpleNamespace(CompileUtils=compiler)
    flink = SimpleNamespace(table=SimpleNamespace(runtime=SimpleNamespace(generated=generated)))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(flink=flink)))
    monkeypatch.setattr(bridge, "get_gateway", lambda: SimpleNamespace(jvm=jvm))
    monkeypatch.setattr(bridge, "_class_loader", lambda: "its loader")


def test_both_operators_are_compiled_once(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = Compiler()
    compiling(compiler, bridge, monkeypatch)
    assert bridge.operators_compile() and bridge.operators_compile()
    assert compiler.seen == ["AkrunnerArrowPack", "AkrunnerArrowUnpack"]


def test_a_flink_that_does_not_take_them_is_said_once(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling(Compiler(Py4JError("An error occurred\n: A\nCaused by: no class ArrowWriter")), bridge, monkeypatch)
    with pytest.warns(RuntimeWarning, match=r"rows go through Python one by one, .*\(no class ArrowWriter\)"):
        assert not bridge.operators_compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not bridge.operators_compile()


def test_the_source_of_each_operator_is_there(bridge: Any) -> None:
    for name in ("ArrowPack", "ArrowUnpack"):
        assert bridge._source(name) == (Path(bridge.__file__).parent / f"{name}.java").read_text()
