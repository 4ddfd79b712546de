"""Runs as they are found: which, in what state, with what logs."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner import detached, runs
from akrunner.detached import Status
from akrunner.errors import ClusterError, ConfigError
from akrunner.history import record, series
from akrunner.history.logs import LogCopy
from akrunner.runs import looking
from tests.unit.runs.conftest import Make

GONE = {**record.host(), "started": "1"}
STATS = {"time_ns": 1, "rows_in": 3, "rows_out": 2}


def printed(path: str, task: str, text: bytes) -> None:
    copy = LogCopy(path, task)
    copy.write(text)
    copy.close()


def test_the_newest_comes_first_and_only_failed_ones_if_they_are_wanted(make: Make) -> None:
    make(state=record.FAILED, error="JobError", message="no")
    make()
    make(state=record.RUNNING, host=GONE, ended=None)
    assert [(one.id, one.state) for one in akrunner.runs.listed()] == [("r3", "lost"), ("r2", "succeeded"), ("r1", "failed")]
    assert [one.id for one in runs.listed(failed=True)] == ["r3", "r1"] and [one.id for one in runs.listed(limit=1)] == ["r3"]
    with pytest.raises(ConfigError, match="limit=0") as caught:
        runs.listed(limit=0)
    assert "akrunner explain" in str(caught.value.__notes__[-1])


def test_before_the_first_run_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert runs.listed() == [] and runs.prune(days=0) == [] and not (tmp_path / "akrunner").exists()
    with pytest.raises(ConfigError, match="no run is kept yet on this machine"):
        runs.get("last")
    with pytest.raises(ConfigError, match="run must be the name of a run, such as last, not int"):
        runs.get(3)  # type: ignore[arg-type]


def test_a_run_is_read_again(make: Make) -> None:
    path = make(state=record.RUNNING, ended=None)
    found = runs.get("last")
    assert found.state == record.RUNNING and repr(found).startswith("<Run r1: running; run t.py; ")
    record.write(
        path,
        record.Record(
            **{**{name: vars(found)[name] for name in vars(found) if name not in ("path", "silent")}, "state": record.STOPPED}
        ),
    )
    assert runs.get(found).state == record.STOPPED


def test_a_record_that_cannot_be_read_is_told_and_not_listed(make: Make) -> None:
    Path(make(), record.FILE).write_text("{")
    make()
    # one that is being made has no record yet
    Path(make(), record.FILE).unlink()
    make(stats={})
    found = runs.listed()
    assert [one.id for one in found] == ["r2"] and list(found.damaged) == ["r4", "r1"]
    assert found.damaged["r4"] == "its field stats is damaged"
    with pytest.raises(ConfigError, match="run 'r1': its record cannot be read") as caught:
        runs.get("r1")
    assert caught.value.code == "AK172"


def test_rows_and_metrics_of_a_run_that_has_not_ended_are_those_of_its_files(make: Make) -> None:
    path = make(state=record.RUNNING, ended=None)
    assert runs.get("last").rows is None
    for name, values in (
        (series.METRICS, {"task": "chief:0", "step": 1, "time_ns": 2, "loss": 0.5}),
        (series.PROGRESS, STATS),
    ):
        made = series.Series(path, name)
        made.add(values)
        made.close()
    found = runs.get("last")
    assert found.rows == (3, 2) and found.progress == [STATS] and found.metrics == {"chief:0": {"step": 1, "loss": 0.5}}
    assert found.reports[0]["time_ns"] == 2
    made = series.Series(path, series.PROGRESS)
    made.add({"time_ns": 3})
    made.close()
    assert runs.get("last").rows == (3, 2)
    make(stats={**STATS, "rows_in": 7})
    assert runs.get("last").rows == (7, 2)


def test_logs_of_all_tasks_and_of_one(make: Make) -> None:
    path = make(tasks=["chief:0", "worker:0"])
    printed(path, "worker:0", b"w\n")
    printed(path, "chief:0", b"c1\nc2")
    assert list(runs.logs("last")) == ["[chief:0] c1", "[chief:0] c2", "[worker:0] w"]
    assert list(runs.get("last").logs("worker:0")) == ["w"]
    with pytest.raises(ConfigError, match="task='ps:0': this run had chief:0, worker:0"):
        runs.logs("last", "ps:0")


def test_logs_are_followed_until_the_run_has_ended(make: Make) -> None:
    path = make(state=record.RUNNING, ended=None)
    copy = LogCopy(path, "chief:0")
    copy.write(b"one\n")
    lines = runs.logs("last", "chief:0", follow=True)
    assert next(lines) == "one"

    def ends() -> None:
        copy.write(b"two\nthree")
        copy.close()
        found = runs.get("last")
        record.write(
            path,
            record.Record(
                **{
                    name: value
                    for name, value in {**vars(found), "state": record.SUCCEEDED}.items()
                    if name not in ("path", "silent")
                }
            ),
        )

    thread = threading.Thread(target=ends)
    thread.start()
    assert list(lines) == ["two", "three"]
    thread.join()


def test_logs_of_a_run_that_another_machine_has_given_up_end(make: Make) -> None:
    path = make(state=record.RUNNING, ended=None, host={**record.host(), "machine": "elsewhere"})
    assert runs.get("last").state == record.RUNNING
    printed(path, "chief:0", b"one\n")
    for folder, _, names in os.walk(path):
        for name in (*names, "."):
            os.utime(os.path.join(folder, name), (1000.0, 1000.0))
    found = runs.get("last")
    assert (found.state, found.ended) == (record.LOST, 1000.0)
    assert list(runs.logs("last", follow=True)) == ["[chief:0] one"]


DETACHED = {"job": "0abc", "master": "h:1", "name": "akrunner t.py [ab]"}


@pytest.mark.parametrize(
    ("state", "ours"), [("FINISHED", "succeeded"), ("FAILED", "failed"), ("CANCELED", "stopped"), ("RUNNING", "submitted")]
)
def test_a_cluster_says_what_became_of_a_detached_job(
    state: str, ours: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Status("0abc", DETACHED["name"], state, 12.0, 1, 0)
    asked: list[str] = []
    monkeypatch.setattr(detached, "listed", lambda master, _: asked.append(master) or [job])
    monkeypatch.setattr(
        detached, "status", lambda *_: Status(**{**vars(job), "error": "ScriptFailedError: it divided by zero"})
    )
    for _ in range(2):
        make(state=record.SUBMITTED, ended=None, detached=DETACHED, engine="flink")
    found = runs.listed()
    # each cluster once
    assert [one.state for one in found] == [ours] * 2 and asked == ["h:1"]
    assert found[0].message == ("it divided by zero" if ours == "failed" else "")
    assert found[0].error == ("ScriptFailedError" if ours == "failed" else "")
    assert found[0].error_code == (found[0].short_code if ours == "failed" else "") and bool(found[0].error_code) == (
        ours == "failed"
    )
    # what has ended is known from now on, also when the cluster has forgotten it
    monkeypatch.setattr(detached, "listed", lambda master, _: [])
    assert runs.get("last").state == ours


def test_a_cluster_that_does_not_answer_is_no_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(master: str, seconds: float) -> Any:
        assert seconds <= 2
        raise ClusterError("nobody answers")

    monkeypatch.setattr(detached, "listed", none)
    make(state=record.SUBMITTED, ended=None, detached=DETACHED)
    assert runs.get("last").state == record.SUBMITTED and runs.get("last").silent == "h:1"


def test_the_lines_of_a_detached_job_come_from_its_cluster(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "listed", lambda master, _: [])
    lines = ["[chief:0] a", "3 s: 5 rows in", "[worker:0] b"]
    monkeypatch.setattr(detached, "logs", lambda master, job, follow: iter(lines if (master, job) == ("h:1", "0abc") else []))
    make(state=record.SUBMITTED, ended=None, detached=DETACHED, tasks=["chief:0", "worker:0"])
    with pytest.raises(ConfigError, match="this run had chief:0, worker:0"):
        runs.logs("last", "worker:9")
    assert list(runs.logs("last")) == lines and list(runs.logs("last", "worker:0")) == ["b"]


def test_old_runs_are_removed(make: Make) -> None:
    for _ in range(2):
        make()
    make(state=record.RUNNING, ended=None)
    assert looking.prune() == [] and looking.prune(days=0) == ["r1", "r2"]
    with pytest.raises(ConfigError, match="size=big") as caught:
        looking.prune(size="big")
    assert "akrunner explain" in str(caught.value.__notes__[-1])


def test_numbers_that_json_has_not_are_numbers_again(make: Make) -> None:
    path = make(metrics={"chief:0": {"loss": float("nan"), "step": 3}})
    made = series.Series(path, series.METRICS)
    made.add({"task": "chief:0", "loss": float("-inf")})
    made.close()
    found = runs.get("last")
    assert found.reports == [{"task": "chief:0", "loss": float("-inf")}] and str(found.metrics["chief:0"]["loss"]) == "nan"
    make(metrics=found.metrics, began=found.began, ended=found.ended)
    assert runs.diff("r1", "r2") == []
