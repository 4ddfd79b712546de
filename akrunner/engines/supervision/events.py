"""The events of an attempt: messages of its tasks, what becomes of the tasks, what the host sees, and answers to actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from akrunner.engines.supervision.stall import Facts
from akrunner.engines.supervision.states import Failed, LastWord
from akrunner.spec import TaskSpec

# -- what tasks say


@dataclass(frozen=True)
class Opened:
    """The task has its context. It takes its rows now, and imports the script."""

    task: TaskSpec


@dataclass(frozen=True)
class Ready:
    """The task has all its rows and has imported the script.

    Attributes:
        rows: the number of rows it got.
        sent: the number of rows it was sent.
        waited_ns: how long it waited for rows with nothing else to do, in nanoseconds.
    """

    task: TaskSpec
    rows: int
    sent: int
    waited_ns: int = 0


@dataclass(frozen=True)
class Entered:
    """The task is in `main`."""

    task: TaskSpec


@dataclass(frozen=True)
class Serving:
    """The task only serves the others from now on."""

    task: TaskSpec


@dataclass(frozen=True)
class Wrote:
    """Rows that the task has written have arrived."""

    task: TaskSpec
    rows: int
    bytes: int


@dataclass(frozen=True)
class Closed:
    """The task has sent its last message.

    Attributes:
        rows: the number of rows that it says it has written.
        read: the number of rows that it says it has read.
        failed: its failure; None if it is done without one.
        unfinished: the name of a table whose rows, which the task wrote, have not all arrived; "" if there is none.
    """

    task: TaskSpec
    word: LastWord
    rows: int = 0
    read: int = 0
    failed: Failed | None = None
    unfinished: str = ""


# -- what becomes of them


@dataclass(frozen=True)
class TaskFailed:
    """The host has found that the task has failed: its messages or its output are not right."""

    task: TaskSpec
    failed: Failed


@dataclass(frozen=True)
class PipeEnded:
    """The task's pipe has ended: no more messages come."""

    task: TaskSpec


@dataclass(frozen=True)
class Exited:
    """The answer to `AwaitExit`: how the task's process has ended.

    Attributes:
        words: how it ended, such as "exit code 3"; "" if it still runs.
        well: whether it ended with exit code 0.
        time_ns: when it ended, in nanoseconds since the epoch.
    """

    task: TaskSpec
    words: str = ""
    well: bool = False
    time_ns: int = 0


@dataclass(frozen=True)
class Refused:
    """The feeder can send the task no more rows, though there are more for it."""

    task: TaskSpec
    since: float


# -- what the host sees


@dataclass(frozen=True)
class Spawning:
    """The first process is about to be started."""


@dataclass(frozen=True)
class Fed:
    """Every row was sent, and the number of rows too."""


@dataclass(frozen=True)
class Tick:
    """Some time has passed. Comes about ten times a second."""

    facts: Facts


@dataclass(frozen=True)
class Cancelled:
    """The caller has cancelled the job."""


@dataclass(frozen=True)
class HostFault:
    """A thread of the host has ended with an error: of the source, the feeder or a reader."""

    error: BaseException


@dataclass(frozen=True)
class PlacesFailed:
    """What the tasks run in has failed (on Flink: the Flink job).

    Attributes:
        why: the reason, in words.
    """

    why: str


# -- answers


class Purpose(Enum):
    """Why stacks are asked for.

    TIMEOUT: the job's time is up. JOIN: workers may be in `server.join()`. ROWS: parameter servers may be about to write
    rows. VAIN: tasks may wait for tasks that are gone.
    """

    TIMEOUT = "timeout"
    JOIN = "join"
    ROWS = "rows"
    VAIN = "vain"


@dataclass(frozen=True)
class Stacks:
    """The answer to `AskStacks`: the stacks of tasks that run."""

    purpose: Purpose
    stacks: Mapping[TaskSpec, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LookedClosely:
    """The answer to `LookClosely`.

    Attributes:
        cpu: processor seconds used by the tasks and all their descendants, within `seconds`.
        seconds: the length of the measurement.
        waiting: the number of frames from the tasks that the host has not taken yet.
    """

    cpu: float
    seconds: float
    waiting: int


@dataclass(frozen=True)
class StallTold:
    """The answer to `TellStall`.

    Attributes:
        told: which task waits for which.
        fatal: whether the attempt ends because of the stall.
    """

    told: str
    fatal: bool


Event = (
    Opened
    | Ready
    | Entered
    | Serving
    | Wrote
    | Closed
    | TaskFailed
    | PipeEnded
    | Exited
    | Refused
    | Spawning
    | Fed
    | Tick
    | Cancelled
    | HostFault
    | PlacesFailed
    | Stacks
    | LookedClosely
    | StallTold
)
