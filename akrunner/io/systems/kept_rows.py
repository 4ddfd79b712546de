"""Rows of an output that wait in a file of this machine until the job has succeeded, for systems that take all of them at
once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from akrunner import leftovers
from akrunner.errors import WriteError
from akrunner.foreign import ours


class KeptRows:
    """Rows in a file of this machine, which is removed even if this process dies.

    Args:
        packed: whether the file is compressed.
    Attributes:
        schema: their schema.
        rows: how many there are.
    """

    def __init__(self, schema: pa.Schema, packed: bool = True) -> None:
        self.rows = 0
        self.schema = schema
        self._packed = packed
        self._folder = leftovers.temp_folder("akrunner-rows-")
        self._path = os.path.join(self._folder, "rows.arrows")
        self._stream: Any = None
        self._writer: Any = None

    def append(self, batch: pa.RecordBatch) -> None:
        """Write rows to the file.

        Raises:
            WriteError: the disk is full.
        """
        with ours(WriteError, f"output: the rows wait in {self._folder} (TMPDIR) for the job's end", self._path):
            if self._writer is None:
                self._open()
            self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def _open(self) -> None:
        self._stream = pa.OSFile(self._path, "wb")
        codec = "lz4" if self._packed and pa.Codec.is_available("lz4") else None
        self._writer = pa.ipc.new_stream(self._stream, self.schema, options=pa.ipc.IpcWriteOptions(compression=codec))

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of all rows; nothing may be appended any more."""
        self._close()
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def file(self) -> str:
        """Return the path of the file, an Arrow stream of all rows; nothing may be appended any more."""
        if not self.rows:
            # not every reader takes a stream without any batch
            self.append(pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self.schema], schema=self.schema))
        self._close()
        return self._path

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self.rows:
            with pa.OSFile(self._path, "rb") as file, pa.ipc.open_stream(file) as reader:
                yield from reader

    def _close(self) -> None:
        writer, stream, self._writer, self._stream = self._writer, self._stream, None, None
        if writer is not None:
            with ours(WriteError, f"output: the rows wait in {self._folder} (TMPDIR) for the job's end", self._path):
                writer.close()
                stream.close()

    @property
    def size(self) -> int:
        """How many bytes the file has so far."""
        return os.path.getsize(self._path) if os.path.exists(self._path) else 0

    def drop(self) -> None:
        """Remove the file."""
        with contextlib.suppress(WriteError):
            self._close()
        leftovers.drop(self._folder)
