"""A file of an output directory: made with its first rows, whole when it is closed, and errors in words."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import SinkError
from akrunner.io.part_file import PartError, PartFile

BATCH = pa.record_batch({"x": [1, None], "s": ["é", ""]})


@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl", "csv"])
def test_a_file_has_all_its_rows_when_it_is_closed(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"part.{form}"
    file = PartFile(str(path), form, BATCH.schema)
    assert not path.exists()
    file.write(BATCH)
    file.write(BATCH)
    file.close()
    size = path.stat().st_size
    assert size > 0
    if form == "parquet":
        assert pq.read_table(path).to_pylist() == BATCH.to_pylist() * 2
    file.close()
    assert path.stat().st_size == size


def test_a_file_without_rows_is_none(tmp_path: Path) -> None:
    PartFile(str(tmp_path / "part.parquet"), "parquet", BATCH.schema).close()
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_made_is_told_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "part.csv"
    with pytest.raises(PartError, match=f"^output: cannot write {path}: No such file or directory$"):
        PartFile(str(path), "csv", BATCH.schema).write(BATCH)


def test_a_disk_that_is_full_is_told_when_the_file_is_closed_at_the_latest() -> None:
    file = PartFile("/dev/full", "parquet", BATCH.schema)
    with pytest.raises(PartError, match="^output: cannot write /dev/full: No space left on device$"):
        file.write(BATCH)
        file.close()
    assert file._stream is None, "it is let go of"
    file.close()


def test_a_file_that_somebody_removed_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "part.csv"
    file = PartFile(str(path), "csv", BATCH.schema)
    file.write(BATCH)
    path.unlink()
    with pytest.raises(PartError, match=f"^output: cannot write {path}: it was removed while it was written$"):
        file.close()
    file.close()


def test_tfrecords_are_not_written_here(tmp_path: Path) -> None:
    file = PartFile(str(tmp_path / "part.tfrecord"), "tfrecord", BATCH.schema)
    with pytest.raises(SinkError, match="TFRecords are written by the host"):
        file.write(BATCH)
    file.close()
    assert (tmp_path / "part.tfrecord").stat().st_size == 0
