"""A file of an output directory, written by the machine that has the file's rows."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import IO

import pyarrow as pa

from akrunner.errors import SinkError
from akrunner.io import formats
from akrunner.io.writers import Writer


class PartError(Exception):
    """A file cannot be written; the message says why."""


class PartFile:
    """One file of a `PartsSink`, written by the machine that has its rows; created with the first of them.

    Methods raise PartError if the file cannot be written.
    """

    def __init__(self, path: str, form: str, schema: pa.Schema) -> None:
        self._path = path
        self._form = form
        self._schema = schema
        self._stream: IO[bytes] | None = None
        self._writer: Writer | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            if self._writer is None:
                self._stream = open(self._path, "wb")
                self._writer = formats.writer_of(self._form, self._stream, self._schema, _no_examples)
            self._writer.write(batch)
        except (OSError, pa.ArrowException) as e:
            self._drop()
            raise PartError(f"output: cannot write {self._path}: {getattr(e, 'strerror', None) or e}") from None

    def close(self) -> None:
        """Finish the file; when this returns, all of it is on the disk. Does nothing if there is no file."""
        if self._writer is None or self._stream is None:
            return
        try:
            self._writer.close()
            self._stream.flush()
            os.fsync(self._stream.fileno())
            if not os.path.lexists(self._path) or not os.path.samestat(os.fstat(self._stream.fileno()), os.lstat(self._path)):
                raise FileNotFoundError(errno.ENOENT, "it was removed while it was written")
            self._stream.close()
        except (OSError, pa.ArrowException) as e:
            self._drop()
            raise PartError(f"output: cannot write {self._path}: {getattr(e, 'strerror', None) or e}") from None
        self._writer = self._stream = None

    def _drop(self) -> None:
        """Close a file that cannot be written any more; the part is given up."""
        stream, self._writer, self._stream = self._stream, None, None
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _no_examples(stream: IO[bytes], batch: pa.RecordBatch) -> None:
    raise SinkError("output: TFRecords are written by the host")
