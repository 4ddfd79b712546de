"""The display of a job, from its beginning to its end."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.base import Progress
from akrunner.errors import ConfigError, ScriptFailedError, TaskFailure
from akrunner.notebook import live
from akrunner.notebook.jobs import JobCell
from akrunner.outcomes import failure
from tests.conftest import wait_for
from tests.unit.engines.test_base import stats
from tests.unit.notebook.kernel import Shown, kernel
from tests.unit.test_markup import read

__all__ = ["kernel"]


def progress(**fields: Any) -> Progress:
    told: dict[str, Any] = {"states": {"chief:0": "running"}, "reports": {"chief:0": {"loss": 0.5}}, **fields}
    return Progress(2.0, 10, 100, 0, 0, **told)


def ended(cell: JobCell, error: BaseException) -> None:
    cell.ended(failure(error))


def test_a_job_that_succeeds(kernel: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_FIRST", 0.0)
    monkeypatch.setattr(live, "_EVERY", 0.01)
    cell = JobCell("run t.py", answers=False)
    cell.start()
    wait_for(lambda: kernel.bundles)
    assert kernel.plain[0].startswith("run t.py: preparing, 0.0 s")
    cell.begun("r7")
    cell.progress(progress(warnings=["slow disk"], fed=True))
    cell.log("chief:0", "step 1")
    wait_for(lambda: "step 1" in kernel.bundles[-1]["text/html"])
    shown = read(kernel.bundles[-1]["text/html"])
    assert "running, 2.0 s" in shown and "loss 0.5" in shown and "slow disk[chief:0] step 1" in shown
    cell.ended({"ok": True, "exit_code": 0, "stats": vars(stats())})
    shown = read(kernel.bundles[-1]["text/html"])
    assert "run t.py done in 0.0 s" in shown and "chief:0 printed 1 linestep 1kept as r7" in shown


def test_a_job_that_fails_shows_the_lines_of_the_task_that_failed(kernel: Shown) -> None:
    cell = JobCell("train t.py", answers=False)
    cell.start()
    cell.progress(progress())
    cell.log("chief:0", "fine")
    cell.log("worker:0", "about to fail")
    ended(cell, ScriptFailedError("[worker:0] it raised\nmore", failure=TaskFailure("worker:0", "it raised")))
    shown = read(kernel.bundles[-1]["text/html"])
    assert ": [worker:0] it raised [AK520]worker:0 printed 1 lineabout to failchief:0" in shown and "failed after" in shown


def test_a_job_that_is_stopped(kernel: Shown) -> None:
    cell = JobCell("run t.py", answers=False)
    cell.start()
    cell.progress(progress())
    ended(cell, KeyboardInterrupt())
    assert "stopped after" in kernel.plain[-1]


def test_what_is_refused_at_once_has_only_its_error(kernel: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_FIRST", 1000.0)
    cell = JobCell("run t.py", answers=False)
    cell.start()
    ended(cell, ConfigError("num_workers=-1"))
    assert kernel.bundles == []
