"""No number of a text changes because of the type that was guessed for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io import exact

TOP = 2.0**53


def at(row: int) -> str:
    return f"line {row}"


def floats(texts: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([None if one is None else float(one) for one in texts], pa.float64())])


def text(texts: list[str | None]) -> pa.Array:
    return pa.array([one or "" for one in texts])


@pytest.mark.parametrize(
    ("column", "big"),
    [
        ([TOP], True),
        ([None, -TOP], True),
        ([TOP - 1, None, 1 - TOP], False),
        ([float("inf")], True),
        ([None], False),
        ([], False),
        ([2**60], False),
        ([[1.5], [TOP]], True),
        ([[1.5], None, []], False),
        ([{"a": "x", "b": TOP}], True),
        ([{"a": "x", "b": [{"c": -TOP}]}], True),
        ([{"a": 1, "b": 1.5}], False),
        (["x"], False),
    ],
)
def test_columns_that_may_have_lost_something(column: list[Any], big: bool) -> None:
    kind = pa.float64() if column in ([None], []) else None
    assert exact.suspicious(pa.table({"small": [1.5] * len(column), "x": pa.array(column, kind)})) == (["x"] if big else [])


@pytest.mark.parametrize("texts", [["18446744073709551615", "0"], ["9223372036854775808", None, " 1 "]])
def test_whole_numbers_that_no_bigint_holds_are_uint64(texts: list[str | None]) -> None:
    kind = exact.guess(at, "x", floats(texts), lambda: text(texts), True)
    assert kind == pa.uint64()


@pytest.mark.parametrize(
    ("texts", "row", "told"),
    [
        (["1", "18446744073709551616"], 1, "18446744073709551616"),
        (["-1", "9223372036854775808", "5"], 1, "9223372036854775808"),
        (["1.5", "9007199254740993"], 1, "9007199254740993"),
        (["1.5", "-9007199254740993.5"], 1, "-9007199254740993.5"),
        (["1e400", "2"], 0, "1e400"),
        (["2", None, "1" * 60], 2, "1" * 40 + r"\.\.\."),
    ],
)
def test_a_number_that_would_change_is_refused_with_its_line(texts: list[str | None], row: int, told: str) -> None:
    with pytest.raises(SourceError, match=rf"^source: line {row}, column 'x': {told} is too big for .*'x string'"):
        exact.guess(at, "x", floats(texts), lambda: text(texts), True)


@pytest.mark.parametrize(
    "texts",
    [
        ["1.5", "9007199254740992"],
        ["1.5", "9007199254740994.0"],
        ["1e300", None, "-1E+22"],
        ["123456789012345680000.0", "9.9999999999999992e+22"],
        ["inf", "-Infinity"],
    ],
)
def test_numbers_that_a_float_holds_as_they_stand_stay(texts: list[str | None]) -> None:
    assert exact.guess(at, "x", floats(texts), lambda: text(texts), True) == pa.float64()


def test_a_type_that_the_user_gave_may_round_but_not_overflow() -> None:
    rounded: list[str | None] = ["1.5", "9007199254740993"]
    assert exact.guess(at, "x", floats(rounded), lambda: text(rounded), False) == pa.float64()
    exact.check(at, "x", floats(rounded), lambda: text(rounded), False)
    with pytest.raises(SourceError, match="line 1, column 'x': 1e999 is too big for any number of a column"):
        exact.check(at, "x", floats(["1", "1e999"]), lambda: text(["1", "1e999"]), False)


def test_only_the_rows_of_big_numbers_are_compared() -> None:
    # the text of a small number is not looked at: what is there might be anything
    exact.check(at, "x", floats(["1", "1e300"]), lambda: pa.array(["not looked at" * 5, "1e300"]), True)


@pytest.mark.parametrize(
    ("data", "may"),
    [
        (b"a\n1,2\n", False),
        (b"a\n10,0.5\n-0.5,0\n", False),
        (b"01,2\n", True),
        (b"a\n1,-01\n", True),
        (b"a\n1, 007\n", True),
        (b'a\n1,"007"\n', True),
        (b"a\r09\r", True),
        (b"a\n0x1F\n", True),
        (b"a\n0X1F\n", True),
        (b"+49,1\n", True),
        (b'a\n1,"+49"\n', True),
        (b"a\n1e+05\n", False),
        (b"a\n1,00:30\n", True),
        (b"", False),
    ],
)
def test_cells_that_may_be_identifiers(data: bytes, may: bool) -> None:
    assert exact.may_have_identifiers(data) == may


@pytest.mark.parametrize(
    ("texts", "row"),
    [
        (["1", "0", "0.5", "-0.5", "10", ""], None),
        (["1", "007"], 1),
        (["-01"], 0),
        ([" 09"], 0),
        (["1", None, "+1"], 2),
        (["0x1F"], 0),
        (["-0X1f"], 0),
        ([], None),
    ],
)
def test_the_first_identifier(texts: list[str | None], row: int | None) -> None:
    assert exact.first_identifier(pa.array(texts, pa.string())) == row


@pytest.mark.parametrize(
    ("value", "begins", "number"),
    [("007", "a 0", "bigint"), (" +49", r"a \+", "double"), ("0x1F", "0x", "bigint"), ("-0X1F", "0x", "bigint")],
)
def test_an_identifier_is_refused_with_both_ways_out(value: str, begins: str, number: str) -> None:
    with pytest.raises(
        SourceError, match=rf"line 7, column 'x': {value.replace('+', '.')} begins with {begins}, .*'x string'.*'x {number}'"
    ):
        exact.refuse_identifier("line 7", "x", value)


def test_hexadecimal_numbers() -> None:
    assert [exact.may_be_hexadecimal(data) for data in (b"1,0x1F", b"0X", b"x0,10")] == [True, True, False]
    texts = pa.array(["-5", "0x7F", None, "0xFF"])
    assert exact.first_wrapped(texts, pa.array([-5, 127, None, -1], pa.int8())) == 3
    assert exact.first_wrapped(texts[:2], pa.array([-5, 127], pa.int8())) is None
    with pytest.raises(SourceError, match="line 7, column 'x': 0xFF does not fit int8; .*'x string' .*wider type"):
        exact.refuse_wrapped("line 7", "x", "0xFF", pa.int8())


def settled(data: bytes, kind: pa.DataType, first: bool = True) -> pa.DataType:
    return exact.json_columns(at, data, {"x": kind}, first)["x"]


LIST, STRUCT = pa.list_(pa.float64()), pa.struct([("s", pa.string()), ("n", pa.float64())])


@pytest.mark.parametrize(
    ("data", "kind", "want"),
    [
        (b'{"x":18446744073709551615}\n{"y":1}\n{"x":0}', pa.float64(), pa.uint64()),
        (b'{"x":[18446744073709551615,null,1]}', LIST, pa.list_(pa.uint64())),
        (b'{"x":{"s":"1","n":18446744073709551615}}', STRUCT, pa.struct([("s", pa.string()), ("n", pa.uint64())])),
        (b'\xef\xbb\xbf{"x":1.5} {"x":1.2345678901234567e19}', pa.float64(), pa.float64()),
        (b'{"x":1e300}\n{"x":true}\n{"x":1180591620717411303424}', pa.float64(), pa.float64()),
        (b'{"x":9007199254740992.0000}', pa.float64(), pa.float64()),
    ],
)
def test_types_of_json_that_hold_all_numbers(data: bytes, kind: pa.DataType, want: pa.DataType) -> None:
    assert settled(data, kind) == want


@pytest.mark.parametrize(
    ("data", "first", "row", "told"),
    [
        (b'{"x":1}\n{"x":18446744073709551616}', True, 1, "18446744073709551616"),
        (b'{"x":-1}\n{"x":9223372036854775808}\n{"x":9223372036854775809}', True, 1, "9223372036854775808"),
        (b'{"x":1.5}\n{"x":9007199254740993}', True, 1, "9007199254740993"),
        (b'{"x":[1.5]}\n{"x":[2,9007199254740993.0]}', True, 1, "9007199254740993.0"),
        (b'{"x":{"n":-9007199254740993}}\n{"x":1.5}', True, 0, "-9007199254740993"),
        (b'{"x":1}\n{"x":9007199254740993}', False, 1, "9007199254740993"),
    ],
)
def test_a_number_of_json_that_would_change_is_refused_with_its_row(data: bytes, first: bool, row: int, told: str) -> None:
    with pytest.raises(SourceError, match=rf"line {row}, column 'x': {told} is too big .*'x double' to have it rounded$"):
        settled(data, pa.float64(), first)


def test_json_without_long_numbers_is_not_decoded() -> None:
    assert settled(b"this is no JSON at all", pa.float64()) == pa.float64()
    assert exact.json_columns(at, b"12345678901234567890", {}, True) == {}


def test_a_column_whose_numbers_fit_is_left_alone_beside_one_whose_do_not() -> None:
    data = b'{"x":18446744073709551615,"y":1.5}'
    kinds = {"x": pa.float64(), "y": pa.float64()}
    assert exact.json_columns(at, data, kinds, True) == {"x": pa.uint64(), "y": pa.float64()}


def test_values_that_are_no_numbers_are_no_big_ones() -> None:
    table = pa.table({"x": pa.array([np.nan, 1.0])})
    assert exact.suspicious(table) == []
