"""What a task finds of the processes its script has left running."""

from __future__ import annotations

import io
from typing import Any

import pytest

from akrunner.worker import leaving


def test_a_thread_that_ends_meanwhile_hides_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: str) -> Any:
        if "/task/1/" in path:
            raise FileNotFoundError(path)
        return io.StringIO("77 78 ")

    monkeypatch.setattr(leaving.os, "listdir", lambda path: ["1", "2"])
    monkeypatch.setattr(leaving, "open", opened, raising=False)
    assert leaving.below("self") == ["77", "78"]


def test_a_process_that_is_gone_has_nothing_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: str) -> Any:
        raise FileNotFoundError(path)

    monkeypatch.setattr(leaving.os, "listdir", gone)
    assert leaving.below("5") == []
