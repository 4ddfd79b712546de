"""Formats of text with one row per line, in which stdin, stdout and files that still grow are read and written, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io.bad_rows import BadRows
from akrunner.io.csv_options import CsvOptions
from akrunner.io.formats.base import Counted, Format
from akrunner.io.lines import row_ends, rows_before
from akrunner.io.parse import Parser
from akrunner.io.shared import DISKS, Place
from akrunner.io.table import BATCH_ROWS
from akrunner.io.text import ROW_BYTES, Piece, Pieces
from akrunner.io.writers import Dated, Writer

#: about how many bytes of lines a block has; in a store, so many times as many, as each block is a request
LINES_BYTES = 1 << 20
AWAY = 8


class Lines(Format):
    """A format of lines. Its blocks are [first byte, byte behind the last].

    Attributes:
        quoted: whether a quoted cell may contain ends of lines.
        headed: whether the first line names the columns and is not a row, unless the user says otherwise.
    """

    quoted = False
    headed = False

    def written_as(self, options: CsvOptions | None, path: str = "") -> Lines:
        return self

    def text(
        self, read: Callable[[int], bytes], name: str, growing: bool = False, wait: bool = True, bad: BadRows | None = None
    ) -> tuple[Lines, Pieces, list[str]]:
        """Begin to read a text.

        Args:
            read, name, growing, bad: as for `Pieces`.
            wait: whether the call may wait for the text's beginning, to see how it is written.
        Returns:
            (the format that parses the text, the text in pieces, notes about what was found).
        """
        return self, Pieces(read, self.quoted, name, growing=growing, bad=bad), []

    def parser(self, pieces: Pieces, asked: pa.Schema | None, like: pa.Schema | None = None) -> Parser:
        """Return a parser for a text from its beginning.

        Args:
            asked: as in `Reading`.
            like: as in `Format.open`.
        """
        raise NotImplementedError

    def block_parser(self, pieces: Pieces, schema: pa.Schema) -> Parser:
        """Return a parser for rows from the middle of a text whose schema is known."""
        raise NotImplementedError

    def lines(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        """Return a writer that writes each batch at once."""
        raise NotImplementedError

    def line_writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        """Return the writer of `lines`, which also refuses times outside the years 1 to 9999."""
        return Dated(self.lines(stream, schema), self.name)

    def blocks(self, path: str, schema: pa.Schema, first: str, place: Place = DISKS) -> list[Counted] | None:
        """Return the blocks of a file, as `Format.blocks` does. A compressed file has none, and neither has one with lists or
        structs."""
        if not self.whole(path) or any(map(pa.types.is_nested, schema.types)):
            return None
        found: list[Counted] = []
        with place.stream(path) as file:
            if not self.at_rows(file, first, place):
                return None
            start, data = file.tell(), b""
            while more := file.read(LINES_BYTES * (AWAY if place.away else 1)):
                data += self.marked(more)
                ends = row_ends(data, quoted=self.quoted)
                if ends is None or len(data) > ROW_BYTES:
                    return None
                if ends.size:
                    length = int(ends[-1])
                    found.append((self.block(start, start + length), rows_before(data, ends)))
                    start, data = start + length, data[length:]
            if data:
                ends = row_ends(data + b"\n", quoted=self.quoted)
                if ends is None or not ends.size:
                    # a quote is not closed: the host, which reads the file instead, says where
                    return None
                found.append((self.block(start, start + len(data)), 1))
        return found

    def whole(self, path: str) -> bool:
        """Whether a file's name says that it is not compressed."""
        return path.endswith(self.endings[0])

    def at_rows(self, file: IO[bytes], first: str, place: Place) -> bool:
        """Read a file up to its first row. Return whether what stands there is as in the table's first file."""
        return True

    def marked(self, data: bytes) -> bytes:
        """Return bytes of a file with the marks that `row_ends` knows, in as many bytes."""
        return data

    def block(self, start: int, end: int) -> Any:
        """Return what stands for a block."""
        return [start, end]

    def of_block(self, block: Any) -> Lines:
        """Return the format of a block's rows."""
        return self

    def rows(self, path: str, block: Any, schema: pa.Schema, place: Place = DISKS) -> Iterator[pa.RecordBatch]:
        with place.stream(path) as file:
            file.seek(block[0])
            data = self.of_block(block).marked(file.read(block[1] - block[0]))
        parser = self.of_block(block).block_parser(Pieces(lambda size: b"", self.quoted, path), schema)
        try:
            batch = parser.parse(Piece(data, 1, True))
        except SourceError as e:
            raise pa.ArrowInvalid(f"{e} (lines are counted from byte {block[0]})") from None
        closed = data if data.endswith(b"\n") else data + b"\n"
        ends = row_ends(closed, quoted=self.quoted)
        if len(data) < block[1] - block[0] or ends is None or rows_before(closed, ends) != batch.num_rows:
            raise pa.ArrowInvalid(
                "the rows are not as they were counted: the file was changed, or a line holds several objects"
            )
        yield from pa.Table.from_batches([batch]).to_batches(max_chunksize=BATCH_ROWS)
