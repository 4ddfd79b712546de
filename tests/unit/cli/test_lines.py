"""`--output -`, and `--json` of every command."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner.cli import lines
from akrunner.cli.main import main
from akrunner.io.limits import Limits, limited

SCHEMA = "id bigint, b varbinary"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(form="parquet"), "stdout takes jsonl, csv or arrow"),
        (dict(as_json=True), "--json: with --output -"),
        (dict(schema=SCHEMA), "JSON cannot hold column 'b'"),
        (dict(schema="v FLOAT_TENSOR", form="csv"), "CSV cannot hold column 'v'"),
    ],
)
def test_what_cannot_go_to_stdout(given: Any, words: str) -> None:
    with pytest.raises(akrunner.ConfigError, match=words):
        lines.form_of("-", **{**dict(form=None, as_json=False, schema="id bigint"), **given})


def test_what_can() -> None:
    assert lines.form_of("-", None, False, "id bigint") == "jsonl"
    assert lines.form_of("-", "csv", False, None) == "csv"
    assert lines.form_of("-", "arrow", False, "v FLOAT_TENSOR, b varbinary") == "arrow"
    # the first batch decides
    assert lines.form_of("-", None, False, None) == "jsonl"
    assert lines.form_of("o.parquet", None, True, None) is None is lines.form_of(None, None, True, None)
    with pytest.raises(akrunner.ConfigError, match="detached"):
        lines.check_not_stdout("-")
    lines.check_not_stdout("o.parquet")


@pytest.mark.parametrize(("form", "text"), [("jsonl", b'{"a":1}\n{"a":null}\n'), ("csv", b'"a"\n1\n\n')])
def test_all_rows_go_there(form: str, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(taken))
    table = pa.table({"a": pa.array([1, None], pa.int64())})
    lines.write(table.to_batches(), form, table.schema)
    assert taken.getvalue() == text


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow"])
def test_a_reader_that_does_not_read_outlives_no_limit(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdout", open(writing, "w", closefd=False))
    # batches that are smaller than a buffer, too
    table = pa.table({"a": range(500_000)})
    begun = time.monotonic()
    with limited(0.3, None), pytest.raises(akrunner.JobTimeoutError, match="waited for whoever reads stdout"):
        lines.write(table.to_batches(max_chunksize=100), form, table.schema)
    # nothing is left to be flushed
    sys.stdout.close()
    assert time.monotonic() - begun < 10
    os.close(reading)
    os.close(writing)


def test_the_limits_of_rows_on_stdout() -> None:
    assert lines.limits_of({"timeout": None, "stall_timeout": 600.0, "stall_action": "fail"}) == Limits()
    asked = lines.limits_of({"timeout": 60.0, "stall_timeout": 5.0, "stall_action": "fail"})
    assert asked.stall_timeout == 5 and asked.until is not None and asked.until > time.monotonic()
    assert lines.limits_of({"timeout": None, "stall_timeout": 5.0, "stall_action": "warn"}) == Limits()


def test_arrow_goes_there_but_not_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = io.BytesIO()
    stream = io.TextIOWrapper(taken)
    monkeypatch.setattr(sys, "stdout", stream)
    table = pa.table({"a": [1, None], "l": [[1.5], None]})
    lines.write(table.to_batches(max_chunksize=1), "arrow", table.schema)
    assert pa.ipc.open_stream(taken.getvalue()).read_all().equals(table) and not stream.closed
    monkeypatch.setattr(stream, "isatty", lambda: True)
    with pytest.raises(akrunner.ConfigError, match="--output-format arrow: stdout is a terminal"):
        lines.form_of("-", "arrow", False, None)


@pytest.mark.parametrize(
    "command",
    [
        ["flink", "start"],
        ["logs", "x"],
        ["status", "x"],
        ["cancel", "x"],
        ["replay", "nowhere", "--print-command"],
        ["replay", "nowhere"],
    ],
    ids=" ".join,
)
def test_what_is_wrong_comes_as_json(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "akrunner").write_text("no directory")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("AKRUNNER_FLINK_MASTER", raising=False)
    assert main([*command, "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["error"], told["exit_code"]) == (False, "ConfigError", 2)


def test_there_is_no_cluster_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["flink", "stop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "exit_code": 0, "stopped": None}


def test_the_command_of_a_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept here"
    (kept / "tasks" / "chief-0").mkdir(parents=True)
    (kept / "job.json").write_text(json.dumps({"tasks": ["chief:0"], "python": "/usr/bin/python3"}))
    (kept / "tasks" / "chief-0" / "context.json").write_text("{}")
    assert main(["replay", str(kept), "--print-command", "--json"]) == 0
    command = json.loads(capsys.readouterr().out)["command"]
    assert command == ["/usr/bin/python3", str(kept / "bundle.zip"), "replay", str(kept / "tasks" / "chief-0")]
    assert main(["replay", str(kept), "--print-command"]) == 0
    assert f"'{kept / 'bundle.zip'}'" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout_by_any_of_its_names(name: str) -> None:
    assert lines.is_stdout(name) and lines.form_of(name, None, False, None) == "jsonl"
    with pytest.raises(akrunner.ConfigError, match=f"--json: with --output {name} the rows go to stdout themselves"):
        lines.form_of(name, "csv", True, None)
    with pytest.raises(akrunner.ConfigError, match=f"--output {name}: a detached job"):
        lines.check_not_stdout(name)


@pytest.mark.parametrize(
    ("output", "terminal", "there"),
    [(None, True, True), ("-", True, True), ("/dev/stdout", True, True), ("o.jsonl", True, False), (None, False, False)],
)
def test_rows_of_a_stream_that_go_to_a_terminal(
    output: str | None, terminal: bool, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: terminal)))
    assert lines.on_terminal(output) == there
    monkeypatch.setattr(lines, "sys", SimpleNamespace(stdout=None))
    assert not lines.on_terminal(output)


@pytest.fixture
def goes_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | int], None]:
    """Has stdout lead somewhere. The test's own stays."""
    looked = os.fstat

    def set_to(place: str | int) -> None:
        found = os.stat(place)
        monkeypatch.setattr(lines.os, "fstat", lambda fd: found if fd == 1 else looked(fd))

    return set_to


def test_stdout_by_another_descriptor_of_it(goes_to: Callable[[str | int], None], tmp_path: Path) -> None:
    read, write = os.pipe()
    try:
        goes_to(write)
        assert lines.is_stdout(f"/dev/fd/{write}") and not lines.is_stdout(str(tmp_path / "out.csv"))
    finally:
        os.close(read)
        os.close(write)


def test_a_file_that_stdout_goes_to_is_not_replaced(goes_to: Callable[[str | int], None], tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.touch()
    goes_to(str(file))
    with pytest.raises(akrunner.ConfigError, match="is where stdout goes, too"):
        lines.is_stdout(str(file))


def test_what_is_thrown_away_mixes_with_nothing(goes_to: Callable[[str | int], None]) -> None:
    goes_to(os.devnull)
    assert not lines.is_stdout(os.devnull) and lines.is_stdout("/dev/stdout")
