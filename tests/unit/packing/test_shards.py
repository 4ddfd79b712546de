"""A shard is there whole, or not at all, and whatever wrote it is closed."""

from __future__ import annotations

import errno
import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.packing import shards
from akrunner.packing.shards import ShardFile

BATCH = pa.RecordBatch.from_pylist([{"a": 1}])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["tfrecord", "parquet", "arrow"])
@pytest.mark.parametrize("rows", [0, 1])
def test_one_that_is_dropped_leaves_nothing_and_complains_to_nobody(tmp_path: Path, form: str, rows: int) -> None:
    file = ShardFile(str(tmp_path), form, BATCH.schema)
    for _ in range(rows):
        file.write_rows(BATCH)
    file.drop()
    del file
    # what an object says at its end is an error of this test
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_one_that_a_full_disk_ends_is_closed(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write = shards.Sink.write

    def full(sink: shards.Sink, data: Any) -> int:
        if sink.over:
            return write(sink, data)
        raise OSError(errno.ENOSPC, "No space left on device")

    file = ShardFile(str(tmp_path), form, BATCH.schema)
    monkeypatch.setattr(shards.Sink, "write", full)
    with pytest.raises(OSError):
        file.write_rows(BATCH)
        file.commit(str(tmp_path / "x"))
    file.drop()
    del file
    gc.collect()
    assert not list(tmp_path.iterdir())
