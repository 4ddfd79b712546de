"""A cluster on Flink whose processes tests kill, one behind the other: what one of them has ended is started again for the next that needs it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster
from akrunner.engines.flink.host.java import java_home
from akrunner.engines.flink.host.subtasks import Subtasks
from tests.conftest import FLINK, nothing_is_left, of_cluster, start_cluster, wait_for

TASKMANAGERS, SLOTS = 2, 2
#: of this run of tests, as another one, or what was left by one that was killed, may be there: addresses of both ends of a link, the name of the
#: namespace behind it, the link's names
_RUN = os.getpid()
HERE, THERE = (f"10.199.{_RUN >> 6 & 255}.{4 * (_RUN & 63) + end}" for end in (1, 2))
AWAY, LINK, _OTHER_END = f"akrunner-{_RUN}", f"akr{_RUN}", f"aks{_RUN}"


def ip(*words: str) -> bool:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    return done.returncode == 0


@contextlib.contextmanager
def link() -> Iterator[str]:
    """The address of this end of a link to a network namespace, so that it can be cut; that of loopback where there can be none, which takes root
    and iproute2."""
    if shutil.which("ip") is None:
        yield "127.0.0.1"
        return
    _unlink_those_before()
    try:
        yield HERE if all(ip(*words) for words in _LINKS) else "127.0.0.1"
    finally:
        _unlink(_RUN)


_LINKS = (
    ("netns", "add", AWAY),
    ("link", "add", LINK, "type", "veth", "peer", "name", _OTHER_END),
    ("link", "set", _OTHER_END, "netns", AWAY),
    ("addr", "add", f"{HERE}/30", "dev", LINK),
    ("link", "set", LINK, "up"),
    ("-n", AWAY, "addr", "add", f"{THERE}/30", "dev", _OTHER_END),
    ("-n", AWAY, "link", "set", _OTHER_END, "up"),
    ("-n", AWAY, "link", "set", "lo", "up"),
)


def _unlink(run: int) -> None:
    ip("netns", "del", f"akrunner-{run}")
    ip("link", "del", f"akr{run}")


def _unlink_those_before() -> None:
    """Remove what runs have left that were killed, and what one with this one's pid has."""
    for path in Path("/run/netns").glob("akrunner-*"):
        run = path.name.removeprefix("akrunner-")
        if run.isdigit() and (int(run) == _RUN or not psutil.pid_exists(int(run))):
            _unlink(int(run))


class WithJava(FlinkEngine):
    """Keeps its process with Java from job to job, as one that is entered does, and no Flink job: each attempt has its own."""

    def release(self, subtasks: Subtasks) -> None:
        super().release(subtasks)
        self._take_kept(sys.maxsize)


class There:
    """A running cluster, and an engine for it, whose process with Java is started once for all tests that do not hit what it has submitted.

    Attributes: cluster, engine; host: the address that it listens on.
    """

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._held = contextlib.ExitStack()
        self._entered = False
        self.host = self._held.enter_context(link())
        with contextlib.ExitStack() as held:
            held.callback(self._held.close)
            folder = folders.mktemp("faults")
            self.cluster = start_cluster(folder, forked=True, taskmanagers=TASKMANAGERS, slots=SLOTS, host=self.host)
            held.pop_all()
        self._held.callback(self._stop)
        self.engine = WithJava(self.cluster.address, python=str(FLINK))

    def submits(self) -> There:
        """It, once the engine has its process with Java, which is then nothing that a test has left."""
        if not self._entered:
            self._held.enter_context(self.engine)
            with pytest.MonkeyPatch.context() as patched:
                # not in a test's own temp directory
                patched.setenv("TMPDIR", str(self._folders.mktemp("flink-client")))
                patched.setattr(tempfile, "tempdir", None)
                self.engine._live_client()
            self._entered = True
        return self

    @property
    def has_jobmanager(self) -> bool:
        return _runs(next(iter(self.cluster.processes)))

    @property
    def alive(self) -> list[int]:
        """The JobManager and the TaskManagers that run."""
        return [pid for pid in self.cluster.processes if _runs(pid)]

    def mend(self) -> None:
        """Start a TaskManager for each that was killed, once the JobManager knows that those are gone."""
        lost = [pid for pid in self.cluster.processes if not _runs(pid)]
        if not lost:
            return
        wait_for(lambda: self.cluster.overview()["taskmanagers"] == TASKMANAGERS - len(lost))
        processes = {pid: began for pid, began in self.cluster.processes.items() if pid not in lost}
        children = list(self.cluster.children)
        for _ in lost:
            with of_cluster(forked=True):
                places = self.cluster.folder, cluster.flink_home(str(FLINK)), java_home(str(FLINK))
                # its log is a file of its own
                children.append(cluster.spawn(*places, "taskmanager", len(children)))
            processes[children[-1].pid] = psutil.Process(children[-1].pid).create_time()
        self.cluster = dataclasses.replace(self.cluster, processes=processes, children=tuple(children))
        wait_for(lambda: self.cluster.overview()["slots-available"] == TASKMANAGERS * SLOTS)

    def nothing_is_left(self) -> None:
        nothing_is_left(self.cluster)

    def close(self) -> None:
        self._held.close()

    def _stop(self) -> None:
        self.cluster.stop()
        assert not [pid for pid in self.cluster.processes if psutil.pid_exists(pid)]


class Clusters:
    """One at a time, which tests share until one of them has ended its JobManager."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._there: There | None = None

    def with_jobmanager(self) -> There:
        """One that may have lost a TaskManager."""
        if self._there is not None and not self._there.has_jobmanager:
            self.close()
        if self._there is None:
            self._there = There(self._folders)
        return self._there

    def whole(self) -> There:
        """One of which every process runs."""
        there = self.with_jobmanager()
        there.mend()
        return there

    def close(self) -> None:
        there, self._there = self._there, None
        if there is not None:
            there.close()


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
