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
#: looks in which as many steps are to be seen as were asked for: a validation may be shorter
_TRIES = 8
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
    Attributes: may: whether TensorFlow is there, and it is safe; served: a server has been started in this process, so there are none any more.
    """

    def __init__(self, steps: int, say_failed: Callable[[BaseException], Any], wholly: Callable[[], Any]) -> None:
        self.may = self.served = False
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
        self._look_began = self._calls = self._asked = 0
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
        if self._trace is None and self.may and way.part.calls >= 3 and self._is_due(way, now, source):
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
        asked = self._asked
        if self._calls >= (asked or _STEPS) or (now - self._look_began > _LONGEST * 1e9 / 10 and not asked):
            self._close(now)
            way.skip(clock() - now)

    def _open(self, way: Way, source: Optional[int]) -> None:
        began = clock()
        asked = self._asked = self._missing(way.part, source)
        self._sources = set()
        try:
            self._trace = tracing.Trace()
        except Exception as e:
            # the script's own profiler runs, or TensorFlow has none
            self._say_failed(e)
            self._due = self._not_before = began + _APART_NS * (2 if asked else 20)
            return
        self._way, self._part, self._calls = way, way.part, 0
        self._wholly()
        self._timer = threading.Timer(_LONGEST * (20 if asked else 1), self._late)
        self._timer.daemon = True
        self._timer.start()
        self._look_began = clock()
        self._cost += self._look_began - began

    def _taken(self) -> Optional[tracing.Trace]:
        """The trace that runs, for whoever ends it."""
        with self._lock:
            trace, self._trace = self._trace, None
        if trace is not None and self._timer is not None:
            self._timer.cancel()
        return trace

    def give_up(self) -> None:
        """End a look that is in the script's way; there is none for a while."""
        self._due = self._not_before = max(self._due, clock() + _APART_NS)
        trace = self._taken()
        if trace is None:
            return
        try:
            trace.stop()
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
        self.give_up()
        self._due = self._not_before = max(self._due, clock() + _APART_NS * 20)

    def _close(self, now: int) -> None:
        trace = self._taken()
        if trace is None:
            return
        part, began = self._part, clock()
        part.tried += 1
        asked = self._asked
        events = trace.stop(None if asked else _MOST)
        if events is not None and self._calls:
            part.add(nodes.looked(events), self._calls, now - self._look_began, self._sources)
        self._cost += clock() - began
        self._not_before = clock() + (0 if asked else _APART_NS)
        ran = clock() - self._began
        self._due = self._began + max(ran + _APART_NS, 2 * ran, int(self._cost / _SHARE))
