"""A plugin: which part of the suite a test belongs to, what runs in one process with what, what runs first, and where the time goes.

::

    markers         flink, tensorflow, matrix, slow: `scripts/test --fast` runs what has none of them
    groups          tests that share something costly (a Flink cluster, a module's fixture) are run by one of pytest-xdist's processes
    order           with several processes, the groups that take longest are begun first; with one, pytest's own order
    --times         a table of the seconds each file took
"""

from __future__ import annotations

import faulthandler
import gc
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

from tests import java

#: marker -> what ends its start in a test that has none of the markers, with these words. (Not in tests on Flink: they share what one of them has
#: started, with that one's environment.)
UNMARKED = {
    ("tensorflow", "matrix", "flink"): (
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH",
        "/a-test-that-starts-TensorFlow-has-the-marker-tensorflow",
    ),
    ("flink",): ("JAVA_TOOL_OPTIONS", "-a-test-that-starts-Java-has-the-marker-flink"),
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """What `-n auto` means. Most tests wait for processes more than they compute: on Flink, and those of crashes and hangs, nearly all of
    their time; those of the fast loop, a third."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (cores + 1) // 2 if "not flink" in config.option.markexpr else 2 * cores


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
        # a cluster of its own: more than two at a time, on two cores, miss their tests' deadlines. As many seconds with each of them
        return "flink:e2e" if file in WITH_E2E else "flink:contract"
    return file if file.startswith(QUICK) or _shares(item) else None


#: what has a cluster of its own, and runs in the process of the shorter of both groups
WITH_E2E = ("tests/e2e/test_flink_checkpoints.py", "tests/e2e/test_flink_network.py")
#: whose tests take milliseconds: a file is a group
QUICK = ("tests/unit/", "tests/fuzz/")


def _shares(item: Any) -> bool:
    """Whether the test has a fixture of wider scope of our own, which another process would have to make again."""
    made = [
        item._fixtureinfo.name2fixturedefs[name][-1] for name in item.fixturenames if name in item._fixtureinfo.name2fixturedefs
    ]
    return any(fixture.scope != "function" and fixture.baseid for fixture in made)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    # before pytest looks at `-m`, and pytest-xdist at groups
    groups = [(item, group_of(item)) for item in items]
    for item, group in groups:
        if on_flink(item):
            item.add_marker("flink")
        if group and config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group(group))
    yield
    if hasattr(config, "workerinput"):
        # by identity: pytest-xdist has changed the names, by which items are equal, meanwhile
        known = {id(item): group for item, group in groups}
        items.sort(key=lambda item: _rank(item, known[id(item)]))


def pytest_collection_finish() -> None:
    # thousands of tests, which stay until the end: no collection has to look at them again, nor those with which pytest ends
    gc.collect()
    gc.freeze()


def _rank(item: pytest.Item, group: str | None) -> int:
    """What is begun first: whoever takes minutes in one process."""
    if group and group.startswith("flink:"):
        return 0
    for rank, marker in enumerate(("matrix", "tensorflow", "slow"), start=1):
        if item.get_closest_marker(marker):
            return rank
    return 4


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


class Times:
    """Sums up what the reports say. Seconds of processor are those of a test's own process and of the children it has waited for;
    what jobs do in warm workers (`tests/warmth.py`) is not among them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.processor: dict[str, float] = defaultdict(float)
        self.tests: dict[str, set] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self.seconds[file] += report.duration
        self.processor[file] += sum(value for name, value in report.user_properties if name == "processor") * (
            report.when == "teardown"
        )
        self.tests[file].add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.write_line("seconds  of processor  tests  file")
        for file in sorted(self.seconds, key=lambda name: -self.seconds[name]):
            terminalreporter.write_line(
                f"{self.seconds[file]:7.1f}  {self.processor[file]:12.1f}  {len(self.tests[file]):5}  {file}"
            )
        totals = sum(self.seconds.values()), sum(self.processor.values()), sum(map(len, self.tests.values()))
        terminalreporter.write_line("{:7.1f}  {:12.1f}  {:5}  all".format(*totals))


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--times") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(), "akrunner-times")


def _processor() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    result = yield
    item.user_properties.append(("processor", _processor() - item.stash.get(_BEGAN, _processor())))
    return result


_BEGAN = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _put_off(item.config)
    item.stash[_BEGAN] = _processor()
    for markers, (name, value) in UNMARKED.items():
        if not any(item.get_closest_marker(marker) for marker in markers):
            os.environ[name] = value
        elif os.environ.get(name) == value:
            del os.environ[name]
    if item.get_closest_marker("flink"):
        os.environ.update(java.environ())
