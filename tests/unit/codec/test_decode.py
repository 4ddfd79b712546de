"""Examples as a batch of a schema: what is read around gaps and nulls, and each way in which a row does not fit."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.codec import decode
from akrunner.codec.decode import decode_examples, decode_ranges
from akrunner.codec.encode import encode_examples
from akrunner.codec.protobuf import varint
from akrunner.errors import DataError
from akrunner.schema import Schema


def field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def example(name: str, kind: int, body: bytes) -> bytes:
    """An Example of one feature whose list has this body."""
    return field(1, field(1, field(1, name.encode()) + field(2, field(kind, body))))


def decoded(schema: Schema | str, blobs: list[bytes], first_row: int = 0, **options: Any) -> pa.RecordBatch:
    schema = Schema.parse(schema) if isinstance(schema, str) else schema
    return decode_examples(schema, b"".join(blobs), np.array([len(one) for one in blobs], np.int64), first_row, **options)


def rows(column: pa.Array) -> list[bytes]:
    return encode_examples(pa.record_batch({"x": column})).to_pylist()  # type: ignore[no-any-return]


def schema_of(kind: pa.DataType, nullable: bool = True) -> Schema:
    return Schema.from_arrow(pa.schema([pa.field("x", kind, nullable)]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([5, None, -7]),
        pa.array([0.5, None, 1.5], pa.float32()),
        pa.array(["a", None, "é" * 90]),
        pa.array([["a"], None, ["b", "c"]]),
        pa.array([[1, 300], None, [2]]),
    ],
    ids=lambda value: str(value.type),
)
def test_records_may_lie_anywhere_and_in_any_order(column: pa.Array) -> None:
    blobs = rows(column)
    flat = np.frombuffer(b"\xff\xff\xff".join(reversed(blobs)) + b"\xff", np.uint8)
    ends = np.cumsum([len(one) + 3 for one in reversed(blobs)]) - 3
    starts = ends - [len(one) for one in reversed(blobs)]
    found = decode_ranges(schema_of(column.type), flat, starts[::-1].copy(), ends[::-1].copy())
    assert found.column(0).to_pylist() == column.to_pylist()


@pytest.mark.parametrize("columns", ["x bigint", "x string", "x array<float>", "x double, y array<string>"])
def test_no_rows_have_the_columns(columns: str) -> None:
    found = decoded(columns, [])
    assert found.num_rows == 0 and found.schema == Schema.parse(columns).arrow


def test_rows_of_two_layouts_keep_their_order() -> None:
    blobs = [example("x", 3, field(1, b"\x05" if n % 3 else b"\x86\x00")) for n in range(50)]
    assert decoded("x bigint", blobs).column(0).to_pylist() == [5 if n % 3 else 6 for n in range(50)]


def test_an_empty_list_is_a_null_where_one_value_is_wanted_and_a_list_where_many_are() -> None:
    for kind, body in ((3, b""), (3, field(1, b"")), (2, b""), (1, b"")):
        word = {1: "string", 2: "float", 3: "bigint"}[kind]
        blobs = [example("x", kind, body)]
        assert decoded(f"x {word}", blobs).column(0).to_pylist() == [None]
        assert decoded(f"x array<{word}>", blobs).column(0).to_pylist() == [[]]
        with pytest.raises(DataError, match="row 7: column 'x' is missing, but the schema says NOT NULL"):
            decoded(f"x {word} not null", blobs, 7)


def test_a_feature_that_no_schema_names_is_refused_or_ignored() -> None:
    blobs = rows(pa.array([1, 2]))
    with pytest.raises(
        DataError, match=r"row 3 has a feature 'x', which is not in the output schema \(xx, y\).*'xx'"
    ) as caught:
        decoded("xx bigint, y bigint", blobs, 3)
    assert (caught.value.row, caught.value.column) == (3, "x")
    assert decoded("xx bigint", blobs, strict=False).column(0).to_pylist() == [None, None]


def test_of_several_unknown_features_that_of_the_first_row_is_named() -> None:
    blobs = [example(name, 3, field(1, b"\x05")) for name in ("x", "x", "b", "a")]
    with pytest.raises(DataError, match="row 2 has a feature 'b'"):
        decoded("x bigint", blobs)


def test_a_row_that_is_no_example_is_counted_from_the_first_row() -> None:
    with pytest.raises(DataError, match="^row 12: is not a tf.train.Example") as caught:
        decoded("x bigint", [*rows(pa.array([1, 2])), b"\x0a\x05ab"], 10)
    assert caught.value.row == 12


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize(
    ("kind", "blob", "words"),
    [
        (pa.int8(), example("x", 3, field(1, b"\x80\x01")), "is 128, which does not fit int8"),
        (pa.uint32(), example("x", 3, field(1, b"\xff" * 9 + b"\x01")), "is -1, which does not fit uint32"),
        (pa.bool_(), example("x", 3, field(1, b"\x02")), "is 2, which does not fit bool"),
        (pa.date32(), example("x", 3, field(1, b"\x80\x80\x80\x80\x08")), "is 2147483648, which does not fit date32"),
        (pa.decimal128(2, 0), example("x", 3, field(1, b"\x64")), r"is 100, which does not fit decimal128\(2, 0\)"),
        (pa.list_(pa.int8()), example("x", 3, field(1, b"\x01\x80\x01")), "is 128, which does not fit int8"),
        (pa.int64(), example("x", 3, field(1, b"\x05\x06")), "has several values, but the schema's int64 is one"),
        (pa.float32(), example("x", 2, field(1, bytes(8))), "has several values, but the schema's float is one"),
        (pa.string(), example("x", 1, field(1, b"a") + field(1, b"b")), "has several values, but the schema's string is one"),
        (pa.int64(), example("x", 1, field(1, b"a")), "has a bytes_list, but the schema's int64 wants a int64_list"),
        (pa.list_(pa.int64()), example("x", 2, field(1, bytes(4))), "has a float_list, but .* wants a int64_list"),
        (pa.list_(pa.int64(), 2), example("x", 3, field(1, b"\x05")), "has 1 values; the schema's .* has 2 a row"),
        (pa.list_(pa.float32()), example("x", 2, field(1, bytes(5))), "has a float_list that is cut short"),
        (pa.list_(pa.int64()), example("x", 3, field(1, b"\x05\x85")), "has a int64_list that is cut short"),
        (pa.binary(3), example("x", 1, field(1, b"ab")), r"has the length 2, which does not fit fixed_size_binary\[3\]"),
        (pa.string(), example("x", 1, field(1, b"\xff")), "is not UTF-8 .*; declare it as varbinary"),
        (
            pa.list_(pa.string()),
            example("x", 1, field(1, b"a") + field(1, b"\xff")),
            "is not UTF-8 .*; declare it as varbinary",
        ),
        (pa.null(), example("x", 2, field(1, bytes(4))), "has a value; a column of type null has none"),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_a_value_that_does_not_fit_is_named_with_its_row(kind: pa.DataType, blob: bytes, words: str, count: int) -> None:
    with pytest.raises(DataError, match=f"^row 1{count:02}: column 'x' {words}") as caught:
        decoded(schema_of(kind), [b""] * count + [blob] * count, 100)
    assert (caught.value.row, caught.value.column) == (100 + count, "x")


@pytest.mark.parametrize(
    ("kind", "number", "want"),
    [
        (pa.decimal128(2, 0), -99, decimal.Decimal(-99)),
        (pa.decimal256(60, 0), 2**63 - 1, decimal.Decimal(2**63 - 1)),
        (pa.uint64(), 2**63 - 1, 2**63 - 1),
        (pa.uint8(), 255, 255),
        (pa.bool_(), 1, True),
    ],
    ids=str,
)
def test_the_last_value_that_fits(kind: pa.DataType, number: int, want: Any) -> None:
    found = decoded(schema_of(kind), rows(pa.array([number])))
    assert found.column(0).type == kind and found.column(0).to_pylist() == [want]


def test_a_column_of_nulls_takes_rows_without_it() -> None:
    found = decoded(schema_of(pa.null()), [b"", b""])
    assert found.column(0).type == pa.null() and found.num_rows == 2


@pytest.mark.parametrize("count", [30, decode._FEW, decode._FEW + 1, 3000])
def test_numbers_of_all_lengths_in_few_rows_and_in_many(count: int) -> None:
    """Few are decoded all at once, many octet by octet; both name a row that holds two numbers, or half of one."""
    given = [(-1) ** i * (1 << i % 64) - i for i in range(count)]
    numbers = [min(max(one, -(2**63)), 2**63 - 1) for one in given]

    def blob(*values: int) -> bytes:
        return example("a", 3, field(1, b"".join(varint(one % 2**64) for one in values)))

    blobs = [blob(one) for one in numbers]
    assert decoded("a bigint", blobs)["a"].to_pylist() == numbers
    for wrong in (blob(7, 7), example("a", 3, field(1, b"\x87"))):
        with pytest.raises(DataError, match=rf"row {count - 4}\b"):
            decoded("a bigint", [*blobs[:-4], wrong, *blobs[-3:]])
