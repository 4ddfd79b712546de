"""Runs a job, attempt after attempt. Every engine uses this.

::

    Supervisor (akrunner.engines.supervisor)     one attempt, from the start of the first task to the end of the last process
      failed -> FailurePolicy -> start every task again, with the input from its start; or raise the error
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from akrunner.cluster.failure import FailurePolicy
from akrunner.engines import record, report
from akrunner.engines.base import (
    JoiningSink,
    Launcher,
    MarkedSource,
    Observer,
    Outcome,
    Progress,
    RestartSink,
    RowSink,
    RowSource,
    bad_rows_of,
)
from akrunner.engines.inputs.wording import verdict
from akrunner.engines.jobrun import JobRun
from akrunner.engines.kept import KeptRun
from akrunner.engines.onlooker import Onlooker
from akrunner.engines.supervision.states import RESTARTING
from akrunner.engines.supervisor import AttemptFailed, Supervisor
from akrunner.engines.tables import JobTables
from akrunner.engines.tensorboard import EventFiles
from akrunner.engines.workdir import WorkDir
from akrunner.errors import AkrunnerError, JobCancelledError, JobError, JobTimeoutError, WriteError
from akrunner.foreign import underway
from akrunner.io.limits import narrowed
from akrunner.io.streams.saved import newest_of
from akrunner.launch.guard import Guard
from akrunner.patience import Patience
from akrunner.spec import JobSpec

#: seconds between looks whether a wait is to end early
_TICK = 0.1


def run_attempts(
    job: JobSpec,
    source: RowSource,
    sink: RowSink | None,
    observer: Observer | None,
    cancel: threading.Event | None,
    launcher: Callable[[WorkDir, Guard], Launcher],
) -> Outcome:
    """Run a job to its end, as `Engine.run` does.

    Args:
        launcher: called for each attempt; makes its launcher.
    Raises:
        ConfigError: the directory for TensorBoard cannot be made. Whatever else `Engine.run` raises is raised too.
    """
    job.check_restarts(source.replayable, "the source")
    began = time.monotonic()
    job, counted = _in_time(job, began)
    work = WorkDir.of(job)
    tables = JobTables(job.tables, job.chunk_rows, job.chunk_bytes) if job.tables is not None else None
    closing = contextlib.closing(tables) if tables is not None else contextlib.nullcontext()
    with Patience() as patience, Guard() as guard, closing, contextlib.closing(KeptRun(job.kept)) as kept:
        warnings = list(job.notes)
        board = EventFiles.of(job, warnings)
        run = JobRun(job, source, sink, observer, cancel, work, guard, patience, tables, warnings, began, counted, kept, board)
        return _Attempts(run, launcher).run()


def _in_time(job: JobSpec, now: float) -> tuple[JobSpec, float]:
    """Return a job with the time that it has, which is less than its own if the thread's job has less left, and from when on that counts."""
    limits = narrowed(job.supervision.timeout, None)
    if limits.timeout != job.supervision.timeout:
        job = replace(job, supervision=replace(job.supervision, timeout=limits.timeout))
    return job, now if limits.began is None else limits.began


class _Attempts:
    """Makes one attempt after another, until one succeeds or the policy allows no further one.

    Args:
        launcher: called for each attempt; makes its launcher.
    """

    def __init__(self, run: JobRun, launcher: Callable[[WorkDir, Guard], Launcher]) -> None:
        self._run = run
        self._launcher = launcher
        limits = run.job.supervision
        self._policy = FailurePolicy(
            limits.max_restarts, run.job.can_restart(run.source.replayable), limits.restart_delay, run.job.run_id
        )
        #: the supervisor of the newest attempt
        self._supervisor: Supervisor | None = None

    def run(self) -> Outcome:
        run = self._run
        with self._saving(), run.board or contextlib.nullcontext():
            run.work.create(run.job)
            outcome = _with_bad_rows(self._until_one_succeeds(), run.source)
            if run.tables is not None:
                _commit(run.tables, run.sink, outcome)
                outcome.stats.tables.update(run.tables.told())
        outcome.stats.input_verdict.extend(verdict(outcome.stats))
        if run.work.keep:
            run.work.save_end(run.work.path, record.succeeded(outcome))
        run.work.close()
        return outcome

    def _until_one_succeeds(self) -> Outcome:
        """Return the outcome of the first attempt that succeeds.

        Raises:
            AttemptFailed: an attempt has failed, and the policy allows no further one.
        """
        run = self._run
        restarts = port_restarts = 0
        while True:
            attempt = restarts + port_restarts
            work = run.work.going_on_with(self._begin())
            self._supervisor = Supervisor(run, self._launcher(work, run.guard), attempt)
            try:
                return self._supervisor.run()
            except AttemptFailed as e:
                decision = self._policy.decide(e.kind, e.root, restarts, port_restarts)
                if not decision.restart:
                    raise
                run.warnings.append(decision.why)
                if decision.new_ports:
                    port_restarts += 1
                else:
                    restarts += 1
            self._wait(decision.delay, attempt)
            run.work.restart(run.job, attempt)
            if isinstance(run.sink, RestartSink):
                run.sink.restart()
            if run.tables is not None:
                run.tables.restart()

    def _wait(self, seconds: float, attempt: int) -> None:
        """Wait before the next attempt. A signal, a cancellation and the end of the job's time end the wait at once.

        Args: attempt: the number of attempts before the one that failed.

        Raises:
            JobCancelledError: the job was cancelled by its caller.
            JobTimeoutError: the job's time is over.
        """
        if seconds <= 0:
            return
        run, onlooker, until = self._run, Onlooker(self._run.observer), time.monotonic() + seconds
        cancelled = run.cancel or threading.Event()
        with run.patience.heard():
            while (left := until - time.monotonic()) > 0:
                onlooker.tell(lambda: _waiting(run, attempt))
                if cancelled.wait(min(left, _TICK)):
                    raise JobCancelledError("the job was stopped by its caller")
                timeout = run.job.supervision.timeout
                if timeout is not None and time.monotonic() >= run.counted + timeout:
                    raise JobTimeoutError(
                        f"the job took longer than timeout={timeout:g} s and was stopped while it waited to be started again "
                        "(restart_delay=, --restart-delay)"
                    )

    def _begin(self) -> int | None:
        """Let a stream whose place can be set begin where the newest save was made, if the job goes on there.

        Returns:
            the number of that save, 0 for none; None: it is no such stream.
        Raises:
            ConfigError: there it cannot go on.
        """
        job, source = self._run.job, self._run.source
        if job.marked and isinstance(source, MarkedSource) and source.arriving is not None:
            tasks = [task.name for task in job.cluster.with_rows]
            begins = newest_of(self._run.work.checkpoint_dir(job), tasks, job.resume, job.run_id)
            source.arriving.begin(begins.place)
            # the tasks go on with this save, whatever a task that was not gone yet saves meanwhile
            return begins.number
        return None

    @contextlib.contextmanager
    def _saving(self) -> Iterator[None]:
        """Keep the logs, save the reason in the job's record, and give the caller the error, if the job ends with any
        exception."""
        work, warnings = self._run.work, self._run.warnings
        try:
            yield
        except AttemptFailed as e:
            kept = work.close_failed()
            error = e.error(kept, warnings)
            self._save(kept, error)
            raise error from None
        except JobError as e:
            # no task is to blame: the input could not be read, or the output not stored
            kept = work.close_failed()
            self._save(kept, e)
            e.work_dir, e.warnings = e.work_dir or kept or None, e.warnings or tuple(warnings)
            raise
        except AkrunnerError as e:
            self._save(work.close_failed(), e)
            raise
        except Exception as e:
            kept = work.close_failed()
            fault = report.internal_error(e, kept, warnings)
            self._save(kept, fault)
            raise fault from e
        except BaseException as e:
            # Ctrl-C: the exception carries the directory of the logs, so that the command can print it
            kept = work.close_failed()
            self._save(kept, e)
            vars(e)["work_dir"] = kept or None
            raise

    def _save(self, kept: str, error: BaseException) -> None:
        told = self._supervisor.inputs() if self._supervisor is not None else {}
        self._run.work.save_end(kept, record.failed(error, self._run.warnings, told))


def _waiting(run: JobRun, attempt: int) -> Progress:
    """Return the progress of a job between two attempts."""
    states = {task.name: RESTARTING for task in run.job.cluster.tasks}
    return Progress(time.monotonic() - run.began, 0, 0, 0, 0, states, {}, tuple(run.warnings), attempt=attempt)


def _with_bad_rows(outcome: Outcome, source: RowSource) -> Outcome:
    """Return the outcome with the numbers of the source's bad rows."""
    bad = bad_rows_of(source)
    if bad is None:
        return outcome
    stats = outcome.stats
    warnings = [*stats.warnings, *bad.summary()]
    return replace(outcome, stats=replace(stats, bad_rows=bad.count, bad_rows_file=bad.file, warnings=warnings))


def _commit(tables: JobTables, sink: RowSink | None, outcome: Outcome) -> None:
    """Commit the output tables, and the rows of a sink that is committed with them. The owner of such a sink
    (`akrunner.running.outputs.run_into`) commits it once more, which does nothing.

    Raises: WriteError: nothing was committed, or the error says that the tables were: the sink's last rename has failed.
    """
    if isinstance(sink, JoiningSink) and tables.has_outputs and not outcome.only_asked:
        with underway(WriteError, "output"):
            sink.commit_with(tables.spec.store, tables.commit)
    else:
        tables.commit()
