"""The table of column types: that its rows agree with each other, and that what they say is so."""

from __future__ import annotations

import datetime
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner import codec, column_types
from akrunner.codec.binary import data_of, offsets_of
from akrunner.column_types import (
    DTYPES,
    MANY,
    NUMBERS,
    TABLE,
    TIMES,
    UNITS,
    WORDS,
    ColumnType,
    Family,
    is_octets,
    limits,
    type_of,
    undeclared,
    wider,
)
from akrunner.errors import DataError
from akrunner.schema import Schema
from akrunner.wire import column_layout as layout
from akrunner.wire.features import BYTES, FLOAT, INT64, KINDS

ROOT = Path(__file__).parents[2]
DECLARED = [row for row in TABLE if row.declared]
VALUES: dict[Family, list[Any]] = {
    Family.TRUTH: [True, None, False],
    Family.WHOLE: [1, None, 127],
    Family.REAL: [0.5, None, -2.0],
    Family.TEXT: ["a", None, "ä"],
    Family.OCTETS: [b"\xff", None, b""],
    Family.DATE: [datetime.date(2026, 11, 25), None, datetime.date(1, 1, 1)],
    Family.MOMENT: [datetime.datetime(2026, 11, 25, 12), None, datetime.datetime(1, 1, 1)],
}


def named(row: ColumnType) -> str:
    return row.name


def test_a_name_means_one_row() -> None:
    for names in ([row.name for row in TABLE], [word for row in DECLARED for word in (row.name, *row.words)]):
        assert len(names) == len(set(names))
    many = [word for row in TABLE for word in row.many]
    assert len(many) == len(set(many)) and not set(many) & set(WORDS)
    for names in ([name for row in TABLE for name in row.alink], [row.element for row in TABLE if row.element]):
        assert len(names) == len(set(names))
    pythons = [row.python for row in TABLE if row.python is not None]
    assert len(pythons) == len(set(pythons))
    assert all(word == word.lower() for word in [*WORDS, *MANY]), "words are looked for in small letters"


@pytest.mark.parametrize("row", TABLE, ids=named)
def test_a_type_of_arrows_means_one_row(row: ColumnType) -> None:
    for data_type in (row.arrow, *row.also):
        assert type_of(data_type) is row
    assert type_of(pa.list_(row.arrow)) is None and type_of(pa.dictionary(pa.int32(), pa.string())) is None


@pytest.mark.parametrize("row", TABLE, ids=named)
def test_a_row_agrees_with_itself(row: ColumnType) -> None:
    kind = KINDS[row.feature]
    if row.feature == BYTES:
        assert row.dtype == kind.dtype and row.family in (Family.TEXT, Family.OCTETS)
    else:
        assert np.dtype(row.dtype).itemsize == layout.WIDTHS[row.dtype]
    if row.family in NUMBERS:
        assert pa.from_numpy_dtype(row.dtype) == row.arrow
    else:
        assert row.dtype == kind.dtype, "what is not a number in memory crosses as one of its feature"
    assert set(row.sized) <= {row.name, *row.words}
    assert row.of_unit is None or {row.of_unit(unit).unit for unit in UNITS} == set(UNITS)


@pytest.mark.parametrize("row", [row for row in TABLE if row.wider is not None], ids=named)
def test_the_wider_type_holds_the_values(row: ColumnType) -> None:
    assert row.wider is not None
    after = type_of(row.wider)
    assert after is not None and after.family is row.family and after.feature == row.feature
    if row.family is Family.WHOLE:
        low, high = limits(row.arrow) or (0, 0)
        assert pa.array([low, high], row.arrow).cast(row.wider).to_pylist() == [low, high]


def test_the_widths_of_the_wire_are_those_of_the_table() -> None:
    assert set(layout.WIDTHS) == set(DTYPES)


def test_the_next_type_that_another_system_has() -> None:
    def flinks(row: ColumnType) -> str:
        return row.flink

    assert wider(WORDS["bigint"], flinks) is WORDS["bigint"]
    assert wider(DTYPES["uint8"], flinks) is WORDS["smallint"] and wider(DTYPES["float16"], flinks) is WORDS["float"]
    assert wider(DTYPES["uint64"], flinks) is None


def test_what_is_known_of_a_feature_alone() -> None:
    assert [undeclared(kind).name for kind in (INT64, FLOAT, BYTES)] == ["bigint", "float", "varbinary"]


def test_limits() -> None:
    assert limits(pa.bool_()) == (0, 1) and limits(pa.int8()) == (-128, 127) and limits(pa.uint16()) == (0, 65535)
    assert limits(pa.uint64()) == (0, 2**63 - 1) and limits(pa.int64()) is None
    assert limits(pa.date32()) == limits(pa.time32("ms")) == (-(2**31), 2**31 - 1)
    for data_type in (
        pa.timestamp("ns"),
        pa.date64(),
        pa.time64("us"),
        pa.float32(),
        pa.string(),
        pa.null(),
        pa.list_(pa.int8()),
    ):
        assert limits(data_type) is None


@pytest.mark.parametrize("row", DECLARED, ids=named)
def test_a_column_goes_and_comes_back(row: ColumnType) -> None:
    """Both ways in which rows travel, one value a row and many, under every word."""
    values = pa.array(VALUES[row.family], pa.date32() if row.family is Family.DATE else None).cast(row.arrow)
    lists = pa.array([values.drop_null().to_pylist(), None, []], pa.list_(row.arrow))
    words = [row.name, *row.words]
    schema = Schema.parse(", ".join(f"c{at} {word}, l{at} array<{word}>" for at, word in enumerate(words)))
    batch = pa.record_batch([values, lists] * len(words), schema=schema.arrow)
    examples = codec.encode_examples(batch)
    assert codec.decode_examples(schema, data_of(examples), np.diff(offsets_of(examples))).equals(batch)
    payload = b"".join(bytes(memoryview(one).cast("B")) for one in codec.encode_columns(batch) if memoryview(one).nbytes)
    assert codec.decode_columns(schema, payload).equals(batch)
    told = schema.describe()
    assert {one["kind"] for one in told} == {row.feature} and {one["dtype"] for one in told} == {row.dtype}
    assert Schema.parse(schema.words) == schema


@pytest.mark.parametrize("word", list(MANY))
def test_words_for_many_values(word: str) -> None:
    assert Schema.parse(f"v {word.upper()}").fields[0].type == pa.list_(MANY[word].arrow)


def test_what_a_type_does_not_hold_names_its_row() -> None:
    batch = pa.record_batch({"k": pa.array([b"abcd", b"abc"])})
    examples = codec.encode_examples(batch)
    schema = Schema.from_arrow(pa.schema([("k", pa.binary(4))]))
    with pytest.raises(DataError, match=r"row 8: column 'k' has the length 3, which does not fit fixed_size_binary\[4\]"):
        codec.decode_examples(schema, data_of(examples), np.diff(offsets_of(examples)), 7)
    payload = b"".join(bytes(memoryview(one).cast("B")) for one in codec.encode_columns(batch) if memoryview(one).nbytes)
    with pytest.raises(DataError, match=r"row 8: column 'k' does not fit fixed_size_binary\[4\]"):
        codec.decode_columns(schema, payload, 7)


def test_families_of_time_are_no_numbers() -> None:
    assert not NUMBERS & TIMES
    assert {row.family for row in TABLE} == set(Family)


def test_the_page_is_that_of_the_table() -> None:
    spec = importlib.util.spec_from_file_location("gen_types", ROOT / "scripts" / "gen_types.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page(), "run scripts/gen-types"
    assert column_types.TABLE is module.TABLE


@pytest.mark.parametrize(
    ("kind", "octets"),
    [
        (pa.binary(), True),
        (pa.large_binary(), True),
        (pa.binary_view(), True),
        (pa.binary(2), True),
        (pa.string(), False),
        (pa.int8(), False),
    ],
)
def test_types_of_bytes(kind: pa.DataType, octets: bool) -> None:
    assert is_octets(kind) == octets
