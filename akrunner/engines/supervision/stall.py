"""Whether anything of an attempt still moves.

::

    bytes to the workers, frames from them       change -> something moves
    processor time of the tasks' processes       a task that computes, and says nothing meanwhile, is well
    a look that takes a second                   the processor time of all that the tasks have started; is asked for, when nothing else moves
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

#: of one core, over all tasks: above it somebody computes
_BUSY = 0.05
#: where a task is done and others are not, nothing need have moved for longer before these are looked at
SOON_SECONDS = 10.0


@dataclass(frozen=True)
class Facts:
    """What the host sees ten times a second.

    Attributes:
        moved: a number that grows with every frame taken, of a task or about a table; sent: bytes to the workers.
        cpu: processor seconds of the tasks' processes.
        in_source: the feeder waits for the source to give rows.
    """

    moved: int = 0
    sent: int = 0
    cpu: float = 0.0
    in_source: bool = False


@dataclass(frozen=True)
class Stall:
    """Since when nothing has moved.

    Attributes:
        seconds: for how long nothing may; 0: for ever.
        since: when something did; cpu: processor seconds then.
        facts: the newest.
        soon: after how many seconds somebody looks, where a task is done and others are not.
    """

    seconds: float
    since: float
    cpu: float = 0.0
    facts: Facts = Facts()
    soon: float = field(default_factory=lambda: SOON_SECONDS)

    def moved(self, now: float) -> Stall:
        """Something has moved, or the stall was told: the time starts anew."""
        return replace(self, since=now, cpu=self.facts.cpu)

    def seen(self, facts: Facts, now: float, soon: bool) -> tuple[Stall, bool]:
        """Take in what the host sees.

        Args:
            soon: whether to look before the time has come: some tasks are done, and others are not.
        Returns:
            the same with that; whether the tasks are to be looked at closely, as nothing seems to move.
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
        """The same; somebody looks again after twice as long."""
        return replace(self, soon=2 * self.soon)


def computes(cpu_seconds: float, seconds: float) -> bool:
    """Whether tasks that have used so much of the processor in so long compute something."""
    return cpu_seconds > _BUSY * seconds
