"""Arrow's files and streams: whole ones are read, and others are told."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io.formats.arrow import FORMAT
from akrunner.io.formats.base import Reading
from akrunner.io.paths import Files

BATCHES = [pa.record_batch({"a": [1, None], "b": ["x", ""]}), pa.record_batch({"a": [3], "b": ["é"]})]
SCHEMA = BATCHES[0].schema
ROWS = [row for batch in BATCHES for row in batch.to_pylist()]


def data(stream: bool, batches: Any = BATCHES) -> bytes:
    out = io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return out.getvalue()


def opened(tmp_path: Path, content: bytes, only: Any = None) -> Any:
    path = str(tmp_path / "t.arrow")
    Path(path).write_bytes(content)
    return FORMAT.open(Reading(Files(fsspec.filesystem("file"), [path], "arrow", None), None, only), path, None)


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_files_and_streams_have_their_rows(stream: bool, tmp_path: Path) -> None:
    schema, batches = opened(tmp_path, data(stream))
    assert schema == SCHEMA and [row for batch in batches for row in batch.to_pylist()] == ROWS
    schema, batches = opened(tmp_path, data(stream, [BATCHES[0][:0]]))
    assert schema == SCHEMA and [row for batch in batches for row in batch.to_pylist()] == []


def test_columns_of_a_file_that_are_not_drawn_are_in_the_schema_alone(tmp_path: Path) -> None:
    schema, batches = opened(tmp_path, data(False), ["b", "of the directories"])
    assert schema == SCHEMA and {tuple(batch.schema.names) for batch in batches} == {("b",)}


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", data(True)[:-1], data(True)[: len(data(True)) // 2], b"ARROW"])
def test_what_is_neither_or_is_cut_short(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"source: cannot read .*t\.arrow as arrow: it is no Arrow file or stream, or is cut"):
        opened(tmp_path, content)


def test_a_file_that_is_cut_short(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        opened(tmp_path, data(False)[:-20])


def test_several_streams_in_one_file_are_not_read_as_one(tmp_path: Path) -> None:
    _, batches = opened(tmp_path, data(True) * 2)
    with pytest.raises(SourceError, match=r"t\.arrow holds more behind the end of its Arrow stream: several streams"):
        list(batches)


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_a_batch_with_offsets_that_lead_nowhere_is_refused(stream: bool, tmp_path: Path) -> None:
    offsets = pa.array([0, 100, 1], pa.int32()).buffers()[1]
    odd = pa.record_batch([pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"x")])], ["s"])
    _, batches = opened(tmp_path, data(stream, [odd]))
    with pytest.raises(pa.ArrowInvalid):
        list(batches)


def test_each_batch_of_a_file_is_a_block(tmp_path: Path) -> None:
    path = str(tmp_path / "t.arrow")
    Path(path).write_bytes(data(False))
    assert FORMAT.blocks(path, SCHEMA, path) == [(0, 2), (1, 1)]
    assert [batch.to_pylist() for block in (1, 0) for batch in FORMAT.rows(path, block, SCHEMA)] == [ROWS[2:], ROWS[:2]]
    assert FORMAT.blocks(path, SCHEMA.remove(0), path) is None
    Path(path).write_bytes(data(True))
    with pytest.raises(pa.ArrowInvalid):
        FORMAT.blocks(path, SCHEMA, path)


def test_what_is_written_is_a_file_of_large_batches() -> None:
    out = io.BytesIO()
    writer = FORMAT.writer(out, SCHEMA)
    for batch in BATCHES:
        writer.write(batch)
    writer.close()
    assert FORMAT.begins(out.getvalue()[:16]) and not FORMAT.begins(data(True)[:16])
    with pa.ipc.open_file(io.BytesIO(out.getvalue())) as file:
        assert file.num_record_batches == 1 and file.read_all().to_pylist() == ROWS
