"""A plugin: what pytest does for each test, without what nobody sees. It is most of what a test of a millisecond takes.

::

    phases    setup, call and teardown are reported if they did not pass, and if somebody reads more
    logs      one handler hears all tests: pytest puts two into each logger for each of the three phases, and takes them out again
    captures  a file to which nobody has written is not read
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

# as it is: tests put others in its place
from os import fstat
from typing import Any

import pytest
from _pytest import capture, runner, tmpdir, unittest
from _pytest import logging as logs

# -- phases


class Phases:
    """In place of pytest's own protocol. Args: passed: hears of a call that passed, of when it began and when it ended."""

    def __init__(self, passed: Callable[[float, float], None]) -> None:
        self._passed = passed

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: Any, nextitem: pytest.Item | None) -> bool:
        if hasattr(item, "_request") and not item._request:
            item._initrequest()
        if _phase(item, "setup") is not None and (call := _phase(item, "call")) is not None and _is_quiet(item):
            self._passed(call.start, call.stop)
        if item.session.shouldfail or item.session.shouldstop:
            # what tests share is ended with this one
            nextitem = None
        _phase(item, "teardown", nextitem=nextitem)
        if hasattr(item, "_request"):
            item._request, item.funcargs = False, None
        return True


def _is_quiet(item: Any) -> bool:
    """Whether a phase of a test that raised nothing has passed, and is not reported."""
    # what is expected to fail passes by failing, also if a fixture has said so; and only a report has unittest's failures
    return item.get_closest_marker("xfail") is None and not isinstance(item, unittest.TestCaseFunction)


def _phase(item: Any, when: Any, **told: Any) -> Any:
    """How it went, if it passed."""
    hook = getattr(item.ihook, f"pytest_runtest_{when}")
    reraise = (pytest.exit.Exception, KeyboardInterrupt)
    call: Any = runner.CallInfo.from_call(lambda: hook(item=item, **told), when=when, reraise=reraise)
    if call.excinfo is None and _is_quiet(item):
        # as a report would have it, for pytest's `tmp_path`
        item.stash.setdefault(tmpdir.tmppath_result_key, {})[when] = True
        return call
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=report)
    if runner.check_interactive_exception(call, report):
        item.ihook.pytest_exception_interact(node=item, call=call, report=report)
    return call if report.passed else None


# -- logs


class _Logs:
    """The phase of a test, as far as its log is concerned. Args: plugin: pytest's."""

    def __init__(self, plugin: Any, item: Any, when: str) -> None:
        self._handler, self._item, self._when = plugin.report_handler, item, when
        item.stash[logs.caplog_handler_key] = plugin.caplog_handler

    def __enter__(self) -> None:
        root = logging.getLogger()
        if self._handler not in root.handlers:
            # the first test, or one behind a test that has taken all of them away
            root.addHandler(self._handler)
        if self._handler.records:
            self._handler.reset()

    def __exit__(self, *_: object) -> None:
        if self._handler.records:
            self._item.add_report_section(self._when, "log", self._handler.stream.getvalue().strip())


_of_pytest: Any = logs.LoggingPlugin._runtest_for


def _logs(plugin: Any, item: Any, when: str) -> contextlib.AbstractContextManager[None]:
    if "caplog" in item.fixturenames or plugin.log_level is not None:
        whole: contextlib.AbstractContextManager[None] = _of_pytest(plugin, item, when)
        return whole
    return _Logs(plugin, item, when)


_begin_caplog: Any = logs.LogCaptureFixture.__init__


def _caplog(self: Any, item: Any, **told: Any) -> None:
    """Make the fixture. Raises: RuntimeError: its handler hears nothing: when the test began, nobody could see that it wants it."""
    if "caplog" not in item.fixturenames and item.stash[logs.caplog_handler_key] not in logging.getLogger().handlers:
        raise RuntimeError("name caplog among the arguments: tests/lean.py gives it no handler if getfixturevalue asks for it")
    _begin_caplog(self, item, **told)


# -- captures

_snap = capture.FDCapture.snap


def _snap_if_written(self: Any) -> str:
    return _snap(self) if fstat(self.tmpfile.fileno()).st_size else ""


def begin(config: pytest.Config, passed: Callable[[float, float], None] | None) -> None:
    """Do less from now on. Args: passed: as of `Phases`; None: each phase is reported."""
    logs.LoggingPlugin._runtest_for = _logs  # type: ignore[method-assign, assignment]
    logs.LogCaptureFixture.__init__ = _caplog  # type: ignore[method-assign]
    capture.FDCapture.snap = _snap_if_written  # type: ignore[method-assign]
    if passed is not None:
        config.pluginmanager.register(Phases(passed), "akrunner-phases")
