"""What errors advise is right: done as it is said, the column crosses, and no other is lost."""

from __future__ import annotations

import decimal
import re
from typing import Any

import pyarrow as pa
import pytest

from akrunner.codec import encode_examples, read_examples
from akrunner.errors import DataError, SchemaError
from akrunner.io.sources import open_source
from akrunner.schema import Schema

REFUSED = {
    "dec": pa.array([decimal.Decimal("1.5")]),
    "struct": pa.array([{"x": 1}]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "interval": pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    "dictionary": pa.array([1]).dictionary_encode(),
}


@pytest.mark.parametrize("column", ["v", "order", "a b", 'a"b', "Straße"])
@pytest.mark.parametrize("kind", list(REFUSED))
def test_a_refused_type(kind: str, column: str) -> None:
    table = pa.table({"id": pa.array([1]), column: REFUSED[kind]})
    with pytest.raises(SchemaError, match=r"select= \(--select\): ") as caught:
        Schema.from_arrow(table.schema)
    found = re.search(r"\* REPLACE \(.*\)", str(caught.value).partition(", or take its fields")[0])
    assert found is not None
    select = found[0]
    schema = Schema.from_arrow(open_source(table, read_examples=read_examples, select=select).schema)
    assert schema.names == ["id", column]


@pytest.mark.parametrize(
    "value", [pa.array([2**64 - 1], pa.uint64()), pa.array([decimal.Decimal(10) ** 20], pa.decimal128(30, 0))]
)
def test_an_integer_that_does_not_fit(value: pa.Array) -> None:
    table = pa.table({"id": pa.array([1]), "n": value})
    with pytest.raises(DataError, match="does not fit a signed 64-bit integer") as caught:
        encode_examples(table.to_batches()[0])
    select = str(caught.value).partition("of it: ")[2]
    source = open_source(table, read_examples=read_examples, select=select)
    assert next(source.batches()).to_pylist() == [{"id": 1, "n": str(value[0])}]


def test_types_of_pandas() -> None:
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1], "p": pandas.period_range("2026-01", periods=1, freq="M")})
    with pytest.raises(SchemaError, match=r"frame\['p'\].astype\(str\) in its place, or frame\['p'\].dt.to_timestamp\(\)"):
        Schema.from_arrow(open_source(frame, read_examples=read_examples).schema)
    for mended in (frame.assign(p=frame["p"].astype(str)), frame.assign(p=frame["p"].dt.to_timestamp())):
        assert Schema.from_arrow(open_source(mended, read_examples=read_examples).schema).names == ["a", "p"]
