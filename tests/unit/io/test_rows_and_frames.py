"""Tables of pandas, numpy, databases, and rows of an iterable."""

from __future__ import annotations

import dataclasses
import datetime
import io
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io import frames
from akrunner.io.sources import open_source
from akrunner.running.result import Result
from akrunner.schema import Schema

PAIR = Schema.parse("a bigint, b bigint")


def read(source: Any, **options: Any) -> pa.Table:
    table = open_source(source, read_examples=read_examples, **options)
    return pa.Table.from_batches(list(table.batches()), table.schema)


def cursor(query: str) -> Any:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a INT, b TEXT)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, str(i)) for i in range(1500)])
    return connection.execute(query)


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda: pd.DataFrame({"a": [1]}, index=pd.Index([7], name="i")), [{"i": 7, "a": 1}]),
        (lambda: pd.DataFrame({"p": [1], "q": ["x"], "a": [2]}).set_index(["p", "q"]), [{"p": 1, "q": "x", "a": 2}]),
        (lambda: pd.DataFrame([[1, 2]]), [{"0": 1, "1": 2}]),
        (lambda: pd.DataFrame({"a": pd.Categorical([3, 3])}), [{"a": 3}, {"a": 3}]),
        (lambda: pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), [{"a": 1}, {"a": None}]),
        (lambda: pd.DataFrame({"a": pd.arrays.SparseArray([0, 5])}), [{"a": 0}, {"a": 5}]),
        (lambda: pd.Series([1], name="s"), [{"s": 1}]),
        (lambda: pd.read_csv(io.StringIO("a\n1\n2\n3\n"), chunksize=2), [{"a": 1}, {"a": 2}, {"a": 3}]),
        (lambda: cursor("SELECT * FROM t LIMIT 1"), [{"a": 0, "b": "0"}]),
        (lambda: np.array([(1, 2.5)], dtype=[("a", "i8"), ("b", "f8")]), [{"a": 1, "b": 2.5}]),
        (lambda: {"a": np.ma.masked_array([1, 2], [False, True])}, [{"a": 1}, {"a": None}]),
        (lambda: [{"a": 1}, {"b": 2}], [{"a": 1, "b": None}, {"a": None, "b": 2}]),
    ],
)
def test_taken(make: Callable[[], Any], want: Any) -> None:
    assert read(make()).to_pylist() == want


def raising(rows: int) -> Iterator[Any]:
    yield from ({"a": 1} for _ in range(rows))
    raise KeyError("boom")


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (lambda: pd.DataFrame({"a": [1]}, index=pd.Index([7], name="a")), {}, "index and a column are both called 'a'"),
        (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "two columns of the frame are called 'a'"),
        (lambda: pd.DataFrame({"a": [1, "x"]}), {}, "column 'a' of the frame"),
        (lambda: pd.DataFrame([[1]], index=pd.MultiIndex.from_tuples([(1, 2)])), {}, "level without a name"),
        (lambda: pd.Series([1]), {}, r"give series.to_frame\('x'\)"),
        (
            lambda: pd.read_csv(io.StringIO("a\n1\n2\n1.5\n"), chunksize=2),
            {},
            "column 'a' of frame 1 of the iterable is double, and cannot become int64, as in the first.*input_schema=",
        ),
        (
            lambda: pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}),
            {},
            "column 'a' of the polars frame has the type Object",
        ),
        (lambda: pl.DataFrame({"a": pl.Series([1], dtype=pl.Int128)}), {}, "column 'a' of .* has the type Int128, .* cast it"),
        (
            lambda: pd.DataFrame({"a": pd.cut([1, 2], 2)}),
            {},
            r"column 'a' of the frame has categories of interval.*frame\['a'\].astype\(str\)",
        ),
        (lambda: cursor("SELECT a, a FROM t"), {}, "two columns of the query"),
        (lambda: cursor("INSERT INTO t VALUES (1, 'x')"), {}, "execute a SELECT"),
        (lambda: cursor("SELECT a FROM t UNION ALL SELECT 'x'"), {}, "row 1500 does not fit"),
        (lambda: np.zeros((2, 2)), {}, "no names for its columns"),
        (lambda: {"a": [1], "b": [1, 2]}, {}, r"equally long columns \(a: 1, b: 2 rows\)"),
        (lambda: {"a": "xyz"}, {}, "column 'a' of the dict is str"),
        (lambda: {}, {}, "no columns"),
        (lambda: raising(0), {}, "KeyError: 'boom'"),
        (lambda: raising(3000), {}, "cannot read the iterable: KeyError: 'boom'"),
        (lambda: [{"a": 1}] * 2000 + [{"a": 1, "b": 2}], {}, "row 2000 .*a column 'b' that those before"),
        (lambda: [{"a": 1}] * 2000 + [{"a": 1.5}], {}, "row 2000 does not fit .*1.5"),
        (lambda: [{"a": 1}], {"input_schema": PAIR}, "no row of the iterable has a column 'b'"),
        (lambda: [(1, 2)] * 9 + [(1,)], {"input_schema": PAIR}, "row 9 does not fit .*it has 1 values"),
        (lambda: [(1, 2), {"a": 1, "b": 2}], {"input_schema": PAIR}, "all dicts, or all tuples"),
        (lambda: iter(["12", "34"]), {"input_schema": PAIR}, "all dicts, or all tuples"),
        (lambda: [pa.record_batch({"a": [1]}), pa.record_batch({"b": [1]})], {}, "batch 1 of the iterable has other columns"),
        (lambda: b"x.csv", {}, "bytes is not a table"),
        (lambda: raising, {}, "function is not a table .*call it"),
        (lambda: "", {}, "is no path"),
        (lambda: "a\0.csv", {}, "is no path"),
    ],
)
def test_refused(make: Callable[[], Any], options: Any, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        read(make(), **options)


def test_an_error_of_the_source_is_not_the_selects() -> None:
    with pytest.raises(SourceError, match="cannot read the iterable: KeyError: 'boom'"):
        read(raising(3000), select="a + 1 AS b")


@pytest.mark.parametrize("source", [pa.table({"x": [1.0, 1e300]}), iter([{"x": 1.0}, {"x": 1e300}]), iter([(1.0,), (1e300,)])])
def test_a_double_that_no_float_holds_is_refused(source: Any) -> None:
    with pytest.raises(SourceError, match="row 1.*1e\\+300 would become infinite"):
        read(source, input_schema=Schema.parse("x float"))


def test_categories_of_polars() -> None:
    values = ["b", "a", None, "b"]
    got = read(pl.DataFrame({"c": pl.Series(values, dtype=pl.Categorical), "e": pl.Series(values, dtype=pl.Enum(["a", "b"]))}))
    assert got["c"].to_pylist() == got["e"].to_pylist() == values
    codec.encode_examples(got.combine_chunks().to_batches()[0])


@pytest.mark.parametrize(
    ("index", "want"),
    [
        (["x", "y"], ["x", "y"]),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]),
        (pd.Index([0.5, 1.5]), [0.5, 1.5]),
        (pd.RangeIndex(3, 5), None),
        ([9, 5], None),
        (pd.Index([9, 5], dtype="Int64"), None),
    ],
)
def test_an_index_without_a_name(index: Any, want: Any) -> None:
    """Row numbers of pandas are no column; anything else is."""
    got = read(pd.DataFrame({"v": [1, 2]}, index=index))
    assert got.column_names == ["v"] if want is None else got["index"].to_pylist() == want
    assert read(pd.DataFrame(columns=["v"])).column_names == ["v"]
    if want is not None:
        with pytest.raises(SourceError, match="index and a column are both called 'index'; rename one"):
            read(pd.DataFrame({"index": [1, 2]}, index=index))


def test_no_integer_of_a_frame_changes() -> None:
    """Doubles stand for those with nulls that they can hold, as pandas has it."""
    columns = {
        "large": pa.array([2**53 + 1, None, -(2**63)]),
        "u": pa.array([2**64 - 1, None, 0], pa.uint64()),
        "whole": pa.array([2**53 + 1, 0, 1]),
        "small": pa.array([2**53, None, 1]),
        "none": pa.nulls(3, pa.int64()),
    }
    frame = frames.to_pandas(pa.table(columns))
    assert frame.dtypes.astype(str).to_dict() == {
        "large": "Int64",
        "u": "UInt64",
        "whole": "int64",
        "small": "float64",
        "none": "float64",
    }
    assert frame["large"].to_list() == [2**53 + 1, pd.NA, -(2**63)] and frame["u"].to_list() == [2**64 - 1, pd.NA, 0]
    assert Result(pa.table(columns), None, (), cast(Any, None), None).to_pandas().dtypes.equals(frame.dtypes)
    assert frames.from_pandas(frame)["u"].to_pylist() == [2**64 - 1, None, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "later"),
    [
        (np.float32(1), 0.1),
        (np.float32(1), np.float64(0.1)),
        ([np.float32(1)], [0.1]),
        (np.float32([1]), np.array([0.1])),
        ({"y": np.float32(1)}, {"y": 0.1}),
    ],
    ids=str,
)
def test_a_double_loses_no_digits_to_rows_of_floats(first: Any, later: Any) -> None:
    rows = [{"x": first}] * 20_000
    with pytest.raises(
        SourceError, match="row 20000 does not fit .*0.1 would be 0.10000000149|row 20000 .* a value in it would be"
    ):
        read([*rows, {"x": later}])
    assert len(read([*rows, {"x": None}])) == len(rows) + 1
    if not isinstance(first, dict):
        kind = "array<float>" if isinstance(first, (list, np.ndarray)) else "float"
        assert len(read([*rows, {"x": later}], input_schema=Schema.parse(f"x {kind}"))) == len(rows) + 1


@pytest.mark.parametrize("make", [pd.DataFrame, pa.record_batch], ids=["frames", "batches"])
def test_a_double_loses_no_digits_to_tables_of_floats(make: Callable[[Any], Any]) -> None:
    source = [make({"x": np.float32([1])}), make({"x": np.array([0.1])})]
    words = "column 'x' of (frame|batch) 1 of the iterable is double, and cannot become float, as in the first: 0.1 would be 0.10000000149"
    with pytest.raises(SourceError, match=words):
        read(source)
    for seconds in (None, 1.0):
        wide = read(source, input_schema=Schema.parse("x double"), flush_seconds=seconds)
        assert wide.to_pylist() == [{"x": 1}, {"x": 0.1}]


@pytest.mark.parametrize("seconds", [None, 1.0])
def test_columns_of_later_tables_go_by_name(seconds: Any) -> None:
    assert read(
        [pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [4], "a": [3]})], flush_seconds=seconds
    ).to_pylist() == [
        {"a": 1, "b": 2},
        {"a": 3, "b": 4},
    ]
    with pytest.raises(SourceError, match="batch 1 of the iterable has other columns .*input_schema= says which to take"):
        read([pa.record_batch({"a": [1]}), pa.record_batch({"a": [1], "b": [1]})], flush_seconds=seconds)
    more = [pa.record_batch({"a": [1]}), pa.record_batch({"b": [1], "a": [2]})]
    assert read(more, input_schema=Schema.parse("a bigint"), flush_seconds=seconds).to_pylist() == [{"a": 1}, {"a": 2}]


@dataclasses.dataclass
class Place:
    lat: float
    lon: float


class Named(NamedTuple):
    lat: float
    lon: float


def of_sqlite() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute("SELECT 1.0 AS lat, 3.0 AS lon UNION ALL SELECT 2.0, 4.0")


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.DataFrame({"lat": [1.0, 2.0], "lon": [3.0, 4.0]}).itertuples(index=False),
        lambda: [Named(1.0, 3.0), Named(2.0, 4.0)],
        lambda: [Place(1.0, 3.0), Place(2.0, 4.0)],
        lambda: [Place(1.0, 3.0), {"lon": 4.0, "lat": 2.0}],
        lambda: of_sqlite().fetchall(),
        of_sqlite,
    ],
    ids=["itertuples", "named tuples", "dataclasses", "mixed", "rows of SQLite", "its cursor"],
)
@pytest.mark.parametrize("seconds", [None, 1.0])
def test_rows_that_name_their_values_go_by_name(make: Callable[[], Any], seconds: Any) -> None:
    want = [{"lat": 1.0, "lon": 3.0}, {"lat": 2.0, "lon": 4.0}]
    assert read(make(), flush_seconds=seconds).to_pylist() == want
    asked = read(make(), input_schema=Schema.parse("lon double, lat double"), flush_seconds=seconds)
    assert asked.column_names == ["lon", "lat"] and asked.to_pylist() == want


def test_names_of_rows_that_do_not_say_enough() -> None:
    with pytest.raises(SourceError, match=r"no row of the iterable has a column 'x' \(the first has lat, lon\)"):
        read([Named(1.0, 3.0)], input_schema=Schema.parse("lat double, x double"))
    with pytest.raises(SourceError, match="rows of tuple do not name their columns"):
        read([(1, 2)])
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    with pytest.raises(SourceError, match="two columns of a row are called 'b'; name them apart"):
        read(connection.execute("SELECT 1 AS b, 2 AS b").fetchall())


def test_a_cursor_rounds_what_it_was_asked_to() -> None:
    made = sqlite3.connect(":memory:").execute("SELECT 0.1 AS x, 0.1 AS y")
    assert read(made, input_schema=Schema.parse("x float, y double")).to_pylist() == [{"x": 0.10000000149011612, "y": 0.1}]


def test_a_cursor_whose_rows_are_dicts() -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = lambda cursor, row: dict(zip([one[0] for one in cursor.description], row))
    assert read(connection.execute("SELECT 1 AS b, 'x' AS a")).to_pylist() == [{"b": 1, "a": "x"}]
