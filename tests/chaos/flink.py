"""Trials on a real Flink cluster, which all of them share.

::

    host -> client (PyFlink) -> its Java ---job--->  JobManager -> TaskManager -> agent (Python worker) -> its guard, task
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from akrunner.engines.flink.host.cluster import Cluster
from akrunner.engines.flink.program.submit import ENDED
from tests.chaos import processes
from tests.chaos.figures import Told, many
from tests.chaos.harness import Place, Report, Trial, busy, is_guard
from tests.chaos.plan import SHARED, Plan
from tests.conftest import FLINK, start_cluster

#: what a trial's Flink job is known by, in its parameters
_NAME = "chaos"
#: seconds: for the cluster to see that a job has ended; for what is left there to go; for a TaskManager to come back
_JOBS_END, _ALL_GOES, _COMES_BACK = 50.0, 20.0, 90.0
_CLEAN = "def main(task_config):\n    pass\n"


class Ground:
    """The cluster trials are on. Args: python: interpreter with PyFlink; state: where its TaskManagers keep their journals, None: where others do."""

    def __init__(self, cluster: Cluster, python: str, state: Path | None = None) -> None:
        self.address = cluster.address
        self.python = python
        self.temp = Path(cluster.folder) / "tmp"
        self._state = state
        #: the JobManager first; those of a killed one are those of the one that took its place
        self.pids = list(cluster.processes)
        self._again = {
            pid: (processes.words_of(pid), processes.environ_of(pid), os.readlink(f"/proc/{pid}/cwd")) for pid in self.pids
        }
        self._own: dict[int, subprocess.Popen[bytes]] = {child.pid: child for child in cluster.children}
        self._lock = threading.Lock()
        self.slots = self._ask("/overview")["slots-total"]

    def mend(self, ending: Collection[int]) -> None:
        """Whoever of the cluster was stopped goes on, and who has ended is started again. Args: ending: processes that will have."""
        with self._lock:
            self._mend(ending)

    def lost(self) -> list[str]:
        """Those that have ended though nobody was to hit them; they are started again."""
        with self._lock:
            gone = [pid for pid in self.pids if not processes.is_there(pid)]
            words = [" ".join(self._again[pid][0][-5:]) for pid in gone]
            if gone:
                self._mend(gone)
        return words

    def _mend(self, ending: Collection[int]) -> None:
        for at, pid in enumerate(self.pids):
            if processes.is_there(pid):
                os.kill(pid, signal.SIGCONT)
            if pid not in ending:
                continue
            self._own[pid].wait(_JOBS_END * busy())
            words, environ, folder = self._again.pop(pid)
            with open(os.path.join(folder, f"again-{pid}.txt"), "wb") as out:
                made = subprocess.Popen(
                    words, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                )
            self._own[made.pid] = made
            self._again[made.pid] = (words, environ, folder)
            self.pids[at] = made.pid
        deadline = time.monotonic() + _COMES_BACK * busy()
        while not self._is_whole():
            assert time.monotonic() < deadline, f"the cluster does not come back: {self.temp.parent / 'log'}"
            time.sleep(0.2)

    def _is_whole(self) -> bool:
        try:
            return bool(self._ask("/overview")["slots-total"] == self.slots)
        except (OSError, ValueError, KeyError):
            return False

    def stop(self) -> None:
        """End all of it that was started again."""
        for pid in self.pids:
            self._own[pid].kill()
            self._own[pid].wait()

    def free_slots(self) -> int:
        return int(self._ask("/overview")["slots-available"])

    def running(self, name: str) -> list[str]:
        """Ids of jobs with this name that have not ended."""
        alive = [job["jid"] for job in self._ask("/jobs/overview")["jobs"] if job["state"] not in ENDED]
        return [job for job in alive if self._ask(f"/jobs/{job}/config")["execution-config"]["user-config"].get(_NAME) == name]

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=20) as answer:
            return json.load(answer)

    def left(self) -> list[str]:
        """Directories on TaskManagers that no agent holds, and processes of theirs that belong to none any more."""
        return [*map(str, filter(_held_by_nobody, self.temp.glob("akrunner-*"))), *map(processes.state_of, self._strays())]

    def _strays(self) -> list[int]:
        found = set(processes.that_name(str(self.temp)))
        if self._state is not None:
            found |= set(processes.that_name(str(self._state)))
        return [pid for pid in sorted(found) if not self._belongs(pid)]

    def _belongs(self, pid: int) -> bool:
        """Whether it descends from the cluster, or has gone meanwhile."""
        above: int | None = pid
        while above is not None and above > 1:
            if above in self.pids or self._forks_workers(above):
                return True
            above = processes.parent_of(above)
        return not processes.is_there(pid)

    def _forks_workers(self, pid: int) -> bool:
        """Whether it is the process from which tests fork Flink's Python workers of a TaskManager (`tests/forked`): it stays in the
        TaskManager's session."""
        try:
            return (
                processes.parent_of(pid) == 1
                and os.getsid(pid) in self.pids
                and "beam_boot" in " ".join(processes.words_of(pid))
            )
        except ProcessLookupError:
            return False

    def soon_left(self) -> list[str]:
        """The same, once what is going has gone."""
        began = time.monotonic()
        while (left := self.left()) and time.monotonic() - began < _ALL_GOES * busy():
            time.sleep(0.1)
        return left

    def journals(self) -> list[str]:
        """Of agents, those that live included."""
        folder = self._state / "akrunner" / "leftovers" if self._state is not None else None
        return [str(path) for path in folder.iterdir()] if folder is not None and folder.exists() else []


def _held_by_nobody(folder: Path) -> bool:
    try:
        lock = os.open(folder / ".lock", os.O_RDONLY)
    except OSError:
        return folder.exists()
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return folder.exists()
    except BlockingIOError:
        return False
    finally:
        os.close(lock)


class FlinkTrial(Trial):
    """One seed on Flink."""

    # Java comes when it comes
    longest, after, patience, pause = 120.0, 25.0, 120.0, 0.15
    stuck = {"stall_timeout": 4.0, "evaluator_timeout": 2.0, "timeout": 40.0}

    def __init__(self, place: Place, ground: Ground, plan: Plan, turns: threading.Semaphore) -> None:
        super().__init__(place, plan, turns)
        self.ground = ground
        self.name = str(self.folder)
        if any(self.killed(target) for target in SHARED):
            # 2: the cluster that is to run it does not answer
            self.codes |= {2}
        # Flink's job ends by being cancelled where nobody else is there to end it
        self.codes |= {143} if self.killed("client") or self.killed("java") else set()

    # -- what is run

    def engine_words(self) -> list[str]:
        return [
            "--engine", "flink", "--flink-master", self.ground.address, "--flink-python", self.ground.python,
            "--flink-option", f"pipeline.global-job-parameters={_NAME}:{self.name}", "--python-env", sys.executable,
        ]  # fmt: skip

    def engine_order(self, options: dict[str, Any]) -> dict[str, Any]:
        options["python_env"] = sys.executable
        parameters = {"pipeline.global-job-parameters": f"{_NAME}:{self.name}"}
        return {"engine": {"master": self.ground.address, "python": self.ground.python, "options": parameters}}

    # -- who is killed

    def there(self, target: str) -> int | None:
        if target in ("host", "guard"):
            return super().there(target)
        if target == "jobmanager":
            return self.ground.pids[0]
        if target in ("client", "java"):
            return self._submits(target)
        if target in ("agent", "agentguard", "taskmanager"):
            return self._beside(target)
        return self._task(target)

    def _submits(self, target: str) -> int | None:
        for pid in processes.children_of(self.host.pid):
            if "akrunner.engines.flink.program.submit" in processes.words_of(pid):
                if target == "client":
                    return pid
                return next((child for child in processes.children_of(pid) if _is_java(child)), None)
        return None

    def _tasks(self) -> list[int]:
        """Its tasks' processes, the oldest first."""
        told = str(self.folder / "told")
        return [
            pid for pid in processes.that_name(told)
            if processes.environ_of(pid).get("CHAOS_TOLD") == told and any("bundle.zip" in word for word in processes.words_of(pid))
        ]  # fmt: skip

    def _task(self, target: str) -> int | None:
        """The one of that key, if it has told its id; before that, one of them."""
        tasks, told = self._tasks(), self.folder / "told" / f"main-{target}"
        known = told.read_text() if told.exists() else ""
        if known:
            return int(known) if int(known) in tasks else None
        at = self.plan.tasks.index(target)
        return tasks[at] if at < len(tasks) else None

    def _beside(self, target: str) -> int | None:
        agents = [agent for agent in map(processes.parent_of, self._tasks()) if agent is not None and agent > 1]
        if target == "taskmanager":
            above = agents[0] if agents else None
            while above is not None and above not in self.ground.pids:
                above = processes.parent_of(above)
            return above if above is not None else self.ground.pids[1 + self.plan.seed % (len(self.ground.pids) - 1)]
        if target == "agentguard":
            return next((child for agent in agents for child in processes.children_of(agent) if is_guard(child)), None)
        return agents[0] if agents else None

    # -- what is there afterwards

    def wrong_elsewhere(self) -> list[str]:
        if self.plan.lonely:
            self.ground.mend([pid for pid, name in self.struck if pid in self.ground.pids and name != "STOP"])
        wrong = []
        began = time.monotonic()
        while jobs := self.ground.running(self.name):
            if time.monotonic() - began > _JOBS_END * busy():
                wrong = [f"Flink runs its job still: {jobs}"]
                break
            time.sleep(0.2)
        left = self.ground.soon_left()
        if left and self.plan.lonely and self.killed("agentguard"):
            self.report.next_start = clean_up(self.ground, self.place)
            left = self.ground.soon_left()
        wrong += [f"the cluster has lost a process: {words}" for words in self.ground.lost()]
        return wrong + [f"left over on the cluster: {name}" for name in left]


def clean_up(ground: Ground, place: Place) -> bool:
    """What comes next on the TaskManagers: a job with a task in each slot. Returns: whether there were slots for it."""
    deadline = time.monotonic() + _JOBS_END * busy()
    while ground.free_slots() < ground.slots:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    script = place.folder / "clean.py"
    script.write_text(_CLEAN)
    order = {
        "call": "run", "arguments": [str(script), str(place.folder / "in.parquet")],
        "options": {"num_workers": ground.slots, "python_env": sys.executable},
        "engine": {"master": ground.address, "python": ground.python},
    }  # fmt: skip
    subprocess.run([sys.executable, str(place.folder / "host.py"), json.dumps(order)], check=True, timeout=120 * busy())
    return True


def many_on_flink(plans: Sequence[Plan], place: Place, ground: Ground, jobs: int, told: Told = None) -> list[Report]:
    """Run them: first those that have the cluster together, then those that need it for themselves."""
    trial = functools.partial(FlinkTrial, place, ground)
    reports = many([plan for plan in plans if not plan.lonely], trial, jobs, told, waiting=1)
    reports += many([plan for plan in plans if plan.lonely], trial, 1, told, waiting=1)
    return reports


def _is_java(pid: int) -> bool:
    words = processes.words_of(pid)
    return bool(words) and os.path.basename(words[0]) == "java"


def swept(reports: list[Report], place: Place, ground: Ground) -> list[Report]:
    """With what is on the cluster when all is over, in the words of the last: one more job there leaves nothing, of its own or of others."""
    slots = [] if clean_up(ground, place) else [f"only {ground.free_slots()} free slots of {ground.slots}"]
    left = slots + (ground.soon_left() or ground.journals())
    reports[-1].wrong += [f"left over on the cluster, when all was over: {name}" for name in left]
    return reports


@contextlib.contextmanager
def own_cluster(folder: Path) -> Iterator[Ground]:
    """Two TaskManagers that nobody else needs."""
    if not FLINK.exists():
        sys.exit("there is no .envs/flink: run scripts/flink")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        patched.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        cluster = start_cluster(folder / "cluster", taskmanagers=2, slots=5)
    try:
        ground = Ground(cluster, str(FLINK), folder / "state")
        try:
            yield ground
        finally:
            ground.stop()
    finally:
        cluster.stop()
