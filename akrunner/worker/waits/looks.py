"""When TensorFlow's profiler runs for some steps: only where the user has asked for it (`profile_input`).

The profiler can end a process. `TraceMeRecorder::Stop` of TensorFlow 2.20 (`SplitEventTracker::FindStartAndMerge`) crashes once in some hundred looks
where one of TensorFlow's servers runs, so there are none in a task of a cluster; elsewhere they are few.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Optional, Set

from akrunner.worker.waits import nodes, tracing
from akrunner.worker.waits.ways import Part

if TYPE_CHECKING:
    from akrunner.worker.waits.ways import Part, Way

clock = time.perf_counter_ns
#: looks that end before they have seen what they were to, of those that were asked for: a validation may be shorter
_TRIES = 8
#: steps of a look while nobody knows how long a trace of them is; bytes of one that is looked for then: half of what is read
_UNKNOWN, _ROOM = 20, tracing.MOST_BYTES // 2
#: calls of a function before the first look at it
UNLOOKED = 3
#: steps from one pipeline after which another one is no turn of a loop over several
_IN_A_ROW = 3
#: steps of a later look, seconds after which it ends early, bytes of its trace that are worth reading
_STEPS, _LONGEST, _MOST = 4, 3.0, 2 << 20
#: of the time, what later looks may take; the next one comes when the job has run for twice as long, too
_SHARE = 0.002
#: ns between two looks
_APART_NS = 500 * 1000 * 1000


class Looks(object):
    """The looks of one task: one of as many steps as were asked for at each function the script calls, and short ones now and then.

    Args: steps: that were asked for; say_failed: is told why a look is none; wholly: is called before one, so that no step is a quick one.
    Attributes: may: whether TensorFlow is there, and it is safe; served: a server has been started in this process, so there are none any more; hindered: why
        the last look that told nothing did so, "": there was none: profiler (another one ran), large (the trace of one step, even), long (a call), fails (it does not start).
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
        #: which pipelines the steps of a look draw from
        self._sources: Set[Optional[int]] = set()

    @property
    def running(self) -> bool:
        """Whether one is."""
        return self._trace is not None

    def before(self, way: Way, last: Part, now: int, source: Optional[int] = None) -> None:
        """The script is about to make a step: perhaps it is the first of a look. Args: last: the part of the way whose step was the last one;
        source: the pipeline that the step draws from, None: nobody knows."""
        if self._trace is not None and self._way is way and (last is not way.part or self._turns(source)):
            # a look is at the training, or at the validation
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
        """Whether the script goes on with another pipeline, and does not draw from several in turn."""
        return source not in self._sources and len(self._sources) == 1 and self._calls >= _IN_A_ROW

    def _is_due(self, way: Way, now: int, source: Optional[int]) -> bool:
        """Whether it is time for a look: what has never been looked at is not to wait for its turn."""
        part = way.part
        if part.tried < _TRIES and self._missing(part, source) and now >= self._not_before:
            return True
        if now < self._due:
            return False
        least = min(way.parts.values(), key=lambda one: float(one.look_ns) / one.ns if one.ns > _APART_NS else 2.0)
        return part is least or now >= self._due + 4 * _APART_NS

    def _missing(self, part: Part, source: Optional[int]) -> int:
        """Steps that were asked for and are still to be looked at."""
        return max(0, self._steps - (part.looked if source is None else part.looked_of.get(source, 0)))

    def after(self, way: Way, now: int) -> None:
        """It has made one. Args: now: ns, when."""
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
        """The trace that runs, for whoever ends it."""
        with self._lock:
            trace, self._trace = self._trace, None
        if trace is not None and self._timer is not None:
            self._timer.cancel()
        return trace

    def give_up(self, why: str = "profiler") -> None:
        """End a look that is in the script's way; there is none for a while. What it has seen counts. Args: why: if that is nothing."""
        self._due = self._not_before = max(self._due, clock() + _APART_NS)
        trace = self._taken()
        if trace is None:
            return
        try:
            # a step that has begun is none yet
            self._use(trace, self._seen, why, early=True)
        except Exception as e:
            # whoever asks is about to start a profiler of the script's, which has nothing to do with it
            self._say_failed(e)

    def no_more(self) -> None:
        """End a look; there is to be none from now on."""
        self.give_up()
        self.may = False

    def serve(self) -> None:
        """A server is about to be started in this process."""
        self.no_more()
        self.served = True

    def _late(self) -> None:
        """A look lasts too long."""
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
        """Stop it, and have its steps counted. Args: now: ns, when the last of them ended; why: if there is none; early: it went on after that."""
        part, calls, took, sources = self._part, self._calls, now - self._look_began, self._sources
        part.tried += 1
        events = trace.stop(None if self._asked else _MOST)
        if not calls:
            self.hindered = why or self.hindered
            return
        part.step_bytes = max(1, trace.size // calls)
        if events is None:
            # the next look is as short as it has to be
            self.hindered = "large"
            return
        if early:
            # a trace has a clock of its own, which begins with the first step
            began = min([event.began for event in events] or [0])
            events = [event for event in events if event.began - began < took]
            for event in events:
                event.took = min(event.took, took - (event.began - began))
        part.add(nodes.looked(events), calls, took, sources)
        # one that has seen all that it was to is followed by the next
        part.tried -= calls >= self._goal


def _fitting(step_bytes: int, room: int) -> int:
    """Steps whose trace is not too long to be read. Args: step_bytes: of one step's, 0: nobody knows."""
    return max(1, room // step_bytes) if step_bytes else _UNKNOWN
