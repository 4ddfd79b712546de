"""Files of one table whose types differ: each value is what it was, or the file is refused."""

from __future__ import annotations

import datetime
import decimal
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io.readers import no_bad_rows
from akrunner.io.sources import open_source

NOON = datetime.datetime(2026, 1, 1, 12)
DAY = datetime.date(2026, 1, 1)


def read(folder: Path, first: pa.DataType, values: list[Any], kind: pa.DataType) -> list[Any]:
    """The values of a second file, of a type of its own, as they are read behind the first."""
    for name, column in (("1", pa.array([None], first)), ("2", pa.array(values, kind))):
        pq.write_table(pa.table({"a": column}), folder / f"{name}.parquet")
    table = open_source(str(folder), read_examples=read_examples)
    assert table.schema.field("a").type == first
    return [value for batch in table.batches() for value in batch.column("a").to_pylist()][1:]


@pytest.mark.parametrize(
    "first, values, kind",
    [
        (pa.int64(), [7, None], pa.int8()),
        (pa.float64(), [7, None], pa.int64()),
        (pa.int64(), [7.0, None], pa.float64()),
        (pa.float32(), [1.5, None, float("inf")], pa.float64()),
        (pa.float64(), [decimal.Decimal("1.10")], pa.decimal128(10, 2)),
        (pa.string(), [7], pa.int64()),
        (pa.int64(), ["7"], pa.string()),
        (pa.timestamp("us"), [DAY], pa.date32()),
        (pa.timestamp("us"), [NOON], pa.timestamp("s")),
        (pa.list_(pa.int64()), [[1, 2], None, []], pa.list_(pa.int8())),
        (pa.bool_(), [None], pa.null()),
    ],
)
def test_a_value_that_stays_is_taken(first: pa.DataType, values: list[Any], kind: pa.DataType, tmp_path: Path) -> None:
    found = read(tmp_path, first, values, kind)
    assert pa.array(values, kind).cast(first).equals(pa.array(found, first))


def test_no_number_is_no_number_behind_others(tmp_path: Path) -> None:
    (found,) = read(tmp_path, pa.float32(), [float("nan")], pa.float64())
    assert found != found


@pytest.mark.parametrize(
    "first, values, kind, words",
    [
        (pa.bool_(), [7, 0], pa.int64(), "numbers are no truths"),
        (pa.bool_(), [0.5], pa.float64(), "numbers are no truths"),
        (pa.int64(), [True], pa.bool_(), "truths are no numbers"),
        (pa.timestamp("us"), [7], pa.int64(), "numbers are no moments"),
        (pa.int64(), [NOON], pa.timestamp("us"), "moments are no numbers"),
        (pa.float32(), [0.1], pa.float64(), "0.1 would be 0.1000000014"),
        (pa.int64(), ["007"], pa.string(), "'007' would be 7"),
        (pa.date32(), [NOON], pa.timestamp("us"), "would be datetime.date"),
        (pa.timestamp("us", "UTC"), [NOON], pa.timestamp("us"), "one has a time zone"),
        (pa.list_(pa.float32()), [[0.1]], pa.list_(pa.float64()), "0.1 would be"),
        (pa.int8(), [300], pa.int64(), "300"),
    ],
)
def test_a_value_that_would_be_another_is_refused(
    first: pa.DataType, values: list[Any], kind: pa.DataType, words: str, tmp_path: Path
) -> None:
    with pytest.raises(
        SourceError, match=rf"column 'a' of .*2\.parquet is .*cannot become .*{re.escape(words)}.*--input-schema"
    ):
        read(tmp_path, first, values, kind)


def test_the_error_about_bad_rows_names_the_table_and_what_to_do() -> None:
    assert re.match(
        r"bad_rows= \(--bad-rows\) is for CSV and JSON lines, and t.parquet is neither: leave it out",
        str(no_bad_rows("t.parquet")),
    )
