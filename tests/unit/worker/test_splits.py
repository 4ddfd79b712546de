"""Rows of one split, in both formats, without TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.io.partitioner import rechunk
from akrunner.schema import Schema
from akrunner.worker.column_rows import Columns
from akrunner.worker.data import Evener, Examples
from akrunner.worker.splits import ENDING, Splits

ROWS = 1000
TABLE = pa.table(
    {
        "id": range(ROWS),
        "name": [f"n{i}" for i in range(ROWS)],
        "some": [None if i % 10 == 3 else i for i in range(ROWS)],
        "x": [i / 2 for i in range(ROWS)],
        "many": [[i] * (i % 3) for i in range(ROWS)],
    }
)


def there(folder: Path, form: str, marks: np.ndarray[Any, Any]) -> tuple[Any, Splits]:
    """(all rows, their splits) of a task whose files lie there."""
    path = folder / "dataset"
    with open(path, "wb") as f:
        for chunk in rechunk(TABLE.to_batches(), 128, 1 << 20):
            for part in codec.encode_frame(chunk, form, False):
                f.write(part)
    Path(str(path) + ENDING).write_bytes(marks.astype(np.uint8).tobytes())
    evener = Evener(ROWS, [ROWS, ROWS], lambda **rows: None)
    counts = np.bincount(marks, minlength=3).tolist()
    source: Any = Columns if form == "columns" else Examples
    splits = Splits(["train", "test", "rest"], str(path), [counts, [counts[0] - 5, counts[1] + 7, 0]], evener)
    return source(Schema.from_arrow(TABLE.schema).describe(), str(path), None, evener), splits


@pytest.mark.parametrize("form", ["examples", "columns"])
def test_every_row_is_in_one(tmp_path: Path, form: str) -> None:
    marks = np.arange(ROWS) % 7 // 5
    # nothing of some chunks
    marks[256:640] = 0
    rows, splits = there(tmp_path, form, marks)
    assert splits.counts() == {"train": int((marks == 0).sum()), "test": int((marks == 1).sum()), "rest": 0}
    for number, name in enumerate(splits.names):
        part = splits.source(rows, name)
        mine = np.flatnonzero(marks == number)
        for size in (10, 100_000):
            batches = list(part.batches(size, {"some": -1}))
            assert [len(batch["id"]) for batch in batches[:-1]] == [size] * (len(batches) - 1)
            found: list[Any] = [
                row for batch in batches for row in zip(*(batch[key] for key in ("id", "name", "some", "many")))
            ]
            assert [(i, name, some, many.tolist()) for i, name, some, many in found] == [
                (i, b"n%d" % i, -1 if i % 10 == 3 else i, [i] * (i % 3)) for i in mine.tolist()
            ]
    assert sum(len(batch["id"]) for batch in rows.batches(64, {"some": 0})) == ROWS


@pytest.mark.parametrize("form", ["examples", "columns"])
def test_a_null_of_another_split_is_no_error(tmp_path: Path, form: str) -> None:
    rows, splits = there(tmp_path, form, (np.arange(ROWS) % 10 == 3).astype(np.int64))
    assert [batch["some"].sum() for batch in splits.source(rows, "train").batches(ROWS)] == [sum(range(ROWS)) - 49800]
    batch = next(iter(splits.source(rows, "test").batches(10)))
    with pytest.raises(ValueError, match="column 'some' has a null in row 0 of the batch"):
        batch["some"]
    for _, columns in splits.source(rows, "train").chunks():
        assert columns["some"].dtype == np.int64
    with pytest.raises(ValueError, match="column 'some' has a null in row 3 of this task's"):
        list(splits.source(rows, "test").chunks())
    masked = next(iter(splits.source(rows, "test").batches(4, nulls="mask")))
    assert masked["some"].mask.all() and masked["id"].tolist() == [3, 13, 23, 33]


@pytest.mark.parametrize("form", ["examples", "columns"])
def test_shares_of_a_split_are_evened(tmp_path: Path, form: str) -> None:
    marks = (np.arange(ROWS) % 5 == 0).astype(np.int64)
    rows, splits = there(tmp_path, form, marks)
    count = {
        (name, uneven): sum(len(batch["id"]) for batch in splits.source(rows, name).batches(64, {"some": 0}, uneven=uneven))
        for name in ("train", "test")
        for uneven in ("keep", "drop", "pad")
    }
    assert count == {
        ("train", "keep"): 800, ("train", "drop"): 795, ("train", "pad"): 800,
        ("test", "keep"): 200, ("test", "drop"): 200, ("test", "pad"): 207,
    }  # fmt: skip
    assert splits.shares("test") == [200, 207] and Splits(["all"], splits._path, [], rows._evener).shares("all") == [800]


def test_names_that_are_none(tmp_path: Path) -> None:
    rows, splits = there(tmp_path, "columns", np.zeros(ROWS, np.int64))
    with pytest.raises(
        ValueError, match="split='tset' is no split of this job, which has train, test, rest; did you mean 'test'"
    ):
        splits.source(rows, "tset")
    for odd in (3, ["train"], ""):
        with pytest.raises(ValueError, match="is no split of this job"):
            splits.source(rows, odd)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the rows of this job are not split: give run or train split="):
        Splits([], "nowhere", [], rows._evener).shares("train")
    assert Splits([], "nowhere", [], rows._evener).counts() == {}
