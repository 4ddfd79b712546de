"""The log of a task: what is kept, echoed and remembered."""

from __future__ import annotations

import os
from pathlib import Path

from akrunner.launch.logs import LogPump

NOISE = "2026-11-21 17:24:47.2: E external/xla/cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)"


def pumped(data: bytes, path: Path, limit: int = 1 << 20) -> tuple[LogPump, list[str]]:
    read, write = os.pipe()
    echoed: list[str] = []
    pump = LogPump(read, str(path), echoed.append, limit)
    os.write(write, data)
    os.close(write)
    pump.join(60)
    return pump, echoed


def test_lines_are_kept_echoed_and_remembered(tmp_path: Path) -> None:
    pump, echoed = pumped(b"one\ntwo \xff\r\nthree", tmp_path / "log.txt")
    assert echoed == ["one", "two \\xff", "three"]
    assert pump.tail(2) == "two \\xff\nthree"
    assert (tmp_path / "log.txt").read_bytes() == b"one\ntwo \xff\r\nthree"


def test_that_there_is_no_graphics_card_is_in_the_file_only(tmp_path: Path) -> None:
    pump, echoed = pumped(f"one\n{NOISE}\ntwo\n".encode(), tmp_path / "log.txt")
    assert echoed == ["one", "two"] and pump.tail() == "one\ntwo"
    assert NOISE in (tmp_path / "log.txt").read_text()


def test_a_log_past_its_limit_keeps_its_end(tmp_path: Path) -> None:
    pumped(b"a" * 1000 + b"end\n", tmp_path / "log.txt", limit=100)
    kept = (tmp_path / "log.txt").read_text()
    assert kept.startswith("a" * 100) and kept.endswith("end\n")
