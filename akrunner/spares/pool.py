"""Spare workers of this process: started in the background, taken by jobs, replaced, ended.

::

    job ---- take ---->  Pool: the spares             one that fits goes to the job, the others stay
                           ^ starts and ends them
    this pool's thread ----+                          what the last jobs wanted, while the processor has nothing else to do
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

import psutil

from akrunner import leftovers
from akrunner.foreign import in_words
from akrunner.launch.bundle import bundle_bytes
from akrunner.launch.capacity import memory_left
from akrunner.leftovers.private import private_file
from akrunner.spares.spare import Answer, Spare
from akrunner.spares.wanted import Wanted, surroundings

_TICK = 0.25
#: cores that have nothing to do when a spare is replaced
_IDLE_CORES = 0.7
#: seconds a machine may be busy until one is replaced nevertheless
_LATEST = 30.0
#: memory of the machine that is left alone
_SPARED = 512 << 20
#: one that cannot be started is tried again so often
_TRIES = 3


class Pool:
    """Some spares.

    Attributes:
        workers: how many there are to be; idle_seconds: after which they go, when no job has come; most_bytes: of memory they may have.
        taken: how many went to jobs; trouble: what went wrong with one, or keeps more from being started, in words.
    """

    def __init__(
        self,
        first: Sequence[Wanted],
        workers: int,
        preload: Sequence[str],
        idle_seconds: float,
        most_bytes: int,
        hurry: bool = True,
    ) -> None:
        """Args: first: what the first are to be, before another job has come; preload: modules they import; hurry: the first are
        started at once, however busy the processor is. Raises: OSError: there is no place for it."""
        self.workers = workers
        self.preload = tuple(preload)
        self.idle_seconds = idle_seconds
        self.most_bytes = most_bytes
        self.taken = 0
        self.trouble = ""
        #: why the next is not started yet
        self._waits = ""
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._spares: List[Spare] = []
        #: asked by a job whether they are right for it; none is started in their place before they have said yes
        self._offered: List[Spare] = []
        self._wanted: Deque[Wanted] = deque([one for one in first for _ in range(workers)][:workers], maxlen=workers)
        self._failed = 0
        self._size = 0
        self._used = self._short_since = time.monotonic()
        self._hurry = hurry
        self._closed = False
        self._folder = leftovers.temp_folder("akrunner-warm-")
        os.mkdir(os.path.join(self._folder, "tmp"), 0o700)
        with private_file(os.path.join(self._folder, "bundle.zip"), "wb") as f:
            f.write(bundle_bytes())
        self._thread = threading.Thread(target=self._keep, name="akrunner-warm", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    # -- for jobs

    def take(self, wanted: Wanted, names: Sequence[str]) -> Tuple[Optional[Spare], str]:
        """A spare that is right for a job, and why there is none, in words.

        Args: names: of the files beside the job's script.
        """
        why = "none was ready"
        while True:
            spare, other = self._claim(wanted)
            if spare is None:
                return None, other or self.trouble or why
            answer = self._ask(spare, names)
            if not answer.why:
                return spare, ""
            why = answer.why
            if answer.usable:
                return None, why

    def note(self, wanted: Wanted) -> None:
        """A job has wanted this: the next may, too."""
        possible = wanted.surroundings == surroundings(self._thread.native_id)
        with self._changed:
            self._used = time.monotonic()
            if not possible:
                return  # no child of this process would be it; those there are may be another job's
            if all(one.other(wanted) for one in self._wanted):
                self._failed = 0
            self._wanted.appendleft(wanted)
            self._changed.notify_all()

    def knows(self, python: str) -> bool:
        """Whether the last jobs used this interpreter."""
        return any(one.python == python for one in list(self._wanted))

    def _claim(self, wanted: Wanted) -> Tuple[Optional[Spare], str]:
        with self._changed:
            others = [spare.wanted.other(wanted) for spare in self._spares]
            fitting = [spare for spare, other in zip(self._spares, others) if not other]
            if not fitting:
                return None, others[0] if others else ""
            spare = min(fitting, key=lambda one: (not one.waiting, one.began))
            self._spares.remove(spare)
            self._offered.append(spare)
            return spare, ""

    def _ask(self, spare: Spare, names: Sequence[str]) -> Answer:
        """Offer it a job. It is the job's then, or back among the others, or ended."""
        answer = Answer("it was not asked to the end", False)
        try:
            answer = spare.offer(names)
            return answer
        finally:
            with self._changed:
                self._offered.remove(spare)
                taken = not answer.why
                back = not taken and answer.usable and not self._closed
                self.taken += taken
                if back:
                    self._spares.append(spare)
            if not taken and not back:
                spare.end()

    # -- for people

    def wait(self, seconds: float) -> bool:
        """Until all of them wait for a job, for at most so long. Returns: whether they do."""
        deadline = time.monotonic() + seconds
        self.hurry()
        with self._changed:
            while not self._whole() and time.monotonic() < deadline and not self._closed:
                self._changed.wait(0.05)
            return self._whole()

    def hurry(self) -> None:
        """Start those that are missing at once, however busy the processor is."""
        with self._changed:
            self._hurry = True
            self._used = time.monotonic()
            self._changed.notify_all()

    def why_fewer(self) -> str:
        """Why there are fewer than there should be, in words; "" when there are not."""
        with self._changed:
            there = len(self._spares) + len(self._offered)
            if there >= self.workers:
                return self.trouble
            if self._closed:
                return "they are being ended"
            if self.asleep():
                return f"no job has come for {self.idle_seconds:g} s; the next brings them back"
            return self.trouble or self._waits or "the next is about to be started"

    def asleep(self) -> bool:
        """Whether no job has come for so long that all have gone."""
        return time.monotonic() - self._used > self.idle_seconds

    def status(self) -> Dict[str, Any]:
        """As `akrunner.Warm.status`."""
        spares = self.spares()
        return {
            "workers": self.workers,
            "waiting": sum(spare.waiting for spare in spares),
            "importing": sum(not spare.waiting for spare in spares),
            "rss": sum(spare.rss for spare in spares),
            "most_bytes": self.most_bytes,
            "taken": self.taken,
            "trouble": self.why_fewer(),
            "spares": [
                {
                    "pid": one.process.pid,
                    "python": one.wanted.python,
                    "waiting": one.waiting,
                    "rss": one.rss,
                    "since": one.began,
                }
                for one in spares
            ],
        }

    def spares(self) -> List[Spare]:
        """Those there are now."""
        with self._changed:
            return list(self._spares)

    def close(self) -> None:
        """End all of them; those that jobs have taken stay with their jobs. Closing twice is fine."""
        if self._pid != os.getpid():
            return  # a child made by fork: they are its parent's
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        with self._changed:
            ended, self._spares = self._spares, []
        self._end(ended)
        leftovers.drop(self._folder)
        atexit.unregister(self.close)

    # -- this pool's thread

    def _keep(self) -> None:
        busy = _Processor()
        while True:
            with self._changed:
                missing = self._missing()
                if not self._closed:
                    self._changed.wait(_TICK if missing or self._spares else None)
                if self._closed:
                    return
            try:
                self._look(busy)
            except Exception as e:
                # it has to go on: without this thread nobody would start any, or end them
                self._failed += 1
                self.trouble = f"none can be started: {in_words(e)}"

    def _look(self, busy: "_Processor") -> None:
        """End what is to end, start what is missing."""
        with self._changed:
            over = self._over()
        self._end(over)
        idle = busy.idle_cores()
        with self._changed:
            if not all(spare.waiting for spare in self._spares):
                # the time they are idle begins when they wait
                self._used = time.monotonic()
            missing = self._missing()
            if not missing:
                self._short_since = time.monotonic()
                self._hurry = False
            late = time.monotonic() - self._short_since
            self._waits = ""
            if not self._hurry and idle < _IDLE_CORES and late < _LATEST:
                self._waits = f"the processor is busy; the next is started when it is not, or in {_LATEST - late:.0f} s"
            elif self._too_many_at_once():
                self._waits = "others are still importing TensorFlow"
        if missing and not self._waits and self._has_memory():
            self._start(missing[0])

    def _missing(self) -> List[Wanted]:
        """What the last jobs wanted and no spare is, newest first. Nothing when no job has come for long, or none can be started."""
        if self.asleep() or self._failed >= _TRIES:
            return []
        there = [spare.wanted for spare in (*self._spares, *self._offered)]
        missing = []
        for wanted in self._wanted:
            same = next((one for one in there if not one.other(wanted)), None)
            if same is not None:
                there.remove(same)
            else:
                missing.append(wanted)
        return missing

    def _over(self) -> List[Spare]:
        """Take out those that are to end: dead ones, all when no job has come for long, and those nobody wants any more."""
        over = [spare for spare in self._spares if spare.process.exit is not None]
        for spare in over:
            self._failed += not spare.waiting
            which = "one that waited" if spare.waiting else "the last one that was started"
            self.trouble = f"{which} ended: {spare.last_words() or spare.lifeless()}"
        if self.asleep():
            over = list(self._spares)
        elif len(self._spares) - len(over) >= self.workers and self._missing():
            wanted = list(self._wanted)
            old = [one for one in self._spares if one not in over and all(one.wanted.other(each) for each in wanted)]
            over += old[:1]
        left = {one: one.rss for one in self._spares if one not in over and one.waiting}
        self._size = max([self._size, *left.values()])
        room = memory_left()
        if left and (room < _SPARED // 2 or sum(left.values()) > self.most_bytes):
            over.append(next(iter(left)))
            self.trouble = "one was ended: " + self._too_little(sum(left.values()), room)
        self._spares = [one for one in self._spares if one not in over]
        return over

    def _too_many_at_once(self) -> bool:
        importing = sum(not spare.waiting for spare in self.spares())
        return importing >= max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

    def _has_memory(self) -> bool:
        there, left = sum(spare.rss for spare in self.spares()), memory_left()
        few = there + self._size > self.most_bytes or left < self._size + _SPARED
        if few or not self._failed:
            self.trouble = self._too_little(there + self._size, left) if few else ""
        return not few

    def _too_little(self, wanted: int, left: int) -> str:
        """Of memory. Args: wanted: bytes by all of them; left: on this machine."""
        if wanted > self.most_bytes:
            return f"one has {self._size >> 20} MiB of memory, and all may have {self.most_bytes >> 20} MiB (max_memory=)"
        return f"the machine has only {left >> 20} MiB of memory left"

    def _start(self, wanted: Wanted) -> None:
        here = surroundings()
        if wanted.surroundings != here:
            # a child of this thread would not be what the job wanted
            with self._changed:
                if wanted in self._wanted:  # a newer one may have taken its place meanwhile
                    self._wanted.remove(wanted)
            self.trouble = "jobs are run with other limits, signals or cores than this pool has (" + wanted.differs(here) + ")"
            return
        try:
            spare = Spare(wanted, self._folder, self.preload)
        except (OSError, RuntimeError) as e:
            self._failed += 1
            self.trouble = f"none can be started: {e}"
            return
        with self._changed:
            self._spares.append(spare)

    def _whole(self) -> bool:
        return not self._missing() and all(spare.waiting for spare in self._spares)

    def _end(self, spares: Sequence[Spare]) -> None:
        for spare in spares:
            spare.process.kill()
        for spare in spares:
            spare.end()


class _Processor:
    """How much of the machine's processors is not used."""

    def __init__(self) -> None:
        self._before = self._now()

    def _now(self) -> Tuple[float, float]:
        times = psutil.cpu_times()
        return times.idle + getattr(times, "iowait", 0.0), time.monotonic()

    def idle_cores(self) -> float:
        """Since it was asked last."""
        before, now = self._before, self._now()
        self._before = now
        return (now[0] - before[0]) / max(now[1] - before[1], 1e-3)
