"""INSERT and CREATE TABLE AS: which rows of a query go to which column and partition, all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from akrunner.errors import AkrunnerError, ConfigError, SinkError, SourceError
from akrunner.tables.ddl import parse_create
from akrunner.tables.insert import Insert, create_as, inserted, several
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.sqltext import Words
from akrunner.tables.store import TableStore
from tests.unit.tables.conftest import made, put, rows


def store_of(store: LocalTables) -> Callable[[str], TableStore]:
    return lambda project: store


def insert(
    store: LocalTables,
    name: TableName,
    query: str,
    *keys: tuple[str, str | None],
    columns: list[str] | None = None,
    overwrite: bool = False,
) -> list[int]:
    return inserted([Insert(name, keys, columns, query, overwrite)], store_of(store), "demo")


@pytest.mark.slow
def test_columns_go_by_their_places(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint, b string)")
    assert insert(plain, name, "values (1, 'x'), (2, null)") == [2]
    assert insert(plain, name, "select 'z', 4", columns=["B", "a"]) == [1]
    assert insert(plain, name, "select 'y' as a", columns=["b"]) == [1]
    assert rows(plain, name) == [(1, "x"), (2, None), (4, "z"), (None, "y")]


def test_a_value_becomes_one_of_the_columns_type(plain: LocalTables) -> None:
    """A fraction is cut off and not rounded, also that of a text, and a number too long for a double is no other one."""
    values = [
        ("bigint", "1.9", 1),
        ("bigint", "-1.9", -1),
        ("int", "'1.9'", 1),
        ("bigint", "'9007199254740993'", 9007199254740993),
        ("double", "'0.5'", 0.5),
        ("string", "1.5", "1.5"),
        ("string", "true", "true"),
        ("boolean", "'true'", True),
        ("bigint", "null", None),
        ("array<bigint>", "array(1, 2)", [1, 2]),
    ]
    columns = ", ".join(f"c{number} {words}" for number, (words, _, _) in enumerate(values))
    name = made(plain, f"create table t ({columns})")
    insert(plain, name, f"select {', '.join(value for _, value, _ in values)}")
    assert rows(plain, name) == [tuple(kept for _, _, kept in values)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, value, why",
    [
        ("bigint", "'x'", "column a: the text 'x' is no BIGINT"),
        ("date", "'31.1.2026'", "column a: the text '31.1.2026' is no DATE; one is like '2020-01-31'"),
        ("boolean", "'maybe'", "is no BOOLEAN; one is 'true' or 'false'"),
    ],
)
def test_a_value_that_is_none_of_the_columns_type_writes_nothing(plain: LocalTables, words: str, value: str, why: str) -> None:
    name = made(plain, f"create table t (a {words})")
    with pytest.raises(ConfigError) as told:
        insert(plain, name, f"select null union all select {value}")
    assert why in str(told.value) and rows(plain, name) == []


def parted(store: LocalTables) -> TableName:
    return made(store, "create table t (a bigint) partitioned by (dt string, n bigint)")


@pytest.mark.slow
def test_rows_say_their_partition_where_the_statement_does_not(plain: LocalTables) -> None:
    name = parted(plain)
    put(plain, name.at((("dt", "x"), ("n", "7"))), a=[1])
    assert insert(plain, name, "values (2, 1), (3, 2), (4, 1)", ("dt", "x"), ("n", None)) == [3]
    assert insert(plain, name, "values (5, 'y/z', 3)") == [1]
    assert insert(plain, name, "values (1, 'y', 6)", columns=["n", "dt", "a"]) == [1]
    assert sorted(rows(plain, name, ["a", "dt", "n"])) == [
        (1, "x", 7),
        (2, "x", 1),
        (3, "x", 2),
        (4, "x", 1),
        (5, "y/z", 3),
        (6, "y", 1),
    ]


@pytest.mark.slow
def test_a_partition_that_gets_rows_is_replaced_and_others_stay(plain: LocalTables) -> None:
    name = parted(plain)
    for n in (1, 2):
        put(plain, name.at((("dt", "x"), ("n", str(n)))), a=[n])
    insert(plain, name, "values (3, 2)", ("dt", "x"), ("n", None), overwrite=True)
    assert rows(plain, name, ["a", "n"]) == [(1, 1), (3, 2)]
    insert(plain, name, "select a from t where a > 99", ("dt", "x"), ("n", "1"), overwrite=True)
    assert rows(plain, name, ["a", "n"]) == [(3, 2)], "no rows are in place of those that were there"


@pytest.mark.parametrize(
    "query, keys, more, why",
    [
        ("", (), {}, "insert: demo.t: SELECT or VALUES was expected behind it"),
        ("select 1", (("x", "1"),), {}, "insert: demo.t is partitioned by dt, n, not by x"),
        ("select 1", (("dt", "1"), ("n", "x")), {}, "the partition column n is bigint, and 'x' is none"),
        ("values (1, '1', 1)", (), {"overwrite": True}, "INSERT OVERWRITE TABLE demo.t PARTITION (dt, n) SELECT ..."),
        ("values (1, 2)", (("dt", "1"), ("n", "1")), {}, "takes 1 columns (a), and the query has 2"),
        ("select 1", (("dt", "1"),), {}, "takes 2 columns (a, n), and the query has 1"),
        ("select 1", (("dt", "1"), ("n", "1")), {"columns": ["b"]}, "has no column 'b' (it has a)"),
        ("values (1, null)", (("dt", "1"), ("n", None)), {}, "a row has no value of the partition column n"),
        ("values (1, '', 2)", (), {}, "the partition column dt has no value"),
    ],
)
def test_what_cannot_be_inserted_leaves_the_table_as_it_was(
    plain: LocalTables, query: str, keys: Any, more: Any, why: str
) -> None:
    name = parted(plain)
    put(plain, name.at((("dt", "1"), ("n", "1"))), a=[7])
    with pytest.raises(ConfigError) as told:
        insert(plain, name, query, *keys, **more)
    assert why in str(told.value) and rows(plain, name, ["a", "dt", "n"]) == [(7, "1", 1)]


def test_a_table_without_partitions_takes_none(plain: LocalTables) -> None:
    with pytest.raises(ConfigError, match="demo.t is partitioned by nothing, not by dt"):
        insert(plain, made(plain, "create table t (a bigint)"), "select 1", ("dt", "1"))
    with pytest.raises(SourceError, match="there is no table odps://demo/tables/nope"):
        insert(plain, TableName.parse("nope", "demo"), "select 1")


@pytest.mark.slow
def test_inserts_of_one_statement_read_what_was_there_before_and_count_together(plain: LocalTables) -> None:
    t, u = made(plain, "create table t (a bigint)", a=[1, 2]), made(plain, "create table u (a bigint)", a=[9])
    parts = [
        Insert(t, (), None, "select a * 10 from t union all select a from u", True),
        Insert(u, (), None, "select a from t where a > 1", False),
    ]
    assert inserted(parts, store_of(plain), "demo") == [3, 1]
    assert sorted(rows(plain, t)) == [(9,), (10,), (20,)] and rows(plain, u) == [(9,), (2,)]


def test_one_of_several_that_fails_takes_all_with_it(plain: LocalTables) -> None:
    t, u = made(plain, "create table t (a bigint)", a=[1]), made(plain, "create table u (a bigint)")
    with pytest.raises(AkrunnerError, match="'x' is no BIGINT"):
        inserted(
            [Insert(u, (), None, "select a from t", False), Insert(t, (), None, "select 'x'", True)], store_of(plain), "demo"
        )
    assert rows(plain, t) == [(1,)] and rows(plain, u) == []


def test_one_table_is_written_by_one_of_them(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint)")
    twice = [Insert(name, (), None, "select 1", False)] * 2
    with pytest.raises(ConfigError, match="is written by several INSERTs of one statement; .*UNION ALL"):
        inserted(twice, store_of(plain), "demo")
    assert rows(plain, name) == []


def test_several_partitions_of_one_table_are_several_places(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint) partitioned by (dt string)")
    parts = [Insert(name, (("dt", value),), None, f"select {value}", False) for value in ("1", "2")]
    assert inserted(parts, store_of(plain), "demo") == [1, 1]
    assert rows(plain, name, ["a", "dt"]) == [(1, "1"), (2, "2")]


@pytest.mark.parametrize(
    "text, each",
    [
        (
            "from x insert into t select a where b > 1 insert overwrite table u select c",
            ["insert into t select a from x where b > 1", "insert overwrite table u select c from x"],
        ),
        (
            "from (select a from y where insert_time > 0) v insert into t select a group by a order by a",
            ["insert into t select a from (select a from y where insert_time > 0) v group by a order by a"],
        ),
        (
            "from x insert into t select (select max(z) from w where z > 0), 'where' limit 1",
            ["insert into t select (select max(z) from w where z > 0), 'where' from x limit 1"],
        ),
    ],
)
def test_a_source_in_front_is_that_of_each_insert(text: str, each: list[str]) -> None:
    assert several(Words(text, "from")) == each


def test_a_source_in_front_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="INSERT was expected behind what FROM names"):
        several(Words("from x select a", "from"))


def created(store: LocalTables, text: str) -> TableName:
    create = parse_create(text)
    name = TableName.parse(create.table, "demo")
    create_as(create, name, store_of(store), "demo")
    return name


def test_a_table_made_by_a_query_has_its_columns_and_rows(plain: LocalTables) -> None:
    made(plain, "create table t (a bigint, b string)", a=[1, 2], b=["x", None])
    name = created(
        plain,
        "create table u comment 'c' lifecycle 3 as select a, count(*), B as `Two Words`, a from t group by a, b order by a",
    )
    info = plain.describe(name)
    assert info.columns.names == ["a", "_c1", "two words", "_c3"] and (info.comment, info.lifecycle) == ("c", 3)
    assert rows(plain, name) == [(1, 1, "x", 1), (2, 1, None, 2)]
    assert rows(plain, created(plain, "create table v as select a from t where false")) == []


def test_a_table_whose_query_fails_is_not_there(plain: LocalTables) -> None:
    made(plain, "create table t (a bigint)", a=[1])
    for text in ("select nope from t", "insert into t values (1)"):
        with pytest.raises(ConfigError):
            created(plain, f"create table u as {text}")
    with pytest.raises(SinkError, match="odps://demo/tables/t exists"):
        created(plain, "create table t as select 2 a")
    assert plain.tables("demo") == ["t"] and rows(plain, TableName.parse("t", "demo")) == [(1,)]
