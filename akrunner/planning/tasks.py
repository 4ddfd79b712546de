"""The processes that a job will have."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from akrunner.checks import counted
from akrunner.cluster.resources import assign
from akrunner.cluster.tf_config import tf_config
from akrunner.launch import devices
from akrunner.planning.text import INDENT, SHOWN, line_of
from akrunner.spec import JobSpec, TaskSpec
from akrunner.wire.context import TFConfig


@dataclass(frozen=True)
class PlannedTask:
    """A process that a job will have.

    Attributes:
        name: the task's name: "worker:0".
        gets_rows: whether it gets rows.
        cores: the cores that it has for itself, empty if it may use all.
        env: variables that are set for it.
        tf_config: the value of TF_CONFIG, with port 0 for ports that are chosen at the start; None if it is told of no cluster.
    """

    name: str
    gets_rows: bool
    cores: tuple[int, ...]
    env: Mapping[str, str]
    tf_config: TFConfig | None


def planned_tasks(job: JobSpec) -> tuple[PlannedTask, ...]:
    """Return every process that a job will have."""
    cluster = job.cluster
    gpus = devices.gpus() if job.resources.gpus_per_worker is not None else []
    parts = assign(cluster, job.resources, gpus, devices.cpus(), {**os.environ, **job.task_env})
    host = job.advertised_host or job.bind_host
    addresses: dict[TaskSpec, str] = {task: f"{host}:0" for task in cluster.tasks}
    return tuple(
        PlannedTask(
            task.name,
            task in cluster.with_rows,
            parts[task].cpus,
            {**parts[task].env, **({} if cluster.alone else {"TF_CONFIG": "..."})},
            None if cluster.alone else tf_config(cluster, addresses, task),
        )
        for task in cluster.tasks
    )


def lines_of_tasks(tasks: Sequence[PlannedTask]) -> list[str]:
    """Return a plan's lines about the processes."""
    lines = line_of("tasks", f"{len(tasks)}")
    for task in tasks[:SHOWN]:
        told = ["gets rows" if task.gets_rows else "gets no rows"]
        told.append(f"cores {', '.join(map(str, task.cores))}" if task.cores else "all cores")
        told += [f"{name}={value}" for name, value in task.env.items() if name != "TF_CONFIG"]
        lines.append(f"{INDENT}{task.name:12}{'; '.join(told)}")
    if len(tasks) > SHOWN:
        lines.append(f"{INDENT}and {len(tasks) - SHOWN:,} more")
    return lines


def too_many(rows: int, fed: int) -> str:
    """Return the warning that there are fewer rows than workers."""
    none = f"{fed - rows} of them get{'s' if fed - rows == 1 else ''} none"
    return f"{counted(rows, 'row')} for {fed} workers: {none}; num_workers={rows} (--num-workers) is enough"
