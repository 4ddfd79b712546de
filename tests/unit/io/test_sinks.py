"""Tables out: there when the job succeeded, as if never touched when it failed."""

from __future__ import annotations

import datetime
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.codec import read_examples, write_examples
from akrunner.errors import ConfigError, SinkError, WriteError
from akrunner.io import local_destinations
from akrunner.io.compression import Unpacked
from akrunner.io.csv_options import CsvOptions
from akrunner.io.formats.base import Compression
from akrunner.io.layouts import Layout
from akrunner.io.part_file import PartError, PartFile
from akrunner.io.paths import local_path
from akrunner.io.sinks import FileSink, FirstBatchSink, LineWriter, MemorySink, PartsSink, SortedSink, sink_to
from akrunner.io.sources import open_source
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
        ("x.ods", SCHEMA, {}, "does not say its format"),
        (
            "daily?partition=day=2026-01-02",
            SCHEMA,
            {},
            r"no such table is there; .* write delta:///.*/daily\?partition=day=2026-01-02$",
        ),
        ("daily?partition_by=day", SCHEMA, {}, r"write delta:///.*/daily\?partition_by=day$"),
        ("x.db", SCHEMA, {}, r"^output: (.*/x.db) would be a database: write sqlite:///\1\?table=NAME$"),
        ("x.DUCKDB", SCHEMA, {}, r"write duckdb:///.*/x.DUCKDB\?table=NAME$"),
        ("x.csv", Schema.parse("v array<int>"), {}, "a CSV cannot hold column 'v'"),
        ("x.jsonl", Schema.parse("v varbinary"), {}, "JSON cannot hold column 'v'"),
        ("x.gz", SCHEMA, {}, "does not say its format"),
        ("x.parquet.gz", SCHEMA, {}, r"parquet files are not compressed with gzip.*Parquet compresses by itself"),
        ("x.gz", SCHEMA, {"form": "parquet"}, r"parquet files are not compressed with gzip.*Parquet compresses by itself"),
        ("x.zst", SCHEMA, {"form": "tfrecord"}, r"tfrecord files are not compressed with zstd.*known for tfrecord: \.gz$"),
        (
            "x.csv",
            SCHEMA,
            {"form": "csv.gz"},
            r"is csv by its name, and output_format='csv\.gz'.*let the name end in \.csv\.gz$",
        ),
        ("x.csv.gz", SCHEMA, {"form": "csv.zst"}, r"is csv\.gz by its name, and output_format='csv\.zst'"),
        ("x.csv.gz", SCHEMA, {"form": "jsonl.gz"}, r"is csv\.gz by its name, and output_format='jsonl\.gz'"),
        ("x", SCHEMA, {"form": "csw.gz"}, "output_format='csw': known formats are .*; did you mean 'csv'"),
        ("x/", SCHEMA, {"form": "arrow.zst"}, r"output_format='arrow\.zst': arrow files are not compressed with zstd"),
    ],
)
def test_refused(name: str, schema: Schema, options: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SinkError, match=words):
        sink_to(f"{tmp_path}/{name}", schema.arrow, write_examples, **options)


def test_a_misspelt_scheme_is_told_before_a_format_is_asked_for() -> None:
    with pytest.raises(SinkError, match="no file system is called kafak://; did you mean 'kafka://'"):
        sink_to("kafak://x/y", SCHEMA.arrow, write_examples)


@pytest.mark.parametrize(
    ("name", "form", "files"),
    [
        ("o", "jsonl.zst", ["o"]),
        ("o.gz", "csv", ["o.gz"]),
        ("o.csv.gz", "csv", ["o.csv.gz"]),
        ("o.json.xz", None, ["o.json.xz"]),
        ("o.tfrecord.gz", None, ["o.tfrecord.gz"]),
        ("o/", "csv.gz", ["o/part-chief-0.csv.gz", "o/part-worker-0.csv.gz"]),
        ("o/", "jsonl.bz2", ["o/part-chief-0.jsonl.bz2", "o/part-worker-0.jsonl.bz2"]),
    ],
)
def test_the_name_or_the_format_says_how_files_are_compressed(name: str, form: Any, files: list[str], tmp_path: Path) -> None:
    out = sink_to(f"{tmp_path}/{name}", SCHEMA.arrow, write_examples, form)
    for task in (CHIEF, WORKER):
        out.write(task, BATCH)
    out.commit()
    assert out.format == (form or name.removeprefix("o.")).split(".")[0].replace("json", "jsonl").replace("jsonll", "jsonl")
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file()) == files
    plain = (form or "csv").split(".")[0] if name in ("o", "o.gz") else None
    table = open_source(f"{tmp_path}/{name}", read_examples=read_examples, input_schema=SCHEMA, input_format=plain)
    assert [row for batch in table.batches() for row in batch.to_pylist()] == BATCH.to_pylist() * 2
    assert all((tmp_path / one).read_bytes()[:1] in b"\x1f\x28\xfdB" for one in files)


def test_memory_is_in_task_order() -> None:
    memory = MemorySink(SCHEMA.arrow)
    memory.write(WORKER, BATCH.slice(0, 1))
    memory.write(CHIEF, BATCH.slice(1, 1))
    memory.write(WORKER, BATCH.slice(1, 1))
    assert memory.table()["a"].to_pylist() == [None, 1, None]


def test_memory_without_a_schema_has_that_of_its_batches() -> None:
    memory = MemorySink(None)
    assert memory.table() is None
    memory.write(CHIEF, BATCH)
    assert memory.table().equals(pa.Table.from_batches([BATCH]))


@pytest.mark.parametrize("name", ["o.parquet", "o.csv", "o.arrow", "parts/"])
def test_the_first_batch_opens_a_file(name: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/{name}"

    def opened(schema: pa.Schema) -> Any:
        return sink_to(path, schema, write_examples)

    out = FirstBatchSink(path, opened)
    with pytest.raises(WriteError, match="no task wrote a row.*output_schema="):
        out.commit()
    out.abort()
    # what was written before a job started again is gone, and its columns too
    out.write(CHIEF, BATCH.select(["a"]))
    out.restart()
    assert os.listdir(tmp_path) == []
    out.write(CHIEF, BATCH)
    out.abort()
    assert os.listdir(tmp_path) == []
    out.restart()
    out.write(CHIEF, BATCH)
    out.commit()
    out.abort()
    assert os.listdir(tmp_path) == [name.rstrip("/")]
    assert open_source(path, read_examples=read_examples).schema.names == ["a", "s", "f"]


def test_a_first_batch_that_its_file_cannot_hold(tmp_path: Path) -> None:
    out = FirstBatchSink("o.csv", lambda schema: sink_to(str(tmp_path / "o.csv"), schema, write_examples))
    with pytest.raises(WriteError, match="CSV cannot hold column 'v'"):
        out.write(CHIEF, pa.record_batch({"v": [[1.0]]}))
    out.abort()
    assert os.listdir(tmp_path) == []


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
    for made in (parts, sink):
        with pytest.raises(SinkError, match="output_format='xml'"):
            made(tmp_path / "out", form="xml")
    with pytest.raises(
        SinkError, match=r"o.parquet is parquet by its name, and output_format='csv' \(--output-format csv\) is another"
    ):
        sink(tmp_path / "o.parquet", form="csv")
    assert sink(tmp_path / "o.txt", form="csv").format == sink(tmp_path / "o.csv", form="csv").format == "csv"
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


# -- places


def test_a_link_stays_and_what_it_points_at_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, real = tmp_path / "out.csv", tmp_path / "real" / "there.csv"
    link.symlink_to(real)
    for overwrite in (False, True):
        # the first time it leads nowhere
        out = sink(link, overwrite=overwrite)
        out.write(CHIEF, BATCH)
        out.commit()
        assert link.is_symlink() and os.listdir(tmp_path / "real") == ["there.csv"] and len(read(link)) == 2
    with pytest.raises(SinkError, match="exists"):
        sink(link)
    (tmp_path / "astray.csv").symlink_to(tmp_path / "gone" / "x.csv")
    with pytest.raises(SinkError, match="there is no directory .*gone"):
        sink(tmp_path / "astray.csv")


def test_devices_and_pipes_are_written_straight(tmp_path: Path) -> None:
    before = os.stat("/dev/null").st_rdev
    out = sink("/dev/null", form="csv")
    out.write(CHIEF, BATCH)
    out.commit()
    assert os.stat("/dev/null").st_rdev == before != 0
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    nobody = sink(pipe)
    with pytest.raises(WriteError, match="output: cannot write .*pipe.csv"):
        nobody.write(CHIEF, BATCH)
    nobody.abort()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    out = sink(pipe)
    out.write(CHIEF, BATCH)
    out.commit()
    assert os.read(reader, 100).startswith(b'"a","s","f"')
    with pytest.raises(WriteError, match="cannot be taken back.*max_restarts="):
        out.restart()
        out.write(CHIEF, BATCH)
    os.close(reader)
    assert os.listdir(tmp_path) == ["pipe.csv"]


@pytest.mark.parametrize("name", ["out.csv", "out/"])
def test_somebody_else_was_there_first(name: str, tmp_path: Path) -> None:
    out = sink_to(f"{tmp_path}/{name}", SCHEMA.arrow, write_examples)
    out.write(CHIEF, BATCH)
    theirs = tmp_path / name / "theirs.csv" if name.endswith("/") else tmp_path / name
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text("theirs")
    with pytest.raises(WriteError, match="was created by somebody else while the job ran"):
        out.commit()
    out.abort()
    assert theirs.read_text() == "theirs" and os.listdir(tmp_path) == [name.rstrip("/")]


def test_outputs_are_as_readable_as_others_of_the_user(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        for name, mode in (("out.csv", 0o644), ("out/", 0o755)):
            out = sink_to(f"{tmp_path}/{name}", SCHEMA.arrow, write_examples)
            out.write(CHIEF, BATCH)
            out.commit()
            assert (tmp_path / name).stat().st_mode & 0o777 == mode
    finally:
        os.umask(umask)


def test_overwriting_a_directory_needs_one_of_tables(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text("mine")
    with pytest.raises(SinkError, match=r"holds what no job has written .*bashrc"):
        parts(home, overwrite=True)
    (home / ".bashrc").rename(home / "a.csv")
    (home / "deep").mkdir()
    (home / "deep" / "thesis.tex").write_text("mine")
    with pytest.raises(SinkError, match=r"holds what no job has written .*thesis"):
        parts(home, overwrite=True)


@pytest.mark.parametrize("swaps", [True, False], ids=["swap", "file by file"])
def test_killed_at_any_point_of_a_commit_there_is_the_old_or_the_new(
    swaps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process ended before each system call of the commit in turn."""
    if not swaps:
        monkeypatch.setattr(local_destinations, "swap", lambda one, other: False)
    old, new = "old", "new"
    for step in range(20):
        path = tmp_path / str(step) / "out"
        path.mkdir(parents=True)
        (path / "part-chief-0.parquet").write_text(old)
        (path / "part-worker-0.parquet").write_text(old)
        out = parts(path, overwrite=True)
        out.open()
        (Path(out.partial) / "part-chief-0.parquet").write_text(new)
        left = step

        def dies(real: Any) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
                return real(*given, **named)

            return call

        with monkeypatch.context() as patched:
            patched.setattr(local_destinations, "swap", dies(local_destinations.swap))
            for name in ("replace", "remove", "rename", "rmdir"):
                patched.setattr(local_destinations.os, name, dies(getattr(os, name)))
            patched.setattr(local_destinations.shutil, "rmtree", dies(shutil.rmtree))
            try:
                out.commit()
                finished = True
            except KeyboardInterrupt:
                finished = False
        found = {name: (path / name).read_text() for name in os.listdir(path)}
        assert found and found.get("part-chief-0.parquet") in (old, new)
        if swaps:
            assert found in (
                {"part-chief-0.parquet": new},
                dict.fromkeys(("part-chief-0.parquet", "part-worker-0.parquet"), old),
            )
        out.abort()
        assert os.listdir(path.parent) == ["out"]
        if finished:
            assert found == {"part-chief-0.parquet": new}
            break
    assert finished and step >= 2


def test_a_directory_that_is_a_mount_is_written_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.mkdir()
    monkeypatch.setattr(local_destinations, "_is_mounted", lambda path: True)
    inode = path.stat().st_ino
    for overwrite in (False, True):
        out = parts(path, overwrite=overwrite)
        out.write(CHIEF if overwrite else WORKER, BATCH)
        assert os.path.dirname(out.partial) == str(path)
        out.commit()
    assert path.stat().st_ino == inode and os.listdir(path) == ["part-chief-0.parquet"] and os.listdir(tmp_path) == ["out"]
    out = parts(path, overwrite=True)
    out.write(WORKER, BATCH)
    out.abort()
    assert os.listdir(path) == ["part-chief-0.parquet"]
    # two jobs at once: neither removes what the other is writing
    one, other = parts(path, overwrite=True), parts(path, overwrite=True)
    one.write(WORKER, BATCH)
    other.write(CHIEF, BATCH)
    one.commit()
    assert sorted(os.listdir(path)) == sorted([os.path.basename(other.partial), "part-worker-0.parquet"])
    other.commit()
    assert os.listdir(path) == ["part-chief-0.parquet"]


def test_directories_above_an_output_are_made_when_all_is_well(tmp_path: Path) -> None:
    out = parts(tmp_path / "a" / "b" / "out")
    out.write(WORKER, BATCH)
    assert not (tmp_path / "a").exists()
    out.abort()
    assert os.listdir(tmp_path) == []
    out.write(WORKER, BATCH)
    out.commit()
    assert os.listdir(tmp_path) == ["a"] and os.listdir(tmp_path / "a" / "b" / "out") == ["part-worker-0.parquet"]


def test_an_abort_goes_on_whatever_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = sink(tmp_path / "out.parquet")
    out.write(CHIEF, BATCH)

    class Failing(io.RawIOBase):
        def close(self) -> None:
            raise OSError(28, "No space left on device")

    real, out._destination._stream = out._destination._stream, Failing()  # type: ignore[attr-defined]
    out.abort()
    real.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("given", ["s3://b/w", "gs://b", "memory://x", "simplecache::s3://b/w", "hdfs://u:secret@nn:8020/x"])
def test_a_url_is_no_local_path(given: str) -> None:
    with pytest.raises(
        ConfigError, match="^work_dir: .* is a URL, and work_dir must be on this machine's file systems; name another"
    ) as e:
        local_path(given, "work_dir", "name another")
    assert "secret" not in str(e.value)


def test_local_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    here = {"file:///a/b": "/a/b", "file://localhost/a": "/a", "file:/a/b": "/a/b", "~/x": "/home/somebody/x", "a:b": f"{tmp_path}/a:b", "x": f"{tmp_path}/x"}  # fmt: skip
    assert {given: local_path(given, "work_dir") for given in here} == here
    for wrong in ("", "a\0b", 3):
        with pytest.raises(ConfigError, match="^work_dir"):
            local_path(wrong, "work_dir")  # type: ignore[arg-type]


def test_lines_that_cannot_be_written() -> None:
    with open("/dev/full", "wb") as full:
        writer = LineWriter(full, "jsonl", SCHEMA.arrow)
        with pytest.raises(WriteError, match="^output: cannot write stdout: the disk is full"):
            writer.write(BATCH)
        with pytest.raises(OSError, match="No space"):
            full.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb", buffering=0) as pipe, pytest.raises(BrokenPipeError):
        LineWriter(pipe, "jsonl", SCHEMA.arrow).write(BATCH)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("kind", "first", "last", "beyond"),
    [
        (pa.timestamp("s"), -62135596800, 253402300799, 253402300800),
        (pa.timestamp("us", tz="UTC"), -62135596800000000, 253402300799999999, -62135596800000001),
        (pa.timestamp("ns"), -(2**63) + 1, 2**63 - 1, None),
        (pa.date32(), -719162, 2932896, 2932897),
    ],
    ids=str,
)
def test_text_holds_the_years_1_to_9999(
    tmp_path: Path, form: str, kind: pa.DataType, first: int, last: int, beyond: int
) -> None:
    counts = pa.int32() if kind.bit_width == 32 else pa.int64()
    schema = pa.schema([("t", kind)])
    task = TaskSpec("chief", 0)

    def write(*values: int | None) -> None:
        sink = FileSink(str(tmp_path / f"o.{form}"), schema, write_examples, overwrite=True)
        try:
            sink.write(task, pa.record_batch([pa.array(values, counts).cast(kind)], schema=schema))
            sink.commit()
        finally:
            sink.abort()

    write(first, None, last)
    text = (tmp_path / f"o.{form}").read_text()
    assert "out of range" not in text and "BC" not in text
    if beyond is not None:
        with pytest.raises(WriteError, match=f"column 't' has {beyond}, .*output_schema="):
            write(0, beyond)


# -- layouts


def laid_out(path: Any, **options: Any) -> Any:
    return sink_to(str(path), SCHEMA.arrow, write_examples, layout=Layout(**options))


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "arrow"])
def test_partitions_are_written_and_read_back(form: str, tmp_path: Path) -> None:
    out = sink_to(f"{tmp_path}/out/", SCHEMA.arrow, write_examples, form, layout=Layout(partition_by=("s",), manifest=True))
    for task in (CHIEF, WORKER):
        out.write(task, BATCH)
    out.commit()
    assert sorted(os.listdir(tmp_path / "out")) == ["_SUCCESS", "s=x%22,%0A", "s=é"]
    found = open_source(f"{tmp_path}/out", read_examples=read_examples)
    assert found.schema.names == ["a", "f", "s"]
    rows = pa.Table.from_batches(list(found.batches()), found.schema).select(["a", "s", "f"]).to_pylist()
    assert sorted(map(repr, rows)) == sorted(map(repr, BATCH.to_pylist() * 2))
    manifest = json.loads((tmp_path / "out" / "_SUCCESS").read_text())
    assert (manifest["rows"], manifest["format"], manifest["partition_by"]) == (4, form, ["s"])
    sizes = {one["path"]: one["bytes"] for one in manifest["files"]}
    assert sizes == {path: (tmp_path / "out" / path).stat().st_size for path in sizes} and len(sizes) == 4


@pytest.mark.parametrize("form", ["avro", "excel", "npy", "npz", "json", "json.gz"])
def test_files_of_other_formats_are_added_too(form: str, tmp_path: Path) -> None:
    path, kind = f"{tmp_path}/out/", pa.schema([("a", pa.int64()), ("f", pa.float64())])
    rows = pa.record_batch([[1, 2], [0.5, 1.5]], schema=kind)
    for _ in range(2):
        out = sink_to(path, kind, write_examples, form, layout=Layout(append=True))
        out.write(CHIEF, rows)
        out.commit()
    found = open_source(path, read_examples=read_examples)
    assert [row for batch in found.batches() for row in batch.to_pylist()] == rows.to_pylist() * 2
    with pytest.raises(SinkError, match=r"^append= \(--append\): the files in .* have no column 'g', and the rows have double"):
        sink_to(path, kind.append(pa.field("g", pa.float64())), write_examples, form, layout=Layout(append=True))


def test_files_of_a_csv_that_are_added_have_the_delimiter_of_those_that_are_there(tmp_path: Path) -> None:
    path, kind = f"{tmp_path}/out/", pa.schema([("a", pa.int64()), ("f", pa.float64())])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.csv").write_text("a;f\n1;0.5\n")
    with pytest.raises(
        SinkError, match="';' stands between the cells of the files in .* give output_csv='delimiter=semicolon'"
    ):
        sink_to(path, kind, write_examples, "csv", layout=Layout(append=True))
    layout = Layout(append=True, csv=CsvOptions.of("delimiter=semicolon", "output_csv"))
    out = sink_to(path, kind, write_examples, "csv", layout=layout)
    out.write(CHIEF, pa.record_batch([[2], [1.5]], schema=kind))
    out.commit()
    found = open_source(path, read_examples=read_examples)
    assert sorted(row["a"] for batch in found.batches() for row in batch.to_pylist()) == [1, 2]


def test_a_csv_with_one_column_beside_those_of_directories_is_added_to(tmp_path: Path) -> None:
    kind = pa.schema([("p", pa.string()), ("a", pa.int64())])
    layout = Layout(append=True, partition_by=("p",), csv=CsvOptions.of("delimiter=semicolon", "output_csv"))
    for _ in range(2):
        out = sink_to(f"{tmp_path}/out/", kind, write_examples, "csv", layout=layout)
        out.write(CHIEF, pa.record_batch([["x"], [1]], schema=kind))
        out.commit()
    found = open_source(f"{tmp_path}/out/", read_examples=read_examples)
    assert [row for batch in found.batches() for row in batch.to_pylist()] == [{"a": 1, "p": "x"}] * 2


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.json.zst"])
def test_a_json_array(name: str, tmp_path: Path) -> None:
    for form, begins in (("json", b"["), (None, b"{")):
        sink = sink_to(f"{tmp_path}/{name}", BATCH.schema, write_examples, form, overwrite=True)
        sink.write(CHIEF, BATCH)
        sink.write(CHIEF, BATCH)
        sink.commit()
        with Unpacked(pa.OSFile(f"{tmp_path}/{name}"), name) as text:
            assert text.read(1) == begins
        found = open_source(f"{tmp_path}/{name}", read_examples=read_examples)
        assert sum(batch.num_rows for batch in found.batches()) == 2 * BATCH.num_rows
    with pytest.raises(SinkError, match="is jsonl by its name, and output_format='json' .*let the name end in .json"):
        sink_to(f"{tmp_path}/t.jsonl", BATCH.schema, write_examples, "json")


def test_files_are_added_only_to_those_of_the_same_columns(tmp_path: Path) -> None:
    path = f"{tmp_path}/out/"
    for at in range(2):
        out = laid_out(path, append=True, partition_by=("a",))
        out.write(CHIEF, BATCH)
        out.commit()
        # a job that writes no rows adds nothing
        if at:
            laid_out(path, append=True, partition_by=("a",)).commit()
        assert len(list(Path(path).rglob("*.parquet"))) == 2 * (at + 1)
    layout = Layout(append=True, partition_by=("a",))
    for schema, form, asked, words in (
        ("a bigint, s string", None, layout, "have a column 'f', and the rows do not"),
        ("a bigint, s string, f float", None, layout, "have 'f' as double, and the rows have float"),
        ("a bigint, s string, f double, g int", None, layout, "have no column 'g'"),
        ("a bigint, s string, f double", "csv", layout, "are parquet, and csv would be added; give output_format='parquet'"),
        ("a bigint, s string, f double", None, Layout(append=True), r"in directories of a: give partition_by=\['a'\]"),
        ("a bigint, s string, f double", None, Layout(append=True, partition_by=("s",)), "in directories of a: give"),
    ):
        with pytest.raises(SinkError, match=rf"^append= \(--append\): the files in .*/out/ .*{words}"):
            sink_to(path, Schema.parse(schema).arrow, write_examples, form, layout=asked)
    with pytest.raises(SinkError, match="append= .*overwrite= .*give one of them"):
        sink_to(path, SCHEMA.arrow, write_examples, overwrite=True, layout=layout)
    with pytest.raises(SinkError, match="exists; give overwrite=True .* or append=True"):
        sink_to(path, SCHEMA.arrow, write_examples)


def test_types_that_parquet_changes_can_be_added_to(tmp_path: Path) -> None:
    schema = Schema.parse("t timestamp(0), n bigint")
    for _ in range(2):
        out = sink_to(f"{tmp_path}/out/", schema.arrow, write_examples, layout=Layout(append=True))
        out.write(CHIEF, pa.RecordBatch.from_pylist([{"t": datetime.datetime(2024, 1, 2), "n": 1}], schema.arrow))
        out.commit()
    assert len(read(tmp_path / "out", schema)) == 2


def test_a_failed_job_leaves_a_directory_as_it_was(tmp_path: Path) -> None:
    out = laid_out(f"{tmp_path}/out/", append=True, manifest=True)
    out.write(CHIEF, BATCH)
    out.commit()
    before = {name: (tmp_path / "out" / name).read_bytes() for name in os.listdir(tmp_path / "out")}
    for options in ({}, {"max_rows": 1}, {"sort_by": (("a", False),)}):
        out = laid_out(f"{tmp_path}/out/", append=True, manifest=True, **options)
        out.write(CHIEF, BATCH)
        out.restart()
        out.write(CHIEF, BATCH)
        out.abort()
    assert {name: (tmp_path / "out" / name).read_bytes() for name in os.listdir(tmp_path / "out")} == before
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "out/"])
def test_rows_of_all_tasks_are_sorted(name: str, tmp_path: Path) -> None:
    out = laid_out(f"{tmp_path}/{name}", sort_by=(("s", True),))
    assert isinstance(out, SortedSink)
    out.write(WORKER, BATCH)
    out.restart()
    for task in (WORKER, CHIEF):
        out.write(task, BATCH)
    joined: list[Any] = []
    out.commit_with(None, joined.append)
    assert joined == [()] and [row["s"] for row in read(tmp_path / name)] == ["é", "é", 'x",\n', 'x",\n']
    out.abort()
    assert os.listdir(tmp_path) == [name.rstrip("/")]


def test_a_compression_is_the_files(tmp_path: Path) -> None:
    for name, given, want in (
        ("a.parquet", "gzip", "GZIP"),
        ("b.parquet", "none", "UNCOMPRESSED"),
        ("c.parquet", None, "SNAPPY"),
    ):
        out = laid_out(tmp_path / name, compression=Compression(given) if given is not None else None)
        out.write(CHIEF, BATCH)
        out.commit()
        assert pq.ParquetFile(tmp_path / name).metadata.row_group(0).column(0).compression == want
    sizes = []
    rows = pa.RecordBatch.from_pylist([{"a": 1, "s": "same", "f": 0.5}] * 5000, SCHEMA.arrow)
    for compression in (None, Compression("none"), Compression("lz4"), Compression("zstd", 9)):
        out = laid_out(tmp_path / f"{compression}.arrow", compression=compression)
        out.write(CHIEF, rows)
        out.commit()
        sizes.append((tmp_path / f"{compression}.arrow").stat().st_size)
        assert read(tmp_path / f"{compression}.arrow") == rows.to_pylist()
    assert sizes[0] == sizes[1] > 4 * sizes[2] > sizes[3]


def test_what_flinks_task_managers_cannot_do_the_host_does(tmp_path: Path) -> None:
    assert laid_out(f"{tmp_path}/out/").spread and not laid_out(f"{tmp_path}/out/", manifest=True).spread


def test_a_directory_that_somebody_removed_is_no_table_without_rows(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    sink = PartsSink(str(tmp_path / "out"), schema, write_examples, "parquet")
    sink.write(TaskSpec("chief", 0), pa.record_batch({"a": [1, 2]}, schema=schema))
    shutil.rmtree(sink.partial)
    with pytest.raises(WriteError, match="was removed while the job ran, and rows with it"):
        sink.commit()
    sink.abort()
    assert os.listdir(tmp_path) == []
