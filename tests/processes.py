"""A plugin: `--processes N` runs the tests in N processes, which are forked when all tests have been collected.

::

    pytest: collects, deals groups of tests   -- numbers of tests -->  its processes: run them
                                              <-- how each ended ----
    with `pytest_early`, half of the processes run what is collected first while pytest collects the rest, and others come for that

pytest-xdist has each process import and collect all 22,000 tests for itself, and says six times how one of them goes. Here both are done once.
What tests see is as with pytest-xdist: a base temp directory for each process (`popen-gw0`, ...), and `workerinput` in pytest's configuration.
"""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Sequence
from multiprocessing import connection
from pathlib import Path

# as it is: tests put others in its place
from time import monotonic, sleep
from typing import Any

import pytest

from tests import lean

#: seconds between two times that a process says how tests ended, if all of them passed
_SAYS = 0.1
#: seconds a process is given to end what tests share, when no more of them are to run; and to hear of a Ctrl-C by itself
_ENDS, _HEARS = 120.0, 2.0
#: the number of a test: none
_NONE = -1
_WORD = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processes", default="1", metavar="N", help="run the tests in N processes; auto: as many as tests/parts.py says"
    )


def number_of(config: pytest.Config) -> int:
    """How many processes are asked for."""
    given = config.getoption("--processes")
    if given == "auto":
        return int(config.hook.pytest_number_of_processes(config=config))
    if not given.isdigit():
        raise pytest.UsageError(f"--processes: {given!r} is no number, and not auto")
    return int(given)


class _Hooks:
    @pytest.hookspec(firstresult=True)
    def pytest_number_of_processes(self, config: pytest.Config) -> int:  # type: ignore[empty-body]
        """What `--processes auto` means."""

    @pytest.hookspec(firstresult=True)
    def pytest_groups(self, items: list[pytest.Item]) -> list[list[int]]:  # type: ignore[empty-body]
        """Places of tests among `items`; those of one group are run by one process, one behind the other; the first groups are begun first."""

    @pytest.hookspec(firstresult=True)
    def pytest_early(self, config: pytest.Config) -> list[str]:  # type: ignore[empty-body]
        """Directories that are collected first, and whose tests are run while the rest is collected. None of them shares anything with the rest."""

    def pytest_process_begins(self, first: pytest.Item) -> None:
        """In a process that has just been forked. Args: first: the test that it begins with."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(_Hooks)


class _Early:
    """Has half of the processes begin with the tests of some directories, which are collected first. Each of them gets all that it will run:
    nobody listens while pytest collects the rest.

    Attributes: processes: that have begun; items: their tests.
    """

    def __init__(self, session: pytest.Session, paths: list[str]) -> None:
        self._session, self._paths = session, [Path(path) for path in paths]
        self.processes: list[_Process] = []
        self.items: list[pytest.Item] = []
        self._due = True
        self._seen: set[Path] = set()

    def collect(self) -> None:
        # or pytest would take no directory that is in another one
        self._session.config.option.keepduplicates = True
        try:
            self._session.perform_collect([*map(str, self._paths), *self._session.config.args])
        except BaseException:
            _end(self.processes)
            raise
        self._session.items[:0] = self.items
        self._session.testscollected = len(self._session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        if not isinstance(collector, pytest.File):
            return None
        is_early = any(collector.path.is_relative_to(path) for path in self._paths)
        again = collector.path in self._seen
        if self._due and (again or not is_early):
            self._due = False
            self._begin()
        self._seen.add(collector.path)
        return pytest.CollectReport(collector.nodeid, "passed", None, []) if again and is_early else None

    def _begin(self) -> None:
        session = self._session
        if session.testsfailed:
            return
        self.items = list(session.items)
        session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=self.items)
        session.items[:] = self.items
        groups, number = _groups(session), number_of(session.config)
        for place in range(number // 2):
            if given := [test for group in groups[place :: number // 2] for test in group]:
                self.processes.append(_Process(session, self.processes, number, given))
        session.items.clear()


_EARLY = pytest.StashKey[_Early]()


def pytest_collection(session: pytest.Session) -> bool | None:
    config = session.config
    paths = config.hook.pytest_early(config=config) if number_of(config) > 1 and _runs(config) else None
    if not paths:
        return None
    early = config.stash[_EARLY] = _Early(session, paths)
    config.pluginmanager.register(early, "akrunner-early")
    early.collect()
    return True


def _runs(config: pytest.Config) -> bool:
    return not config.option.collectonly and not config.option.usepdb


def _groups(session: pytest.Session, behind: int = 0) -> list[list[int]]:
    """The groups of the tests behind the first ones. Raises: pytest.UsageError: they cannot be run by a forked process."""
    if others := [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]:
        raise pytest.UsageError(
            f"a file of tests has started threads when it was imported, which no forked process has: {', '.join(others)}"
        )
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    groups = session.config.hook.pytest_groups(items=session.items[behind:])
    return [[behind + number for number in group] for group in groups]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    number = number_of(session.config)
    early = session.config.stash.get(_EARLY, None)
    processes = list(early.processes) if early is not None else []
    try:
        collected = session.config.option.continue_on_collection_errors or not session.testsfailed
        if number < 2 or not collected or not _runs(session.config):
            return None
        groups = deque(_groups(session, len(early.items) if early is not None else 0))
        while groups and len(processes) < number:
            processes.append(_Process(session, processes, number, groups.popleft()))
        _deal(session, processes, groups, early.processes if early is not None else ())
    finally:
        _end(processes)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def _end(processes: Sequence[_Process]) -> None:
    for process in processes:
        process.end()


def _deal(session: pytest.Session, processes: list[_Process], groups: deque[list[int]], early: Sequence[_Process]) -> None:
    """Give each process that asks for tests the next group, until all have ended, and tell pytest what they say.

    Args: early: those that have none of these tests; when they end, others begin in their place.
    """
    there = {process.link: process for process in processes}
    while there:
        for link in connection.wait(list(there)):
            process = there[link]  # type: ignore[index]
            try:
                said = process.link.recv()
            except (EOFError, ConnectionResetError):
                del there[process.link]
                process.ended(session)
                if process.crashed:
                    session.shouldstop = session.shouldstop or "a process of pytest crashed"
                if process in early and groups and not (session.shouldfail or session.shouldstop):
                    other = _Process(session, processes, number_of(session.config), groups.popleft())
                    processes.append(other)
                    there[other.link] = other
                continue
            if session.shouldfail or session.shouldstop:
                for other in processes:
                    other.stop()
            if said is None:
                more = groups and process not in early and not (session.shouldfail or session.shouldstop)
                with contextlib.suppress(BrokenPipeError):
                    process.link.send(groups.popleft() if more else None)
            else:
                process.tell(session, said)


class _Process:
    """One of them, as pytest sees it. Args: others: that are there already; of: how many there will be; first: its first tests."""

    def __init__(self, session: pytest.Session, others: Sequence[_Process], of: int, first: list[int]) -> None:
        self.name, self.crashed = f"gw{len(others)}", False
        self.link, theirs = connection.Pipe()
        #: the number of the test that runs; whether it is to be the last
        self._shared = mmap.mmap(-1, 2 * _WORD)
        self._write(0, _NONE)
        self._status: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            # so that each of them sees when pytest is gone
            for process in (self, *others):
                process.link.close()
            _be(session, self, theirs, of, first)
        theirs.close()

    def _write(self, word: int, value: int) -> None:
        self._shared[word * _WORD : (word + 1) * _WORD] = value.to_bytes(_WORD, sys.byteorder, signed=True)

    def _read(self, word: int) -> int:
        return int.from_bytes(self._shared[word * _WORD : (word + 1) * _WORD], sys.byteorder, signed=True)

    def begins(self, number: int) -> bool:
        """In the process: say which test begins. Returns: whether it still is to."""
        self._write(0, number)
        return not self._read(1)

    def stop(self) -> None:
        """Have it begin no other test."""
        self._write(1, 1)

    def tell(self, session: pytest.Session, said: list[Any]) -> None:
        hook = session.config.hook
        for one in said:
            if isinstance(one, tuple):
                number, began, ended = one
                item = session.items[number]
                report: Any = pytest.TestReport(
                    item.nodeid, ("", None, item.name), {}, "passed", None, "call", (), ended - began, began, ended
                )
            elif isinstance(one, str):
                session.shouldstop = one
                continue
            else:
                report = hook.pytest_report_from_serializable(config=session.config, data=one)
            hook.pytest_runtest_logreport(report=report)

    def ended(self, session: pytest.Session) -> None:
        """It has closed its end: wait for it, and fail the test that ran if it did not end as it should."""
        status = self._wait(_ENDS, signal.SIGKILL)
        number = self._read(0)
        if status == 0 and number == _NONE:
            return
        self.crashed = True
        how = f"process {self.name} of pytest crashed ({'signal' if (status or 0) < 0 else 'exit code'} {abs(status or 0)})"
        name = session.items[number].nodeid if number != _NONE else f"(behind the last test of {self.name})"
        report = pytest.TestReport(name, ("", None, name), {}, "failed", how, "call", duration=0.0)
        session.config.hook.pytest_runtest_logreport(report=report)

    def _wait(self, seconds: float, number: int) -> int | None:
        """How it ended. Args: seconds: after which it gets the signal of this number, if it has not."""
        deadline = monotonic() + seconds
        while self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif monotonic() > deadline:
                os.kill(self.pid, number)
                if number != signal.SIGKILL:
                    break
                deadline += seconds
            else:
                sleep(0.01)
        return self._status

    def end(self) -> None:
        """However pytest's own loop ended: if a Ctrl-C did it, which only pytest may have heard, the test that runs is over, too."""
        self.stop()
        self.link.close()
        self._wait(_HEARS, signal.SIGINT)
        self._wait(_ENDS, signal.SIGKILL)


# -- in the process


def _be(session: pytest.Session, process: _Process, link: Any, of: int, first: list[int]) -> None:
    """Run what is dealt, and end."""
    code = 1
    try:
        _settle(session.config, process.name, of)
        session.config.hook.pytest_process_begins(first=session.items[first[0]])
        teller = _Teller(session, link)
        session.config.pluginmanager.register(teller, "akrunner-teller")
        lean.begin(session.config, None if teller.whole else teller.passed)
        try:
            _run(session, process, teller, first)
            process.begins(_NONE)
        except (KeyboardInterrupt, pytest.exit.Exception) as e:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            process.begins(_NONE)
            teller.say(f"{type(e).__name__} {e}".strip())
        session.config.hook.pytest_sessionfinish(session=session, exitstatus=0)
        session.config._ensure_unconfigure()
        teller.flush()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        code = 0
    except BrokenPipeError:
        pass  # pytest is gone
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _settle(config: Any, name: str, of: int) -> None:
    """Have what a process of its own has."""
    config.workerinput = {"workerid": name, "workercount": of}
    config.pluginmanager.unregister(name="terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture._method != "no":
        # the file that output goes to, and where that is being written, are those of all
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    factory = config._tmp_path_factory
    atexit.unregister(factory._exit_stack.close)
    factory._exit_stack = contextlib.ExitStack()
    factory._basetemp = factory.getbasetemp() / f"popen-{name}"
    factory._basetemp.mkdir(mode=0o700)


def _run(session: pytest.Session, process: _Process, teller: _Teller, first: list[int]) -> None:
    """Run groups. A test is begun when it is known which one comes behind it: that says what they share."""
    known = deque(first)
    while known:
        number = known.popleft()
        if not known:
            known.extend(_next(teller))
        if not process.begins(number):
            # with none behind it, what is shared is ended
            session._setupstate.teardown_exact(None)
            return
        teller.number = number
        item = session.items[number]
        behind = session.items[known[0]] if known else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=behind)


def _next(teller: _Teller) -> list[int]:
    teller.flush()
    teller.link.send(None)
    return teller.link.recv() or []


class _Teller:
    """Says how tests end: at once if they do not pass, else ten times a second. What passed is three numbers, unless somebody reads more."""

    def __init__(self, session: pytest.Session, link: Any) -> None:
        self.link, self.number = link, _NONE
        #: whether each phase is reported
        self.whole = _read_by_somebody(session.config)
        self._config = session.config
        self._unsaid: list[Any] = []
        self._said = monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._unsaid.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))
        if not report.passed or monotonic() > self._said + _SAYS:
            self.flush()

    def passed(self, began: float, ended: float) -> None:
        """That the call of a test did, which is all that is said of it."""
        self._unsaid.append((self.number, began, ended))
        if monotonic() > self._said + _SAYS:
            self.flush()

    def say(self, word: str) -> None:
        """That pytest is to end. Args: word: why."""
        self._unsaid.append(word)
        self.flush()

    def flush(self) -> None:
        if self._unsaid:
            self.link.send(self._unsaid)
            self._unsaid = []
        self._said = monotonic()


def _read_by_somebody(config: pytest.Config) -> bool:
    """Whether more is wanted than the ends of tests: each phase's seconds, a file for another program, what tests that pass have printed."""
    option = config.option
    return bool(
        option.verbose > 0
        or option.times
        or option.durations is not None
        or option.xmlpath
        or set("AP") & set(option.reportchars)
    )
