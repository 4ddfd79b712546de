"""How long the script waits for its input, step by step, and now and then for what.

::

    step     | next() ......... | train, print, write ... |
               wait               between                     (dataset, batches: each step is timed)
             | call of a function or session ..... | ...  |
               wait, somewhere in it                          (only steps that are looked at tell how much)

The first step is not counted: graphs are built in it, and buffers filled.
"""

import os
import threading
import time

from akrunner.worker.waits import lines, nodes, python, tracing
from akrunner.worker.waits.ways import INSIDE, Quick, Way, times, weighed

#: ways that tell what the script reads by; of "call", of functions that are handed their input, only the time is known
_READS = ("dataset", "function", "session", "feed_dict")
#: looks in which as many steps are to be seen as were asked for: a validation may be shorter
_TRIES = 8
#: steps of a look, seconds after which it ends early, bytes of a trace that are worth reading
_STEPS, _LONGEST, _MOST = 4, 3.0, 2 << 20
#: of the time, what looks may take
_SHARE = 0.002
_FIRST_NS = 500 * 1000 * 1000
#: steps that come within so many ns of one that was looked at wholly are only counted, and their waiting summed
_QUICK_NS = 10 * 1000 * 1000

clock = time.perf_counter_ns if hasattr(time, "perf_counter_ns") else time.monotonic_ns


class Meter(object):
    """The clocks of one task.

    Args: steps: to look at on request, 0: only as many as cost next to nothing.
    Attributes: pipelines: of the iterators that were made; python: that they call; reads: whether it is known by what the script reads; failed: why it measures no more, ""; hidden: a
        function draws by itself; the others: as in `record`.
    """

    def __init__(self, steps=0):
        self.steps = steps
        self.ways = {}
        self.quick = {name: Quick() for name in (*_READS, "call")}
        self.python = python.Calls()
        self.reads = self.hidden = False
        self.pipelines = []
        self.spent = {}
        self._began = clock()
        self._idled = None
        self.lines = lines.Lines(bool(steps))
        self._thread = None
        self._may_look = False
        self._cheap = True
        self._not_before = 0
        self.failed = ""
        self._due = None
        self._cost = 0
        self._trace = None
        self._lock = threading.Lock()
        self._looks_at = self._look_part = None
        self._first_of = ""
        self._look_began = self._look_calls = 0
        self._timer = None

    def may_look(self, may):
        """Whether looks may be taken. Without TensorFlow there are none."""
        self._may_look = may
        # looks that were asked for are taken where others would cost too much
        self._cheap = not self.steps or tracing.cheap()

    def way(self, name):
        """The clock of a way of reading, None: another thread than the one that reads asks."""
        thread = threading.get_ident()
        if self._thread != thread:
            if self._thread is not None and thread != threading.main_thread().ident:
                return None
            self._thread = thread
        found = self.ways.get(name)
        if found is None:
            found = self.ways[name] = Way(name, self._began, self.quick.get(name))
            self.reads = self.reads or name in _READS
            self._due = self._due or clock() + (0 if self.steps else _FIRST_NS)
        found.elsewhere = thread != threading.main_thread().ident
        return found

    def before(self, way, of=None):
        """The script is about to make a step: perhaps it is the first of a look. Args: of: id of what it calls. Returns: ns, now."""
        way.settle()
        now = clock()
        last = way.part
        way.turn(of)
        if self._trace is not None and self._looks_at is way and last is not way.part:
            # a look is at the training, or at the validation
            self._close(way.last or now)
        if self._trace is None and self._may_look and way.name in _READS and way.part.calls >= 3 and self._is_due(way, now):
            self._open(way)
        after = clock()
        way.skip(after - now)
        return after

    def _is_due(self, way, now):
        """Whether it is time for a look: what has never been looked at is not to wait for its turn."""
        part = way.part
        first = part.tried < (_TRIES if self.steps else 1) and self._missing(part) and now >= self._not_before
        if first and (self.steps or part.ns >= _FIRST_NS):
            return True
        if not self._cheap or now < self._due:
            return False
        least = min(way.parts.values(), key=lambda one: float(one.look_ns) / one.ns if one.ns > _FIRST_NS else 2.0)
        return part is least or now >= self._due + 4 * _FIRST_NS

    def _missing(self, part):
        """Steps of the first look that are still to be made."""
        return max(0, (self.steps or 1) - part.looked)

    def after(self, way, now):
        """It has made one. Args: now: ns, when."""
        if way.calls == 1:
            self.first_step(way)
        if self._trace is None and way.part.calls >= 3:
            way.quick.thread, way.quick.until = self._thread, now + _QUICK_NS
        if self._trace is None or self._looks_at is not way:
            return
        self._look_calls += 1
        asked = self.steps and self._missing(self._look_part)
        if self._look_calls >= (asked or _STEPS) or (now - self._look_began > _LONGEST * 1e9 / 10 and not asked):
            self._close(now)
            way.skip(clock() - now)

    def first_step(self, way):
        """The first step of a way is done: what Python did until then prepared it."""
        if not self._first_of or (self._first_of == "call" and way.name != "call"):
            self._first_of = way.name
            self.lines.again()

    def _open(self, way):
        began = clock()
        try:
            self._trace = tracing.Trace()
        except Exception as e:
            # the script's own profiler runs, or TensorFlow has none
            self.say_failed(e)
            self._due = self._not_before = began + _FIRST_NS * (2 if self.steps and self._missing(way.part) else 20)
            return
        self._looks_at, self._look_part, self._look_calls = way, way.part, 0
        self.wholly()
        seconds = _LONGEST * (20 if self.steps and self._missing(way.part) else 1)
        self._timer = threading.Timer(seconds, self._late)
        self._timer.daemon = True
        self._timer.start()
        self._look_began = clock()
        self._cost += self._look_began - began

    def _taken(self):
        """The trace that runs, for whoever ends it."""
        with self._lock:
            trace, self._trace = self._trace, None
        if trace is not None and self._timer is not None:
            self._timer.cancel()
        return trace

    def give_up(self):
        """End a look that is in the script's way; there is none for a while."""
        self._due = max(self._due or 0, clock() + _FIRST_NS)
        self._not_before = self._due
        trace = self._taken()
        if trace is None:
            return
        try:
            trace.stop()
        except Exception as e:
            # whoever asks is about to start a profiler of the script's, which has nothing to do with it
            self.say_failed(e)

    def look_no_more(self):
        """End a look; there is to be none from now on."""
        self.give_up()
        self._may_look = False

    def _late(self):
        """A look lasts too long."""
        self.give_up()
        self._due = self._not_before = max(self._due, clock() + _FIRST_NS * 20)

    def _close(self, now):
        trace = self._taken()
        if trace is None:
            return
        part, began = self._look_part, clock()
        part.tried += 1
        asked = self.steps and self._missing(part)
        events = trace.stop(_MOST if not asked else None)
        if events is not None and self._look_calls:
            part.add(nodes.looked(events), self._look_calls, now - self._look_began)
        self._cost += clock() - began
        self._not_before = clock() + (0 if asked else _FIRST_NS)
        self._due = max(clock() + _FIRST_NS, self._began + int(self._cost / _SHARE))

    def say_failed(self, error):
        """Why something was not measured. An error of the script's own kind may have no words."""
        try:
            self.failed = "%s: %s" % (type(error).__name__, error)
        except Exception:
            self.failed = type(error).__name__

    def stop(self, error):
        """It is of no use any more; nothing of it is left running."""
        self.say_failed(error)
        self.wholly()
        self.give_up()
        self._may_look = False

    def wholly(self):
        """From now on no step is a quick one, until one has been looked at wholly."""
        for quick in self.quick.values():
            quick.until = 0

    def add(self, what, ns):
        """Time that went into something else the doctor knows: checkpoint, report, output."""
        self.spent[what] = self.spent.get(what, 0) + ns

    def begin(self):
        """`main` is entered."""
        self._began = clock()
        self._idled = ticks()
        try:
            self.lines.start()
        except RuntimeError as e:
            # no more threads may be started: the script may need none
            self.say_failed(e)

    def _read(self):
        """How the script reads: the way that took most of its time, None: in none that is known."""
        known = [one for one in self.ways.values() if one.name != "call"] or list(self.ways.values())
        ways = sorted(known, key=lambda one: (one.wait + one.between, one.batches))
        return ways[-1] if ways else None

    def record(self):
        """What the host is told, JSON."""
        try:
            return self._record()
        except Exception as e:
            self.say_failed(e)
            # of a script that has done nothing
            return Meter(self.steps)._record()

    def _settled(self):
        self.give_up()
        self.lines.stop()
        self.wholly()
        for way in self.ways.values():
            way.settle()

    def _record(self):
        self._settled()
        way = self._read() or Way("", self._began)
        seconds = 1e-9
        calls = self.ways.get("call") or Way("call", self._began)
        looked = [part for part in way.parts.values() if part.looked]
        told = {
            "by": way.name,
            "asked": self.steps,
            "main": (clock() - self._began) * seconds,
            "lines": self.lines.record(),
            "looks": max(0, self.lines.looks),
            "busy": sum(self.lines.busy) / len(self.lines.busy) if self.lines.busy else None,
            "cores": cores(),
            "idle": idle(self._idled, ticks()),
            "rows": way.rows,
            "outside": way.between * seconds if way.name in (*INSIDE, "call") else 0.0,
            "first": way.first * seconds,
            "looked": way.looked,
            "known": bool(looked) if way.name in INSIDE else way.name != "call",
            "hidden": self.hidden and way.name not in INSIDE,
            "elsewhere": way.elsewhere,
            "calls": {"calls": calls.calls, "inside": calls.wait * seconds, "outside": calls.between * seconds},
            "python": self.python.record(),
            "nodes": weighed(looked),
            "look": sum(part.look_ns for part in looked) * seconds,
            "pipelines": self.pipelines,
            "windows": [[at * seconds, count, took * seconds, gap * seconds] for at, count, took, gap in way.windows],
            "spent": {name: ns * seconds for name, ns in self.spent.items()},
        }
        told.update(times(way, looked))
        return told


def cores():
    """Of the processor, that this task may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ticks():
    """(idle, all) of this machine's cores together since it started, None: it does not say."""
    try:
        with open("/proc/stat") as f:
            told = [int(part) for part in f.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return (told[3] + told[4], sum(told)) if len(told) == 8 else None


def idle(before, after):
    """Cores that nothing used, on average, between two looks at `ticks`; None: nobody knows."""
    if before is None or after is None or after[1] <= before[1]:
        return None
    share = min(1.0, max(0.0, float(after[0] - before[0]) / (after[1] - before[1])))
    return min(float(cores()), share * (os.cpu_count() or 1))
