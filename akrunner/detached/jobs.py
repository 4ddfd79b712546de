"""Submits a detached job; asks a cluster for its state; ends it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, get_args

from akrunner import leftovers
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.engines.flink.program.submit import ENDED, NOT_TAKEN_OVER, SUSPENDED, TAKE_OVER_SECONDS
from akrunner.engines.flink.rest import Rest, about_python
from akrunner.engines.flink.schemas import schema_text
from akrunner.engines.flink.taskmanager.detached_host import unmarked
from akrunner.errors import ClusterError, ConfigError, JobError, JobManagerLostError
from akrunner.foreign import ours
from akrunner.history.keeping import Keeping, wanted
from akrunner.io.limits import in_time
from akrunner.launch.files import lay_out, read_script, writes_output
from akrunner.model import check_target
from akrunner.options import carried, meaningless, misfit, of_verb, paths_of
from akrunner.prepare.arguments import Arguments
from akrunner.prepare.job import check_output, prepare
from akrunner.prepare.layouts import layout_of
from akrunner.prepare.schemas import schema_of
from akrunner.serving.arguments import PredictArguments
from akrunner.serving.job import checked
from akrunner.spec import JobSpec, Mode
from akrunner.tables.opening import check_reachable
from akrunner.telling.notify import check_notify

_NAME = "akrunner "
#: what the host process of a detached job runs
_HOST = "akrunner.detached.host"
#: options that are paths of this machine, or may be a word; the paths of all others are those of the cluster's machines
_NOT_THERE = ("python_env", "requirements", "bad_rows")
DetachedMode = Literal["batch", "train", "predict"]
_MODES: tuple[DetachedMode, ...] = get_args(DetachedMode)
_NO_OUTPUT = "a detached job needs output= (--output): nobody is there to take its rows"
#: seconds to wait for the reason of a failure, as Flink's history of a job lags behind the job's state
_WHY_SECONDS = 5.0
#: how much is shown of the name of a job that is none of akrunner's
_NAME_SHOWN = 100
#: why a job failed whose host could not say it any more
_LOST = (
    "a TaskManager was lost on which the job's host or one of its subtasks ran, and the host cannot go on (max_restarts= does not cover "
    "that). Submit the job again: an output is committed only at a job's end"
)
#: a caller that waits for a job gets an error when its JobManager has not answered for this many seconds
_GONE_SECONDS = 8.0


@dataclass(frozen=True)
class Job:
    """A job that was submitted.

    Attributes:
        id: Flink's id of the job.
        master: "host:port" of the cluster.
        name: the name that Flink shows.
        run: the name under which the run is kept on this machine (`akrunner.runs.get`), None if it is not.
    """

    id: str
    master: str
    name: str
    run: str | None = None


@dataclass(frozen=True)
class Status:
    """A job's state, as Flink reports it.

    Attributes:
        id: Flink's id of the job.
        name: the name that Flink shows.
        state: Flink's word: RUNNING, FINISHED, FAILED, CANCELED ...
        seconds: how long ago the job was submitted, or, once it has ended, how long it took.
        tasks: how many subtasks the job has.
        running: how many of them are running.
        error: why the job failed, with the script's own traceback; None if it has not failed.
    """

    id: str
    name: str
    state: str
    seconds: float
    tasks: int
    running: int
    error: str | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def tag(self) -> str | None:
        """The mark of a detached job's lines in logs; None: the job has a submitter, which was not asked to leave it alone."""
        found = re.search(r"\[(\w+)\]$", self.name)
        return found[1] if found is not None else None

    @property
    def succeeded(self) -> bool | None:
        """Whether the job has succeeded; None: it has not ended, or Flink does not know, as the submitter of a job that is not
        detached ends Flink's part of it in the same way whether it has succeeded or failed: it lets the subtasks finish, and
        cancels those that take long."""
        if self.tag is None and self.state in ("FINISHED", "CANCELED"):
            return None
        return self.state == "FINISHED" if self.ended else None


def submit(script: Any, source: Any, *, engine: FlinkEngine, mode: DetachedMode = "batch", **options: Any) -> Job:
    """Submit a job and return at once; the job continues without this process.

    Args:
        script: the script, as for `akrunner.run`; in mode predict, the model. It travels with the job.
        source: paths or URLs that are valid on every machine of the cluster.
        engine: the engine of a lasting cluster; its `python_executable` needs akrunner's dependencies besides PyFlink.
        mode: batch, train or predict.
        options: as for `akrunner.run`, `train` or `predict`. Rows need `output=`, a model `model_out=`.
    Returns:
        the job, as Flink knows it.
    Raises:
        ConfigError: an argument is wrong; nothing was started.
        StartError: Flink did not accept the job.
    """
    if not isinstance(engine, FlinkEngine) or engine.master == "local":
        raise ConfigError(
            "a detached job needs a cluster that stays: give its address (--flink-master HOST:PORT); `akrunner flink start` "
            "brings one up"
        )
    if mode not in _MODES:
        raise ConfigError(
            f"mode={mode!r}: a detached job is {', '.join(_MODES)}; a stream is for a PyFlink program (`akrunner.flink.stream`)"
        )
    names = [source] if isinstance(source, (str, os.PathLike)) else source
    if not (isinstance(names, (list, tuple)) and names and all(isinstance(name, (str, os.PathLike)) for name in names)):
        raise ConfigError("a detached job reads files: give paths or URLs, not a table of this process")
    check_reachable([*names, options.get("output")])
    if options.get("bad_rows", "fail") not in ("fail", "skip"):
        raise ConfigError(
            "bad_rows (--bad-rows): a detached job keeps no bad rows, as they go to a directory of the machine that submits, and to no "
            "URL; give skip or fail, or run the job attached"
        )
    if callable(options.get("notify")):
        raise ConfigError("notify: a detached job goes on without this process, and can only tell a URL; give one (--notify)")
    check_notify(options.get("notify"))
    if options.get("report") is not None:
        raise ConfigError(
            "report (--report): a detached job goes on without this process; when it has ended, `akrunner report RUN` makes its page"
        )
    verb = "run" if mode == "batch" else mode
    said = {**options, "source": source, "engine": engine}
    wrong = misfit(options, verb, [one.name for one in of_verb(verb)]) or meaningless(verb, said, said)
    if wrong is not None:
        raise ConfigError(wrong)
    options = {name: value for name, value in options.items() if name != "observer"}
    # what is fetched before may take as long as the job, whose own time begins on the cluster
    with Keeping(verb, _said(verb, script, source, options), options.get("keep_run")) as run, in_time(options.get("timeout")):
        return _submitted(run, script, source, engine, mode, [_absolute(name) for name in names], verb, options)


def _said(verb: str, script: Any, source: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a job for its record."""
    head = "model" if verb == "predict" else "script"
    return {head: script, "source": source, "engine": FlinkEngine.name, **options}


def _submitted(
    run: Keeping,
    script: Any,
    source: Any,
    engine: FlinkEngine,
    mode: DetachedMode,
    paths: list[str],
    verb: str,
    options: dict[str, Any],
) -> Job:
    """Submit a job whose arguments fit. Args: run: keeps it; paths: the source's; verb: what its host calls; the others: as for `submit`."""
    # the host's machine keeps no run of its own: this one has it
    keeps, options = wanted(options.get("keep_run")), {**options, "keep_run": False}
    tag = secrets.token_hex(4)
    with ours(ConfigError, "the order cannot be written into the temp directory (TMPDIR)"):
        folder = leftovers.temp_folder("akrunner-")
    try:
        inside = os.path.join(folder, "order")
        os.mkdir(inside)
        order: dict[str, Any] = {"mode": mode, "source": paths, "files_there": engine.files_there, "keeps": keeps}
        if mode == "predict":
            job, shown = _prediction(script, source, engine, options, inside), "predict"
        else:
            job = _scripted(script, source, engine, mode, options, inside)
            shown = os.path.basename(job.script.name)
            order.update(script=job.script.path, real={place: real for real, place in job.script.files})
        with open(os.path.join(inside, "order.json"), "w") as f:
            json.dump({**order, "arguments": _arguments(job, verb, options, inside)}, f, default=os.fspath)
        archive = shutil.make_archive(inside, "zip", inside)
        name = f"{_NAME}{shown} [{tag}]"
        called = shown if mode == "predict" else job.script.name
        run.begin(called, [task.name for task in job.cluster.tasks], engine.name, {"python": job.python})
        found = engine.detach(job, _HOST, archive, name, tag)
        return Job(found, engine.master, name, run.submit(found, engine.master, name))
    finally:
        leftovers.drop(folder)


def _scripted(script: Any, source: Any, engine: FlinkEngine, mode: Mode, options: dict[str, Any], folder: str) -> JobSpec:
    """Return the job of a script, after all checks that can be done here; lay out the script and its files in `folder`.

    Raises:
        ConfigError: a check fails.
    """
    if mode == "train":
        if options.get("model_out") is None:
            raise ConfigError("a detached training job needs model_out= (--model-out): where to save the model")
        check_target(os.fspath(options["model_out"]), bool(options.get("overwrite")))
    elif options.get("output_schema") is not None and options.get("output") is None:
        raise ConfigError(_NO_OUTPUT)
    known = carried("run" if mode == "batch" else mode)
    given = {name: value for name, value in options.items() if name in known}
    arguments = Arguments(script=script, source=source, engine=engine, **given)
    job = prepare(mode, arguments).job
    output, form = options.get("output"), options.get("output_format")
    if mode == "batch" and output is None and writes_output(read_script(job.script)) is not None:
        raise ConfigError(_NO_OUTPUT)
    if output is not None and job.output_schema is not None:
        # this only checks; the host writes
        overwrite = bool(options.get("overwrite"))
        check_output(output, form, overwrite, job.output_schema.arrow, layout_of(arguments))
    lay_out(job.script, os.path.join(folder, "work"))
    return job


def _prediction(model: Any, source: Any, engine: FlinkEngine, options: dict[str, Any], folder: str) -> JobSpec:
    """Return the job of a prediction, checked as by `_scripted`; copy the model into `folder`.

    Raises:
        ConfigError: a check fails.
    """
    if options.get("output") is None:
        raise ConfigError(_NO_OUTPUT)
    prediction = checked(PredictArguments(model, source, engine=engine, **options))
    shutil.copytree(prediction.model.path, os.path.join(folder, "model"))
    return prediction.job


def _arguments(job: JobSpec, verb: str, options: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return the arguments with which the host calls the verb: values that JSON can hold, and paths that its machine knows."""
    there = [name for name in paths_of(verb) if name not in _NOT_THERE]
    arguments = {name: _absolute(value) if name in there and value is not None else value for name, value in options.items()}
    for name in ("user_files", "requirements"):
        arguments.pop(name, None)
    for name in ("output_schema", "input_schema"):
        schema = schema_of(arguments.get(name), name)
        arguments[name] = schema_text(schema.arrow) if schema is not None else None
    try:
        json.dumps(arguments.get("defaults"))
    except TypeError as e:
        raise ConfigError(f"defaults: of a detached job they are numbers and texts (of a date '2026-11-23'): {e}") from None
    if options.get("requirements") is not None:
        shutil.copy(options["requirements"], os.path.join(folder, "requirements.txt"))
        arguments["requirements"] = "requirements.txt"
    arguments["python_env"] = job.python
    return arguments


def _absolute(path: Any) -> str:
    text: str = os.fspath(path)
    if "://" in text:
        return text
    # a / at the end has a meaning (a directory), so keep it
    return os.path.abspath(os.path.expanduser(text)) + "/" * text.endswith("/")


def listed(master: str, seconds: float = 20.0) -> list[Status]:
    """Return the akrunner jobs that a cluster knows, the newest first.

    Args:
        master: "host:port" of the cluster.
        seconds: how long its answer may take.
    Raises:
        ConfigError: there is no such cluster.
    """
    jobs = sorted(Rest(master, seconds).jobs(), key=lambda job: -int(job["start-time"]))
    return [_status(job) for job in jobs if job["name"].startswith(_NAME)]


def status(master: str, job: str) -> Status:
    """Return the state of a job.

    Args:
        master: "host:port" of the cluster.
        job: Flink's id of the job, or the beginning of the id.
    Raises:
        ConfigError: there is no such cluster, or no such job of akrunner's, or several of their ids begin in this way.
    """
    cluster = Rest(master)
    found = _status(_meant(cluster, job))
    if found.state in ("FAILED", "FAILING"):
        return dataclasses.replace(found, error=_error(cluster, found.id))
    return found


def _meant(cluster: Rest, job: str) -> dict[str, Any]:
    """Return what a cluster says of the job that an id, or its beginning, means: only one of akrunner's, as others' jobs are
    not for akrunner to end.

    Raises:
        ConfigError: it means none, or several.
    """
    if not job:
        raise ConfigError("job='': give the id of a job, or its beginning; `akrunner status` lists the jobs")
    known = cluster.jobs()
    of_others = next((one["name"] for one in known if one["jid"] == job and not one["name"].startswith(_NAME)), None)
    if of_others is not None:
        raise ConfigError(f"job {job!r} at {cluster.master} is none of akrunner's: its name is {of_others[:_NAME_SHOWN]!r}")
    ours = [one for one in known if one["name"].startswith(_NAME)]
    found = [one for one in ours if one["jid"] == job] or [one for one in ours if one["jid"].startswith(job)]
    if len(found) != 1:
        many = "the ids of several of akrunner's jobs begin" if found else "no id of akrunner's jobs begins"
        raise ConfigError(f"job {job!r}: {many} so at {cluster.master}; `akrunner status` lists them")
    return found[0]


def wait(master: str, job: str | Status, every: float = 1.0) -> Status:
    """Wait until a job has ended, and return its state.

    Args:
        master: "host:port" of the cluster.
        job: as in `status`; or a state that the job had, which is asked for again at once.
        every: seconds from one request for the state to the next.
    Raises:
        ConfigError: there is no such cluster, or no such job; or the job is not detached, so that only its submitter knows
            whether it succeeds.
        JobManagerLostError: the cluster answered at first, and its JobManager is gone.
    """
    found = status(master, job) if isinstance(job, str) else job
    if found.tag is None:
        raise ConfigError(
            f"job {found.id!r} was not submitted with --detach: only its submitter knows whether it succeeds; Flink's state of it is "
            f"{found.state} (`akrunner status` without --wait shows it)"
        )
    patience = Patience(master, found.id)
    pause = every if isinstance(job, str) else 0.0
    while not found.ended:
        time.sleep(pause)
        pause = every
        with patience:
            found = patience.led(status(master, found.id))
    return found


class Patience:
    """A context for questions of one kind about a job that is known to run. It passes over a cluster that does not answer,
    refuses to, or does not know the job, until none of its questions has been answered for some seconds: then the JobManager
    is lost, and no argument is wrong. A job that is SUSPENDED has longer, as another JobManager may take it over.
    """

    def __init__(self, master: str, job: str) -> None:
        self._master = Rest(master).master
        self._job = job
        #: since when nothing was answered; None while nothing is asked
        self._since: float | None = None
        #: when a JobManager was last known to lead the job
        self._led = time.monotonic()

    def answered(self) -> None:
        """Note, within the block, that the cluster has answered, and is about to be asked for more."""
        self._since = time.monotonic()

    def led(self, found: Status) -> Status:
        """Return the job's state, which was asked for within the block.

        Raises:
            JobManagerLostError: its JobManager has gone, and nobody has taken it over.
        """
        now = time.monotonic()
        if found.state != SUSPENDED:
            self._led = now
        elif now - self._led > TAKE_OVER_SECONDS:
            raise JobManagerLostError(
                f"job {self._job} at {self._master} is {SUSPENDED}: {NOT_TAKEN_OVER.format(TAKE_OVER_SECONDS)}"
            )
        return found

    def __enter__(self) -> None:
        if self._since is None:
            self.answered()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        """Pass over a question without an answer.

        Raises:
            JobManagerLostError: there were only such for too long.
        """
        if not isinstance(error, ConfigError):
            self._since = None
            return False
        if self._since is not None and time.monotonic() - self._since > _GONE_SECONDS:
            raise JobManagerLostError(
                f"the JobManager at {self._master} {_gone(error)}; what became of job {self._job} cannot be known"
            ) from None
        return True


def _gone(error: ConfigError) -> str:
    """Return in words what a JobManager has become, by its last answer about a job that it knew."""
    if not isinstance(error, ClusterError) or error.missing:
        return "is gone: one that does not know the job answers in its place"
    why = str(error).partition(": ")[2]
    return f"no longer tells of the job: {why}" if error.answered else f"is gone: {why}"


def _status(job: dict[str, Any]) -> Status:
    counts = job["tasks"]
    return Status(job["jid"], job["name"], job["state"], job["duration"] / 1000, counts["total"], counts["running"])


def _error(cluster: Rest, job: str) -> str | None:
    """Return why a job failed: akrunner's own message if there is one, else Flink's; None if there is neither."""
    deadline = time.monotonic() + _WHY_SECONDS
    while not (traces := cluster.traces(job)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for trace in traces:
        words = unmarked(trace)
        if words:
            return words
    # the last message of Python's, else Java's innermost cause
    last = [word for trace in traces for word in re.findall(r"^([A-Za-z_][\w.]*: .*)\n\n?\tat ", trace, re.MULTILINE)]
    causes = [cause for trace in traces for cause in re.findall(r"Caused by: (.*)", trace)]
    found = next(iter(last[-1:] or causes[-1:] or [trace.splitlines()[0] for trace in traces]), None)
    if found is not None and re.search(r"TaskManager with id \S+ (is no longer reachable|timed out)", found):
        return f"JobError: {_LOST} (Flink: {found.partition(': ')[2] or found})"
    if found is not None and (python := about_python(found)):
        return f"StartError: Flink did not run the job: {found}{python}"
    # where akrunner's own exceptions are declared says nothing to a user
    return re.sub(r"^akrunner\.[\w.]+: ", "", found) if found is not None else None


def cancel(master: str, job: str, seconds: float = 60.0) -> Status:
    """Cancel a job, wait until it has ended, and return its state.

    Args:
        master: "host:port" of the cluster.
        job: as in `status`.
        seconds: how long to wait for the end.
    Raises:
        ConfigError: there is no such cluster, or no such job.
        JobError: the job has not ended after that time.
        JobManagerLostError: the JobManager is gone.
    """
    found = status(master, job)
    if not found.ended:
        Rest(master).cancel(found.id)
    deadline = time.monotonic() + seconds
    patience = Patience(master, found.id)
    while not found.ended:
        if time.monotonic() > deadline:
            raise JobError(f"job {found.id} is {found.state} {seconds:g} s after it was cancelled")
        time.sleep(0.2)
        with patience:
            found = status(master, found.id)
    return found
