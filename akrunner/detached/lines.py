"""Tells what a detached job has printed: its lines, with its mark, in the TaskManagers' logs.

::

    host process    its lines --> the TaskManager's log, among those of Flink and of other jobs
    this process    the log, from its beginning, again and again --> lines with the mark that are not told yet
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from akrunner.detached.jobs import Patience, Status, status
from akrunner.detached.kept import MARK
from akrunner.engines.flink.rest import Rest
from akrunner.errors import ClusterError, ConfigError

_FOLLOW_SECONDS = 2.0
#: seconds that a copy of a log may take to go, behind its time
_BEHIND_SECONDS = 0.3


def logs(master: str, job: str | Status, follow: bool = False) -> Iterator[str]:
    """Yield what the tasks and the host have printed, line by line, as far as the logs of the TaskManagers have it.

    Args:
        master: "host:port" of the cluster.
        job: as in `wait`.
        follow: whether to continue until the job has ended.
    Raises:
        ConfigError: there is no such cluster or job, or the job was not submitted as a detached one.
        JobManagerLostError: the JobManager is gone while lines are read.
    """
    return (line for line in whole(master, job, follow) if not line.startswith(MARK))


def whole(master: str, job: str | Status, follow: bool) -> Iterator[str]:
    """Yield the lines of `logs`, and among them those that `akrunner.detached.kept` reads. Args, Raises: as for `logs`."""
    found = status(master, job) if isinstance(job, str) else job
    if found.tag is None:
        raise ConfigError(f"job {found.id!r} was not submitted with --detach: its lines are its submitter's")
    mark, cluster = f"akrunner[{found.tag}] ", Rest(master)
    told: dict[str, _Told] = {}
    # who answers the one kind of questions need not answer the other
    of_lines, of_state = Patience(master, found.id), Patience(master, found.id)
    fresh = 0.0
    while True:
        last, whole = found.ended or not follow, False
        with of_lines:
            for taskmanager in cluster.taskmanagers():
                for line in _further(cluster, taskmanager, told.setdefault(taskmanager, _Told(mark)), last):
                    yield line
                    # the time that a reader takes for a line is no silence of the cluster
                    of_lines.answered()
                of_lines.answered()
            whole = True
        if last and whole:
            return
        read = time.monotonic()
        time.sleep(_FOLLOW_SECONDS)
        if not last:
            with of_state:
                found = of_state.led(status(master, found.id))
        if found.ended:
            # the copies that the JobManager has of logs may be from before the job's last lines
            fresh = fresh or cluster.log_seconds() + _BEHIND_SECONDS
            time.sleep(max(0.0, read + fresh - time.monotonic()))


def _further(cluster: Rest, taskmanager: str, told: _Told, last: bool) -> Iterator[str]:
    """Yield the lines of a TaskManager's log that are not told yet.

    Args:
        last: whether its log is read for the last time: then what cannot be read is told, too.
    Raises:
        ClusterError: the JobManager does not answer.
    """
    try:
        yield from told.further(cluster.log(taskmanager, unfinished=last))
    except ClusterError as e:
        if not e.answered:
            # a TaskManager behind a broken network, or a log that Flink copies for long, is no fault of a JobManager that answers
            cluster.overview()
        # one that is gone has taken its lines with it; one that the JobManager is about to give up may be read later
        if last and not e.missing:
            why = str(e) if e.answered else str(e).rpartition(": ")[2]
            yield f"akrunner: the log of TaskManager {taskmanager} cannot be read to its end: {why}"


class _Told:
    """How much of a TaskManager's log is told: of the lines that have a mark, without the text up to the mark."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._first: str | None = None
        self._marked: str | None = None
        self._count = 0

    def further(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines of a log that are not told yet. They are all its lines if it was begun anew, which another first line
        shows, or, as the first lines of logs may be alike, another first line with the mark. A log with fewer lines than are told
        is an older copy, or was cut off on its way.

        Args:
            lines: the whole lines of the log; iterating may raise an error if these are not all.
        """
        count = 0
        for number, line in enumerate(lines):
            if number == 0 and line != self._first:
                self._first, self._marked, self._count = line, None, 0
            _, begins, text = line.partition(self._mark)
            if not begins:
                continue
            count += 1
            if count == 1 and line != self._marked:
                self._marked, self._count = line, 0
            if count > self._count:
                self._count = count
                yield text
