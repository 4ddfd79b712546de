"""JSON lines: an object on each line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io import parse
from akrunner.io.ahead import ahead
from akrunner.io.formats.base import Opened, Opener, Reading, closed_on_failure, closing, is_blob, pieces_of
from akrunner.io.formats.lines import Lines
from akrunner.io.text import Pieces
from akrunner.io.tolerant import tolerant
from akrunner.io.writers import JsonLines, Writer
from akrunner.schema import is_list


class Jsonl(Lines):
    name = "jsonl"
    endings = (".jsonl", ".ndjson", ".json", ".jsonl.gz")
    title = "JSON"
    tolerant = True

    def parser(self, pieces: Pieces, asked: pa.Schema | None, like: pa.Schema | None = None) -> parse.JsonParser:
        # columns that the schema does not name are ignored
        return parse.JsonParser(pieces, asked, like if asked is None else None)

    def block_parser(self, pieces: Pieces, schema: pa.Schema) -> parse.JsonParser:
        return parse.JsonParser(pieces, like=schema)

    def opener(self, table: Reading) -> Opener:
        return _Files(self, table).open

    def holds(self, data_type: pa.DataType) -> bool:
        return not is_blob(data_type.value_type if is_list(data_type) else data_type)

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return self.line_writer(stream, schema)

    def lines(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return JsonLines(stream)


class _Files:
    """The files of one table, read together to notice a column that no object of any file has, which the user must have
    misspelt."""

    def __init__(self, form: Jsonl, table: Reading) -> None:
        self._form = form
        self._table = table
        self._unseen: list[str] = []
        self._rows = 0

    def open(self, path: str, like: pa.Schema | None) -> Opened:
        pieces, close = pieces_of(self._table.files, path, self._form.quoted, bad=self._table.bad)
        asked = self._table.asked
        # columns that the schema does not name are ignored
        parser = parse.JsonParser(pieces, asked, like if asked is None else None, self._table.only)
        with closed_on_failure(close):
            schema, batches = parse.opened(pieces, tolerant(parser, pieces, self._table.bad, self._table.fits))
        return schema, ahead(closing(self._seen(parser, path, batches), close))

    def _seen(self, parser: parse.JsonParser, path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches; check at the end of the last file that every column that was asked for was seen.

        Raises:
            SourceError: no object of any file has such a column.
        """
        paths = self._table.files.paths
        self._rows = 0 if path == paths[0] else self._rows
        for batch in batches:
            self._rows += batch.num_rows
            yield batch
        unseen = parser.unseen.names
        self._unseen = unseen if path == paths[0] else [name for name in self._unseen if name in unseen]
        if path == paths[-1] and self._unseen and self._rows:
            where = path if len(paths) == 1 else f"{paths[0]} to {path}"
            raise SourceError(f"input_schema: no object in {where} has a {self._unseen[0]!r}")


FORMAT = Jsonl()
