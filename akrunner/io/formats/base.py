"""What a format of files is: one class says all of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from akrunner.errors import SinkError, SourceError
from akrunner.io.text import Pieces
from akrunner.io.writers import Writer

if TYPE_CHECKING:
    from akrunner.io.paths import Files

#: (schema, batches) of one opened file
Opened = tuple[pa.Schema, Iterator[pa.RecordBatch]]
#: opens a file of a table: (path, the schema of the table's first file, or None: this is it)
Opener = Callable[[str, pa.Schema | None], Opened]
#: (block, rows)
Counted = tuple[Any, int]


@dataclass(frozen=True)
class Reading:
    """Files that are read as one table.

    Attributes:
        files: of one format, in order, on one file system.
        asked: the columns the user asked for and their types, without those in names of directories; None: all, with types the files say or
            that are guessed.
        only: the names of the columns that are drawn, without those in names of directories; None: all. A format that can read a part of a
            file leaves the others out of its batches, and never out of the schema.
    """

    files: Files
    asked: pa.Schema | None
    only: list[str] | None = None

    def within(self, schema: pa.Schema) -> list[str] | None:
        """Which columns of a file of this schema are read; None: all."""
        return [name for name in self.only or () if name in schema.names] or None

    def seekable(self, path: str) -> Any:
        """The bytes of a file, as pyarrow reads them. Whoever opens it closes it."""
        return pa.OSFile(path) if self.files.is_local else pa.PythonFile(self.files.filesystem.open(path, "rb"), mode="r")

    def stream(self, path: str) -> IO[bytes]:
        """The bytes of a file from its beginning on, unpacked if its name says it is packed. Whoever opens it closes it."""
        opened: IO[bytes] = self.files.filesystem.open(path, "rb", compression="infer")
        return opened


class Format:
    """A format of files. To add one, derive from it; what is not overridden is what a format cannot do.

    Attributes:
        name: as in `input_format=` and `output_format=`.
        endings: of the names of its files, in small letters, with their dots; what is written gets the first.
        title: what a file of it is called in errors, "a CSV".
        reads, writes: whether its files can be read, and written.
        examples: its rows are `tf.train.Example`s: the codec reads and writes them, its files do not say their columns, and floats have 32 bits.
        spread: pyarrow alone writes it: a TaskManager of Flink can.
        lakes: Delta, Iceberg and Hudi keep the rows of their tables in such files.
    """

    name = ""
    endings: tuple[str, ...] = ()
    title = ""
    reads = True
    writes = True
    examples = False
    spread = False
    lakes = False

    def begins(self, head: bytes) -> bool:
        """Whether a file that begins so is of this format. Args: head: its first bytes, at most 16."""
        return False

    def opener(self, table: Reading) -> Opener:
        """What opens the files of a table, one after another; for a format that remembers something from file to file."""
        return lambda path, like: self.open(table, path, like)

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        """(schema, batches) of a file; the batches are read as they are drawn, and close it.

        Args: path: one of the table's files; like: the schema of the first, None: this is it.
        Raises: SourceError: it cannot be read. What a library raises becomes one, with the file's name.
        """
        raise SourceError(f"source: akrunner does not read {self.name} files")

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        """What writes batches of a schema to a stream, which somebody else closes. `check` has passed."""
        raise SinkError(f"output: akrunner does not write {self.name} files")

    def holds(self, data_type: pa.DataType) -> bool:
        """Whether a file of it can hold a column of that type."""
        return True

    def check(self, schema: pa.Schema) -> None:
        """Raises: SinkError: files of it are not written, or cannot hold a column."""
        if not self.writes:
            raise SinkError(f"output: {self.name} files are read, and not written; write parquet or arrow")
        odd = next((field for field in schema if not self.holds(field.type)), None)
        if odd is not None:
            raise SinkError(
                f"output: {self.title or self.name} cannot hold column {odd.name!r} ({odd.type}); write parquet or arrow"
            )

    def blocks(self, path: str, schema: pa.Schema, first: str) -> list[Counted] | None:
        """The blocks of a local file, which can be read one without the other, with their rows.

        Args: schema: of the table; first: path of the table's first file.
        Returns: None: it has none, or is of another schema. What stands for a block is a value of JSON.
        Raises: pa.ArrowException, OSError: the same.
        """
        return None

    def rows(self, path: str, block: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a block. Raises: pa.ArrowException, OSError: it cannot be read."""
        raise pa.ArrowInvalid(f"files of {self.name} have no blocks")

    def row_count(self, path: str) -> int | None:
        """How many rows a local file has; None: nobody knows without reading it."""
        return None

    def null_counts(self, path: str) -> dict[str, int | None]:
        """Column -> how many nulls a local file has in it, None: it does not say; without those of which nobody knows."""
        return {}


def pieces_of(
    files: Files, path: str, quoted: bool, there: bytes | None = None, back: bytes | None = None
) -> tuple[Pieces, Callable[[], Any]]:
    """The text of a file, unpacked on the way, and what closes it. Args: there: table for `bytes.translate` of it; back: from that."""
    if files.is_local:
        file: Any = pa.input_stream(path, compression="detect", buffer_size=0)
    else:
        file = files.filesystem.open(path, "rb", compression="infer")
    read = file.read if there is None else lambda size: file.read(size).translate(there)
    return Pieces(read, quoted, path, back=back), file.close


@contextlib.contextmanager
def closed_on_failure(close: Callable[[], Any]) -> Iterator[None]:
    """What the block cannot read is closed at once, not whenever it is collected."""
    try:
        yield
    except BaseException:
        close()
        raise


def closing(batches: Iterator[pa.RecordBatch], close: Callable[[], Any]) -> Iterator[pa.RecordBatch]:
    """The batches; their file is closed when they end."""
    try:
        yield from batches
    finally:
        close()


def is_blob(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))
