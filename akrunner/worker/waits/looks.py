"""Decides when TensorFlow's profiler runs for some steps: such a run is called a look.

There are looks only if the user has asked for them (`profile_input`).

The profiler can end a process. `TraceMeRecorder::Stop` of TensorFlow 2.20 (`SplitEventTracker::FindStartAndMerge`) crashes
once in some hundred looks if one of TensorFlow's servers runs, so there are no looks in a task of a cluster, and few
elsewhere.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Optional, Set

from akrunner.worker.waits import nodes, tracing
from akrunner.worker.waits.ways import Part

if TYPE_CHECKING:
    from akrunner.worker.waits.ways import Way

clock = time.perf_counter_ns
#: how many looks at a part may end before they have seen all the steps that were asked for: a validation may be shorter than
#: a look
_TRIES = 8
#: steps of a look as long as the size of a step's trace is unknown; bytes that the trace of a requested look should have:
#: half of what is read
_UNKNOWN, _ROOM = 20, tracing.MOST_BYTES // 2
#: calls of a function before the first look at it
UNLOOKED = 3
#: after so many steps from one pipeline, a step from another one means that the script has gone on to it; after fewer, that
#: it draws from several in turn
_IN_A_ROW = 3
#: a later look, after those that were asked for: its steps, the seconds after which it ends early, and the bytes of its trace
#: that are worth reading
_STEPS, _LONGEST, _MOST = 4, 3.0, 2 << 20
#: the share of the time that later looks may take; besides, the next one comes only when the job has run for twice as long
_SHARE = 0.002
#: least ns between two looks
_APART_NS = 500 * 1000 * 1000


class Looks(object):
    """The looks of one task.

    Each function that the script calls gets one look of as many steps as the user has asked for, and short looks now and then.

    Args:
        steps: how many steps the user has asked for.
        say_failed: is told the error if a look fails.
        wholly: is called before a look, so that the meter times every step in full, and none quickly.
    Attributes:
        may: whether looks are possible: TensorFlow is imported, and it is safe.
        served: whether a server was started in this process, so that there are no more looks.
        hindered: why the last look without a result had none, "" if there was no such look: "profiler" (another one ran),
            "large" (even the trace of one step is), "long" (a call took too long), "fails" (the profiler does not start).
    """

    def __init__(self, steps: int, say_failed: Callable[[BaseException], Any], wholly: Callable[[], Any]) -> None:
        self.may = self.served = False
        self.hindered = ""
        self._steps = steps
        self._say_failed = say_failed
        self._wholly = wholly
        self._began = clock()
        self._due = self._not_before = self._cost = 0
        self._trace: Optional[tracing.Trace] = None
        self._timer: Optional[threading.Timer] = None
        self._lock = threading.Lock()
        self._way: Optional[Way] = None
        self._part = Part()
        self._look_began = self._seen = self._aside = self._calls = self._asked = self._goal = 0
        #: the pipelines that the steps of the look have drawn from
        self._sources: Set[Optional[int]] = set()

    @property
    def running(self) -> bool:
        """Whether a look is running."""
        return self._trace is not None

    def before(self, way: Way, last: Part, now: int, source: Optional[int] = None) -> None:
        """Begin or end a look, if it is time, before the script makes a step.

        Args:
            way: the way in which the step reads.
            last: the part of the way to which the last step belonged.
            now: the time, in ns.
            source: the pipeline that the step draws from, None if it is unknown.
        """
        if self._trace is not None and self._way is way and (last is not way.part or self._turns(source)):
            # a look is either at the training or at the validation: it ends where the other begins
            self._close(way.last or now)
        elif self._trace is not None and self._way is not way:
            self._aside += 1
            if self._aside >= _IN_A_ROW:
                # the script reads in another way now
                self.give_up("")
        if self._trace is None and self.may and way.part.calls >= UNLOOKED and self._is_due(way, now, source):
            self._open(way, source)
        if self._trace is not None and self._way is way:
            self._sources.add(source)

    def _turns(self, source: Optional[int]) -> bool:
        """Whether the script has gone on to another pipeline, and does not just draw from several in turn."""
        return source not in self._sources and len(self._sources) == 1 and self._calls >= _IN_A_ROW

    def _is_due(self, way: Way, now: int, source: Optional[int]) -> bool:
        """Whether it is time for a look. A part for which requested steps are missing need not wait for its turn."""
        part = way.part
        if part.tried < _TRIES and self._missing(part, source) and now >= self._not_before:
            return True
        if now < self._due:
            return False
        least = min(way.parts.values(), key=lambda one: float(one.look_ns) / one.ns if one.ns > _APART_NS else 2.0)
        return part is least or now >= self._due + 4 * _APART_NS

    def _missing(self, part: Part, source: Optional[int]) -> int:
        """Return how many of the steps that the user has asked for are still to be looked at."""
        return max(0, self._steps - (part.looked if source is None else part.looked_of.get(source, 0)))

    def after(self, way: Way, now: int) -> None:
        """Note that the script has made a step; end the look if that was its last. Args: now: the time, in ns."""
        if self._trace is None or self._way is not way:
            return
        self._calls += 1
        self._seen, self._aside = now, 0
        if self._calls >= self._goal or (now - self._look_began > _LONGEST * 1e9 / 10 and not self._asked):
            self._close(now)
            way.skip(clock() - now)

    def _open(self, way: Way, source: Optional[int]) -> None:
        began = clock()
        asked = self._asked = self._missing(way.part, source)
        self._goal = min(asked or _STEPS, _fitting(way.part.step_bytes, _ROOM if asked else _MOST))
        self._sources = set()
        try:
            self._trace = tracing.Trace()
        except Exception as e:
            # the script's own profiler runs, or TensorFlow has none
            self._say_failed(e)
            self.hindered = "profiler" if "profil" in str(e).lower() else "fails"
            self._due = self._not_before = began + _APART_NS * (2 if asked else 20)
            return
        self._way, self._part, self._calls, self._aside = way, way.part, 0, 0
        self._wholly()
        self._timer = threading.Timer(_LONGEST * (20 if asked else 1), self._late)
        self._timer.daemon = True
        self._timer.start()
        self._look_began = self._seen = clock()
        self._cost += self._look_began - began

    def _taken(self) -> Optional[tracing.Trace]:
        """Take the running trace, so that only one thread ends it; None if there is none."""
        with self._lock:
            trace, self._trace = self._trace, None
        if trace is not None and self._timer is not None:
            self._timer.cancel()
        return trace

    def give_up(self, why: str = "profiler") -> None:
        """End a look that is in the script's way, and begin none for a while. What it has seen counts.

        Args:
            why: the reason that is noted in `hindered` if the look has seen nothing.
        """
        self._due = self._not_before = max(self._due, clock() + _APART_NS)
        trace = self._taken()
        if trace is None:
            return
        try:
            # the step that is under way does not count
            self._use(trace, self._seen, why, early=True)
        except Exception as e:
            # the script is about to start its own profiler, and must not see this error
            self._say_failed(e)

    def no_more(self) -> None:
        """End a look, and allow no further one."""
        self.give_up()
        self.may = False

    def serve(self) -> None:
        """End the looks for good: a server is about to be started in this process."""
        self.no_more()
        self.served = True

    def _late(self) -> None:
        """End a look that lasts too long."""
        self.give_up("long")
        self._due = self._not_before = max(self._due, clock() + _APART_NS * 20)

    def _close(self, now: int) -> None:
        trace = self._taken()
        if trace is None:
            return
        began, asked = clock(), self._asked
        self._use(trace, now, "")
        self._cost += clock() - began
        self._not_before = clock() + (0 if asked else _APART_NS)
        ran = clock() - self._began
        self._due = self._began + max(ran + _APART_NS, 2 * ran, int(self._cost / _SHARE))

    def _use(self, trace: tracing.Trace, now: int, why: str, early: bool = False) -> None:
        """Stop a trace, and add what it shows to its part.

        Args:
            trace: the trace.
            now: when the look's last step ended, in ns.
            why: the reason that is noted in `hindered` if the look has no step.
            early: whether the trace went on after the last step.
        """
        part, calls, took, sources = self._part, self._calls, now - self._look_began, self._sources
        part.tried += 1
        events = trace.stop(None if self._asked else _MOST)
        if not calls:
            self.hindered = why or self.hindered
            return
        part.step_bytes = max(1, trace.size // calls)
        if events is None:
            # the bytes of a step are known now, so the next look has as few steps as it needs to
            self.hindered = "large"
            return
        if early:
            # a trace has a clock of its own, so times are counted from its first event
            began = min([event.began for event in events] or [0])
            events = [event for event in events if event.began - began < took]
            for event in events:
                event.took = min(event.took, took - (event.began - began))
        part.add(nodes.looked(events), calls, took, sources)
        # a look that has seen all its steps does not count as a try
        part.tried -= calls >= self._goal


def _fitting(step_bytes: int, room: int) -> int:
    """Return the number of steps whose trace has room in so many bytes.

    Args:
        step_bytes: bytes of one step's trace, 0 if unknown.
    """
    return max(1, room // step_bytes) if step_bytes else _UNKNOWN
