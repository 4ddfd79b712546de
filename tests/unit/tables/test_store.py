"""What every store of tables has in common: partitions that names hold, values of their types, and words about what is not there."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError
from akrunner.tables import types
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.store import (
    Reading,
    TableInfo,
    check_keys,
    check_readable,
    check_writable,
    key_scalar,
    key_text,
    known_partitions,
    no_table,
    whole_partition,
)
from tests.unit.tables.conftest import made

INFO = TableInfo(pa.schema([("a", pa.int64())]), ("dt", "n"), partition_types=("string", "bigint"))


def named(text: str) -> TableName:
    return TableName.parse(text, "demo")


class Noted(Reading):
    """A reading of three rows that counts how often it is closed."""

    def __init__(self) -> None:
        self.rows, self.closed = 3, 0

    def read(self, columns: Any = None, start: int = 0, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        for number in range(start, self.rows if rows is None else start + rows):
            yield pa.record_batch({"a": [number]})

    def close(self) -> None:
        self.closed += 1


def test_columns_a_table_is_partitioned_by_have_their_types() -> None:
    assert [(one.name, one.type) for one in INFO.keys] == [("dt", pa.string()), ("n", pa.int64())]
    assert [one.type for one in TableInfo(INFO.columns, ("a", "b")).keys] == [pa.string()] * 2
    assert TableInfo(INFO.columns).keys == []


def test_a_partition_is_in_the_tables_order_and_spelt_as_its_types() -> None:
    assert whole_partition(named("t/n=007/dt=01"), INFO) == (("dt", "01"), ("n", "7"))
    assert whole_partition(named("t"), TableInfo(INFO.columns)) == ()


@pytest.mark.parametrize(
    "name, why",
    [
        ("t", "is partitioned by dt, n: name one partition of it, odps://demo/tables/t/dt=.../n=..."),
        ("t/n=1", "name one partition of it, odps://demo/tables/t/dt=.../n=1"),
        ("t/dt=1/n=x", "the partition column n is bigint, and 'x' is none"),
        ("t/dt=1/m=1", "is partitioned by dt, n, not by m"),
    ],
)
def test_what_is_no_whole_partition_cannot_be_written(name: str, why: str) -> None:
    with pytest.raises(SinkError) as told:
        whole_partition(named(name), INFO)
    assert why in str(told.value)


def test_a_table_without_partitions_has_none() -> None:
    with pytest.raises(SourceError, match="odps://demo/tables/t is not partitioned"):
        check_keys(named("t/dt=1"), TableInfo(INFO.columns), SourceError)
    check_keys(named("t"), TableInfo(INFO.columns), SourceError)


@pytest.mark.parametrize(
    "words, value, text",
    [
        ("string", "01", "01"),
        ("string", " x ", " x "),
        ("bigint", "-01", "-1"),
        ("bigint", "9223372036854775807", "9223372036854775807"),
        ("int", "0", "0"),
        ("date", "2026-01-31", "2026-01-31"),
    ],
)
def test_a_value_is_spelt_as_its_type_spells_it(words: str, value: str, text: str) -> None:
    assert key_text(types.field("k", words), value) == text


@pytest.mark.parametrize(
    "words, value",
    [
        ("bigint", "1_0"),
        ("bigint", " 1"),
        ("bigint", "+1"),
        ("bigint", "1.0"),
        ("bigint", "٣"),
        ("bigint", ""),
        ("bigint", "9223372036854775808"),
        ("tinyint", "128"),
        ("date", "2026-02-30"),
        ("date", "x"),
    ],
)
def test_a_value_that_is_none_of_its_type_is_refused(words: str, value: str) -> None:
    with pytest.raises(SinkError, match="the partition column k is "):
        key_text(types.field("k", words), value)


def test_a_value_as_rows_have_it() -> None:
    assert key_scalar(types.field("k", "date"), "2026-01-31").as_py() == datetime.date(2026, 1, 31)
    assert key_scalar(types.field("k", "int"), "-5") == pa.scalar(-5, pa.int32())
    assert key_scalar(types.field("k", "string"), "é").as_py() == "é"


@pytest.mark.parametrize(
    "there, whole, said",
    [
        ([], True, "the project demo has no tables in /t"),
        (["x"], True, "the project demo has x in /t"),
        (["order", "abc"], True, "did you mean 'order'? the project demo has order, abc in /t"),
        ([f"x{number}" for number in range(5)], True, "the project demo has x0, x1, x2, x3, x4 in /t"),
        ([f"x{number}" for number in range(8)], True, "has x0, x1, x2, x3, x4 and 3 more in /t"),
        ([f"x{number}" for number in range(8)], False, "has x0, x1, x2, x3, x4 and many more in /t"),
    ],
)
def test_a_table_that_is_not_there_is_told_with_a_few_that_are(there: list[str], whole: bool, said: str) -> None:
    text = no_table(named("orders"), there, "in /t", whole)
    assert text.startswith("there is no table odps://demo/tables/orders: ") and text.endswith(said)


def test_the_last_partitions_are_named() -> None:
    every = [(("dt", str(number)), ("hh", "0")) for number in range(12)]
    said = known_partitions(every)
    assert said.startswith("the table has the partitions dt=2/hh=0, ") and said.endswith(", dt=11/hh=0")
    assert known_partitions([]) == "the table has no partition"


def test_a_reading_is_closed_behind_its_last_batch_and_not_before() -> None:
    reading = Noted()
    batches = reading.read_and_close(None, 1)
    assert next(batches).to_pydict() == {"a": [1]} and reading.closed == 0
    assert [one.to_pydict() for one in batches] == [{"a": [2]}] and reading.closed == 1


def test_a_reading_is_closed_when_its_block_ends_or_whoever_draws_lets_go() -> None:
    reading = Noted()
    with pytest.raises(KeyError), reading:
        raise KeyError
    assert reading.closed == 1
    batches = reading.read_and_close()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert reading.closed == 2


def test_whether_a_table_may_be_read_or_written_is_known_without_a_change(plain: LocalTables) -> None:
    name = made(plain, "create table t (a bigint) partitioned by (dt string)")
    check_readable(plain, name)
    with pytest.raises(SourceError, match="t/dt=1 does not exist: the table has no partition"):
        check_readable(plain, named("t/dt=1"))
    check_writable(plain, named("t/dt=1"))
    assert plain.partitions(name) == []
    plain.add_partitions([named("t/dt=1")])
    check_readable(plain, named("t/dt=1"))
    check_writable(plain, named("t/dt=1"))
    with pytest.raises(SinkError, match="name one partition"):
        check_writable(plain, name)
    with pytest.raises(SourceError, match="there is no table odps://demo/tables/u"):
        check_readable(plain, named("u"))


def test_a_partition_that_is_not_there_is_not_made_to_see_whether_it_may_be_written() -> None:
    """MaxCompute's output makes one."""
    done: list[str] = []
    output = SimpleNamespace(abort=lambda: done.append("abort"))
    store: Any = SimpleNamespace(
        check_output=lambda name: done.append("look"),
        exists=lambda name: name.partition == (("dt", "1"),),
        output=lambda name: done.append("open") or output,
    )
    check_writable(store, named("t/dt=2"))
    assert done == ["look"]
    check_writable(store, named("t/dt=1"))
    assert done == ["look", "look", "open", "abort"]
