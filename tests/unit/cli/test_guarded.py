"""Every way a command ends: its exit code, and its one JSON object."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import warnings
from typing import Any

import pytest

import akrunner
from akrunner.cli import guarded
from akrunner.cli.guarded import asks_for_json, emit, ended, telling
from akrunner.cli.main import main as command
from akrunner.engines import group
from akrunner.errors import TaskFailure
from akrunner.io.commits import last_step
from akrunner.tables import store

ENDS = [
    (akrunner.ConfigError("x"), 2, "ConfigError"),
    (akrunner.SourceError("x"), 2, "SourceError"),
    (akrunner.JobError("x"), 1, "JobError"),
    (akrunner.ReadError("x"), 3, "ReadError"),
    (akrunner.DataError("x", row=4, column="a"), 3, "DataError"),
    (akrunner.WriteError("x"), 4, "WriteError"),
    (akrunner.JobTimeoutError("x"), 124, "JobTimeoutError"),
    (akrunner.JobCancelledError("x"), 143, "JobCancelledError"),
    (KeyboardInterrupt(), 130, "Interrupted"),
    (MemoryError(), 2, "ConfigError"),
    (RuntimeError("can't start new thread"), 2, "ConfigError"),
    (AttributeError("x"), 70, "InternalError"),
    (FileNotFoundError(2, "x", "some.file"), 70, "InternalError"),
]


@pytest.mark.parametrize(("error", "code", "name"), ENDS, ids=lambda value: str(value) if isinstance(value, str) else "")
def test_an_end(error: BaseException, code: int, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> Any:
        raise error

    assert ended(run, True) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["error"], told["exit_code"]) == (False, name, code) and told["message"]
    assert (told["error_code"] is None) == (name == "Interrupted")
    assert ended(run, False) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("akrunner: ") and (f" [{told['error_code']}]\n" in err) == (name != "Interrupted")
    assert ("Traceback" in err) == (name == "InternalError")


def test_what_was_told_before_an_error_stands_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    error = akrunner.ReadError("a row is broken")
    error.add_note("before that: 1 file was passed over")

    def run() -> Any:
        raise error

    ended(run, True)
    assert json.loads(capsys.readouterr().out)["warnings"] == ["before that: 1 file was passed over"]
    ended(run, False)
    assert capsys.readouterr().err == "akrunner: ReadError: a row is broken [AK550]\nbefore that: 1 file was passed over\n"


def test_a_signal_that_comes_when_tables_were_changed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CHANGED", ["odps://p/tables/t", "odps://p/tables/t"])

    def run() -> Any:
        raise KeyboardInterrupt

    assert ended(run, False) == 130
    assert ". Changed already, and it stays so: odps://p/tables/t" in capsys.readouterr().err


def test_a_signal_that_comes_at_a_commit_hides_no_changed_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CHANGED", ["odps://p/tables/t"])

    def run() -> Any:
        try:
            last_step("o.csv", lambda: os.kill(os.getpid(), signal.SIGINT))
        except KeyboardInterrupt as e:
            e.add_note("before that: 1 file was passed over")
            raise

    assert ended(run, False) == 130
    said = capsys.readouterr().err
    assert (
        "output: o.csv was written: its commit ended before the signal took effect. Changed already, and it stays so: " in said
    )
    assert "before that" not in said


def test_a_fault_has_its_notes(capsys: pytest.CaptureFixture[str]) -> None:
    error = akrunner.JobError("a task sent nonsense")
    error.fault = True
    error.add_note("before that: 1 file was passed over")

    def run() -> Any:
        raise error

    assert ended(run, False) == 70
    assert capsys.readouterr().err.endswith("a task sent nonsense [AK500]\nbefore that: 1 file was passed over\n")


@pytest.mark.parametrize(
    ("begun", "module", "said"),
    [
        (True, "akrunner.engines.supervisor", "interrupted; every task was stopped"),
        (True, "akrunner.tables.statements", "interrupted; no table was changed"),
        (False, "akrunner.cli.tables", "interrupted; no table was changed"),
    ],
)
def test_what_a_signal_stopped_is_said_as_it_is(
    begun: bool, module: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CHANGED", [])
    monkeypatch.setattr(group, "BEGUN", threading.Event())
    monkeypatch.delitem(sys.modules, "akrunner.tables.maxcompute", raising=False)
    if begun:
        group.BEGUN.set()
    scope: Any = {"__name__": module}
    exec("def run():\n    raise KeyboardInterrupt()\n", scope)
    assert ended(scope["run"], False) == 130
    assert capsys.readouterr().err == f"akrunner: {said}\n"


@pytest.mark.parametrize(("goes_on", "said"), [("the job goes on", "interrupted; the job goes on"), ("", "interrupted")])
def test_a_command_that_looks_at_a_job_has_stopped_nothing(
    goes_on: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "BEGUN", threading.Event())
    group.BEGUN.set()

    def run() -> Any:
        with guarded.looking(goes_on):
            raise KeyboardInterrupt

    assert ended(run, False) == 130
    assert capsys.readouterr().err == f"akrunner: {said}\n"


def test_where_the_logs_are_of_what_a_signal_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> Any:
        error = KeyboardInterrupt()
        vars(error)["work_dir"] = "/kept"
        raise error

    assert ended(run, True) == 130
    assert json.loads(capsys.readouterr().out)["work_dir"] == "/kept"


def test_which_run_a_signal_has_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> Any:
        error = KeyboardInterrupt()
        vars(error).update(work_dir="/kept", run="r24")
        raise error

    assert ended(run, False) == 130
    assert capsys.readouterr().err.endswith("; its logs: /kept\nrun: r24   (akrunner show r24)\n")


def test_what_is_told_of_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    failure = TaskFailure("chief:0", "raised", "Traceback: http://me:pw@host/", log_path="/logs/chief")
    error = akrunner.ScriptFailedError("s3://me:pw@b/x", failure=failure, work_dir="/kept")

    def run() -> Any:
        raise error

    assert ended(run, True) == 1
    out = capsys.readouterr().out
    told = json.loads(out)
    assert (told["log"], told["work_dir"], told["failure"]["task"]) == ("/logs/chief", "/kept", "chief:0") and "pw" not in out


def test_no_number_that_json_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": None, 1: True}})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": {"d": None, "1": True}}


def test_a_command_that_is_ended_early_waits_for_no_reader_of_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    silenced: list[bool] = []
    monkeypatch.setattr(guarded, "_STDOUT", writing)
    monkeypatch.setattr(guarded, "_READER_SECONDS", 0.1)
    monkeypatch.setattr(guarded, "silence_stdout", lambda: silenced.append(True))

    def run() -> Any:
        raise akrunner.JobTimeoutError("it took too long")

    assert ended(run, False) == 124 and not silenced
    os.set_blocking(writing, False)
    os.write(writing, bytes(1 << 20))
    assert ended(run, False) == 124 and silenced
    os.close(reading)
    os.close(writing)


def test_whether_json_is_asked_for() -> None:
    assert asks_for_json(["run", "--json", "--odd"]) and not asks_for_json(["run", "--", "--json"])


@pytest.mark.parametrize("error", [BrokenPipeError(32, "x"), OSError(28, "No space left on device"), SystemExit(1)])
def test_what_was_done_is_said_when_stdout_takes_nothing(
    error: BaseException, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "silence_stdout", lambda: None)

    def run() -> Any:
        with telling("its output is stored: o.parquet"):
            if isinstance(error, SystemExit):
                # as Rich does
                raise error from BrokenPipeError(32, "x")
            raise error

    for as_json in (True, False):
        assert ended(run, as_json) == 4
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("akrunner: WriteError: stdout") and "; its output is stored: o.parquet [AK56" in err


class _Full:
    """A stdout that takes nothing. Attributes: number: of the error."""

    def __init__(self, number: int) -> None:
        self.number = number

    def write(self, text: str) -> None:
        raise OSError(self.number, os.strerror(self.number))

    def flush(self) -> None:
        pass


def _fault() -> akrunner.JobError:
    made = akrunner.JobError("the job could not go on")
    made.fault = True
    return made


@pytest.mark.parametrize(
    ("number", "words"), [(28, "stdout: the disk is full"), (32, "stdout was closed before"), (9, "stdout is closed")]
)
@pytest.mark.parametrize(
    ("error", "code"),
    [(_fault(), 70), (akrunner.JobError("it failed; log: /l"), 1), (akrunner.ConfigError("no"), 2), (ValueError("x"), 70)],
)
def test_a_failure_is_said_where_stdout_takes_no_json(
    number: int, words: str, error: Exception, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "silence_stdout", lambda: None)
    monkeypatch.setattr(sys, "stdout", _Full(number))

    def run() -> Any:
        raise error

    assert ended(run, True) == code
    told = capsys.readouterr().err
    assert str(error) in told and f"the JSON object could not be written: {words}" in told


def test_a_job_that_ran_into_a_limit_is_no_argument(capsys: pytest.CaptureFixture[str]) -> None:
    scope = {"__name__": "akrunner.engines.local"}
    exec("def run():\n    raise MemoryError()\n", scope)
    run: Any = scope["run"]
    assert ended(run, True) == 1
    assert json.loads(capsys.readouterr().out)["error"] == "JobError"


def test_the_option_may_stand_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["--json", "rnu"]) == 2
    assert "Did you mean 'run'" in json.loads(capsys.readouterr().out)["message"]


@pytest.mark.parametrize("raised", ["BrokenPipeError(32, 'x')", "SystemExit(1)"])
@pytest.mark.parametrize("module", ["rich.console", "akrunner.cli.show"])
def test_of_help_a_reader_takes_what_it_wants(
    module: str, raised: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr(guarded, "silence_stdout", lambda: None)
    code = f"def run():\n    try:\n        raise BrokenPipeError(32, 'x')\n    except OSError:\n        raise {raised}\n"
    scope = {"__name__": module}
    exec(code, scope)
    run: Any = scope["run"]
    assert guarded.ended(run, False, is_help=True) == 0 and not capsys.readouterr().err
    assert guarded.ended(run, False, only_tells=True) == 4 and not capsys.readouterr().err
    assert guarded.ended(run, False) == 4 and "stdout was closed" in capsys.readouterr().err


def test_a_reader_of_a_run_who_goes_is_told_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "silence_stdout", lambda: None)

    def run(error: BaseException) -> Any:
        with telling("the run was shown"):
            raise error

    gone, full = BrokenPipeError(32, "x"), OSError(28, "No space left on device")
    assert ended(lambda: run(gone), False, only_tells=True) == 4 and not capsys.readouterr().err
    assert ended(lambda: run(full), False, only_tells=True) == 4 and "the disk is full" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "tells"),
    [
        ("show last", True),
        ("logs r1 -f", True),
        ("runs", True),
        ("runs diff r1 r2", True),
        ("runs prune", False),
        ("runs --serve", False),
        ("tables ls", True),
        ("tables get t -", False),
        ("run s.py", False),
        ("cancel r1", False),
    ],
)
def test_which_commands_only_tell(line: str, tells: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.cli.main.ended", lambda run, as_json, is_help, only_tells: only_tells)
    assert command(line.split()) == tells


@pytest.mark.parametrize("number", [5, 28, 32])
@pytest.mark.parametrize("module", ["akrunner.packing.state", "clicking"])
def test_what_is_written_elsewhere_is_none_of_stdouts(module: str, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    scope = {"__name__": module}
    exec(f"import os\ndef run():\n    raise OSError({number}, os.strerror({number}))\n", scope)
    run: Any = scope["run"]
    assert ended(run, True) == 70
    out, err = capsys.readouterr()
    assert json.loads(out)["error"] == "InternalError" and "stdout" not in json.loads(out)["message"] and "Traceback" in err


def test_a_warning_of_akrunner_is_said_in_words(capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    def run() -> None:
        place = os.path.join(os.path.dirname(akrunner.__file__), "io", "x.py")
        warnings.warn_explicit("source: postgres://me:geheim@h is waited for", RuntimeWarning, place, 7)
        warnings.warn_explicit("of a script", RuntimeWarning, "/home/me/s.py", 7)

    assert ended(run, False) == 0
    assert capsys.readouterr().err == "warning: source: postgres://me:***@h is waited for\n"
    assert [str(one.message) for one in recwarn.list] == ["of a script"]
