"""Which of several failures is the root cause: a function of values to values."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from akrunner.errors import TaskFailure


def root_cause(failures: Sequence[TaskFailure]) -> Tuple[TaskFailure, List[TaskFailure]]:
    """(the earliest failure, the others in time order). What follows it is most often its consequence."""
    ordered = sorted(failures, key=lambda failure: failure.time_ns)
    return ordered[0], ordered[1:]
