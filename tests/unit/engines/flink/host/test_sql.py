"""Flink's SQL over bounded tables: queries over relations, which of them may be computed again, and rows of this process; a stand-in takes
PyFlink's place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.flink.rest import HEADERS, Address
from akrunner.errors import ConfigError
from tests.unit.engines.flink.pyflink_stand_in import Table, imported

ROWS = pa.table({"a": [1, 2, 3]})
CLUSTER = Address("https", "flink", 443, "", {"Authorization": "Basic abc"})


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    with imported("host.sql") as made:
        yield made


class Shown(Table):
    """A table with a name."""

    def __init__(self, name: str, environment: Any = None) -> None:
        super().__init__(None, environment, ("a", "b"))
        self.name = name

    def __str__(self) -> str:
        return self.name

    def limit(self, count: int) -> Shown:
        return Shown(f"{self.name}[:{count}]")


class Environment:
    """In place of the program's. Attributes: asked: the queries so far."""

    def __init__(self, number: int = 1) -> None:
        self._j_tenv = number
        self.asked: list[str] = []
        self.error: Exception | None = None

    def sql_query(self, text: str) -> Shown:
        self.asked.append(text)
        if self.error is not None:
            raise self.error
        return Shown("found", self)


@pytest.fixture
def environment() -> Environment:
    return Environment()


@pytest.fixture
def sql(module: Any, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = module.Sql(None, {}, 2)
    made._environment = environment
    monkeypatch.setattr(made, "from_arrow", lambda rows: module.Relation(made, Shown("of rows"), rows=rows))
    return made


def relation(module: Any, sql: Any, name: str = "t", **more: Any) -> Any:
    return module.Relation(sql, Shown(name), **more)


# -- queries


def test_a_query_names_its_relations(module: Any, sql: Any, environment: Environment) -> None:
    found = sql.query("SELECT a FROM {a} JOIN {b} ON a.x = b.x", a=relation(module, sql, "t1"), b=relation(module, sql, "t2"))
    assert environment.asked == ["SELECT a FROM t1 AS a JOIN t2 AS b ON a.x = b.x"]
    assert found.steady and found.rows is None and found.columns == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "steady"),
    [
        ("SELECT * FROM {a}", True), ("SELECT RAND() FROM {a}", False), ("SELECT rand_integer(3) FROM {a}", False),
        ("SELECT uuid() FROM {a}", False), ("SELECT now() FROM {a}", False), ("SELECT CURRENT_TIMESTAMP FROM {a}", False),
        ("SELECT LOCALTIME FROM {a}", False), ("SELECT localtimestamp FROM {a}", False), ("SELECT random_effect, brand FROM {a}", True),
        ("SELECT known FROM {a}", True), ("SELECT UNIX_TIMESTAMP() FROM {a}", False), ("SELECT unix_timestamp( ) - t FROM {a}", False),
        ("SELECT PROCTIME() FROM {a}", False), ("SELECT UNIX_TIMESTAMP(day) FROM {a}", True), ("SELECT proctime FROM {a}", True),
    ],
)  # fmt: skip
def test_a_query_that_draws_lots_is_not_computed_twice(text: str, steady: bool, module: Any, sql: Any) -> None:
    assert sql.query(text, a=relation(module, sql)).steady is steady
    assert not sql.query(text, a=relation(module, sql, steady=False)).steady


def test_what_flink_refuses_is_said_with_the_query(module: Any, sql: Any, environment: Environment) -> None:
    environment.error = RuntimeError("An error occurred\n: A\nCaused by: Column 'x' not found in any table")
    with pytest.raises(ConfigError) as caught:
        sql.query("SELECT x FROM {a}", a=relation(module, sql))
    assert str(caught.value) == "Column 'x' not found in any table\nin: SELECT x FROM t AS a"


# -- relations


def test_rows_that_are_here_are_not_computed(module: Any, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = relation(module, sql, rows=ROWS, steady=False)
    assert here.schema == ROWS.schema and here.to_arrow_table() is ROWS and here.kept() is here
    assert here.limit(2).to_arrow_table().to_pylist() == [{"a": 1}, {"a": 2}]
    assert here.limit(9).rows.num_rows == 3


def test_rows_that_are_not_are_flinks(module: Any, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "collected", lambda table: (str(table), "collected"))
    monkeypatch.setattr(module.bridge, "arrow_schema", lambda table: (str(table), "schema"))
    there = relation(module, sql, steady=False)
    limited = there.limit(2)
    assert str(limited.table) == "t[:2]" and not limited.steady
    assert there.to_arrow_table() == ("t", "collected") and there.schema == ("t", "schema")


@pytest.mark.parametrize("steady", [True, False])
def test_only_what_changes_is_kept_here(steady: bool, module: Any, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "collected", lambda table: ROWS)
    there = relation(module, sql, steady=steady)
    kept = there.kept()
    assert (kept is there) is steady
    if not steady:
        assert kept.rows is ROWS and kept.steady and kept.kept() is kept


def test_a_union_has_the_rows_of_both(module: Any, sql: Any, environment: Environment) -> None:
    made = relation(module, sql, "t1").union(relation(module, sql, "t2", steady=False))
    assert environment.asked == ["SELECT * FROM t1 AS a UNION ALL SELECT * FROM t2 AS b"] and not made.steady


# -- its environment


def test_the_first_table_brings_its_environment(module: Any) -> None:
    sql = module.Sql(None, {}, 1)
    first, same, other = Environment(), Environment(), Environment(2)
    assert str(sql.of(Shown("t1", first)).table) == "t1"
    assert sql.environment is first
    sql.of(Shown("t2", same))
    with pytest.raises(ConfigError, match=r"^fromTable: this table is of another Flink environment.*resetEnv\(\)"):
        sql.of(Shown("t3", other))
    with pytest.raises(ConfigError, match="not int"):
        sql.of(3)


@pytest.mark.parametrize("cluster", [None, CLUSTER])
def test_without_one_an_environment_is_made(cluster: Address | None, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    started: list[str | None] = []
    monkeypatch.delenv(HEADERS, raising=False)
    monkeypatch.setenv("_python_worker_execution_mode", "thread")
    monkeypatch.setattr(module, "get_gateway", lambda: started.append(os.environ.get(HEADERS)))
    monkeypatch.setattr(module, "brings_python", lambda where: where is not None)

    def environment(configuration: Any, remote: Any, brings: bool) -> Any:
        made.append((configuration.values, remote, brings))
        return SimpleNamespace(set_parallelism=made.append)

    monkeypatch.setattr(module, "environment_of", environment)
    monkeypatch.setattr(module, "EnvironmentSettings", SimpleNamespace(in_batch_mode=lambda: "batch"))
    monkeypatch.setattr(
        module.StreamTableEnvironment, "create", lambda environment, settings: ("made", settings), raising=False
    )
    sql = module.Sql(cluster, {"a": "b"}, 3)
    assert sql.environment == ("made", "batch") and sql.environment is sql.environment
    assert made == [({"a": "b"}, cluster.flink_options if cluster is not None else None, cluster is not None), 3]
    assert started == ["Authorization:Basic abc" if cluster is not None else None], "Java reads them when it starts"
    assert HEADERS not in os.environ, "and nothing that starts later"


@pytest.mark.parametrize("before", [None, "X-Team:one"])
@pytest.mark.parametrize("fails", [True, False])
def test_credentials_are_put_back(fails: bool, before: str | None, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HEADERS, raising=False)
    if before is not None:
        monkeypatch.setenv(HEADERS, before)

    def start() -> None:
        assert os.environ[HEADERS] == "Authorization:Basic abc"
        if fails:
            raise RuntimeError("no Java")

    monkeypatch.setattr(module, "get_gateway", start)
    try:
        with module._credentials(CLUSTER):
            pass
    except RuntimeError:
        assert fails
    assert os.environ.get(HEADERS) == before


# -- rows that come here


class Arriving:
    """In place of Java's iterator. Args: tables: each becomes a stream of Arrow's."""

    def __init__(self, *tables: Any) -> None:
        self._tables = list(tables)

    def hasNext(self) -> bool:
        return bool(self._tables)

    def next(self) -> bytes:
        table = self._tables.pop(0)
        if isinstance(table, Exception):
            raise table
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()


def collecting(module: Any, monkeypatch: pytest.MonkeyPatch, *tables: Any) -> Any:
    utilities = SimpleNamespace(collectAsPandasDataFrame=lambda j_table, rows: Arriving(*tables))
    arrow = SimpleNamespace(ArrowUtils=utilities)
    flink = SimpleNamespace(table=SimpleNamespace(runtime=SimpleNamespace(arrow=arrow)))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(flink=flink)))
    monkeypatch.setattr(module, "get_gateway", lambda: SimpleNamespace(jvm=jvm))
    monkeypatch.setattr(module.bridge, "arrow_schema", lambda table: pa.schema([("a", pa.timestamp("us"))]))
    settings = SimpleNamespace(set=lambda key, value: None)
    return Shown("t", SimpleNamespace(get_config=lambda: settings, _before_execute=lambda: None))


def test_all_pieces_are_one_table_of_the_columns_types(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [pa.table({"a": pa.array(values, pa.timestamp("ms"))}) for values in ([1, None], [3])]
    found = module.collected(collecting(module, monkeypatch, *pieces))
    assert found.schema == pa.schema([("a", pa.timestamp("us"))])
    assert found["a"].cast(pa.int64()).to_pylist() == [1000, None, 3000]


def test_a_table_without_rows_has_its_columns(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = module.collected(collecting(module, monkeypatch))
    assert found.num_rows == 0 and found.schema == pa.schema([("a", pa.timestamp("us"))])


def test_a_table_that_flink_cannot_compute_is_said_in_its_words(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("An error occurred\n: A\nCaused by: Division by zero")
    with pytest.raises(ConfigError, match="^Flink cannot compute the table: Division by zero$") as caught:
        module.collected(collecting(module, monkeypatch, pa.table({"a": pa.array([1], pa.timestamp("ms"))}), error))
    assert caught.value.__cause__ is error


def test_rows_of_a_type_that_flink_does_not_have_are_refused(module: Any, environment: Environment) -> None:
    made = module.Sql(None, {}, 1)
    made._environment = environment
    with pytest.raises(ConfigError, match="^column 'n': Flink has no uint64$"):
        made.from_arrow(pa.table({"a": [1], "n": pa.array([1], pa.uint64())}))
