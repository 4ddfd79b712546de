"""When Ctrl-C is heard."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.patience import Patience


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """What a listener of the user's has heard, who raises nothing."""
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    yield came
    signal.signal(signal.SIGTERM, before)


def test_at_moments_that_can_bear_it(heard: list[int]) -> None:
    with Patience() as patience:
        signal.raise_signal(signal.SIGTERM)
        assert heard == []
        with patience.heard():
            assert heard == [signal.SIGTERM], "what was kept comes first"
        signal.raise_signal(signal.SIGTERM)
        assert len(heard) == 1
    assert len(heard) == 2, "given to whoever listened before"
    signal.raise_signal(signal.SIGTERM)
    assert len(heard) == 3


def test_at_once_while_it_is_waited_for(heard: list[int]) -> None:
    with Patience() as patience, patience.heard():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert len(heard) == 2, "whoever listens raised nothing: it may come again"


def test_it_is_raised_once_and_the_end_is_not_disturbed() -> None:
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt), Patience() as patience:
        try:
            with patience.heard():
                signal.raise_signal(signal.SIGINT)
                steps.append("not reached")
        finally:
            signal.raise_signal(signal.SIGINT)
            steps.append("ended")
    assert steps == ["ended"]


def test_the_third_cuts_it_short() -> None:
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt), Patience():
        for step in ("one", "two", "three"):
            signal.raise_signal(signal.SIGINT)
            steps.append(step)
    assert steps == ["one", "two"]


def test_in_another_thread_it_does_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[Any] = []

    def run() -> None:
        with Patience() as patience, patience.heard():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
