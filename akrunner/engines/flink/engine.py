"""`FlinkEngine`: where it submits to, and what is checked before it does."""

from __future__ import annotations

import functools
import io
import json
import os
import queue
import socket
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request
from typing import Any, Dict, List, Mapping, Optional

from akrunner.cluster.resources import TaskResources, assign
from akrunner.engines.attempts import run_attempts
from akrunner.engines.base import Observer, Outcome, RowSink, RowSource
from akrunner.engines.flink.client import Client
from akrunner.engines.flink.hub import Hub, Place, RemoteProcess
from akrunner.engines.flink.java import java_home
from akrunner.engines.workdir import WorkDir
from akrunner.errors import ConfigError, JobError, StartError
from akrunner.launch.files import lay_out
from akrunner.launch.guard import Guard
from akrunner.spec import JobSpec, TaskSpec

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LOOPBACK = "127.0.0.1"
_TICK = 0.1
_HELLO_SECONDS = 30.0


class FlinkEngine:
    """Tasks on an Apache Flink cluster; see `akrunner.engines.base.Engine`.

    Args:
        master: "local" for a cluster that comes and goes with the job, or "host:port" of a session cluster's REST address.
        python: interpreter that has PyFlink, here; None: this one. It needs nothing of akrunner's.
        python_executable: the interpreter TaskManagers run PyFlink with; None: as `python`.
        host: address of this machine that TaskManagers reach; None: found out.
        slot_timeout: seconds all subtasks may take to come.
        options: Flink's own configuration, key -> value.
    As a context manager it keeps Java between jobs; each job starts some seconds sooner then.
    Raises: ConfigError: an argument is wrong.
    """

    name = "flink"

    def __init__(
        self,
        master: str = "local",
        *,
        python: Optional[str] = None,
        python_executable: Optional[str] = None,
        host: Optional[str] = None,
        slot_timeout: float = 120.0,
        options: Optional[Mapping[str, str]] = None,
    ) -> None:
        if master != "local" and not master.rpartition(":")[2].isdigit():
            raise ConfigError(f"master={master!r}: give 'local', or 'host:port' of the cluster's REST address")
        self.master = master
        self.python = os.path.abspath(python) if python is not None else sys.executable
        self.python_executable = python_executable or self.python
        self.host = host
        self.slot_timeout = slot_timeout
        self.options = dict(options or {})
        self._keeps = False
        self._client: Optional[Client] = None
        self._java: Optional[str] = None
        self._lock = threading.Lock()

    def run(
        self,
        job: JobSpec,
        source: RowSource,
        sink: Optional[RowSink],
        observer: Optional[Observer],
        cancel: Optional[threading.Event] = None,
    ) -> Outcome:
        """As `Engine.run`. Raises: ConfigError: no PyFlink, no Java, no cluster there, or too few free slots."""
        # cores and cards are of machines this one does not know: only a number of threads that was asked for is set
        resources = assign(job.cluster, job.resources, [], [], {"TF_NUM_INTRAOP_THREADS": "", "OMP_NUM_THREADS": ""})
        home = self._checked(job)

        def launcher(work: WorkDir, guard: Guard) -> FlinkLauncher:
            return FlinkLauncher(self, job, work, guard, resources, home)

        return run_attempts(job, source, sink, observer, cancel, launcher)

    def __enter__(self) -> "FlinkEngine":
        """Keep the process that submits, and its Java, for several jobs, until the block ends."""
        self._keeps = True
        return self

    def __exit__(self, *error: Any) -> None:
        self._keeps = False
        if self._client is not None:
            self._client.close()
            self._client = None

    def client(self, java: str) -> Client:
        """The process that submits: the one that is kept, or a new one."""
        with self._lock:
            if self._client is not None and self._client.alive:
                return self._client
            made = Client(self.python, java)
            if self._keeps:
                self._client = made
            return made

    def done_with(self, client: Client) -> None:
        """A job has ended."""
        if client is not self._client:
            client.close()

    def reachable_host(self) -> str:
        """This machine's address, as the cluster sees it."""
        if self.host is not None:
            return self.host
        if self.master == "local":
            return _LOOPBACK
        host, _, port = self.master.rpartition(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                # no packet is sent: it only chooses the way
                probe.connect((host, int(port)))
                return str(probe.getsockname()[0])
            except OSError:
                return _LOOPBACK

    def _checked(self, job: JobSpec) -> str:
        """Java's home, when everything needed is there."""
        if job.mode == "stream":
            raise ConfigError(
                "engine 'flink': this version runs batch and train jobs there; streams and predictions on 'local'"
            )
        if job.resources.gpus_per_worker or job.resources.cpus_per_worker:
            raise ConfigError(
                "gpus_per_worker, cpus_per_worker: on Flink a slot's share is the cluster's to say; leave them out"
            )
        if self.master != "local":
            self._check_slots(len(job.cluster.tasks))
        if self._java is not None:
            return self._java
        if not _has(self.python, "pyflink"):
            raise ConfigError(
                f"engine 'flink': {self.python} has no PyFlink; pip install 'akrunner[flink]', or name one that has: "
                "FlinkEngine(python=...)"
            )
        self._java = java_home(self.python)
        return self._java

    def _check_slots(self, needed: int) -> None:
        url = f"http://{self.master}/overview"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                free = int(json.load(answer)["slots-available"])
        except (OSError, ValueError, KeyError, urllib.error.URLError) as e:
            raise ConfigError(f"master={self.master!r}: no Flink cluster answers at {url}: {e}") from None
        if free < needed:
            raise ConfigError(
                f"the job needs {needed} task slots, {free} free at {self.master}: start another TaskManager, or turn down "
                "num_workers= or num_ps="
            )


class FlinkLauncher:
    """One attempt's Flink job, and the places it gives; see `akrunner.engines.launcher.Launcher`."""

    def __init__(
        self,
        engine: FlinkEngine,
        job: JobSpec,
        work: WorkDir,
        guard: Guard,
        resources: Mapping[TaskSpec, TaskResources],
        java: str,
    ) -> None:
        self._engine = engine
        self._job = job
        self._work = work
        self._guard = guard
        self._resources = resources
        self._java = java
        self._places: Dict[TaskSpec, Place] = {}

    def __enter__(self) -> "FlinkLauncher":
        host = self._engine.reachable_host()
        self._hub = Hub(host)
        self._client = self._engine.client(self._java)
        self._guard.watch(self._client.pid)
        self._guard.remove(self._client.folder)
        order = {
            "master": self._engine.master,
            "subtasks": len(self._job.cluster.tasks),
            "python": self._engine.python_executable,
            "address": [host, self._hub.port],
            "token": self._hub.token,
            "options": self._engine.options,
            "name": "akrunner " + os.path.basename(self._job.script.real),
        }
        self._submitted = self._client.submit(order)
        return self

    def addresses(self) -> Mapping[TaskSpec, str]:
        """Waits until every subtask has come. Raises: StartError: some did not, or Flink failed."""
        tasks = self._job.cluster.tasks
        deadline = time.monotonic() + self._engine.slot_timeout
        came: List[Place] = []
        while len(came) < len(tasks):
            try:
                place = self._hub.arrived.get(timeout=_TICK)
            except queue.Empty:
                self._check_starting(len(came), deadline)
                continue
            place.say(bind_host=self._job.bind_host, advertised_host=self._job.advertised_host)
            told = place.hear(_HELLO_SECONDS)
            if told is None:
                continue
            place.address, place.folder = told["address"], told["folder"]
            came.append(place)
        self._places = dict(zip(tasks, came))
        return {task: place.address for task, place in self._places.items()}

    def _check_starting(self, came: int, deadline: float) -> None:
        needed = len(self._job.cluster.tasks)
        if self._submitted.ended.is_set():
            raise StartError(f"Flink did not run the job: {self._submitted.failed or self._submitted.state}")
        if time.monotonic() > deadline:
            raise StartError(
                f"{came} of {needed} subtasks came within {self._engine.slot_timeout:g} s (slot_timeout=); the Flink job is "
                f"{self._submitted.state}: it may lack task slots"
            )

    def context(self, task: TaskSpec, tf_config: Mapping[str, Any], attempt: int) -> Dict[str, Any]:
        folder = self._places[task].folder
        checkpoints = self._job.checkpoint_dir
        if checkpoints is None and self._places[task].address.startswith(_LOOPBACK):
            # on this machine every task reaches it
            checkpoints = os.path.join(self._work.path, "checkpoints")
            os.makedirs(checkpoints, mode=0o700, exist_ok=True)
        return self._job.context(task, tf_config, folder, f"{folder}/work", checkpoints, attempt)

    def start(self, task: TaskSpec) -> RemoteProcess:
        job = self._job
        order = {
            "python": job.python,
            "env": {**self._resources[task].env, **job.task_env},
            "directories": ["work", "tmp", *(["saved_model"] if job.mode == "train" else [])]
            + (["latest_ckpt"] if job.save_latest_checkpoint else []),
        }
        return RemoteProcess(self._places[task], self._package, order, job.supervision.start_timeout)

    @functools.cached_property
    def _package(self) -> bytes:
        """The bundle, the script and its files, as a tar: the same for every task."""
        files = self._work.files_dir(self._job.cluster.tasks[0])
        lay_out(self._job.script, files)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(self._work.bundle, "bundle.zip")
            archive.add(files, "work")
        return packed.getvalue()

    def ready(self) -> None:
        pass

    def check(self) -> None:
        """Raises: JobError: Flink has ended the job."""
        told = self._submitted
        if told.ended.is_set() and all(place.process is None or place.process.exit for place in self._places.values()):
            raise JobError(f"Flink ended the job: {told.failed or told.state}")

    def ended(self) -> None:
        """Agents clean up when they are told to go; what is to be kept is fetched before."""
        if not self._work.keep:
            return
        for task, place in self._places.items():
            if place.process is not None and not place.gone.is_set():
                self._fetch(task, ["work", "dataset.tfrecord", "dataset.columns"])
                self._work.moved_here(task, place.folder)

    def take_model(self) -> None:
        if self._job.model_dir is not None:
            self._fetch(self._job.cluster.tasks[0], ["saved_model", "latest_ckpt"])
            self._work.take_model(self._job)

    def _fetch(self, task: TaskSpec, names: List[str]) -> None:
        """Files and directories of a task, into its directory here. Raises: JobError: its machine has gone."""
        place = self._places[task]
        place.say(give=names)
        try:
            connection = place.channel("give").get(timeout=60)
            with connection, connection.makefile("rb") as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
                archive.extractall(self._work.task_dir(task), filter="data")
        except (queue.Empty, OSError, tarfile.TarError) as e:
            raise JobError(f"[{task.name}] its files could not be brought here: {e!r}") from None

    def __exit__(self, *error: Any) -> None:
        for place in self._places.values():
            place.say(end=True)
        while not self._hub.arrived.empty():
            self._hub.arrived.get().close()
        # every subtask has what it needs to end by itself; one that is stuck, or never came, needs Flink
        if not self._places or not self._submitted.ended.wait(5.0):
            self._client.cancel(self._submitted)
            self._submitted.ended.wait(10.0)
        self._guard.forget(self._client.pid)
        self._engine.done_with(self._client)
        self._hub.close()


def _has(python: str, module: str) -> bool:
    """Whether an interpreter can import a module."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        return subprocess.run([python, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
