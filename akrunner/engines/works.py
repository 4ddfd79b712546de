"""The work queues that the tasks of a job share: the host's side of a script's `WorkQueue`."""

from __future__ import annotations

import itertools
import random
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from akrunner.errors import ConfigError
from akrunner.spec import EVALUATOR
from akrunner.tables.names import is_table

#: the most slices that one queue may have
_MOST_SLICES = 1 << 20

#: the text of a table's name -> the number of its first row, and of the row after its last
RowsOf = Callable[[str], tuple[int, int]]


@dataclass
class _Queue:
    """One queue.

    Attributes:
        asked: its settings, as its first taker described them.
        works: the works of one epoch.
        left: the works that are still to be taken.
        epoch: how many epochs have begun.
    """

    asked: Mapping[str, Any]
    works: list[str]
    left: deque[str] = field(default_factory=deque)
    epoch: int = 0


class WorkQueues:
    """All queues of a job, by name. May be used by any thread."""

    def __init__(self, rows_of: RowsOf) -> None:
        self._rows_of = rows_of
        self._queues: dict[tuple[str, bool], _Queue] = {}
        self._lock = threading.Lock()

    def take(self, asked: Mapping[str, Any], role: str = "") -> str | None:
        """Return the next work of a queue; None if all are taken.

        Args:
            asked: the body of a TAKE_WORK message. Only the first such message of a task has the works.
            role: the role of the task that asks. An evaluator, which is in no session with the others, shares no queue
                with them.
        Raises:
            ConfigError: another task has described the queue otherwise, or one of its tables is not the job's.
        """
        told = {name: asked[name] for name in ("digest", "epochs", "shuffle", "seed", "slices")}
        with self._lock:
            key = (asked["queue"], role == EVALUATOR)
            queue = self._queues.get(key)
            if queue is None and not asked["works"]:
                raise ConfigError(f"WorkQueue {asked['queue']!r}: its works are not known")
            if queue is None:
                queue = self._queues[key] = _Queue(told, self._sliced(asked["works"], asked["slices"]))
            if queue.asked != told:
                different = next(name for name in told if told[name] != queue.asked[name]).replace("digest", "works")
                raise ConfigError(
                    f"WorkQueue {asked['queue']!r} has other {different} in another task; give every task the same, or "
                    "another name="
                )
            return self._next(queue)

    def _next(self, queue: _Queue) -> str | None:
        if not queue.left:
            epochs = queue.asked["epochs"]
            if not queue.works or (epochs is not None and queue.epoch >= epochs):
                return None
            works = list(queue.works)
            if queue.asked["shuffle"]:
                seed = queue.asked["seed"]
                random.Random(None if seed is None else seed + queue.epoch).shuffle(works)
            queue.left.extend(works)
            queue.epoch += 1
        return queue.left.popleft()

    def _sliced(self, works: list[str], slices: int | None) -> list[str]:
        """Return works of about equal numbers of rows. Files are not cut."""
        if slices is None or not all(map(is_table, works)):
            return list(works)
        if not 1 <= slices <= _MOST_SLICES:
            raise ConfigError(f"WorkQueue: num_slices={slices} must be from 1 to {_MOST_SLICES:,}")
        ranges = [self._rows_of(work) for work in works]
        total = sum(stop - start for start, stop in ranges)
        size = max(1, -(-total // slices))
        out = []
        for work, (start, stop) in zip(works, ranges):
            path = work.partition("?")[0]
            # the slices of one table are of about equal size, too
            count = -(-(stop - start) // size)
            cuts = [start + (stop - start) * i // count for i in range(count + 1)] if count else [start]
            out += [f"{path}?start={first}&end={last}" for first, last in itertools.pairwise(cuts)]
        return out
