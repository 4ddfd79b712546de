"""Files of SQLite in this process: types of columns that keep a type with each value, and tables that are whole or as they were."""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import JobTimeoutError, SinkError, SourceError, WriteError
from akrunner.io.limits import limited
from akrunner.io.systems import apart, database_file, sqlite
from akrunner.io.systems.sqlite import SYSTEM
from tests.guards import one_guard

__all__ = ["one_guard"]


class Nobody:
    """In place of the guard, which would be a process."""

    def register(self, path: str) -> None:
        pass

    def drop(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no other library for SQLite was here: the files of these tests are open in one alone."""
    monkeypatch.setattr(apart, "needed", lambda: False)
    monkeypatch.setattr(database_file, "leftovers", Nobody())


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "shop é.db")


def run(file: str, *statements: str) -> None:
    with contextlib.closing(sqlite._connected(file, "rwc")) as connection, contextlib.closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)
            cursor.fetchall()
        connection.commit()


def read(file: str, query: str | None = None, columns: Any = None, table: str = "t") -> pa.Table:
    url = f"sqlite:///{file}" + ("" if query else f"?table={table}")
    source = SYSTEM.open(url, query, columns)
    return pa.Table.from_batches(list(source.batches()), source.schema)


def write(file: str, *batches: pa.RecordBatch, overwrite: bool = False, commit: bool = True, table: str = "t") -> None:
    out = SYSTEM.output(f"sqlite:///{file}?table={table}", batches[0].schema, overwrite)
    try:
        for batch in batches:
            out.write_rows(batch)
        if commit:
            out.commit()
    finally:
        out.abort()


@pytest.mark.parametrize(
    ("values", "kind", "want"),
    [
        ("(1), (NULL), (-9223372036854775808)", pa.int64(), [1, None, -(2**63)]),
        ("(0.5), (NULL)", pa.float64(), [0.5, None]),
        ("('é'), (''), (NULL)", pa.string(), ["é", "", None]),
        ("(x'ff00'), (x'')", pa.binary(), [b"\xff\0", b""]),
        ("(NULL), (NULL)", pa.string(), [None, None]),
        # whole numbers that a double holds, among doubles
        ("(NULL), (1), (0.5), (9007199254740991)", pa.float64(), [None, 1.0, 0.5, 2.0**53 - 1]),
    ],
)
def test_a_column_has_the_type_of_all_its_values(file: str, values: str, kind: pa.DataType, want: list[Any]) -> None:
    run(file, "CREATE TABLE t (x)", f"INSERT INTO t VALUES {values}")
    found = read(file)
    assert found["x"].type == kind and found["x"].to_pylist() == want


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("(1), ('x'), ('y')", "1 integer, 2 text"),
        ("(0.5), (9007199254740993)", "1 integer, 1 real"),
        ("(0.5), (-9007199254740993)", "1 integer, 1 real"),
        ("('x'), (x'00')", "1 text, 1 blob"),
    ],
)
def test_a_column_of_several_types_is_refused(file: str, values: str, words: str) -> None:
    run(file, "CREATE TABLE t (x)", f"INSERT INTO t VALUES {values}")
    with pytest.raises(SourceError, match=rf"column 'x' has values of several types \({words}\); .*CAST\(\"x\" AS TEXT\)"):
        read(file)
    # the columns that are asked for are looked at first
    with pytest.raises(SourceError, match=r"has no column 'xs' \(it has x\); did you mean 'x'"):
        SYSTEM.open(f"sqlite:///{file}?table=t", None, ["xs"])


def test_tables_views_queries_and_some_of_the_columns(file: str) -> None:
    run(
        file,
        'CREATE TABLE t (a, "b c", d)',
        "INSERT INTO t VALUES (1, 'x', 0.5), (2, 'y', 1.5)",
        "CREATE VIEW v AS SELECT a FROM t",
    )
    assert read(file, columns=["d", "b c"]).to_pylist() == [{"d": 0.5, "b c": "x"}, {"d": 1.5, "b c": "y"}]
    assert read(file, table="V").to_pylist() == [{"a": 1}, {"a": 2}]
    assert read(file, "SELECT a * 2 AS twice FROM t ORDER BY a DESC; ").to_pylist() == [{"twice": 4}, {"twice": 2}]
    with pytest.raises(SourceError, match=r"no table 'w' .*"):
        read(file, table="w")
    with pytest.raises(SourceError, match="cannot run select= .*no such column"):
        read(file, "SELECT nope FROM t")


def test_a_table_is_read_as_it_is_each_time_and_odd_values_that_came_since_are_told(file: str) -> None:
    run(file, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    source = SYSTEM.open(f"sqlite:///{file}?table=t", None, None)
    assert [batch.to_pylist() for batch in source.batches() if batch.num_rows] == [[{"x": 1}]]
    run(file, "INSERT INTO t VALUES (2)")
    assert sum(batch.num_rows for batch in source.batches()) == 2


BATCH = pa.record_batch(
    {
        "i": pa.array([1, None], pa.int8()), "b": [True, None], "f": pa.array([0.5, None], pa.float32()), "s": ["é\n", ""], "z": [b"\0\xff", b""],
        "d": [datetime.date(2026, 1, 2), None], "t": [datetime.datetime(2026, 1, 2, 3, 4, 5), None], "n": [Decimal("1.50"), None],
    }
)  # fmt: skip


def test_what_is_written_is_kept_in_a_type_that_sqlite_has(file: str) -> None:
    write(file, BATCH, BATCH[:0], BATCH[1:])
    rows = read(file).to_pylist()
    first = {
        "i": 1,
        "b": 1,
        "f": 0.5,
        "s": "é\n",
        "z": b"\0\xff",
        "d": "2026-01-02",
        "t": "2026-01-02 03:04:05.000000",
        "n": "1.50",
    }
    empty = {**dict.fromkeys(first), "s": "", "z": b""}
    assert rows == [first, empty, empty]
    assert read(file, "SELECT strftime('%H', t) AS hour FROM t LIMIT 1").to_pylist() == [{"hour": "03"}]


def test_rows_are_added_or_take_the_place_of_the_old_ones(file: str) -> None:
    one, two = pa.record_batch({"x": [1]}), pa.record_batch({"x": [2]})
    write(file, one)
    write(file, two)
    assert read(file)["x"].to_pylist() == [1, 2]
    write(file, two, overwrite=True)
    assert read(file)["x"].to_pylist() == [2]
    write(file, one, overwrite=True, commit=False)
    assert read(file)["x"].to_pylist() == [2]


def test_a_new_file_is_there_when_the_job_has_succeeded(file: str) -> None:
    write(file, pa.record_batch({"x": [1]}), commit=False)
    assert os.listdir(os.path.dirname(file)) == []
    write(file, pa.record_batch({"x": pa.array([], pa.int64())}))
    assert os.listdir(os.path.dirname(file)) == [os.path.basename(file)] and read(file).num_rows == 0


@pytest.mark.parametrize(
    ("url", "column", "words"),
    [
        ("", pa.array([1]), "names no table: put .table=NAME behind it"),
        ("?table=t", pa.array([[1]]), "column 'x' is of type list<.*>, for which SQLite has none"),
        ("?table=t", pa.array([datetime.timedelta(1)]), "column 'x' is of type duration"),
        ("?table=t", pa.array([1]), "has no column 'x' .it has a, b."),
    ],
    ids=["no table", "list", "duration", "column"],
)
def test_what_cannot_be_written_is_told_before_the_job(file: str, url: str, column: pa.Array, words: str) -> None:
    run(file, "CREATE TABLE t (a, b)")
    with pytest.raises(SinkError, match=f"output: .*{words}"):
        SYSTEM.output(f"sqlite:///{file}{url}", pa.schema([("x", column.type)]), False)


def test_a_number_that_no_integer_of_sqlite_holds(file: str) -> None:
    with pytest.raises(WriteError, match="output: column 'x' cannot become SQLite's INTEGER"):
        write(file, pa.record_batch({"x": pa.array([2**64 - 1], pa.uint64())}))
    assert os.listdir(os.path.dirname(file)) == []


def test_another_writer_that_does_not_end_is_told(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(file, "CREATE TABLE t (x)")
    monkeypatch.setattr(sqlite, "_LOCKED_SECONDS", 0)
    with contextlib.closing(sqlite._connected(file, "rw")) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
        cursor.fetchall()
        with pytest.raises(WriteError, match=r"another connection of this one, has been writing .*\(database is locked\)"):
            write(file, pa.record_batch({"x": [2]}))
        connection.rollback()
    write(file, pa.record_batch({"x": [2]}))
    assert read(file)["x"].to_pylist() == [2]


def test_a_file_that_is_locked_before_the_start_is_told_in_words(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(file, "CREATE TABLE t (x INTEGER)")
    with contextlib.closing(sqlite._connected(file, "rw", 0)) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite, "_LOCKED_SECONDS", 0)
        words = r"sqlite:///.*: another program has had the file locked for a minute \(database is locked\)"
        with pytest.raises(SourceError, match=f"source: cannot read {words}"):
            SYSTEM.open(f"sqlite:///{file}?table=t", None, None)
        with pytest.raises(SinkError, match=f"output: cannot write {words}"):
            SYSTEM.output(f"sqlite:///{file}?table=t", pa.schema([("x", pa.int64())]), False)
        cursor.execute("ROLLBACK")


def test_a_program_that_reads_is_not_locked_out_while_rows_come_and_is_waited_for_no_longer_than_the_job_may(file: str) -> None:
    run(file, "CREATE TABLE t (x)")
    out = SYSTEM.output(f"sqlite:///{file}?table=t", pa.schema([("x", pa.int64())]), False)
    # more than SQLite keeps in memory
    out.write_rows(pa.record_batch({"x": range(400_000)}))
    with contextlib.closing(sqlite._connected(file, "ro", 0)) as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)
        with (
            limited(0.1, None),
            pytest.raises(JobTimeoutError, match="waited for another program that has sqlite:///.* locked"),
        ):
            out.commit()
        out.abort()
        cursor.execute("COMMIT")
    write(file, pa.record_batch({"x": [1]}))
    assert read(file)["x"].to_pylist() == [1]


def test_a_table_is_read_and_written_in_one_file_at_once(file: str) -> None:
    run(file, "CREATE TABLE t (x INTEGER)", "INSERT INTO t VALUES (1), (2)")
    source = SYSTEM.open(f"sqlite:///{file}?table=t", None, None)
    out = SYSTEM.output(f"sqlite:///{file}?table=t", source.schema, False)
    for batch in source.batches():
        out.write_rows(batch)
        out._send()
    out.commit()
    assert read(file)["x"].to_pylist() == [1, 2, 1, 2]


@pytest.mark.parametrize("meanwhile", ["DROP TABLE t", "DROP TABLE t; CREATE TABLE t (x REAL)"])
def test_a_table_that_somebody_changes_while_rows_come(file: str, meanwhile: str) -> None:
    run(file, "CREATE TABLE t (x TEXT)")
    out = SYSTEM.output(f"sqlite:///{file}?table=t", pa.schema([("x", pa.string())]), False)
    out.write_rows(pa.record_batch({"x": ["007"]}))
    out._send()
    run(file, *meanwhile.split("; "))
    with pytest.raises(WriteError, match="somebody has made or changed the table meanwhile"):
        out.commit()
    out.abort()


@pytest.mark.slow
def test_as_many_columns_as_sqlite_has_are_written_and_read(file: str) -> None:
    values = {f"c{number}": number if number % 2 else str(number) for number in range(1990)}
    write(file, pa.record_batch({name: [value] for name, value in values.items()}))
    assert read(file).to_pylist() == [values]
    assert read(file, columns=["c1989"]).to_pylist() == [{"c1989": 1989}]


@pytest.mark.parametrize(
    ("names", "table", "overwrite", "words"),
    [
        (["a", "A"], "new", False, "columns 'a' and 'A' are one to SQLite, which does not tell capitals from small"),
        (["a"], "v", False, "cannot modify v because it is a view"),
        (["a"], "w", True, "cannot modify w because it is a view"),
        (["a"], "sqlite_new", False, "reserved for internal use"),
        ([f"c{number}" for number in range(2001)], "new", False, "too many columns"),
    ],
    ids=["one name", "view", "view without DELETE", "reserved", "columns"],
)
@pytest.mark.parametrize("is_new", [True, False])
def test_a_table_that_sqlite_does_not_make_or_fill_is_told_before_the_job(
    file: str, names: list[str], table: str, overwrite: bool, words: str, is_new: bool
) -> None:
    if not is_new:
        run(
            file,
            "CREATE TABLE t (a)",
            "CREATE VIEW v AS SELECT a FROM t",
            "CREATE VIEW w AS SELECT a FROM t",
            "CREATE TRIGGER i INSTEAD OF INSERT ON w BEGIN INSERT INTO t VALUES (new.a); END",
        )
        # a trigger fills a view
        if table == "w":
            write(file, pa.record_batch({"a": [1]}), table="w")
            assert read(file).num_rows == 1
    elif table in ("v", "w"):
        return
    with pytest.raises(SinkError, match=words):
        SYSTEM.output(f"sqlite:///{file}?table={table}", pa.schema([(name, pa.int64()) for name in names]), overwrite)


@pytest.mark.parametrize(("kind", "value"), [(pa.int64(), 2**53 + 1), (pa.int64(), -(2**53) - 1), (pa.uint64(), 2**53 + 1)])
def test_integers_are_not_changed_by_a_column_of_doubles(file: str, kind: pa.DataType, value: int) -> None:
    run(file, "CREATE TABLE t (x DOUBLE PRECISION, n INTEGER)", "INSERT INTO t VALUES (0.5, 1)")
    good = pa.record_batch({"x": pa.array([2**53, None], kind), "n": pa.array([value, 0], kind)})
    write(file, good)
    bad = pa.record_batch({"x": pa.array([1, value], kind)})
    with pytest.raises(WriteError, match=rf"row 1, column 'x': the table's column is REAL, .* {value} there, .*beyond 2\*\*53"):
        write(file, bad)
    assert read(file, "SELECT count(*) AS n, max(x) AS x FROM t").to_pylist() == [{"n": 3, "x": 2.0**53}]
    assert read(file, "SELECT n FROM t WHERE n NOT IN (0, 1)").to_pylist() == [{"n": value}]


@pytest.mark.parametrize(
    ("declared", "end"),
    [("INTEGER", ""), ("int", " STRICT"), ("REAL", " STRICT"), ("double precision", ""), ("FLOATING POINT", "")],
)
def test_text_for_a_column_of_numbers_is_refused_before_the_job(file: str, declared: str, end: str) -> None:
    run(file, f"CREATE TABLE t (x {declared}){end}")
    with pytest.raises(
        SinkError, match=rf"(?i)column 'x' is text, and the table's column is {declared}, .*TEXT, or cast .*--output-schema 'x "
    ):
        SYSTEM.output(f"sqlite:///{file}?table=t", pa.schema([("x", pa.string())]), False)


#: (value, whether a column of the affinity NUMERIC leaves it as it is)
TEXTS = [
    *(
        (text, True)
        for text in ("ab", "", "2026-01-02", "12:00", "0x1F", "nan", "1_0", "7", "0", "-7", "1.5", "0.0001", "- 1", "1.2.3")
    ),
    *((text, True) for text in ("9223372036854775807", "-9223372036854775807", "1234567890.12345")),
    *((text, False) for text in ("00501", "007", "-0", "+7", " 7", "7\n", "1.50", "1.0", ".5", "5.", "1e5", "0.00001", "\v7")),
    *((text, False) for text in ("9223372036854775808", "12345678901234567890.12", "0.1234567890123456")),
    *((Decimal(text), True) for text in ("12.50", "-0.10", "123456789012345.00", "1234567890.12345", "0.0000000001")),
    *((Decimal(text), False) for text in ("12345678901234567890.12", "9007199254740993.5", "0.1234567890123456")),
]


@functools.cache
def kept(declared: str) -> dict[Any, str]:
    """What SQLite itself makes of each value in a column as it is declared: it says whether the test is right."""
    with tempfile.TemporaryDirectory() as folder:
        file, values = f"{folder}/kept.db", [value for value, _ in TEXTS]
        run(file, f"CREATE TABLE t (x {declared})", *(f"INSERT INTO t VALUES ('{value}')" for value in values))
        stored = read(file, "SELECT CAST(x AS TEXT) AS x FROM t ORDER BY rowid")["x"].to_pylist()
        return dict(zip(values, stored, strict=True))


@pytest.mark.parametrize(("value", "same"), TEXTS, ids=[repr(value) for value, _ in TEXTS])
@pytest.mark.parametrize("declared", ["STRING", "decimal(22,2)"])
def test_text_is_not_changed_in_a_column_of_the_affinity_numeric(file: str, value: Any, same: bool, declared: str) -> None:
    run(file, f"CREATE TABLE t (x {declared})")
    batch = pa.record_batch({"x": pa.array([None, value])})
    stored = kept(declared)[value]
    if not same:
        with pytest.raises(WriteError, match=r"row 1, column 'x': the table's column is .*declare the column TEXT, or cast"):
            write(file, batch)
    if isinstance(value, str):
        assert (stored == value) is same
    elif same:
        assert Decimal(stored) == value
    if same:
        write(file, batch, overwrite=True)
        assert read(file, "SELECT CAST(x AS TEXT) AS x FROM t")["x"].to_pylist() == [None, stored]


@pytest.mark.parametrize("declared", ["TEXT", "varchar(10)", "BLOB", "", "character(20)"])
def test_text_and_decimals_stay_in_columns_of_text(file: str, declared: str) -> None:
    run(file, f"CREATE TABLE t (x {declared}, y {declared})")
    write(file, pa.record_batch({"x": ["007"], "y": pa.array([Decimal("12345678901234567890.10")])}))
    assert read(file).to_pylist() == [{"x": "007", "y": "12345678901234567890.10"}]


def test_text_stays_where_akrunner_has_made_the_column_and_where_any_is_strict(file: str) -> None:
    batch = pa.record_batch({"x": ["007"], "y": pa.array([Decimal("12345678901234567890.10")])})
    write(file, batch)
    write(file, batch)
    run(file, "CREATE TABLE s (x ANY, y ANY) STRICT")
    write(file, batch, table="s")
    assert read(file).to_pylist() == read(file, table="s").to_pylist() * 2 == [{"x": "007", "y": "12345678901234567890.10"}] * 2


def test_a_decimal_in_columns_of_doubles_and_integers(file: str) -> None:
    run(file, "CREATE TABLE t (x REAL, y INTEGER)")
    write(file, pa.record_batch({"x": [Decimal("1.50")], "y": [Decimal(1 << 60)]}))
    assert read(file).to_pylist() == [{"x": 1.5, "y": 1 << 60}]
    with pytest.raises(WriteError, match="row 0, column 'x': the table's column is REAL"):
        write(file, pa.record_batch({"x": [Decimal((1 << 60) + 1)]}))


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("REAL", pa.float64()),
        ("INT", pa.int64()),
        ("varchar(3)", pa.string()),
        ("decimal(5,2)", pa.float64()),
        ("BOOLEAN", pa.int64()),
        ("date", pa.string()),
        ("", pa.string()),
    ],
)
def test_a_column_of_nulls_is_of_the_type_that_was_declared(file: str, declared: str, kind: pa.DataType) -> None:
    run(file, f"CREATE TABLE t (x {declared})", "CREATE VIEW v AS SELECT x FROM t", "INSERT INTO t VALUES (NULL)")
    assert read(file).schema.field("x").type == read(file, table="v").schema.field("x").type == kind
    assert read(file)["x"].to_pylist() == [None]


def test_a_close_that_fails_behind_the_commit_is_a_warning(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(file, "CREATE TABLE t (x INTEGER)")
    out = SYSTEM.output(f"sqlite:///{file}?table=t", pa.schema([("x", pa.int64())]), False)
    out.write_rows(pa.record_batch({"x": [7]}))

    def broken(self: Any) -> None:
        self._connection.close()
        raise OSError("the disk is gone")

    monkeypatch.setattr(sqlite._Writing, "_end", broken)
    with pytest.warns(RuntimeWarning, match="everything was written, and then its end failed .*the disk is gone"):
        out.commit()
    out.abort()
    assert read(file).to_pylist() == [{"x": 7}]


def test_bytes_of_one_length_are_a_blob() -> None:
    assert sqlite._sent("id", pa.binary(2), "t") == ("BLOB", pa.binary())
