"""`akrunner runs` and `show`: what is printed for people and for machines, and the exit code."""

from __future__ import annotations

import io
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from akrunner.cli import runs as shown
from akrunner.cli.main import main
from akrunner.history import places, record
from akrunner.reports import page
from akrunner.runs import listed, serving
from tests.unit.runs.conftest import make

__all__ = ["make"]

Make = Callable[..., str]
FAILURE = {"task": "worker:0", "what": "raised", "traceback": "Traceback ...\n  at line 3", "log_tail": "last\nwords"}


def test_runs_are_listed_the_newest_first(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make(
        began=time.time() - 90_000,
        ended=time.time() - 89_877,
        metrics={"chief:0": {"step": 1500, "lr": 0.1, "val_loss": 0.123456}},
    )
    make(
        state=record.FAILED,
        error="JobError",
        message="[worker:0] it failed\nmore",
        stats={"rows_in": 1234, "rows_out": 1},
        engine="flink",
    )
    assert main(["runs"]) == 0
    title, second, first = capsys.readouterr().out.splitlines()
    assert title.split() == ["run", "state", "began", "took", "what", "rows", "in", "last"]
    assert (
        second.split()[:2] == ["r2", "failed"]
        and "3.0 s  run t.py (flink)" in second
        and second.rstrip().endswith("1,234  [worker:0] it failed")
    )
    assert "2 min 3 s" in first and first.rstrip().endswith("val_loss=0.1235 lr=0.1 step=1,500")
    assert main(["runs", "--failed", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in told["runs"]] == ["r2"] and told["runs"][0]["seconds"] == pytest.approx(3, abs=0.1)
    assert main(["runs", "-n", "1"]) == 0
    out, err = capsys.readouterr()
    assert "r1" not in out and err == "the newest 1; --all lists all\n"
    assert main(["runs", "--all"]) == 0 and capsys.readouterr().err == ""


def test_nothing_is_listed_where_nothing_is(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0 and main(["runs", "--failed"]) == 0
    assert capsys.readouterr() == ("", "no run is kept yet\nno run that has failed is kept yet\n")
    assert main(["show", "last"]) == 2 and "no run is kept yet" in capsys.readouterr().err


def test_a_damaged_run_is_named_and_the_others_are_listed(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make()
    make(stats={})
    assert main(["runs"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith("r1 ") and err == "r2  its record cannot be read: its field stats is damaged\n"
    assert main(["runs", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in told["runs"]] == ["r1"] and told["damaged"] == {"r2": "its field stats is damaged"}
    assert main(["show", "last"]) == 2
    assert "run 'last': its record cannot be read: its field stats is damaged [AK172]" in capsys.readouterr().err


def test_a_failure_comes_first(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(
        state=record.FAILED,
        error="ScriptFailedError",
        message="[worker:0] raised",
        failure=FAILURE,
        others=[{"task": "chief:0", "what": "was done"}],
        arguments={"source": ["a.csv", "b.csv"], "user_params": {"lr": 0.1}},
        left_out={"env.TOKEN": "secret"},
        command=["run", "t.py", "-i", "a b.csv"],
        warnings=["the disk\x1b[2J is slow"],
        stats={"rows_in": 3, "rows_out": 2, "bound": "input"},
        metrics={"chief:0": {"step": 1, "loss": 0.5}},
    )
    assert main(["show", "r1"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].startswith("r1  failed  run t.py, 20") and lines[0].endswith(", took 3.0 s")
    assert lines[2:9] == [
        "ScriptFailedError: [worker:0] raised [AK520]", "Traceback ...", "  at line 3", "last lines of its log:", "  | last", "  | words", "  [chief:0] was done",
    ]  # fmt: skip
    told = {line.split("  ")[0]: line for line in lines[9:]}
    assert told["command"].endswith("akrunner run t.py -i 'a b.csv'") and told["rows"].endswith("3 in, 2 out, input-bound")
    assert told["[chief:0]"].endswith("loss=0.5 step=1") and told["left out"].endswith("env.TOKEN (secret)")
    assert "source" in out and "a.csv, b.csv" in out and "lr=0.1" in out and told["kept in"].endswith(path)
    assert "\x1b" not in told["warning"]


def test_tasks_that_did_the_same_are_one_line(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    others = [{"task": f"worker:{n}", "what": "was in main() and was stopped"} for n in range(1, 64)]
    make(state=record.FAILED, error="ScriptFailedError", message="[worker:0] raised", failure=FAILURE, others=others)
    assert main(["show", "r1"]) == 0
    out = capsys.readouterr().out
    assert "\n  63 other tasks were in main() and were stopped\n" in out and "worker:1]" not in out


def test_what_was_lost_or_stopped_says_so(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make(state=record.RUNNING, host={**record.host(), "started": "1"}, ended=None)
    make(state=record.STOPPED, error="KeyboardInterrupt")
    make(state=record.SUBMITTED, ended=None, detached={"job": "0abc", "master": "h:1", "name": "x"}, host={})
    assert main(["show", "r1"]) == 0 and "is gone, and has not said why" in capsys.readouterr().out
    assert main(["show", "r2"]) == 0 and "\nKeyboardInterrupt\n" in capsys.readouterr().out
    made = Path(make(state=record.RUNNING, ended=None)).name
    assert main(["show", made]) == 0 and ", began 5." in capsys.readouterr().out.splitlines()[0]


def test_a_run_for_machines(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make(metrics={"chief:0": {"loss": "nan"}})
    assert main(["show", "last", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (
        told["ok"]
        and told["id"] == "r1"
        and told["version"] == record.VERSION
        and told["metrics"] == {"chief:0": {"loss": "nan"}}
    )


def test_what_differs_is_printed(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make(arguments={"num_workers": 2000}, began=1.0, ended=2.0)
    make(arguments={"num_workers": 2000}, began=1.0, ended=2.0)
    assert main(["runs", "diff"]) == 0 and capsys.readouterr().out == "r1 and r2 do not differ\n"
    make(arguments={"user_params": {"lr": 0.1}}, began=1.0, ended=2.5)
    assert main(["runs", "diff", "r1", "r3"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["r1", "r3"],
        ["arguments"],
        ["num_workers", "2,000", "-"],
        ["user_params.lr", "-", "0.1"],
        ["numbers"],
        ["seconds", "1", "1.5"],
    ]
    assert main(["runs", "diff", "--json", "r1", "r3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["first"] == "r1" and told["differences"][0] == {
        "part": "arguments",
        "name": "num_workers",
        "first": 2000,
        "second": None,
    }
    assert main(["runs", "diff", "r1", "r9"]) == 2


def test_runs_are_removed(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make()
    make()
    assert main(["runs", "prune"]) == 0 and capsys.readouterr().out == "0 runs were removed\n"
    assert main(["runs", "prune", "--size", "big"]) == 2 and "size=big" in capsys.readouterr().err
    assert main(["runs", "prune", "--all", "--days", "1"]) == 2 and "--all removes all runs" in capsys.readouterr().err
    assert main(["runs", "prune", "--all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == ["r1", "r2"]


def test_runs_that_cannot_be_removed_are_an_error(
    make: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make()
    make()
    monkeypatch.setattr(places, "remove", lambda path: None)
    assert main(["runs", "prune", "--all"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "prune: 2 of 2 runs cannot be removed, such as r1: nothing may be written in " in told


@pytest.mark.parametrize(
    ("ago", "told"), [(59.4, "59 s"), (59.7, "1 min"), (3569, "59 min"), (3599.7, "1 h"), (86_000, "24 h")]
)
def test_how_long_ago(ago: float, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown.time, "time", lambda: 1e9 + ago)
    assert shown._when(1e9) == f"{told} ago"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--failed prune --all", "--failed is an option of the list, akrunner runs --failed, and prune has none like it"),
        ("--all prune", "--all belongs behind prune: akrunner runs prune --all"),
        ("--json diff r1 r2", "--json belongs behind diff: akrunner runs diff --json"),
        ("-n 1 diff", "--limit is an option of the list"),
        ("-n 20 prune", "--limit is an option of the list"),
        ("--serve --limit 3", "leave --json, --failed, --limit and --all out"),
        ("--all -n 3", "--limit and --all are both given"),
    ],
)
def test_no_option_of_the_list_is_dropped(line: str, told: str, make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make()
    make()
    assert main(["runs", *line.split()]) == 2 and told in "".join(capsys.readouterr())
    assert [one.id for one in listed()] == ["r2", "r1"]


@pytest.mark.parametrize("width", [80, 200])
def test_a_terminal_is_wide_enough_for_a_line_each(width: int, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(shown, "_console", lambda: Console(file=out, width=width, force_terminal=True, color_system=None))
    make(
        state=record.FAILED,
        error="JobError",
        message="a long story " * 20,
        script="/x/" + "a" * 60 + ".py",
        stats={"rows_in": 10**9, "rows_out": 0},
    )
    assert main(["runs"]) == 0
    lines = out.getvalue().splitlines()
    assert (
        len(lines) == 2
        and all(len(Text.from_ansi(line)) <= width for line in lines)
        and lines[1].startswith("r1   failed  5 s ago")
    )


@pytest.mark.parametrize("name", ["训练模型.py", "训练" * 20 + ".py", "a" * 60 + ".py", "short.py"])
def test_letters_of_two_columns_shift_nothing(name: str, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(shown, "_console", lambda: Console(file=out, width=80, force_terminal=True, color_system=None))
    make(script=f"/x/{name}", metrics={"chief:0": {"loss": 0.5, "训" * 100: 1.0}})
    make(script="/x/plain.py", metrics={"chief:0": {"loss": 0.5}})
    assert main(["runs"]) == 0
    lines = [Text.from_ansi(line).plain for line in out.getvalue().splitlines()]
    assert {cell_len(line.partition("loss=")[0]) for line in lines[1:]} == {cell_len(lines[0].partition("last")[0])}
    assert all(cell_len(line) <= 80 for line in lines)


def test_a_report_is_written(
    make: Make, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "library", lambda: "")
    monkeypatch.chdir(tmp_path)
    make()
    assert main(["report", "last"]) == 0 and capsys.readouterr().out == "report-r1.html\n"
    assert main(["report", "r1", "-o", "a.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "exit_code": 0, "report": "a.html"}
    assert (tmp_path / "a.html").read_text() == (tmp_path / "report-r1.html").read_text()
    assert main(["report", "last", "-o", "none/a.html"]) == 2 and "there is no directory none" in capsys.readouterr().err


def test_the_address_of_the_pages_is_printed(
    make: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "library", lambda: "")
    monkeypatch.setattr(serving.RunServer, "serve_forever", lambda self: None)
    assert main(["runs", "--serve"]) == 0 and capsys.readouterr().out.startswith("http://127.0.0.1:")
    monkeypatch.setattr(serving.RunServer, "serve_forever", lambda self: signal.raise_signal(signal.SIGINT))
    assert main(["runs", "--serve"]) == 0 and capsys.readouterr().err == "akrunner: the runs are served no longer\n"
    assert main(["runs", "--serve", "--json"]) == 2 and "--serve shows runs in a browser" in capsys.readouterr().out
