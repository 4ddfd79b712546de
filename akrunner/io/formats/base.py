"""The base class of all file formats: one class describes all of a format."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from akrunner.errors import SinkError, SourceError
from akrunner.io.bad_rows import BadRows
from akrunner.io.compression import Codec, Unpacked
from akrunner.io.csv_options import CsvOptions
from akrunner.io.extents import Extent
from akrunner.io.shared import DISKS, Place
from akrunner.io.text import Pieces
from akrunner.io.writers import Writer

if TYPE_CHECKING:
    from akrunner.io.paths import Files

#: (schema, batches) of one opened file
Opened = tuple[pa.Schema, Iterator[pa.RecordBatch]]
#: opens a file of a table: (path, the schema of the table's first file; None: this is the first file)
Opener = Callable[[str, pa.Schema | None], Opened]
#: (block, number of its rows)
Counted = tuple[Any, int]


@dataclass
class Told:
    """What a format found out about files beside their columns.

    Attributes:
        csv: how text files are written; None: they are no CSV.
        notes: what the user is told about it.
    """

    csv: CsvOptions | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Compression:
    """How files are compressed.

    Attributes:
        name: the name of a codec; none: not at all.
        level: the codec's level; None: the one that it has by itself.
    """

    name: str
    level: int | None = None

    def __str__(self) -> str:
        return self.name if self.level is None else f"{self.name}:{self.level}"


@dataclass(frozen=True)
class Reading:
    """Files that are read as one table.

    Attributes:
        files: the files, of one format, in order, on one file system.
        asked: the columns that the user asked for, with their types, without those in names of directories; None: all columns,
            with types that the files tell or that are guessed.
        only: the names of the columns that are drawn, without those in names of directories; None: all columns. A format that
            can read a part of a file leaves the others out of its batches, but never out of the schema.
        bad: takes bad rows, where the format is `tolerant`; None: a bad row is an error.
        fits: the columns that the user asked for, with their types and NOT NULL, which good rows fit; None: no columns.
        told: takes what the format finds out when it opens the first file.
        extent: is told how far the files have been read.
    """

    files: Files
    asked: pa.Schema | None
    only: list[str] | None = None
    bad: BadRows | None = None
    fits: pa.Schema | None = None
    told: Told = field(default_factory=Told)
    extent: Extent = field(default_factory=Extent)

    def within(self, schema: pa.Schema) -> list[str] | None:
        """Return which columns of a file of this schema are read; None: all."""
        return [name for name in self.only or () if name in schema.names] or None

    def seekable(self, path: str) -> Any:
        """Return the bytes of a file, as pyarrow reads them. The caller closes it."""
        return pa.OSFile(path) if self.files.is_local else pa.PythonFile(self.files.filesystem.open(path, "rb"), mode="r")

    def stream(self, path: str) -> IO[bytes]:
        """Return the bytes of a file from its beginning, unpacked if they are compressed. The caller closes it.

        Raises:
            SourceError: its first bytes are not those of what its name says. Reading raises it if the archive is damaged.
        """
        return io.BufferedReader(self.unpacked(path))

    def unpacked(self, path: str) -> Unpacked:
        """Return the same, without a buffer; the table's extent is told how much of the file has been read. Raises: as `stream`."""
        return unpacked(self.files, path, self.extent)


class Format:
    """A format of files. To add one, derive a class from this one. What a class does not override, its format cannot do.

    Attributes:
        name: its name in `input_format=` and `output_format=`.
        endings: the endings of its files' names, in small letters, with their dots; files that are written get the first.
        title: the words for such a file in errors, such as "a CSV".
        reads: whether its files can be read.
        writes: whether its files can be written.
        examples: whether its rows are `tf.train.Example`s: the codec reads and writes them, its files do not tell their
            columns, and floats have 32 bits.
        spread: whether pyarrow alone writes it, so that a TaskManager of Flink can.
        tolerant: whether it can leave out bad rows and give them to `Reading.bad`.
        sheets: whether a file has several tables, one of which is named behind its path: `book.xlsx?sheet=Q1`.
        doubtful: whether such a file may well be something else than a job's table: a single sample (an array of one image), or
            somebody's document. Its name then does not say that a directory holds tables, and may be replaced.
        lakes: whether Delta, Iceberg and Hudi keep the rows of their tables in such files.
        delimited: whether `input_csv=` and `output_csv=` say how its files are written.
        compressions: the names of the codecs that its files can be compressed with.
        read_as: the name of the format that its files' names tell, which also reads them; "": its own.
    """

    name = ""
    endings: tuple[str, ...] = ()
    title = ""
    reads = True
    writes = True
    examples = False
    spread = False
    tolerant = False
    sheets = False
    doubtful = False
    lakes = False
    delimited = False
    compressions: tuple[str, ...] = ()
    read_as = ""

    def begins(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes is of this format.

        Args:
            head: the file's first bytes, at most 16.
        """
        return False

    def written_as(self, options: CsvOptions | None, path: str = "") -> Format:
        """Return the format for text that is written in this way.

        Args:
            options: what `input_csv=` or `output_csv=` says; None: nothing.
            path: the name of a file that is written; it may say more.
        """
        return self

    def opener(self, table: Reading) -> Opener:
        """Return a function that opens the files of a table, one after another. Override it in a format that remembers
        something from file to file."""
        return lambda path, like: self.open(table, path, like)

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        """Return (schema, batches) of a file. The batches are read as they are drawn, and close the file at their end.

        Args:
            path: one of the table's files.
            like: the schema of the first file; None: this is the first file.
        Raises:
            SourceError: the file cannot be read. What a library raises becomes one, with the file's name.
        """
        raise SourceError(f"source: akrunner does not read {self.name} files")

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        """Return a writer of batches of a schema to a stream, which the caller closes. `check` has passed before."""
        raise SinkError(f"output: akrunner does not write {self.name} files")

    def compressing_writer(self, stream: IO[bytes], schema: pa.Schema, compression: Compression) -> Writer:
        """Return a writer as `writer` does, which compresses with one of `compressions`, or with none.

        Args:
            compression: its name is one of `compressions`, or none.
        """
        return self.writer(stream, schema)

    def stored(self, schema: pa.Schema) -> pa.Schema | None:
        """Return the schema that a file of such rows tells when it is read; None if files do not keep types."""
        return None

    def compresses(self, codec: Codec) -> bool:
        """Whether its files may be compressed as a whole in that way: then one of its endings says so."""
        return self.endings[0] + codec.ending in self.endings

    def holds(self, data_type: pa.DataType) -> bool:
        """Whether a file of this format can hold a column of that type."""
        return True

    def check(self, schema: pa.Schema) -> None:
        """Check that batches of a schema can be written.

        Raises:
            SinkError: files of this format are not written, or cannot hold a column.
        """
        if not self.writes:
            raise SinkError(f"output: {self.name} files are read, and not written; write parquet or arrow")
        odd = next((field for field in schema if not self.holds(field.type)), None)
        if odd is not None:
            raise SinkError(
                f"output: {self.title or self.name} cannot hold column {odd.name!r} ({odd.type}); write parquet or arrow"
            )

    def blocks(self, path: str, schema: pa.Schema, first: str, place: Place = DISKS) -> list[Counted] | None:
        """Return the blocks of a file, each of which can be read without the others, with their numbers of rows.

        Args:
            schema: the schema of the table.
            first: the path of the table's first file.
            place: where the files lie.
        Returns:
            None if the file has no blocks or has another schema. What stands for a block is a value of JSON.
        Raises:
            pa.ArrowException, OSError: the file cannot be read.
        """
        return None

    def rows(self, path: str, block: Any, schema: pa.Schema, place: Place = DISKS) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a block.

        Args:
            place: where the file lies.
        Raises:
            pa.ArrowException, OSError: it cannot be read.
        """
        raise pa.ArrowInvalid(f"files of {self.name} have no blocks")

    def row_count(self, path: str) -> int | None:
        """Return how many rows a local file has; None if that is unknown without reading the file."""
        return None

    def null_counts(self, path: str) -> dict[str, int | None]:
        """Return, for columns of a local file, how many nulls the file says they have; None for a column about which it does
        not say. Columns that are left out are unknown, too."""
        return {}


def unpacked(files: Files, path: str, extent: Extent | None = None) -> Unpacked:
    """Return the bytes of a file from its beginning, unpacked if they are compressed. The caller closes it.

    Args:
        extent: is told how many bytes of the file, as it is stored, have been read; None: nobody is.

    Raises:
        SourceError: its first bytes are not those of what its name says.
    """
    file = pa.OSFile(path) if files.is_local else files.filesystem.open(path, "rb")
    with closed_on_failure(file.close):
        if extent is not None and not files.is_local:
            extent.is_sized(getattr(file, "size", None))
        return Unpacked(file, path, extent.passed if extent is not None else None)


def pieces_of(
    files: Files,
    path: str,
    quoted: bool,
    there: bytes | None = None,
    back: bytes | None = None,
) -> tuple[Pieces, Callable[[], Any]]:
    """Return the text of a file, unpacked on the way, and the function that closes the file.

    Args:
        there: a table for `bytes.translate` that is applied to the text.
        back: the table that undoes `there`.
    """
    file = unpacked(files, path)
    read = file.read if there is None else lambda size: file.read(size).translate(there)
    return Pieces(read, quoted, path, back=back), file.close


@contextlib.contextmanager
def closed_on_failure(close: Callable[[], Any]) -> Iterator[None]:
    """Call `close` at once if the block fails, instead of leaving the file open until it is garbage-collected."""
    try:
        yield
    except BaseException:
        close()
        raise


def closing(batches: Iterator[pa.RecordBatch], close: Callable[[], Any]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; close their file when they end."""
    try:
        yield from batches
    finally:
        close()
