"""The tables that are measured on; seeded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

NUMBERS = [f"f{i}" for i in range(10)]


def numbers(rows: int, seed: int = 0) -> pa.RecordBatch:
    """10 float32 and 1 int64."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {name: rng.random(rows, dtype=np.float32) for name in NUMBERS}
    columns["label"] = rng.integers(0, 1000, rows)
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def with_strings(rows: int, seed: int = 0) -> pa.RecordBatch:
    """The same with 3 strings of 5 to 20 bytes."""
    rng = np.random.default_rng(seed)
    batch = numbers(rows, seed)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)

    def strings() -> pa.Array:
        lengths = rng.integers(5, 21, rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        data = letters[rng.integers(0, 26, int(offsets[-1]))]
        return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])

    names = [*batch.schema.names, "s0", "s1", "s2"]
    return pa.RecordBatch.from_arrays([*batch.columns, strings(), strings(), strings()], names=names)


def with_lists(count: int, seed: int = 0) -> pa.RecordBatch:
    """The same, and a list of 0 to 100 integers in each row."""
    rng = np.random.default_rng(seed)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 101, count))]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(ends), pa.array(rng.integers(0, 50_000, ends[-1])))
    base = numbers(count, seed)
    return pa.RecordBatch.from_arrays([*base.columns, lists], [*base.schema.names, "visited"])


def images(rows: int, size: int = 20_000, seed: int = 0) -> pa.RecordBatch:
    """One binary column of `size` bytes."""
    rng = np.random.default_rng(seed)
    return pa.RecordBatch.from_pydict({"image": pa.array([rng.bytes(size) for _ in range(rows)], pa.large_binary())})


def as_examples(batch: pa.RecordBatch, example: Any, feature: Any) -> list[bytes]:
    """Each row built and serialized with TensorFlow's own protos, as scripts do it."""
    float_list, int64_list, bytes_list, features = feature
    out = []
    for row in batch.to_pylist():
        parts = {}
        for name, value in row.items():
            if isinstance(value, float):
                parts[name] = example.Feature(float_list=float_list(value=[value]))
            elif isinstance(value, int):
                parts[name] = example.Feature(int64_list=int64_list(value=[value]))
            else:
                data = value.encode() if isinstance(value, str) else value
                parts[name] = example.Feature(bytes_list=bytes_list(value=[data]))
        out.append(example.Example(features=features(feature=parts)).SerializeToString())
    return out
