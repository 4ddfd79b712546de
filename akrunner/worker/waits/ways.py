"""The ways in which a script reads, with the time of each; and, for ways that call functions, of each function."""

from __future__ import annotations

from typing import TYPE_CHECKING, AbstractSet, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from akrunner.worker.waits.nodes import Looked

#: ways whose calls contain the script's computing as well as its waiting
INSIDE = ("function", "session")
#: how many windows, and nodes of a part, are kept
_WINDOWS = 60
_MOST_NODES = 64
#: how many functions, or graphs, have a part of their own
_MOST_PARTS = 8


def is_end(error: BaseException) -> bool:
    """Return whether an iterator raised this because it has no more batches, and not because a batch could not be made."""
    return type(error).__name__ in ("OutOfRangeError", "OutOfRangeException", "StopIteration")


class Quick(object):
    """Steps so short that akrunner only reads the clock twice for each: `hooks` counts them, `Way.settle` takes them over.

    Attributes:
        until: time in ns up to which steps are timed quickly, 0 if none is.
        thread: the id of the thread that reads.
        of: the id of the function or graph that the steps call, or of the iterator that they draw from.
        at: the index of the tensor of a batch that has its rows, None if none has.
        calls, rows, wait: calls, rows, and ns of waiting since the last step that was timed in full.
        last: when the last step ended, in ns.
        ends: how many of these steps found that there are no more batches.
    """

    __slots__ = ("at", "calls", "ends", "last", "of", "rows", "thread", "until", "wait")

    def __init__(self) -> None:
        self.until = self.calls = self.rows = self.wait = self.last = self.ends = 0
        self.thread: Optional[int] = None
        self.of: Optional[int] = None
        self.at: Optional[int] = None


class Part(object):
    """The steps that call the same function, or graph: for example those of the training, or those of the validation.

    Attributes:
        calls: the number of steps.
        ns: the time of all steps but the first.
        tried: how many looks saw fewer steps than they should.
        step_bytes: bytes of the trace of one step, 0 if unknown.
        looked: the number of steps that were looked at.
        look_ns, look_wait: the time of these steps, and the waiting in them, in ns.
        look_draws: how often these steps drew from an iterator.
        looked_of: pipeline that steps drew from -> the number of these steps that were looked at.
        wait_of: pipeline, None for several or an unknown one -> ns of waiting in the steps that were looked at.
        nodes: (pipeline as in `wait_of`, path of a node) -> [own ns, calls].
    """

    def __init__(self) -> None:
        self.calls = self.ns = self.tried = self.step_bytes = 0
        self.looked = self.look_ns = self.look_wait = self.look_draws = 0
        self.looked_of: Dict[Optional[int], int] = {}
        self.wait_of: Dict[Optional[int], int] = {}
        self.nodes: Dict[Tuple[Optional[int], str], List[int]] = {}

    def add(self, found: Looked, steps: int, ns: int, sources: AbstractSet[Optional[int]] = frozenset()) -> None:
        """Add the result of a look.

        Args:
            found: the result.
            steps: the number of steps.
            ns: their time.
            sources: the pipelines that the steps drew from; None among them is an unknown one.
        """
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
        """Return the ns of waiting in all steps, estimated by the share of waiting in the steps that were looked at."""
        return self.ns * min(1.0, float(self.look_wait) / self.look_ns) if self.look_ns else 0.0


class Way(object):
    """One way in which the script reads.

    Attributes:
        name: the way's name, such as "dataset".
        batches, rows: how many were drawn; rows is None if it is unknown.
        calls: how often the script called next(), or a function.
        wait, between: ns in the calls and between them, without the first step.
        first: ns in the first call.
        parts: id of the called function or graph -> its steps.
        part: the part to which the current step belongs.
        source: the index of the pipeline that the current step draws from, None if it is unknown.
        waited: source -> ns of waiting.
        ended: source -> how often a step found that there are no more batches.
        elsewhere: whether a thread other than the main one reads.
        early: what the script did besides reading and computing until the end of the first step -> (ns, how often).
        windows: [begin in ns, batches, ns in calls, ns between them] of intervals of equal length.
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
        self.ended: Dict[Optional[int], int] = {}
        self.elsewhere = False
        self.early: Dict[str, Tuple[int, int]] = {}
        self.windows: List[List[int]] = []
        self._began = began
        self._width = 1000 * 1000 * 1000
        self._last: Optional[int] = None

    @property
    def looked(self) -> int:
        """The number of steps that were looked at."""
        return sum(part.looked for part in self.parts.values())

    def turn(self, of: Optional[int]) -> None:
        """Choose the part of the next step. Args: of: the id of what the step calls, or of the iterator that it draws from."""
        self.quick.of = of
        if self.name == "dataset":
            # several iterators may be drawn from in one step: they have a single part
            return
        # functions that the script makes anew for each epoch share one part
        of = of if of in self.parts or len(self.parts) < _MOST_PARTS else None
        found = self.parts.get(of)
        if found is None:
            found = self.parts[of] = Part()
        self.part = found

    def drew(self, began: int, ended: int, rows: Optional[int] = None, error: Optional[BaseException] = None) -> None:
        """Add one next(), or call.

        Args:
            began, ended: its times, in ns.
            rows: how many rows it drew, None if unknown.
            error: what it raised in place of a batch.
        """
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
        if error is not None:
            self.ended[self.source] = self.ended.get(self.source, 0) + is_end(error)
        else:
            self.batches += 1
            self.rows = None if rows is None or self.rows is None else self.rows + rows
        if self.calls > 2:
            self._window(ended, error is None, took, gap)

    def settle(self) -> None:
        """Add the steps that were timed quickly. There are none before the third call."""
        quick = self.quick
        if not quick.last:
            return
        gap = quick.last - (self._last or 0) - quick.wait
        self.calls += quick.calls
        self.part.calls += quick.calls
        self.batches += quick.calls
        self.wait += quick.wait
        self.waited[self.source] = self.waited.get(self.source, 0) + quick.wait
        self.ended[self.source] = self.ended.get(self.source, 0) + quick.ends
        self.between += gap
        self.part.ns += quick.wait + gap
        if self.rows is not None:
            self.rows += quick.rows if quick.at is not None else quick.calls
        self._window(quick.last, quick.calls, quick.wait, gap)
        self._last = quick.last
        quick.calls = quick.rows = quick.wait = quick.last = quick.ends = 0

    @property
    def last(self) -> Optional[int]:
        """When the last step ended, in ns; None if there was none."""
        return self._last

    def skip(self, ns: int) -> None:
        """Do not count the last `ns` nanoseconds: a look took them, not the script."""
        if self._last is not None:
            self._last += ns

    def aside(self, ns: int) -> None:
        """Count the last `ns` nanoseconds, which lie between two calls, as if they were a part of the calls.

        They went into neither call, nor into making the input: another run of a session, or a checkpoint.
        """
        self.settle()
        if self.calls >= 2 and self.part.calls and self._last is not None:
            self.wait += ns
            self.part.ns += ns
        self.skip(ns)

    def cut(self) -> None:
        """Leave out the time between the last call and the next one: the script does not make its input in it."""
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
    """Return a record's "wait", "between" and "unlooked" (seconds), and "batches".

    Args:
        way: the way in which the script reads.
        looked: the parts whose waiting is known from looks.
    """
    batches, unlooked = way.batches, 0
    wait: float = way.wait
    between: float = way.between
    if way.name in INSIDE:
        # within a call the script also computes
        whole = wait + between
        wait = min(whole, sum(part.waited() for part in looked))
        between, unlooked = whole - wait, sum(part.ns for part in way.parts.values() if part not in looked)
        for part in looked:
            if part.look_draws:
                batches += round(part.calls * (float(part.look_draws) / part.looked - 1))
    if way.name == "call":
        # the time between the calls may be reading, or not
        wait, between = 0, wait + between
    if way.name == "feed_dict":
        # the script makes its input between the calls, so that time is the waiting
        wait, between = between, wait
    return {"wait": wait * 1e-9, "between": between * 1e-9, "unlooked": unlooked * 1e-9, "batches": max(0, batches)}


def weighed(parts: List[Part]) -> List[Dict[str, Any]]:
    """Return the nodes of several parts, weighted by each part's share of the time of all of them.

    Without the weights, a part with few steps would count too much, as its look is as long as that of a part with many.
    """
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
    """Return a dict: pipeline -> ns that the script waited for it; within calls, estimated by the steps that were looked at."""
    if way.name not in INSIDE:
        return dict(way.waited)
    found: Dict[Optional[int], float] = {}
    for part in looked:
        for of, wait in part.wait_of.items():
            found[of] = found.get(of, 0.0) + part.waited() * wait / max(1, part.look_wait)
    return found
