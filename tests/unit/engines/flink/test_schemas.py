"""Arrow schemas as bytes and as text: what comes out is what went in."""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest

from akrunner.engines.flink.schemas import schema_bytes, schema_from, schema_of, schema_text

SCHEMAS = [
    pa.schema([]),
    pa.schema([("id", pa.int64()), ("x", pa.float32()), ("name, ü", pa.string())]),
    pa.schema([pa.field("a", pa.bool_(), nullable=False), pa.field("a", pa.large_binary())]),
    pa.schema([("l", pa.list_(pa.float32(), 3)), ("d", pa.decimal128(38, 9)), ("t", pa.timestamp("ns", "Europe/Berlin"))]),
    pa.schema([pa.field("i", pa.int8(), metadata={b"k": b"\xff"})], metadata={b"of": b"all"}),
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_is_the_same_again(schema: pa.Schema) -> None:
    data, text = schema_bytes(schema), schema_text(schema)
    assert type(data) is bytes and schema_from(data).equals(schema, check_metadata=True)
    assert schema_of(json.loads(json.dumps(text))).equals(schema, check_metadata=True)


def test_the_text_is_the_bytes_in_plain_letters() -> None:
    schema = SCHEMAS[1]
    text = schema_text(schema)
    assert text.isascii() and base64.b64decode(text, validate=True) == schema_bytes(schema)


@pytest.mark.parametrize("data", [b"", b"abcd", schema_bytes(SCHEMAS[1])[:40]])
def test_what_is_no_schema_is_refused(data: bytes) -> None:
    with pytest.raises((pa.ArrowInvalid, EOFError, OSError)):
        schema_from(data)


def test_text_that_is_cut_is_refused() -> None:
    with pytest.raises(ValueError):
        schema_of(schema_text(SCHEMAS[1])[:-3])
