"""Files of lines in blocks: each block can be read without the others, and none that was counted differently is."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import WriteError
from akrunner.io.formats import csv, jsonl, lines

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])
CSV, JSON = csv.FORMAT, jsonl.FORMAT


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows."""
    monkeypatch.setattr(lines, "LINES_BYTES", 16)


def written(tmp_path: Path, name: str, data: bytes) -> str:
    (tmp_path / name).write_bytes(data)
    return str(tmp_path / name)


@pytest.mark.parametrize(
    ("form", "data", "rows"),
    [
        (CSV, b'a,b\n1,x\n22,"y\nz"\n3,\n' + b"4,long as it is\n" * 3, 6),
        (CSV, b"a,b\r\n1,x\r\n2,y\r\n3,z", 3),
        (CSV, b"a,b\n", 0),
        (CSV, b'a,b\n1,"not ended"', 1),
        (JSON, b'{"a":1,"b":"x"}\n{"a":2}\n\n{"b":"long as it is"}\n', 3),
        (JSON, b'{"a":1,"b":"x"}\n{"a":2}', 2),
        (JSON, b"", 0),
    ],
)
def test_blocks_have_all_rows_and_each_is_read_by_itself(form: Any, data: bytes, rows: int, tmp_path: Path) -> None:
    path = written(tmp_path, f"t{form.endings[0]}", data)
    blocks = form.blocks(path, AB, path)
    assert sum(count for _, count in blocks) == rows
    ends = [block for block, _ in blocks]
    begin = len(data.partition(b"\n")[0]) + 1 if form is CSV else 0
    if blocks:
        assert ends[0][0] == begin and ends[-1][1] == len(data)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(ends))
    got = []
    for block, count in reversed(blocks):
        found = [row for batch in form.rows(path, block, AB) for row in batch.to_pylist()]
        assert len(found) == count
        got[:0] = found
    whole = pa.Table.from_batches(list(form.rows(path, [begin, len(data)], AB)), AB) if rows else AB.empty_table()
    assert got == whole.to_pylist()


@pytest.mark.parametrize(
    ("form", "name", "data", "schema"),
    [
        (CSV, "t.csv.gz", b"a,b\n1,x\n", AB),
        (JSON, "t.json", b'{"a":1}\n', AB),
        (JSON, "t.jsonl", b'{"a":[1]}\n', pa.schema([("a", pa.list_(pa.int64()))])),
        (CSV, "t.csv", b"b,a\nx,1\n", AB),
        (CSV, "t.csv", b'a,b\n1,"x\n', AB),
        (CSV, "t.csv", b'a,b\n1,5" pipe\n2,"y\n"\n', AB),
    ],
)
def test_files_that_are_not_read_in_blocks(form: Any, name: str, data: bytes, schema: pa.Schema, tmp_path: Path) -> None:
    first = written(tmp_path, "first.csv", b"a,b\n")
    assert form.blocks(written(tmp_path, name, data), schema, first) is None


def test_a_row_that_is_too_long_leaves_the_file_to_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "ROW_BYTES", 40)
    path = written(tmp_path, "t.csv", b"a,b\n1," + b"x" * 100 + b"\n")
    assert CSV.blocks(path, AB, path) is None


@pytest.mark.parametrize(
    ("form", "name", "data", "block", "words"),
    [
        (CSV, "t.csv", b"1,x\n2,y\n", [0, 12], "the file was changed"),
        (JSON, "t.jsonl", b'{"a":1}{"a":2}\n', [0, 15], "a line holds several objects"),
        (CSV, "t.csv", b"1,x\nz,y\n", [0, 8], r"line 2: .*\(lines are counted from byte 0\)"),
        (CSV, "t.csv", b"1,x\nz,y\n", [4, 8], r"line 1: .*\(lines are counted from byte 4\)"),
    ],
)
def test_a_block_that_is_not_as_it_was_counted_is_refused(
    form: Any, name: str, data: bytes, block: list[int], words: str, tmp_path: Path
) -> None:
    with pytest.raises(pa.ArrowInvalid, match=words):
        list(form.rows(written(tmp_path, name, data), block, AB))


@pytest.mark.parametrize("form", [CSV, JSON], ids=["csv", "jsonl"])
def test_each_batch_is_written_at_once_and_odd_times_are_refused(form: Any, tmp_path: Path) -> None:
    schema = pa.schema([("t", pa.date32())])
    with open(tmp_path / "o", "wb", buffering=0) as stream:
        writer = form.line_writer(stream, schema)
        before = (tmp_path / "o").stat().st_size
        writer.write(pa.record_batch([pa.array([0], pa.int32()).view(pa.date32())], schema=schema))
        assert (tmp_path / "o").stat().st_size > before
        with pytest.raises(WriteError, match="column 't' has 9999999"):
            writer.write(pa.record_batch([pa.array([9999999], pa.int32()).view(pa.date32())], schema=schema))
        writer.close()
    assert b"1970-01-01" in (tmp_path / "o").read_bytes()
