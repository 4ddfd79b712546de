"""A task starts in a warm worker where there is one that fits, else cold, and it is said why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.spares import starts
from akrunner.spares.starts import OFF, Starts, relative
from akrunner.spares.wanted import Wanted


class Pool:
    """Gives the spares it has, then says why not. Attributes: noted, asked: what was wanted; names: of files beside the script."""

    def __init__(self, why: str = "none was ready", *spares: Any, preload: Sequence[str] = ("tensorflow",)) -> None:
        self._why, self._spares, self.preload = why, list(spares), preload
        self.noted: list[Wanted] = []
        self.asked: list[Wanted] = []
        self.names: list[list[str]] = []

    def note(self, wanted: Wanted) -> str:
        self.noted.append(wanted)
        return "of another kind"

    def take(self, wanted: Wanted, names: list[str], noted: str) -> tuple[Any, str]:
        assert noted == "of another kind"
        self.asked.append(wanted)
        self.names.append(names)
        return (self._spares.pop(0), "") if self._spares else (None, self._why)


def spare(mark: str, began: float) -> Any:
    return SimpleNamespace(mark=mark, began=began, order=lambda env, cwd, bundle: ("warm", mark, env["A"], cwd, bundle))


class Here:
    """What there is on this machine. Attributes: pools; kept: by another process; notebook; after: what a notebook's next job may want."""

    def __init__(self) -> None:
        self.pools: list[Pool] = []
        self.kept: Pool | None = None
        self.notebook = False
        self.after: list[Any] = []
        self.looked = 0


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    found = Here()
    monkeypatch.delenv(OFF, raising=False)
    registry = SimpleNamespace(
        pools=lambda python: found.pools,
        in_notebook=lambda: found.notebook,
        after_job=lambda wants: found.after.append(list(wants)),
    )

    def take(wanted: Wanted, names: list[str]) -> tuple[Any, str]:
        assert found.kept is not None
        return found.kept.take(wanted, names, "of another kind")

    def hazard(cwd: str) -> str:
        found.looked += 1
        return "train.py forks before it imports" if os.path.exists(os.path.join(cwd, "hazard")) else ""

    monkeypatch.setattr(starts, "registry", registry)
    monkeypatch.setattr(starts, "client", SimpleNamespace(is_there=lambda: found.kept is not None, take=take))
    monkeypatch.setattr(starts, "hazard", hazard)
    monkeypatch.setattr(starts, "worker_process", lambda python, bundle, env, cwd: ("cold", python, bundle, env["A"], cwd))
    return found


@pytest.fixture
def attempt() -> Starts:
    return Starts("/python", "/overlay", {"T": "1"}, 100.0)


def start(attempt: Starts, folder: Path, task: str = "worker:0", **env: str) -> Any:
    return attempt.start(task, {"A": "1", **env}, [3], str(folder), "/bundle.zip")


def test_where_nobody_keeps_any_it_starts_cold_without_a_word(here: Here, attempt: Starts, tmp_path: Path) -> None:
    assert start(attempt, tmp_path) == ("cold", "/python", "/bundle.zip", "1", str(tmp_path))
    assert attempt.told == {"worker:0": "cold"} and attempt.marks == [] and attempt.since == 100.0
    assert here.looked == 0, "nobody reads the script for it"


def test_a_warm_worker_that_fits_is_taken(here: Here, attempt: Starts, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    pool = Pool("none was ready", spare("m1", 50.0), spare("m2", 70.0))
    here.pools = [pool]
    assert start(attempt, tmp_path) == ("warm", "m1", "1", str(tmp_path), "/bundle.zip")
    assert start(attempt, tmp_path, "worker:1")[1] == "m2"
    assert start(attempt, tmp_path, "worker:2")[0] == "cold"
    assert attempt.told == {"worker:0": "warm", "worker:1": "warm", "worker:2": "cold: none was ready"}
    assert attempt.marks == ["m1", "m2"] and attempt.since == 50.0
    wanted = pool.asked[0]
    assert (wanted.python, wanted.overlay, wanted.cpus, wanted.task_env) == ("/python", "/overlay", (3,), {"T": "1"})
    assert wanted.env == {"A": "1"} and pool.names[0] == ["train.py"] and pool.noted == pool.asked
    assert here.looked == 1, "the script of all tasks is the same"


def test_every_pool_is_asked_and_the_first_ones_reason_is_told(here: Here, attempt: Starts, tmp_path: Path) -> None:
    here.pools = [Pool("its limits are others"), Pool("none was ready")]
    start(attempt, tmp_path)
    assert attempt.told == {"worker:0": "cold: its limits are others"} and len(here.pools[1].asked) == 1
    assert len(here.pools[0].noted) == 1 and here.pools[1].noted == []
    here.pools[1] = Pool("", spare("m", 200.0))
    assert start(attempt, tmp_path)[0] == "warm" and attempt.since == 100.0, "the job is older"


def test_another_process_may_keep_some(here: Here, attempt: Starts, tmp_path: Path) -> None:
    here.kept = Pool("it was stopped", spare("m", 1.0))
    assert start(attempt, tmp_path)[0] == "warm"
    assert start(attempt, tmp_path, "worker:1")[0] == "cold" and attempt.told["worker:1"] == "cold: it was stopped"
    here.pools = [Pool("of this process")]
    start(attempt, tmp_path, "worker:2")
    assert attempt.told["worker:2"] == "cold: of this process" and len(here.kept.asked) == 2


def test_a_script_that_needs_a_cold_start_has_one(here: Here, attempt: Starts, tmp_path: Path) -> None:
    (tmp_path / "hazard").touch()
    here.pools = [Pool("", spare("m", 1.0))]
    assert start(attempt, tmp_path)[0] == "cold" and here.pools[0].asked == []
    assert attempt.told == {"worker:0": "cold: train.py forks before it imports"}
    here.pools = [Pool("", spare("m", 1.0), preload=())]
    assert start(attempt, tmp_path)[0] == "warm", "those that have imported nothing are as a cold start"


def test_switched_off(here: Here, attempt: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here.pools = [Pool("", spare("m", 1.0))]
    monkeypatch.setenv(OFF, "0")
    assert start(attempt, tmp_path)[0] == "cold" and attempt.told == {"worker:0": "cold"}
    monkeypatch.setenv(OFF, "1")
    assert start(attempt, tmp_path)[0] == "warm"


def test_a_notebook_is_told_what_the_next_job_may_want(here: Here, attempt: Starts, tmp_path: Path) -> None:
    here.notebook = True
    start(attempt, tmp_path)
    start(attempt, tmp_path, "worker:1")
    attempt.ended()
    assert [[one.python for one in wants] for wants in here.after] == [["/python", "/python"]]
    assert attempt.told == {"worker:0": "cold", "worker:1": "cold"}


def test_a_notebook_wants_none_for_a_script_that_needs_a_cold_start(here: Here, attempt: Starts, tmp_path: Path) -> None:
    here.notebook = True
    (tmp_path / "hazard").touch()
    start(attempt, tmp_path)
    attempt.ended()
    assert here.after == [[]] and attempt.told == {"worker:0": "cold"}


@pytest.mark.parametrize(
    "path, why",
    [
        ("", ""),
        ("/a:/b", ""),
        (".:/a:", ""),
        ("/a:lib:other", "PYTHONPATH has 'lib', which is another directory for each task"),
        ("./lib", "PYTHONPATH has './lib', which is another directory for each task"),
    ],
)
def test_a_relative_path_of_modules_is_another_directory_for_each_task(path: str, why: str) -> None:
    assert relative(path) == why


def test_such_a_path_means_a_cold_start(here: Here, attempt: Starts, tmp_path: Path) -> None:
    here.pools = [Pool("", spare("m", 1.0))]
    assert start(attempt, tmp_path, PYTHONPATH="lib")[0] == "cold" and here.looked == 0
    assert attempt.told["worker:0"].startswith("cold: PYTHONPATH has 'lib'")
