"""What an engine writes of a run that is kept, and what it says if it cannot."""

from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path

import pytest

from akrunner.engines.base import Progress, TaskProgress
from akrunner.engines.kept import KeptRun
from akrunner.history import series
from akrunner.history.logs import LogReader
from akrunner.spec import TaskSpec
from tests.conftest import no_file_longer_than

TASK = TaskSpec("worker", 0)
PROGRESS = Progress(1.5, 10, 100, 5, 50, {"worker:0": "main"}, {}, tasks={"worker:0": TaskProgress(10, 5)})


def test_logs_reports_and_progress_are_written(tmp_path: Path) -> None:
    kept = KeptRun(str(tmp_path))
    log = kept.log(TASK, 0)
    assert log is not None
    log(b"printed\n")
    kept.report({"task": "worker:0", "step": 1, "loss": 0.5})
    kept.sample(lambda: PROGRESS, lambda: {"rss": {"worker:0": 7}})
    # the next one comes later, but the last one in any case
    kept.sample(lambda: PROGRESS, lambda: {})
    kept.sample(lambda: PROGRESS, lambda: {}, last=True)
    assert kept.end_attempt() == []
    kept.close()
    assert list(LogReader(str(tmp_path), "worker:0").lines(True)) == ["printed"]
    assert [one["loss"] for one in series.read(str(tmp_path), series.METRICS)] == [0.5]
    first, last = series.read(str(tmp_path), series.PROGRESS)
    assert first["rows_in"] == 10 and first["states"] == {"worker:0": "main"} and first["rss"] == {"worker:0": 7}
    assert first["task_rows_out"] == {"worker:0": 5}
    assert "rss" not in last


def test_a_job_that_runs_gives_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("akrunner.engines.kept.time.monotonic", lambda: now)
    kept = KeptRun(str(tmp_path))
    kept.sample(lambda: PROGRESS, lambda: {})
    for seconds, is_told in ((59.0, False), (61.0, True)):
        os.utime(tmp_path, (1.0, 1.0))
        now = 1000.0 + seconds
        kept.sample(lambda: PROGRESS, lambda: {})
        assert (tmp_path.stat().st_mtime > 1.0) is is_told
    kept.close()


def test_of_a_run_that_is_not_kept_nothing_is_asked() -> None:
    kept = KeptRun()
    assert kept.log(TASK, 0) is None
    kept.report({})
    kept.sample(lambda: 1 / 0, lambda: {}, last=True)  # type: ignore[arg-type, return-value]
    assert kept.end_attempt() == []
    kept.close()


def test_a_full_disk_is_a_warning_once(tmp_path: Path) -> None:
    kept = KeptRun(str(tmp_path))
    with no_file_longer_than(4):
        for attempt in range(2):
            log = kept.log(TASK, attempt)
            assert log is not None
            log(b"printed\n")
            kept.report({"task": "worker:0"})
            told = kept.end_attempt()
            assert len(told) == (2 if attempt == 0 else 0)
            if told:
                assert told[0].startswith(
                    "the log of worker:0 is not kept whole with this run: the file would be larger than allowed"
                )
    kept.close()


def test_what_tasks_do_is_kept_when_it_changes(tmp_path: Path) -> None:
    kept = KeptRun(str(tmp_path))
    kept.begin_attempt(0)
    for state in ("starting", "starting", "running"):
        kept.states({"worker:0": state, "ps:0": "starting"})
    kept.begin_attempt(1)
    kept.states({"worker:0": "starting", "ps:0": "starting"})
    kept.close()
    told = [(one["attempt"], one["task"], one["state"]) for one in series.read(str(tmp_path), series.STATES)]
    assert told == [
        (0, "worker:0", "starting"),
        (0, "ps:0", "starting"),
        (0, "worker:0", "running"),
        (1, "worker:0", "starting"),
        (1, "ps:0", "starting"),
    ]


def test_a_short_job_is_looked_at_more_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("akrunner.engines.kept.time.monotonic", lambda: now)
    kept = KeptRun(str(tmp_path))
    for _ in range(1000):
        now += 0.1
        moment = dataclasses.replace(PROGRESS, seconds=now - 1000.0)
        kept.sample(lambda moment=moment: moment, lambda: {})  # type: ignore[misc]
    kept.close()
    moments = [one["seconds"] for one in series.read(str(tmp_path), series.PROGRESS)]
    gaps = [after - before for before, after in itertools.pairwise(moments)]
    assert len([moment for moment in moments if moment < 2]) == 19 and max(gaps) < 1.15 and 100 < len(moments) < 160
