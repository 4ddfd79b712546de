"""The packing process's side of the helper: what it asks for, what it makes of an answer, and when it asks no more."""

from __future__ import annotations

import io
import marshal
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from akrunner.codec import crc32c
from akrunner.folders import helper
from akrunner.folders.helper import Helper
from akrunner.folders.helper_process import FOUND, LATE, MESSAGE, READ, SLOW, Reader


class Process:
    """In place of the helper's process: the ends of its pipes, and the memory that it would share."""

    pid = 0

    def __init__(self, words: list[str], kept: tuple[int, ...]) -> None:
        self.words, self.kept = words, kept
        self.size = int(words[1])
        self.memory = mmap.mmap(int(words[0]), self.size * int(words[2]))
        self.asked, asks = os.pipe()
        answers, self.said = os.pipe()
        self.stdin, self.stdout = io.FileIO(asks, "w"), io.FileIO(answers, "r")
        self.ended: list[str] = []

    def kill(self) -> None:
        self.ended.append("kill")

    def wait(self) -> None:
        self.ended.append("wait")

    def read(self) -> tuple[int, list[bytes], list[int]]:
        """What is asked for: (number of the piece, names, sizes)."""
        piece, length = MESSAGE.unpack(os.read(self.asked, MESSAGE.size))
        names, sizes = marshal.loads(self.memory[piece * self.size + FOUND :][:length])
        return piece, names, sizes

    def answer(self, piece: int, how: int) -> None:
        os.write(self.said, MESSAGE.pack(piece, how))


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Process]]:
    made: list[Process] = []

    def started(words: list[str], kept: tuple[int, ...]) -> Process:
        made.append(Process(words, kept))
        return made[-1]

    monkeypatch.setattr(helper, "_started", started)
    monkeypatch.setattr(helper.leftovers, "watch", lambda pid: None)
    monkeypatch.setattr(helper.leftovers, "unwatch", lambda pid: None)
    monkeypatch.setattr(helper, "_PATIENCE", 0.0)
    yield made
    for one in made:
        for fd in (one.asked, one.said):
            os.close(fd)
        one.stdin.close()
        one.stdout.close()


def test_files_that_are_asked_for_come_as_they_were_read(tmp_path: Path, process: list[Process]) -> None:
    for name, size in (("a", 10), ("b", 2000)):
        (tmp_path / name).write_bytes(name.encode() * size)
    base = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    made = Helper(base, 4096, 3000, 5, 0.5, 0.25)
    (there,) = process
    assert there.size % mmap.PAGESIZE == 0 and there.size > FOUND + 4096
    assert there.words[2:8] == [str(helper.PIECES), str(base), "3000", "5", "0.5", "0.25"] and there.kept[1:] == (base,)
    made.ask(2, [b"a", b"gone", b"b"], [10, 5, 2000])
    piece, names, sizes = there.read()
    assert (piece, names, sizes) == (2, [b"a", b"gone", b"b"], [10, 5, 2000])
    reader = Reader(there.memory, there.size, base, 3000, 5, 60.0, 60.0, crc32c.crc_of)
    there.answer(piece, reader._read(piece, names, sizes))
    found = made.answer(3)
    assert found is not None and found.missing == [1] and not found.late
    assert [None if data is None else bytes(data) for data in found.datas] == [b"a" * 10, None, b"b" * 2000]
    assert [found.crcs[0], found.crcs[2]] == [crc32c.crc_of(b"a" * 10), crc32c.crc_of(b"b" * 2000)]
    os.close(base)


def test_a_name_that_is_too_long_for_a_path_is_left_empty(process: list[Process]) -> None:
    made = Helper(None, 10, 10, 5, 0.5, 0.25)
    made.ask(0, [b"x" * 4096, b"x" * 4097], [1, 1])
    assert process[0].read()[1] == [b"x" * 4096, b""] and process[0].words[3] == "-1" and len(process[0].kept) == 1


@pytest.mark.parametrize(("how", "late"), [(READ, False), (LATE, True)])
def test_a_helper_that_took_long_is_told_so(process: list[Process], how: int, late: bool) -> None:
    made = Helper(None, 10, 10, 5, 0.5, 0.25)
    process[0].answer(1, how)
    found = made.answer(0)
    assert found is not None and found.late is late and found.datas == []


def test_a_helper_that_has_read_nothing_is_asked_no_more(process: list[Process]) -> None:
    made = Helper(None, 10, 10, 5, 0.5, 0.25)
    assert made.answer(1) is None, "it says nothing for as long as it is waited for"
    process[0].answer(1, SLOW)
    assert made.answer(1) is None
    os.write(process[0].said, b"x")
    assert made.answer(1) is None, "half a message"


def test_one_that_has_ended_is_noticed_where_its_answer_is_read(process: list[Process]) -> None:
    made = Helper(None, 10, 10, 5, 0.5, 0.25)
    there = process[0]
    for name in ("asked", "said"):
        os.close(getattr(there, name))
        setattr(there, name, os.open(os.devnull, os.O_RDONLY))
    made.ask(0, [b"a"], [1])
    assert made.answer(1) is None


def test_a_helper_is_ended_by_its_input_or_at_once(process: list[Process]) -> None:
    made = Helper(None, 10, 10, 5, 0.5, 0.25)
    made.ends()
    assert process[0].stdin.closed and process[0].ended == []
    made.close()
    assert process[0].stdout.closed and process[0].ended == ["kill", "wait"]


def test_a_system_without_a_second_core_or_a_fast_checksum_has_no_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    for name in ("memfd_create", "posix_fadvise", "RWF_NOWAIT"):
        monkeypatch.setattr(os, name, getattr(os, name, 1), raising=False)
    monkeypatch.setattr(crc32c, "IN_C", True)
    assert helper.can_help()
    with monkeypatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: {3})
        assert not helper.can_help()
    with monkeypatch.context() as patch:
        patch.setattr(crc32c, "IN_C", False)
        assert not helper.can_help()
    monkeypatch.delattr(os, "RWF_NOWAIT")
    assert not helper.can_help()
