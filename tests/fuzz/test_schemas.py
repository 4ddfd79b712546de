"""Schema text of all kinds: a `Schema`, or a `SchemaError`."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from akrunner.errors import SchemaError
from akrunner.schema import Schema

words = st.sampled_from(
    [
        "a",
        "b",
        "bigint",
        "array",
        "<",
        ">",
        "(",
        ")",
        ",",
        "6",
        "varchar",
        "timestamp",
        "not",
        "null",
        '"a b"',
        "`c`",
        "FLOAT_TENSOR",
    ]
)


@given(st.one_of(st.text(), st.lists(words).map(" ".join)))
def test_schema_text(text: str) -> None:
    with contextlib.suppress(SchemaError):
        schema = Schema.parse(text)
        assert len(schema) and len(set(schema.names)) == len(schema)
