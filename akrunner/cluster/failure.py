"""Which of several failures is the root cause, and what follows from it: functions of values to values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Sequence, Tuple

from akrunner.errors import TaskFailure

#: a port of ours that another process bound first, in the words of Python, gRPC and TensorFlow
_PORT_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use|Could not start gRPC server|No address added out of total")

#: the same rows and the same script would fail the same way
_FINAL = ("output", "timeout")


def root_cause(failures: Sequence[TaskFailure]) -> Tuple[TaskFailure, List[TaskFailure]]:
    """(the earliest failure, the others in time order). What follows it is most often its consequence."""
    ordered = sorted(failures, key=lambda failure: failure.time_ns)
    return ordered[0], ordered[1:]


@dataclass(frozen=True)
class Decision:
    """Attributes: restart: whether the whole gang is started again; why: in words, for the user; new_ports: only for its ports."""

    restart: bool
    why: str = ""
    new_ports: bool = False


@dataclass(frozen=True)
class FailurePolicy:
    """What is done about a failed gang.

    Attributes:
        max_restarts: how often it is started again, whatever failed.
        can_replay: whether its input can be read once more from the start.
    """

    max_restarts: int
    can_replay: bool

    def decide(self, kind: str, root: TaskFailure, restarts: int, port_restarts: int) -> Decision:
        """After a failure.

        Args:
            kind: start, script, read, died, lost, broken, output, stalled or timeout.
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
