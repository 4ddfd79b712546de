"""Numbers, booleans, bytes and texts keep their values on the way between Arrow and numpy."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner import arrays

NUMBERS = [
    pa.array([-128, 0, 127], pa.int8()),
    pa.array([0, 1, 65535], pa.uint16()),
    pa.array([-(2**63), 0, 2**63 - 1], pa.int64()),
    pa.array([0, 1, 2**64 - 1], pa.uint64()),
    pa.array([0.5, -1.5, 3.0], pa.float32()),
    pa.array([1e300, -0.0, 2.5], pa.float64()),
]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("int8", pa.int8()),
        ("uint64", pa.uint64()),
        ("float16", pa.float16()),
        ("float64", pa.float64()),
        ("bool", pa.bool_()),
        ("bytes", None),
        ("datetime64[us]", None),
        ("", None),
    ],
)
def test_a_name_of_numpys_for_a_number_or_boolean_has_a_type_in_arrow(name: str, kind: pa.DataType | None) -> None:
    assert arrays.arrow_type(name) == kind


@pytest.mark.parametrize("array", NUMBERS, ids=lambda array: str(array.type))
def test_numbers_keep_their_values_and_their_type_wherever_an_array_begins(array: pa.Array) -> None:
    assert arrays.numbers_of(array).tolist() == array.to_pylist()
    assert str(arrays.numbers_of(array).dtype) == {"float": "float32", "double": "float64"}.get(
        str(array.type), str(array.type)
    )
    assert arrays.numbers_of(array.slice(1)).tolist() == array.to_pylist()[1:]
    assert arrays.numbers_of(array.slice(1, 1)).tolist() == array.to_pylist()[1:2]
    empty = arrays.numbers_of(array.slice(3))
    assert empty.tolist() == [] and empty.dtype == arrays.numbers_of(array).dtype


def test_a_null_becomes_zero_and_no_other_value_changes() -> None:
    array = pa.array([None, 5, None, -7, 9, None], pa.int32())
    assert arrays.known_numbers_of(array).tolist() == [0, 5, 0, -7, 9, 0]
    assert arrays.known_numbers_of(array.slice(1, 3)).tolist() == [5, 0, -7]
    assert arrays.known_numbers_of(array).dtype == np.int32
    assert arrays.known_numbers_of(pa.array([None, 0.5], pa.float32())).dtype == np.float32
    assert arrays.known_numbers_of(pa.array([], pa.int8())).dtype == np.int8


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 64, 65])
@pytest.mark.parametrize("start", [0, 1, 3, 8, 9])
def test_booleans_come_from_the_right_bits(count: int, start: int) -> None:
    bits = np.random.default_rng(7).integers(0, 2, start + count).astype(bool)
    array = pa.array(bits.tolist(), pa.bool_()).slice(start)
    truths = arrays.truths_of(array)
    assert truths.dtype == np.bool_ and truths.tolist() == bits[start:].tolist()


@pytest.mark.parametrize(
    ("values", "kind", "integers"),
    [
        ([True, None, False], pa.bool_(), [1, None, 0]),
        ([datetime.date(1970, 1, 2), None, datetime.date(1969, 12, 31)], pa.date32(), [1, None, -1]),
        ([datetime.date(1970, 1, 2)], pa.date64(), [86_400_000]),
        ([datetime.time(0, 0, 1)], pa.time32("ms"), [1000]),
        ([datetime.time(0, 0, 1)], pa.time64("us"), [1_000_000]),
        ([datetime.datetime(1970, 1, 1, 0, 0, 2)], pa.timestamp("s"), [2]),
        ([datetime.timedelta(seconds=-1)], pa.duration("ns"), [-1_000_000_000]),
        ([Decimal(2**63 - 1), Decimal(-(2**63)), None], pa.decimal128(38, 0), [2**63 - 1, -(2**63), None]),
        ([Decimal(12)], pa.decimal256(76, 0), [12]),
        ([], pa.date32(), []),
    ],
)
def test_integers_stand_for_times_booleans_and_decimals(values: list[Any], kind: pa.DataType, integers: list[Any]) -> None:
    found = arrays.integers_of(pa.array(values, kind))
    assert found.type == pa.int64() and found.to_pylist() == integers


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="this Arrow has no narrow decimals")
def test_narrow_decimals_become_integers_too() -> None:
    for kind, most in ((pa.decimal32(9, 0), 10**9 - 1), (pa.decimal64(18, 0), 10**18 - 1)):
        assert arrays.integers_of(pa.array([Decimal(most), Decimal(-most), None], kind)).to_pylist() == [most, -most, None]


def test_a_decimal_that_no_integer_holds_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid):
        arrays.integers_of(pa.array([Decimal(2**63)], pa.decimal128(38, 0)))


@pytest.mark.parametrize(
    "kind",
    [
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.time64("ns"),
        pa.timestamp("ms"),
        pa.timestamp("ns", "UTC"),
        pa.duration("us"),
    ],
    ids=str,
)
def test_times_are_the_same_after_a_way_through_integers(kind: pa.DataType) -> None:
    day = 86_400_000
    array = pa.array([0, day if kind == pa.date64() else 5, None], pa.int32() if kind.bit_width == 32 else pa.int64()).cast(
        kind
    )
    assert arrays.counted(arrays.integers_of(array), kind).equals(array)


def test_a_number_of_days_that_a_date_cannot_hold_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid):
        arrays.counted(pa.array([2**31]), pa.date32())


@pytest.mark.parametrize("numbers", [pa.array([3, None, -4], pa.int8()), pa.array([3.0, None, -4.0], pa.float64())])
@pytest.mark.parametrize("kind", [pa.decimal128(5, 0), pa.decimal256(50, 0)], ids=str)
def test_whole_numbers_become_decimals(numbers: pa.Array, kind: pa.DataType) -> None:
    found = arrays.as_decimals(numbers, kind)
    assert found.type == kind and found.to_pylist() == [Decimal(3), None, Decimal(-4)]


def test_the_largest_integers_fit_into_decimals() -> None:
    for value, kind in ((2**64 - 1, pa.uint64()), (-(2**63), pa.int64())):
        assert arrays.as_decimals(pa.array([value], kind), pa.decimal128(38, 0)).to_pylist() == [Decimal(value)]


@pytest.mark.parametrize("numbers", [pa.array([0.5]), pa.array([float("nan")]), pa.array([1e300]), pa.array([100])])
def test_a_fraction_is_not_rounded_and_a_number_too_large_is_not_cut(numbers: pa.Array) -> None:
    with pytest.raises(pa.ArrowInvalid):
        arrays.as_decimals(numbers, pa.decimal128(2, 0))


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False, True] * 5),
        np.array([1, -2, 3], np.int16),
        np.array([0.5, 1.5], np.float32),
        np.arange(10, dtype=np.int64)[::3],
        np.array([], np.bool_),
        np.array([], np.float64),
    ],
    ids=lambda values: f"{values.dtype}-{len(values)}",
)
def test_an_array_of_numpy_keeps_its_values_and_its_type_in_arrow(values: Any) -> None:
    found = arrays.array_of(values)
    found.validate(full=True)
    assert found.to_pylist() == values.tolist() and found.type == arrays.arrow_type(str(values.dtype)) and found.null_count == 0


@pytest.mark.parametrize("values", [np.arange(9), np.arange(9) % 2 == 0], ids=["numbers", "booleans"])
def test_what_is_not_valid_is_a_null(values: Any) -> None:
    valid = np.array([False, True, True, True, True, True, True, False, False])
    expected = [None, *values[1:7].tolist(), None, None]
    assert arrays.array_of(values, valid).to_pylist() == expected and arrays.array_of(values, valid).null_count == 3


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("values", [[], [b""], [b"a", b"", memoryview(b"\x00\xff"), b"bc"]], ids=len)
def test_bytes_are_cut_where_each_value_ends(values: list[Any], kind: pa.DataType) -> None:
    found = arrays.octets_of(values, kind)
    found.validate(full=True)
    assert found.type == kind and found.to_pylist() == [bytes(value) for value in values]


def test_texts_of_any_language_are_texts_in_arrow() -> None:
    values = ["", "a", "gr\u00fcn", "\u4e2d\u6587", "\U0001f600", "x\x00y"]
    assert arrays.texts_of(values).type == pa.string() and arrays.texts_of(values).to_pylist() == values
    assert arrays.octets_of([b"gr\xc3\xbcn"], pa.large_string()).to_pylist() == ["gr\u00fcn"]


class _Long(bytes):
    """Bytes that say that they are many, as nobody wants to fill 2 GB of memory in a test."""

    def __len__(self) -> int:
        return 2**30


def test_more_bytes_than_32_bits_can_count_are_an_error() -> None:
    with pytest.raises(OverflowError, match="^2,147,483,648 bytes in one array of binary$"):
        arrays.octets_of([_Long(), _Long()], pa.binary())


def test_a_dictionary_is_decoded_and_another_column_is_the_same_object() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 2], pa.int8()), pa.array(["a", "b", None]))
    assert arrays.decoded(column).to_pylist() == ["b", None, "a", None] and arrays.decoded(column).type == pa.string()
    plain = pa.array([1, None])
    assert arrays.decoded(plain) is plain


def _with_a_null() -> pa.DictionaryArray:
    """A dictionary column whose second row points at a null, which Arrow does not count."""
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int16()), pa.array(["a", None, "b"]), ordered=True)


def test_nulls_of_a_dictionary_are_counted_once_they_are_shown() -> None:
    column = _with_a_null()
    batch = pa.record_batch({"word": column, "id": pa.array([1, 2, 3, 4])})
    assert column.null_count == 1, "of two, or this test shows nothing"
    shown = arrays.shown_nulls(batch)
    assert shown.schema == batch.schema and shown.to_pydict() == batch.to_pydict()
    assert shown["word"].null_count == 2 and shown["word"].dictionary.null_count == 0 and shown["word"].type.ordered


@pytest.mark.parametrize("make", [pa.list_, pa.large_list, lambda kind: pa.list_(kind, 2)], ids=["list", "large", "fixed"])
def test_nulls_of_dictionaries_in_lists_are_shown_too(make: Any) -> None:
    inner = _with_a_null()
    kind = make(inner.type)
    if pa.types.is_fixed_size_list(kind):
        column = pa.FixedSizeListArray.from_arrays(inner, 2)
    else:
        of = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
        column = of.from_arrays([0, 2, 4], inner)
    shown = arrays.shown_nulls(pa.record_batch([column], names=["words"]))["words"]
    assert shown.type == column.type and shown.to_pylist() == [["a", None], ["b", None]]
    assert shown.values.null_count == 2 and shown.values.dictionary.null_count == 0


def test_a_batch_without_such_nulls_stays_as_it_is() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.array(["a", "b"]))
    batch = pa.record_batch({"word": words, "id": pa.array([1, None])})
    shown = arrays.shown_nulls(batch)
    assert shown is batch
    assert shown["word"].indices.equals(words.indices) and shown["word"].dictionary.equals(words.dictionary)


@pytest.mark.parametrize("wrong", [[0], [5], [9], [3, 4, 9]])
def test_the_first_wrong_value_is_found_by_halving(wrong: list[int]) -> None:
    tries = []

    def tried(start: int, stop: int) -> None:
        tries.append((start, stop))
        if any(start <= one < stop for one in wrong):
            raise KeyError

    assert arrays.first_wrong(10, tried, KeyError) == wrong[0] and len(tries) <= 4
