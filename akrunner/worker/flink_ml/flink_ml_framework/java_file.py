"""Reading and writing rows as a file of TFRecord bytes."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO, Optional, Union

from akrunner.worker import running

_FRAME = 16  # bytes around a record's data: length 8, the length's checksum 4, the data's checksum 4


class JavaFile(object):
    """Reads the rows of this task as TFRecord bytes. The records that are written to it become rows of the result."""

    def __init__(self, read_file: str, write_file: Any) -> None:
        """Open no file yet. Args: read_file: a TFRecord file, as `Context.from_java()` returns it; write_file: ignored."""
        self._path = read_file
        self._file: Optional[BinaryIO] = None
        self._written = bytearray()

    def read(self, n: int) -> bytes:
        """Return exactly `n` bytes. Raises: EOFError: fewer are left."""
        if self._file is None:
            self._file = open(self._path, "rb")
        data = self._file.read(n)
        if len(data) < n:
            raise EOFError("%d bytes wanted, %d left" % (n, len(data)))
        return data

    def write(self, data: Union[bytes, bytearray, memoryview], n: Optional[int] = None) -> bool:
        """Take the first `n` bytes (None: all) of data in TFRecord format, and send on the records that are complete."""
        self._written += data[:n]
        while len(self._written) >= _FRAME:
            (length,) = struct.unpack("<Q", self._written[:8])
            if len(self._written) < _FRAME + length:
                break
            running.writer().write(bytes(self._written[12 : 12 + length]))
            del self._written[: _FRAME + length]
        return True

    def close(self) -> None:
        """Close the file that was opened for reading."""
        if self._file is not None:
            self._file.close()
            self._file = None


class _Recorder(object):
    """Refuses to be made: there is no Java process here that encodes rows as this class does."""

    def __init__(self, read_file: Any = None, write_file: Any = None) -> None:
        raise NotImplementedError(
            "%s is not in akrunner: take TFContext(context).get_tfdataset_from_flink(), or "
            "`akrunner.worker.current().batches(1000)`; rows of the result go to `akrunner.worker.current().output_writer`"
            % type(self).__name__
        )


class BytesRecorder(_Recorder):
    """Would read and write rows as bytes with their length in front; not in akrunner."""


class JsonRecorder(_Recorder):
    """Would read and write rows as JSON; not in akrunner."""
