"""PARTITION (...) and names in parentheses are read from a statement, and a table is described in words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError
from akrunner.tables.clauses import columns_of, described, is_query, names_in, partition_of
from akrunner.tables.names import TableName
from akrunner.tables.sqltext import Words
from akrunner.tables.store import TableInfo
from akrunner.tables.types import field

NAME = TableName.parse("odps://demo/tables/t")


@pytest.mark.parametrize(
    "text, found",
    [
        ("partition (dt='1')", [("dt", "1")]),
        ('PARTITION (DT="a/b", hh=2)', [("dt", "a/b"), ("hh", "2")]),
        ("partition (dt='1'/hh='2')", [("dt", "1"), ("hh", "2")]),
        ("partition (dt, hh='x')", [("dt", None), ("hh", "x")]),
        ("partition (`dt`=date '2026-01-31')", [("dt", "2026-01-31")]),
        ("partition (n=-7, m=+8)", [("n", "-7"), ("m", "8")]),
        ("partition (dt='it''s')", [("dt", "it's")]),
        ("partition (dt=today)", [("dt", "today")]),
    ],
)
def test_a_partition_is_its_columns_and_their_values(text: str, found: Any) -> None:
    words = Words(f"{text} rest", "x")
    assert partition_of(words, NAME) == found
    assert words.rest() == "rest"


@pytest.mark.parametrize(
    "text, why",
    [
        ("(dt='1')", "PARTITION was expected"),
        ("partition dt='1'", "\\( was expected"),
        ("partition ()", "the name of a partition column was expected"),
        ("partition (dt='1', DT='2')", "the partition column dt is there twice"),
        ("partition (dt=null)", "the partition column dt cannot be null"),
        ("partition (dt='')", "the partition column dt has no value"),
        ("partition (dt='" + "x" * 201 + "')", "longer than 200 bytes"),
        ("partition (dt=1+1)", "the value of the partition column dt is a constant"),
        ("partition (n=-x)", "a number was expected behind the sign"),
        ("partition (n=+)", "a number was expected behind the sign"),
        ("partition (dt=-é)", "a number was expected behind the sign"),
        ("partition (dt=)", "the value of the partition column dt is a constant"),
        ("partition (dt='1'", "the value of the partition column dt is a constant"),
    ],
)
def test_what_names_no_partition_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        partition_of(Words(text, "x"), NAME)


@pytest.mark.parametrize(
    "text, query",
    [("(select 1)", True), ("( WITH x as (select 1) select 1)", True), ("((select 1))", True), ("(a, b)", False)],
)
def test_a_query_in_parentheses_is_none_of_names(text: str, query: bool) -> None:
    assert is_query(Words(text, "x")) is query


def test_names_in_parentheses() -> None:
    words = Words("(A, `b c`) values", "x")
    assert names_in(words) == ["A", "b c"] and words.rest() == "values"
    for text, why in [("()", "the name of a column"), ("(a b)", "\\) was expected"), ("a", "\\( was expected")]:
        with pytest.raises(ConfigError, match=why):
            names_in(Words(text, "x"))


@pytest.mark.parametrize(
    "info, rows, said",
    [
        (TableInfo(pa.schema([("a", pa.int64())])), 1, "demo.t: 1 row, 1 column"),
        (
            TableInfo(pa.schema([("a", pa.int64()), ("b", pa.int64())]), ("dt", "hh"), "of all", 7),
            12345,
            "demo.t: 12,345 rows, 2 columns, partitioned by dt, hh, lifecycle 7 (nothing is deleted by it); of all",
        ),
        (TableInfo(pa.schema([("a", pa.int64())]), lifecycle=0), 0, "demo.t: 0 rows, 1 column, lifecycle 0 (nothing is deleted by it)"),
    ],
)  # fmt: skip
def test_a_table_in_a_line(info: TableInfo, rows: int, said: str) -> None:
    assert described(NAME, info, rows) == said


def test_columns_are_rows_with_those_of_partitions_last() -> None:
    columns = pa.schema([field("a", "varchar(3)", "first"), field("b", "bigint")])
    assert columns_of(TableInfo(columns, ("dt", "n"), partition_types=("string", "int"))).to_pylist() == [
        {"column": "a", "type": "varchar(3)", "comment": "first"},
        {"column": "b", "type": "bigint", "comment": ""},
        {"column": "dt", "type": "string", "comment": "partition"},
        {"column": "n", "type": "int", "comment": "partition"},
    ]
    assert columns_of(TableInfo(pa.schema([]))).schema.types == [pa.string()] * 3
