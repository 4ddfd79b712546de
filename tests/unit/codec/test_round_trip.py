"""Value by value: every type at its extremes, to the worker and back, as Examples and as columns. What would change is refused with its row."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.errors import DataError, SchemaError
from akrunner.schema import Schema, plain
from akrunner.wire import frames
from akrunner.worker import chunks
from akrunner.worker import column_encoding as packing

I32, I64 = 2**31, 2**63
NAN = np.array([0x7FF8000000000123, 0xFFF0000000000001], np.uint64).view(np.float64)
NAN32 = np.array([0x7FC00123, 0xFFC00001], np.uint32).view(np.float32)


def array(values: Any, data_type: pa.DataType) -> pa.Array:
    """The values; integers of a temporal type by their bits, so that Python's own dates set no limit."""
    if pa.types.is_temporal(data_type):
        width = pa.int32() if data_type.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(data_type)
    return pa.array(values, data_type)


def as_columns(column: pa.Array) -> Any:
    """What a worker has of it."""
    batch = pa.record_batch([column], ["x"])
    payload = b"".join(bytes(part) for part in codec.encode_columns(batch))
    rows, columns = chunks.unpack(payload, Schema.from_arrow(batch.schema).describe(), {"x": 0})
    assert rows == len(column)
    return columns["x"]


def as_examples(column: pa.Array, back: str) -> list[Any]:
    """What comes back when its Examples are read by an output schema."""
    examples = codec.encode_examples(pa.record_batch([column], ["x"])).to_pylist()
    lengths = np.array([len(one) for one in examples], np.int64)
    decoded = codec.decode_examples(Schema.parse(f"x {back}"), b"".join(examples), lengths)
    result: list[Any] = decoded.column(0).to_pylist()
    return result


def written(column: Any, back: str) -> pa.Array:
    """What the host has of what `write_batch` was given."""
    schema = Schema.parse(f"x {back}")
    rows, packed = packing.packed({"x": column}, ["x"], {one["name"]: one["type"] for one in schema.describe()})
    parts = [b"".join(bytes(part) for part in payload) for _, payload in packing.pieces(rows, packed, 1 << 20, 8 << 20)]
    counts = [count for count, _ in packing.pieces(rows, packed, 1 << 20, 8 << 20)]
    batches = [codec.decode_frame(schema, frames.Frame(frames.COLUMNS, n, bytearray(part))) for n, part in zip(counts, parts)]
    return pa.Table.from_batches(batches, schema.arrow).combine_chunks().column(0).combine_chunks()


WHOLE = [
    (pa.int8(), [-128, 0, 127], "tinyint"),
    (pa.int16(), [-(2**15), 2**15 - 1], "smallint"),
    (pa.int32(), [-I32, I32 - 1], "int"),
    (pa.int64(), [-I64, -1, 0, I64 - 1], "bigint"),
    (pa.uint8(), [0, 255], "smallint"),
    (pa.uint16(), [0, 2**16 - 1], "int"),
    (pa.uint32(), [0, 2**32 - 1], "bigint"),
    (pa.uint64(), [0, I64 - 1], "bigint"),
    (pa.bool_(), [True, False], "boolean"),
    (pa.date32(), [-I32, -1, 0, I32 - 1], "bigint"),
    (pa.date64(), [-86400000, 0, 86400000 * 10**6], "bigint"),
    (pa.time32("s"), [0, 86399], "bigint"),
    (pa.time32("ms"), [0, 86399999], "bigint"),
    (pa.time64("us"), [0, 86399999999], "bigint"),
    (pa.time64("ns"), [0, 86399999999999], "bigint"),
    (pa.duration("s"), [-I64 + 1, I64 - 1], "bigint"),
    *[(pa.timestamp(unit, zone), [-I64, -1, 0, I64 - 1], "bigint") for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Asia/Kolkata")],
]  # fmt: skip


@pytest.mark.parametrize(("data_type", "values", "back"), WHOLE, ids=lambda v: str(v) if isinstance(v, pa.DataType) else "")
@pytest.mark.parametrize("null", [False, True])
def test_whole_numbers(data_type: pa.DataType, values: list[Any], back: str, null: bool) -> None:
    column = array([*values, None] if null else values, data_type)
    assert as_columns(column).tolist() == [*values, 0] if null else values
    assert as_examples(column, back) == ([*values, None] if null else values)
    assert as_examples(pa.array([[], []], pa.list_(data_type)), f"array<{back}>") == [[], []]
    lists = pa.ListArray.from_arrays([0, len(values), len(values)], array(values, data_type))
    assert [row.tolist() for row in as_columns(lists).rows()] == [values, []]
    assert as_examples(lists, f"array<{back}>") == [values, []]


@pytest.mark.parametrize("back", ["boolean", "tinyint", "smallint", "int", "bigint", "timestamp(0)", "timestamp(9)", "date"])
def test_written_whole_numbers(back: str) -> None:
    (field,) = Schema.parse(f"x {back}")
    if back == "boolean":
        low, high, bits = 0, 1, 8
    else:
        bits = field.type.bit_width
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for values in (
        [low, high],
        np.array([low, high], np.int64),
        np.ma.masked_array([low, high, 5], [0, 0, 1]),
        [low, None, high],
    ):
        got = written(values, back)
        kept = got.drop_null().cast(pa.int8()) if back == "boolean" else got.drop_null().view(f"int{bits}")
        assert kept.to_pylist() == [low, high] and got.null_count == (len(values) - 2)
    if 8 < bits < 64 or back == "tinyint":
        with pytest.raises(DataError, match=r"row 1: column 'x' does not fit"):
            written([low, high + 1], back)


FLOATS = [0.0, -0.0, float("inf"), float("-inf"), 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 0.1]


def test_doubles_to_the_last_bit() -> None:
    values = np.concatenate([FLOATS, NAN])
    for column in (pa.array(values), pa.array(values).cast(pa.float64())):
        assert as_columns(column).view(np.uint64).tolist() == values.view(np.uint64).tolist()
    lists = pa.ListArray.from_arrays([0, len(values)], pa.array(values))
    assert as_columns(lists).values.view(np.uint64).tolist() == values.view(np.uint64).tolist()
    got = written(values, "double")
    assert got.to_numpy().view(np.uint64).tolist() == values.view(np.uint64).tolist()
    got = written([values, values[:0]], "array<double>").flatten()
    assert got.to_numpy().view(np.uint64).tolist() == values.view(np.uint64).tolist()


def test_floats_to_the_last_bit() -> None:
    values = np.concatenate([np.array([0.0, -0.0, np.inf, -np.inf, 1e-45, 3.4028235e38], np.float32), NAN32])
    column = pa.array(values)
    assert as_columns(column).view(np.uint32).tolist() == values.view(np.uint32).tolist()
    assert written(values, "float").to_numpy().view(np.uint32).tolist() == values.view(np.uint32).tolist()
    for given, back in (([1.0, 1e300], "float"), ([[1.0], [2.0, -1e39]], "array<float>")):
        with pytest.raises(DataError, match="row 1: column 'x' does not fit float: -?1e.* would become infinite"):
            written(given, back)
    examples = codec.encode_examples(pa.record_batch([column], ["x"])).to_pylist()
    lengths = np.array([len(one) for one in examples], np.int64)
    decoded = codec.decode_examples(Schema.parse("x float"), b"".join(examples), lengths)
    assert decoded.column(0).to_numpy().view(np.uint32).tolist() == values.view(np.uint32).tolist()
    halves = np.array([0, 0x8000, 0x7BFF, 0x7C00, 0x0001, 0x7E01], np.uint16).view(np.float16)
    assert as_columns(pa.array(halves)).view(np.uint16).tolist() == halves.view(np.uint16).tolist()


@pytest.mark.parametrize("value", [1e300, -3.5e38])
def test_a_double_that_no_float_holds(value: float) -> None:
    with pytest.raises(DataError, match=r"row 11, column 'x': .* does not fit a float32"):
        codec.encode_examples(pa.record_batch({"x": [1.0, value]}), first_row=10)
    with pytest.raises(DataError, match=r"row 12, column 'x': .* does not fit a float32"):
        codec.encode_examples(pa.record_batch({"x": [[1.0], [], [2.0, value]]}), first_row=10)
    assert as_columns(pa.array([value])).tolist() == [value]


def test_unsigned_that_no_int64_holds() -> None:
    column = pa.array([1, None, I64, 2**64 - 1], pa.uint64())
    with pytest.raises(DataError, match=r"row 2, column 'x': 9223372036854775808 does not fit a signed 64-bit integer"):
        codec.encode_examples(pa.record_batch([column], ["x"]))
    assert as_columns(column).tolist() == [1, 0, I64, 2**64 - 1]
    with pytest.raises(DataError, match="row 1: column 'x' does not fit int64"):
        written(np.array([1, 2**64 - 1], np.uint64), "bigint")


U64 = 2**64 - 1


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([I64, None], [I64, None]),
        ([U64, None, 1], [U64, None, 1]),
        ([U64, 0], [U64, 0]),
        ([np.uint64(5), 0, np.int64(3)], [5, 0, 3]),
        (np.array([U64, None], object), [U64, None]),
        (np.ma.masked_array(np.array([U64, 5], np.uint64), [0, 1]), [U64, None]),
        (np.ma.masked_array(np.array([U64, 5], object), [0, 1]), [U64, None]),
        ([[U64, 0], [1, I64]], [[U64, 0], [1, I64]]),
        ([[1], [U64], None], [[1], [U64], None]),
        ([np.array([1]), np.array([U64], np.uint64)], [[1], [U64]]),
    ],
)
def test_unsigned_beside_a_null_or_a_smaller_number(values: Any, told: list[Any]) -> None:
    assert written(values, "array<uint64>" if isinstance(told[0], list) else "uint64").to_pylist() == told


@pytest.mark.parametrize("large", [2**53 + 1, np.int64(2**53 + 1), U64])
def test_whole_numbers_that_cannot_stand_together(large: Any) -> None:
    with pytest.raises(ValueError, match=r"column 'x' mixes fractions \(0.5\) with \d+, which a double cannot hold"):
        written([0.5, None, large], "double")
    if large == U64:
        for values in ([-1, large], [[-1], [large]]):
            with pytest.raises(ValueError, match=f"column 'x' has both -1 and {large}, .*give them as text"):
                written(values, "bigint")


def test_whole_numbers_as_doubles() -> None:
    """Those that a double holds."""
    assert written([I64, None, 2**60], "double").to_pylist() == [I64, None, 2**60]
    assert written([I64, -I64], "double").to_pylist() == [I64, -I64]
    assert written(np.array([5, 2**62]), "double").to_pylist() == [5, 2**62]
    with pytest.raises(DataError, match=r"row 1: column 'x' does not fit double: 9007199254740993 would lose digits"):
        written([5, 2**53 + 1], "double")


@pytest.mark.parametrize("data_type", [pa.decimal128(38, 0), pa.decimal256(60, 0), pa.decimal128(5, 0)])
def test_decimals(data_type: pa.DataType) -> None:
    top = 99999 if data_type.precision == 5 else I64 - 1
    values = [decimal.Decimal(-top - (data_type.precision > 5)), None, decimal.Decimal(top)]
    column = pa.array(values, data_type)
    assert as_columns(column).tolist() == [int(values[0] or 0), 0, top]
    assert as_examples(column, "bigint") == [int(values[0] or 0), None, top]
    if data_type.precision > 5:
        large = pa.array([None, decimal.Decimal(I64)], data_type)
        for encode in (codec.encode_examples, codec.encode_columns):
            with pytest.raises(DataError, match=r"row 1, column 'x': .*9223372036854775808.* does not fit a signed"):
                encode(pa.record_batch([large], ["x"]))
            with pytest.raises(DataError, match=r"row 2, column 'x'"):
                lists = pa.ListArray.from_arrays([0, 1, 1, 2], pa.array([decimal.Decimal(1), decimal.Decimal(I64)], data_type))
                encode(pa.record_batch([lists], ["x"]))


TEXTS = ["", "\0", "a\0b", "end\0", "é\U0001f600", "\r\n\t,\"'", None, " " * 100]
BLOBS = [b"", b"\0", b"\xff\xfe\x80", b"end\0", None, bytes(range(256))]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_text(kind: pa.DataType) -> None:
    column = pa.array(TEXTS).cast(kind)
    told = [b"" if text is None else text.encode() for text in TEXTS]
    assert [b"" if value == 0 else value for value in as_columns(column)] == told
    assert as_examples(column, "string") == TEXTS
    assert written(TEXTS, "string").to_pylist() == TEXTS
    assert written([[text for text in TEXTS if text is not None], [], None], "array<string>").to_pylist()[1:] == [[], None]
    lists = pa.array([["", "end\0"], [], None, [""]])
    assert as_examples(lists, "array<string>") == lists.to_pylist()
    assert [[bytes(value) for value in row] for row in as_columns(lists).rows()] == [[b"", b"end\0"], [], [], [b""]]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_bytes(kind: pa.DataType) -> None:
    column = pa.array(BLOBS, kind)
    assert [b"" if value == 0 else value for value in as_columns(column)] == [blob or b"" for blob in BLOBS]
    assert as_examples(column, "varbinary") == BLOBS
    assert written(BLOBS, "varbinary").to_pylist() == BLOBS
    for refuse in (lambda: as_examples(column, "string"), lambda: written(BLOBS, "string")):
        with pytest.raises(DataError, match=r"row 2: column 'x' is not UTF-8.*; declare it as varbinary"):
            refuse()
    with pytest.raises(DataError, match=r"row 1: column 'x' is not UTF-8"):
        written([[b"a", b"b"], [b"c", b"\xff"]], "array<string>")
    fixed = pa.array([b"abc", None, b"\0\0\0"], pa.binary(3))
    assert as_examples(fixed, "varbinary") == [b"abc", None, b"\0\0\0"]


@pytest.mark.slow
def test_ten_megabytes() -> None:
    cells = ["é" * 5_000_000, "x", None]
    assert [value or b"" for value in as_columns(pa.array(cells))] == [(text or "").encode() for text in cells]
    assert as_examples(pa.array(cells), "string") == cells
    assert written(cells, "string").to_pylist() == cells
    numbers = np.arange(1_250_000, dtype=np.int64)
    assert written([numbers, numbers[:1]], "array<bigint>").to_pylist()[1] == [0]
    assert np.array_equal(as_columns(pa.array([numbers, numbers[:1]])).values[:-1], numbers)


@pytest.mark.slow
def test_ten_thousand_columns() -> None:
    batch = pa.record_batch([pa.array([i, None, -i]) for i in range(10_000)], [f"c{i}" for i in range(10_000)])
    schema = Schema.from_arrow(batch.schema)
    examples = codec.encode_examples(batch).to_pylist()
    lengths = np.array([len(one) for one in examples], np.int64)
    assert codec.decode_examples(schema, b"".join(examples), lengths).equals(batch)
    payload = b"".join(bytes(part) for part in codec.encode_columns(batch))
    rows, columns = chunks.unpack(payload, schema.describe(), dict.fromkeys(schema.names, 7))
    assert rows == 3 and all(columns[f"c{i}"].tolist() == [i, 7, -i] for i in range(0, 10_000, 99))
    rows, packed = packing.packed({name: values for name, values in columns.items()}, schema.names)
    ((_, parts),) = packing.pieces(rows, packed, 1 << 20, 8 << 20)
    frame = frames.Frame(frames.COLUMNS, 3, bytearray(b"".join(bytes(part) for part in parts)))
    assert codec.decode_frame(schema, frame).column("c9999").to_pylist() == [9999, 7, -9999]


def test_nothing() -> None:
    for batch in (
        pa.record_batch({"x": pa.array([], pa.string())}),
        pa.record_batch({"x": pa.array([], pa.list_(pa.int64()))}),
    ):
        assert len(codec.encode_examples(batch)) == 0 and len(codec.encode_records(batch)) == 0
        assert len(as_columns(batch.column(0))) == 0
    for nothing in ([], np.array([], object), np.zeros((0, 3))):
        assert written(nothing, "array<float>" if getattr(nothing, "ndim", 1) > 1 else "string").to_pylist() == []
    assert written([None, None], "string").to_pylist() == [None, None]
    assert written([None, None], "date").to_pylist() == [None, None]
    assert written([[], []], "array<string>").to_pylist() == [[], []]
    assert written(np.zeros((2, 0)), "array<float>").to_pylist() == [[], []]
    zero = pa.array([[], None, []], pa.list_(pa.int64(), 0))
    assert as_columns(zero).shape == (3, 0)
    assert as_examples(zero, "array<bigint>") == [[], None, []]


NAMES = [
    "class",
    " ",
    "a b",
    "a.b",
    "a/b",
    "é",
    "A",
    "a",
    "\0",
    "\n",
    '"',
    "`",
    "",
    "x" * 1000,
    "0",
    "-",
    "%s",
    "{}",
    "__weight__x",
]


def test_absurd_names() -> None:
    batch = pa.record_batch([pa.array([i, None]) for i in range(len(NAMES))], NAMES)
    schema = Schema.from_arrow(batch.schema)
    examples = codec.encode_examples(batch).to_pylist()
    decoded = codec.decode_examples(schema, b"".join(examples), np.array([len(one) for one in examples], np.int64))
    assert decoded.equals(batch)
    payload = b"".join(bytes(part) for part in codec.encode_columns(batch))
    _, columns = chunks.unpack(payload, schema.describe(), dict.fromkeys(NAMES, 7))
    assert {name: values.tolist() for name, values in columns.items()} == {name: [i, 7] for i, name in enumerate(NAMES)}
    with pytest.raises(SchemaError, match=r"the column name 'y{60}'\.\.\. has 1001 bytes.*select="):
        Schema.from_arrow(pa.schema([("y" * 1001, pa.int64())]))


CROSS = [
    pa.null(), pa.month_day_nano_interval(), pa.decimal128(9, 2), pa.list_view(pa.int8()), pa.list_(pa.list_(pa.int8())), pa.struct([("a", pa.int8())]),
    pa.map_(pa.string(), pa.int8()), pa.dense_union([pa.field("a", pa.int8())]), pa.dictionary(pa.int8(), pa.int64()),
    pa.dictionary(pa.int8(), pa.binary()), pa.run_end_encoded(pa.int32(), pa.int64()), pa.list_(pa.null()), pa.list_(pa.binary(2)),
    pa.list_(pa.dictionary(pa.int8(), pa.string())), pa.large_list(pa.decimal128(3, 0)), pa.list_(pa.string(), 2), pa.list_(pa.struct([])),
]  # fmt: skip


@pytest.mark.parametrize("data_type", CROSS, ids=str)
def test_a_type_crosses_or_is_refused_by_name(data_type: pa.DataType) -> None:
    """Nulls of it, at least, and before anything starts."""
    try:
        schema = Schema.from_arrow(pa.schema([("my col", data_type)]))
    except SchemaError as e:
        assert "column 'my col' is " in str(e) and "select= (--select): " in str(e)
        assert '"my col"' in str(e) or "flatten it" in str(e) or "one column for each" in str(e)
        return
    batch = pa.record_batch([pa.nulls(3, data_type)], ["my col"])
    assert len(codec.encode_examples(batch)) == 3
    payload = b"".join(bytes(part) for part in codec.encode_columns(batch))
    default: dict[str, Any] = {"my col": b"" if schema.fields[0].dtype == "bytes" else 0}
    assert chunks.unpack(payload, schema.describe(), default)[0] == 3


def test_days_and_moments_come_back() -> None:
    moments: list[datetime.datetime | None] = [
        datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime.datetime(9999, 12, 31),
    ]  # fmt: skip
    column = pa.array(moments, pa.timestamp("us"))
    assert as_examples(column, "timestamp") == moments
    raw = np.ma.masked_array(column.fill_null(moments[0]).cast(pa.int64()).to_numpy(), [0, 0, 1, 0])
    assert written(raw, "timestamp").to_pylist() == moments
    days = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), None, datetime.date(9999, 12, 31)]
    assert as_examples(pa.array(days), "date") == days


def hidden(indices: list[int | None], values: list[str | None], text: pa.DataType) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(values, text))


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("rows", [slice(None), slice(1, None), slice(1, 2), slice(2, 4)])
def test_a_null_among_the_values_of_a_dictionary_is_a_null(text: pa.DataType, rows: slice) -> None:
    column = hidden([1, 0, 1, None, 2], [None, "x", ""], text)[rows]
    plain = pa.array(column.to_pylist(), text)
    assert as_examples(column, "string") == plain.to_pylist()
    assert [value or b"" for value in as_columns(column)] == [(value or "").encode() for value in plain.to_pylist()]
    for encode in (codec.encode_examples, codec.encode_columns):
        one, other = (encode(pa.record_batch([values], ["x"])) for values in (column, plain))
        assert [bytes(part) for part in one] == [bytes(part) for part in other] if isinstance(one, list) else one.equals(other)


@pytest.mark.parametrize("encode", [codec.encode_examples, codec.encode_columns])
def test_a_null_of_a_dictionary_inside_a_list_is_refused(encode: Any) -> None:
    values = hidden([1, 1, 0, 1], [None, "x"], pa.string())
    for lists in (pa.ListArray.from_arrays([0, 1, 3, 4], values), pa.FixedSizeListArray.from_arrays(values, 2)):
        with pytest.raises(DataError, match="row 11, column 'x': a list has a null in it"):
            encode(pa.record_batch([lists], ["x"]), first_row=10)
        encode(pa.record_batch([lists[:1]], ["x"]))


@pytest.mark.parametrize(
    ("values", "back", "told"),
    [
        (np.array([b"a", b"b", b"c"], object), "string", ["a", None, "c"]),
        (np.array(["a", None, None], object), "string", ["a", None, None]),
        (np.array(["a", "b", "c"]), "string", ["a", None, "c"]),
        (np.array([1, 2, 3], object), "bigint", [1, None, 3]),
        (np.array([1.0, np.nan, np.nan]), "double", [1.0, None, np.nan]),
    ],
)
def test_what_a_masked_array_masks_is_null(values: Any, back: str, told: list[Any]) -> None:
    got = written(np.ma.masked_array(values, [0, 1, 0]), back).to_pylist()
    assert str(got) == str(told)
    assert written(np.ma.masked_array(values, True), back).null_count == 3


MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 600000)


@pytest.mark.parametrize(
    ("values", "back", "told"),
    [
        ([MOMENT, None], "timestamp", [MOMENT, None]),
        (np.array([MOMENT, None], object), "timestamp(9)", [MOMENT, None]),
        (np.array([MOMENT, "NaT"], "datetime64[ns]"), "timestamp", [MOMENT, None]),
        (np.array([MOMENT], "datetime64[ms]"), "timestamp(9)", [MOMENT]),
        (np.ma.masked_array(np.array([MOMENT, MOMENT], "datetime64[us]"), [1, 0]), "timestamp(3)", [None, MOMENT]),
        ([np.datetime64(MOMENT), MOMENT], "timestamp", [MOMENT, MOMENT]),
        ([pd.Timestamp(MOMENT), pd.NaT, MOMENT.replace(year=1700)], "timestamp", [MOMENT, None, MOMENT.replace(year=1700)]),
        ([MOMENT.replace(year=1)], "timestamp(3)", [MOMENT.replace(year=1)]),
        ([MOMENT.date(), None], "date", [MOMENT.date(), None]),
        (np.array(["2026-01-02"], "datetime64[D]"), "date", [MOMENT.date()]),
        ([[MOMENT], [], None, [MOMENT, MOMENT]], "array<timestamp>", [[MOMENT], [], None, [MOMENT, MOMENT]]),
        (np.array([[MOMENT]], "datetime64[us]").repeat(2, 1), "array<timestamp>", [[MOMENT, MOMENT]]),
    ],
)
def test_datetimes_where_the_schema_says_times(values: Any, back: str, told: list[Any]) -> None:
    assert written(values, back).to_pylist() == told


@pytest.mark.parametrize(
    ("values", "back", "words"),
    [
        ([MOMENT], "date", r"row 0: 2026-01-02T03:04:05.600000 does not fit date32\[day\]; declare .*astype\('datetime64\[D\]'\)"),
        ([[MOMENT], [None, MOMENT]], "array<timestamp>", "row with a null among its values"),
        ([None, MOMENT.replace(tzinfo=datetime.UTC)], "timestamp", "datetime with a time zone in row 1.*without a zone, or int64"),
        (np.array([MOMENT.replace(year=1)], "datetime64[us]"), "timestamp(9)", "row 0: 0001-.* does not fit timestamp"),
        ([np.datetime64(MOMENT, "ns"), MOMENT.replace(year=1)], "timestamp", "row 1: 0001-.* does not fit nanoseconds"),
        ([MOMENT], "bigint", "holds datetime64.us., and is int64 in the output schema; give .*'x timestamp'"),
        ([MOMENT, 5], "timestamp", r"mixes datetime and int \(row 1: 5\)"),
        (np.array([5], "timedelta64[s]"), "timestamp", "holds timedelta64.s., and is timestamp"),
    ],
)  # fmt: skip
def test_datetimes_that_are_refused(values: Any, back: str, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"write_batch: column 'x'.*{words}"):
        written(values, back)
    with pytest.raises(
        TypeError, match="holds time in row 0, and is time64.us. in the output schema; give int64 in its unit since midnight"
    ):
        packing.packed({"x": [MOMENT.time()]}, ["x"], {"x": "time64[us]"})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, "a", 2], r"mixes int and str \(row 1: 'a'\)"),
        (["a", None, 5], r"mixes str and int \(row 2: 5\)"),
        (["a", b"b"], r"mixes str and bytes \(row 1: b'b'\)"),
        ([[1], ["a", "b"], [2]], r"mixes int and str \(row 1: 'a'\)"),
        ([["a"], [], ["b", 7]], r"mixes str and int \(row 2: 7\)"),
        ([1, [2]], r"mixes int and list \(row 1: \[2\]\)"),
        ([1, 2**64], "row 1: 18446744073709551616 does not fit 64 bits; give it as text"),
        ([{}, None], r"holds dict, which no column can hold \(row 0: \{\}\)"),
        ([MOMENT], "holds datetime64.us., and nobody has said what times it holds: give output_schema= .*'x timestamp'"),
        (np.array([MOMENT], "datetime64[s]"), r"holds datetime64.s., and nobody .*output_schema= \(--output-schema\)"),
        (5, r"a single value \(int\); give a list or an array with one value for each row"),
        (None, r"a single value \(NoneType\)"),
        (np.ma.masked_array(5), "a single value"),
        ("abc", "is one text \\('abc'\\); give a list with one for each row"),
        (b"abc", "is one byte string"),
        ({1, 2}, r"is no list \(set\)"),
        ({"a": 1}, r"is no list \(dict\)"),
    ],
)
def test_values_that_are_no_column(values: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"write_batch: column 'x',? ?(is )?{words}"):
        packing.packed({"x": values}, None)


def _made(data_type: pa.DataType, values: Any) -> pa.Array:
    """What the host has of what `write_batch` was given for a column of this type of Arrow's."""
    schema = Schema.from_arrow(plain(pa.schema([("x", data_type)])))
    rows, packed = packing.packed({"x": values}, ["x"], {one["name"]: one["type"] for one in schema.describe()})
    payload = b"".join(bytes(part) for _, parts in packing.pieces(rows, packed, 1 << 20, 8 << 20) for part in parts)
    batch = codec.decode_columns(schema, payload)
    examples = codec.encode_examples(batch).to_pylist()
    again = codec.decode_examples(schema, b"".join(examples), np.array([len(one) for one in examples], np.int64))
    again.validate(full=True)
    assert again.column(0).to_pylist() == batch.column(0).to_pylist()
    batch.validate(full=True)
    return batch.column(0)


@pytest.mark.parametrize(
    "data_type",
    [
        pa.large_list(pa.int64()),
        pa.list_(pa.float32(), 2),
        pa.list_(pa.decimal128(3, 0), 2),
        pa.large_list(pa.decimal128(5, 0)),
        pa.fixed_shape_tensor(pa.int32(), (2, 1)),
    ],
)
def test_lists_of_every_kind_are_written(data_type: pa.DataType) -> None:
    assert _made(data_type, [[1, 2], None, [3, 4]]).to_pylist() == [[1, 2], None, [3, 4]]
    assert _made(data_type, np.array([[1, 2], [3, 4]])).to_pylist() == [[1, 2], [3, 4]]
    assert _made(data_type, np.array([[1, 2], [3, 4]])).type == data_type


def test_lists_of_texts_as_polars_has_them() -> None:
    assert _made(pa.large_list(pa.large_string()), [["a"], None, []]).to_pylist() == [["a"], None, []]


def test_a_list_of_another_length_is_told() -> None:
    for values in ([[1, 2], [1]], np.ones((2, 3))):
        with pytest.raises(
            DataError, match=r"row \d: column 'x' has \d values; the schema's fixed_size_list<.*>\[2\] has 2 a row"
        ):
            _made(pa.list_(pa.float32(), 2), values)


@pytest.mark.parametrize("data_type", [pa.decimal128(5, 0), pa.decimal256(18, 0), pa.decimal128(19, 0), pa.decimal128(38, 0)])
def test_decimals_are_written(data_type: pa.DataType) -> None:
    assert _made(data_type, [-99999, None, 7]).to_pylist() == [decimal.Decimal(-99999), None, decimal.Decimal(7)]


def test_decimals_that_do_not_fit_are_told() -> None:
    for values in ([1, 100000], [1, 1.5]):
        with pytest.raises(DataError, match=r"row 1: column 'x' does not fit decimal128\(5, 0\)"):
            _made(pa.decimal128(5, 0), values)
    (example,) = codec.encode_examples(pa.record_batch([pa.array([100000])], ["x"])).to_pylist()
    schema = Schema.from_arrow(pa.schema([("x", pa.decimal128(5, 0))]))
    with pytest.raises(DataError, match=r"row 0: column 'x' is 100000, which does not fit decimal128\(5, 0\)"):
        codec.decode_examples(schema, example, np.array([len(example)]))


def test_a_column_of_nulls_alone_takes_no_value() -> None:
    assert _made(pa.null(), [None, None]).to_pylist() == [None, None]
    with pytest.raises(DataError, match="row 1: column 'x' has a value; a column of type null has none"):
        _made(pa.null(), [None, 1.0])


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="pyarrow 18 has it")
def test_short_decimals_cross() -> None:
    assert as_columns(pa.array([decimal.Decimal(3)], pa.decimal32(5, 0))).tolist() == [3]
    assert _made(pa.decimal32(5, 0), [3]).to_pylist() == [3]


class Tensor:
    """What of a tensor the writer asks for."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def numpy(self) -> Any:
        return self._values

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._values


@pytest.mark.parametrize(
    ("values", "back", "told"),
    [
        ([1, pd.NA], "bigint", [1, None]),
        (np.array([pd.NA, 1], object), "bigint", [None, 1]),
        (pd.Series([1, None], dtype="Int64"), "bigint", [1, None]),
        (pd.array([1.5, pd.NA], dtype="Float64"), "double", [1.5, None]),
        (pd.Series([True, None], dtype="boolean"), "boolean", [True, None]),
        (pd.Series(["a", None]), "string", ["a", None]),
        (pd.Series(["a", np.nan], dtype=object), "string", ["a", None]),
        (pd.Categorical(["a", None]), "string", ["a", None]),
        (pd.Series([1.0, np.nan]), "double", [1.0, np.nan]),
        ([np.array(1), np.array(2)], "bigint", [1, 2]),
        ([Tensor(1.5), None], "double", [1.5, None]),
        ([Tensor(b"a"), Tensor(b"b")], "string", ["a", "b"]),
        ([[Tensor(1), Tensor(2)], [np.array(3)]], "array<bigint>", [[1, 2], [3]]),
        ([Tensor([1, 2]), Tensor([3, 4])], "array<bigint>", [[1, 2], [3, 4]]),
    ],
)
def test_nulls_of_pandas_and_values_without_dimensions(values: Any, back: str, told: list[Any]) -> None:
    assert str(written(values, back).to_pylist()) == str(told)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1, pd.NA], [2]], "row with a null among its values"),
        (
            [datetime.timedelta(1)],
            r"holds timedelta in row 0, which no output holds as they are: give numbers: value.total_seconds\(\)",
        ),
        (
            np.array([1], "timedelta64[s]"),
            r"holds timedelta64\[s\], which .*values.astype\('timedelta64\[us\]'\).astype\('int64'\)",
        ),
        ([datetime.time(1)], "holds time in row 0, which .*since midnight"),
        (
            [MOMENT.replace(tzinfo=datetime.UTC)],
            r"with a time zone in row 0.* 'x timestamp' .*without a zone they are value.astimezone\(datetime.timezone.utc\).replace\(tzinfo=None\)",
        ),
    ],
)
def test_what_is_said_of_times_helps(values: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"write_batch: column 'x' .*{words}"):
        packing.packed({"x": values}, None)


def test_limits_of_whole_numbers_are_those_of_the_type() -> None:
    with pytest.raises(DataError, match="row 0: column 'x' does not fit uint64: -1 is not within 0 to 18446744073709551615"):
        _made(pa.uint64(), [-1])


def test_lists_of_no_values_have_none_that_is_masked() -> None:
    empty = np.ma.masked_array(np.zeros((2, 0), np.int8), np.zeros((2, 0), bool))
    assert written(empty, "array<tinyint>").to_pylist() == [[], []]
