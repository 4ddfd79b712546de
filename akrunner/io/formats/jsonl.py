"""JSON lines: an object on each line; and JSON arrays of objects. Files of both are read alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import pyarrow as pa

from akrunner.column_types import is_octets
from akrunner.errors import SourceError
from akrunner.io import parse, parse_json
from akrunner.io.ahead import ahead
from akrunner.io.compression import endings
from akrunner.io.formats.base import Counted, Opened, Opener, Reading, closed_on_failure, closing
from akrunner.io.formats.lines import Lines
from akrunner.io.json_arrays import ArrayParser, ArrayPieces, begins_array
from akrunner.io.shared import DISKS, Place
from akrunner.io.text import Pieces
from akrunner.io.tolerant import tolerant
from akrunner.io.writers import Dated, Finite, Gathered, JsonLines, Plain, Writer, plain_type
from akrunner.schema import is_list

#: how many rows, or bytes of them, become lines at once
_AT_ONCE = 8192, 8 << 20


class Jsonl(Lines):
    name = "jsonl"
    endings = endings(".jsonl", ".ndjson", ".json")
    title = "JSON"
    tolerant = True

    def parser(self, pieces: Pieces, asked: pa.Schema | None, like: pa.Schema | None = None) -> parse_json.JsonParser:
        # columns that the schema does not name are ignored
        return parse_json.JsonParser(pieces, asked, like if asked is None else None)

    def block_parser(self, pieces: Pieces, schema: pa.Schema) -> parse_json.JsonParser:
        return parse_json.JsonParser(pieces, like=schema)

    def opener(self, table: Reading) -> Opener:
        return _Files(self, table).open

    def blocks(self, path: str, schema: pa.Schema, first: str, place: Place = DISKS) -> list[Counted] | None:
        with place.stream(path) as file:
            array, _ = begins_array(file.read)
        # an array may be in a file with the name of lines
        return None if array else super().blocks(path, schema, first, place)

    def holds(self, data_type: pa.DataType) -> bool:
        data_type = plain_type(data_type)
        values = data_type.value_type if is_list(data_type) else data_type
        # DuckDB, which writes them, has no such numbers
        return not (is_octets(values) or pa.types.is_float16(values) or pa.types.is_decimal256(values))

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return Plain(Dated(Finite(Gathered(JsonLines(stream), *_AT_ONCE)), self.name))

    def lines(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return Plain(Finite(JsonLines(stream)))


class JsonArray(Jsonl):
    """Files that hold one array of objects. A name that ends in .json means JSON lines unless the user asks for an array."""

    name = "json"
    endings = endings(".json")
    title = "a JSON array"
    read_as = "jsonl"

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return Plain(Dated(Finite(Gathered(JsonLines(stream, array=True), *_AT_ONCE)), self.name))


class _Files:
    """The files of one table, read together to notice a column that no object of any file has, which the user must have
    misspelt."""

    def __init__(self, form: Jsonl, table: Reading) -> None:
        self._form = form
        self._table = table
        self._unseen: list[str] = []
        self._rows = 0

    def open(self, path: str, like: pa.Schema | None) -> Opened:
        file = self._table.unpacked(path)
        asked, bad = self._table.asked, self._table.bad
        # columns that the schema does not name are ignored
        types = asked, like if asked is None else None, self._table.only
        with closed_on_failure(file.close):
            array, read = begins_array(file.read, or_lines=bad is not None)
            if array and bad is not None:
                raise SourceError(
                    f"bad_rows: {path} is a JSON array, which is not read on behind a mistake; leave bad_rows= (--bad-rows) out, or "
                    "give JSON lines"
                )
            pieces = ArrayPieces(read, path) if array else Pieces(read, self._form.quoted, path, bad=bad)
            parser = ArrayParser(pieces, *types) if array else parse_json.JsonParser(pieces, *types)
            schema, batches = parse.opened(pieces, parser if array else tolerant(parser, pieces, bad, self._table.fits))
        return schema, ahead(closing(self._seen(parser, path, batches), file.close))

    def _seen(self, parser: parse_json.JsonParser, path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
ARRAY = JsonArray()
