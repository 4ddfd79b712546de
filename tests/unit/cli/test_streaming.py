"""Where the rows of a stream go: which output is refused before it starts, and what stays if it ends badly."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner.cli import streaming
from akrunner.cli.show import Screen
from akrunner.cli.streaming import Output
from akrunner.engines.base import Outcome, RowSink, Stats, TaskResult
from akrunner.errors import ConfigError, JobError, JobTimeoutError, SinkError, WriteError
from akrunner.io import limits
from akrunner.io.sinks import FileSink
from akrunner.io.streams.arriving import Mark
from akrunner.spec import TaskSpec
from akrunner.stream_job import StreamJob

STATS = Stats(1.0, 0.5, 0.1, 0.2, 2, 2, 2, 4, 0.0, 0.0, 0.0, "unknown", (1,))
SCHEMA = pa.schema({"id": pa.int64()})
WRITES = {"output_schema": "id bigint"}
HELPED = TaskResult(
    "chief:0", 0, 0, 0.1, 0.0, "exit code 0", 1, 0.1, "3.11", "usage: ...", None, only_printed=True, only_asked=True
)

Started = Callable[..., None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"id": 1}\n')
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Put a job in the place of `akrunner.stream`. It writes a batch for each list of ids, and then fails, or has `tasks`."""

    def made(*batches: list[int], error: BaseException | None = None, tasks: tuple[TaskResult, ...] = ()) -> None:
        def start(sink: RowSink, cancel: threading.Event) -> Outcome:
            for ids in batches:
                sink.write(TaskSpec("worker", 0), pa.record_batch([pa.array(ids, pa.int64())], SCHEMA))
            if error is not None:
                raise error
            return Outcome(tasks, STATS, None)

        monkeypatch.setattr(akrunner, "stream", lambda script, source, **options: StreamJob(start, SCHEMA))

    return made


def run(output: Output, inputs: tuple[str, ...] = ("in.jsonl",), **options: Any) -> None:
    streaming.run("s.py", list(inputs), output, Screen(as_json=False, quiet=False, log=False), {**WRITES, **options})


@pytest.mark.parametrize(
    ("inputs", "output", "options", "kind", "said"),
    [
        (("in.jsonl", "b"), Output(None, False, False), WRITES, ConfigError, "^a stream reads one --input"),
        (("in.jsonl",), Output(None, False, True), WRITES, ConfigError, "^--output-live needs --output"),
        (("in.jsonl",), Output("o.jsonl", False, False), {}, ConfigError, "^--output needs --output-schema"),
        (("in.jsonl",), Output("o.jsonl", False, False), {**WRITES, "follow": True}, ConfigError, "--follow never ends: add --output-live"),
        (("in.jsonl",), Output("o.parquet", False, True), WRITES, SinkError, "--output-live writes .*jsonl.* or .*csv|csv.* or .*jsonl"),
        (("in.jsonl",), Output("s3://b/o.jsonl", False, True), WRITES, SinkError, "--output-live writes local files"),
        (("in.jsonl",), Output("in.jsonl", False, True), WRITES, SinkError, "^output: in.jsonl exists; give --overwrite"),
        (("in.jsonl",), Output("in.jsonl", True, True), WRITES, SinkError, "in.jsonl"),
        (("in.jsonl",), Output("in.jsonl", True, True), {**WRITES, "follow": True}, SinkError, "is the input, which would be read and"),
        (("in.jsonl",), Output("in.jsonl", True, False), WRITES, SinkError, "in.jsonl"),
        (("in.jsonl",), Output("nowhere/o.jsonl", False, True), WRITES, SinkError, "^output: there is no directory .*nowhere$"),
        (("in.jsonl",), Output("d.jsonl", True, True), WRITES, SinkError, "^output: d.jsonl is a directory$"),
        (("in.jsonl",), Output("old.jsonl", False, False), WRITES, SinkError, "old.jsonl"),
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_is_refused_before_anything_starts(
    inputs: tuple[str, ...], output: Output, options: Any, kind: Any, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "d.jsonl").mkdir()
    (folder / "old.jsonl").write_text("old\n")
    monkeypatch.delattr(akrunner, "stream", raising=False)
    with pytest.raises(kind, match=said):
        streaming.check(list(inputs), output, options)
    assert (folder / "old.jsonl").read_text() == "old\n" and (folder / "in.jsonl").read_text() == '{"id": 1}\n'


@pytest.mark.parametrize(
    ("output", "options"),
    [
        (Output(None, False, False), {}),
        (Output("o.jsonl", False, False), WRITES),
        (Output("o.parquet", False, False), WRITES),
        (Output("o.csv", False, True), {**WRITES, "follow": True}),
        (Output("old.jsonl", True, True), WRITES),
    ],
)
def test_an_output_that_can_be_is_not_made_yet(output: Output, options: Any, folder: Path) -> None:
    (folder / "old.jsonl").write_text("old\n")
    streaming.check(["in.jsonl"], output, options)
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl", "old.jsonl"]
    assert (folder / "old.jsonl").read_text() == "old\n"


def test_rows_without_an_output_are_lines_on_stdout(
    folder: Path, started: Started, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    started([1, 2], [3])
    run(Output(None, False, False))
    out, err = capfdbinary.readouterr()
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2, 3] and b"done in" in err


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(("name", "text"), [("o.jsonl", '{"id":1}\n{"id":2}\n'), ("o.csv", '"id"\n1\n2\n')])
def test_an_output_has_all_rows_once_the_stream_has_ended(
    name: str, text: str, live: bool, folder: Path, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    started([1], [2])
    run(Output(name, False, live))
    assert (folder / name).read_text() == text
    assert f"output: {name}" in capsys.readouterr().err


def test_an_output_is_committed_within_the_limits_of_the_job(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, seen = limits.narrowed(600, 30), []
    monkeypatch.setattr(
        akrunner,
        "stream",
        lambda script, source, **options: StreamJob(lambda sink, cancel: Outcome((), STATS, None), SCHEMA, limits=given),
    )
    commit = FileSink.commit

    def committed(sink: FileSink) -> None:
        seen.append((limits.deadline(), limits.quiet()))
        commit(sink)

    monkeypatch.setattr(FileSink, "commit", committed)
    run(Output("o.csv", False, False))
    assert seen == [(given.until, 30)] and (folder / "o.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["stdout", "unread.csv", "unopened.csv", "whole.csv"])
def test_a_reader_that_does_not_read_outlives_no_limit(where: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.record_batch([pa.array(range(200_000), pa.int64())], SCHEMA)

    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        sink.write(TaskSpec("worker", 0), rows)
        return Outcome((), STATS, None)

    reading, writing = os.pipe()
    opened = [reading]
    if where == "stdout":
        monkeypatch.setattr(sys, "stdout", open(writing, "w", closefd=False))
        output = Output(None, False, False)
    else:
        os.mkfifo(where)
        output = Output(where, False, where != "whole.csv")
        if where != "unopened.csv":
            opened.append(os.open(where, os.O_RDONLY | os.O_NONBLOCK))
    given = limits.narrowed(0.5, None)
    monkeypatch.setattr(akrunner, "stream", lambda script, source, **options: StreamJob(start, SCHEMA, limits=given))
    begun = time.monotonic()
    with pytest.raises(JobTimeoutError, match=r"timeout=0.5 s .* read"):
        run(output)
    assert time.monotonic() - begun < 10
    for one in (*opened, writing):
        os.close(one)


@pytest.mark.parametrize(
    ("output", "killed"),
    [
        (Output(None, False, False), True),
        (Output("o.csv", False, True), True),
        (Output("o.csv", False, False), False),
        (Output("fifo", False, False), True),
        (Output("redis://h/s", False, False), True),
    ],
)
def test_a_stream_that_shall_end_by_itself_is_ended_if_nobody_reads(
    output: Output, killed: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo("fifo")
    came = threading.Event()
    monkeypatch.setattr(streaming, "_FINISH_SECONDS", 0.1)
    monkeypatch.setattr(streaming, "_WRITE_SECONDS", 0.1)
    monkeypatch.setattr(os, "kill", lambda process, number: came.set())
    with streaming._ended_in_time(output):
        # no signal has come
        time.sleep(0.4)
    with streaming._ended_in_time(output) as asked:
        # it ends in time
        asked()
    time.sleep(0.4)
    assert not came.is_set()
    with streaming._ended_in_time(output) as asked:
        asked()
        assert came.wait(10 if killed else 0.4) == killed


def test_the_look_at_an_output_before_a_job_is_in_the_job_s_time(
    folder: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float | None] = []
    monkeypatch.setattr(streaming, "check_stream_output", lambda *given: seen.append(limits.deadline()))
    started([1])
    run(Output("o.csv", False, False), timeout=600.0)
    assert seen[0] is not None and limits.deadline() is None


@pytest.mark.parametrize("live", [False, True])
def test_an_output_without_rows_is_there_too(live: bool, folder: Path, started: Started) -> None:
    started()
    run(Output("o.csv", False, live))
    assert (folder / "o.csv").read_text() == '"id"\n'


@pytest.mark.parametrize("live", [False, True])
def test_a_script_that_only_printed_its_help_replaces_nothing(
    live: bool, folder: Path, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "o.jsonl").write_text("old\n")
    started(tasks=(HELPED,))
    run(Output("o.jsonl", True, live))
    assert (folder / "o.jsonl").read_text() == "old\n"
    err = capsys.readouterr().err
    assert "usage: ..." in err and "output:" not in err


@pytest.mark.parametrize(
    ("live", "batches", "left", "said"),
    [
        (False, ([1, 2], [3]), "old\n", "o.jsonl was not written: it comes when the stream has ended well, and 3 rows were thrown away"),
        (True, ([1, 2], [3]), '{"id":1}\n{"id":2}\n{"id":3}\n', "3 rows written so far are in o.jsonl"),
        (True, (), "old\n", "o.jsonl is as it was: no rows had been written"),
    ],
)  # fmt: skip
def test_what_is_left_of_a_stream_that_failed_is_said(
    live: bool, batches: tuple[list[int], ...], left: str, said: str, folder: Path, started: Started, capsys: Any
) -> None:
    (folder / "o.jsonl").write_text("old\n")
    started(*batches, error=JobError("the script failed"))
    with pytest.raises(JobError, match="the script failed"):
        run(Output("o.jsonl", True, live))
    assert (folder / "o.jsonl").read_text() == left
    assert f"akrunner: {said}" in capsys.readouterr().err


def test_a_file_that_cannot_be_opened_any_more_ends_the_job(folder: Path, started: Started) -> None:
    started([1])
    streaming.check(["in.jsonl"], Output("o.jsonl", False, True), WRITES)
    with pytest.raises(WriteError, match="^output: cannot open gone/o.jsonl: No such file or directory$"):
        streaming._created("gone/o.jsonl")


def test_a_model_needs_no_schema_for_its_output(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def predict_stream(model: str, source: str, **options: Any) -> StreamJob:
        given.append((model, source, options))
        return StreamJob(lambda sink, cancel: Outcome((), STATS, None), SCHEMA)

    monkeypatch.setattr(akrunner, "predict_stream", predict_stream)
    screen = Screen(as_json=False, quiet=True, log=False)
    streaming.predict("m.zip", ["in.jsonl"], Output("o.csv", False, False), screen, {"num_workers": 2})
    assert given == [("m.zip", "in.jsonl", {"num_workers": 2})] and (folder / "o.csv").read_text() == '"id"\n'


IN = "files:///data/in?group=g"


@pytest.mark.parametrize(
    ("source", "output", "said"),
    [
        (IN, Output("o.jsonl", False, False), "this one never ends: add --output-live"),
        (IN, Output(None, False, True), "^--output-live needs --output"),
        (IN, Output("redis://h/out", False, True), "^--output-live is for a file"),
        (IN, Output("redis://h/out", True, False), "^--overwrite is for a file"),
        (IN, Output("redis://h/out?keyy=id", False, False), "no option 'keyy'"),
        (IN, Output("files:///o", False, False), "files:// is read"),
        ("redis://h/s?group=g", Output("redis://h/s", False, False), "is the input"),
        ("in.jsonl", Output("redis://h/out", True, False), "^--overwrite is for a file"),
    ],
)
def test_an_output_that_does_not_fit_a_stream(source: str, output: Output, said: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        streaming.check([source], output, dict(WRITES))


@pytest.mark.parametrize(
    ("source", "output"),
    [
        (IN, Output(None, False, False)),
        (IN, Output("o.jsonl", False, True)),
        (IN + "&idle=5", Output("o.parquet", False, False)),
        (IN, Output("redis://h/out", False, False)),
        ("in.jsonl", Output("kafka://b/out?key=id", False, False)),
    ],
)
def test_an_output_that_fits_a_stream(source: str, output: Output, folder: Path) -> None:
    streaming.check([source], output, dict(WRITES))


def test_a_file_that_comes_at_the_end_holds_positions_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[Any] = []

    class Source:
        def answered(self, task: str, number: int) -> list[Any]:
            return [Mark(number, None)]

        def commit(self, mark: Mark) -> None:
            stored.append((mark.number, (folder / "o.jsonl").exists()))

        def close(self) -> None:
            pass

    def start(sink: Any, cancel: threading.Event) -> Outcome:
        sink.write(TaskSpec("worker", 0), pa.record_batch([pa.array([1], pa.int64())], SCHEMA))
        sink.answered(TaskSpec("worker", 0), 7)
        return Outcome((), STATS, None)

    source: Any = Source()
    monkeypatch.setattr(akrunner, "stream", lambda script, url, **options: StreamJob(start, SCHEMA, source))
    run(Output("o.jsonl", False, False), (IN + "&idle=5",))
    assert stored == [(7, True)]
