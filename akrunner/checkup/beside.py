"""Checks beside each other, each with a time of its own: one that hangs (a dead network disk, a driver) or raises is a line like the others.

::

    check ── thread ── lines ┐
    check ── thread ── hangs ┼─> in the order of the checks; what has not come in its time: "had not answered after 10 s"
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
    """Attributes: about: what is looked at; look: looks; seconds: it may take; late: what to do if it takes longer."""

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
        except BaseException as e:  # whatever a library raises is told, not raised
            self.found = [Line(self.about, LOOK, f"could not be looked at: {type(e).__name__}: {in_words(e)}")]

    def result(self, began: float) -> list[Line]:
        """Args: began: when all were started (`time.monotonic`)."""
        if self.thread is None:
            return self.found
        self.thread.join(max(0.0, began + self.seconds - time.monotonic()))
        if self.thread.is_alive():
            return [Line(self.about, LOOK, f"had not answered after {self.seconds:g} s", self.late)]
        return self.found


def looked(checks: Sequence[Check]) -> list[Line]:
    """What all of them found; takes no longer than the longest of them may."""
    began = time.monotonic()
    for check in checks:
        check.start()
    return [plain(line) for check in checks for line in check.result(began)]
