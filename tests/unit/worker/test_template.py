"""What is looked for in a process before it is forked."""

from __future__ import annotations

import mmap
import os
import random
import threading
import uuid
from pathlib import Path

import numpy as np
import pytest

from akrunner.wire import ending
from akrunner.worker import template


def test_what_a_fork_would_share_or_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread()])
    monkeypatch.setattr(template, "below", lambda pid: [])
    monkeypatch.setattr(template, "_shares_memory", lambda: False)
    before = template.descriptors()
    with open(__file__):
        assert template.why_not(before, str(tmp_path)) == f"what was imported has opened {__file__}"
    (tmp_path / "left").write_text("")
    assert template.why_not(template.descriptors(), str(tmp_path)) == "what was imported has made left in the temp directory"
    monkeypatch.setattr(template, "_shares_memory", lambda: True)
    (tmp_path / "left").unlink()
    assert template.why_not(template.descriptors(), str(tmp_path)).endswith("made memory that forks would share")
    monkeypatch.setattr(template, "below", lambda pid: ["1"])
    assert template.why_not(template.descriptors(), str(tmp_path)).endswith("has started a process")
    monkeypatch.setattr(template.sys, "platform", "darwin")
    assert "on this system" in template.why_not({}, "")


def test_memory_that_is_shared_is_noticed() -> None:
    with mmap.mmap(-1, 1):
        assert template._shares_memory()


def test_numbers_that_were_drawn_or_seeded_are_noticed() -> None:
    """By the global generator's state only: this test leaves it as it was."""
    before = np.random.get_state()
    try:
        np.random.seed()
        assert template._is_fresh()
        np.random.rand(random.Random(1).randint(1, 600))
        assert not template._is_fresh()
        np.random.seed(7)
        assert not template._is_fresh()
    finally:
        np.random.set_state(before)


def test_a_mark_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process was started with stays as it is."""
    there = Path(f"/proc/{os.getpid()}/environ").read_bytes()
    if f"{ending.MARK}=".encode() not in there:
        with pytest.raises(ValueError, match="not found"):
            template.remark(uuid.uuid4().hex)
    assert Path(f"/proc/{os.getpid()}/environ").read_bytes() == there
