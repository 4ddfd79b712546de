"""What to type to run the task of a failed job again by itself: `akrunner replay`, or first what keeps the rows that it needs."""

from __future__ import annotations

import contextlib
import shlex

import akrunner

#: verbs whose rows are there again when the command is given again
_REPEATED = ("run", "train")


def advice(error: BaseException) -> str:
    """Return a line that says what to type to run the task again that failed first, "" if it was not the script that failed, or nothing can."""
    if not isinstance(error, akrunner.ScriptFailedError | akrunner.TaskDiedError) or error.failure is None:
        return ""
    from akrunner.checkup.job import asks_for_tables

    task, kept = error.failure.task, getattr(error, "run", None)
    asks = asks_for_tables(error.work_dir, task) if error.work_dir else None
    if asks is False:
        return f"to replay [{task}] in the foreground: akrunner replay {shlex.quote(str(error.work_dir))} --task {task}"
    if asks is None and kept and _repeated(kept):
        return f"to replay [{task}] in the foreground, keep the work dir: akrunner rerun {kept} --debug"
    return ""


def _repeated(run: str) -> bool:
    """Whether `akrunner rerun` starts a run again with nothing but its name."""
    from akrunner import runs

    # the record may be gone already, or be damaged
    with contextlib.suppress(akrunner.AkrunnerError):
        found = runs.get(run)
        return found.verb in _REPEATED and not found.left_out
    return False
