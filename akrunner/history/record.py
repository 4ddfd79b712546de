"""The record of a run: `run.json`, whose fields and their meaning are declared here."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import secrets
import socket
import time
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin, get_type_hints

from akrunner.codes import code_of, with_code
from akrunner.errors import JobCancelledError
from akrunner.foreign import redacted
from akrunner.history.reported import latest
from akrunner.leftovers import started
from akrunner.leftovers.private import private_file
from akrunner.outcomes import end_of, short_code

#: raised when a reader of older records would misunderstand newer ones
VERSION = 1
FILE = "run.json"
RUNNING, SUCCEEDED, FAILED, STOPPED = "running", "succeeded", "failed", "stopped"
#: of a detached job: it was handed to a cluster, which alone knows more
SUBMITTED = "submitted"
#: told of a run that began and whose process is gone without having said how the run ended; never written
LOST = "lost"
#: how many characters of a text are kept, from its end; and how many warnings
_CHARACTERS = 20_000
_WARNINGS = 1000
#: the year 9999, beyond which no date can be told
_LATEST = 253_000_000_000.0


@dataclass(frozen=True)
class Record:
    """One run, as `run.json` has it. Times are seconds since 1970.

    Attributes:
        version: the version of these fields, and of the lines of the other files (`akrunner.history.samples`).
        id: the run's name: "r42".
        verb: what was called: run, train, stream, predict, predict_stream, pai.
        state: running, succeeded, failed, stopped (by Ctrl-C, a signal or its caller), submitted (a detached job).
        began: when it began.
        ended: when it ended; None: it has not.
        host: the process that runs it: "pid", "started" (as the kernel says), "machine".
        cwd: the directory in which it was called; paths in `arguments` are relative to it.
        command: the words of the command line, without secrets; empty if it was called from Python.
        arguments: the arguments that are no defaults, by their names in Python; *** for a secret, <type> for an object of Python.
        left_out: arguments (or "env.TOKEN", a key of one) whose values are not kept -> why.
        not_finite: where in `arguments` numbers are NaN or infinite, of which JSON has only the names: the keys, and places in lists, that lead there.
        script: the script's name, or the model's.
        script_sha256: the hash of the script's file; "" if it is none.
        engine: local or flink.
        tasks: the names of the tasks.
        versions: akrunner, and the host's and the tasks' Python and packages -> version.
        detached: of a detached job: "job", "master" and "name"; None of any other.
        output: where the rows, or the model, went; None: nowhere.
        stats: the numbers of `result.stats`, without the reports; None: it has not succeeded.
        results: of each task the fields of `result.tasks`, without its log.
        metrics: task -> what it reported last, with its step.
        warnings: what did not fail the job.
        error: the exception's class; "" if there is none.
        message: its text.
        error_code: its short code, "AK520"; "" if it has none, or if the run is of an akrunner that knew no codes.
        failure: the task that failed first: "task", "what", "traceback", "log_tail" ...; None if no task is to blame.
        others: what the other tasks did, in the same form.
        work_dir: the job's directory, if it was kept.
    """

    version: int
    id: str
    verb: str
    state: str
    began: float
    ended: float | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    cwd: str = ""
    command: Sequence[str] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    not_finite: Sequence[Sequence[str | int]] = ()
    script: str = ""
    script_sha256: str = ""
    engine: str = "local"
    tasks: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    detached: Mapping[str, str] | None = None
    output: str | None = None
    stats: Mapping[str, Any] | None = None
    results: Sequence[Mapping[str, Any]] = ()
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    error: str = ""
    message: str = ""
    error_code: str = ""
    failure: Mapping[str, Any] | None = None
    others: Sequence[Mapping[str, Any]] = ()
    work_dir: str | None = None

    @property
    def words(self) -> str:
        """The error in words; "" if there is none. One that has none of its own (Ctrl-C in a program) is its class alone."""
        return f"{self.error}: {self.message}" if self.message else self.error

    @property
    def told(self) -> str:
        """The same, with its short code."""
        return with_code(self.words, self.short_code)

    @property
    def short_code(self) -> str:
        """The short code of the error, also of a run that was kept without it."""
        return self.error_code or code_of([self.error], self.message)

    @property
    def seconds(self) -> float:
        """How long it took, or, while it runs, how long ago it began."""
        return max(0.0, (self.ended if self.ended is not None else time.time()) - self.began)


def host() -> dict[str, Any]:
    """Return what tells this process from every other one."""
    return {"pid": os.getpid(), "started": started(os.getpid()), "machine": socket.gethostname()}


def is_elsewhere(record: Record) -> bool:
    """Whether a run's process is one of another machine, of which this one cannot tell whether it lives."""
    return record.host.get("machine") != socket.gethostname()


def is_lost(record: Record) -> bool:
    """Whether a run has begun and its process is gone, as far as this machine can tell: of another machine's it cannot
    (`akrunner.history.places.is_gone` can)."""
    pid = record.host.get("pid")
    if record.state != RUNNING or is_elsewhere(record) or not isinstance(pid, int):
        return False
    if record.host.get("started"):
        return bool(started(pid) != record.host["started"])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def read(folder: str) -> Record:
    """Read the record in a run's directory.

    Raises:
        OSError: there is none, or it cannot be read.
        ValueError: it is none, a field of it has another type, or a newer akrunner wrote it.
    """
    with open(os.path.join(folder, FILE), encoding="utf-8") as f:
        try:
            found = json.load(f)
        except RecursionError:
            raise ValueError("it is no record of a run") from None
    if not isinstance(found, dict) or not isinstance(found.get("version"), int):
        raise ValueError("it is no record of a run")
    if found["version"] > VERSION:
        raise ValueError(f"a newer akrunner wrote it (version {found['version']}; this one reads {VERSION})")
    hints = _hints()
    known = {name: value for name, value in found.items() if name in hints}
    wrong = next((name for name, value in known.items() if not _fits(value, hints[name])), None)
    if wrong is not None:
        raise ValueError(f"its field {wrong} is damaged")
    try:
        made = Record(**known)
    except TypeError:
        raise ValueError("it is no record of a run") from None
    _check(made)
    return made


@functools.cache
def _hints() -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(Record).items() if name in Record.__dataclass_fields__}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of JSON has the type of a field."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind is types.UnionType:
        return any(_fits(value, one) for one in inner)
    if kind is Mapping:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if kind is Sequence:
        return isinstance(value, list) and all(_fits(one, inner[0]) for one in value)
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)


def _check(made: Record) -> None:
    """Check what readers of a record need beyond the types of its fields. Raises: ValueError: it is not there."""
    needed = {
        "began": 0 <= made.began < _LATEST,
        "ended": made.ended is None or 0 <= made.ended < _LATEST,
        "stats": made.stats is None or all(_fits(made.stats.get(name), int) for name in ("rows_in", "rows_out")),
        "detached": made.detached is None or {"job", "master"} <= set(made.detached),
        "failure": made.failure is None or _is_told(made.failure),
        "others": all(map(_is_told, made.others)),
    }
    wrong = next((name for name, is_right in needed.items() if not is_right), None)
    if wrong is not None:
        raise ValueError(f"its field {wrong} is damaged")


def _is_told(failure: Mapping[str, Any]) -> bool:
    """Whether the texts of a failure, as `_told` makes them, are texts."""
    return all(isinstance(failure.get(name), str | None) for name in ("task", "what", "traceback", "log_tail"))


_JSON = json.JSONEncoder(allow_nan=False, default=str)


def write(folder: str, record: Record) -> None:
    """Put a record into a run's directory, whole or not at all. Raises: OSError: it cannot be written."""
    path = os.path.join(folder, FILE)
    # threads of one process may write the same record
    new = f"{path}.{secrets.token_hex(4)}.new"
    try:
        with private_file(new, encoding="utf-8") as f:
            # a line for each field: to indent what is in them, Python's encoder takes ten times as long as the one in C
            fields = (f" {_JSON.encode(name)}: {_JSON.encode(value)}" for name, value in plain(vars(record)).items())
            f.write("{\n" + ",\n".join(fields) + "\n}\n")
        os.replace(new, path)
    except OSError:
        try:
            os.unlink(new)
        except OSError:
            pass
        raise


def plain(value: Any) -> Any:
    """Return a value that every reader of JSON takes: NaN and infinities, of which JSON knows none, become their names."""
    # what most values are, first
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def not_finite(value: Any) -> list[list[str | int]]:
    """Return where in a value the numbers are that `plain` turns into texts: the keys, and places in lists, that lead there."""
    if isinstance(value, float):
        return [] if math.isfinite(value) else [[]]
    if isinstance(value, Mapping):
        return [[str(key), *rest] for key, inner in value.items() for rest in not_finite(inner)]
    if isinstance(value, (list, tuple)):
        return [[place, *rest] for place, inner in enumerate(value) for rest in not_finite(inner)]
    return []


def with_numbers(value: Any, places: Iterable[Sequence[str | int]]) -> Any:
    """Return a value as it was before `plain`. Args: places: as `not_finite` has found them."""
    heads = {place[0]: [other[1:] for other in places if other and other[0] == place[0]] for place in places if place}
    if isinstance(value, Mapping):
        return {key: with_numbers(inner, heads.get(key, ())) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_numbers(inner, heads.get(place, ())) for place, inner in enumerate(value)]
    return number(value) if any(not place for place in places) else value


def number(value: Any) -> Any:
    """Return a number as it was before `plain`; any other value as it is."""
    return float(value) if isinstance(value, str) and value in ("nan", "inf", "-inf") else value


def succeeded(result: Any) -> dict[str, Any]:
    """Return the fields that the result of a job fills. Args: result: has `stats` and `tasks`."""
    stats = result.stats
    return {
        "state": SUCCEEDED,
        "stats": {name: value for name, value in vars(stats).items() if name not in ("reports", "warnings")},
        "results": [{**dataclasses.asdict(task), "log_tail": ""} for task in result.tasks],
        "metrics": latest(stats.reports),
        "warnings": shortened(stats.warnings),
    }


def failed(error: BaseException, warnings: Sequence[str]) -> dict[str, Any]:
    """Return the fields that an exception fills: how the job ended, and why.

    Args:
        warnings: those of before the end.
    """
    first = getattr(error, "failure", None)
    # a panic in Rust code (polars) is a BaseException but no Exception
    is_signal = not isinstance(error, Exception) and type(error).__name__ != "PanicException"
    end = None if is_signal else end_of(error)
    return {
        "state": STOPPED if end is None or isinstance(error, JobCancelledError) else FAILED,
        "ended": time.time(),
        "error": type(error).__name__ if end is None else end.name,
        "message": short((str(error.args[0]) if error.args else "") if end is None else end.message),
        "error_code": "" if end is None else short_code(error, end),
        "failure": _told(first) if first is not None else None,
        "others": [_told(other) for other in getattr(error, "others", ())],
        "warnings": shortened(warnings),
    }


def shortened(warnings: Sequence[str]) -> list[str]:
    """Return the newest warnings, each without secrets and no longer than others."""
    return [short(warning) for warning in warnings[-_WARNINGS:]]


def _told(failure: Any) -> Mapping[str, Any]:
    return {name: short(value) if isinstance(value, str) else value for name, value in dataclasses.asdict(failure).items()}


def short(text: str) -> str:
    """Return the end of a text, without secrets."""
    # before it is cut: a secret may be known by what stands before it
    return redacted(text)[-_CHARACTERS:]
