"""What of a row travels to a model, and what is put beside its answer."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import DataError
from akrunner.io.pairing import Fed, Pairing, as_input

F16, F32, F64 = pa.float16(), pa.float32(), pa.float64()


def fed(column: pa.Array, target: pa.DataType, first_row: int = 0) -> pa.Array:
    """The column as it travels."""
    pairing = Pairing((Fed("image", "float32", ("x",), ("t",)),), pa.schema([("t", target)]), (), pa.schema([]))
    return pairing.model_inputs(pa.record_batch([column], ["x"]), first_row).column("t")


def test_columns_side_by_side_feed_an_input_under_the_names_they_travel_by() -> None:
    feed = pa.schema([("0", F32), ("1", F32), ("2", pa.large_binary())])
    inputs = (Fed("dense", "float32", ("b", "a"), ("0", "1")), Fed("text", "string", ("s",), ("2",)))
    result = pa.schema([("s", pa.string()), ("score", F32)])
    pairing = Pairing(inputs, feed, ("score",), result)
    batch = pa.record_batch({"a": [1, 2], "b": [0.5, None], "s": ["é", ""], "unused": [None, None]})
    travels = pairing.model_inputs(batch, 0)
    assert travels.schema == feed
    assert travels.column("0").to_pylist() == [0.5, None] and travels.column("1").to_pylist() == [1, 2]
    assert travels.column("2").to_pylist() == ["é".encode(), b""]
    outputs = pa.record_batch({"score": pa.array([0.25, 0.75], F32), "s": [1, 2]})
    joined = pairing.joined(batch, outputs)
    assert joined.schema == result and joined.to_pylist() == [{"s": "é", "score": 0.25}, {"s": "", "score": 0.75}]


def test_an_output_takes_the_place_of_a_column_of_its_name() -> None:
    result = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    pairing = Pairing((), pa.schema([]), ("x",), result)
    joined = pairing.joined(pa.record_batch({"x": [1], "y": [2]}), pa.record_batch({"x": [3]}))
    assert joined.to_pylist() == [{"x": 3, "y": 2}]


@pytest.mark.parametrize(
    ("column", "target", "want"),
    [
        (pa.array([0.1, None]), F32, [0.10000000149011612, None]),
        (pa.array([1, None], pa.int8()), F32, [1.0, None]),
        (pa.array([Decimal("1.5")]), F64, [1.5]),
        (pa.array([True, False]), pa.int64(), [1, 0]),
        (pa.array([datetime.date(1970, 1, 3)]), pa.int64(), [2]),
        (pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1)]), pa.int64(), [10**6]),
        (pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("s", "UTC")), F32, [1.0]),
        (pa.array(["a", "b"]).dictionary_encode(), pa.large_binary(), [b"a", b"b"]),
        (pa.array([[1, 2]]), pa.list_(F32), [[1.0, 2.0]]),
        (pa.array([[0.1], []]), pa.list_(F32), [[0.10000000149011612], []]),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.list_(pa.int64(), 2), [[1, 2]]),
        (pa.array([2**24]), F32, [2.0**24]),
        (pa.array([-(2**53)]), F64, [-(2.0**53)]),
        (pa.array([2**25]), F32, [2.0**25]),
        (pa.array([2**63], pa.uint64()), F64, [2.0**63]),
        (pa.array([], pa.int64()), F32, []),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_that_an_input_takes(column: pa.Array, target: pa.DataType, want: list[Any]) -> None:
    found = fed(column, target)
    assert found.type == target and found.to_pylist() == want


def test_a_tensor_travels_as_its_values() -> None:
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(F32, (2, 1)), pa.array([[1, 2], [3, 4]], pa.list_(F32, 2)))
    assert fed(tensor, pa.list_(F32, 2)).to_pylist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("column", "target", "words"),
    [
        (
            pa.array([1, 2, None, None]),
            pa.int64(),
            "is null, which input 'image' of the model cannot take; give defaults={'x': ...}",
        ),
        (pa.array(["a", "b", None]), pa.large_binary(), "is null"),
        (pa.array([[1.0], [], None]), pa.list_(F32), "is null"),
        (pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array(["a", None])), pa.large_binary(), "is null"),
        (pa.array([[1.0], [], [2.0, None]]), pa.list_(F32), "has a null in its list, which input 'image'"),
        (pa.array([[1], [2, 3], [4, None]], pa.list_(pa.int64())), pa.list_(pa.int64()), "has a null in its list"),
        (
            pa.array([1.0, None, 1e300, 1.0]),
            F32,
            "does not fit float32, which input 'image' takes: 1e.300 would become infinite",
        ),
        (pa.array([[1.0], [], [1.0, 1e300]]), pa.list_(F32), "does not fit float32, .*1e.300 would become infinite"),
        (pa.array([1, None, 2**24 + 1, 5]), F32, "does not fit float32, .*16777217 would become 16777216; .*CAST"),
        (pa.array([[1], [], [2, 2**24 + 1]]), pa.list_(F32), "does not fit float32, .*16777217 would become 16777216"),
        (pa.array([1, 2, 300, 1]), pa.int8(), "does not fit float32, .*300"),
        (pa.array([1.0, 2.0, 0.5]), pa.int64(), "does not fit float32, .*0.5"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_value_that_an_input_cannot_take_is_named_with_its_row(column: pa.Array, target: pa.DataType, words: str) -> None:
    with pytest.raises(DataError, match=f"^row 102, column 'x': {words}") as caught:
        fed(column, target, 100)
    assert (caught.value.row, caught.value.column) == (102, "x")


def test_a_type_that_an_input_cannot_take_is_named_without_a_row() -> None:
    with pytest.raises(
        DataError, match="^column 'x' is struct<a: int64>, which does not fit float32, as input 'image' takes"
    ) as caught:
        fed(pa.array([{"a": 1}]), F32)
    assert caught.value.row is None and caught.value.column == "x"


@pytest.mark.parametrize(
    ("number", "kind", "target", "kept"),
    [
        (2**53, pa.int64(), F64, True),
        (2**53 + 1, pa.int64(), F64, False),
        (-(2**53) - 1, pa.int64(), F64, False),
        (2**63 - 1, pa.int64(), F64, False),
        (2**64 - 1, pa.uint64(), F64, False),
        (2**64 - 2**11, pa.uint64(), F64, True),
        (2**24 + 1, pa.int32(), F32, False),
        (2**31 - 1, pa.int32(), F32, False),
        (-(2**31), pa.int32(), F32, True),
        (2**11, pa.int16(), F16, True),
        (2**11 + 1, pa.int16(), F16, False),
    ],
    ids=str,
)
def test_no_digit_of_an_integer_is_lost(number: int, kind: pa.DataType, target: pa.DataType, kept: bool) -> None:
    column = pa.array([0, number], kind)
    if kept:
        assert as_input(column, target).to_numpy().astype(np.float64).tolist() == [0.0, float(number)]
    else:
        with pytest.raises(pa.ArrowInvalid, match=f"{number} would become"):
            as_input(column, target)


def test_a_double_may_be_rounded_but_text_is_no_number() -> None:
    assert as_input(pa.array([float("inf"), float("nan"), 0.1]), F32).to_pylist()[::2] == [float("inf"), 0.10000000149011612]
    with pytest.raises(pa.ArrowInvalid):
        as_input(pa.array(["x"]), F32)
