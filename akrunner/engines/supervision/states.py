"""The state of an attempt and of each of its tasks, as far as the host knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from akrunner.cluster.failure import FailureKind
from akrunner.engines.supervision.stall import Stall
from akrunner.spec import ClusterSpec, JobSpec, SupervisionSpec, TaskSpec
from akrunner.wire.messages import Closed

Value = TypeVar("Value")

#: what a task is said to do between two attempts, in which it is none of an attempt: no `TaskState`
RESTARTING = "waiting to start again"


def changed(value: Value, fields: Mapping[str, Any]) -> Value:
    """Return a copy of a frozen dataclass with other values in some fields.

    Does what `dataclasses.replace` does, which takes ten times as long. This is called for each frame of rows.
    """
    copied = object.__new__(type(value))
    copied.__dict__.update(value.__dict__)
    copied.__dict__.update(fields)
    return copied


class TaskState(Enum):
    """What a task is doing. ENDED: it was told to end, and has ended without a last message.

    Attributes:
        doing: the state in words, for people.
        prints_stacks: whether the task's process is sure to print its stacks when it is asked for them. The signal that asks
            ends a process that has not prepared for it, as none has before it says that it has started.
        when: when a process has ended that ends in this state, in words behind "ended"; "": in the script.
    """

    _value_: str
    doing: str
    prints_stacks: bool
    when: str

    STARTING = "starting", "starting", False, "before it said that it had started"
    IMPORTING = "importing", "importing the script or taking its rows", True, "while it imported the script or took its rows"
    READY = "ready", "waiting for the others", True
    RUNNING = "running", "in main()", True
    SERVING = "serving", "serving the others", True
    FINISHED = "finished", "done", False, "after its script was done, while others may have needed its TensorFlow server"
    FAILED = "failed", "failed", False
    ENDED = "ended", "ended", False

    def __new__(cls, value: str, doing: str, prints_stacks: bool, when: str = "") -> TaskState:
        made = object.__new__(cls)
        made._value_, made.doing, made.prints_stacks, made.when = value, doing, prints_stacks, when
        return made


class Phase(Enum):
    """What an attempt waits for.

    WORKING: the chief and the workers. EVALUATING: the evaluator. WRITING: rows that parameter servers may be about to
    write. STOPPING: the end of the tasks that were told to stop.
    """

    WORKING = "working"
    EVALUATING = "evaluating"
    WRITING = "writing"
    STOPPING = "stopping"


class Ending(Enum):
    """How an attempt has ended. FAULT: something in the host itself has failed."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    FAULT = "fault"


class Moment(NamedTuple):
    """When something happened.

    Attributes:
        now: seconds of a clock that is never set back; used for deadlines.
        time_ns: nanoseconds since the epoch; used to tell which failure came first, also on other machines.
    """

    now: float
    time_ns: int


@dataclass(frozen=True)
class Failed:
    """One task's failure.

    Attributes:
        kind: the kind of failure, which decides the type of the exception.
        what: one sentence, without its subject.
        time_ns: when it happened, in nanoseconds since the epoch.
        traceback: the script's traceback; "" if there is none.
    """

    kind: FailureKind
    what: str
    time_ns: int
    traceback: str = ""


@dataclass(frozen=True)
class LastWord:
    """The last message of a task, which says how it did. Fields not listed here are as in `TaskResult`.

    Attributes:
        input: what the task measured of its input (`akrunner.engines.inputs`); None if it measured nothing.
        unasked: None, unless the script was run as a program and ended by `sys.exit(0)` before it asked for its rows;
            then the warnings to give if it has printed nothing either.
        asked: whether, besides that, the program's command line asked for its help.
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
    def of(cls, body: Closed) -> LastWord:
        """Make it from the body of a message.

        Args:
            body: the body of a `closed` message that has been checked (`akrunner.wire.messages`).
        """
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
    """What the host knows of a task.

    Attributes:
        state: what it is doing.
        ready: whether it has all its rows and has imported the script.
        gone: whether its process has ended well by itself, although it was meant to stay.
        rows_in, rows_out, bytes_out, input_wait_ns: as in `TaskResult`, so far.
        word: its last message.
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
    """What a job's arguments say of how it is supervised.

    Attributes:
        cluster: its tasks.
        wait: the time limits.
        streaming: whether rows come while the scripts run.
        counted: whether the rows that tasks write are counted at both ends.
        schema_given: whether the columns of these rows are known before the first of them comes.
        program: whether the script is a program, not a function `main`.
        staying: the tasks whose processes stay after their scripts have ended well, until all scripts have ended.
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
        failures: if FAILED: the failure that is the root cause, then the others in the order in which they came.
        stacks: if TIMED_OUT: the stacks of each task that ran.
        told: if STALLED: which task waits for which.
        error: if FAULT: the exception to raise.
    """

    ending: Ending
    failures: tuple[tuple[TaskSpec, Failed], ...] = ()
    stacks: Mapping[TaskSpec, str] = field(default_factory=dict)
    told: str = ""
    error: BaseException | None = None


@dataclass(frozen=True)
class State:
    """The state of an attempt.

    Attributes:
        rules: what the job's arguments say of its supervision.
        tasks: the record of each task, in the cluster's order.
        stall: when something last moved.
        job_began: from when on the time counts that the job may take.
        spawned: when the first process of this attempt was started.
        phase: what the attempt waits for.
        phase_ends: until when it waits for that; None for as long as it takes.
        fed: whether every row has been sent, and the number of rows too. Always true for a stream.
        started: whether every task was told to enter `main`.
        entered_at: when the first task entered it; None if none has.
        failures: the first failure of each task that failed, in the order in which they were noticed.
        fail_at: when the attempt fails because of them; None if there are none.
        refused: the task that takes no more rows, and since when; None if there is none.
        staying: whether the tasks that stay after they are done are still staying.
        chief_done: since when the chief is done, if its workers only serve it; None before that.
        next_look: after how many seconds from then the host looks at the stacks of these workers.
        verdict: how the attempt has ended; None if it has not.
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
        """Return the state of an attempt before anything was started."""
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
        """Return the same state with another record of a task."""
        return changed(self, {"tasks": {**self.tasks, task: record}})

    def with_rows(self, task: TaskSpec, rows: int, size: int) -> State:
        """Return the same state with `rows` rows and `size` bytes added to what a task has written."""
        record = self.tasks[task]
        return self.having(task, changed(record, {"rows_out": record.rows_out + rows, "bytes_out": record.bytes_out + size}))

    def among(self, tasks: Sequence[TaskSpec], *states: TaskState) -> tuple[TaskSpec, ...]:
        """Return those of the tasks that are in one of the states."""
        return tuple(task for task in tasks if self.tasks[task].state in states)
