"""What the values of JSON lines are taken for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io.parse_json import Unseen
from akrunner.io.sources import open_source
from akrunner.schema import Schema


def table(tmp_path: Path, text: str, **options: Any) -> pa.Table:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    source = open_source(path, read_examples=read_examples, **options)
    return pa.Table.from_batches(list(source.batches()), source.schema)


def test_types_are_guessed_and_a_missing_value_is_null(tmp_path: Path) -> None:
    found = table(tmp_path, '{"a": 1, "s": "x", "v": [1.5]}\n\n{"a": 2}\n{"s": null, "a": 3}\n')
    assert [str(field.type) for field in found.schema] == ["int64", "string", "list<item: double>"]
    assert found.to_pylist() == [
        {"a": 1, "s": "x", "v": [1.5]},
        {"a": 2, "s": None, "v": None},
        {"a": 3, "s": None, "v": None},
    ]


def test_an_asked_float_is_the_nearest_one_of_the_text(tmp_path: Path) -> None:
    """Arrow's parser of 32 bits reads other numbers than the nearest."""
    asked = Schema.from_arrow(pa.schema([("x", pa.float32()), ("v", pa.list_(pa.float32()))]))
    found = table(tmp_path, '{"x": 0.1, "v": [0.1, 0.7]}\n', input_schema=asked)
    assert found.schema.field("x").type == pa.float32()
    assert found.column("x")[0] == pa.scalar(0.1, pa.float32())
    assert found.column("v")[0].values == pa.array([0.1, 0.7], pa.float32())


def test_a_column_that_no_object_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'colour'"):
        table(tmp_path, '{"a": 1}\n{"a": 2}\n', input_schema=Schema.parse("a bigint, colour string"))
    unseen = Unseen(["a", "größe"])
    unseen.look(b'{"gr\\u00f6\\u00dfe": 1}')
    assert unseen.names == ["a"]
    unseen.look(b'{"a": 1}')
    assert unseen.names == []


@pytest.mark.parametrize("row", ["null", '[{"a": 1}]', "3", '{"a": 1'])
def test_a_line_that_has_no_object_is_an_error(tmp_path: Path, row: str) -> None:
    with pytest.raises(SourceError, match="line 2"):
        table(tmp_path, '{"a": 1}\n' + row + '\n{"a": 2}\n')


def test_a_text_without_rows_tells_no_columns(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"is empty, so its columns are not known; give input_schema= \(--input-schema\)"):
        table(tmp_path, "\n \n")


def test_a_file_of_another_format_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"as jsonl: line 1: .*if the file has another format, say so \(input_format=, --input-format\)"
    ):
        table(tmp_path, '"id","x"\n1,2\n')
