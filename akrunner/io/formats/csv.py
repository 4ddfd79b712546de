"""CSV with a first line that names the columns."""

from __future__ import annotations

from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv

from akrunner.io import parse
from akrunner.io.ahead import ahead
from akrunner.io.compression import endings
from akrunner.io.formats.base import Counted, Opened, Reading, closed_on_failure, closing, is_blob, pieces_of
from akrunner.io.formats.lines import Lines
from akrunner.io.text import Pieces
from akrunner.io.tolerant import tolerant
from akrunner.io.writers import Dated, Gathered, Writer


class Csv(Lines):
    name = "csv"
    endings = endings(".csv")
    title = "a CSV"
    quoted = True
    headed = True
    tolerant = True

    def parser(self, pieces: Pieces, asked: pa.Schema | None, like: pa.Schema | None = None) -> parse.CsvParser:
        return parse.CsvParser(pieces, asked, like, asked.names if asked is not None else None)

    def block_parser(self, pieces: Pieces, schema: pa.Schema) -> parse.CsvParser:
        return parse.CsvParser(pieces, like=schema, names=schema.names)

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        pieces, close = pieces_of(table.files, path, self.quoted, bad=table.bad)
        asked = table.asked
        if asked is not None:
            # text cannot become a list: the cast reports it
            asked = pa.schema([field for field in asked if not pa.types.is_nested(field.type)])
        with closed_on_failure(close):
            parser = parse.CsvParser(pieces, asked, like, table.only)
            schema, batches = parse.opened(pieces, tolerant(parser, pieces, table.bad, table.fits))
        return schema, ahead(closing(batches, close))

    def blocks(self, path: str, schema: pa.Schema, first: str) -> list[Counted] | None:
        # in a table of one column an empty line is an empty cell
        return super().blocks(path, schema, first) if len(schema) > 1 else None

    def holds(self, data_type: pa.DataType) -> bool:
        return not (pa.types.is_nested(data_type) or is_blob(data_type))

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return Dated(Gathered(pa_csv.CSVWriter(stream, schema)), self.name)

    def lines(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        made: Writer = pa_csv.CSVWriter(stream, schema)
        return made


FORMAT = Csv()
