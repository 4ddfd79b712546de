"""What is asked of PyODPS for a table in MaxCompute, and what is made of its answers. (`tests/e2e` has the real PyODPS, and a service.)"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.tables import maxcompute, types
from akrunner.tables.credentials import Credentials
from akrunner.tables.ddl import parse_create
from akrunner.tables.maxcompute import MaxComputeTables
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo

KEYS = Credentials("id", "secret", "http://mc", "a file", project="usual")


class NoSuchObject(Exception):
    """There is none."""


class NoSuchProject(NoSuchObject):
    """Nor a project."""


class Table:
    """Attributes: parts: values of each partition; stale: it is not loaded yet."""

    def __init__(self, odps: Odps, name: str, sql: str = "", *parts: dict[str, str]) -> None:
        self._odps, self.name, self.parts, self.stale = odps, name, parts, True
        info = parse_create(sql).info if sql else None
        if info is not None:
            columns = [
                SimpleNamespace(name=one.name.upper(), type=types.words_of(one).upper(), comment=None, nullable=one.nullable)
                for one in info.columns
            ]
            keys = [SimpleNamespace(name=one.name, type=types.words_of(one)) for one in info.keys]
            self.table_schema = SimpleNamespace(simple_columns=columns, partitions=keys)
            self.comment, self.lifecycle = info.comment or None, info.lifecycle if info.lifecycle is not None else -1

    def reload(self) -> None:
        if self._odps.fails is not None:
            raise self._odps.fails
        if self.name not in self._odps.kept:
            raise NoSuchObject
        self.stale = False

    @property
    def partitions(self) -> Iterator[Any]:
        self._odps.done.append("list partitions")
        return iter([SimpleNamespace(partition_spec=SimpleNamespace(kv=one)) for one in self.parts])

    def exist_partition(self, spec: str) -> bool:
        self._odps.done.append(f"exist {spec}")
        return spec in [",".join(f"{key.lower()}={value}" for key, value in one.items()) for one in self.parts]


class Odps:
    """PyODPS's object. Attributes: kept: tables; done: what was asked for; fails; rows: of a query."""

    last: Odps

    def __init__(self, *account: Any, **options: Any) -> None:
        self.account, self.options = account, options
        self.kept: dict[str, Table] = {}
        self.done: list[str] = []
        self.hints: list[dict[str, str]] = []
        self.fails: Exception | None = None
        self.rows = pa.table({"a": [1]})
        Odps.last = self

    def put(self, sql: str, *parts: dict[str, str]) -> None:
        name = parse_create(sql).table
        self.kept[name] = Table(self, name, sql, *parts)

    def exist_table(self, name: str, project: str) -> bool:
        return name in self.kept

    def get_table(self, name: str, project: str) -> Table:
        return self.kept.get(name) or Table(self, name)

    def list_tables(self, project: str) -> Iterator[Any]:
        return iter([SimpleNamespace(name=name.upper()) for name in self.kept])

    def list_projects(self) -> Iterator[Any]:
        return iter([SimpleNamespace(name=name) for name in ("B", "a")])

    def execute_sql(self, text: str, project: str, hints: dict[str, str]) -> Any:
        self.done.append(text)
        self.hints.append(hints)
        results = {"0": "", "1": "OK"} if text.startswith("DESC") else {}
        return SimpleNamespace(id="i1", get_task_results=lambda: results, open_reader=lambda **how: Reader(self, how))


class Reader:
    def __init__(self, odps: Odps, how: dict[str, Any]) -> None:
        assert how == {"tunnel": True, "arrow": True, "limit": True}
        self._odps = odps

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def read_all(self) -> pa.Table:
        return self._odps.rows


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("odps")
    made.ODPS = Odps  # type: ignore[attr-defined]
    made.errors = SimpleNamespace(NoSuchObject=NoSuchObject, NoSuchProject=NoSuchProject)  # type: ignore[attr-defined]
    account = lambda *given, **more: ("temporary", *given)  # noqa: E731
    made.accounts = SimpleNamespace(StsAccount=account)  # type: ignore[attr-defined]
    made.tunnel = SimpleNamespace(TableTunnel=None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "odps", made)
    monkeypatch.setattr(maxcompute, "importlib", SimpleNamespace(import_module=lambda name: None))
    return made


@pytest.fixture
def store(package: ModuleType) -> MaxComputeTables:
    return MaxComputeTables("demo", KEYS)


@pytest.fixture
def odps(store: MaxComputeTables) -> Odps:
    """With a table without partitions, and one with two partition columns."""
    Odps.last.put("create table t (a bigint not null, b varchar(10)) comment 'c' lifecycle 3")
    Odps.last.put(
        "create table p (a bigint) partitioned by (dt string, hh string)",
        {"DT": "2", "HH": "1"},
        {"DT": "1", "HH": "b"},
        {"DT": "1", "HH": "a"},
    )
    return Odps.last


def named(text: str) -> TableName:
    return TableName.parse(text, "demo")


def test_a_key_is_given_to_pyodps_and_nobody_is_asked_yet(package: ModuleType) -> None:
    store = MaxComputeTables("", KEYS)
    assert Odps.last.account == ("id", "secret") and Odps.last.options["project"] == store.project == "usual"
    assert Odps.last.options["endpoint"] == "http://mc" and not Odps.last.options["overwrite_global"]
    assert "secret" not in store.place and Odps.last.get_job_insight_host() is None  # type: ignore[attr-defined]
    MaxComputeTables("demo", Credentials("id", "secret", "http://mc", "a file", "token", "http://tunnel"))
    assert Odps.last.account == (("temporary", "id", "secret", "token"), None)
    assert Odps.last.options["tunnel_endpoint"] == "http://tunnel" and Odps.last.done == []


def test_without_pyodps_it_says_what_is_needed(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "odps", None)
    with pytest.raises(ConfigError, match="tables in MaxCompute need PyODPS"):
        MaxComputeTables("demo", KEYS)


def test_a_table_is_what_the_service_says(store: MaxComputeTables, odps: Odps) -> None:
    info = store.describe(named("t"))
    assert [(one.name, types.words_of(one), one.nullable) for one in info.columns] == [
        ("a", "bigint", False),
        ("b", "varchar(10)", True),
    ]
    assert (info.partitions, info.partition_types, info.comment, info.lifecycle) == ((), (), "c", 3)
    info = store.describe(named("p"))
    assert (info.partitions, info.partition_types, info.comment, info.lifecycle) == (("dt", "hh"), (), "", None)
    odps.put("create table q (a bigint) partitioned by (dt string, n bigint)")
    assert store.describe(named("q")).partition_types == ("string", "bigint")


def test_a_table_that_is_not_there(store: MaxComputeTables, odps: Odps) -> None:
    with pytest.raises(
        SourceError, match=r"there is no table odps://demo/tables/tt: did you mean 't'\? .* at http://mc.*; make it with"
    ):
        store.describe(named("tt"))
    with pytest.raises(SinkError, match="there is no table odps://demo/tables/x"):
        store.output(named("x"))
    odps.fails = NoSuchProject("ODPS-0420111: Project not found")
    with pytest.raises(SourceError, match="source: cannot read t at http://mc .*: ODPS-0420111: Project not found"):
        store.describe(named("t"))
    assert store.tables("demo") == ["p", "t"]


def test_no_more_names_are_asked_for_than_an_error_can_use(
    store: MaxComputeTables, odps: Odps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maxcompute, "_MOST_NAMES", 1)
    with pytest.raises(SourceError, match="the project demo has t and many more at"):
        store.describe(named("x"))


def test_partitions_are_those_that_a_name_fits(store: MaxComputeTables, odps: Odps) -> None:
    def found(text: str) -> list[tuple[str, ...]]:
        return [tuple(value for _, value in one) for one in store.partitions(named(text))]

    assert found("p") == [("1", "a"), ("1", "b"), ("2", "1")] and found("p/dt=1") == [("1", "a"), ("1", "b")]
    assert found("p/hh=1") == [("2", "1")] and found("p/dt=9") == [] and found("t") == []
    odps.done.clear()
    assert found("p/hh=a/dt=1") == [("1", "a")] and found("p/dt=1/hh=1") == []
    assert odps.done == ["exist dt=1,hh=a", "exist dt=1,hh=1"], "thousands of others are not listed for one"
    assert store.exists(named("p/dt=1")) and not store.exists(named("p/dt=9")) and not store.exists(named("x"))
    with pytest.raises(SourceError, match="p/dt=9 does not exist: the table has the partitions dt=1/hh=a"):
        store.reading(named("p/dt=9"))


@pytest.mark.parametrize(
    "name, why",
    [
        ("p/dt=a,b", "takes no value of dt with , = / or a quote in it"),
        ("p/dt=a/b", "takes no value of dt"),
        ("p/x=1", "not by x"),
    ],
)
def test_a_partition_the_tunnel_cannot_be_asked_for(name: str, why: str, store: MaxComputeTables, odps: Odps) -> None:
    for kind, does in ((SourceError, store.partitions), (SinkError, store.check_output)):
        with pytest.raises(kind, match=why):
            does(named(name))  # type: ignore[operator]


def test_projects_are_the_stores_own_or_all_that_the_key_may_see(package: ModuleType) -> None:
    assert MaxComputeTables("demo", KEYS).projects() == ["demo"]
    assert MaxComputeTables("", Credentials("id", "secret", "http://mc", "a file")).projects() == ["a", "b"]


def test_an_output_that_is_only_looked_at_makes_nothing(store: MaxComputeTables, odps: Odps) -> None:
    store.check_output(named("p/dt=9/hh=9"))
    store.check_output(named("t"))
    assert odps.done == []
    for name, why in (("p/dt=9", "name one partition of it"), ("t?start=1", "leave out"), ("t/dt=1", "is not partitioned")):
        with pytest.raises(SinkError, match=why):
            store.check_output(named(name))


def test_a_partition_is_made_for_an_output(store: MaxComputeTables, odps: Odps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxcompute, "MaxComputeOutput", lambda *given: given)
    made: Any = store.output(named("p/hh=9/dt=it s"), overwrite=False)
    assert odps.done == ["exist dt=it s,hh=9", "ALTER TABLE demo.p ADD IF NOT EXISTS PARTITION (dt='it s', hh='9');"]
    assert made[3:] == ((("dt", "it s"), ("hh", "9")), False)
    odps.done.clear()
    store.output(named("p/dt=1/hh=a"))
    assert odps.done == ["exist dt=1,hh=a"]


def test_tables_are_changed_by_statements(store: MaxComputeTables, odps: Odps) -> None:
    info = TableInfo(pa.schema([("a", pa.int64())]), ("dt",))
    store.create(named("new"), info)
    store.create(named("t"), info, if_not_exists=True)
    store.rename(named("t"), "u")
    store.add_columns(named("t"), [types.field("c", "varchar(3)", "it's")])
    store.add_partitions([named("p/dt=1/hh=x"), named("p/dt=1/hh=y")], if_not_exists=True)
    store.drop_partitions([named("p/dt=1"), named("p/dt=1/hh=a"), named("p/dt=9")], if_exists=True)
    store.drop(named("x"), if_exists=True)
    store.drop(named("t"))
    assert [one for one in odps.done if one[0].isupper()] == [
        "CREATE TABLE demo.new (\n    a BIGINT\n)\nPARTITIONED BY (dt STRING);",
        "ALTER TABLE demo.t RENAME TO u;",
        "ALTER TABLE demo.t ADD COLUMNS (c VARCHAR(3) COMMENT 'it\\'s');",
        "ALTER TABLE demo.p ADD IF NOT EXISTS PARTITION (dt='1', hh='x') PARTITION (dt='1', hh='y');",
        "ALTER TABLE demo.p DROP IF EXISTS PARTITION (dt='1', hh='a'), PARTITION (dt='1', hh='b');",
        "DROP TABLE IF EXISTS demo.x;",
        "DROP TABLE demo.t;",
    ]


@pytest.mark.parametrize(
    "does, why",
    [
        (lambda store: store.create(named("t"), TableInfo(pa.schema([("a", pa.int64())]))), "odps://demo/tables/t exists"),
        (lambda store: store.drop(named("x")), "nothing is dropped"),
        (lambda store: store.rename(named("x"), "y"), "there is no table odps://demo/tables/x"),
        (lambda store: store.add_partitions([named("p/dt=1")]), "name one partition"),
        (lambda store: store.drop_partitions([named("p")]), "drop partition: p names no partition"),
        (lambda store: store.drop_partitions([named("p/dt=1"), named("p/dt=9")]), "p/dt=9 does not exist"),
    ],
)
def test_what_cannot_be_changed_runs_no_statement(does: Any, why: str, store: MaxComputeTables, odps: Odps) -> None:
    with pytest.raises(SinkError, match=why):
        does(store)
    assert not [one for one in odps.done if one[0].isupper()]


def test_a_statement_runs_with_what_was_set(store: MaxComputeTables, odps: Odps) -> None:
    assert store.execute("DESC t ; ", {"a": "b"}) == ("OK", None)
    assert store.execute("drop table x") == ("done (instance i1)", None)
    assert odps.done == ["DESC t ;", "drop table x;"]
    assert odps.hints == [{"odps.sql.type.system.odps2": "true", "a": "b"}, {"odps.sql.type.system.odps2": "true"}]


@pytest.mark.parametrize("text", ["select 1", " (select 1)", "WITH x as (select 1) select * from x", "values (1)"])
def test_a_query_gives_its_first_rows(text: str, store: MaxComputeTables, odps: Odps, monkeypatch: pytest.MonkeyPatch) -> None:
    said, rows = store.execute(text)
    assert said == "" and rows is not None and rows.to_pydict() == {"a": [1]}
    monkeypatch.setattr(maxcompute, "MOST_ROWS", 2)
    odps.rows = pa.table({"a": [1, 2, 3]})
    said, rows = store.execute(text)
    assert said == "the first 2 rows; CREATE TABLE ... AS SELECT keeps all" and rows is not None and rows.num_rows == 2


def test_a_statement_that_is_refused_is_shown(store: MaxComputeTables, odps: Odps, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str, **more: Any) -> Any:
        raise ValueError("ODPS-0130161: Parse exception")

    monkeypatch.setattr(odps, "execute_sql", refuse)
    with pytest.raises(SinkError, match=r"MaxCompute cannot run 'select\s+nope x+': .*ODPS-0130161") as told:
        store.execute("select\n  nope " + "x" * 200)
    assert "x" * 80 not in str(told.value)
