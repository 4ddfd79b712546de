"""Which of several failures is the root cause, and what follows from it: functions of values to values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from akrunner.errors import TaskFailure

#: a port of ours that another process bound first, in the words of Python, gRPC and TensorFlow
_PORT_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use|Could not start gRPC server|No address added out of total")


class FailureKind(Enum):
    """What kind of failure ended an attempt; each has its exception (`akrunner.engines.report`)."""

    START = "start"
    SCRIPT = "script"
    READ = "read"
    DIED = "died"
    LOST = "lost"
    BROKEN = "broken"
    OUTPUT = "output"
    STALLED = "stalled"
    TIMEOUT = "timeout"


#: the same rows and the same script would fail the same way
_FINAL = (FailureKind.OUTPUT, FailureKind.TIMEOUT)


class Timed(Protocol):
    """What failed at a known time. Attributes: time_ns: since the epoch."""

    @property
    def time_ns(self) -> int: ...


Task = TypeVar("Task")
Failure = TypeVar("Failure", bound=Timed)


def root_cause_first(failures: Mapping[Task, Failure]) -> tuple[tuple[Task, Failure], ...]:
    """Put failures in order: the earliest is the root cause, and what follows it is most often its consequence."""
    return tuple(sorted(failures.items(), key=lambda failed: failed[1].time_ns))


@dataclass(frozen=True)
class Decision:
    """Attributes: restart: whether every task is started again; why: in words, for the user; new_ports: only for its ports."""

    restart: bool
    why: str = ""
    new_ports: bool = False


@dataclass(frozen=True)
class FailurePolicy:
    """Decides what is done about an attempt that failed.

    Attributes:
        max_restarts: how often it is started again, whatever failed.
        can_replay: whether its input can be read once more from the start.
    """

    max_restarts: int
    can_replay: bool

    def decide(self, kind: FailureKind, root: TaskFailure, restarts: int, port_restarts: int) -> Decision:
        """After a failure.

        Args:
            kind: of the first failure.
            root: the task that failed first.
            restarts: for failures, so far; port_restarts: because a port was taken, so far: one such is granted, and not counted.
        """
        if not self.can_replay:
            return Decision(False)
        if port_restarts == 0 and is_port_taken(root):
            return Decision(True, f"[{root.task}] found its port taken; everything was started again with new ports", True)
        if kind in _FINAL or restarts >= self.max_restarts:
            return Decision(False)
        return Decision(
            True, f"[{root.task}] {root.what}; everything was started again ({restarts + 1} of {self.max_restarts})"
        )


def is_port_taken(failure: TaskFailure) -> bool:
    """Whether a task failed because another process had its port."""
    return bool(_PORT_TAKEN.search(failure.traceback) or _PORT_TAKEN.search(failure.what))
