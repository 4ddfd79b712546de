"""Rows as they are spooled, with what split each is in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.wire import frames
from akrunner.wire.frames import WireError
from akrunner.worker.link import Link
from akrunner.worker.splits import ENDING
from akrunner.worker.tables.broker import Broker
from akrunner.worker.tables.errors import TableError

END = {"rows": 3, "total_rows": 3, "shares": [3], "splits": [[1, 2]]}


@pytest.fixture
def ends() -> Iterator[tuple[Link, frames.FrameWriter]]:
    """(a worker's link, its host's end)."""
    read, write = os.pipe()
    out, nobody = os.pipe()
    link, host = Link(read, nobody), frames.FrameWriter(write)
    yield link, host
    host.close()
    for fd in (read, out, nobody):
        os.close(fd)


def said(host: frames.FrameWriter, *told: Any) -> None:
    for kind, payload, count in told:
        host.write(kind, payload, count)
    host.write_json(frames.END, END)


def test_rows_and_their_splits(ends: Any, tmp_path: Path) -> None:
    link, host = ends
    path = tmp_path / "rows"
    said(host, (frames.MARKS, b"\0\1", 2), (frames.DATA, b"abcd", 2), (frames.MARKS, b"\1", 1), (frames.DATA, b"ef", 1))
    assert link.spool(str(path), split=True) == (3, END)
    assert path.read_bytes() == b"abcdef" and Path(str(path) + ENDING).read_bytes() == b"\0\1\1"


def test_a_job_without_splits_has_no_such_file(ends: Any, tmp_path: Path) -> None:
    link, host = ends
    said(host, (frames.DATA, b"abcdef", 3))
    assert link.spool(str(tmp_path / "rows")) == (3, END) and os.listdir(tmp_path) == ["rows"]


@pytest.mark.parametrize(
    "told, split, words",
    [
        ([(frames.DATA, b"abcdef", 3)], True, "3 rows arrived, and the splits of 0"),
        ([(frames.MARKS, b"\0\0", 2), (frames.DATA, b"abcdef", 3)], True, "3 rows arrived, and the splits of 2"),
        ([(frames.MARKS, b"\0\0", 3)], True, "2 bytes for the splits of 3 rows"),
        ([(frames.MARKS, b"\0", 1)], False, "expected data or end, got marks"),
        ([(frames.MARKS, b"\0\0", 2), (frames.DATA, b"ab", 2)], True, "3 rows were sent, 2 arrived"),
    ],
)
def test_half_of_it_is_an_error(ends: Any, tmp_path: Path, told: list[Any], split: bool, words: str) -> None:
    link, host = ends
    said(host, *told)
    with pytest.raises(WireError, match=words):
        link.spool(str(tmp_path / "rows"), split)


def test_who_asks_for_tables_is_told_that_the_rows_broke_off(ends: Any, tmp_path: Path) -> None:
    """A script may ask while it is imported, and then no thread reads the pipe any more."""
    link, _host = ends
    link.tables = Broker(link.writer, str(tmp_path / "spools"))
    link.serve(str(tmp_path / "no" / "rows"))
    with pytest.raises(FileNotFoundError):
        link.wait_for_rows()
    with pytest.raises(TableError, match="the rows from the host broke off: FileNotFoundError: "):
        link.tables.look("t")
