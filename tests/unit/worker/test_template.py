"""What is looked for in a process before it is forked."""

from __future__ import annotations

import ctypes
import gc
import io
import mmap
import os
import random
import threading
import uuid
from pathlib import Path
from types import SimpleNamespace

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


def test_memory_in_large_pages_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is neither a file's nor read-only is put together, whatever the system makes of it."""
    large = template._LARGE
    with mmap.mmap(-1, 3 * large, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        text = os.urandom(3 * large)
        memory.write(text)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        place = f"{start:x}-{start + 3 * large:x}"
        asked: list[tuple[int, int]] = []
        half = 3 * large // 1024 // 2
        areas = [
            (f"{place} rw-p 0 00:00 0 ", half),
            (f"{place} rw-p 0 00:00 0 ", half - 1),
            (f"{place} rw-p 0 00:00 0 [stack]", half),
            (f"{place} r--p 0 00:00 0 ", half),
            (f"{place} rw-p 0 08:01 9 /a", half),
            ("0-1000 rw-p 0 00:00 0 [heap]", 4),
        ]
        lines = "".join(f"{area}\nSize: 1 kB\nRss: {kept} kB\nVmFlags: rd\n" for area, kept in areas)
        files = {"/proc/self/smaps": lines, "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"}
        monkeypatch.setattr(template, "open", lambda path: io.StringIO(files[path]), raising=False)
        template.put_together()
        assert memory[:] == text
        stands_for = SimpleNamespace(madvise=lambda at, size, advice: asked.append((at.value, size.value)))
        monkeypatch.setattr(ctypes, "CDLL", lambda name: stands_for)
        template.put_together()
        first = -(-start // large) * large
        # three, if the memory begins where a large page does
        assert asked == [(first, (3 if start == first else 2) * large)]
        monkeypatch.setattr(template, "_AT_ONCE", large)
        asked.clear()
        template.put_together()
        assert asked == [(first + large * at, large) for at in range(3 if start == first else 2)]
        asked.clear()
        files["/sys/kernel/mm/transparent_hugepage/enabled"] = "always madvise [never]\n"
        template.put_together()
        assert asked == []
        files["/sys/kernel/mm/transparent_hugepage/enabled"] = "[always] madvise never\n"
        monkeypatch.setattr(template, "_TOGETHER_SECONDS", 0)
        template.put_together()
        assert asked == []
        gc.collect()


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
