"""Events of a trace -> what each node of the input pipeline took itself, and how long the script waited for the whole of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

if TYPE_CHECKING:
    from akrunner.worker.waits.tracing import Event

#: what TensorFlow calls the outermost node of an iterator: 2.x, and before 2.5
_OUTERMOST = {"Root", "Model"}
#: a repeat, or an interleave, has as many datasets below it as it has read: they are one
_EACH = re.compile(r"\[\d+\]")


class Looked(object):
    """A few steps. Attributes: wait: ns in next() of the outermost nodes; draws: how often; own: path of a node -> ns that it took without the
    nodes it draws from; calls: and how often it was asked."""

    def __init__(self) -> None:
        self.wait = 0
        self.draws = 0
        self.own: Dict[str, int] = {}
        self.calls: Dict[str, int] = {}

    def add(self, path: str, own: int) -> None:
        path = _EACH.sub("[0]", path)
        self.own[path] = self.own.get(path, 0) + own
        self.calls[path] = self.calls.get(path, 0) + 1


def looked(events: Sequence[Event]) -> Looked:
    """Args: events: of `akrunner.worker.waits.tracing`."""
    found = Looked()
    threads: Dict[int, List[Event]] = {}
    # without them nothing was optimized; with them the others are datasets inside of a map, or looked up by the way
    outermost = _OUTERMOST & {event.path for event in events}
    for event in events:
        if event.path and (not outermost or event.path.partition("::")[0] in outermost):
            threads.setdefault(event.thread, []).append(event)
    for some in threads.values():
        # one that holds another began no later, and took longer
        some.sort(key=lambda event: (event.began, -event.took))
        under: List[Any] = []
        for event in some:
            while under and under[-1][0].began + under[-1][0].took <= event.began:
                _done(found, *under.pop())
            if under:
                under[-1][1] -= event.took
            under.append([event, event.took])
        while under:
            _done(found, *under.pop())
    return found


def _done(found: Looked, event: Event, own: int) -> None:
    found.add(event.path, max(0, own))
    if "::" not in event.path:
        found.wait += event.took
        found.draws += 1
