"""`akrunner.warm`: warm workers, which wait with TensorFlow imported until a job of this process takes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from akrunner.checks import check_count, check_environment, check_names, check_path, check_seconds, shown
from akrunner.cluster.resources import assign
from akrunner.errors import ConfigError, PythonEnvError, StartError
from akrunner.foreign import ours
from akrunner.launch import devices, environments, limits
from akrunner.launch.cgroups import memory_bytes
from akrunner.launch.process import worker_environment
from akrunner.options.told import told
from akrunner.prepare.arguments import PathLike
from akrunner.prepare.python import interpreter_for
from akrunner.sequences import SequenceNotStr
from akrunner.spares import client, registry, talk
from akrunner.spares.daemon import AlreadyKept, Daemon, Listening
from akrunner.spares.pool import Pool
from akrunner.spares.talk import CutOffError, TalkError
from akrunner.spares.wanted import Wanted, surroundings
from akrunner.spec import Capabilities, ClusterSpec, ResourceSpec

#: the most warm workers of one pool
_MOST = 256
#: the least and the most bytes of `max_memory`; a process with TensorFlow imported never uses less than the least
_LEAST_BYTES = 256 << 20
_MOST_BYTES = 1 << 50


@dataclass(frozen=True)
class WarmArguments:
    """The arguments of `warm`, which `akrunner.options` describes."""

    # options: written by scripts/gen-options
    python_env: PathLike | None = None
    workers: int = 2
    num_workers: int = 1
    requirements: PathLike | None = None
    keras: str | None = None
    env: Mapping[str, str] | None = field(default=None, repr=False)
    idle_timeout: float = 900.0
    max_memory: int | str | None = None
    preload: SequenceNotStr[str] = ("tensorflow",)
    # end of what scripts/gen-options writes


# options: written by scripts/gen-options
@told("warm")
def warm(
    python_env: PathLike | None = None,
    workers: int = 2,
    *,
    num_workers: int = 1,
    requirements: PathLike | None = None,
    keras: Literal["legacy"] | None = None,
    env: Mapping[str, str] | None = None,
    idle_timeout: float = 900.0,
    max_memory: int | str | None = None,
    preload: SequenceNotStr[str] = ("tensorflow",),
) -> Warm:
    """Keep spare worker processes that have imported TensorFlow, so that jobs of this process begin at once. Returns at once.

    >>> with akrunner.warm(workers=2):
    ...     akrunner.run("train.py", "iris.csv")

    A job takes warm workers that are as its own worker processes would be; each is used once. They are forked from one process that has imported
    TensorFlow, so another one takes its place at once. A job that needs others (another interpreter, variable, limit) starts cold,
    `result.stats.starts` says why, and the next warm workers are made as that job wanted them. Nothing is different for the script.

    Args:
        python_env: the environment of the jobs to come, as for `run`; akrunner also learns it from the jobs that come.
        workers: how many workers wait for jobs.
        num_workers: workers of each job to come: the workers of one job share the cores.
        requirements: for the jobs to come, as for `run`.
        keras: for the jobs to come, as for `run`.
        env: environment variables of the jobs to come.
        idle_timeout: seconds without a job after which the warm workers end; the next job starts new ones.
        max_memory: bytes of memory that the warm workers may take together, or a size ("2GB"); None: a quarter of the machine's.
            One with TensorFlow takes 200 to 650 MiB, each one that is forked from it 3 MiB more.
        preload: modules that the warm workers import.
    Returns:
        an object with `wait()`, `status()` and `close()`, and a context manager.
    Raises:
        ConfigError: an argument is wrong; nothing was started.
    """
    return kept_warm(
        WarmArguments(
            python_env=python_env,
            workers=workers,
            num_workers=num_workers,
            requirements=requirements,
            keras=keras,
            env=env,
            idle_timeout=idle_timeout,
            max_memory=max_memory,
            preload=preload,
        ),
    )


# end of what scripts/gen-options writes


def kept_warm(given: WarmArguments) -> Warm:
    """Keep warm workers, as `akrunner.warm` says. Raises: ConfigError: an argument is wrong; nothing was started."""
    return Warm(_pool(given))


def _pool(given: WarmArguments) -> Pool:
    """Check the arguments and start a pool of warm workers. Raises: ConfigError: an argument is wrong."""
    workers = check_count("workers", given.workers, 1, _MOST)
    cluster = ClusterSpec.of(num_workers=given.num_workers)
    variables = check_environment("env", given.env if given.env is not None else {})
    idle = check_seconds("idle_timeout", given.idle_timeout)
    modules = check_names("preload", given.preload) or ()
    most = _most_bytes(given.max_memory, modules) if given.max_memory is not None else memory_bytes() // 4
    for name in modules:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigError(f"preload: {shown(name)} is no module's name")
    with ours(PythonEnvError, "python_env: it cannot be used"):
        python = interpreter_for(given.python_env, Capabilities(), given.keras).path
    overlay = ""
    if given.requirements is not None:
        overlay = environments.overlay(python, check_path("requirements", given.requirements))
    task_env = {**({"TF_USE_LEGACY_KERAS": "1"} if given.keras == "legacy" else {}), **variables}
    first = wanted_by(cluster, python, overlay, task_env)
    with ours(StartError, "warm: TMPDIR: no directory can be made for the warm workers"):
        return Pool(first, workers, modules, idle or 0.0, most)


def _most_bytes(given: Any, modules: Sequence[str]) -> int:
    """Return `max_memory` in bytes. Raises: ConfigError: it is no size, or too small for a single warm worker."""
    most = limits.parsed(given, "max_memory") if isinstance(given, str) else check_count("max_memory", given, 1, _MOST_BYTES)
    heavy = any(name.partition(".")[0] in ("tensorflow", "keras") for name in modules)
    least, what = (_LEAST_BYTES, "with TensorFlow has 200 to 650 MiB") if heavy else (1 << 20, "has more")
    if most < least:
        raise ConfigError(
            f"max_memory={shown(given)} (--max-memory): one that waits {what}; give at least {least >> 20} MiB, or leave it out"
        )
    return most


def wanted_by(cluster: ClusterSpec, python: str, overlay: str, task_env: Mapping[str, str]) -> list[Wanted]:
    """Return for each task of a cluster the warm worker that a job would want for it. Args: task_env: as `JobSpec.task_env`."""
    resources = assign(cluster, ResourceSpec(), devices.gpus(), devices.cpus(), os.environ)
    around = surroundings()
    return [
        Wanted(python, worker_environment({**resources[task].env, **task_env}, ""), overlay, (), dict(task_env), around)
        for task in cluster.tasks
    ]


class Warm:
    """The warm workers of this process; a context manager, which ends them.

    Attributes:
        workers: how many warm workers should wait.
    """

    def __init__(self, pool: Pool) -> None:
        """Let the jobs of this process take warm workers from a pool. Use `akrunner.warm` to make a `Warm`.

        Args:
            pool: the pool that starts and ends the processes.
        """
        self._pool = pool
        self.workers = pool.workers
        registry.add(pool)

    def wait(self, seconds: float = 60.0) -> bool:
        """Wait until all warm workers have imported TensorFlow.

        Args:
            seconds: how long to wait at most.
        Returns:
            whether all have imported it.
        """
        return self._pool.wait(check_seconds("seconds", seconds) or 0.0)

    def status(self) -> dict[str, Any]:
        """Return the state of the warm workers.

        Returns:
            how many wait, which processes they are forked from, how many still import, their memory in bytes, how many of them
            jobs have taken, and why there are fewer than there should be; and how many processes wait that submit to Flink.
        """
        return {**self._pool.status(), "submitters": registry.waiting_beside()}

    def close(self) -> None:
        """End all waiting warm workers, and what waits to submit to Flink; the ones that jobs have taken stay with their jobs."""
        registry.remove(self._pool)
        self._pool.close()
        registry.close_beside()

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<akrunner.Warm: {in_words(self.status())}>"


def keep(options: Mapping[str, Any], listens: Callable[[], None]) -> None:
    """Keep warm workers for other processes of this user (`akrunner warm start`), until a process calls `stop_kept`.

    Args: options: the options of `warm`; listens: called when other processes can reach the warm workers.
    Raises: ConfigError: an option is wrong, or another process keeps warm workers already.
    """
    with ours(StartError, "warm: they cannot be kept"):
        try:
            listening = Listening()
        except AlreadyKept:
            raise ConfigError("they are kept already; `akrunner warm stop` first") from None
    try:
        pool = _pool(WarmArguments(**options))
    except BaseException:
        listening.close()
        raise
    listens()
    Daemon(listening, pool, {**options, "env": sorted(options["env"])}).serve()


def kept_status(hurry: bool = False) -> dict[str, Any] | None:
    """Return the state of the warm workers kept for the command line, as `Warm.status` and more; None if none are kept.

    Args: hurry: start missing warm workers at once.
    Raises: StartError: the process that keeps them does not answer.
    """
    try:
        return client.ask("status", hurry=hurry)
    except TalkError as e:
        pid = keeper()
        who = f"the process that keeps the warm workers{f' (pid {pid})' if pid else ''}"
        if isinstance(e, CutOffError):
            raise StartError(f"{who} is busy: {e}; ask again, or end it with `akrunner warm stop`") from None
        if client.stopped() is not None:
            raise StartError(f"{who} is stopped: `kill -CONT {pid}` lets it go on, `akrunner warm stop` ends it") from None
        raise StartError(f"{who} does not answer: {e}; `akrunner warm stop` ends it") from None


def keeper() -> int | None:
    """Return the pid of the process that keeps warm workers for the command line, even if it does not answer, or None."""
    found = talk.keeper()
    return found[0] if found is not None else None


def stop_kept() -> dict[str, Any] | None:
    """End the warm workers kept for the command line. A keeping process that does not answer is ended by signals.

    Returns: their last state; only the `pid` if the process did not answer; None if none were kept.
    """
    client.wake()
    try:
        told = client.ask("stop")
    except TalkError:
        pid = client.end()
        return {"pid": pid} if pid is not None else None
    if told is not None and not told["jobs"]:
        client.wait_for_end()
    return told


def in_words(status: Mapping[str, Any]) -> str:
    """Return the result of `Warm.status` as one line of text."""
    told = f"{status['waiting']} of {status['workers']} warm workers wait"
    if status["importing"]:
        told += f", {status['importing']} import TensorFlow"
    if status["waiting"] and status["templates"]:
        told += f", forked from {len(status['templates'])}"
    if status.get("submitters"):
        told += f", and {status['submitters']} to submit to Flink"
    told += f"; {status['memory'] >> 20} MiB; {status['taken']} taken by jobs"
    return told + (f"; {status['trouble']}" if status["trouble"] else "")
