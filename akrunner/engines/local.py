"""The local engine: the tasks are child processes of this process.

::

    run_attempts (akrunner.engines.attempts) -> Supervisor (akrunner.engines.supervisor)
        -> LocalLauncher: a child process for each task
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from akrunner.cluster.ports import PortHold
from akrunner.cluster.resources import TaskResources, assign
from akrunner.engines.attempts import run_attempts
from akrunner.engines.base import Observer, Outcome, RowSink, RowSource
from akrunner.engines.workdir import WorkDir
from akrunner.launch import devices
from akrunner.launch.files import lay_out
from akrunner.launch.guard import Guard
from akrunner.launch.process import LocalProcess, sweep, worker_environment
from akrunner.launch.session import TaskSession
from akrunner.spares.starts import Starts
from akrunner.spec import Capabilities, JobSpec, TaskSpec
from akrunner.wire.context import Context, TFConfig


class LocalEngine:
    """Runs the tasks as child processes of this process, on this machine. See `akrunner.engines.base.Engine`."""

    name = "local"
    capabilities = Capabilities(watches=True, marks=True)

    def check(self, job: JobSpec) -> None:
        """See `Engine.check`."""
        PortHold(1, job.bind_host, job.advertised_host).close()
        assign(job.cluster, job.resources, devices.gpus(), devices.cpus(), os.environ)

    def run(
        self,
        job: JobSpec,
        source: RowSource,
        sink: RowSink | None,
        observer: Observer | None,
        cancel: threading.Event | None = None,
    ) -> Outcome:
        """See `Engine.run`."""
        resources = assign(job.cluster, job.resources, devices.gpus(), devices.cpus(), os.environ)

        def launcher(work: WorkDir, guard: Guard) -> LocalLauncher:
            return LocalLauncher(job, work, guard, resources)

        return run_attempts(job, source, sink, observer, cancel, launcher)


class LocalLauncher:
    """Starts tasks as children of this process; see `akrunner.engines.base.Launcher`."""

    def __init__(self, job: JobSpec, work: WorkDir, guard: Guard, resources: Mapping[TaskSpec, TaskResources]) -> None:
        self._job = job
        self._work = work
        self._guard = guard
        self._resources = resources
        self._mark = uuid.uuid4().hex
        self._starts = Starts(job.python, job.overlay, job.task_env, time.time())
        self._processes: dict[TaskSpec, LocalProcess] = {}

    def __enter__(self) -> LocalLauncher:
        job = self._job
        self._ports = PortHold(len(job.cluster.tasks), job.bind_host, job.advertised_host)
        self._guard.watch_mark(self._mark)
        return self

    def __exit__(self, *error: Any) -> None:
        self._ports.close()

    def addresses(self) -> Mapping[TaskSpec, str]:
        return dict(zip(self._job.cluster.tasks, self._ports.addresses))

    def context(self, task: TaskSpec, tf_config: TFConfig, attempt: int) -> Context:
        return self._work.context(self._job, task, tf_config, attempt, self._resources[task].cpus)

    def start(self, task: TaskSpec) -> LocalProcess:
        work = self._work
        lay_out(self._job.script, work.files_dir(task))
        # files that libraries leave in the temp directory (TensorFlow does so when it is killed) are removed with the job
        env = {"TMPDIR": work.temp_dir(task), **self._resources[task].env, **self._job.task_env}
        remove = "" if work.keep else work.path
        every = worker_environment(env, self._mark, remove)
        process = self._starts.start(task.name, every, self._resources[task].cpus, work.files_dir(task), work.bundle)
        self._processes[task] = process
        self._guard.watch(process.pid)
        for mark in self._starts.marks:
            self._guard.watch_mark(mark)
        return process

    def starts(self) -> Mapping[str, str]:
        return self._starts.told

    def notes(self) -> Sequence[str]:
        return ()

    def feeder(self, sessions: Mapping[TaskSpec, TaskSession]) -> None:
        return None

    def ready(self) -> None:
        self._ports.give_way()

    def check(self) -> None:
        pass

    def explain(self) -> None:
        pass

    def ended(self) -> None:
        marks = [self._mark, *self._starts.marks]
        sweep(marks, self._starts.since)
        for mark in marks:
            self._guard.forget_mark(mark)
        for process in self._processes.values():
            self._guard.forget(process.pid)
        self._starts.ended()

    def take_model(self) -> None:
        self._work.take_model(self._job)
