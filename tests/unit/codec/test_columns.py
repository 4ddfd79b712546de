"""Columns out: what a RecordBatch holds is what the worker's half reads, type for type."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import akrunner
from akrunner.codec.columns import encode_columns
from akrunner.schema import Schema
from akrunner.worker import chunks, stream


def crossed(table: pa.Table, **options: Any) -> dict[str, Any]:
    """The columns as a worker has them."""
    batch = table.combine_chunks().to_batches()[0]
    payload = b"".join(bytes(part) for part in encode_columns(batch))
    rows, columns = chunks.unpack(payload, Schema.from_arrow(table.schema).describe(), **options)
    assert rows == table.num_rows
    return columns


def test_every_type_keeps_its_own() -> None:
    day, moment = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4, 5)
    table = pa.table(
        {
            "b": pa.array([True, False]),
            "i8": pa.array([1, -2], pa.int8()),
            "u64": pa.array([0, 2**64 - 1], pa.uint64()),
            "f16": pa.array(np.array([0.5, 1.5], np.float16)),
            "f64": pa.array([0.1, 1e300]),
            "s": pa.array(["a", "é"]),
            "z": pa.array([b"\x00", b""], pa.large_binary()),
            "d": pa.array([day, day]),
            "t": pa.array([moment, moment], pa.timestamp("ms")),
            "n": pa.array([decimal.Decimal(5), decimal.Decimal(-5)], pa.decimal128(9, 0)),
            "c": pa.array(["x", "y"]).dictionary_encode(),
            "v": pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0]), 2),
            "m": pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.int32(), (2, 1)),
                pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), 2),
            ),
            "w": pa.FixedSizeListArray.from_arrays(pa.array(["p", "q", "r", "s"]), 2),
        }
    )
    got = crossed(table)
    dtypes = {name: values.dtype.name for name, values in got.items()}
    assert dtypes == {
        "b": "bool", "i8": "int8", "u64": "uint64", "f16": "float16", "f64": "float64", "s": "object", "z": "object", "d": "int64",
        "t": "int64", "n": "int64", "c": "object", "v": "float64", "m": "int32", "w": "object",
    }  # fmt: skip
    assert got["u64"].tolist() == [0, 2**64 - 1] and got["f64"].tolist() == [0.1, 1e300]
    assert got["s"].tolist() == [b"a", "é".encode()] and got["z"].tolist() == [b"\x00", b""]
    assert got["d"].tolist() == [20455, 20455] and got["t"][0] == int(moment.replace(tzinfo=datetime.UTC).timestamp() * 1000)
    assert got["n"].tolist() == [5, -5] and got["c"].tolist() == [b"x", b"y"]
    assert got["v"].tolist() == [[1, 2], [3, 4]] and got["m"].tolist() == [[[1], [2]], [[3], [4]]]
    assert got["w"].tolist() == [[b"p", b"q"], [b"r", b"s"]]


def test_nulls() -> None:
    fixed = pa.array([[1, 2], None, [5, 6]], pa.list_(pa.int64(), 2))
    table = pa.table({"f": [1.0, None, 3.0], "i": [1, None, 3], "s": ["a", None, "c"], "v": fixed, "r": [[1], None, [2, 3]]})
    got = crossed(table, defaults={"i": -1, "s": "none", "v": 0})
    assert got["f"][0] == 1 and np.isnan(got["f"][1]) and got["i"].tolist() == [1, -1, 3]
    assert got["s"].tolist() == [b"a", b"none", b"c"] and got["v"].tolist() == [[1, 2], [0, 0], [5, 6]]
    assert [row.tolist() for row in got["r"].rows()] == [[1], [], [2, 3]]
    with pytest.raises(ValueError, match="column 'i' has a null in row . of this task's.*defaults="):
        crossed(table, defaults={"s": "", "v": 0})
    with pytest.raises(ValueError, match="column 'i' has a null in row .*; the same holds for 's', 'v'$"):
        crossed(table)
    with pytest.raises(ValueError, match=r"gives them a value$"):
        crossed(table, defaults={"s": "", "v": 0})
    with pytest.raises(akrunner.DataError, match="row 1, column 'r': a list has a null in it"):
        crossed(pa.table({"r": [[1], [None], [2]]}))
    strings = pa.table({"w": pa.array([["a", "b"], None], pa.list_(pa.string(), 2))})
    assert crossed(strings, defaults={"w": "-"})["w"].tolist() == [[b"a", b"b"], [b"-", b"-"]]


def test_sliced_batches() -> None:
    table = pa.table({"i": range(10), "s": list("abcdefghij"), "r": [[i] * i for i in range(10)]}).slice(3, 4)
    got = crossed(table)
    assert got["i"].tolist() == [3, 4, 5, 6] and got["s"].tolist() == [b"d", b"e", b"f", b"g"]
    assert [row.tolist() for row in got["r"].rows()] == [[i] * i for i in range(3, 7)]


Columns = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1), st.floats(width=64), st.text(max_size=5), st.lists(st.floats(width=32), max_size=4)
    ),
    max_size=30,
)


@pytest.mark.slow
@given(Columns, st.integers(1, 9), st.integers(1, 7))
def test_cut_and_joined_again(rows: list[Any], size: int, batch_size: int) -> None:
    """Whatever the chunks and the batches, every row arrives once, in order."""
    types = [pa.int64(), pa.float64(), pa.string(), pa.list_(pa.float32())]
    table = pa.table([pa.array([row[i] for row in rows], types[i]) for i in range(4)], names=list("abcd"))
    schema = Schema.from_arrow(table.schema).describe()
    payloads = [b"".join(map(bytes, encode_columns(batch))) for batch in table.to_batches(max_chunksize=size)]
    batches = list(chunks.rebatched((chunks.unpack(p, schema) for p in payloads), batch_size))
    assert [len(batch["a"]) for batch in batches[:-1]] == [batch_size] * max(0, len(batches) - 1)
    whole = chunks.joined(batches) if batches else {}
    if rows:
        assert whole["a"].tolist() == [row[0] for row in rows]
        assert np.array_equal(whole["b"], np.array([row[1] for row in rows]), equal_nan=True)
        assert whole["c"].tolist() == [row[2].encode() for row in rows]
        assert all(
            np.array_equal(x, np.array(y[3], np.float32), equal_nan=True) for x, y in zip(whole["d"].rows(), rows, strict=True)
        )
    mixed = [columns for _, columns in chunks.shuffled((chunks.unpack(p, schema) for p in payloads), size, 7)]
    if rows:
        together = chunks.joined(mixed)
        assert sorted(zip(together["a"].tolist(), together["c"].tolist(), strict=True)) == sorted(
            (r[0], r[2].encode()) for r in rows
        )


Pieces = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=12)


@pytest.mark.slow
@given(Pieces, st.integers(1, 7), st.booleans())
def test_rows_before_a_barrier_are_not_held_back(pieces: list[Any], size: int, drop: bool) -> None:
    """None: a barrier. What is given between two of them is what came between them; batches that are not full come last there."""
    numbers = iter(range(1000))
    rows = [None if n is None else np.array([next(numbers) for _ in range(n)], np.int64) for n in pieces]
    seen: dict[str, list[list[int]]] = {"columns": [], "stacks": [], "vectors": []}

    def drawn(name: str) -> Iterator[Any]:
        for piece in rows:
            if piece is not None:
                yield (len(piece), {"a": piece}) if name != "vectors" else piece
                continue
            yield chunks.NOW if name != "vectors" else None
            # now somebody asks for what is behind it
            counts[name].append(sum(map(len, seen[name])))

    counts: dict[str, list[int]] = {name: [] for name in seen}
    for batch in chunks.rebatched(drawn("columns"), size, drop):
        seen["columns"].append(batch["a"].tolist())
    for stack in chunks.stacks(drawn("stacks"), size, drop, 1):
        seen["stacks"] += stack["a"].tolist()
    for vector in stream._regrouped(drawn("vectors"), size, drop):
        seen["vectors"] += [vector.tolist()] if len(vector) else []
    before = np.cumsum([0 if piece is None else len(piece) for piece in rows])
    barriers = [int(before[i]) for i, piece in enumerate(rows) if piece is None]
    for name in seen:
        given = [row for batch in seen[name] for row in batch]
        assert given == list(range(len(given))) and all(len(batch) <= size for batch in seen[name])
        if drop:
            assert all(len(batch) == size for batch in seen[name]) and int(before[-1] if rows else 0) - len(given) < size
            assert all(n - size < count <= n for n, count in zip(barriers, counts[name], strict=True))
        else:
            assert counts[name] == barriers and len(given) == (int(before[-1]) if rows else 0)


def test_a_batch_of_a_stream_waits_for_no_other() -> None:
    drawn = []

    def pieces() -> Iterator[Any]:
        for i in range(4):
            drawn.append(i)
            yield 3, {"a": np.arange(3 * i, 3 * i + 3)}

    stacks = chunks.stacks(pieces(), 4, False, 1)
    assert next(stacks)["a"].tolist() == [[0, 1, 2, 3]] and drawn == [0, 1]
    assert [stack["a"].tolist() for stack in stacks] == [[[4, 5, 6, 7]], [[8, 9, 10, 11]]]


def test_shuffle_mixes_and_repeats_itself() -> None:
    def once(seed: int) -> list[int]:
        parts = [(100, {"i": np.arange(i, i + 100)}) for i in range(0, 1000, 100)]
        return [int(v) for _, columns in chunks.shuffled(iter(parts), 200, seed) for v in columns["i"]]

    assert once(1) == once(1) != once(2) and sorted(once(1)) == list(range(1000))
    assert once(1)[:100] != sorted(once(1)[:100])


def test_a_file_of_chunks(tmp_path: Path) -> None:
    path = tmp_path / "dataset.columns"
    path.write_bytes(b"")
    assert list(chunks.read_file(path)) == []
    payloads = [bytes([i]) * (8 * i) for i in range(1, 4)]
    path.write_bytes(b"".join(chunks.LENGTH.pack(len(p)) + p for p in payloads))
    views = list(chunks.read_file(path))
    assert [bytes(view) for view in views] == payloads
    views[0][0] = 9
    assert path.read_bytes()[8] == 1, "what a script writes into its arrays stays in its process"


def test_a_null_nobody_looks_at_is_no_error() -> None:
    table = pa.table({"i": pa.array([1, None, 3]), "s": ["a", "b", None], "x": [1.0, 2.0, 3.0]})
    schema = Schema.from_arrow(table.schema)
    parts = []
    for piece in (table.slice(0, 1), table.slice(1)):
        payload = b"".join(bytes(part) for part in encode_columns(piece.combine_chunks().to_batches()[0]))
        parts.append(chunks.unpack(payload, schema.describe(), lazy=True))
    first, last = (chunks.given(batch) for batch in chunks.rebatched(iter(parts), 2))
    assert (
        first["x"].tolist() == [1, 2]
        and first["s"].tolist() == [b"a", b"b"]
        and first.rows == 2
        and set(first) == {"i", "s", "x"}
    )
    for use in (
        lambda: first["i"],
        lambda: first.get("i"),
        lambda: dict(first),
        lambda: dict(**first),
        first.items,
        first.values,
    ):
        with pytest.raises(ValueError, match=r"column 'i' has a null in row . of the batch.*defaults=.*columns=\["):
            use()
    assert last["i"].tolist() == [3] and first.copy()["x"].tolist() == [1, 2]
    mixed = chunks.shuffled(iter(parts), 10, 0)
    assert sum(rows for rows, _ in mixed) == 3
    taken = chunks.unpack(payload, schema.describe(), taken=["x"])[1]
    assert {name: values.tolist() for name, values in taken.items()} == {"x": [2, 3]}
