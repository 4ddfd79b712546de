"""Tables as statements would leave them: what a store has stays as it is, and what cannot be told is said to be unforeseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import ConfigError, DataError, SinkError, SourceError
from akrunner.tables import rehearsed
from akrunner.tables.ddl import parse_create
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.rehearsed import FEW_ROWS, RehearsedTables, Unforeseen
from akrunner.tables.store import TableInfo
from akrunner.tables.types import field


def named(text: str) -> TableName:
    return TableName.parse(text, "demo")


def info_of(columns: str, more: str = "") -> TableInfo:
    info = parse_create(f"create table t ({columns}) {more}").info
    assert info is not None
    return info


def laid(root: Path, table: str, sql: str, **files: list[int]) -> None:
    """A table whose files are put there by hand: partition -> the values of a."""
    folder = root / "demo" / table
    folder.mkdir(parents=True)
    (folder / "_table.sql").write_text(sql)
    for partition, values in files.items():
        below = folder if partition == "all" else folder / f"n={partition[1:]}"
        below.mkdir(exist_ok=True)
        pq.write_table(pa.table({"a": values}), below / "x.parquet")


@pytest.fixture
def base(tmp_path: Path, unguarded: Path) -> Any:
    """A table, and one with partitions n=01 and n=2; afterwards not a byte of them is another."""
    root = tmp_path / "tables"
    laid(root, "t", "CREATE TABLE t (a bigint);", all=[1, 2])
    laid(root, "p", "CREATE TABLE p (a bigint) PARTITIONED BY (n bigint);", n01=[1], n2=[2])

    def everything() -> list[Any]:
        return sorted(
            (str(path), path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns) for path in root.rglob("*")
        )

    before = everything()
    yield LocalTables(str(root))
    assert everything() == before


@pytest.fixture
def store(base: LocalTables) -> RehearsedTables:
    return RehearsedTables(base)


def write(store: RehearsedTables, name: str, values: list[Any], overwrite: bool = False) -> None:
    output = store.output(named(name), overwrite)
    output.part("0").write(pa.record_batch({"a": pa.array(values, pa.int64())}))
    output.commit()


def rows(store: RehearsedTables, name: str, *args: Any) -> list[tuple[Any, ...]]:
    return [row for batch in store.read(named(name), *args) for row in zip(*batch.to_pydict().values())]


def test_a_table_that_nothing_has_touched_is_the_stores_own(store: RehearsedTables, base: LocalTables) -> None:
    assert rows(store, "t") == [(1,), (2,)] and store.count(named("t")) == 2 and store.exists(named("p/n=1"))
    assert store.partitions(named("p")) == [(("n", "01"),), (("n", "2"),)]
    assert store.describe(named("t")) == base.describe(named("t"))
    assert (store.tables("demo"), store.projects(), store.place) == (["p", "t"], ["demo"], base.place)
    with pytest.raises(SourceError, match="there is no table odps://demo/tables/u"):
        store.reading(named("u"))


def test_rows_are_as_they_would_be_written(store: RehearsedTables) -> None:
    write(store, "t", [3, None])
    assert rows(store, "t") == [(1,), (2,), (3,), (None,)] and store.count(named("t")) == 4
    assert rows(store, "t", ["A"], 1, 2) == [(2,), (3,)]
    assert [rows(store, "t", None, start, 2) for start in (0, 3, 4, 9)] == [[(1,), (2,)], [(None,)], [], []]
    write(store, "t", [9], overwrite=True)
    assert rows(store, "t") == [(9,)]


def test_what_is_not_committed_is_nowhere(store: RehearsedTables) -> None:
    output = store.output(named("t"))
    output.part("0").write(pa.record_batch({"a": [5]}))
    output.restart()
    output.part("0").write(pa.record_batch({"a": [6]}))
    assert rows(store, "t") == [(1,), (2,)]
    output.abort()
    output.commit()
    assert rows(store, "t") == [(6,)]


def test_what_a_store_would_refuse_is_refused(store: RehearsedTables) -> None:
    with pytest.raises(DataError, match="t has no column 'b'"):
        store.output(named("t")).part("0").write(pa.record_batch({"b": [1]}))
    for name, why in (
        ("u", "there is no table"),
        ("p", "name one partition"),
        ("t?start=1", "leave out"),
        ("t/n=1", "is not partitioned"),
    ):
        with pytest.raises(SinkError, match=why):
            store.check_output(named(name))
    with pytest.raises(SourceError, match=r"source: p/n=3 does not exist: the table has the partitions n=01, n=2"):
        write(store, "p/n=2", [1])
        store.reading(named("p/n=3"))


def test_tables_come_and_go(store: RehearsedTables, base: LocalTables) -> None:
    store.create(named("u"), info_of("a bigint"))
    assert store.is_made(named("u")) and not store.is_made(named("t")) and rows(store, "u") == []
    with pytest.raises(SinkError, match="odps://demo/tables/u exists"):
        store.create(named("u"), info_of("a bigint"))
    store.create(named("t"), info_of("other string"), if_not_exists=True)
    assert store.describe(named("t")).columns.names == ["a"]
    store.drop(named("t"))
    assert store.tables("demo") == ["p", "u"] and not store.exists(named("t"))
    for does in (lambda: store.reading(named("t")), lambda: store.describe(named("t"))):
        with pytest.raises(SourceError, match="there is no table odps://demo/tables/t: .*the project demo has p, u"):
            does()
    with pytest.raises(SinkError, match="nothing is dropped"):
        store.drop(named("t"))
    store.drop(named("t"), if_exists=True)
    store.create(named("t"), info_of("b string"))
    assert store.describe(named("t")).columns.names == ["b"] and base.exists(named("t"))


def test_a_table_without_a_column_is_none(store: RehearsedTables) -> None:
    with pytest.raises(ConfigError, match="no column of its own"):
        store.create(named("u"), TableInfo(pa.schema([])))
    assert store.tables("demo") == ["p", "t"]


def test_a_table_has_another_name_and_its_rows(store: RehearsedTables) -> None:
    with pytest.raises(SinkError, match="odps://demo/tables/p exists, and cannot be the new name of odps://demo/tables/t"):
        store.rename(named("t"), "p")
    store.rename(named("t"), "u")
    assert rows(store, "u") == [(1,), (2,)] and store.tables("demo") == ["p", "u"]
    with pytest.raises(SinkError, match="there is no table odps://demo/tables/t"):
        store.rename(named("t"), "v")
    store.rename(named("p"), "t")
    assert rows(store, "t") == [(1,), (2,)] and store.partitions(named("t")) == [(("n", "01"),), (("n", "2"),)]


def test_columns_that_are_added_are_null(store: RehearsedTables) -> None:
    store.add_columns(named("t"), [field("b", "string")])
    assert rows(store, "t") == [(1, None), (2, None)]
    with pytest.raises(ConfigError, match="two columns are called 'b'"):
        store.add_columns(named("t"), [field("b", "string")])
    with pytest.raises(SinkError, match="cannot be NOT NULL"):
        store.add_columns(named("t"), [field("c", "string", nullable=False)])


def test_partitions_come_and_go_however_they_are_spelt(store: RehearsedTables) -> None:
    write(store, "p/n=1", [5])
    assert rows(store, "p", ["a", "n"]) == [(1, 1), (5, 1), (2, 2)], "01 is 1"
    for name in ("p/n=001", "p/n=2"):
        with pytest.raises(SinkError, match="exists; ADD IF NOT EXISTS PARTITION"):
            store.add_partitions([named("p/n=7"), named(name)])
    with pytest.raises(SinkError, match="n=7 exists"):
        store.add_partitions([named("p/n=7"), named("p/n=7")])
    assert len(store.partitions(named("p"))) == 2, "none of several"
    store.add_partitions([named("p/n=1"), named("p/n=7")], if_not_exists=True)
    assert store.partitions(named("p")) == [(("n", "01"),), (("n", "2"),), (("n", "7"),)] and rows(store, "p/n=7") == []
    with pytest.raises(SinkError, match="n=9 does not exist: the table has the partitions n=01, n=2, n=7"):
        store.drop_partitions([named("p/n=1"), named("p/n=9")])
    store.drop_partitions([named("p/n=1"), named("p/n=9")], if_exists=True)
    assert rows(store, "p") == [(2,)] and not store.exists(named("p/n=1"))


def test_outputs_count_together(store: RehearsedTables) -> None:
    outputs = [store.output(named(name), True) for name in ("t", "p/n=1")]
    for output in outputs:
        output.part("0").write(pa.record_batch({"a": [7]}))
    store.commit(outputs)
    assert rows(store, "t") == [(7,)] and rows(store, "p", ["a", "n"]) == [(7, 1), (2, 2)]


def test_what_nobody_knows_is_neither_there_nor_not(store: RehearsedTables) -> None:
    store.forget(named("t"))
    for does in (store.describe, store.exists, store.count, store.reading, store.check_output, store.drop):
        with pytest.raises(Unforeseen):
            does(named("t"))  # type: ignore[operator]


def test_rows_nobody_knows_are_checked_and_not_counted(store: RehearsedTables) -> None:
    store.written(named("p/n=1"))
    assert store.exists(named("p/n=2")), "what there was is there"
    for does in (store.count, store.partitions, lambda name: store.exists(named("p/n=9"))):
        with pytest.raises(Unforeseen):
            does(named("p"))
    with pytest.raises(Unforeseen):
        store.drop_partitions([named("p/n=9")])
    with pytest.raises(Unforeseen):
        store.reading(named("p/n=9"))
    store.begin()
    with store.reading(named("p")) as reading:
        assert not reading.drawn and list(reading.read(["a", "n"])) == []
        with pytest.raises(SourceError, match="has no column 'b'"):
            reading.read(["b"])
    assert store.guessed


def test_a_job_that_cannot_write_is_told_so(store: RehearsedTables) -> None:
    with pytest.raises(SinkError, match="name one partition"):
        store.written(named("p"))
    with pytest.raises(SinkError, match="there is no table"):
        store.written(named("u"))


def test_programs_in_between_may_have_made_a_table_or_its_rows(store: RehearsedTables) -> None:
    store.blur(named("t"))
    assert store.describe(named("t")).columns.names == ["a"] and not store.reading(named("t")).drawn
    store.blur(named("u"))
    with pytest.raises(Unforeseen):
        store.exists(named("u"))
    store.blur(named("u"))


def test_of_many_rows_nothing_is_computed(base: LocalTables, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FEW_ROWS > 2
    monkeypatch.setattr(rehearsed, "FEW_ROWS", 1)
    store = RehearsedTables(base)
    store.begin()
    with store.reading(named("p/n=1")) as few:
        assert few.drawn and not store.guessed
    with store.reading(named("p")) as many:
        assert not many.drawn and store.guessed


def test_a_statement_that_has_read_what_is_not_known_writes_what_is_not_known(
    base: LocalTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RehearsedTables(base)
    store.begin()
    write(store, "p/n=2", [3])
    store.end()
    assert store.count(named("p")) == 3
    monkeypatch.setattr(rehearsed, "FEW_ROWS", 1)
    store.begin()
    with store.reading(named("t")):
        write(store, "p/n=2", [4])
    store.end()
    with pytest.raises(Unforeseen):
        store.count(named("p"))
    store.begin()
    assert not store.guessed
    store.end()
    assert store.count(named("t")) == 2


def test_too_many_rows_to_go_on(store: RehearsedTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsed, "_MOST_ROWS", 3)
    part = store.output(named("t")).part("0")
    part.write(pa.record_batch({"a": [1, 2, 3]}))
    with pytest.raises(Unforeseen):
        part.write(pa.record_batch({"a": [4]}))
