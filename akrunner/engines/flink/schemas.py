"""Turns Arrow schemas into bytes and text, to send them to other machines."""

from __future__ import annotations

import base64

import pyarrow as pa


def schema_bytes(schema: pa.Schema) -> bytes:
    """Return an Arrow schema as bytes, as Arrow serializes it."""
    return bytes(schema.serialize())


def schema_from(data: bytes) -> pa.Schema:
    """Return the schema that `schema_bytes` has turned into bytes."""
    return pa.ipc.read_schema(pa.py_buffer(data))


def schema_text(schema: pa.Schema) -> str:
    """Return an Arrow schema as text, for JSON."""
    return base64.b64encode(schema_bytes(schema)).decode()


def schema_of(text: str) -> pa.Schema:
    """Return the schema that `schema_text` has turned into text."""
    return schema_from(base64.b64decode(text))
