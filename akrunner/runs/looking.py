"""Finds runs that were kept, and reads what is kept of them."""

from __future__ import annotations

import dataclasses
import os
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from akrunner.errors import ConfigError, JobManagerLostError, noting
from akrunner.foreign import in_words, ours
from akrunner.history import logs as kept_logs
from akrunner.history import places, record, series
from akrunner.history.record import Record
from akrunner.history.reported import latest

#: Flink's words for how a job has ended -> ours
_ENDED = {"FINISHED": record.SUCCEEDED, "FAILED": record.FAILED, "CANCELED": record.STOPPED}
_FOLLOW_SECONDS = 0.2
#: how long a cluster may take to say what became of its jobs: who lists runs does not wait for one that is gone
_ASK_SECONDS = 2.0


@dataclass(frozen=True)
class Run(Record):
    """A run that was kept. Its other attributes are the fields of its record (`akrunner.history.record.Record`).

    `state` is running, succeeded, failed, stopped, or lost: its process is gone without having said how it ended. A detached job is
    submitted until its cluster says how it has ended.

    Attributes:
        path: the directory in which it is kept.
        silent: the cluster of a detached job, if it did not answer, so that nobody knows more than when it was submitted; else "".
    """

    path: str = ""
    silent: str = ""

    @property
    def reports(self) -> list[dict[str, Any]]:
        """What the tasks reported, in order: dicts with task, step, time_ns and the metrics. Of very many, every second is kept, or fewer."""
        return [{name: record.number(value) for name, value in one.items()} for one in series.read(self.path, series.METRICS)]

    @property
    def progress(self) -> list[dict[str, Any]]:
        """How far the job was, about once a second: dicts with the fields of `akrunner.history.samples.Sample`: time_ns, attempt, seconds,
        rows_in, bytes_in, rows_out, bytes_out; by task states, task_bytes_in, task_rows_out, memory and rss (bytes), cpu_seconds; host."""
        return list(series.read(self.path, series.PROGRESS))

    @property
    def rows(self) -> tuple[int, int] | None:
        """The numbers of rows in and out, also of a job that has failed or still runs; None if they are not known."""
        if self.stats is not None:
            return self.stats["rows_in"], self.stats["rows_out"]
        last = series.last(self.path, series.PROGRESS)
        return (last["rows_in"], last["rows_out"]) if last is not None else None

    def logs(self, task: str | None = None, follow: bool = False) -> Iterator[str]:
        """Yield what the tasks have printed, as `akrunner.runs.logs`.

        Args:
            task: the name of one task, "worker:0"; None: all of them, each line with its task's name.
            follow: whether to go on until the run has ended.
        Returns:
            the lines.
        """
        return logs(self, task, follow)

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.state}; {self.verb} {os.path.basename(self.script)}; {self.seconds:.1f} s>"

    def _repr_html_(self) -> str:
        from akrunner.runs import shown

        return shown.run(self)


class Runs(list[Run]):
    """A list of runs, which a notebook shows as a table.

    Attributes:
        damaged: runs that stand among these, but whose records cannot be read: their names -> why.
    """

    def __init__(self) -> None:
        super().__init__()
        self.damaged: dict[str, str] = {}

    def _repr_html_(self) -> str:
        from akrunner.runs import shown

        return shown.listed(self)


@noting
def listed(failed: bool = False, limit: int | None = None) -> Runs:
    """Return the runs that are kept, the newest first.

    Args:
        failed: only those that have failed, were lost, or were stopped.
        limit: the most that are returned; None: all.
    Returns:
        the runs; one whose record cannot be read is left out, and is in `damaged` of the list: its name -> why.
    Raises:
        ConfigError: limit is no number of runs.
    """
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise ConfigError(f"limit={limit!r}: give the number of runs, from 1 on")
    root = places.root(make=False)
    made = Runs()
    asked = _Clusters()
    for number in places.numbers(root) if root is not None else ():
        try:
            one = asked.told(_read(str(root), number))
        except FileNotFoundError:
            # it is being made, was given up, or is removed at this moment
            continue
        except (OSError, ValueError) as e:
            made.damaged[f"r{number}"] = in_words(e)
            continue
        if not failed or one.state in (record.FAILED, record.LOST, record.STOPPED):
            made.append(one)
        if len(made) == limit:
            break
    return made


@noting
def get(run: str | Run) -> Run:
    """Return a run as it is now.

    Args:
        run: its name, "r42"; "last" for the newest one, "last-1" for the one before; or a run, which is read again.
    Returns:
        the run.
    Raises:
        ConfigError: there is none of that name, or it cannot be read.
    """
    name = run.id if isinstance(run, Run) else run
    if not isinstance(name, str):
        raise ConfigError(f"run must be the name of a run, such as last, not {type(run).__name__}")
    root = places.root(make=False)
    if root is None:
        raise ConfigError(f"run {name!r}: no run is kept yet on this machine")
    number = places.meant(root, name)
    with ours(ConfigError, f"run {name!r}: its record cannot be read"):
        return _Clusters().told(_read(root, number))


def is_number(text: str) -> bool:
    """Whether a text is the number of a run that is kept: "42". It may also be the beginning of the id of a job of Flink."""
    root = places.root(make=False)
    return root is not None and re.fullmatch(r"[1-9]\d{0,14}", text) is not None and int(text) in places.numbers(root)


def _read(root: str, number: int) -> Run:
    path = places.path_of(root, number)
    found = record.read(path)
    metrics = {task: {name: record.number(value) for name, value in told.items()} for task, told in found.metrics.items()}
    made = Run(**{**vars(found), "metrics": metrics, "path": path})
    if made.state != record.RUNNING:
        return _in_order(made)
    made = _in_order(dataclasses.replace(made, metrics=latest(made.reports)))
    return dataclasses.replace(made, state=record.LOST, ended=places.last_written(path)) if places.is_gone(made, path) else made


def _in_order(run: Run) -> Run:
    """Return a run whose metrics stand in the order of its tasks: the one that leads is the first."""
    order = {task: place for place, task in enumerate(run.tasks)}
    tasks = sorted(run.metrics, key=lambda task: order.get(task, len(order)))
    return dataclasses.replace(run, metrics={task: run.metrics[task] for task in tasks})


class _Clusters:
    """Asks clusters, each once, what has become of detached jobs. One that does not answer is not asked again."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any] | None] = {}

    def told(self, run: Run) -> Run:
        """Return a run with what its cluster says, which is kept once the job has ended."""
        if run.state != record.SUBMITTED or run.detached is None:
            return run
        jobs = self._jobs(run.detached["master"])
        if jobs is None:
            return dataclasses.replace(run, silent=run.detached["master"])
        job = jobs.get(run.detached["job"])
        state = _ENDED.get(job.state) if job is not None else None
        if job is None or state is None:
            return run
        from akrunner.detached import status

        message = job.error or ""
        if state == record.FAILED and not message:
            try:
                message = status(run.detached["master"], job.id).error or ""
            except (ConfigError, JobManagerLostError):
                message = ""
        # as the job's own host has worded it
        named = re.match(r"(\w+Error): ", message)
        error = (named[1] if named is not None else "JobError") if state == record.FAILED else ""
        message = record.short(message[named.end() :] if named is not None else message)
        ended = dataclasses.replace(run, state=state, ended=run.began + job.seconds, error=error, message=message)
        ended = dataclasses.replace(ended, error_code=ended.short_code if error else "")
        try:
            record.write(run.path, Record(**{one.name: getattr(ended, one.name) for one in dataclasses.fields(Record)}))
        except OSError:
            # it is asked for again next time
            pass
        return ended

    def _jobs(self, master: str) -> dict[str, Any] | None:
        if master not in self._known:
            from akrunner.detached import listed as on_cluster

            try:
                self._known[master] = {job.id: job for job in on_cluster(master, _ASK_SECONDS)}
            except (ConfigError, JobManagerLostError):
                self._known[master] = None
        return self._known[master]


def logs(run: str | Run, task: str | None = None, follow: bool = False) -> Iterator[str]:
    """Yield what the tasks of a run have printed, line by line: one task after the other; with `follow` what comes, as it comes.

    Args:
        run: as for `get`.
        task: the name of one task, "worker:0"; None: all of them, each line with its task's name.
        follow: whether to go on until the run has ended.
    Returns:
        the lines.
    Raises:
        ConfigError: there is no such run, or no such task.
        JobManagerLostError: the cluster of a detached job is gone while its lines are read.
    """
    found = get(run)
    check_task(found, task)
    if found.detached is not None:
        return _of_cluster(found, task, follow)
    return _lines(found, [task] if task is not None else [], follow)


def check_task(run: Run, task: str | None) -> None:
    """Check that a run had a task. Args: task: its name; None: all are meant. Raises: ConfigError: there was no such task."""
    if task is not None and task not in run.tasks:
        raise ConfigError(f"task={task!r}: this run had {', '.join(run.tasks)}")


def _of_cluster(run: Run, task: str | None, follow: bool) -> Iterator[str]:
    from akrunner import detached

    assert run.detached is not None
    lines = detached.logs(run.detached["master"], run.detached["job"], follow)
    begin = f"[{task}] " if task is not None else ""
    return (line.removeprefix(begin) for line in lines if line.startswith(begin))


def _lines(run: Run, chosen: Collection[str], follow: bool) -> Iterator[str]:
    readers: dict[str, kept_logs.LogReader] = {}
    while True:
        # what a run that has ended has printed is all there
        last = not follow or not _goes_on(run.path)
        for task in chosen or kept_logs.tasks(run.path):
            reader = readers.setdefault(task, kept_logs.LogReader(run.path, task))
            for line in reader.lines(last):
                yield line if chosen else f"[{task}] {line}"
        if last:
            return
        time.sleep(_FOLLOW_SECONDS)


def _goes_on(path: str) -> bool:
    """Whether a run still runs: of its files only the record is read. Args: path: the run's directory."""
    try:
        found = record.read(path)
    except (OSError, ValueError):
        # it was removed
        return False
    return found.state == record.RUNNING and not places.is_gone(found, path)


@noting
def prune(days: float | None = None, size: int | str | None = None) -> list[str]:
    """Remove old runs; those that are running stay. akrunner does it by itself, about once an hour, when a run begins.

    Args:
        days: runs in which nothing was written for so many days go; 0: all; None: AKRUNNER_RUNS_DAYS, else 30.
        size: the newest runs that take so many bytes ("200MB") together stay; None: AKRUNNER_RUNS_SIZE, else 500 MB.
    Returns:
        the names of the runs that were removed, the oldest first.
    Raises:
        ConfigError: an argument, or the environment variable in its place, is wrong; or runs cannot be removed.
    """
    root = places.root(make=False)
    usual = places.bounds() if days is None or size is None else places.Bounds()
    keep = places.Bounds(
        places.days_of(days, "days") if days is not None else usual.days,
        places.size_of(size, "size") if size is not None else usual.size,
    )
    if root is None:
        return []
    gone, left = places.prune(root, keep)
    if left:
        raise ConfigError(
            f"prune: {len(left)} of {len(gone) + len(left)} runs cannot be removed, such as {left[0]}: nothing may be written in {root}"
        )
    return gone
