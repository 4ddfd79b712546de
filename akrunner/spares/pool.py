"""The spare workers of this process: forked in the background, taken by jobs, replaced, and ended.

::

    job ---- take ---->  Pool: the spares             a spare that fits goes to the job, the others stay; if none is left,
                           ^ forks and ends them      one is forked
    this pool's thread ----+--> templates             one for each kind of worker that the last jobs wanted: it imports
                                                      TensorFlow once, while the processor is idle
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from akrunner import leftovers
from akrunner.foreign import in_words
from akrunner.launch.bundle import bundle_bytes
from akrunner.leftovers.private import private_file
from akrunner.spares.room import Processor, Room, cores
from akrunner.spares.spare import Answer, Spare
from akrunner.spares.template import CannotFork, Template
from akrunner.spares.wanted import Wanted, surroundings

#: seconds between two looks at the spares and the machine: while one is missing or imports, and while all of them wait
_TICK, _CALM = 0.25, 1.0
#: how many cores must be idle before a process is started that imports TensorFlow
_IDLE_CORES = 0.7
#: seconds after which it is started even though the machine is busy
_LATEST = 30.0
#: how often a process that cannot be started is tried
_TRIES = 3


class Pool:
    """Keeps spares for the jobs of this process.

    Attributes:
        workers: how many spares there are to be.
        idle_seconds: seconds without a job after which all spares end.
        most_bytes: the memory that all of them together may have.
        taken: how many were taken by jobs.
        trouble: what went wrong with one, or why no more can be started, in words; "" for nothing.
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
        """Start the thread that keeps the spares.

        Args:
            first: the kinds of the first spares, before a job has come; each in turn, until there are `workers`.
            preload: the modules that they import.
            hurry: whether the first ones are started at once, however busy the processor is.
        Raises:
            OSError: a directory for the pool cannot be made.
        """
        self.workers = workers
        self.preload = tuple(preload)
        self.idle_seconds = idle_seconds
        self.most_bytes = most_bytes
        self.taken = 0
        self.trouble = ""
        #: why the next one is not started yet, in words
        self._waits = ""
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._spares: list[Spare] = []
        #: the processes that spares are forked from; one that cannot be forked is a spare itself, and moves to `_spares`
        self._templates: list[Template] = []
        #: why the last such process could not be forked, in words
        self._alone = ""
        #: spares that a job is asking whether they fit; no replacement is started before they have said yes
        self._offered: list[Spare] = []
        self._wanted: deque[Wanted] = deque([one for _ in range(workers) for one in first][:workers], maxlen=workers)
        #: the kinds of workers that the last jobs wanted, newest first; templates of other kinds are not needed any more
        self._kinds: list[Wanted] = []
        for one in reversed(self._wanted):
            self._note_kind(one)
        self._failed = 0
        self._room = Room(most_bytes)
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

    def take(self, wanted: Wanted, names: Sequence[str], noted: str = "") -> tuple[Spare | None, str]:
        """Return a spare that is right for a job, or None and the reason, in words.

        Args:
            names: names of the files beside the job's script.
            noted: what `note` has returned for this job.
        """
        why = "none was ready"
        while True:
            began = time.time()
            spare, other = self._claim(wanted)
            if spare is None:
                return None, other or noted or self.trouble or why
            answer = self._ask(spare, names)
            if not answer.why:
                return spare, ""
            why = answer.why
            if answer.usable or spare.began >= began:
                # another spare would give the same answer; or this one was made for this job, and yet is of no use
                return None, why

    def note(self, wanted: Wanted) -> str:
        """Note what a job wanted, because the next job may want the same.

        Returns:
            Why no spare is right for the job, in words; "" if one is, or if there is none. From now on those that are not right may be ended,
            and then `take` does not find out why they were not.
        """
        possible = wanted.surroundings == surroundings(self._thread.native_id)
        with self._changed:
            self._used = time.monotonic()
            others = [one.wanted.other(wanted) for one in (*self._spares, *self._templates)]
            why = others[0] if others and all(others) else ""
            if not possible:
                return why  # no child of this process would fit; the spares there are may fit another job
            if all(one.other(wanted) for one in self._wanted):
                self._failed = 0
            self._wanted.appendleft(wanted)
            self._note_kind(wanted)
            self._changed.notify_all()
            return why

    def _note_kind(self, wanted: Wanted) -> None:
        self._kinds = [wanted, *(one for one in self._kinds if one.other(wanted))][: self.workers]

    def knows(self, python: str) -> bool:
        """Whether one of the last jobs used this interpreter."""
        return any(one.python == python for one in list(self._wanted))

    def _claim(self, wanted: Wanted) -> tuple[Spare | None, str]:
        with self._changed:
            there = [*self._spares, *self._templates]
            others = [one.wanted.other(wanted) for one in there]
            fitting = [one for one, other in zip(there, others) if not other]
            if not fitting:
                return None, others[0] if others else ""
            spare = fitting[0]
            if not isinstance(spare, Template) or spare.alone:
                self._spares.remove(spare)
                self._offered.append(spare)
                return spare, ""
        return self._claim_new(spare)

    def _claim_new(self, template: Template) -> tuple[Spare | None, str]:
        """Return a fork of the template, or the template itself if it is a spare; or None and the reason.

        Blocks while the template is still importing, because a cold start would take longer.
        """
        why = template.wait_until_imported()
        with self._changed:
            self._sort()
            if not why and template in self._spares:
                self._spares.remove(template)
                self._offered.append(template)
                return template, ""
        if why or template.alone:
            return None, why
        return self._fork(template, self._offered)

    def _fork(self, template: Template, to: list[Spare]) -> tuple[Spare | None, str]:
        """Fork a template, and add the fork to the list `to`. Returns the fork, or None and the reason."""
        try:
            spare = template.fork()
        except (CannotFork, OSError, RuntimeError) as e:
            return None, str(e)
        with self._changed:
            if not self._closed:
                to.append(spare)
                return spare, ""
        spare.end()
        return None, "they are being ended"

    def _sort(self) -> None:
        """Move the templates that have imported, and cannot be forked, to the spares."""
        for one in [one for one in self._templates if one.waiting and one.alone]:
            self._templates.remove(one)
            self._spares.append(one)
            self._alone = one.alone

    def _ask(self, spare: Spare, names: Sequence[str]) -> Answer:
        """Offer a job to a spare. Afterwards the spare belongs to the job, is back among the others, or has ended."""
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
                over = self._without(spare.parent) if answer.stale and spare.parent is not None else []
                self._changed.notify_all()
            if not taken and not back:
                spare.end()
            self._end(over)

    # -- for people

    def wait(self, seconds: float) -> bool:
        """Wait until every spare is there and waits for a job, for at most `seconds`. Returns whether that is so."""
        deadline = time.monotonic() + seconds
        self.hurry()
        with self._changed:
            while not self._whole() and time.monotonic() < deadline and not self._closed:
                self._changed.wait(0.05)
            return self._whole()

    def hurry(self) -> None:
        """Start the spares that are missing at once, however busy the processor is."""
        with self._changed:
            self._hurry = True
            self._used = time.monotonic()
            self._changed.notify_all()

    def why_fewer(self) -> str:
        """Return why there are fewer spares than there should be, in words; "" if there are enough."""
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
        """Whether no job has come for so long that all spares have ended."""
        return time.monotonic() - self._used > self.idle_seconds

    def status(self) -> dict[str, Any]:
        """Return what `akrunner.Warm.status` shows."""
        with self._changed:
            self._sort()
            spares, templates = list(self._spares), list(self._templates)
        return {
            "workers": self.workers,
            "waiting": sum(spare.waiting for spare in spares),
            "importing": sum(not one.waiting for one in templates),
            "memory": sum(one.memory.part for one in (*spares, *templates)),
            "most_bytes": self.most_bytes,
            "taken": self.taken,
            "trouble": self.why_fewer(),
            "alone": self._alone,
            "templates": [_shown(one) for one in templates],
            "spares": [_shown(one) for one in spares],
        }

    def spares(self) -> list[Spare]:
        """Return the spares that there are now."""
        with self._changed:
            return list(self._spares)

    def close(self) -> None:
        """End all spares, except those that jobs have taken. May be called twice."""
        if self._pid != os.getpid():
            return  # this is a child made by fork: the spares belong to its parent
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        with self._changed:
            ended, self._spares, self._templates = [*self._spares, *self._templates], [], []
        self._end(ended)
        leftovers.drop(self._folder)
        atexit.unregister(self.close)

    # -- this pool's thread

    def _keep(self) -> None:
        busy = Processor()
        while True:
            with self._changed:
                missing = self._missing()
                if not self._closed:
                    self._changed.wait(self._pause(bool(missing)))
                if self._closed:
                    return
            try:
                self._look(busy)
            except Exception as e:
                # the thread must continue: only it starts and ends spares
                self._failed += 1
                self.trouble = f"none can be started: {in_words(e)}"

    def _pause(self, missing: bool) -> float | None:
        """Return the seconds until the next look, None if there is nothing to look at. Args: missing: whether a spare is."""
        there = [*self._spares, *self._templates]
        if missing or any(not one.waiting for one in there):
            return _TICK
        left = self._used + self.idle_seconds - time.monotonic()
        return min(_CALM, max(_TICK, left)) if there else None

    def _look(self, busy: Processor) -> None:
        """End the spares that must end, and fork or start those that are missing."""
        with self._changed:
            self._sort()
            over = self._over()
        self._end(over)
        idle = busy.idle_cores()
        missing = self._fork_missing()
        with self._changed:
            importing = [one for one in self._templates if not one.waiting]
            if importing:
                # the idle time begins when the import is done
                self._used = time.monotonic()
            for one in importing:
                same = [wanted for wanted in missing if not one.wanted.other(wanted)]
                # the others are forked when the template has imported
                for wanted in same[:1] if self._alone else same:
                    missing.remove(wanted)
            if not missing:
                self._short_since = time.monotonic()
                self._hurry = self._hurry and bool(importing)
            late = time.monotonic() - self._short_since
            self._waits = ""
            if not self._hurry and idle < _IDLE_CORES and late < _LATEST:
                self._waits = f"the processor is busy; the next is started when it is not, or in {_LATEST - late:.0f} s"
            elif len(importing) >= cores():
                self._waits = "others are still importing TensorFlow"
        if missing and not self._waits and self._has_memory(fork=False):
            self._start(missing[0])

    def _fork_missing(self) -> list[Wanted]:
        """Fork the spares that are missing. Returns the kinds of workers for which no template is ready."""
        with self._changed:
            missing, templates = self._missing(), [one for one in self._templates if one.waiting]
        rest = []
        for wanted in missing:
            template = next((one for one in templates if not one.wanted.other(wanted)), None)
            if template is None:
                rest.append(wanted)
            elif len(self._spares) + len(self._offered) < self.workers and self._has_memory(fork=True):
                spare, why = self._fork(template, self._spares)
                if spare is None:
                    self.trouble = why
                    break
        return rest

    def _missing(self) -> list[Wanted]:
        """Return the kinds of workers that the last jobs wanted and of which a spare is missing, newest first.

        Returns [] if the pool is asleep, or if no process can be started.
        """
        return [] if self.asleep() or self._failed >= _TRIES else self._compared()[0]

    def _compared(self) -> tuple[list[Wanted], list[Spare]]:
        """Compare the spares with what the last jobs wanted.

        Returns:
            (the kinds of workers of which a spare is missing, newest first; the spares beyond what the jobs wanted).
        """
        there, missing = [*self._offered, *self._spares], []
        for wanted in self._wanted:
            same = next((one for one in there if not one.wanted.other(wanted)), None)
            if same is not None:
                there.remove(same)
            else:
                missing.append(wanted)
        return missing, [one for one in there if one in self._spares]

    def _over(self) -> list[Spare]:
        """Take out and return the spares and templates that must end: those that have died, those that no job wants any more,
        and all if the pool is asleep.

        If memory is short, one more is taken out.
        """
        over: list[Spare] = []
        for one in (*self._templates, *self._spares):
            if one.process.exit is not None or (isinstance(one, Template) and one.lifeless()):
                self._failed += not one.waiting
                which = "one that waited" if one.waiting else "the last one that was started"
                self.trouble = f"{which} ended: {(not one.waiting and one.last_words()) or one.lifeless()}"
                over.append(one)
        there = [*self._spares, *self._templates]
        if self.asleep():
            over = there
        else:
            over += [one for one in self._templates if all(one.wanted.other(kind) for kind in self._kinds) and one not in over]
            over += self._in_the_way(over)
        left = [one for one in there if one not in over and one.waiting]
        few = self._room.exceeded([one.memory for one in left])
        if few:
            over.append(left[0])
            self.trouble = f"one was ended: {few}"
        return [gone for one in over for gone in self._without(one)]

    def _in_the_way(self, over: Sequence[Spare]) -> list[Spare]:
        """Return spares beyond what the last jobs wanted that must make room: as many as can be replaced at once by forks of
        templates that are ready.

        If each spare imports by itself, at most one is replaced at a time.
        """
        ready = [one.wanted for one in self._templates if one.waiting and one not in over]
        coming = [one for one in self._missing() if any(not kind.other(one) for kind in ready)]
        if self._alone:
            coming = self._missing()[:1]
        count = len(self._offered) + len([one for one in self._spares if one not in over])
        more = [one for one in self._compared()[1] if one not in over]
        return more[: max(0, count + len(coming) - self.workers)] if coming else []

    def _without(self, spare: Spare) -> list[Spare]:
        """Take out a spare or template, and what was forked from it. Returns those that were still there, the forks first."""
        out = [one for one in (*self._spares, *self._templates) if one is spare or one.parent is spare]
        self._spares = [one for one in self._spares if one not in out]
        self._templates = [one for one in self._templates if one not in out]
        return out

    def _has_memory(self, fork: bool) -> bool:
        """Whether there is memory for one more process.

        Args:
            fork: whether the process is a fork, which does not import.
        """
        with self._changed:
            there = [one.memory for one in (*self._spares, *self._templates) if one.waiting]
            forks = [one.memory for one in self._spares if one.waiting and one.parent is not None]
        few = self._room.lacks(there, forks, fork)
        if few or not self._failed:
            self.trouble = few
        return not few

    def _start(self, wanted: Wanted) -> None:
        here = surroundings()
        if wanted.surroundings != here:
            # a child of this thread would not be what the job wanted
            with self._changed:
                if wanted in self._wanted:  # a newer entry may have pushed it out meanwhile
                    self._wanted.remove(wanted)
            self.trouble = "jobs are run with other limits, signals or cores than this pool has (" + wanted.differs(here) + ")"
            return
        try:
            template = Template(wanted, self._folder, self.preload)
        except (OSError, RuntimeError) as e:
            self._failed += 1
            self.trouble = f"none can be started: {e}"
            return
        with self._changed:
            self._templates.append(template)

    def _whole(self) -> bool:
        return self._failed < _TRIES and not self._missing() and all(spare.waiting for spare in self._spares)

    def _end(self, spares: Sequence[Spare]) -> None:
        """End these processes. A template whose forks run jobs ends when they have ended."""
        templates = [one for one in spares if isinstance(one, Template)]
        forks = [one for one in spares if one not in templates]
        for spare in forks:
            spare.process.kill()
        for spare in forks:
            spare.end()
        for template in templates:
            template.retire()


def _shown(one: Spare) -> dict[str, Any]:
    """Return what `status` shows of one process."""
    told = {"pid": one.process.pid, "python": one.wanted.python, "waiting": one.waiting, "memory": one.memory.part}
    return {**told, "since": one.began}
