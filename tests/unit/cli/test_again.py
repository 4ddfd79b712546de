"""What the error of a failed script says to type, so that its task runs again by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akrunner.cli.again import advice
from akrunner.errors import ConfigError, JobTimeoutError, ScriptFailedError, TaskDiedError, TaskFailure
from tests.unit.runs.conftest import Make, make

__all__ = ["make"]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A work dir as a job keeps it."""
    folder = tmp_path / "a job"
    (folder / "tasks" / "worker-0").mkdir(parents=True)
    (folder / "tasks" / "worker-0" / "context.json").write_text("{}")
    return folder


def failed(kind: type[Any] = ScriptFailedError, folder: Path | None = None, run: str | None = None) -> Any:
    error = kind("x", failure=TaskFailure("worker:0", "raised"), work_dir=str(folder) if folder else None)
    error.run = run
    return error


@pytest.mark.parametrize("kind", [ScriptFailedError, TaskDiedError])
def test_a_task_whose_directory_was_kept_can_be_replayed_at_once(kind: type[Any], kept: Path) -> None:
    line = f"to replay [worker:0] in the foreground: akrunner replay '{kept}' --task worker:0"
    assert advice(failed(kind, kept, "r1")) == line
    (kept / "tasks/worker-0/context.json").write_text('{"tables": {"inputs": ["t"]}}')
    assert advice(failed(kind, kept, "r1")) == "", "it asks for tables, and nobody would answer"


def test_another_one_when_its_run_is_repeated(kept: Path, make: Make) -> None:
    (kept / "tasks/worker-0/context.json").unlink()
    make(verb="train")
    line = "to replay [worker:0] in the foreground, keep the work dir: akrunner rerun r1 --debug"
    assert advice(failed(folder=kept, run="r1")) == advice(failed(run="r1")) == line
    make(verb="stream")
    make(left_out={"source": "it was a frame"})
    for run in ("r2", "r3", "r4", None):
        assert advice(failed(run=run)) == "", run


def test_where_the_script_has_not_failed_there_is_nothing_to_replay(kept: Path) -> None:
    assert [advice(one) for one in (failed(JobTimeoutError, kept), ScriptFailedError("x"), ConfigError("x"))] == ["", "", ""]
