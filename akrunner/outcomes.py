"""How a job has ended, in values for other programs: the exit code of its error, and the JSON object of `--json`.

`docs/operations.md` promises both to users, and `docs/result.schema.json`, which scripts/gen-options writes, has the fields.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from akrunner.errors import (
    AkrunnerError,
    ConfigError,
    DataError,
    JobCancelledError,
    JobError,
    JobTimeoutError,
    ReadError,
    WriteError,
)
from akrunner.foreign import redacted, shortage

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_READ = 3
EXIT_WRITE = 4
EXIT_FAULT = 70
EXIT_TIMEOUT = 124
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

#: exceptions -> exit code; the first class that fits is taken
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (JobTimeoutError, EXIT_TIMEOUT),
    (ConfigError, EXIT_USAGE),
    (ReadError, EXIT_READ),
    (DataError, EXIT_READ),
    (WriteError, EXIT_WRITE),
    # the same code as if the command itself had been terminated: the job is not to be started again
    (JobCancelledError, EXIT_TERMINATED),
    (AkrunnerError, EXIT_FAILED),
)


class Ended(Protocol):
    """A job that has succeeded."""

    @property
    def stats(self) -> Any: ...

    @property
    def tasks(self) -> Sequence[Any]: ...

    @property
    def work_dir(self) -> str | None: ...


def code_of_class(error: BaseException) -> int:
    """Return the exit code of the class of an exception; that of a fault of akrunner's for a class that is none of akrunner's own."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), EXIT_FAULT)


def code_of(error: BaseException) -> int:
    """Return the exit code of a command whose job ends with an exception."""
    if not isinstance(error, Exception):
        return EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else EXIT_TERMINATED
    if isinstance(error, JobError) and error.fault:
        return EXIT_FAULT
    code = code_of_class(error)
    return EXIT_FAILED if code == EXIT_FAULT and shortage(error) else code


def success(ended: Ended, output: str | None, run: str | None) -> dict[str, Any]:
    """Return the JSON object of a job that has succeeded.

    Args: output: where its rows, or its model, are; run: the name under which it is kept.
    """
    return {
        "ok": True,
        "exit_code": 0,
        "output": output,
        "rows_out": ended.stats.rows_out,
        "work_dir": ended.work_dir,
        "run": run,
        "stats": dataclasses.asdict(ended.stats),
        "tasks": [dataclasses.asdict(task) for task in ended.tasks],
    }


def failure(error: BaseException, code: int) -> dict[str, Any]:
    """Return the JSON object of a command that has failed. Args: code: its exit code."""
    first = getattr(error, "failure", None)
    body = head(type(error).__name__, str(error.args[0]) if error.args else "", code)
    body["failure"] = dataclasses.asdict(first) if first is not None else None
    body["others"] = [dataclasses.asdict(other) for other in getattr(error, "others", ())]
    body["warnings"] = [*getattr(error, "warnings", ()), *getattr(error, "__notes__", ())]
    body["work_dir"] = getattr(error, "work_dir", None)
    body["run"] = getattr(error, "run", None)
    body["log"] = (first.log_path or None) if first is not None else None
    for name in ("broken", "unfetched"):
        if getattr(error, name, ()):
            body[name] = [list(one) for one in getattr(error, name)]
    for name in ("row", "column", "statement", "lines"):
        if getattr(error, name, None) is not None:
            body[name] = getattr(error, name)
    if "statement" in body:
        body["results"] = getattr(error, "results", ())
    return body


def head(name: str, message: str, code: int) -> dict[str, Any]:
    """Return what the JSON object of every command that has failed begins with. Args: name: the error's class; message: its text."""
    # every error has the same keys
    none: dict[str, Any] = {"failure": None, "others": [], "warnings": [], "work_dir": None, "run": None, "log": None}
    return {"ok": False, "error": name, "message": message, "exit_code": code, **none}


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: NaN and infinities become null, and secrets in texts ***."""
    if isinstance(value, Mapping):
        return {redacted(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return redacted(str(value))
