from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from akrunner.io.partitioner import Partitioner, behind, rechunk


@given(sizes=st.lists(st.integers(0, 50), max_size=12), parts=st.integers(1, 7), chunk=st.integers(1, 40))
def test_shares(sizes: list[int], parts: int, chunk: int) -> None:
    """Even to within one row, order kept, nothing lost or doubled, and however the table was cut, dealt the same."""
    total = sum(sizes)
    edges = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    batches = [pa.record_batch({"i": list(range(a, b))}) for a, b in itertools.pairwise(edges)]
    partitioner = Partitioner(parts)
    got: list[list[int]] = [[] for _ in range(parts)]
    for piece in rechunk(batches, chunk, 1 << 20):
        assert 0 < piece.num_rows <= chunk
        for part, first, share in partitioner.deal(piece):
            rows = share.column("i").to_pylist()
            assert rows[0] == first
            got[part].extend(rows)
    assert got == [list(range(part, total, parts)) for part in range(parts)]
    assert partitioner.shares == [len(share) for share in got] and partitioner.rows == total


def test_chunks_are_bounded_in_bytes() -> None:
    wide = pa.record_batch({"b": [b"x" * 1000] * 100})
    assert max(piece.num_rows for piece in rechunk([wide], 1000, 10_000)) <= 11
    assert sum(piece.num_rows for piece in rechunk([wide.slice(i, 1) for i in range(100)], 1000, 10_000)) == 100


def test_the_first_rows_are_left_out() -> None:
    batches = [pa.record_batch({"a": [0, 1, 2]}), pa.record_batch({"a": [3, 4]})]
    for left_out in range(7):
        rows = [value for batch in behind(batches, left_out) for value in batch.column(0).to_pylist()]
        assert rows == list(range(left_out, 5))


def test_one_row_larger_than_a_chunk() -> None:
    wide = pa.record_batch({"b": [b"x" * 5000] * 3})
    assert [piece.num_rows for piece in rechunk([wide], 1000, 1000)] == [1, 1, 1]


def test_dictionaries_of_other_values_are_put_together_or_left_apart() -> None:
    for size, pieces in ((3, 1), (100, 2)):
        texts = [[f"{name}{i}" for i in range(size)] for name in "ab"]
        batches = [
            pa.record_batch([pa.DictionaryArray.from_arrays(pa.array(range(size), pa.int8()), pa.array(values))], ["d"])
            for values in texts
        ]
        got = list(rechunk(batches, 1000, 1 << 20))
        assert len(got) == pieces
        assert [value for piece in got for value in piece.column(0).to_pylist()] == texts[0] + texts[1]
