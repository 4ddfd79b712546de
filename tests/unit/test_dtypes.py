"""Schemas as dicts, and as other libraries have them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from akrunner import dtypes
from akrunner.errors import ConfigError, SchemaError
from akrunner.prepare.schemas import schema_of
from akrunner.schema import Schema


def _types(given: Any) -> dict[str, pa.DataType]:
    found = schema_of(given, "output_schema")
    assert found is not None
    return {field.name: field.type for field in found}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("bigint", pa.int64()),
        ("float64", pa.float64()),
        ("array<float32>", pa.list_(pa.float32())),
        ("list<int64>", pa.list_(pa.int64())),
        ("uint8", pa.uint8()),
        ("str", pa.string()),
        ("datetime64[ns]", pa.timestamp("ns")),
        ("timestamp[ms]", pa.timestamp("ms")),
        (int, pa.int64()),
        (float, pa.float64()),
        (bool, pa.bool_()),
        (str, pa.string()),
        (bytes, pa.binary()),
        (datetime.datetime, pa.timestamp("us")),
        (datetime.date, pa.date32()),
        (pa.int16(), pa.int16()),
        (np.float32, pa.float32()),
        (np.dtype("int8"), pa.int8()),
        (np.dtype("float64", metadata={"a": 1}), pa.float64()),
        (np.dtype(">i4"), pa.int32()),
        (np.dtype(("float32", 3)), pa.list_(pa.float32(), 3)),
        (np.dtype("datetime64[s]"), pa.timestamp("s")),
        (np.dtype("datetime64[D]"), pa.date32()),
        (np.dtype("U7"), pa.string()),
        (np.dtype("S7"), pa.binary()),
        (np.str_, pa.string()),
        (pd.Int64Dtype(), pa.int64()),
        (pd.Float32Dtype(), pa.float32()),
        (pd.BooleanDtype(), pa.bool_()),
        (pd.StringDtype(), pa.string()),
        (pd.CategoricalDtype(["a"]), pa.string()),
        (pd.CategoricalDtype([1]), pa.int64()),
        (pd.DatetimeTZDtype("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (pd.ArrowDtype(pa.int8()), pa.int8()),
        (pl.Int64, pa.int64()),
        (pl.Float32(), pa.float32()),
        (pl.String, pa.large_string()),
        (pl.List(pl.Float64), pa.large_list(pa.float64())),
        (pl.Datetime("ms"), pa.timestamp("ms")),
    ],
)
def test_a_type_of_each_library(given: Any, wanted: pa.DataType) -> None:
    assert _types({"a name": given}) == {"a name": wanted}


def test_what_frames_say_of_their_columns() -> None:
    frame = pd.DataFrame({"id": [1], "p": [0.5], "t": ["x"], "w": pd.to_datetime(["2026-01-01"]).astype("datetime64[us]")})
    assert _types(frame.dtypes) == {"id": pa.int64(), "p": pa.float64(), "t": pa.string(), "w": pa.timestamp("us")}
    assert _types(pl.DataFrame({"id": [1], "t": ["x"]}).schema) == {"id": pa.int64(), "t": pa.large_string()}


def test_not_null() -> None:
    found = schema_of({"a": "bigint not null", "b": "string"}, "output_schema")
    assert found is not None and [field.nullable for field in found] == [False, True]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": "flaot64"}, "output_schema, column 'a': no type is called 'flaot64'; did you mean 'float64'"),
        ({"a": "bigint, b string"}, "expected the end, found ','"),
        ({"a": ""}, "expected a type for column 'a', found the end"),
        ({"a": None}, "a NoneType is no type for column 'a'; give for instance 'bigint', pyarrow.int64"),
        ({"a": dict}, "dict is no type for column 'a'"),
        ({"a": np.dtype("complex64")}, "is no type for column 'a'"),
        ({"a": np.dtype("datetime64")}, "is no type for column 'a'"),
        ({"a": pd.PeriodDtype("D")}, "a PeriodDtype is no type for column 'a'"),
        ({"a": pl.Object}, "is no type for column 'a'"),
        ({3: "bigint"}, "a column's name must be text, not int"),
        ({"a": pa.struct([("x", pa.int64())])}, "column 'a' is struct<x: int64>"),
        ({}, "output_schema is empty"),
    ],
)
def test_what_is_no_type(given: Any, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema_of(given, "output_schema")
    assert said in str(caught.value)


def test_numpy_says_it_in_letters() -> None:
    given = {"id": "<i8", "p": ">f4", "b": "|b1", "t": "<M8[us]", "s": "<U5", "n": "bigint not null"}
    schema = schema_of(given, "output_schema")
    assert schema is not None and schema.arrow.types == [
        pa.int64(),
        pa.float32(),
        pa.bool_(),
        pa.timestamp("us"),
        pa.string(),
        pa.int64(),
    ]
    whole = np.dtype([("id", "<i8"), ("p", "<f4"), ("v", "<f8", 3), ("s", "S4")])
    assert _types(whole) == {"id": pa.int64(), "p": pa.float32(), "v": pa.list_(pa.float64(), 3), "s": pa.binary()}
    for wrong in ({"a": "<c8"}, {"a": "<q9z"}, {"a": "<V8"}):
        with pytest.raises(SchemaError, match="column 'a'"):
            schema_of(wrong, "output_schema")
    with pytest.raises(SchemaError, match="found '<'; numpy's is 'int64' here"):
        schema_of("id <i8", "output_schema")
    with pytest.raises(ConfigError):
        schema_of(np.dtype("i8"), "output_schema")


def test_what_is_no_schema() -> None:
    for given in (3, ["id bigint"], dict, pd.DataFrame):
        assert dtypes.items_of(given) is None
        with pytest.raises(ConfigError, match="a dict of columns and types"):
            schema_of(given, "output_schema")  # type: ignore[arg-type]


def test_text_has_the_same_words() -> None:
    assert Schema.parse("a float64, b int64, c str, d timestamp[ns]").arrow == pa.schema(
        [("a", pa.float64()), ("b", pa.int64()), ("c", pa.string()), ("d", pa.timestamp("ns"))]
    )
    assert [field.unsized for field in Schema.parse("a timestamp, b timestamp[us], c timestamp(6)")] == [True, False, False]
    with pytest.raises(SchemaError, match=r"takes \[s\], \[ms\], \[us\] or \[ns\]"):
        Schema.parse("a timestamp[m]")
