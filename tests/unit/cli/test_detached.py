"""Commands for detached jobs: which cluster is asked, what is printed of a job, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner import detached as jobs
from akrunner import runs
from akrunner.cli import detached
from akrunner.cli.main import main
from akrunner.detached import Status
from akrunner.engines.flink import FlinkEngine
from akrunner.errors import ConfigError, JobManagerLostError
from tests.unit.runs.conftest import Make, make

__all__ = ["make"]

RUNNING = Status("0123456789abcdef", "akrunner train.py [ab]", "RUNNING", 12.4, 3, 2)
DONE = Status("fedcba9876543210", "akrunner run.py [cd]", "FINISHED", 100.6, 1, 0)
FAILED = Status("1111", "akrunner run.py [ef]", "FAILED", 1.0, 1, 0, "ScriptFailedError: it divided by zero")
CANCELED = Status("2222", "akrunner run.py [ab]", "CANCELED", 1.0, 1, 0)

Fake = Callable[..., list[Any]]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put a function in the place of one that asks a cluster: it returns `answer`. Returns: the arguments of its calls."""
    monkeypatch.delenv("AKRUNNER_FLINK_MASTER", raising=False)

    def made(name: str, answer: Any) -> list[Any]:
        asked: list[Any] = []
        monkeypatch.setattr(jobs, name, lambda *given: asked.append(given) or answer)
        return asked

    return made


def test_the_number_of_a_run_is_its_name_unless_a_cluster_is_named(
    fake: Fake, make: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "running_cluster", lambda: None)
    make()
    assert main(["logs", "1"]) == 0 and main(["show", "1"]) == 0
    assert main(["cancel", "1"]) == 2 and "r1 is no detached job" in capsys.readouterr().err
    assert main(["logs", "2"]) == 2 and "which cluster?" in capsys.readouterr().err
    asked = fake("logs", ["[chief:0] a"])
    assert main(["logs", "1", "--flink-master", "h:1"]) == 0 and asked == [("h:1", "1", False)]


def test_the_address_that_is_given_wins_over_the_environment_and_that_over_a_cluster_that_was_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detached, "running_cluster", lambda: SimpleNamespace(address="started:3"))
    monkeypatch.setenv("AKRUNNER_FLINK_MASTER", "variable:2")
    assert detached.master("given:1") == "given:1" and detached.master(None) == "variable:2"
    monkeypatch.setenv("AKRUNNER_FLINK_MASTER", "")
    assert detached.master(None) == "started:3"
    monkeypatch.setattr(detached, "running_cluster", lambda: None)
    with pytest.raises(ConfigError, match="^which cluster[?] give --flink-master HOST:PORT, or set AKRUNNER_FLINK_MASTER$"):
        detached.master(None)


@pytest.mark.parametrize(
    ("line", "name", "answer", "given"),
    [
        ("status", "listed", [], ("h:1",)),
        ("status 01", "status", RUNNING, ("h:1", "01")),
        # a variable of a shell that was never set is no wish for all jobs
        ("status {}", "status", RUNNING, ("h:1", "")),
        ("status {} --wait", "wait", DONE, ("h:1", "")),
        ("status 01 --wait", "wait", DONE, ("h:1", "01")),
        ("logs 01", "logs", [], ("h:1", "01", False)),
        ("logs 01 -f", "status", RUNNING, ("h:1", "01")),
        # another job's id may begin so by then
        ("logs 01 -f", "logs", [], ("h:1", RUNNING, True)),
        ("logs 01 -f", "wait", DONE, ("h:1", RUNNING)),
        ("cancel 01", "cancel", CANCELED, ("h:1", "01")),
    ],
)
def test_the_cluster_is_asked_for_what_the_line_says(line: str, name: str, answer: Any, given: Any, fake: Fake) -> None:
    fake("logs", [])
    fake("wait", DONE)
    fake("status", RUNNING)
    asked = fake(name, answer)
    assert main([*(word.format("") for word in line.split()), "--flink-master", "h:1"]) == 0
    assert asked == [given]


def test_each_job_is_one_line_that_a_shell_can_divide(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake("listed", [RUNNING, DONE])
    assert main(["status", "--flink-master", "h:1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "0123456789abcdef  RUNNING         12 s  2 of 3 subtasks run  akrunner train.py [ab]",
        "fedcba9876543210  FINISHED       101 s  0 of 1 subtasks run  akrunner run.py [cd]",
    ]


@pytest.mark.parametrize(
    ("status", "wait", "code", "said"),
    [
        (RUNNING, False, 0, ""),
        (DONE, True, 0, ""),
        (FAILED, False, 1, "akrunner: ScriptFailedError: it divided by zero [AK520]\n"),
        (FAILED, True, 1, "akrunner: ScriptFailedError: it divided by zero [AK520]\n"),
        (Status("3", "x", "FAILED", 1.0, 1, 0), False, 1, "akrunner: Flink does not say why\n"),
        (CANCELED, False, 0, ""),
        (CANCELED, True, 143, "akrunner: the job is CANCELED\n"),
    ],
)
def test_the_exit_code_says_how_the_job_is(
    status: Status, wait: bool, code: int, said: str, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake("wait" if wait else "status", status)
    line = ["status", "1", "--flink-master", "h:1", *(["--wait"] if wait else [])]
    assert main(line) == code
    out, err = capsys.readouterr()
    assert out.startswith(f"{status.id}  {status.state}") and out.count("\n") == 1 and err == said
    assert main([*line, "--json"]) == code
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["ok"], told["exit_code"], told["state"], told["error"]) == (code == 0, code, status.state, status.error)
    assert err == ""


def test_a_failed_job_among_all_is_no_failure_of_the_list(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake("listed", [FAILED, RUNNING])
    assert main(["status", "--flink-master", "h:1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] and [one["id"] for one in told["jobs"]] == [FAILED.id, RUNNING.id]


def test_waiting_needs_the_id_of_a_job(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    asked = fake("wait", DONE)
    assert main(["status", "--wait", "--flink-master", "h:1"]) == 2
    assert "--wait is for one job: give its id" in capsys.readouterr().err and not asked


@pytest.mark.parametrize(
    ("line", "of_done", "of_failed", "of_cancelled"),
    [
        ("status 1", 0, 1, 0),
        ("status 1 --wait", 0, 1, 143),
        ("logs 1", 0, 0, 0),
        ("logs 1 --follow", 0, 1, 143),
        ("cancel 1", 0, 0, 0),
    ],
)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_each_command_ends_with_the_code_that_its_help_says(
    line: str, of_done: int, of_failed: int, of_cancelled: int, more: list, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake("logs", ["[chief:0] a"])
    for status, code in ((DONE, of_done), (FAILED, of_failed), (CANCELED, of_cancelled)):
        for name in ("status", "wait", "cancel"):
            fake(name, status)
        assert main([*line.split(), "--flink-master", "h:1", *more]) == code
        out, err = capsys.readouterr()
        if more:
            told = json.loads(out)
            assert (told["ok"], told["exit_code"], err) == (code == 0, code, "")
        else:
            assert err == {0: "", 1: f"akrunner: {FAILED.error} [AK520]\n", 143: "akrunner: the job is CANCELED\n"}[code]
    said = detached.EPILOGS[line.split()[0]]
    assert ("1 the job failed" in said or "1 with --follow, the job failed" in said) == (not line.startswith("cancel"))
    assert said.endswith("the job was cancelled.") == (not line.startswith("cancel"))


def test_lines_of_the_log_are_printed_or_one_list(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake("logs", ["[chief:0] a", "[chief:0] b"])
    assert main(["logs", "1", "--flink-master", "h:1"]) == 0
    assert capsys.readouterr().out == "[chief:0] a\n[chief:0] b\n"
    assert main(["logs", "1", "--flink-master", "h:1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == ["[chief:0] a", "[chief:0] b"]


def test_lines_are_kept_if_the_cluster_goes_behind_them(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*given: Any) -> Status:
        raise JobManagerLostError("the JobManager at h:1 is gone")

    fake("status", RUNNING)
    fake("logs", ["[chief:0] a"])
    monkeypatch.setattr(jobs, "wait", gone)
    assert main(["logs", "1", "-f", "--flink-master", "h:1", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["error"], told["exit_code"], told["lines"]) == ("JobManagerLostError", 1, ["[chief:0] a"])


@pytest.mark.parametrize(
    ("line", "name", "said"),
    [
        ("status 1 --wait", "wait", "; the job goes on (akrunner cancel 1 --flink-master h:1)"),
        ("logs 1 -f", "wait", "; the job goes on (akrunner cancel 1 --flink-master h:1)"),
        ("status 1", "status", ""),
        ("status", "listed", ""),
        ("logs 1", "logs", ""),
        ("cancel 1", "cancel", "; `akrunner status 1 --flink-master h:1` says whether the job has ended"),
    ],
)
def test_a_signal_to_a_command_that_looks_at_a_job_stops_no_job(
    line: str, name: str, said: str, fake: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*given: Any) -> Any:
        raise KeyboardInterrupt

    fake("status", RUNNING)
    fake("logs", [])
    monkeypatch.setattr(jobs, name, stopped)
    assert main([*line.split(), "--flink-master", "h:1"]) == 130
    assert capsys.readouterr().err == f"akrunner: interrupted{said}\n"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("failed", ": it failed before its tasks printed anything"),
        ("lost", ": it was lost before its tasks printed anything"),
        ("succeeded", ": its tasks printed nothing"),
        ("running", " so far: its tasks printed nothing yet"),
    ],
)
def test_a_run_without_logs_says_so(
    state: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = SimpleNamespace(id="r27", detached=None, state=state)
    monkeypatch.setattr(runs, "get", lambda name: run)
    monkeypatch.setattr(runs, "logs", lambda *given: iter(()))
    assert main(["logs", "r27"]) == 0
    assert capsys.readouterr() == ("", f"akrunner: r27 has no logs{said} (akrunner show r27)\n")
    assert main(["logs", "r27", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_how_a_job_was_ended_is_printed(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake("cancel", CANCELED)
    assert main(["cancel", "2", "--flink-master", "h:1"]) == 0
    assert capsys.readouterr().out == "2222 CANCELED\n"
    assert main(["cancel", "2", "--flink-master", "h:1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["id"], told["state"]) == (True, "2222", "CANCELED")


def test_of_a_job_that_was_submitted_stdout_has_only_the_id(capsys: pytest.CaptureFixture[str]) -> None:
    job = jobs.Job("0123456789abcdef", "h:8081", "akrunner train.py [ab]")
    detached.submitted(job, False, False)
    out, err = capsys.readouterr()
    assert out == "0123456789abcdef\n"
    assert err.splitlines() == [f"akrunner {name} 01234567 --flink-master h:8081" for name in ("status", "logs", "cancel")]
    detached.submitted(job, False, True)
    assert capsys.readouterr() == ("0123456789abcdef\n", "")
    detached.submitted(job, True, True)
    told = json.loads(capsys.readouterr().out)
    assert (told["job"], told["master"], told["name"]) == (job.id, job.master, job.name)


def test_only_a_cluster_that_stays_takes_a_detached_job() -> None:
    for engine in ("local", FlinkEngine()):
        with pytest.raises(ConfigError, match="^--detach is for a Flink cluster that stays: "):
            detached.check_detach({"engine": engine}, True)
        detached.check_detach({"engine": engine}, False)
    detached.check_detach({"engine": FlinkEngine("h:8081")}, True)


def test_a_detached_job_is_submitted_with_its_options_and_not_to_stdout(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, given = FlinkEngine("h:8081"), []
    monkeypatch.setattr(jobs, "submit", lambda *args, **options: given.append((args, options)) or jobs.Job("1", "h", "x"))
    detached.detach("s.py", "t.csv", "train", {"engine": engine, "model_out": "m"}, False, True)
    assert given == [(("s.py", "t.csv"), {"engine": engine, "mode": "train", "model_out": "m"})]
    with pytest.raises(ConfigError):
        detached.detach("s.py", "t.csv", "batch", {"engine": engine, "output": "-"}, False, True)
    assert len(given) == 1


def test_no_bar_stands_where_the_id_of_a_detached_job_is_printed(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs, "submit", lambda *args, **options: jobs.Job("1", "h", "x"))
    options = {"engine": FlinkEngine("h:8081"), "observer": SimpleNamespace(ends_display=lambda: print("(no bar)"))}
    detached.detach("s.py", "t.csv", "train", options, False, True)
    assert capsys.readouterr().out == "(no bar)\n1\n"


@pytest.mark.parametrize(
    ("state", "code", "ok", "said"),
    [
        ("RUNNING", 0, None, ""),
        (
            "FINISHED",
            0,
            None,
            "akrunner: the job has ended; only its submitter knows how, as it was not submitted with --detach\n",
        ),
        ("FAILED", 1, False, "akrunner: Flink does not say why\n"),
    ],
)
def test_a_job_with_a_submitter_is_never_told_to_be_well(
    state: str, code: int, ok: bool | None, said: str, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake("status", Status("5", "akrunner run.py", state, 1.0, 1, 0))
    assert main(["status", "5", "--flink-master", "h:1"]) == code
    assert capsys.readouterr().err == said
    assert main(["status", "5", "--flink-master", "h:1", "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["exit_code"], told["state"]) == (ok, code, state)
