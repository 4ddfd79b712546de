"""Where rows go: what is refused before a job, and what is committed when it has ended."""

from __future__ import annotations

import os
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, JobError, SchemaError, SinkError, SourceError, WriteError
from akrunner.io import limits
from akrunner.io.bad_rows import BadRow, BadRows
from akrunner.running import outputs
from akrunner.running.outputs import (
    check_lines,
    check_not_arriving,
    check_stream_apart,
    check_stream_output,
    keeping,
    run_into,
    stream_sink,
)

WELL, HELP = types.SimpleNamespace(only_asked=False), types.SimpleNamespace(only_asked=True)


class Sink:
    """Attributes: did: what was done to it; error: raised by a commit."""

    path = "/out/o.csv"

    def __init__(self, error: BaseException | None = None) -> None:
        self.did: list[str] = []
        self.error = error

    def commit(self) -> None:
        self.did.append("commit")
        if self.error is not None:
            raise self.error

    def abort(self) -> None:
        self.did.append("abort")


def test_what_a_job_has_written_is_committed_when_it_has_ended_well() -> None:
    sink = Sink()
    assert run_into(sink, lambda: WELL) is WELL  # type: ignore[arg-type]
    # what is aborted after its commit lets go of what it holds, and stays
    assert sink.did == ["commit", "abort"]


def test_a_script_that_only_gave_its_help_has_written_nothing() -> None:
    sink = Sink()
    assert run_into(sink, lambda: HELP) is HELP  # type: ignore[arg-type]
    assert "commit" not in sink.did and "abort" in sink.did


def test_what_a_script_that_only_gave_its_help_leaves_is_not_told_as_written() -> None:
    class Held(Sink):
        def abort(self) -> None:
            raise OSError(5, "Input/output error")

    # a warning would say that everything was written
    with pytest.raises(OSError, match="Input/output error"):
        run_into(Held(), lambda: HELP)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [JobError("it failed"), KeyboardInterrupt()])
def test_of_a_job_that_failed_nothing_is_kept(error: BaseException) -> None:
    sink = Sink()

    def run() -> Any:
        raise error

    with pytest.raises(type(error)):
        run_into(sink, run)  # type: ignore[arg-type]
    assert sink.did == ["abort"]


def test_what_is_aborted_has_no_limits() -> None:
    seen: list[Any] = []

    class Looks(Sink):
        def commit(self) -> None:
            seen.append((limits.deadline(), limits.quiet()))
            raise JobError("it failed")

        def abort(self) -> None:
            seen.append((limits.deadline(), limits.quiet()))

    with limits.limited(600, 30):
        deadline = limits.deadline()
        for waits, stall in ((None, 30), ((900.0, 60.0), 60)):
            with pytest.raises(JobError, match="it failed"):
                run_into(Looks(), lambda: WELL, waits)  # type: ignore[arg-type]
            assert seen == [(deadline, stall), (None, None)]
            seen.clear()
    assert deadline is not None


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SinkError("output: it is gone")])
def test_what_cannot_be_stored_is_a_write_error_and_gone(error: BaseException) -> None:
    sink = Sink(error)
    with pytest.raises(WriteError, match="output: "):
        run_into(sink, lambda: WELL)  # type: ignore[arg-type]
    assert sink.did == ["commit", "abort"]


@pytest.mark.parametrize(
    "schema, kind, words",
    [("a bigint", None, ""), (None, None, ""), ("a array<bigint>", SinkError, "a"), ("a bigimt", SchemaError, "output_schema")],
)
def test_columns_that_a_csv_cannot_hold_are_told_before_the_stream(
    tmp_path: Path, schema: str | None, kind: Any, words: str
) -> None:
    output = str(tmp_path / "o.csv")
    if kind is None:
        check_lines("csv", schema)
        check_stream_output(output, False, schema)
        return
    with pytest.raises(kind, match=words):
        check_lines("csv", schema)
    with pytest.raises(kind, match=words):
        check_stream_output(output, False, schema)


def test_a_stream_replaces_a_file_only_if_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("")
    with pytest.raises(SinkError, match="exists"):
        check_stream_output(str(tmp_path / "o.csv"), False, "a bigint")
    check_stream_output(str(tmp_path / "o.csv"), True, "a bigint")
    with pytest.raises(ConfigError, match="overwrite"):
        check_stream_output(str(tmp_path / "o.csv"), "yes", "a bigint")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["there", "new"])
def test_a_directory_is_refused_before_a_stream_starts(name: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(SinkError, match="is a directory; name a file in it"):
        check_stream_output(f"{tmp_path}/{name}/", False, "a bigint")
    assert os.listdir(tmp_path) == ["there"]


def test_a_growing_file_is_not_read_and_written_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    os.link(tmp_path / "t.csv", tmp_path / "same.csv")
    (tmp_path / "other.csv").write_text("a\n1\n")
    source = str(tmp_path / "t.csv")
    for name in ("t.csv", "same.csv"):
        with pytest.raises(SinkError, match=rf"{name} is the input, .*\(--output\)"):
            check_stream_apart(source, None, True, str(tmp_path / name))
    for name in ("other.csv", "new.csv"):
        check_stream_apart(source, None, True, str(tmp_path / name))
    with pytest.raises(SourceError, match="^source: .*no.csv"):
        check_stream_apart(str(tmp_path / "no.csv"), None, True, str(tmp_path / "new.csv"))


def test_a_file_below_the_home_directory_is_not_read_and_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "log.csv").write_text("a\n1\n")
    with pytest.raises(SinkError, match="~/log.csv is the input"):
        check_stream_apart("~/log.csv", None, True, "~/log.csv")
    check_stream_apart("~/log.csv", None, True, "~/new.csv")


def test_stdin_may_be_the_file_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    before, mine = os.dup(0), os.open(tmp_path / "t.csv", os.O_RDONLY)
    try:
        os.dup2(mine, 0)
        with pytest.raises(SinkError, match="is the input"):
            check_stream_apart("-", "csv", False, str(tmp_path / "t.csv"))
        with pytest.raises(SinkError, match="is the input"):
            check_stream_apart("-", "csv", False, f"file://{tmp_path}/t.csv")
        check_stream_apart("-", "csv", False, str(tmp_path / "new.csv"))
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(mine)


def test_files_that_are_read_are_not_written_to_nor_added_to(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "t.csv").write_text("a\n1\n")
    for output in (tmp_path / "in" / "t.csv", tmp_path / "in" / "new.csv"):
        with pytest.raises(SinkError, match="output"):
            check_stream_apart(str(tmp_path / "in"), None, False, str(output))
    check_stream_apart(str(tmp_path / "in"), None, False, str(tmp_path / "new.csv"))
    # a table is read as it was
    check_stream_apart("odps://p/tables/t", None, False, str(tmp_path / "new.csv"))


def test_the_rows_of_a_stream_are_there_when_it_has_ended_well(tmp_path: Path) -> None:
    sink = stream_sink(str(tmp_path / "o.csv"), pa.schema([("a", pa.int64())]), False)
    sink.abort()
    assert os.listdir(tmp_path) == []
    (tmp_path / "o.csv").write_text("")
    with pytest.raises(WriteError, match="exists"):
        stream_sink(str(tmp_path / "o.csv"), pa.schema([("a", pa.int64())]), False)
    assert outputs.IN_MEMORY.startswith("result.table")


@pytest.mark.parametrize("only_asked", [False, True])
def test_bad_rows_are_stored_when_the_job_has_ended_well(tmp_path: Path, only_asked: bool) -> None:
    bad = BadRows.of(tmp_path, 100)
    assert bad is not None
    bad.take("t.csv", [BadRow(2, "why", b"x")])
    outcome: Any = types.SimpleNamespace(only_asked=only_asked)
    assert keeping(bad, lambda: outcome) is outcome and len(os.listdir(tmp_path)) == (not only_asked)


def test_of_a_job_that_failed_no_bad_rows_are_stored(tmp_path: Path) -> None:
    bad = BadRows.of(tmp_path, 100)
    assert bad is not None
    bad.take("t.csv", [BadRow(2, "why", b"x")])

    def fails() -> Any:
        raise JobError("no")

    with pytest.raises(JobError):
        keeping(bad, fails)
    assert os.listdir(tmp_path) == [] and keeping(None, lambda: types.SimpleNamespace(only_asked=False))


def test_a_stream_of_files_does_not_read_what_it_writes(tmp_path: Path) -> None:
    url = f"files://{tmp_path}?group=g&idle=3"
    (tmp_path / "link").symlink_to(tmp_path)
    for output in ("out.csv", "new.txt", "link/out.csv", "sub/../out.csv"):
        with pytest.raises(SinkError, match=r"lies in the directory in which files arrive .*write to another directory"):
            check_not_arriving(url, f"{tmp_path}/{output}")
    for output in (f"file://{tmp_path}/out.csv", f"file:{tmp_path}/out.csv", f"local://{tmp_path}/link/out.csv"):
        with pytest.raises(SinkError, match="lies in the directory in which files arrive"):
            check_not_arriving(url, output)
    for output in (
        f"file://{tmp_path}/sub/out.csv",
        f"{tmp_path}/.out.csv",
        f"{tmp_path}/parts/",
        f"{tmp_path}/sub/out.csv",
        "/elsewhere/out.csv",
        "s3://b/out.csv",
    ):
        check_not_arriving(url, output)
    check_not_arriving(f"{url}&pattern=*.jsonl", f"{tmp_path}/out.csv")
    check_not_arriving("kafka://b/t?group=g", f"{tmp_path}/out.csv")
