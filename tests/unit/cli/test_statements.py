"""Statements run one after the other: what is shown of each, what one JSON object has of all, and a call of a script."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import typer

from akrunner.cli import signals, statements
from akrunner.cli.show import Screen
from akrunner.cli.statements import Statements, ended, inside, telling
from akrunner.engines.base import Progress, Stats
from akrunner.errors import AkrunnerError, ConfigError
from akrunner.pai_mode import calls
from akrunner.pai_mode.arguments import PaiArguments
from akrunner.pai_mode.calls import Called
from akrunner.pai_mode.scripts import Outcome, ShellScript
from akrunner.running.result import Result

SCRIPT = ShellScript("daily.sh", (), "/bin/bash", (), ())
STATS = Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,))


@pytest.fixture(autouse=True)
def nobody_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No script has called this process, and there are no tables."""
    for name in (calls.HERE, calls.PLACE, calls.BEFORE, "AKRUNNER_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))


def made(done: list[Any], as_json: bool = False, quiet: bool = False) -> Statements:
    options = {**PaiArguments().by_name(), "project": "demo"}
    return Statements(options, Screen(as_json=as_json, quiet=quiet, log=False), as_json, quiet, done)


def run(text: str, done: list[Any], as_json: bool = False, quiet: bool = False, **more: Any) -> None:
    job = made(done, as_json, quiet)
    job.run(job.runner.parts([("text", text)], ""), **more)


def test_rows_go_to_stdout_in_the_order_of_the_statements(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[Any] = []
    run("select 1 as a; select 'x' as b, cast(null as bigint) as c;", done)
    assert capsys.readouterr().out.splitlines() == ["a", "1", "b  c", "x  NULL"]
    assert [one.rows.to_pylist() for one in done] == [[{"a": 1}], [{"b": "x", "c": None}]]


def test_who_prints_rows_itself_is_given_the_statement_with_them(capsys: pytest.CaptureFixture[str]) -> None:
    printed: list[Any] = []
    run("select 1 as a;", [], printed=lambda text, rows: printed.append((text, rows.to_pylist())))
    assert printed == [("select 1 as a", [{"a": 1}])] and capsys.readouterr().out == ""


@pytest.mark.parametrize("quiet", [False, True])
def test_a_message_is_a_note_unless_it_is_quiet(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    run("drop table if exists nowhere;", [], quiet=quiet)
    out, err = capsys.readouterr()
    assert out == "" and ("nowhere" in err) is not quiet


def test_all_statements_are_one_object_with_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    run("select 1 as a;\n\nselect 2 as b;", [], as_json=True)
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["ok"], told["exit_code"], err) == (True, 0, "")
    assert [(one["line"], one["rows"]) for one in told["statements"]] == [(1, [{"a": 1}]), (3, [{"b": 2}])]


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_a_statement_that_fails_stops_the_others_and_has_the_results_before_it(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[Any] = []
    with pytest.raises(AkrunnerError, match="nowhere") as caught:
        run("select 1 as a; select * from nowhere; select 2 as b;", done, as_json=as_json)
    assert [one["rows"] for one in caught.value.results] == [[{"a": 1}]] and len(done) == 1
    assert capsys.readouterr().out == ("" if as_json else "a\n1\n")


def test_a_job_of_pais_is_told_with_its_numbers_and_another_statement_with_its_rows() -> None:
    told = statements._as_json(Result(None, "odps://demo/tables/o", (), STATS, "/kept"))
    assert (told["kind"], told["output"], told["work_dir"], told["stats"]["rows_in"], told["tasks"]) == (
        "pai", "odps://demo/tables/o", "/kept", 1, [],
    )  # fmt: skip
    json.dumps(told)


def test_no_script_has_called_it() -> None:
    assert inside("odpscmd", {"a": 1}) is None
    done: list[Any] = []
    with telling(None, done):
        pass


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a script's run, which has called this process from line 3."""
    (tmp_path / calls.CALLS).mkdir()
    options = {"variables": {"a": "1", "b": "1"}, "project": "run", "engine": "local", "oss_roots": None}
    (tmp_path / calls.OPTIONS).write_bytes(pickle.dumps(options))
    for name, value in ((calls.HERE, str(tmp_path)), (calls.PLACE, "/jobs/daily.sh:3"), ("PATH", os.environ["PATH"])):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("BASH_ENV", raising=False)
    monkeypatch.setattr(signals, "end_by_it", lambda: None)
    return tmp_path


def test_options_typed_behind_the_command_win_over_those_of_the_run(script: Path) -> None:
    called = inside("pai", {"project": "typed", "variables": {"b": "2"}, "oss_roots": {"x": "y"}})
    assert called is not None and called.place == "daily.sh, line 3"
    assert called.options == {
        "variables": {"a": "1", "b": "2"}, "project": "typed", "engine": "local", "oss_roots": {"x": "y"},
    }  # fmt: skip
    assert inside("pai", {}) is None, "what this process starts was not called by the script"


def test_the_script_is_told_what_was_done_and_why_it_failed(script: Path) -> None:
    called = inside("odpscmd", {})
    done: list[Any] = []
    with pytest.raises(ConfigError, match="no such table"), telling(called, done):
        done.append("a result")
        raise ConfigError("no such table")
    (told,) = calls.read(str(script))
    assert (told.name, told.place, told.done, str(told.error), told.ended) == (
        "odpscmd", "daily.sh, line 3", ["a result"], "no such table", True,
    )  # fmt: skip


def test_a_script_that_was_stopped_runs_no_further_call(script: Path) -> None:
    (script / calls.STOPPED).touch()
    with pytest.raises(ConfigError, match="^odpscmd is not run: the script that calls it was stopped$"):
        inside("odpscmd", {})


SELECTED = Called("odpscmd", "daily.sh, line 3", done=[], ended=True)
FAILED = Called("odpscmd", "daily.sh, line 5", error=ConfigError("no such table"), ended=True)


@pytest.mark.parametrize(
    ("code", "called", "failed"), [(0, [SELECTED], 0), (0, [SELECTED, FAILED], 1), (3, [FAILED], 1), (0, [], 0), (1, [], 0)]
)
def test_a_script_is_told_as_one_object(
    code: int, called: list[Called], failed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = made([], as_json=True)
    monkeypatch.setattr(job.runner, "called", lambda script, stdout, quiet: Outcome(code, called))
    assert job.run_script(SCRIPT) == code
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["ok"], told["exit_code"], told["calls"], len(told["calls_failed"])) == (code == 0, code, len(called), failed)
    assert ("message" in told) is (code != 0) and err == ""


@pytest.mark.parametrize(
    ("code", "called", "quiet", "said"),
    [
        (0, [SELECTED], False, True),
        (0, [SELECTED], True, False),
        (0, [SELECTED, FAILED], True, True),
        (0, [], True, True),
        (2, [SELECTED], True, True),
    ],
)
def test_how_a_script_has_ended_is_said_even_if_quiet_unless_all_is_well(
    code: int, called: list[Called], quiet: bool, said: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    job = made([], quiet=quiet)
    monkeypatch.setattr(job.runner, "called", lambda script, stdout, quiet: Outcome(code, called))
    assert job.run_script(SCRIPT) == code
    err = capsys.readouterr().err
    assert ("akrunner: bash runs daily.sh" in err) is not quiet
    assert ("daily.sh has ended" in err or "daily.sh ended with exit code 2" in err) is said


@pytest.mark.parametrize(("code", "fails"), [(0, False), (1, True), (130, True)])
def test_a_command_ends_with_the_exit_code_of_its_script(code: int, fails: bool) -> None:
    if not fails:
        ended(code)
        return
    with pytest.raises(typer.Exit) as caught:
        ended(code)
    assert caught.value.exit_code == code


def test_rows_of_a_table_are_printed_as_those_of_tables(capsys: pytest.CaptureFixture[str]) -> None:
    statements._printed("select 1", pa.table({"a": pa.array([], pa.int64())}))
    assert capsys.readouterr().out == "a\n(no rows)\n"


def test_each_job_tells_its_warnings_and_its_end_as_events_beside_json(capfd: pytest.CaptureFixture[str]) -> None:
    done: list[Any] = []
    screen = Screen(as_json=True, quiet=False, log=False, progress="json")
    job = Statements({**PaiArguments().by_name(), "project": "demo"}, screen, True, False, done)

    def running(given: Any) -> Iterator[Any]:
        for _ in range(2):
            screen.progress(Progress(1.0, 1, 1, 0, 0, {"chief:0": "running"}, {}, ["odd"]))
            yield Result(None, "odps://demo/tables/o", (), STATS, None)

    job.runner.running = running  # type: ignore[method-assign, assignment]
    job.run(SimpleNamespace(notes=()))  # type: ignore[arg-type]
    out, err = capfd.readouterr()
    told = [json.loads(line)["event"] for line in err.splitlines()]
    assert [one for one in told if one != "progress"] == ["warning", "end"] * 2 and len(json.loads(out)["statements"]) == 2
