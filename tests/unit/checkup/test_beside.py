"""Checks that hang, raise or cannot be started are lines like the others."""

from __future__ import annotations

import threading

import pytest

from akrunner.checkup.beside import Check, looked
from akrunner.checkup.lines import BROKEN, LOOK, OK, Checkup, Line


def test_each_has_its_own_time_and_raises_nothing() -> None:
    never = threading.Event()

    def hangs() -> list[Line]:
        never.wait(60)
        return []

    def raises() -> list[Line]:
        raise SystemExit("password=hunter2secret said the library")

    fine = Line("fine", OK, "is")
    found = looked([Check("hangs", hangs, 0.05, "do something"), Check("raises", raises), Check("fine", lambda: [fine])])
    never.set()
    assert found[0] == Line("hangs", LOOK, "had not answered after 0.05 s", "do something")
    assert found[1].about == "raises" and found[1].state == LOOK and "hunter2secret" not in found[1].found
    assert found[2] == fine


def test_no_thread_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        (line,) = looked([Check("some", lambda: [])])
    assert line.state == BROKEN and "can't start new thread" in line.found


def test_the_worst_counts() -> None:
    lines = [Line("a", OK, "fine"), Line("b", LOOK, "so\nso", "look")]
    assert Checkup(tuple(lines)).state == LOOK and Checkup(tuple(lines)).ok and Checkup(()).state == OK
    broken = Checkup((*lines, Line("c", BROKEN, "gone")))
    assert broken.state == BROKEN and not broken.ok and [line.about for line in broken.of(LOOK)] == ["b"]
    assert str(broken).splitlines()[1:4] == ["look here  b: so", "             so", "             -> look"]
    assert broken.asdict()["lines"][2] == {"about": "c", "state": "broken", "found": "gone", "do": ""}
