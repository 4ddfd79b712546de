"""What stands for nulls in `dataset()` and `batches()`: values of a column, whatever they are written as."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

from akrunner.column_types import TABLE
from akrunner.schema import Schema
from akrunner.wire.features import KINDS
from akrunner.worker.defaults import checked

SCHEMA = Schema.parse(
    "n bigint, small tinyint, x double, yes boolean, s string, b binary, day date, t timestamp(3), v FLOAT_TENSOR", "schema"
).describe()


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("n", 3, 3), ("n", np.int32(3), 3), ("n", 3.0, 3), ("n", None, None),
        ("x", 1, 1.0), ("x", np.float32(0.5), 0.5), ("yes", True, True), ("yes", 0, False),
        ("s", "none", "none"), ("s", b"none", b"none"), ("b", b"\0", b"\0"),
        ("day", "2024-01-01", 19723), ("day", datetime.date(2024, 1, 1), 19723), ("day", 19723, 19723), ("day", np.datetime64("2024-01-01"), 19723),
        ("day", "1969-12-31", -1),
        ("t", "2024-01-01", 1704067200000), ("t", "2024-01-01 00:00:00.5", 1704067200500), ("t", "2024-01-01T01:00+01:00", 1704067200000),
        ("t", "2024-01-01T00:00:00Z", 1704067200000), ("t", datetime.datetime(2024, 1, 1), 1704067200000),
        ("t", datetime.datetime(2024, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))), 1704067200000),
        ("v", [1, 2], [1.0, 2.0]), ("v", np.zeros(2), [0.0, 0.0]), ("v", 0, 0.0),
    ],
)  # fmt: skip
def test_a_value_of_the_column(name: str, given: Any, meant: Any) -> None:
    assert checked({name: given}, SCHEMA) == {name: meant}
    # what was checked is checked again further in
    assert checked({name: meant}, SCHEMA) == {name: meant}


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("n", "x", "defaults: column 'n' is int64, and 'x' is none of its values; give a whole number"),
        ("n", 0.5, "column 'n' is int64, and 0.5 is none of its values; give a whole number"),
        ("n", True, "column 'n' is int64, and True is none of its values; give a whole number"),
        ("n", 1 << 63, "column 'n' is int64, and 9223372036854775808 is none of its values"),
        ("small", 300, "column 'small' is int8, and cannot hold 300"),
        ("x", "0", "column 'x' is double, and '0' is none of its values; give a number, or NaN"),
        ("yes", "no", "column 'yes' is bool, and 'no' is none of its values; give True or False"),
        ("s", 0, "column 's' is string, and 0 is none of its values; give text"),
        ("b", 0, "column 'b' is binary, and 0 is none of its values; give text or bytes"),
        ("day", "01.01.2024", "column 'day' is date32[day], and '01.01.2024' is none of its values; give a date, or text like '2026-11-23'"),
        ("day", "2024-02-30", "column 'day' is date32[day], and '2024-02-30' is none of its values"),
        ("day", "today", "column 'day' is date32[day], and 'today' is none of its values"),
        ("t", "12:00", "column 't' is timestamp[ms], and '12:00' is none of its values; give a datetime, or text like '2026-11-23 12:00:00'"),
        ("v", ["a"], "column 'v' is float, and ['a'] is none of its values; give a list, each of it a number, or NaN"),
        ("dya", 0, "defaults names columns that are not there: dya; columns: n, small, x, yes, s, b, day, t, v; did you mean 'day'?"),
    ],
)  # fmt: skip
def test_another_value_is_told_with_its_column(name: str, given: Any, words: str) -> None:
    with pytest.raises(ValueError) as e:
        checked({name: given}, SCHEMA)
    assert words in str(e.value)


def test_times_and_spans() -> None:
    columns = [{"name": "t", "kind": "int64", "dtype": "int64", "shape": [], "type": "time64[us]", "unit": "us"},
               {"name": "d", "kind": "int64", "dtype": "int64", "shape": [], "type": "duration[s]", "unit": "s"}]  # fmt: skip
    given = {"t": "12:00:00.25", "d": datetime.timedelta(minutes=2)}
    assert checked(given, columns) == {"t": 43200250000, "d": 120}
    assert checked({"t": datetime.time(0, 1)}, columns) == {"t": 60000000}
    for wrong in ("25:00", "noon"):
        with pytest.raises(ValueError, match="give a time, or text like '12:00:00'"):
            checked({"t": wrong}, columns)


def test_every_type_has_words() -> None:
    """A column of each type that there is refuses what is no value of any."""
    for row in TABLE:
        column = {"name": "c", "kind": row.feature, "dtype": row.dtype, "shape": [], "type": str(row.arrow), "unit": None}
        assert KINDS[row.feature]
        with pytest.raises(ValueError, match="is none of its values; give "):
            checked({"c": object()}, [column])


def test_what_is_no_mapping() -> None:
    assert checked(None, SCHEMA) == {}
    with pytest.raises(TypeError, match="say which column gets which value"):
        checked(["n"], SCHEMA)  # type: ignore[arg-type]


def test_a_name_in_other_letters_is_told() -> None:
    with pytest.raises(ValueError, match=r"not there: S; .*; did you mean 's'\?"):
        checked({"S": "a"}, SCHEMA)
