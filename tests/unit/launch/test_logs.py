"""The log of a task: what is kept, echoed and remembered."""

from __future__ import annotations

import os
import threading
import time
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


def test_a_slow_echo_costs_the_file_and_the_tail_nothing_of_their_end(tmp_path: Path) -> None:
    read, write = os.pipe()
    #: one for each line that may be echoed
    free = threading.Semaphore(0)
    echoed: list[str] = []

    def echo(line: str) -> None:
        free.acquire()
        echoed.append(line)

    pump = LogPump(read, str(tmp_path / "log.txt"), echo)
    # the pump reads the pipe only once, before it echoes
    os.write(write, b"one\ntwo\n")
    while not pump.position:
        time.sleep(0.01)
    lines = [f"{number} {'x' * 60}" for number in range(1000)]
    os.write(write, "".join(f"{line}\n" for line in lines).encode())
    os.close(write)
    pump.ended()
    assert pump._thread.is_alive() and pump.tail(1) == "two"
    free.release()
    until = time.monotonic() + 60
    while pump.tail(1) != lines[-1] and time.monotonic() < until:
        time.sleep(0.01)
    assert (tmp_path / "log.txt").read_text().splitlines() == ["one", "two", *lines] and echoed == ["one"]
    free.release(len(lines) + 1)
    pump.join(60)
    assert echoed == ["one", "two", *lines] and not pump._thread.is_alive()


def test_that_there_is_no_graphics_card_is_in_the_file_only(tmp_path: Path) -> None:
    pump, echoed = pumped(f"one\n{NOISE}\ntwo\n".encode(), tmp_path / "log.txt")
    assert echoed == ["one", "two"] and pump.tail() == "one\ntwo"
    assert NOISE in (tmp_path / "log.txt").read_text()


def test_a_log_past_its_limit_keeps_its_end(tmp_path: Path) -> None:
    pumped(b"a" * 1000 + b"end\n", tmp_path / "log.txt", limit=100)
    kept = (tmp_path / "log.txt").read_text()
    assert kept.startswith("a" * 100) and kept.endswith("end\n")
