"""The Engine protocol, and the types that an engine takes (sources, sinks, observers) and returns (`Outcome`)."""

from __future__ import annotations

import abc
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from akrunner.io.bad_rows import BadRows
from akrunner.io.extents import Extent
from akrunner.spec import Capabilities, JobSpec, TaskSpec
from akrunner.tables.store import TableOutput, TableStore

if TYPE_CHECKING:
    from akrunner.engines.feeder import StreamFeeder
    from akrunner.io.streams.arriving import Arriving
    from akrunner.launch.process import LoggedProcess
    from akrunner.launch.session import TaskSession
    from akrunner.wire.context import Context, TFConfig


class RowSource(Protocol):
    """The input table, as a series of batches.

    Attributes:
        replayable: whether the rows can be read more than once.
    """

    @property
    def replayable(self) -> bool: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows once, in order. Each batch has the job's schema."""
        ...


@runtime_checkable
class StoppableSource(RowSource, Protocol):
    """A source that one thread can stop while another thread waits for its next batch."""

    def stop(self) -> None:
        """Make the other thread's read end early, with an error. The caller calls this again until that read has ended."""
        ...


@runtime_checkable
class SiftedSource(RowSource, Protocol):
    """A source that may have bad rows, which do not fail the job.

    Attributes:
        bad: what counts them; None: a bad row is an error.
    """

    @property
    def bad(self) -> BadRows | None: ...


def bad_rows_of(source: RowSource) -> BadRows | None:
    """Return what counts a source's bad rows; None if they are errors, or if it can have none."""
    return source.bad if isinstance(source, SiftedSource) else None


@runtime_checkable
class MeasuredSource(RowSource, Protocol):
    """A source of which may be known how far it has been read.

    Attributes:
        extent: says how far, and how many rows there are; None if nobody knows.
    """

    @property
    def extent(self) -> Extent | None: ...


def extent_of(source: RowSource) -> Extent | None:
    """Return what says how far a source has been read; None if nobody knows."""
    return source.extent if isinstance(source, MeasuredSource) else None


@runtime_checkable
class MarkedSource(RowSource, Protocol):
    """A source that may want to know which of its rows are answered.

    Attributes:
        arriving: stores the position behind rows that are answered; None if nothing is stored.
    """

    @property
    def arriving(self) -> Arriving | None: ...


class RowSink(Protocol):
    """The destination of the rows that the scripts write."""

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Take one batch of the output schema. The batches of one task come in the order in which the task wrote them."""
        ...


@runtime_checkable
class RestartSink(RowSink, Protocol):
    """A sink that can discard what it was given. A job that may be started again writes to such a sink."""

    def restart(self) -> None:
        """Discard every row so far, because the job starts again."""
        ...


@runtime_checkable
class JoiningSink(RowSink, Protocol):
    """A sink that is committed together with the job's output tables."""

    def commit_with(self, store: TableStore, commit: Callable[[Sequence[TableOutput]], None]) -> None:
        """Commit the sink's rows together with the job's output tables, after the job has succeeded: both are there, or
        neither.

        After `commit` has returned, only a rename, or a store's own commit, can still fail.

        Args:
            store: the store of the output tables.
            commit: commits the output tables, and in the same step the further outputs of that store that it is given.
        Raises:
            WriteError: nothing was committed, or the error says what was.
        """
        ...


@runtime_checkable
class AnswerSink(RowSink, Protocol):
    """A sink that also takes the failure records of chunks of rows for which the task had no answer."""

    def refused(self, task: TaskSpec, record: Mapping[str, Any]) -> None:
        """Take the failure record of a chunk (`akrunner.wire.failure`) in place of its batch."""
        ...


@runtime_checkable
class MarkedSink(RowSink, Protocol):
    """A sink that is told which rows are answered."""

    def answered(self, task: TaskSpec, number: int) -> None:
        """Note that a task has answered all rows before a mark, and that all that it wrote for them came to `write`.

        Args:
            task: the task.
            number: the mark's number (`akrunner.io.streams.arriving`).
        """
        ...


@dataclass(frozen=True)
class Reached:
    """How far the script of a task is (`akrunner.worker.reached`).

    Attributes:
        done: steps, batches or rows of this epoch that are done.
        total: of how many; None: not known.
        epoch: which epoch it is, from 1; 0: these are no epochs.
        epochs: how many there will be; None: not known.
    """

    done: int
    total: int | None = None
    epoch: int = 0
    epochs: int | None = None

    @property
    def share(self) -> float | None:
        """Which share is done, 0 to 1: of all epochs if their number is known, else of this one; None: not known."""
        within = min(self.done / self.total, 1.0) if self.total else None
        if self.epochs is None:
            return within
        if within is None and self.epoch <= 1:
            return None
        return min((max(self.epoch - 1, 0) + (within or 0.0)) / self.epochs, 1.0)


@dataclass(frozen=True)
class TaskProgress:
    """How far one task of a running job is.

    Attributes:
        rows_in: rows that it was sent.
        rows_out: rows that came from it.
        step: the newest training step that it has reported; None: none.
        reached: how far its script is; None: nobody knows.
    """

    rows_in: int = 0
    rows_out: int = 0
    step: int | None = None
    reached: Reached | None = None


@dataclass(frozen=True)
class Progress:
    """The state of a running job at one moment.

    Attributes:
        seconds: time since the job started.
        rows_in: rows sent to the workers.
        bytes_in: bytes sent to the workers.
        rows_out: rows received from the workers.
        bytes_out: bytes received from the workers.
        states: task -> what it is doing: the word of a `TaskState`, or `RESTARTING`, between two attempts.
        reports: task -> of each metric what it reported last.
        warnings: the warnings so far.
        tasks: task -> how far it is.
        rows_total: how many rows the input has; None: nobody knows yet.
        share_read: which share of the input has been read, 0 to 1; None: nobody knows.
        fed: whether the tasks have been sent all rows.
        attempt: how many attempts at the job there were before this one.
        stalls: how often nothing had moved for `stall_timeout`, in this attempt.
    """

    seconds: float
    rows_in: int
    bytes_in: int
    rows_out: int
    bytes_out: int
    states: Mapping[str, str]
    reports: Mapping[str, Mapping[str, float]]
    warnings: Sequence[str] = ()
    tasks: Mapping[str, TaskProgress] = field(default_factory=dict)
    rows_total: int | None = None
    share_read: float | None = None
    fed: bool = False
    attempt: int = 0
    stalls: int = 0


class Observer(Protocol):
    """Is told how a job gets on, while it runs."""

    def progress(self, progress: Progress) -> None:
        """Called a few times a second, from the thread that runs the job."""
        ...

    def log(self, task: str, line: str) -> None:
        """Called with each line that a task prints, from a thread other than the one that runs the job."""
        ...


class ReportObserver(Observer):
    """An observer that also takes every report, as progress only has each task's last. A class to derive from: an observer of a user may have a
    method of this name that means something else."""

    @abc.abstractmethod
    def report(self, report: Mapping[str, Any]) -> None:
        """Take a report, which has task, step, time_ns and the metrics. Called from the thread that runs the job, which waits for it."""


@dataclass(frozen=True)
class TaskResult:
    """The result of one task.

    Attributes:
        name: the task's name, such as `worker:0`.
        rows_in: rows it was given.
        rows_out: rows it wrote.
        main_seconds: time in `main`.
        input_wait_seconds: time in which it had nothing to do but wait for its rows.
        exit: how its process ended, in words.
        peak_rss: its peak memory, in bytes.
        cpu_seconds: processor time, user and system.
        python: the version of its interpreter.
        log_tail: the last lines it printed.
        log_path: the path of its whole log; None if the work dir was not kept.
        rows_dropped: rows left out by `dataset(..., uneven=)`, in one pass.
        rows_padded: rows added by `dataset(..., uneven=)`, in one pass.
        only_printed: whether the script was run as a program and ended by `sys.exit(0)` before it asked for its rows.
            `log_tail` has what it printed, as a rule its help.
        only_asked: whether `only_printed`, and the program's command line asked for just that, so that no other result
            was to be expected.
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

    def __repr__(self) -> str:
        return (
            f"<TaskResult {self.name}: {self.rows_in:,} rows in, {self.rows_out:,} out; {self.main_seconds:.1f} s in main; "
            f"{self.exit}>"
        )

    def _repr_html_(self) -> str:
        from akrunner.engines import shown

        return shown.task(self)


@dataclass(frozen=True)
class Stats:
    """Numbers of one job.

    Attributes:
        seconds: from the call to its return.
        start_seconds: until the first task entered `main`.
        feed_seconds: from the first row sent to the last.
        main_seconds: time in `main`, of the task that took longest.
        rows_in: rows sent over the pipes.
        bytes_in: bytes sent over the pipes.
        rows_out: rows received over the pipes.
        bytes_out: bytes received over the pipes.
        host_blocked_seconds: time in which the host waited for workers to take rows.
        input_wait_seconds: the longest time that a task stood idle for rows.
        output_blocked_seconds: the longest time that a task stood idle until the host took its output.
        bound: "input", "compute" or "unknown": which of the two a faster machine should speed up. "input" if a task
            waited longer for its rows than its `main` took, or its script waited longer for its input than for all else
            (`inputs`); "compute" if it is known that it did not; "unknown" for jobs of less than half a second, for
            scripts that read in ways of their own, and for those that save, report or write most of the time.
        shares: the number of rows that each worker got.
        rows_unread: of a stream, the rows that no script read, because they were sent, or came, after the scripts had
            returned before the end of the stream.
        attempt: how often all tasks were started again; 0 if they were not. `warnings` say why.
        rows_dropped: rows left out by `dataset(..., uneven=)`, in one pass, by all workers.
        rows_padded: rows added by `dataset(..., uneven=)`, in one pass, by all workers.
        reports: everything that the tasks reported: dicts with task, step, time_ns and the metrics.
        warnings: messages about what did not fail the job, but the user should know.
        starts: task -> how it was started, on this machine: "warm", "cold", or "cold: " and why no warm worker fitted it.
        tables: name of each table that the scripts asked for -> {"rows_read": rows sent to all tasks together,
            "rows_written": rows of the committed output}.
        inputs: task -> how its script waited for its input, over time too. `akrunner.engines.inputs` says what is in it,
            and puts it into words.
        input_verdict: those words: what each task waits for and what to change, "[task] ...", most important first. Empty
            if the input does not hold the job up, or if that is not known.
        bad_rows: the rows of the input that could not be read (`bad_rows=`); they are not in `rows_in`.
        bad_rows_file: the file that they were written to; None if there is none.
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
    bad_rows: int = 0
    bad_rows_file: str | None = None

    @property
    def report_table(self) -> pa.Table:
        """`reports` as a table: task string, step bigint, time timestamp, and a double column for every metric.

        A metric that is called `time` is in `time_`.
        """
        names = sorted({name for report in self.reports for name in report} - {"task", "step", "time_ns"})
        columns = {
            "task": pa.array([report["task"] for report in self.reports], pa.string()),
            "step": pa.array([report["step"] for report in self.reports], pa.int64()),
            "time": pa.array([report["time_ns"] for report in self.reports], pa.timestamp("ns", "UTC")),
        }
        free = next(f"time{'_' * many}" for many in itertools.count(1) if f"time{'_' * many}" not in names)
        metrics = {
            free if name == "time" else name: pa.array([report.get(name) for report in self.reports], pa.float64())
            for name in names
        }
        return pa.table({**columns, **metrics})

    def __repr__(self) -> str:
        said = [f"{self.seconds:.1f} s, {self.main_seconds:.1f} s in main", f"{self.rows_in:,} rows in, {self.rows_out:,} out"]
        for name, many in (("report", len(self.reports)), ("warning", len(self.warnings))):
            said += [f"{many:,} {name}{'s' * (many != 1)}"] if many else []
        return f"<Stats: {'; '.join([*said, f'bound: {self.bound}'])}>"

    def _repr_html_(self) -> str:
        from akrunner.engines import shown

        return shown.stats(self)


@dataclass(frozen=True)
class Outcome:
    """The result of a job that succeeded. `work_dir` is None if the work dir was not kept."""

    tasks: tuple[TaskResult, ...]
    stats: Stats
    work_dir: str | None

    @property
    def only_asked(self) -> bool:
        """Whether every task only printed the help that its command line asked for. The job has no output then."""
        return bool(self.tasks) and all(task.only_asked for task in self.tasks)


class Engine(Protocol):
    """Runs jobs.

    Attributes:
        name: its name, as in `engine=`.
        capabilities: what it can do beyond what every engine does.
    """

    name: str

    @property
    def capabilities(self) -> Capabilities: ...

    def check(self, job: JobSpec) -> None:
        """Check that everything a job needs is there, as far as that can be told without starting anything (`akrunner.plan`).

        Raises:
            ConfigError: something that the job needs is missing.
        """
        ...

    def run(
        self,
        job: JobSpec,
        source: RowSource,
        sink: RowSink | None,
        observer: Observer | None,
        cancel: threading.Event | None = None,
    ) -> Outcome:
        """Run a job to its end; blocks until then.

        Args:
            job: the job.
            source: the input table.
            sink: takes the rows that the scripts write; None if the job writes no rows.
            observer: is told the progress and what the tasks print; None for no observer.
            cancel: an event that ends the job with a JobCancelledError when it is set; None if the job cannot be cancelled.
        Returns:
            The outcome of the job.
        Raises:
            JobError: the job failed. None of its processes is left running.
            DataError: a row cannot cross to or from a worker. None of the job's processes is left running.
        """
        ...


class Launcher(Protocol):
    """Starts the tasks' processes, on this machine or on others.

    A context manager: what it acquires, it holds until the attempt is over.
    """

    def addresses(self) -> Mapping[TaskSpec, str]:
        """Return for every task the "host:port" that TensorFlow may use. May wait until it is known where every task runs."""
        ...

    def context(self, task: TaskSpec, tf_config: TFConfig, attempt: int) -> Context:
        """Return the context that the task is given (`JobSpec.context`)."""
        ...

    def start(self, task: TaskSpec) -> LoggedProcess:
        """Start the task's process, with the job's files beside it.

        Raises:
            OSError: the process cannot be started.
        """
        ...

    def starts(self) -> Mapping[str, str]:
        """Return, by the tasks' names, how each task was started, in words. Empty if that is not known."""
        return {}

    def notes(self) -> Sequence[str]:
        """Return warnings about where the tasks run, how they get their rows, and what of them could not be kept. Called after
        `addresses` and after `ended` have returned."""
        return ()

    def feeder(self, sessions: Mapping[TaskSpec, TaskSession]) -> StreamFeeder | None:
        """Return the thread that feeds the rows to the tasks, or None if the host feeds them. Called after `addresses`
        has returned."""
        return None

    def ready(self) -> None:
        """Called when every task is about to enter `main`."""

    def check(self) -> None:
        """Called now and then while the attempt runs.

        Raises:
            JobError: what the tasks run in (on Flink: the Flink job) has failed.
        """

    def explain(self) -> None:
        """Called once a task has failed. The job is not started again if this raises.

        Raises:
            AkrunnerError: the reason why the machines or subtasks of the tasks went away, if it is known and says more
                than how the tasks ended.
        """

    def ended(self) -> None:
        """Clean up, once every process has been told to end: nothing of the job may stay."""

    def take_model(self) -> None:
        """Put the chief's model where the job wants it. Called for a train job that has succeeded."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> None: ...
