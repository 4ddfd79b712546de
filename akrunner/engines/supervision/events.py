"""What happens to an attempt: what its tasks say and what becomes of them, what the host sees, and answers to what was asked of it."""

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
    """It has its context, and takes rows and imports the script."""

    task: TaskSpec


@dataclass(frozen=True)
class Ready:
    """It has all its rows and has imported the script. Attributes: rows: it has got; sent: it was sent; waited_ns: for rows, with nothing else to do."""

    task: TaskSpec
    rows: int
    sent: int
    waited_ns: int = 0


@dataclass(frozen=True)
class Entered:
    """It is in `main`."""

    task: TaskSpec


@dataclass(frozen=True)
class Serving:
    """It only serves the others from now on."""

    task: TaskSpec


@dataclass(frozen=True)
class Wrote:
    """Rows that it has written have arrived."""

    task: TaskSpec
    rows: int
    bytes: int


@dataclass(frozen=True)
class Closed:
    """Its last word.

    Attributes:
        rows: it says it has written; read: it says it has read.
        failed: what it failed with, None: it is done.
        unfinished: a table it wrote whose rows have not all arrived, "": there is none.
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
    """The host knows that it has failed: what it says, or writes, is not right."""

    task: TaskSpec
    failed: Failed


@dataclass(frozen=True)
class PipeEnded:
    """It will say nothing more."""

    task: TaskSpec


@dataclass(frozen=True)
class Exited:
    """How its process has ended, in answer to `AwaitExit`. Attributes: words: "exit code 3"; "": it runs on; well: with exit code 0; time_ns: when."""

    task: TaskSpec
    words: str = ""
    well: bool = False
    time_ns: int = 0


@dataclass(frozen=True)
class Refused:
    """The feeder can send it no more rows, though it is to get some."""

    task: TaskSpec
    since: float


# -- what the host sees


@dataclass(frozen=True)
class Spawning:
    """The first process is about to be started."""


@dataclass(frozen=True)
class Fed:
    """Every row was sent, and how many they are."""


@dataclass(frozen=True)
class Tick:
    """Some time has passed. Comes about ten times a second."""

    facts: Facts


@dataclass(frozen=True)
class Cancelled:
    """The caller wants the job to end."""


@dataclass(frozen=True)
class HostFault:
    """A thread of the host has ended with an error: the source's, the feeder's, a reader's."""

    error: BaseException


@dataclass(frozen=True)
class PlacesFailed:
    """What the tasks' places are part of has failed. Attributes: why: in words."""

    why: str


# -- answers


class Purpose(Enum):
    """Why stacks are asked for: the time is up; workers may be in `server.join()`; parameter servers may be about to write rows; tasks may wait
    for those that are gone."""

    TIMEOUT = "timeout"
    JOIN = "join"
    ROWS = "rows"
    VAIN = "vain"


@dataclass(frozen=True)
class Stacks:
    """Stacks of tasks that run, in answer to `AskStacks`."""

    purpose: Purpose
    stacks: Mapping[TaskSpec, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LookedClosely:
    """In answer to `LookClosely`. Attributes: cpu: seconds of the processor, used by the tasks and all they have started, in so many `seconds`;
    waiting: frames of theirs that the host has not taken."""

    cpu: float
    seconds: float
    waiting: int


@dataclass(frozen=True)
class StallTold:
    """In answer to `TellStall`. Attributes: told: who waits for whom."""

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
