"""Decides which part of the machine each task may use: a pure function of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from akrunner.errors import ConfigError

if TYPE_CHECKING:
    from akrunner.spec import ClusterSpec, ResourceSpec, TaskSpec

Thing = TypeVar("Thing")

_GPUS = "CUDA_VISIBLE_DEVICES"
#: environment variables for the number of threads; TensorFlow 1 and 2, unless the script sets the number, and the libraries
#: beneath numpy read them
THREADS = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class TaskResources:
    """The part of the machine that one task may use.

    Attributes:
        cpus: the cores it may run on; (): all.
        env: environment variables for the cards and threads.
    """

    cpus: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def assign(
    cluster: ClusterSpec, wanted: ResourceSpec, gpus: Sequence[str], cpus: Sequence[int], inherited: Mapping[str, str]
) -> dict[TaskSpec, TaskResources]:
    """Divide the machine among the tasks.

    Args:
        gpus: the cards of this machine, as CUDA_VISIBLE_DEVICES names them.
        cpus: the cores that this process may use.
        inherited: the environment that the tasks get anyway; its numbers of threads stay, unless the job asks for a number.
    Raises:
        ConfigError: the machine has less than the job asks for.
    """
    # agents on Flink, which only want `THREADS`, do without it: it is a third of what they would import
    from akrunner.spec import EVALUATOR

    working = cluster.with_rows
    _enough("gpus_per_worker", "graphics card", wanted.gpus_per_worker, len(working), len(gpus))
    _enough("cpus_per_worker", "core", wanted.cpus_per_worker, len(working), len(cpus))
    computing = len(working) + sum(task.role == EVALUATOR for task in cluster.tasks)
    assigned = {}
    for task in cluster.tasks:
        part = working.index(task) if task in working else None
        env: dict[str, str] = {}
        own: tuple[int, ...] = ()
        if wanted.gpus_per_worker is not None:
            env[_GPUS] = ",".join(_part(gpus, part, wanted.gpus_per_worker)) if part is not None else ""
        if wanted.cpus_per_worker is not None and part is not None:
            own = tuple(_part(cpus, part, wanted.cpus_per_worker))
        if wanted.intra_op_parallelism is not None:
            env.update({name: str(wanted.intra_op_parallelism) for name in THREADS})
        elif own or computing > 1:
            threads = str(len(own) or max(1, len(cpus) // computing))
            env.update({name: threads for name in THREADS if name not in inherited})
        assigned[task] = TaskResources(own, env)
    return assigned


def _part(things: Sequence[Thing], part: int, size: int) -> Sequence[Thing]:
    return things[part * size : (part + 1) * size]


def _enough(parameter: str, thing: str, each: int | None, workers: int, there: int) -> None:
    if each is not None and each * workers > there:
        who = "1 worker needs" if workers == 1 else f"{workers} workers need"
        raise ConfigError(
            f"{parameter}={each}: {who} {each * workers} {thing}{'s' if each * workers > 1 else ''}, this machine has "
            f"{there}; turn down {parameter}= or num_workers="
        )
