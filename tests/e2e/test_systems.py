"""One suite for every system that keeps tables: real servers, real files. A system joins by a class here."""

from __future__ import annotations

import datetime
import functools
import importlib.util
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest

import akrunner
from akrunner.io import systems
from akrunner.io.systems import apart
from akrunner.io.systems import postgres as postgres_system
from tests import hosts
from tests.conftest import NOT_RUN, Script, wait_for
from tests.servers.postgres import PASSWORD, Postgres

pytestmark = pytest.mark.slow

#: the directory of what stands in for Snowflake's driver
STAND_IN = Path(__file__).parents[1] / "servers" / "snowflake"

COPY = """
def main(task_config):
    for batch in task_config.batches(1000, nulls="none"):
        task_config.output_writer.write_batch(batch)
"""
TABLE = pa.table(
    {
        "id": pa.array([1, 2, 2**53 + 1], pa.int64()),
        "p": pa.array([0.5, None, 1e300]),
        "s": pa.array(["a, 'b' \"c\"", None, "雪\n"]),
        "b": pa.array([b"\x00\xff", b"", None]),
    }
)
SCHEMA = "id bigint, p double, s string, b varbinary"


class Kept(Protocol):
    """One system.

    Attributes:
        database: a URL, with `{}` where the table's name stands.
        server: whether it runs SQL itself.
        begins: Python that a process begins with to reach it.
    """

    database: str
    server: bool
    begins: str

    def sql(self, *statements: str) -> list[Any]:
        """Run SQL, of which DuckDB here runs what is a query of the table `t` if it is no `server`."""
        ...

    def make(self, table: str, ids: list[int]) -> None:
        """Make a table with the column `id bigint`."""
        ...


@functools.cache
def _duckdb() -> Any:
    """A DuckDB whose cursors run what tests ask: to make another one for each, or to connect to a file, takes 40 ms."""
    import duckdb

    return duckdb.connect()


def _of_duckdb(path: Path | str, statements: Sequence[str]) -> list[Any]:
    """Run SQL in a file of DuckDB."""
    with _duckdb().cursor() as connection:
        connection.execute(f"ATTACH '{path}' AS kept; USE kept")
        try:
            for statement in statements:
                rows = connection.execute(statement).fetchall()
        finally:
            connection.execute("USE memory; DETACH kept")
    return rows


class _Database:
    """A system with SQL of its own."""

    server = True
    begins = ""

    def sql(self, *statements: str) -> list[Any]:
        raise NotImplementedError

    def make(self, table: str, ids: list[int]) -> None:
        self.sql(f"CREATE TABLE {table} (id bigint)", *(f"INSERT INTO {table} VALUES ({one})" for one in ids))


class _Sqlite(_Database):
    def __init__(self, folder: Path) -> None:
        self._path = folder / "kept.db"
        self.database = f"sqlite:///{self._path}?table={{}}"

    def sql(self, *statements: str) -> list[Any]:
        connection = sqlite3.connect(self._path)
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        connection.commit()
        connection.close()
        return rows


class _DuckDB(_Database):
    def __init__(self, folder: Path) -> None:
        self._path = folder / "kept.duckdb"
        self.database = f"duckdb:///{self._path}?table={{}}"

    def sql(self, *statements: str) -> list[Any]:
        return _of_duckdb(self._path, statements)


class _Postgres(_Database):
    def __init__(self, server: Postgres) -> None:
        self.database, self._server = server.url + "?table={}", server

    def sql(self, *statements: str) -> list[Any]:
        return self._server.sql(*statements)


class _FlightSql(_Database):
    def __init__(self) -> None:
        # pyarrow.flight takes half a second to import
        from tests.servers.flightsql_kept import KeptServer

        self._server = KeptServer()
        self.database = self._server.url + "&table={}"
        self.sql, self.close = self._server.sql, self._server.close  # type: ignore[method-assign]


class _Snowflake(_Database):
    """DuckDB's driver in the place of Snowflake's."""

    database = "snowflake://me@account/kept/main?table={}"

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = str(folder / "kept.duckdb")
        monkeypatch.setenv("AKRUNNER_TEST_SNOWFLAKE", self._path)
        monkeypatch.syspath_prepend(STAND_IN)
        for name in ("adbc_driver_snowflake", "adbc_driver_snowflake.dbapi"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        # a host that is killed is another process
        self.begins = f"import sys; sys.path.insert(0, {str(STAND_IN)!r}); "
        self.sql("SELECT 1")

    def sql(self, *statements: str) -> list[Any]:
        return _of_duckdb(self._path, statements)


class _Lake:
    """A kind of lakehouse table."""

    begins = ""

    server = False

    def sql(self, *statements: str) -> list[Any]:
        with _duckdb().cursor() as connection:
            connection.register("t", self._rows())
            for statement in statements:
                rows = connection.execute(statement).fetchall()
        return rows

    def _rows(self) -> pa.Table:
        raise NotImplementedError


class _Delta(_Lake):
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "lake"
        self.database = f"delta:///{self._folder}/{{}}"

    def make(self, table: str, ids: list[int]) -> None:
        from deltalake import write_deltalake

        write_deltalake(self._folder / table, pa.table({"id": pa.array(ids, pa.int64())}))

    def _rows(self) -> pa.Table:
        from deltalake import DeltaTable

        return DeltaTable(self._folder / "t").to_pyarrow_table()


class _Iceberg(_Lake):
    database = "iceberg://kept/shop.{}"

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/ice"}
        # a host that is killed is another process
        for name, value in {**place, "type": "sql"}.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPT__{name.upper()}", value)
        # pyiceberg has read its configuration when it was imported, maybe before this test
        monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: SqlCatalog(name, **place))
        self._catalog = SqlCatalog("kept", **place)
        self._catalog.create_namespace("shop")

    def make(self, table: str, ids: list[int]) -> None:
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        self._catalog.create_table(f"shop.{table}", rows.schema).append(rows)

    def _rows(self) -> pa.Table:
        return self._catalog.load_table("shop.t").scan().to_arrow()

    def close(self) -> None:
        self._catalog.close()


class _LanceData(_Lake):
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "lake"
        self.database = f"{self._folder}/{{}}.lance"

    def make(self, table: str, ids: list[int]) -> None:
        import lance

        lance.write_dataset(pa.table({"id": pa.array(ids, pa.int64())}), self._folder / f"{table}.lance")

    def _rows(self) -> pa.Table:
        import lance

        return lance.dataset(self._folder / "t.lance").to_table()


class _Hub(_Lake):
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "lake"
        self.database = f"datasets:///{self._folder}/{{}}"

    def make(self, table: str, ids: list[int]) -> None:
        import datasets

        datasets.Dataset.from_dict({"id": ids}).save_to_disk(self._folder / table)

    def _rows(self) -> pa.Table:
        import datasets

        return datasets.load_from_disk(str(self._folder / "t")).with_format("arrow")[:]


KINDS = ["postgres", "sqlite", "sqlite-apart", "duckdb", "delta", "iceberg", "flightsql", "snowflake", "lance", "datasets"]


def test_every_system_is_tried() -> None:
    tried = {systems._MODULES.get(kind) for kind in KINDS}
    assert set(systems._MODULES.values()) - tried == set(), "give it a class, and its scheme in KINDS"


@pytest.fixture
def forked_apart() -> Iterator[None]:
    """Processes that have a SQLite file open are forked from one that has imported akrunner. They start as they do for users in `test_types_of_sqlite`,
    in `test_sqlite_waits_for_another_program_that_writes` and in
    `test_sqlite_while_a_thread_of_the_program_writes_to_the_same_file[wal]`."""

    def popen(words: list[str], **options: Any) -> hosts.Popen:
        python, isolated, *program = words
        # the server of hosts has its modules already
        assert isolated == "-I"
        return hosts.Popen([python, *program], **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(apart, "subprocess", types.SimpleNamespace(**{**vars(subprocess), "Popen": popen}))
        yield


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    if request.param == "sqlite":
        # as in a process that has not imported sqlite3
        monkeypatch.setattr(apart, "_LIBRARIES", ())
    if request.param == "sqlite-apart":
        request.getfixturevalue("forked_apart")
    if request.param == "postgres":
        yield _Postgres(request.getfixturevalue("postgres"))
    elif request.param == "delta":
        yield _Delta(tmp_path)
    elif request.param in ("iceberg", "flightsql"):
        lake = _Iceberg(tmp_path, monkeypatch) if request.param == "iceberg" else _FlightSql()
        yield lake
        lake.close()
    elif request.param == "snowflake":
        yield _Snowflake(tmp_path, monkeypatch)
    elif request.param in ("lance", "datasets"):
        if importlib.util.find_spec(request.param) is None:
            pytest.skip(f"{NOT_RUN}{request.param}: pip install 'akrunner[{request.param}]'")
        yield (_LanceData if request.param == "lance" else _Hub)(tmp_path)
    else:
        yield (_DuckDB if request.param == "duckdb" else _Sqlite)(tmp_path)


def _files(folder: Path) -> list[str]:
    return sorted(os.path.join(found, name) for found, _, names in os.walk(folder) for name in names)


@pytest.fixture
def copy(script: Script, leaves_nothing: Path) -> Iterator[Callable[..., Any]]:
    """Have a job copy a table."""
    path = script(COPY)

    def copied(source: Any, output: Any = None, **options: Any) -> akrunner.Result:
        return akrunner.run(path, source, output=output, data_format="columns", **options)

    yield copied


def bare(kept: Kept) -> str:
    """The URL without a table."""
    return re.sub(r"[?&]table=\{\}", "", kept.database)


def columns(kept: Kept, copy: Callable[..., Any], table: str = "t", **options: Any) -> list[Any]:
    """A table as a job reads it, in the order of id."""
    rows = copy(kept.database.format(table), **options).table.to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def test_rows_and_nulls_come_back(kept: Kept, copy: Callable[..., Any]) -> None:
    result = copy(TABLE, kept.database.format("t"), output_schema=SCHEMA)
    assert (result.stats.rows_out, kept.sql("SELECT count(*) FROM t")) == (3, [(3,)])
    assert columns(kept, copy, output_schema=SCHEMA) == TABLE.to_pylist()
    # without a word, they are added
    copy(TABLE.slice(0, 1), kept.database.format("t"), output_schema=SCHEMA)
    assert kept.sql("SELECT id FROM t ORDER BY id") == [(1,), (1,), (2,), (2**53 + 1,)]
    copy(TABLE.slice(1, 1), kept.database.format("t"), output_schema=SCHEMA, overwrite=True)
    assert columns(kept, copy, output_schema=SCHEMA) == TABLE.slice(1, 1).to_pylist()


def test_a_table_without_rows_has_its_columns(kept: Kept, copy: Callable[..., Any]) -> None:
    copy(TABLE.slice(0, 0), kept.database.format("t"), output_schema=SCHEMA)
    assert kept.sql("SELECT id, p, s, b FROM t") == []
    assert columns(kept, copy, output_schema=SCHEMA) == []


def test_a_file_of_another_kind_is_told(tmp_path: Path, copy: Callable[..., Any]) -> None:
    sqlite3.connect(tmp_path / "a.db").execute("CREATE TABLE t (a)").connection.close()
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(akrunner.SourceError, match="is a file of SQLite: write sqlite:///"):
        copy(f"duckdb:///{tmp_path}/a.db?table=t")
    with pytest.raises(akrunner.SourceError, match="is no file of DuckDB"):
        copy(f"duckdb:///{tmp_path}/a.csv?table=t")


#: one column for each kind of type; what is not here is in the tests of one system
TYPES = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()), "t": pa.array([True, None]), "i": pa.array([-5, None], pa.int32()), "f": pa.array([0.5, None], pa.float32()),
        "d": pa.array([datetime.date(2026, 1, 2), None]), "at": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5, 678901), None], pa.timestamp("us")),
        "z": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), None], pa.timestamp("us", "UTC")),
        "many": pa.array([[1, 2], None], pa.list_(pa.int64())),
    }
)  # fmt: skip
WORDS = "id bigint, t boolean, i int, f float, d date, at timestamp, z timestamp with time zone, many array<bigint>"


def test_types_come_back(kept: Kept, copy: Callable[..., Any]) -> None:
    rows, words = TYPES, WORDS
    if isinstance(kept, (_Sqlite, _Snowflake)):
        # it has no lists, and no times that its driver's stand-in knows
        with pytest.raises(akrunner.SinkError, match="column 'many'"):
            copy(rows, kept.database.format("t"), output_schema=words)
        rows, words = TYPES.select(["id", "t", "i", "f"]), WORDS.partition(", d date")[0]
    copy(rows, kept.database.format("t"), output_schema=words)
    assert columns(kept, copy, output_schema=words) == rows.to_pylist()


@pytest.mark.parametrize("kept", ["sqlite", "duckdb", "delta", "iceberg", "lance", "datasets"], indirect=True)
def test_a_table_whose_file_was_cut_off_fails_and_leaves_no_output(
    kept: Kept, copy: Callable[..., Any], tmp_path: Path
) -> None:
    """(Of a server: `test_a_server_that_goes_in_the_middle`.)"""
    many = pa.table({"id": pa.array(range(300_000), pa.int64()), "x": pa.array(range(300_000), pa.float64())})
    copy(many, kept.database.format("t"), output_schema="id bigint, x double")
    largest = max(_files(tmp_path), key=os.path.getsize)
    os.truncate(largest, os.path.getsize(largest) // 2)
    with pytest.raises(akrunner.AkrunnerError, match="(cannot|could not) (be )?read|source: "):
        copy(kept.database.format("t"), tmp_path / "o.parquet", output_schema="id bigint, x double")
    assert not (tmp_path / "o.parquet").exists()


SECRET = "s3cr-et"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/shop?table=t", f"flightsql://me:{SECRET}@127.0.0.1:1?table=t",
        f"snowflake://me:{SECRET}@account/kept/main?table=t", f"sqlite:///no.db?table=t&password={SECRET}",
        f"duckdb:///no.duckdb?table=t&password={SECRET}", f"delta:///no?token={SECRET}", f"iceberg://prod/shop.t?token={SECRET}",
        f"lance:///no?token={SECRET}", f"datasets:///no?token={SECRET}",
    ],
)  # fmt: skip
def test_no_error_shows_a_secret_of_the_url(
    url: str, copy: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for source, output in ((url, None), ({"id": [1]}, url)):
        with pytest.raises(akrunner.ConfigError) as caught:
            copy(source, output, output_schema="id bigint")
        assert SECRET not in "".join(traceback.format_exception(caught.value)) and url.partition("?")[0].partition(":")[
            0
        ] in str(caught.value)


def test_the_first_batch_decides_the_columns(kept: Kept, copy: Callable[..., Any]) -> None:
    copy(TABLE.slice(0, 1), kept.database.format("t"))
    assert kept.sql("SELECT id, p, s FROM t") == [(1, 0.5, "a, 'b' \"c\"")]


def test_a_value_that_does_not_fit_names_its_row_and_column(kept: Kept, copy: Callable[..., Any]) -> None:
    if isinstance(kept, _Sqlite):
        # a column of SQLite takes any value
        return
    kept.make("t", [7])
    # PostgreSQL shows the value alone
    told = 'type bigint: "x"' if isinstance(kept, _Postgres) else "row 1, column 'id'"
    for overwrite in (False, True):
        if overwrite and isinstance(kept, _Hub):
            # which takes the place of the old one as a whole
            continue
        with pytest.raises(akrunner.WriteError, match=told):
            copy({"id": ["1", "x"]}, kept.database.format("t"), output_schema="id string", overwrite=overwrite)
    assert kept.sql("SELECT id FROM t") == [(7,)]


@pytest.mark.parametrize("kept", ["postgres", "duckdb"], indirect=True)
def test_only_0_and_1_become_booleans(kept: Kept, copy: Callable[..., Any]) -> None:
    kept.sql("CREATE TABLE t (b boolean, many boolean[])")
    for schema, rows in (("b int", {"b": [1, 2]}), ("many array<int>", {"many": [[0], [1, 2]]})):
        with pytest.raises(akrunner.WriteError, match=f"row 1, column '{next(iter(rows))}'"):
            copy(rows, kept.database.format("t"), output_schema=schema)
    copy({"b": [0, 1, None]}, kept.database.format("t"), output_schema="b int")
    assert kept.sql("SELECT b FROM t") == [(False,), (True,), (None,)]


@pytest.mark.parametrize("kept", ["postgres", "duckdb"], indirect=True)
def test_no_half_of_a_moment_is_lost(kept: Kept) -> None:
    from akrunner.io.systems import system_of

    kept.sql("CREATE TABLE t (d date, h time)")
    url, kind = kept.database.format("t"), pa.timestamp("us")
    with pytest.raises(akrunner.SinkError, match="column 'h' has moments, and the table's column is (?i:time)"):
        system_of(url).output(url, pa.schema([("h", kind)]), False)
    sink = system_of(url).output(url, pa.schema([("d", kind)]), False)
    day = datetime.datetime(2026, 7, 1)
    sink.write_rows(pa.record_batch({"d": pa.array([day, day.replace(hour=12)], kind)}))
    with pytest.raises(akrunner.WriteError, match="row 1, column 'd': '?2026-07-01 12:00:00"):
        sink.commit()
    sink.abort()
    assert kept.sql("SELECT * FROM t") == []


def test_the_database_runs_a_query(kept: Kept, copy: Callable[..., Any]) -> None:
    if not kept.server:
        kept.make("t", [1, 2, 3])
        counted = copy(kept.database.format("t"), select="SELECT sum(id)::bigint AS n FROM input", output_schema="n bigint")
        assert counted.table.to_pylist() == [{"n": 6}]
        return
    kept.sql("CREATE TABLE t (id bigint, s varchar(10))", "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, NULL)")
    query = 'SELECT id AS "ID", s FROM t WHERE s IS NOT NULL ORDER BY id DESC -- the newest first'
    assert copy(bare(kept), select=query).table.to_pylist() == [
        {"ID": 2, "s": b"y"},
        {"ID": 1, "s": b"x"},
    ] or copy(bare(kept), select=query, output_schema='"ID" bigint, s string').table.to_pylist() == [
        {"ID": 2, "s": "y"},
        {"ID": 1, "s": "x"},
    ]
    # of a table that is named, DuckDB runs it, here
    counted = copy(kept.database.format("t"), select="SELECT count(*) AS n FROM input", output_schema="n bigint")
    assert counted.table.to_pylist() == [{"n": 3}]
    assert copy(kept.database.format("t"), columns=["id"], output_schema="id bigint").table.num_rows == 3


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_job_that_fails_changes_nothing(
    kept: Kept, script: Script, leaves_nothing: Path, tmp_path: Path, overwrite: bool
) -> None:
    """It fails when rows were sent: behind more than are sent at once."""
    fails = script(
        """
        import numpy

        def main(task_config):
            for start in range(3):
                task_config.output_writer.write_batch({"id": numpy.arange(40_000)})
            task_config.report({"sent": 1})
            raise ValueError("boom")
        """
    )
    files = _files(tmp_path)
    for there in (False, True):
        if there:
            kept.make("t", [7])
            files = _files(tmp_path)
        with pytest.raises(akrunner.ScriptFailedError, match="boom"):
            akrunner.run(fails, {"a": [1]}, output=kept.database.format("t"), output_schema="id bigint", overwrite=overwrite)
        assert _files(tmp_path) == files
    assert kept.sql("SELECT id FROM t") == [(7,)]


def test_a_host_that_is_killed_changes_nothing(kept: Kept, script: Script, leaves_nothing: Path, tmp_path: Path) -> None:
    kept.make("t", [7])
    files = _files(tmp_path)
    waits = script(
        """
        import numpy, time

        def main(task_config):
            for start in range(3):
                task_config.output_writer.write_batch({"id": numpy.arange(40_000)})
            open(task_config.user_params["flag"], "w").close()
            time.sleep(1000)
        """
    )
    flag = tmp_path / "flag"
    job = f"{kept.begins}import akrunner; akrunner.run({waits!r}, {{'a': [1]}}, output={kept.database.format('t')!r}, output_schema='id bigint', overwrite=True, user_params={{'flag': {str(flag)!r}}})"
    with hosts.Popen([hosts.sys.executable, "-c", job], stdout=hosts.DEVNULL, stderr=hosts.DEVNULL) as host:
        wait_for(flag.exists)
        # rows are with the host by now, or with the database
        time.sleep(0.2)
        host.send_signal(signal.SIGKILL)
    flag.unlink()
    # by the guard of what was killed
    wait_for(lambda: not os.listdir(leaves_nothing))
    wait_for(lambda: kept.sql("SELECT id FROM t") == [(7,)])
    left = {os.path.basename(one) for one in set(_files(tmp_path)) - set(files)}
    assert left <= {"train.py", "kept.db-journal", "kept.duckdb.wal"}, left


def test_what_is_wrong_is_said_before_anything_starts(kept: Kept, copy: Callable[..., Any]) -> None:
    kept.make("sales", [1])
    sales = kept.database.format("sales")
    # a server that speaks Arrow says itself what it does not have
    missing = (
        "there is no table 'sale'.*did you mean 'sales'|cannot read .*sale" if kept.server else "there is no .*(table|dataset)"
    )
    mark = "&" if kept.server else "?"
    option, near = ("tabel", "table") if kept.server else ("partiton", "partition")
    meant = "" if isinstance(kept, (_LanceData, _Hub)) else f".*did you mean '{near}'"
    for source, words in (
        (kept.database.format("sale"), missing),
        *(((f"{sales}{mark}tabel=sales", "there is no option 'tabel'.*did you mean 'table'"),) if kept.server else ()),
        (f"{sales}{mark}nothing=1", "there is no option 'nothing'"),
        ([sales, "a.csv"], "one table of a (database|lakehouse) is one input"),
    ):
        with pytest.raises(akrunner.ConfigError, match=words):
            copy(source)
    for output, schema, words in (
        (sales, "ids bigint", "has no column 'ids' .*did you mean 'id'"),
        *(((bare(kept), "id bigint", r"names no table: put \?table=NAME"),) if kept.server else ()),
    ):
        with pytest.raises(akrunner.SinkError, match=words):
            copy(TABLE, output, output_schema=schema)
    with pytest.raises(akrunner.ConfigError, match=f"there is no option '{option}'{meant}"):
        copy(TABLE, f"{sales}{mark}{option}=x", output_schema="id bigint")
    with pytest.raises(akrunner.ConfigError, match="output_format= .*is for files"):
        copy(TABLE, sales, output_schema="id bigint", output_format="csv")


# -- what is PostgreSQL's own


def test_types_of_postgres(postgres: Postgres, copy: Callable[..., Any], script: Script) -> None:
    postgres.sql(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        """CREATE TABLE t AS SELECT 1 AS id, 1.25::numeric(10,2) AS n2, 12::numeric(12,0) AS n0, timestamptz '2026-01-02 03:04:05+02' AS z,
           date '2020-01-01' AS d, '{"a": 1}'::jsonb AS j, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u, array[1, 2, NULL] AS a, 'sad'::mood AS m,
           inet '1.2.3.4' AS i, 4294967295::oid AS o, true AS t, 'x' AS "Quo""ted" """,
    )
    plan = akrunner.plan(
        script(COPY, "copies.py"),
        postgres.url + "?table=t",
        data_format="columns",
        columns=["id", "n0", "z", "d", "j", "u", "a", "m", "i", "o", "t", 'Quo"ted'],
    )
    assert {one.name: one.type for one in plan.columns} == {
        "id": "int32", "n0": "decimal128(12, 0)", "z": "timestamp[us, tz=UTC]", "d": "date32[day]", "j": "string", "u": "string", "a": "list<item: int32>",
        "m": "string", "i": "string", "o": "int64", "t": "bool", 'Quo"ted': "string",
    }  # fmt: skip
    given = copy(
        postgres.url + "?table=t",
        columns=["id", "j", "u", "m", "i", "o", "d"],
        output_schema="id bigint, j string, u string, m string, i string, o bigint, d date",
    ).table.to_pylist()
    assert given == [
        {
            "id": 1,
            "j": '{"a": 1}',
            "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "m": "sad",
            "i": "1.2.3.4/32",
            "o": 4294967295,
            "d": datetime.date(2020, 1, 1),
        }
    ]
    with_text = copy(postgres.url + "?table=t&decimals=text", columns=["n2"], output_schema="n2 string").table.to_pylist()
    assert with_text == [{"n2": "1.25"}]


@pytest.mark.parametrize(
    "column, words",
    [
        ("interval '1 day'", r"type interval.*--select 'SELECT EXTRACT\(epoch FROM x\) AS x"),
        ("money '3'", r"type money.*SELECT x::numeric::float8 AS x"),
        ("1.5::numeric", "type numeric.*decimals=float64"),
        ("point '(1,2)'", "type point.*SELECT x::text AS x"),
        ("int4range(1, 3)", "type int4range"),
        ("date 'infinity'", "column 'x' has 'infinity'"),
        ("timestamp '-infinity'", "column 'x' has 'infinity'"),
        ("array[[1, 2], [3, 4]]", "column 'x' has arrays of arrays"),
    ],
)
def test_what_would_be_another_value_is_refused(postgres: Postgres, copy: Callable[..., Any], column: str, words: str) -> None:
    postgres.sql(f"CREATE TABLE t AS SELECT 1 AS id, {column} AS x")
    with pytest.raises(akrunner.AkrunnerError, match=words):
        copy(postgres.url + "?table=t")
    # nobody asks for it
    assert copy(postgres.url + "?table=t", columns=["id"], output_schema="id bigint").table.num_rows == 1


@pytest.mark.parametrize(
    ("value", "words"), [("date '-infinity'", "CASE WHEN isfinite"), ("ARRAY[timestamp 'infinity']", r"x::text\[\]")]
)
def test_the_query_that_is_proposed_for_infinity_runs(postgres: Postgres, value: str, words: str) -> None:
    postgres.sql(f"CREATE TABLE odd AS SELECT {value} AS x, '[5:6]={{1,2}}'::int[] AS a")
    table = postgres_system.SYSTEM.open(f"{postgres.url}?table=odd", None, None)
    with pytest.raises(akrunner.SourceError, match=words) as told:
        list(table.batches())
    way = re.search("'(SELECT .*), \\.\\.\\. FROM", str(told.value))
    assert way is not None
    # a query may end in a comment, and an array may begin at 5
    proposed = postgres_system.SYSTEM.open(postgres.url, f"{way[1]}, a FROM odd -- why", None)
    (found,) = pa.Table.from_batches(proposed.batches()).to_pylist()
    assert found in ({"x": None, "a": [1, 2]}, {"x": ["infinity"], "a": [1, 2]})


def test_of_two_jobs_that_replace_the_rows_one_wins(postgres: Postgres) -> None:
    rows, more = pa.record_batch({"id": [1, 2]}), pa.record_batch({"id": [2, 3]})
    url = f"{postgres.url}?table=t"
    # keys may be those of the old rows, and identities are taken as they are
    postgres.sql("CREATE TABLE t(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)", "INSERT INTO t VALUES (DEFAULT)")
    first, second = (postgres_system.SYSTEM.output(url, rows.schema, True) for _ in range(2))
    first.write_rows(rows)
    first._send()
    second.write_rows(more)
    second._send()
    added = postgres_system.SYSTEM.output(url, rows.schema, False)
    added.write_rows(pa.record_batch({"id": [9]}))
    # its rows are not committed, and nobody waits for it
    added._send()
    second.commit()
    first.commit()
    added.commit()
    assert sorted(postgres.sql("SELECT id FROM t")) == [(1,), (2,), (9,)]


def test_a_deferred_constraint_that_refuses_the_commit_is_no_lost_connection(postgres: Postgres) -> None:
    postgres.sql("CREATE TABLE df(id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)", "INSERT INTO df VALUES (5)")
    rows = pa.record_batch({"id": [5]})
    out = postgres_system.SYSTEM.output(f"{postgres.url}?table=df", rows.schema, False)
    out.write_rows(rows)
    with pytest.raises(akrunner.WriteError, match="has refused the commit, so no row was written: .*duplicate key"):
        out.commit()
    out.abort()
    assert postgres.sql("SELECT count(*) FROM df") == [(1,)]


def test_a_user_who_may_not_insert_is_told_before_the_job(postgres: Postgres) -> None:
    postgres.sql(
        "CREATE TABLE priv(id bigint, s text)",
        "DROP ROLE IF EXISTS poor",
        f"CREATE ROLE poor LOGIN PASSWORD '{PASSWORD}'",
        "GRANT USAGE ON SCHEMA public TO poor",
        "GRANT INSERT(s) ON priv TO poor",
    )
    url = postgres.url.replace("//akr@", "//poor@") + "?table=priv"
    with pytest.raises(
        akrunner.SinkError, match=r"may not insert rows \(column 'id'\): GRANT INSERT \(\"id\"\) ON public.priv TO"
    ):
        postgres_system.SYSTEM.output(url, pa.schema([("id", pa.int64())]), False)
    out = postgres_system.SYSTEM.output(url, pa.schema([("s", pa.string())]), False)
    out.write_rows(pa.record_batch({"s": ["a"]}))
    out.commit()
    postgres.sql("DROP OWNED BY poor", "DROP ROLE poor")


def test_rows_are_cast_to_the_columns_that_are_there(postgres: Postgres, copy: Callable[..., Any]) -> None:
    postgres.sql("CREATE TABLE t (extra text DEFAULT 'q', id int PRIMARY KEY, j jsonb, u uuid, n numeric(10,1), a smallint[])")
    rows = {
        "id": [1, 2],
        "j": ['{"a":1}', None],
        "u": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"] * 2,
        "n": [1.5, 2.25],
        "a": [[1], [2, 3]],
    }
    schema = "id bigint, j string, u string, n double, a array<bigint>"
    copy(rows, postgres.url + "?table=t", output_schema=schema)
    assert postgres.sql("SELECT id, j::text, n::text, a, extra FROM t ORDER BY id") == [
        (1, '{"a": 1}', "1.5", [1], "q"),
        (2, None, "2.3", [2, 3], "q"),
    ]
    with pytest.raises(akrunner.WriteError, match=r"duplicate key.*DETAIL: +Key \(id\)=\(1\) already exists"):
        copy(rows, postgres.url + "?table=t", output_schema=schema)
    with pytest.raises(akrunner.WriteError, match="out of range"):
        copy({"id": [2**40]}, postgres.url + "?table=t", output_schema="id bigint")
    with pytest.raises(akrunner.SinkError, match=r"cannot cast type integer\[\] to jsonb"):
        copy({"j": [[1]]}, postgres.url + "?table=t", output_schema="j array<int>")
    assert postgres.sql("SELECT count(*) FROM t") == [(2,)]


@pytest.mark.parametrize("column", ["varchar(3)", "char(3)", "bit(3)", "varchar(3)[]"])
def test_text_that_is_too_long_is_not_cut(postgres: Postgres, copy: Callable[..., Any], column: str) -> None:
    postgres.sql(f"CREATE TABLE t (s {column})")
    many = column.endswith("[]")
    schema = "s array<string>" if many else "s string"
    with pytest.raises(akrunner.WriteError, match="too long|does not match type"):
        copy({"s": [["1010"] if many else "1010"]}, postgres.url + "?table=t", output_schema=schema)
    copy({"s": [["101"] if many else "101"]}, postgres.url + "?table=t", output_schema=schema)
    assert postgres.sql("SELECT count(*) FROM t") == [(1,)]


def test_a_large_table_is_read_over_several_connections_as_one_state(
    postgres: Postgres, copy: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from akrunner.io.systems import postgres as ours

    monkeypatch.setattr(ours, "_LARGE", 1)
    postgres.sql("CREATE TABLE t AS SELECT g::bigint AS id FROM generate_series(0, 99999) g")
    table = ours.SYSTEM.open(postgres.url + "?table=t&connections=3", None, None)
    drawn = table.batches()
    first = next(drawn)
    # what comes meanwhile is not in it, and what goes is
    postgres.sql("DELETE FROM t WHERE id >= 50000", "INSERT INTO t VALUES (-1)")
    ids = [*first.column("id").to_pylist(), *(one for batch in drawn for one in batch.column("id").to_pylist())]
    assert sorted(ids) == list(range(100_000))
    again = [one for batch in table.batches() for one in batch.column("id").to_pylist()]
    assert sorted(again) == [-1, *range(50000)]
    assert again == [one for batch in table.batches() for one in batch.column("id").to_pylist()]


def test_passwords_come_from_the_usual_places_and_are_shown_nowhere(
    postgres: Postgres, copy: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.sql("CREATE TABLE t AS SELECT 1::bigint AS id")
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    (tmp_path / "pass").write_text(f"127.0.0.1:{postgres.port}:*:akr:{PASSWORD}\n")
    os.chmod(tmp_path / "pass", 0o600)
    whole = postgres.url.replace("@", f":{PASSWORD}@")
    for url in (
        f"{postgres.url}?table=t&password_file={tmp_path}/secret",
        f"{postgres.url}?table=t&passfile={tmp_path}/pass",
        f"{whole}?table=t",
    ):
        result = copy(url, output_schema="id bigint")
        assert result.table.num_rows == 1 and PASSWORD not in repr(result)
    with pytest.raises(akrunner.SourceError) as caught:
        copy(f"{whole}x?table=t")
    assert PASSWORD not in str(caught.value)
    with pytest.raises(akrunner.SourceError, match="password") as caught:
        copy(postgres.url + "?table=t")
    with pytest.raises(akrunner.SourceError, match="refuses the user or the password: it comes from PGPASSWORD") as caught:
        copy(postgres.url.replace("@", ":wr0ng-one@") + "?table=t")
    assert "wr0ng" not in str(caught.value)


def test_a_server_that_goes_in_the_middle(postgres: Postgres, copy: Callable[..., Any]) -> None:
    postgres.sql("CREATE TABLE t AS SELECT g::bigint AS id, repeat('x', 1000) AS s FROM generate_series(1, 50000) g")
    from akrunner.io.systems import postgres as ours

    table = ours.SYSTEM.open(postgres.url + "?table=t&connections=1", None, None)
    drawn = table.batches()
    next(drawn)
    postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'akrunner'")
    with pytest.raises(akrunner.SourceError, match="cannot read postgresql://akr@127.0.0.1"):
        sum(batch.num_rows for batch in drawn)


# -- what is SQLite's own


def test_types_of_sqlite(tmp_path: Path, copy: Callable[..., Any]) -> None:
    path = tmp_path / "odd.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (id integer, x numeric, late text, mixed)")
    connection.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?)",
        [(n, n if n % 2 else n + 0.123456789, None if n < 99_999 else "late", n) for n in range(100_000)],
    )
    connection.execute("INSERT INTO t VALUES (100000, NULL, NULL, 'word')")
    connection.commit()
    url = f"sqlite:///{path}"
    with pytest.raises(akrunner.SourceError, match=r"column 'mixed' has values of several types \(100,000 integer, 1 text\)"):
        copy(url)
    rows = copy(
        url + "?table=t", columns=["id", "x", "late"], output_schema="id bigint, x double, late string"
    ).table.to_pylist()
    assert (
        rows[:2] == [{"id": 0, "x": 0.123456789, "late": None}, {"id": 1, "x": 1.0, "late": None}]
        and rows[99_999]["late"] == "late"
    )
    # a double does not hold all integers
    connection.execute("INSERT INTO t VALUES (100001, 9007199254740993, NULL, 1)")
    connection.commit()
    connection.close()
    with pytest.raises(akrunner.SourceError, match="column 'x' has values of several types"):
        copy(url + "?table=t", columns=["x"])


def test_times_and_decimals_are_text_in_sqlite(tmp_path: Path) -> None:
    from akrunner.io.systems import sqlite
    from akrunner.spec import TaskSpec

    rows = pa.table(
        {
            "d": pa.array([datetime.date(2020, 1, 2)]),
            "t": pa.array([datetime.datetime(2020, 1, 2, 3, 4, 5)], pa.timestamp("us")),
            "n": pa.array([Decimal("1.50")]),
        }
    )
    sink = sqlite.SYSTEM.output(f"sqlite:///{tmp_path}/t.db?table=t", rows.schema, False)
    sink.write(TaskSpec("chief", 0), rows.to_batches()[0])
    assert not (tmp_path / "t.db").exists()
    sink.commit()
    sink.abort()
    assert sorted(os.listdir(tmp_path)) == ["t.db"]
    assert sqlite3.connect(tmp_path / "t.db").execute("SELECT * FROM t").fetchall() == [
        ("2020-01-02", "2020-01-02 03:04:05.000000", "1.50")
    ]


def test_sqlite_waits_for_another_program_that_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from akrunner.io.systems import sqlite

    path = tmp_path / "t.db"
    # the lock is the process's, and the driver has an SQLite of its own
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript('CREATE TABLE t (a INTEGER); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)');"
        "print(flush=True); sys.stdin.read(); c.commit()"
    )
    rows = pa.table({"a": [2, 3]})

    def write() -> None:
        sink = sqlite.SYSTEM.output(f"sqlite:///{path}?table=t", rows.schema, False)
        try:
            sink.write_rows(rows.to_batches()[0])
            sink.commit()
        finally:
            sink.abort()

    with subprocess.Popen([sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        monkeypatch.setattr(sqlite, "_LOCKED_SECONDS", 0)
        monkeypatch.setattr(apart, "_LIBRARIES", ())
        with pytest.raises(
            akrunner.WriteError, match=r"cannot write sqlite:///.*another program, .* has been writing to this database for 0 s"
        ):
            write()
        monkeypatch.undo()
        ended = threading.Timer(0.3, other.stdin.close)
        ended.start()
        write()
        ended.join()
    assert other.returncode == 0
    assert sqlite3.connect(path).execute("SELECT a FROM t").fetchall() == [(1,), (2,), (3,)]


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_sqlite_while_a_thread_of_the_program_writes_to_the_same_file(
    journal: str, tmp_path: Path, copy: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    if journal == "delete":
        request.getfixturevalue("forked_apart")
    # two libraries in one process would drop each other's locks: rows were lost, and files broken
    path = tmp_path / "t.db"
    kept = sqlite3.connect(path)
    kept.executescript(f"PRAGMA journal_mode = {journal}; CREATE TABLE t (id INTEGER); CREATE TABLE u (a INTEGER)")
    ended = threading.Event()
    written: list[int] = []

    def write() -> None:
        own = sqlite3.connect(path, timeout=30)
        while not ended.wait(0.002):
            own.execute("INSERT INTO u VALUES (?)", (len(written),))
            own.commit()
            written.append(1)
        own.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        result = copy({"id": list(range(50_000))}, f"sqlite:///{path}?table=t", overwrite=True)
        again = copy(f"sqlite:///{path}?table=t")
    finally:
        ended.set()
        thread.join()
    assert result.stats.rows_out == again.table.num_rows == 50_000
    assert kept.execute("SELECT COUNT(*), SUM(id) FROM t").fetchall() == [(50_000, 49_999 * 25_000)]
    assert kept.execute("SELECT COUNT(*) FROM u").fetchall() == [(len(written),)]
    assert kept.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    kept.close()


def test_ctrl_c_at_the_commit_of_a_server_is_told_truly() -> None:
    from akrunner.io.systems import system_of

    kept = _FlightSql()
    try:
        kept.make("t", [1])
        sink = system_of(kept.database).output(kept.database.format("t"), pa.schema([("id", pa.int64())]), True)
        sink.write_rows(pa.record_batch({"id": pa.array([2, 3], pa.int64())}))
        kept._server.before_commit = lambda: os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt) as told:
            sink.commit()
        sink.abort()
        assert "was written: its commit ended" in told.value.__notes__[0]
        assert sorted(kept.sql("SELECT id FROM t")) == [(2,), (3,)]
        assert kept.sql("SELECT table_name FROM information_schema.tables") == [("t",)]
    finally:
        kept.close()


@pytest.fixture(params=["postgres", "duckdb"])
def far(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """A system whose sessions are in New York, unless somebody says another zone."""
    # DuckDB asks the machine, libpq sends PGTZ
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    monkeypatch.setenv("PGTZ", "America/New_York")
    yield _Postgres(request.getfixturevalue("postgres")) if request.param == "postgres" else _DuckDB(tmp_path)
    monkeypatch.undo()
    time.tzset()


NOON = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize("words", ["timestamp", "timestamp with time zone", "string"])
def test_a_moment_stays_the_same_moment(far: Kept, copy: Callable[..., Any], words: str) -> None:
    """In a column that has a zone and in one that has none, there and back, wherever the server and this machine are."""
    far.sql("CREATE TABLE t (id bigint, moment timestamptz, local timestamp)", "CREATE TABLE u (id bigint, moment timestamptz)")
    url = far.database.format("t")
    texts = words == "string"
    column = pa.array(["2026-07-01 12:00:00+00" if texts else NOON] * 2, pa.string() if texts else pa.timestamp("us", "UTC"))
    rows = pa.table([pa.array([1, 2]), column, column], ["id", "moment", "local"])
    copy(rows, url, output_schema=f"id bigint, moment {words}, local {words}", overwrite=True)
    assert far.sql("SELECT DISTINCT extract(epoch FROM moment)::bigint FROM t") == [(int(NOON.timestamp()),)]
    assert [row[0] for row in far.sql("SELECT DISTINCT local::text FROM t")] == ["2026-07-01 12:00:00"]
    # from the table to another one of the system
    copy(url, far.database.format("u"), columns=["id", "moment"], output_schema="id bigint, moment timestamptz")
    assert far.sql("SELECT DISTINCT extract(epoch FROM moment)::bigint FROM u") == [(int(NOON.timestamp()),)]
    found = copy(url, columns=["moment"], output_schema="moment timestamp_ltz").table
    assert found.schema.field("moment").type == pa.timestamp("us", "UTC") and found["moment"].to_pylist() == [NOON, NOON]


def test_a_query_sees_utc(far: Kept, copy: Callable[..., Any]) -> None:
    far.sql("CREATE TABLE t (moment timestamptz)", "INSERT INTO t VALUES ('2026-07-01 02:30:00+00')")
    found = copy(far.database.partition("?")[0], select="SELECT moment::date::text AS day FROM t", output_schema="day string")
    assert found.table.to_pylist() == [{"day": "2026-07-01"}]
