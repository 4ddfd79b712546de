"""JSON lines: columns of objects, those that nobody has, and what is written."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.errors import SourceError, WriteError
from akrunner.io.formats.base import Reading
from akrunner.io.formats.jsonl import FORMAT
from akrunner.io.paths import Files

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


class Table:
    """Files of JSON that are read as one table."""

    def __init__(self, tmp_path: Path, *texts: str, asked: Any = None, only: Any = None) -> None:
        self.paths = [str(tmp_path / f"{number}.jsonl") for number in range(len(texts))]
        for path, text in zip(self.paths, texts):
            Path(path).write_text(text)
        self.open = FORMAT.opener(Reading(Files(fsspec.filesystem("file"), self.paths, "jsonl", None), asked, only))

    def read(self, like: Any = None) -> list[Any]:
        return [row for path in self.paths for batch in self.open(path, like)[1] for row in batch.to_pylist()]


def test_objects_tell_their_columns(tmp_path: Path) -> None:
    table = Table(tmp_path, '{"a":1,"l":[0.5]}\n\n{"b":"é","a":null}\n')
    schema, batches = table.open(table.paths[0], None)
    assert schema == pa.schema([("a", pa.int64()), ("l", pa.list_(pa.float64())), ("b", pa.string())])
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"a": 1, "l": [0.5], "b": None},
        {"a": None, "l": None, "b": "é"},
    ]


def test_columns_that_were_not_asked_for_are_ignored(tmp_path: Path) -> None:
    assert Table(tmp_path, '{"a":1,"b":"x","c":5}\n', asked=AB).read() == [{"a": 1, "b": "x"}]


def test_a_later_file_has_the_columns_of_the_first(tmp_path: Path) -> None:
    assert Table(tmp_path, '{"a":1}\n').read(like=AB) == [{"a": 1, "b": None}]


def test_a_column_that_no_object_of_any_file_has_is_told_at_the_end(tmp_path: Path) -> None:
    one, other = '{"a":1}\n', '{"a":2}\n{"b":"x"}\n'
    for texts in ((one, other), (other, one), (other,)):
        assert len(Table(tmp_path, *texts, asked=AB).read()) == sum(text.count("\n") for text in texts)
    with pytest.raises(SourceError, match=r"^input_schema: no object in .*0\.jsonl has a 'b'$"):
        Table(tmp_path, one, asked=AB).read()
    with pytest.raises(SourceError, match=r"^input_schema: no object in .*0\.jsonl to .*2\.jsonl has a 'b'$"):
        Table(tmp_path, one, one, one, asked=AB).read()


def test_what_was_seen_is_forgotten_when_the_table_is_read_again(tmp_path: Path) -> None:
    table = Table(tmp_path, '{"a":1}\n', '{"b":"x"}\n', asked=AB)
    assert len(table.read()) == len(table.read()) == 2
    Path(table.paths[1]).write_text('{"a":2}\n')
    with pytest.raises(SourceError, match="has a 'b'"):
        table.read()
    for path in table.paths:
        Path(path).write_text("")
    assert table.read() == []


def test_files_without_rows_say_nothing_of_their_columns(tmp_path: Path) -> None:
    assert Table(tmp_path, "", "\n", asked=AB).read() == []


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": [1, None], "b": ['x"\n', ""]})
    stream = io.BytesIO()
    writer = FORMAT.writer(stream, AB)
    writer.write(batch)
    writer.close()
    assert Table(tmp_path, stream.getvalue().decode(), asked=AB).read() == batch.to_pylist()
    schema = pa.schema([("t", pa.date32())])
    odd = FORMAT.writer(io.BytesIO(), schema)
    with pytest.raises(WriteError, match="and jsonl cannot hold it"):
        odd.write(pa.record_batch([pa.array([2**30], pa.int32()).view(pa.date32())], schema=schema))
    odd.close()


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        (pa.binary(), False),
        (pa.list_(pa.binary()), False),
        (pa.list_(pa.string()), True),
        (pa.struct([("a", pa.int64())]), True),
    ],
    ids=str,
)
def test_types_that_an_object_holds(kind: pa.DataType, held: bool) -> None:
    assert FORMAT.holds(kind) == held
