"""The record of a run: what is written, what a reader takes, and whose process is gone."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.errors import JobCancelledError, ScriptFailedError, TaskFailure
from akrunner.history import record
from akrunner.history.record import Record

BEGUN = Record(record.VERSION, "r1", "run", record.RUNNING, 100.0, host=record.host())


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = Record(**{**vars(BEGUN), "metrics": {"chief:0": {"loss": float("nan"), "step": 3}}, "arguments": {"a": [1, None]}})
    record.write(str(tmp_path), made)
    found = record.read(str(tmp_path))
    # JSON has no nan
    assert found.metrics == {"chief:0": {"loss": "nan", "step": 3}} and found.arguments == {"a": [1, None]}
    assert os.listdir(tmp_path) == [record.FILE]
    assert stat.S_IMODE((tmp_path / record.FILE).stat().st_mode) == 0o600


def test_numbers_that_json_has_not_are_found_again(tmp_path: Path) -> None:
    inf = float("inf")
    given = {"defaults": {"a.b": inf, "t": "inf"}, "user_params": {"x": [1.0, {"y": -inf}], "z": "nan"}, "timeout": inf}
    places = record.not_finite(given)
    assert places == [["defaults", "a.b"], ["user_params", "x", 1, "y"], ["timeout"]]
    record.write(str(tmp_path), Record(**{**vars(BEGUN), "arguments": given, "not_finite": places}))
    found = record.read(str(tmp_path))
    assert found.arguments["defaults"] == {"a.b": "inf", "t": "inf"}
    assert record.with_numbers(found.arguments, found.not_finite) == given
    assert record.with_numbers({"a": 1}, [["a", "gone"], ["b"]]) == {"a": 1}, "of a file that somebody has changed"


def test_a_record_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record.write(str(tmp_path), BEGUN)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        record.write(str(tmp_path), Record(**{**vars(BEGUN), "state": record.FAILED}))
    assert record.read(str(tmp_path)).state == record.RUNNING and os.listdir(tmp_path) == [record.FILE]


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"version": "1"}', '{"version": 1}'])
def test_what_is_no_record_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / record.FILE).write_text(text)
    with pytest.raises(ValueError):
        record.read(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("began", "x"), ("began", True), ("began", 1e300), ("began", float("nan")), ("ended", -1), ("host", None), ("metrics", []),
        ("metrics", {"chief:0": 1}), ("stats", {}), ("stats", {"rows_in": "1", "rows_out": 2}), ("tasks", [1]), ("tasks", "chief:0"),
        ("message", None), ("state", 1), ("detached", {"job": "0abc"}), ("failure", {"traceback": 1}), ("others", [{"task": 1}]),
        ("warnings", None), ("versions", {"akrunner": 1}),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_no_record(name: str, value: Any, tmp_path: Path) -> None:
    record.write(str(tmp_path), BEGUN)
    told = json.loads((tmp_path / record.FILE).read_text())
    (tmp_path / record.FILE).write_text(json.dumps({**told, name: value}))
    with pytest.raises(ValueError, match=f"its field {name} is damaged"):
        record.read(str(tmp_path))


def test_a_newer_record_is_refused_and_an_unknown_field_of_this_version_is_not(tmp_path: Path) -> None:
    record.write(str(tmp_path), BEGUN)
    told = json.loads((tmp_path / record.FILE).read_text())
    (tmp_path / record.FILE).write_text(json.dumps({**told, "more": 1}))
    assert record.read(str(tmp_path)).host == BEGUN.host
    (tmp_path / record.FILE).write_text(json.dumps({**told, "version": record.VERSION + 1}))
    with pytest.raises(ValueError, match="a newer akrunner wrote it"):
        record.read(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, False),
        # its pid is another process's by now
        ({"host": {**record.host(), "started": "1"}}, True),
        ({"host": {**record.host(), "started": "1", "machine": "elsewhere"}}, False),
        ({"host": {**record.host(), "started": "1"}, "state": record.FAILED}, False),
        # a system that does not say when a process started
        ({"host": {**record.host(), "started": ""}}, False),
        ({"host": {"machine": socket.gethostname(), "started": "", "pid": 2**22 + 1}}, True),
        ({"host": {}}, False),
    ],
)
def test_a_run_is_lost_whose_process_is_gone(changes: dict[str, Any], lost: bool) -> None:
    assert record.is_lost(Record(**{**vars(BEGUN), **changes})) is lost


def test_a_failure_is_told_without_secrets_and_no_longer_than_others() -> None:
    failure = TaskFailure("worker:0", "raised", traceback="x" * 30_000, log_tail="https://me:hidden@host/x")
    told = record.failed(ScriptFailedError("token=abcdef", failure=failure, others=[failure]), ["https://me:hidden@host/x"])
    assert told["state"] == record.FAILED and told["error"] == "ScriptFailedError" and "abcdef" not in told["message"]
    assert "hidden" not in json.dumps(told) and len(told["failure"]["traceback"]) == 20_000
    assert record.failed(JobCancelledError("stop"), [])["state"] == record.STOPPED
    assert record.failed(KeyboardInterrupt(), [])["state"] == record.STOPPED


@pytest.mark.parametrize(
    ("error", "name", "code"),
    [
        (KeyError("x"), "InternalError", "AK002"),
        (type("PanicException", (BaseException,), {})("?"), "InternalError", "AK002"),
        (ScriptFailedError("no such words"), "ScriptFailedError", ScriptFailedError("no such words").code),
    ],
)
def test_a_failure_is_kept_as_a_command_tells_it(error: BaseException, name: str, code: str) -> None:
    told = record.failed(error, [])
    assert (told["state"], told["error"], told["error_code"]) == (record.FAILED, name, code)


def test_a_text_is_cut_after_its_secrets_are_hidden() -> None:
    told = record.short(f"postgresql://user:SuperSecretPassword@host/{'x' * (20_000 - 14)}")
    assert "Password" not in told and len(told) == 20_000


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (KeyboardInterrupt("twice"), "KeyboardInterrupt: twice"),
        (ScriptFailedError("it raised"), "ScriptFailedError: it raised"),
    ],
)
def test_an_error_without_words_is_its_class(error: BaseException, told: str) -> None:
    run = Record(**{**vars(BEGUN), **record.failed(error, [])})
    assert (run.words, run.told.partition(" [")[0]) == (told, told) and BEGUN.told == BEGUN.words == ""


def test_how_long_a_run_took() -> None:
    assert Record(**{**vars(BEGUN), "ended": 103.5}).seconds == 3.5
    assert BEGUN.seconds > 1e9


def test_the_page_has_every_field() -> None:
    page = (Path(akrunner.__file__).parents[1] / "docs" / "runs.md").read_text()
    rows = re.findall(r"^\| (`[^|]+`) \|", page.partition("| field | |")[2], re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert told == {field.name for field in dataclasses.fields(Record)}
