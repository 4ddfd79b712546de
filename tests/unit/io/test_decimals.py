"""Decimals as floats, text and whole numbers: values, lists, types of all widths, and what does not fit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.errors import ConfigError, SchemaError, SourceError
from akrunner.io.decimals import WAYS, check_decimals, converted
from akrunner.io.sources import open_source
from akrunner.io.table import TableSource
from akrunner.schema import Schema

D = Decimal


def column(array: Any, way: str) -> pa.ChunkedArray:
    table = converted(
        open_source(pa.table({"id": pa.array(range(len(array)), pa.int64()), "d": array}), read_examples=codec.read_examples),
        way,
    )
    batches = list(table.batches())
    assert all(batch.schema == table.schema for batch in batches) and table.schema.field("id").type == pa.int64()
    return pa.Table.from_batches(batches, table.schema).column("d")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["12.50", None, "-0.05", "0.00", "99999999.99"], pa.decimal128(10, 2)),
        (["1", None, "-7"], pa.decimal128(38, 0)),
        (["0.00000012", None, "-0.00000001", "0.00000000", "12345.67890123"], pa.decimal128(18, 8)),
        (["1.5", None, "-123456789012345678901234567890.125"], pa.decimal256(50, 3)),
        (["0.0000000000000000000012", "-3"], pa.decimal256(60, 40)),
        ([], pa.decimal128(5, 2)),
        ([None, None], pa.decimal128(20, 10)),
    ],
)
def test_every_digit_stays_in_text(values: list[str | None], kind: Any) -> None:
    array = pa.array([None if one is None else D(one) for one in values], kind)
    wanted = [None if one is None else format(one, "f") for one in array.to_pylist()]
    assert column(array, "text").to_pylist() == wanted
    # a part of an array, which begins in the middle of its bytes
    assert column(array[1:], "text").to_pylist() == wanted[1:]


def test_a_negative_scale_has_no_exponent() -> None:
    array = pa.array([D("12E3"), None, D("-1E3")], pa.decimal128(4, -3))
    assert column(array, "text").to_pylist() == ["12000", None, "-1000"]
    assert column(array, "int64").to_pylist() == [12000, None, -1000]


def test_floats_and_numbers_without_their_point() -> None:
    array = pa.array([D("12.50"), None, D("-0.05")], pa.decimal128(10, 2))
    assert column(array, "float64").to_pylist() == [12.5, None, -0.05]
    assert column(array, "int64").to_pylist() == column(array.dictionary_encode(), "int64").to_pylist() == [1250, None, -5]
    assert column(array.cast(pa.decimal256(70, 2)), "int64").to_pylist() == [1250, None, -5]
    assert column(array, "int64").type == pa.int64() and column(array, "refuse").type == array.type


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="this pyarrow has no short decimals")
def test_short_decimals() -> None:
    for kind in (pa.decimal32(5, 2), pa.decimal64(12, 8)):
        array = pa.array([D("1.25"), None], kind)
        assert column(array, "int64").to_pylist() == [125 * 10 ** (kind.scale - 2), None]
        assert column(array, "text").to_pylist() == [format(array[0].as_py(), "f"), None]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, lambda inner: pa.list_(inner, 2)])
@pytest.mark.parametrize(
    ("way", "wanted"),
    [
        ("float64", [[1.5, None], None, [-0.25, 2.0]]),
        ("int64", [[150, None], None, [-25, 200]]),
        ("text", [["1.50", None], None, ["-0.25", "2.00"]]),
    ],
)
def test_lists(kind: Any, way: str, wanted: list[Any]) -> None:
    array = pa.array([[D("1.50"), None], None, [D("-0.25"), D("2.00")]], kind(pa.decimal128(6, 2)))
    made = column(array, way)
    assert made.to_pylist() == wanted and str(made.type).startswith(str(array.type).partition("<")[0])
    assert column(array[1:], way).to_pylist() == wanted[1:] and column(array[:0], way).to_pylist() == []


def test_what_does_not_fit_is_told_with_its_row() -> None:
    array = pa.array([D("1")] * 70_000 + [D("92233720368547758.08")], pa.decimal128(30, 2))
    with pytest.raises(SourceError, match=r'decimals="int64" .*: row 70000, column \'d\''):
        column(array, "int64")
    with pytest.raises(SourceError, match="column 'd' cannot become lists of int64"):
        column(pa.array([[D("1e20")]], pa.list_(pa.decimal128(30, 2))), "int64")


def test_digits_that_a_float_does_not_keep_are_told() -> None:
    def opened(kind: Any, way: str) -> TableSource:
        return converted(TableSource(pa.schema([("d", kind)]), lambda: iter(())), way)

    assert opened(pa.decimal128(15, 2), "float64").notes == opened(pa.decimal128(38, 2), "text").notes == ()
    (note,) = opened(pa.list_(pa.decimal128(38, 2)), "float64").notes
    assert "column 'd'" in note and "numbers with more are rounded" in note


def test_a_table_without_decimals_stays_what_it_is() -> None:
    table = open_source({"a": [1]}, read_examples=codec.read_examples)
    assert converted(table, "text") is table


def test_what_decimals_may_say() -> None:
    assert [check_decimals(one) for one in WAYS] == list(WAYS)
    with pytest.raises(ConfigError, match="decimals"):
        check_decimals("float32")


def test_the_error_that_refuses_names_the_option_and_the_option_reaches_a_source() -> None:
    table = pa.table({"d": pa.array([D("1.5")], pa.decimal128(5, 1))})
    with pytest.raises(SchemaError, match=r'decimals="float64" \(--decimals float64\)'):
        Schema.from_arrow(table.schema)
    wide = pa.table({"d": pa.array(["1.5"]).cast(pa.decimal128(38, 2))})
    for defaults in (None, {"d": 0.5}):
        source = open_source(wide, read_examples=codec.read_examples, decimals="float64", defaults=defaults)
        assert len(source.notes) == 1, "the warning stays, whatever else is done with the table"
    source = open_source(table, read_examples=codec.read_examples, decimals="float64", defaults={"d": 0.5})
    assert Schema.from_arrow(source.schema).names == ["d"]
    made = open_source(table, read_examples=codec.read_examples, select="d * 2 AS d", decimals="text")
    assert [row for batch in made.batches() for row in batch.to_pylist()] == [{"d": "3.0"}]
