"""numpy's .npz files: a zip with an .npy file for each column, as `np.savez` and `np.savez_compressed` write it."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io.formats import npy
from akrunner.io.formats.base import Format, Opened, Reading, closed_on_failure
from akrunner.io.table import BATCH_ROWS
from akrunner.io.writers import Writer

_ENDING = ".npy"


class Npz(Format):
    """Files of several arrays. Arrays that are not drawn may have another length, and any type: a file of numpy's often has a
    set of rows for training, and one for testing."""

    name = "npz"
    endings = (".npz",)
    title = "an .npz file"
    doubtful = True

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        stream = table.files.filesystem.open(path, "rb")
        with closed_on_failure(stream.close):
            arrays = zipfile.ZipFile(stream)
            members = {_name(info, path): info for info in arrays.infolist()}
            if len(members) < len(arrays.infolist()):
                raise SourceError(f"source: {path} has two arrays of one name")
            drawn = [name for name in members if table.only is None or name in table.only]
            layouts = {name: _layout(arrays, members[name], _words(path, name)) for name in drawn}
            _check_rows(layouts, path)
            types = {name: npy.type_of(one.dtype, one.shape[1:], _words(path, name)) for name, one in layouts.items()}
        schema = pa.schema([(name, types.get(name, pa.null())) for name in members])
        rows = pa.schema([(name, types[name]) for name in drawn])
        return schema, _batches(stream, arrays, {name: (members[name], one) for name, one in layouts.items()}, rows, path)

    def holds(self, data_type: pa.DataType) -> bool:
        return npy.holds(data_type)

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return _NpzWriter(stream, schema)


def _words(path: str, name: str) -> str:
    return f"array {name!r} of {path}"


def _name(info: zipfile.ZipInfo, path: str) -> str:
    if info.is_dir() or not info.filename.endswith(_ENDING):
        raise SourceError(f"source: {path} holds {info.filename!r}, which is no array: only what np.savez writes is read")
    return info.filename[: -len(_ENDING)]


def _layout(arrays: zipfile.ZipFile, info: zipfile.ZipInfo, what: str) -> npy.Layout:
    with arrays.open(info) as stream:
        layout = npy.layout_of(stream, what)
    npy.refuse_objects(layout.dtype, what)
    npy.check_size(layout, info.file_size, what)
    if layout.dtype.names is not None:
        raise SourceError(f"source: {what} is a structured array; store it with np.save, as a table of its own")
    if layout.fortran:
        raise SourceError(
            f"source: {what} lies in Fortran's order, in which it cannot be read row by row from a zip; store it with "
            "np.ascontiguousarray(array)"
        )
    return layout


def _check_rows(layouts: dict[str, npy.Layout], path: str) -> None:
    """Check that the arrays which are drawn are equally long.

    Raises:
        SourceError: they are not.
    """
    lengths = {one.rows for one in layouts.values()}
    if len(lengths) > 1:
        shown = ", ".join(f"{name!r} {one.rows:,}" for name, one in list(layouts.items())[:8])
        alike = [name for name, one in layouts.items() if one.rows == next(iter(layouts.values())).rows]
        raise SourceError(
            f"source: the arrays of {path} are not equally long (rows: {shown}), so they are not the columns of one table; take "
            f"those that are with columns={alike} (--columns {','.join(alike)})"
        )


def _batches(
    stream: Any, arrays: zipfile.ZipFile, members: dict[str, tuple[zipfile.ZipInfo, npy.Layout]], schema: pa.Schema, path: str
) -> Iterator[pa.RecordBatch]:
    with contextlib.ExitStack() as opened:
        opened.callback(stream.close)
        columns = [
            _Column(opened.enter_context(arrays.open(info)), layout, _words(path, name))
            for name, (info, layout) in members.items()
        ]
        left = next((layout.rows for _, layout in members.values()), 0)
        while left:
            # arrays with wide rows are read in smaller steps than others
            rows = min([BATCH_ROWS, *(column.ready() for column in columns)])
            yield pa.RecordBatch.from_arrays([column.take(rows) for column in columns], schema=schema)
            left -= rows
        for column in columns:
            column.finish()


class _Column:
    """An array that is read a few MB at a time, and given in steps of any size."""

    def __init__(self, stream: IO[bytes], layout: npy.Layout, what: str) -> None:
        self._stream, self._what = stream, what
        stream.read(layout.start)
        self._chunks = npy.plain_chunks(stream, layout, what)
        self._held: pa.Array | None = None

    def ready(self) -> int:
        """Return how many rows can be taken without reading more; at least one, if there are any left."""
        if self._held is None or not len(self._held):
            self._held = next(self._chunks)
        return len(self._held)

    def take(self, rows: int) -> pa.Array:
        assert self._held is not None
        taken, self._held = self._held[:rows], self._held[rows:]
        return taken

    def finish(self) -> None:
        """Read the end, with which the zip's checksum is compared.

        Raises:
            SourceError: the array is longer than it says.
            zipfile.BadZipFile: the checksum is wrong.
        """
        if self._stream.read(1):
            raise SourceError(f"source: {self._what} is longer than it says: it is damaged")


class _NpzWriter:
    """Writes an array for each column, when all rows have come."""

    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self._stream = stream
        self._shapes = {field.name: field.type.shape for field in schema if isinstance(field.type, pa.FixedShapeTensorType)}
        self._kept = npy.KeptRows(schema, "npz")

    def write(self, batch: pa.RecordBatch) -> None:
        self._kept.write(batch)

    def close(self) -> None:
        try:
            if not npy.given_up(self._stream):
                self._write()
        finally:
            self._kept.drop()

    def _write(self) -> None:
        kept = self._kept
        kept.finish()
        with zipfile.ZipFile(self._stream, "w") as arrays:
            for name in kept.schema.names:
                dtype, inner = kept.dtype(name)
                shape = (kept.rows, *self._shapes.get(name, inner))
                # with a fixed time, the same rows make the same file
                info = zipfile.ZipInfo(name + _ENDING)
                with arrays.open(info, "w", force_zip64=True) as member:
                    member.write(npy.header_of(dtype, shape))
                    for values in kept.arrays(name):
                        member.write(npy.octets_of(values))


FORMAT = Npz()
