"""What becomes of bad rows: they are counted, shown, written, and limited."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akrunner.errors import ConfigError, SourceError, WriteError
from akrunner.io import bad_rows
from akrunner.io.bad_rows import MOST_BAD_ROWS, BadRow, BadRows, Limit, kept
from akrunner.io.commits import last_step
from akrunner.options import OPTIONS


def made(place: Any = "skip", max_bad_rows: Any = 100) -> BadRows:
    found = BadRows.of(place, max_bad_rows)
    assert found is not None
    return found


def take(bad: BadRows, count: int, first: int = 2) -> None:
    bad.take("t.csv", [BadRow(line, "why", b"1,x") for line in range(first, first + count)])


def test_the_default_of_the_option_is_the_one_that_is_meant() -> None:
    (option,) = [one for one in OPTIONS if one.name == "max_bad_rows"]
    assert option.default == MOST_BAD_ROWS


def test_fail_needs_nothing() -> None:
    assert BadRows.of("fail", 100) is None
    with pytest.raises(ConfigError, match="max_bad_rows=.*means nothing with bad_rows='fail'"):
        BadRows.of("fail", 3)


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (0, Limit(0)),
        ("7", Limit(7)),
        ("0" * 5000 + "7", Limit(7)),
        ("00", Limit(0)),
        ("1%", Limit(None, Decimal(1))),
        (" 0.5 % ", Limit(None, Decimal("0.5"))),
        ("0" * 5000 + "1.4%", Limit(None, Decimal("1.4"))),
        ("100.0%", Limit(None, Decimal(100))),
        (np.int64(5), Limit(5)),
    ],
)
def test_a_limit_is_a_number_or_a_share(given: Any, limit: Limit) -> None:
    assert Limit.of(given) == limit


@pytest.mark.parametrize(
    "given",
    [
        -1,
        True,
        1.5,
        "x",
        "101%",
        "100.00000000000000000001%",
        "9" * 5000 + "%",
        "-1%",
        None,
        10**18,
        "9" * 5000,
        "0" * 5000 + "9" * 19,
    ],
)
def test_anything_else_is_no_limit(given: Any) -> None:
    with pytest.raises(ConfigError, match="max_bad_rows"):
        BadRows.of("skip", given)


def test_the_first_five_are_warnings_each_once() -> None:
    bad = made()
    take(bad, 3)
    assert bad.news() == [f"source: t.csv line {line}: why: '1,x'" for line in (2, 3, 4)]
    take(bad, 4, 5)
    assert len(bad.news()) == 2 and bad.news() == [] and bad.count == 7
    assert bad.summary() == [
        "source: 7 rows of the input could not be read and were left out (bad_rows=, --bad-rows DIR keeps them)"
    ]


def test_a_row_more_than_the_limit_fails() -> None:
    bad = made(max_bad_rows=3)
    take(bad, 3)
    with pytest.raises(SourceError, match="more than 3 rows cannot be read.*t.csv line 2: why.*max_bad_rows="):
        take(bad, 1, 9)


def test_a_share_is_judged_at_the_end_and_once_there_are_many_rows() -> None:
    bad = made(max_bad_rows="1%")
    take(bad, 5)
    bad.were_read(495)
    bad.end()
    take(bad, 1)
    with pytest.raises(SourceError, match="6 of the first 501 rows cannot be read, more than 1%"):
        bad.end()
    bad = made(max_bad_rows="1%")
    take(bad, 101)
    bad.were_read(9_000)
    with pytest.raises(SourceError, match="101 of the first 10,001 rows"):
        bad.were_read(900)


@pytest.mark.parametrize("tenths", [*range(1, 100), 290, 570, 1000])
def test_a_share_is_exact(tenths: int) -> None:
    """As floats, 14 of 1,000 rows are more than 1.4 %."""
    bad = made(max_bad_rows=f"{tenths // 10}.{tenths % 10}%")
    take(bad, tenths)
    bad.were_read(1000 - tenths)
    bad.end()
    if tenths < 1000:
        take(bad, 1)
        share = f"{tenths / 10:g}%"
        with pytest.raises(SourceError, match=rf"{tenths + 1} of the first 1,001 rows cannot be read, more than {share} \("):
            bad.end()


def test_a_share_of_many_digits_is_exact_and_is_told_in_few() -> None:
    assert Limit.of("0.00000001400%").share == "0.000000014%"
    assert not Limit.of(f"0.{'3' * 40}%").is_passed(0, 0)
    assert Limit.of(f"0.{'3' * 40}%").is_passed(1, 300) and not Limit.of(f"0.{'3' * 39}4%").is_passed(1, 300)
    assert Limit.of(f"0.{'3' * 5000}%").share == f"0.{'3' * 38}...%"
    assert Limit.of("100%").share == "100%" and str(Limit.of("20.0%")) == "20% of the rows"


def test_they_are_written_when_the_job_has_succeeded_and_only_then(tmp_path: Path) -> None:
    place = tmp_path / "bad" / "rows"
    bad = made(place)
    bad.take("t.csv", [BadRow(2, "why", b"\xff,x")])
    # a plan ends here
    assert not place.exists()
    with kept(bad):
        take(bad, 1, 3)
        assert [name for name in os.listdir(place) if not name.startswith(".")] == []
        bad.end()
        bad.commit()
    (name,) = os.listdir(place)
    assert bad.file == str(place / name) and stat.S_IMODE(os.stat(place / name).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
    assert [json.loads(line) for line in (place / name).read_text().splitlines()] == [
        {"file": "t.csv", "line": 2, "reason": "why", "text": "\\xff,x"},
        {"file": "t.csv", "line": 3, "reason": "why", "text": "1,x"},
    ]
    assert bad.summary() == [f"source: 2 rows of the input could not be read and were written to {bad.file}"]


@pytest.mark.parametrize("committed", [False, True])
def test_a_job_that_fails_leaves_no_file(tmp_path: Path, committed: bool) -> None:
    bad = made(tmp_path)
    with pytest.raises(ZeroDivisionError), kept(bad):
        take(bad, 1)
        if committed:
            bad.commit()
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == [] and bad.file is None
    # a thread that still reads the table makes no new file
    take(bad, 1)
    assert os.listdir(tmp_path) == []


def test_a_table_that_is_read_again_is_counted_again(tmp_path: Path) -> None:
    bad = made(tmp_path)
    with kept(bad):
        take(bad, 2)
        bad.restart()
        take(bad, 1)
        bad.commit()
    assert bad.count == 1 and bad.file is not None and len(Path(bad.file).read_text().splitlines()) == 1
    assert len(bad.news()) == 2, "the first is not shown twice"


def test_no_bad_row_after_a_restart_is_no_file(tmp_path: Path) -> None:
    bad = made(tmp_path)
    with kept(bad):
        take(bad, 1)
        bad.restart()
        bad.commit()
    assert os.listdir(tmp_path) == [] and bad.summary() == []


def test_a_place_that_cannot_be_written_is_told_before(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place, words in (
        (tmp_path / "file" / "x", "is no directory"),
        ("s3://bucket/bad", "is a URL"),
        ("/proc/bad", "may be written"),
    ):
        with pytest.raises(ConfigError, match=f"bad_rows.*{words}"):
            BadRows.of(place, 100)


def test_a_plan_says_what_becomes_of_them(tmp_path: Path) -> None:
    bad = made(tmp_path, "1%")
    take(bad, 1)
    assert bad.planned() == (
        f"written to a file in {tmp_path}; more than 1% of the rows fail the job; 1 in what was read of the input's beginning"
    )
    assert made().planned() == "left out; more than 100 rows fail the job"


def test_a_bad_message_is_in_the_file_at_once_and_stays_there(tmp_path: Path) -> None:
    bad = made(str(tmp_path / "bad")).of_messages()
    bad.take("", [BadRow(0, "no object", b"[1]", "the message at offset 4")])
    # a plan writes nothing
    assert not (tmp_path / "bad").exists()
    with pytest.raises(ZeroDivisionError), kept(bad):
        (file,) = (tmp_path / "bad").iterdir()
        assert file.name.startswith("bad-rows-") and len(file.read_bytes().splitlines()) == 1
        bad.take("", [BadRow(0, "no object", b"[2]", "the message at offset 5")])
        # it comes again after a crash
        bad.take("", [BadRow(0, "no object", b"[2]", "the message at offset 5")])
        assert bad.count == 2
        raise ZeroDivisionError
    first, *others = map(json.loads, file.read_bytes().splitlines())
    assert first == {"place": "the message at offset 4", "reason": "no object", "text": "[1]"}
    assert [one["text"] for one in others] == ["[2]"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert bad.summary() == [f"source: 2 rows of the input could not be read and were written to {file}"]


def test_bad_messages_that_come_again_do_not_count_against_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(*offsets: int) -> list[BadRow]:
        return [BadRow(0, "no object", b"[1]", f"the message at offset {one}") for one in offsets]

    bad = made(max_bad_rows=3).of_messages()
    for _ in range(4):
        bad.take("", rows(1, 2, 3))
    assert bad.count == 3 and len(bad.news()) == 3
    with pytest.raises(SourceError, match="more than 3 rows cannot be read"):
        bad.take("", rows(3, 4))
    # what is kept to know them again does not grow for ever
    monkeypatch.setattr(bad_rows, "_KNOWN", 2)
    bad = made().of_messages()
    bad.take("", rows(1, 2, 3))
    bad.take("", rows(2, 3))
    assert bad.count == 3
    bad.take("", rows(1))
    assert bad.count == 4


def test_bad_rows_of_a_file_that_is_read_again_do_not_count_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad_rows, "_KNOWN", 2)
    bad = made(max_bad_rows=5).of_messages()
    for most in (3, 2, 5):
        # each attempt reads it from its first line, and some get further than others
        for line in range(2, 2 + most):
            bad.of_file("a.csv").take("a.csv", [BadRow(line, "why", b"x")])
    assert bad.count == 5
    with pytest.raises(SourceError, match="more than 5 rows cannot be read"):
        bad.of_file("b.csv").take("b.csv", [BadRow(2, "why", b"x")])
    # what is kept of files does not grow for ever, either
    bad = made().of_messages()
    for name in ("a.csv", "b.csv", "c.csv", "c.csv", "a.csv"):
        bad.of_file(name).take(name, [BadRow(2, "why", b"x")])
    assert bad.count == 4


def test_messages_that_are_one_too_many_are_in_the_file(tmp_path: Path) -> None:
    bad = made(str(tmp_path / "bad"), 1).of_messages()
    with pytest.raises(SourceError, match="more than 1 row cannot be read"), kept(bad):
        bad.take("", [BadRow(0, "why", b"x", place) for place in ("entry 1", "entry 2")])
    (file,) = (tmp_path / "bad").iterdir()
    assert len(file.read_bytes().splitlines()) == 2


@pytest.mark.parametrize("taken", [True, False], ids=["the output is there", "the output is not there"])
def test_bad_rows_stay_if_a_signal_ended_the_job_behind_its_output(taken: bool, tmp_path: Path) -> None:
    bad = made(str(tmp_path / "bad"))
    with pytest.raises(KeyboardInterrupt), kept(bad):
        take(bad, 1)
        bad.commit()
        if not taken:
            raise KeyboardInterrupt
        last_step("out.csv", lambda: signal.raise_signal(signal.SIGINT))
    assert len(list((tmp_path / "bad").glob("*"))) == taken == (tmp_path / "bad").exists()


def test_the_bad_rows_of_a_file_of_a_stream_are_the_streams(tmp_path: Path) -> None:
    bad = made(str(tmp_path / "bad"), "1%").of_messages()
    with kept(bad):
        for _ in range(2):
            # each file again, as `max_restarts=` does
            for name in ("a.csv", "b.csv"):
                one = bad.of_file(name)
                one.take(name, [BadRow(line, "why", b"x") for line in (2, 5)])
                one.were_read(1)
                one.end()
        assert bad.count == 4 and bad.room == one.room > 100
        with pytest.raises(SourceError, match="4 of the first 6 rows cannot be read, more than 1%"):
            bad.end()
        bad.commit()
    (file,) = (tmp_path / "bad").iterdir()
    found = [(one["file"], one["line"]) for one in map(json.loads, file.read_bytes().splitlines())]
    assert found == [("a.csv", 2), ("a.csv", 5), ("b.csv", 2), ("b.csv", 5)]


def test_a_file_that_grows_is_read_again_and_no_row_counts_twice() -> None:
    bad = made(max_bad_rows="1%").of_messages()
    bad.begin()
    bad.were_read(20_000)
    bad.take("f.csv", [BadRow(line, "why", b"x") for line in range(2, 152)])
    for attempt in range(2):
        bad.restart()
        bad.take("f.csv", [BadRow(line, "why", b"x") for line in range(2, 152)])
        # in blocks, of which the first ones alone would have too many bad rows
        for _ in range(5 + attempt):
            bad.were_read(5_000)
    assert bad.count == 150 and bad._rows == 30_000
    bad.end()
    bad.take("f.csv", [BadRow(line, "why", b"x") for line in range(200, 400)])
    with pytest.raises(SourceError, match="350 of the first 30,350 rows cannot be read"):
        bad.end()


def test_a_job_that_goes_on_counts_nothing_that_an_earlier_one_has_counted() -> None:
    lines = [BadRow(line, "why", b"x") for line in range(2, 12)]
    bad = made(max_bad_rows="1%").of_messages()
    # what was read to tell the columns is read again
    bad.take("f.csv", lines[:1])
    bad.were_read(5_000)
    bad.goes_on("f.csv", 11, 20_000)
    bad.begin()
    for _ in range(2):
        bad.take("f.csv", lines)
        bad.were_read(25_000)
        bad.restart()
    assert (bad.count, bad._rows, bad.last_line("f.csv"), bad.news()) == (0, 5_000, 11, [])
    bad.take("f.csv", [BadRow(30_000, "why", b"x")])
    assert (bad.count, bad.last_line("f.csv")) == (1, 30_000)


def test_a_job_that_goes_on_in_the_middle_of_a_file_counts_what_is_behind_it() -> None:
    bad = made(max_bad_rows="1%").of_messages()
    bad.begin()
    bad.know("b.csv", 5, 3)
    one = bad.of_file("b.csv")
    one.take("b.csv", [BadRow(line, "why", b"x") for line in (2, 5, 9)])
    for _ in range(2):
        one.were_read(2)
    assert (bad.count, bad._rows, bad.last_line("b.csv"), bad.last_line("a.csv")) == (1, 1, 9, 0)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_disk_that_is_full_is_named_and_no_directory_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(bad_rows, "private_file", full)
    words = "the disk is full: [0-9,]+ bytes free on /" if number == errno.ENOSPC else "Permission denied"
    with pytest.raises(WriteError, match=f"bad_rows: cannot write to .*: {words}.*name another directory"):
        with kept(bad := made(str(tmp_path / "a" / "bad"))):
            take(bad, 1)
    assert os.listdir(tmp_path) == []


def test_a_job_that_fails_leaves_the_directory_only_if_it_was_there(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name in ("there", "new"):
        with pytest.raises(KeyError), kept(bad := made(str(tmp_path / name))):
            take(bad, 1)
            assert len(os.listdir(tmp_path / name)) == 1
            raise KeyError
    assert os.listdir(tmp_path) == ["there"] and os.listdir(tmp_path / "there") == []
