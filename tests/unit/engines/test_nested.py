"""Values of arrays, maps and structs as JSON: what `test_crossing` does not reach by way of a table's column."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.nested import from_json, to_json

MAP, STRUCT, LIST = pa.map_, pa.struct, pa.list_
DECIMALS = pa.decimal128(10, 2)


@pytest.mark.parametrize(
    "value, kind, text",
    [
        (None, LIST(pa.int64()), "null"), ([], LIST(pa.int64()), "[]"), ([1, None], LIST(pa.int64()), "[1, null]"),
        ([b"a", "b\u00e9".encode()], LIST(pa.binary()), '["a", "b\\u00e9"]'), ([decimal.Decimal("1.50")], LIST(DECIMALS), '["1.50"]'),
        ([(1, 2)], MAP(pa.int64(), pa.int64()), '{"1": 2}'), ([(True, 0.5), (False, None)], MAP(pa.bool_(), pa.float64()), '{"true": 0.5, "false": null}'),
        ([(datetime.date(2024, 1, 2), {"a": None})], MAP(pa.date32(), STRUCT([("a", pa.int64())])), '{"2024-01-02": {"a": null}}'),
        ({"b": ["x"], "a": 1}, STRUCT([("a", pa.int64()), ("b", LIST(pa.string()))]), '{"a": 1, "b": ["x"]}'),
    ],
)  # fmt: skip
def test_a_value_becomes_json(value: Any, kind: pa.DataType, text: str) -> None:
    assert to_json(value, kind) == text


def test_bytes_that_are_no_text_cannot_become_json() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        to_json([b"\xff"], LIST(pa.binary()))


@pytest.mark.parametrize(
    "kind",
    [LIST(pa.float64()), MAP(pa.int64(), LIST(pa.string())), MAP(pa.bool_(), DECIMALS), STRUCT([("a", LIST(pa.date32())), ("b", pa.timestamp("us"))]), MAP(pa.string(), MAP(pa.float64(), pa.bool_()))],
    ids=str,
)  # fmt: skip
def test_what_is_written_is_read_as_the_same(kind: pa.DataType) -> None:
    values = {
        "list<item: double>": [0.1, -0.0, 1e308, None],
        "map<int64, list<item: string>>": [(-1, ["ä", ""]), (2, None)],
        "map<bool, decimal128(10, 2)>": [(True, decimal.Decimal("99999999.99")), (False, None)],
        "struct<a: list<item: date32[day]>, b: timestamp[us]>": {"a": [datetime.date(1, 1, 1)], "b": datetime.datetime(2024, 1, 2, 3, 4, 5, 6)},
        "map<string, map<double, bool>>": [("", [(0.5, True)]), ("k", [])],
    }  # fmt: skip
    value = pa.array([values[str(kind)]], kind)
    read = pa.array([from_json(to_json(value[0].as_py(), kind), kind)], kind)
    assert read.equals(value)


@pytest.mark.parametrize(
    "kind, most, least",
    [(pa.int8(), 127, -128), (pa.int16(), 32767, -32768), (pa.int32(), (1 << 31) - 1, -(1 << 31)), (pa.int64(), (1 << 63) - 1, -(1 << 63)), (pa.uint8(), 255, 0), (pa.uint64(), (1 << 64) - 1, 0)],
    ids=str,
)  # fmt: skip
def test_a_whole_number_is_read_up_to_the_limits_of_its_type(kind: pa.DataType, most: int, least: int) -> None:
    assert from_json(f"[{most}, {least}]", LIST(kind)) == [most, least]
    for beyond in (most + 1, least - 1):
        with pytest.raises(ValueError, match=f"^{beyond} is no .*, which it cannot hold$"):
            from_json(f"[{beyond}]", LIST(kind))


@pytest.mark.parametrize("kind, bits", [(pa.float16(), 11), (pa.float32(), 24), (pa.float64(), 53)], ids=str)
def test_a_float_takes_only_whole_numbers_that_it_always_holds(kind: pa.DataType, bits: int) -> None:
    assert from_json(f"[{1 << bits}, {-(1 << bits)}]", LIST(kind)) == [1 << bits, -(1 << bits)]
    with pytest.raises(ValueError, match=f"^{(1 << bits) + 1} is no .*, which it cannot hold exactly$"):
        from_json(f"[{(1 << bits) + 1}]", LIST(kind))


@pytest.mark.parametrize("kind, most, more", [(pa.float16(), "65504.0", "65600.0"), (pa.float32(), "3.4e38", "3.5e38"), (pa.float64(), "1.7e308", "-1.8e308")], ids=str)  # fmt: skip
def test_a_float_that_is_too_large_is_an_error_and_never_infinite(kind: pa.DataType, most: str, more: str) -> None:
    assert from_json(f"[{most}]", LIST(kind)) == [float(most)]
    with pytest.raises(ValueError, match="which it cannot hold$"):
        from_json(f"[{more}]", LIST(kind))


def test_infinity_and_nan_are_floats_where_they_are_written_so() -> None:
    nan, infinite = from_json("[NaN, -Infinity]", LIST(pa.float32()))
    assert math.isnan(nan) and infinite == -math.inf


@pytest.mark.parametrize(
    "text, kind, why",
    [
        ('[["a", 1], ["a", 2]]', MAP(pa.string(), pa.int64()), "it has the key 'a' twice"),
        ('{"1": 1, "1.0": 2}', MAP(pa.float64(), pa.int64()), "it has the key '1.0' twice"),
        ('{"1.5": 1, "1.50": 2}', MAP(DECIMALS, pa.int64()), "it has the key '1.50' twice"), ("[[1.50, 1], [1.5, 2]]", MAP(DECIMALS, pa.int64()), "it has the key 1.5 twice"),
        ('{"1e2": 1, "100": 2}', MAP(DECIMALS, pa.int64()), "it has the key '100' twice"), ("[[[1.5], 1], [[1.50], 2]]", MAP(LIST(DECIMALS), pa.int64()), "it has the key .* twice"),
        ('{"0.1": 1, "0.10000000149": 2}', MAP(pa.float32(), pa.int64()), "it has the key '0.10000000149' twice"),
        ('{"null": 1}', MAP(pa.int64(), pa.int64()), "^'null' is no bigint$"), ('{"[1]": 1}', MAP(pa.int64(), pa.int64()), "^'\\[1\\]' is no bigint$"),
        ('{"1.5": 1}', MAP(pa.int64(), pa.int64()), "^'1.5' is no bigint$"), ('{"yes": 1}', MAP(pa.bool_(), pa.int64()), "^'yes' is no boolean$"),
        ("[[null, 1]]", MAP(pa.string(), pa.int64()), "a key is null"), ('[["a"]]', MAP(pa.string(), pa.int64()), "is no map"), ('[{"a": 1}]', MAP(pa.string(), pa.int64()), "is no map"), ('["ab"]', MAP(pa.string(), pa.int64()), "is no map"),
        ("[1]", STRUCT([("a", pa.int64())]), "is no struct"), ('{"a": []}', STRUCT([("a", pa.int64())]), "^\\[\\] is no bigint$"),
        ("[[1]]", LIST(pa.string()), "^\\[1\\] is no string$"), ('["x"]', LIST(DECIMALS), "^'x' is no decimal"), ("[true]", LIST(DECIMALS), "^True is no decimal"),
        ('["1_0"]', LIST(DECIMALS), "^'1_0' is no decimal"), ('[" 1 "]', LIST(DECIMALS), "^' 1 ' is no decimal"), ('["1\\n"]', LIST(DECIMALS), "is no decimal"), ('["\u0661"]', LIST(DECIMALS), "is no decimal"),
        ('{"1_0": 1}', MAP(DECIMALS, pa.int64()), "^'1_0' is no decimal"), ('["NaN"]', LIST(DECIMALS), "^'NaN' is no decimal"), ('["."]', LIST(DECIMALS), "^'.' is no decimal"),
        ('["Infinity"]', LIST(DECIMALS), "^'Infinity' is no decimal"), ("[123456789.00]", LIST(DECIMALS), "^123456789.00 is no decimal"), ("[1] 2", LIST(pa.int64()), "Extra data"), ("", LIST(pa.int64()), "Expecting value"),
    ],
)  # fmt: skip
def test_text_that_is_no_value_is_refused_with_the_part_that_does_not_fit(text: str, kind: pa.DataType, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        from_json(text, kind)


def test_a_map_takes_the_keys_of_an_object_and_of_pairs() -> None:
    assert from_json('{"1": "a", "-2": null}', MAP(pa.int32(), pa.string())) == [(1, "a"), (-2, None)]
    assert from_json('[[1, "a"], [-2, null]]', MAP(pa.int32(), pa.string())) == [(1, "a"), (-2, None)]
    assert from_json('{"true": 1}', MAP(pa.bool_(), pa.int64())) == [(True, 1)]
    # of text it is the text: 1 and "1" are the same there, and nothing is read from it
    assert from_json('{"1": 1, "01": 2}', MAP(pa.string(), pa.int64())) == [("1", 1), ("01", 2)]


@pytest.mark.parametrize("form", ["[{}]", '["{}"]'])
@pytest.mark.parametrize(
    "text, why",
    [
        ("1.505", "cannot hold exactly"), ("1e-77", "cannot hold exactly"), ("1e-999999999", "cannot hold exactly"), ("123456789", "cannot hold"), ("99999999.999", "cannot hold"),
        ("1e999999999", "cannot hold"), ("1e8", "cannot hold"),
    ],
)  # fmt: skip
def test_a_decimal_that_does_not_fit_is_an_error_and_never_rounded(text: str, why: str, form: str) -> None:
    with pytest.raises(ValueError, match=f"is no decimal.*, which it {why}$"):
        from_json(form.format(text), LIST(DECIMALS))


def test_zeros_that_say_nothing_are_no_digits_too_many() -> None:
    texts = ["1." + "0" * 1000, "0e-999999999", "0e999999999", "-0", "0" * 100 + "7", "99999999.990"]
    read = from_json(json.dumps(texts), LIST(DECIMALS))
    assert [str(one) for one in read] == ["1.00", "0.00", "0.00", "0.00", "7.00", "99999999.99"]
    assert pa.array([read], LIST(DECIMALS)).to_pylist() == [read]
    wide = from_json(f'["{"9" * 76}"]', LIST(pa.decimal256(76, 0)))
    assert wide == [decimal.Decimal("9" * 76)]


def test_a_decimal_is_read_from_every_way_to_write_a_number() -> None:
    texts = ["1.5", "+1.50", "-.5", "5.", "1e2", "1E-2", "007"]
    numbers = [decimal.Decimal(text) for text in texts]
    assert from_json(json.dumps(texts), LIST(DECIMALS)) == numbers
    assert from_json('{"1.5": 1, "1.51": 2}', MAP(DECIMALS, pa.int64())) == [(numbers[0], 1), (decimal.Decimal("1.51"), 2)]


def test_an_error_does_not_show_a_long_value_whole() -> None:
    with pytest.raises(ValueError) as told:
        from_json(f'["{"x" * 1000}"]', LIST(pa.int64()))
    assert len(str(told.value)) < 100
