from __future__ import annotations

import os
import threading
from typing import Iterator, Tuple

import pytest

from akrunner.wire import columns, failure, frames


@pytest.fixture
def pipe() -> Iterator[Tuple[frames.FrameReader, frames.FrameWriter]]:
    read, write = os.pipe()
    reader, writer = frames.FrameReader(read), frames.FrameWriter(write)
    yield reader, writer
    reader.close()
    writer.close()


def test_frames_come_as_they_went(pipe: Tuple[frames.FrameReader, frames.FrameWriter]) -> None:
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


def test_threads_do_not_mix_frames(pipe: Tuple[frames.FrameReader, frames.FrameWriter]) -> None:
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
        (frames.HEADER.pack(frames.DATA, 0, 0, 1, 1 << 50), "not a frame"),
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


def test_columns() -> None:
    parts = columns.pack(2, [({"name": "a"}, [b"12345", b""]), ({"name": "b"}, [memoryview(b"xyz")])])
    rows, got = columns.unpack(b"".join(parts))
    assert rows == 2
    assert [(h["name"], [bytes(v) for v in views]) for h, views in got] == [("a", [b"12345", b""]), ("b", [b"xyz"])]
    assert all(offset % 8 == 0 for header, _ in got for offset, _ in header["buffers"])


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
    assert "cannot be printed: ValueError" in failure.record(Mute(), "in main()", "trace")["message"]
