"""What whoever looks on is told."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.base import ReportObserver
from akrunner.engines.onlooker import Onlooker
from akrunner.errors import ConfigError, JobError
from akrunner.spec import TaskSpec

CHIEF = TaskSpec("chief", 0)


class Watching:
    def __init__(self, error: Any = None) -> None:
        self.told: list[Any] = []
        self.error = error

    def progress(self, progress: Any) -> None:
        self.log("progress", progress)

    def log(self, task: str, line: str) -> None:
        if self.error is not None:
            raise self.error
        self.told.append((task, line))


def test_lines_and_progress() -> None:
    watching = Watching()
    onlooker = Onlooker(watching)
    echo = onlooker.echo(CHIEF)
    assert echo is not None
    echo("a line")
    onlooker.tell(lambda: "so far")  # type: ignore[arg-type, return-value]
    onlooker.no_stacks = True
    echo('  File "/work/train.py", line 7 in main')
    echo("Current thread 0x00007ff3a0231b80 (most recent call first):")
    onlooker.no_stacks = False
    echo('  File "/work/train.py", line 7 in main')
    assert [line for _, line in watching.told] == ["a line", "so far", '  File "/work/train.py", line 7 in main']


def test_nobody() -> None:
    onlooker = Onlooker(None)
    assert onlooker.echo(CHIEF) is None
    onlooker.tell(lambda: pytest.fail("nobody asked"))


def test_what_it_raises_is_said_to_be_its_own() -> None:
    with pytest.raises(JobError, match=r"observer: progress\(\) raised ZeroDivisionError: injected"):
        Onlooker(Watching(ZeroDivisionError("injected"))).tell(lambda: None)  # type: ignore[arg-type, return-value]
    echo = Onlooker(Watching(ConfigError("no"))).echo(CHIEF)
    assert echo is not None
    with pytest.raises(ConfigError):
        echo("a line")


def test_reports_go_to_who_takes_them() -> None:
    class Taking(Watching, ReportObserver):
        def report(self, report: Any) -> None:
            self.log("report", report)

    taking, other = Taking(), Watching()
    # that of a user may mean something else
    other.report = lambda report: pytest.fail("it was not asked for")  # type: ignore[attr-defined]
    Onlooker(taking).report({"loss": 0.5})
    Onlooker(other).report({"loss": 0.5})
    assert taking.told == [("report", {"loss": 0.5})]
    with pytest.raises(JobError, match=r"observer: report\(\) raised"):
        Onlooker(Taking(ZeroDivisionError("injected"))).report({})
