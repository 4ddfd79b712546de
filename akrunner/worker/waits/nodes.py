"""Events of a trace -> the own time of each node of the input pipeline, and how long the script waited for the pipeline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

if TYPE_CHECKING:
    from akrunner.worker.waits.tracing import Event

#: TensorFlow's names of an iterator's outermost node: in 2.x, and before 2.5
_OUTERMOST = {"Root", "Model"}
#: a repeat, or an interleave, has a numbered dataset below it for each one it has read: they count as one
_EACH = r"\[\d+\]"


class Looked(object):
    """The result of a look at a few steps.

    Attributes:
        wait: ns in next() of the outermost nodes.
        draws: how often next() of an outermost node was called.
        own: path of a node -> ns that the node took, without the nodes it draws from.
        calls: path of a node -> how often the node was asked for an element.
    """

    def __init__(self) -> None:
        self.wait = 0
        self.draws = 0
        self.own: Dict[str, int] = {}
        self.calls: Dict[str, int] = {}

    def add(self, path: str, own: int) -> None:
        path = re.sub(_EACH, "[0]", path)
        self.own[path] = self.own.get(path, 0) + own
        self.calls[path] = self.calls.get(path, 0) + 1


def looked(events: Sequence[Event]) -> Looked:
    """Sum up the events of a trace. Args: events: as `akrunner.worker.waits.tracing` returns them."""
    found = Looked()
    threads: Dict[int, List[Event]] = {}
    # if there is no such node, the pipeline was not optimized; if there is one, nodes that are not below it belong to
    # datasets inside of a map, or to lookups
    outermost = _OUTERMOST & {event.path for event in events}
    for event in events:
        if event.path and (not outermost or event.path.partition("::")[0] in outermost):
            threads.setdefault(event.thread, []).append(event)
    for some in threads.values():
        # an event that contains another one begins no later, and takes longer
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
