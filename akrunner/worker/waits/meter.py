"""Measures how long the script waits for its input, step by step.

::

    step     | next() ......... | train, print, write ... |
               wait               between                     (dataset, batches: each step is timed)
             | call of a function or session ..... | ...  |
               wait, somewhere in it                          (only steps that are looked at, on request, show how much)

The first step is not counted: graphs are built in it, and buffers filled.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set, Tuple, cast

from akrunner.wire.messages import Input
from akrunner.worker import reached
from akrunner.worker.waits import lines, looks, python, ways
from akrunner.worker.waits.ways import INSIDE, Quick, Way, times, weighed

if TYPE_CHECKING:
    from akrunner.worker.waits.pipeline import Size

#: ways that show by what means the script reads. The way "call" (functions that are handed their input) shows only times
_READS = ("dataset", "function", "session", "feed_dict")
#: a step that begins within so many ns after a step that was timed in full is only counted, and its waiting is added up
_QUICK_NS = 10 * 1000 * 1000
#: activities of `Meter.add` that do not make input
_NO_INPUT = ("checkpoint", "summary", "report", "output")
#: if `batches` took less than this share of the time of functions that are handed their input, the script reads by the
#: functions
_LITTLE = 0.1
#: how many iterators are remembered with their pipelines; most of them are gone by then
_MOST_SOURCES = 1024

clock = time.perf_counter_ns


class Meter(object):
    """The clocks of one task.

    Args:
        steps: how many steps the user has asked to look at, 0 for none.
    Attributes:
        pipelines: the pipelines of the iterators that were made.
        python: the calls of Python code by the pipelines.
        reads: whether it is known by what means the script reads.
        failed: why the meter no longer measures something, "" if nothing failed.
        hidden: whether a function draws from an iterator by itself, so that its waiting cannot be timed.
        thread: the id of the thread that reads.
        within, within_ns: how often the script has called functions between its steps, and the time of these calls in ns.
        times: activity -> how often it was added to `spent`.
        tensorflow: whether TensorFlow has been imported.
        looks: the looks by TensorFlow's profiler, None if the user has not asked for them.
        batches: how many batches the dataset has over which an iterator was made last, None: not known.

    The other attributes are as in `record`.
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
        self._fresh: Set[int] = set()
        self._drawn: Dict[int, int] = {}
        self._sizes: Dict[int, Optional[Size]] = {}
        self._epoch: Optional[Tuple[Way, Size, int, int]] = None
        self.batches: Optional[int] = None
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
        # on request only: the meter, which always runs, starts no profiler by itself
        self.looks = looks.Looks(steps, self.say_failed, self.wholly) if steps else None

    def draws_from(self, iterator: int, pipeline: Optional[int], size: Optional[Size] = None) -> None:
        """Remember from which pipeline an iterator draws.

        Args:
            iterator: the id of the iterator's resource.
            pipeline: the pipeline's index in `pipelines`, None if it is not among them.
            size: how many rows and batches it has, None: not known.
        """
        if len(self._sources) >= _MOST_SOURCES:
            self._sources.clear()
            self._fresh.clear()
            self._sizes.clear()
        self._sizes[iterator] = size
        self.batches = size[2] if size is not None else None
        self._sources[iterator] = pipeline
        self._fresh.add(iterator)
        # a function may be handed this iterator in its next step
        self.wholly()

    def pass_done(self, pipeline: int) -> None:
        """Note the waiting of the first pass over a dataset, as a second iterator is about to be made.

        Args:
            pipeline: the index of its pipeline in `pipelines`.
        """
        way = self.ways.get("dataset")
        if way is not None and self.thread == threading.get_ident():
            way.settle()
            self.pipelines[pipeline]["filled"] = way.waited.get(pipeline, 0)

    def way(self, name: str) -> Optional[Way]:
        """Return the clock of a way of reading; None if the calling thread is not the one that reads."""
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
        """Prepare for a step that the script is about to make.

        Args:
            way: the way in which the step reads.
            of: the id of the function or graph that it calls, or of the iterator that it draws from.
            iterator: the id of the iterator that the called function is handed.
        Returns:
            The time at which the step begins, in ns.
        """
        way.settle()
        now = clock()
        last = way.part
        way.turn(of)
        way.source = self._sources.get(of)
        source = self._sources.get(iterator) if iterator is not None else way.source
        self._draw(way, iterator if iterator is not None else of, source)
        if self.looks is not None and way.name in _READS:
            self.looks.before(way, last, now, source)
        after = clock()
        way.skip(after - now)
        return after

    def _draw(self, way: Way, iterator: Optional[int], pipeline: Optional[int]) -> None:
        """Count an iterator that is drawn from for the first time. Keras 3 makes one at the end of each epoch that it never uses."""
        if iterator in self._fresh and pipeline is not None:
            self._fresh.discard(iterator)
            self._drawn[pipeline] = self._drawn.get(pipeline, 0) + 1
            size = self._sizes.get(iterator)
            # of a function that draws by itself nobody knows how much
            known = size is not None and way.name == "dataset" and way.rows is not None
            self._epoch = (way, size, way.rows or 0, way.ended.get(pipeline, 0)) if known and size is not None else None

    def tell(self) -> None:
        """Tell the host how far the script is in the rows of a dataset that it reads step by step. Called from another thread."""
        course, epoch = reached.current(), self._epoch
        if course is None or epoch is None:
            return
        way, (rows, epochs, _), before, ended = epoch
        if way.rows is None or not rows:
            return
        quick = way.quick
        done = way.rows + (quick.rows if quick.at is not None else quick.calls) - before
        if epochs == 1:
            course.tell(reached.ROWS, min(done, rows), rows, ended + 1)
        else:
            at = done // rows if epochs is None else min(done // rows, epochs - 1)
            course.tell(reached.ROWS, min(done - at * rows, rows), rows, at + 1, epochs)

    def after(self, way: Way, now: int) -> None:
        """Note that the script has made a step. Args: way: the way in which it reads; now: the time, in ns."""
        if way.calls == 1:
            self.first_step(way)
        if way.calls == 2:
            # functions that were called before or in the first step were built then: they do not count
            self.within = self.within_ns = 0
            self.steps_begin(way)
        if way.part.calls >= 3 and (self.looks is None or not self.looks.running):
            way.quick.thread, way.quick.until = self.thread, now + _QUICK_NS
        if self.looks is not None:
            self.looks.after(way, now)

    def first_step(self, way: Way) -> None:
        """Note that the first step of a way is done. What Python did until then was preparation."""
        if not self._first_of or (self._first_of == "call" and way.name != "call"):
            self._first_of = way.name
            self._prepared = self.python.wall
            # what was read from disk until then includes TensorFlow's own files
            self._disk = read()
            self.lines.again()

    def steps_begin(self, way: Way) -> None:
        """Note that the first step of a way has ended, so that what was spent until then is in none of the steps that count."""
        way.early = {what: (ns, self.times[what]) for what, ns in self.spent.items()}

    def give_up(self) -> None:
        """End a look that is in the script's way, if one runs."""
        if self.looks is not None:
            self.looks.give_up()

    def say_failed(self, error: BaseException) -> None:
        """Note the error because of which something was not measured.

        An error of the script's own class may fail to give its text.
        """
        try:
            self.failed = "%s: %s" % (type(error).__name__, error)
        except Exception:
            self.failed = type(error).__name__

    def stop(self, error: BaseException) -> None:
        """Stop measuring because of an error, and leave nothing running."""
        self.say_failed(error)
        self.wholly()
        if self.looks is not None:
            self.looks.no_more()

    def wholly(self) -> None:
        """Time no step quickly until one has been timed in full."""
        for quick in self.quick.values():
            quick.until = 0

    def add(self, what: str, ns: int) -> None:
        """Add time that went into something other than reading and computing.

        Args:
            what: the activity: "checkpoint", "summary", "report", "output", or "table" (rows of a table that the script has
                opened).
            ns: its time.
        """
        self.spent[what] = self.spent.get(what, 0) + ns
        self.times[what] = self.times.get(what, 0) + 1
        if what in _NO_INPUT:
            self.not_fed(ns)

    def not_fed(self, ns: int) -> None:
        """Add time between two runs that are fed, in which the script did not make the input of the next.

        Args:
            ns: that time.
        """
        way = self._feeding()
        if way is not None:
            way.aside(ns)

    def follows(self, session: Any) -> None:
        """Prepare for a run that is about to be timed.

        The time between two runs counts as making the input only if the same session is fed in both, one right after the other.

        Args:
            session: the session if it is fed, None if it draws from an iterator.
        """
        way = self._feeding()
        if way is not None and (session is None or self._fed is None or self._fed() is not session):
            way.cut()
        if session is not None and (self._fed is None or self._fed() is not session):
            self._fed = weakref.ref(session)

    def _feeding(self) -> Optional[Way]:
        way = self.ways.get("feed_dict")
        return way if way is not None and way.last is not None and self.thread == threading.get_ident() else None

    def begin(self, given: Optional[int] = None) -> None:
        """Start measuring: the script's `main` is about to run.

        Args:
            given: rows that the task has got, None if not known yet.
        """
        self.given = given
        self._began = clock()
        self._idled, self._disk = ticks(), read()
        self._used = time.process_time()
        try:
            self.lines.start()
        except RuntimeError as e:
            # the process may not start another thread; the script may need none
            self.say_failed(e)

    def _read(self) -> Optional[Way]:
        """Return the way in which the script reads: the one that took most of its time; None if none is known."""
        by_time = sorted(self.ways.values(), key=lambda one: (one.wait + one.between, one.batches))
        known, calls = [one for one in by_time if one.name != "call"], self.ways.get("call")
        if calls is None or not known:
            return by_time[-1] if by_time else None
        # if the script read all batches before the first step, it hands them to its functions like any other arrays
        before = known[-1].name == "batches" and known[-1].wait + known[-1].between < _LITTLE * (calls.wait + calls.between)
        return calls if before else known[-1]

    def record(self) -> Input:
        """Return the record for the host, as JSON values."""
        try:
            return self._record()
        except Exception as e:
            self.say_failed(e)
            # the record of a script that has done nothing
            return Meter(self.steps)._record()

    def _settled(self) -> None:
        if self.looks is not None:
            self.looks.give_up("")
        self.lines.stop()
        self.wholly()
        for way in self.ways.values():
            way.settle()

    def _hindered(self, way: Way) -> str:
        """Return why the looks that the user has asked for showed nothing of a way's steps.

        Return "" if they showed something, or if the reason is unknown. The reason is "few" if there were too few calls, as
        the first three are not looked at; otherwise as `Looks.hindered`.
        """
        if self.looks is None or way.looked:
            return ""
        return "few" if all(part.calls <= looks.UNLOOKED for part in way.parts.values()) else self.looks.hindered

    def _pipelines(self, way: Way, waited: Dict[Optional[int], float]) -> List[Dict[str, Any]]:
        """Return the pipelines with what is known of them at the end. Args: waited: pipeline -> ns of waiting for it."""
        seconds, ended = 1e-9, dict(way.ended)
        if len(self.pipelines) == 1:
            # whatever came to its end: of a session's graph it is not known which pipeline it draws from
            ended = {0: sum(ended.values())}
        return [
            dict(
                one,
                # of some kinds of iterators it is not seen when they are drawn from
                passes=self._drawn.get(place) or one["passes"],
                waited=waited.get(place, 0) * seconds,
                filled=one.get("filled", 0) * seconds,
                ended=ended.get(place, 0),
            )
            for place, one in enumerate(self.pipelines)
        ]

    def _record(self) -> Input:
        self._settled()
        way = self._read() or Way("", self._began)
        seconds = 1e-9
        calls = self.ways.get("call") or Way("call", self._began)
        looked = [part for part in way.parts.values() if part.looked]
        waited = ways.waited(way, looked)
        told: Dict[str, Any] = {
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
            "pipelines": self._pipelines(way, waited),
            "tunes": self.tunes and any(one.get("tunes", True) for one in self.pipelines or [{}]),
            "version": self.version,
            "keeps": self.keeps,
            "tensorflow": self.tensorflow,
            "windows": [[at * seconds, count, took * seconds, gap * seconds] for at, count, took, gap in way.windows],
            "spent": {name: ns * seconds for name, ns in self.spent.items()},
            "times": dict(self.times),
            "early": {name: ns * seconds for name, (ns, _) in way.early.items()},
            "early_times": {name: often for name, (_, often) in way.early.items()},
            "within": {"calls": self.within, "inside": self.within_ns * seconds},
        }
        told.update(times(way, looked))
        # pipelines have further facts, which only the host's rules know
        record: Input = cast(Any, told)
        return record


def cores() -> int:
    """Return the number of processor cores that this task may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: device files of AMD's cards, of Windows' cards in its Linux, and of accelerators
_CARDS = ("kfd", "dxg", "accel")
#: those of NVIDIA's cards and of other accelerators, before their number
_NUMBERED = ("nvidia", "accel", "apex_", "davinci")


def cards() -> Optional[bool]:
    """Return whether this machine has device files of graphics cards; None on systems other than Linux, which have none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return any(map(_is_card, os.listdir("/dev")))
    except OSError:
        return False


def _is_card(name: str) -> bool:
    return name in _CARDS or any(name[len(kind) : len(kind) + 1].isdigit() for kind in _NUMBERED if name.startswith(kind))


def read() -> Optional[int]:
    """Return the bytes that this process has read from disks since it started; None if the system does not tell."""
    try:
        with open("/proc/self/io") as f:
            return int(f.read().split("\nread_bytes: ")[1].split()[0])
    except (OSError, ValueError, IndexError):
        return None


def ticks() -> Optional[Tuple[int, int]]:
    """Return (idle, all) clock ticks of all of this machine's cores since it started; None if the system does not tell."""
    try:
        with open("/proc/stat") as f:
            told = [int(part) for part in f.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return (told[3] + told[4], sum(told)) if len(told) == 8 else None


def idle(before: Optional[Tuple[int, int]], after: Optional[Tuple[int, int]]) -> Optional[float]:
    """Return how many cores were idle on average between two results of `ticks`; None if it is unknown."""
    if before is None or after is None or after[1] <= before[1]:
        return None
    share = min(1.0, max(0.0, float(after[0] - before[0]) / (after[1] - before[1])))
    return min(float(cores()), share * (os.cpu_count() or 1))
