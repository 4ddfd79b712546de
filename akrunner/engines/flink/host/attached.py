"""A job that is built into a PyFlink program: it runs when the program executes it.

::

    subtasks come -> an attempt -> its end
      a subtask is lost: Flink starts its job again, from the last checkpoint -> new subtasks come -> another attempt
      the script fails: the Flink job fails for good; a stream's job starts again as often as max_restarts= says
      akrunner itself fails: the Flink job fails for good
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from akrunner.cluster.failure import is_last
from akrunner.engines.base import Outcome
from akrunner.engines.flink.host.subtasks import Subtasks
from akrunner.engines.flink.rest import Address, Rest
from akrunner.engines.flink.threads import words_of
from akrunner.errors import (
    AkrunnerError,
    ClusterError,
    ConfigError,
    JobCancelledError,
    JobError,
    StartError,
)

_WHY_SECONDS = 20.0
_TICK = 0.1


class Attached:
    """A job whose tasks are part of a PyFlink program.

    Attributes:
        table: the PyFlink Table of the rows that the scripts write. Executing it, once, runs the tasks.
        holds: an object that must live as long as the job.
    """

    def __init__(
        self,
        table: Any,
        subtasks: Subtasks,
        run: Callable[[], Outcome],
        cluster: Address | None = None,
        restarts: int | None = None,
        slot_timeout: float = 120.0,
        executed: Callable[[Any], None] = lambda result: None,
    ) -> None:
        """Make the job, as `akrunner.flink.run`, `stream` and `predict` do.

        Args:
            table: the PyFlink Table of the rows that the scripts write.
            subtasks: the subtasks that run the tasks.
            run: runs the attempts, from the first subtask that comes to their end.
            cluster: the program's cluster; None for the local one.
            restarts: how often a script that fails may be started again; None if Flink has no checkpoint to start from.
            slot_timeout: seconds for which `wait` waits for the first subtask.
            executed: is told what PyFlink returned for the execution of the table; raises ConfigError if that names no Flink job.
        """
        self.table = table
        self._subtasks = subtasks
        self._run = run
        self._cluster = cluster
        self._restarts = restarts
        self._slot_timeout = slot_timeout
        self._executed = executed
        self.holds: Any = None
        self._again: list[str] = []
        self._outcome: Outcome | None = None
        self._error: BaseException | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._work, name="akrunner-attached", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._subtasks.wait_for_first()
            self._begun.set()
            self._outcome = self._attempts()
            self._subtasks.leave()
        except BaseException as e:
            self._error = e
            # Flink's job fails with this error, and so reports it to the program that waits for the job
            self._subtasks.leave(f"{type(e).__name__}: {e}")
        finally:
            self._subtasks.disconnect()

    def _attempts(self) -> Outcome:
        failed = 0
        while True:
            try:
                outcome = self._run()
                break
            except JobError as e:
                lost = self._subtasks.any_gone()
                failed += 0 if lost else 1
                hopeless = e.fault or self._subtasks.hopeless()
                if self._restarts is None or hopeless or is_last(type(e), failed, self._restarts):
                    raise
                self._subtasks.leave(f"{type(e).__name__}: {e}", final=False)
                ended = self._subtasks.start_again(self._state)
                if ended in ("CANCELED", "FINISHED"):
                    raise JobCancelledError(f"the Flink job was {_ENDS[ended]}") from None
                if ended is not None:
                    e.warnings = (*e.warnings, *self._again, f"Flink has not started the job again: it is {ended}")
                    raise
                self._again.append(f"{str(e).splitlines()[0]}; Flink has started everything again")
        stats = outcome.stats
        warnings = [*self._again, *stats.warnings]
        return dataclasses.replace(outcome, stats=dataclasses.replace(stats, attempt=len(self._again), warnings=warnings))

    def _state(self, job: str) -> str | None:
        if self._cluster is None:
            return None
        try:
            return Rest(self._cluster).state(job)
        except ClusterError:
            return None

    def collect(self) -> pa.Table:
        """Execute the table, and bring its rows here.

        Returns:
            the rows, as a pyarrow Table.
        Raises:
            JobError: the tasks failed.
            ConfigError: Flink failed.
        """
        from akrunner.engines.flink.host.sql import collected

        try:
            return collected(self.table)
        except ConfigError:
            # if the tasks failed, their error says more
            if self._begun.is_set():
                with contextlib.suppress(TimeoutError):
                    self.wait(_WHY_SECONDS)
            raise

    def wait(self, seconds: float | None = None, result: Any = None) -> Outcome:
        """Wait until the tasks have ended. They run once the program has executed the table.

        Args:
            seconds: how long to wait at most. None: until they have ended, if a subtask comes within `slot_timeout` seconds
                (`FlinkEngine`) from now. With `result`, and if Flink takes no checkpoints, the time in which its job runs does not
                count: in a batch program the subtasks come when what is before them has ended.
            result: what PyFlink returned for the execution of the table, `job.table.execute_insert("scores")` or a
                `StatementSet.execute()`: if its Flink job ends before a subtask comes, for want of slots or because a source
                fails, the error says so at once, and why.
        Returns:
            the outcome of the tasks.
        Raises:
            JobError: they failed.
            StartError: no subtask came.
            JobCancelledError: the Flink job was ended.
            TimeoutError: they have not ended within that time.
            ConfigError: `result` names no Flink job.
        """
        if result is not None:
            self._executed(result)
        if seconds is None:
            self._wait_for_first()
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise TimeoutError("the tasks have not ended; have you executed the table?")
        if self._error is not None:
            if isinstance(self._error, AkrunnerError):
                raise self._error
            error = JobError(words_of("attached", self._error))
            error.fault = True
            raise error from self._error
        assert self._outcome is not None
        return self._outcome

    def _wait_for_first(self) -> None:
        """Wait until a subtask has come, or none can come any more. Raises: StartError: none came in time."""
        left, now = self._slot_timeout, time.monotonic()
        while self._thread.is_alive() and not self._begun.wait(_TICK):
            before, now = now, time.monotonic()
            # with checkpoints, a job that gets no slots, or fails again and again, may run for ever
            if self._restarts is not None or self._subtasks.submitted.state != "RUNNING":
                left -= now - before
            if left < 0:
                raise StartError(
                    f"no subtask came within {self._slot_timeout:g} s (slot_timeout=); its Flink job is "
                    f"{self._subtasks.submitted.state}: has the program executed the table? If it has, the job may lack task slots, "
                    "a source may fail again and again, or a batch program may still compute what comes before: wait(result=...), with "
                    "what execute_insert() returned, waits for that, and says why a job has failed"
                )


_ENDS = {"CANCELED": "cancelled", "FINISHED": "stopped, as a savepoint does"}
