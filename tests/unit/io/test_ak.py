"""Alink's .ak files: bytes as its documentation of them says, there and back, and what is refused."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io import ak_rows
from akrunner.io.ak import AkSink, ak_source

SCHEMA = "id BIGINT, s STRING, b BOOLEAN, d DOUBLE"


def body(*fields: bytes, nulls: int = 0) -> bytes:
    row = bytes([nulls]) + b"".join(fields)
    return len(row).to_bytes(3, "big") + row


def by_hand() -> bytes:
    # units of "hé日" in seven bits a byte, the lowest first, behind their number and one
    text = bytes([4, 0x68, 0xE9, 0x01, 0xE5, 0xCB, 0x01])
    first = body(struct.pack(">q", -2), text, b"\x01", struct.pack(">d", 0.5))
    return b"ALK" + first + body(struct.pack(">q", 7), b"\x01", nulls=0b00110000)


def zipped(path: Path, data: bytes, schema: str = SCHEMA, **meta: Any) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("alink_meta.json", json.dumps({"fileFormat": "binary", "schemaStr": schema, **meta}))
        archive.writestr("data", data)
    return str(path)


def rows_of(path: Any, **options: Any) -> list[dict[str, Any]]:
    source = ak_source(str(path), **options)
    return pa.Table.from_batches(list(source.batches()), source.schema).to_pylist()


def write(path: Any, table: pa.Table, **options: Any) -> None:
    sink = AkSink(str(path), table.schema, **options)
    for batch in table.to_batches(max_chunksize=3):
        sink.write(batch)
    sink.commit()


def test_bytes_as_alink_has_them(tmp_path: Path) -> None:
    found = rows_of(zipped(tmp_path / "t.ak", by_hand()))
    assert found == [{"id": -2, "s": "hé日", "b": True, "d": 0.5}, {"id": 7, "s": "", "b": None, "d": None}]
    later = zipped(tmp_path / "later.ak", b"FLK" + by_hand()[3:], "id LONG, s VARCHAR, b boolean, d double")
    assert rows_of(later) == found
    table = pa.Table.from_pylist(found, ak_source(later).schema)
    write(tmp_path / "mine.ak", table)
    with zipfile.ZipFile(tmp_path / "mine.ak") as archive:
        assert archive.read("data") == by_hand()
        told = {"fileFormat": "binary", "numFiles": 1, "schemaStr": SCHEMA, "version": "v0.1"}
        assert json.loads(archive.read("alink_meta.json")) == told


@pytest.mark.slow
def test_everything_there_and_back() -> None:
    random = np.random.default_rng(5)
    rows = 3000
    letters = np.array(list("aZ0 é日𝄞"))
    texts = ["".join(random.choice(letters, size)) for size in random.integers(0, 60, rows)]
    columns: dict[str, pa.Array] = {
        "b": pa.array(random.random(rows) < 0.5), "i1": pa.array(random.integers(-128, 128, rows), pa.int8()),
        "i2": pa.array(random.integers(-(2**15), 2**15, rows), pa.int16()), "i4": pa.array(random.integers(-(2**31), 2**31, rows), pa.int32()),
        "i8": pa.array(random.integers(-(2**63), 2**63 - 1, rows)), "f": pa.array(random.random(rows), pa.float32()),
        "d": pa.array(random.normal(0, 1e9, rows)), "s": pa.array(texts), "blob": pa.array([t.encode() for t in texts]),
        "t": pa.array(random.integers(-(2**61), 2**61, rows), pa.timestamp("ns")), "day": pa.array(random.integers(-9999, 9999, rows).astype("i4"), pa.date32()),
    }  # fmt: skip
    for nulls in (0.0, 0.3, 1.0):
        some = {
            n: pa.array(c.to_numpy(zero_copy_only=False), c.type, mask=random.random(rows) < nulls) for n, c in columns.items()
        }
        batch = pa.RecordBatch.from_pydict(some)
        back = ak_rows.read(io.BytesIO(b"ALK" + ak_rows.encoded(batch)), batch.schema, "t")
        assert pa.Table.from_batches(list(back)).equals(pa.Table.from_batches([batch]))


@pytest.mark.slow
def test_a_row_of_more_than_three_bytes_can_count() -> None:
    # bytes are copied as they are, which text is not; the count of this text takes four bytes, as that of a larger one would
    large = pa.record_batch({"s": pa.array(["a" * ((1 << 21) + 1), "é", None]), "b": [bytes(15_000_000), b"", None]})
    data = ak_rows.encoded(large)
    assert data[:3] == b"\xff\xff\xff"
    assert pa.Table.from_batches(list(ak_rows.read(io.BytesIO(b"ALK" + data), large.schema, "t"))).to_batches() == [large]


@pytest.mark.parametrize("at", range(3, 64))
def test_damage_is_told(at: int, tmp_path: Path) -> None:
    data = by_hand()
    if at < len(data):
        with pytest.raises(SourceError, match=r"cut short|damaged"):
            cut = rows_of(zipped(tmp_path / "cut.ak", data[:at]))
            # a file that ends where a row does is whole
            assert at in (3, 3 + 3 + 25) and len(cut) < 2
            raise SourceError("cut short")
        with pytest.raises(SourceError, match=r"cut short|damaged|said to have|other"):
            changed = rows_of(zipped(tmp_path / "bad.ak", data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]))
            assert len(changed) == 2
            raise SourceError("other values")


@pytest.mark.parametrize(
    "kind", ["VECTOR", "DENSE_VECTOR", "FLOAT_TENSOR", "TENSOR", "MTABLE", "DECIMAL", "ANY<java.lang.Object>", ""]
)
def test_cells_that_are_not_known(kind: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="column 'v' of .* how Alink writes such cells in .ak files is not known here"):
        ak_source(zipped(tmp_path / "t.ak", b"ALK", f"id BIGINT, v {kind}"))


def test_what_cannot_be_written(tmp_path: Path) -> None:
    for values, words in (([[1.0]], "TypeConvertBatchOp"), ([{"a": 1}], "cast it first")):
        with pytest.raises(SinkError, match=f"column 'v' is .*not known here; .*{words}"):
            AkSink(str(tmp_path / "t.ak"), pa.table({"v": values}).schema)
    with pytest.raises(ConfigError, match="partitionCols: there is no column 'x'"):
        AkSink(str(tmp_path / "t.ak"), pa.schema([("v", pa.int64())]), partitions=["x"])
    assert not list(tmp_path.iterdir())


def test_what_is_no_ak_file(tmp_path: Path) -> None:
    (tmp_path / "t.ak").write_text("a,b\n")
    with pytest.raises(SourceError, match="is no .ak file, which is a zip"):
        ak_source(str(tmp_path / "t.ak"))
    with pytest.raises(SourceError, match="does not begin with ALK"):
        rows_of(zipped(tmp_path / "t.ak", b"XXX"))
    with pytest.raises(SourceError, match="is not what Alink writes"):
        ak_source(zipped(tmp_path / "t.ak", b"", fileFormat="text"))
    with pytest.raises(SourceError, match="two columns of one name"):
        ak_source(zipped(tmp_path / "t.ak", b"", "a INT, a INT"))
    with pytest.raises(SourceError):
        ak_source(str(tmp_path / "nowhere.ak"))


def test_directories(tmp_path: Path) -> None:
    table = pa.table({"i": range(10), "day": ["17", "18"] * 5, "hour": [1, 1, 2, 2, None] * 2})
    write(tmp_path / "many", table, files=2)
    assert sorted(path.name for path in (tmp_path / "many").iterdir()) == ["1", "2"]
    (tmp_path / "many" / "3.inprogress").write_text("half")
    assert sorted(row["i"] for row in rows_of(tmp_path / "many")) == list(range(10))
    write(tmp_path / "parts", table, partitions=["day", "hour"])

    def chosen(partitions: str) -> list[int]:
        return sorted(row["i"] for row in rows_of(tmp_path / "parts", partitions=partitions))

    assert chosen("day = '17'") == chosen("day=17") == chosen("`day` < '18'") == [0, 2, 4, 6, 8]
    assert chosen("day=17/hour=1,day=18/hour=2") == [0, 3, 6, 7]
    assert set(ak_source(str(tmp_path / "parts")).schema.names) == {"i"}
    with pytest.raises(SourceError, match="none of 6 files fits 'day=19'; the directories name day, hour"):
        chosen("day=19")
    with pytest.raises(SourceError, match="partitions: .*colour"):
        chosen("colour = '1'")
    with pytest.raises(SourceError, match="no directory is named column=value"):
        rows_of(tmp_path / "many", partitions="day=17")


def test_nothing_is_there_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.ak"
    write(path, pa.table({"a": [1]}))
    with pytest.raises(SinkError, match="exists"):
        AkSink(str(path), pa.schema([("a", pa.int64())]))
    sink = AkSink(str(path), pa.schema([("a", pa.int64())]), overwrite=True)
    sink.write(pa.record_batch({"a": [2]}))
    assert rows_of(path) == [{"a": 1}]
    sink.abort()
    assert rows_of(path) == [{"a": 1}] and [one.name for one in tmp_path.iterdir()] == ["t.ak"]
