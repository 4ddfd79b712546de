"""A plugin: jobs of tests that start TensorFlow take warm workers, so that it is imported once and not by each of them.

::

    pytest's processes: whoever is first -- `tests/steady.py` --> keeper of warm workers --> template, forks
        a test with the marker `tensorflow`: its jobs, those of its commands, too    --- take one --->
    pytest ends, or dies  --> a process that it has forked at its beginning -- `akrunner warm stop`

A test with the marker `cold`, or on Flink, knows nothing of them: its state directory is another. The others have all the same
environment, as far as it is read when TensorFlow is imported; those of another interpreter, with other threads, or of a process with another nice
value, another keeper. Tests that look at runs have the runs of their process alone, and the same keeper: its directory is a link in their state
directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import hashlib
import itertools
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

import akrunner
from akrunner import warming
from akrunner.cluster.resources import THREADS
from akrunner.spares.wanted import early
from tests import java, parts, starts, steady

#: seconds: what a job has left in a worker has ended by then
_ENDS = 60.0
#: seconds without a test of any process until workers of a kind go
IDLE = 240.0
#: how the names of their directories begin
_NAMED = "kept-"
#: what scripts/flink and scripts/matrix prepare
ENVS = Path(os.environ.get("AKRUNNER_TEST_ENVS", Path(__file__).parents[1] / ".envs"))


class Kind(NamedTuple):
    """Which workers wait. Attributes: python: an interpreter of `tests.worker.conftest.MATRIX`, "" for this one; threads: of each;
    keras: "legacy" for jobs with that option; own: the directory in which runs are kept is this process' own: the last run is that of its test, and not
    of one that another process runs meanwhile."""

    python: str = ""
    threads: str = "1"
    keras: str = ""
    own: bool = False


#: whose tests look at runs
_OF_RUNS = ("tests/docs/", "tests/e2e/")


def kind_of(item: pytest.Item) -> Kind | None:
    """What the jobs of this test take; None: they start cold."""
    marked = {mark.name for mark in item.iter_markers()}
    if not marked & {"tensorflow", "matrix"} or marked & {"cold", "flink"} or item.nodeid.startswith("tests/unit/"):
        return None
    asked = item.get_closest_marker("warm")
    params = getattr(item, "callspec", None)
    given = params.params if params is not None else {}
    told = {
        "python": given.get("matrix_python", ""),
        "keras": given.get("keras") or "",
        "own": item.nodeid.startswith(_OF_RUNS),
    }
    return Kind(**{**told, **(asked.kwargs if asked is not None else {})})


class Kept:
    """Warm workers for the tests that want the same, in whatever process of pytest these run.

    Attributes: environ: what each of those tests has in its environment, and nothing else that is read when TensorFlow is imported.
    """

    def __init__(self, run_folder: Path, own: Path, kind: Kind) -> None:
        """Args: run_folder: a directory of all processes of this run; own: the one below which all files of this process' tests are."""
        python = str(ENVS / kind.python / "bin" / "python") if kind.python else sys.executable
        # a job takes those of its own nice value, which not all processes have alike
        self._base = run_folder / "-".join(
            [_NAMED.rstrip("-"), kind.python, kind.threads, kind.keras, str(os.getpriority(os.PRIO_PROCESS, 0))]
        )
        #: below the first, and not below the second, are files of other processes' tests
        self._all, self._own = str(run_folder) + os.sep, str(own) + os.sep
        self._options = {"python_env": python, "keras": kind.keras or None, "workers": 2, "idle_timeout": IDLE}
        self._pid = 0
        (self._base / "tmp").mkdir(parents=True, exist_ok=True)
        self._state = self._base / "state"
        of_keeper = self._state / "akrunner" / "warm"
        of_keeper.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._base / "lock"):
            told = self._base / "environ.json"
            if not told.exists():
                told.write_text(json.dumps(self._first_environ(run_folder, kind)))
            self.environ: dict[str, str] = json.loads(told.read_text())
        if kind.own:
            ours = own / f"runs-{self._base.name}" / "akrunner"
            ours.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (ours / of_keeper.name).is_symlink():
                (ours / of_keeper.name).symlink_to(of_keeper)
            self.environ["XDG_STATE_HOME"] = str(ours.parent)

    def _first_environ(self, run_folder: Path, kind: Kind) -> dict[str, str]:
        # which test is the first is not always the same
        of_flink, unmarked = java.environ().keys(), dict([parts.UNMARKED["flink",]])
        return {
            **{name: value for name, value in early(os.environ).items() if name not in of_flink},
            **unmarked,
            "XDG_STATE_HOME": str(self._state),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(run_folder / "cache")),
            # a job of two tasks wants what one of one wants
            **{name: kind.threads for name in THREADS},
            **starts.TENSORFLOW,
            # where Alink's operators look for it
            **({"TF115_PYTHON_ENV_PATH": str(ENVS / "tf1.15")} if kind.python == "tf1.15" else {}),
        }

    def start(self) -> None:
        """Begin, or go on: they end by themselves when no test has come for long. In the environment of `enter`."""
        if self._goes_on():
            return
        with locked(self._base / "lock"):
            if self._goes_on():
                return
            places = {"XDG_STATE_HOME": str(self._state), "TMPDIR": str(self._base / "tmp")}
            wrong = steady.start(self._options, {**os.environ, **places})
            assert not wrong, wrong
            deadline = time.monotonic() + _ENDS
            # a job waits for a template that imports, and starts cold where there is none yet
            while not (status := self.status())["templates"] and time.monotonic() < deadline:
                time.sleep(0.02)
            self._pid = int(status["pid"])

    def _goes_on(self) -> bool:
        status = warming.kept_status(hurry=True)
        self._pid = int(status["pid"]) if status is not None else 0
        return status is not None

    def enter(self, patched: pytest.MonkeyPatch) -> None:
        """Have this process' environment be what it is when workers are taken. A test may have imported TensorFlow, which changes it."""
        for name in early(os.environ).keys() - self.environ.keys():
            patched.delenv(name)
        for name, value in self.environ.items():
            patched.setenv(name, value)
        # the jobs' directories tell whose they are
        patched.setenv("TMPDIR", self._own.rstrip(os.sep))
        patched.setattr(tempfile, "tempdir", None)

    def status(self) -> Any:
        """As `akrunner warm status` has it, with nothing in it when there is nobody."""
        return warming.kept_status() or {}

    def taken(self) -> list[psutil.Process]:
        """Worker processes that jobs of this process' tests have taken and that are there. Where each works tells which those are: idle ones are
        where the keeper is, others in their job's directory, which is below the test's temp directory."""
        try:
            below = psutil.Process(self._pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [process for process in below if _is_worker(process) and self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            where = process.cwd() + os.sep
        except psutil.Error:
            return False
        if where.startswith(f"{self._base}{os.sep}"):
            return False
        return where.startswith(self._own) or not where.startswith(self._all)


def _is_worker(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and any(part.endswith("bundle.zip") for part in process.cmdline())
    except psutil.Error:
        return False


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """No other process of this run is in such a block. Args: path: of a file."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- the end of them


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Before there are several processes, so that one alone ends what they share."""
    if session.config.option.collectonly or not any(map(_uses_them, session.items)):
        return (yield)
    ending = _Ending(session.config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
    try:
        result = yield
    finally:
        wrong = ending.told()
        if wrong:
            name = "(behind the last test with warm workers)"
            report = pytest.TestReport(name, ("", None, name), {}, "failed", wrong, "teardown", duration=0.0)
            session.config.hook.pytest_runtest_logreport(report=report)
    return result


def _uses_them(item: Any) -> bool:
    return kind_of(item) is not None or "in_warm_worker" in item.fixturenames


class _Ending:
    """A process that ends the warm workers of a run of tests, when that tells it to, or when all its processes are gone."""

    def __init__(self, run_folder: Path) -> None:
        asked, self._asks = os.pipe()
        self._hears, tells = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            _end_them(run_folder, asked, tells)
        os.close(asked)
        os.close(tells)

    def told(self) -> str:
        """Have it end them; returns what went wrong with that."""
        os.write(self._asks, b"!")
        with open(self._hears, errors="replace") as file:
            wrong = file.read()
        os.waitpid(self._pid, 0)
        os.close(self._asks)
        return wrong


def _end_them(run_folder: Path, asked: int, tells: int) -> None:
    """Be that process."""
    try:
        gc.disable()
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        # nor has it the ends that would have it wait for itself
        low, high = sorted((asked, tells))
        for first, last in ((3, low), (low + 1, high), (high + 1, os.sysconf("SC_OPEN_MAX"))):
            os.closerange(first, last)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.read(asked, 1)
        # all of them, before somebody is told who is perhaps gone
        os.write(tells, "".join(map(_stopped, run_folder.glob(f"{_NAMED}*"))).encode())
    except BaseException:
        with contextlib.suppress(OSError):
            os.write(tells, traceback.format_exc().encode())
    finally:
        os._exit(0)


def _stopped(folder: Path) -> str:
    """End the warm workers of one kind; returns what went wrong with that."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    try:
        keeper = psutil.Process(warming.keeper() or 0)
        all_of_it = [keeper, *keeper.children(recursive=True)] if keeper.pid else []
    except psutil.NoSuchProcess:
        all_of_it = []
    warming.stop_kept()
    deadline = time.monotonic() + _ENDS
    while (alive := [process for process in all_of_it if _runs(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = os.listdir(folder / "tmp")
    return f"warm workers of {folder.name}: still running: {alive}, left: {left}\n" if alive or left else ""


def _runs(process: psutil.Process) -> bool:
    """Whether it has not ended; whoever has started the keeper, a process of pytest, has perhaps not waited for it."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


# -- for tests


@pytest.fixture(scope="session")
def run_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of all processes of this run of pytest."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own


@pytest.fixture(scope="session")
def keepers(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind], Kept]:
    """Kind -> its warm workers."""
    return functools.cache(lambda kind: Kept(run_folder, tmp_path_factory.getbasetemp(), kind))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have each test whose jobs take warm workers ask for them, before its other fixtures. Were `warm_workers` of all tests, each of thousands that
    know no job would make it, too."""
    for item in items:
        if kind_of(item) is not None:
            # those of a wider scope stay before it, as pytest has them
            wider = {name for name, made in item._fixtureinfo.name2fixturedefs.items() if made[-1].scope != "function"}
            others = [name for name in item.fixturenames if name != "warm_workers"]
            others.insert(len(list(itertools.takewhile(wider.__contains__, others))), "warm_workers")
            item.fixturenames[:] = others


@pytest.fixture
def warm_workers(request: pytest.FixtureRequest) -> Iterator[Kept | None]:
    """None in a test whose jobs start cold."""
    kind = kind_of(request.node)
    if kind is None or (kind.python and not (ENVS / kind.python).is_dir()):
        yield None
        return
    kept: Kept = request.getfixturevalue("keepers")(kind)
    patched: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    kept.enter(patched)
    kept.start()
    yield kept
    kept.enter(patched)
    deadline = time.monotonic() + _ENDS
    while (left := kept.taken()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"still running: {[process.cmdline() for process in left]}"


#: as a job's script, a program that knows nothing of jobs
_PROGRAM = """
import contextlib, sys

def main(task_config):
    params = task_config.user_params
    sys.argv[1:] = params["arguments"]
    with open(params["printed"], "w") as printed, contextlib.redirect_stdout(printed):
        exec(compile(params["code"], "<string>", "exec"), {"__name__": "__main__"})
"""


@pytest.fixture(scope="session")
def in_warm_worker(keepers: Callable[[Kind], Kept], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """A program, its arguments -> what it prints in a process that has TensorFlow already. For tests whose own jobs start cold, too."""
    kept, folder = keepers(Kind()), tmp_path_factory.mktemp("programs")
    script = folder / "program.py"
    script.write_text(_PROGRAM)

    def printed(code: str, *arguments: str) -> str:
        params = {"code": code, "arguments": arguments, "printed": str(folder / "printed")}
        with pytest.MonkeyPatch.context() as patched:
            kept.enter(patched)
            kept.start()
            akrunner.run(str(script), {"a": [1]}, user_params=params, timeout=300)
        return (folder / "printed").read_text()

    return printed


@pytest.fixture(scope="session")
def saved_model(in_warm_worker: Callable[..., str], run_folder: Path) -> Callable[[str], str]:
    """Code of `tests.models` -> the directory of what it saves; the same for all tests of a run."""

    def saved(code: str) -> str:
        path = run_folder / "models" / hashlib.sha256(code.encode()).hexdigest()[:16]
        path.parent.mkdir(exist_ok=True)
        made = path.with_suffix(".made")
        with locked(path.with_suffix(".lock")):
            if not made.exists():
                in_warm_worker(code, str(path))
                made.touch()
        return str(path)

    return saved
