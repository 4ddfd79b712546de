"""Rows, batches and frames of an iterable as one table: the columns they tell, their types, and the rows that do not fit."""

from __future__ import annotations

import collections
import datetime
import sqlite3
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io import rows as reading
from akrunner.io.rows import from_cursor, from_rows
from akrunner.io.table import TableSource
from akrunner.schema import Schema

AB = Schema.parse("a bigint, b string")


def read(table: TableSource) -> list[dict[str, Any]]:
    batches = list(table.batches())
    assert all(batch.schema == table.schema for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of three rows, and types guessed from two."""
    monkeypatch.setattr(reading, "_CHUNK", 3)
    monkeypatch.setattr(reading, "INFER_ROWS", 2)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 10])
def test_all_rows_come_in_order_in_batches_of_some(count: int) -> None:
    table = from_rows(({"a": number} for number in range(count)), None, None)
    batches = list(table.batches())
    assert [row for batch in batches for row in batch.column(0).to_pylist()] == list(range(count))
    assert max(batch.num_rows for batch in batches) <= 3


def test_columns_are_those_of_the_first_rows_in_the_order_they_appear() -> None:
    table = from_rows([{"b": 1}, {"a": 0.5, "b": None}, {}], None, None)
    assert table.schema == pa.schema([("b", pa.int64()), ("a", pa.float64())])
    assert read(table) == [{"b": 1, "a": None}, {"b": None, "a": 0.5}, {"b": None, "a": None}]


def test_tuples_go_by_position_and_dicts_by_name() -> None:
    assert read(from_rows([(1, "x"), (None, None)], AB, None)) == [{"a": 1, "b": "x"}, {"a": None, "b": None}]
    assert read(from_rows([[1, "x"]], AB, None)) == [{"a": 1, "b": "x"}]
    assert read(from_rows([{"b": "x", "a": 1, "more": 5}], AB, None)) == [{"a": 1, "b": "x"}]
    assert read(from_rows([], AB, None)) == []


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "the iterable is empty, so its columns are not known; give input_schema="),
        ([(1, 2)], "rows of tuple do not name their columns; give input_schema=, or dicts"),
        ([5], "rows of int do not name their columns"),
        ([{5: 1}], "the key 5 of a row is no text"),
        ([{"a": 1}, {"a": "x"}], "column 'a' has no type that fits its first 2 rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_that_do_not_tell_their_columns(rows: list[Any], words: str) -> None:
    with pytest.raises(SourceError, match=f"^source: {words}"):
        from_rows(rows, None, None)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("rows", "schema", "words"),
    [
        ([{"a": 1}] * 7 + [{"a": 1.5}] * 2, None, "row 7 does not fit .*column 'a': .*the first rows say int64: input_schema="),
        (
            [{"a": 1}] * 7 + [{"a": 1, "c": 2}],
            None,
            "row 7 does not fit .*a row has a column 'c' that those before it have not",
        ),
        ([(1, "x")] * 4 + [(1,)], AB, "row 4 does not fit .*: it has 1 values$"),
        ([(1, "x")] * 4 + [(1, "x", 2)], AB, "row 4 does not fit .*: it has 3 values$"),
        ([(1, "x"), (1, 5)], AB, "row 1 does not fit the columns .a int64, b string.: column 'b': "),
        ([(1, "x"), {"a": 1, "b": "x"}], AB, "rows 0 to 1 do not fit .*rows are all dicts, or all tuples"),
        (["ab"], AB, "row 0 does not fit .*rows are all dicts, or all tuples"),
        ([{"a", "b"}], AB, "row 0 does not fit .*rows are all dicts, or all tuples"),
        ([5], AB, "row 0 does not fit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_row_that_does_not_fit_is_named(rows: list[Any], schema: Any, words: str) -> None:
    with pytest.raises(SourceError, match=f"^source: {words}"):
        read(from_rows(iter(rows), schema, None))


def test_a_column_that_no_row_has_is_told_at_the_end() -> None:
    words = r"^input_schema: no row of the iterable has a column 'b' \(the first has a, c\)"
    with pytest.raises(SourceError, match=words):
        read(from_rows([{"a": 1, "c": 2}, {"a": 2}], AB, None))
    assert read(from_rows([{"a": 1}, {"b": "x"}], AB, None)) == [{"a": 1, "b": None}, {"a": None, "b": "x"}]
    many = {f"c{number}": 1 for number in range(30)}
    with pytest.raises(SourceError, match=r"the first has c0, .*c19, \.\.\.\)"):
        read(from_rows([many], AB, None))


def test_times_with_a_zone_and_without_are_not_mixed() -> None:
    noon = datetime.datetime(2026, 1, 1, 12)
    rows = [{"t": noon}] * 9000 + [{"t": noon.replace(tzinfo=datetime.UTC)}]
    with pytest.raises(
        SourceError, match="row 9000 does not fit .*a time in column 't' has a zone, and those before it have none"
    ):
        read(from_rows(rows, None, None))


@pytest.mark.parametrize("schema", [None, AB])
def test_a_table_of_an_iterable_is_read_once(schema: Any) -> None:
    table = from_rows(iter([{"a": 1, "b": "x"}]), schema, None)
    assert not table.replayable and read(table) == [{"a": 1, "b": "x"}]


def test_a_slow_source_is_not_asked_for_a_row_before_it_is_read() -> None:
    asked: list[int] = []

    def slow() -> Iterator[Any]:
        asked.append(1)
        yield {"a": 1, "b": "x"}

    table = from_rows(slow(), AB, 5.0)
    assert not asked
    assert read(table) == [{"a": 1, "b": "x"}] and asked


def test_of_a_slow_source_without_a_schema_one_row_tells_the_columns() -> None:
    seen: list[int] = []

    def slow() -> Iterator[Any]:
        for number in range(3):
            seen.append(number)
            yield {"a": number}

    table = from_rows(slow(), None, 5.0)
    assert seen == [0]
    assert read(table) == [{"a": 0}, {"a": 1}, {"a": 2}]


@pytest.mark.parametrize("seconds", [None, 5.0])
@pytest.mark.parametrize("make", [pa.record_batch, pa.table, pd.DataFrame], ids=["batches", "tables", "frames"])
def test_tables_of_an_iterable_are_one_table(make: Any, seconds: Any) -> None:
    parts = [make({"a": [1, 2], "b": ["x", "y"]}), make({"b": ["z"], "a": [3]})]
    want = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": "z"}]
    assert read(from_rows(iter(parts), None, seconds)) == want
    asked = from_rows(iter(parts), Schema.parse("b string, a double"), seconds)
    assert asked.schema.names == ["b", "a"] and read(asked) == [{"b": row["b"], "a": float(row["a"])} for row in want]


@pytest.mark.parametrize(
    ("parts", "schema", "words"),
    [
        ([{"a": [1]}, {"b": [1]}], None, r"batch 1 of the iterable has other columns \(b int64\) than a int64"),
        ([{"a": [1]}, {"a": [1], "b": [1]}], None, "batch 1 of the iterable has other columns"),
        ([{"a": [1], "b": ["x"]}, {"a": [1]}], AB, "batch 1 of the iterable has other columns"),
        (
            [{"a": [1]}, {"a": ["x"]}],
            None,
            "column 'a' of batch 1 of the iterable is string, and cannot become int64, as in the first",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_batches_of_other_columns_are_refused(parts: list[Any], schema: Any, words: str) -> None:
    with pytest.raises(SourceError, match=f"source: {words}"):
        read(from_rows(map(pa.record_batch, parts), schema, None))


def test_what_is_no_batch_among_batches() -> None:
    with pytest.raises(SourceError, match="batch 1 of the iterable is dict, not a RecordBatch"):
        read(from_rows([pa.record_batch({"a": [1]}), {"a": 1}], None, None))


def test_a_row_of_a_later_batch_is_counted_through() -> None:
    parts = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3]}), pa.record_batch({"a": [4, 300]})]
    with pytest.raises(SourceError, match="^input_schema: row 4, column 'a': .*300"):
        read(from_rows(parts, Schema.parse("a tinyint"), None))


def cursor(query: str, factory: Any = None) -> Any:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = factory
    return connection.execute(query)


def test_rows_of_a_cursor_go_by_position() -> None:
    table = from_cursor(cursor("SELECT 1 AS b, 'x' AS a UNION ALL SELECT 2, NULL"), None)
    assert table.schema == pa.schema([("b", pa.int64()), ("a", pa.string())]) and not table.replayable
    assert read(table) == [{"b": 1, "a": "x"}, {"b": 2, "a": None}]
    rows = from_cursor(cursor("SELECT 1 AS b, 'x' AS a", sqlite3.Row), Schema.parse("a string, b double"))
    assert rows.schema == pa.schema([("b", pa.float64()), ("a", pa.string())]) and read(rows) == [{"b": 1.0, "a": "x"}]


def test_a_type_that_was_given_for_a_cursors_column_is_not_blamed_on_the_first_rows() -> None:
    query = "SELECT 1 AS a UNION ALL SELECT NULL UNION ALL SELECT 1.5"
    with pytest.raises(SourceError, match="row 2 does not fit .*column 'a': .*1.5") as caught:
        read(from_cursor(cursor(query), Schema.parse("a bigint")))
    assert "first rows" not in str(caught.value)


def test_named_tuples_go_by_their_names() -> None:
    Named = collections.namedtuple("Named", ["b", "a"])
    assert read(from_rows([Named("x", 1), Named(None, 2)], AB, None)) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
