"""Which rows are suspected to be bad, for all rows of a text at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from akrunner.io import suspects


def starts_of(lines: list[bytes]) -> list[int]:
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line)
    return starts


def test_rows_with_too_few_or_too_many_cells() -> None:
    lines = [b"1,2\n", b"1\n", b'"a,b\nc","d""e,"\n', b"1,2,3\n", b",\n", b'"x,y"\n', b"1,2"]
    found = suspects.of_cells(b"".join(lines), starts_of(lines), 2)
    assert found.tolist() == [False, True, False, True, False, True, False]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.int64(), ["1", " -2 ", "+3"], ["1.5", "x", "1e3"]),
        (pa.float64(), ["1", "-.5", "1.", "1e-3", "NaN", "-inf"], ["1,5", "x", "--1"]),
        (pa.bool_(), ["true", "0", "FALSE"], ["yes"]),
        (pa.date32(), ["2026-11-26"], ["26.11.2026", "2026-11-26 10:00"]),
        (pa.timestamp("us"), ["2026-11-26 10:00:00", "2026-11-26T10:00:00Z", "2026-11-26"], ["10:00"]),
        (pa.string(), ["x", "1"], []),
    ],
)
def test_cells_that_do_not_look_like_their_type(kind: pa.DataType, good: list[str], bad: list[str]) -> None:
    words = pa.table({"c": pa.array([*good, *bad, "NA", None], pa.string())})
    found = suspects.of_values(words, pa.schema([("c", kind), ("other", kind)]), ["NA"])
    assert found.tolist() == [False] * len(good) + [True] * len(bad) + [False, False]


def test_a_null_where_none_may_be_is_suspected() -> None:
    field = pa.field("c", pa.int64(), nullable=False)
    assert suspects.of_values(pa.table({"c": ["1", "NA"]}), pa.schema([field]), ["NA"]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.int64(), ["1", "-1", "null", "18446744073709551615"], ["1.5", '"1"', "[1]", "true"]),
        (pa.float64(), ["1", "1.5"], ['"x"', "{}"]),
        (pa.string(), ['"x"'], ["1", "[]"]),
        (pa.bool_(), ["true"], ["1"]),
        (pa.list_(pa.int64()), ["[1]", "1"], []),
    ],
)
def test_values_of_objects(kind: pa.DataType, good: list[Any], bad: list[Any]) -> None:
    lines = [f'{{"c": {value}}}\n'.encode() for value in [*good, *bad]]
    found = suspects.of_objects(b"".join(lines), starts_of(lines), pa.schema([("c", kind), ('"', kind)]))
    assert found is not None and found.tolist() == [False] * len(good) + [True] * len(bad)


def test_lines_that_are_no_objects() -> None:
    lines = [b'{"x": 1}\n', b'{"x": \n', b"[1]\n", b"\n", b"{}\n", b"1"]
    found = suspects.of_objects(b"".join(lines), starts_of(lines), pa.schema([("c", pa.int64())]))
    assert found is not None and found.tolist() == [False, True, True, True, False, True]
    assert suspects.of_objects(b"\xff\n", [0], pa.schema([])) is None
