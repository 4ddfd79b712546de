"""Delta tables: one version is read, with what was deleted left out; a job's rows become one new version, or none."""

from __future__ import annotations

import base64
import datetime
import json
import struct
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from akrunner.codec import read_examples
from akrunner.errors import AkrunnerError, ConfigError, SinkError, SourceError, WriteError
from akrunner.io.sources import open_source
from akrunner.io.systems import base, delta, is_system, names_table
from akrunner.io.systems.delta import SYSTEM
from akrunner.running.outputs import check_stream_apart
from tests.guards import one_guard

__all__ = ["one_guard"]

ROWS = pa.table({"id": pa.array(range(4), pa.int64()), "day": ["a", "b", "a", "b"]})
X = pa.schema([("id", pa.int64()), ("day", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table with two partitions; its first version has rows 0 to 3, the second row 7, too."""
    path = tmp_path / "lake" / "t"
    write_deltalake(path, ROWS, partition_by=["day"])
    write_deltalake(path, more(7, "b"), mode="append")
    return path


def more(number: int, day: str) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "day": [day]})


def rows(url: str | Path, columns: list[str] | None = None) -> list[tuple[Any, ...]]:
    table = SYSTEM.open(str(url), None, columns)
    found = [tuple(row.values()) for batch in table.batches() for row in batch.to_pylist()]
    assert found == [tuple(row.values()) for batch in table.batches() for row in batch.to_pylist()]
    return sorted(found, key=str)


def write(url: str | Path, table: pa.Table, overwrite: bool = False) -> None:
    sink = SYSTEM.output(str(url), table.schema, overwrite)
    for batch in table.to_batches():
        sink.write_rows(batch)
    sink.commit()


def test_a_place_where_no_table_can_be_made_is_told_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in ("file", "file/t"):
        with pytest.raises(SinkError, match="file is a file, and a Delta table is a directory"):
            SYSTEM.output(f"delta:///{tmp_path}/{place}", ROWS.schema, False)
    with pytest.raises(SinkError, match=r"partitioned by all of its columns \(id, day\).*name fewer in partition_by="):
        SYSTEM.output(f"delta:///{tmp_path}/new?partition_by=day,id", ROWS.schema, False)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "part-00000-8a8c-c000.snappy.parquet").write_text("")
    SYSTEM.output(f"delta:///{tmp_path}/full", ROWS.schema, False).abort()
    (tmp_path / "full" / "a.csv").write_text("id,day\n")
    with pytest.raises(SinkError, match=r"the directory has other files \(a.csv\), which readers would not find"):
        SYSTEM.output(f"delta:///{tmp_path}/full", ROWS.schema, False)
    octets = pa.schema([("k", pa.binary()), ("v", pa.int64())])
    with pytest.raises(SinkError, match="column 'k' is binary, and Delta would keep other bytes"):
        SYSTEM.output(f"delta:///{tmp_path}/new?partition_by=k", octets, False)
    assert {one.name for one in tmp_path.iterdir()} == {"file", "full"}


@pytest.mark.parametrize("query", ["partition_by=day", "partition_by=id,day&partition=day=a", "partition=day=a"])
def test_a_new_table_in_partitions_whose_columns_come_with_the_first_rows(query: str, tmp_path: Path) -> None:
    # the check before a job without an output schema
    SYSTEM.output(f"delta:///{tmp_path}/new?{query}", pa.schema([]), False).abort()
    assert list(tmp_path.iterdir()) == []


def files(lake: Path) -> set[str]:
    return {str(one.relative_to(lake)) for one in lake.rglob("*") if one.is_file()}


def version(lake: Path) -> int:
    found: int = DeltaTable(lake).version()
    return found


# -- in


def test_a_directory_with_a_log_is_a_table(lake: Path) -> None:
    for url in (f"{lake}", f"{lake}/", f"file://{lake}", f"{lake}?version=0", f"delta:///{lake}", "delta+s3://b/t"):
        assert is_system(url) and names_table(url)
    assert not is_system(str(lake.parent)) and not is_system(f"{lake}/day=a")
    assert SYSTEM.in_files(str(lake)) and not SYSTEM.in_files("delta+s3://b/t") and not SYSTEM.in_files("s3://b/t?version=1")


def test_the_newest_version_and_those_before_it(lake: Path) -> None:
    assert rows(lake) == [(0, "a"), (1, "b"), (2, "a"), (3, "b"), (7, "b")]
    assert rows(f"{lake}?version=0") == rows(f"delta:///{lake}?version=0") == [(0, "a"), (1, "b"), (2, "a"), (3, "b")]
    assert rows(lake, ["day", "id"])[0] == ("a", 0)
    assert SYSTEM.open(str(lake), None, ["day", "id"]).schema == pa.schema([("day", pa.string()), ("id", pa.int64())])
    with pytest.raises(SourceError, match="has no column 'ids'.*did you mean 'id'"):
        rows(lake, ["day", "ids"])


def test_the_version_of_a_moment(lake: Path) -> None:
    tomorrow = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)).isoformat()
    assert len(rows(f"{lake}?timestamp={tomorrow}")) == 5
    assert len(rows(f"{lake}?timestamp=2099-01-01")) == 5
    with pytest.raises(SourceError, match=r"the table's oldest version .* is of 20.*, which is behind timestamp="):
        rows(f"{lake}?timestamp=2001-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("version=9", "there is no version 9; the newest is 1"),
        ("version=x", "version= is a whole number, not 'x'"),
        ("timestamp=soon", "timestamp= is a moment such as 2026-01-02T03:04:05Z, not 'soon'"),
        ("version=1&timestamp=2099-01-01", "name two states of the table; give one"),
        ("verison=1", "there is no option 'verison' here .*did you mean 'version'"),
    ],
)
def test_options_that_are_wrong(lake: Path, query: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        rows(f"{lake}?{query}")


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no Delta table"):
        rows(f"delta:///{tmp_path}/none")


def test_rows_that_were_written_meanwhile_are_not_read(lake: Path) -> None:
    table = SYSTEM.open(str(lake), None, None)
    write_deltalake(lake, more(8, "a"), mode="overwrite")
    assert sum(batch.num_rows for batch in table.batches()) == 5


def test_columns_that_came_later_are_null_in_older_rows(lake: Path) -> None:
    write_deltalake(lake, more(8, "a").append_column("x", pa.array([0.5])), mode="append", schema_mode="merge")
    found = rows(lake, ["id", "x"])
    assert (8, 0.5) in found and (7, None) in found


def test_deleted_rows_are_not_read(lake: Path) -> None:
    DeltaTable(lake).delete("id = 1")
    assert [row[0] for row in rows(lake)] == [0, 2, 3, 7]


def _deletes(path: Path, positions: list[int], feature: str = "deletionVectors") -> None:
    """Write a table of 10 rows in one file, and a version in which a deletion vector removes some."""
    write_deltalake(path, pa.table({"id": pa.array(range(10), pa.int64())}))
    log = path / "_delta_log"
    add = next(one["add"] for one in map(json.loads, (log / f"{0:020}.json").read_text().splitlines()) if "add" in one)
    # a bitmap of 64 bits in Delta's form: its mark, how many bitmaps of 32 bits, the first one's key, and that bitmap
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16) + struct.pack(f"<{len(positions)}H", *positions)
    raw = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    ascii85 = base64.b85encode(raw + b"\0" * (-len(raw) % 4)).decode()
    ours = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    theirs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    vector = {
        "storageType": "i",
        "pathOrInlineDv": ascii85.translate(str.maketrans(ours, theirs)),
        "sizeInBytes": len(raw),
        "cardinality": len(positions),
    }
    told = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [feature], "writerFeatures": [feature]}},
        {"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True, "partitionValues": {}}},
        {"add": {**add, "deletionVector": vector}},
    ]
    (log / f"{1:020}.json").write_text("".join(json.dumps(one) + "\n" for one in told))


def test_rows_of_a_deletion_vector_are_not_read(tmp_path: Path) -> None:
    _deletes(tmp_path / "t", [2, 5])
    assert [row[0] for row in rows(tmp_path / "t")] == [0, 1, 3, 4, 6, 7, 8, 9]
    assert len(rows(f"{tmp_path}/t?version=0")) == 10


@pytest.mark.parametrize("feature", ["typeWidening", "ofTomorrow"])
def test_a_table_that_deltalake_cannot_read_is_refused(tmp_path: Path, feature: str) -> None:
    _deletes(tmp_path / "t", [2], feature)
    with pytest.raises(SourceError, match="source: cannot read .*(?i:unsupported|not supported)"):
        SYSTEM.open(str(tmp_path / "t"), None, None)


def test_columns_that_were_renamed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"col-1": pa.array([1, 2], pa.int64())}))
    file = path / "_delta_log" / f"{0:020}.json"
    told = [json.loads(line) for line in file.read_text().splitlines()]
    for one in told:
        if "protocol" in one:
            one["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in one:
            names = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
            field = {"name": "price", "type": "long", "nullable": True, "metadata": names}
            one["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": [field]})
            one["metaData"]["configuration"] = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    file.write_text("".join(json.dumps(one) + "\n" for one in told))
    assert SYSTEM.open(str(path), None, None).schema.names == ["price"]
    assert rows(path) == [(1,), (2,)]


# -- out


def test_a_new_table_is_made_as_one_version(tmp_path: Path) -> None:
    sink = SYSTEM.output(f"delta:///{tmp_path}/n?partition_by=day", ROWS.schema, False)
    for batch in ROWS.to_batches(max_chunksize=1):
        sink.write_rows(batch)
    assert not (tmp_path / "n").exists()
    sink.commit()
    sink.commit()
    assert version(tmp_path / "n") == 0 and DeltaTable(tmp_path / "n").metadata().partition_columns == ["day"]
    assert rows(tmp_path / "n") == sorted((row["id"], row["day"]) for row in ROWS.to_pylist())


def test_a_job_without_rows_makes_the_table(tmp_path: Path) -> None:
    write(f"delta:///{tmp_path}/n", ROWS.slice(0, 0))
    assert rows(tmp_path / "n") == [] and SYSTEM.open(str(tmp_path / "n"), None, None).schema.names == ["id", "day"]


def test_rows_are_added_and_replaced_as_one_version(lake: Path) -> None:
    write(lake, ROWS)
    assert version(lake) == 2 and len(rows(lake)) == 9
    write(lake, more(8, "c"), overwrite=True)
    assert version(lake) == 3 and rows(lake) == [(8, "c")]
    write(lake, ROWS.slice(0, 0))
    assert version(lake) == 3
    write(lake, ROWS.slice(0, 0), overwrite=True)
    assert rows(lake) == []


@pytest.mark.slow
def test_a_partition_is_replaced_and_gives_its_column(lake: Path) -> None:
    write(f"{lake}?partition=day=a", more(9, "a").select(["id"]), overwrite=True)
    assert rows(lake) == [(1, "b"), (3, "b"), (7, "b"), (9, "a")] and version(lake) == 2
    write(f"{lake}?partition=day=a", more(10, "a"))
    assert (10, "a") in rows(lake) and (9, "a") in rows(lake)
    with pytest.raises(WriteError, match="the rows have other values in 'day' than partition= gives"):
        write(f"{lake}?partition=day=a", more(10, "b"), overwrite=True)
    with pytest.raises(SinkError, match="partition= names 'id', and the table is partitioned by day"):
        write(f"{lake}?partition=id=1", more(10, "b"))


def test_partitions_of_dates_numbers_and_nulls(tmp_path: Path) -> None:
    days = pa.array([datetime.date(2026, 1, 2), datetime.date(2026, 1, 3), None])
    table = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": days, "n": pa.array([1, 2, None], pa.int32())})
    url = f"delta:///{tmp_path}/n"
    write(f"{url}?partition_by=day,n", table)
    one = pa.table({"id": pa.array([9], pa.int64())})
    write(f"{url}?partition=day=2026-01-02/n=1", one, overwrite=True)
    write(f"{url}?partition=day=__HIVE_DEFAULT_PARTITION__/n=__HIVE_DEFAULT_PARTITION__", one, overwrite=True)
    assert sorted(row[0] for row in rows(url)) == [2, 9, 9]
    with pytest.raises(SinkError, match="partition= gives 'n' 'x', which is no int32"):
        write(f"{url}?partition=n=x", one)
    with pytest.raises(ConfigError, match="write partition=COLUMN=VALUE"):
        write(f"{url}?partition=n", one)


def test_a_job_that_failed_or_starts_again_leaves_nothing(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_SENT_ROWS", 1)
    before = files(lake)
    sink = SYSTEM.output(str(lake), X, True)
    sink.write_rows(ROWS.to_batches()[0])
    sink.restart()
    sink.write_rows(ROWS.to_batches()[0])
    sink.abort()
    sink.abort()
    assert files(lake) == before and version(lake) == 1


def test_another_writer_is_told_and_not_replaced(lake: Path) -> None:
    sink = SYSTEM.output(str(lake), X, True)
    sink.write_rows(more(100, "a").to_batches()[0])
    write_deltalake(lake, more(8, "a"), mode="append")
    there, before = rows(lake), files(lake)
    with pytest.raises(WriteError, match="another writer has changed the table while the job ran, so that nothing of the job"):
        sink.commit()
    sink.abort()
    assert rows(lake) == there
    left = files(lake) - before
    DeltaTable(lake).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert left and not files(lake) & left


def test_writers_of_several_partitions_do_not_disturb_each_other(lake: Path) -> None:
    other, same = (SYSTEM.output(f"{lake}?partition=day=a", X, True) for _ in range(2))
    for sink in (other, same):
        sink.write_rows(more(100, "a").to_batches()[0])
    write_deltalake(lake, more(8, "b"), mode="append")
    other.commit()
    assert rows(lake) == [(1, "b"), (100, "a"), (3, "b"), (7, "b"), (8, "b")]
    with pytest.raises(WriteError, match="another writer has changed the table"):
        same.commit()
    same.abort()


def test_rows_are_added_beside_another_writer(lake: Path) -> None:
    sink = SYSTEM.output(str(lake), X, False)
    sink.write_rows(more(100, "a").to_batches()[0])
    write_deltalake(lake, more(8, "b"), mode="append")
    sink.commit()
    assert len(rows(lake)) == 7


def test_a_table_that_came_meanwhile_stays(tmp_path: Path) -> None:
    sink = SYSTEM.output(f"delta:///{tmp_path}/n", X, False)
    sink.write_rows(more(100, "a").to_batches()[0])
    write_deltalake(tmp_path / "n", more(1, "b"))
    with pytest.raises(WriteError, match="was created by somebody else while the job ran"):
        sink.commit()
    sink.abort()
    assert rows(tmp_path / "n") == [(1, "b")]


@pytest.mark.parametrize(
    ("schema", "query", "words"),
    [
        (pa.schema([("idd", pa.int64())]), "", "has no column 'idd'.*'id'"),
        (pa.schema([("id", pa.list_(pa.int64()))]), "", "column 'id' is int64 there, and list<item: int64> in the rows"),
        (X, "?partition_by=id", "the table is there, and is partitioned by day; leave out partition_by="),
        (X, "?version=0", "there is no option 'version' here .there are partition, partition_by."),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_the_job(lake: Path, schema: pa.Schema, query: str, words: str) -> None:
    with pytest.raises(AkrunnerError, match=words):
        SYSTEM.output(f"{lake}{query}", schema, False)


def test_an_append_only_table_is_not_replaced(lake: Path) -> None:
    DeltaTable(lake).alter.set_table_properties({"delta.appendOnly": "true"})
    SYSTEM.output(str(lake), X, False)
    with pytest.raises(SinkError, match="only takes more rows"):
        SYSTEM.output(str(lake), X, True)


def test_a_missing_library_is_named(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(
        ConfigError, match=r"Delta tables are read and written by deltalake, which is missing .*pip install 'akrunner\[delta\]'"
    ):
        rows(lake)


def test_a_scheme_that_the_library_does_not_know() -> None:
    with pytest.raises(SinkError, match="output: cannot write delta.foo://b/t: Unknown scheme: foo"):
        SYSTEM.output("delta+foo://b/t", X, False)


def test_a_table_of_the_library(lake: Path) -> None:
    table = delta.of_table(deltalake.DeltaTable(lake, version=0), ["id"], "the table")
    assert sum(batch.num_rows for batch in table.batches()) == 4
    opened = open_source(deltalake.DeltaTable(lake), read_examples=read_examples, select="SELECT max(id) AS m FROM input")
    assert pa.Table.from_batches(opened.batches()).to_pylist() == [{"m": 7}]
    opened = open_source(f"{lake}?version=0", read_examples=read_examples, select="SELECT max(id) AS m FROM input")
    assert pa.Table.from_batches(opened.batches()).to_pylist() == [{"m": 3}]


def test_a_stream_reads_and_writes_the_same_table(lake: Path) -> None:
    # the table is read as it was when the stream began
    check_stream_apart(str(lake), None, False, str(lake))
