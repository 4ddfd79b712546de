"""What of a detached job's course is told among the lines of its log, and what becomes of these lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from akrunner.detached import kept
from akrunner.detached.kept import Teller, apart
from akrunner.history.series import METRICS, PROGRESS, STATES


def put(folder: Path, name: str, *moments: dict[str, Any]) -> None:
    with (folder / name).open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in moments)


def report(seconds: float, task: str = "worker:0") -> dict[str, Any]:
    return {"task": task, "step": 1, "time_ns": int(seconds * 1e9), "loss": seconds}


def test_the_longer_it_runs_the_more_seldom_and_the_last_one_always(tmp_path: Path) -> None:
    told: list[str] = []
    teller = Teller(str(tmp_path), told.append)
    teller.tell()
    put(tmp_path, METRICS, *(report(tick / 10) for tick in range(10_000)), report(5, "worker:1"))
    put(
        tmp_path,
        STATES,
        {"task": "worker:0", "time_ns": 1, "state": "running"},
        {"task": "worker:0", "time_ns": 2, "state": "ended"},
    )
    teller.tell()
    times = [one["loss"] for one in map(json.loads, apart(told).files[METRICS]) if one["task"] == "worker:0"]
    assert times[:3] == [0.0, 0.1, 0.2] and 100 < len(times) < 600 and times[-1] - times[-2] > 15
    teller.end({"stats": {"rows_in": 3}, "nan": float("nan")})
    found = apart(told)
    assert json.loads(found.files[METRICS][-1])["loss"] == 999.9 and len(found.files[STATES]) == 2
    assert found.record == {"stats": {"rows_in": 3}, "nan": "nan"}


def test_a_line_that_is_not_whole_waits_for_its_end(tmp_path: Path) -> None:
    told: list[str] = []
    teller = Teller(str(tmp_path), told.append)
    text = json.dumps(report(1))
    (tmp_path / METRICS).write_text(f"no json\n{text[:9]}")
    teller.tell()
    assert told == []
    (tmp_path / METRICS).write_text(f"no json\n{text}\n")
    teller.tell()
    assert told == [f"akrunner.kept {METRICS} {text}"]


def test_a_log_that_others_use_too_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_MOST", 200)
    told: list[str] = []
    teller = Teller(str(tmp_path), told.append)
    put(tmp_path, PROGRESS, *({"time_ns": second * 10**9, "rows_in": 5} for second in range(50)))
    teller.end({})
    assert len(told) < 8 and told[-1] == "akrunner.kept run.json {}", "its end is told in any case"


def test_what_tasks_print_is_theirs_and_makes_no_file(tmp_path: Path) -> None:
    told = apart([
        "[worker:0] akrunner.kept run.json {}", "warning: odd", "[worker:0] ] x", "akrunner.kept /etc/passwd {}", "akrunner.kept run.json [1",
    ])  # fmt: skip
    assert told.logs == {"worker:0": ["akrunner.kept run.json {}", "] x"], "host:0": ["warning: odd"]}
    assert told.files == {} and told.record == {}
