"""The actions that an attempt's state machine asks of the supervisor. An action that asks for an answer is answered by an
event before anything else happens."""

from __future__ import annotations

from dataclasses import dataclass

from akrunner.engines.supervision.events import Purpose
from akrunner.spec import TaskSpec


@dataclass(frozen=True)
class Start:
    """Tell every task to enter `main`."""


@dataclass(frozen=True)
class Stop:
    """Tell a task that it is no longer needed."""

    task: TaskSpec


@dataclass(frozen=True)
class Warn:
    """Add a warning to the job's warnings."""

    what: str


@dataclass(frozen=True)
class AwaitExit:
    """Wait a moment for the end of a process whose pipe has ended, and answer with `Exited`."""

    task: TaskSpec


@dataclass(frozen=True)
class AskStacks:
    """Ask those of the tasks that run for the stacks of their threads, and answer with `Stacks`.

    Attributes:
        quietly: whether the stacks are hidden from the observer.
    """

    purpose: Purpose
    tasks: tuple[TaskSpec, ...]
    quietly: bool = False


@dataclass(frozen=True)
class LookClosely:
    """Measure for a second how much processor time the tasks use, and answer with `LookedClosely`."""


@dataclass(frozen=True)
class TellStall:
    """Report which task waits for which, and answer with `StallTold`.

    Attributes:
        seconds: for how long nothing has moved.
        vain: why the tasks wait in vain; "" if they may not.
        fatal: whether the attempt ends because of the stall.
    """

    seconds: float
    vain: str
    fatal: bool


Action = Start | Stop | Warn | AwaitExit | AskStacks | LookClosely | TellStall


@dataclass(frozen=True)
class Closing:
    """How to end an attempt's processes, in this order.

    Attributes:
        let_go: the tasks that are told that they may go.
        wait_for: the tasks that end by themselves, within `grace` seconds.
        end: the tasks that get SIGTERM, and after `grace` seconds SIGKILL if they still exist.
        grace: seconds.
    """

    let_go: tuple[TaskSpec, ...]
    wait_for: tuple[TaskSpec, ...]
    end: tuple[TaskSpec, ...]
    grace: float
