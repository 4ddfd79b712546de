"""Columns that files of a format do not hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.errors import SchemaError
from akrunner.packing.described import check_columns, rounded, type_words, wider


def test_all_columns_that_do_not_fit_are_named() -> None:
    odd = pa.struct([("x", pa.int64())])
    schema = pa.schema([("a", odd), ("good", pa.int64()), ("b", odd), ("c", pa.map_(pa.string(), pa.string()))])
    with pytest.raises(SchemaError) as caught:
        check_columns(schema, "tfrecord")
    assert all(repr(name) in str(caught.value) for name in ("a", "b", "c")) and "'good'" not in str(caught.value)


@pytest.mark.parametrize(
    "data_type, record, column",
    [
        (pa.decimal128(31, 0), "bigint", "decimal128(31, 0)"),
        (pa.list_(pa.decimal128(31, 0)), "array<bigint>", "array<decimal128(31, 0)>"),
        (pa.uint64(), "bigint", "uint64"),
        (pa.time64("us"), "bigint", "time64[us]"),
        (pa.int8(), "tinyint", "tinyint"),
        (pa.large_string(), "string", "string"),
        (pa.float64(), "float", "double"),
        (pa.timestamp("ns", "UTC"), "timestamp(9)", "timestamp(9)"),
    ],
)
def test_a_type_is_what_the_files_have(data_type: pa.DataType, record: str, column: str) -> None:
    assert type_words(data_type, "tfrecord") == record
    assert type_words(data_type, "parquet") == type_words(data_type, "arrow") == column


def test_whole_numbers_that_a_job_may_refuse_are_told() -> None:
    wide = pa.schema([("a", pa.decimal128(31, 0)), ("b", pa.decimal128(18, 0)), ("c", pa.decimal128(31, 2)), ("d", pa.int64())])
    (told,) = wider(wide, "parquet")
    assert told.startswith("'a' is a decimal of more digits than 64 bits hold") and "CAST(a AS VARCHAR)" in told
    assert wider(wide, "tfrecord") == [] == wider(pa.schema([wide.field(i) for i in (1, 2, 3)]), "arrow")


def test_a_warning_names_a_few_columns_and_counts_the_rest() -> None:
    (words,) = rounded(pa.schema([(f"c{number}", pa.float64()) for number in range(81)]), "tfrecord")
    assert words.startswith("'c0', 'c1', 'c2', 'c3', 'c4' and 76 more are double, and are rounded")
