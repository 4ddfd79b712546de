"""The files of a directory: which rows go into which, how many may be open, and when one is full."""

from __future__ import annotations

import io
import posixpath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.codec import write_examples
from akrunner.errors import WriteError
from akrunner.io import parts
from akrunner.io.layouts import PLAIN, Layout
from akrunner.io.parts import Parts
from akrunner.spec import TaskSpec

CHIEF, WORKER = TaskSpec("chief", 0), TaskSpec("worker", 0)
ROWS = pa.record_batch({"day": ["a", "b", None, "a"], "n": [1, 2, 3, 4]})


class Folder:
    """In place of a directory. Attributes: files: what was written; finished: the names of complete files, in order."""

    at, partial, adds = None, "", False

    def __init__(self, most: int = 10) -> None:
        self.most = most
        self.files: dict[str, io.BytesIO] = {}
        self.finished: list[str] = []

    def make(self) -> None: ...

    def open(self, name: str) -> Any:
        assert name not in self.files
        self.files[name] = io.BytesIO()
        return self.files[name]

    def finish(self, name: str) -> None:
        self.finished.append(name)


def made(folder: Folder, form: str = "parquet", schema: pa.Schema = ROWS.schema, **options: Any) -> Parts:
    return Parts(folder, form, schema, write_examples, Layout(**options))  # type: ignore[arg-type]


def rows(folder: Folder) -> dict[str, list[Any]]:
    return {name: pq.read_table(io.BytesIO(file.getvalue()))["n"].to_pylist() for name, file in folder.files.items()}


def test_a_file_of_each_task() -> None:
    folder = Folder()
    out = Parts(folder, "parquet", ROWS.schema, write_examples, PLAIN)  # type: ignore[arg-type]
    out.write(CHIEF, ROWS)
    out.write(WORKER, ROWS.slice(0, 1))
    out.finish()
    assert rows(folder) == {"part-chief-0.parquet": [1, 2, 3, 4], "part-worker-0.parquet": [1]}
    assert [(one.path, one.rows) for one in out.files] == [("part-chief-0.parquet", 4), ("part-worker-0.parquet", 1)]
    assert [one.size for one in out.files] == [len(file.getvalue()) for file in folder.files.values()]


def test_a_directory_for_each_value() -> None:
    folder = Folder()
    out = made(folder, partition_by=("day",))
    out.write(CHIEF, ROWS)
    out.write(CHIEF, ROWS)
    out.finish()
    assert rows(folder) == {
        "day=a/part-chief-0.parquet": [1, 4, 1, 4],
        "day=b/part-chief-0.parquet": [2, 2],
        "day=__HIVE_DEFAULT_PARTITION__/part-chief-0.parquet": [3, 3],
    }
    assert pq.read_schema(io.BytesIO(folder.files["day=a/part-chief-0.parquet"].getvalue())).names == ["n"]


def test_few_rows_are_not_divided_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    divided = parts.divided
    monkeypatch.setattr(parts, "divided", lambda batch, names: (calls.append(batch.num_rows), divided(batch, names))[1])
    monkeypatch.setattr(parts, "_WAITING_ROWS", 10)
    folder = Folder()
    out = made(folder, partition_by=("day",))
    for _ in range(4):
        out.write(CHIEF, ROWS)
    out.write(WORKER, ROWS)
    assert calls == [12]
    monkeypatch.setattr(parts, "_WAITING_BYTES", 1)
    out.write(CHIEF, ROWS)
    assert calls == [12, 8, 4]
    out.write(WORKER, ROWS.slice(0, 0))
    out.finish()
    assert calls == [12, 8, 4]
    assert rows(folder)["day=b/part-chief-0.parquet"] == [2] * 5
    assert rows(folder)["day=b/part-worker-0.parquet"] == [2]


def test_too_many_partitions_name_the_option_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_WAITING_ROWS", 1)
    folder = Folder(2)
    out = made(folder, partition_by=("day",))
    with pytest.raises(WriteError, match=r"partition_by= .*values in day than files can be open here \(2\).*sort_by="):
        out.write(CHIEF, ROWS)
    out.drop()
    # sorted rows need one file at a time
    out = made(folder := Folder(1), partition_by=("day",), sort_by=(("n", False),))
    out.write(CHIEF, ROWS.take(pa.array([0, 3, 1, 2])))
    out.finish()
    assert list(rows(folder).values()) == [[1, 4], [2], [3]] and folder.finished == list(folder.files)


def test_no_file_has_more_rows_than_are_allowed() -> None:
    folder = Folder()
    out = made(folder, max_rows=3)
    for _ in range(2):
        out.write(CHIEF, ROWS)
    out.finish()
    assert rows(folder) == {
        "part-chief-0-00000.parquet": [1, 2, 3],
        "part-chief-0-00001.parquet": [4, 1, 2],
        "part-chief-0-00002.parquet": [3, 4],
    }


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "jsonl"])
def test_files_stay_below_a_size_and_come_near_it(form: str) -> None:
    folder = Folder(1)
    batch = pa.record_batch({"n": range(20000), "s": [f"text {at * 7919 % 20011}" for at in range(20000)]})
    out = made(folder, form, batch.schema, max_bytes=65536)
    for at in range(0, 20000, 5000):
        out.write(CHIEF, batch.slice(at, 5000))
    out.finish()
    sizes = [len(file.getvalue()) for file in folder.files.values()]
    assert len(sizes) > 2 and max(sizes) <= 65536 * 1.1 and min(sizes[:-1]) >= 65536 // 3
    assert sum(one.rows for one in out.files) == 20000 and [one.size for one in out.files] == sizes


def test_a_row_that_is_larger_than_a_file_has_one_for_itself() -> None:
    folder = Folder()
    out = made(folder, "jsonl", pa.schema([("s", pa.string())]), max_bytes=1024)
    out.write(CHIEF, pa.record_batch({"s": ["x" * 5000, "y", "z" * 5000]}))
    out.finish()
    assert sum(one.rows for one in out.files) == 3 and all(one.rows for one in out.files)


def test_many_open_files_together_hold_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_WAITING_ROWS", 1)
    monkeypatch.setattr(parts, "_HELD_BYTES", 20)
    folder = Folder()
    out = made(folder, partition_by=("day",))
    out.write(CHIEF, ROWS)
    # the file that held the most has written it
    assert len(folder.files["day=a/part-chief-0.parquet"].getvalue()) > 50
    out.finish()
    assert sum(map(len, rows(folder).values())) == 4


def test_files_without_new_rows_are_closed_if_they_keep_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_WAITING_ROWS", 1)
    monkeypatch.setattr(parts, "_HELD_BYTES", 20)
    monkeypatch.setattr(parts, "_KEPT_BYTES", 40)
    folder = Folder()
    out = made(folder, partition_by=("day",))
    for at in (0, 1, 2, 3):
        out.write(CHIEF, ROWS.slice(at, 1).take(pa.array([0] * 4)))
    # all but the last one, which came again
    assert folder.finished == list(folder.files)[:3]
    out.finish()
    assert rows(folder) == {
        "day=a/part-chief-0.parquet": [1] * 4,
        "day=b/part-chief-0.parquet": [2] * 4,
        "day=__HIVE_DEFAULT_PARTITION__/part-chief-0.parquet": [3] * 4,
        "day=a/part-chief-0-00001.parquet": [4] * 4,
    }


def test_what_is_added_has_a_name_of_its_own_and_comes_last() -> None:
    names = []
    for _ in range(2):
        folder = Folder()
        out = made(folder, append=True)
        out.write(CHIEF, ROWS)
        out.finish()
        names += folder.files
    assert len({*names}) == 2 and all(name > "part-chief-0" and name.endswith(".parquet") for name in names)


def test_no_rows_have_a_file_where_the_readers_see_all_columns() -> None:
    folder = Folder()
    out = made(folder, partition_by=("day",))
    out.write_nothing()
    out.finish()
    assert rows(folder) == {"day=__HIVE_DEFAULT_PARTITION__/part-chief-0.parquet": []}


def test_what_is_dropped_can_be_begun_again() -> None:
    out = made(Folder(), max_rows=1)
    out.write(CHIEF, ROWS)
    out.drop()
    assert out.files == []
    folder = Folder()
    again = made(folder, max_rows=1)
    again.write(CHIEF, ROWS)
    again.drop()
    folder.files.clear()
    again.write(CHIEF, ROWS.slice(0, 1))
    again.finish()
    assert [posixpath.basename(name) for name in folder.files] == ["part-chief-0-00000.parquet"]
