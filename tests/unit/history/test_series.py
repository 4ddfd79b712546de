"""Values over time: each is there at once, and very many become fewer."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from akrunner.history import series
from akrunner.history.series import METRICS, Series
from tests.conftest import no_file_longer_than


def test_what_is_added_is_there_at_once(tmp_path: Path) -> None:
    made = Series(str(tmp_path), METRICS)
    assert list(series.read(str(tmp_path), METRICS)) == []
    made.add({"step": 1, "loss": float("inf")})
    made.add({"step": 2, "loss": 0.5})
    assert list(series.read(str(tmp_path), METRICS)) == [{"step": 1, "loss": "inf"}, {"step": 2, "loss": 0.5}]
    made.close()


def test_of_very_many_every_second_is_kept_then_every_fourth(tmp_path: Path) -> None:
    line = len(json.dumps({"step": 1})) + 1
    made = Series(str(tmp_path), METRICS, most=10 * line)
    for step in range(100):
        made.add({"step": step})
    made.close()
    steps = [one["step"] for one in series.read(str(tmp_path), METRICS)]
    gaps = [after - before for before, after in itertools.pairwise(steps)]
    assert steps[0] == 0 and gaps == sorted(gaps) and set(gaps) >= {1, 2, 4} and len(steps) < 40


def test_a_disk_that_takes_nothing_ends_it_and_a_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    made = Series(str(tmp_path), METRICS)
    with no_file_longer_than(20):
        for step in range(10):
            made.add({"step": step})
    assert isinstance(made.error, OSError)
    assert list(series.read(str(tmp_path), METRICS)) == [{"step": 0}]


def test_lines_that_are_none_of_ours_are_left_out(tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text('{"step": 1}\n[]\nnonsense\n{"step": 2}\n{"step": 3')
    assert [one["step"] for one in series.read(str(tmp_path), METRICS)] == [1, 2]


def test_the_last_moment_is_taken_even_if_most_are_left_out(tmp_path: Path) -> None:
    made = Series(str(tmp_path), METRICS, most=10)
    for step in range(20):
        made.add({"step": step})
    made.add({"step": "last"}, always=True)
    made.close()
    steps = [one["step"] for one in series.read(str(tmp_path), METRICS)]
    assert len(steps) < 10 and steps[-1] == "last"


def test_of_tasks_that_take_turns_none_is_left_out(tmp_path: Path) -> None:
    made = Series(str(tmp_path), METRICS, most=200)
    for step in range(100):
        for task in ("chief:0", "worker:0"):
            made.add({"task": task, "step": step}, task)
    made.close()
    found = [one["task"] for one in series.read(str(tmp_path), METRICS)]
    assert len(found) < 60 and found[-6:].count("chief:0") == found[-6:].count("worker:0") == 3


@pytest.mark.parametrize("size", [0, 100, 70_000, 300_000])
@pytest.mark.parametrize("end", ["", '{"at": ', "\n"])
def test_the_last_moment_is_read_from_the_end(size: int, end: str, tmp_path: Path) -> None:
    assert series.last(str(tmp_path), METRICS) is None
    text = f'{{"at": 1}}\n{{"at": 2, "x": "{"x" * size}"}}\n{end}'
    (tmp_path / METRICS).write_text(text)
    assert series.last(str(tmp_path), METRICS) == list(series.read(str(tmp_path), METRICS))[-1]


def test_a_line_that_lacks_its_numbers_is_left_out(tmp_path: Path) -> None:
    lines = [{"time_ns": 1, "rows_in": 2, "rows_out": 3}, {"time_ns": 2}, {"time_ns": 3, "rows_in": "4", "rows_out": 3}]
    (tmp_path / series.PROGRESS).write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "[" * 100_000 + "\n")
    assert list(series.read(str(tmp_path), series.PROGRESS)) == [lines[0]] == [series.last(str(tmp_path), series.PROGRESS)]
