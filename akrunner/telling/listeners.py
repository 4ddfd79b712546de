"""Who is told of a job: the user's observer, and those whom its arguments, or the program around it, ask for."""

from __future__ import annotations

import dataclasses
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from akrunner.engines.base import Observer, Progress, ReportObserver
from akrunner.errors import JobCancelledError, in_a_sentence
from akrunner.history.logs import FOLDER
from akrunner.notebook import live
from akrunner.notebook.jobs import JobCell
from akrunner.outcomes import Ended, code_of, failure, success
from akrunner.prepare.arguments import NotifyLike
from akrunner.telling.logs import JOBS, Logs
from akrunner.telling.metrics import Metrics
from akrunner.telling.mlflow import Files, Mlflow
from akrunner.telling.notify import Notify
from akrunner.telling.spans import Spans

if TYPE_CHECKING:
    from akrunner.history.keeping import Keeping

Given = TypeVar("Given", bound=Ended)


class Asked(Protocol):
    """The arguments of a verb that say who is told."""

    @property
    def notify(self) -> NotifyLike | None: ...

    @property
    def metrics_file(self) -> str | os.PathLike[str] | None: ...

    @property
    def metrics_port(self) -> int | None: ...

    @property
    def metrics_host(self) -> str: ...

    @property
    def mlflow(self) -> str | None: ...

    @property
    def mlflow_experiment(self) -> str | None: ...


class Listener(Observer, Protocol):
    """Is told of a job from its beginning to its end."""

    def begun(self, run: str | None) -> None:
        """Take the name under which the run is kept, None if it is not, once everything is checked."""
        ...

    def ended(self, body: Mapping[str, Any]) -> None:
        """Take how the job has ended, also one that has not begun: "ok" and "exit_code", and the fields of its "stats", or what
        `akrunner.outcomes.failure` has."""
        ...


class Telling:
    """Tells of one job. A context: an exception that leaves it is how the job has ended; if none does, the job may go on in a thread.

    Args:
        verb: the verb.
        head: its script, or model.
        asked: its arguments.
        observer: the user's observer.
    Attributes:
        observer: takes what the engine tells; None if nobody wants to know.
    Raises: ConfigError: an argument is wrong.
    """

    def __init__(self, verb: str, head: object, asked: Asked, observer: Observer | None) -> None:
        script = name_of(head)
        self._began = time.time()
        self._about = {
            "id": secrets.token_hex(8),
            "verb": verb,
            "script": script,
            "machine": socket.gethostname(),
            "began": self._began,
        }
        self._notify = Notify(asked.notify) if asked.notify is not None else None
        self._metrics: Metrics | None = None
        if asked.metrics_file is not None or asked.metrics_port is not None:
            self._metrics = Metrics(verb, script, asked.metrics_file, asked.metrics_port, asked.metrics_host)
        self._listeners: list[Listener] = [self._metrics] if self._metrics is not None else []
        self._logged = Logs.wanted()
        if self._logged:
            self._listeners.append(Logs(verb, script))
        if Spans.wanted():
            self._listeners.append(Spans(verb, script))
        self._cell: JobCell | None = None
        if observer is None and live.wanted():
            self._cell = JobCell(f"{verb} {script}", answers=verb.startswith("predict"))
            self._listeners.append(self._cell)
        self._mlflow = Mlflow(asked.mlflow, asked.mlflow_experiment) if asked.mlflow is not None else None
        self.observer = (
            _Both(observer, self._listeners, self._mlflow) if self._listeners or self._mlflow is not None else observer
        )
        #: where the page about the run is to be, if the verb makes one
        self._page = getattr(asked, "report", None)
        self._run: str | None = None
        #: the directory of the run, if it is kept
        self._folder: str | None = None
        self._ended = False

    def __enter__(self) -> Telling:
        if self._cell is not None:
            self._cell.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or self._ended:
            return
        body = failure(error, code_of(error))
        # somebody waits for the end of a job that was stopped
        stopped = not isinstance(error, Exception) or isinstance(error, JobCancelledError)
        body["message"] = body["message"] or "the job was stopped" * stopped
        if isinstance(error, KeyboardInterrupt):
            kept = f" It is kept as {self._run}." if self._run is not None else ""
            in_a_sentence(
                error, f"{self._about['verb']} {self._about['script']} was stopped, and its processes have ended.{kept}"
            )
        if self._logged:
            # a command need not say it once more
            vars(error)["logged"] = True
        for warning in self._tell(body, lambda: body, self._files(), hasty=stopped):
            error.add_note(f"warning: {warning}")

    def begun(self, run: Keeping) -> None:
        """Note that everything is checked, and under which name the run is kept."""
        self._run, self._folder = run.id, run.path
        for listener in self._listeners:
            listener.begun(run.id)
        if self._mlflow is not None and run.about is not None:
            self._mlflow.begin(run.about, run.id, run.hparams)

    def succeed(self, ended: Given, output: str | None = None) -> Given:
        """Tell that the job has succeeded. What cannot be told is one of the warnings of its stats.

        Args:
            ended: the result, or what the engine has returned.
            output: where the rows, or the model, are.
        Returns: the result.
        """
        if self._listeners or self._mlflow is not None or self._notify is not None:
            told = {"ok": True, "exit_code": 0, "stats": vars(ended.stats)}
            files = self._files(getattr(getattr(ended, "model", None), "path", None))
            ended.stats.warnings.extend(self._tell(told, lambda: _whole(ended, output, self._run), files))
        self._ended = True
        return ended

    def to_its_end(self, job: Callable[[], Given]) -> Given:
        """Run the job of a stream, in its thread, and tell how it has ended. Returns: what it returns. Raises: what it raises."""
        with self:
            return self.succeed(job())

    def _tell(
        self, end: Mapping[str, Any], whole: Callable[[], Mapping[str, Any]], files: Sequence[Files], hasty: bool = False
    ) -> Sequence[str]:
        """Tell everybody how the job has ended.

        Args: end: as for `Listener.ended`; whole: makes what `notify=` is told; files: those of the run; hasty: as for `Notify.tell`.
        Returns: warnings.
        """
        self._ended = True
        for listener in self._listeners:
            listener.ended(end)
        told = [*self._metrics.warnings] if self._metrics is not None else []
        why = self._notify.tell({**whole(), "about": {**self._about, "ended": time.time()}}, hasty) if self._notify else None
        if why is not None:
            told.append(why)
            if self._logged:
                JOBS.warning("%s", why, extra={"job": self._run or self._about["script"], "task": None})
        if self._mlflow is not None:
            # last, as it may take long to send a model
            told += self._mlflow.ended(end, files)
        return told

    def _files(self, model: str | None = None) -> list[Files]:
        """Return the files of a run that are there. Args: model: the directory of the SavedModel that it has trained."""
        found = [Files(model, "model")] if model is not None else []
        if self._folder is not None:
            found.append(Files(os.path.join(self._folder, FOLDER), FOLDER))
        page = os.path.abspath(os.fspath(self._page)) if self._page is not None else None
        # not one of an earlier job, if it could not be written
        if page is not None and os.path.isfile(page) and os.path.getmtime(page) >= self._began:
            found.append(Files(page, ""))
        return [one for one in found if os.path.exists(one.path)]


class _Both(ReportObserver):
    """The user's observer, and the listeners.

    Args: observer: None: there is no such observer; mlflow: takes reports.
    """

    def __init__(self, observer: Observer | None, listeners: Sequence[Listener], mlflow: Mlflow | None) -> None:
        self._all: Sequence[Observer] = [*([observer] if observer is not None else []), *listeners]
        self._mlflow = mlflow

    def report(self, report: Mapping[str, Any]) -> None:
        """Pass on a report to those who take them all."""
        if self._mlflow is not None:
            self._mlflow.report(report)

    def progress(self, progress: Progress) -> None:
        for one in self._all:
            one.progress(progress)

    def log(self, task: str, line: str) -> None:
        for one in self._all:
            one.log(task, line)


def _whole(ended: Ended, output: str | None, run: str | None) -> dict[str, Any]:
    """Return the JSON object of a success without all that the tasks have reported, which may be long; the last is there, as `metrics`."""
    reports = ended.stats.reports
    last = {one["task"]: {name: value for name, value in one.items() if name not in ("task", "time_ns")} for one in reports}
    short = SimpleNamespace(stats=dataclasses.replace(ended.stats, reports=[]), tasks=ended.tasks, work_dir=ended.work_dir)
    return {**success(short, output, run), "metrics": last}


def name_of(head: object) -> str:
    """Return what people call a script, a function or a model."""
    try:
        if isinstance(head, (str, os.PathLike)):
            text = os.fspath(head)
            return os.path.basename((text if isinstance(text, str) else os.fsdecode(text)).rstrip("/")) or "?"
    except Exception:
        return "?"
    return str(getattr(head, "__name__", type(head).__name__))
