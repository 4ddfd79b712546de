"""The record of a job, which is kept beside its logs in `job.json`: for `akrunner replay` and `akrunner doctor WORK_DIR`.

::

    begun       interpreter, tasks, the process that runs the job    written when the directory is made
    succeeded   the job's stats, and the result of each task         put over `begun` when the job has ended
    failed      the exception: which task failed first and why, what the others did;    put over `begun` likewise
                how the tasks that could still report it read their input

It holds numbers, names and error messages. It does not hold the parameters and the environment of the job, as there may
be secrets in them.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from akrunner.engines.base import Outcome
from akrunner.errors import TaskFailure
from akrunner.foreign import redacted
from akrunner.spec import JobSpec
from akrunner.wire.ending import started

RUNNING, SUCCEEDED, FAILED, STOPPED = "running", "succeeded", "failed", "stopped"
#: how many of a job's newest reports are kept, and how many characters of a text, from its end
_REPORTS = 100
_CHARACTERS = 20_000


def begun(job: JobSpec) -> dict[str, Any]:
    """Return the record of a job that begins now, in this process."""
    return {
        "python": job.python,
        "tasks": [task.name for task in job.cluster.tasks],
        "state": RUNNING,
        "mode": job.mode,
        "data_format": job.data_format,
        "script": job.script.name,
        "began": time.time(),
        "host": {"pid": os.getpid(), "started": started(os.getpid()), "machine": socket.gethostname()},
    }


def succeeded(outcome: Outcome) -> dict[str, Any]:
    """Return what is put over the record of a job when it has succeeded."""
    stats = dataclasses.asdict(outcome.stats)
    stats["reports"] = stats["reports"][-_REPORTS:]
    tasks = [{**dataclasses.asdict(task), "log_tail": ""} for task in outcome.tasks]
    return {"state": SUCCEEDED, "ended": time.time(), "stats": stats, "results": tasks}


def failed(error: BaseException, warnings: Sequence[str], inputs: Mapping[str, Mapping[str, Any]] = {}) -> dict[str, Any]:
    """Return what is put over the record of a job when it has failed.

    Args:
        inputs: as `Stats.inputs`, of the tasks that could still report what they measured.
    """
    known = isinstance(error, Exception)
    first = getattr(error, "failure", None)
    return {
        "state": FAILED if known else STOPPED,
        "ended": time.time(),
        "error": type(error).__name__,
        "message": _short(str(error.args[0]) if error.args else ""),
        "failure": _told(first) if first is not None else None,
        "others": [_told(other) for other in getattr(error, "others", ())],
        "warnings": [_short(warning) for warning in warnings],
        "inputs": {task: dict(told) for task, told in inputs.items()},
    }


def _told(failure: TaskFailure) -> Mapping[str, Any]:
    return {name: _short(value) if isinstance(value, str) else value for name, value in dataclasses.asdict(failure).items()}


def _short(text: str) -> str:
    # before it is cut: a secret may be known by what stands before it
    return redacted(text)[-_CHARACTERS:]
