"""What lakehouse tables share: partitions in URLs, the types of new tables, rows in the shape of a table, and rows that wait."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from akrunner import leftovers
from akrunner.errors import ConfigError, SinkError, WriteError
from akrunner.io.systems import lakes
from akrunner.io.systems.base import Url
from tests.guards import one_guard

__all__ = ["one_guard"]

TABLE = pa.schema([("id", pa.int64()), ("p", pa.float32()), ("day", pa.date32())])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers.keeper, "temp_directory", lambda: str(tmp_path))


def test_a_partition_in_a_url() -> None:
    url = "delta:///t?partition=day=2026-01-02/n%2520m=a%252Fb/z=__HIVE_DEFAULT_PARTITION__"
    assert lakes.partition_of(Url.parse(url)) == {"day": "2026-01-02", "n m": "a/b", "z": None}
    assert lakes.partition_of(Url.parse("delta:///t")) == {}
    for wrong in ("day", "=1", "day=1/day=2", ""):
        with pytest.raises(ConfigError, match="write partition=COLUMN=VALUE"):
            lakes.partition_of(Url.parse(f"delta:///t?partition={wrong}"))


def test_the_columns_by_which_a_new_table_is_partitioned() -> None:
    assert lakes.partition_by(Url.parse("delta:///t"), {"day": "1"}) == ["day"]
    assert lakes.partition_by(Url.parse("delta:///t?partition_by=day, n"), {"day": "1"}) == ["day", "n"]
    with pytest.raises(ConfigError, match="partition= names 'x', which is not in partition_by="):
        lakes.partition_by(Url.parse("delta:///t?partition_by=day"), {"x": "1"})
    with pytest.raises(SinkError, match="partition= names 'dya', and the table is partitioned by day.*'day'"):
        lakes.check_partition({"dya": "1"}, ["day"], "t")


@pytest.mark.parametrize(
    ("kind", "delta", "iceberg"),
    [
        (pa.int8(), pa.int8(), pa.int32()),
        (pa.uint8(), pa.int16(), pa.int32()),
        (pa.uint16(), pa.int32(), pa.int32()),
        (pa.uint32(), pa.int64(), pa.int64()),
        (pa.uint64(), pa.int64(), pa.int64()),
        (pa.float16(), pa.float32(), pa.float32()),
        (pa.large_string(), pa.string(), pa.string()),
        (pa.large_binary(), pa.binary(), pa.binary()),
        (pa.date64(), pa.date32(), pa.date32()),
        (pa.timestamp("ns"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("s", "Asia/Shanghai"), pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.string()),
        (pa.decimal128(9, 2), pa.decimal128(9, 2), pa.decimal128(9, 2)),
        (pa.time32("s"), None, pa.time64("us")),
        (pa.duration("s"), None, None),
        (pa.null(), None, None),
    ],
)
def test_types_of_a_new_table(kind: pa.DataType, delta: pa.DataType | None, iceberg: pa.DataType | None) -> None:
    rows = pa.schema([("x", kind), ("l", pa.list_(pa.uint8())), ("s", pa.struct([("y", pa.uint8())]))])
    for narrow, wanted in ((True, delta), (False, iceberg)):
        if wanted is None:
            with pytest.raises(SinkError, match="column 'x' is of type .*, for which such a table has none"):
                lakes.new_columns(rows, {}, [], "t", narrow)
            continue
        found = lakes.new_columns(rows, {"day": "1"}, ["day", "x"], "t", narrow)
        small = pa.int16() if narrow else pa.int32()
        assert [field.type for field in found] == [
            wanted,
            pa.list_(pa.field("element", small)),
            pa.struct([("y", small)]),
            pa.string(),
        ]
    with pytest.raises(SinkError, match="partition_by= names 'z', and the rows have x"):
        lakes.new_columns(pa.schema([("x", pa.int64())]), {}, ["z"], "t", True)


def test_what_a_table_takes() -> None:
    lakes.check_rows(TABLE, pa.schema([("p", pa.float64()), ("id", pa.string())]), {"day": "2026-01-02"}, "t")
    with pytest.raises(SinkError, match="column 'p' is float there, and date32.day. in the rows, which cannot become that"):
        lakes.check_rows(TABLE, pa.schema([("p", pa.date32())]), {}, "t")
    with pytest.raises(SinkError, match="partition= gives 'day' 'soon', which is no date32"):
        lakes.check_rows(TABLE, pa.schema([("p", pa.float32())]), {"day": "soon"}, "t")
    strict = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.float32())])
    with pytest.raises(SinkError, match="column 'id' may not be null, and the rows do not have it"):
        lakes.check_rows(strict, pa.schema([("p", pa.float32())]), {}, "t")
    lakes.check_rows(strict, pa.schema([]), {}, "t")


def test_rows_in_the_shape_of_a_table() -> None:
    batch = pa.record_batch({"p": [0.5, None], "id": pa.array(["1", "2"]).dictionary_encode()})
    found = lakes.shaped(batch, TABLE, {"day": "2026-01-02"}, 0, "t")
    assert found.schema == TABLE and found.column("id").to_pylist() == [1, 2]
    assert str(found.column("day")[1]) == "2026-01-02"
    assert lakes.shaped(batch, TABLE, {}, 0, "t").column("day").null_count == 2
    with pytest.raises(WriteError, match="output: t: row 11, column 'id': column 'id' cannot become int64"):
        lakes.shaped(pa.record_batch({"id": ["1", "x"]}), TABLE, {}, 10, "t")
    strict = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with pytest.raises(WriteError, match="row 1, column 'id': a null"):
        lakes.shaped(pa.record_batch({"id": pa.array([1, None], pa.int64())}), strict, {}, 0, "t")


def test_a_missing_library_and_a_conflict_in_words() -> None:
    with pytest.raises(
        ConfigError, match=r"Lakes are read and written by nolake, which is missing .*pip install 'akrunner\[no\]'"
    ):
        lakes.library("nolake", "no", "Lakes")
    told = str(lakes.conflict("t", ValueError("version 3\nand more")))
    assert "run it again (ValueError: version 3)" in told and told.startswith("output: t: another writer has changed the table")


@pytest.mark.parametrize(
    ("version", "good"), [("1.6.0", True), ("1.10.0rc1", True), ("2.0", True), ("1.5.9", False), ("0.25.4", False)]
)
def test_a_library_that_reads_deleted_rows_is_refused(monkeypatch: pytest.MonkeyPatch, version: str, good: bool) -> None:
    monkeypatch.setattr("deltalake.__version__", version)
    if good:
        lakes.library("deltalake", "delta", "Delta tables")
        return
    with pytest.raises(
        ConfigError, match=r"by deltalake 1.6 or later, and here is .*pip install --upgrade 'akrunner\[delta\]'"
    ):
        lakes.library("deltalake", "delta", "Delta tables")


def test_the_server_of_a_store_is_that_of_other_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:9000")
    assert lakes.endpoint_options("s3://b/t") == {"AWS_ENDPOINT_URL": "http://localhost:9000", "AWS_ALLOW_HTTP": "true"}
    assert lakes.endpoint_options("/b/t") == {} == lakes.endpoint_options("gs://b/t")


def test_bytes_of_one_length_are_bytes() -> None:
    assert lakes._stored(pa.field("id", pa.binary(2)), pa.binary(2), "t", False) == pa.binary()
