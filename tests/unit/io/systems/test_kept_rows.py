"""Rows that wait in a file until the job has succeeded."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from akrunner import leftovers
from akrunner.io.systems.kept_rows import KeptRows
from tests.guards import one_guard

__all__ = ["one_guard"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers.keeper, "temp_directory", lambda: str(tmp_path))


def test_rows_wait_in_a_file_that_goes(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64())])
    kept = KeptRows(schema)
    for number in range(3):
        kept.append(pa.record_batch({"x": [number]}, schema=schema))
    assert kept.rows == 3 and len(os.listdir(tmp_path)) == 1
    for _ in range(2):
        assert kept.reader().read_all().column(0).to_pylist() == [0, 1, 2]
    kept.drop()
    assert not os.listdir(tmp_path)
    empty = KeptRows(schema)
    assert empty.reader().read_all().num_rows == 0
    empty.drop()
    kept = KeptRows(schema)
    kept.append(pa.record_batch({"x": [1]}, schema=schema))
    kept.drop()
    assert not os.listdir(tmp_path)
