"""What is written to a local table: rows get its columns and types, and its files, beside what people keep there, take their place at once."""

from __future__ import annotations

import datetime
import decimal
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import DataError, WriteError
from akrunner.tables.ddl import parse_create
from akrunner.tables.local import LocalTables
from akrunner.tables.local_output import LocalOutput, commit, fits, fitted_to
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo
from tests.unit.tables.conftest import made, put, rows


def info_of(columns: str, more: str = "") -> TableInfo:
    info = parse_create(f"create table t ({columns}) {more}").info
    assert info is not None
    return info


@pytest.mark.parametrize(
    "given, wanted, may",
    [
        (pa.int64(), pa.int8(), True),
        (pa.float64(), pa.int64(), True),
        (pa.decimal128(5, 2), pa.float32(), True),
        (pa.bool_(), pa.string(), False),
        (pa.bool_(), pa.bool_(), True),
        (pa.string(), pa.int64(), False),
        (pa.string(), pa.binary(), True),
        (pa.large_string(), pa.string(), True),
        (pa.date32(), pa.timestamp("ms"), True),
        (pa.int64(), pa.timestamp("ms"), False),
        (pa.null(), pa.list_(pa.int64()), True),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), True),
        (pa.dictionary(pa.int8(), pa.string()), pa.int64(), False),
        (pa.list_(pa.int64()), pa.list_(pa.string()), True),
        (pa.list_(pa.int64()), pa.string(), False),
        (pa.string(), pa.list_(pa.string()), False),
    ],
)
def test_numbers_go_to_numbers_text_to_text_and_times_to_times(given: pa.DataType, wanted: pa.DataType, may: bool) -> None:
    assert fits(given, wanted) is may


def test_columns_go_by_their_names_and_those_left_out_are_null() -> None:
    info = info_of("a bigint, b string, c double")
    found = fitted_to(pa.record_batch({"C": pa.array([1, 2], pa.int8()), "a": [3.0, None]}), info, "t")
    assert found.to_pydict() == {"a": [3, None], "b": [None, None], "c": [1.0, 2.0]}
    assert found.schema == pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
    assert fitted_to(pa.record_batch({"a": pa.array([], pa.int64())}), info, "t").num_rows == 0


@pytest.mark.parametrize(
    "words, given, kept",
    [
        ("double", [2**53 + 1], [float(2**53)]),
        ("decimal(20,2)", [7], [decimal.Decimal("7.00")]),
        ("float", [0.1], [pytest.approx(0.1)]),
        ("datetime", [datetime.date(2026, 1, 31)], [datetime.datetime(2026, 1, 31)]),
        ("string", pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        ("array<bigint>", pa.array([[1, None], None], pa.list_(pa.int8())), [[1, None], None]),
        ("boolean", [1, 0, None], [True, False, None]),
        ("bigint", [True, None], [1, None]),
        ("decimal(8,2)", [1.25, 0.1, 123456.78, None], [*map(decimal.Decimal, ("1.25", "0.10", "123456.78")), None]),
        ("decimal(5,1)", pa.array([0.1], pa.float32()), [decimal.Decimal("0.1")]),
        ("decimal(38,18)", [0.0003006901069229073], [decimal.Decimal("0.000300690106922907")]),
        ("date", [datetime.datetime(2026, 1, 31), None], [datetime.date(2026, 1, 31), None]),
        ("date", pa.array([16 * 3600], pa.timestamp("s", "Asia/Shanghai")), [datetime.date(1970, 1, 2)]),
    ],
)
def test_a_value_that_stays_what_it_is_gets_the_columns_type(words: str, given: Any, kept: list[Any]) -> None:
    assert fitted_to(pa.record_batch({"a": given}), info_of(f"a {words}"), "t").column(0).to_pylist() == kept


@pytest.mark.parametrize(
    "columns, given, why, row, column",
    [
        ("a bigint", {"A": [1], "b": [2]}, "t has no column 'b' \\(it has a\\)", None, "b"),
        ("alpha bigint", {"alpa": [1]}, "did you mean 'alpha'", None, "alpa"),
        ("a bigint", {"dt": ["1"]}, "t is partitioned by dt: its value stands in the table's name, /dt=...", None, "dt"),
        ("a bigint", {"a": ["1"]}, "column 'a' of t is bigint, and string was written to it", None, "a"),
        ("a bigint", {"a": [1.0, 2.0, 2.5]}, "row 12, column 'a' of t is bigint, and a value does not fit", 12, "a"),
        ("a tinyint", {"a": [1, 128, 1, 129]}, "row 11, column 'a' of t is tinyint", 11, "a"),
        ("a decimal(3,1)", {"a": [1, 100]}, "row 11, column 'a' of t is decimal", 11, "a"),
        ("a bigint not null", {"a": [1, 2, None, None]}, "row 12, column 'a' of t is NOT NULL", 12, "a"),
        ("a bigint, b bigint not null", {"a": [1]}, "row 10, column 'b' of t is NOT NULL", 10, "b"),
        ("a float", {"a": [1.0, 1e300]}, "row 11, column 'a' of t is float", 11, "a"),
        ("a boolean", {"a": [1, 0, 5]}, "row 12, .* boolean, and a value does not fit: 5 would be True", 12, "a"),
        ("a boolean", {"a": [1.0, 0.5]}, "row 11, .*: 0.5 would be True", 11, "a"),
        ("a decimal(5,1)", {"a": [1.5, 1.25]}, "row 11, .*: 1.25 would be 1.2", 11, "a"),
        ("a date", {"a": [datetime.datetime(2026, 1, 31, 7)]}, "row 10, .*: 2026-01-31 07:00:00 would be 2026-01-31", 10, "a"),
        ("a array<boolean>", {"a": [[1], [0, 7]]}, "row 11, .*: 7 would be True", 11, "a"),
        ("a struct<x:date>", {"a": [{"x": datetime.datetime(2026, 1, 31, 7)}]}, "row 10, .* would be 2026-01-31", 10, "a"),
    ],
)
def test_what_does_not_fit_is_named_with_its_row(
    columns: str, given: dict[str, Any], why: str, row: int | None, column: str
) -> None:
    info = info_of(columns, "partitioned by (dt string)")
    with pytest.raises(DataError, match=why) as told:
        fitted_to(pa.record_batch(given), info, "t", first=10)
    assert (told.value.row, told.value.column) == (row, column)


def test_a_column_is_written_once() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "A"])
    with pytest.raises(DataError, match="the column 'A' is written twice"):
        fitted_to(batch, info_of("a bigint"), "t")


def written(output: LocalOutput, **parts: list[int]) -> LocalOutput:
    for key, values in parts.items():
        output.part(key.replace("_", ":")).write(pa.record_batch({"a": values}))
    return output


def files(store: LocalTables, name: TableName) -> list[str]:
    return sorted(os.listdir(os.path.join(store.place, name.project, name.table)))


def test_parts_become_files_in_the_order_of_their_keys(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint)", a=[0])
    output = written(plain.output(name, overwrite=False), w_10=[3], w_2=[2])
    output.part("w:1")
    assert output.part("w:3").rows == 0 and rows(plain, name) == [(0,)]
    output.commit()
    assert rows(plain, name) == [(0,), (2,), (3,)]
    assert files(plain, name) == ["_table.sql", "part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    with pytest.raises(WriteError, match="is committed, or given up"):
        output.part("w:1")


def test_a_part_opened_again_has_none_of_the_earlier_ones_rows(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint)")
    output = plain.output(name)
    first = output.part("0")
    first.write(pa.record_batch({"a": [1]}))
    path = first.path
    again = output.part("0")
    assert not os.path.exists(path) and again.rows == 0
    with pytest.raises(WriteError, match="rows were written to a part that is closed"):
        first.write(pa.record_batch({"a": [1]}))
    again.write(pa.record_batch({"a": [2, 3]}))
    again.close()
    again.close()
    assert again.rows == 2
    with pytest.raises(WriteError, match="closed"):
        again.write(pa.record_batch({"a": [4]}))
    output.commit()
    assert rows(plain, name) == [(2,), (3,)]


def test_a_job_that_starts_again_has_written_nothing(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint)", a=[0])
    output = written(plain.output(name), w_0=[1], w_1=[2])
    output.restart()
    written(output, w_1=[5]).commit()
    assert rows(plain, name) == [(5,)]


def test_what_is_given_up_leaves_the_table_and_no_directory(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint)", a=[0])
    output = written(plain.output(name), w_0=[1])
    assert len(list(Path(plain.place, "demo").iterdir())) == 2
    output.abort()
    output.abort()
    assert rows(plain, name) == [(0,)] and os.listdir(os.path.join(plain.place, "demo")) == ["t"]


def test_an_error_in_a_later_batch_names_its_row_in_the_part(plain: LocalTables) -> None:
    name = made(plain, "create table t (a tinyint)")
    output = plain.output(name)
    part = output.part("0")
    part.write(pa.record_batch({"a": [1, 2]}))
    with pytest.raises(DataError, match="row 3, column 'a' of odps://demo/tables/t is tinyint"):
        part.write(pa.record_batch({"a": [3, 300]}))
    assert part.rows == 2
    output.abort()


def test_outputs_are_committed_together_or_not_at_all(plain: LocalTables) -> None:
    one, other = made(plain, "create table t (a bigint)"), made(plain, "create table u (a bigint)")
    outputs = [written(plain.output(name), w_0=[1]) for name in (one, other)]
    plain.drop(other)
    made(plain, "create table u (a bigint, b bigint)")
    with pytest.raises(WriteError, match="tables/u was made anew with other columns while rows were written"):
        commit(plain, outputs)
    for output in outputs:
        output.abort()
    assert rows(plain, one) == []
    outputs = [written(plain.output(name), w_0=[1]) for name in (one, other)]
    commit(plain, outputs)
    assert rows(plain, one) == [(1,)] and rows(plain, other) == [(1, None)]
    commit(plain, [])


def test_a_table_that_was_dropped_meanwhile_does_not_come_back(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint)")
    output = written(plain.output(name), w_0=[1])
    plain.drop(name)
    with pytest.raises(WriteError, match="tables/t was dropped while rows were written; they are given up"):
        output.commit()
    output.abort()
    assert plain.tables("demo") == []


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_people_keep_beside_the_rows_stays(plain: LocalTables, overwrite: bool) -> None:
    name = made(plain, "create table t (a bigint)", a=[1])
    folder = Path(plain.place, "demo", "t")
    (folder / "README").write_text("mine")
    (folder / "notes").mkdir()
    (folder / "notes" / "one").write_text("1")
    (folder / "link").symlink_to("nowhere")
    folder.chmod(0o750)
    put(plain, name, overwrite, a=[2])
    assert rows(plain, name) == ([(2,)] if overwrite else [(1,), (2,)])
    assert (folder / "README").read_text() == "mine" and (folder / "notes" / "one").read_text() == "1"
    assert os.readlink(folder / "link") == "nowhere" and folder.stat().st_mode & 0o777 == 0o750


def test_a_partition_is_made_by_its_rows_and_others_stay(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint) partitioned by (dt string)")
    for value, values in (("1", [1]), ("a/b", [2]), ("1", [3])):
        put(plain, name.at((("dt", value),)), a=values)
    assert rows(plain, name, ["a", "dt"]) == [(1, "1"), (3, "1"), (2, "a/b")]
    assert [one for one in files(plain, name) if one != "_table.sql"] == ["dt=1", "dt=a%2Fb"]
    put(plain, name.at((("dt", "1"),)), True, a=[])
    assert rows(plain, name, ["a", "dt"]) == [(2, "a/b")] and len(plain.partitions(name)) == 2


def test_a_table_is_made_with_a_partition_of_it(plain: LocalTables) -> None:
    name = TableName.parse("t/dt=1", "demo")
    output = plain.creating(name, info_of("a bigint", "partitioned by (dt string) lifecycle 3"))
    written(output, w_0=[7])
    assert plain.tables("demo") == []
    output.commit()
    assert rows(plain, name.whole, ["a", "dt"]) == [(7, "1")] and plain.describe(name.whole).lifecycle == 3
