"""Avro values of a schema registry to columns and back, many at once."""

from __future__ import annotations

import io
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io.bad_rows import BadRows, Limit
from akrunner.io.streams import avro_values
from akrunner.io.streams.avro_values import AvroColumns, AvroValues, check_avro
from akrunner.io.streams.base import Address, Away
from akrunner.io.streams.values import NotTheirs, without_bad
from tests.servers.registry import Registry

OPTIONS = ("value", "registry", "subject", "schema")


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns: the pauses that are made; they take no time."""
    made: list[float] = []
    monkeypatch.setattr(avro_values.time, "sleep", made.append)
    return made


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "row", "fields": list(fields)}


ID, NOTE = {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}
FIRST, SECOND = record(ID), record(NOTE, ID)


def address(registry: Registry, more: str = "", kind: Any = SourceError) -> Address:
    return Address.of(f"kafka://b/t?value=avro&registry={registry.url}{more}", OPTIONS, kind, "source")


def value(number: int, schema: Any, **row: Any) -> bytes:
    stream = io.BytesIO(struct.pack(">bI", 0, number))
    stream.seek(5)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), row)
    return stream.getvalue()


def where(row: int) -> str:
    return f"message {row}"


def read(columns: AvroColumns, *values: bytes | None) -> list[dict[str, Any]]:
    return columns.columns(columns.schema, values, where).to_pylist()


def test_each_value_is_read_by_its_own_schema_into_the_newest(registry: Registry) -> None:
    first, second = registry.add("t-value", FIRST), registry.add("t-value", SECOND)
    columns = AvroColumns(address(registry))
    assert columns.schema == pa.schema({"note": pa.string(), "id": pa.int64()})
    values = [
        value(second, SECOND, id=1, note="a"),
        value(first, FIRST, id=2),
        None,
        value(second, SECOND, id=3, note=None),
        value(first, FIRST, id=4),
    ]
    assert read(columns, *values) == [
        {"note": "a", "id": 1},
        {"note": None, "id": 2},
        {"note": None, "id": None},
        {"note": None, "id": 3},
        {"note": None, "id": 4},
    ]
    asked = [path for _, path in registry.asked if "/ids/" in path]
    assert len(asked) == 2 and read(columns, values[0]) and len(registry.asked) == 3, "each schema is asked for once"


def test_an_older_version_leaves_out_what_it_does_not_have(registry: Registry) -> None:
    registry.add("t-value", FIRST)
    second = registry.add("t-value", SECOND)
    assert read(AvroColumns(address(registry, "&schema=1")), value(second, SECOND, id=1, note="a")) == [{"id": 1}]


def test_types_widen_and_columns_change_their_names(registry: Registry) -> None:
    narrow = record({"name": "n", "type": "int"}, {"name": "old", "type": "string"})
    wide = record(
        {"name": "n", "type": "double"},
        {"name": "new", "aliases": ["old"], "type": "string"},
        {"name": "b", "type": "bytes", "default": "\u0000x"},
    )
    first = registry.add("t-value", narrow)
    registry.add("t-value", wide)
    assert read(AvroColumns(address(registry)), value(first, narrow, n=7, old="x")) == [{"n": 7.0, "new": "x", "b": b"\0x"}]
    registry.add("t-value", record(*wide["fields"][:2], {"name": "b", "type": "bytes", "default": "\u00ff"}))
    with pytest.raises(SourceError, match="no column 'b', whose default .*is bytes"):
        read(AvroColumns(address(registry)), value(first, narrow, n=7, old="x"))


def test_input_schema_names_columns_and_types(registry: Registry) -> None:
    number = registry.add("t-value", SECOND)
    columns = AvroColumns(address(registry))
    schema = pa.schema({"id": pa.int32()})
    assert columns.columns(schema, [value(number, SECOND, id=1, note="a")], where).schema == schema
    with pytest.raises(SourceError, match="message 1: column 'id' cannot become int32"):
        columns.columns(schema, [value(number, SECOND, id=at, note=None) for at in (1, 1 << 40)], where)
    with pytest.raises(SourceError, match="has no column 'notes', which input_schema= names; did you mean 'note'"):
        columns.columns(pa.schema({"notes": pa.string()}), [None], where)


def test_times_and_decimals(registry: Registry) -> None:
    told = record(
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
    )
    number = registry.add("t-value", told)
    at = datetime(2026, 1, 2, tzinfo=UTC)
    columns = AvroColumns(address(registry))
    assert columns.schema.field("at").type == pa.timestamp("ms", "UTC")
    assert read(columns, value(number, told, at=at, d=Decimal("1.25"))) == [{"at": at, "d": Decimal("1.25")}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, {"type": "long", "logicalType": "timestamp-micros"}),
        ("long", {"type": "long", "logicalType": "timestamp-micros"}),
        (
            {"type": "array", "items": {"type": "int", "logicalType": "date"}},
            {"type": "array", "items": {"type": "int", "logicalType": "time-millis"}},
        ),
    ],
)
def test_a_time_in_another_unit_is_no_silent_wrong_number(before: Any, after: Any, registry: Registry) -> None:
    old = record({"name": "at", "type": before})
    number = registry.add("t-value", old)
    registry.add("t-value", record({"name": "at", "type": after}))
    row = [1] if "array" in str(before) else 1
    with pytest.raises(SourceError, match="message 0 cannot be read as Avro: its column 'at' is .*does not convert"):
        read(AvroColumns(address(registry)), value(number, old, at=row))


@pytest.mark.parametrize(
    "odd",
    [
        lambda good: good[:-1],
        lambda good: good + b"\x00",
        lambda good: good[:5],
        lambda good: good + good[5:],
        lambda good: good[:5] + b"\xff" * 12,
    ],
)
def test_bytes_that_are_no_record_are_named_by_their_place(odd: Any, registry: Registry) -> None:
    number = registry.add("t-value", SECOND)
    values = [value(number, SECOND, id=at, note="some") for at in range(9)]
    values[5] = odd(values[5])
    with pytest.raises(SourceError, match=f"message 5 cannot be read as Avro of schema {number}"):
        read(AvroColumns(address(registry)), *values)


@pytest.mark.parametrize("odd", [b"", b"\x00\x00", b'{"id": 1}', b"\x01\x00\x00\x00\x01\x02"])
def test_values_without_a_schema_are_named(odd: bytes, registry: Registry) -> None:
    number = registry.add("t-value", FIRST)
    with pytest.raises(SourceError, match="message 1 is no Avro value of a schema registry"):
        read(AvroColumns(address(registry)), value(number, FIRST, id=1), odd)


def test_a_schema_that_cannot_be_had(registry: Registry) -> None:
    number = registry.add("t-value", FIRST)
    columns = AvroColumns(address(registry))
    with pytest.raises(SourceError, match="message 1 cannot be read as Avro: .*has no schema 99, the id in it") as caught:
        read(columns, value(number, FIRST, id=1), value(99, FIRST, id=1))
    assert not isinstance(caught.value, NotTheirs), "such a message is bad"
    other = registry.add("t-value", record({"name": "other", "type": "string"}))
    with pytest.raises(SourceError, match="message 0 cannot be read as Avro of schema .*No default value"):
        read(columns, value(other, record({"name": "other", "type": "string"}), other="x"))
    registry.fails = True
    with pytest.raises(Away):
        read(columns, value(7, FIRST, id=1))


def test_no_message_is_bad_because_of_the_registry(registry: Registry) -> None:
    first, second = registry.add("t-value", FIRST), registry.add("t-value", SECOND)
    other = registry.add("u-value", FIRST, schemaType="JSON")
    columns, bad = AvroColumns(address(registry)), BadRows(None, Limit(5))

    def rows(*values: bytes) -> pa.RecordBatch | None:
        def read_some(some: Any, locate: bool) -> pa.RecordBatch:
            return columns.columns(columns.schema, some, where if locate else None)

        return without_bad(values, read_some, bad, lambda one: ("m", one))

    values = [b"oops", value(first, FIRST, id=1), value(first, FIRST, id=2)[:5], value(second, SECOND, id=3, note="n")]
    registry.login = "u:p"
    with pytest.raises(NotTheirs, match="refuses the login"):
        rows(*values)
    registry.login, registry.fails = "", True
    with pytest.raises(Away):
        rows(*values)
    registry.fails = False
    with pytest.raises(NotTheirs) as caught:
        rows(b"oops", value(other, FIRST, id=1))
    assert caught.value.row == 1
    registry.hidden = True
    with pytest.raises(NotTheirs, match="refuses schema 99: Not Found"):
        rows(value(99, FIRST, id=1))
    registry.hidden = False
    assert bad.count == 0
    read_rows = rows(*values)
    assert read_rows is not None and read_rows.column("id").to_pylist() == [1, 3]
    assert bad.count == 2 and "no Avro value" in bad.news()[0]


def test_a_message_with_an_id_that_the_registry_lacks_is_bad_once_it_has_said_so_twice(
    registry: Registry, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = registry.add("t-value", FIRST)
    columns, bad = AvroColumns(address(registry)), BadRows(None, Limit(5))

    def rows(*values: bytes) -> list[int]:
        def read_some(some: Any, locate: bool) -> pa.RecordBatch:
            return columns.columns(columns.schema, some, where if locate else None)

        columns.begin()
        batch = without_bad(values, read_some, bad, lambda one: ("m", one))
        return batch.column("id").to_pylist() if batch is not None else []

    good, odd, other = (value(one, FIRST, id=one) for one in (number, number + 1, 99))
    for _ in range(2):
        registry.asked.clear()
        assert rows(odd, good, other, good) == [number, number]
        assert [path for _, path in registry.asked].count("/schemas/ids/99") == 2 * (bad.count == 2)
    assert bad.count == 4 and len(pauses) == 1 and "has no schema 2, the id in it" in bad.news()[0]
    # what it lacked a while ago is asked for again
    assert registry.add("t-value", SECOND) == number + 1
    monkeypatch.setattr(avro_values, "_BELIEVED_SECONDS", 0.0)
    assert rows(value(number + 1, SECOND, id=7, note=None), other) == [7] and bad.count == 5
    with pytest.raises(SourceError, match="more than 5 rows cannot be read"):
        rows(value(98, FIRST, id=1))


def test_a_schema_that_comes_late_is_taken(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.add("t-value", FIRST)
    columns = AvroColumns(address(registry))

    def register(seconds: float) -> None:
        registry.add("t-value", SECOND)

    monkeypatch.setattr(avro_values.time, "sleep", register)
    assert read(columns, value(2, SECOND, id=3, note="n")) == [{"id": 3}]


@pytest.mark.parametrize(
    ("schema", "query", "words"),
    [
        (None, "", "has no schema of 't-value'; is it the right name"),
        (FIRST, "&schema=2", "has no schema 2 of 't-value'"),
        (FIRST, "&schema=new", "give a version's number, or latest"),
        ("string", "", "holds no records"),
        (record({"name": "u", "type": ["int", "string"]}), "", "of several types"),
    ],
)
def test_a_subject_that_gives_no_columns_is_told_before_anything_is_read(
    schema: Any, query: str, words: str, registry: Registry
) -> None:
    if schema is not None:
        registry.add("t-value", schema)
    with pytest.raises(SourceError, match=words):
        AvroColumns(address(registry, query))


ROWS = pa.schema({"id": pa.int64(), "p": pa.float64(), "at": pa.timestamp("us", "UTC"), "v": pa.list_(pa.float32())})


def test_rows_become_values_of_a_schema_that_is_registered(registry: Registry) -> None:
    at = datetime(2026, 1, 2, 3, tzinfo=UTC)
    rows = pa.RecordBatch.from_pylist(
        [{"id": 1, "p": 0.5, "at": at, "v": [1.0, 2.0]}, {"id": 2, "p": None, "at": None, "v": None}], ROWS
    )
    check_avro(address(registry, kind=SinkError), ROWS)
    assert registry.answer("GET", "/subjects", None) == []
    values = AvroValues(address(registry, kind=SinkError), ROWS)
    made = values.of(rows)
    values.close()
    assert {one[:5] for one in made} == {b"\x00\x00\x00\x00\x01"} and values.of(rows.slice(0, 0)) == []
    columns = AvroColumns(address(registry))
    assert columns.columns(columns.schema, made, where).to_pylist() == rows.to_pylist()
    assert AvroValues(address(registry, kind=SinkError), ROWS).of(rows) == made, "it is registered once"


def test_rows_are_written_by_the_newest_schema(registry: Registry) -> None:
    told = record({"name": "id", "type": "int"}, {"name": "more", "type": "string", "default": "d"})
    registry.add("t-value", told)
    schema = pa.schema({"id": pa.int64()})
    latest = address(registry, "&schema=latest", SinkError)
    check_avro(latest, schema)
    values = AvroValues(latest, schema)
    assert read(AvroColumns(address(registry)), *values.of(pa.record_batch([pa.array([7])], schema))) == [
        {"id": 7, "more": "d"}
    ]
    for odd in (None, 1 << 40):
        with pytest.raises(WriteError, match="a row does not fit version 1 of 't-value'"):
            values.of(pa.record_batch([pa.array([7, odd], pa.int64())], schema))


@pytest.mark.parametrize(
    ("query", "schema", "words"),
    [
        ("", {"id": pa.string()}, "does not fit the versions.*TYPE_MISMATCH id"),
        ("&schema=latest", {"id": pa.int64(), "p": pa.float64()}, "has no column 'p', which would be lost"),
        ("&schema=latest", {"note": pa.string()}, "has a column 'id' without a default"),
        ("&schema=latest", {"id": pa.list_(pa.int64())}, "CAST it"),
        ("&schema=2", {"id": pa.int64()}, "has no schema 2"),
        ("&schema=newest", {"id": pa.int64()}, "give a version's number, latest, or new"),
        ("", {"a-b": pa.int64()}, "cannot have a column called 'a-b'"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_starts(
    query: str, schema: dict[str, Any], words: str, registry: Registry
) -> None:
    registry.add("t-value", SECOND)
    with pytest.raises(SinkError, match=words):
        check_avro(address(registry, query, SinkError), pa.schema(schema))
    with pytest.raises(SinkError, match=words):
        AvroValues(address(registry, query, SinkError), pa.schema(schema))
