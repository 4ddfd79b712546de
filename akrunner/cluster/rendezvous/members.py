"""Who of a job's tasks is where, and how they are: state and rules, without a clock and without a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Tuple

from akrunner.errors import RendezvousError

JOINED = "joined"
FINISHED = "finished"
FAILED = "failed"
LOST = "lost"


@dataclass
class _Member:
    address: str
    seen: float
    state: str = JOINED
    what: str = ""


@dataclass
class Members:
    """The tasks of one attempt.

    Args: tasks: names of all that must come; attempt: of the job; limit: seconds of silence after which a task is lost.
    """

    tasks: Sequence[str]
    attempt: int = 0
    limit: float = 30.0
    _joined: Dict[str, _Member] = field(default_factory=dict)

    @property
    def missing(self) -> List[str]:
        """Those that have not come yet, in their order."""
        there = self.addresses
        return [task for task in self.tasks if task not in there]

    @property
    def complete(self) -> bool:
        return len(self.addresses) == len(self.tasks)

    @property
    def addresses(self) -> Dict[str, str]:
        """task -> "host:port", of those that have come."""
        joined = self._joined
        return {task: joined[task].address for task in self.tasks if task in joined and joined[task].address}

    @property
    def failed(self) -> List[Tuple[str, str]]:
        """(task, what befell it) of those that failed or were lost, the first one first."""
        return [(task, m.what) for task, m in self._joined.items() if m.state in (FAILED, LOST)]

    @property
    def over(self) -> bool:
        """Every task has finished."""
        return self.complete and all(member.state == FINISHED for member in self._joined.values())

    def join(self, task: str, address: str, attempt: int, now: float) -> None:
        """Raises: RendezvousError: there is no such task, it is of another attempt, or somebody else is it already."""
        self._check(task, attempt)
        known = self._joined.get(task)
        if known is not None and known.address != address:
            raise RendezvousError(f"{task} is at {known.address} already, so {address} cannot be it too")
        if known is None:
            self._joined[task] = _Member(address, now)
        else:
            known.seen = now

    def sign(self, task: str, attempt: int, now: float) -> None:
        """A sign of life. Raises: RendezvousError: nobody knows it."""
        self._member(task, attempt).seen = now

    def finish(self, task: str, attempt: int, ok: bool, what: str) -> None:
        """Its last word; a task may fail before it has come. Raises: RendezvousError: nobody knows it."""
        self._check(task, attempt)
        if task not in self._joined and not ok:
            self._joined[task] = _Member("", 0.0)
        member = self._member(task, attempt)
        if member.state == JOINED:
            member.state, member.what = (FINISHED, what) if ok else (FAILED, what or "failed")

    def lose(self, now: float) -> List[str]:
        """Those that have been silent for too long, since the last call: lost from now on."""
        found = []
        for task, member in self._joined.items():
            if member.state == JOINED and now - member.seen > self.limit:
                member.state, member.what = LOST, f"has given no sign of life for {self.limit:g} s"
                found.append(task)
        return found

    def _member(self, task: str, attempt: int) -> _Member:
        self._check(task, attempt)
        if task not in self._joined:
            raise RendezvousError(f"{task} has not registered")
        return self._joined[task]

    def _check(self, task: str, attempt: int) -> None:
        if task not in self.tasks:
            raise RendezvousError(f"this job has no task {task!r}; it has {named(self.tasks)}")
        if attempt != self.attempt:
            raise RendezvousError(f"{task} is of attempt {attempt}, this is attempt {self.attempt}")


def named(tasks: Sequence[str], most: int = 8) -> str:
    """ "worker:0, worker:1 and 5 more"."""
    more = f" and {len(tasks) - most} more" if len(tasks) > most else ""
    return ", ".join(tasks[:most]) + more
