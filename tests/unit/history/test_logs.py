"""The log of a task in pieces: what stays of a long one, and what a reader is told while it grows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.history import logs
from akrunner.history.logs import LogCopy, LogReader
from tests.conftest import no_file_longer_than

TASK = "worker:0"


def lines(run: Path, last: bool = True) -> list[str]:
    return list(LogReader(str(run), TASK).lines(last))


def pieces(run: Path) -> list[str]:
    return sorted(os.listdir(run / "logs" / "worker-0"), key=lambda name: int(name[4:-4]))


def test_lines_are_read_as_they_were_printed(tmp_path: Path) -> None:
    copy = LogCopy(str(tmp_path), TASK)
    assert lines(tmp_path) == [] and logs.tasks(str(tmp_path)) == []
    for chunk in (b"one\ntw", b"o \xff\r\n", b"three"):
        copy.write(chunk)
    assert lines(tmp_path) == ["one", "two \\xff", "three"] and logs.tasks(str(tmp_path)) == [TASK]
    copy.close()
    copy.write(b"late")
    assert lines(tmp_path)[-1] == "three"


def test_a_reader_that_comes_again_gets_what_is_new(tmp_path: Path) -> None:
    copy, reader = LogCopy(str(tmp_path), TASK, piece=10), LogReader(str(tmp_path), TASK)
    read = []
    for chunk in (b"aaaa\nbb", b"bbbbb\n", b"c\n", b"dddd"):
        copy.write(chunk)
        read.append(list(reader.lines(False)))
    assert read == [["aaaa"], ["bbbbbbb"], ["c"], []] and list(reader.lines(True)) == ["dddd"]
    copy.close()


def test_of_a_long_log_the_beginning_and_the_end_stay(tmp_path: Path) -> None:
    copy = LogCopy(str(tmp_path), TASK, piece=10)
    # in chunks that know nothing of pieces
    data = b"".join(b"%03d\n" % number for number in range(20))
    for at in range(0, len(data), 7):
        copy.write(data[at : at + 7])
    copy.close()
    assert pieces(tmp_path) == ["000-0.txt", "000-60.txt", "000-70.txt"]
    assert lines(tmp_path) == ["000", "001", "00", "[... 50 bytes are not kept ...]", "015", "016", "017", "018", "019"]


def test_a_reader_that_is_slow_is_told_what_it_missed(tmp_path: Path) -> None:
    copy, reader = LogCopy(str(tmp_path), TASK, piece=10), LogReader(str(tmp_path), TASK)
    copy.write(b"one\n")
    assert list(reader.lines(False)) == ["one"]
    copy.write(b"x" * 35 + b"\nend\n")
    copy.close()
    assert list(reader.lines(True)) == ["x" * 6, "[... 20 bytes are not kept ...]", "x" * 9, "end"]


def test_every_attempt_has_its_log_and_of_many_the_newest_stay(tmp_path: Path) -> None:
    for attempt in range(14):
        copy = LogCopy(str(tmp_path), TASK, attempt)
        copy.write(b"attempt %d" % attempt)
        copy.close()
    told = lines(tmp_path)
    assert told[:2] == ["attempt 0", "[... the tasks were started again: attempt 5 ...]"]
    assert [line for line in told if not line.startswith("[")] == ["attempt 0", *(f"attempt {n}" for n in range(4, 14))]


def test_a_disk_that_takes_nothing_ends_the_copy_and_no_more(tmp_path: Path) -> None:
    copy = LogCopy(str(tmp_path), TASK)
    with no_file_longer_than(10):
        copy.write(b"0123456789abc\n")
        copy.write(b"more\n")
    assert isinstance(copy.error, OSError) and lines(tmp_path) == ["0123456789"]
    (tmp_path / "taken").write_text("")
    other = LogCopy(str(tmp_path / "taken"), TASK)
    other.write(b"x")
    assert isinstance(other.error, OSError)


@pytest.mark.parametrize("missing", ["000-0.txt", "000-10.txt"])
def test_a_piece_that_is_gone_is_told(missing: str, tmp_path: Path) -> None:
    copy = LogCopy(str(tmp_path), TASK, piece=10)
    copy.write(b"012345678\n012345678\nend\n")
    copy.close()
    os.unlink(tmp_path / "logs" / "worker-0" / missing)
    assert "[... 10 bytes are not kept ...]" in lines(tmp_path) and lines(tmp_path)[-1] == "end"


def test_tasks_come_in_the_order_of_a_job(tmp_path: Path) -> None:
    for task in ("worker:10", "ps:0", "worker:2", "chief:0"):
        copy = LogCopy(str(tmp_path), task)
        copy.write(b"x")
        copy.close()
    assert logs.tasks(str(tmp_path)) == ["chief:0", "worker:2", "worker:10", "ps:0"]
