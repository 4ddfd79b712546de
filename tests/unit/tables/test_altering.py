"""ALTER TABLE changes a table of this machine, and says what it did and whether there was anything to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.tables.altering import alter
from akrunner.tables.clauses import partition_of
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.sqltext import Words
from tests.unit.tables.conftest import made, rows

PARTED = "create table t (a bigint) partitioned by (dt string, n bigint)"


def altered(store: LocalTables, name: TableName, text: str) -> tuple[str, bool]:
    words = Words(text, "alter")
    return alter(words, name, store, lambda: name.at(tuple((key, value or "") for key, value in partition_of(words, name))))


def partitions(store: LocalTables, name: TableName) -> list[str]:
    return ["/".join(value for _, value in one) for one in store.partitions(name)]


def test_a_table_gets_another_name(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint)", a=[1])
    assert altered(plain, name, "rename to `u`") == ("renamed demo.t to u", True)
    assert plain.tables("demo") == ["u"] and rows(plain, TableName.parse("u", "demo")) == [(1,)]
    moved = TableName.parse("u", "demo")
    assert altered(plain, moved, "rename to DEMO.v") == ("renamed demo.u to v", True)
    with pytest.raises(ConfigError, match="cannot be renamed into another project; CREATE TABLE other.w AS SELECT"):
        altered(plain, TableName.parse("v", "demo"), "rename to other.w")
    assert plain.tables("demo") == ["v"]


def test_columns_come_behind_those_that_are_there(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint)", a=[1])
    assert altered(plain, name, "add columns (b string comment 'x', c double)") == ("added b, c to demo.t", True)
    assert rows(plain, name) == [(1, None, None)]
    assert altered(plain, name, "add column (d int)") == ("added d to demo.t", True)
    assert altered(plain, name, "add columns if not exists (b string, e int)") == ("added e to demo.t", True)
    assert altered(plain, name, "add columns if not exists (b string)") == ("added nothing to demo.t", False)
    with pytest.raises(ConfigError, match="two columns are called 'b'"):
        altered(plain, name, "add columns (b string)")
    assert plain.describe(name).columns.names == ["a", "b", "c", "d", "e"]


def test_partitions_are_added_together(plain: LocalTables) -> None:
    name = made(plain, PARTED)
    said = altered(plain, name, "add partition (dt='1', n=1) partition (dt='1', n=2), partition (dt='2', n=10)")
    assert said == ("added dt=1/n=1, dt=1/n=2, dt=2/n=10 of demo.t", True)
    assert partitions(plain, name) == ["1/1", "1/2", "2/10"]
    with pytest.raises(SinkError, match=r"dt=1/n=2 exists; ADD IF NOT EXISTS PARTITION leaves it"):
        altered(plain, name, "add partition (dt='3', n=1) partition (dt='1', n=2)")
    assert altered(plain, name, "add if not exists partition (dt='1', n=2)") == ("demo.t has these partitions already", False)
    assert partitions(plain, name) == ["1/1", "1/2", "2/10"]
    assert altered(plain, name, "add if not exists partition (dt='1', n=2) partition (dt='3', n=0)")[1]
    assert partitions(plain, name) == ["1/1", "1/2", "2/10", "3/0"]


def parted(store: LocalTables) -> TableName:
    name = made(store, PARTED)
    altered(store, name, "add partition (dt='1', n=1) partition (dt='1', n=2) partition (dt='2', n=10)")
    return name


def test_partitions_are_dropped_by_their_values(plain: LocalTables) -> None:
    name = parted(plain)
    assert altered(plain, name, "drop partition (dt='2', n=10)") == ("dropped dt=2/n=10 of demo.t", True)
    with pytest.raises(SinkError, match="the table has the partitions dt=1/n=1, dt=1/n=2"):
        altered(plain, name, "drop partition (dt='2', n=10)")
    assert altered(plain, name, "drop if exists partition (dt='2', n=10)") == ("demo.t has no such partition", False)
    assert altered(plain, name, "drop partition (dt='1')")[1]
    assert partitions(plain, name) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition, left",
    [
        ("dt = '1' and (n < 2 or n >= 10)", ["1/2", "2/10"]),
        ("not (dt = '1')", ["1/1", "1/2"]),
        ("n != 2", ["1/2"]),
    ],
)
def test_partitions_are_dropped_by_a_condition_on_values_of_their_types(
    plain: LocalTables, condition: str, left: list[str]
) -> None:
    name = parted(plain)
    assert altered(plain, name, f"drop partition ({condition})")[1]
    assert partitions(plain, name) == left


@pytest.mark.slow
def test_a_condition_no_partition_meets(plain: LocalTables) -> None:
    name = parted(plain)
    with pytest.raises(SinkError, match="demo.t has no partition with n > 99; DROP IF EXISTS PARTITION leaves it at that"):
        altered(plain, name, "drop partition (n > 99)")
    assert altered(plain, name, "drop if exists partition (n > 99)") == ("demo.t has no such partition", False)
    with pytest.raises(ConfigError, match="nope"):
        altered(plain, name, "drop partition (nope > 1)")
    assert len(partitions(plain, name)) == 3


def test_a_condition_on_a_table_without_partitions_yet(plain: LocalTables) -> None:
    name = made(plain, PARTED)
    assert altered(plain, name, "drop if exists partition (n > 1)") == ("demo.t has no such partition", False)


@pytest.mark.parametrize(
    "text",
    [
        "set lifecycle 7",
        "set comment 'x'",
        "disable lifecycle",
        "partition (dt='1', n=1) enable lifecycle",
        "touch partition (dt='1', n=1)",
        "merge smallfiles",
    ],
)
def test_what_means_nothing_here_is_accepted_and_changes_nothing(plain: LocalTables, text: str) -> None:
    name = parted(plain)
    said, changed = altered(plain, name, text)
    assert said == "demo.t: lifecycle, comment and the like are accepted, and nothing is deleted by them" and not changed


def test_what_means_nothing_is_still_about_a_table_that_is_there(plain: LocalTables) -> None:
    with pytest.raises(SourceError, match="there is no table odps://demo/tables/nope"):
        altered(plain, TableName.parse("nope", "demo"), "set lifecycle 7")
    with pytest.raises(SourceError, match="dt=9/n=9 does not exist"):
        altered(plain, parted(plain), "partition (dt='9', n=9) touch")


@pytest.mark.parametrize(
    "text, why",
    [
        ("change column a b bigint", "keeps its name and type; CREATE TABLE new AS SELECT ... FROM demo.t"),
        ("replace columns (a string)", "keeps its name and type"),
        ("drop columns a", "are added, and not dropped"),
        ("drop column a", "are added, and not dropped"),
        ("partition (dt='1', n=1) rename to partition (dt='2', n=1)", "a partition can be touched, and no more"),
        (f"set lifecycle {'9' * 5000}", "a number of days was expected (18 digits at most"),
        ("frobnicate", "ADD PARTITION, DROP PARTITION, ADD COLUMNS, RENAME TO or SET LIFECYCLE was expected"),
        ("add partition (dt='5', n=5) location 'x'", "nothing more was expected"),
        ("rename to u v", "nothing more was expected"),
        ("add columns (b string) x", "nothing more was expected"),
    ],
)
def test_what_cannot_be_altered_is_refused_with_another_way(plain: LocalTables, text: str, why: str) -> None:
    name = parted(plain)
    with pytest.raises(ConfigError) as told:
        altered(plain, name, text)
    assert why in str(told.value)
    assert partitions(plain, name) == ["1/1", "1/2", "2/10"] and plain.describe(name).columns.names == ["a"]


def test_no_file_is_left_in_the_temp_directory(plain: LocalTables, unguarded: Path) -> None:
    altered(plain, parted(plain), "drop partition (n > 1)")
    assert list(unguarded.iterdir()) == []
