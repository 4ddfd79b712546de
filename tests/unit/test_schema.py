from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import SchemaError
from akrunner.schema import Schema, feature_kind, plain, to_array, to_floats


def test_parse() -> None:
    schema = Schema.parse("id bigint, `a name` string NOT NULL, v FLOAT_TENSOR, w array<double>, t timestamp(3), n varchar(20)")
    assert schema.arrow == pa.schema(
        [
            ("id", pa.int64()),
            pa.field("a name", pa.string(), nullable=False),
            ("v", pa.list_(pa.float32())),
            ("w", pa.list_(pa.float64())),
            ("t", pa.timestamp("ms")),
            ("n", pa.string()),
        ]
    )


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("id bigint, p f8", "no type is called 'f8'; numpy's is 'float64' here", "f8"),
        ("id bigint, p dobule", "no type is called 'dobule'; did you mean 'double'?", "dobule"),
        ("id bigint p double", "expected a comma between columns, found 'p'", "p double"),
        ("id", "expected a type for column 'id', found the end", ""),
        ("id bigint,", "expected a column name, found the end", ""),
        ("id bigint, id string", "column 'id' is there twice", "id string"),
        ("v array<double", "expected array<TYPE>, found the end", ""),
        ("v array<array<int>>", "array of arrays", "array<array<int>>"),
        ("a bigint not nul", "expected NULL after NOT", "nul"),
        ("t timestamp(4)", "(0), (3), (6) or (9)", "4)"),
        ("b bigint(3)", "bigint takes no size", "bigint(3)"),
        (", a bigint", "expected a column name, found ','", ", a"),
        ("a !", "expected a type for column 'a', found '!'", "!"),
    ],
)
def test_errors_point_at_the_word(text: str, message: str, at: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text)
    first, line, caret = str(caught.value).split("\n")
    assert message in first and "output_schema" in first
    assert caret.index("^") - 4 == (text.index(at) if at else len(text)) and line.strip() == text.strip()


def test_empty() -> None:
    with pytest.raises(SchemaError, match="is empty"):
        Schema.parse("  ")


def test_twice_from_arrow() -> None:
    with pytest.raises(SchemaError, match="two columns are called 'a'"):
        Schema.from_arrow(pa.schema([("a", pa.int64()), ("a", pa.int64())]))


def test_describe() -> None:
    schema = Schema.from_arrow(
        pa.schema(
            [
                ("a", pa.int8()),
                ("t", pa.timestamp("ns")),
                ("v", pa.list_(pa.float32(), 3)),
                ("w", pa.list_(pa.string())),
                ("m", pa.fixed_shape_tensor(pa.float32(), (2, 3))),
            ]
        )
    )
    told = {c["name"]: (c["kind"], c["shape"], c["type"], c["unit"]) for c in schema.describe()}
    assert told == {
        "a": ("int64", [], "int8", None),
        "t": ("int64", [], "timestamp[ns]", "ns"),
        "v": ("float", [3], "float", None),
        "w": ("bytes", None, "string", None),
        "m": ("float", [2, 3], "float", None),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a " + "array<" * 100_000, "an array of arrays cannot cross"),
        ("a array<array<bigint>>", "an array of arrays cannot cross"),
        ("a array<FLOAT_TENSOR>", "an array of arrays cannot cross"),
        ("a " + "<" * 100_000, "expected a type"),
        (", ".join(f"a{i} bigint" for i in range(50_000)) + ", b nonsense", "no type is called 'nonsense'"),
        ("a timestamp(²)", "timestamp takes"),
        ("a timestamp(" + "9" * 10_000 + ")", "timestamp takes"),
        ("a varchar(²)", "takes no size"),
        ("a" * 2_000_000 + " bigint", "has 2000000 bytes, and every row would carry them"),
        ('"\udc80" bigint', "no text that UTF-8 can hold"),
        ("a \0 bigint", "expected a type"),
    ],
    ids=range(11),
)
def test_absurd_text(text: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as raised:
        Schema.parse(text)
    assert len(str(raised.value)) < 1500


def test_views_become_what_they_are_views_of() -> None:
    views = pa.schema(
        [
            pa.field("s", pa.string_view(), nullable=False),
            pa.field("z", pa.binary_view()),
            pa.field("w", pa.list_(pa.string_view())),
            pa.field("x", pa.large_list(pa.string_view())),
            pa.field("y", pa.list_(pa.binary_view(), 2)),
            pa.field("i", pa.int64()),
            pa.field("c", pa.dictionary(pa.uint8(), pa.string_view(), ordered=True)),
        ]
    )
    strings = plain(views)
    assert list(map(str, strings.types)) == [
        "large_string", "large_binary", "list<item: large_string>", "large_list<item: large_string>",
        "fixed_size_list<item: large_binary>[2]", "int64", "dictionary<values=large_string, indices=uint8, ordered=1>",
    ]  # fmt: skip
    assert not strings.field("s").nullable and plain(strings) is strings


@pytest.mark.parametrize("values", [[1.5, 1e300], [[1.0], None, [-1e39]]])
def test_a_number_never_becomes_infinite(values: Any) -> None:
    array = pa.array(values)
    target = pa.list_(pa.float32()) if isinstance(values[0], list) else pa.float32()
    with pytest.raises(pa.ArrowInvalid, match="1e.* would become infinite"):
        to_floats(array, target)


def test_what_is_no_number_stays_so() -> None:
    got = to_floats(pa.array([float("inf"), None, -float("inf"), 0.1]), pa.float32())
    assert got.to_pylist() == [float("inf"), None, -float("inf"), pytest.approx(0.1)]
    assert np.isnan(to_floats(pa.array([float("nan")]), pa.float32())[0].as_py())


def test_values_of_python() -> None:
    assert to_array([1, 2.5, None, float("inf")], pa.float32()).to_pylist() == [1, 2.5, None, float("inf")]
    with pytest.raises(pa.ArrowInvalid, match="1e\\+300 would become infinite"):
        to_array([np.array([1.0, 1e300]), None], pa.list_(pa.float32(), 2))


def test_what_is_said_of_a_struct_works() -> None:
    """What is advised is run: DuckDB takes it, and what comes of it can cross."""
    import duckdb

    row = pa.struct([("a", pa.int64()), ("two words", pa.string())])
    for kind, value in ((row, {"a": 1, "two words": "x"}), (pa.list_(row), [{"a": 1, "two words": "x"}])):
        rows = pa.table({"id": [1], "st": pa.array([value], kind)})
        with pytest.raises(SchemaError) as caught:
            feature_kind("st", kind)
        ways = re.findall(r"\* (?:REPLACE|EXCLUDE) .*?(?=, or take|$)", str(caught.value))
        assert len(ways) == (2 if kind == row else 1), str(caught.value)
        for way in ways:
            made = duckdb.from_arrow(rows).query("rows", f"SELECT {way} FROM rows").to_arrow_table()
            assert [feature_kind(field.name, field.type) for field in made.schema]


@pytest.mark.parametrize(
    ("words", "unit", "zone"),
    [
        ("timestamp with time zone", "us", "UTC"),
        ("TIMESTAMP(3) WITH TIME ZONE", "ms", "UTC"),
        ("timestamp(9) with local time zone", "ns", "UTC"),
        ("timestamp_ltz", "us", "UTC"),
        ("timestamp_ltz(0)", "s", "UTC"),
        ("timestamptz[ns]", "ns", "UTC"),
        ("timestamp[ms, tz=UTC]", "ms", "UTC"),
        ("timestamp[ms, UTC]", "ms", "UTC"),
        ("timestamp(3) without time zone", "ms", None),
    ],
)
def test_a_time_may_have_a_zone(words: str, unit: str, zone: str | None) -> None:
    schema = Schema.parse(f"a {words} not null, b array<{words}>")
    assert schema.arrow == pa.schema(
        [pa.field("a", pa.timestamp(unit, zone), False), pa.field("b", pa.list_(pa.timestamp(unit, zone)))]
    )
    assert Schema.parse(schema.words) == schema
    assert Schema.parse("a " + words).fields[0].unsized == (words in ("timestamp with time zone", "timestamp_ltz"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("timestamp with time", "expected ZONE after TIME, found the end"),
        ("timestamp with zone", "expected TIME ZONE, found 'zone'"),
        ("timestamp[us, tz=Europe/Berlin]", "the zone of a schema is UTC"),
        ("timestamp_ltz(4)", r"timestamp_ltz takes \(0\), \(3\), \(6\) or \(9\)"),
        ("bigint with time zone", "expected a comma between columns, found 'with'"),
    ],
)
def test_a_zone_that_is_none(words: str, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        Schema.parse(f"a {words}")
