"""The rows of Alink's .ak files, byte by byte: each type as Java writes it, rows across blocks, and damage."""

from __future__ import annotations

import datetime
import io
import struct
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError
from akrunner.io import ak_rows
from akrunner.io.ak_rows import MAGIC, check_types, encoded, read, schema_text


def body(*fields: bytes, nulls: int = 0) -> bytes:
    row = bytes([nulls]) + b"".join(fields)
    return len(row).to_bytes(3, "big") + row


def rows(data: bytes, schema: pa.Schema) -> list[Any]:
    return [row for batch in read(io.BytesIO(data), schema, "t.ak") for row in batch.to_pylist()]


NOON = datetime.datetime(2026, 1, 1, 12, 0, 0, 250000)
MS = 1767268800250
EARLY = datetime.datetime(1969, 12, 31, 23, 59, 59, 750000)
#: (type, value, its bytes as Java's streams and Kryo's texts have them)
CELLS = [
    (pa.bool_(), True, b"\x01"),
    (pa.int8(), -2, b"\xfe"),
    (pa.int16(), -2, b"\xff\xfe"),
    (pa.int32(), 258, b"\0\0\1\2"),
    (pa.int64(), -(2**63), b"\x80" + bytes(7)),
    (pa.float32(), 0.5, struct.pack(">f", 0.5)),
    (pa.float64(), -0.1, struct.pack(">d", -0.1)),
    (pa.string(), "", b"\x01"),
    (pa.string(), "a\0", b"\x03a\0"),
    (pa.string(), "é", b"\x02\xe9\x01"),
    (pa.string(), "日", b"\x02\xe5\xcb\x01"),
    (pa.string(), "\U0001f600", b"\x03\xbd\xb0\x03\x80\xbc\x03"),
    (pa.string(), "x" * 200, b"\xc9\x01" + b"x" * 200),
    (pa.binary(), b"\xff\0", b"\0\0\0\2\xff\0"),
    (pa.binary(), b"", bytes(4)),
    (pa.timestamp("ns"), NOON, struct.pack(">qi", MS, 250_000_000)),
    (pa.timestamp("ns"), EARLY, struct.pack(">qi", -250, 750_000_000)),
    (pa.date32(), datetime.date(1970, 1, 3), struct.pack(">q", 2 * 86_400_000)),
    (pa.date32(), datetime.date(1969, 12, 31), struct.pack(">q", -86_400_000)),
]


@pytest.mark.parametrize(("kind", "value", "octets"), CELLS, ids=lambda one: str(one) if isinstance(one, pa.DataType) else "")
def test_a_cell_of_each_type(kind: pa.DataType, value: Any, octets: bytes) -> None:
    schema = pa.schema([("x", kind)])
    data = body(octets) + body(nulls=0x80) + body(octets)
    assert encoded(pa.record_batch([pa.array([value, None, value], kind)], schema=schema)) == data
    found = list(read(io.BytesIO(MAGIC + data), schema, "t.ak"))
    assert pa.Table.from_batches(found)["x"].combine_chunks().equals(pa.array([value, None, value], kind))


@pytest.mark.parametrize(
    ("column", "octets"),
    [
        (pa.array([2**31], pa.uint32()), struct.pack(">q", 2**31)),
        (pa.array([255], pa.uint8()), b"\0\xff"),
        (pa.array(["é"], pa.large_string()), b"\x02\xe9\x01"),
        (pa.array(["é"]).dictionary_encode(), b"\x02\xe9\x01"),
        (pa.array([b"\xff"], pa.large_binary()), b"\0\0\0\1\xff"),
        (pa.array([NOON], pa.timestamp("us")), struct.pack(">qi", MS, 250_000_000)),
        (pa.array([5], pa.timestamp("s")), struct.pack(">qi", 5000, 0)),
    ],
    ids=lambda one: str(one.type) if isinstance(one, pa.Array) else "",
)
def test_types_that_alink_has_under_another_name(column: pa.Array, octets: bytes) -> None:
    assert encoded(pa.record_batch([column], ["x"])) == body(octets)


def test_nulls_of_many_columns_have_more_than_one_byte() -> None:
    names = [f"c{number}" for number in range(9)]
    batch = pa.record_batch([pa.array([number if number % 8 else None], pa.int8()) for number in range(9)], names)
    data = encoded(batch)
    assert data == (9).to_bytes(3, "big") + b"\x80\x80" + bytes(range(1, 8))
    assert rows(MAGIC + data, batch.schema) == batch.to_pylist()


def test_no_rows_and_no_bytes() -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string()), ("b", pa.binary())])
    assert encoded(pa.record_batch([[], [], []], schema=schema)) == b""
    assert rows(MAGIC, schema) == []


@pytest.mark.parametrize("block", [1, 5, 64, 1 << 18])
def test_rows_that_lie_across_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ak_rows, "_BLOCK", block)
    batch = pa.record_batch({"i": list(range(50)), "s": [None if n % 5 == 0 else "é" * (n % 40) for n in range(50)]})
    assert rows(b"FLK" + encoded(batch), batch.schema) == batch.to_pylist()


def test_a_length_of_seven_bytes_is_read_wherever_it_stands() -> None:
    schema = pa.schema([("x", pa.int8())])
    long = b"\xff\xff\xff" + (2).to_bytes(4, "big") + b"\0\5"
    assert rows(MAGIC + long + body(b"\6") + long, schema) == [{"x": 5}, {"x": 6}, {"x": 5}]


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (pa.int64(), b"AL", "its data does not begin with ALK: it is no .ak file"),
        (pa.int64(), b"", "does not begin with ALK"),
        (pa.int64(), MAGIC + body(bytes(8)) + b"\0\0", "is cut short, in row 1"),
        (pa.int64(), MAGIC + body(bytes(8)) + body(bytes(8))[:-1], "is cut short, in row 1"),
        (pa.int64(), MAGIC + b"\xff\xff\xff\x7f\0\0\0", "row 0 is said to have 2130706432 bytes; it is damaged"),
        (pa.int64(), MAGIC + b"\0\0\0" * 3, "rows 0 to 2 are damaged: a row is shorter than the nulls of its columns"),
        (pa.int64(), MAGIC + body(bytes(7)), "rows 0 to 0 are damaged: column 'x' goes beyond the end of its row"),
        (pa.int64(), MAGIC + body(bytes(9)), "damaged: a row is longer than its columns"),
        (pa.int64(), MAGIC + body(b"\0", nulls=0x80) + body(bytes(8)), "damaged: a row is longer than its columns"),
        (pa.binary(), MAGIC + body(b"\0\0\0\3ab"), "damaged: bytes go beyond the end of their row"),
        (pa.binary(), MAGIC + body(b"\xff\xff\xff\xffab"), "damaged: bytes go beyond the end of their row"),
        (pa.string(), MAGIC + body(b"\x03a") + body(b"\x02b"), "damaged: a text goes beyond the end of its row"),
        (pa.string(), MAGIC + body(b"\x02\x80") + body(b"\x02b"), "damaged: a text goes beyond the end of its row"),
        (pa.string(), MAGIC + body(b"\x80" * 6), "damaged: a text has no length"),
        (pa.string(), MAGIC + body(b"\x02\x80\x80\x80\x01"), "damaged: a text holds what is no letter"),
        (pa.string(), MAGIC + body(b"\x02\xbd\xb0\x03"), "damaged: .*utf-16"),
        (pa.timestamp("ns"), MAGIC + body(struct.pack(">qi", 2**62, 0)), "damaged: a time is before 1677 or after 2262"),
    ],
)
def test_damage_is_told_with_its_rows(kind: pa.DataType, data: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=f"^t.ak: .*{words}"):
        rows(data, pa.schema([("x", kind)]))


def test_a_null_of_javas_is_one_also_where_no_bit_says_so() -> None:
    assert rows(MAGIC + body(b"\x00") + body(b"\x02a"), pa.schema([("x", pa.string())])) == [{"x": None}, {"x": "a"}]


def test_the_midnight_of_any_time_zone_is_the_same_day() -> None:
    hours = [struct.pack(">q", 2 * 86_400_000 + hour * 3_600_000) for hour in (-11, 0, 11)]
    found = rows(MAGIC + b"".join(map(body, hours)), pa.schema([("x", pa.date32())]))
    assert [row["x"] for row in found] == [datetime.date(1970, 1, 3)] * 3


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.list_(pa.int64()), r"column 'x' is list<.*setTargetType\('STRING'\)"),
        (pa.fixed_shape_tensor(pa.int64(), (2,)), r"column 'x' is .*setTargetType\('STRING'\)"),
        (pa.struct([("a", pa.int64())]), "column 'x' is struct<.*cast it first"),
        (pa.uint64(), "column 'x' is uint64, .*cast it first"),
        (pa.timestamp("us", "UTC"), "column 'x' is timestamp.us, tz=UTC., .*cast it first"),
        (pa.duration("s"), "column 'x' is duration"),
    ],
    ids=lambda one: str(one) if isinstance(one, pa.DataType) else "",
)
def test_a_type_that_alink_does_not_write_is_refused(kind: pa.DataType, words: str) -> None:
    with pytest.raises(SinkError, match=f"^t.ak: {words}"):
        check_types(pa.schema([("ok", pa.int64()), ("x", kind)]), "t.ak")


def test_the_columns_in_alinks_words() -> None:
    schema = pa.schema(
        [
            ("a", pa.int64()), ("b", pa.uint8()), ("c", pa.large_string()), ("d", pa.dictionary(pa.int8(), pa.string())),
            ("e", pa.large_binary()), ("f", pa.timestamp("s")), ("g", pa.date32()), ("h", pa.bool_()), ("i", pa.float16()),
        ]
    )  # fmt: skip
    check_types(schema, "t.ak")
    assert schema_text(schema) == (
        "a BIGINT, b SMALLINT, c STRING, d STRING, e VARBINARY, f TIMESTAMP, g DATE, h BOOLEAN, i FLOAT"
    )


@pytest.mark.parametrize("values", [["a"], [None], ["a", "b"], [""], ["abc"]])
def test_a_file_whose_last_row_is_shorter_than_the_longest_header_is_read(values: list[str | None]) -> None:
    schema = pa.schema({"t": pa.string()})
    data = encoded(pa.record_batch([pa.array(values, pa.string())], schema=schema))
    assert [row["t"] for row in rows(MAGIC + data, schema)] == values
    with pytest.raises(SourceError, match=f"cut short, in row {len(values) - 1}"):
        rows(MAGIC + data[:-1], schema)
