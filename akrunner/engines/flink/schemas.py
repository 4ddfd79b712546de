"""Arrow schemas as bytes and as text, on their way to other machines."""

from __future__ import annotations

import base64

import pyarrow as pa


def schema_bytes(schema: pa.Schema) -> bytes:
    """An Arrow schema, as Arrow serializes it."""
    return bytes(schema.serialize())


def schema_from(data: bytes) -> pa.Schema:
    """Of `schema_bytes`."""
    return pa.ipc.read_schema(pa.py_buffer(data))


def schema_text(schema: pa.Schema) -> str:
    """The same as text, for JSON."""
    return base64.b64encode(schema_bytes(schema)).decode()


def schema_of(text: str) -> pa.Schema:
    """Of `schema_text`."""
    return schema_from(base64.b64decode(text))
