"""A table that is made for the rows that are written to it is there with them, or not at all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError, WriteError
from akrunner.tables.local import LocalTables
from akrunner.tables.making import new_table
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo
from tests.unit.tables.conftest import made, rows

NAME = TableName.parse("odps://demo/tables/t/dt=1")
INFO = TableInfo(pa.schema([("a", pa.int64())]), ("dt",))


class Elsewhere:
    """A store that makes a table first, and notes what is done."""

    def __init__(self, fails: str = "") -> None:
        self.done: list[str] = []
        self._fails = fails

    def _note(self, what: str, *about: Any) -> None:
        self.done.append(" ".join([what, *map(str, about)]))
        if what == self._fails:
            raise WriteError(f"{what} fails")

    def create(self, name: TableName, info: TableInfo) -> None:
        self._note("create", name)

    def drop(self, name: TableName, if_exists: bool = False) -> None:
        self._note("drop", name, if_exists)

    def output(self, name: TableName) -> Elsewhere:
        self._note("output", name)
        return self

    def part(self, key: str) -> str:
        self._note("part", key)
        return key

    def restart(self) -> None:
        self._note("restart")

    def commit(self) -> None:
        self._note("commit")

    def abort(self) -> None:
        self._note("abort")


def output_of(store: Any) -> Any:
    return new_table(store, NAME, INFO)


def test_on_this_machine_nothing_is_there_before_the_commit(plain: LocalTables) -> None:
    output = new_table(plain, NAME, INFO)
    output.part("0").write(pa.record_batch({"a": [1, 2]}))
    assert not plain.exists(NAME.whole)
    output.commit()
    assert rows(plain, NAME) == [(1,), (2,)] and plain.describe(NAME).partitions == ("dt",)
    output = new_table(plain, TableName.parse("odps://demo/tables/u"), TableInfo(INFO.columns))
    output.part("0").write(pa.record_batch({"a": [1]}))
    output.abort()
    assert plain.tables("demo") == ["t"]


def test_a_table_that_is_there_is_not_made(plain: LocalTables) -> None:
    made(plain, "create table t (a bigint) partitioned by (dt string)")
    with pytest.raises(SinkError, match="odps://demo/tables/t exists"):
        new_table(plain, NAME, INFO)


def test_elsewhere_the_whole_table_is_made_first_and_stays_with_the_commit() -> None:
    store = Elsewhere()
    output = output_of(store)
    assert output.part("worker:0") == "worker:0" and (output.name, output.info) == (NAME, INFO)
    output.restart()
    output.commit()
    output.abort()
    assert store.done == [
        f"create {NAME.whole}",
        f"output {NAME}",
        "part worker:0",
        "restart",
        "commit",
        "abort",
    ]


def test_elsewhere_a_table_whose_rows_are_given_up_is_dropped_once() -> None:
    store = Elsewhere()
    output = output_of(store)
    output.abort()
    output.abort()
    assert store.done[2:] == ["abort", f"drop {NAME.whole} True", "abort"]


def test_elsewhere_a_table_goes_whose_commit_fails() -> None:
    store = Elsewhere("commit")
    output = output_of(store)
    with pytest.raises(WriteError):
        output.commit()
    output.abort()
    assert store.done[-1] == f"drop {NAME.whole} True"


def test_elsewhere_a_table_goes_that_cannot_be_written() -> None:
    store = Elsewhere("output")
    with pytest.raises(WriteError, match="output fails"):
        output_of(store)
    assert store.done == [f"create {NAME.whole}", f"output {NAME}", f"drop {NAME.whole} True"]


def test_elsewhere_a_table_that_cannot_be_made_is_not_dropped() -> None:
    """It may be another's."""
    store = Elsewhere("create")
    with pytest.raises(WriteError, match="create fails"):
        output_of(store)
    assert store.done == [f"create {NAME.whole}"]


def test_elsewhere_a_range_of_rows_makes_no_table() -> None:
    store: Any = Elsewhere()
    with pytest.raises(SinkError, match="leave out"):
        new_table(store, TableName.parse("odps://demo/tables/t?start=1"), INFO)
    assert store.done == []
