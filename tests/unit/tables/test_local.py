"""Tables on this machine's disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import ConfigError, DataError, SinkError, SourceError, WriteError
from akrunner.tables import local_output, local_reading
from akrunner.tables.ddl import parse_create
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.sql import Queries
from akrunner.tables.store import check_writable
from tests.conftest import no_file_longer_than

Named = Callable[[str], TableName]


def made(store: LocalTables, named: Named, sql: str) -> TableName:
    create = parse_create(sql)
    assert create.info is not None
    name = named(create.table)
    store.create(name, create.info)
    return name


def put(store: LocalTables, name: TableName, overwrite: bool = True, **parts: dict[str, list[Any]]) -> None:
    output = store.output(name, overwrite)
    for key, columns in parts.items():
        output.part(key).write(pa.record_batch(columns))
    output.commit()


def rows(
    store: LocalTables, name: TableName, columns: list[str] | None = None, start: int = 0, most: int | None = None
) -> list[Any]:
    return [row for batch in store.read(name, columns, start, most) for row in zip(*(batch.to_pydict().values()))]


def test_rows_come_back_in_the_order_of_the_parts_keys(store: LocalTables, named: Named) -> None:
    name = made(store, named, "create table t (id bigint, s string)")
    assert store.count(name) == 0 and rows(store, name) == []
    put(store, name, **{"worker:10": {"id": [3]}, "worker:2": {"S": ["b"], "ID": [2]}, "chief:0": {"id": [1], "s": ["a"]}})
    assert rows(store, name) == [(1, "a"), (2, "b"), (3, None)]
    put(store, name, overwrite=False, again={"id": np.arange(4, 14)})
    assert [one for (one,) in rows(store, name, ["id"])] == list(range(1, 14))
    assert rows(store, name, ["s", "ID"], 1, 2) == [("b", 2), (None, 3)]
    assert rows(store, name, start=13) == rows(store, name, start=99) == rows(store, name, most=0) == []
    put(store, name, all={"id": [7]})
    assert rows(store, name) == [(7, None)]
    put(store, name)
    assert store.count(name) == 0


def test_partitions_are_read_together_or_by_themselves(store: LocalTables, named: Named) -> None:
    name = made(store, named, "create table t (id bigint) partitioned by (dt string, hh string)")
    for number, spec in enumerate(["dt=1/hh=a", "hh=b/dt=1", "dt=10/hh=a/b", "dt=9/hh=%2f..\\'\" é"]):
        put(store, named(f"t/{spec}"), x={"id": [number]})
    store.add_partitions([named("t/dt=0/hh=empty")])
    assert store.count(name) == 4 and store.count(named("t/dt=1")) == 2 and store.count(named("t/hh=a")) == 1
    assert rows(store, name, ["hh", "id", "DT"]) == [("a", 0, "1"), ("b", 1, "1"), ("%2f..\\'\" é", 3, "9"), ("a/b", 2, "10")]
    assert rows(store, named("t/dt=1"), ["hh"], 1) == [("b",)] and rows(store, name) == [(0,), (1,), (3,), (2,)]
    assert store.partitions(named("t/dt=10")) == [(("dt", "10"), ("hh", "a/b"))]
    assert store.exists(named("t/dt=0")) and not store.exists(named("t/dt=5")) and not store.exists(named("u"))
    with pytest.raises(SourceError, match="t/dt=5 does not exist: the table has the partitions dt=0/hh=empty, dt=1/hh=a"):
        store.count(named("t/dt=5"))
    with pytest.raises(SinkError, match="name one partition of it, odps://demo/tables/t/dt=1/hh=..."):
        store.output(named("t/dt=1"))
    with pytest.raises(SourceError, match="partitioned by dt, hh, not by pt"):
        store.count(named("t/pt=1"))
    store.drop_partitions([named("t/dt=1")])
    assert store.count(name) == 2
    with pytest.raises(SinkError, match="does not exist"):
        store.drop_partitions([named("t/dt=1")])
    store.drop_partitions([named("t/dt=1")], if_exists=True)


def test_partitions_are_added_and_dropped_all_of_them_or_none(
    store: LocalTables, named: Named, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(store, named, "create table t (id bigint) partitioned by (dt string, hh string)")
    one, two, three = (named(f"t/dt={day}/hh=0") for day in (1, 2, 3))
    store.add_partitions([two])
    for many in ([one, two], [one, three, one]):
        with pytest.raises(SinkError, match="exists; ADD IF NOT EXISTS"):
            store.add_partitions(many)
        assert store.partitions(named("t")) == [two.partition] and not (root / "demo" / "t" / "dt=1").exists()
    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda old, new: rename(old, new) if "dt=3" not in new else os.listdir("/none"))
    with pytest.raises(SinkError):
        store.add_partitions([one, three])
    monkeypatch.undo()
    assert sorted(os.listdir(root / "demo" / "t")) == ["_table.sql", "dt=2"]
    store.add_partitions([one, two, three], if_not_exists=True)
    with pytest.raises(SinkError, match="t/dt=5 does not exist"):
        store.drop_partitions([one, named("t/dt=5")])
    monkeypatch.setattr(os, "rename", lambda old, new: rename(old, new) if "dt=2" not in old else os.listdir("/none"))
    with pytest.raises(SinkError):
        store.drop_partitions([one, two])
    monkeypatch.undo()
    assert len(store.partitions(named("t"))) == 3
    store.drop_partitions([one, named("t/hh=0")])
    assert store.partitions(named("t")) == []


def test_what_was_committed_is_known(store: LocalTables, named: Named, monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[str] = []
    monkeypatch.setattr(local_output, "CHANGED", changed)
    made(store, named, "create table t (id bigint)")
    output = store.output(named("t"))
    output.part("0").write(pa.record_batch({"id": [1]}))
    assert changed == []
    output.commit()
    assert changed == ["t"]


def test_what_else_is_in_the_directory_stays(store: LocalTables, named: Named, root: Path) -> None:
    for sql, place in (("t (id bigint)", "t"), ("u (id bigint) partitioned by (p string)", "u/p=1")):
        made(store, named, f"create table {sql}")
        put(store, named(place), x={"id": [1]})
        folder = root / "demo" / place
        for name in ("README.md", ".gitkeep", "_notes.csv", "plots/a.png", "plots/b/c.parquet"):
            (folder / name).parent.mkdir(exist_ok=True, parents=True)
            (folder / name).write_text(name)
        (folder / "link").symlink_to("README.md")
        for overwrite in (True, False):
            put(store, named(place), overwrite, y={"id": [2]})
        assert rows(store, named(place)) == [(2,), (2,)]
        assert {(folder / name).read_text() for name in ("link", ".gitkeep", "_notes.csv", "plots/b/c.parquet")} == {
            "README.md", ".gitkeep", "_notes.csv", "plots/b/c.parquet",
        }  # fmt: skip
        assert (folder / "link").is_symlink()
        # rows of another format would be no rows: nobody's are replaced
        (folder / "more.csv").write_text("id\n3\n")
        for look in (store.output, store.check_output):
            with pytest.raises(SourceError, match="more.csv is no Parquet file"):
                look(named(place))


def test_an_output_is_looked_at_and_nothing_is_made(store: LocalTables, named: Named, root: Path) -> None:
    made(store, named, "create table t (id bigint) partitioned by (p string)")
    before = sorted(root.rglob("*"))
    store.check_output(named("t/p=1"))
    check_writable(store, named("t/p=1"))
    for text, words in (("t", "name one partition of it"), ("u", "there is no table"), ("t/p=1?end=1", "leave out")):
        with pytest.raises(SinkError, match=words):
            store.check_output(named(text))
    assert sorted(root.rglob("*")) == before


def test_tables_are_made_renamed_and_dropped(store: LocalTables, named: Named) -> None:
    name = made(store, named, "create table t (id bigint)")
    with pytest.raises(SinkError, match="exists; CREATE TABLE IF NOT EXISTS"):
        made(store, named, "create table T (x string)")
    store.create(name, store.describe(name), if_not_exists=True)
    put(store, name, x={"id": [1]})
    store.rename(name, "u")
    assert store.tables("demo") == ["u"] and store.projects() == ["demo"] and rows(store, named("u")) == [(1,)]
    with pytest.raises(SourceError, match=r"no table odps://demo/tables/uu: did you mean 'u'. the project demo has u in "):
        store.count(named("uu"))
    store.drop(named("u"))
    store.drop(named("u"), if_exists=True)
    with pytest.raises(SinkError, match="there is no table.*; nothing is dropped .with --if-exists"):
        store.drop(named("u"))
    assert store.tables("demo") == [] == store.tables("never")
    with pytest.raises(ConfigError, match="cannot be called oss"):
        store.count(TableName.parse("odps://oss/tables/t"))
    assert oct(os.stat(store.place).st_mode & 0o777) == "0o700"


@pytest.mark.parametrize(
    "columns, why",
    [
        ({"nope": [1]}, "has no column 'nope' \\(it has id, n, s, d\\)"),
        ({"p": ["x"]}, "its value stands in the table's name"),
        ({"id": ["1"]}, "'id' of .* is bigint, and string was written"),
        ({"id": [1], "s": [1]}, "'s' of .* is string, and int64 was written"),
        ({"id": [1, 2**40], "n": [1, 2**40]}, "row 1, column 'n' of .* is int, and a value does not fit"),
        ({"id": [1], "n": [1.5]}, "row 0, column 'n'"),
        ({"id": [1, None]}, "row 1, column 'id' of .* NOT NULL"),
        ({"id": [[1]]}, "and list"),
    ],
)
def test_what_does_not_fit_is_refused(store: LocalTables, named: Named, columns: dict[str, Any], why: str) -> None:
    made(store, named, "create table t (id bigint not null, n int, s string, d decimal(4,1)) partitioned by (p string)")
    output = store.output(named("t/p=1"))
    with pytest.raises(DataError, match=why):
        output.part("0").write(pa.record_batch(columns))
    output.abort()
    assert store.count(named("t")) == 0


def test_values_keep_what_they_are(store: LocalTables, named: Named) -> None:
    name = made(
        store,
        named,
        "create table t (t tinyint, f float, b boolean, x binary, d decimal(4,1), a array<bigint>, m map<string,int>, ts datetime)",
    )
    batch = pa.record_batch(
        {
            "t": pa.array([1, None], pa.uint64()),
            "f": pa.array([0.1, None]),
            "b": [True, None],
            "x": ["é", None],
            "d": pa.array([2, None]),
            "a": [[1, 2], None],
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "ts": pa.array([10**6, None], pa.timestamp("us")),
        }
    )
    output = store.output(name)
    output.part("0").write(batch)
    output.commit()
    (read,) = store.read(name)
    assert [str(one) for one in read.schema.types][:5] == ["int8", "float", "bool", "binary", "decimal128(4, 1)"]
    first, second = read.to_pylist()
    assert first["x"] == "é".encode() and str(first["d"]) == "2.0" and first["m"] == [("k", 1)] and first["a"] == [1, 2]
    assert set(second.values()) == {None}
    with pytest.raises(DataError, match="would become infinite"):
        store.output(name).part("0").write(pa.record_batch({"f": [1e300]}))


def test_files_people_put_there_are_a_table(store: LocalTables, named: Named, root: Path) -> None:
    folder = root / "demo" / "t"
    for number, spec in enumerate(["P=1", "p=2"]):
        (folder / spec).mkdir(parents=True)
        pq.write_table(
            pa.table({"Id": pa.array([number], pa.int32()), "p": ["the directory says"]}), folder / spec / "x.parquet"
        )
    (folder / "p=2" / "_SUCCESS").touch()
    name = named("t")
    assert store.describe(name).partitions == ("p",) and store.tables("demo") == ["t"]
    assert rows(store, name, ["p", "id"]) == [("1", 0), ("2", 1)]
    put(store, named("t/p=3"), x={"id": [7]})
    assert rows(store, name, ["id"]) == [(0,), (1,), (7,)]
    pq.write_table(pa.table({"other": [1], "ID": [2**40]}), folder / "p=2" / "y.parquet")
    with pytest.raises(SourceError, match="column 'id' of .*y.parquet is int64, and the table's is int"):
        rows(store, name)
    (folder / "p=2" / "y.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="cannot read .*y.parquet as parquet"):
        store.count(name)
    os.rename(folder / "p=2" / "y.parquet", folder / "p=2" / "y.csv")
    with pytest.raises(SourceError, match="y.csv is no Parquet file.*akrunner tables put y.csv"):
        store.count(name)
    os.rename(folder / "p=2" / "y.csv", folder / "y.parquet")
    with pytest.raises(SourceError, match="is in none of its partitions"):
        store.count(name)
    (root / "demo" / "hand").mkdir()
    (root / "demo" / "hand" / "_table.sql").write_text("create table hand (a bigint);")
    (root / "demo" / "bad").mkdir()
    (root / "demo" / "bad" / "_table.sql").write_text("create tab")
    assert store.count(named("hand")) == 0
    with pytest.raises(SourceError, match="_table.sql is to hold the table's CREATE TABLE"):
        store.count(named("bad"))


@pytest.mark.parametrize("held_open", [64, 1])
def test_what_is_read_is_one_state_of_the_table(
    store: LocalTables, named: Named, monkeypatch: pytest.MonkeyPatch, held_open: int
) -> None:
    monkeypatch.setattr(local_reading, "_OPEN", held_open)
    name = made(store, named, "create table t (id bigint)")
    put(store, name, a={"id": [1, 2]}, b={"id": [3]})
    with store.reading(name) as reading:
        begun = reading.read()
        first = next(begun)
        put(store, name, a={"id": [9]})
        assert store.count(name) == 1
        store.drop(name)
        assert [first, *begun] == [pa.record_batch({"id": [1, 2]}), pa.record_batch({"id": [3]})]
        assert reading.rows == 3 and sum(batch.num_rows for batch in reading.read(["id"], 1)) == 2
        late = reading.read()
        next(late)
    assert sum(batch.num_rows for batch in late) == 1
    with pytest.raises(SourceError, match="is closed"):
        next(reading.read())
    made(store, named, "create table t (id bigint)")
    put(store, name, a={"id": [1, 2]}, b={"id": [3]})
    unread = store.read(name)
    del unread
    assert not [file.path for file in psutil.Process().open_files() if file.path.startswith(store.place)]


@pytest.mark.slow
def test_threads_write_parts_and_read_ranges_at_the_same_time(store: LocalTables, named: Named) -> None:
    name = made(store, named, "create table t (id bigint)")
    output = store.output(name)

    def write(number: int) -> None:
        part = output.part(str(number))
        for at in range(0, 300_000, 1000):
            part.write(pa.record_batch({"id": np.arange(at, at + 1000) + number * 300_000}))

    _all([lambda number=number: write(number) for number in range(4)])
    output.commit()
    found: dict[int, int] = {}
    with store.reading(name) as reading:

        def read(number: int) -> None:
            ids = np.concatenate([batch["id"].to_numpy() for batch in reading.read(None, number * 170_000, 170_000)])
            found[number] = len(ids)
            assert (np.diff(ids) == 1).all() and ids[0] == number * 170_000

        _all([lambda number=number: read(number) for number in range(8)])
    assert [found[number] for number in range(8)] == [170_000] * 7 + [10_000]


def _all(work: list[Callable[[], None]]) -> None:
    failed: list[BaseException] = []

    def run(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_outputs_of_a_job_are_there_together_or_not_at_all(store: LocalTables, named: Named) -> None:
    one, two = made(store, named, "create table one (id bigint)"), made(store, named, "create table two (id bigint)")
    put(store, one, x={"id": [0]})

    def written() -> list[Any]:
        outputs = [store.output(name) for name in (one, two)]
        for output in outputs:
            output.part("0").write(pa.record_batch({"id": [1]}))
        return outputs

    outputs = written()
    outputs[0].part("0").write(pa.record_batch({"id": [2]}))
    outputs[1].restart()
    assert rows(store, one) == [(0,)]
    store.commit(outputs)
    assert rows(store, one) == [(2,)] and rows(store, two) == []
    outputs = written()
    store.drop(two)
    made(store, named, "create table two (other string)")
    with pytest.raises(WriteError, match="two was made anew with other columns while rows were written"):
        store.commit(outputs)
    for output in outputs:
        output.abort()
    assert rows(store, one) == [(2,)] and rows(store, two) == []
    with pytest.raises(WriteError, match="given up"):
        outputs[0].part("0")


def test_rows_that_are_added_at_the_same_time_are_all_there(store: LocalTables, named: Named) -> None:
    name = made(store, named, "create table t (id bigint)")
    outputs = [store.output(name, overwrite=False) for _ in range(3)]
    for number, output in enumerate(outputs):
        output.part("0").write(pa.record_batch({"id": [number]}))
    for output in outputs:
        output.commit()
    assert rows(store, name) == [(0,), (1,), (2,)]


def test_a_table_is_made_with_its_rows_or_not_at_all(store: LocalTables, named: Named, root: Path) -> None:
    info = parse_create("create table t (id bigint) partitioned by (p string)").info
    assert info is not None
    for name in (named("t/p=a/b"), named("t/p=c")):
        output = store.creating(name, info)
        output.part("0").write(pa.record_batch({"id": [1]}))
        assert not store.exists(named("t"))
        output.abort()
        output = store.creating(name, info)
        output.part("0").write(pa.record_batch({"id": [1]}))
        output.commit()
        assert rows(store, named("t"), ["id", "p"]) == [(1, name.partition[0][1])] and store.describe(name).partitions == ("p",)
        with pytest.raises(SinkError, match="exists"):
            store.creating(name, info)
        store.drop(named("t"))
    (root / "demo" / "t").mkdir()
    (root / "demo" / "t" / "notes.txt").touch()
    output = store.creating(named("t/p=1"), info)
    output.commit()
    assert store.count(named("t")) == 0 and (root / "demo" / "t" / "notes.txt").exists()


@pytest.mark.slow
def test_a_full_disk_leaves_the_table_as_it_was(store: LocalTables, named: Named) -> None:
    name = made(store, named, "create table t (id bigint, s string)")
    put(store, name, x={"id": [1]})
    output = store.output(name)
    with no_file_longer_than(100_000), pytest.raises(WriteError, match="cannot write .*t.*larger than allowed"):
        part = output.part("0")
        part.write(pa.record_batch({"s": [os.urandom(8).hex() for _ in range(70_000)]}))
        output.commit()
    output.abort()
    assert rows(store, name) == [(1, None)]


def test_a_range_of_rows_is_no_output(store: LocalTables, named: Named) -> None:
    made(store, named, "create table t (id bigint)")
    for text in ("t?start=0", "t?end=2", "t?start=1&end=2"):
        with pytest.raises(SinkError, match="leave out .start= and end="):
            store.output(named(text))
        with pytest.raises(SinkError, match="leave out .start= and end="):
            store.creating(named(text.replace("t?", "u?")), store.describe(named("t")))


@pytest.mark.slow
@pytest.mark.parametrize("change", ["overwrite", "drop", "rename"])
@pytest.mark.parametrize("spec", ["", "/dt=1"])
def test_a_query_reads_what_was_there_when_it_was_asked(
    store: LocalTables, named: Named, monkeypatch: pytest.MonkeyPatch, change: str, spec: str
) -> None:
    name = made(store, named, f"create table t (id bigint){' partitioned by (dt string)' if spec else ''}")
    put(store, named(f"t{spec}"), x={"id": list(range(1000))})
    begun = Queries._begun

    def later(self: Queries, *arguments: Any) -> Any:
        # another process has changed the table after the query was allowed its files, and before it opens them
        if change == "overwrite":
            put(store, named(f"t{spec}"), x={"id": [5]})
        elif change == "drop":
            store.drop(name)
        else:
            store.rename(name, "u")
        return begun(self, *arguments)

    monkeypatch.setattr(Queries, "_begun", later)
    with Queries(lambda project: store, "demo") as queries:
        reader = queries.rows("select sum(id) s, count(*) n from t")
        assert [row for batch in queries.draw(reader) for row in batch.to_pylist()] == [{"s": 499500, "n": 1000}]


@pytest.mark.parametrize("value", ["abc", "1_0", " 1 ", "+1", "\uff11", "1.0", str(2**63)])
def test_a_partition_of_a_number_that_is_none_is_no_input(store: LocalTables, named: Named, value: str) -> None:
    name = made(store, named, "create table t (id bigint) partitioned by (p bigint)")
    store.add_partitions([named("t/p=1"), named("t/p=-10")])
    odd = TableName(name.project, name.table, (("p", value),))
    for look in (store.reading, store.exists, store.count):
        with pytest.raises(SourceError, match="the partition column p is bigint"):
            look(odd)
    with pytest.raises(SinkError, match="the partition column p is bigint"):
        store.check_output(odd)
    assert store.exists(named("t/p=01")) and store.exists(named("t/p=-10"))
