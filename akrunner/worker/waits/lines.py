"""Samples where Python is: on which line of the script, and in whose code that line's call is."""

from __future__ import annotations

import contextlib
import linecache
import os
import random
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

from akrunner.worker.waits import pipeline, shown

if TYPE_CHECKING:
    from types import FrameType

#: seconds between two looks, on average: usually, and if the user has asked for the input doctor
_SELDOM, _OFTEN = 0.2, 0.005
#: seconds that a look waits once more, on average, after it has got Python's lock; and seconds after which a computing thread
#: gives the lock up meanwhile. When the look first gets the lock, the script is where it has given it up, which says nothing
#: about where its time goes
_MOMENT, _SOON = 0.0004, 0.00005
#: seconds for which the main thread's clock is watched after a look; how many looks are enough to weigh them
_WINDOW, _ENOUGH = 0.0002, 20
#: least seconds between two looks at the processor time of the script's other threads, whose clocks advance in hundredths of a
#: second; how many of these threads are looked at
_CLOCKS, _THREADS = 0.1, 4
#: how many lines are counted, and how many the record has
_MOST = 200
_SHOWN = 12
#: Python's own modules in which one thread or process waits for another
_WAITING = ("queue", "threading", "multiprocessing", "concurrent")
#: what a line does, judged by its text; the first pattern that matches counts. They are compiled when a line
#: is judged, not while each worker process starts
_DOES = (
    ("sleeps", r"\bsleep\s*\("),
    ("prints", r"(?<![\w.])print\s*\("),
    ("records", (
        r"\b(FromString|ParseFromString|MergeFromString|SerializeToString|parse_(single_)?(sequence_)?example|parse_tensor|decode_raw)\s*\("
        r"|\btrain\.(Example|SequenceExample|Features?|FeatureLists?|\w+List)\b|\.(float|int64|bytes)_list\b"
    )),
    ("texts", r"\.(split|splitlines|rsplit|partition)\s*\(|\bjson\.loads\s*\(|\bcsv\.reader\s*\(|\bunpack(_from)?\s*\("),
    ("tensors", r"\b(tf|tensorflow)\.(constant|convert_to_tensor|stack|Variable|ragged\.constant|SparseTensor)\s*\("),
    ("writes", (
        r"\.(write(lines|rows?)?|to_csv|to_json|to_parquet|savefig|savez?|dump|debug|info|warning|log)\s*\(|\bopen\s*\("
    )),
    ("loops", r"^\s*(async\s+)?(for|while)\b"),
)  # fmt: skip
#: the head of a loop: what it iterates over is made once; not if it contains a comprehension, which works at each step
_HEAD = r"^\s*(async\s+)?for\b(?!.*\bfor\b)"
#: stands for a package in the key of a look that found the line in next() of its input
_NEXT = "next()"
_switched = threading.Lock()
_STDLIB = os.path.dirname(os.path.realpath(threading.__file__))


class Lines(object):
    """Looks at the script's threads again and again, until it is stopped.

    Attributes:
        also: a function that is called at each look, None for none.
        looks: the number of looks so far.
        seen: (whether the thread is the main one, "file:line" in the script, the package that the line has called, "" for
            the script itself, or _NEXT) -> how often it was seen.
        busy: shares of the time in which graphics cards worked; empty unless the user has asked for the doctor and the cards
            can be read.
    """

    def __init__(self, often: Any) -> None:
        self._often = often
        self._stopped = threading.Event()
        self.also: Optional[Callable[[], Any]] = None
        self.looks = 0
        self.seen: Dict[Tuple[bool, str, str], int] = {}
        self.busy: List[float] = []
        self._main = threading.main_thread().ident
        #: looks after which the main thread went on computing; looks after which it was ready to, but had no core
        self._computing: Dict[Tuple[bool, str, str], int] = {}
        self._ready: Dict[Tuple[bool, str, str], int] = {}
        #: where a thread that the script has started is -> [looks at its clock, looks that found it computing]; id of a
        #: thread -> time of the last look, and the seconds that it had computed by then
        self._others: Dict[Tuple[bool, str, str], List[int]] = {}
        self._clocks: Dict[int, Tuple[float, float]] = {}
        self._read = 0.0
        self._clock = _clock_of(self._main)
        self._began = (time.perf_counter(), self._cpu())
        self._ended: Optional[Tuple[float, float]] = None
        self._thread = threading.Thread(target=self._run, name="akrunner-lines", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the looks: the script has ended, and the time from now on is not the script's. May be called again."""
        if self._ended is None:
            self._ended = (time.perf_counter(), self._cpu())
        self._stopped.set()

    def _run(self) -> None:
        self._looking(Cards() if self._often else None)

    def _looking(self, cards: Optional[Cards]) -> None:
        # with looks at even intervals, a loop could be in step with them, and be met on the same line each time
        distances = random.Random(0)
        mean = _OFTEN if self._often else _SELDOM
        while not self._stopped.wait(mean * distances.uniform(0.5, 1.5)):
            self.looks += 1
            try:
                if self.also is not None:
                    self.also()
                with _switching(_SOON):
                    self._stopped.wait(_MOMENT * distances.uniform(0.5, 1.5))
                    at, others = self._look_around()
                self._weigh(at)
                self._weigh_others(others)
            except Exception:
                # a module, or a directory, has gone meanwhile: the next look may succeed
                continue
            if cards is not None and self.looks % 20 == 0:
                self.busy += cards.busy()

    def _look_around(self) -> Tuple[Optional[Tuple[bool, str, str]], Dict[int, Tuple[bool, str, str]]]:
        """Look at all threads once.

        No frame is held when this returns: the objects of a function of the script must be freed when the function ends, not
        at the next look.

        Returns:
            Where the main thread is, None if it is not in the script; and a dict: id of another thread -> where it is.
        """
        own, at, others = threading.get_ident(), None, {}
        for thread, frame in sys._current_frames().items():
            if thread != own:
                key = self._look(thread == self._main, frame)
                if thread == self._main:
                    at = key
                elif key is not None:
                    others[thread] = key
        return at, others

    def _weigh(self, at: Optional[Tuple[bool, str, str]]) -> None:
        """Find out whether the main thread computes where it was seen.

        A look needs Python's lock, which becomes free where a thread waits. So waiting is seen far more often than computing,
        and only the thread's processor time tells how much of the time is which.
        """
        if self._clock is None or at is None:
            return
        cpu, began = self._cpu(), time.perf_counter()
        self._stopped.wait(_WINDOW)
        if self._cpu() - cpu >= 0.5 * (time.perf_counter() - began):
            self._computing[at] = self._computing.get(at, 0) + 1
        elif state(os.getpid())[0] == "R":
            # the thread is ready, but other processes have the cores; if it waited for a network, a lock or a clock, it would
            # sleep
            self._ready[at] = self._ready.get(at, 0) + 1

    def _weigh_others(self, others: Dict[int, Tuple[bool, str, str]]) -> None:
        """Find out which of the threads that the script itself has started compute.

        TensorFlow's threads, which call the Python code of a pipeline, are timed by `python`.
        """
        now = time.perf_counter()
        if now - self._read < _CLOCKS:
            return
        self._read = now
        for thread, key in list(others.items())[:_THREADS]:
            started = threading._active.get(thread)  # type: ignore[attr-defined]
            # Python 3.7 has no native_id; a thread that Python has not started has no id to ask for
            tid = None if isinstance(started, threading._DummyThread) else getattr(started, "native_id", None)
            how, seconds = state(tid) if tid else ("", 0.0)
            at, before = self._clocks.get(thread, (now, seconds))
            self._clocks[thread] = now, seconds
            if how and at < now:
                sums = self._others.setdefault(key, [0, 0])
                sums[0] += 1
                sums[1] += how == "R" or seconds - before >= 0.5 * (now - at)

    def _cpu(self) -> float:
        """Return the seconds of processor time that the main thread has used; 0 if the system does not tell."""
        return time.clock_gettime(self._clock) if self._clock is not None else 0.0

    def again(self) -> None:
        """Forget what has been seen so far: the first step is done, and its preparation is not a part of the steps."""
        self.seen, self.looks, self._computing, self._ready, self._others = {}, 0, {}, {}, {}
        self._began = (time.perf_counter(), self._cpu())

    def _look(self, main: bool, frame: Optional[FrameType]) -> Optional[Tuple[bool, str, str]]:
        inner, draws = None, False
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib"):
                # an import happens only once, so it is not counted
                self.looks -= main
                return None
            if pipeline.is_script(name):
                called = _NEXT if draws else "" if inner is None else package(inner)
                key = (main, "%s:%d" % (name, frame.f_lineno), called)
                if key in self.seen or len(self.seen) < _MOST:
                    self.seen[key] = self.seen.get(key, 0) + 1
                return key
            # skip the frames of akrunner's clocks, which stand between the script and the code that it calls
            inner = inner if name == shown.NAME else name
            draws = draws or _draws(name, frame.f_code.co_name)
            frame = frame.f_back
        return None

    def _weighed(self) -> Dict[Tuple[bool, str, str], float]:
        """Return how often each line was seen, corrected as if computing were seen as often as waiting."""
        found = {key: float(count) for key, count in self.seen.items()}
        looks = sum(count for key, count in self.seen.items() if key[0])
        now, used = self._ended or (time.perf_counter(), self._cpu())
        wall, cpu = now - self._began[0], used - self._began[1]
        computing = sum(self._computing.values()) / float(looks) if looks else 0.0
        if self._clock is None or wall <= 0 or not 0 < computing < 1 or looks < _ENOUGH:
            return found
        share = min(1.0, cpu / wall)
        for key in [key for key in found if key[0]]:
            some = self._computing.get(key, 0)
            found[key] = some * share / computing + (self.seen[key] - some) * (1 - share) / (1 - computing)
        return found

    def record(self) -> List[Dict[str, Any]]:
        """Return the lines that were seen most often, the most frequent first.

        Each is a dict: "main", whether the thread is the main one; "at", "file:line"; "in", the package that the line has
        called, "" for the script itself; "share" of the looks; "does", what the line does by its text; "computes", the share
        of the line's looks after which the thread went on computing, or would have with a core. If a line was found in next()
        of its input, it is the head of a loop, also if it is a comprehension within a call of `print`.
        """
        often = sorted(self._weighed().items(), key=lambda one: (-one[1], one[0]))[:_SHOWN]
        return [
            {
                "main": main, "at": at, "in": "tensorflow" if name == _NEXT else name,
                "share": float(count) / max(1, self.looks), "does": "loops" if name == _NEXT else does(at),
                "computes": self._computes((main, at, name)),
            }
            for (main, at, name), count in often
        ]  # fmt: skip

    def watched(self) -> float:
        """Return the seconds that `record` covers: up to now, or to the script's end."""
        return (self._ended[0] if self._ended else time.perf_counter()) - self._began[0]

    def _computes(self, key: Tuple[bool, str, str]) -> float:
        looks, some = self._others.get(key, (0, 0))
        if key[0]:
            looks, some = self.seen.get(key, 0), self._computing.get(key, 0) + self._ready.get(key, 0)
        return float(some) / max(1, looks)


def does(at: str) -> str:
    """Return a word for what a line does, if it is something that takes long when done for each row or step; otherwise "".

    Args:
        at: "file:line".
    """
    path, _, line = at.rpartition(":")
    try:
        text = linecache.getline(path, int(line)).partition("#")[0]
    except Exception:
        # the file has gone, or is not text
        return ""
    if re.match(_HEAD, text):
        # in the head of a loop over a dataset, the script waits for it; the head may also contain calls of the dataset's
        # maps, which must not be taken for the loop's work
        return "loops"
    return next((name for name, pattern in _DOES if re.search(pattern, text)), "")


def _draws(path: str, function: str) -> bool:
    """Whether a function of akrunner's clocks times next() of an input: of a dataset, or of `task_config.batches()`."""
    return (path == shown.NAME and function == "draw") or (path.startswith(pipeline.HERE) and function == "batches")


@contextlib.contextmanager
def _switching(seconds: float) -> Iterator[None]:
    """Set the switch interval: a thread that computes in Python lets others run after so many seconds.

    If another thread has done that already and is not done, nothing is changed.
    """
    if not _switched.acquire(False):
        yield
        return
    try:
        before = sys.getswitchinterval()
        sys.setswitchinterval(seconds)
        try:
            yield
        finally:
            # restore it unless the script has set another one
            if abs(sys.getswitchinterval() - seconds) < 2e-6:
                # Python keeps whole microseconds, rounded down: without the half, one would be lost each time
                sys.setswitchinterval(before + 0.5e-6)
    finally:
        _switched.release()


def package(name: str) -> str:
    """Return the package below site-packages that a file belongs to, or Python's own module for waiting (queue, threading).

    Return "" for any other file.
    """
    parts = name.replace("\\", "/").split("/site-packages/")
    if len(parts) > 1:
        return parts[-1].split("/")[0].replace(".py", "")
    path = os.path.realpath(name)
    own = os.path.relpath(path, _STDLIB).split(os.sep)[0].replace(".py", "") if path.startswith(_STDLIB + os.sep) else ""
    return own if own in _WAITING else ""


def _clock_of(thread: Optional[int]) -> Optional[int]:
    """Return the id of the clock of a thread's processor time; None if the system has none."""
    find = getattr(time, "pthread_getcpuclockid", None)
    return int(find(thread)) if find is not None and thread is not None else None


def state(tid: int) -> Tuple[str, float]:
    """Return the state of a thread of this process, and the seconds that it has computed.

    Args:
        tid: the system's id of the thread; the main thread's is the process's id.
    Returns:
        "R" (the thread computes, or would if it had a core), or "S" or "D" (it waits); "" if the system does not tell, or the
        thread has gone. And seconds of processor time.
    """
    try:
        with open("/proc/self/task/%d/stat" % tid) as f:
            told = f.read().rpartition(")")[2].split()
        return told[0], (int(told[11]) + int(told[12])) / float(os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return "", 0.0


class Cards(object):
    """The graphics cards, if NVIDIA's library (pynvml) is there to ask. It is not installed for this."""

    def __init__(self) -> None:
        self._cards: List[Any] = []
        self._nvml: Any = None
        try:
            import importlib

            self._nvml = importlib.import_module("pynvml")
            self._nvml.nvmlInit()
            self._cards = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
        except Exception:
            # no library, no driver, or no card: nothing is reported
            self._nvml = None

    def busy(self) -> List[float]:
        """Return, for each card, the share of the last moment in which it worked; [] if they cannot be read."""
        try:
            return [self._nvml.nvmlDeviceGetUtilizationRates(card).gpu / 100.0 for card in self._cards]
        except Exception:
            self._cards = []
            return []
