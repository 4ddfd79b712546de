"""A plugin: which part of the suite a test belongs to, what runs in one process with what, what runs first, and where the time goes.

::

    markers         flink, tensorflow, matrix, slow: `scripts/test --fast` runs what has none of them
    groups          tests that share something costly (a Flink cluster, a module's fixture) are run by one process
    order           with several processes, the groups that take longest are begun first; with one, pytest's own order
    base temp       with several processes it is in memory, where there is enough of it
    --times         a table of the seconds each file took
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import gc
import importlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

from akrunner.launch import cgroups
from akrunner.launch.capacity import memory_left
from tests import guard_forks, hosts, java, starts
from tests.processes import number_of

#: marker -> what ends its start in a test that has none of the markers, with these words. (Not in tests on Flink: they share what one of them has
#: started, with that one's environment.)
UNMARKED = {
    ("tensorflow", "matrix", "flink"): (
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH",
        "/a-test-that-starts-TensorFlow-has-the-marker-tensorflow",
    ),
    ("flink",): ("JAVA_TOOL_OPTIONS", "-a-test-that-starts-Java-has-the-marker-flink"),
}


@pytest.hookimpl
def pytest_number_of_processes(config: pytest.Config) -> int:
    """What `--processes auto` means: tests wait for processes, and for each other's patience, as long as they compute. With two for each core, a tenth of
    the time of two cores is left. In a container that may use two of a machine's 64 cores, two are meant."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 * max(1, round(min(cores, cgroups.cores() or cores))) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", action="store_true", help="print how long each file of tests took")


# -- markers and groups


def on_flink(item: pytest.Item) -> bool:
    """Whether the test takes the cluster that all tests share."""
    params = getattr(item, "callspec", None)
    return "flink_cluster" in getattr(item, "fixturenames", ()) or (
        params is not None and params.params.get("engine") == "flink"
    )


def group_of(item: pytest.Item) -> str | None:
    """The name of the group that is run by one process; None: any process may run the test, whoever runs its neighbours."""
    file = item.nodeid.partition("::")[0]
    if on_flink(item):
        # a cluster for each folder: one process would take longer than all others
        return "flink:" + file.split("/")[1]
    if item.get_closest_marker("flink"):
        # a cluster that it breaks: more than two at a time, on two cores, miss their tests' deadlines. As many seconds with each of them
        return "flink:contract"
    return file if file.startswith(QUICK) or _shares(item) else None


#: the file whose tests end the cluster that they share with others (`tests/breaking.py`)
ENDS_CLUSTER = "tests/e2e/test_flink.py"
#: whose tests take milliseconds: a file is a group
QUICK = ("tests/unit/", "tests/fuzz/")


def _shares(item: Any) -> bool:
    """Whether the test has a fixture of wider scope of our own, which another process would have to make again."""
    made = [
        item._fixtureinfo.name2fixturedefs[name][-1] for name in item.fixturenames if name in item._fixtureinfo.name2fixturedefs
    ]
    return any(fixture.scope != "function" and fixture.baseid for fixture in made)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # before pytest looks at `-m`
    for item in items:
        if on_flink(item):
            item.add_marker("flink")


@pytest.hookimpl
def pytest_groups(items: list[pytest.Item]) -> list[list[int]]:
    """As `tests/processes.py` deals them."""
    if any(item.get_closest_marker("slow") for item in items):
        hosts.begin()
    groups: dict[str | int, list[int]] = {}
    ranks: dict[str | int, tuple[int, float]] = {}
    sizes = _sizes(items)
    for number, item in enumerate(items):
        group = group_of(item) or number
        groups.setdefault(group, []).append(number)
        rank, size = ranks.get(group, (_LAST, 0.0))
        ranks[group] = min(rank, _rank(item, group)), size - sizes[item.path]
    for group, numbers in groups.items():
        if str(group).startswith("flink:"):
            # a cluster burns a twentieth of a core though it has no job: it ends behind its last test
            numbers.sort(key=lambda number: (not on_flink(items[number]), items[number].nodeid.startswith(ENDS_CLUSTER)))
    return [groups[group] for group in sorted(groups, key=lambda group: ranks[group])]


def _sizes(items: list[pytest.Item]) -> dict[Path, float]:
    """Each file -> bytes of it, for each of its tests. The longest groups are begun first, so that no process ends long behind the others; and, by
    this rough measure, files that wait more than they compute, which stand beside each other, are not run beside each other."""
    tests = collections.Counter(item.path for item in items)
    return {path: path.stat().st_size / number for path, number in tests.items()}


#: of what is made while a test runs (`gc.set_threshold`)
_GARBAGE = 50_000, 20, 50
#: how much behind those on Flink, which take longest, the other processes are
_NICE = 5


@pytest.hookimpl
def pytest_process_begins(first: pytest.Item) -> None:
    if not gc.isenabled():
        # one that begins while others are collected
        gc.freeze()
        gc.enable()
        gc.set_threshold(*_GARBAGE)
    if not first.get_closest_marker("flink"):
        os.nice(_NICE)


#: `-m` of the fast loop, or one like it; a file's own markers
_NONE_OF = re.compile(r"not \w+(?: and not \w+)*")
_OF_A_FILE = re.compile(r"^pytestmark = .*", re.MULTILINE)


def left_out(text: str, expression: str) -> bool:
    """Whether all tests of a file have a marker that the fast loop leaves out. Args: text: the file's; expression: `-m`."""
    if not _NONE_OF.fullmatch(expression):
        return False
    markers = {marker for line in _OF_A_FILE.findall(text) for marker in re.findall(r"\bmark\.(\w+)", line)}
    return bool(markers & set(re.findall(r"not (\w+)", expression)))


@pytest.hookimpl
def pytest_early(config: pytest.Config) -> list[str] | None:
    """For the fast loop: a third of what it has."""
    early = config.rootpath / "tests" / "unit" / "io"
    return (
        [str(early)]
        if _is_everything(config) and _NONE_OF.fullmatch(config.option.markexpr) and "flink" in config.option.markexpr
        else None
    )


def _is_everything(config: pytest.Config) -> bool:
    """Whether no directory or file of tests is named."""
    return [Path(argument).absolute() for argument in config.args] == [config.rootpath / "tests"]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is left out as a whole is not imported: that takes longer than the rest of collecting it."""
    if collection_path.match("test_*.py") and left_out(collection_path.read_text(), config.option.markexpr):
        return True
    return None


#: what akrunner imports only for jobs that need it, and tests in every process need. Each process would import it for itself: PyODPS alone takes 3.5 s of
#: processor behind the collection of all tests, and 1.3 s before it, because it asks Python three times for the source of each function that is running,
#: and Python looks through all modules for it. None of these starts a thread, which no forked process would have
_IMPORTED_ONCE = ("odps", "sqlglot.dialects.duckdb", "sqlglot.dialects.hive")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """In a fresh checkout, have a process for each core compile the files: pytest rewrites each of them, which takes longer than all else that it does
    to collect the tests."""
    # nothing of what this makes is garbage, and to look through it again and again takes a fifth of the time
    gc.disable()
    number = number_of(session.config)
    if number > 1 and _is_everything(session.config):
        for name in _IMPORTED_ONCE:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    if number < 2 or sys.dont_write_bytecode:
        return
    mark = f"{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"
    given = [Path(argument.partition("::")[0]).absolute() for argument in session.config.args]
    # of what is not there, pytest says so
    found = [path for path in given if path.exists()]
    files = sorted({file for path in found for file in (path.rglob("test_*.py") if path.is_dir() else [path])})
    expression = session.config.option.markexpr
    new = [
        file
        for file in files
        if not (file.parent / "__pycache__" / f"{file.stem}.{mark}").exists() and not left_out(file.read_text(), expression)
    ]
    if len(new) > number:
        compiling = [_compiled(new[place::number], session.config.rootpath) for place in range(number)]
        for pid in compiling:
            os.waitpid(pid, 0)


def _compiled(files: list[Path], root: Path) -> int:
    """The pid of a process that imports them: what goes wrong goes wrong again, and is told, when pytest imports it."""
    pid = os.fork()
    if pid == 0:
        for file in files:
            with contextlib.suppress(BaseException):
                importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
        os._exit(0)
    return pid


def pytest_collection_finish() -> None:
    # thousands of tests, which stay until the end: no collection has to look at them again, nor those with which pytest ends
    gc.collect()
    gc.freeze()
    gc.enable()
    # nor is much garbage in what a test makes
    gc.set_threshold(*_GARBAGE)


#: the rank of what is begun last
_LAST = 4


def _rank(item: pytest.Item, group: str | int) -> int:
    """What is begun first: whoever takes minutes in one process."""
    if str(group).startswith("flink:"):
        return 0
    for rank, marker in enumerate(("matrix", "tensorflow", "slow"), start=1):
        if item.get_closest_marker(marker):
            return rank
    return _LAST


# -- the base temp directory

#: a file system in memory; bytes that are free there, and in memory, before it is used: a run needs less than half of the first
_MEMORY, _SPACE, _AVAILABLE = "/dev/shm", 4 << 30, 8 << 30
_MADE = pytest.StashKey[str]()
#: of the names of runs' directories, before the process'
_PREFIX = "akrunner-tests-"


def _fits_in_memory() -> bool:
    try:
        place = os.statvfs(_MEMORY)
    except OSError:
        return False
    # tests run what they have written
    usable = not place.f_flag & os.ST_NOEXEC and os.access(_MEMORY, os.W_OK)
    return usable and place.f_bavail * place.f_frsize > _SPACE and memory_left() > _AVAILABLE


def _have_base_temp(config: pytest.Config) -> None:
    """A run makes a hundred thousand files and removes as many, and ext4 looks for each new one through those that were removed within minutes."""
    said = config.option.basetemp or {"TMPDIR", "PYTEST_DEBUG_TEMPROOT"} & os.environ.keys() or config.option.markers
    if sys.platform == "linux" and not said and number_of(config) > 1:
        _end_those_before()
        if _fits_in_memory():
            config.stash[_MADE] = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_MEMORY)
            config.option.basetemp = os.path.join(config.stash[_MADE], "all")


def _end_those_before() -> None:
    """Remove what runs have left in memory: of tests that failed, so that one can look at it until now, or because they were killed; the Flink
    clusters of those still run."""
    for path in Path(_MEMORY).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            if path.stat().st_uid == os.getuid() and not psutil.pid_exists(int(path.name.removeprefix(_PREFIX).split("-")[0])):
                _kill_those_with(f"{path}{os.sep}")
                shutil.rmtree(path)


def _kill_those_with(folder: str) -> None:
    """Kill all processes whose environment, or command, names something in a directory."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(folder in word for word in [*process.environ().values(), *process.cmdline()]):
                process.kill()


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    made = config.stash.get(_MADE, None)
    if made is not None and exitstatus == pytest.ExitCode.TESTS_FAILED:
        terminalreporter.write_line(f"temp directories of these tests, in memory until the next run: {made}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    made = session.config.stash.get(_MADE, None)
    failed = exitstatus in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    if made is not None and not hasattr(session.config, "workerinput") and not failed:
        session.config.add_cleanup(lambda: shutil.rmtree(made, ignore_errors=True))


# -- what hangs

#: seconds after which all stacks are shown, of a hang that ends by no signal; seconds between two times that this is put off. pytest's own
#: `faulthandler_timeout` puts it off twice for each test, by threads that are started and waited for
_SHOWN, _AGAIN = 590.0, 60.0
_PUT_OFF = pytest.StashKey[float]()


def _put_off(config: pytest.Config) -> None:
    now = time.monotonic()
    if now > config.stash.get(_PUT_OFF, 0.0) + _AGAIN:
        config.stash[_PUT_OFF] = now
        faulthandler.dump_traceback_later(_SHOWN + _AGAIN, file=config.stash[fault_handler_stderr_fd_key])


def pytest_exception_interact(node: Any) -> None:
    # pytest has given it up for a debugger
    node.config.stash[_PUT_OFF] = 0.0


def pytest_unconfigure() -> None:
    faulthandler.cancel_dump_traceback_later()


# -- where the time goes


#: whose seconds are those of what tests share (Flink's clusters), which end behind the last test of a process
SHARED = "(what is shared, when it ended)"


class Times:
    """Sums up what the reports say. Seconds of processor are pytest's own, and those of the processes that a test has started and waited for,
    or had started by `tests.hosts`, with all that these have waited for; what jobs do in warm workers (`tests/warmth.py`) is not among them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.own: dict[str, float] = defaultdict(float)
        self.started: dict[str, float] = defaultdict(float)
        self.tests: dict[str, set] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self.seconds[file] += report.duration
        self.tests[file].add(report.nodeid)
        if report.when == "teardown":
            said = dict(report.user_properties)
            self.own[file] += said.get("own", 0.0)
            self.started[file] += said.get("started", 0.0)
            self.started[SHARED] += said.get("shared", 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        # those that take most of the processor first
        files = sorted(self.seconds.keys() | {SHARED}, key=lambda name: -self.own[name] - self.started[name])
        terminalreporter.write_line("seconds  of processor: own  started  tests  file")
        for file in files:
            self._write(terminalreporter, self.seconds[file], self.own[file], self.started[file], len(self.tests[file]), file)
        totals = (sum(of.values()) for of in (self.seconds, self.own, self.started))
        self._write(terminalreporter, *totals, sum(map(len, self.tests.values())), "all")

    @staticmethod
    def _write(terminalreporter: Any, seconds: float, own: float, started: float, tests: int, name: str) -> None:
        terminalreporter.write_line(f"{seconds:7.1f}  {own:17.1f}  {started:7.1f}  {tests:5}  {name}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    _have_base_temp(config)
    if config.getoption("--times") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(), "akrunner-times")


def _processor() -> tuple[float, float]:
    """(seconds of this process, those of the processes it has waited for, and of hosts)."""
    user, system, theirs, theirs_system, _ = os.times()
    return user + system, theirs + theirs_system + sum(hosts.spent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    before = _processor() if item.config.option.times else (0.0, 0.0)
    result = yield
    ended = _end_cluster(item, nextitem)
    if not item.config.option.times:
        return result
    after = _processor()
    own, started = item.stash.get(_BEGAN, before)
    shared = after[1] - before[1] if ended or nextitem is None else 0.0
    item.user_properties += [("own", after[0] - own), ("started", after[1] - started - shared), ("shared", shared)]
    return result


def _end_cluster(item: Any, nextitem: pytest.Item | None) -> bool:
    """Have the cluster that tests share end, if this was the last test on it that one of several processes has. Returns: whether it did."""
    last = hasattr(item.config, "workerinput") and on_flink(item) and not (nextitem is not None and on_flink(nextitem))
    for fixture in (last and item.session._fixturemanager.getfixturedefs("flink_cluster", item)) or ():
        # with the engine that keeps places there
        fixture.finish(item._request)
    return last


_BEGAN = pytest.StashKey[tuple[float, float]]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _put_off(item.config)
    if item.config.option.times:
        item.stash[_BEGAN] = _processor()
    marked = {mark.name for mark in item.iter_markers()}
    starts.choose(marked, item.nodeid, str(item.config._tmp_path_factory.getbasetemp()))  # type: ignore[attr-defined]
    guard_forks.choose(marked, item.nodeid)
    for markers, (name, value) in UNMARKED.items():
        there = os.environ.get(name)
        if marked.isdisjoint(markers):
            # most have it from the test before them
            if there != value:
                os.environ[name] = value
        elif there == value:
            del os.environ[name]
    if "flink" in marked:
        os.environ.update(java.environ())
        return
    for name, value in java.GIVEN.items():
        # a test on Flink may have run before
        if os.environ.get(name, "") != value:
            os.environ[name] = value
