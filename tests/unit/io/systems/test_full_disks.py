"""A disk that is full while a table of a database or lakehouse on this machine is written: the error says so, and nothing is left."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import WriteError
from akrunner.foreign import in_words
from akrunner.io.systems import apart, base, delta, duckdb, sqlite
from tests.guards import one_guard

__all__ = ["one_guard"]

ROWS = pa.table({"id": pa.array(range(1000), pa.int64()), "x": np.random.default_rng(1).random(1000)})


@pytest.mark.parametrize(
    "words",
    [
        "INTERNAL: failed to execute: database or disk is full",
        'FATAL Error: Could not write file "/tmp/x": No space left on device',
        "Failed to parse parquet: External: Unable to copy data to file: No space left on device (os error 28)",
    ],
)
def test_the_words_of_libraries_for_a_full_disk(tmp_path: Path, words: str) -> None:
    assert "the disk is full: " in in_words(RuntimeError(words), str(tmp_path))
    assert "bytes free on" in in_words(RuntimeError(words), str(tmp_path / "new" / "table"))
    # of a server, the disk is not ours
    assert "bytes free" not in in_words(RuntimeError(words))


def test_a_quota_has_its_own_words(tmp_path: Path) -> None:
    assert in_words(RuntimeError(os.strerror(errno.EDQUOT)), str(tmp_path)).startswith("the disk quota is used up")


@pytest.mark.parametrize(("system", "url"), [(sqlite, "sqlite:///{}/k?table=t"), (duckdb, "duckdb:///{}/k?table=t")])
def test_a_database_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: Any, url: str) -> None:
    monkeypatch.setattr(apart, "needed", lambda: False)
    out = system.SYSTEM.output(url.format(tmp_path), ROWS.schema, False)

    def full(self: Any) -> None:
        raise RuntimeError("database or disk is full")

    monkeypatch.setattr(system._Writing, "commit", full)
    with pytest.raises(WriteError, match=r"output: cannot write \w+:///.*: the disk is full: [0-9,]+ bytes free on /"):
        _written(out)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("part", ["the trial", "deltalake"])
def test_a_new_delta_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    def full(*_: Any, **__: Any) -> None:
        (tmp_path / "a" / "t" / "_delta_log").mkdir(parents=True, exist_ok=True)
        raise OSError("Unable to copy data to file: No space left on device (os error 28)")

    if part == "the trial":
        monkeypatch.setattr(delta, "_SPACE", 1 << 60)
        monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", full)
    else:
        monkeypatch.setattr("deltalake.write_deltalake", full)
    out = delta.SYSTEM.output(f"delta:///{tmp_path}/a/t", ROWS.schema, False)
    with pytest.raises(WriteError, match=r"output: cannot write delta:///.*: the disk is full: [0-9,]+ bytes free on /"):
        _written(out)
    assert os.listdir(tmp_path) == []


def test_a_small_disk_that_has_room_for_a_delta_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "_SPACE", 1 << 60)
    _written(delta.SYSTEM.output(f"delta:///{tmp_path}/t", ROWS.schema, False))
    assert sum(batch.num_rows for batch in delta.SYSTEM.open(f"delta:///{tmp_path}/t", None, None).batches()) == 1000
    assert os.listdir(tmp_path) == ["t"]


def _written(out: base.TableSink) -> None:
    try:
        for batch in ROWS.to_batches():
            out.write_rows(batch)
        out.commit()
    finally:
        out.abort()
