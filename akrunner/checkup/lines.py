"""What a check found: a line each, and all of them together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

OK, LOOK, BROKEN = "ok", "look here", "broken"
_WORST = (BROKEN, LOOK, OK)


@dataclass(frozen=True)
class Line:
    """One finding.

    Attributes:
        about: what was looked at, in a word or two: "temp directory".
        state: "ok"; "look here": it works, or is not needed by every job, and is likely to be in the way; "broken": jobs cannot run so.
        found: what is there, in words.
        do: what to do about it, "" where there is nothing to do.
    """

    about: str
    state: str
    found: str
    do: str = ""


@dataclass(frozen=True)
class Checkup:
    """What `akrunner.doctor` found.

    Attributes:
        lines: in the order in which they are told.
        job: what is known of the job that was asked about (its `job.json`), None: the machine was.
    """

    lines: tuple[Line, ...]
    job: dict[str, Any] | None = None

    @property
    def state(self) -> str:
        """The worst there is: "ok", "look here" or "broken"."""
        return worst(self.lines)

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return self.state != BROKEN

    def of(self, state: str) -> list[Line]:
        """The lines that say so.

        Args:
            state: "ok", "look here" or "broken".
        Returns:
            those lines, in their order.
        """
        return [line for line in self.lines if line.state == state]

    def asdict(self) -> dict[str, Any]:
        """As JSON has it.

        Returns:
            what `akrunner doctor --json` prints, but for the exit code.
        """
        return {"state": self.state, "lines": [dataclasses.asdict(line) for line in self.lines], "job": self.job}

    def __str__(self) -> str:
        """As `akrunner doctor` shows it where there is no terminal."""
        indent = " " * 13
        lines = []
        for line in self.lines:
            first, *rest = f"{line.about}: {line.found}".split("\n")
            lines += [f"{line.state:<11}{first}", *(indent + more for more in rest)]
            lines += [f"{indent}-> {line.do}"] if line.do else []
        return "\n".join(lines)


def worst(lines: Iterable[Line]) -> str:
    states = {line.state for line in lines}
    return next((state for state in _WORST if state in states), OK)
