"""`mlflow=`: a job as a run of MLflow tracking: its params, its metrics with their steps, how it has ended, its model and its logs.

::

    supervisor      each report  --deque-->  a thread of its own  --log_batch, about once a second-->  the server
    the job's end                --------->  the rest, tags, the status, and then files

Only the end of the job waits for the thread, and only so long. A server that is away is asked again while the job runs. MLflow's client heeds
MLflow's own variables (credentials, certificates, timeouts) itself.
"""

from __future__ import annotations

import functools
import getpass
import importlib.util
import os
import posixpath
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from akrunner.checks import check_text
from akrunner.errors import ConfigError
from akrunner.foreign import in_words, redacted
from akrunner.history.words import value as in_text

if TYPE_CHECKING:
    from akrunner.history.record import Record

Given = TypeVar("Given")

#: in place of a URI: as MLflow's own environment variables say, or the program around the job
AUTO = "auto"
#: variables of MLflow that say in which experiment runs are, if nothing else does; the experiment that every server has
_EXPERIMENT, _EXPERIMENT_ID, _DEFAULT = "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID", "0"
#: seconds from one batch to the next, and from a try that failed to the next one
_EVERY, _AGAIN = 1.0, 5.0
#: how many metrics, and params, MLflow takes in one call; characters of a name, of a param, of a tag
_BATCH, _PARAMS, _NAME, _TEXT, _LONG_TEXT = 1000, 100, 250, 500, 4000
#: how many reports wait for a server that is away
_MOST_REPORTS = 100_000
#: seconds for which the end of a job waits: after a success, as a model may be large; after a failure; if somebody has stopped it and waits; while
#: no server has answered at all
_SUCCESS_SECONDS, _FAILURE_SECONDS, _HASTY_SECONDS, _UNANSWERED_SECONDS = 600.0, 60.0, 5.0, 15.0
_TICK = 0.1
_KNOB = "mlflow=, --mlflow"
#: what names of ours begin with, among those of a script and of MLflow
_OURS = "akrunner"
#: numbers of the stats by which runs are compared
_NUMBERS = ("seconds", "start_seconds", "main_seconds", "input_wait_seconds", "rows_in", "rows_out", "attempt")
#: arguments that are told otherwise, that say nothing of the job, or of which some may be secrets
_UNTOLD = ("user_params", "script", "env", "mlflow", "mlflow_experiment", "tensorboard", "report")
#: has MLflow print nothing to stdout, where rows, or the JSON of a result, may be
_SILENT = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
#: exit codes from which on somebody has stopped the job
_STOPPED = 129


@dataclass(frozen=True)
class Files:
    """A file, or a directory, that belongs to a run. Attributes: path: where it is; at: the directory of the run's artifacts, "" for the uppermost."""

    path: str
    at: str


class Mlflow:
    """The run of one job.

    Args:
        to: the URI of the server, or `AUTO`.
        experiment: the name of the experiment, None: as the environment says.
    Raises: ConfigError: an argument is wrong, or MLflow's library is not installed.
    """

    def __init__(self, to: str, experiment: str | None) -> None:
        uri = check_text("mlflow", to)
        self._experiment = (
            check_text("mlflow_experiment", experiment) if experiment is not None else os.environ.get(_EXPERIMENT) or None
        )
        if importlib.util.find_spec("mlflow") is None:
            raise ConfigError("mlflow: it needs MLflow's library, which is missing: pip install 'akrunner[mlflow]'")
        self._uri = None if uri == AUTO else uri
        self._sender: _Sender | None = None

    def begin(self, about: Record, run: str | None, hparams: Mapping[str, bool | float | str]) -> None:
        """Begin the run, in a thread.

        Args:
            about: what is known of the job; run: the name under which it is kept; hparams: the params of its script.
        """
        parent = _active() if self._uri is None else None
        tags = _tags(about, run)
        experiment_id = os.environ.get(_EXPERIMENT_ID) or _DEFAULT
        if parent is not None:
            tags["mlflow.parentRunId"], experiment_id = parent
        name = " ".join(filter(None, (os.path.splitext(os.path.basename(about.script))[0], run)))
        first = about.tasks[0] if about.tasks else ""
        begin = _Begin(name, about.began, tags, _params(about, hparams), first)
        self._sender = _Sender(self._uri, self._experiment, experiment_id, begin)
        self._sender.start()

    def report(self, report: Mapping[str, Any]) -> None:
        """Have a report sent."""
        if self._sender is not None:
            self._sender.take(report)

    def ended(self, body: Mapping[str, Any], files: Sequence[Files]) -> list[str]:
        """Tell how the job has ended, and wait until that is told, or for so long as its end may wait.

        Args: body: as `Listener.ended` has it; files: those of the run.
        Returns: warnings: what could not be told.
        """
        sender, self._sender = self._sender, None
        if sender is None:
            return []
        stopped = body["exit_code"] >= _STOPPED
        sender.end(_End(body, files, "FINISHED" if body["ok"] else "KILLED" if stopped else "FAILED"))
        return sender.told_within(_SUCCESS_SECONDS if body["ok"] else _HASTY_SECONDS if stopped else _FAILURE_SECONDS)


@dataclass(frozen=True)
class _Begin:
    """What is told of a run when it begins.

    Attributes:
        began: when, in seconds since 1970.
        first: the task whose metrics have their own names; those of others follow their task's.
    """

    name: str
    began: float
    tags: Mapping[str, str]
    params: Mapping[str, str]
    first: str


@dataclass(frozen=True)
class _End:
    """What is told of a run when it has ended. Attributes: status: MLflow's word for how."""

    body: Mapping[str, Any]
    files: Sequence[Files]
    status: str


class _GivenUp(Exception):
    """The job has ended, and the server is away."""


class _Sender:
    """The thread that talks to the server.

    Args:
        uri: the server's, None: as MLflow knows it.
        experiment: its name, None: `experiment_id` says which it is.
    """

    def __init__(self, uri: str | None, experiment: str | None, experiment_id: str, begin: _Begin) -> None:
        self._uri, self._experiment, self._experiment_id = uri, experiment, experiment_id
        self._begin = begin
        self._end: _End | None = None
        self._reports: deque[Mapping[str, Any]] = deque()
        self._steps: dict[str, int] = {}
        self._lost = 0
        #: when the server was first asked, by `time.monotonic`; None: not yet
        self._asked: float | None = None
        self._ending, self._answered, self._done = threading.Event(), threading.Event(), threading.Event()
        #: what could not be told; and why the newest call has failed, "" if it has not
        self._failed: list[str] = []
        self._why = ""

    # -- in the threads of the job

    def start(self) -> None:
        """Begin. The thread does not keep the program from ending."""
        threading.Thread(target=self._run, name="akrunner-mlflow", daemon=True).start()

    def take(self, report: Mapping[str, Any]) -> None:
        """Have a report sent. One that comes while too many wait is left out."""
        if len(self._reports) < _MOST_REPORTS:
            self._reports.append(report)
        else:
            self._lost += 1

    def end(self, end: _End) -> None:
        """Have it sent how the job has ended."""
        self._end = end
        self._ending.set()

    def told_within(self, seconds: float) -> list[str]:
        """Wait until all is told, for so many seconds at most. Returns: warnings: what was not."""
        began = time.monotonic()
        failed = list[str]()
        # short waits only: where polars was imported, Ctrl-C does not end a longer one
        while not self._done.wait(_TICK):
            waited = time.monotonic() - began
            # to import the library may take long, too
            asked = time.monotonic() - (self._asked or time.monotonic())
            unanswered = min(waited, asked) >= _UNANSWERED_SECONDS and not self._answered.is_set()
            if waited >= seconds or unanswered:
                what = "the server has not taken all of the run" if self._answered.is_set() else "no server has answered"
                failed.append(f"{what} within {waited:.0f} s" + (f": {self._why}" if self._why else ""))
                break
        if self._lost:
            failed.append(f"{self._lost:,} reports were left out, as too many waited for the server")
        return [f"mlflow: {one} ({_KNOB})" for one in [*self._failed, *failed]]

    # -- in the thread

    def _run(self) -> None:
        try:
            self._send()
        except _GivenUp:
            self._failed.append(f"not all of the run was logged: {self._why}")
        except Exception as e:
            # a fault of a library ends the thread, and not the job
            self._failed.append(f"no more of the run was logged: {in_words(e)}")
        finally:
            self._done.set()

    def _send(self) -> None:
        opened = self._tried("there is no run", self._open)
        if opened is None:
            return
        client, run = opened
        for params in _parts(list(self._begin.params.items()), _PARAMS):
            self._tried("params", functools.partial(_log_params, client, run, params))
        while not self._ending.wait(_EVERY):
            self._send_metrics(client, run)
        self._send_metrics(client, run)
        if self._end is not None:
            self._send_end(client, run, self._end)

    def _open(self) -> tuple[Any, str]:
        """Make the run. Returns: MLflow's client, and the run's id."""
        from mlflow import MlflowClient

        self._asked = self._asked or time.monotonic()
        client = MlflowClient(tracking_uri=self._uri)
        experiment_id = self._experiment_id
        if self._experiment is not None:
            found = client.get_experiment_by_name(self._experiment)
            experiment_id = found.experiment_id if found is not None else client.create_experiment(self._experiment)
        start = int(self._begin.began * 1000)
        made = client.create_run(experiment_id, start, dict(self._begin.tags), self._begin.name)
        return client, made.info.run_id

    def _send_metrics(self, client: Any, run: str) -> None:
        """Send the reports that wait."""
        while self._reports:
            reports = [self._reports.popleft() for _ in range(min(len(self._reports), _BATCH))]
            metrics = self._tried("metrics", functools.partial(self._made, reports)) or []
            for part in _parts(metrics, _BATCH):
                self._tried("metrics", functools.partial(client.log_batch, run, metrics=part))

    def _made(self, reports: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the metrics of reports as MLflow's client takes them."""
        from mlflow.entities import Metric

        return [Metric(*values) for report in reports for values in self._metrics(report)]

    def _metrics(self, report: Mapping[str, Any]) -> Iterator[tuple[str, float, int, int]]:
        """Yield name, value, time in milliseconds and step of each metric of a report; its step is the one after the task's last if it names none."""
        task = report["task"]
        step = report["step"] if report["step"] is not None else self._steps.get(task, -1) + 1
        self._steps[task] = step
        ahead = "" if task == self._begin.first else f"{task.replace(':', '-')}/"
        for name, value in report.items():
            if name not in ("task", "step", "time_ns"):
                yield _named(ahead + name), value, report["time_ns"] // 1_000_000, step

    def _send_end(self, client: Any, run: str, end: _End) -> None:
        """Send how the job has ended, and then its files, so that the run has ended also if these take long."""
        from mlflow.entities import Metric, RunTag

        body, now = end.body, time.time_ns() // 1_000_000
        stats = body.get("stats") or {}
        numbers = [Metric(f"akrunner/{name}", float(stats[name]), now, 0) for name in _NUMBERS if name in stats]
        told = {"exit_code": body["exit_code"], "error": body.get("error"), "message": body.get("message")}
        tags = [
            RunTag(f"{_OURS}.{name}", redacted(str(one))[:_LONG_TEXT]) for name, one in told.items() if one not in (None, "")
        ]
        self._tried("the end", functools.partial(client.log_batch, run, metrics=numbers, tags=tags))
        self._tried("the end", functools.partial(_terminate, client, run, end.status))
        trace = (body.get("failure") or {}).get("traceback")
        if trace:
            self._tried("failure.txt", functools.partial(client.log_text, run, redacted(trace), "failure.txt"))
        for one in end.files:
            log = client.log_artifacts if os.path.isdir(one.path) else client.log_artifact
            self._tried(one.at or os.path.basename(one.path), functools.partial(log, run, one.path, one.at or None))

    def _tried(self, what: str, call: Callable[[], Given]) -> Given | None:
        """Make a call, again and again while the server is away.

        Args: what: what is logged, for a warning.
        Returns: what the call returns; None: it was refused.
        Raises: _GivenUp: the job has ended, and the server is still away.
        """
        while True:
            last = self._ending.is_set()
            try:
                made = call()
            except Exception as e:
                self._why = in_words(e)
                if not _is_away(e):
                    self._answered.set()
                    words = f"{what}: {self._why}"
                    if words not in self._failed:
                        self._failed.append(words)
                    return None
            else:
                self._answered.set()
                self._why = ""
                return made
            if last:
                raise _GivenUp
            self._ending.wait(_AGAIN)


def _is_away(error: Exception) -> bool:
    """Whether a call may succeed later: MLflow's exceptions say which status an answer had, or would have; those of connections are errors of
    the system, and name no file. Any other is a fault of this process, which would be there the next time, too."""
    if not hasattr(error, "get_http_status_code"):
        return isinstance(error, OSError) and error.filename is None
    status = error.get_http_status_code()
    return bool(status >= 500 or status in (408, 429))


def _active() -> tuple[str, str] | None:
    """Return the id of the run that the program around the job has begun, and that of its experiment; None if there is none."""
    active = getattr(sys.modules.get("mlflow"), "active_run", lambda: None)()
    return (active.info.run_id, active.info.experiment_id) if active is not None else None


def _log_params(client: Any, run: str, params: Sequence[tuple[str, str]]) -> None:
    from mlflow.entities import Param

    client.log_batch(run, params=[Param(name, value) for name, value in params])


def _terminate(client: Any, run: str, status: str) -> None:
    """End a run. MLflow would print where to look at it."""
    before = os.environ.get(_SILENT)
    os.environ[_SILENT] = "true"
    try:
        client.set_terminated(run, status)
    finally:
        if before is None:
            os.environ.pop(_SILENT, None)
        else:
            os.environ[_SILENT] = before


def _tags(about: Record, run: str | None) -> dict[str, str]:
    """Return the tags of a run: those that MLflow's pages show, and akrunner's own."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        # a user of a container may have no name
        user = ""
    script = os.path.basename(about.script)
    known = {"mlflow.source.name": script, "mlflow.source.type": "LOCAL", "mlflow.user": user}
    ours = {"run": run, "verb": about.verb, "script": script, "script_sha256": about.script_sha256, "engine": about.engine}
    versions = {f"version.{name.replace(' ', '_')}": version for name, version in about.versions.items()}
    own = {f"{_OURS}.{name}": text for name, text in {**ours, **versions, "machine": about.host.get("machine")}.items()}
    return {name: str(text) for name, text in {**known, **own}.items() if text}


def _params(about: Record, hparams: Mapping[str, bool | float | str]) -> dict[str, str]:
    """Return the params of a run: the script's own by their names, and the job's arguments behind "akrunner."."""
    others = {f"{_OURS}.{name}": value for name, value in about.arguments.items() if name not in _UNTOLD}
    return {_named(name): in_text(value)[:_TEXT] for name, value in {**hparams, **others}.items()}


def _named(name: str) -> str:
    """Return a name that MLflow takes: letters, digits, and _ - . / and blanks, as a path in its simplest form."""
    safe = re.sub(r"[^\w\-. /]", "_", name)[:_NAME]
    simple = posixpath.normpath(safe) == safe and not safe.startswith((".", "/"))
    return safe if simple else re.sub(r"\W", "_", safe) or "_"


def _parts(values: Sequence[Given], size: int) -> Iterator[Sequence[Given]]:
    return (values[begin : begin + size] for begin in range(0, len(values), size))
