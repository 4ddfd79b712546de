"""Decides which of several failures is the root cause, and what follows from it: pure functions of values."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from akrunner.errors import (
    InputLostError,
    JobError,
    JobManagerLostError,
    JobStalledError,
    JobTimeoutError,
    OutputError,
    ReadError,
    ScriptFailedError,
    StartError,
    TaskDiedError,
    TaskFailure,
)

#: what Python, gRPC and TensorFlow say if another process has bound the task's port first
_PORT_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use|Could not start gRPC server|No address added out of total")


class FailureKind(Enum):
    """The kind of failure that ended an attempt. A kind is declared with all that has to be known of it; without that, Python
    does not import this module.

    Attributes:
        error: the exception of a job that ends with such a failure.
        final: whether the same rows and the same script would fail the same way, so that nothing is started again.
    """

    error: type[JobError]
    final: bool

    START = "start", StartError, False
    SCRIPT = "script", ScriptFailedError, False
    READ = "read", ReadError, False
    DIED = "died", TaskDiedError, False
    LOST = "lost", InputLostError, False
    BROKEN = "broken", TaskDiedError, False
    OUTPUT = "output", OutputError, True
    STALLED = "stalled", JobStalledError, False
    TIMEOUT = "timeout", JobTimeoutError, True

    def __new__(cls, value: str, error: type[JobError], final: bool) -> FailureKind:
        """Make a kind, whose `value` is its name in words."""
        kind = object.__new__(cls)
        kind._value_, kind.error, kind.final = value, error, final
        return kind


#: the most seconds to which the wait before a restart grows
LONGEST_DELAY = 300.0
#: by what part of itself a wait is longer or shorter, so that jobs that failed together do not come back together
_JITTER = 0.1

#: errors after which no attempt follows: that of each kind that is final, and that of a cluster which has nobody left to start one
_FINAL = (*(kind.error for kind in FailureKind if kind.final), JobManagerLostError)


def is_last(error: type[JobError], failures: int, max_restarts: int) -> bool:
    """Whether a job ends with a failure, instead of being started again: the one rule for every engine.

    Args:
        error: the exception of the job if it ends.
        failures: how many failures there were that count, with this one.
        max_restarts: how often the job is started again at most.
    """
    return failures > max_restarts or issubclass(error, _FINAL)


def delay_before(restarts: int, first: float, seed: str) -> float:
    """Return how many seconds to wait before a restart: twice as many each time, up to `LONGEST_DELAY`, and a tenth more or less.

    Args:
        restarts: how many restarts there were so far.
        first: seconds before the first one, 0: there is never a wait. If they are more than `LONGEST_DELAY`, they stay what they are.
        seed: the same seed gives the same waits.
    """
    grown = min(first * 2.0 ** min(restarts, 60), max(first, LONGEST_DELAY))
    return grown * random.Random(f"{seed}:{restarts}").uniform(1 - _JITTER, 1 + _JITTER)


class Timed(Protocol):
    """A failure with a known time. Attributes: time_ns: nanoseconds since the epoch."""

    @property
    def time_ns(self) -> int: ...


Task = TypeVar("Task")
Failure = TypeVar("Failure", bound=Timed)


def root_cause_first(failures: Mapping[Task, Failure]) -> tuple[tuple[Task, Failure], ...]:
    """Put failures in order of time: the earliest is the root cause, and the later ones are most often its consequences."""
    return tuple(sorted(failures.items(), key=lambda failed: failed[1].time_ns))


@dataclass(frozen=True)
class Decision:
    """What to do after a failure.

    Attributes:
        restart: whether every task is started again.
        why: the reason, in words for the user.
        new_ports: whether the restart is only because of the tasks' ports.
        delay: how many seconds to wait before that.
    """

    restart: bool
    why: str = ""
    new_ports: bool = False
    delay: float = 0.0


@dataclass(frozen=True)
class FailurePolicy:
    """Decides what to do about an attempt that failed.

    Attributes:
        max_restarts: how often the tasks are started again, whatever failed.
        can_replay: whether the input can be read once more from the start.
        delay: how many seconds to wait before the first restart; `delay_before` says how long before the others.
        seed: what the waits differ by, from job to job.
    """

    max_restarts: int
    can_replay: bool
    delay: float = 0.0
    seed: str = ""

    def decide(self, kind: FailureKind, root: TaskFailure, restarts: int, port_restarts: int) -> Decision:
        """Decide what to do after a failure.

        Args:
            kind: the kind of the first failure.
            root: the failure of the task that failed first.
            restarts: how many restarts there were so far because of failures.
            port_restarts: how many restarts there were so far because a port was taken; one is granted, and does not count as a
                restart.
        """
        if not self.can_replay:
            return Decision(False)
        if port_restarts == 0 and is_port_taken(root):
            return Decision(True, f"[{root.task}] found its port taken; everything was started again with new ports", True)
        if is_last(kind.error, restarts + 1, self.max_restarts):
            return Decision(False)
        delay = delay_before(restarts, self.delay, self.seed)
        # it is told before the wait
        done = f"is started again after {delay:.1f} s" if delay else "was started again"
        return Decision(
            True, f"[{root.task}] {root.what}; everything {done} ({restarts + 1} of {self.max_restarts})", delay=delay
        )


def is_port_taken(failure: TaskFailure) -> bool:
    """Whether a task failed because another process had its port."""
    return bool(_PORT_TAKEN.search(failure.traceback) or _PORT_TAKEN.search(failure.what))
