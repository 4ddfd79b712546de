"""`--log-format`: what a job says on stderr as log records, one line each, in place of progress and of words for people.

A command that has it sets up Python's `logging` as a program would that calls akrunner (`akrunner.telling.logs`).
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import IO, Any, cast

from akrunner.cli import stderr
from akrunner.folders.words import harmless
from akrunner.foreign import redacted
from akrunner.outcomes import plain
from akrunner.telling.logs import JOBS

TEXT, JSON = "text", "json"
#: fields of a record, beside its message, which are in a line of JSON if the record has them
_FIELDS = ("error", "exit_code", "error_code")

_handler: logging.StreamHandler[IO[str]] | None = None
_end_is_told = False


def on(form: str) -> None:
    """Write records from now on. Args: form: text or json."""
    global _handler, _end_is_told
    off()
    _end_is_told = False
    _handler = logging.StreamHandler(cast("IO[str]", stderr.Stderr()))
    _handler.setFormatter(_Json() if form == JSON else _Text())
    JOBS.addHandler(_handler)
    JOBS.setLevel(logging.INFO)
    JOBS.propagate = False


def off() -> None:
    """Write no more records."""
    global _handler
    if _handler is not None:
        JOBS.removeHandler(_handler)
        _handler.stream.close()
        JOBS.setLevel(logging.NOTSET)
        JOBS.propagate = True
        _handler = None


def active() -> bool:
    """Whether records are written, so that nothing else is said on stderr."""
    return _handler is not None


def end_is_told() -> None:
    """Note that the job has written a record of its end, so that the command need not say it once more."""
    global _end_is_told
    _end_is_told = True


def wants_end() -> bool:
    """Whether nobody has written a record of how the command has failed."""
    return not _end_is_told


def say(words: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a record of the command itself."""
    JOBS.log(level, "%s", words, extra={"job": None, "task": None, **fields})


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line of JSON."""
        has = vars(record)
        told: dict[str, Any] = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        told |= {"job": has.get("job"), "task": has.get("task"), "message": record.getMessage()}
        return json.dumps(plain({**told, **{name: has[name] for name in _FIELDS if name in has}}), ensure_ascii=False)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line of text; further lines of its message stand behind it."""
        has = vars(record)
        said = redacted(record.getMessage())
        # before a job has a run, it is called by its script, which the words about its end begin with
        job = has.get("job") if f" {has.get('job')}: " not in said.partition("\n")[0] else None
        where = " ".join(str(one) for one in (job, has.get("task")) if one)
        return harmless(f"{_time(record)} {record.levelname.lower()}{f' {where}' if where else ''}: {said}")
