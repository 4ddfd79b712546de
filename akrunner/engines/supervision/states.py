"""What is known of an attempt and of each of its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from akrunner.cluster.failure import FailureKind
from akrunner.engines.supervision.stall import Stall
from akrunner.spec import ClusterSpec, JobSpec, SupervisionSpec, TaskSpec

Value = TypeVar("Value")


def changed(value: Value, fields: Mapping[str, Any]) -> Value:
    """Copy a frozen dataclass with other values in some fields. As `dataclasses.replace`, which takes ten times as long: for each frame of rows."""
    copied = object.__new__(type(value))
    copied.__dict__.update(value.__dict__)
    copied.__dict__.update(fields)
    return copied


class TaskState(Enum):
    """What a task does. ENDED: it was told to end, and has, without a last word."""

    STARTING = "starting"
    IMPORTING = "importing"
    READY = "ready"
    RUNNING = "running"
    SERVING = "serving"
    FINISHED = "finished"
    FAILED = "failed"
    ENDED = "ended"

    @property
    def doing(self) -> str:
        """In words, for people."""
        return _DOING.get(self, self.value)


_DOING = {
    TaskState.IMPORTING: "importing the script or taking its rows",
    TaskState.READY: "waiting for the others",
    TaskState.RUNNING: "in main()",
    TaskState.SERVING: "serving the others",
    TaskState.FINISHED: "done",
}


class Phase(Enum):
    """What an attempt waits for: chief and workers; the evaluator; rows that parameter servers may be about to write; the end of those who
    were told to stop."""

    WORKING = "working"
    EVALUATING = "evaluating"
    WRITING = "writing"
    STOPPING = "stopping"


class Ending(Enum):
    """How an attempt has ended. FAULT: something of the host's own has failed."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    FAULT = "fault"


class Moment(NamedTuple):
    """When something happened.

    Attributes:
        now: seconds, of a clock that is never put back: deadlines.
        time_ns: since the epoch: which failure came first, also on other machines.
    """

    now: float
    time_ns: int


@dataclass(frozen=True)
class Failed:
    """One task's failure. Attributes: kind: which says the exception; what: one sentence, without its subject; time_ns;
    traceback: the script's."""

    kind: FailureKind
    what: str
    time_ns: int
    traceback: str = ""


@dataclass(frozen=True)
class LastWord:
    """What a task says of itself when it is done: as in `TaskResult`, and

    Attributes:
        input: what it measured of its input (`akrunner.engines.inputs`), None: nothing.
        unasked: of a program that ended by `sys.exit(0)` before it asked for its rows: what is said if it has printed nothing either.
        asked: and its command line asked for its help.
    """

    main_ns: int = 0
    output_blocked_ns: int = 0
    rows_dropped: int = 0
    rows_padded: int = 0
    notes: Sequence[str] = ()
    input: Mapping[str, Any] | None = None
    unasked: Sequence[str] | None = None
    asked: bool = False

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> LastWord:
        """Args: body: of a `closed` message, checked (`akrunner.wire.messages`)."""
        return cls(
            body["main_ns"],
            body["output_blocked_ns"],
            body["rows_dropped"],
            body["rows_padded"],
            body["notes"],
            body.get("input"),
            body.get("unasked"),
            body.get("asked") is True,
        )


@dataclass(frozen=True)
class TaskRecord:
    """What is known of a task.

    Attributes:
        ready: it has all its rows and has imported the script.
        gone: its process, which was to stay, has ended well by itself.
        rows_in, rows_out, bytes_out, input_wait_ns: as in `TaskResult`, so far.
        word: its last word.
    """

    state: TaskState = TaskState.STARTING
    ready: bool = False
    gone: bool = False
    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    input_wait_ns: int = 0
    word: LastWord = LastWord()


@dataclass(frozen=True)
class Rules:
    """What a job says of how it is supervised.

    Attributes:
        cluster: its tasks; wait: how long is waited for what.
        streaming: rows come while the scripts run.
        counted: the rows that tasks write are counted at both ends; schema_given: and their columns are known before the first comes.
        program: the script is a program, not a function `main`.
        staying: tasks whose processes stay when their scripts have ended well, until all scripts have.
    """

    cluster: ClusterSpec
    wait: SupervisionSpec = field(default_factory=SupervisionSpec)
    streaming: bool = False
    counted: bool = True
    schema_given: bool = True
    program: bool = False
    staying: tuple[TaskSpec, ...] = ()

    @classmethod
    def of(cls, job: JobSpec) -> Rules:
        given = job.output_schema is not None
        return cls(
            job.cluster,
            job.supervision,
            streaming=job.mode == "stream",
            counted=given or job.output_inferred,
            schema_given=given,
            program=job.script.program,
            staying=job.staying,
        )


@dataclass(frozen=True)
class Verdict:
    """How an attempt has ended, and why.

    Attributes:
        failures: of FAILED: the root cause, then the others as they came.
        stacks: of TIMED_OUT: of each task that ran.
        told: of STALLED: who waits for whom.
        error: of FAULT: what is to be raised.
    """

    ending: Ending
    failures: tuple[tuple[TaskSpec, Failed], ...] = ()
    stacks: Mapping[TaskSpec, str] = field(default_factory=dict)
    told: str = ""
    error: BaseException | None = None


@dataclass(frozen=True)
class State:
    """An attempt as it stands.

    Attributes:
        tasks: each with what is known of it, in the cluster's order.
        job_began, spawned: when the job began, and when the first process of this attempt was started.
        phase, phase_ends: what is waited for, and until when; None: as long as it takes.
        fed: every row has been sent, with the number of them; a stream's need not be.
        started: every task was told to enter `main`; entered_at: when the first had.
        failures: first failures, as they were noticed; fail_at: when the attempt fails for them.
        refused: the task that takes no more rows, since when.
        staying: those that stay when they are done still do.
        chief_done, next_look: since when the chief of workers that only serve it is done, and after how many seconds they are looked at.
        stall: when something moved last.
        verdict: how it has ended; None: it has not.
    """

    rules: Rules
    tasks: Mapping[TaskSpec, TaskRecord]
    stall: Stall
    job_began: float
    spawned: float
    phase: Phase = Phase.WORKING
    phase_ends: float | None = None
    fed: bool = False
    started: bool = False
    entered_at: float | None = None
    failures: Mapping[TaskSpec, Failed] = field(default_factory=dict)
    fail_at: float | None = None
    refused: tuple[TaskSpec, float] | None = None
    staying: bool = False
    chief_done: float | None = None
    next_look: float = 0.2
    verdict: Verdict | None = None

    @classmethod
    def first(cls, rules: Rules, job_began: float, now: float) -> State:
        """Nothing was started yet."""
        return cls(
            rules,
            {task: TaskRecord() for task in rules.cluster.tasks},
            Stall(rules.wait.stall_timeout, now),
            job_began,
            now,
            fed=rules.streaming,
            staying=bool(rules.staying),
        )

    def having(self, task: TaskSpec, record: TaskRecord) -> State:
        """The same, with another record of a task."""
        return changed(self, {"tasks": {**self.tasks, task: record}})

    def with_rows(self, task: TaskSpec, rows: int, size: int) -> State:
        """The same, with so many rows and bytes more that a task has written."""
        record = self.tasks[task]
        return self.having(task, changed(record, {"rows_out": record.rows_out + rows, "bytes_out": record.bytes_out + size}))

    def among(self, tasks: Sequence[TaskSpec], *states: TaskState) -> tuple[TaskSpec, ...]:
        """Those of the tasks that are in one of the states."""
        return tuple(task for task in tasks if self.tasks[task].state in states)
