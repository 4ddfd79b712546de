"""Frames of every kind, valid ones changed a little and others made up: rows, or one of akrunner's exceptions; never a crash."""

from __future__ import annotations

import contextlib
import json
import os
import random
import struct
import threading
import types
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akrunner import codec
from akrunner.engines.conversation import Conversation
from akrunner.engines.tables import JobTables
from akrunner.errors import DataError, InputLostError, ProtocolError, SourceError, WriteError
from akrunner.schema import Schema
from akrunner.spec import TablesSpec, TaskSpec
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo
from akrunner.wire import frames, messages, tables
from akrunner.wire.frames import WireError
from akrunner.wire.shapes import fields_of
from akrunner.worker import chunks, stream
from akrunner.worker import column_encoding as packing
from tests.fuzz import mutated, randomness, rounds, tried

SCHEMA = Schema.parse(
    "a bigint, b double, c string, d varbinary, e boolean, v array<double>, w array<string>, t timestamp, y date, n int not null"
)


def written(rows: int) -> dict[str, Any]:
    """What a script may give to write_batch."""
    some: list[Any] = [None, "é", ""]
    return {
        "a": np.arange(rows),
        "b": np.linspace(0, 1, rows),
        "c": [some[i % 3] for i in range(rows)],
        "d": [b"x" * i for i in range(rows)],
        "e": np.arange(rows) % 2 == 0,
        "v": [None if i == 2 else [0.5] * i for i in range(rows)],
        "w": [["p", "q"][: i % 3] for i in range(rows)],
        "t": np.ma.masked_array(np.arange(rows), np.arange(rows) % 4 == 1),
        "y": np.arange(rows, dtype=np.int16),
        "n": np.zeros(rows, np.uint8),
    }


def payload_of(rows: int) -> bytes:
    count, packed = packing.packed(written(rows), SCHEMA.names)
    ((count, payload),) = packing.pieces(count, packed, 1 << 20, 1 << 30)
    return b"".join(bytes(part) for part in payload)


def with_header(payload: bytes, rng: random.Random) -> bytes:
    """The payload with something else somewhere in its header's JSON."""
    (size,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + size])
    column = rng.choice(header["columns"])
    odd = [0, -1, 1, 3, 2**31, 2**62, 2**63, 10**30, None, True, "x", [], [None], {}, 1.5, "int64", "float16", "bytes", "bool"]
    place = rng.choice(["rows", "name", "form", "dtype", "shape", "nulls", "buffers", "span", "size"])
    if place == "rows":
        header["rows"] = rng.choice(odd)
    elif place in ("span", "size"):
        span = rng.choice(column["buffers"])
        span[rng.randrange(2)] = rng.choice([*odd, span[0] + 8, span[1] - 8, span[1] + 1])
    elif place == "shape" and rng.random() < 0.8:
        column["shape"] = [rng.choice([header["rows"], *odd]) for _ in range(rng.randrange(4))]
    elif place == "form":
        column["form"] = rng.choice(["text", "blob", "numbers", "ragged"])
    else:
        column[place] = rng.choice(odd)
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + payload[4 + size :]


def in_offsets(payload: bytes, rng: random.Random) -> bytes:
    """The payload with another number in one of its buffers: an offset, most likely."""
    (size,) = struct.unpack_from("<I", payload)
    out = bytearray(payload)
    at = 4 + size + 8 * rng.randrange((len(payload) - 4 - size) // 8)
    struct.pack_into("<q", out, at, rng.choice([0, 1, -1, 2**31, 2**62, -(2**63), 7, rng.randrange(100)]))
    return bytes(out)


def take(kind: int, payload: bytes, count: int) -> None:
    """Decode it, and use what comes out."""
    with contextlib.suppress(ProtocolError, DataError):
        batch = codec.decode_frame(SCHEMA, frames.Frame(kind, count, bytearray(payload)))
        assert batch.num_rows == count
        batch.validate(full=True)
        assert batch.take(pa.array(range(count))).num_rows == count


def test_columns() -> None:
    rng = randomness()
    valid = [payload_of(rows) for rows in (1, 2, 7, 40)]
    take(frames.COLUMNS, valid[2], 7)
    for _ in rounds(1500):
        at = rng.randrange(4)
        change = rng.choice([mutated, with_header, in_offsets])
        take(frames.COLUMNS, tried("columns", change(valid[at], rng)), (1, 2, 7, 40)[at])


def test_examples() -> None:
    rng = randomness()
    batch = pa.record_batch(
        {"a": [1, 2, 3], "b": [0.5, None, 1.5], "c": ["x", "é", None], "n": [1, 2, 3], "v": [[1.0], [], None]}
    )
    examples = codec.encode_examples(batch).to_pylist()
    valid = struct.pack("<3I", *map(len, examples)) + b"".join(examples)
    take(frames.EXAMPLES, valid, 3)
    for _ in rounds(1000):
        count = rng.choice([3, 3, 3, 0, 1, 4, 4096, 1 << 20, (1 << 32) - 1])
        data = tried("examples", mutated(valid, rng))
        with contextlib.suppress(ProtocolError, DataError):
            codec.decode_frame(SCHEMA, frames.Frame(frames.EXAMPLES, count, bytearray(data)))


def test_columns_for_a_worker(tmp_path: Any) -> None:
    rng = randomness()
    table = pa.table(
        {"a": [1, 2, 3], "c": ["x", "é", None], "v": [[1.0], [], None], "m": [[b"1"], [b"2"], [b"3"]], "e": [True, False, None]}
    ).cast(
        pa.schema(
            [
                ("a", pa.int64()),
                ("c", pa.string()),
                ("v", pa.list_(pa.float64())),
                ("m", pa.list_(pa.binary(), 1)),
                ("e", pa.bool_()),
            ]
        )
    )
    described = Schema.from_arrow(table.schema).describe()
    defaults = {"a": 0, "c": "", "e": False}
    valid = b"".join(bytes(part) for part in codec.encode_columns(table.to_batches()[0]))
    assert chunks.unpack(valid, described, defaults)[0] == 3
    path = tmp_path / "spool"
    for _ in rounds(700):
        data = tried("worker", rng.choice([mutated, with_header, in_offsets])(valid, rng))
        with contextlib.suppress(WireError):
            rows, columns = chunks.unpack(data, described, defaults)
            assert all(len(values) == rows for values in columns.values())
        path.write_bytes(mutated(struct.pack("<Q", len(valid)) + valid, rng))
        with contextlib.suppress(WireError):
            assert all(len(payload) <= len(valid) * 2 for payload in chunks.read_file(str(path)))
    lengths = struct.pack("<3I", 2, 0, 1) + b"abc"
    for _ in rounds(300):
        with contextlib.suppress(WireError):
            list(stream._cut(rng.choice([0, 1, 3, 4, 1 << 31]), mutated(lengths, rng)))


def test_streams_of_frames() -> None:
    rng = randomness()
    body = json.dumps({"rows": 3, "waited_ns": 1, "total_rows": 3, "shares": [3], "splits": [[1, 2]]}).encode()
    kinds = sorted(frames.NAMES)
    for _ in rounds(300):
        valid = b"".join(frames.HEADER.pack(kind, 0, 0, 3, len(body)) + body for kind in rng.choices(kinds, k=3))
        data = tried("stream", mutated(valid, rng))
        read, write = os.pipe()
        os.write(write, data)
        os.close(write)
        reader = frames.FrameReader(read, rng.choice([frames.TO_WORKER, frames.FROM_WORKER, frames.EITHER_WAY]))
        with contextlib.suppress(WireError):
            while (frame := reader.read()) is not None:
                messages.read(frame)
        reader.close()


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
bodies = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
fields = sorted({field for shape in messages.SHAPES.values() for known in fields_of(shape) for field in known})


@given(st.sampled_from(sorted(frames.NAMES)), st.dictionaries(st.sampled_from(fields), bodies) | bodies)
def test_messages(kind: int, body: Any) -> None:
    frame = frames.Frame(kind, 0, bytearray(json.dumps(body).encode()))
    with contextlib.suppress(WireError):
        said = messages.read(frame)
        assert set(fields_of(messages.SHAPES[kind])[0]) <= set(said)


def test_nothing_valid_is_refused() -> None:
    for rows in (1, 5, 300):
        data = payload_of(rows)
        batch = codec.decode_frame(SCHEMA, frames.Frame(frames.COLUMNS, rows, bytearray(data)))
        assert batch.column("c").to_pylist()[:3] == [None, "é", ""][:rows]
    with pytest.raises(ProtocolError, match="a columns frame: a frame of 2 rows holds columns of 300"):
        codec.decode_frame(SCHEMA, frames.Frame(frames.COLUMNS, 2, bytearray(data)))


class Part:
    """See `akrunner.tables.store.TablePart`."""

    rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        batch.validate(full=True)
        self.rows += batch.num_rows

    def close(self) -> None:
        pass


class Store:
    """Of one table, in memory. Attributes: written: what counts as such."""

    kind = place = "memory"

    def __init__(self) -> None:
        self.rows = pa.record_batch({"a": list(range(40)), "c": [f"t{i}" for i in range(40)]})
        self.info = TableInfo(self.rows.schema)
        self.name = TableName.parse("odps://p/tables/t")

    def reading(self, name: TableName) -> Any:
        return types.SimpleNamespace(info=self.info, rows=40, read=self.read, close=lambda: None)

    def read(self, columns: Any, start: int, rows: int) -> Any:
        if [name for name in columns if name not in ("a", "c")]:
            raise SourceError("no such column")
        yield self.rows.slice(start, rows).select(columns)

    def output(self, name: TableName, overwrite: bool = True) -> Any:
        return types.SimpleNamespace(name=self.name, info=self.info, part=lambda key: Part(), abort=lambda: None)


def test_what_is_asked_of_tables() -> None:
    """Whatever a task says of tables: an answer, or that it broke the protocol."""
    rng = randomness()
    store, names = Store(), ["odps://p/tables/t", "odps://p/tables/u", "odps://p/tables/t?start=5&end=9", "t", "", "\0"]
    odd = [0, 1, 2, -1, 3, 2**40, 2**62, 2**63, None, True, 1.5, "x", [], {}]
    count, packed = packing.packed({"a": np.arange(7), "c": ["x"] * 7}, ["a", "c"])
    ((_, columns),) = packing.pieces(count, packed, 1 << 20, 1 << 30)
    valid = b"".join(bytes(part) for part in columns)
    kinds = [kind for kind in tables.QUESTIONS if kind != frames.ADD_ROWS]
    for _ in rounds(60):
        shared = JobTables(TablesSpec(("odps://p/tables/t",), ("odps://p/tables/t",), store), 8, 1 << 20)
        read, write = os.pipe()
        failed: list[type] = []
        one = Conversation(
            shared,
            TaskSpec("chief", 0),
            frames.FrameWriter(write),
            lambda error, what, failed=failed: failed.append(type(error)),
        )
        drained = threading.Thread(target=_drain, args=(read,))
        drained.start()
        with contextlib.suppress(ProtocolError, frames.WireError):
            for _ in range(20):
                number = rng.randrange(4)
                if rng.random() < 0.3:
                    payload = struct.pack("<Q", number) + rng.choice([valid, mutated(valid, rng), with_header(valid, rng)])
                    one.take(frames.Frame(frames.ADD_ROWS, rng.choice([7, 7, 0, 5]), bytearray(payload)))
                    continue
                kind = rng.choice(kinds)
                body: dict[str, Any] = {
                    "request": number, "table": rng.choice(names), "columns": rng.choice([["a"], ["c", "a"], ["z"], []]), "start": 0, "stop": 40,
                    "credits": 3, "chunks": 2, "slice": 1, "rows": rng.choice([0, 7, 40]), "queue": "q", "works": [rng.choice(names)],
                    "epochs": 1, "shuffle": False, "seed": None, "slices": rng.choice([None, 3, 0]), "digest": rng.choice("ab"),
                    "process": rng.choice(["1:a", "2:b"]), "whole": rng.random() < 0.5,
                }  # fmt: skip
                if rng.random() < 0.2:
                    body[rng.choice(sorted(body))] = rng.choice(odd)
                one.take(frames.Frame(kind, 0, bytearray(json.dumps(body).encode())))
        one.stop()
        one.join()
        one._writer.close()
        drained.join()
        shared.close()
        assert set(failed) <= {DataError, ProtocolError, frames.WireError, InputLostError, WriteError}, failed


def _drain(fd: int) -> None:
    reader = frames.FrameReader(fd, frames.TO_WORKER)
    while (frame := reader.read()) is not None:
        if frame.kind != frames.TABLE_ROWS:
            messages.read(frame)
    reader.close()
