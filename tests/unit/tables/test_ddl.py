"""A CREATE TABLE becomes what it makes, and what a table is becomes its CREATE TABLE."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SchemaError
from akrunner.tables import types
from akrunner.tables.ddl import Create, check_info, column_sql, columns_of, create_sql, parse_create
from akrunner.tables.sqltext import Words
from akrunner.tables.store import TableInfo

EVERYTHING = """create table t (A bigint not null comment 'it''s', b struct<`x y`:bigint,c:array<decimal(10,2)>>, `select` varchar(10),
    m map<string,bigint> null) comment 'of
all' partitioned by (DT string comment 'day', n bigint) lifecycle 3"""


def test_everything_a_table_can_be_is_read() -> None:
    info = parse_create(EVERYTHING).info
    assert info is not None
    assert info.columns.names == ["a", "b", "select", "m"]
    assert [one.nullable for one in info.columns] == [False, True, True, True]
    assert [types.comment_of(one) for one in info.columns] == ["it's", "", "", ""]
    assert [types.words_of(one) for one in info.columns][2:] == ["varchar(10)", "map<string,bigint>"]
    assert (info.partitions, info.partition_types) == (("dt", "n"), ("string", "bigint"))
    assert (info.comment, info.lifecycle) == ("of\nall", 3)


@pytest.mark.parametrize("lines", [True, False])
def test_a_table_comes_back_from_its_create_table(lines: bool) -> None:
    info = parse_create(EVERYTHING).info
    assert info is not None
    text = create_sql("p.t", info, lines)
    assert text.endswith(";") and ("\n" in text) == lines
    again = parse_create(text.removesuffix(";"))
    assert again == Create("p.t", info, lifecycle=3, comment="of\nall")
    assert again.info is not None and again.info.columns.equals(info.columns, check_metadata=True)


def test_a_table_is_written_as_people_write_it() -> None:
    info = TableInfo(pa.schema([("a", pa.int64()), ("from", pa.string())]), ("dt",), "it's", 7)
    assert create_sql("t", info) == (
        "CREATE TABLE t (\n    a BIGINT,\n    `from` STRING\n)\nCOMMENT 'it\\'s'\nPARTITIONED BY (dt STRING)\nLIFECYCLE 7;"
    )
    assert create_sql("t", TableInfo(pa.schema([("a", pa.int64())])), lines=False) == "CREATE TABLE t (a BIGINT);"


def test_names_in_a_struct_keep_their_case() -> None:
    assert column_sql(pa.field("a", pa.struct([("Xy", pa.int64())]), nullable=False)) == "a struct<Xy:bigint> NOT NULL"


def test_partition_columns_that_are_all_texts_have_no_types_of_their_own() -> None:
    info = parse_create("create table t (a bigint) partitioned by (dt string, hh string)").info
    assert info is not None and info.partition_types == ()


@pytest.mark.parametrize(
    "text, create",
    [
        ("create table t like p.u lifecycle 5", Create("t", like="p.u", lifecycle=5)),
        ("create table if not exists `p`.`t` like u", Create("p.t", if_not_exists=True, like="u")),
        ("create table t as select 1 a", Create("t", select="select 1 a")),
        (
            "CREATE TABLE t LIFECYCLE 3 COMMENT 'c' AS\nWITH x AS (SELECT 1) SELECT * FROM x",
            Create("t", select="WITH x AS (SELECT 1) SELECT * FROM x", lifecycle=3, comment="c"),
        ),
        ("create table t select a from u", Create("t", select="select a from u")),
    ],
)
def test_tables_that_are_made_of_others(text: str, create: Create) -> None:
    assert parse_create(text) == create


@pytest.mark.parametrize(
    "clause",
    [
        "stored as orc",
        "tblproperties ('transactional'='true', 'x'='(y')",
        "row format serde 'x' with serdeproperties ('a'='b')",
        "clustered by (a) sorted by (a) into 4 buckets",
        "location 'oss://b/c'",
    ],
)
def test_how_a_table_is_stored_changes_nothing(clause: str) -> None:
    made = parse_create(f"create external table t (a bigint) {clause} comment 'c' lifecycle 2")
    assert made.info == TableInfo(pa.schema([("a", pa.int64())]), (), "c", 2)


def test_a_primary_key_and_a_default_are_no_columns() -> None:
    info = parse_create("create table t (a bigint default 1 comment 'x', b string, primary key (a, b))").info
    assert info is not None and info.columns.names == ["a", "b"] and types.comment_of(info.columns.field("a")) == "x"


@pytest.mark.parametrize("value", ["-1", "1.5", "'it''s, (x'", "null", "cast((1 + 2) as bigint)", "current_timestamp()"])
def test_the_value_of_a_default_is_left_out(value: str) -> None:
    info = parse_create(f"create table t (a bigint default {value} not null comment 'x', b string default {value})").info
    assert info is not None and info.columns.names == ["a", "b"]
    assert types.comment_of(info.columns.field("a")) == "x" and not info.columns.field("a").nullable


@pytest.mark.parametrize(
    "text, why",
    [
        ("create table t (a bigint default)", "a value was expected behind DEFAULT"),
        ("create table t (a bigint default (1, b bigint)", "at its end"),
        ("create view t (a bigint)", "at 'view': TABLE was expected"),
        ("create table t", "its columns were expected"),
        ("create table t (a)", "the type of the column a was expected"),
        ("create table t (a bigint", "at its end"),
        ("create table t (a bigint, primary key (a", "a parenthesis is not closed"),
        ("create table t (a bigint) nonsense", "COMMENT, PARTITIONED BY, LIFECYCLE or AS was expected"),
        ("create table t (a bigint) as select 1", "leave out those in parentheses"),
        ("create table t (a bigint check b)", "no type of MaxCompute's"),
        ("create table t (a bigint comment 'x' unique)", "behind the type of the column a, COMMENT or NOT NULL was expected"),
        ("create table t (a bigint, A string)", "two columns are called 'a'"),
        ("create table t (a bigint) partitioned by (a string)", "two columns are called 'a'"),
        ("create table t (a bigint) partitioned by (b double)", "partitioned by b, a double.* write b STRING"),
        ("create table t (a bigint) lifecycle x", "a number of days was expected"),
        (f"create table t (a bigint) lifecycle {'9' * 5000}", "a number of days was expected .18 digits at most"),
        (
            f"create table t (a bigint) clustered by (a) into {'9' * 5000} buckets",
            "a number of buckets was expected .18 digits",
        ),
        ("create table t like u comment 'x'", "nothing more was expected"),
    ],
)
def test_what_makes_no_table_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_create(text)


@pytest.mark.parametrize(
    "info, why",
    [
        (TableInfo(pa.schema([]), ("dt",)), "no column of its own"),
        (TableInfo(pa.schema([("", pa.int64())])), "a column has no name"),
        (TableInfo(pa.schema([("a", pa.int64()), ("A", pa.int64())])), "two columns are called 'A'"),
    ],
)
def test_columns_no_table_can_have(info: TableInfo, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_info(info)


def test_a_type_maxcompute_lacks_cannot_be_written() -> None:
    with pytest.raises(SchemaError, match="column 'a' is duration"):
        create_sql("t", TableInfo(pa.schema([("a", pa.duration("s"))])))


def test_columns_alone_are_read_up_to_their_parenthesis() -> None:
    words = Words("a decimal(10,2), b array<string> comment 'x') rest", "x")
    assert [(one.name, one.type) for one in columns_of(words)] == [("a", pa.decimal128(10, 2)), ("b", pa.list_(pa.string()))]
    assert words.rest() == "rest"
