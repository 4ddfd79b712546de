"""Rows that are sorted: in their order, with their values and types as they were, and nothing left on the disk."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError
from akrunner.io import sorting
from akrunner.io.sorting import Sorter


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temp directory of the test."""

    class Held:
        """In place of the guard."""

        def temp_folder(self, prefix: str) -> str:
            path = tmp_path / prefix
            path.mkdir()
            return str(path)

        def drop(self, path: str) -> None:
            for name in os.listdir(path):
                os.remove(os.path.join(path, name))
            os.rmdir(path)

    monkeypatch.setattr(sorting, "leftovers", Held())
    return tmp_path


def sorted_rows(table: pa.Table, *order: tuple[str, bool]) -> pa.Table:
    sorter = Sorter(table.schema, order)
    for batch in table.to_batches(max_chunksize=2):
        sorter.write(batch)
    return pa.Table.from_batches(list(sorter.batches()), table.schema)


def test_by_several_columns_both_ways_with_nulls_last(place: Path) -> None:
    table = pa.table({"a": [2, 1, None, 1, 2], "b": ["x", "é", "z", "z", "X"], "n": range(5)})
    assert sorted_rows(table, ("a", False), ("b", True))["n"].to_pylist() == [1, 3, 0, 4, 2]
    assert sorted_rows(table, ("a", True))["n"].to_pylist() == [0, 4, 1, 3, 2]
    assert os.listdir(place) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.timestamp("ns", "Europe/Berlin"), [3, None, 1_700_000_000_123_456_789]),
        (pa.timestamp("s"), [1, 0, -(2**40)]),
        (pa.duration("ns"), [1, None, 3]),
        (pa.time64("ns"), [1, 2, None]),
        (pa.time32("ms"), [1, 2, 3]),
        (pa.date64(), [0, 86400000, None]),
        (pa.date32(), [0, 1, None]),
        (pa.int8(), [1, None, -3]),
        (pa.uint64(), [2**64 - 1, 0, 1]),
        (pa.float32(), [0.5, float("nan"), None]),
        (pa.bool_(), [True, None, False]),
        (pa.decimal128(20, 3), [None, None, None]),
        (pa.large_string(), ["a\0b", "", None]),
        (pa.binary(), [b"\0\xff", b"", None]),
        (pa.list_(pa.float32()), [[0.5, None], [], None]),
        (pa.list_(pa.float64(), 2), [[1.0, 2.0], None, [3.0, 4.0]]),
    ],
)
def test_values_and_types_stay(kind: pa.DataType, values: list[Any]) -> None:
    whole = pa.types.is_temporal(kind)
    column = pa.array(values, pa.int32() if whole and kind.bit_width == 32 else pa.int64() if whole else kind)
    column = column.view(kind) if whole else column
    # "a" and "A" are one name to DuckDB
    table = pa.table(
        {"a": [2, 0, 1], "A": column}, schema=pa.schema([("a", pa.int64()), pa.field("A", kind, metadata={"k": "v"})])
    )
    back = sorted_rows(table, ("a", False))
    back.validate(full=True)
    assert back.schema.equals(table.schema, check_metadata=True)
    assert str(back["A"].combine_chunks()) == str(table["A"].combine_chunks().take(pa.array([1, 2, 0])))
    if not pa.types.is_nested(kind):
        assert sorted_rows(table, ("A", False)).num_rows == 3


def test_times_are_sorted_as_times() -> None:
    days = [datetime.date(2026, 1, 2), datetime.date(1969, 1, 1), None]
    assert sorted_rows(pa.table({"d": days}), ("d", True))["d"].to_pylist() == [days[0], days[1], None]


@pytest.mark.slow
def test_more_rows_than_a_batch() -> None:
    numbers = [at * 7919 % 100003 for at in range(100003)]
    table = pa.table({"n": numbers})
    sorter = Sorter(table.schema, [("n", False)])
    for batch in table.to_batches(max_chunksize=10000):
        sorter.write(batch)
    assert pa.Table.from_batches(list(sorter.batches()))["n"].to_pylist() == list(range(100003))


def test_what_duckdb_would_change_is_refused() -> None:
    for kind in (pa.list_(pa.timestamp("ns", "UTC")), pa.float16()):
        with pytest.raises(SinkError, match=r"sort_by= .*type .* \('x'\) cannot be sorted"):
            Sorter(pa.schema([("a", pa.int64()), ("x", kind)]), [("a", False)])


def test_what_is_dropped_is_gone_and_can_be_begun_again(place: Path) -> None:
    batch = pa.record_batch({"n": [2, 1]})
    sorter = Sorter(batch.schema, [("n", False)])
    assert list(sorter.batches()) == []
    sorter.write(batch)
    assert os.listdir(place) != []
    sorter.drop()
    sorter.drop()
    assert os.listdir(place) == []
    sorter.write(batch)
    assert [one["n"].to_pylist() for one in sorter.batches()] == [[1, 2]]
