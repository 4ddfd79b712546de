"""`odps://project/tables/t/pt=v?start=0&end=10`."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.tables.names import TableName, is_table


@pytest.mark.parametrize(
    "text, project, table, partition, rows",
    [
        ("odps://p/tables/t", "p", "t", (), (None, None)),
        ("ODPS://P_1/tables/T/", "p_1", "t", (), (None, None)),
        ("odps://p/tables/t/PT=a/hh=1", "p", "t", (("pt", "a"), ("hh", "1")), (None, None)),
        ("odps://p/tables/t/pt=a/b/hh='1'", "p", "t", (("pt", "a/b"), ("hh", "1")), (None, None)),
        ("odps://p/tables/t/pt=a=b c%2f..", "p", "t", (("pt", "a=b c%2f.."),), (None, None)),
        ("odps://p/tables/t?start=3&end=10", "p", "t", (), (3, 10)),
        ("odps://p/tables/t/pt=..?end=0", "p", "t", (("pt", ".."),), (None, 0)),
        ("t", "demo", "t", (), (None, None)),
        ("q.t/pt=1?start=2", "q", "t", (("pt", "1"),), (2, None)),
        ("t/pt=odps://x", "demo", "t", (("pt", "odps://x"),), (None, None)),
    ],
)
def test_what_names_say(text: str, project: str, table: str, partition: object, rows: object) -> None:
    name = TableName.parse(text, "demo")
    assert (name.project, name.table, name.partition, (name.start, name.end)) == (project, table, partition, rows)
    assert name.uri == text == str(name)


@pytest.mark.parametrize(
    "text, why",
    [
        ("odps://p/t", "it must be odps://project/tables/name"),
        ("odps://p/tables", "it must be odps://"),
        ("odps:///tables/t", "no name of a project"),
        ("odps://../tables/t", "no name of a project"),
        ("odps://p/tables/..", "no name of a table"),
        ("odps://p/tables/%2e%2e", "no name of a table"),
        ("odps://p/tables/a b", "no name of a table"),
        ("odps://p/tables/t\0", "a NUL byte"),
        ("s3://p/tables/t", "it must begin with odps://"),
        ("odps://p/tables/t/nope", "write key=value"),
        ("odps://p/tables/t/pt=", "has no value"),
        ("odps://p/tables/t/pt=1/PT=2", "names the partition column pt twice"),
        ("odps://p/tables/t?start=a", "must be a number of a row"),
        ("odps://p/tables/t?start=-1", "must be a number of a row"),
        ("odps://p/tables/t?start=4&end=2", "comes before its start"),
        ("odps://p/tables/t?start=0&start=1", "says start= twice"),
        ("odps://p/tables/t?from=4", "not 'from'"),
        ("odps://p/tables/t/pt=" + "x" * 300, "longer than 200 bytes"),
        ("t", "it says no project"),
        ("a.b.c", "no name of a project"),
        ("", "it says no project"),
    ],
)
def test_what_is_no_name(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match="invalid odps table path") as told:
        TableName.parse(text)
    assert why in str(told.value)


def test_a_name_is_the_same_whichever_rows_it_asks_for() -> None:
    name = TableName.parse("odps://p/tables/t/a=1/b=2?start=1&end=3")
    assert name.same(TableName.parse("P.T/b=2/a=1")) and not name.same(TableName.parse("p.t/a=1"))
    assert name.whole.uri == "odps://p/tables/t" and name.sql == "p.t"
    assert name.at((("a", "x/y"),)).uri == "odps://p/tables/t/a=x/y"
    assert [name.rows(count) for count in (10, 2, 0)] == [(1, 3), (1, 2), (0, 0)]
    assert is_table("Odps://x") and not is_table("odps") and not is_table(3)
