from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import JobTimeoutError, SourceError
from akrunner.io import text
from akrunner.io.follow import open_text
from akrunner.io.formats import LINES, lines_of
from akrunner.io.limits import limited
from akrunner.io.table import TableSource
from akrunner.schema import Schema

SCHEMA = Schema.parse("a bigint, s string")


def through_a_pipe(parts: list[bytes], form: str, schema: Schema | None) -> Any:
    read, write = os.pipe()

    def send() -> None:
        for part in parts:
            os.write(write, part)
            time.sleep(0.02)
        os.close(write)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        table = open_text(read, lines_of(f".{form}") or LINES[0], schema, False, "stdin")
        return [row for batch in table.batches() for row in batch.to_pylist()]
    finally:
        thread.join()
        os.close(read)


@pytest.mark.parametrize("schema", [SCHEMA, None])
@pytest.mark.parametrize(
    ("form", "parts"),
    [
        ("jsonl", [b'{"a": 1, "s": "x"}\n{"a"', b': 2, "s": "\xc3', b'\xa9"}\n', b'\n{"a": 3, "s": null}']),
        ("csv", [b"a,s\n", b"1,x\n2", b",\xc3\xa9\n3,", b"\n"]),
        ("csv", [b"a,s\n1,x\n2,\xc3\xa9\n3,\n"]),
        ("csv", [b'a,s\n1,"x\n', b'y"\n2,', b"\xc3\xa9\n", b'3,5" pipe\n']),
    ],
)
def test_lines_in_pieces(form: str, parts: list[bytes], schema: Schema | None) -> None:
    rows = through_a_pipe(parts, form, schema)
    assert [row["a"] for row in rows] == [1, 2, 3] and rows[1]["s"] == "é"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_long_row(form: str) -> None:
    text = "x" * (3 << 20)
    row = f'{{"a": 1, "s": "{text}"}}\n' if form == "jsonl" else f"a,s\n1,{text}\n"
    assert through_a_pipe([row.encode()], form, SCHEMA) == [{"a": 1, "s": text}]


def test_other_columns_are_passed_over() -> None:
    assert through_a_pipe([b'{"z": 1, "a": 5, "s": "x"}\n'], "jsonl", SCHEMA) == [{"a": 5, "s": "x"}]
    assert through_a_pipe([b"s,z,a\nx,1,5\n"], "csv", SCHEMA) == [{"a": 5, "s": "x"}]


@pytest.mark.parametrize(
    ("form", "data", "schema", "words"),
    [
        ("jsonl", b"", None, "stdin is empty, so its columns"),
        ("jsonl", b"hello\n", None, "cannot read stdin as jsonl"),
        ("jsonl", b'{"a": "x"}\n', SCHEMA, "cannot read stdin as jsonl"),
        ("csv", b"a,s\nx,y\n", SCHEMA, "cannot read stdin as csv"),
        ("csv", b"b,s\n1,y\n", SCHEMA, "stdin has no column 'a'"),
        (
            "csv",
            b'a,s\n1,"never closed\n' + b"2,x\n" * 100,
            SCHEMA,
            "a quote that opens in line 2 of stdin is not closed",
        ),
    ],
)
def test_what_is_wrong(monkeypatch: pytest.MonkeyPatch, form: str, data: bytes, schema: Schema | None, words: str) -> None:
    monkeypatch.setattr(text, "ROW_BYTES", 400)
    with pytest.raises(SourceError, match=words):
        through_a_pipe([data] if data else [], form, schema)


def test_a_growing_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1, "s": "x"}\n')
    with open(path, "rb", buffering=0) as f:
        table: TableSource = open_text(f.fileno(), LINES[0], None, True, str(path))
        batches = table.batches()
        assert next(batches).to_pylist() == [{"a": 1, "s": "x"}]
        with open(path, "a") as more:
            more.write('{"a": 2')
            more.flush()
            threading.Timer(0.1, lambda: os.write(os.open(path, os.O_WRONLY | os.O_APPEND), b', "s": "y"}\n')).start()
            assert next(batches).to_pylist() == [{"a": 2, "s": "y"}]


def test_a_growing_file_ends_when_it_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1, "s": "x"}\n')
    with open(path, "rb", buffering=0) as f:
        table = open_text(f.fileno(), LINES[0], None, True, str(path))
        batches = table.batches()
        assert next(batches).num_rows == 1
        table.stop()
        assert list(batches) == []


@pytest.mark.parametrize("form", [".jsonl", ".csv"])
@pytest.mark.parametrize("follow", [True, False], ids=["an empty file", "a pipe"])
def test_the_first_rows_are_waited_for_no_longer_than_the_job_s_time(follow: bool, form: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    read, write = (os.open(path, os.O_RDONLY), os.open(path, os.O_WRONLY)) if follow else os.pipe()
    lines = lines_of(form)
    assert lines is not None
    began = time.monotonic()
    try:
        with limited(0.2, None), pytest.raises(JobTimeoutError, match=f"timeout=0.2 s .* waited for rows of {path}"):
            open_text(read, lines, None, follow, str(path))
        assert time.monotonic() - began < 30
        # what has come in time is there, and afterwards the job itself looks at the clock
        os.write(write, b'{"a": 1, "s": "x"}\n' if form == ".jsonl" else b"a,s\n1,x\n")
        with limited(60, None):
            table = open_text(read, lines, None, follow, str(path))
        assert next(table.batches()).to_pylist() == [{"a": 1, "s": "x"}]
        table.stop()
    finally:
        os.close(read)
        os.close(write)
