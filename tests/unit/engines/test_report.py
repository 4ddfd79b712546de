"""Whose fault a failure is."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from akrunner.cluster.failure import FailureKind
from akrunner.engines import report
from akrunner.engines.supervision.states import Failed, LastWord, TaskRecord, TaskState
from akrunner.launch.process import Exit
from akrunner.spec import TaskSpec

CHIEF = TaskSpec("chief", 0)


@pytest.mark.parametrize(
    "what, kind, words",
    [
        ("raised OSError in main(): cannot spool a table's rows: No space left on device: '/x'", "read", "cannot spool a table's rows: No space"),
        ("raised UnknownError in main(): OSError: cannot spool a table's rows: Input/output error", "read", "cannot spool a table's rows: Inp"),
        ("raised OSError while receiving rows: [Errno 28] No space left on device", "read", "raised OSError while receiving rows"),
        ("raised OSError while receiving rows: [Errno 122] Disk quota exceeded", "read", "raised OSError while receiving rows"),
        ("raised OSError in main(): [Errno 28] No space left on device: '/x'", "script", "raised OSError in main()"),
        ("raised ValueError in main(): 5", "script", "raised ValueError in main(): 5"),
    ],
)  # fmt: skip
def test_a_disk_on_which_rows_wait_is_not_the_scripts_fault(what: str, kind: str, words: str) -> None:
    failed = report.with_full_disks(Failed(FailureKind.SCRIPT, what, 1, "Traceback"), {})
    assert (
        failed.kind is FailureKind(kind)
        and failed.what.startswith(words)
        and failed.traceback == ("" if kind == "read" else "Traceback")
    )


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_free", lambda path: 0)
    what = "raised OSError in main(): cannot spool a table's rows: No space left on device: '/x'"
    told = report.with_full_disks(Failed(FailureKind.SCRIPT, what, 1), {str(tmp_path): "TMPDIR, or work_dir="}).what
    assert told.startswith("cannot spool a table's rows: No space left") and told.endswith("(TMPDIR, or work_dir=)")


def test_a_stalled_job_says_where_the_log_is_of_whoever_had_not_moved() -> None:
    chief, worker = TaskSpec("chief", 0), TaskSpec("worker", 0)
    tasks = {chief: TaskRecord(TaskState.FINISHED), worker: TaskRecord(TaskState.RUNNING)}
    error = report.stall_error("nothing has moved", tasks, "/kept")
    assert error.failure is not None and error.failure.task == "worker:0" and error.report == "nothing has moved"
    assert str(error) == (
        "nothing has moved\n(stall_timeout= (--stall-timeout) waits longer (0: for ever), stall_action='warn' (--stall-action warn) goes on)\n"
        f"full log: {error.failure.log_path}"
    )
    assert error.failure.log_path.startswith("/kept/tasks/worker") and error.work_dir == "/kept"


@pytest.mark.parametrize("kind", FailureKind)
def test_a_job_ends_with_the_exception_of_its_first_failure(kind: FailureKind) -> None:
    log = types.SimpleNamespace(tail=lambda lines: "")
    session: Any = types.SimpleNamespace(process=types.SimpleNamespace(exit=None), log=log, script="s.py")
    error = report.job_error([(CHIEF, Failed(kind, "has failed", 1))], {CHIEF: session}, {}, "")
    assert type(error) is kind.error and str(error).startswith("[chief:0] has failed")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (TaskState.RUNNING, "was in main() and was stopped"),
        (TaskState.FINISHED, "was done"),
        (TaskState.ENDED, "had ended"),
    ],
)
def test_what_had_come_to_its_end_was_not_stopped(state: TaskState, words: str) -> None:
    assert report._left_at(state) == words


def test_a_timeout_counts_the_tasks_that_did_the_same() -> None:
    job: Any = types.SimpleNamespace(supervision=types.SimpleNamespace(timeout=5.0))
    states = {TaskSpec("worker", n): TaskRecord(TaskState.RUNNING) for n in range(64)}
    tasks = {CHIEF: TaskRecord(TaskState.READY), **states}
    told = "the job took longer than timeout=5 s and was stopped: [chief:0] waiting for the others; 64 tasks in main()"
    assert str(report.timeout_error(job, {}, tasks, "", False)) == told
    assert (
        str(report.timeout_error(job, {}, tasks, "", True)) == f"{told}; the host waited for the source (--input) to give rows"
    )


def test_notes_of_a_task_are_shown_within_bounds() -> None:
    long = "an exit handler raised " + "x" * 10_000
    word = LastWord(notes=["a", long, *["b"] * 200])
    session: Any = types.SimpleNamespace(process=types.SimpleNamespace(exit=Exit(0, None, 1, 1.0, 1)), left=[], log=None)
    told = report._warnings(CHIEF, TaskRecord(TaskState.FINISHED, word=word), session)
    assert told[0] == "[chief:0] a" and told[1] == f"[chief:0] {long[:4000]}... (and 6,023 more characters)"
    assert len(told) == 101 and told[-1] == "[chief:0] there are 102 more such notes"
