"""Every exception akrunner raises, in one tree.

::

    AkrunnerError
    ├── ConfigError (ValueError)      an argument is wrong; nothing was started
    │   ├── SchemaError               a schema string or a column type
    │   ├── ScriptError               the script: missing, does not parse, no main()
    │   ├── PythonEnvError            the interpreter: missing, does not run, no TensorFlow
    │   ├── UserFilesError            user files: missing, or an archive that escapes its directory
    │   ├── SourceError               the input table cannot be opened or read
    │   ├── SinkError                 the output cannot be written
    │   ├── ClusterError              the Flink cluster: none answers, or it has no such job
    │   └── ModelError                a model is missing, damaged, or cannot be saved there
    ├── DataError (ValueError)        a value that cannot cross: names row, column and value
    ├── ProtocolError                 the two ends of a pipe disagree
    ├── JobError                      the job started and failed
    │   ├── StartError                a worker process never said "opened"
    │   ├── ScriptFailedError         the script raised; carries its own traceback
    │   ├── TaskDiedError             a worker process ended without a word (signal, os._exit)
    │   ├── OutputError               the script wrote something the output schema does not allow
    │   ├── InputLostError            rows handed over and rows delivered differ
    │   ├── ReadError                 the input could not be read to its end while the job ran: a bad row, a disk, a network
    │   ├── WriteError                what the scripts wrote could not be stored: a full disk, a bucket that refuses
    │   │   └── StatementError        a statement of a file cannot be run, and those before it have changed something
    │   ├── JobManagerLostError       the JobManager of the Flink cluster went away while the job ran
    │   ├── JobStalledError           nothing moved for `stall_timeout`; carries every task's stacks
    │   └── JobTimeoutError           the job's `timeout` ran out; carries every task's stacks
    └── JobCancelledError             stopped by the caller
    CallError (TypeError)             a function was called with an option that it does not have

Every message names the parameter to turn where there is one, and has a short code (`code`): messages of one cause and one cure have
the same, and `akrunner explain CODE` says both. A `JobError` carries the task that failed first, what the
others did, and the path of the full log.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from akrunner.codes import Lookup, code_of, with_code
from akrunner.redact import redacted

P = ParamSpec("P")
R = TypeVar("R")
Raised = TypeVar("Raised", bound=BaseException)

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
#: how many lines of a log an error shows in a notebook, whose cell has more of them, folded
_NOTEBOOK_LINES = 5
#: so many tasks that did the same are one line; and how many lines about other tasks an error has at most
_ALIKE, _LINES = 4, 12
#: PAI's name of a task, in front of what it did
_ALSO = re.compile(r"\A\(PAI's [^()]*\) ")


class AkrunnerError(Exception):
    """Base of everything akrunner raises on purpose.

    Attributes:
        statement: if several SQL statements were run: the number of the one that failed, from 1; else None.
        results: what the statements before it did, one dict for each, for programs to read.
        run: the name under which the run of the job that failed is kept (`akrunner.runs.get`); None if it is not, or if it was no job.
        code: the short code of its message, such as "AK301", whose section in docs/errors.md has cause and cure. It stays the same when words change.
    """

    run: str | None = None
    statement: int | None = None
    results: Sequence[dict[str, Any]] = ()

    @property
    def code(self) -> str:
        """The short code of the message."""
        return code_of(*self._looked_up())

    def _looked_up(self) -> tuple[list[str], str]:
        """Return what the code depends on: the names of the classes, the nearest first, and the message."""
        return [one.__name__ for one in type(self).__mro__], str(self.args[0]) if self.args else ""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows: the script's own lines that failed, if there are any, those that led here, and the error.

        The hundred lines of akrunner's own frames are left out, as they say nothing more.
        """
        first, rest = self._in_two()
        told = with_code(f"{type(self).__name__}: {rest}", self.code)
        return [*first, *_callers(self.__traceback__), told, *notes_of(self)]

    def _in_two(self) -> tuple[list[str], str]:
        """Return the lines of the script's own traceback, if there is one, and the rest of the text."""
        return [], str(self)


class ConfigError(AkrunnerError, ValueError):
    """An argument is wrong. Raised before any process is started. The message shows no password, whatever the argument was."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redacted(one) if isinstance(one, str) else one for one in args))


class SchemaError(ConfigError):
    """A schema string does not parse, or a column has a type that cannot cross to the script."""


class ScriptError(ConfigError):
    """The script is missing, does not parse, or defines no `main`."""


class PythonEnvError(ConfigError):
    """The interpreter of `python_env` is missing, does not run, or has no TensorFlow."""


class UserFilesError(ConfigError):
    """A user file is missing, two user files have the same path, or an archive would write outside its directory."""


class SourceError(ConfigError):
    """The input table cannot be opened or read, or lacks a column.

    Attributes:
        tells_no_columns: whether the input is a text file without a row, so that its columns are not known; another file of the
            same table may tell them.
    """

    tells_no_columns: bool = False


class SinkError(ConfigError):
    """The output cannot be written to the path, or in the format, that was asked for."""


class ModelError(ConfigError):
    """A model is missing or damaged, or cannot be saved to the path that was asked for."""


class ClusterError(ConfigError):
    """No Flink cluster answers at the given address, or the cluster refuses a request.

    Attributes:
        missing: whether a cluster answers, but has no such job, TaskManager or log.
        answered: whether a cluster answers, if only to refuse the request.
    """

    def __init__(self, message: str, *, missing: bool = False, answered: bool = False) -> None:
        super().__init__(message)
        self.missing = missing
        self.answered = answered or missing


class DataError(AkrunnerError, ValueError):
    """A value cannot cross between the table and the script.

    Attributes:
        row: index of the row, counted from 0 in the table (or in the rows the task wrote), None if unknown.
        column: the column's name, None if the error is about the row as a whole.
    """

    def __init__(self, message: str, *, row: int | None = None, column: str | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.column = column


class ProtocolError(AkrunnerError):
    """The two ends of a pipe disagree: a truncated frame, an unexpected kind, another protocol version."""


@dataclass(frozen=True)
class TaskFailure:
    """How one task of a failed job ended.

    Attributes:
        task: the task's name, `worker:1`.
        what: one sentence that says what happened.
        traceback: the script's own traceback, "" if the script raised nothing.
        exit: how its process ended, in words ("exit code 3", "SIGKILL"), "" while unknown.
        log_tail: the last lines of the task's log.
        log_path: path of the whole log.
        time_ns: when it failed, in nanoseconds since the epoch; the earliest failure is the root cause.
    """

    task: str
    what: str
    traceback: str = ""
    exit: str = ""
    log_tail: str = ""
    log_path: str = ""
    time_ns: int = 0


class JobError(AkrunnerError):
    """The job started and failed.

    Attributes:
        failure: the root cause, None if no single task is to blame.
        others: how the other tasks ended, in task order.
        work_dir: the directory in which the logs were kept, None if they were not kept.
        warnings: what happened before the failure, earlier attempts included.
        fault: whether it is a fault of akrunner's own.
    """

    def __init__(
        self,
        message: str,
        *,
        failure: TaskFailure | None = None,
        others: Sequence[TaskFailure] = (),
        work_dir: str | None = None,
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.others = tuple(others)
        self.work_dir = work_dir
        self.warnings: tuple[str, ...] = ()
        self.fault = False

    def __str__(self) -> str:
        return self._told(self.failure.traceback if self.failure is not None else "")

    def _in_two(self) -> tuple[list[str], str]:
        own = self.failure.traceback.rstrip() if self.failure is not None else ""
        return [own, ""] if own else [], self._told("", _NOTEBOOK_LINES)

    def _told(self, own: str, most: int = 0) -> str:
        """Return the error in words.

        Args: own: the script's own traceback; "": it is left out; most: how many lines of the log are told, the last; 0: all that are known.
        """
        parts = [super().__str__()]
        if own:
            parts.append(own.rstrip())
        failure = self.failure
        if failure is not None:
            if failure.log_tail:
                parts.append("last lines of its log:\n" + _indent(failure.log_tail.rstrip().splitlines()[-most:]))
            if failure.log_path:
                parts.append("full log: " + failure.log_path)
        if self.others:
            told = [f"  {who} {what}" for who, what in alike((other.task, other.what) for other in self.others)]
            more = [f"  and {len(told) - _LINES:,} more such lines"] if len(told) > _LINES else []
            parts.append("\n".join(["other tasks:", *told[:_LINES], *more]))
        if self.warnings:
            parts.append("before that:\n" + "\n".join(f"  {warning}" for warning in self.warnings))
        return "\n".join(parts)


class StartError(JobError):
    """A worker process never said "opened": it died first, or `start_timeout` ran out."""


class ScriptFailedError(JobError):
    """The script raised (or called `sys.exit` with a failure code)."""


class TaskDiedError(JobError):
    """A worker process ended without saying that it was done: a signal, `os._exit`, the out-of-memory killer."""


class OutputError(JobError):
    """The script wrote a row that the output schema does not allow."""


class InputLostError(JobError):
    """A task did not receive as many rows as were sent to it."""


class ReadError(JobError):
    """The input could not be read to its end while the job ran: a row that does not parse, a disk, a network.

    Attributes:
        broken: (path, why) of each file that is damaged.
        unfetched: (path, why) of each file that could not be fetched.
    """

    broken: Sequence[tuple[str, str]] = ()
    unfetched: Sequence[tuple[str, str]] = ()


class WriteError(JobError):
    """What the scripts wrote could not be stored: the disk is full, the bucket refuses, the connection broke."""


class StatementError(WriteError):
    """One of several SQL statements cannot be run: it is misspelt, or names a thing that does not exist.

    The statements before it were run, and have changed something.
    """


class JobManagerLostError(JobError):
    """The JobManager of the Flink cluster went away while the job ran: it was killed, or its REST service does not answer.

    Attributes:
        lines: what `akrunner logs --follow --json` had read of the job's lines by then; None elsewhere.
    """

    lines: Sequence[str] | None = None


class JobStalledError(JobError):
    """Nothing moved for `stall_timeout`: no rows, no report, no processor time.

    Attributes:
        report: which task waits for what, with the tasks' stacks; the same text as `stall.txt` in the work dir.
    """

    report: str = ""


class JobTimeoutError(JobError):
    """The job's `timeout` ran out. The failure's log tail holds the stacks of the tasks still running."""


class JobCancelledError(AkrunnerError):
    """The caller stopped the job."""


def noted(error: Raised) -> Raised:
    """Have Python's traceback say, below the message, how to look up its code. Public functions call it for what leaves them.

    Returns: the exception.
    """
    if isinstance(error, AkrunnerError) and not any(isinstance(note, Lookup) for note in getattr(error, "__notes__", ())):
        error.add_note(Lookup(*error._looked_up()))
    return error


def noting(function: Callable[P, R]) -> Callable[P, R]:
    """Return a public function whose exceptions say in their traceback how to look up their code (`noted`)."""

    @functools.wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        try:
            return function(*args, **options)
        except AkrunnerError as e:
            noted(e)
            raise

    return called


def notes_of(error: BaseException) -> list[str]:
    """Return the notes of an exception that say what happened besides: all but that of its code."""
    return [str(note) for note in getattr(error, "__notes__", ()) if not isinstance(note, Lookup)]


def alike(did: Iterable[tuple[str, str]], called: str = "other tasks") -> list[tuple[str, str]]:
    """Return what tasks of a job that has ended early did, in few lines: of many tasks, nearly all were stopped at the same place.

    Args: did: each task's name, and what it did; called: the word for several.
    Returns: (who, what) of each line: "[ps:0]", or "63 other tasks" if these did the same. The lines of single tasks, which differ, come first.
    """
    tasks: dict[str, list[tuple[str, str]]] = {}
    for task, what in did:
        tasks.setdefault(_ALSO.sub("", what), []).append((task, what))
    lone = [(f"[{task}]", what) for same in tasks.values() if len(same) < _ALIKE for task, what in same]
    many = [(f"{len(same):,} {called}", _plural(what)) for what, same in tasks.items() if len(same) >= _ALIKE]
    return [*lone, *many]


def _plural(what: str) -> str:
    """Return what one task did as what several did: "were done", "were in main() and were stopped"."""
    return re.sub(r"(\A| and )was ", r"\1were ", what)


def _indent(lines: Sequence[str]) -> str:
    return "\n".join("  | " + line for line in lines)


def in_a_sentence(error: BaseException, words: str) -> None:
    """Have IPython show an exception that is none of akrunner's, and that a user's own action has raised, in a sentence."""
    vars(error)["_render_traceback_"] = lambda: [f"{type(error).__name__}: {words}"]


class CallError(TypeError):
    """A function of akrunner was called with an option that it does not have, or without one that it needs."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows: those that led here, and the error, without akrunner's own frames."""
        return [*_callers(self.__traceback__), f"TypeError: {self}"]


def _callers(trace: TracebackType | None) -> list[str]:
    """Return lines for the user's own frames that led to an error: where each is, and its code."""
    lines: list[str] = []
    for frame in traceback.extract_tb(trace):
        if frame.filename.startswith(_OURS):
            break
        if f"{os.sep}IPython{os.sep}" not in frame.filename:
            lines += [f"{_place(frame.filename)}, line {frame.lineno}, in {frame.name}", f"    {frame.line}"]
    return lines


def _place(filename: str) -> str:
    """Return the file of a frame in words: of a notebook's cell, its number."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)
    named = name_of(filename)
    if named is not None:
        return " ".join(named)
    return "this cell" if "ipykernel" in filename or filename.startswith("<") else f'File "{filename}"'
