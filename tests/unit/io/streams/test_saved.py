"""From which save a stream goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.io.streams.saved import Newest, newest_of
from akrunner.wire import saves

TASKS = ("chief:0", "worker:0")


def saved(folder: Path, task: str, number: int, at: Any, run_id: str = "mine", attempt: int = 0) -> None:
    where = Path(saves.folder_of(str(folder), task), saves.name_of(number))
    where.mkdir(parents=True, exist_ok=True)
    (where / saves.POSITION).write_text(
        json.dumps({"run_id": run_id, "attempt": attempt, **({"place": {"at": at}} if at is not None else {})})
    )


def test_the_newest_save_that_all_tasks_have(tmp_path: Path) -> None:
    assert newest_of(str(tmp_path), TASKS, True, "mine") == Newest()
    for task, number in (("chief:0", 1), ("chief:0", 2), ("worker:0", 1)):
        saved(tmp_path, task, number, number * 10)
    assert newest_of(str(tmp_path), TASKS, False, "mine") == Newest(1, {"at": 10})


def test_saves_of_an_earlier_job_count_only_if_it_goes_on(tmp_path: Path) -> None:
    for task in TASKS:
        saved(tmp_path, task, 1, 10, "other")
    assert newest_of(str(tmp_path), TASKS, False, "mine") == Newest()
    assert newest_of(str(tmp_path), TASKS, True, "mine") == Newest(1, {"at": 10})


def test_saves_that_say_no_place_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, "chief:0", 1, None)
    with pytest.raises(ConfigError, match="saves of a job over a table .*name another checkpoint_dir"):
        newest_of(str(tmp_path), TASKS[:1], True, "mine")
    for number, task in enumerate(TASKS):
        saved(tmp_path, task, 2, number)
    with pytest.raises(ConfigError, match="00000002 of chief:0, worker:0 are of different places"):
        newest_of(str(tmp_path), TASKS, True, "mine")
    (tmp_path / saves.FOLDER / "chief-0" / saves.name_of(2) / saves.POSITION).write_text("")
    with pytest.raises(ConfigError, match="00000002 is damaged"):
        newest_of(str(tmp_path), TASKS, True, "mine")


def test_saves_of_different_attempts_do_not_belong_together(tmp_path: Path) -> None:
    """The second attempt fails when the worker has saved, and the chief has not begun: its save is of the first attempt."""
    for task in TASKS:
        saved(tmp_path, task, 1, 10)
    saved(tmp_path, "chief:0", 2, 20)
    saved(tmp_path, "worker:0", 2, 25, attempt=1)
    assert newest_of(str(tmp_path), TASKS, False, "mine") == Newest(1, {"at": 10})
    saved(tmp_path, "chief:0", 2, 20, "other")
    saved(tmp_path, "worker:0", 2, 20)
    assert newest_of(str(tmp_path), TASKS, True, "mine") == Newest(1, {"at": 10}), "of another job, at the same place"
