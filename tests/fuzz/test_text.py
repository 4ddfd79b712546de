"""Text of CSV and JSON lines: what is valid is read as Python's own readers read it, all else is a SourceError; never anything between."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akrunner.codec import read_examples
from akrunner.errors import AkrunnerError
from akrunner.io import text
from akrunner.io.sources import open_source

CELLS = st.lists(st.lists(st.text('a1,"\n\r é', max_size=5), min_size=2, max_size=2), max_size=6)
INTEGERS = st.lists(st.integers(-(2**65), 2**65), min_size=1, max_size=5)
RAW = st.lists(
    st.sampled_from([b"a", b"1", b'"', b",", b"\n", b"\r", b"\xff", b"\0", b"{", b"}", b"[", b":", b'"a":', b"null"]),
    max_size=40,
)


def read(name: str, data: bytes, size: int) -> list[dict[str, Any]] | None:
    """Rows; None: refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        before, text.PIECE_BYTES = text.PIECE_BYTES, size
        try:
            source = open_source(path, read_examples=read_examples)
            return [row for batch in source.batches() for row in batch.to_pylist()]
        except AkrunnerError:
            return None
        finally:
            text.PIECE_BYTES = before


@given(CELLS, st.integers(4, 60))
def test_csv_as_the_csv_module_reads_it(rows: list[list[str]], size: int) -> None:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["x", "y"], ["text", "text"], *rows])
    got = read("t.csv", out.getvalue().encode(), size)
    assert got is not None and [list(row.values()) for row in got] == [["text", "text"], *rows]


@given(INTEGERS, st.sampled_from(["t.csv", "t.jsonl"]))
def test_an_integer_is_itself_or_refused(values: list[int], name: str) -> None:
    lines = ["x,y"] + [f"{value},0" for value in values] if name == "t.csv" else [json.dumps({"x": value}) for value in values]
    got = read(name, "\n".join(lines).encode(), 1 << 20)
    fits = (min(values) >= 0 and max(values) < 2**64) or (min(values) >= -(2**63) and max(values) < 2**63)
    assert (got is not None) == fits
    assert got is None or ([row["x"] for row in got] == values and not any(isinstance(row["x"], float) for row in got))


@given(
    st.lists(st.one_of(st.integers(-(2**65), 2**65), st.floats(allow_nan=False)), min_size=1, max_size=5), st.integers(8, 99)
)
def test_a_number_of_json_is_itself_or_refused(values: list[Any], size: int) -> None:
    got = read("t.jsonl", b"".join(json.dumps({"x": value}).encode() + b"\n" for value in values), size)
    assert got is None or [row["x"] for row in got] == values


@given(RAW, st.sampled_from(["t.csv", "t.jsonl"]), st.integers(4, 60))
def test_no_text_ends_in_anything_but_rows_or_our_error(parts: list[bytes], name: str, size: int) -> None:
    whole = read(name, b"".join(parts), 1 << 20)
    pieces = read(name, b"".join(parts), size)
    assert pieces is None or whole is None or len(pieces) == len(whole)


@pytest.mark.parametrize("data", [b"aaa\ra", b"aaa,b\ra,c", b"a\r1\r2\r", b"x,y\r\n1,2\r\n", b"abcdef"])
@pytest.mark.parametrize("size", [4, 5, 6, 7, 8])
def test_where_a_piece_ends_says_nothing_of_the_ends_of_lines(data: bytes, size: int) -> None:
    assert read("t.csv", data, size) == read("t.csv", data, 1 << 20) is not None


@given(CELLS.filter(bool), st.integers(0, 100), st.integers(4, 60))
def test_a_quote_that_is_not_closed_never_swallows_rows(rows: list[list[str]], where: int, size: int) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([["x", "y"], *[[f"r{i}", "c"] for i in range(len(rows))]])
    lines = out.getvalue().splitlines(keepends=True)
    at = 1 + where % (len(lines) - 1)
    lines[at] = lines[at].replace(",c", ',"c')
    assert read("t.csv", "".join(lines).encode(), size) is None
