"""Who is told of a job: the user's observer, and those whom its arguments, or the program around it, ask for."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from akrunner.engines.base import Observer, Progress, ReportObserver
from akrunner.errors import JobCancelledError, in_a_sentence
from akrunner.foreign import in_words
from akrunner.history.logs import FOLDER
from akrunner.history.reported import latest
from akrunner.notebook.jobs import JobCell
from akrunner.outcomes import Ended, failure, in_print, plain, success
from akrunner.prepare.arguments import NotifyLike
from akrunner.prepare.written import check_written
from akrunner.screens import programs
from akrunner.screens.programs import CELL, JobScreen
from akrunner.screens.ways import AUTO, NONE
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
    def progress(self) -> str: ...

    @property
    def mlflow(self) -> str | None: ...

    @property
    def mlflow_experiment(self) -> str | None: ...


class Listener(Observer, Protocol):
    """Is told of a job from its beginning to its end. What it is told has no secrets, except in lines that the tasks print.

    Attributes: what: what it writes, in a word or two.
    """

    what: ClassVar[str]

    def begun(self, run: str | None) -> None:
        """Take the name under which the run is kept, None if it is not, once everything is checked."""
        ...

    def ended(self, body: Mapping[str, Any]) -> None:
        """Take how the job has ended, also one that has not begun: what `akrunner.outcomes.success` has, or `failure` there."""
        ...


class Telling:
    """Tells of one job. A context: an exception that leaves it is how the job has ended; if none does, the job may go on in a thread.

    Args:
        verb: the verb.
        head: its script, or model.
        asked: its arguments.
        observer: the user's observer.
        apart: arguments of the verb that `asked` does not have, by name.
    Attributes:
        observer: takes what the engine tells, from the beginning of the block on; None if nobody wants to know.
    Raises: ConfigError: `notify=` is wrong; when the block begins: another argument is, and `notify=` is told so.
    """

    def __init__(self, verb: str, head: object, asked: Asked, observer: Observer | None, **apart: Any) -> None:
        self._began = time.time()
        self._about: dict[str, Any] = {
            "id": secrets.token_hex(8),
            "verb": verb,
            "script": name_of(head),
            "machine": socket.gethostname(),
            "began": self._began,
        }
        self._given = {**vars(asked), **apart}
        #: where numbers go, as `Metrics` takes it
        self._numbers_to = (asked.metrics_file, asked.metrics_port, asked.metrics_host)
        self._notify = Notify(asked.notify) if asked.notify is not None else None
        self._metrics: Metrics | None = None
        self._listeners: list[_Careful] = []
        self._logged = False
        #: where MLflow is, and in which experiment
        self._tracking = (asked.mlflow, asked.mlflow_experiment)
        self._mlflow: Mlflow | None = None
        self.observer = observer
        self._progress = asked.progress
        #: where the page about the run is to be, if the verb makes one
        self._page = getattr(asked, "report", None)
        self._run: str | None = None
        #: the directory of the run, if it is kept
        self._folder: str | None = None
        #: whether the arguments are known to be right
        self._checked = False
        self._ended = False

    def __enter__(self) -> Telling:
        try:
            self._open()
        except BaseException as e:
            self._fail(e)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._fail(error)

    def _open(self) -> None:
        """Open those who are told while the job runs; first those that cannot fail, so that they are told of a failure of the others."""
        verb, script = self._about["verb"], self._about["script"]
        file, port, host = self._numbers_to
        self._logged = Logs.wanted()
        if self._logged:
            self._listeners.append(_Careful(Logs(verb, script)))
        if Spans.wanted():
            self._listeners.append(_Careful(Spans(verb, script)))
        self._show(f"{verb} {script}", verb.startswith("predict"))
        # the file of metrics is written at once
        check_written(self._given)
        if file is not None or port is not None:
            self._metrics = Metrics(verb, script, file, port, host)
            self._listeners.append(_Careful(self._metrics))
        to, experiment = self._tracking
        if to is not None:
            self._mlflow = Mlflow(to, experiment)
        if self._listeners or self._mlflow is not None:
            self.observer = _Both(self.observer, self._listeners, self._mlflow)

    def _show(self, title: str, answers: bool) -> None:
        """Begin to show the job as `progress=` says. Args: title, answers: as for `JobCell`."""
        # a display of the user's own takes the place of one that nobody has asked for
        said = not isinstance(self._progress, str) or self._progress != AUTO
        way = programs.chosen(self._progress) if said or self.observer is None else NONE
        if way == NONE:
            return
        made = JobCell(title, answers) if way == CELL else JobScreen(title, answers, programs.display(way, title))
        made.start()
        self._listeners.append(_Careful(made))

    def _fail(self, error: BaseException) -> None:
        """Tell with what exception the job has ended, unless its end was told. What cannot be told is a note of the exception."""
        if self._ended:
            return
        body = plain(failure(error))
        if isinstance(error, KeyboardInterrupt):
            kept = f" It is kept as {self._run}." if self._run is not None else ""
            in_a_sentence(
                error, f"{self._about['verb']} {self._about['script']} was stopped, and its processes have ended.{kept}"
            )
        if self._logged:
            # a command need not say it once more
            vars(error)["logged"] = True
        # somebody waits for the end of a job that was stopped
        stopped = not isinstance(error, Exception) or isinstance(error, JobCancelledError)
        for warning in self._tell(body, self._files(), hasty=stopped):
            error.add_note(f"warning: {warning}")

    def begun(self, run: Keeping) -> None:
        """Note that everything is checked, and under which name the run is kept."""
        self._run, self._folder, self._checked = run.id, run.path, True
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
            files = self._files(getattr(getattr(ended, "model", None), "path", None))
            ended.stats.warnings.extend(self._tell(plain(_whole(ended, output, self._run)), files))
        self._ended = True
        return ended

    def to_its_end(self, job: Callable[[], Given]) -> Given:
        """Run the job of a stream, in its thread, and tell how it has ended. Returns: what it returns. Raises: what it raises."""
        try:
            return self.succeed(job())
        except BaseException as e:
            self._fail(e)
            raise

    def _tell(self, body: Mapping[str, Any], files: Sequence[Files], hasty: bool = False) -> Sequence[str]:
        """Tell everybody how the job has ended.

        Args: body: as for `Listener.ended`, without secrets; files: those of the run; hasty: as for `Notify.tell`.
        Returns: warnings.
        """
        self._ended = True
        for listener in self._listeners:
            listener.ended(body)
        told = [*self._metrics.warnings] if self._metrics is not None else []
        told += [listener.warning for listener in self._listeners if listener.warning]
        if self._notify is not None:
            why = self._notify.tell({**body, "about": {**self._about, "ended": time.time()}}, hasty)
            told += [why] if why is not None else []
        if self._logged:
            # of a handler that raises, one of the warnings tells
            with contextlib.suppress(Exception):
                for warning in told:
                    JOBS.warning("%s", warning, extra={"job": self._run or self._about["script"], "task": None})
        if self._mlflow is not None:
            # last, as it may take long to send a model
            told += self._mlflow.ended(body, files)
        return told

    def _files(self, model: str | None = None) -> list[Files]:
        """Return the files of a run that are there. Args: model: the directory of the SavedModel that it has trained."""
        if self._mlflow is None or not self._checked:
            return []
        found = [Files(model, "model")] if model is not None else []
        if self._folder is not None:
            found.append(Files(os.path.join(self._folder, FOLDER), FOLDER))
        page = os.path.abspath(os.fspath(self._page)) if self._page is not None else None
        # not one of an earlier job, if it could not be written
        if page is not None and os.path.isfile(page) and os.path.getmtime(page) >= self._began:
            found.append(Files(page, ""))
        return [one for one in found if os.path.exists(one.path)]


class _Careful:
    """Passes on to a listener what it is told of a job. What it raises fails no job.

    Attributes: warning: what it has raised first, a warning; "": nothing.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.warning = ""

    def begun(self, run: str | None) -> None:
        self._try(lambda: self._listener.begun(run))

    def progress(self, progress: Progress) -> None:
        self._try(lambda: self._listener.progress(progress))

    def log(self, task: str, line: str) -> None:
        self._try(lambda: self._listener.log(task, line))

    def ended(self, body: Mapping[str, Any]) -> None:
        self._try(lambda: self._listener.ended(body))

    def _try(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception as e:
            why = f"{self._listener.what} do not have all of this job: {type(e).__name__}: {in_words(e)}"
            self.warning = self.warning or why


class _Both(ReportObserver):
    """The user's observer, and the listeners.

    Args: observer: None: there is no such observer; mlflow: takes reports.
    """

    def __init__(self, observer: Observer | None, listeners: Sequence[_Careful], mlflow: Mlflow | None) -> None:
        self._observer = observer
        self._listeners = listeners
        self._mlflow = mlflow
        #: the warnings so far, without secrets
        self._warnings: tuple[str, ...] = ()

    def report(self, report: Mapping[str, Any]) -> None:
        """Pass on a report to those who take them all."""
        if self._mlflow is not None:
            self._mlflow.report(report)

    def progress(self, progress: Progress) -> None:
        if self._observer is not None:
            self._observer.progress(progress)
        self._warnings += tuple(map(in_print, progress.warnings[len(self._warnings) :]))
        shown = dataclasses.replace(progress, warnings=self._warnings)
        for one in self._listeners:
            one.progress(shown)

    def log(self, task: str, line: str) -> None:
        if self._observer is not None:
            self._observer.log(task, line)
        for one in self._listeners:
            one.log(task, line)


def _whole(ended: Ended, output: str | None, run: str | None) -> dict[str, Any]:
    """Return the JSON object of a success without all that the tasks have reported, which may be long; the last is there, as `metrics`."""
    short = SimpleNamespace(stats=dataclasses.replace(ended.stats, reports=[]), tasks=ended.tasks, work_dir=ended.work_dir)
    return {**success(short, output, run), "metrics": latest(ended.stats.reports)}


def name_of(head: object) -> str:
    """Return what people call a script, a function or a model, without secrets: of a URL the last part of its path."""
    try:
        if isinstance(head, (str, os.PathLike)):
            text = os.fspath(head)
            text = in_print(text if isinstance(text, str) else os.fsdecode(text))
            # the query of a URL may be a signature; in the name of a file, these characters are no others
            path = re.split(r"[?#]", text, maxsplit=1)[0] if "://" in text else text
            return os.path.basename(path.rstrip("/")) or "?"
        return str(getattr(head, "__name__", type(head).__name__))
    except Exception:
        return "?"
