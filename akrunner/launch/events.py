"""What a task says, and what happens to it: a class for each kind of event, so that type checkers know what each one holds.

An event that a frame brings has the frame's body, whose shape `akrunner.wire.messages` declares. The others are made in the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from akrunner.spec import TaskSpec
from akrunner.wire import frames, messages


@dataclass(frozen=True)
class _Event:
    """Attributes: task: the task that it is about."""

    task: TaskSpec


# -- what a frame brings


@dataclass(frozen=True)
class Opened(_Event):
    body: messages.Empty


@dataclass(frozen=True)
class Ready(_Event):
    body: messages.Ready


@dataclass(frozen=True)
class Entered(_Event):
    body: messages.Empty


@dataclass(frozen=True)
class Serving(_Event):
    body: messages.Empty


@dataclass(frozen=True)
class Passed(_Event):
    body: messages.Passed


@dataclass(frozen=True)
class Refused(_Event):
    body: messages.Failure


@dataclass(frozen=True)
class Report(_Event):
    body: messages.Report


@dataclass(frozen=True)
class Reached(_Event):
    body: messages.Reached


@dataclass(frozen=True)
class Closed(_Event):
    body: messages.Closed


# -- what the host makes


@dataclass(frozen=True)
class Output(_Event):
    """The task wrote rows. Attributes: frame: the frame that holds them."""

    frame: frames.Frame


@dataclass(frozen=True)
class Answered(_Event):
    """The task has answered all rows before a barrier. Attributes: number: the barrier's."""

    number: int


@dataclass(frozen=True)
class Due(_Event):
    """The task asks for a barrier at which it saves. Attributes: number: that of the save."""

    number: int


@dataclass(frozen=True)
class Ended(_Event):
    """The task's pipe has ended."""


@dataclass(frozen=True)
class Broken(_Event):
    """The task does not keep to the protocol. Attributes: error: what is wrong."""

    error: BaseException


@dataclass(frozen=True)
class TableFailed(_Event):
    """The rows that the task wrote to a table, or got from a table, cannot be right.

    Attributes:
        error: the exception; its type says whose fault it is.
        what: the failure in words.
    """

    error: BaseException
    what: str


Event = (
    Opened
    | Ready
    | Entered
    | Serving
    | Passed
    | Refused
    | Report
    | Reached
    | Closed
    | Output
    | Answered
    | Due
    | Ended
    | Broken
    | TableFailed
)
