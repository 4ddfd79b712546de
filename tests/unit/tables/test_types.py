"""MaxCompute's types and CREATE TABLE."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SchemaError
from akrunner.tables import types
from akrunner.tables.ddl import create_sql, parse_create

_TYPES = {
    "bigint": pa.int64(),
    "Int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "varchar(10)": pa.string(),
    "char(3)": pa.string(),
    "binary": pa.binary(),
    "datetime": pa.timestamp("ms"),
    "timestamp": pa.timestamp("ns"),
    "date": pa.date32(),
    "decimal": pa.decimal128(38, 18),
    "decimal( 10 , 2 )": pa.decimal128(10, 2),
    "decimal(54,18)": pa.decimal256(54, 18),
    "array<array<bigint>>": pa.list_(pa.list_(pa.int64())),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "struct<a:bigint,`b c`:array<string>>": pa.struct([("a", pa.int64()), ("b c", pa.list_(pa.string()))]),
}


@pytest.mark.parametrize("words, arrow", _TYPES.items())
def test_types_go_there_and_back(words: str, arrow: pa.DataType) -> None:
    field = types.field("c", words, "why")
    assert field.type == arrow and types.comment_of(field) == "why"
    again = types.field("c", types.words_of(field))
    assert (again.type, types.words_of(again)) == (arrow, types.words_of(field))


@pytest.mark.parametrize(
    "words",
    [
        "",
        "biggint",
        "array<",
        "array<bigint",
        "decimal(0)",
        "decimal(3,4)",
        "map<string>",
        "bigint x",
        "varchar(²)",
        f"varchar({'9' * 5000})",
        f"decimal({'9' * 5000}, 2)",
        "a" * 9999,
    ],
)
def test_what_is_no_type(words: str) -> None:
    with pytest.raises(SchemaError, match="column 'c': .* is no type of MaxCompute's; known are tinyint"):
        types.field("c", words)
    with pytest.raises(SchemaError):
        types.parse_type("array<" * 5000)


def test_columns_of_any_table_become_a_table_of_maxcompute() -> None:
    schema = pa.schema(
        [
            ("U", pa.uint8()),
            ("d", pa.dictionary(pa.int8(), pa.large_string())),
            ("l", pa.list_(pa.float16(), 2)),
            ("t", pa.timestamp("us")),
        ]
    )
    columns = types.as_columns(schema)
    assert [(field.name, types.words_of(field)) for field in columns] == [
        ("u", "smallint"),
        ("d", "string"),
        ("l", "array<float>"),
        ("t", "timestamp"),
    ]
    with pytest.raises(SchemaError, match="column 'x' is duration.*CAST"):
        types.as_columns(pa.schema([("x", pa.duration("s"))]))


def test_create_table_is_read_and_written() -> None:
    made = parse_create(
        """CREATE TABLE IF NOT EXISTS p.`T` (
             `Hour` STRING NOT NULL COMMENT 'it''s; (a, "b")', -- of the day
             f1 decimal(10,2), v varchar(7), m map<string,array<bigint>> comment "m",
             PRIMARY KEY (f1)
           ) comment 'all
           of it' partitioned by (pt string comment 'day', `hh` bigint)
           STORED AS ALIORC TBLPROPERTIES ("transactional"="true") LIFECYCLE 30"""
    )
    assert made.table == "p.T" and made.if_not_exists and made.info is not None
    assert made.info.partitions == ("pt", "hh") and made.info.lifecycle == 30
    assert made.info.columns.names == ["hour", "f1", "v", "m"] and not made.info.columns.field("hour").nullable
    for lines in (True, False):
        again = parse_create(create_sql("p.t", made.info, lines)[:-1]).info
        assert again is not None and again == made.info
        assert [types.words_of(one) for one in again.columns] == [types.words_of(one) for one in made.info.columns]
        assert [types.comment_of(one) for one in again.columns] == ['it\'s; (a, "b")', "", "", "m"]


def test_create_table_like_and_as() -> None:
    assert parse_create("create table a like b lifecycle 3").like == "b"
    assert parse_create("create table a lifecycle 3 as select 1").select == "select 1"
    assert (
        parse_create("create table a as with x as (select 1) select * from x").select == "with x as (select 1) select * from x"
    )


@pytest.mark.parametrize(
    "text, why",
    [
        ("create table t", "its columns were expected"),
        ("create table t ()", "the name of a column was expected"),
        ("create table t (a)", "the type of the column a was expected"),
        ("create table t (a bigint", "COMMENT or NOT NULL was expected"),
        ("create table t (a bigint, A string)", "two columns are called 'A'|two columns are called 'a'"),
        ("create table t (a bigint) partitioned by (a string)", "two columns are called 'a'"),
        ("create table t (a bigint) partition by (b string)", "PARTITIONED BY"),
        ("create table t (a bigint) lifecycle soon", "a number of days was expected"),
        ("create table t (a bigint) as select 1", "leave out those in parentheses"),
        ("create table t (a bigint) comment 'x", "never closed"),
        ("create view t as select 1", "TABLE was expected"),
    ],
)
def test_what_is_no_create_table(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_create(text)
