"""Rows between a subtask and its task, over plain pipes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.json_format import MessageToDict

from akrunner import codec
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.schemas import schema_bytes, schema_from
from akrunner.engines.flink.taskmanager.feed import Feed, Written, as_bytes
from akrunner.schema import Schema
from akrunner.wire import frames, messages

BATCH = pa.record_batch({"a": [1, 2, 3], "x": [0.5, 1.5, 2.5]})
ORDER: dict[str, Any] = {"data_format": "columns", "chunk_rows": 2, "chunk_bytes": 1 << 20}


class Ends:
    """A feed with the submitter's and the task's ends of its pipes."""

    def __init__(self) -> None:
        self.feed = Feed()
        self.said: list[dict[str, Any]] = []
        source, submitter = os.pipe()
        task, target = os.pipe()
        self.submitter = frames.FrameWriter(submitter)
        self.task = frames.FrameReader(task)
        self._given = (source, target)
        self._threads: list[threading.Thread] = []

    def _failed(self, name: str, error: BaseException) -> None:
        self.said.append({"broken": name, "error": repr(error)})

    def start(self, **order: Any) -> None:
        source, target = self._given
        reader = frames.FrameReader(source, frames.TO_WORKER)
        self._threads = self.feed.start(reader, target, pb.Order(**{**ORDER, **order}), self._say, self._failed)

    def _say(self, **word: Any) -> None:
        self.said.append(MessageToDict(next(iter(word.values())), preserving_proto_field_name=True))

    def close(self) -> None:
        self.feed.close()
        self.submitter.close()
        if not self._threads:
            # nobody has taken them over
            for fd in self._given:
                os.close(fd)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        self.task.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close()


def frame_of(ends: Ends) -> tuple[int, int]:
    frame = ends.task.read()
    assert frame is not None
    return frame.kind, frame.count


def test_rows_follow_the_context_and_are_counted(ends: Ends) -> None:
    ends.start()
    assert ends.feed.put(as_bytes([BATCH]), 1) and ends.feed.put(None, 1)
    ends.submitter.write_json(frames.CONTEXT, {})
    assert [frame_of(ends) for _ in range(3)] == [(frames.CONTEXT, 0), (frames.DATA, 2), (frames.DATA, 1)]
    ends.submitter.write_json(frames.END, {})
    assert frame_of(ends) == (frames.END, 0)
    ends._threads[1].join(60)
    assert ends.said[-1] == {"rows": "3", "bytes": ends.said[-1]["bytes"], "finished": True}


def test_a_streams_rows_wait_for_the_start(ends: Ends) -> None:
    ends.start(streaming=True)
    assert ends.feed.put(as_bytes([BATCH]), 1)
    ends.submitter.write_json(frames.CONTEXT, {})
    ends.submitter.write_json(frames.START, {})
    assert [frame_of(ends)[0] for _ in range(4)] == [frames.CONTEXT, frames.START, frames.ROWS, frames.ROWS]


def test_a_value_that_cannot_cross_is_told(ends: Ends) -> None:
    ends.start(data_format="examples")
    ends.feed.put(as_bytes([pa.record_batch({"x": [1e300]})]), 1)
    ends.submitter.write_json(frames.CONTEXT, {})
    ends._threads[1].join(60)
    (said,) = ends.said
    assert said["reason"] == "VALUE" and said["words"].startswith("row 0, column 'x': 1e+300 does not fit a float32")


def test_a_barrier_has_its_place_among_the_rows(ends: Ends) -> None:
    ends.start(streaming=True)
    assert ends.feed.put(as_bytes([BATCH]), 1) and ends.feed.put(1, 1) and ends.feed.put(as_bytes([BATCH]), 1)
    ends.submitter.write_json(frames.CONTEXT, {})
    ends.submitter.write_json(frames.START, {})
    rows = [(frames.ROWS, 2), (frames.ROWS, 1)]
    assert [frame_of(ends) for _ in range(7)][2:] == [*rows, (frames.BARRIER, 1), *rows]
    assert not ends.feed.answered(1)


def test_a_task_that_is_behind_holds_the_subtask_back(ends: Ends) -> None:
    chunk = as_bytes([BATCH])
    assert [ends.feed.put(chunk, 0.01) for _ in range(5)] == [True] * 4 + [False]
    ends.feed.close()
    assert ends.feed.put(chunk, 0.01), "once it is over, rows are dropped"


def test_rows_of_the_task_go_to_the_subtask_and_its_words_to_the_submitter() -> None:
    feed, schema = Feed(), Schema.parse("a bigint, x double", "output_schema")
    (source, task), (submitter, target) = os.pipe(), os.pipe()
    narrow = pa.schema([("a", pa.int64()), ("x", pa.float64())])
    output = pb.Output(schema=schema_bytes(schema.arrow), rows=schema_bytes(narrow))
    assert schema_from(output.rows) == narrow
    writer, reader = frames.FrameWriter(task), frames.FrameReader(submitter)
    passing = threading.Thread(target=feed.pass_on, args=(source, frames.FrameWriter(target), output))
    passing.start()
    writer.write_json(frames.OPENED, {})
    for _ in range(2):
        writer.write(frames.COLUMNS, codec.encode_columns(BATCH), 3)
    writer.write(frames.COLUMNS, codec.encode_columns(pa.record_batch({"a": ["no"], "x": [1.0]})), 1)
    writer.close()
    passing.join(60)
    said = []
    while (frame := reader.read()) is not None:
        said.append((frame.kind, frame.json()))
    reader.close()
    os.close(source)
    assert said[0] == (frames.OPENED, {}) and [body["rows"] for _, body in said[1:3]] == [3, 3]
    assert said[3][0] == frames.PASSED and "column 'a'" in said[3][1]["error"]
    (chunk,) = feed.taken()
    with pa.ipc.open_stream(chunk) as stream:
        assert stream.read_all().to_pylist() == BATCH.to_pylist() * 2
    assert list(feed.taken()) == []


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("word", ["answered", "returned", "failed"])
def test_a_barrier_is_answered_after_the_rows_of_before(word: str, wrong: bool) -> None:
    """Or when the script has returned; not when it has failed, nor after a row that could not be taken."""
    feed, schema = Feed(), schema_bytes(Schema.parse("a bigint, x double", "output_schema").arrow)
    (source, task), (submitter, target) = os.pipe(), os.pipe()
    passing = threading.Thread(
        target=feed.pass_on, args=(source, frames.FrameWriter(target), pb.Output(schema=schema, rows=schema))
    )
    passing.start()
    writer, reader = frames.FrameWriter(task), frames.FrameReader(submitter)
    writer.write(frames.COLUMNS, codec.encode_columns(BATCH), 3)
    if wrong:
        writer.write(frames.COLUMNS, codec.encode_columns(pa.record_batch({"a": ["no"], "x": [1.0]})), 1)
    if word == "answered":
        writer.write(frames.ANSWERED, b"", 7)
    else:
        writer.write_json(frames.CLOSED, {"ok": word == "returned"})
    writer.close()
    passing.join(60)
    said = []
    while (frame := reader.read()) is not None:
        said.append(frame.kind)
    reader.close()
    os.close(source)
    assert said == [frames.PASSED] * (2 if wrong else 1) + ([] if word == "answered" else [frames.CLOSED])
    assert feed.answered(7) == (word != "failed" and not wrong) and feed.answered(8) == (word == "returned" and not wrong)
    (chunk,) = feed.taken()
    assert chunk[:1] != b"\0", "words to fail with begin so"


@pytest.mark.parametrize(
    "rubbish",
    [
        b"hello, world! how are you",
        frames.HEADER.pack(frames.DATA, 0, 0, 1, 5) + b"hello",
        # only the agent itself may say how many rows it has passed on
        frames.HEADER.pack(frames.PASSED, 0, 0, 0, 2) + b"{}",
    ],
)
def test_the_submitter_hears_of_a_task_that_breaks_the_protocol(rubbish: bytes) -> None:
    feed, schema = Feed(), schema_bytes(Schema.parse("a bigint, x double", "output_schema").arrow)
    (source, task), (submitter, target) = os.pipe(), os.pipe()
    passing = threading.Thread(
        target=feed.pass_on, args=(source, frames.FrameWriter(target), pb.Output(schema=schema, rows=schema))
    )
    passing.start()
    writer, reader = frames.FrameWriter(task), frames.FrameReader(submitter, frames.FROM_AGENT)
    writer.write(frames.COLUMNS, codec.encode_columns(BATCH), 4)
    os.write(task, rubbish)
    writer.close()
    passing.join(60)
    said = []
    while (frame := reader.read()) is not None:
        said.append(messages.read(frame)["broken"])
    reader.close()
    os.close(source)
    assert said[0] == "a columns frame: a frame of 4 rows holds columns of 3" and len(said) == 2
    assert "not a frame" in said[1] or "does not go this way" in said[1]


def test_a_task_waits_while_flink_takes_nothing() -> None:
    written, over = Written(), threading.Event()
    large = pa.record_batch({"a": [b"x" * (5 << 20)]})
    written.put(large, over)
    written.put(large, over)
    waiting = threading.Thread(target=written.put, args=(large, over))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive() and len(written.take(0)) == 2
    waiting.join(60)
    assert not waiting.is_alive() and len(written.take(0)) == 1
