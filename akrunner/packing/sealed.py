"""JSON files with a checksum of themselves, by which a later run knows whether they are as they were written.

::

    {...} -> JSON, and as its last key the checksum of all that stands before it
    bytes, as they are written -> Sum -> stored in such a JSON file, as the checksum of another file beside it
"""

from __future__ import annotations

import contextlib
import os
import uuid
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from akrunner import leftovers
from akrunner.codec import crc32c
from akrunner.io import seals
from akrunner.leftovers.private import private_file

_CHUNK = 4 << 20


def write(folder: str, name: str, value: dict[str, Any], public: bool = False) -> None:
    """Write a JSON file with a checksum, completely or not at all; only its owner may read it.

    Args: value: the content, not empty; public: whether other users may read it, too.
    """
    if public:
        with replacing(folder, name) as stream:
            stream.write(seals.sealed(value))
        return
    partial = os.path.join(folder, f".{name}.partial")
    # a link there would have another file overwritten
    with contextlib.suppress(FileNotFoundError):
        os.remove(partial)
    with private_file(partial, encoding="utf-8") as stream:
        stream.write(seals.sealed(value))
        _to_disk(stream)
    os.replace(partial, os.path.join(folder, name))


@contextlib.contextmanager
def replacing(folder: str, name: str) -> Iterator[IO[str]]:
    """Yield a stream of text that gets its name, and takes the place of an older file, once the block has ended well. Otherwise nothing
    of it stays in the directory, which is the user's, also if this process is killed."""
    partial = os.path.join(folder, f".{name}-{uuid.uuid4().hex[:16]}.partial")
    leftovers.register(partial)
    try:
        with open(partial, "x", encoding="utf-8") as stream:
            yield stream
            _to_disk(stream)
        os.replace(partial, os.path.join(folder, name))
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)
        leftovers.forget(partial)


def _to_disk(stream: IO[Any]) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def is_no_file(path: str) -> bool:
    """Whether something other than a file is at a path: a directory, or a pipe, which nobody may ever write to."""
    return os.path.exists(path) and not os.path.isfile(path)


def read(path: str) -> dict[str, Any] | None:
    """Return the content of a file, without its checksum; None: there is no such file, or it is not as it was written."""
    if is_no_file(path):
        return None
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return seals.unsealed(stream.read())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


class Sum:
    """The checksum of bytes that come piece by piece.

    Its text (`str`) names the algorithm: CRC-32C, or CRC-32 on a machine without the C library for the former.
    """

    def __init__(self) -> None:
        self._found = 0

    def add(self, data: Any) -> None:
        """Add bytes. Args: data: a buffer of bytes."""
        self._found = crc32c.extended(self._found, data) if crc32c.IN_C else zlib.crc32(data, self._found)

    def add_all(self, datas: Sequence[Any], crcs: crc32c.U32, lengths: crc32c.I64) -> None:
        """Add several buffers; the bytes are not read again if their checksums can be used.

        Args:
            datas: buffers of bytes.
            crcs, lengths: CRC-32C and number of bytes of each piece of the same bytes, which may be cut elsewhere [pieces].
        """
        if crc32c.IN_C:
            self._found = crc32c.of_all(np.append(np.uint32(self._found), crcs), np.append(np.int64(0), lengths))
        else:
            for data in datas:
                self.add(data)

    def __str__(self) -> str:
        return f"{'crc32c' if crc32c.IN_C else 'crc32'}:{self._found:08x}"


def is_of(path: str, told: Any) -> bool:
    """Whether a file has the bytes that a `Sum` was made of; False also if there is no file.

    Args: told: text of the `Sum`.
    Raises: OSError: it is there and cannot be read, which says nothing of its bytes.
    """
    found = Sum()
    try:
        with open(path, "rb", buffering=0) as stream:
            while chunk := stream.read(_CHUNK):
                found.add(chunk)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return False
    return bool(str(found) == told)


def sum_of(path: str) -> str:
    """Return the checksum of a file, with its size, as text. Raises: OSError."""
    found, size = 0, 0
    with open(path, "rb", buffering=0) as stream:
        while chunk := stream.read(_CHUNK):
            found, size = zlib.crc32(chunk, found), size + len(chunk)
    return f"{found:08x} of {size} bytes"
