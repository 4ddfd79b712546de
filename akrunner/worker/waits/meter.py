"""How long the script waits for its input, step by step.

::

    step     | next() ......... | train, print, write ... |
               wait               between                     (dataset, batches: each step is timed)
             | call of a function or session ..... | ...  |
               wait, somewhere in it                          (only steps that are looked at, on request, tell how much)

The first step is not counted: graphs are built in it, and buffers filled.
"""

from __future__ import annotations

import glob
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from akrunner.worker.waits import lines, looks, python, ways
from akrunner.worker.waits.ways import INSIDE, Quick, Way, times, weighed

#: ways that tell what the script reads by; of "call", of functions that are handed their input, only the time is known
_READS = ("dataset", "function", "session", "feed_dict")
#: steps that come within so many ns of one that was looked at wholly are only counted, and their waiting summed
_QUICK_NS = 10 * 1000 * 1000
#: of what time goes into, what is none of the making of input
_NO_INPUT = ("checkpoint", "summary", "report", "output")
#: of the time of functions that are handed their input, what another way of reading must have to be how the script reads
_LITTLE = 0.1
#: iterators of which it is known what they draw from; most are gone
_MOST_SOURCES = 1024

clock = time.perf_counter_ns


class Meter(object):
    """The clocks of one task.

    Args: steps: to look at, which the user has asked for; 0: none.
    Attributes: pipelines: of the iterators that were made; python: that they call; reads: whether it is known by what the script reads; failed: why it measures no more, ""; hidden: a
        function draws by itself; thread: that reads; within, within_ns: calls of functions that it makes between its steps, and their time; times: how often there was what is in `spent`; tensorflow: it has been imported; looks: of TensorFlow's profiler, None: nobody asked for it; the others: as in `record`.
    """

    def __init__(self, steps: int = 0) -> None:
        self.steps = steps
        self.ways: Dict[str, Way] = {}
        self.quick = {name: Quick() for name in (*_READS, "call")}
        self.python = python.Calls()
        self.reads = self.hidden = False
        self.tensorflow = False
        self.pipelines: List[Dict[str, Any]] = []
        self._fed: Optional[Callable[[], Any]] = None
        self._sources: Dict[Optional[int], Optional[int]] = {}
        self.tunes, self.keeps = False, True
        self.version = ""
        self.spent: Dict[str, int] = {}
        self.times: Dict[str, int] = {}
        self.given: Optional[int] = None
        self.within = self.within_ns = 0
        self._began = clock()
        self._idled: Optional[Tuple[int, int]] = None
        self._disk: Optional[int] = None
        self._used = time.process_time()
        self.lines = lines.Lines(bool(steps))
        self.thread: Optional[int] = None
        self.failed = ""
        self._first_of = ""
        self._prepared = 0
        # on request only: what is always on starts no profiler
        self.looks = looks.Looks(steps, self.say_failed, self.wholly) if steps else None

    def draws_from(self, iterator: int, pipeline: Optional[int]) -> None:
        """An iterator has been made. Args: iterator: id of its resource; pipeline: its place in `pipelines`, None: it is none of them."""
        if len(self._sources) >= _MOST_SOURCES:
            self._sources.clear()
        self._sources[iterator] = pipeline

    def pass_done(self, pipeline: int) -> None:
        """A second iterator over a dataset is about to be made. Args: pipeline: its place in `pipelines`."""
        way = self.ways.get("dataset")
        if way is not None and self.thread == threading.get_ident():
            way.settle()
            self.pipelines[pipeline]["filled"] = way.waited.get(pipeline, 0)

    def way(self, name: str) -> Optional[Way]:
        """The clock of a way of reading, None: another thread than the one that reads asks."""
        thread = threading.get_ident()
        if self.thread != thread:
            if self.thread is not None and thread != threading.main_thread().ident:
                return None
            self.thread = thread
        found = self.ways.get(name)
        if found is None:
            found = self.ways[name] = Way(name, self._began, self.quick.get(name))
            self.reads = self.reads or name in _READS
        found.elsewhere = thread != threading.main_thread().ident
        return found

    def before(self, way: Way, of: Optional[int] = None, iterator: Optional[int] = None) -> int:
        """The script is about to make a step. Args: of: id of what it calls, or draws from; iterator: of the one that what it calls is handed. Returns: ns, now."""
        way.settle()
        now = clock()
        last = way.part
        way.turn(of)
        way.source = self._sources.get(of)
        if self.looks is not None and way.name in _READS:
            self.looks.before(way, last, now, self._sources.get(iterator) if iterator is not None else way.source)
        after = clock()
        way.skip(after - now)
        return after

    def after(self, way: Way, now: int) -> None:
        """It has made one. Args: now: ns, when."""
        if way.calls == 1:
            self.first_step(way)
        if way.calls == 2:
            # the first step's functions were made in it
            self.within = self.within_ns = 0
        if way.part.calls >= 3 and (self.looks is None or not self.looks.running):
            way.quick.thread, way.quick.until = self.thread, now + _QUICK_NS
        if self.looks is not None:
            self.looks.after(way, now)

    def first_step(self, way: Way) -> None:
        """The first step of a way is done: what Python did until then prepared it."""
        if not self._first_of or (self._first_of == "call" and way.name != "call"):
            self._first_of = way.name
            self._prepared = self.python.wall
            # until then, TensorFlow's own files were read
            self._disk = read()
            self.lines.again()

    def give_up(self) -> None:
        """End a look that is in the script's way, if one runs."""
        if self.looks is not None:
            self.looks.give_up()

    def say_failed(self, error: BaseException) -> None:
        """Why something was not measured. An error of the script's own kind may have no words."""
        try:
            self.failed = "%s: %s" % (type(error).__name__, error)
        except Exception:
            self.failed = type(error).__name__

    def stop(self, error: BaseException) -> None:
        """It is of no use any more; nothing of it is left running."""
        self.say_failed(error)
        self.wholly()
        if self.looks is not None:
            self.looks.no_more()

    def wholly(self) -> None:
        """From now on no step is a quick one, until one has been looked at wholly."""
        for quick in self.quick.values():
            quick.until = 0

    def add(self, what: str, ns: int) -> None:
        """Time that went into something else the doctor knows: checkpoint, summary, report, output; table: rows of one that the script has opened."""
        self.spent[what] = self.spent.get(what, 0) + ns
        self.times[what] = self.times.get(what, 0) + 1
        if what in _NO_INPUT:
            self.not_fed(ns)

    def not_fed(self, ns: int) -> None:
        """Time between two calls that are fed in which nothing is made for the next."""
        way = self._feeding()
        if way is not None:
            way.aside(ns)

    def follows(self, session: Any) -> None:
        """A run is about to be timed. Args: session: that is fed, None: it draws by itself. What is fed is made between runs of one session that
        follow each other."""
        way = self._feeding()
        if way is not None and (session is None or self._fed is None or self._fed() is not session):
            way.cut()
        if session is not None and (self._fed is None or self._fed() is not session):
            self._fed = weakref.ref(session)

    def _feeding(self) -> Optional[Way]:
        way = self.ways.get("feed_dict")
        return way if way is not None and way.last is not None and self.thread == threading.get_ident() else None

    def begin(self, given: Optional[int] = None) -> None:
        """`main` is entered. Args: given: rows that the task has got, None: nobody knows yet."""
        self.given = given
        self._began = clock()
        self._idled, self._disk = ticks(), read()
        self._used = time.process_time()
        try:
            self.lines.start()
        except RuntimeError as e:
            # no more threads may be started: the script may need none
            self.say_failed(e)

    def _read(self) -> Optional[Way]:
        """How the script reads: the way that took most of its time, None: in none that is known."""
        by_time = sorted(self.ways.values(), key=lambda one: (one.wait + one.between, one.batches))
        known, calls = [one for one in by_time if one.name != "call"], self.ways.get("call")
        if calls is None or not known:
            return by_time[-1] if by_time else None
        # batches that were all read before the first step are handed over like any other arrays
        before = known[-1].name == "batches" and known[-1].wait + known[-1].between < _LITTLE * (calls.wait + calls.between)
        return calls if before else known[-1]

    def record(self) -> Dict[str, Any]:
        """What the host is told, JSON."""
        try:
            return self._record()
        except Exception as e:
            self.say_failed(e)
            # of a script that has done nothing
            return Meter(self.steps)._record()

    def _settled(self) -> None:
        if self.looks is not None:
            self.looks.give_up("")
        self.lines.stop()
        self.wholly()
        for way in self.ways.values():
            way.settle()

    def _hindered(self, way: Way) -> str:
        """Why looks that were asked for told nothing of the steps that a way's calls hold, "": they did, or nobody knows. few: calls, of which the first three are not looked at."""
        if self.looks is None or way.looked:
            return ""
        return "few" if all(part.calls <= looks.UNLOOKED for part in way.parts.values()) else self.looks.hindered

    def _record(self) -> Dict[str, Any]:
        self._settled()
        way = self._read() or Way("", self._began)
        seconds = 1e-9
        calls = self.ways.get("call") or Way("call", self._began)
        looked = [part for part in way.parts.values() if part.looked]
        waited = ways.waited(way, looked)
        told = {
            "by": way.name,
            "asked": self.steps,
            "main": (clock() - self._began) * seconds,
            "lines": self.lines.record(),
            "looks": max(0, self.lines.looks),
            "watched": self.lines.watched(),
            "busy": sum(self.lines.busy) / len(self.lines.busy) if self.lines.busy else None,
            "cores": cores(),
            "cards": cards(),
            "disk": None if self._disk is None else max(0, (read() or 0) - self._disk),
            "idle": idle(self._idled, ticks()),
            "used": (time.process_time() - self._used) * 1e9 / max(1, clock() - self._began),
            "rows": way.rows,
            "given": self.given,
            "outside": way.between * seconds if way.name in (*INSIDE, "call") else 0.0,
            "first": way.first * seconds,
            "looked": way.looked,
            "hindered": self._hindered(way),
            "served": self.looks is not None and self.looks.served,
            "known": bool(looked) if way.name in INSIDE else way.name != "call",
            "hidden": self.hidden and way.name not in INSIDE,
            "elsewhere": way.elsewhere,
            "calls": {"calls": calls.calls, "inside": calls.wait * seconds, "outside": calls.between * seconds},
            "python": dict(self.python.record(), steps=(self.python.wall - self._prepared) * seconds),
            "nodes": weighed(looked),
            "look": sum(part.look_ns for part in looked) * seconds,
            "pipelines": [
                dict(one, waited=waited.get(place, 0) * seconds, filled=one.get("filled", 0) * seconds)
                for place, one in enumerate(self.pipelines)
            ],
            "tunes": self.tunes and any(one.get("tunes", True) for one in self.pipelines or [{}]),
            "version": self.version,
            "keeps": self.keeps,
            "tensorflow": self.tensorflow,
            "windows": [[at * seconds, count, took * seconds, gap * seconds] for at, count, took, gap in way.windows],
            "spent": {name: ns * seconds for name, ns in self.spent.items()},
            "times": dict(self.times),
            "within": {"calls": self.within, "inside": self.within_ns * seconds},
        }
        told.update(times(way, looked))
        return told


def cores() -> int:
    """Of the processor, that this task may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: of NVIDIA's, AMD's, Windows' below Linux, and other accelerators
_CARDS = ("nvidia[0-9]*", "kfd", "dxg", "accel", "accel[0-9]*", "apex_[0-9]*", "davinci[0-9]*")


def cards() -> Optional[bool]:
    """Whether there are devices of graphics cards here, None: this system has them elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    return any(glob.glob(os.path.join("/dev", name)) for name in _CARDS)


def read() -> Optional[int]:
    """Bytes that this process has had from disks since it started, None: this system does not say."""
    try:
        with open("/proc/self/io") as f:
            return int(f.read().split("\nread_bytes: ")[1].split()[0])
    except (OSError, ValueError, IndexError):
        return None


def ticks() -> Optional[Tuple[int, int]]:
    """(idle, all) of this machine's cores together since it started, None: it does not say."""
    try:
        with open("/proc/stat") as f:
            told = [int(part) for part in f.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return (told[3] + told[4], sum(told)) if len(told) == 8 else None


def idle(before: Optional[Tuple[int, int]], after: Optional[Tuple[int, int]]) -> Optional[float]:
    """Cores that nothing used, on average, between two looks at `ticks`; None: nobody knows."""
    if before is None or after is None or after[1] <= before[1]:
        return None
    share = min(1.0, max(0.0, float(after[0] - before[0]) / (after[1] - before[1])))
    return min(float(cores()), share * (os.cpu_count() or 1))
