"""Fixtures every test may use: scripts on disk, and the check that nothing is left behind."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import os
import re
import resource
import signal
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import psutil
import pytest
from hypothesis import settings

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster
from akrunner.leftovers import keeper
from akrunner.wire.ending import HOST
from tests import guard_forks, hosts, java, starts

# the same examples every time, and no time limit on a busy machine
settings.register_profile("akrunner", deadline=None, derandomize=True)
settings.load_profile("akrunner")
# a shell that runs tests in the background has it ignored, and so would every command that a test interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ignored in (signal.SIGHUP, signal.SIGQUIT):
    # as nohup has them
    signal.signal(_ignored, signal.SIG_DFL)

pytest_plugins = [
    "tests.processes",
    "tests.parts",
    "tests.servers.kafka",
    "tests.servers.flightsql",
    "tests.servers.maxcompute",
    "tests.servers.oss",
    "tests.servers.postgres",
    "tests.servers.redis",
    "tests.servers.registry",
    "tests.servers.s3",
    "tests.servers.transactions",
    "tests.warmth",
]

if TYPE_CHECKING:
    from tests.breaking import Clusters
    from tests.warmth import Kept

Script = Callable[..., str]
#: what scripts/flink and scripts/matrix prepare; another directory, where nothing is to be found
ENVS = Path(os.environ.get("AKRUNNER_TEST_ENVS", Path(__file__).parents[1] / ".envs"))
FLINK = ENVS / "flink" / "bin" / "python"
#: what a user's PyFlink program runs in: the same, and akrunner
PROGRAM = ENVS / "program" / "bin" / "python"
#: what has the Python workers of a TaskManager forked, if it is first on PYTHONPATH
FORKED = Path(__file__).parent / "forked"
#: begins the reason of a test that is skipped for want of something optional
NOT_RUN = "NOT RUN ON "
#: places kept on Flink from test to test; no test wants more
KEPT = 5


#: seconds: what has to end has ended by then, however busy the machine is. Scripts that wait do so for 1,000 s
ENDS = 60.0


@contextlib.contextmanager
def ends(besides: float = 0.0) -> Iterator[None]:
    """What is done within ends because of what has happened, not because somebody's patience is over. Args: besides: seconds it has to take."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < besides + ENDS


def wait_for(condition: Callable[[], Any]) -> Any:
    """What it returns once that is true."""
    deadline = time.monotonic() + ENDS
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come")


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write a script; returns its path."""

    def write(body: str, name: str = "train.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(body))
        return str(path)

    return write


@pytest.fixture(scope="session", autouse=True)
def nothing_at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept of runs, and all else that akrunner writes to its state directory, is not in that of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        if "XDG_STATE_HOME" not in os.environ:
            patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, made at once: see `_fresh`."""
    return _fresh(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture
def leaves_nothing(
    warm_workers: Kept | None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A temp directory of its own; afterwards it is empty, and no process this test started is alive."""
    directory = _fresh(tmp_path_factory, "tmp")
    monkeypatch.setenv("TMPDIR", str(directory))
    if warm_workers is None:
        monkeypatch.setenv("XDG_STATE_HOME", str(_fresh(tmp_path_factory, "state")))
    if "XDG_CACHE_HOME" not in os.environ:
        # one for all tests, so that an interpreter is asked once
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    # what several tests share: Flink's cluster, and what it starts
    before, there = set(_near()), _pids()
    mine = keeper._keepers[0]
    held = mine._held.lines()
    yield directory
    monkeypatch.setattr(tempfile, "tempdir", None)
    if mine._blocks and mine._guard is not None:
        # that of a module (`tests/guards.py`), which shows by itself no longer whether something is held
        still = [line for line in mine._held.lines() if line not in held]
        assert not still, f"still held: {still}"
        before.add(mine._guard.pid)
    left = still_running(str(directory), before, there)
    assert not left, f"still running: {left}"
    assert not os.listdir(directory), f"left in the temp directory: {os.listdir(directory)}"


def _fresh(factory: pytest.TempPathFactory, name: str) -> Path:
    """A directory nobody has had. pytest, to number its own, reads the names of all that are there, which would be thousands."""
    path = factory.getbasetemp() / name / str(next(_numbers))
    path.mkdir(mode=0o700, parents=True)
    return path


_numbers = itertools.count()


def still_running(tmpdir: str, before: Collection[int] = (), there: Collection[int] = ()) -> list[Any]:
    """Children of this process that were not there before, and processes of jobs that were given this temp directory, whoever
    their parent is now. Args: there: processes of the machine that had begun before the directory was made."""
    found: dict[int, Any] = {}
    for pid in _near():
        if pid not in before:
            with contextlib.suppress(psutil.Error):
                child = psutil.Process(pid)
                found.update({p.pid: p for p in [child, *_descendants(child)]})
    for pid in _pids().difference(there):
        if _of_a_job(pid, tmpdir):
            with contextlib.suppress(psutil.Error):
                found[pid] = psutil.Process(pid)
    return [(p.pid, _command(p)) for p in found.values() if alive(p)]


#: whether processes can be read as files; whether their children can
_PROC = os.path.exists("/proc/self/environ")
_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _pids() -> set[int]:
    """All processes of this machine."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()} if _PROC else set(psutil.pids())


def _children(pid: int) -> list[int]:
    """Where the kernel tells, it is asked: to look at each process of the machine takes 4 ms, twice for most tests that run a job."""
    found: list[int] = []
    with contextlib.suppress(psutil.Error, OSError):
        if not _CHILDREN:
            return [child.pid for child in psutil.Process(pid).children()]
        threads = None
        while threads != (threads := os.listdir(f"/proc/{pid}/task")):
            # the children of a thread that ends meanwhile are the main thread's, which is read last
            found = [child for thread in sorted(threads, key=str(pid).__eq__) for child in _of_thread(pid, thread)]
    return found


def _of_thread(pid: int, thread: str) -> list[int]:
    # it may have ended
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
        return list(map(int, file.read().split()))
    return []


def _near() -> list[int]:
    """Children of this process, and the hosts of it, without the processes that hosts, workers and guards are forked from."""
    servers = hosts.servers()
    templates = (*servers, starts.server(), guard_forks.server())
    return [pid for parent in {os.getpid(), *servers} for pid in _children(parent) if pid not in templates]


def of_jobs(tmpdir: str) -> list[psutil.Process]:
    """Processes of jobs that were given a temp directory below this one."""
    found = []
    for pid in _pids():
        if _of_a_job(pid, tmpdir):
            with contextlib.suppress(psutil.Error):
                found.append(psutil.Process(pid))
    return found


def _of_a_job(pid: int, tmpdir: str) -> bool:
    """Whether it is a process of a job that was given a temp directory below this one."""
    if not _PROC:
        try:
            environ = psutil.Process(pid).environ()
        except (psutil.Error, OSError):
            return False
        return "AKRUNNER_JOB" in environ and environ.get("TMPDIR", "").startswith(tmpdir)
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            environ_of = b"\0" + file.read()
    except OSError:
        return False
    return b"\0AKRUNNER_JOB=" in environ_of and b"\0TMPDIR=" + os.fsencode(tmpdir) in environ_of


def _descendants(process: psutil.Process) -> list[Any]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def alive(process: psutil.Process) -> bool:
    """Whether it runs; no zombie does."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return "?"


def not_run(what: str, how: str) -> NoReturn:
    """Skip a test for want of something optional. What, and how to get it, is said in pytest's closing lines."""
    pytest.skip(f"{NOT_RUN}{what}: {how}")


def need_flink(program: bool = False) -> None:
    """Skip a test where there is no PyFlink. Args: program: nor what a user's PyFlink program runs in."""
    # half prepared is not prepared: the stamp comes last
    if not all((ENVS / name / "stamp").exists() for name in ("flink", "program")[: 1 + program]):
        not_run(
            "Flink", "`scripts/flink` prepares it, with Python 3.11 to 3.12 and a network; what it says tells why it could not"
        )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly what was not there to be tested with, how many tests that left out, and how to get it."""
    reasons = (str(report.longrepr[2]).partition(NOT_RUN) for report in terminalreporter.stats.get("skipped", ()))
    missing = collections.Counter(what for _, marked, what in reasons if marked)
    for what, tests in sorted(missing.items()):
        terminalreporter.write_line(f"NOT RUN ({tests} test{'s' * (tests > 1)}) ON {what}", yellow=True, bold=True)


@contextlib.contextmanager
def of_cluster(forked: bool = False, file: Path | None = None) -> Iterator[None]:
    """The environment in which processes of a cluster are started, whose Java lives no longer than tests. Args: forked: its Python workers are
    (`tests/forked`), which is for clusters whose TaskManagers get more than one; file: that tells its agents when their worker processes are, too
    (`tests/starts.py`)."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {**java.environ(), **starts.TENSORFLOW}.items():
            patched.setenv(name, value)
        if forked:
            patched.setenv("PYTHONPATH", str(FORKED), prepend=os.pathsep)
        if file is not None:
            patched.setenv("AKRUNNER_TESTS_FORK", str(file))
        yield


def start_cluster(folder: Path, forked: bool = False, file: Path | None = None, **options: Any) -> cluster.Cluster:
    """As `cluster.start`. Args: forked, file: of `of_cluster`."""
    with of_cluster(forked, file):
        return cluster.start(str(folder), str(FLINK), port=0, **options)


@pytest.fixture(scope="session")
def flink_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    """A real session cluster of two TaskManagers."""
    need_flink()
    folder = tmp_path_factory.mktemp("flink")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        # half as often as Flink itself has it: nobody ends its processes, and every two seconds take a fiftieth of a core
        patched.setattr(cluster, "_HEARTBEAT_MILLIS", 20_000)
        # apart from what the cluster has
        forks = tmp_path_factory.mktemp("forks") / "forks"
        started = start_cluster(folder, forked=True, file=forks, taskmanagers=2, slots=6)
    starts.tell(forks)
    try:
        yield started
    finally:
        started.stop()
    assert not [pid for pid in started.processes if psutil.pid_exists(pid)]


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """For tests that kill processes of a cluster: all that one process of pytest has share one, until its JobManager is killed."""
    # it takes its cluster from here
    from tests.breaking import Clusters

    need_flink()
    with contextlib.closing(Clusters(tmp_path_factory)) as made:
        yield made


@contextlib.contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """A disk that is full, as far as one file can see. Python's own compiled files are not written meanwhile: it would keep what was cut short."""
    before, compiles = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = compiles
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture(scope="session")
def flink(flink_cluster: cluster.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkEngine]:
    """An engine for it that keeps its places."""
    with pytest.MonkeyPatch.context() as patched:
        # not in a test's own temp directory
        patched.setenv("TMPDIR", str(tmp_path_factory.mktemp("flink-client")))
        patched.setattr(tempfile, "tempdir", None)
        engine = FlinkEngine(flink_cluster.address, python=str(FLINK))
        engine.__enter__()
        # what is kept from now on is nothing a test has left
        idle = tmp_path_factory.mktemp("idle") / "idle.py"
        idle.write_text("def main(task_config):\n    pass\n")
        akrunner.run(str(idle), {"a": [1]}, num_workers=KEPT, engine=engine)
    try:
        yield engine
    finally:
        engine.__exit__()


def agent_of(pid: int) -> psutil.Process:
    """The process of Flink's Python that a task's process was started by, and is a child of where tests do not fork it."""
    return psutil.Process(json.loads(psutil.Process(pid).environ()[HOST])["pid"])


def taskmanager_of(pid: int) -> psutil.Process:
    """The one that a task's process belongs to. Each has a session of its own, in which Flink's Python workers are."""
    found = psutil.Process(os.getsid(agent_of(pid).pid))
    assert "java" in found.name()
    return found


def nothing_is_left(running: cluster.Cluster) -> None:
    """TaskManagers have no directory of a task, and no process of one."""
    temp = Path(running.folder) / "tmp"
    deadline = time.monotonic() + ENDS
    while (left := _left_on_the_cluster(temp)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def _left_on_the_cluster(temp: Path) -> list[str]:
    left = [path.name for path in temp.glob("akrunner-*")]
    for process in of_jobs(str(temp)):
        with contextlib.suppress(psutil.Error, OSError):
            left.append(" ".join(process.cmdline()) or str(process.pid))
    return left
