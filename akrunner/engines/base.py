"""What an engine is, and what it gives back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from akrunner.spec import Capabilities, JobSpec, TaskSpec
from akrunner.tables.store import TableOutput, TableStore


class RowSource(Protocol):
    """The input table, as batches. Attributes: replayable: whether they can be had again."""

    @property
    def replayable(self) -> bool: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows once, in order; each batch has the job's schema."""
        ...


@runtime_checkable
class StoppableSource(RowSource, Protocol):
    """A source that can be told to give no more while another thread waits for it."""

    def stop(self) -> None:
        """Have that thread's read end early, with an error; called again until it has."""
        ...


class RowSink(Protocol):
    """Where the rows go that the scripts write."""

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Take a batch of the output schema; a task's batches come in the order it wrote them."""
        ...


@runtime_checkable
class RestartSink(RowSink, Protocol):
    """A sink that can forget: what a job that may be started again writes to."""

    def restart(self) -> None:
        """The job starts again: nothing was written."""
        ...


@runtime_checkable
class JoiningSink(RowSink, Protocol):
    """A sink that is committed together with the job's output tables."""

    def commit_with(self, store: TableStore, commit: Callable[[Sequence[TableOutput]], None]) -> None:
        """The job has succeeded: both are there, or neither. What is left to fail behind `commit` is a rename, or a store's own commit.

        Args: store: of the tables; commit: commits them, and in the same step more outputs of that store.
        Raises: WriteError: nothing was committed, or it says what was.
        """
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
        reports: the newest metrics by task; warnings: so far.
    """

    seconds: float
    rows_in: int
    bytes_in: int
    rows_out: int
    bytes_out: int
    states: Mapping[str, str]
    reports: Mapping[str, Mapping[str, float]]
    warnings: Sequence[str] = ()


class Observer(Protocol):
    """Looks on while a job runs."""

    def progress(self, progress: Progress) -> None:
        """Called a few times a second, from the thread that runs the job."""
        ...

    def log(self, task: str, line: str) -> None:
        """A line a task printed; called from a thread of its own."""
        ...


@dataclass(frozen=True)
class TaskResult:
    """What became of one task.

    Attributes:
        name: `worker:0`.
        rows_in, rows_out: rows it was given and rows it wrote.
        rows_dropped, rows_padded: by `dataset(..., uneven=)`, in one pass.
        main_seconds: in `main`; input_wait_seconds: with nothing to do but wait for its rows.
        exit: in words.
        peak_rss: bytes; cpu_seconds: user and system.
        python: version of its interpreter.
        only_printed: a program, it ended by `sys.exit(0)` before it asked for its rows; `log_tail` is what it had to say: its help.
        only_asked: and its command line asked for that: nothing else was to come of it.
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
    log_path: str | None
    rows_dropped: int = 0
    rows_padded: int = 0
    only_printed: bool = False
    only_asked: bool = False


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
        bound: "input", "compute" or "unknown": which side a faster machine should speed up: "input" if a task waited longer for its rows than its
            `main` took, or its script for its input longer than for all else (`inputs`); "compute" if it is known that it did not; "unknown" of
            jobs of less than half a second, of scripts that read in ways of their own, and of those that save, report or write most of the time.
        shares: rows of each worker.
        rows_unread: stream: sent, or come too late, for scripts that returned before the stream had ended.
        attempt: 0, or how often everything was started again (`warnings` say why).
        rows_dropped, rows_padded: by `dataset(..., uneven=)`, in one pass, by all workers.
        reports: everything the tasks reported: dicts with task, step, time_ns and the metrics.
        warnings: what did not fail the job but should be known.
        starts: task -> how it was started, on this machine: "warm", "cold", or "cold: " and why no warm worker was right for it.
        tables: that the scripts asked for, by name -> {"rows_read": sent to all tasks together, "rows_written": of what was committed}.
        inputs: task -> how its script waited for its input, over time too; `akrunner.engines.inputs` says what is in it, and words it.
        input_verdict: these words: what each task waits for and what to change, "[task] ...", most important first. Empty: nothing holds the job up in its
            input, or nobody knows.
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
    shares: tuple[int, ...]
    rows_unread: int = 0
    attempt: int = 0
    rows_dropped: int = 0
    rows_padded: int = 0
    reports: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    starts: dict[str, str] = field(default_factory=dict)
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    input_verdict: list[str] = field(default_factory=list)

    @property
    def report_table(self) -> pa.Table:
        """`reports` as a table: task string, step bigint, time timestamp, and a double column for every metric."""
        names = sorted({name for report in self.reports for name in report} - {"task", "step", "time_ns"})
        columns = {
            "task": pa.array([report["task"] for report in self.reports], pa.string()),
            "step": pa.array([report["step"] for report in self.reports], pa.int64()),
            "time": pa.array([report["time_ns"] for report in self.reports], pa.timestamp("ns", "UTC")),
        }
        metrics = {name: pa.array([report.get(name) for report in self.reports], pa.float64()) for name in names}
        return pa.table({**columns, **metrics})


@dataclass(frozen=True)
class Outcome:
    """A job that succeeded. `work_dir`: None when it was not kept."""

    tasks: tuple[TaskResult, ...]
    stats: Stats
    work_dir: str | None

    @property
    def only_asked(self) -> bool:
        """Whether no task has done more than to print the help it was asked for: there is no output then."""
        return bool(self.tasks) and all(task.only_asked for task in self.tasks)


class Engine(Protocol):
    """Runs jobs.

    Attributes:
        name: as in `engine=`.
        capabilities: what it can do besides.
    """

    name: str

    @property
    def capabilities(self) -> Capabilities: ...

    def check(self, job: JobSpec) -> None:
        """Whether what it needs is there, as far as that can be told with nothing started (`akrunner.plan`). Raises: ConfigError: something is not."""
        ...

    def run(
        self,
        job: JobSpec,
        source: RowSource,
        sink: RowSink | None,
        observer: Observer | None,
        cancel: threading.Event | None = None,
    ) -> Outcome:
        """Run a job to its end; blocks. Setting `cancel` ends it with a JobCancelledError.

        Raises: JobError: it failed; DataError: a row cannot cross. Either way nothing of it is left running.
        """
        ...
