"""Makes, from what happened to the tasks of a job, its outcome, or the one exception that says what went wrong."""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import shutil
import time
import traceback
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from akrunner.cluster.failure import FailureKind
from akrunner.engines import causes, mistakes
from akrunner.engines.base import Outcome, Stats, TaskResult
from akrunner.engines.inputs import unseen
from akrunner.engines.supervision.states import Failed, TaskRecord, TaskState
from akrunner.engines.workdir import WorkDir, log_in
from akrunner.errors import JobError, JobStalledError, JobTimeoutError, TaskFailure, alike
from akrunner.foreign import disk_full, in_words, redacted, shortage
from akrunner.launch.logs import LogPump
from akrunner.launch.session import TaskSession
from akrunner.launch.texts import text
from akrunner.schema import Schema
from akrunner.spec import JobSpec, SplitSpec, TaskSpec
from akrunner.wire.failure import RECEIVING, SPOOL_FAILED

#: the failure that is the root cause, then the others
Failures = Sequence[tuple[TaskSpec, Failed]]

#: a disk with fewer free bytes than this counts as full
_LITTLE = 1 << 20
#: how many notes of a task are shown, and how many characters of each
_NOTES, _NOTE = 100, 4000


def of_record(record: Mapping[str, Any], schema: Schema, params: Collection[str] = ()) -> Failed:
    """Return a script's failure from the record that the worker sent (`akrunner.wire.failure`).

    Args:
        schema: the table's schema.
        params: the names of the job's params.
    """
    fields = {field.name: field for field in schema}
    return Failed(FailureKind.SCRIPT, causes.told(record, schema.names, fields, params), record["time_ns"], record["traceback"])


def only_printed(result: TaskRecord, log: LogPump) -> bool:
    """Whether all that a task did was to print something, as a rule its help."""
    return result.word.unasked is not None and not result.rows_out and bool(log.tail(1).strip())


def with_full_disks(failed: Failed, places: Mapping[str, str]) -> Failed:
    """Return a failure that names the disk, if the failure is a lack of disk space. If the rows on their way to a script
    did not fit, the failure is no longer the script's.

    Args:
        places: directories that a task writes to -> the parameter that names another place for them.
    """
    failed = _of_a_spool(failed)
    if os.strerror(errno.ENOSPC) not in failed.what:
        return failed
    full = [f"{disk_full(path)} ({parameter})" for path, parameter in places.items() if _free(path) < _LITTLE]
    return dataclasses.replace(failed, what="; ".join([failed.what, *full]))


def _of_a_spool(failed: Failed) -> Failed:
    """Return a failure to read, if the disk that holds the rows for the script failed, rather than the script
    (`akrunner.worker.tables.broker`, `akrunner.worker.link`)."""
    if failed.kind is not FailureKind.SCRIPT:
        return failed
    at = failed.what.find(SPOOL_FAILED)
    if at >= 0:
        return dataclasses.replace(failed, kind=FailureKind.READ, what=failed.what[at:], traceback="")
    received = failed.what.startswith(f"raised OSError {RECEIVING}")
    full = any(os.strerror(number) in failed.what for number in (errno.ENOSPC, errno.EDQUOT))
    return dataclasses.replace(failed, kind=FailureKind.READ, traceback="") if received and full else failed


def _free(path: str) -> int:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return _LITTLE


def job_error(
    failures: Failures, sessions: Mapping[TaskSpec, TaskSession], results: Mapping[TaskSpec, TaskRecord], kept: str
) -> JobError:
    """Return the exception of a failed job: the root cause, then what the other tasks did.

    Args:
        kept: the directory the logs are in; "" if they were not kept.
    """
    first, *later = (task_failure(task, failed, sessions[task], kept) for task, failed in failures)
    failed_too = {task for task, _ in failures}
    others = later + [
        TaskFailure(task.name, _left_at(result.state), log_path=log_in(kept, task))
        for task, result in results.items()
        if task not in failed_too
    ]
    kind = failures[0][1].kind
    return kind.error(f"[{first.task}] {first.what}", failure=first, others=others, work_dir=kept or None)


def _left_at(state: TaskState) -> str:
    """Return what a task that had not failed was doing when the job ended."""
    # of a task that was over, only the process was still there to be stopped
    over = {TaskState.FINISHED: "was done", TaskState.ENDED: "had ended", TaskState.FAILED: "had failed"}
    return over.get(state) or f"was {state.doing} and was stopped"


def timeout_error(
    job: JobSpec, stacks: Mapping[TaskSpec, str], results: Mapping[TaskSpec, TaskRecord], kept: str, in_source: bool
) -> JobTimeoutError:
    """Return the exception of a job that took longer than its timeout. It says what each task was doing.

    Args: in_source: whether the host waited for the source to give rows.
    """
    doing = alike(((task.name, result.state.doing) for task, result in results.items()), "tasks")
    states = "; ".join(f"{who} {what}" for who, what in doing)
    first = next(iter(stacks), None)
    failure = None
    if first is not None:
        failure = TaskFailure(first.name, "did not end in time", log_tail=stacks[first], log_path=log_in(kept, first))
    others = [TaskFailure(t.name, "stacks:\n" + text, log_path=log_in(kept, t)) for t, text in stacks.items() if t != first]
    message = f"the job took longer than timeout={job.supervision.timeout:g} s and was stopped: {states}"
    if in_source:
        message += "; the host waited for the source (--input) to give rows"
    return JobTimeoutError(message, failure=failure, others=others, work_dir=kept or None)


def stall_error(told: str, results: Mapping[TaskSpec, TaskRecord], kept: str) -> JobStalledError:
    """Return the exception of a job in which nothing moved any more.

    Args:
        told: which task waits for what (`akrunner.engines.supervision.deadlock`).
    """
    hint = "stall_timeout= (--stall-timeout) waits longer (0: for ever), stall_action='warn' (--stall-action warn) goes on"
    # the first task that is not done: its last lines say most
    task = next((one for one, result in results.items() if result.state is not TaskState.FINISHED), None)
    failure = TaskFailure(task.name, "had not moved", log_path=log_in(kept, task)) if task is not None else None
    error = JobStalledError(f"{told}\n({hint})", failure=failure, work_dir=kept or None)
    error.report = told
    return error


def internal_error(error: Exception, kept: str, warnings: Sequence[str]) -> JobError:
    """Return the job's exception, with the traceback, for an unforeseen exception of akrunner's own code or of the system."""
    words = with_limit(error)
    is_fault = not isinstance(error, OSError) and not shortage(error)
    fault = "; a fault in akrunner itself" if is_fault else ""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    failure = TaskFailure("host", words, traceback=trace, time_ns=time.time_ns())
    made = JobError(f"the job could not go on: {words}{fault}", failure=failure, work_dir=kept or None)
    made.warnings, made.fault = tuple(warnings), is_fault
    return made


def with_limit(error: BaseException) -> str:
    """Return an exception in words. If it says that the machine has no more of something, the words name the limit."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    limited = isinstance(error, OSError) or shortage(error)
    name = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
    words = in_words(error) if limited else f"{type(error).__name__}: {error}"
    return redacted(words + name + ("; TMPDIR, or work_dir=, names another disk" if full else ""))


def outcome(
    job: JobSpec,
    sessions: Mapping[TaskSpec, TaskSession],
    results: Mapping[TaskSpec, TaskRecord],
    work: WorkDir,
    *,
    shares: Sequence[int],
    seconds: float,
    start_seconds: float,
    feed_seconds: float,
    reports: list[dict[str, Any]],
    rows_unread: int,
    attempt: int,
    warnings: Sequence[str],
    starts: Mapping[str, str],
) -> Outcome:
    """Return the outcome of a job that has succeeded and whose processes have ended."""
    main = max((r.word.main_ns for r in results.values()), default=0) / 1e9
    waited = max((r.input_wait_ns for r in results.values()), default=0) / 1e9
    uneven = _uneven(results)
    told = measured(results)
    tasks = tuple(_task_result(task, results[task], session, work) for task, session in sessions.items())
    stats = Stats(
        seconds=seconds,
        start_seconds=start_seconds,
        feed_seconds=feed_seconds,
        main_seconds=main,
        rows_in=sum(r.rows_in for r in results.values()),
        bytes_in=sum(s.writer.bytes for s in sessions.values()),
        rows_out=sum(r.rows_out for r in results.values()),
        bytes_out=sum(r.bytes_out for r in results.values()),
        host_blocked_seconds=sum(s.writer.blocked_ns for s in sessions.values()) / 1e9,
        input_wait_seconds=waited,
        output_blocked_seconds=max((r.word.output_blocked_ns for r in results.values()), default=0) / 1e9,
        bound=unseen.bound(told, waited, main),
        inputs=told,
        shares=tuple(shares),
        rows_unread=rows_unread,
        attempt=attempt,
        rows_dropped=sum(r.word.rows_dropped for r in results.values()),
        rows_padded=sum(r.word.rows_padded for r in results.values()),
        reports=reports,
        starts=dict(starts),
        warnings=[*warnings, *uneven]
        + [w for task, session in sessions.items() for w in _warnings(task, results[task], session)],
    )
    return Outcome(tasks, stats, work.path if work.keep else None)


def measured(results: Mapping[TaskSpec, TaskRecord]) -> dict[str, dict[str, Any]]:
    """Return by the tasks' names what each task has measured of its input."""
    return {task.name: dict(r.word.input) for task, r in results.items() if r.word.input is not None}


def _task_result(task: TaskSpec, result: TaskRecord, session: TaskSession, work: WorkDir) -> TaskResult:
    ended = session.process.exit
    return TaskResult(
        name=task.name,
        rows_in=result.rows_in,
        rows_out=result.rows_out,
        main_seconds=result.word.main_ns / 1e9,
        input_wait_seconds=result.input_wait_ns / 1e9,
        exit=ended.words() if ended else "still running",
        peak_rss=ended.peak_rss if ended else 0,
        cpu_seconds=ended.cpu_seconds if ended else 0.0,
        python=str(session.hello.get("python", "")),
        log_tail=session.log.tail(1000 if only_printed(result, session.log) else 100),
        log_path=work.log_path(task) if work.keep else None,
        rows_dropped=result.word.rows_dropped,
        rows_padded=result.word.rows_padded,
        only_printed=only_printed(result, session.log),
        only_asked=result.word.asked and only_printed(result, session.log),
    )


def empty_splits(split: SplitSpec | None, rows: Sequence[Sequence[int]]) -> list[str]:
    """Return a warning if no row is in some of the splits.

    Args:
        rows: [workers, splits], the number of rows of each split that each worker got.
    """
    if split is None:
        return []
    empty = [name for name, counts in zip(split.names, zip(*rows)) if not any(counts)]
    return [f"split: no row is in {', '.join(empty)}: the table has few rows, or few values of split_by"] if empty else []


def _uneven(results: Mapping[TaskSpec, TaskRecord]) -> list[str]:
    told = []
    for name, what in (("rows_dropped", "left out of"), ("rows_padded", "made up in")):
        counts = {task.name: getattr(result.word, name) for task, result in results.items() if getattr(result.word, name)}
        if counts:
            each = ", ".join(f"[{task}] {count}" for task, count in counts.items())
            told.append(f"rows {what} each pass so that all workers have as many (uneven=): {each}")
    return told


def _warnings(task: TaskSpec, result: TaskRecord, session: TaskSession) -> list[str]:
    ended = session.process.exit
    if ended is None:
        return [f"[{task.name}] is still running after SIGKILL: pid {session.process.pid}"]
    unasked = () if result.word.unasked is None or only_printed(result, session.log) else result.word.unasked
    told = [f"[{task.name}] {note}" for note in _bounded([*(session.left or ()), *result.word.notes, *unasked])]
    if result.state is TaskState.FINISHED and ended.code != 0:
        told.append(f"[{task.name}] had finished, and then ended with {ended.words()}")
    elif result.state is TaskState.FINISHED and session.left is None:
        told.append(f"[{task.name}] had finished, and then ended in an exit handler (os._exit?); those after it did not run")
    return told


def _bounded(notes: Sequence[str]) -> list[str]:
    """Return the first of a task's notes, without the end of those that are long: a script's texts may be in them, of any size."""
    shown = [note if len(note) <= _NOTE else f"{note[:_NOTE]}... (and {len(note) - _NOTE:,} more characters)" for note in notes]
    return shown[:_NOTES] + ([f"there are {len(shown) - _NOTES:,} more such notes"] if len(shown) > _NOTES else [])


def task_failure(task: TaskSpec, failed: Failed, session: TaskSession, kept: str) -> TaskFailure:
    """Return a failure as the caller gets it, with how the process ended and what it had printed.

    Args:
        kept: the directory the logs are in; "" if they were not kept.
    """
    ended = session.process.exit
    log = session.log.tail(200)
    reason = ""
    if failed.kind is FailureKind.DIED:
        reason = mistakes.of_death(log, text(session.script))
    elif failed.what.startswith("called sys.exit("):
        reason = mistakes.of_exit(log)
    return TaskFailure(
        task=task.name,
        what=failed.what + (f": {reason}" if reason else ""),
        traceback=failed.traceback,
        exit=ended.words() if ended else "",
        log_tail=_without(session.log.tail(20 if failed.kind is not FailureKind.DIED else 40), failed.traceback),
        log_path=log_in(kept, task),
        time_ns=failed.time_ns,
    )


def _without(tail: str, traceback: str) -> str:
    """Return the end of the log with blank lines squeezed, or "" if it only repeats the traceback."""
    squeezed = re.sub(r"\n{3,}", "\n\n", tail).strip("\n")
    return "" if traceback and squeezed.strip() == traceback.strip() else squeezed


__all__ = ["job_error", "measured", "only_printed", "outcome", "stall_error", "task_failure", "timeout_error"]
