from __future__ import annotations

import array
import json
import os
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.wire import column_layout, failure, frames, messages


@pytest.fixture
def pipe() -> Iterator[tuple[frames.FrameReader, frames.FrameWriter]]:
    read, write = os.pipe()
    reader, writer = frames.FrameReader(read), frames.FrameWriter(write)
    yield reader, writer
    reader.close()
    writer.close()


def test_frames_come_as_they_went(pipe: tuple[frames.FrameReader, frames.FrameWriter]) -> None:
    reader, writer = pipe
    big = os.urandom(3 << 20)

    def send() -> None:
        writer.write(frames.DATA, big, 7)
        writer.write(frames.DATA, [b"ab", b"", memoryview(b"cd")], 2)
        writer.write_json(frames.END, {"rows": 9})
        writer.close()

    thread = threading.Thread(target=send)
    thread.start()
    first, second, third, end = reader.read(), reader.read(), reader.read(), reader.read()
    thread.join()
    assert first is not None and (first.kind, first.count, bytes(first.payload)) == (frames.DATA, 7, big)
    assert second is not None and bytes(second.payload) == b"abcd"
    assert third is not None and third.json() == {"rows": 9}
    assert end is None
    assert writer.bytes == reader.bytes == len(big) + 4 + len('{"rows": 9}')


def test_threads_do_not_mix_frames(pipe: tuple[frames.FrameReader, frames.FrameWriter]) -> None:
    reader, writer = pipe
    threads = [
        threading.Thread(target=lambda n=n: [writer.write(frames.REPORT, bytes([n]) * 50_000) for _ in range(20)])  # type: ignore[misc]
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for _ in range(80):
        frame = reader.read()
        assert frame is not None and len(set(frame.payload)) == 1 and len(frame.payload) == 50_000
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frames.HEADER.pack(frames.DATA, 0, 0, 1, 10) + b"abc", "ended after 3 of 10 bytes"),
        (frames.HEADER.pack(frames.DATA, 0, 0, 1, 10)[:5], "ended after 5 of 16 bytes"),
        (b"hello, world! how are you", "not a frame"),
        (
            frames.HEADER.pack(frames.DATA, 0, 0, 1, 1 << 50),
            "a data frame of 1 rows announces 1125899906842624 bytes; 17179869184 are",
        ),
        (frames.HEADER.pack(frames.READY, 0, 0, 0, 1 << 30), "a ready frame of 0 rows announces"),
        (frames.HEADER.pack(99, 0, 0, 0, 0), "not a frame"),
    ],
)
def test_anything_else_is_an_error(data: bytes, words: str) -> None:
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    reader = frames.FrameReader(read)
    with pytest.raises(frames.WireError, match=words):
        reader.read()
    reader.close()


def test_a_reader_that_is_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    writer = frames.FrameWriter(write)
    with pytest.raises(BrokenPipeError):
        writer.write(frames.DATA, b"x")
    writer.close()
    writer.close()


def test_json_that_is_none() -> None:
    with pytest.raises(frames.WireError, match="does not hold JSON"):
        frames.Frame(frames.CLOSED, 0, bytearray(b"{")).json()
    with pytest.raises(frames.WireError, match="holds list"):
        frames.Frame(frames.CLOSED, 0, bytearray(b"[]")).json()
    with pytest.raises(frames.WireError, match="does not hold JSON"):
        frames.Frame(frames.CLOSED, 0, bytearray(b"[" * 100_000)).json()


def test_each_kind_has_a_word_and_a_number_of_its_own() -> None:
    # a kind is a byte of the header, and no other constant is as small
    kinds = [value for name, value in vars(frames).items() if name.isupper() and isinstance(value, int) and value < 256]
    assert sorted(kinds) == sorted(frames.NAMES)
    assert len(set(frames.NAMES.values())) == len(frames.NAMES)


def test_kinds_go_one_way() -> None:
    read, write = os.pipe()
    os.write(write, frames.HEADER.pack(frames.HELLO, 0, 0, 0, 0))
    os.close(write)
    reader = frames.FrameReader(read, frames.TO_WORKER)
    with pytest.raises(frames.WireError, match="a hello frame does not go this way"):
        reader.read()
    reader.close()
    there, back = {**frames.TO_WORKER, **frames.TO_SPARE}, {**frames.FROM_AGENT, **frames.FROM_SPARE}
    assert {*there, *back} == set(frames.NAMES) and not set(there) & set(back)


def test_memory_is_taken_for_what_has_come() -> None:
    read, write = os.pipe()
    os.write(write, frames.HEADER.pack(frames.COLUMNS, 0, 0, 1, (1 << 31) - 1) + b"abc")
    os.close(write)
    reader = frames.FrameReader(read)
    tracemalloc.start()
    with pytest.raises(frames.WireError, match="ended after 3 of 8388608 bytes"):
        reader.read()
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()
    reader.close()


NUMBERS = {"name": "a", "form": "numbers", "dtype": "int32", "shape": [2]}
TEXT = {"name": "b", "form": "text", "dtype": "bytes", "shape": [2], "nulls": True}
RAGGED = {"name": "c", "form": "ragged", "dtype": "float64", "shape": [2, None]}


def packed(**changes: Any) -> bytes:
    """A payload of three columns; changes: of the header of the first."""
    offsets = array.array("q", [0, 1, 3])
    columns_of = [(NUMBERS, [bytes(8)]), (TEXT, [offsets, b"xyz", b"\1\0"]), (RAGGED, [offsets, bytes(24)])]
    payload = b"".join(column_layout.pack(2, columns_of))
    (size,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + size])
    header["columns"][0].update(changes)
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + payload[4 + size :]


def test_columns() -> None:
    rows, got = column_layout.unpack(packed(), ["c", "a", "b"], 2)
    assert rows == 2
    assert [(h["name"], [len(v) for v in views]) for h, views in got] == [("a", [8]), ("b", [24, 3, 2]), ("c", [24, 24])]
    assert all(offset % 8 == 0 for header, _ in got for offset, _ in header["buffers"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "b"}, "it has column 'b' twice"),
        ({"name": None}, "has no name"),
        ({"name": "z"}, "other columns"),
        ({"form": "zip"}, "no known form"),
        ({"form": ["numbers"]}, "no known form"),
        ({"form": "text"}, "no known form"),
        ({"dtype": "object"}, "no known form"),
        ({"dtype": "V8"}, "no known form"),
        ({"dtype": None}, "no known form"),
        ({"dtype": {}}, "no known form"),
        ({"dtype": "int64"}, "has buffers of .8. bytes"),
        ({"shape": [2, None]}, "no known form"),
        ({"shape": [3]}, "has the shape"),
        ({"shape": [2, -1]}, "has the shape"),
        ({"shape": [2, 1 << 62]}, "has the shape"),
        ({"shape": [True]}, "has the shape"),
        ({"shape": []}, "has the shape"),
        ({"shape": [None, 2]}, "has the shape"),
        ({"shape": 2}, "has the shape"),
        ({"nulls": True}, "has buffers of .8. bytes"),
        ({"nulls": "yes"}, "whether it has nulls"),
        ({"buffers": []}, "has buffers of .. bytes"),
        ({"buffers": [[0, 8], [8, 0]]}, "has buffers of"),
        ({"buffers": [[4, 8]]}, "has a buffer of 8 bytes at 4"),
        ({"buffers": [[1 << 30, 8]]}, "has a buffer of"),
        ({"buffers": [[-8, 8]]}, "where its buffers are"),
        ({"buffers": [[0, 8.0]]}, "where its buffers are"),
        ({"buffers": [[0]]}, "where its buffers are"),
        ({"buffers": None}, "where its buffers are"),
    ],
)
def test_columns_that_are_none(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(frames.WireError, match=words):
        column_layout.unpack(packed(**changes), ["a", "b", "c"])


def test_payloads_that_are_no_columns() -> None:
    for payload, words in [
        (b"", "of 0 bytes"),
        (b"\xff\xff\xff\xff1234", "a header of"),
        (struct.pack("<I", 4) + b"[]  ", "does not say its rows"),
        (struct.pack("<I", 12) + b'{"rows": 1} ', "does not say its rows"),
        (struct.pack("<I", 4) + b"\xff\xff  ", "not JSON"),
        (struct.pack("<I", 200_004) + b"[" * 200_004, "not JSON"),
    ]:
        with pytest.raises(frames.WireError, match=words):
            column_layout.unpack(payload)
    with pytest.raises(frames.WireError, match="a frame of 3 rows holds columns of 2"):
        column_layout.unpack(packed(), None, 3)


READY = {"rows": 1, "waited_ns": 0}
CLOSED = {
    "ok": True, "rows": 0, "rows_read": 0, "main_ns": 0, "output_blocked_ns": 0, "rows_dropped": 0, "rows_padded": 0, "notes": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (frames.READY, READY, ""),
        (frames.READY, {"rows": 1}, "has no 'waited_ns'"),
        (frames.READY, {**READY, "rows": "1"}, "has the 'rows' '1'"),
        (frames.READY, {**READY, "rows": True}, "has the 'rows' True"),
        (frames.READY, {**READY, "rows": -1}, "has the 'rows' -1"),
        (frames.READY, {**READY, "rows": 10**30}, "has the 'rows' 1000"),
        (frames.CLOSED, CLOSED, ""),
        (frames.CLOSED, {**CLOSED, "ok": 1}, "has the 'ok' 1"),
        (frames.CLOSED, {**CLOSED, "ok": False}, "does not say what failed"),
        (frames.CLOSED, {**CLOSED, "ok": False, "failure": {"type": "E"}}, "has no 'failure.message'"),
        (frames.CLOSED, {**CLOSED, "ok": False, "failure": failure.record(ValueError("\ud800"), "here")}, ""),
        (frames.REPORT, {"metrics": {"a": 1.5, "b": float("nan")}, "step": None, "time_ns": 1}, ""),
        (frames.REPORT, {"metrics": {"a": "x"}, "step": None, "time_ns": 1}, "has the 'metrics'"),
        (frames.REPORT, {"metrics": [], "step": None, "time_ns": 1}, "has the 'metrics'"),
        (frames.REPORT, {"metrics": {}, "step": 0.5, "time_ns": 1}, "has the 'step' 0.5"),
        (frames.PASSED, {"rows": 1, "bytes": 1}, ""),
        (frames.PASSED, {"error": 1}, "has the 'error' 1"),
        (frames.PASSED, {}, "has no 'rows'"),
        (frames.END, {"rows": 1, "total_rows": 1, "shares": ["x"]}, "has the 'shares'"),
        (frames.END, {"rows": 1, "total_rows": 1, "shares": [1], "splits": [1]}, "has the 'splits'"),
        (frames.OPENED, {}, ""),
    ],
)
def test_messages(kind: int, body: dict[str, Any], words: str) -> None:
    frame = frames.Frame(kind, 0, bytearray(json.dumps(body).encode()))
    if not words:
        assert messages.read(frame).keys() == body.keys()
        return
    with pytest.raises(frames.WireError, match=words):
        messages.read(frame)


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_failure_records() -> None:
    record = failure.record(ValueError("no"), "in main()", "trace")
    assert (record["type"], record["message"], record["traceback"], record["phase"]) == (
        "ValueError",
        "no",
        "trace",
        "in main()",
    )
    long = failure.record(ValueError("x" * 10_000_000), "in main()", "trace")["message"]
    assert len(long) < 300_000 and "9737856 characters" in long
    assert "cannot be printed: ValueError" in failure.record(Mute(), "in main()", "trace")["message"]
