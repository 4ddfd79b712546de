"""A Flink job of akrunner's, with its subtasks, each of which runs one task at a time."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host.client import Submitter
from akrunner.engines.flink.host.control_server import ControlServer
from akrunner.engines.flink.host.issue import JobKeys
from akrunner.engines.flink.host.subtask import RemoteSubtask
from akrunner.engines.flink.host.watch import Watch
from akrunner.engines.flink.program.submit import ENDED, SUSPENDED, Order
from akrunner.engines.flink.rest import Address, Rest, about_python
from akrunner.errors import AkrunnerError, ClusterError, JobCancelledError, JobError, JobManagerLostError, StartError

_TICK = 0.1
#: the most missing subtasks that an error names
_NAMED = 8
_CANCELLED = ("CANCELLING", "CANCELED")
#: seconds that the Flink job may take to end by itself
_END_SECONDS = 5.0
#: seconds that Flink may take to say why it has ended a job
_WHY_SECONDS = 0.5
#: seconds to wait for Flink to start a job again: unless it is configured otherwise, its longest pause before that is a
#: minute
_AGAIN_SECONDS = 75.0
#: seconds within which an agent has cleared its task away
_CLEAR_SECONDS = 15.0


class Subtasks:
    """A Flink job, from when it is submitted to its end. Must be closed.

    Args:
        client: submits the job.
        host: this machine's address, as the cluster sees it.
        count: the number of subtasks.
        order: what else the client takes.
        keys: the job's keys.
        master: the address of the cluster whose JobManager is to be watched; None if there is none with a REST service of
            its own.
        port: the port of the host's service; None for a free one.
        with_rows: the number of subtasks to which Flink brings rows.
    Attributes:
        count: the number of subtasks.
        remotes: the subtasks that have come.
        submitted: what Flink says of the job.
        lost: whether its JobManager is gone.
    """

    def __init__(
        self,
        client: Submitter,
        host: str,
        count: int,
        order: Order,
        keys: JobKeys,
        master: Address | None = None,
        port: int | None = None,
        with_rows: int = 0,
    ) -> None:
        self.client = client
        self.count = count
        self._with_rows = with_rows
        self._python = order.get("python")
        self.remotes: list[RemoteSubtask] = []
        self.lost = False
        self._closing = False
        self._job = ""
        self._master = master
        self._watch: Watch | None = None
        self._control = ControlServer(host, keys.host, port, count)
        wanted: Order = {**order, "subtasks": count, "door": self._control.door(host, keys.agents).carried()}
        try:
            self.submitted = client.submit(wanted)
        except BaseException:
            self._control.close()
            raise

    def disconnect(self) -> None:
        """Close the connections to all agents, and stop watching the JobManager."""
        if self._watch is not None:
            self._watch.close()
        self._control.close()

    def check(self) -> None:
        """Check that the job and akrunner's own threads are well.

        Raises:
            JobError: a thread of akrunner's own has failed, here or beside a task, or an agent cannot be used any more.
            JobCancelledError: the Flink job was cancelled by someone else.
            JobManagerLostError: the job's JobManager is gone.
        """
        self._check_broken()
        # started when it is first needed: the job of a user's program runs when the program executes it
        if self._watch is None and self._master is not None:
            self._watch = Watch(self._master, lambda: self._id)
        states = (self.submitted.state, self._watch.state if self._watch is not None else "")
        if not self._closing and any(state in _CANCELLED for state in states):
            raise JobCancelledError(
                f"the Flink job{' ' + self._id if self._id else ''} was cancelled, in Flink's web pages or through its REST "
                "service; it is not started again"
            )
        if self._watch is not None:
            try:
                self._watch.check()
            except JobManagerLostError as e:
                self.lost = True
                self.submitted.failed = str(e)
                self.submitted.ended.set()
                raise

    def _check_broken(self) -> None:
        """Raises: JobError: as `check`."""
        if self._control.broken is not None:
            raise _fault(self._control.broken)
        if self.submitted.fault and self.submitted.failed is not None:
            raise _fault(self.submitted.failed)
        for remote in self.remotes:
            if remote.broken is not None:
                raise _fault(remote.broken) if remote.fault else JobError(remote.broken)

    def hopeless(self) -> bool:
        """Whether a fault of akrunner's own, or an agent that broke the protocol, has ended the attempt: it would only happen again."""
        broken = any(remote.broken is not None and not remote.silent for remote in self.remotes)
        return broken or self._control.broken is not None or self.submitted.fault

    def explain(self) -> None:
        """Raise an error that says more than the tasks' own ends do, after a failure. Return if there is none.

        Raises:
            AkrunnerError: as `check`.
        """
        self.check()
        if not self.submitted.ended.is_set() and not self.any_gone():
            return
        # tasks end when their JobManager does, and when their job is cancelled: Flink knows, if it still answers
        while self._watch is not None and not self._watch.asked():
            time.sleep(_TICK)
            self.check()
        self.check()

    @property
    def _id(self) -> str:
        """Flink's id of the job; "" while it is not known."""
        self._job = self.submitted.id or next((remote.job for remote in self.remotes if remote.job), self._job)
        return self._job

    def can_be_used(self) -> bool:
        """Whether another attempt or job can have the subtasks: the job runs, and no subtask is gone or has a task."""
        try:
            self.check()
        except AkrunnerError:
            return False
        return (
            not self.submitted.ended.is_set()
            and len(self.remotes) == self.count
            and all(not remote.gone.is_set() and remote.idle.is_set() for remote in self.remotes)
        )

    def come(self, seconds: float) -> list[RemoteSubtask]:
        """Wait for all subtasks, and return them.

        Args:
            seconds: how long to wait at most.
        Raises:
            StartError: some did not come in that time, or Flink did not run the job.
        """
        deadline = time.monotonic() + seconds
        while len(self.remotes) < self.count:
            try:
                self._came(self._control.arrived.get(timeout=_TICK))
            except queue.Empty:
                self._still_coming(deadline, seconds)
        return self.remotes

    def _came(self, remote: RemoteSubtask) -> None:
        remote.why = self._why
        # Flink may have started the job again meanwhile, or a subtask of an earlier attempt comes late
        for other in [one for one in self.remotes if one.attempt < remote.attempt]:
            self.remotes.remove(other)
            other.abandon()
        if any(other.attempt > remote.attempt for other in self.remotes):
            remote.abandon()
        else:
            self.remotes.append(remote)

    def _why(self) -> str | None:
        """Return Flink's reason for a subtask that is gone; None if there is none."""
        self.client.hurry(self.submitted)
        self.submitted.ended.wait(_WHY_SECONDS)
        return self.submitted.failed

    def _check_runs(self) -> None:
        """Raises: StartError: Flink has ended the job. AkrunnerError: as `check`, if that says more."""
        if self.submitted.ended.is_set():
            self.explain()
            why = self.submitted.failed or self.submitted.state
            python = about_python(why, self._python) if self._python is not None else ""
            raise StartError(f"Flink did not run the job: {why}{python}")

    def _still_coming(self, deadline: float, seconds: float) -> None:
        self.check()
        self._check_runs()
        if time.monotonic() > deadline:
            raise StartError(
                f"{len(self.remotes)} of {self.count} subtasks came within {seconds:g} s (slot_timeout=), missing: "
                f"{self._missing()}; the Flink job is {self.submitted.state}: it may lack task slots"
            )

    def _missing(self) -> str:
        """Return the numbers of the subtasks that have not come. Flink numbers the subtasks without rows from 0 again, if
        there are others that have rows."""
        come = {(remote.with_rows, remote.subtask) for remote in self.remotes}
        with_rows = [str(number) for number in range(self._with_rows) if (True, number) not in come]
        others = [str(number) for number in range(self.count - self._with_rows) if (False, number) not in come]
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        parts = (
            [", ".join(with_rows[:_NAMED]) + (f" and {len(with_rows) - _NAMED} more" if len(with_rows) > _NAMED else "")]
            if with_rows
            else []
        )
        if others:
            parts.append(", ".join(others[:_NAMED]) + more + (" of those without rows" if self._with_rows else ""))
        return ", ".join(parts)

    def clear(self) -> None:
        """End every task, remove its directory, and wait until its subtask is ready for another task."""
        for remote in self.remotes:
            remote.end()
        deadline = time.monotonic() + _CLEAR_SECONDS
        for remote in self.remotes:
            remote.idle.wait(max(0.0, deadline - time.monotonic()))

    def wait_for_first(self) -> None:
        """Wait until a subtask has come, however long that takes, or the Flink job has ended, if the program says which one it is.

        Raises:
            StartError: Flink has ended the job before a subtask came.
            JobError: a thread of akrunner's own has failed.
            JobCancelledError: the Flink job was cancelled.
        """
        while True:
            try:
                self._came(self._control.arrived.get(timeout=1.0))
                return
            except queue.Empty:
                self._check_broken()
                self._check_runs()

    def leave(self, error: str | None = None, final: bool = True) -> None:
        """Tell the agents that the subtasks are no longer needed.

        Args:
            error: the error with which the Flink job is to fail; None if it is not to fail.
            final: whether it fails for good, whatever its restart strategy says.
        """
        for remote in self.remotes:
            remote.tell(leave=pb.Leave(error=error, final=final))
        self.client.hurry(self.submitted)

    def any_gone(self) -> bool:
        """Whether a subtask is gone by itself, and the attempt with it."""
        return any(remote.gone.is_set() for remote in self.remotes)

    def start_again(self, state: Callable[[str], str | None]) -> str | None:
        """Wait until Flink has started the job again. The old subtasks must have been told to leave.

        Args:
            state: maps Flink's id of the job to Flink's word for its state; None if that cannot be known.
        Returns:
            None when the first new subtask has come; otherwise how the job has ended.
        """
        before, self.remotes = self.remotes, []
        attempt = max((remote.attempt for remote in before), default=0)
        job = next((remote.job for remote in before if remote.job), "")
        deadline = time.monotonic() + _AGAIN_SECONDS
        while True:
            try:
                remote = self._control.arrived.get(timeout=1.0)
            except queue.Empty:
                self.check()
                how = state(job) if job else None
                if how in ENDED:
                    return how
                if how not in (None, SUSPENDED):
                    deadline = time.monotonic() + _AGAIN_SECONDS
                if time.monotonic() > deadline:
                    return "not started again"
                continue
            if remote.attempt > attempt:
                self._came(remote)
                return None
            remote.abandon()

    def close(self) -> None:
        """End the Flink job."""
        leaving = self.can_be_used()
        self._closing = True
        # if Flink itself cancels the job while Python has an element, the whole TaskManager may fail (Beam counts a bundle
        # twice)
        rows_left = any(
            remote.process is not None and not remote.process.given.finished for remote in self.remotes if remote.with_rows
        )
        self.leave("its caller needs no more of it" if rows_left else None)
        # every subtask can end by itself; if one is stuck, or never came, Flink has to end it
        if not leaving or not self.submitted.ended.wait(_END_SECONDS):
            self.client.cancel(self.submitted)
            self.submitted.ended.wait(10.0)
            self._end_there()
        self.disconnect()

    def _end_there(self) -> None:
        """Have the JobManager end the job if the client, which would do it, was killed or is stuck, and a subtask is
        stuck too."""
        if self._master is None or not self._id or self.lost or self.submitted.state in ENDED:
            return
        rest = Rest(self._master, _END_SECONDS)
        deadline = time.monotonic() + _END_SECONDS
        with contextlib.suppress(ClusterError):
            while rest.state(self._id) not in ENDED:
                if time.monotonic() > deadline:
                    rest.cancel(self._id)
                    return
                time.sleep(_TICK)


def _fault(words: str) -> JobError:
    """Return the error of a job that a fault of akrunner's own has ended. Args: words: with the traceback."""
    made = JobError(words)
    made.fault = True
    return made
