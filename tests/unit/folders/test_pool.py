"""Files are read in the order they are asked for, however slow it is to open or to read them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from akrunner.folders import helper_process, pool
from akrunner.folders.pool import Pool

_BATCHES, _FILES, _THREADS = 6, 100, 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(_BATCHES * _FILES):
        (tmp_path / str(number)).write_bytes(b"%d" % number * 50)
    return tmp_path


def _asked(sizes: bool = True) -> list[tuple[int, list[bytes], list[int]]]:
    names = [b"%d" % number for number in range(_BATCHES * _FILES)]
    return [
        (key, some, [len(name) * 50 if sizes else -1 for name in some])
        for key, some in ((i, names[i : i + _FILES]) for i in range(0, len(names), _FILES))
    ]


def _all_read(folder: Path, sizes: bool = True) -> list[int]:
    """Read everything, and look whether it is right. Returns: how many threads there are for each piece, as pieces are given out."""
    threads: list[int] = []
    real = ThreadPoolExecutor.submit

    def submit(self: ThreadPoolExecutor, work: Any, *given: Any) -> Any:
        if getattr(work, "__name__", "") == "_some":
            threads.append(self._max_workers)
        return real(self, work, *given)

    with pytest.MonkeyPatch.context() as patch, Pool(str(folder), _THREADS) as files:
        patch.setattr(ThreadPoolExecutor, "submit", submit)
        batches = list(files.read(_asked(sizes)))
    assert [batch.key for batch in batches] == list(range(0, _BATCHES * _FILES, _FILES))
    assert [data for batch in batches for data in batch.datas] == [b"%d" % i * 50 for i in range(_BATCHES * _FILES)]
    assert not any(batch.problems for batch in batches)
    return threads


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [True, False])
def test_files_in_memory_are_read_by_one_thread(folder: Path, sizes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # however slow this machine is
    monkeypatch.setattr(pool, "_SLOW", 60.0)
    monkeypatch.setattr(pool, "_LATE", 60.0)
    assert _all_read(folder, sizes) == [1] * _BATCHES


def test_the_system_is_asked_to_read_what_is_not_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(helper_process, "in_memory", lambda names, base: False)
    monkeypatch.setattr(pool, "_SLOW", 60.0)
    monkeypatch.setattr(pool, "_LATE", 60.0)
    monkeypatch.setattr(os, "posix_fadvise", lambda fd, *_: asked.append(os.fstat(fd).st_ino), raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_WILLNEED", 3, raising=False)
    assert _all_read(folder) == [1] * _BATCHES
    assert asked == [os.stat(folder / str(i)).st_ino for i in range(_BATCHES * _FILES)]


def test_the_system_is_not_asked_to_read_what_is_too_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[bytes]] = []
    monkeypatch.setattr(helper_process, "advised", lambda names, *_: bool(asked.append(names)) or True)
    with Pool(str(folder), 1, most=10) as some:
        (batch,) = some.read([(None, [b"0", b"1", b"2"], [10, 11, 5 << 30])])
    assert asked == [[b"0"]] and batch.problems[2].startswith("it has 5,368,709,120 bytes; the most is 10")


def test_files_that_are_slow_to_open_are_read_by_several_threads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_process, "in_memory", lambda names, base: False)
    monkeypatch.setattr(pool, "_SLOW", -1.0)
    assert set(_all_read(folder)) == {_THREADS}


def test_where_the_system_takes_no_advice_several_threads_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    assert set(_all_read(folder)) == {_THREADS}


def test_several_threads_read_once_one_was_slow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_SLOW", 60.0)
    monkeypatch.setattr(pool, "_LATE", -1.0)
    threads = _all_read(folder)
    # what was given out before anything was known of the first
    assert threads[0] == 1 and threads[-1] == _THREADS


def test_what_cannot_be_read_is_said_and_the_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_process, "in_memory", lambda names, base: False)
    (tmp_path / "good").write_bytes(b"x" * 10)
    (tmp_path / "grown").write_bytes(b"x" * 10)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    names = [b"good", b"gone", b"grown", b"empty", b"folder", b"pipe", b"with\0zero", b"good"]
    with Pool(str(tmp_path), 4) as files:
        (batch,) = files.read([(None, names, [10, 10, 9, -1, -1, -1, -1, -1])])
    assert [data is not None for data in batch.datas] == [True, False, False, False, False, False, False, True]
    assert sorted(batch.problems) == [1, 2, 3, 4, 5, 6]
    assert batch.problems[1] == "there is no such file"
    assert "changed" in batch.problems[2]
    assert batch.problems[3] == "it is empty"


def test_no_batch_and_an_empty_one(tmp_path: Path) -> None:
    with Pool(str(tmp_path), 4) as files:
        assert list(files.read([])) == []
        assert [batch.datas for batch in files.read([(1, [], [])])] == [[]]


def test_a_file_that_has_to_be_waited_for_is_no_want_of_processes() -> None:
    assert pool.why_not(BlockingIOError(11, "Resource temporarily unavailable")).startswith("it cannot be read now")
