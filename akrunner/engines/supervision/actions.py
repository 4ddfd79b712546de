"""What is to be done about what has happened. What asks for something is answered by an event before anything else happens."""

from __future__ import annotations

from dataclasses import dataclass

from akrunner.engines.supervision.events import Purpose
from akrunner.spec import TaskSpec


@dataclass(frozen=True)
class Start:
    """Tell every task to enter `main`."""


@dataclass(frozen=True)
class Stop:
    """Tell a task that it is needed no longer."""

    task: TaskSpec


@dataclass(frozen=True)
class Warn:
    """Add a warning to the job's."""

    what: str


@dataclass(frozen=True)
class AwaitExit:
    """Wait a moment for a process whose pipe has ended, and answer `Exited`."""

    task: TaskSpec


@dataclass(frozen=True)
class AskStacks:
    """Ask those of the tasks that run for the stacks of their threads, and answer `Stacks`. Attributes: quietly: nobody who looks on is shown them."""

    purpose: Purpose
    tasks: tuple[TaskSpec, ...]
    quietly: bool = False


@dataclass(frozen=True)
class LookClosely:
    """Look for a second who uses the processor, and answer `LookedClosely`."""


@dataclass(frozen=True)
class TellStall:
    """Write down who waits for whom, and answer `StallTold`. Attributes: seconds: for how long nothing has moved; vain: why waiting is in vain, "": it
    may not be; fatal: whether the attempt ends for it."""

    seconds: float
    vain: str
    fatal: bool


Action = Start | Stop | Warn | AwaitExit | AskStacks | LookClosely | TellStall


@dataclass(frozen=True)
class Closing:
    """How an attempt's processes end, in this order.

    Attributes:
        let_go: those that are told that they may go.
        wait_for: those that end by themselves, and get `grace` seconds for it.
        end: those that get SIGTERM, and after `grace` seconds SIGKILL, if they are there then.
    """

    let_go: tuple[TaskSpec, ...]
    wait_for: tuple[TaskSpec, ...]
    end: tuple[TaskSpec, ...]
    grace: float
