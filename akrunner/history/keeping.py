"""Keeps one run, from the moment at which its job is about to start to its end.

::

    with keeping("run", arguments) as run:      nothing is kept yet: a call that is refused is no run
        run.begin(script, tasks, ...)           its directory and its record are there, and the engine keeps logs and metrics
        result = ...
        run.succeed(result)                     an exception that leaves the block is kept as the end of the run
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from akrunner.errors import ConfigError
from akrunner.foreign import in_words, redacted
from akrunner.history import arguments, places, record, series
from akrunner.history.record import Record
from akrunner.history.reported import latest
from akrunner.leftovers import remove

#: environment variable that turns it off for a process: 0, no or false
VARIABLE = "AKRUNNER_KEEP_RUN"
_OFF = ("0", "no", "false", "off")
_ON = ("", "1", "yes", "true", "on")
#: bytes of the longest script whose hash is kept
_LONGEST_SCRIPT = 64 << 20
_KNOB = "keep_run=False, --no-keep-run, keeps none"


@dataclass(frozen=True)
class Call:
    """How a command calls a verb's function: what of its command line the function's arguments do not say.

    Attributes:
        words: the command line.
        options: options of the command, by name, that go over the function's arguments.
        without: keys of arguments that come from files, which are not kept: "env.TOKEN".
        secret: keys whose values are not to be kept.
    """

    words: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    without: Sequence[str] = ()
    secret: Sequence[str] = ()


#: writes a page about a run. Args: its record; its directory
Page = Callable[[Record, str], None]

#: None outside of commands
_CALL: ContextVar[Call | None] = ContextVar("akrunner_call", default=None)


@contextlib.contextmanager
def calling(call: Call) -> Iterator[None]:
    """Have the runs that begin in the block kept as those of a command."""
    token = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(token)


def wanted(keep_run: bool | None, name: str = "keep_run") -> bool:
    """Whether a run is kept. Args: keep_run: what the caller says, None: nothing. Raises: ConfigError: it is no answer."""
    if isinstance(keep_run, bool):
        return keep_run
    if keep_run is not None:
        raise ConfigError(f"{name} must be True, False or None, not {type(keep_run).__name__}")
    said = os.environ.get(VARIABLE, "").strip().lower()
    if said not in (*_ON, *_OFF):
        raise ConfigError(f"{VARIABLE}={said}: give 1 to keep runs, 0 to keep none")
    return said not in _OFF


class Keeping:
    """One run that is kept, or not.

    Args:
        verb: the verb's name.
        given: its arguments.
        keep_run: as `wanted`.
        beside: what else it was given, that is no argument of its own.
        page: writes a page about the run when its end is kept: it is given the record and the run's directory.
    Attributes:
        id: the run's name once it has begun; None before, and if it is not kept.
        path: its directory, likewise.
        about: what is known of the run since it has begun, whether it is kept or not; None before.
    """

    def __init__(
        self,
        verb: str,
        given: Mapping[str, Any],
        keep_run: bool | None,
        beside: Mapping[str, Any] = MappingProxyType({}),
        page: Page | None = None,
    ) -> None:
        self.id: str | None = None
        self.path: str | None = None
        self.about: Record | None = None
        self._wanted = wanted(keep_run)
        self._verb = verb
        self._given = dict(given)
        self._beside = dict(beside)
        self._page = page
        self._call = _CALL.get() or Call()
        self._record: Record | None = None
        self._lock = threading.Lock()
        #: warnings of a job that fails are its exception's
        self._warnings: tuple[str, ...] = ()

    def __enter__(self) -> Keeping:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.fail(error)

    # -- the beginning

    def begin(self, script: str, tasks: Sequence[str], engine: str, versions: Mapping[str, str]) -> list[str]:
        """Make the run's directory and its first record, if it is to be kept; `path` is the directory then.

        Args:
            script: the file of the script, or of the model.
            tasks: the names of its tasks.
            engine: the name of the engine.
            versions: of the tasks' packages.
        Returns: warnings, if something cannot be kept.
        """
        self.about = self._first(script, tasks, engine, versions)
        if not self._wanted:
            return []
        try:
            self._begin(self.about)
        except OSError as e:
            self._given_up()
            lost = ", and there is no report of it (report=, --report)" if self._page is not None else ""
            return [f"this run is not kept{lost}: {in_words(e)} ({_KNOB})"]
        try:
            places.prune_sometimes(os.path.dirname(str(self.path)), (int(str(self.id)[1:]),))
        except ConfigError as e:
            return [f"{e}; old runs are not removed"]
        return []

    def _begin(self, first: Record) -> None:
        root = places.root()
        if root is None:
            raise WriteFault("there is no directory for it that can be written (XDG_STATE_HOME names another)")
        self.id, self.path = places.claim(root)
        self.about = self._record = dataclasses.replace(first, id=self.id)
        record.write(self.path, self._record)

    def _first(self, script: str, tasks: Sequence[str], engine: str, versions: Mapping[str, str]) -> Record:
        """Return the record of a run that begins, without a name."""
        kept = self._arguments()
        return Record(
            version=record.VERSION,
            id="",
            verb=self._verb,
            state=record.RUNNING,
            began=time.time(),
            host=record.host(),
            cwd=_cwd(),
            command=arguments.without_secrets(self._call.words),
            arguments=kept.values,
            left_out=kept.left_out,
            not_finite=record.not_finite(kept.values),
            script=redacted(_called(script, self._given.get("script"))),
            script_sha256=_hash(script),
            engine=engine,
            tasks=list(tasks),
            versions={**_versions(), **versions},
        )

    @property
    def hparams(self) -> dict[str, bool | float | str]:
        """The params of the script, as programs that compare runs want them (`arguments.hparams`)."""
        hidden = [
            where.partition(".")[2] for where in (*self._call.without, *self._call.secret) if where.startswith("user_params.")
        ]
        return arguments.hparams(self._given.get("user_params"), hidden)

    def _arguments(self) -> arguments.Kept:
        """Return what is kept of the arguments, with what the command line says besides."""
        given = {name: self._without_files(name, value) for name, value in self._given.items()}
        kept = arguments.kept(self._verb, given)
        for name, value in {**self._beside, **self._call.options}.items():
            kept.left_out.pop(name, None)
            arguments.put(kept, name, value)
        for where in self._call.secret:
            name, _, key = where.partition(".")
            if key in kept.values.get(name, {}):
                kept.values[name][key] = "***"
                kept.left_out[where] = arguments.SECRET
        return kept

    def _without_files(self, name: str, value: Any) -> Any:
        """Return an argument without the keys that come from a file that is named beside it, and read again by who repeats the run."""
        gone = {where.partition(".")[2] for where in self._call.without if where.startswith(f"{name}.")}
        return {key: one for key, one in value.items() if key not in gone} if gone and isinstance(value, Mapping) else value

    def _given_up(self) -> None:
        if self.path is not None:
            remove(self.path)
        self.id = self.path = None

    # -- the end

    def succeed(self, result: Any, output: str | None = None) -> str | None:
        """Write how a job has ended that has succeeded.

        Args:
            result: has `stats`, `tasks` and `work_dir`; a warning is added to its stats if the run cannot be kept.
            output: where its rows, or its model, are.
        Returns: the run's name; None if it is not kept.
        """
        stats = result.stats
        changed = self._end(
            **record.succeeded(result),
            ended=time.time(),
            output=redacted(output) if output is not None else None,
            work_dir=result.work_dir,
        )
        stats.warnings.extend(changed)
        return self.id

    def submit(self, job: str, master: str, name: str) -> str | None:
        """Write that the job was handed to a cluster, on which it goes on without this process.

        Args:
            job: the cluster's id of it.
            master: the address of the cluster.
            name: the name that the cluster shows.
        Returns: the run's name; None if it is not kept.
        """
        self._end(state=record.SUBMITTED, detached={"job": job, "master": redacted(master), "name": name})
        return self.id

    def fail(self, error: BaseException) -> None:
        """Write with what exception a job has ended; a job that was refused before anything started is no run."""
        if self._record is None:
            return
        if isinstance(error, ConfigError):
            self._record = None
            self._given_up()
            return
        metrics = latest(series.read(self.path, series.METRICS)) if self.path is not None else {}
        told = self._end(
            **record.failed(error, getattr(error, "warnings", ())), metrics=metrics, work_dir=getattr(error, "work_dir", None)
        )
        if told:
            vars(error)["warnings"] = (*getattr(error, "warnings", ()), *told)
        # a command says it, and a program may ask for it
        vars(error)["run"] = self.id

    def _end(self, **changes: Any) -> list[str]:
        """Write the record for the last time, and the page; only the first end counts. Returns: warnings, if one of them cannot be written."""
        with self._lock:
            begun, self._record = self._record, None
        if begun is None or self.path is None:
            return []
        told = []
        ended = dataclasses.replace(begun, **changes)
        try:
            record.write(self.path, ended)
        except OSError as e:
            told.append(f"the end of this run is not kept: {in_words(e, self.path)} ({_KNOB})")
        if self._page is not None:
            try:
                self._page(ended, self.path)
            except Exception as e:
                # a page never fails a job that is over
                told.append(
                    f"the report of this run could not be written: {in_words(e)}; `akrunner report {self.id}` tries it again"
                )
        return told


class WriteFault(OSError):
    """There is no place for runs."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.strerror = words


def _called(script: str, given: object) -> str:
    """Return what people call a script: its file; of a function that is in no file, as one of a notebook's cell, its name."""
    name = getattr(given, "__name__", None) if callable(given) else None
    return name if isinstance(name, str) and not os.path.isfile(script) else script


def _versions() -> dict[str, str]:
    # of the package around this module, without an import of what stands above
    own = sys.modules[__name__.partition(".")[0]]
    return {
        "akrunner": str(vars(own)["__version__"]),
        "host python": platform.python_version(),
        "host pyarrow": pa.__version__,
        "host numpy": np.__version__,
    }


def _cwd() -> str:
    """Return the current directory; "" if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _hash(script: str) -> str:
    """Return the hash of a script's file; "" if it is no file of this machine."""
    try:
        if not os.path.isfile(script) or os.path.getsize(script) > _LONGEST_SCRIPT:
            return ""
        with open(script, "rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""
