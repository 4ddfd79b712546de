"""One run from its beginning to its end: what is written when, and that nothing of it fails a job."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from akrunner.engines.base import Outcome, Stats, TaskResult
from akrunner.errors import ConfigError, JobError
from akrunner.history import places, record
from akrunner.history.keeping import VARIABLE, Call, Keeping, calling, wanted
from akrunner.history.series import METRICS, Series

REPORTS = [{"task": "chief:0", "step": step, "time_ns": 5, "loss": 1.0 / step} for step in (1, 2)]
STATS = Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,), reports=REPORTS)
RESULT = TaskResult("chief:0", 1, 1, 0.1, 0.0, "exit code 0", 1, 0.1, "3.11", "what it printed", None)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state" / "akrunner" / "runs"


def outcome() -> Outcome:
    return Outcome((RESULT,), dataclasses.replace(STATS, warnings=["token=abcdef"]), None)


def begun(run: Keeping, script: str = "t.py") -> list[str]:
    return run.begin(script, ["chief:0"], "local", {"tensorflow": "2.20.0"})


def test_a_run_that_succeeds(root: Path, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("pass\n")
    with Keeping("run", {"script": "t.py", "num_workers": 2}, None) as run:
        assert not root.exists() and begun(run) == []
        first = record.read(str(root / "r1"))
        assert first.state == record.RUNNING and first.tasks == ["chief:0"] and first.cwd == str(tmp_path)
        assert first.arguments == {"script": "t.py", "num_workers": 2} and len(first.script_sha256) == 64
        assert first.versions["tensorflow"] == "2.20.0" and first.versions["akrunner"]
        assert run.succeed(outcome(), "out.parquet") == "r1"
    last = record.read(str(root / "r1"))
    assert (
        last.state == record.SUCCEEDED and last.ended is not None and last.ended >= last.began and last.output == "out.parquet"
    )
    assert last.stats is not None and last.stats["rows_in"] == 1 and "reports" not in last.stats
    assert last.metrics == {"chief:0": {"step": 2, "loss": 0.5}} and last.warnings == ["token=***"]
    assert last.results[0]["name"] == "chief:0" and last.results[0]["log_tail"] == ""


def test_where_numbers_are_that_json_has_not_is_kept(root: Path) -> None:
    with Keeping("run", {"defaults": {"x": float("nan"), "t": "nan"}}, None) as run:
        begun(run)
        assert record.read(str(root / "r1")).not_finite == [["defaults", "x"]]
        run.succeed(outcome(), None)


def test_a_run_that_fails(root: Path) -> None:
    error = JobError("it failed", work_dir="/kept")
    with pytest.raises(JobError) as raised, Keeping("run", {}, None) as run:
        begun(run)
        series = Series(str(run.path), METRICS)
        series.add(REPORTS[0])
        series.close()
        raise error
    last = record.read(str(root / "r1"))
    assert (last.state, last.error, last.message, last.work_dir) == (record.FAILED, "JobError", "it failed", "/kept")
    assert last.metrics == {"chief:0": {"step": 1, "loss": 1.0}} and vars(raised.value)["run"] == "r1"


def test_a_run_that_is_interrupted_has_stopped(root: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Keeping("run", {}, None) as run:
        begun(run)
        raise KeyboardInterrupt
    assert record.read(str(root / "r1")).state == record.STOPPED


def test_what_is_refused_is_no_run(root: Path) -> None:
    with pytest.raises(ConfigError), Keeping("run", {}, None):
        raise ConfigError("before it began")
    with pytest.raises(ConfigError), Keeping("run", {}, None) as run:
        begun(run)
        raise ConfigError("work_dir: it is not empty")
    assert not places.numbers(str(root)) and run.id is None


def test_only_the_first_end_counts(root: Path) -> None:
    with pytest.raises(JobError), Keeping("run", {}, None) as run:
        begun(run)
        run.succeed(outcome())
        raise JobError("behind its end")
    assert record.read(str(root / "r1")).state == record.SUCCEEDED


def test_a_detached_job_is_handed_over(root: Path) -> None:
    with Keeping("run", {}, None) as run:
        begun(run)
        assert run.submit("0abc", "me:hidden@h:8081", "akrunner t.py [ab]") == "r1"
    last = record.read(str(root / "r1"))
    assert last.state == record.SUBMITTED and last.ended is None
    assert last.detached == {"job": "0abc", "master": "me:***@h:8081", "name": "akrunner t.py [ab]"}


def test_what_a_command_says_goes_over_what_its_function_gets(root: Path) -> None:
    call = Call(
        ["run", "t.py", "-p", "token=x"],
        {"output": "-", "engine": "flink", "params_file": "p.json"},
        without=["user_params.from_file"],
        secret=["user_params.from_at"],
    )
    with (
        calling(call),
        Keeping("run", {"engine": object(), "user_params": {"from_file": 1, "from_at": 2, "own": 3}}, None) as run,
    ):
        begun(run)
        run.succeed(outcome())
    found = record.read(str(root / "r1"))
    assert found.command == ["run", "t.py", "-p", "token=***"]
    assert found.arguments == {
        "engine": "flink",
        "user_params": {"from_at": "***", "own": 3},
        "output": "-",
        "params_file": "p.json",
    }
    assert found.left_out == {"user_params.from_at": "secret"}


def test_nothing_is_kept_if_that_is_not_wanted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Keeping("run", {}, False) as run:
        assert begun(run) == [] and run.path is None and run.succeed(outcome()) is None
    assert not root.exists()
    assert wanted(None) and wanted(True) and not wanted(False)
    for value, is_wanted in (("0", False), ("no", False), ("1", True), ("", True)):
        monkeypatch.setenv(VARIABLE, value)
        assert wanted(None) is is_wanted and wanted(True)
    monkeypatch.setenv(VARIABLE, "perhaps")
    with pytest.raises(ConfigError, match="^AKRUNNER_KEEP_RUN=perhaps: give 1 to keep runs, 0 to keep none$"):
        wanted(None)
    with pytest.raises(ConfigError, match="^keep_run must be True, False or None, not str$"):
        wanted("yes")  # type: ignore[arg-type]


def test_a_place_that_cannot_be_written_is_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with Keeping("run", {}, None) as run:
        (told,) = begun(run)
        assert run.succeed(outcome()) is None
    assert told == (
        "this run is not kept: there is no directory for it that can be written (XDG_STATE_HOME names another) (keep_run=False, --no-keep-run, "
        "keeps none)"
    )


def test_without_a_run_there_is_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with Keeping("run", {}, None, page=lambda record, folder: None) as run:
        (told,) = begun(run)
    assert told.startswith(
        "this run is not kept, and there is no report of it (report=, --report): there is no directory for it"
    )


def test_a_disk_that_is_full_at_the_end_is_a_warning(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = outcome()
    with Keeping("run", {}, None) as run:
        begun(run)

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        assert run.succeed(done) == "r1"
    assert done.stats.warnings[1].startswith("the end of this run is not kept: the disk is full")


def test_a_wrong_bound_is_a_warning(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(places.DAYS, "many")
    with Keeping("run", {}, None) as run:
        assert begun(run) == [
            "AKRUNNER_RUNS_DAYS=many: give the number of days for which runs are kept; old runs are not removed"
        ]
        run.succeed(outcome())


def test_a_page_is_made_of_the_record_that_was_written(root: Path) -> None:
    made: list[tuple[str, str]] = []
    with Keeping("run", {}, None, page=lambda one, folder: made.append((one.state, folder))) as run:
        begun(run)
        run.succeed(outcome())
    with pytest.raises(JobError), Keeping("run", {}, None, page=lambda one, folder: made.append((one.error, folder))) as run:
        begun(run)
        raise JobError("it failed")
    assert made == [("succeeded", str(root / "r1")), ("JobError", str(root / "r2"))]
    with pytest.raises(ConfigError), Keeping("run", {}, None, page=lambda one, folder: made.append(("", ""))):
        raise ConfigError("before it began")
    assert len(made) == 2


def test_a_page_that_cannot_be_written_is_a_warning(root: Path) -> None:
    def page(one: record.Record, folder: str) -> None:
        raise ConfigError("output: cannot write r.html: the disk is full")

    done = outcome()
    with Keeping("run", {}, None, page=page) as run:
        begun(run)
        run.succeed(done)
    told = "the report of this run could not be written: output: cannot write r.html: the disk is full; `akrunner report r1` tries it again"
    assert done.stats.warnings[-1] == told
    with pytest.raises(JobError) as raised, Keeping("run", {}, None, page=page) as run:
        begun(run)
        raise JobError("it failed")
    assert raised.value.warnings == (told.replace("r1", "r2"),) and raised.value.args[0] == "it failed"


def test_what_a_run_is_known_by_is_there_whether_it_is_kept_or_not(root: Path) -> None:
    call = Call(without=["user_params.rate", "user_params.notes"], secret=["user_params.at", "env.A"])
    given = {"user_params": {"lr": 0.1, "rate": 5, "notes": "of a file", "at": "of a file"}, "num_workers": 2}
    with calling(call):
        for keep, name in ((False, ""), (True, "r1")):
            run = Keeping("run", given, keep)
            assert run.about is None
            begun(run)
            assert run.about is not None and run.about.id == name and run.about.tasks == ["chief:0"]
            assert run.about.arguments["num_workers"] == 2 and run.about.versions["tensorflow"] == "2.20.0"
            assert run.hparams == {"lr": 0.1, "rate": 5}
