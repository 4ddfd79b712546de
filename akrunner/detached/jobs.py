"""Submit a detached job; ask a cluster how it is, what it has printed; end it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional

from akrunner import codec
from akrunner.engines.flink.engine import FlinkEngine
from akrunner.engines.flink.feed import schema_text
from akrunner.engines.flink.hosting import unmarked
from akrunner.engines.flink.rest import ENDED, Rest
from akrunner.errors import ConfigError, JobError
from akrunner.io.sinks import sink_to
from akrunner.launch.files import lay_out
from akrunner.model import check_target
from akrunner.prepare import Arguments, Prepared, prepare, schema_of

_NAME = "akrunner "
#: arguments that name files or directories of the cluster's machines
_PATHS = ("output", "model_out", "checkpoint_dir", "tensorboard", "work_dir")
_MODES = ("batch", "train")
#: Flink's history of a job lags behind its state
_WHY_SECONDS = 5.0


@dataclass(frozen=True)
class Job:
    """A job that was submitted. Attributes: id: Flink's; master: "host:port" of the cluster; name: as Flink shows it."""

    id: str
    master: str
    name: str


@dataclass(frozen=True)
class Status:
    """A job as Flink knows it.

    Attributes: state: Flink's word: RUNNING, FINISHED, FAILED, CANCELED ...; seconds: since it was submitted, or that it took; tasks:
    subtasks of the job, those that run; error: why it failed, the script's own traceback in it.
    """

    id: str
    name: str
    state: str
    seconds: float
    tasks: int
    running: int
    error: Optional[str] = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def submit(script: Any, source: Any, *, engine: FlinkEngine, mode: str = "batch", **options: Any) -> Job:
    """Submit a job and return at once; it runs on without this process.

    Args:
        source: paths or URLs, as every machine of the cluster knows them.
        engine: of a cluster that stays; its `python_executable` needs akrunner's dependencies beside PyFlink.
        mode: batch, or train.
        options: as for `akrunner.run` or `akrunner.train`. Rows need `output=`, a model `model_out=`.
    Raises: ConfigError: an argument is wrong; nothing was started. StartError: Flink did not take the job.
    """
    if engine.master == "local":
        raise ConfigError(
            "a detached job needs a cluster that stays: give its address (--flink-master HOST:PORT); `akrunner flink start` brings one up"
        )
    if mode not in _MODES:
        raise ConfigError(
            f"mode={mode!r}: a detached job is batch or train; a stream is for a PyFlink program (`akrunner.flink.stream`)"
        )
    names = [source] if isinstance(source, (str, os.PathLike)) else source
    if not (isinstance(names, (list, tuple)) and names and all(isinstance(name, (str, os.PathLike)) for name in names)):
        raise ConfigError("a detached job reads files: give paths or URLs, not a table of this process")
    options = {name: value for name, value in options.items() if name != "observer"}
    prepared = _checked(script, source, engine, mode, options)
    tag = secrets.token_hex(4)
    folder = tempfile.mkdtemp(prefix="akrunner-")
    try:
        order = {"mode": mode, "source": [_absolute(name) for name in names], "files_there": engine.files_there}
        _write_order(os.path.join(folder, "order"), prepared, order, options)
        archive = shutil.make_archive(os.path.join(folder, "order"), "zip", os.path.join(folder, "order"))
        name = f"{_NAME}{os.path.basename(prepared.job.script.real)} [{tag}]"
        return Job(engine.detach(prepared.job, archive, name, tag), engine.master, name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _checked(script: Any, source: Any, engine: FlinkEngine, mode: str, options: Dict[str, Any]) -> Prepared:
    """Everything that can be known here. Raises: ConfigError."""
    if mode == "train":
        if options.get("model_out") is None:
            raise ConfigError("a detached training job needs model_out= (--model-out): where to save the model")
        check_target(os.fspath(options["model_out"]), bool(options.get("overwrite")))
    elif options.get("output_schema") is not None and options.get("output") is None:
        raise ConfigError("a detached job needs output= (--output): nobody is there to take its rows")
    known = {one.name for one in dataclasses.fields(Arguments)}
    given = {name: value for name, value in options.items() if name in known}
    prepared = prepare(mode, Arguments(script=script, source=source, engine=engine, **given), "")
    schema = prepared.job.output_schema
    if options.get("output") is not None and schema is not None:
        # it only looks; the host writes
        sink_to(
            os.fspath(options["output"]),
            schema.arrow,
            codec.write_examples,
            options.get("output_format"),
            bool(options.get("overwrite")),
        )
    return prepared


def _write_order(folder: str, prepared: Prepared, order: Dict[str, Any], options: Dict[str, Any]) -> None:
    """What `akrunner.detached.host` does, as files."""
    job = prepared.job
    work = os.path.join(folder, "work")
    lay_out(job.script, work)
    arguments = {name: _absolute(value) if name in _PATHS and value is not None else value for name, value in options.items()}
    for name in ("user_files", "requirements"):
        arguments.pop(name, None)
    for name in ("output_schema", "input_schema"):
        schema = schema_of(arguments.get(name), name)
        arguments[name] = schema_text(schema.arrow) if schema is not None else None
    if options.get("requirements") is not None:
        shutil.copy(options["requirements"], os.path.join(folder, "requirements.txt"))
        arguments["requirements"] = "requirements.txt"
    arguments["python_env"] = job.python
    real = {place: real for real, place in job.script.files}
    with open(os.path.join(folder, "order.json"), "w") as f:
        json.dump({**order, "script": job.script.path, "real": real, "arguments": arguments}, f, default=os.fspath)


def _absolute(path: Any) -> str:
    text: str = os.fspath(path)
    if "://" in text:
        return text
    # a / at its end says something
    return os.path.abspath(os.path.expanduser(text)) + "/" * text.endswith("/")


def listed(master: str) -> List[Status]:
    """The akrunner jobs a cluster knows, the newest first. Raises: ConfigError: there is none."""
    jobs = sorted(Rest(master).get("/jobs/overview")["jobs"], key=lambda job: -int(job["start-time"]))
    return [_status(job) for job in jobs if job["name"].startswith(_NAME)]


def status(master: str, job: str) -> Status:
    """Args: job: Flink's id, or its beginning. Raises: ConfigError: no cluster, or no such job."""
    cluster = Rest(master)
    matching = [one for one in cluster.get("/jobs/overview")["jobs"] if one["jid"].startswith(job)]
    if len(matching) != 1:
        many = "more than one id begins" if matching else "no id begins"
        raise ConfigError(f"job {job!r}: {many} so at {master}; `akrunner status` lists them")
    found = _status(matching[0])
    if found.state in ("FAILED", "FAILING"):
        return dataclasses.replace(found, error=_error(cluster, found.id))
    return found


def _status(job: Dict[str, Any]) -> Status:
    counts = job["tasks"]
    return Status(job["jid"], job["name"], job["state"], job["duration"] / 1000, counts["total"], counts["running"])


def _error(cluster: Rest, job: str) -> Optional[str]:
    """Why it failed: akrunner's own words if it came to that, else Flink's."""
    deadline = time.monotonic() + _WHY_SECONDS
    while not (traces := _traces(cluster, job)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for trace in traces:
        words = unmarked(trace)
        if words:
            return words
    # Python's own last words, else Java's innermost
    last = [word for trace in traces for word in re.findall(r"^([A-Za-z_][\w.]*: .*)\n\n?\tat ", trace, re.MULTILINE)]
    causes = [cause for trace in traces for cause in re.findall(r"Caused by: (.*)", trace)]
    return next(iter(last[-1:] or causes[-1:] or [trace.splitlines()[0] for trace in traces]), None)


def _traces(cluster: Rest, job: str) -> List[str]:
    """Java's exceptions of a job, the root's first."""
    entries = cluster.get(f"/jobs/{job}/exceptions").get("exceptionHistory", {}).get("entries", [])
    return [trace["stacktrace"] for entry in entries for trace in [entry, *entry.get("concurrentExceptions", [])]]


def logs(master: str, job: str) -> Iterator[str]:
    """What the tasks and the host have printed, line by line, as far as the TaskManagers' logs have it.

    Raises: ConfigError: no cluster, or no such job.
    """
    found = re.search(r"\[(\w+)\]$", status(master, job).name)
    if found is None:
        raise ConfigError(f"job {job!r} was not submitted with --detach: its lines are its submitter's")
    mark = f"akrunner[{found.group(1)}] "
    cluster = Rest(master)
    for taskmanager in cluster.get("/taskmanagers")["taskmanagers"]:
        for line in cluster.log(taskmanager["id"]):
            _, begins, text = line.partition(mark)
            if begins:
                yield text


def cancel(master: str, job: str, seconds: float = 60.0) -> Status:
    """End it, and wait for its end. Raises: ConfigError: no cluster, or no such job; JobError: it has not ended by then."""
    found = status(master, job)
    if not found.ended:
        Rest(master).cancel(found.id)
    deadline = time.monotonic() + seconds
    while not found.ended:
        if time.monotonic() > deadline:
            raise JobError(f"job {found.id} is {found.state} {seconds:g} s after it was cancelled")
        time.sleep(0.2)
        found = status(master, found.id)
    return found
