"""What an engine is, and what it gives back."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Protocol, Tuple, runtime_checkable

import pyarrow as pa

from akrunner.spec import JobSpec, TaskSpec


class RowSource(Protocol):
    """The input table, as batches."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows once, in order; each batch has the job's schema."""
        ...


class RowSink(Protocol):
    """Where the rows go that the scripts write."""

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Take a batch of the output schema; a task's batches come in the order it wrote them."""
        ...


@runtime_checkable
class AnswerSink(RowSink, Protocol):
    """A sink that is told, too, which chunk of rows could not be answered."""

    def refused(self, task: TaskSpec, record: Mapping[str, Any]) -> None:
        """In place of the chunk's batch: its failure record (`akrunner.wire.failure`)."""
        ...


@dataclass(frozen=True)
class Progress:
    """A job as it stands.

    Attributes:
        seconds: since it started; rows and bytes: sent to the workers and received from them; states: task -> what it does.
        reports: the newest metrics by task.
    """

    seconds: float
    rows_in: int
    bytes_in: int
    rows_out: int
    bytes_out: int
    states: Mapping[str, str]
    reports: Mapping[str, Mapping[str, float]]


class Observer(Protocol):
    """Looks on while a job runs."""

    def progress(self, progress: Progress) -> None:
        """Called a few times a second, from the thread that runs the job."""
        ...

    def log(self, task: str, line: str) -> None:
        """A line a task printed; called from a thread of its own. Only in debug mode."""
        ...


@dataclass(frozen=True)
class TaskResult:
    """What became of one task.

    Attributes:
        name: `worker:0`.
        rows_in, rows_out: rows it was given and rows it wrote.
        main_seconds: in `main`; input_wait_seconds: with nothing to do but wait for its rows.
        exit: in words.
        peak_rss: bytes; cpu_seconds: user and system.
        python: version of its interpreter.
        log_tail: the last lines it printed; log_path: its whole log, None when the work dir was not kept.
    """

    name: str
    rows_in: int
    rows_out: int
    main_seconds: float
    input_wait_seconds: float
    exit: str
    peak_rss: int
    cpu_seconds: float
    python: str
    log_tail: str
    log_path: Optional[str]


@dataclass(frozen=True)
class Stats:
    """Numbers of one job.

    Attributes:
        seconds: from the call to its return.
        start_seconds: until the first task entered `main`.
        feed_seconds: from the first row sent to the last.
        main_seconds: the longest of the tasks.
        rows_in, bytes_in, rows_out, bytes_out: over the pipes.
        host_blocked_seconds: the host waited for workers to take rows.
        input_wait_seconds: the longest a task stood idle for rows; output_blocked_seconds: or for the host to take its output.
        bound: "input" or "compute": which side a faster machine should speed up.
        shares: rows of each worker.
        rows_unread: stream: sent, or come too late, for scripts that returned before the stream had ended.
        reports: everything the tasks reported: dicts with task, step, time_ns and the metrics.
        warnings: what did not fail the job but should be known.
    """

    seconds: float
    start_seconds: float
    feed_seconds: float
    main_seconds: float
    rows_in: int
    bytes_in: int
    rows_out: int
    bytes_out: int
    host_blocked_seconds: float
    input_wait_seconds: float
    output_blocked_seconds: float
    bound: str
    shares: Tuple[int, ...]
    rows_unread: int = 0
    reports: List[Dict[str, Any]] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """A job that succeeded. `work_dir`: None when it was not kept."""

    tasks: Tuple[TaskResult, ...]
    stats: Stats
    work_dir: Optional[str]


class Engine(Protocol):
    """Runs jobs.

    Attributes:
        name: as in `engine=`.
    """

    name: str

    def run(
        self,
        job: JobSpec,
        source: RowSource,
        sink: Optional[RowSink],
        observer: Optional[Observer],
        cancel: Optional[threading.Event] = None,
    ) -> Outcome:
        """Run a job to its end; blocks. Setting `cancel` ends it with a JobCancelledError.

        Raises: JobError: it failed; DataError: a row cannot cross. Either way nothing of it is left running.
        """
        ...
