"""JSON lines: columns of objects, those that nobody has, and what is written."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io.formats.base import Reading
from akrunner.io.formats.jsonl import ARRAY, FORMAT
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


class _Opened(pa.ExtensionType):
    """A type of somebody's own."""

    def __init__(self) -> None:
        super().__init__(pa.list_(pa.int64()), "tests.opened")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def _extended(kind: Any, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (
            _extended(pa.fixed_shape_tensor(pa.float32(), [2, 2]), [[0.0] * 4, [1, 2, 3, 4], None, [5, 6, 7, 8]])[1:],
            [[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]],
        ),
        (
            _extended(pa.fixed_shape_tensor(pa.int64(), [2, 3], permutation=[1, 0]), [[1, 2, 3, 4, 5, 6]]),
            [[[1, 4], [2, 5], [3, 6]]],
        ),
        (_extended(pa.fixed_shape_tensor(pa.int64(), [2]), [[1, 2]]), [[1, 2]]),
        (_extended(_Opened(), [[1, 2], None]), [[1, 2], None]),
        (_extended(pa.opaque(pa.float32(), "x", "y"), [0.5]), [0.5]),
        (_extended(pa.uuid(), [b"\0" * 16]), ["00000000-0000-0000-0000-000000000000"]),
        (_extended(pa.json_(), ['{"a": 1}']), [{"a": 1}]),
        (_extended(pa.bool8(), [1]), [True]),
    ],
)
def test_types_of_extensions(column: pa.Array, wanted: list[Any], array: bool) -> None:
    form = ARRAY if array else FORMAT
    batch = pa.record_batch([column], names=["x"])
    form.check(batch.schema)
    stream = io.BytesIO()
    writer = form.writer(stream, batch.schema)
    writer.write(batch)
    writer.close()
    text = stream.getvalue().decode()
    assert [one["x"] for one in (json.loads(text) if array else map(json.loads, text.splitlines()))] == wanted


def test_what_an_extension_holds_is_checked() -> None:
    nan = pa.record_batch([_extended(pa.fixed_shape_tensor(pa.float32(), [1, 2]), [[1, float("nan")]])], names=["x"])
    with pytest.raises(WriteError, match="column 'x' has nan, and JSON has no such number"):
        FORMAT.writer(io.BytesIO(), nan.schema).write(nan)
    with pytest.raises(SinkError, match="JSON cannot hold column 'x'"):
        FORMAT.check(pa.schema([("x", pa.opaque(pa.binary(), "x", "y"))]))
