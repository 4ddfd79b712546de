"""Tables out: there when the job succeeded, as if never touched when it failed."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.codec import read_examples, write_examples
from akrunner.errors import SinkError
from akrunner.io.sinks import FileSink, MemorySink, PartsSink, sink_to
from akrunner.io.sources import open_source
from akrunner.io.writers import PartError, PartFile
from akrunner.schema import Schema
from akrunner.spec import TaskSpec

SCHEMA = Schema.parse("a bigint, s string, f double")
BATCH = pa.RecordBatch.from_pylist([{"a": 1, "s": 'x",\n', "f": 0.5}, {"a": None, "s": "é", "f": None}], SCHEMA.arrow)
CHIEF, WORKER = TaskSpec("chief", 0), TaskSpec("worker", 0)


def sink(path: Any, schema: Schema = SCHEMA, **options: Any) -> FileSink:
    return FileSink(str(path), schema.arrow, write_examples, **options)


def read(path: Any, schema: Schema = SCHEMA) -> Any:
    table = open_source(str(path), read_examples=read_examples, input_schema=schema)
    return pa.Table.from_batches(list(table.batches()), table.schema).to_pylist()


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow", "tfrecord"])
def test_written_and_moved_into_place(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    out = sink(path)
    for _ in range(3):
        out.write(CHIEF, BATCH)
    assert not path.exists()
    out.commit()
    assert read(path) == BATCH.to_pylist() * 3
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow", "tfrecord"])
def test_nothing_is_left_of_a_failed_job(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    path.write_text("before")
    out = sink(path, overwrite=True)
    out.write(CHIEF, BATCH)
    out.abort()
    assert os.listdir(tmp_path) == [path.name] and path.read_text() == "before"
    sink(path, overwrite=True).abort()


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "tfrecord", "jsonl"])
def test_no_rows(ending: str, tmp_path: Path) -> None:
    sink(tmp_path / f"out.{ending}").commit()
    assert (tmp_path / f"out.{ending}").exists()


def test_remote() -> None:
    out = sink("memory://akrunner-out/t.parquet")
    out.write(CHIEF, BATCH)
    out.commit()
    assert read("memory://akrunner-out/t.parquet") == BATCH.to_pylist()
    fsspec.filesystem("memory").rm("/akrunner-out", recursive=True)


def test_lists_and_times(tmp_path: Path) -> None:
    schema = Schema.parse("v FLOAT_TENSOR, t timestamp, d date, b boolean")
    batch = pa.RecordBatch.from_pylist(
        [{"v": [1.0, 2.0], "t": datetime.datetime(2024, 1, 2), "d": datetime.date(2024, 1, 2), "b": True}], schema.arrow
    )
    for name in ("o.parquet", "o.arrow"):
        out = sink(tmp_path / name, schema)
        out.write(CHIEF, batch)
        out.commit()
        assert read(tmp_path / name, schema) == batch.to_pylist()


@pytest.mark.parametrize(
    ("name", "schema", "options", "words"),
    [
        ("there.csv", SCHEMA, {}, "exists; give overwrite=True"),
        ("folder", SCHEMA, {"form": "csv"}, "is a directory"),
        ("no/where.csv", SCHEMA, {}, "there is no directory"),
        ("x.xlsx", SCHEMA, {}, "does not say its format"),
        ("x.csv", Schema.parse("v array<int>"), {}, "a CSV cannot hold column 'v'"),
        ("x.jsonl", Schema.parse("v varbinary"), {}, "JSON cannot hold column 'v'"),
        ("x.csv.gz", SCHEMA, {}, "compressed output"),
    ],
)
def test_refused(name: str, schema: Schema, options: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SinkError, match=words):
        sink(tmp_path / name, schema, **options)


def test_memory_is_in_task_order() -> None:
    memory = MemorySink(SCHEMA.arrow)
    memory.write(WORKER, BATCH.slice(0, 1))
    memory.write(CHIEF, BATCH.slice(1, 1))
    memory.write(WORKER, BATCH.slice(1, 1))
    assert memory.table()["a"].to_pylist() == [None, 1, None]


def parts(path: Any, **options: Any) -> PartsSink:
    made = sink_to(f"{path}/", SCHEMA.arrow, write_examples, **options)
    assert isinstance(made, PartsSink)
    return made


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "arrow", "tfrecord"])
def test_a_directory_with_a_file_of_each_task(form: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    out = parts(path, form=form)
    for task in (WORKER, CHIEF, WORKER):
        out.write(task, BATCH)
    assert not path.exists()
    out.commit()
    assert os.listdir(tmp_path) == ["out"]
    assert sorted(name.split(".")[0] for name in os.listdir(path)) == ["part-chief-0", "part-worker-0"]
    assert read(path) == BATCH.to_pylist() * 3


def test_a_directory_stays_as_it_was_until_the_job_has_succeeded(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "before.parquet").write_text("before")
    with pytest.raises(SinkError, match="exists; give overwrite=True"):
        parts(path)
    out = parts(path, overwrite=True)
    out.write(CHIEF, BATCH)
    out.restart()
    assert os.listdir(tmp_path) == ["out"] and os.listdir(path) == ["before.parquet"]
    out.write(WORKER, BATCH)
    out.abort()
    assert os.listdir(tmp_path) == ["out"] and os.listdir(path) == ["before.parquet"]
    out.write(WORKER, BATCH)
    out.commit()
    assert os.listdir(path) == ["part-worker-0.parquet"] and read(path) == BATCH.to_pylist()


def test_a_directory_without_rows_has_its_columns(tmp_path: Path) -> None:
    parts(tmp_path / "out").commit()
    assert read(tmp_path / "out") == []


def test_what_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="is a file; leave out the /"):
        parts(tmp_path / "file")
    with pytest.raises(Exception, match="output_format='xml'"):
        parts(tmp_path / "out", form="xml")
    with pytest.raises(SinkError, match="a CSV cannot hold column 'l'"):
        sink_to(f"{tmp_path}/out/", Schema.parse("l FLOAT_TENSOR").arrow, write_examples, "csv")


def test_a_file_of_a_directory_written_elsewhere(tmp_path: Path) -> None:
    out = parts(tmp_path / "out")
    assert out.spread and not parts(tmp_path / "csv", form="csv").spread
    out.open()
    file = PartFile(out.file_of(WORKER), out.format, SCHEMA.arrow)
    file.write(BATCH)
    file.close()
    PartFile(out.file_of(CHIEF), out.format, SCHEMA.arrow).close()
    out.commit()
    assert os.listdir(tmp_path / "out") == ["part-worker-0.parquet"] and read(tmp_path / "out") == BATCH.to_pylist()
    with pytest.raises(PartError, match="output: cannot write .*gone.*: No such file"):
        PartFile(str(tmp_path / "gone" / "part.parquet"), "parquet", SCHEMA.arrow).write(BATCH)
