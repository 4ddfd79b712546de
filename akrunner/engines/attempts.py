"""A job, attempt after attempt: what every engine does around its gangs.

::

    Gang (akrunner.engines.gang)     one attempt: every task from spawning to the last process gone
      failed -> FailurePolicy -> the whole gang once more, its input from the start; or the error
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Callable, List, Optional

from akrunner.cluster.failure import FailurePolicy
from akrunner.engines import record, report
from akrunner.engines.base import JoiningSink, Observer, Outcome, RestartSink, RowSink, RowSource
from akrunner.engines.gang import Gang, GangFailed
from akrunner.engines.launcher import Launcher
from akrunner.engines.patience import Patience
from akrunner.engines.tables import JobTables
from akrunner.engines.workdir import WorkDir
from akrunner.errors import AkrunnerError, JobError, WriteError
from akrunner.foreign import underway
from akrunner.launch.guard import Guard
from akrunner.spec import JobSpec


def run_attempts(
    job: JobSpec,
    source: RowSource,
    sink: Optional[RowSink],
    observer: Optional[Observer],
    cancel: Optional[threading.Event],
    launcher: Callable[[WorkDir, Guard], Launcher],
) -> Outcome:
    """As `Engine.run`. Args: launcher: called for each attempt."""
    job.check_restarts(source.replayable, "the source")
    policy = FailurePolicy(job.supervision.max_restarts, job.can_restart(source.replayable))
    began = time.monotonic()
    warnings: List[str] = list(job.notes)
    restarts = port_restarts = 0
    work = WorkDir.of(job)
    tables = JobTables(job.tables, job.chunk_rows, job.chunk_bytes) if job.tables is not None else None
    closing = contextlib.closing(tables) if tables is not None else contextlib.nullcontext()
    gang: Optional[Gang] = None

    def save_failed(kept: str, error: BaseException) -> None:
        work.save_end(kept, record.failed(error, warnings, gang.inputs() if gang is not None else {}))

    with Patience() as patience, Guard() as guard, closing:
        try:
            work.create(job)
            while True:
                attempt = restarts + port_restarts
                started = launcher(work, guard)
                gang = Gang(
                    job, source, sink, observer, cancel, started, work, began, attempt, warnings, guard, patience, tables
                )
                try:
                    outcome = gang.run()
                    break
                except GangFailed as e:
                    decision = policy.decide(e.kind, e.root, restarts, port_restarts)
                    if not decision.restart:
                        raise
                    warnings.append(decision.why)
                    if decision.new_ports:
                        port_restarts += 1
                    else:
                        restarts += 1
                work.restart(job, attempt)
                if isinstance(sink, RestartSink):
                    sink.restart()
                if tables is not None:
                    tables.restart()
            if tables is not None:
                _commit(tables, sink, outcome)
                outcome.stats.tables.update(tables.told())
        except GangFailed as e:
            kept = work.close_failed()
            error = e.error(kept, warnings)
            save_failed(kept, error)
            raise error from None
        except JobError as e:
            # what no task is to blame for: the input could not be read, the output not stored
            kept = work.close_failed()
            save_failed(kept, e)
            e.work_dir, e.warnings = e.work_dir or kept or None, e.warnings or tuple(warnings)
            raise
        except AkrunnerError as e:
            save_failed(work.close_failed(), e)
            raise
        except Exception as e:
            kept = work.close_failed()
            error = report.internal_error(e, kept, warnings)
            save_failed(kept, error)
            raise error from e
        except BaseException as e:
            save_failed(work.close_failed(), e)
            raise
        if work.keep:
            work.save_end(work.path, record.succeeded(outcome))
        work.close()
        return outcome


def _commit(tables: JobTables, sink: Optional[RowSink], outcome: Outcome) -> None:
    """Output tables, and what a sink has: whoever gave it need not commit it any more."""
    if isinstance(sink, JoiningSink) and tables.has_outputs and not outcome.only_asked:
        with underway(WriteError, "output"):
            sink.commit_with(tables.spec.store, tables.commit)
    else:
        tables.commit()
