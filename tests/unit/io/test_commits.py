"""What a block does to an output it writes."""

from __future__ import annotations

import functools
import os
import signal
import threading
from typing import Any

import pytest

from akrunner.errors import WriteError
from akrunner.foreign import underway
from akrunner.io import commits
from akrunner.io.commits import closing, committed, last_step, may_be_written, release, still_runs, told_of
from akrunner.patience import Patience
from tests.conftest import wait_for


class Output:
    def __init__(self, broken: bool = False) -> None:
        self.calls: list[str] = []
        self._broken = broken

    def commit(self) -> None:
        self.calls.append("commit")
        if self._broken:
            raise OSError(5, "Input/output error")

    def abort(self) -> None:
        self.calls.append("abort")


def test_a_block_that_ends_well_commits_and_lets_go() -> None:
    with committed(Output()) as output:
        assert not output.calls
    assert output.calls == ["commit", "abort"]


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_a_block_that_raises_aborts(error: Any) -> None:
    output = Output()
    with pytest.raises(type(error)), committed(output):
        raise error
    assert output.calls == ["abort"]


def test_a_commit_that_fails_aborts_and_says_what_could_not_be_stored() -> None:
    output = Output(broken=True)
    with (
        pytest.raises(WriteError, match=r"cannot store out\.csv"),
        committed(output, underway(WriteError, "output: cannot store out.csv")),
    ):
        pass
    assert output.calls == ["commit", "abort"]


def test_what_stores_is_not_asked_about_what_the_block_raises() -> None:
    with pytest.raises(OSError, match="the block's"), committed(Output(), underway(WriteError, "output")):
        raise OSError("the block's")


def test_what_cannot_be_let_go_of_behind_a_commit_is_a_warning() -> None:
    class Held(Output):
        def abort(self) -> None:
            raise OSError(5, "Input/output error")

    held = Held()
    with pytest.warns(RuntimeWarning, match="output: everything was written, and then its end failed"), committed(held):
        pass
    assert held.calls == ["commit"]
    release(lambda: None, "output")


def test_a_signal_behind_a_commit_says_that_the_output_is_there() -> None:
    with pytest.raises(KeyboardInterrupt) as told:
        release(_interrupt, "output: the table")
    assert may_be_written(told.value)
    words = "output: the table: everything was written before the signal took effect"
    assert told_of(told.value) == told.value.__notes__ == [words]
    # who lets go of more behind it says nothing more
    with pytest.raises(KeyboardInterrupt), committed(Output()):
        raise told.value
    assert len(told_of(told.value)) == 1


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_signal_waits_for_the_last_step_and_says_that_it_is_done(elsewhere: bool) -> None:
    done: list[int] = []

    def step() -> None:
        _interrupt()
        done.append(1)

    with pytest.raises(KeyboardInterrupt) as told:
        last_step("the table", step, elsewhere)
    assert done == [1] and not still_runs(told.value)
    assert told.value.__notes__ == ["output: the table was written: its commit ended before the signal took effect"]
    assert told_of(told.value) == told.value.__notes__


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_last_step_that_fails_says_so_whatever_comes(elsewhere: bool) -> None:
    def step() -> None:
        _interrupt()
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        last_step("the table", step, elsewhere)


def _longer(found: list[int], number: int) -> bool:
    return len(found) > number


@pytest.mark.parametrize(("seconds", "signals"), [(0.0, 1), (600.0, 3)])
def test_a_last_step_that_does_not_end_is_not_waited_for(seconds: float, signals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "_STEP_SECONDS", seconds)
    goes_on, ended = threading.Event(), threading.Event()
    came: list[int] = []
    handled = Patience._came

    def counted(self: Patience, number: int, frame: Any) -> None:
        came.append(number)
        handled(self, number, frame)

    monkeypatch.setattr(Patience, "_came", counted)

    def step() -> None:
        for number in range(signals):
            _interrupt()
            # several that come at once are one
            wait_for(functools.partial(_longer, came, number))
        goes_on.wait(60)
        ended.set()

    held = Output()
    held.close = lambda: held.calls.append("close")  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt) as told, closing(held):  # type: ignore[type-var]
        last_step("the table", step, elsewhere=True)
    # nothing is closed under the step
    assert still_runs(told.value) and held.calls == []
    assert told.value.__notes__[0].startswith("output: it is not known whether the table was written")
    goes_on.set()
    assert ended.wait(60)
