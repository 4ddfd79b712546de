"""When a signal's exception is raised."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from akrunner.cli import signals

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM)


@pytest.fixture
def watched() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    signals.watch()
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    # what has come is forgotten
    signals.watch()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NUMBERS[:-1])
def test_not_in_the_middle_of_an_import(
    watched: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """An extension module may end the process that raises in it."""
    name = f"akrunner_signals_{number}"
    reached: List[str] = []
    monkeypatch.setattr(signals, "reached", reached, raising=False)
    (tmp_path / f"{name}.py").write_text(
        f"import signal\nfrom akrunner.cli import signals\nsignal.raise_signal({int(number)})\n"
        "signals.reached.append('the end of the module')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    kind: Any = signals.Interrupted if number == signal.SIGINT else signals.Terminated
    with pytest.raises(kind):
        __import__(name)
        reached.append("behind the import")
        signal.sigtimedwait([], 10)
        reached.append("ten seconds later")
    assert reached[0] == "the end of the module" and "ten seconds later" not in reached
    assert name in sys.modules and signals.seen() in (signal.SIGINT, signal.SIGTERM)
    del sys.modules[name]


def test_an_import_without_end_is_interrupted(watched: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_AT_MOST", 0.0)
    (tmp_path / "akrunner_signals_endless.py").write_text("import signal\nsignal.raise_signal(2)\nwhile True: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(signals.Interrupted):
        __import__("akrunner_signals_endless")


def test_at_once_where_nothing_is_imported(watched: None) -> None:
    with pytest.raises(signals.Terminated):
        signal.raise_signal(signal.SIGTERM)
    # a second one interrupts no cleaning up
    signal.raise_signal(signal.SIGTERM)
    with pytest.raises(signals.Interrupted):
        signal.raise_signal(signal.SIGINT)
