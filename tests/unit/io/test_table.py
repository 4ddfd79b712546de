"""A table that can be read: its batches, its errors, and a reader that is already open."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io.table import TableSource, no_rows, opened_once

X = pa.schema([("x", pa.int64())])


def batches(*values: int) -> Iterator[pa.RecordBatch]:
    return iter([pa.record_batch({"x": [value]}) for value in values])


def test_rows_come_in_order_and_as_often_as_it_is_opened() -> None:
    table = TableSource(X, lambda: batches(1, 2), replayable=True)
    for _ in range(2):
        assert [batch.column(0).to_pylist() for batch in table.batches()] == [[1], [2]]


def test_nothing_is_opened_before_rows_are_drawn() -> None:
    opened: list[str] = []

    def opens() -> Iterator[pa.RecordBatch]:
        opened.append("opened")
        return batches(1)

    read = TableSource(X, opens).batches()
    assert opened == []
    next(read)
    assert opened == ["opened"]


@pytest.mark.parametrize("late", [False, True])
def test_what_a_reader_raises_names_the_table_without_its_password(late: bool) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        if late:
            yield from batches(1)
        raise OSError("disk on fire at last")

    table = TableSource(X, broken, "s3://me:s3cret@b/t")
    with pytest.raises(SourceError, match="source: cannot read s3://.*b/t: .*disk on fire at last") as caught:
        list(table.batches())
    assert "s3cret" not in str(caught.value)


def test_an_error_of_ours_stays_as_it_is() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        raise SourceError("source: line 3 is odd")
        yield

    with pytest.raises(SourceError, match="^source: line 3 is odd$"):
        list(TableSource(X, broken, "t.csv").batches())


def test_a_null_among_a_dictionarys_values_is_a_null_of_the_row() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    table = TableSource(pa.schema([("c", column.type)]), lambda: iter([pa.record_batch({"c": column})]))
    (batch,) = table.batches()
    assert batch.column(0).null_count == 1 and batch.column(0).to_pylist() == ["a", None]


def test_the_table_of_a_job_without_input_has_no_rows_and_no_columns() -> None:
    table = no_rows()
    assert list(table.batches()) == [] and table.schema.names == [] and table.replayable
    table.stop()


def test_a_reader_that_is_open_is_used_first() -> None:
    again: list[int] = []

    def later() -> Iterator[pa.RecordBatch]:
        again.append(1)
        return batches(2)

    opens = opened_once(batches(1), later)
    assert [next(opens()).column(0).to_pylist() for _ in range(3)] == [[1], [2], [2]] and len(again) == 2
