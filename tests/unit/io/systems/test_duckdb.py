"""Files of DuckDB: which table a URL names, and a file that this process has open itself."""

from __future__ import annotations

import contextlib
import datetime
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from akrunner.errors import JobTimeoutError, SinkError, SourceError, WriteError
from akrunner.io.limits import limited, with_rows
from akrunner.io.systems import duckdb as system
from akrunner.io.systems.duckdb import SYSTEM
from tests.guards import one_guard

__all__ = ["one_guard"]

X = pa.schema([("x", pa.int32())])
MOMENTS = pa.schema([("x", pa.timestamp("us"))])
DAY, NOON = datetime.datetime(2026, 7, 1), datetime.datetime(2026, 7, 1, 12)


@functools.cache
def _instance() -> Any:
    return duckdb.connect()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Yield a connection that has a file open. (To attach a file takes 1 ms; `duckdb.connect` would take 40, for an instance.)"""
    with contextlib.closing(_instance().cursor()) as connection:
        connection.execute(f"ATTACH '{path}' AS {path.stem}; USE {path.stem}")
        try:
            yield connection
        finally:
            connection.execute(f"USE memory; DETACH {path.stem}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with opened(path) as connection:
        connection.execute("CREATE TABLE u AS SELECT 1 AS x; CREATE SCHEMA s; CREATE TABLE s.u AS SELECT 2 AS x")
        connection.execute('CREATE TABLE "a.b" AS SELECT 3 AS x')
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("CREATE VIEW t AS SELECT 1::INTEGER AS x", "output: cannot write .*"),
        ("CREATE TABLE t (z INTEGER, x INTEGER GENERATED ALWAYS AS (z + 1))", "(?i)generated"),
        ("CREATE TABLE t (x INTEGER, y INTEGER NOT NULL)", "column 'y' of .* may not be null and has no default"),
        ("CREATE TABLE t (x TIME)", "column 'x' has moments, and the table's column is TIME, which would lose their days"),
        ("CREATE TABLE t (x TIME[])", "the table's column is TIME\\[\\], which would lose their days"),
        ("CREATE SCHEMA a", "columns 'x' and 'X' are one to DuckDB"),
    ],
)
def test_a_table_that_takes_no_such_rows_is_told_before_the_job(tmp_path: Path, made: str, words: str) -> None:
    given = {
        "CREATE TABLE t (x TIME)": MOMENTS,
        "CREATE TABLE t (x TIME[])": pa.schema([("x", pa.list_(pa.timestamp("us")))]),
        "CREATE SCHEMA a": pa.schema([*X, ("X", pa.int32())]),
    }.get(made, X)
    path = tmp_path / "t.duckdb"
    with opened(path) as connection:
        connection.execute(made)
    with pytest.raises(SinkError, match=words):
        SYSTEM.output(f"duckdb:///{path}?table=t", given, False)


@pytest.mark.slow
def test_a_default_takes_the_place_of_a_column_that_the_rows_lack(tmp_path: Path, one_guard: None) -> None:
    path = tmp_path / "t.duckdb"
    with opened(path) as connection:
        connection.execute("CREATE TABLE t (x INTEGER, y INTEGER NOT NULL DEFAULT 7)")
    sink = SYSTEM.output(f"duckdb:///{path}?table=t", X, False)
    sink.write_rows(pa.record_batch([pa.array([1, 2], pa.int32())], X))
    sink.commit()
    with opened(path) as connection:
        assert connection.execute("SELECT * FROM t ORDER BY x").fetchall() == [(1, 7), (2, 7)]


@contextlib.contextmanager
def one_instance(path: Path, writes: bool) -> Iterator[Any]:
    """Yield a connection to a file, whose instance akrunner's connections to it share meanwhile: each alone would make one."""
    with contextlib.closing(duckdb.connect(str(path), read_only=not writes)) as connection:
        yield connection


def write(path: Path, table: str, values: list[int], overwrite: bool = False) -> None:
    sink = SYSTEM.output(f"duckdb:///{path}?table={table}", X, overwrite)
    sink.write_rows(pa.record_batch([pa.array(values, pa.int32())], schema=X))
    sink.commit()


def rows(path: Path, table: str) -> object:
    return pa.Table.from_batches(SYSTEM.open(f"duckdb:///{path}?table={table}", None, None).batches()).column("x").to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "x"),
    [("u", 1), ("main.u", 1), ("MAIN.U", 1), ("shop.main.u", 1), ("s.u", 2), ("shop.s.u", 2), ("a.b", 3), ("main.a.b", 3)],
)
def test_a_table_by_each_of_its_names(file: Path, table: str, x: int) -> None:
    with one_instance(file, writes=False):
        assert rows(file, table) == [x]
    # what is written is what is read
    with one_instance(file, writes=True):
        write(file, table, [7], overwrite=True)
    with one_instance(file, writes=False):
        assert rows(file, table) == [7]
    with opened(file) as connection:
        assert len(connection.execute("SELECT * FROM information_schema.tables").fetchall()) == 3


@pytest.mark.slow
@pytest.mark.parametrize("table", ["new", "s.new", "shop.s.new", "SHOP.MAIN.new", "akrunner_rows", "s.akrunner_rows"])
def test_a_new_table_is_found_by_the_name_by_which_it_was_made(file: Path, table: str) -> None:
    # of one of them, each step sees what the file has by then
    with contextlib.nullcontext() if table == "new" else one_instance(file, writes=True):
        for _ in range(2):
            write(file, table, [7])
    with contextlib.nullcontext() if table == "new" else one_instance(file, writes=False):
        assert rows(file, table) == [7, 7]


@pytest.mark.parametrize("table", ["none.t", "shop.none.t", "other.main.t", "x.parquet", "s.", "a.b.c.d"])
def test_a_new_table_in_a_schema_that_is_not_there(file: Path, table: str) -> None:
    for path in (file, file.with_name("new.duckdb")):
        with pytest.raises(SinkError, match=rf"there is no table '{table}', and a new one is called NAME or .*\(main"):
            SYSTEM.output(f"duckdb:///{path}?table={table}", X, False)


@pytest.mark.slow
def test_a_file_a_schema_and_a_table_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "k.duckdb"
    with opened(path) as connection:
        connection.execute("CREATE SCHEMA k; CREATE TABLE k.k.k AS SELECT 1 AS x; CREATE TABLE k.main.k AS SELECT 2 AS x")
    assert rows(path, "k") == [2] and rows(path, "k.k") == rows(path, "k.k.k") == [1]
    write(path, "k.k", [7])
    assert rows(path, "k.k") == [1, 7] and rows(path, "k") == [2]
    # the name of a new database counts as soon as it is one
    write(tmp_path / "new.duckdb", "new.main.t", [7])
    assert rows(tmp_path / "new.duckdb", "t") == [7]


@pytest.mark.slow
def test_columns_that_arrow_does_not_have_are_left_alone(file: Path) -> None:
    with opened(file) as connection:
        connection.execute("CREATE TABLE w AS SELECT 1::INTEGER AS x, '101'::BIT AS b, '12:00:00+01'::TIMETZ AS z")
    source = SYSTEM.open(f"duckdb:///{file}?table=w", None, ["x"])
    assert pa.Table.from_batches(source.batches()).to_pylist() == [{"x": 1}]
    with pytest.raises(SourceError, match="column 'b' has DuckDB's type BIT"):
        SYSTEM.open(f"duckdb:///{file}?table=w", None, None)
    with pytest.raises(SourceError, match="has no column 'xs'.*did you mean 'x'"):
        SYSTEM.open(f"duckdb:///{file}?table=w", None, ["xs"])
    write(file, "w", [2])
    with opened(file) as connection:
        assert connection.execute("SELECT x, b FROM w ORDER BY x").fetchall() == [(1, "101"), (2, None)]


@pytest.mark.slow
@pytest.mark.parametrize("linked", [False, True])
def test_a_table_is_read_and_written_in_one_file_at_once(file: Path, linked: bool) -> None:
    read = file.with_name("link.duckdb") if linked else file
    if linked:
        read.symlink_to(file)
    source = SYSTEM.open(f"duckdb:///{read}?table=u", None, None)
    sink = SYSTEM.output(f"duckdb:///{file}?table=u", source.schema, False)
    for batch in source.batches():
        again = SYSTEM.output(f"duckdb:///{file}?table=u", source.schema, False)
        again.abort()
        sink.write_rows(batch)
        sink._send()
    sink.commit()
    assert rows(file, "u") == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("linked", [False, True])
def test_a_file_that_is_still_read_at_the_end_is_waited_for_as_long_as_the_job_may(file: Path, linked: bool) -> None:
    read = file.with_name("link.duckdb") if linked else file
    if linked:
        read.symlink_to(file)
    source = SYSTEM.open(f"duckdb:///{read}?table=u", None, None)
    reading: Any = source.batches()
    next(reading)
    sink = SYSTEM.output(f"duckdb:///{file}?table=u", source.schema, False)
    with limited(0.1, None), pytest.raises(JobTimeoutError, match="waited for another program that has .* open"):
        sink.commit()
    sink.abort()
    reading.close()
    assert rows(file, "u") == [1]


class Locked:
    """Another program that has the file open when akrunner opens it for the first `times` times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.times, self._connected = times, system._connected
        monkeypatch.setattr(system, "_connected", self.connected)
        monkeypatch.setattr(system, "_TICK", 0)

    def connected(self, *args: Any, **options: Any) -> Any:
        if self.times:
            self.times -= 1
            raise duckdb.IOException('IO Error: Could not set lock on file "shop.duckdb": Conflicting lock is held in ...')
        return self._connected(*args, **options)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_a_program_that_opens_the_file_while_the_job_runs_is_waited_for(
    file: Path, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """late: the first rows tell the columns, as without --output-schema."""
    url, batch = f"duckdb:///{file}?table=u", pa.record_batch([pa.array([5], pa.int32())], schema=X)
    sink = SYSTEM.output(url, X, False)
    locked = Locked(monkeypatch, 3)
    if late:
        with with_rows():
            sink = SYSTEM.output(url, X, False)
        assert locked.times == 0
        locked.times = 3
    sink.write_rows(batch)
    sink._send()
    assert locked.times == 0
    locked.times = 3
    sink.commit()
    assert locked.times == 0 and rows(file, "u") == [1, 5]


@pytest.mark.slow
def test_a_program_that_keeps_the_file_open_is_waited_for_as_long_as_the_job_may_or_a_minute(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"duckdb:///{file}?table=u"
    sink = SYSTEM.output(url, X, False)
    locked = Locked(monkeypatch, sys.maxsize)
    with limited(0.1, None):
        with with_rows(), pytest.raises(JobTimeoutError, match="waited for another program that has .* open"):
            SYSTEM.output(url, X, False)
        with pytest.raises(JobTimeoutError, match="waited for another program that has .* open"):
            sink.commit()
    monkeypatch.setattr(system, "_LOCKED_SECONDS", 0.1)
    with pytest.raises(WriteError, match="Could not set lock"):
        sink.commit()
    # before the start, it is told at once
    monkeypatch.setattr(system, "_LOCKED_SECONDS", 60)
    locked.times = 1
    with pytest.raises(SinkError, match="Could not set lock"):
        SYSTEM.output(url, X, False)


@pytest.mark.slow
@pytest.mark.parametrize("meanwhile", ["DROP TABLE u", "DROP TABLE u; CREATE TABLE u (x VARCHAR)"])
def test_a_table_that_somebody_changes_while_rows_come(file: Path, meanwhile: str) -> None:
    sink = SYSTEM.output(f"duckdb:///{file}?table=u", X, False)
    sink.write_rows(pa.record_batch([pa.array([1], pa.int32())], schema=X))
    sink._send()
    with opened(file) as connection:
        connection.execute(meanwhile)
    with pytest.raises(WriteError, match="somebody has made or changed the table meanwhile"):
        sink.commit()
    sink.abort()


def test_a_table_that_is_not_there(file: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no table 'main.v' \(there are: a.b, s.u, u\)"):
        rows(file, "main.v")


@pytest.mark.slow
def test_a_file_that_this_process_has_open(file: Path) -> None:
    with contextlib.closing(duckdb.connect(str(file))):
        with pytest.raises(
            SourceError,
            match=r"this process has a connection to .*shop.duckdb open itself .*close it first, or give the table itself",
        ):
            rows(file, "u")
        # two connections of a process may write
        write(file, "u", [2])
    with contextlib.closing(duckdb.connect(str(file), read_only=True)):
        assert rows(file, "u") == [1, 2]
        with pytest.raises(SinkError, match="output: cannot write .*this process has a connection to .*; close it first$"):
            SYSTEM.output(f"duckdb:///{file}?table=u", X, False)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["ours", "table", "connection", "quoted"])
def test_a_new_table_may_have_the_name_of_a_variable(file: Path, table: str) -> None:
    sink = SYSTEM.output(f"duckdb:///{file}?table={table}", X, False)
    sink.write_rows(pa.record_batch([pa.array([7], pa.int64())], schema=X))
    sink.commit()
    assert rows(file, table) == [7]
    with pytest.raises(SourceError, match="Table with name pa does not exist"):
        SYSTEM.open(f"duckdb:///{file}", "SELECT * FROM pa", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "kind", "good", "bad", "words"),
    [
        ("BOOLEAN", pa.int64(), [0, 1, None], 2, "'2' does not fit the table's column, which is BOOLEAN"),
        ("BOOLEAN", pa.float64(), [0.0, 1.0, None], 0.5, "'0.5' does not fit"),
        ("BOOLEAN[]", pa.list_(pa.int64()), [[0], [1, 1], None], [0, 2], "does not fit"),
        ("TINYINT", pa.int64(), [-128, 127, None], 128, "'128' does not fit"),
        ("INTEGER", pa.string(), ["1", " 2", None], "x", "'x' does not fit"),
        ("INTEGER NOT NULL", pa.int32(), [1, 2, 3], None, "a null does not fit the table's column, which is INTEGER NOT NULL"),
        ("FLOAT", pa.float64(), [0.5, 1.5, None], 1e300, "'1e+300' does not fit"),
        ("ENUM ('a', 'b')", pa.string(), ["a", "b", None], "c", "'c' does not fit"),
        ("INTEGER", pa.list_(pa.int64()), [None, None, None], [1], "'[1]' does not fit"),
        ("DATE", pa.string(), ["2026-01-02", "2026-01-03", None], "2026-13-01", "'2026-13-01' does not fit"),
        ("DATE", pa.string(), ["2026-01-02", "2026-01-03 00:00", None], "2026-01-01 12:00", "'2026-01-01 12:00' does not fit"),
        (
            "DATE",
            pa.timestamp("us"),
            [DAY, DAY, None],
            NOON,
            "'2026-07-01 12:00:00' does not fit the table's column, which is DATE",
        ),
        ("DATE", pa.timestamp("ns", "UTC"), [DAY, DAY, None], NOON, "12:00:00+00' does not fit"),
        ("DATE[]", pa.list_(pa.timestamp("us")), [[DAY, None], [], None], [DAY, NOON], "does not fit"),
        (
            "DATE[][]",
            pa.list_(pa.list_(pa.timestamp("us", "UTC"))),
            [[[DAY], None], [[]], None],
            [[DAY], [NOON]],
            "does not fit",
        ),
        ("DATE[2]", pa.list_(pa.timestamp("us"), 2), [[DAY, None], [DAY, DAY], None], [DAY, NOON], "does not fit"),
        ("DATE[]", pa.list_(pa.string()), [["2026-01-02"], [None], None], ["2026-01-02 12:00"], "does not fit"),
        ("TIME[]", pa.list_(pa.string()), [["12:00"], [None], None], ["2026-01-01 12:00"], "does not fit"),
        ("BOOLEAN[][]", pa.list_(pa.list_(pa.int64())), [[[0]], [[1, 1]], None], [[0], [2]], "does not fit"),
        ("TIME", pa.string(), ["12:00", "12:00:01.5", None], "2026-01-01 12:00", "'2026-01-01 12:00' does not fit"),
    ],
)
def test_a_value_that_does_not_fit_names_its_row_and_column(
    file: Path, declared: str, kind: pa.DataType, good: list[Any], bad: Any, words: str
) -> None:
    schema = pa.schema([("x", kind)])
    with contextlib.ExitStack() as kept:
        connection = kept.enter_context(one_instance(file, writes=True))
        connection.execute(f"CREATE TABLE w (x {declared}, y INTEGER DEFAULT 7)")
        if declared == "DATE":
            # of these, each step sees what the file has by then
            kept.close()
        for values in ([*good, bad], good):
            sink = SYSTEM.output(f"duckdb:///{file}?table=w", schema, False)
            sink.write_rows(pa.record_batch([pa.array(values, kind)], schema=schema))
            if values is good:
                sink.commit()
                continue
            with pytest.raises(WriteError, match=r"row 3, column 'x': .*" + re.escape(words)):
                sink.commit()
            sink.abort()
    with opened(file) as connection:
        assert connection.execute("SELECT count(*), min(y) FROM w").fetchall() == [(3, 7)]


def test_a_query_that_the_database_does_not_run_is_told_as_one(tmp_path: Path) -> None:
    with opened(tmp_path / "a.duckdb") as connection:
        connection.execute("CREATE TABLE t (id bigint)")
    with pytest.raises(SourceError, match=r"^source: duckdb:.*a\.duckdb cannot run select= \(--select\): .*\"?idd"):
        SYSTEM.open(f"duckdb:///{tmp_path}/a.duckdb", "SELECT idd FROM t", None)
