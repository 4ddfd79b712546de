"""Many small files are read by a process of its own: the bytes are the same, whatever becomes of it, and it goes with whoever packs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import akrunner
from akrunner.folders import helper, pool
from akrunner.packing import files
from akrunner.packing import shards as shards_module
from tests.conftest import alive, wait_for
from tests.e2e.test_pack import digests, photos

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.slow]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Of each answer of the helper, which is asked however few files there are: how many files it has read."""
    monkeypatch.setattr(files, "_HELPED", 1)
    monkeypatch.setattr(pool, "BATCH_ROWS", 8)
    # however slow this machine is
    monkeypatch.setattr(pool, "_SLOW", 60.0)
    monkeypatch.setattr(pool, "_LATE", 60.0)
    found: list[int | None] = []
    real = helper.Helper.answer

    def answer(self: helper.Helper, count: int) -> Any:
        came = real(self, count)
        found.append(count - len(came.missing) if came is not None else None)
        return came

    monkeypatch.setattr(helper.Helper, "answer", answer)
    return found


def _packed(source: Path, out: Path, **options: Any) -> dict[str, str]:
    akrunner.pack(source, out, split="0.7,0.3", bad_rows="skip", **options)
    return digests(out)


@pytest.mark.parametrize("form", ["tfrecord", "arrow"])
def test_the_bytes_are_the_same(tmp_path: Path, form: str, answers: list[int | None], monkeypatch: pytest.MonkeyPatch) -> None:
    source = photos(tmp_path / "in", 50)
    for i in range(0, 50, 3):
        # there are batches without a good one
        (source / "cat" / f"{i}.jpg").write_bytes(b"no")
        (source / "owl" / f"{i}.jpg").write_bytes(b"no")
    (source / "cat" / "empty.jpg").touch()
    (source / "dog" / "nowhere.jpg").symlink_to(tmp_path / "nothing")
    # larger than a piece of the memory
    (source / "owl" / "large.jpg").write_bytes((source / "owl" / "1.jpg").read_bytes() + bytes(100_000))
    monkeypatch.setattr(pool, "BATCH_BYTES", 60_000)
    monkeypatch.setattr(pool, "BATCH_ROWS", 2)
    real = shards_module._write_all

    def slowly(fd: int, buffers: list[Any]) -> None:
        # what is overwritten too early shows
        time.sleep(0.02)
        real(fd, buffers)

    monkeypatch.setattr(shards_module, "_write_all", slowly)
    with_it = _packed(source, tmp_path / "with", format=form, shard_size="15kB")
    assert sum(one or 0 for one in answers) == 150 and len(answers) > 2 * helper.PIECES
    monkeypatch.setattr(pool, "can_help", lambda: False)
    del answers[:]
    assert _packed(source, tmp_path / "without", format=form, shard_size="15kB") == with_it
    assert not answers and any(name.endswith("00001.tfrecord" if form == "tfrecord" else "00001.arrow") for name in with_it)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_without_it_this_process_goes_on(
    tmp_path: Path, answers: list[int | None], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    # one that was stopped is not waited for
    monkeypatch.setattr(helper, "_PATIENCE", 30.0 if number == signal.SIGKILL else 0.5)
    source = photos(tmp_path / "in", 50)
    wanted = _packed(source, tmp_path / "whole")
    real = helper.Helper.ask

    def ask(self: helper.Helper, piece: int, names: list[bytes], sizes: list[int]) -> None:
        if len(answers) == 3:
            os.kill(self._process.pid, number)
            if number == signal.SIGKILL:
                self._process.wait()
        real(self, piece, names, sizes)

    del answers[:]
    monkeypatch.setattr(helper.Helper, "ask", ask)
    assert _packed(source, tmp_path / "killed") == wanted
    assert answers[-1] is None and answers.count(None) == 1
    # nor is it there where none can be started
    monkeypatch.setattr(helper.subprocess, "Popen", _no_process)
    assert _packed(source, tmp_path / "none") == wanted


def _no_process(*_: Any, **__: Any) -> None:
    raise BlockingIOError(11, "Resource temporarily unavailable")


_WAITS = """
import sys, time
import akrunner
from akrunner.folders import helper, pool
from akrunner.packing import files

files._HELPED, pool.BATCH_ROWS = 1, 8
real = helper.Helper.answer

def answer(self, count):
    print(self._process.pid, flush=True)
    # a signal that comes just before a sleep is noticed only behind it
    for _ in range(3000):
        time.sleep(0.1)

helper.Helper.answer = answer
akrunner.pack(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_it_goes_with_whoever_packs(tmp_path: Path, number: int) -> None:
    source = photos(tmp_path / "in", 20)
    words = [sys.executable, "-c", _WAITS, str(source), str(tmp_path / "out")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        its = psutil.Process(int(process.stdout.readline()))
        process.send_signal(number)
        process.communicate(timeout=60)
    wait_for(lambda: not alive(its))
    assert akrunner.pack(source, tmp_path / "out").rows == 60


def test_it_ends_when_nobody_asks_any_longer() -> None:
    one = helper.Helper(None, 1000, 1000, 8, 60.0, 60.0)
    one.ends()
    assert one._process.wait(60) == 0
    one.close()
