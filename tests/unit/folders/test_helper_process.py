"""What the helper's end reads, and what it leaves to whoever asked."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from akrunner.codec import crc32c
from akrunner.folders import helper_process
from akrunner.folders.helper_process import FOUND, Reader

_SIZE = FOUND + 4096


def _reader(folder: Path, memory: mmap.mmap) -> Reader:
    return Reader(memory, _SIZE, os.open(folder, os.O_RDONLY | os.O_DIRECTORY), 3000, 1, 60.0, 60.0, crc32c.crc_of)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, size in (("good", 10), ("grown", 10), ("large", 3001), ("most", 3000), ("second", 2000), ("empty", 0)):
        (tmp_path / name).write_bytes(name[:1].encode() * size)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def _read(folder: Path, asked: list[tuple[bytes, int]]) -> tuple[list[int], list[int], bytes]:
    """Returns: (lengths, checksums, the bytes) of what was read into the second piece."""
    memory = mmap.mmap(-1, 2 * _SIZE)
    reader = _reader(folder, memory)
    names, sizes = [name for name, _ in asked], [size for _, size in asked]
    assert reader._read(1, names, sizes) == helper_process.READ
    os.close(reader._base or 0)
    found = struct.unpack_from(f"<{2 * len(asked)}q", memory, _SIZE)
    return list(found[: len(asked)]), list(found[len(asked) :]), memory[_SIZE + FOUND :]


def test_files_lie_one_behind_the_other_and_what_is_no_file_is_left(folder: Path) -> None:
    asked = [
        (b"good", 10),
        (b"gone", 5),
        (b"grown", 9),
        (b"large", 3001),
        (b"empty", 0),
        (b"folder", -1),
        (b"pipe", -1),
        (b"a\0b", 3),
    ]
    lengths, crcs, data = _read(folder, [*asked, (b"second", -1)])
    assert lengths == [10, -1, -1, -1, -1, -1, -1, -1, 2000]
    assert data[:2010] == b"g" * 10 + b"s" * 2000
    assert crcs == [crc32c.crc_of(b"g" * 10), *[0] * 7, crc32c.crc_of(b"s" * 2000)]


def test_what_has_no_room_is_left(folder: Path) -> None:
    lengths, _, data = _read(folder, [(b"most", 3000), (b"second", 2000), (b"good", 10)])
    assert lengths == [3000, -1, 10] and data[2999:3010] == b"m" + b"g" * 10


def test_files_that_are_slow_to_open_are_not_read_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda fd, *_: asked.append(os.fstat(fd).st_size))
    monkeypatch.setattr(helper_process, "in_memory", lambda names, base: False)
    base = os.open(folder, os.O_RDONLY)
    for slow, quick in ((60.0, True), (-1.0, False)):
        assert helper_process.advised([b"good", b"gone", b"second"], base, 1, slow) is quick
    os.close(base)
    assert asked == [10, 2000, 10]
