"""numpy's files of several arrays: each is a column."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
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
from akrunner.io.formats.npz import FORMAT
from akrunner.io.paths import Files
from akrunner.io.sinks import FileSink, PartsSink
from akrunner.io.sources import open_source
from akrunner.io.writers import Gate
from akrunner.schema import Schema
from akrunner.spec import TaskSpec

CHIEF = TaskSpec("chief", 0)
ARRAYS: dict[str, Any] = {"id": np.arange(5), "x": np.arange(10.0).reshape(5, 2), "s": np.array(list("abcde"))}
ROWS = [{"id": i, "x": [2.0 * i, 2.0 * i + 1], "s": "abcde"[i]} for i in range(5)]


def opened(path: Path, only: Any = None) -> Any:
    return FORMAT.open(Reading(Files(fsspec.filesystem("file"), [str(path)], "npz", None), None, only), str(path), None)


def source(path: Path, **given: Any) -> Any:
    return open_source(path, read_examples=codec.read_examples, **given)


def rows(batches: Any) -> list[Any]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("step", [8 << 20, 40])
def test_each_array_is_a_column(save: Any, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "_READ_BYTES", step)
    save(tmp_path / "a.npz", **ARRAYS)
    schema, batches = opened(tmp_path / "a.npz")
    assert schema == pa.schema([("id", pa.int64()), ("x", pa.list_(pa.float64(), 2)), ("s", pa.string())])
    found = list(batches)
    assert rows(found) == ROWS and [batch.num_rows for batch in found] == ([5] if step > 40 else [2, 2, 1])


def test_no_rows_and_no_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{name: array[:0] for name, array in ARRAYS.items()})
    schema, batches = opened(tmp_path / "a.npz")
    assert schema.names == ["id", "x", "s"] and rows(batches) == []
    np.savez(tmp_path / "b.npz")
    with pytest.raises(SourceError, match="b.npz has no columns"):
        source(tmp_path / "b.npz")


def test_arrays_that_are_not_drawn_may_be_anything(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **ARRAYS, x_test=np.zeros((2, 2)), odd=np.array([{}], object), f=np.zeros((5, 2), order="F"))
    with pytest.raises(SourceError, match="'odd' of .*a.npz|odd"):
        source(tmp_path / "a.npz")
    taken = source(tmp_path / "a.npz", columns=["s", "id"])
    assert rows(taken.batches()) == rows(taken.batches()) == [{"s": row["s"], "id": row["id"]} for row in ROWS]
    taken = source(tmp_path / "a.npz", input_schema=Schema.parse("id double"))
    assert rows(taken.batches()) == [{"id": float(i)} for i in range(5)]
    for columns, words in (
        (["id", "x_test"], r"not equally long \(rows: 'id' 5, 'x_test' 2\).*columns=\['id'\] \(--columns id\)"),
        (["odd"], "array 'odd' of .* holds Python objects"),
        (["f"], "array 'f' of .* lies in Fortran's order"),
        (["y"], "has no column 'y'"),
    ):
        with pytest.raises(SourceError, match=words):
            source(tmp_path / "a.npz", columns=columns)


@pytest.mark.parametrize(
    ("member", "data", "words"),
    [
        ("notes.txt", b"x", "holds 'notes.txt', which is no array"),
        ("b.npy", b"x", "array 'b' of .*no array of numpy's"),
        ("b.npy", np.zeros(2, [("a", "i4")]), "array 'b' of .*structured array"),
        ("b.npy", np.array(1), "array 'b' of .*single value"),
    ],
)
def test_what_is_no_array(member: str, data: Any, words: str, tmp_path: Path) -> None:
    if not isinstance(data, bytes):
        stream = io.BytesIO()
        np.save(stream, data)
        data = stream.getvalue()
    np.savez(tmp_path / "a.npz", a=np.arange(2))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as arrays:
        arrays.writestr(member, data)
    with pytest.raises(SourceError, match=f"source: .*{words}"):
        source(tmp_path / "a.npz")


def test_a_zip_that_is_damaged_or_cut_short(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.arange(1000))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:-10])
    with pytest.raises(SourceError, match="cannot read .*a.npz as npz: File is not a zip file"):
        source(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(whole.replace((500).to_bytes(8, "little"), (7).to_bytes(8, "little")))
    with pytest.raises(SourceError, match="cannot read .*a.npz: Bad CRC-32 for file 'a.npy'"):
        rows(source(tmp_path / "a.npz").batches())


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pylist(ROWS)
    stream = io.BytesIO()
    writer = FORMAT.writer(stream, batch.schema)
    with contextlib.closing(writer):
        for number in range(5):
            writer.write(batch[number : number + 1])
    (tmp_path / "a.npz").write_bytes(stream.getvalue())
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert list(found) == ["id", "x", "s"]
        assert all(found[name].dtype == array.dtype and np.array_equal(found[name], array) for name, array in ARRAYS.items())
    assert rows(source(tmp_path / "a.npz").batches()) == ROWS


def test_no_rows_are_written(tmp_path: Path) -> None:
    schema = pa.schema(
        [("id", pa.int32()), ("v", pa.list_(pa.float32())), ("t", pa.fixed_shape_tensor(pa.int8(), (2, 3))), ("s", pa.string())]
    )
    sink = FileSink(str(tmp_path / "a.npz"), schema, codec.write_examples)
    sink.commit()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert {name: (found[name].dtype.kind, found[name].shape) for name in found} == {
            "id": ("i", (0,)), "v": ("f", (0, 1)), "t": ("i", (0, 2, 3)), "s": ("U", (0,))
        }  # fmt: skip


def test_columns_that_an_array_cannot_hold() -> None:
    with pytest.raises(SinkError, match="an .npz file cannot hold column 'a'"):
        FORMAT.check(pa.schema([("a", pa.binary())]))


@pytest.mark.slow
def test_the_output_is_there_when_it_is_committed(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": [1, 2]})
    sink = PartsSink(f"{tmp_path}/out/", batch.schema, codec.write_examples, "npz")
    sink.write(CHIEF, batch)
    with pytest.raises(WriteError, match="column 'a' has a null, and arrays of npz"):
        sink.write(CHIEF, pa.record_batch({"a": pa.array([None], pa.int64())}))
    sink.abort()
    assert os.listdir(tmp_path) == []
    sink.write(CHIEF, batch)
    sink.write(TaskSpec("worker", 0), batch[:1])
    sink.commit()
    assert sorted(os.listdir(tmp_path / "out")) == ["part-chief-0.npz", "part-worker-0.npz"]
    assert rows(source(tmp_path / "out").batches()) == [{"a": 1}, {"a": 2}, {"a": 1}]


def test_rows_that_are_given_up_are_not_written() -> None:
    stream = io.BytesIO()
    gate = Gate(stream)
    writer = FORMAT.writer(gate, pa.schema([("a", pa.int64())]))  # type: ignore[arg-type]
    writer.write(pa.record_batch({"a": [1]}))
    gate.shut()
    writer.close()
    assert stream.getvalue() == b"" and gate.tell() == 0
