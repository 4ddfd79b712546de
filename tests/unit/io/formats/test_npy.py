"""numpy's arrays: what becomes of each type and shape, what is refused, and what is written."""

from __future__ import annotations

import contextlib
import io
import os
import struct
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io.formats import npy
from akrunner.io.formats.base import Reading
from akrunner.io.formats.npy import FORMAT
from akrunner.io.paths import Files
from akrunner.io.sinks import FileSink
from akrunner.io.sources import open_source
from akrunner.io.writers import Gate
from akrunner.schema import Schema
from akrunner.spec import TaskSpec

CHIEF = TaskSpec("chief", 0)


def opened(path: Path, asked: Any = None, only: Any = None, scheme: str = "file") -> Any:
    return FORMAT.open(Reading(Files(fsspec.filesystem(scheme), [str(path)], "npy", None), asked, only), str(path), None)


def read(path: Path, array: Any, **given: Any) -> pa.Table:
    np.save(path, array)
    schema, batches = opened(path, **given)
    return pa.Table.from_batches(list(batches), None if given.get("only") else schema)


def written(*batches: pa.RecordBatch) -> Any:
    FORMAT.check(batches[0].schema)
    stream = io.BytesIO()
    writer = FORMAT.writer(stream, batches[0].schema)
    with contextlib.closing(writer):
        for batch in batches:
            writer.write(batch)
    return np.load(io.BytesIO(stream.getvalue()), allow_pickle=False)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.array([1, -2], "<i8"), pa.int64()),
        (np.array([1, 2], ">i4"), pa.int32()),
        (np.array([0, 255], "u1"), pa.uint8()),
        (np.array([0, 2**64 - 1], "u8"), pa.uint64()),
        (np.array([0.5, 2.0], "f2"), pa.float16()),
        (np.array([0.5, np.inf], ">f4"), pa.float32()),
        (np.array([0.1, -0.0], "f8"), pa.float64()),
        (np.array([True, False]), pa.bool_()),
        (np.array(["", "é𝄞"]), pa.string()),
        (np.array(["x", "yz"], ">U3"), pa.string()),
        (np.array([b"", b"\xff"]), pa.binary()),
        (np.array(["2026-01-02", "1969-12-31"], "M8[D]"), pa.date32()),
        (np.array(["2026-01-02T03:04:05", "1969-12-31T00:00:00"], "M8[s]"), pa.timestamp("s")),
        (np.array(["2026-01-02T03:04:05.678901", "NaT"], "M8[us]"), pa.timestamp("us")),
        (np.array(["2026-01", "NaT"], "M8[M]"), pa.date32()),
        (np.array(["2026-01-02T03", "NaT"], "M8[h]"), pa.timestamp("s")),
        (np.array([5, "NaT"], "m8[ms]"), pa.duration("ms")),
        (np.array([5, "NaT"], "M8[25s]"), pa.timestamp("s")),
        (np.array([5, "NaT"], "m8[2D]"), pa.duration("s")),
        (np.array([5, -1], "m8[D]"), pa.duration("s")),
        (np.arange(6, dtype="i2").reshape(2, 3), pa.list_(pa.int16(), 3)),
        (np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3)), pa.list_(pa.float32(), 3)),
        (np.zeros((2, 2, 3), "f4"), pa.fixed_shape_tensor(pa.float32(), (2, 3))),
    ],
)
def test_each_type_and_shape(array: Any, kind: pa.DataType, tmp_path: Path) -> None:
    found = read(tmp_path / "a.npy", array)
    assert found.schema == pa.schema([("value", kind)])
    values = found.column(0).combine_chunks()
    if isinstance(kind, pa.FixedShapeTensorType):
        assert np.array_equal(values.to_numpy_ndarray(), array)
    elif array.dtype.kind in "Mm":
        integers = np.array(
            [0 if v is None else v for v in values.cast(pa.int32() if kind == pa.date32() else pa.int64()).to_pylist()]
        )
        unit = "D" if kind == pa.date32() else kind.unit
        real = ~np.isnat(array)
        assert np.array_equal(integers[real], array.astype(f"{array.dtype.kind}8[{unit}]").astype("i8")[real])
        assert values.null_count == np.isnat(array).sum()
    else:
        assert values.to_pylist() == array.tolist() and values.null_count == 0
    assert read(tmp_path / "a.npy", array[:0]).schema == found.schema


def test_nan_is_no_null(tmp_path: Path) -> None:
    assert read(tmp_path / "a.npy", np.array([np.nan])).column(0).null_count == 0


def test_a_structured_array_has_a_column_for_each_field(tmp_path: Path) -> None:
    kinds = [("id", ">i4"), ("x", "f8", (2,)), ("größe", "U3"), ("t", "f4", (2, 2))]
    array = np.array([(1, (0.5, 1.5), "ä", np.eye(2)), (2, (2.5, 3.5), "", np.zeros((2, 2)))], np.dtype(kinds, align=True))
    np.save(tmp_path / "a.npy", array)
    schema, batches = opened(tmp_path / "a.npy")
    assert schema == pa.schema(
        [
            ("id", pa.int32()),
            ("x", pa.list_(pa.float64(), 2)),
            ("größe", pa.string()),
            ("t", pa.fixed_shape_tensor(pa.float32(), (2, 2))),
        ]
    )
    (batch,) = batches
    assert batch.select(["id", "x", "größe"]).to_pylist() == [
        {"id": 1, "x": [0.5, 1.5], "größe": "ä"},
        {"id": 2, "x": [2.5, 3.5], "größe": ""},
    ]
    schema, batches = opened(tmp_path / "a.npy", only=["x"])
    assert schema.names == ["id", "x", "größe", "t"] and [batch.schema.names for batch in batches] == [["x"]]
    assert FORMAT.row_count(str(tmp_path / "a.npy")) == 2 and FORMAT.begins((tmp_path / "a.npy").read_bytes()[:16])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_an_array_is_read_in_small_steps(order: Any, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "_READ_BYTES", 64)
    array = np.arange(60, dtype="i8").reshape(20, 3)
    stream = io.BytesIO()
    np.save(stream, np.asarray(array, order=order))
    fsspec.filesystem(scheme).pipe_file(str(tmp_path / "a.npy"), stream.getvalue())
    _, batches = opened(tmp_path / "a.npy", scheme=scheme)
    found = list(batches)
    assert [batch.num_rows for batch in found] == [2] * 10
    assert [row for batch in found for row in batch.column(0).to_pylist()] == array.tolist()
    fsspec.filesystem(scheme).rm(str(tmp_path / "a.npy"))


def test_the_column_is_named_as_it_is_asked_for(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1, 2]))
    source = open_source(tmp_path / "a.npy", read_examples=codec.read_examples, input_schema=Schema.parse("x double"))
    assert [batch.to_pydict() for batch in source.batches()] == [{"x": [1.0, 2.0]}]
    np.save(tmp_path / "b.npy", np.array([3]))
    source = open_source([tmp_path / "a.npy", tmp_path / "b.npy"], read_examples=codec.read_examples)
    assert [batch.to_pydict() for batch in source.batches()] == [{"value": [1, 2]}, {"value": [3]}]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([1j]), "has the type complex128, which no column can have"),
        (np.array([b"ab"]).view("V2"), "has the type .*V2"),
        (np.array([1], np.longdouble), "has the type float128"),
        (np.array([1], "m8"), "has the type timedelta64, which no column can have; store it in us or ns"),
        (np.array(1), "is a single value"),
        (np.zeros((2, 0)), r"has the shape \(2, 0\): its rows have no values"),
        (np.zeros((2, 2), [("a", "i4")]), "structured array of 2 dimensions"),
        (np.zeros(2, [("a", [("b", "i4")])]), "field 'a' has the type"),
        (np.zeros((2, 2, 3), order="F"), "Fortran's order"),
    ],
)
def test_arrays_that_are_no_columns(array: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=f"source: .*a.npy.*{words}"):
        read(tmp_path / "a.npy", array)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    for array in (np.array([Runs()], object), np.array([(1, Runs())], [("a", "i4"), ("b", "O")])):
        np.save(tmp_path / "a.npy", array, allow_pickle=True)
        with pytest.raises(SourceError, match=r"a\.npy.* holds Python objects .*unpickled"):
            opened(tmp_path / "a.npy")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: b"", "no array of numpy's, or is cut short"),
        (lambda data: b"x" + data[1:], "no array of numpy's"),
        (lambda data: data[:40], "header of its array is damaged"),
        (lambda data: data.replace(b"(3,)", b"(-3)"), "header of its array is damaged"),
        (lambda data: data.replace(b"<i8", b"<z8"), "header of its array is damaged"),
        (lambda data: data[:8] + struct.pack("<H", 60000) + data[10:], "its header has 60,000 bytes"),
        (lambda data: data[:-1], "is cut short: it has 151 bytes, and its array needs 152"),
        (lambda data: data.replace(b"(3,)", b"(9,)"), "is cut short"),
        (lambda data: data + data, "holds more behind its array"),
    ],
)
def test_a_damaged_file(change: Any, words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "a.npy").write_bytes(change((tmp_path / "a.npy").read_bytes()))
    with pytest.raises(SourceError, match=words):
        opened(tmp_path / "a.npy")


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "_READ_BYTES", 8 * 1024)
    np.save(tmp_path / "a.npy", np.arange(100_000))
    _, batches = opened(tmp_path / "a.npy")
    next(batches)
    os.truncate(tmp_path / "a.npy", 9000)
    with pytest.raises(SourceError, match="a.npy is cut short"):
        list(batches)
    assert FORMAT.row_count(str(tmp_path / "a.npy")) == 100_000
    (tmp_path / "a.npy").write_bytes(b"")
    assert FORMAT.row_count(str(tmp_path / "a.npy")) is None


@pytest.mark.parametrize(
    ("column", "want"),
    [
        (pa.array([1, 2], pa.int8()), np.array([1, 2], "i1")),
        (pa.array([0.5, None], pa.float32()), np.array([0.5, np.nan], "f4")),
        (pa.array([True, False]), np.array([True, False])),
        (pa.array(["é𝄞", ""]), np.array(["é𝄞", ""])),
        (pa.array(["a", "bb"]).dictionary_encode(), np.array(["a", "bb"])),
        (pa.array([1, None], pa.timestamp("ms")), np.array([1, "NaT"], "M8[ms]")),
        (pa.array([1, None], pa.date32()), np.array([1, "NaT"], "M8[D]")),
        (pa.array([86_400_000, None], pa.date64()), np.array([1, "NaT"], "M8[D]")),
        (pa.array([1, None], pa.duration("us")), np.array([1, "NaT"], "m8[us]")),
        (pa.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]])),
        (pa.array([[0.5, None]], pa.list_(pa.float64(), 2)), np.array([[0.5, np.nan]])),
        (pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int8(), (2, 2)), pa.array([[1, 2, 3, 4]], pa.list_(pa.int8(), 4))), np.array([[[1, 2], [3, 4]]], "i1")),
    ],
)  # fmt: skip
def test_what_is_written(column: Any, want: Any) -> None:
    batch = pa.record_batch([column], ["a"])
    found = written(batch)
    assert found.dtype == want.dtype and found.shape == want.shape and found.tobytes() == want.tobytes()
    assert len(written(batch[:0])) == 0
    both = written(pa.record_batch([column, column], ["a", "ä"]), pa.record_batch([column, column], ["a", "ä"]))
    assert both.dtype.names == ("a", "ä") and both["ä"].tobytes() == want.tobytes() * 2


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1, None]), "row 1: column 'a' has a null, and arrays of npy hold nulls only in floats"),
        (pa.array([None, True]), "row 0: column 'a' has a null"),
        (pa.array(["x", None]), "row 1: column 'a' has a null"),
        (pa.array([[1], None]), "row 1: column 'a' has a null"),
        (pa.array([[1, None]]), "column 'a' has a null"),
        (pa.array([[1], [1, 2]]), "column 'a' has lists of 1 and of 2 values"),
        (pa.array(["x\0"]), "column 'a' has a text with a NUL"),
    ],
)
def test_values_that_an_array_cannot_hold(column: Any, words: str) -> None:
    with pytest.raises(WriteError, match=f"output: {words}"):
        written(pa.record_batch([column], ["a"]))


def test_one_long_text_does_not_fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "_PADDED_BYTES", 1000)
    with pytest.raises(WriteError, match="a text of 500 characters, and npy would pad all"):
        written(pa.record_batch({"a": ["x" * 500] + [""] * 100}))


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.decimal128(9, 2), pa.list_(pa.string()), pa.timestamp("us", "UTC"), pa.time64("us"), pa.struct([("a", pa.int8())])]
)  # fmt: skip
def test_types_that_an_array_cannot_hold(kind: pa.DataType) -> None:
    with pytest.raises(SinkError, match="an .npy file cannot hold column 'a'"):
        FORMAT.check(pa.schema([("a", kind)]))


def test_the_output_is_there_when_it_is_committed(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": [1, 2]})
    sink = FileSink(str(tmp_path / "a.npy"), batch.schema, codec.write_examples)
    sink.write(CHIEF, batch)
    with pytest.raises(WriteError, match="a.npy: .*has a null|column 'a' has a null"):
        sink.write(CHIEF, pa.record_batch({"a": pa.array([None], pa.int64())}))
    sink.abort()
    assert os.listdir(tmp_path) == []
    sink.write(CHIEF, batch)
    sink.write(CHIEF, batch)
    sink.commit()
    assert os.listdir(tmp_path) == ["a.npy"] and np.load(tmp_path / "a.npy").tolist() == [1, 2, 1, 2]
    again = FileSink(str(tmp_path / "a.npy"), batch.schema, codec.write_examples, overwrite=True)
    again.write(CHIEF, batch[:1])
    again.abort()
    assert os.listdir(tmp_path) == ["a.npy"] and np.load(tmp_path / "a.npy").tolist() == [1, 2, 1, 2]


def test_rows_that_are_given_up_are_not_written() -> None:
    stream = io.BytesIO()
    gate = Gate(stream)
    writer = FORMAT.writer(gate, pa.schema([("a", pa.int64())]))  # type: ignore[arg-type]
    writer.write(pa.record_batch({"a": [1]}))
    gate.shut()
    writer.close()
    assert stream.getvalue() == b"" and gate.tell() == 0
