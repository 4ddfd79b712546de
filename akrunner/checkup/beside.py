"""Checks that run in parallel, each with a time limit.

A check that hangs (a dead network disk, a driver) or raises gives a line, too.

::

    check ── thread ── lines ┐
    check ── thread ── hangs ┼─> lines in the order of the checks; for a check that is late: "had not answered after 10 s"
    check ── thread ── lines ┘
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from akrunner.checkup.lines import BROKEN, LOOK, Line
from akrunner.checkup.plain import plain
from akrunner.foreign import in_words


@dataclass
class Check:
    """One check.

    Attributes:
        about: what it looks at, in words.
        look: the function that makes the check, and returns its lines.
        seconds: how long the check may take.
        late: what the user can do if it takes longer.
        found: the lines, once the function has returned.
        thread: the thread that runs the check.
    """

    about: str
    look: Callable[[], Sequence[Line]]
    seconds: float = 10.0
    late: str = "something it asked does not answer: a network disk, a name server, a driver"
    found: list[Line] = field(default_factory=list)
    thread: threading.Thread | None = None

    def start(self) -> None:
        # a thread that hangs in the system must not keep the process from ending
        thread = threading.Thread(target=self._run, name=f"akrunner-doctor {self.about}", daemon=True)
        try:
            thread.start()
            self.thread = thread
        except RuntimeError as e:
            self.found = [Line(self.about, BROKEN, f"could not be looked at: {e}", "end something: no thread can be started")]

    def _run(self) -> None:
        try:
            self.found = [*self.look()]
        except BaseException as e:  # whatever a library raises becomes a line
            self.found = [Line(self.about, LOOK, f"could not be looked at: {type(e).__name__}: {in_words(e)}")]

    def result(self, began: float) -> list[Line]:
        """Wait for the check and return its lines. Args: began: when all checks were started (`time.monotonic`)."""
        if self.thread is None:
            return self.found
        self.thread.join(max(0.0, began + self.seconds - time.monotonic()))
        if self.thread.is_alive():
            return [Line(self.about, LOOK, f"had not answered after {self.seconds:g} s", self.late)]
        return self.found


def looked(checks: Sequence[Check]) -> list[Line]:
    """Run all checks and return their lines. It takes no longer than the check with the longest time limit may take."""
    began = time.monotonic()
    for check in checks:
        check.start()
    return [plain(line) for check in checks for line in check.result(began)]
