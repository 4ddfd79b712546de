"""What `akrunner tables put` and `get` decide about columns before a row is read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import SinkError, SourceError
from akrunner.io.csv_options import CsvOptions
from akrunner.schema import Schema
from akrunner.tables.ddl import parse_create
from akrunner.tables.files import Put, check_columns, get, put, read_columns, table_fits
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo
from tests.unit.tables.conftest import made, rows


def info_of(columns: str, more: str = "") -> TableInfo:
    info = parse_create(f"create table t ({columns}) {more}").info
    assert info is not None
    return info


PARTED = info_of("alpha bigint, beta string", "partitioned by (dt string, hh string)")


@pytest.mark.parametrize(
    "given, columns, fit",
    [
        ([("A", pa.int32())], "a bigint", True),
        ([("A", pa.int64())], "a string", False),
        ([("other", pa.int64())], "a string", True),
        ([("a", pa.int64()), ("b", pa.string())], "a bigint, b bigint", False),
        ([], "a string", True),
    ],
)
def test_columns_fit_that_may_be_written_as_they_are(given: list[tuple[str, pa.DataType]], columns: str, fit: bool) -> None:
    assert table_fits(pa.schema(given), info_of(columns)) is fit


def test_columns_of_a_file_are_the_tables_in_any_case() -> None:
    name = TableName.parse("t/dt=1/hh=2", "demo")
    check_columns(name, PARTED, pa.schema([("ALPHA", pa.int64()), ("DT", pa.string())]))
    check_columns(name, PARTED, pa.schema([]))


@pytest.mark.parametrize(
    "name, column, why",
    [
        ("t/dt=1/hh=2", "Alpa", "odps://demo/tables/t has no column 'Alpa' (it has alpha, beta); did you mean 'alpha'?; --select says which to put; more"),
        ("t/dt=1", "HH", "is partitioned by HH: put each partition by itself (odps://demo/tables/t/HH=..., --select)"),
    ],
)  # fmt: skip
def test_a_column_the_table_has_no_place_for(name: str, column: str, why: str) -> None:
    with pytest.raises(SinkError) as told:
        check_columns(TableName.parse(name, "demo"), PARTED, pa.schema([(column, pa.string())]), "; more")
    assert why in str(told.value)


@pytest.mark.parametrize(
    "name, columns",
    [
        ("t", ["alpha", "beta", "dt", "hh"]),
        ("t/hh=1", ["alpha", "beta", "dt"]),
        ("t/dt=1/hh=1", ["alpha", "beta"]),
    ],
)
def test_a_table_that_is_read_whole_has_the_partition_columns_its_name_does_not_say(name: str, columns: list[str]) -> None:
    assert read_columns(TableName.parse(name, "demo"), PARTED) == columns


def test_numbers_in_a_text_become_what_the_table_has(plain: LocalTables, tmp_path: Path) -> None:
    """7.10 of a STRING column keeps its zero, and a DECIMAL its last digits."""
    name = made(plain, "create table t (s string, d decimal(30,10), n int)")
    file = tmp_path / "in.csv"
    file.write_text("s,d,n\n7.10,12345678.1234567891,3\n")
    assert put(str(file), name, plain) == Put(1)
    (row,) = rows(plain, name)
    assert (row[0], str(row[1]), row[2]) == ("7.10", "12345678.1234567891", 3)


def test_a_file_of_other_rows_replaces_or_follows(plain: LocalTables, tmp_path: Path) -> None:
    file = tmp_path / "in.parquet"
    pq.write_table(pa.table({"A": [1], "b": ["x"]}), file)
    name = TableName.parse("t", "demo")
    made_by = put(str(file), name, plain)
    assert made_by.rows == 1 and made_by.created == "CREATE TABLE demo.t (\n    a BIGINT,\n    b STRING\n);"
    assert put(str(file), name, plain) == Put(1) and len(rows(plain, name)) == 2
    assert put(str(file), name, plain, overwrite=True) == Put(1) and rows(plain, name) == [(1, "x")]


@pytest.mark.parametrize(
    "more, why",
    [
        ({"select": "a"}, "--no-header: --select needs names"),
        ({"input_format": "jsonl"}, "--no-header is for CSV files of this machine"),
        ({}, r"there is no table odps://demo/tables/t; make it \(CREATE TABLE\), or give --input-schema"),
    ],
)
def test_a_csv_without_names_needs_names_from_elsewhere(
    plain: LocalTables, tmp_path: Path, more: dict[str, str], why: str
) -> None:
    (tmp_path / "in.csv").write_text("1\n")
    with pytest.raises(SourceError, match=why):
        put(str(tmp_path / "in.csv"), TableName.parse("t", "demo"), plain, header=False, **more)  # type: ignore[arg-type]
    assert plain.tables("demo") == []


def test_a_bad_row_of_a_csv_without_names_makes_no_table(plain: LocalTables, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1\nx\n")
    name, schema = TableName.parse("t", "demo"), Schema.parse("a bigint")
    with pytest.raises(SourceError, match=r"source: .*in\.csv: "):
        put(str(tmp_path / "in.csv"), name, plain, header=False, input_schema=schema)
    assert plain.tables("demo") == []


def test_an_empty_table_becomes_a_file_with_its_columns(plain: LocalTables, tmp_path: Path) -> None:
    name = made(plain, "create table t (a bigint) partitioned by (dt string)")
    assert get(name, str(tmp_path / "out.parquet"), plain) == 0
    assert pq.read_schema(tmp_path / "out.parquet").names == ["a", "dt"]
    assert get(name, str(tmp_path / "out"), plain, columns=["A"], output_format="csv") == 0
    assert (tmp_path / "out").read_text() == '"a"\n'
    with pytest.raises(SourceError, match="has no column 'nope'"):
        get(name, str(tmp_path / "other.csv"), plain, columns=["nope"])
    assert not (tmp_path / "other.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "text", "csv", "notes"),
    [
        ("in.csv", "1;x,y\n2;z\n", None, ["is read as ';'-separated"]),
        ("in.tsv", "1\tx,y\n2\tz\n", None, []),
        ("in.csv", "1|x,y\n2|z\n", "delimiter=pipe", []),
    ],
)
@pytest.mark.parametrize("header", [True, False])
def test_what_stands_between_cells_is_said_or_seen(
    file: str, text: str, csv: str | None, notes: list[str], header: bool, plain: LocalTables, tmp_path: Path
) -> None:
    mark = text[1]
    (tmp_path / file).write_text(f"a{mark}s\n{text}" if header else text)
    schema, said = Schema.parse("a bigint, s string"), CsvOptions.of(csv, "input_csv")
    name = TableName.parse("seen", "demo")
    done = put(str(tmp_path / file), name, plain, header=header, input_schema=schema, input_csv=said)
    assert done.rows == 2 and len(done.notes) == len(notes) and all(map(str.__contains__, done.notes, notes))
    assert rows(plain, name) == [(1, "x,y"), (2, "z")]
    if header:
        (tmp_path / file).write_text(text)
        with pytest.raises(SourceError, match="it is a row, it seems, and would be lost"):
            put(str(tmp_path / file), name, plain, input_csv=said)
    else:
        with pytest.raises(SourceError, match="--no-header: of --input-csv it takes only delimiter"):
            put(str(tmp_path / file), name, plain, header=False, input_csv=CsvOptions.of("null=NA", "input_csv"))
        (tmp_path / file).write_text("1;2\n")
        assert (
            put(
                str(tmp_path / file), TableName.parse("one", "demo"), plain, header=False, input_schema=Schema.parse("s string")
            ).rows
            == 1
        )


def test_a_table_of_a_database_is_put_as_a_file_is(plain: LocalTables, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE sales AS SELECT 1 AS a, '007' AS b")
    url = f"duckdb:///{tmp_path}/shop.duckdb"
    assert put(f"{url}?table=sales", TableName.parse("t", "demo"), plain).rows == 1
    assert put(url, TableName.parse("t", "demo"), plain, select="SELECT a + 1 AS a, b FROM sales") == Put(1)
    assert sorted(rows(plain, TableName.parse("t", "demo"))) == [(1, "007"), (2, "007")]
