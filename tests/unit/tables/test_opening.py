"""A table as a job's input and output, and files into and out of tables."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner import codec
from akrunner.errors import ConfigError, DataError, JobTimeoutError, SinkError, SourceError, WriteError
from akrunner.io import systems
from akrunner.io.csv_options import CsvOptions
from akrunner.io.layouts import PLAIN
from akrunner.io.limits import has_rows, limited
from akrunner.io.systems import apart
from akrunner.schema import Schema
from akrunner.spec import TaskSpec
from akrunner.tables import files, opening
from akrunner.tables.local import LocalTables
from akrunner.tables.local_reading import LocalReading
from akrunner.tables.names import TableName
from akrunner.tables.opening import check_other, check_reachable, file_sink, open_input, open_sink, opened_later
from tests.guards import one_guard
from tests.unit.tables.conftest import Laid

__all__ = ["one_guard"]

Named = Callable[[str], TableName]
CHIEF = TaskSpec("chief", 0)


@pytest.fixture(autouse=True)
def tables(laid: Laid) -> None:
    laid(
        """create table t (id bigint, s string) partitioned by (p string);
        insert into t partition (p) values (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y');
        create table u (id bigint, s string, p string); insert into u values (4, 'd', 'z');
        create table o (id int, v double, d decimal(5,2), z string) partitioned by (pt string)""",
        "demo",
    )


def read(source: Any, **options: Any) -> list[Any]:
    table = open_input(source, read_examples=codec.read_examples, **options)
    found = pa.Table.from_batches(table.batches(), table.schema)
    assert table.replayable and pa.Table.from_batches(table.batches(), table.schema) == found
    return [found.column_names, *zip(*found.to_pydict().values())]


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("url", ["sqlite:///{}/t.db?table=t", "duckdb:///{}/t.db?table=t", "delta:///{}/t"])
def test_rows_whose_columns_come_late_are_not_added_to_a_table_that_came_meanwhile(
    url: str, overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_guard: None
) -> None:
    # other tests may have loaded another library of SQLite's
    monkeypatch.setattr(apart, "needed", lambda: False)
    url = url.format(tmp_path)
    rows = pa.record_batch({"x": [1]})
    first, second = (opened_later(url, codec.write_examples, None, overwrite, PLAIN) for _ in range(2))
    # an attempt that failed has made no table
    first(rows.schema).abort()
    sink = first(rows.schema)
    sink.write(CHIEF, rows)
    sink.commit()
    if overwrite:
        sink = second(rows.schema)
        sink.write(CHIEF, rows)
        sink.commit()
    else:
        with pytest.raises(SinkError, match="another program has made this table since the job began"):
            second(rows.schema)
    assert read(url) == [["x"], (1,)]
    # a job that found a table adds its rows, and waits for programs that have it open now
    output, waits = systems.system_of(url).output, []

    def noted(*given: Any) -> Any:
        waits.append(has_rows())
        return output(*given)

    monkeypatch.setattr(systems.system_of(url), "output", noted)
    sink = opened_later(url, codec.write_examples, None, False, PLAIN)(rows.schema)
    sink.write(CHIEF, rows)
    sink.commit()
    assert read(url) == [["x"], (1,), (1,)] and waits == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite:///{}/t.db?table=t", "duckdb:///{}/t.db?table=t"])
def test_rows_are_not_added_to_a_table_that_came_before_the_first_of_them(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_guard: None
) -> None:
    monkeypatch.setattr(apart, "needed", lambda: False)
    rows = pa.record_batch({"x": [1]})
    first, second = (open_sink(url.format(tmp_path), rows.schema, codec.write_examples) for _ in range(2))
    for sink in (first, second):
        sink.write(CHIEF, rows)
    first.commit()
    with pytest.raises(WriteError, match="another program has made this table since the job began"):
        second.commit()
    second.abort()
    assert read(url.format(tmp_path)) == [["x"], (1,)]


@pytest.mark.slow
def test_a_table_is_a_source() -> None:
    t = "odps://demo/tables/t"
    assert read(t) == [["id", "s", "p"], (1, "a", "x"), (2, "b", "x"), (3, "c", "y")]
    assert read(f"{t}/p=x") == [["id", "s"], (1, "a"), (2, "b")]
    assert read(f"{t}?start=1&end=3", select="s, id") == [["s", "id"], ("b", 2), ("c", 3)]
    assert read(t, input_schema=Schema.parse("id int")) == [["id"], (1,), (2,), (3,)]
    assert read([f"{t}/p=y", f"{t}/p=x?end=1"])[1:] == [(3, "c"), (1, "a")]
    assert len(read([t, "odps://demo/tables/u"])) == 5
    assert read([t, "odps://demo/tables/u"], columns=["p", "id"]) == [["p", "id"], ("x", 1), ("x", 2), ("y", 3), ("z", 4)]
    assert read(t, columns=["s"], defaults={"s": "?"}) == [["s"], ("a",), ("b",), ("c",)]


def test_only_the_columns_that_are_named_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    reading = LocalReading.read
    monkeypatch.setattr(LocalReading, "read", lambda self, names, *rest: asked.append(names) or reading(self, names, *rest))
    assert read("odps://demo/tables/t", columns=["s"])[1:] == [("a",), ("b",), ("c",)] and asked == [["s"], ["s"]]


@pytest.mark.parametrize(
    "source, options, why",
    [
        ("odps://demo/tables/nope", {}, "there is no table odps://demo/tables/nope: the project demo has o, t, u"),
        ("odps://demo/tables/t/p=q", {}, "the table has the partitions p=x, p=y"),
        ("odps://demo/t", {}, "invalid odps table path"),
        (["odps://demo/tables/t", "x.csv"], {}, "x.csv is a path, and others are tables"),
        (["odps://demo/tables/t", "odps://demo/tables/o"], {}, "has other columns"),
        ("odps://demo/tables/t", {"input_format": "csv"}, "input_format= is for files"),
        ("odps://demo/tables/t", {"columns": ["ids"]}, r"columns: .* no column 'ids' \(it has id, s, p\); did you mean 'id'"),
    ],
)
def test_what_is_no_source(source: Any, options: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read(source, **options)


def test_a_source_is_the_table_as_it_was(store: LocalTables, named: Named) -> None:
    table = open_input("odps://demo/tables/t", read_examples=codec.read_examples)
    store.drop(named("t"))
    assert sum(batch.num_rows for batch in table.batches()) == 3


@pytest.mark.slow
def test_a_table_is_an_output(store: LocalTables, named: Named) -> None:
    schema = pa.schema([("V", pa.float32()), ("id", pa.int64())])
    for overwrite, count in ((False, 2), (False, 4), (True, 2)):
        sink = open_sink("odps://demo/tables/o/pt=1", schema, codec.write_examples, None, overwrite)
        sink.write(TaskSpec("worker", 0), pa.record_batch({"V": pa.array([2], pa.float32()), "id": [2]}))
        sink.write(CHIEF, pa.record_batch({"V": pa.array([9], pa.float32()), "id": [9]}))
        sink.restart()
        sink.write(TaskSpec("worker", 0), pa.record_batch({"V": pa.array([2], pa.float32()), "id": [2]}))
        sink.write(CHIEF, pa.record_batch({"V": pa.array([1], pa.float32()), "id": [1]}))
        sink.commit()
        assert store.count(named("o")) == count
    assert read("odps://demo/tables/o", select="id, v, z, pt")[1:] == [(1, 1.0, None, "1"), (2, 2.0, None, "1")]
    sink = open_sink("odps://demo/tables/o/pt=1", schema, codec.write_examples)
    with pytest.raises(WriteError, match="row 0, column 'id' of .* is int, and a value does not fit"):
        sink.write(CHIEF, pa.record_batch({"id": [2**40]}))
    sink.abort()


@pytest.mark.parametrize(
    "path, schema, why",
    [
        ("odps://demo/tables/n/pt=1", {"id": pa.int64()}, r'CREATE TABLE demo.n \(id BIGINT\) PARTITIONED BY \(pt STRING\);"'),
        ("odps://demo/tables/o/pt=1", {"x": pa.int64()}, "has no column 'x' \\(it has id, v, d, z\\)"),
        ("odps://demo/tables/o/pt=1", {"id": pa.string()}, "'id' of .* is int, and the rows have string"),
        ("odps://demo/tables/o/pt=1", {"pt": pa.string()}, "its value stands in the name"),
        ("odps://demo/tables/o", {"id": pa.int64()}, "name one partition"),
        ("odps://demo/tables/o/pt=1?end=3", {"id": pa.int64()}, "leave out"),
        ("odps://demo/o", {"id": pa.int64()}, "invalid odps table path"),
    ],
)
def test_what_is_no_output(path: str, schema: Any, why: str) -> None:
    with pytest.raises(SinkError, match=why):
        open_sink(path, pa.schema(schema), codec.write_examples)


@pytest.mark.slow
def test_a_detached_job_reaches_no_table_of_this_machine() -> None:
    check_reachable(["s3://b/x", None])
    with pytest.raises(ConfigError, match="a table of this machine"):
        check_reachable([None, "odps://demo/tables/t"])


@pytest.mark.slow
def test_files_are_put_into_tables(store: LocalTables, named: Named, tmp_path: Path) -> None:
    csv = tmp_path / "in.csv"
    csv.write_text("id,v,Z,d\n1,1.5,007,1.25\n2,2,,3\n")
    put = files.put(str(csv), named("o/pt=1"), store)
    assert put == files.Put(2)
    assert read("odps://demo/tables/o", select="CAST(d AS VARCHAR) d, z")[1:] == [("1.25", "007"), ("3.00", "")]
    assert files.put(str(csv), named("o/pt=1"), store, overwrite=True, select="id").rows == 2 == store.count(named("o"))
    made = files.put(str(csv), named("new/pt=1"), store)
    assert "CREATE TABLE demo.new" in made.created and "PARTITIONED BY (pt STRING)" in made.created
    assert store.count(named("new/pt=1")) == 2
    for where, why in (("o", "name one partition"), ("t/p=x", "has no column 'v'.*--select")):
        with pytest.raises(SinkError, match=why):
            files.put(str(csv), named(where), store)
    csv.write_text("id,v\n1,1.5\n3000000000,2\n")
    with pytest.raises(DataError, match="row 1, column 'id' of .* is int, and a value does not fit"):
        files.put(str(csv), named("o/pt=1"), store)
    with pytest.raises(SourceError, match="nope"):
        files.put(str(tmp_path / "nope.csv"), named("gone"), store)
    assert store.count(named("o")) == 2 and not store.exists(named("gone"))


@pytest.mark.parametrize("first", ["5.1,3,setosa", "-1e3,a,b", "a,,b", "x,y,x", "2026-01-02,a,b", "\ufeff.5,a,b"])
def test_a_row_is_not_taken_for_names(store: LocalTables, named: Named, tmp_path: Path, first: str) -> None:
    csv = tmp_path / "in.csv"
    csv.write_text(f"{first}\n4,2,c\n", encoding="utf-8")
    for where in ("new", "t/p=x"):
        with pytest.raises(SourceError, match="first line of .*--no-header.*TUNNEL UPLOAD FILE demo"):
            files.put(str(csv), named(where), store)
    assert not store.exists(named("new")) and store.count(named("t/p=x")) == 2


@pytest.mark.slow
def test_a_csv_without_names(store: LocalTables, named: Named, tmp_path: Path) -> None:
    csv = tmp_path / "in.csv"
    csv.write_text('1,"a,b"\n2,\n')
    assert files.put(str(csv), named("t/p=n"), store, header=False) == files.Put(2)
    assert read("odps://demo/tables/t/p=n")[1:] == [(1, "a,b"), (2, None)]
    schema = Schema.parse("z bigint, s string")
    assert "z BIGINT" in files.put(str(csv), named("new"), store, header=False, input_schema=schema).created
    assert read("odps://demo/tables/new")[0] == ["z", "s"]
    with pytest.raises(SourceError, match="make it .CREATE TABLE.*--input-schema"):
        files.put(str(csv), named("gone"), store, header=False)
    with pytest.raises(SinkError, match="has no column 'z'"):
        files.put(str(csv), named("t/p=n"), store, header=False, input_schema=schema)
    csv.write_text("alice,b\n")
    with pytest.raises(SourceError, match="in.csv"):
        files.put(str(csv), named("t/p=n"), store, header=False)
    with pytest.raises(SinkError, match="has no column 'alice'.*--no-header"):
        files.put(str(csv), named("t/p=n"), store)
    assert store.count(named("t/p=n")) == 2 and not store.exists(named("gone"))


def test_tables_are_written_to_files(store: LocalTables, named: Named, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert files.get(named("t?start=1"), str(out), store, columns=["P", "id"]) == 2
    assert pq.read_table(out).to_pydict() == {"p": ["x", "y"], "id": [2, 3]}
    with pytest.raises(SinkError, match="exists"):
        files.get(named("t"), str(out), store)
    assert files.get(named("t"), str(out), store, overwrite=True) == 3
    assert pq.read_table(out).to_pydict() == {"id": [1, 2, 3], "s": ["a", "b", "c"], "p": ["x", "x", "y"]}
    assert files.get(named("t/p=x"), str(out), store, overwrite=True) == 2
    assert pq.read_table(out).column_names == ["id", "s"]
    assert files.get(named("t/p=y"), str(tmp_path / "out.csv"), store) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["table", "out.parquet", "out/"])
def test_an_output_and_output_tables_are_there_together_or_not_at_all(
    kind: str, store: LocalTables, named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may still fail behind the tables' commit is a rename."""
    path = "odps://demo/tables/v" if kind == "table" else f"{tmp_path}/{kind}"
    store.create(named("v"), store.describe(named("u")))
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("p", pa.string())])
    batch, wanted = pa.record_batch([[1], ["a"], ["b"]], schema=schema), [["id", "s", "p"], (1, "a", "b")]

    def rows() -> tuple[Any, Any]:
        ours = read(path) if kind == "table" or Path(path).exists() else []
        return read("odps://demo/tables/u"), ours

    def joined(spoil: Callable[[], object] = lambda: None, replace: bool = True) -> None:
        sink, output = open_sink(path, schema, codec.write_examples, overwrite=replace), store.output(named("u"))
        try:
            sink.write(CHIEF, batch)
            output.part("a").write(batch)
            spoil()
            sink.commit_with(store, lambda more: store.commit([output, *more]))
            sink.commit()
        finally:
            sink.abort()
            output.abort()

    before = rows()
    with monkeypatch.context() as patched, pytest.raises(WriteError):
        patched.setattr(store, "commit", lambda outputs: broken("no space left"))
        joined()
    assert rows() == before
    if kind == "table":
        # dropped by somebody meanwhile: it is the second of the two, and the first is as it was, too
        with pytest.raises(WriteError, match="v was dropped while rows were written"):
            joined(lambda: store.drop(named("v")))
        assert read("odps://demo/tables/u") == before[0]
        store.create(named("v"), store.describe(named("u")))
    else:
        with monkeypatch.context() as patched, pytest.raises(WriteError):
            patched.setattr("akrunner.io.writers.Gathered.close", lambda self: broken("a full disk, found when it is finished"))
            joined()
        assert rows() == before
        with pytest.raises(
            WriteError, match=r"output: .*\(the tables of output_tables= were committed before: run the job again"
        ):
            joined(
                lambda: Path(path).mkdir() if kind == "out.parquet" else (Path(path).mkdir(), (Path(path) / "x").touch()), False
            )
        assert read("odps://demo/tables/u") == wanted
        (Path(path) / "x").unlink(missing_ok=True)
        Path(path).rmdir()
    joined()
    assert rows() == (wanted, wanted)


def broken(why: str) -> None:
    raise WriteError(why)


def test_an_output_that_is_one_of_the_output_tables() -> None:
    check_other("odps://demo/tables/t/p=x", ["odps://demo/tables/t/p=y", "odps://demo/tables/u"], "demo")
    check_other("u.csv", ["odps://demo/tables/u"], "demo")
    check_other(None, ["odps://demo/tables/u"], "demo")
    with pytest.raises(SinkError, match="output: odps://demo/tables/u is one of output_tables=, too"):
        check_other("odps://demo/tables/u", ["odps://demo/tables/v", "demo.u"], "demo")


@pytest.mark.slow
def test_a_folder_is_a_source(tmp_path: Path) -> None:
    for name in ("cat/1.txt", "dog/2.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    assert read(tmp_path, input_format="texts")[1:] == [("cat/1.txt", "cat", "cat/1.txt"), ("dog/2.txt", "dog", "dog/2.txt")]
    assert read(str(tmp_path), input_format="texts", columns=["label"]) == [["label"], ("cat",), ("dog",)]
    assert read(tmp_path, input_format="texts", input_schema=Schema.parse("text string")) == [
        ["text"],
        ("cat/1.txt",),
        ("dog/2.txt",),
    ]
    assert read(tmp_path, input_format="lines", select="SELECT path, line FROM input WHERE text LIKE 'dog%'") == [
        ["path", "line"],
        ("dog/2.txt", 1),
    ]
    with pytest.raises(SourceError, match=r"no column 'nonsense'.*path, label, text"):
        read(tmp_path, input_format="texts", columns=["nonsense"])
    with pytest.raises(SourceError, match="input_format= is for files; the source is a table"):
        read(["odps://demo/tables/t"], input_format="images")
    with pytest.raises(SourceError, match="input_format= .--input-format. is for files; the source is a table in"):
        read("postgresql://me@localhost/shop?table=t", input_format="images")
    with pytest.raises(SourceError, match=r"input_csv= .--input-csv. is for CSV, and input_format='lines' .* is not"):
        read(tmp_path, input_format="lines", input_csv=CsvOptions(delimiter=";"))


@pytest.mark.slow
def test_a_query_reads_no_file_that_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.jpg").write_bytes(b"broken")
    assert read(tmp_path, input_format="images", select="SELECT label, count(*) AS n FROM input GROUP BY label") == [
        ["label", "n"],
        ("cat", 1),
    ]
    with pytest.raises(SourceError, match=r"cat/1\.jpg: no image"):
        read(tmp_path, input_format="images", select="octet_length(bytes)")


def test_a_folder_is_put_into_a_table(tmp_path: Path, named: Named) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n")
    store = LocalTables(str(tmp_path / "tables"))
    done = files.put(tmp_path / "a.txt", TableName.parse("odps://demo/tables/lines"), store, input_format="lines")
    assert done.rows == 2 and "line BIGINT" in done.created.replace("`", "")


@pytest.mark.parametrize("verb", [open_sink, file_sink])
def test_a_server_of_an_output_that_never_answers_is_not_waited_for(verb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, over = threading.Event(), threading.Event()

    def output(*given: Any) -> None:
        asked.set()
        assert over.wait(60)

    monkeypatch.setattr(opening.systems, "system_of", lambda url: SimpleNamespace(output=output))
    with limited(0.2, None), pytest.raises(JobTimeoutError, match="timeout=0.2 s .* waited for flightsql://h"):
        verb("flightsql://h?table=t", pa.schema([("a", pa.int64())]), codec.write_examples)
    over.set()
    assert asked.is_set()
