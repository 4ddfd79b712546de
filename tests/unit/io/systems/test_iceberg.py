"""Iceberg tables: one snapshot is read, with what was deleted left out; a job's rows become one new snapshot, or none."""

from __future__ import annotations

import contextlib
import datetime
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, StringType

from akrunner.codec import read_examples
from akrunner.errors import AkrunnerError, ConfigError, SinkError, SourceError, WriteError
from akrunner.io.sources import open_source
from akrunner.io.systems import base, is_system, names_table
from akrunner.io.systems import iceberg as module
from akrunner.io.systems.iceberg import SYSTEM
from tests.guards import one_guard

__all__ = ["one_guard"]

ROWS = pa.table({"id": pa.array(range(4), pa.int64()), "day": ["a", "b", "a", "b"]})
X = ROWS.schema
URL = "iceberg://lake/ns.t"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(where each test has its catalog, a copy of that as it is at first): files of Iceberg name each other by whole paths, so that a copy is good
    at one place only."""
    place = tmp_path_factory.mktemp("iceberg") / "place"
    place.mkdir()
    with pytest.MonkeyPatch.context() as patched, opened(place, patched) as catalog:
        catalog.create_namespace("ns")
        write(f"{URL}?partition_by=day", ROWS)
    return place, place.rename(place.with_name("template"))


@pytest.fixture
def tmp_path(template: tuple[Path, Path]) -> Iterator[Path]:
    """The directory of a test, in which the catalog is."""
    place, first = template
    shutil.copytree(first, place)
    yield place
    shutil.rmtree(place)


@contextlib.contextmanager
def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlCatalog]:
    """A catalog in a file. Whoever opens it by its name closes it again."""
    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}
    for name, value in {**place, "type": "sql"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
    every: list[SqlCatalog] = []

    def kept(name: str) -> SqlCatalog:
        # pyiceberg has read its configuration when it was imported, maybe before this test
        every.append(SqlCatalog(name, **place))
        return every[-1]

    monkeypatch.setattr("pyiceberg.catalog.load_catalog", kept)
    found = SqlCatalog("lake", **place)
    yield found
    found.close()
    # the others were closed by those who opened them
    assert all(one.engine.pool.checkedin() == 0 for one in every)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlCatalog]:
    """A catalog with a namespace, and in it a table of two partitions, and rows."""
    with opened(tmp_path, monkeypatch) as found:
        yield found


def more(number: int, day: str) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "day": [day]})


def rows(url: str = URL, columns: list[str] | None = None) -> list[tuple[Any, ...]]:
    table = SYSTEM.open(url, None, columns)
    found = [tuple(row.values()) for batch in table.batches() for row in batch.to_pylist()]
    assert found == [tuple(row.values()) for batch in table.batches() for row in batch.to_pylist()]
    assert all(batch.schema == table.schema for batch in table.batches())
    return sorted(found, key=str)


def write(url: str, table: pa.Table, overwrite: bool = False) -> None:
    sink = SYSTEM.output(url, table.schema, overwrite)
    for batch in table.to_batches():
        sink.write_rows(batch)
    sink.commit()


def files(lake: Path) -> set[str]:
    return {str(one.relative_to(lake)) for one in lake.rglob("*") if one.is_file()}


def snapshots(catalog: SqlCatalog) -> int:
    return len(catalog.load_table("ns.t").metadata.snapshots)


# -- in


@pytest.mark.slow
def test_a_table_of_a_catalog(catalog: SqlCatalog) -> None:
    assert is_system(URL) and names_table(URL) and not SYSTEM.in_files(URL)
    assert rows() == [(0, "a"), (1, "b"), (2, "a"), (3, "b")]
    assert rows(columns=["day", "id"])[0] == ("a", 0)
    assert SYSTEM.open(URL, None, None).schema == X


@pytest.mark.slow
def test_columns_that_were_changed_behind_the_newest_snapshot(catalog: SqlCatalog) -> None:
    table = catalog.load_table("ns.t")
    first = table.current_snapshot()
    assert first is not None
    with table.update_schema() as update:
        update.add_column("extra", StringType())
        update.rename_column("id", "number")
    for source in (SYSTEM.open(URL, None, None), module.of_table(table, None, "t")):
        assert source.schema.names == table.scan().to_arrow().schema.names == ["number", "day", "extra"]
        found = [tuple(row.values()) for batch in source.batches() for row in batch.to_pylist()]
        assert sorted(found) == [(0, "a", None), (1, "b", None), (2, "a", None), (3, "b", None)]
    assert rows(columns=["number"]) == [(0,), (1,), (2,), (3,)]
    assert SYSTEM.open(f"{URL}?snapshot={first.snapshot_id}", None, None).schema.names == ["id", "day"]
    table.append(pa.table({"number": pa.array([4], pa.int64()), "day": ["a"], "extra": ["x"]}))
    assert (4, "a", "x") in rows()


@pytest.mark.slow
def test_the_newest_snapshot_and_those_before_it(catalog: SqlCatalog) -> None:
    table = SYSTEM.open(URL, None, None)
    first = catalog.load_table("ns.t").current_snapshot()
    assert first is not None
    write(URL, more(9, "c"), overwrite=True)
    assert rows() == [(9, "c")] and len(rows(f"{URL}?snapshot={first.snapshot_id}")) == 4
    assert sum(batch.num_rows for batch in table.batches()) == 4
    with pytest.raises(SourceError, match=r"there is no snapshot '12' \(the newest are: \d+, \d+\)"):
        rows(f"{URL}?snapshot=12")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("iceberg://lake/ns.none", "there is no such table in the catalog"),
        ("iceberg://lake/none.t", "there is no such table in the catalog"),
        ("iceberg://lake/t", "write iceberg://CATALOG/NAMESPACE.TABLE"),
        (f"{URL}?version=1", "there is no option 'version' here .there is snapshot"),
    ],
)
def test_urls_that_are_wrong(catalog: SqlCatalog, url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        rows(url)


@pytest.mark.parametrize("kind", [SourceError, SinkError])
def test_a_catalog_that_nobody_has_described(kind: type[SourceError], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyiceberg.catalog.list_catalogs", lambda: ["prod"])
    with pytest.raises(kind, match=r"pyiceberg knows no catalog 'prd' \(it knows prod\); did you mean 'prod'.*__PRD__URI"):
        SYSTEM.open("iceberg://prd/ns.t", None, None) if kind is SourceError else SYSTEM.output("iceberg://prd/ns.t", X, False)


@pytest.mark.slow
def test_a_table_by_its_directory(catalog: SqlCatalog, tmp_path: Path) -> None:
    root = tmp_path / "lake" / "ns" / "t"
    write(URL, more(9, "c"))
    assert is_system(str(root)) and SYSTEM.in_files(str(root)) and names_table(str(root))
    assert rows(str(root)) == rows(f"file://{root}") == rows()
    with pytest.raises(SinkError, match="is written by way of its catalog: iceberg://CATALOG/NAMESPACE.TABLE"):
        SYSTEM.output(str(root), X, False)
    newest = sorted((root / "metadata").glob("*.metadata.json"))[-1]
    shutil.copy(newest, newest.with_name(newest.name[:6] + "0ther.metadata.json"))
    with pytest.raises(SourceError, match="may be the table's newest metadata; its catalog knows: iceberg://"):
        rows(str(root))
    shutil.copy(newest, newest.with_name("v7.metadata.json"))
    (root / "metadata" / "version-hint.text").write_text("7\n")
    assert rows(str(root)) == rows()


@pytest.mark.slow
def test_columns_that_came_later_were_renamed_or_widened(catalog: SqlCatalog) -> None:
    write("iceberg://lake/ns.u", pa.table({"id": pa.array([1], pa.int32()), "s": ["x"]}))
    with catalog.load_table("ns.u").update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("s", "text")
        update.add_column("n", LongType())
    write("iceberg://lake/ns.u", pa.table({"id": pa.array([2], pa.int64()), "n": pa.array([5], pa.int64())}))
    assert rows("iceberg://lake/ns.u", ["id", "text", "n"]) == [(1, "x", None), (2, None, 5)]


def _add_deletes(catalog: SqlCatalog, table: pa.Table, content: DataFileContent, path: Path) -> None:
    """Add a file of deletes to the table `ns.u`, as engines do that delete without writing files anew."""
    pq.write_table(table, path)
    lake = catalog.load_table("ns.u")
    file = DataFile.from_args(
        content=content,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=table.num_rows,
        file_size_in_bytes=path.stat().st_size,
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
        spec_id=0,
    )
    from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestWriterV2

    class Deletes(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    transaction = lake.transaction()
    append = transaction.update_snapshot().fast_append()
    old = append._existing_manifests

    def manifests() -> Any:
        output = append.new_manifest_output()
        with Deletes(lake.spec(), lake.schema(), output, append.snapshot_id, "gzip") as writer:
            status = ManifestEntryStatus.ADDED
            writer.add(ManifestEntry.from_args(status=status, snapshot_id=append.snapshot_id, data_file=file))
        return [*old(), writer.to_manifest_file()]

    append._existing_manifests = manifests  # type: ignore[method-assign]
    append.commit()
    transaction.commit_transaction()


def test_rows_of_position_deletes_are_not_read(catalog: SqlCatalog, tmp_path: Path) -> None:
    write("iceberg://lake/ns.u", pa.table({"id": pa.array(range(6), pa.int64())}))
    (task,) = catalog.load_table("ns.u").scan().plan_files()
    deletes = pa.table({"file_path": [task.file.file_path] * 2, "pos": pa.array([1, 4], pa.int64())})
    _add_deletes(catalog, deletes, DataFileContent.POSITION_DELETES, tmp_path / "deletes.parquet")
    assert [row[0] for row in rows("iceberg://lake/ns.u")] == [0, 2, 3, 5]


def test_equality_deletes_are_refused_before_the_job(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(6), pa.int64())})
    write("iceberg://lake/ns.u", table)
    _add_deletes(catalog, table.slice(0, 1), DataFileContent.EQUALITY_DELETES, tmp_path / "deletes.parquet")
    with pytest.raises(SourceError, match="source: iceberg://lake/ns.u has equality deletes .*compact it first"):
        SYSTEM.open("iceberg://lake/ns.u", None, None)
    with pytest.raises(SinkError, match="output: iceberg://lake/ns.u has equality deletes"):
        SYSTEM.output("iceberg://lake/ns.u", table.schema, True)


# -- out


def test_a_new_table_is_made_as_one_snapshot(catalog: SqlCatalog, tmp_path: Path) -> None:
    assert snapshots(catalog) == 1
    before = files(tmp_path)
    sink = SYSTEM.output("iceberg://lake/ns.n", X, False)
    for batch in ROWS.to_batches(max_chunksize=1):
        sink.write_rows(batch)
    assert files(tmp_path) == before and not catalog.table_exists("ns.n")
    sink.commit()
    sink.commit()
    assert rows("iceberg://lake/ns.n") == rows() and len(catalog.load_table("ns.n").metadata.snapshots) == 1


def test_a_job_without_rows_makes_the_table(catalog: SqlCatalog) -> None:
    write("iceberg://lake/ns.n", ROWS.slice(0, 0))
    assert rows("iceberg://lake/ns.n") == []


@pytest.mark.slow
def test_rows_are_added_and_replaced_as_one_snapshot(catalog: SqlCatalog) -> None:
    write(URL, ROWS)
    assert snapshots(catalog) == 2 and len(rows()) == 8
    write(URL, more(8, "c"), overwrite=True)
    assert snapshots(catalog) == 3 and rows() == [(8, "c")]
    write(URL, ROWS.slice(0, 0))
    assert snapshots(catalog) == 3
    write(URL, ROWS.slice(0, 0), overwrite=True)
    assert rows() == []
    write(URL, ROWS, overwrite=True)
    assert len(rows()) == 4


@pytest.mark.slow
def test_a_partition_is_replaced_and_gives_its_column(catalog: SqlCatalog) -> None:
    write(f"{URL}?partition=day=a", more(9, "a").select(["id"]), overwrite=True)
    assert rows() == [(1, "b"), (3, "b"), (9, "a")] and snapshots(catalog) == 2
    with pytest.raises(WriteError, match="the rows have other values in 'day' than partition= gives"):
        write(f"{URL}?partition=day=a", more(10, "b"), overwrite=True)
    with pytest.raises(SinkError, match="partition= names 'id', and the table is partitioned by day"):
        write(f"{URL}?partition=id=1", more(10, "b"))


@pytest.mark.slow
def test_partitions_of_dates_and_nulls(catalog: SqlCatalog) -> None:
    days = pa.array([datetime.date(2026, 1, 2), datetime.date(2026, 1, 3), None])
    url = "iceberg://lake/ns.d"
    write(f"{url}?partition_by=day", pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": days}))
    one = pa.table({"id": pa.array([9], pa.int64())})
    write(f"{url}?partition=day=2026-01-02", one, overwrite=True)
    write(f"{url}?partition=day=__HIVE_DEFAULT_PARTITION__", one, overwrite=True)
    assert sorted(row[0] for row in rows(url)) == [2, 9, 9]


@pytest.mark.slow
def test_files_from_before_the_partitions_are_not_replaced_in_part(catalog: SqlCatalog) -> None:
    write("iceberg://lake/ns.u", ROWS)
    with catalog.load_table("ns.u").update_spec() as update:
        update.add_identity("day")
    sink = SYSTEM.output("iceberg://lake/ns.u?partition=day=a", X, True)
    sink.write_rows(more(9, "a").to_batches()[0])
    with pytest.raises(WriteError, match="is older than the table's partitions, and has rows of several"):
        sink.commit()
    sink.abort()
    assert len(rows("iceberg://lake/ns.u")) == 4


def test_a_job_that_failed_leaves_nothing(catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(tmp_path)
    sink = SYSTEM.output(URL, X, True)
    sink.write_rows(ROWS.to_batches()[0])
    sink.restart()
    sink.write_rows(ROWS.to_batches()[0])
    sink.abort()
    sink.abort()
    assert files(tmp_path) == before

    def broken(*given: Any) -> Any:
        yield from ROWS.to_batches()[:1]
        raise OSError("the disk went away")

    monkeypatch.setattr(module, "_FILE_BYTES", 1)
    monkeypatch.setattr(module.lakes.KeptRows, "_batches", broken)
    sink.write_rows(ROWS.to_batches()[0])
    with pytest.raises(WriteError, match="the disk went away"):
        sink.commit()
    sink.abort()
    assert files(tmp_path) == before


@pytest.mark.slow
def test_another_writer_is_told_and_not_replaced(catalog: SqlCatalog, tmp_path: Path) -> None:
    sink = SYSTEM.output(URL, X, True)
    sink.write_rows(more(100, "a").to_batches()[0])
    catalog.load_table("ns.t").append(more(8, "a"))
    there = rows()
    data = {one for one in files(tmp_path) if "/data/" in one}
    with pytest.raises(WriteError, match="another writer has changed the table while the job ran, so that nothing of the job"):
        sink.commit()
    sink.abort()
    assert rows() == there and {one for one in files(tmp_path) if "/data/" in one} == data


@pytest.mark.slow
def test_writers_of_several_partitions_do_not_disturb_each_other(catalog: SqlCatalog) -> None:
    other, same = (SYSTEM.output(f"{URL}?partition=day=a", X, True) for _ in range(2))
    for sink in (other, same):
        sink.write_rows(more(100, "a").to_batches()[0])
    catalog.load_table("ns.t").append(more(8, "b"))
    other.commit()
    assert rows() == [(1, "b"), (100, "a"), (3, "b"), (8, "b")]
    with pytest.raises(WriteError, match="another writer has changed the table"):
        same.commit()
    same.abort()


@pytest.mark.slow
def test_rows_are_added_beside_another_writer(catalog: SqlCatalog) -> None:
    sink = SYSTEM.output(URL, X, False)
    sink.write_rows(more(100, "a").to_batches()[0])
    catalog.load_table("ns.t").append(more(8, "b"))
    sink.commit()
    assert len(rows()) == 6


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
def test_columns_or_partitions_that_were_changed_meanwhile(catalog: SqlCatalog, overwrite: bool) -> None:
    for change in ("columns", "partitions", "dropped"):
        sink = SYSTEM.output(URL, X, overwrite)
        sink.write_rows(more(100, "a").to_batches()[0])
        table = catalog.load_table("ns.t")
        if change == "columns":
            with table.update_schema() as columns:
                columns.add_column("n", LongType())
        elif change == "partitions":
            with table.update_spec() as partitions:
                partitions.add_identity("id")
        else:
            catalog.drop_table("ns.t")
        with pytest.raises(WriteError, match="another writer has changed the table .*its columns or partitions are others now"):
            sink.commit()
        sink.abort()


def test_a_table_that_came_meanwhile_stays(catalog: SqlCatalog) -> None:
    first, second = (SYSTEM.output("iceberg://lake/ns.n", X, False) for _ in range(2))
    first.write_rows(more(1, "a").to_batches()[0])
    second.write_rows(more(2, "a").to_batches()[0])
    first.commit()
    with pytest.raises(WriteError, match="was created by somebody else while the job ran"):
        second.commit()
    second.abort()
    assert rows("iceberg://lake/ns.n") == [(1, "a")]


@pytest.mark.parametrize(
    ("url", "schema", "words"),
    [
        (URL, pa.schema([("idd", pa.int64())]), "has no column 'idd'.*'id'"),
        (f"{URL}?partition_by=id", X, "the table is there, and is partitioned by day; leave out partition_by="),
        ("iceberg://lake/none.t", X, "the catalog has no namespace 'none'; make it"),
        ("iceberg://lake/t", X, "output: iceberg://lake/t: write iceberg://CATALOG/NAMESPACE.TABLE"),
        ("iceberg://lake/ns.n", pa.schema([("x", pa.duration("s"))]), "column 'x' is of type duration"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_the_job(catalog: SqlCatalog, url: str, schema: pa.Schema, words: str) -> None:
    with pytest.raises(AkrunnerError, match=words):
        SYSTEM.output(url, schema, False)


def test_a_table_of_the_library(catalog: SqlCatalog) -> None:
    opened = open_source(catalog.load_table("ns.t"), read_examples=read_examples, columns=["day"])
    table = pa.Table.from_batches(opened.batches())
    assert sorted(table.column("day").to_pylist()) == ["a", "a", "b", "b"] and table.schema.names == ["day"]
    with pytest.raises(SourceError, match="has no column 'dya'.*did you mean 'day'"):
        open_source(catalog.load_table("ns.t"), read_examples=read_examples, columns=["dya"])


def test_large_batches_are_cut(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BATCH_ROWS", 1)
    assert [batch.num_rows for batch in SYSTEM.open(URL, None, None).batches()] == [1, 1, 1, 1]
