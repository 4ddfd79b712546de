"""Columns that files of a format do not hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.errors import SchemaError
from akrunner.packing.described import check_columns


def test_all_columns_that_do_not_fit_are_named() -> None:
    odd = pa.struct([("x", pa.int64())])
    schema = pa.schema([("a", odd), ("good", pa.int64()), ("b", odd), ("c", pa.map_(pa.string(), pa.string()))])
    with pytest.raises(SchemaError) as caught:
        check_columns(schema, "tfrecord")
    assert all(repr(name) in str(caught.value) for name in ("a", "b", "c")) and "'good'" not in str(caught.value)
