"""CSV files: their columns, what is asked of them, and what is written."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.errors import SourceError, WriteError
from akrunner.io.formats.base import Reading
from akrunner.io.formats.csv import FORMAT
from akrunner.io.paths import Files

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


def opened(path: Path, asked: Any = None, only: Any = None, like: Any = None) -> tuple[pa.Schema, list[Any]]:
    files = Files(fsspec.filesystem("file"), [str(path)], "csv", None)
    schema, batches = FORMAT.opener(Reading(files, asked, only))(str(path), like)
    return schema, [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_bytes('a,b,c\n1,x,0.5\n2,"y,\n",\n,é,1\n'.encode())
    return tmp_path / "t.csv"


def test_a_file_tells_its_columns_and_their_types(path: Path) -> None:
    schema, rows = opened(path)
    assert schema == pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
    assert rows == [{"a": 1, "b": "x", "c": 0.5}, {"a": 2, "b": "y,\n", "c": None}, {"a": None, "b": "é", "c": 1.0}]


def test_types_that_were_asked_for_are_read_and_lists_left_to_the_cast(path: Path) -> None:
    schema, rows = opened(path, pa.schema([("a", pa.string()), ("c", pa.list_(pa.int64()))]))
    assert schema.field("a").type == pa.string() and not pa.types.is_nested(schema.field("c").type)
    assert [row["a"] for row in rows] == ["1", "2", ""]


def test_a_later_file_has_the_types_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "2.csv").write_text("a,b\n1,2\n")
    schema, rows = opened(tmp_path / "2.csv", like=AB)
    assert schema == AB and rows == [{"a": 1, "b": "2"}]


def test_columns_that_are_not_drawn_are_left_out_of_the_rows(path: Path) -> None:
    _, rows = opened(path, only=["c"])
    assert rows == [{"c": 0.5}, {"c": None}, {"c": 1.0}]


def test_a_file_that_cannot_be_parsed_is_named_and_can_be_removed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,a\n1,2\n")
    with pytest.raises(SourceError, match=r"two columns of .*t\.csv are called 'a'"):
        opened(tmp_path / "t.csv")


def test_a_table_of_one_column_has_no_blocks(tmp_path: Path, path: Path) -> None:
    (tmp_path / "1.csv").write_text("a\n1\n\n2\n")
    one = str(tmp_path / "1.csv")
    assert FORMAT.blocks(one, pa.schema([("a", pa.int64())]), one) is None
    found = FORMAT.blocks(str(path), pa.schema([*AB, ("c", pa.float64())]), str(path))
    assert found is not None and sum(count for _, count in found) == 3


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": [1, None], "b": ['x"y,\n', ""]})
    with open(tmp_path / "o.csv", "wb") as stream:
        writer = FORMAT.writer(stream, AB)
        writer.write(batch)
        writer.close()
    assert opened(tmp_path / "o.csv", AB)[1] == batch.to_pylist()
    empty = io.BytesIO()
    FORMAT.writer(empty, AB).close()
    assert empty.getvalue() == b'"a","b"\n'


def test_a_time_that_csv_cannot_hold_is_refused() -> None:
    schema = pa.schema([("t", pa.timestamp("s"))])
    with pytest.raises(WriteError, match="and csv cannot hold it"):
        FORMAT.writer(io.BytesIO(), schema).write(pa.record_batch([pa.array([2**60]).view(pa.timestamp("s"))], schema=schema))
