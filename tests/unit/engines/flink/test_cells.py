"""Rows, and what a prediction keeps beside them, as declared messages: what comes out is what went in."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.cells import packed, unpacked
from akrunner.engines.flink.taskmanager.feed import pairing_of, pairs_word
from akrunner.errors import DataError
from akrunner.io.pairing import Fed, Pairing

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.times(),
    st.datetimes(timezones=st.one_of(st.none(), st.just(datetime.UTC))),
)


@pytest.mark.slow
@given(st.lists(st.one_of(CELLS, st.lists(CELLS, max_size=3), st.lists(st.lists(CELLS, max_size=2), max_size=2)), max_size=6))
def test_a_row_is_the_same_again(row: list[Any]) -> None:
    found = unpacked(packed(row))
    assert found == tuple(row) and [type(one) for one in found] == [type(one) for one in row]


@pytest.mark.parametrize("cell", [{"a": 1}, object(), 1j, datetime.timedelta(1)])
def test_what_has_no_place_is_said(cell: Any) -> None:
    with pytest.raises(DataError, match=f"a value of {type(cell).__name__} does not go through Python"):
        packed([cell])


def test_numbers_that_are_no_numbers() -> None:
    (nan, infinite, zero) = unpacked(packed([float("nan"), float("-inf"), Decimal("0E-5")]))
    assert nan != nan and infinite == float("-inf") and str(zero) == "0.00000"


def test_what_is_kept_beside_a_prediction_crosses() -> None:
    feed = pa.schema([("0", pa.float32()), ("1", pa.list_(pa.int64(), 2))])
    made = Pairing(
        (Fed("x", "float32", ("a",), ("0",)), Fed("y", "int64", ("b",), ("1",))), feed, ("p",), pa.schema([("a", pa.string()), ("p", pa.float64())])
    )  # fmt: skip
    again = pairing_of(pb.Pairs.FromString(pairs_word(made).SerializeToString()))
    assert again == made
    batch = pa.record_batch({"a": ["1.5"], "b": [[1, 2]]})
    joined = again.joined(batch, pa.record_batch({"p": [0.5]}))
    assert joined.to_pylist() == [{"a": "1.5", "p": 0.5}]
    with pytest.raises(DataError, match="row 7, column 'b': is null, which input 'y' of the model cannot take"):
        again.model_inputs(pa.record_batch({"a": pa.array([1.0]), "b": pa.array([None], pa.list_(pa.int64()))}), 7)
