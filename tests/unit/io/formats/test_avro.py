"""Avro files: types, nulls, codecs, what is damaged, and what is written."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import os
import sys
import uuid
from pathlib import Path
from typing import Any

import fastavro
import fsspec
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io.formats import avro
from akrunner.io.formats.avro import FORMAT
from akrunner.io.formats.base import Reading
from akrunner.io.paths import Files
from akrunner.io.sinks import FileSink
from akrunner.io.sources import open_source
from akrunner.spec import TaskSpec

CHIEF = TaskSpec("chief", 0)
UTC = datetime.UTC


def saved(path: Path, records: Any, fields: dict[str, Any], codec: str = "null", **given: Any) -> None:
    told = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    with open(path, "wb") as stream:
        fastavro.writer(stream, told, records, codec=codec, **given)


def opened(path: Path, only: Any = None) -> Any:
    return FORMAT.open(Reading(Files(fsspec.filesystem("file"), [str(path)], "avro", None), None, only), str(path), None)


def rows(batches: Any) -> list[Any]:
    return [row for batch in batches for row in batch.to_pylist()]


def written(*batches: pa.RecordBatch) -> Any:
    FORMAT.check(batches[0].schema)
    stream = io.BytesIO()
    with contextlib.closing(FORMAT.writer(stream, batches[0].schema)) as writer:
        for batch in batches:
            writer.write(batch)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("told", "kind", "value"),
    [
        ("boolean", pa.bool_(), True),
        ("int", pa.int32(), -(2**31)),
        ("long", pa.int64(), 2**63 - 1),
        ("float", pa.float32(), 0.5),
        ("double", pa.float64(), 0.1),
        ("string", pa.string(), "é𝄞\0"),
        ("bytes", pa.binary(), b"\xff\0"),
        ("null", pa.null(), None),
        ({"type": "enum", "name": "E", "symbols": ["X", "Y"]}, pa.string(), "Y"),
        ({"type": "fixed", "name": "F", "size": 3}, pa.binary(3), b"abc"),
        ({"type": "int", "logicalType": "date"}, pa.date32(), datetime.date(1969, 12, 31)),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms"), datetime.time(1, 2, 3, 4000)),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us"), datetime.time(1, 2, 3, 4)),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC"), datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, UTC)),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us", "UTC"), datetime.datetime(2026, 1, 2, 3, 4, 5, 6, UTC)),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us"), datetime.datetime(2026, 1, 2, 3, 4, 5, 6)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, pa.decimal128(9, 2), decimal.Decimal("-1.25")),
        ({"type": "string", "logicalType": "of somebody's own"}, pa.string(), "x"),
        ({"type": "array", "items": ["null", "long"]}, pa.list_(pa.int64()), [1, None]),
        ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.field("value", pa.int64(), False)), [("k", 1)]),
        ({"type": "record", "name": "R", "fields": [{"name": "q", "type": ["null", "int"]}]}, pa.struct([("q", pa.int32())]), {"q": None}),
    ],
)  # fmt: skip
def test_each_type_and_its_nulls(told: Any, kind: pa.DataType, value: Any, tmp_path: Path) -> None:
    given = dict(value) if isinstance(kind, pa.MapType) else value
    saved(tmp_path / "a.avro", [{"a": given}] * 2, {"a": told})
    schema, batches = opened(tmp_path / "a.avro")
    assert (
        schema.field("a").type == kind
        and schema.field("a").nullable == (told == "null")
        and rows(batches) == [{"a": value}] * 2
    )
    for union in (["null", told], [told, "null"]) if told != "null" else ():
        saved(tmp_path / "a.avro", [{"a": given}, {"a": None}], {"a": union})
        schema, batches = opened(tmp_path / "a.avro")
        assert schema == pa.schema([("a", kind)]) and rows(batches) == [{"a": value}, {"a": None}]


def test_identifiers_are_texts(tmp_path: Path) -> None:
    told = {"type": "string", "logicalType": "uuid"}
    one = uuid.UUID(int=7)
    saved(tmp_path / "a.avro", [{"a": one, "b": None}, {"a": one, "b": one}], {"a": told, "b": ["null", told]})
    assert rows(opened(tmp_path / "a.avro")[1]) == [{"a": str(one), "b": None}, {"a": str(one), "b": str(one)}]


def test_identifiers_within_other_types_and_as_bytes(tmp_path: Path) -> None:
    told = {"type": "string", "logicalType": "uuid"}
    one = uuid.UUID(int=7)
    inner = {"type": "record", "name": "R", "fields": [{"name": "q", "type": told}]}
    fixed = {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}
    fields = {"a": {"type": "array", "items": told}, "b": inner, "c": {"type": "map", "values": told}, "d": fixed}
    saved(tmp_path / "a.avro", [{"a": [one], "b": {"q": one}, "c": {"k": one}, "d": one.bytes}], fields)
    want = {"a": [str(one)], "b": {"q": str(one)}, "c": [("k", str(one))], "d": one.bytes}
    assert rows(opened(tmp_path / "a.avro")[1]) == [want]


@pytest.mark.parametrize(
    ("told", "kind", "value"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC"), -(2**62)),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us"), 2**62),
        ({"type": "int", "logicalType": "date"}, pa.date32(), 10_000_000),
    ],
)
def test_times_that_python_cannot_hold(told: Any, kind: pa.DataType, value: int, tmp_path: Path) -> None:
    # fastavro writes integers as they are
    saved(tmp_path / "a.avro", [{"a": value}], {"a": told})
    (batch,) = opened(tmp_path / "a.avro")[1]
    assert batch.schema.field("a").type == kind
    assert batch.column("a").cast(pa.int32() if kind == pa.date32() else pa.int64()).to_pylist() == [value]


def test_a_column_that_is_not_drawn_may_have_any_type(tmp_path: Path) -> None:
    saved(tmp_path / "a.avro", [{"a": 1, "b": 2}, {"a": "x", "b": 3}], {"a": ["long", "string"], "b": "long"})
    schema, batches = opened(tmp_path / "a.avro", only=["b"])
    assert schema.names == ["a", "b"] and rows(batches) == [{"b": 2}, {"b": 3}]
    with pytest.raises(SourceError, match=r"or leave it out \(columns=, --columns\)"):
        opened(tmp_path / "a.avro", only=["a"])


def test_nanoseconds_and_a_type_that_is_named_twice(tmp_path: Path) -> None:
    point = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "double"}]}
    saved(
        tmp_path / "a.avro",
        [{"t": 1, "p": {"x": 0.5}, "q": {"x": 1.5}}],
        {"t": {"type": "long", "logicalType": "timestamp-nanos"}, "p": point, "q": "P"},
    )
    schema, batches = opened(tmp_path / "a.avro")
    (batch,) = batches
    assert schema.field("t").type == pa.timestamp("ns", "UTC") and batch.column("t").cast(pa.int64()).to_pylist() == [1]
    assert batch.column("q").to_pylist() == [{"x": 1.5}]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_each_codec(codec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "_ROWS", 300)
    want = [{"a": number, "b": f"row {number}"} for number in range(1000)]
    saved(tmp_path / "a.avro", want, {"a": "long", "b": "string"}, codec, sync_interval=500)
    _, batches = opened(tmp_path / "a.avro")
    found = list(batches)
    assert rows(found) == want and [batch.num_rows for batch in found] == [300, 300, 300, 100]
    schema, batches = opened(tmp_path / "a.avro", only=["b", "of the directories"])
    assert schema.names == ["a", "b"] and rows(batches) == [{"b": row["b"]} for row in want]


def test_no_rows(tmp_path: Path) -> None:
    saved(tmp_path / "a.avro", [], {"a": "long"})
    schema, batches = opened(tmp_path / "a.avro")
    assert schema.names == ["a"] and rows(batches) == []
    assert FORMAT.begins((tmp_path / "a.avro").read_bytes()[:16]) and not FORMAT.begins(b"Obj")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (["int", "string", "null"], r"column 'a' of .*a.avro is of several types \(int, string\)"),
        ({"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}, "column 'a' of .* holds itself"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 77}, "decimal of 77 digits"),
    ],
)
def test_types_that_no_column_has(told: Any, words: str, tmp_path: Path) -> None:
    saved(tmp_path / "a.avro", [], {"a": told})
    with pytest.raises(SourceError, match=f"source: .*{words}"):
        opened(tmp_path / "a.avro")


def test_what_has_no_records(tmp_path: Path) -> None:
    with open(tmp_path / "a.avro", "wb") as stream:
        fastavro.writer(stream, "long", [1])
    with pytest.raises(SourceError, match="a.avro holds no records"):
        opened(tmp_path / "a.avro")


@pytest.mark.parametrize("kept", [0, 3, 40, -1, -17, -200])
def test_a_file_that_is_cut_short_is_told_before_it_is_read(kept: int, tmp_path: Path) -> None:
    saved(tmp_path / "a.avro", [{"a": number} for number in range(1000)], {"a": "long"}, sync_interval=300)
    (tmp_path / "a.avro").write_bytes((tmp_path / "a.avro").read_bytes()[:kept])
    with pytest.raises(SourceError, match="a.avro"):
        open_source(tmp_path / "a.avro", read_examples=codec.read_examples)


@pytest.mark.parametrize("name", ["null", "deflate", "snappy", "zstandard"])
def test_a_damaged_block_is_an_error(name: str, tmp_path: Path) -> None:
    saved(tmp_path / "a.avro", [{"a": f"row {number}"} for number in range(1000)], {"a": "string"}, name, sync_interval=300)
    data = bytearray((tmp_path / "a.avro").read_bytes())
    sync = bytes(data[-16:])
    second = data.index(sync, data.index(sync) + 16)
    data[second - 3 : second + 5] = b"\xff" * 8
    (tmp_path / "a.avro").write_bytes(data)
    with pytest.raises(SourceError, match="source: cannot read .*a.avro"):
        rows(open_source(tmp_path / "a.avro", read_examples=codec.read_examples).batches())


@pytest.mark.parametrize(("package", "of"), [("fastavro", "null"), ("cramjam", "snappy"), ("backports.zstd", "zstandard")])
def test_a_missing_package_is_named(package: str, of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "a.avro", [{"a": 1}], {"a": "long"}, of)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SourceError, match=rf"source: .* {package}, which is missing .*: pip install 'akrunner\[avro\]'"):
        opened(tmp_path / "a.avro")
    if package == "cramjam":
        # a codec that is not Avro's own, and that the extra leaves out
        (tmp_path / "a.avro").write_bytes((tmp_path / "a.avro").read_bytes().replace(b"\x0csnappy", b"\x06lz4"))
        monkeypatch.setitem(sys.modules, "lz4", None)
        with pytest.raises(SourceError, match=r"compressed with lz4, which needs the package lz4, .*: pip install lz4"):
            opened(tmp_path / "a.avro")
    if package == "fastavro":
        with pytest.raises(SinkError, match=r"output: .*pip install 'akrunner\[avro\]'"):
            FORMAT.check(pa.schema([("a", pa.int64())]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None], pa.int8()),
        pa.array([2**32 - 1, None], pa.uint32()),
        pa.array([2**63 - 1, None], pa.uint64()),
        pa.array([0.5, None], pa.float32()),
        pa.array([0.1, float("inf"), None]),
        pa.array([True, None]),
        pa.array(["é\0", "", None]),
        pa.array([b"\xff", None]),
        pa.array([b"abc", None], pa.binary(3)),
        pa.array(["x", None, "x"]).dictionary_encode(),
        pa.array([-1, None], pa.date32()),
        pa.array([86_400_000, None], pa.date64()),
        pa.array([5, None], pa.timestamp("s")),
        pa.array([5, None], pa.timestamp("us")),
        pa.array([5, None], pa.timestamp("ns")),
        pa.array([5, None], pa.timestamp("us", "UTC")),
        pa.array([5, None], pa.time32("s")),
        pa.array([5, None], pa.time64("us")),
        pa.array([decimal.Decimal("1.25"), None], pa.decimal128(9, 2)),
        pa.array([[1, None], None, [], [3]]),
        pa.array([[1, None], None, [3, 4]], pa.list_(pa.timestamp("us"), 2)),
        pa.array([{"q": 1, "r": ["x"]}, {"q": None, "r": None}, None]),
        pa.array([], pa.int64()),
    ],
)
def test_what_is_written_is_read_again(column: Any, tmp_path: Path) -> None:
    batch = pa.record_batch(
        [column, pa.array(range(len(column)), pa.int64())], pa.schema([("a", column.type), pa.field("n", pa.int64(), False)])
    )
    (tmp_path / "a.avro").write_bytes(written(batch, batch[1:]))
    schema, batches = opened(tmp_path / "a.avro")
    want = batch.to_pylist()
    assert rows(batches) == want + want[1:] and not schema.field("n").nullable


@pytest.mark.parametrize(
    "kind", [pa.duration("us"), pa.time64("ns"), pa.map_(pa.string(), pa.int8()), pa.struct([("t", pa.date32())])]
)
def test_types_that_are_not_written(kind: pa.DataType) -> None:
    with pytest.raises(SinkError, match="an Avro file cannot hold column 'a'"):
        FORMAT.check(pa.schema([("a", kind)]))


@pytest.mark.parametrize("name", ["a b", "1", "é", ""])
def test_names_that_are_not_written(name: str) -> None:
    with pytest.raises(SinkError, match="output: an Avro file cannot have a column called"):
        FORMAT.check(pa.schema([(name, pa.int64())]))


def test_the_output_is_there_when_it_is_committed(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": pa.array([1, 2], pa.uint64())})
    sink = FileSink(str(tmp_path / "a.avro"), batch.schema, codec.write_examples)
    sink.write(CHIEF, batch)
    with pytest.raises(WriteError, match="output: cannot write .*a.avro"):
        sink.write(CHIEF, pa.record_batch({"a": pa.array([2**63], pa.uint64())}))
    sink.abort()
    assert os.listdir(tmp_path) == []
    sink.write(CHIEF, batch)
    sink.commit()
    assert os.listdir(tmp_path) == ["a.avro"] and rows(opened(tmp_path / "a.avro")[1]) == [{"a": 1}, {"a": 2}]
    again = FileSink(str(tmp_path / "a.avro"), batch.schema, codec.write_examples, overwrite=True)
    again.write(CHIEF, batch[:1])
    again.abort()
    assert os.listdir(tmp_path) == ["a.avro"] and len(rows(opened(tmp_path / "a.avro")[1])) == 2
