"""An output that is drawn over itself."""

from __future__ import annotations

import threading

import pytest

from akrunner.notebook import live
from akrunner.notebook.live import Drawn, Live
from tests.conftest import wait_for
from tests.unit.notebook.kernel import Shown, kernel

__all__ = ["kernel"]


def test_what_is_short_shows_its_end_alone(kernel: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    # however slow the machine is
    monkeypatch.setattr(live, "_FIRST", 1000.0)
    made = Live(lambda: Drawn("<b>1</b>", "1"))
    made.start()
    made.end(Drawn("<b>over</b>", "over"))
    assert kernel.bundles == [{"text/html": "<b>over</b>", "text/plain": "over"}]


def test_what_takes_longer_is_drawn_again_and_again(kernel: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_FIRST", 0.0)
    monkeypatch.setattr(live, "_EVERY", 0.01)
    drawn = iter(range(10**9))
    made = Live(lambda: Drawn("", str(next(drawn))))
    made.start()
    # a stream is entered twice: while it is prepared, and in its thread
    made.start()
    wait_for(lambda: len(kernel.bundles) > 2)
    assert len([one for one in threading.enumerate() if one.name == "akrunner-notebook"]) == 1
    made.end(Drawn("", "over"))
    assert kernel.plain[:3] == ["0", "1", "2"] and kernel.plain[-1] == "over"
    assert not [one for one in threading.enumerate() if one.name == "akrunner-notebook"]


def test_what_cannot_be_shown_fails_nothing(kernel: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_FIRST", 0.0)
    kernel.broken = True
    made = Live(lambda: Drawn("", str(1 // 0)))
    made.start()
    made.end(Drawn("", "over"))
    assert kernel.bundles == [] and not made.is_shown
