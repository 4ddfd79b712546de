"""The result of checks: `Line`, one finding, and `Checkup`, all of them together."""

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
        about: what the check looked at, in a word or two: "temp directory".
        state: "ok"; "look here": it works, or not every job needs it, but it may well cause trouble; "broken": jobs cannot run.
        found: what the check found, in words.
        do: what the user can do about it, "" if there is nothing to do.
    """

    about: str
    state: str
    found: str
    do: str = ""


@dataclass(frozen=True)
class Checkup:
    """The findings of `akrunner.doctor`.

    Attributes:
        lines: the findings, in the order in which they are shown.
        job: the record of the job that was examined (its `job.json`), None if the machine was.
    """

    lines: tuple[Line, ...]
    job: dict[str, Any] | None = None

    @property
    def state(self) -> str:
        """The worst state of all lines: "ok", "look here" or "broken"."""
        return worst(self.lines)

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return self.state != BROKEN

    def of(self, state: str) -> list[Line]:
        """Return the lines with a state.

        Args:
            state: "ok", "look here" or "broken".
        Returns:
            the lines with this state, in their order.
        """
        return [line for line in self.lines if line.state == state]

    def asdict(self) -> dict[str, Any]:
        """Return the findings as a dict for JSON.

        Returns:
            the object that `akrunner doctor --json` prints, without `ok` and the exit code.
        """
        return {"state": self.state, "lines": [dataclasses.asdict(line) for line in self.lines], "job": self.job}

    def __str__(self) -> str:
        """Return the text that `akrunner doctor` prints if there is no terminal."""
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
