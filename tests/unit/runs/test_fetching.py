"""What a detached job's run has from its cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.detached import lines
from akrunner.errors import JobManagerLostError
from akrunner.history import logs, record, series
from akrunner.runs.fetching import fetched
from akrunner.runs.looking import Run

LINES = [
    'akrunner.kept metrics.jsonl {"task": "chief:0", "step": 3, "time_ns": 5, "loss": 0.5}',
    'akrunner.kept progress.jsonl {"time_ns": 5, "attempt": 0, "rows_in": 7, "rows_out": 2}',
    "[chief:0] hello",
    "done in 3 s",
]
END = f"akrunner.kept run.json {json.dumps({'stats': {'rows_in': 7, 'rows_out': 2}, 'state': 'failed', 'id': 'r99', 'ended': 71.0})}"


def run(folder: Path, **more: Any) -> Run:
    given = {"detached": {"job": "abc", "master": "host:1", "name": "x"}, "state": "succeeded", "tasks": ["chief:0"], **more}
    return Run(1, "r4", "run", began=1.0, path=str(folder), **given)


def test_it_is_kept_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "whole", lambda master, job, follow: iter([*LINES, END]))
    for _ in range(2):
        found = fetched(run(tmp_path))
    assert found.rows == (7, 2) and found.metrics == {"chief:0": {"step": 3, "loss": 0.5}}
    assert found.ended == 71.0 and (found.id, found.state) == ("r4", "succeeded"), (
        "who it is and how it ended is known from elsewhere"
    )
    assert list(logs.LogReader(str(tmp_path), "chief:0").lines(True)) == ["hello"] and logs.tasks(str(tmp_path)) == [
        "chief:0",
        "host:0",
    ]
    assert [one["rows_in"] for one in series.read(str(tmp_path), series.PROGRESS)] == [7]
    assert record.read(str(tmp_path)).stats == {"rows_in": 7, "rows_out": 2}


def test_one_that_still_runs_has_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "whole", lambda master, job, follow: iter(LINES))
    found = fetched(run(tmp_path, state="submitted"))
    assert found.metrics["chief:0"]["loss"] == 0.5 and found.stats is None and not (tmp_path / record.FILE).exists()


def test_a_cluster_that_is_gone_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(master: str, job: str, follow: bool) -> Iterator[str]:
        raise JobManagerLostError("gone")
        yield ""

    monkeypatch.setattr(lines, "whole", gone)
    one = run(tmp_path)
    assert fetched(one) == one and fetched(run(tmp_path, detached=None)).detached is None
    assert list(tmp_path.iterdir()) == []
