"""Files that are compressed as a whole (`.csv.gz`), unpacked as they are read and packed as they are written.

::

    bytes of a file, a URL -> first bytes: which compression? -> Unpacked.read(n): at most n bytes of the text
    a writer of a format   -> packing(stream, codec)          -> gzip, bzip2, zstd or xz on the stream

Memory holds a few MiB of a file, however large its text is. An archive that is damaged or cut short is an error, never a shorter
text. All archives that are written carry a checksum of their content, and it is compared when they are read; an archive of zstd
that another program wrote may lack it, so that a changed byte may go unnoticed, and a missing end does not.
"""

from __future__ import annotations

import gzip
import importlib
import io
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, cast

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.foreign import redacted
from akrunner.io.writers import Gate, Writer, flush

#: how many bytes of an xz file are read at a time
_CHUNK = 1 << 16
#: how much memory unpacking xz may take; its strongest preset, -9, takes 65 MiB
_XZ_BYTES = 256 << 20
#: zlib's own default; Arrow would take 9, which needs nearly twice the time for a file as large
_GZIP_LEVEL = 6
#: Arrow's default, which takes the least time
_ZSTD_LEVEL = 1
#: the words of Arrow and zlib for an archive that cannot be unpacked. An OSError with other words is the disk's or the network's.
_DAMAGED = re.compile(r"(inflate|decompress) (init )?failed|compressed stream", re.IGNORECASE)
#: names that end so say that the file is not compressed
_PLAIN = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class Codec:
    """A way to compress a file.

    Attributes:
        name: its name in errors.
        ending: what it adds to a file's name.
        magics: what a compressed file begins with, as a pattern.
        arrow: its name for pyarrow; None: Python unpacks it. Arrow's bzip2 fails at an empty archive before another one.
    """

    name: str
    ending: str
    magics: re.Pattern[bytes]
    arrow: str | None


GZIP = Codec("gzip", ".gz", re.compile(rb"\x1f\x8b"), "gzip")
BZIP2 = Codec("bzip2", ".bz2", re.compile(rb"BZh[1-9]"), None)
#: what pzstd writes begins with a frame that is skipped
ZSTD = Codec("zstd", ".zst", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "zstd")
XZ = Codec("xz", ".xz", re.compile(rb"\xfd7zXZ\0"), None)
CODECS = (GZIP, BZIP2, ZSTD, XZ)
#: how many bytes tell how a file is compressed
_HEAD_BYTES = 6


def endings(*plain: str) -> tuple[str, ...]:
    """Return endings of names, those of plain files first, then those of the same files compressed."""
    return (*plain, *(ending + codec.ending for ending in plain for codec in CODECS))


def codec_named(path: str) -> Codec | None:
    """Return how a file is compressed, by its name; None: its name says nothing of it."""
    return next((codec for codec in CODECS if path.lower().endswith(codec.ending)), None)


def _codec_of(path: str, head: bytes) -> Codec | None:
    """Return how a file is compressed, None if it is not.

    Args:
        head: the file's first bytes.
    Raises:
        SourceError: the file's name says something else.
    """
    named, shown = codec_named(path), redacted(path)
    found = next((codec for codec in CODECS if codec.magics.match(head)), None)
    if named is None:
        if found is not None and path.lower().endswith(_PLAIN):
            raise SourceError(
                f"source: {shown} is compressed with {found.name} by its content; its name should end in {found.ending}"
            )
        return found
    if found is named:
        return found
    if not head:
        raise SourceError(f"source: {shown} is empty, and a file of {named.name} has some bytes even if it holds no text")
    if found is not None:
        raise SourceError(
            f"source: {shown} is compressed with {found.name} by its content; its name should end in {found.ending}"
        )
    raise SourceError(
        f"source: {shown} is not compressed with {named.name} by its content, as its name says: it is damaged, or its name "
        f"should not end in {named.ending}"
    )


class Unpacked(io.RawIOBase):
    """The bytes of a file from its beginning, unpacked if they are compressed.

    `read` raises SourceError if the archive is damaged or cut short, and whatever the file raises.

    Attributes:
        codec: how the file is compressed; None: it is not.
    """

    def __init__(self, file: Any, path: str, passed: Callable[[int], None] | None = None) -> None:
        """Args:
        file: the file, open at its beginning; it is closed with this object.
        path: its path or URL, whose ending says how it is compressed.
        passed: is called with the number of bytes that were read of the file, as it is stored, each time; None: nobody is told.
        Raises:
            SourceError: its first bytes say something else than its name.
        """
        super().__init__()
        self._file = file
        self._path = path
        head = _beginning(file)
        self.codec = _codec_of(path, head)
        self._again = _Again(file, head, passed)
        self._unpack: Callable[[int], bytes] = self._again.read
        if self.codec is not None and self.codec.arrow is not None:
            stream = pa.CompressedInputStream(pa.PythonFile(self._again, mode="r"), self.codec.arrow)
            self._unpack = stream.read
        elif self.codec is not None:
            self._unpack = _Archives(self._again, _decompressors(self.codec)).read

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes, as soon as there are any; none at the end of the text."""
        if size < 0:
            return self.readall()
        try:
            return self._unpack(size)
        except (OSError, pa.ArrowException) as e:
            if self.codec is None or not (isinstance(e, _Damaged) or _DAMAGED.search(str(e))):
                raise
            raise SourceError(f"source: {redacted(self._path)} cannot be unpacked: {_reason(str(e), self.codec)}") from None

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _reason(words: str, codec: Codec) -> str:
    if "truncated" in words.lower():
        return f"it is cut short: the end of its {codec.name} archive is missing"
    if "limit" in words:
        return (
            f"it needs more than {_XZ_BYTES >> 20} MiB of memory; compress it again with a smaller dictionary (xz -9 at most)"
        )
    return f"its {codec.name} archive is damaged, or something else follows it ({words})"


def _beginning(file: Any) -> bytes:
    """Return a file's first bytes; a connection may give them one by one."""
    head = b""
    while len(head) < _HEAD_BYTES and (more := file.read(_HEAD_BYTES - len(head))):
        head += more
    return head


class _Again(io.RawIOBase):
    """Gives out a file's first bytes, which were read already, and then the others: not every file can be read from its start
    again."""

    def __init__(self, file: Any, head: bytes, passed: Callable[[int], None] | None) -> None:
        super().__init__()
        self._file = file
        self._head = head
        self._passed = passed

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        head, self._head = self._head[:size], self._head[size:]
        data = head or cast(bytes, self._file.read(size))
        if self._passed is not None:
            self._passed(len(data))
        return data


class _Damaged(OSError):
    """An archive cannot be unpacked; the words are the library's."""


def _decompressors(codec: Codec) -> Callable[[], Any]:
    """Return a function that makes Python's decompressor of one archive."""
    # not every Python has these modules, and few files need them
    if codec is BZIP2:
        import bz2

        return bz2.BZ2Decompressor
    import lzma

    return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_BYTES)


class _Archives:
    """Unpacks the archives of a file one after another. Python's `bz2.open` and `lzma.open` would ignore what follows the first
    one if that is damaged, and `lzma.open` lets an archive take any amount of memory."""

    def __init__(self, file: _Again, made: Callable[[], Any]) -> None:
        """Args:
        made: makes the decompressor of one archive.
        """
        self._made = made
        self._file = file
        self._rest = b""
        self._inner: Any = None

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end.

        Raises:
            _Damaged: the archive is damaged or cut short, or needs too much memory.
        """
        while True:
            if self._inner is None:
                # between archives there may be zeros
                while not self._rest.strip(b"\0"):
                    self._rest = self._file.read(_CHUNK)
                    if not self._rest:
                        return b""
                self._rest = self._rest.lstrip(b"\0")
                self._inner = self._made()
            elif self._inner.needs_input:
                self._rest = self._file.read(_CHUNK)
                if not self._rest:
                    raise _Damaged("truncated")
            try:
                data: bytes = self._inner.decompress(self._rest, size)
            except Exception as e:
                # bzip2 raises OSError, xz an exception of its own
                raise _Damaged(str(e)) from None
            self._rest = b""
            if self._inner.eof:
                self._rest, self._inner = self._inner.unused_data, None
            if data:
                return data


def check_whole(path: str) -> None:
    """Check, for a program that unpacks a local file itself and may not notice what is missing, that the file is a whole
    archive. Reads it to its end, unless it is not compressed.

    Raises:
        SourceError: it is damaged or cut short, or its name does not say how it is compressed.
    """
    with Unpacked(pa.OSFile(path), path) as stream:
        if stream.codec is None:
            return
        if codec_named(path) is None:
            raise SourceError(
                f"source: {redacted(path)} is compressed with {stream.codec.name} by its content; its name should end in "
                f"{stream.codec.ending}"
            )
        while stream.read(_CHUNK):
            pass


def packing(stream: IO[bytes], codec: Codec) -> IO[bytes]:
    """Return a stream whose bytes go to another stream compressed. Its `close` writes the archive's end, and does not close
    the other stream."""
    if codec is GZIP:
        # without the time and a name, which would make two files of the same rows different
        return cast(IO[bytes], gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0))
    if codec is BZIP2:
        import bz2

        return cast(IO[bytes], bz2.BZ2File(stream, "wb"))
    if codec is XZ:
        import lzma

        return cast(IO[bytes], lzma.LZMAFile(stream, "wb"))
    return _zstd(stream)


def _zstd(stream: IO[bytes]) -> IO[bytes]:
    try:
        zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        # on a TaskManager, whose Python has Arrow alone, which cannot add the checksum
        return cast(IO[bytes], pa.CompressedOutputStream(pa.PythonFile(Gate(stream), mode="w"), ZSTD.arrow))
    options = {zstd.CompressionParameter.compression_level: _ZSTD_LEVEL, zstd.CompressionParameter.checksum_flag: 1}
    return cast(IO[bytes], _Zstd(stream, zstd.ZstdCompressor(options=options)))


class _Zstd(io.RawIOBase):
    """Compresses to one archive, also if there is no text. (ZstdFile would write nothing then.)"""

    def __init__(self, stream: IO[bytes], compressor: Any) -> None:
        super().__init__()
        self._stream, self._compressor = stream, compressor

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        packed = self._compressor.compress(data)
        if packed:
            self._stream.write(packed)
        return len(data) if isinstance(data, bytes) else memoryview(data).nbytes

    def close(self) -> None:
        if not self.closed:
            self._stream.write(self._compressor.flush())
        super().close()


class Packed:
    """A writer of batches whose bytes are compressed on their way to a stream."""

    def __init__(self, stream: IO[bytes], codec: Codec, made: Callable[[IO[bytes]], Writer]) -> None:
        """Args:
        made: returns the writer of a format to a stream.
        """
        self._stream = packing(stream, codec)
        self._writer = made(self._stream)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(batch)

    def flush(self) -> None:
        """Write the rows that the format's writer holds; as `Gathered.flush`."""
        flush(self._writer)

    def close(self) -> None:
        """Write the end of the rows and of the archive, also if the first fails."""
        try:
            self._writer.close()
        finally:
            self._stream.close()
