"""The ways in which a script reads, and the time that went into each; of those that call functions, into each function."""

from __future__ import annotations

from typing import TYPE_CHECKING, AbstractSet, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from akrunner.worker.waits.nodes import Looked

#: ways whose calls hold more than the waiting
INSIDE = ("function", "session")
_WINDOWS = 60
_MOST_NODES = 64
#: functions, or graphs, whose steps are weighed apart
_MOST_PARTS = 8


class Quick(object):
    """Steps that are too short to do more than read the clock twice for each: `hooks` counts them, `Way.settle` takes them over.

    Attributes: until: ns to which steps are taken so, 0: none is; thread: that reads; of: id of the function, or graph, it calls, or of the iterator; at: which tensor of
        a batch has its rows, None: none has; calls, rows, wait (ns): since the last step that was looked at wholly; last: ns when the last ended.
    """

    __slots__ = ("at", "calls", "last", "of", "rows", "thread", "until", "wait")

    def __init__(self) -> None:
        self.until = self.calls = self.rows = self.wait = self.last = 0
        self.thread: Optional[int] = None
        self.of: Optional[int] = None
        self.at: Optional[int] = None


class Part(object):
    """Steps that call the same function, or graph: those of the training, those of the validation.

    Attributes: calls; ns: of its steps but the first; tried: looks that saw less than they were to; step_bytes: of a step's trace, 0: nobody knows; looked: steps of looks, `look_ns` and `look_wait`: their ns; look_draws: draws in them; looked_of, wait_of: pipeline
        that they drew from, None: several, or nobody knows -> steps, ns of waiting; nodes: (that pipeline, path) -> [own ns, calls].
    """

    def __init__(self) -> None:
        self.calls = self.ns = self.tried = self.step_bytes = 0
        self.looked = self.look_ns = self.look_wait = self.look_draws = 0
        self.looked_of: Dict[Optional[int], int] = {}
        self.wait_of: Dict[Optional[int], int] = {}
        self.nodes: Dict[Tuple[Optional[int], str], List[int]] = {}

    def add(self, found: Looked, steps: int, ns: int, sources: AbstractSet[Optional[int]] = frozenset()) -> None:
        """What a look at so many steps has shown. Args: found: `nodes.Looked`; sources: pipelines that the steps drew from."""
        of = next(iter(sources)) if len(sources) == 1 else None
        for source in sources:
            self.looked_of[source] = self.looked_of.get(source, 0) + steps
        self.wait_of[of] = self.wait_of.get(of, 0) + found.wait
        self.looked += steps
        self.look_ns += ns
        self.look_wait += found.wait
        self.look_draws += found.draws
        for path, own in found.own.items():
            if (of, path) in self.nodes or len(self.nodes) < _MOST_NODES:
                sums = self.nodes.setdefault((of, path), [0, 0])
                sums[0] += own
                sums[1] += found.calls[path]

    def waited(self) -> float:
        """ns of all its steps, by the share of those that were looked at."""
        return self.ns * min(1.0, float(self.look_wait) / self.look_ns) if self.look_ns else 0.0


class Way(object):
    """One way in which the script reads.

    Attributes: batches, rows drawn (rows None: not known); wait, between: ns of all steps but the first; first: ns of its wait; parts: id of what is called -> its steps;
        part: the one whose step it is; source: which of the script's pipelines it draws from, None: nobody knows; waited: source -> ns of wait;
        elsewhere: another thread than the main one reads; windows: [ns, batches, wait, between].
    """

    def __init__(self, name: str, began: int, quick: Optional[Quick] = None) -> None:
        self.name = name
        self.quick = quick or Quick()
        self.batches = self.calls = 0
        self.rows: Optional[int] = 0
        self.wait = self.between = self.first = 0
        self.part = Part()
        self.parts: Dict[Optional[int], Part] = {None: self.part}
        self.source: Optional[int] = None
        self.waited: Dict[Optional[int], int] = {}
        self.elsewhere = False
        self.windows: List[List[int]] = []
        self._began = began
        self._width = 1000 * 1000 * 1000
        self._last: Optional[int] = None

    @property
    def looked(self) -> int:
        """Steps of looks."""
        return sum(part.looked for part in self.parts.values())

    def turn(self, of: Optional[int]) -> None:
        """The next step is one of another part, or of the same. Args: of: id of what it calls, or of the iterator it draws from."""
        self.quick.of = of
        if self.name == "dataset":
            # iterators that are drawn from in turn are one step's
            return
        # functions that are made anew for each epoch are one
        of = of if of in self.parts or len(self.parts) < _MOST_PARTS else None
        found = self.parts.get(of)
        if found is None:
            found = self.parts[of] = Part()
        self.part = found

    def drew(self, began: int, ended: int, rows: Optional[int] = None, end: bool = False) -> None:
        """One next(), or call. Args: end: it was the one that found no more."""
        gap = began - self._last if self._last is not None else 0
        took = ended - began
        part = self.part
        if self.calls == 0:
            self.first = took
        elif part.calls:
            self.wait += took
            part.ns += took
            self.waited[self.source] = self.waited.get(self.source, 0) + took
        if self.calls >= 2 and part.calls:
            self.between += gap
            part.ns += gap
        self.calls += 1
        part.calls += 1
        self._last = ended
        if not end:
            self.batches += 1
            self.rows = None if rows is None or self.rows is None else self.rows + rows
        if self.calls > 2:
            self._window(ended, not end, took, gap)

    def settle(self) -> None:
        """Take over what was counted quickly; there is none before the third call."""
        quick = self.quick
        if not quick.last:
            return
        gap = quick.last - (self._last or 0) - quick.wait
        self.calls += quick.calls
        self.part.calls += quick.calls
        self.batches += quick.calls
        self.wait += quick.wait
        self.waited[self.source] = self.waited.get(self.source, 0) + quick.wait
        self.between += gap
        self.part.ns += quick.wait + gap
        if self.rows is not None:
            self.rows += quick.rows if quick.at is not None else quick.calls
        self._window(quick.last, quick.calls, quick.wait, gap)
        self._last = quick.last
        quick.calls = quick.rows = quick.wait = quick.last = 0

    @property
    def last(self) -> Optional[int]:
        """ns when its last step ended, None: it has had none."""
        return self._last

    def skip(self, ns: int) -> None:
        """What has just been done was for the look, and none of the script's time."""
        if self._last is not None:
            self._last += ns

    def aside(self, ns: int) -> None:
        """What has just been done between two calls was for neither: another run of a session, a checkpoint. It counts as a part of the calls."""
        self.settle()
        if self.calls >= 2 and self.part.calls and self._last is not None:
            self.wait += ns
            self.part.ns += ns
        self.skip(ns)

    def cut(self) -> None:
        """The next call does not follow the last one: what is between them is not the script's making of it."""
        self.settle()
        self._last = None
        self.quick.until = 0

    def _window(self, now: int, batches: int, took: int, gap: int) -> None:
        at = (now - self._began) // self._width * self._width
        if not self.windows or self.windows[-1][0] != at:
            self.windows.append([at, 0, 0, 0])
            if len(self.windows) > _WINDOWS:
                self._widen()
        last = self.windows[-1]
        last[1] += batches
        last[2] += took
        last[3] += gap

    def _widen(self) -> None:
        self._width *= 2
        merged: List[List[int]] = []
        for at, batches, wait, between in self.windows:
            at = at // self._width * self._width
            if merged and merged[-1][0] == at:
                last = merged[-1]
                last[1], last[2], last[3] = last[1] + batches, last[2] + wait, last[3] + between
            else:
                merged.append([at, batches, wait, between])
        self.windows = merged


def times(way: Way, looked: List[Part]) -> Dict[str, float]:
    """Of a record: wait, between and unlooked (seconds), and batches. Args: looked: parts of which looks have told how long they waited."""
    batches, unlooked = way.batches, 0
    wait: float = way.wait
    between: float = way.between
    if way.name in INSIDE:
        # in a call the script computes, too
        whole = wait + between
        wait = min(whole, sum(part.waited() for part in looked))
        between, unlooked = whole - wait, sum(part.ns for part in way.parts.values() if part not in looked)
        for part in looked:
            if part.look_draws:
                batches += round(part.calls * (float(part.look_draws) / part.looked - 1))
    if way.name == "call":
        # what is between them may be reading, or not
        wait, between = 0, wait + between
    if way.name == "feed_dict":
        # what is waited for is made between the calls
        wait, between = between, wait
    return {"wait": wait * 1e-9, "between": between * 1e-9, "unlooked": unlooked * 1e-9, "batches": max(0, batches)}


def weighed(parts: List[Part]) -> List[Dict[str, Any]]:
    """The nodes of several parts, each as much as its steps took of all of them: a look is as long for a rare step as for a frequent one."""
    all_ns, looks_ns = sum(part.ns for part in parts), sum(part.look_ns for part in parts)
    found: Dict[Tuple[Optional[int], str], List[Any]] = {}
    for part in parts:
        weight = float(part.ns) * looks_ns / (all_ns * part.look_ns) if all_ns and part.look_ns else 1.0
        for key, (own, calls) in part.nodes.items():
            sums = found.setdefault(key, [0.0, 0])
            sums[0] += own * weight * 1e-9
            sums[1] += max(1, round(calls * weight))
    some = sorted(found.items(), key=lambda one: (-1 if one[0][0] is None else one[0][0], one[0][1]))
    return [
        dict({"path": path, "own": own, "calls": calls}, **({} if of is None else {"of": of}))
        for (of, path), (own, calls) in some
    ]


def waited(way: Way, looked: List[Part]) -> Dict[Optional[int], float]:
    """Pipeline -> ns that the script waited for it; in calls, by those that were looked at."""
    if way.name not in INSIDE:
        return dict(way.waited)
    found: Dict[Optional[int], float] = {}
    for part in looked:
        for of, wait in part.wait_of.items():
            found[of] = found.get(of, 0.0) + part.waited() * wait / max(1, part.look_wait)
    return found
