"""How a job has ended, in values for other programs: the exit code of its error, and the JSON object of `--json`.

`docs/operations.md` promises both to users, and `docs/result.schema.json`, which scripts/gen-options writes, has the fields.
"""

from __future__ import annotations

import dataclasses
import math
import signal
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from akrunner.codes import code_of
from akrunner.errors import (
    AkrunnerError,
    ConfigError,
    DataError,
    JobCancelledError,
    JobError,
    JobTimeoutError,
    ReadError,
    WriteError,
    notes_of,
)
from akrunner.foreign import in_words, shortage
from akrunner.redact import of_environment, redacted

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_READ = 3
EXIT_WRITE = 4
EXIT_FAULT = 70
EXIT_TIMEOUT = 124
EXIT_TERMINATED = 143
#: of a command that a signal has stopped: its number is added
_SIGNALLED = 128

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


class End(NamedTuple):
    """How a command ends that has failed.

    Attributes:
        name: the error's class, or the word for what has stopped it.
        message: what went wrong.
        code: its exit code.
    """

    name: str
    message: str
    code: int


def end_of(error: BaseException, number: int | None = None) -> End:
    """Return how a command ends whose job ends with an exception.

    Args:
        number: the signal that has stopped the command; None: the exception says it, if it was one.
    """
    number = number if number is not None else _signal_of(error)
    if number is not None:
        name = "Interrupted" if number == signal.SIGINT else "Terminated"
        return End(name, name.lower(), _SIGNALLED + number)
    message = str(error.args[0]) if error.args else ""
    if isinstance(error, JobError) and error.fault:
        return End(type(error).__name__, message, EXIT_FAULT)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), None)
    if code is not None:
        return End(type(error).__name__, message, code)
    words = in_words(error)
    if shortage(error):
        # what needs less memory is said of a job: other commands have no tasks, and no rows
        if _in_engine(error):
            return End(JobError.__name__, words, EXIT_FAILED)
        return End(ConfigError.__name__, words.partition("; ")[0], EXIT_USAGE)
    return End("InternalError", f"this is a fault of akrunner, not yours: {type(error).__name__}: {words}", EXIT_FAULT)


def _signal_of(error: BaseException) -> int | None:
    """Return the signal that an exception stands for; None if it is an error. Whatever else stops a program stops it as SIGTERM does."""
    # a panic in Rust code (polars) is a BaseException but no Exception
    if isinstance(error, Exception) or type(error).__name__ == "PanicException":
        return None
    usual = signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM
    return int(getattr(error, "signal_number", usual))


def _in_engine(error: BaseException) -> bool:
    """Whether an exception was raised while a job ran, and not before."""
    places = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__", "").startswith("akrunner.engines.") for frame, _ in places)


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
        # as `dataclasses.asdict`, which copies each of a thousand numbers: no value of them is a dataclass, and whoever shows them copies them
        "stats": dict(vars(ended.stats)),
        "tasks": [dataclasses.asdict(task) for task in ended.tasks],
    }


def failure(error: BaseException, end: End | None = None) -> dict[str, Any]:
    """Return the JSON object of a command that has failed. Args: end: how it ends; None: as `end_of` says."""
    first = getattr(error, "failure", None)
    end = end or end_of(error)
    body = head(*end)
    body["error_code"] = short_code(error, end) or None
    body["failure"] = dataclasses.asdict(first) if first is not None else None
    body["others"] = [dataclasses.asdict(other) for other in getattr(error, "others", ())]
    body["warnings"] = [*getattr(error, "warnings", ()), *notes_of(error)]
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


def short_code(error: BaseException, end: End) -> str:
    """Return the short code of the error that ends a command (`AK301`); "" if it was a signal."""
    return (
        error.code
        if isinstance(error, AkrunnerError) and end.name == type(error).__name__
        else code_of([end.name], end.message)
    )


def head(name: str, message: str, code: int) -> dict[str, Any]:
    """Return what the JSON object of every command that has failed begins with. Args: as the fields of `End`."""
    # every error has the same keys
    none: dict[str, Any] = {"failure": None, "others": [], "warnings": [], "work_dir": None, "run": None, "log": None}
    short = code_of([name], message) or None
    return {"ok": False, "error": name, "message": message, "exit_code": code, "error_code": short, **none}


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: NaN and infinities become null, secrets in texts ***, and halves of surrogate pairs are escaped."""
    return _plain(value, of_environment())


def _plain(value: Any, variables: Sequence[str]) -> Any:
    if isinstance(value, str):
        return in_print(value, variables)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {in_print(str(key), variables): _plain(inner, variables) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, variables) for inner in value]
    return in_print(str(value), variables)


def in_print(text: str, variables: Sequence[str] | None = None) -> str:
    """Return a text without secrets that every encoding of Unicode can hold. Args: variables: as for `redacted`."""
    return redacted(text, variables=variables).encode("utf-8", "backslashreplace").decode("utf-8")
