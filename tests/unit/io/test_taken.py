"""`columns=` and `defaults=`: which columns are read, and what stands for their nulls."""

from __future__ import annotations

import dataclasses
import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq
import pytest

from akrunner.errors import ConfigError, SchemaError, SourceError
from akrunner.io.taken import check_columns, check_defaults
from akrunner.schema import Schema
from tests.unit.io.test_sources import TABLE, WRITERS, opened, rows, write

WANTED = [{"f": row["f"], "a": row["a"]} for row in TABLE.to_pylist()]
NULLS = pa.table({"i": [1, None, 3], "s": ["x", None, None], "f": [None, math.nan, 0.5]})


@pytest.mark.parametrize(
    "name, typed", [(name, typed) for name in WRITERS for typed in (True, False) if typed or name != "t.tfrecord"]
)
def test_only_those_columns_are_there_in_the_order_they_are_named_in(name: str, typed: bool, tmp_path: Path) -> None:
    schema = Schema.parse("a bigint, s string, f double") if typed else None
    path = write(name, tmp_path / name)
    assert rows(path, columns=["f", "a"], input_schema=schema) == WANTED
    assert rows([path, path], columns=["f", "a"], input_schema=schema) == WANTED * 2
    table = opened(path, columns=["f", "a"], input_schema=schema)
    assert table.files is None, "a machine that reads its files itself would read all columns"
    with pytest.raises(SourceError, match=r"columns: .* has no column 'ff' .*did you mean 'f'\?"):
        opened(path, columns=["ff"], input_schema=schema)


@pytest.mark.parametrize(
    "source",
    (
        TABLE,
        TABLE.to_pandas(),
        pa_dataset.dataset(TABLE),
        TABLE.to_pylist(),
        {name: TABLE[name].to_pylist() for name in TABLE.schema.names},
    ),
    ids=lambda one: type(one).__name__,
)
def test_of_tables_in_memory(source: Any) -> None:
    assert rows(source, columns=["f", "a"]) == WANTED
    with pytest.raises(SourceError, match="columns: .* no column 'b'"):
        opened(source, columns=["b"])


def test_of_a_query_those_of_its_result_are_meant() -> None:
    assert rows(TABLE, select="a, a + 1 AS b", columns=["b"]) == [{"b": 2}, {"b": 3}, {"b": 4}]
    with pytest.raises(SourceError, match="columns: .* no column 'f'"):
        opened(TABLE, select="a", columns=["f"])


def test_rows_that_do_not_come_by_are_neither_narrowed_nor_filled() -> None:
    table = dataclasses.replace(opened(TABLE), elsewhere=True)
    for more in ({"columns": ["a"]}, {"defaults": {"a": 0}}):
        with pytest.raises(
            SourceError, match="columns=, defaults=, decimals=: the rows of the table do not come through this process"
        ):
            opened(table, **more)


def test_tuples_have_all_columns_of_the_schema() -> None:
    schema = Schema.parse("a bigint, s string, f double")
    assert rows([(1, "x", 0.5)], input_schema=schema, columns=["f", "a"]) == [{"f": 0.5, "a": 1}]


def test_a_column_that_is_left_out_is_not_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "s": ["broken" * 9, "there" * 9]}), tmp_path / "t.parquet", compression="none")
    (tmp_path / "t.csv").write_bytes(b"a,s\n1,\xff\n2,y\n")
    place = pq.read_metadata(tmp_path / "t.parquet").row_group(0).column(1)
    data = bytearray((tmp_path / "t.parquet").read_bytes())
    start = place.dictionary_page_offset
    data[start : start + place.total_compressed_size] = b"\xff" * place.total_compressed_size
    (tmp_path / "t.parquet").write_bytes(data)
    for name in ("t.parquet", "t.csv"):
        with pytest.raises(SourceError):
            rows(tmp_path / name)
        assert rows(tmp_path / name, columns=["a"]) == [{"a": 1}, {"a": 2}]


def test_a_column_that_cannot_cross_may_be_left_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "s": [{"x": 1}]}), tmp_path / "t.parquet")
    with pytest.raises(SchemaError, match="column 's' is struct"):
        Schema.from_arrow(opened(tmp_path / "t.parquet").schema)
    assert Schema.from_arrow(opened(tmp_path / "t.parquet", columns=["a"]).schema).names == ["a"]


def test_columns_in_names_of_directories(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.csv", "t.jsonl"):
        folder = tmp_path / name
        (folder / "day=7").mkdir(parents=True)
        write(name, folder / "day=7" / name)
        assert rows(folder, columns=["day", "a"]) == [{"day": 7, "a": one} for one in (1, 2, 3)]
        assert rows(folder, columns=["day"]) == [{"day": 7}] * 3


def test_files_may_differ_in_what_is_left_out(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "1.parquet")
    pq.write_table(TABLE.select(["a"]), tmp_path / "2.parquet")
    with pytest.raises(SourceError, match="has no column 's'"):
        rows(tmp_path)
    assert rows(tmp_path, columns=["a"]) == [{"a": one} for one in (1, 2, 3)] * 2
    (tmp_path / "1.jsonl").write_text('{"a": 1, "s": 2}\n')
    (tmp_path / "2.jsonl").write_text('{"new": [], "a": 3}\n')
    with pytest.raises(SourceError, match="column .new. is not one of the others"):
        rows(tmp_path / "*.jsonl")
    assert rows(tmp_path / "*.jsonl", columns=["a"]) == [{"a": 1}, {"a": 3}]


def test_nulls_get_their_value_and_nan_stays() -> None:
    first, second, third = rows(NULLS, defaults={"i": -1, "s": "?", "f": 0})
    assert (first, second["i"], second["s"], third) == ({"i": 1, "s": "x", "f": 0.0}, -1, "?", {"i": 3, "s": "?", "f": 0.5})
    assert math.isnan(second["f"])
    assert rows(NULLS, defaults={"i": 0}, columns=["i"]) == [{"i": 1}, {"i": 0}, {"i": 3}]
    assert [math.isnan(row["f"]) for row in rows(NULLS, defaults={"f": math.nan})] == [True, True, False]


DAY = datetime.date(2026, 11, 23)


@pytest.mark.parametrize(
    "kind, value, there",
    (
        (pa.bool_(), False, False),
        (pa.int8(), np.int64(-3), -3),
        (pa.uint64(), 2**64 - 1, 2**64 - 1),
        (pa.float32(), np.float32(0.5), 0.5),
        (pa.large_string(), "é", "é"),
        (pa.binary(), b"\xff", b"\xff"),
        (pa.binary(2), "ab", b"ab"),
        (pa.dictionary(pa.int8(), pa.string()), "new", "new"),
        (pa.date32(), "2026-11-23", DAY),
        (pa.date32(), DAY, DAY),
        (pa.timestamp("us"), "2026-11-23 01:02:03", datetime.datetime(2026, 11, 23, 1, 2, 3)),
        (pa.time32("ms"), datetime.time(1, 2), datetime.time(1, 2)),
        (pa.time64("us"), "01:02:03", datetime.time(1, 2, 3)),
        (pa.time64("ns"), "01:02:03.000004", datetime.time(1, 2, 3, 4)),
        (pa.time32("ms"), "01:02", datetime.time(1, 2)),
        (pa.duration("us"), datetime.timedelta(hours=1), datetime.timedelta(hours=1)),
        (pa.list_(pa.date32()), ["2026-11-23", DAY], [DAY, DAY]),
        (pa.list_(pa.time64("us")), ["01:02"], [datetime.time(1, 2)]),
        (pa.list_(pa.int64()), [1, 2], [1, 2]),
        (pa.list_(pa.float32(), 2), (0, 1.5), [0.0, 1.5]),
    ),
    ids=str,
)
def test_a_value_of_each_type(kind: pa.DataType, value: Any, there: Any) -> None:
    table = pa.table({"x": pa.array([None, None], kind), "y": [1, 2]})
    assert rows(table.slice(1), defaults={"x": value}) == [{"x": there, "y": 2}]
    assert opened(table, defaults={"x": value}).schema.field("x").type == kind


def test_a_tensor_and_a_column_without_a_value() -> None:
    kind = pa.fixed_shape_tensor(pa.float32(), (2, 2))
    storage = pa.array([None, [1, 2, 3, 4]], kind.storage_type)
    table = pa.table({"x": pa.ExtensionArray.from_storage(kind, storage), "n": pa.nulls(2)})
    (batch,) = opened(table, defaults={"x": np.zeros((2, 2)), "n": 7}).batches()
    assert batch.column("x").storage.to_pylist() == [[0, 0, 0, 0], [1, 2, 3, 4]]
    assert batch.column("n").to_pylist() == [7, 7] and batch.schema.field("n").type == pa.int64()


@pytest.mark.parametrize(
    "kind, value, words",
    (
        (pa.int64(), 1.5, "column 'x' is int64, and 1.5 is none of its values; give a whole number"),
        (pa.int64(), True, "give a whole number"),
        (pa.int64(), math.nan, "give a whole number"),
        (pa.int8(), 300, "cannot hold 300"),
        (pa.time64("us"), "25:00:00", "column 'x' is time64.us., and cannot hold '25:00:00'"),
        (pa.time32("ms"), "01:02:03.0001", "column 'x' is time32.ms., and cannot hold '01:02:03.0001'"),
        (pa.time64("us"), "noon", "cannot hold 'noon'"),
        (pa.float64(), "0", "give a number, or NaN"),
        (pa.float64(), False, "give a number, or NaN"),
        (pa.float32(), 1e300, "cannot hold 1e.300"),
        (pa.bool_(), 0, "give True or False"),
        (pa.string(), 0, "give text"),
        (pa.date32(), datetime.datetime(2026, 11, 23, 5), "give a date"),
        (pa.date32(), "tomorrow", "cannot hold 'tomorrow'"),
        (pa.binary(), 0, "give text or bytes"),
        (pa.list_(pa.int64()), 0, "give a list, each of it a whole number"),
        (pa.list_(pa.int64()), [0.5], "give a list, each of it a whole number"),
        (pa.list_(pa.float32(), 2), [0.5], "cannot hold"),
    ),
    ids=str,
)
def test_a_value_of_another_type_is_an_error_before_a_row_is_read(kind: pa.DataType, value: Any, words: str) -> None:
    with pytest.raises(SourceError, match="defaults: .*" + words):
        opened(pa.table({"x": pa.array([], kind)}), defaults={"x": value})


def test_a_default_of_no_column() -> None:
    with pytest.raises(SourceError, match=r"defaults: no column 'ff' goes to the tasks .*did you mean 'f'\?"):
        opened(NULLS, defaults={"ff": 0})
    with pytest.raises(SourceError, match=r"defaults: no column 'i' goes to the tasks \(there are f\)"):
        opened(NULLS, columns=["f"], defaults={"i": 0})


@pytest.mark.parametrize("given", ([], ["a", "a"], [1], {"a": 1}, 3))
def test_columns_are_names(given: Any) -> None:
    with pytest.raises(ConfigError, match="^columns"):
        check_columns(given)
    listed: list[str] = ["b", "a"]
    assert check_columns(listed) == check_columns("b, a") == listed and check_columns(None) is None


@pytest.mark.parametrize("given", ([], {"a": None}, {1: 2}, "a=1"))
def test_defaults_are_a_value_a_column(given: Any) -> None:
    with pytest.raises(ConfigError, match="^defaults"):
        check_defaults(given)
    assert check_defaults({"a": 0}) == {"a": 0} and check_defaults(None) is None


@pytest.mark.parametrize("options", [{"defaults": {"X": 1}}, {"columns": ["X"]}])
def test_a_name_in_other_letters_is_told(options: Any) -> None:
    """Of one letter, of which nothing else is alike."""
    with pytest.raises(SourceError, match=r"no column 'X' .*; did you mean 'x'\?"):
        opened(pa.table({"x": [1]}), **options)
