"""Tells whether anything of an attempt still moves.

::

    bytes to the workers, frames from them       a change means that something moves
    processor time of the tasks' processes       a task that computes, and sends nothing meanwhile, is well
    a look that takes a second                   processor time of the tasks and all their descendants;
                                                 asked for when nothing else moves
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

#: share of one core; if all tasks together use more of the processor, they compute something
_BUSY = 0.05
#: if some tasks are done and others are not, the host looks at those after nothing has moved for so long
SOON_SECONDS = 10.0


@dataclass(frozen=True)
class Facts:
    """What the host sees ten times a second.

    Attributes:
        moved: a number that grows with every frame taken, whether of a task or about a table.
        sent: bytes sent to the workers.
        cpu: processor seconds of the tasks' processes.
        in_source: whether the feeder waits for the source to give rows.
    """

    moved: int = 0
    sent: int = 0
    cpu: float = 0.0
    in_source: bool = False


@dataclass(frozen=True)
class Stall:
    """Since when nothing has moved.

    Attributes:
        seconds: for how long nothing may move; 0 for no limit.
        since: when something last moved.
        cpu: processor seconds used until then.
        facts: the newest facts.
        soon: after how many seconds the host looks at the tasks if some are done and others are not.
    """

    seconds: float
    since: float
    cpu: float = 0.0
    facts: Facts = Facts()
    soon: float = field(default_factory=lambda: SOON_SECONDS)

    def moved(self, now: float) -> Stall:
        """Return the stall with its time started anew, because something has moved, or the stall was reported."""
        return replace(self, since=now, cpu=self.facts.cpu)

    def seen(self, facts: Facts, now: float, soon: bool) -> tuple[Stall, bool]:
        """Take in new facts.

        Args:
            soon: whether some tasks are done and others are not, so that the host looks at them earlier.
        Returns:
            The stall with these facts, and whether the tasks are to be looked at closely, because nothing seems to move.
        """
        changed = (facts.moved, facts.sent) != (self.facts.moved, self.facts.sent)
        stall = replace(self, facts=facts)
        if changed:
            return stall.moved(now), False
        if not self.seconds or now - self.since < (min(self.soon, self.seconds) if soon else self.seconds):
            return stall, False
        if facts.cpu - self.cpu > _BUSY * (now - self.since):
            return stall.moved(now), False
        return stall, True

    def later(self) -> Stall:
        """Return the same stall, with the next early look after twice as long."""
        return replace(self, soon=2 * self.soon)


def computes(cpu_seconds: float, seconds: float) -> bool:
    """Whether tasks that have used `cpu_seconds` of the processor in `seconds` compute something."""
    return cpu_seconds > _BUSY * seconds
