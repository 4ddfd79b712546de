"""Where in the script Python is, now and then: its lines, and whose code each of them is in."""

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

#: seconds between two looks, on average: always, and where the doctor was asked for
_SELDOM, _OFTEN = 0.2, 0.005
#: seconds that a look waits once more, on average, after Python's lock was had, and after which a thread that computes lets it go meanwhile: where it came free the first
#: time, the script has let it go, which tells nothing of where its time goes
_MOMENT, _SOON = 0.0004, 0.00005
#: seconds for which the main thread's clock is watched after a look; looks that are enough to weigh them
_WINDOW, _ENOUGH = 0.0002, 20
#: seconds between two looks at the clocks of the script's other threads, at least, as these go by hundredths; of how many
_CLOCKS, _THREADS = 0.1, 4
_MOST = 200
_SHOWN = 12
#: Python's own modules in which one thread or process waits for another
_WAITING = ("queue", "threading", "multiprocessing", "concurrent")
#: what a line says that it does, by its text; what counts is the first of them
_DOES = (
    ("sleeps", re.compile(r"\bsleep\s*\(")),
    ("prints", re.compile(r"(?<![\w.])print\s*\(")),
    ("records", re.compile(
        r"\b(FromString|ParseFromString|MergeFromString|SerializeToString|parse_(single_)?(sequence_)?example|parse_tensor|decode_raw)\s*\("
        r"|\btrain\.(Example|SequenceExample|Features?|FeatureLists?|\w+List)\b|\.(float|int64|bytes)_list\b"
    )),
    ("texts", re.compile(r"\.(split|splitlines|rsplit|partition)\s*\(|\bjson\.loads\s*\(|\bcsv\.reader\s*\(|\bunpack(_from)?\s*\(")),
    ("tensors", re.compile(r"\b(tf|tensorflow)\.(constant|convert_to_tensor|stack|Variable|ragged\.constant|SparseTensor)\s*\(")),
    ("writes", re.compile(
        r"\.(write(lines|rows?)?|to_csv|to_json|to_parquet|savefig|savez?|dump|debug|info|warning|log)\s*\(|\bopen\s*\("
    )),
    ("loops", re.compile(r"^\s*(async\s+)?(for|while)\b")),
)  # fmt: skip
#: the head of a loop, what it goes through being made once: no comprehension, which works at each step
_HEAD = re.compile(r"^\s*(async\s+)?for\b(?!.*\bfor\b)")
_switched = threading.Lock()
_STDLIB = os.path.dirname(os.path.realpath(threading.__file__))


class Lines(object):
    """Looks at the script's threads until it is stopped.

    Attributes: also: is called at each look, None: nothing; looks: how often; seen: (thread is the main one, "file:line", package it is in, "" for the script itself) -> how often;
        busy: shares of the time in which graphics cards worked, where the doctor was asked for and one can be read.
    """

    def __init__(self, often: Any) -> None:
        self._often = often
        self._stopped = threading.Event()
        self.also: Optional[Callable[[], Any]] = None
        self.looks = 0
        self.seen: Dict[Tuple[bool, str, str], int] = {}
        self.busy: List[float] = []
        self._main = threading.main_thread().ident
        #: of the main thread's looks, those after which it went on computing; those after which it had no core, but was ready to
        self._computing: Dict[Tuple[bool, str, str], int] = {}
        self._ready: Dict[Tuple[bool, str, str], int] = {}
        #: where other threads are that the script has started, [looks at their clocks, those that found them computing]; id -> when, seconds that it had computed
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
        """The script has ended: what comes now is no time of its. Called again."""
        if self._ended is None:
            self._ended = (time.perf_counter(), self._cpu())
        self._stopped.set()

    def _run(self) -> None:
        self._looking(Cards() if self._often else None)

    def _looking(self, cards: Optional[Cards]) -> None:
        # looks at even distances fall into step with a loop, and meet the same line each time
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
                # a module, or a directory, went away meanwhile: the next look may be better
                continue
            if cards is not None and self.looks % 20 == 0:
                self.busy += cards.busy()

    def _look_around(self) -> Tuple[Optional[Tuple[bool, str, str]], Dict[int, Tuple[bool, str, str]]]:
        """No frame is held when it returns: what a function of the script has is to go with it, not with the next look. Returns: where the main thread is;
        id -> where another one is."""
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
        """See whether the main thread computes where it was seen. A look needs Python's lock, which comes free where a thread waits: so what waits is met far
        more often than what computes, and only the processor's clock tells how much of the time each is."""
        if self._clock is None or at is None:
            return
        cpu, began = self._cpu(), time.perf_counter()
        self._stopped.wait(_WINDOW)
        if self._cpu() - cpu >= 0.5 * (time.perf_counter() - began):
            self._computing[at] = self._computing.get(at, 0) + 1
        elif state(os.getpid())[0] == "R":
            # other processes have the cores; where it waits for a network, a lock or a clock, it sleeps
            self._ready[at] = self._ready.get(at, 0) + 1

    def _weigh_others(self, others: Dict[int, Tuple[bool, str, str]]) -> None:
        """See which of the threads that the script has started itself compute. TensorFlow's, which call the Python of a pipeline, are timed (`python`)."""
        now = time.perf_counter()
        if now - self._read < _CLOCKS:
            return
        self._read = now
        for thread, key in list(others.items())[:_THREADS]:
            started = threading._active.get(thread)  # type: ignore[attr-defined]
            # Python 3.7 does not know it; one that Python has not started has no name of its own
            tid = None if isinstance(started, threading._DummyThread) else getattr(started, "native_id", None)
            how, seconds = state(tid) if tid else ("", 0.0)
            at, before = self._clocks.get(thread, (now, seconds))
            self._clocks[thread] = now, seconds
            if how and at < now:
                sums = self._others.setdefault(key, [0, 0])
                sums[0] += 1
                sums[1] += how == "R" or seconds - before >= 0.5 * (now - at)

    def _cpu(self) -> float:
        """Seconds of the processor that the main thread has used."""
        return time.clock_gettime(self._clock) if self._clock is not None else 0.0

    def again(self) -> None:
        """Forget what has been seen: the first step is done, and what prepared it is no part of the steps."""
        self.seen, self.looks, self._computing, self._ready, self._others = {}, 0, {}, {}, {}
        self._began = (time.perf_counter(), self._cpu())

    def _look(self, main: bool, frame: Optional[FrameType]) -> Optional[Tuple[bool, str, str]]:
        inner = None
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib"):
                # what is imported is done once
                self.looks -= main
                return None
            if pipeline.is_script(name):
                key = (main, "%s:%d" % (name, frame.f_lineno), "" if inner is None else package(inner))
                if key in self.seen or len(self.seen) < _MOST:
                    self.seen[key] = self.seen.get(key, 0) + 1
                return key
            # our clocks stand between the script and what it calls
            inner = inner if name == shown.NAME else name
            frame = frame.f_back
        return None

    def _weighed(self) -> Dict[Tuple[bool, str, str], float]:
        """How often each was seen, as if what computes were met as often as what waits."""
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
        """[{"main", "at", "in", "share", "does", "computes"}], the most frequent first: does: by its text, computes: of its looks, after which the
        thread went on computing, or would have if it had had a core."""
        often = sorted(self._weighed().items(), key=lambda one: (-one[1], one[0]))[:_SHOWN]
        return [
            {
                "main": main, "at": at, "in": name, "share": float(count) / max(1, self.looks), "does": does(at),
                "computes": self._computes((main, at, name)),
            }
            for (main, at, name), count in often
        ]  # fmt: skip

    def watched(self) -> float:
        """Seconds since what `record` tells of began, until the script has ended."""
        return (self._ended[0] if self._ended else time.perf_counter()) - self._began[0]

    def _computes(self, key: Tuple[bool, str, str]) -> float:
        looks, some = self._others.get(key, (0, 0))
        if key[0]:
            looks, some = self.seen.get(key, 0), self._computing.get(key, 0) + self._ready.get(key, 0)
        return float(some) / max(1, looks)


def does(at: str) -> str:
    """What a line does that takes long where it is done for each row or step, "": none of what is known. Args: at: file:line."""
    path, _, line = at.rpartition(":")
    try:
        text = linecache.getline(path, int(line)).partition("#")[0]
    except Exception:
        # a file that has gone, or is no text
        return ""
    if _HEAD.match(text):
        # of a loop over a dataset it is the waiting; what its maps do stands there, too
        return "loops"
    return next((name for name, pattern in _DOES if pattern.search(text)), "")


@contextlib.contextmanager
def _switching(seconds: float) -> Iterator[None]:
    """Have threads that compute in Python let others go on after so many seconds; if that is so already, for another, nothing is changed."""
    if not _switched.acquire(False):
        yield
        return
    try:
        before = sys.getswitchinterval()
        sys.setswitchinterval(seconds)
        try:
            yield
        finally:
            # unless the script has set another
            if abs(sys.getswitchinterval() - seconds) < 2e-6:
                # Python keeps whole microseconds, cut off: of what it tells, one would be lost each time
                sys.setswitchinterval(before + 0.5e-6)
    finally:
        _switched.release()


def package(name: str) -> str:
    """Whose a file is: the package below site-packages; what Python itself has to wait for others (queue, threading); else ""."""
    parts = name.replace("\\", "/").split("/site-packages/")
    if len(parts) > 1:
        return parts[-1].split("/")[0].replace(".py", "")
    path = os.path.realpath(name)
    own = os.path.relpath(path, _STDLIB).split(os.sep)[0].replace(".py", "") if path.startswith(_STDLIB + os.sep) else ""
    return own if own in _WAITING else ""


def _clock_of(thread: Optional[int]) -> Optional[int]:
    """The clock of a thread's processor time, None: this system has none."""
    find = getattr(time, "pthread_getcpuclockid", None)
    return int(find(thread)) if find is not None and thread is not None else None


def state(tid: int) -> Tuple[str, float]:
    """How a thread of this process is (R: it computes, or would if it had a core; S, D: it waits), and seconds that it has computed; "": this system does not say, or it has
    gone. Args: tid: of the system's, that of the main thread is the process's."""
    try:
        with open("/proc/self/task/%d/stat" % tid) as f:
            told = f.read().rpartition(")")[2].split()
        return told[0], (int(told[11]) + int(told[12])) / float(os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return "", 0.0


class Cards(object):
    """Graphics cards, where NVIDIA's library can be asked: nothing is installed for it."""

    def __init__(self) -> None:
        self._cards: List[Any] = []
        self._nvml: Any = None
        try:
            import importlib

            self._nvml = importlib.import_module("pynvml")
            self._nvml.nvmlInit()
            self._cards = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
        except Exception:
            # no library, no driver, or no card: nothing is said of it
            self._nvml = None

    def busy(self) -> List[float]:
        """Shares of the last moment in which each card worked."""
        try:
            return [self._nvml.nvmlDeviceGetUtilizationRates(card).gpu / 100.0 for card in self._cards]
        except Exception:
            self._cards = []
            return []
