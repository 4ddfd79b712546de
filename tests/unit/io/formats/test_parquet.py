"""Parquet files: their columns, row groups, counts of nulls, and files that say something else than they hold."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import SourceError
from akrunner.io.extents import Extent
from akrunner.io.formats import parquet
from akrunner.io.formats.base import Reading
from akrunner.io.formats.parquet import FORMAT
from akrunner.io.paths import Files

TABLE = pa.table({"a": [1, None, 3, 4, None], "b": ["x", "y", None, "", "z"], "l": [[1], None, [None, 2], [], [3]]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(TABLE.replace_schema_metadata({"who": "somebody"}), tmp_path / "t.parquet", row_group_size=2)
    return str(tmp_path / "t.parquet")


def opened(path: str, only: Any = None) -> Any:
    return FORMAT.open(Reading(Files(fsspec.filesystem("file"), [path], "parquet", None), None, only), path, None)


def test_a_file_has_its_schema_and_rows(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 2)
    schema, batches = opened(path)
    found = list(batches)
    assert schema == TABLE.schema and schema.metadata is None
    assert pa.Table.from_batches(found).to_pylist() == TABLE.to_pylist() and max(batch.num_rows for batch in found) == 2


def test_columns_that_are_not_drawn_are_in_the_schema_alone(path: str) -> None:
    schema, batches = opened(path, ["b", "of the directories"])
    assert schema == TABLE.schema and {tuple(batch.schema.names) for batch in batches} == {("b",)}


def test_each_row_group_is_a_block(path: str) -> None:
    blocks = FORMAT.blocks(path, TABLE.schema, path)
    assert blocks == [(0, 2), (1, 2), (2, 1)]
    rows = [
        row for block, _ in reversed(blocks) for batch in FORMAT.rows(path, block, TABLE.schema) for row in batch.to_pylist()
    ]
    want = TABLE.to_pylist()
    assert rows == want[4:] + want[2:4] + want[:2]
    assert FORMAT.blocks(path, TABLE.schema.remove(0), path) is None


def test_what_the_end_of_a_file_says_of_it(path: str, tmp_path: Path) -> None:
    assert FORMAT.row_count(path) == 5
    assert FORMAT.null_counts(path) == {"a": 2, "b": 1, "l": None}
    pq.write_table(TABLE, tmp_path / "untold.parquet", write_statistics=["a"])
    assert FORMAT.null_counts(str(tmp_path / "untold.parquet")) == {"a": 2, "b": None, "l": None}
    pq.write_table(TABLE[:0], tmp_path / "empty.parquet")
    assert FORMAT.row_count(str(tmp_path / "empty.parquet")) == 0


def test_a_file_with_fewer_rows_than_it_says_is_damaged() -> None:
    class Lying:
        class metadata:
            num_rows = 3

        def __enter__(self) -> Lying:
            return self

        def __exit__(self, *given: object) -> None:
            pass

        def iter_batches(self, rows: int, columns: Any) -> Any:
            return iter([pa.record_batch({"a": [1, 2]})])

    with pytest.raises(SourceError, match=r"source: t\.parquet says it has 3 rows, and has 2: it is damaged"):
        list(parquet._counted(Lying(), "t.parquet", None, Extent()))


def test_what_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 or so")
    with pytest.raises(pa.ArrowInvalid):
        opened(str(tmp_path / "t.parquet"))
    assert FORMAT.begins(b"PAR1\x15\x04") and not FORMAT.begins(b"PARE") and not FORMAT.begins(b"")


def test_small_batches_become_one_row_group() -> None:
    stream = io.BytesIO()
    writer = FORMAT.writer(stream, TABLE.schema)
    for batch in TABLE.to_batches(max_chunksize=1):
        writer.write(batch)
    writer.close()
    written = pq.ParquetFile(io.BytesIO(stream.getvalue()))
    assert written.num_row_groups == 1 and written.read().to_pylist() == TABLE.to_pylist()
