"""CSV, with what stands between cells, around them and before the first row as the user says, or as the file's beginning does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from akrunner.column_types import is_octets
from akrunner.errors import SourceError
from akrunner.io import parse, parse_csv
from akrunner.io.ahead import ahead
from akrunner.io.bad_rows import BadRows
from akrunner.io.compression import endings
from akrunner.io.csv_options import COMMA, CsvOptions, word_of
from akrunner.io.csv_text import TAB_ENDINGS, TABS, CsvText
from akrunner.io.csv_writer import CsvRows
from akrunner.io.formats.base import Counted, Opened, Opener, Reading, closed_on_failure, closing
from akrunner.io.formats.lines import Lines
from akrunner.io.shared import DISKS, Place
from akrunner.io.text import BOM, Pieces, is_other
from akrunner.io.tolerant import tolerant
from akrunner.io.writers import Dated, Gathered, Writer


class Csv(Lines):
    """Args:
    options: how the text is written; without a delimiter, the text's beginning says it.
    sure: whether the user said what stands between cells.
    guessed: whether neither the user nor anything but a file's name or beginning said that it is CSV; then JSON is refused.
    """

    name = "csv"
    endings = endings(".csv", *TABS)
    title = "a CSV"
    quoted = True
    headed = True
    tolerant = True
    delimited = True

    def __init__(self, options: CsvOptions | None = None, sure: bool = False, guessed: bool = False) -> None:
        self.options = options or CsvOptions()
        self.sure = sure
        self.guessed = guessed

    def written_as(self, options: CsvOptions | None, path: str = "") -> Csv:
        options = options or self.options
        if not options.delimiter and path.lower().endswith(TAB_ENDINGS):
            options = replace(options, delimiter="\t")
        return Csv(options, bool(options.delimiter))

    def text(
        self, read: Callable[[int], bytes], name: str, growing: bool = False, wait: bool = True, bad: BadRows | None = None
    ) -> tuple[Csv, Pieces, list[str]]:
        if bad is not None and self.options.comment and self.options.quote:
            # behind a quote that is not closed, lines would be taken for cells, and for rows again, comments among them
            raise SourceError(
                f"bad_rows= (--bad-rows): which lines of {name} are comments cannot be said behind a quote that is not closed; "
                "give quote=none in input_csv= (--input-csv) if no cell is quoted, or leave out bad_rows=, or the comments and "
                "comment"
            )
        text = CsvText(read, self.options, name, growing, self.guessed)
        options = text.settle() if wait else text.unseen()
        pieces = Pieces(text.read, self.quoted, name, growing, options.back, lambda: text.skipped, bad)
        return Csv(options, self.sure), pieces, text.notes

    def parser(
        self,
        pieces: Pieces,
        asked: pa.Schema | None,
        like: pa.Schema | None = None,
        only: Sequence[str] | None = None,
    ) -> parse_csv.CsvParser:
        if only is None and asked is not None:
            only = asked.names
        return parse_csv.CsvParser(pieces, asked, like, only, csv=self.options, sure=self.sure)

    def block_parser(self, pieces: Pieces, schema: pa.Schema) -> parse_csv.CsvParser:
        return parse_csv.CsvParser(pieces, like=schema, names=schema.names, csv=self._settled)

    @property
    def _settled(self) -> CsvOptions:
        return self.options if self.options.delimiter else replace(self.options, delimiter=",")

    def opener(self, table: Reading) -> Opener:
        return _Files(Csv(self.options, self.sure, table.files.guessed and not self.sure), table).open

    def blocks(self, path: str, schema: pa.Schema, first: str, place: Place = DISKS) -> list[Counted] | None:
        # in a table of one column an empty line is an empty cell
        if len(schema) == 1 or not self.options.is_plain:
            return None
        return super().blocks(path, schema, first, place)

    def whole(self, path: str) -> bool:
        return path.lower().endswith((".csv", *TABS, ".txt"))

    def at_rows(self, file: IO[bytes], first: str, place: Place) -> bool:
        lines = self._first_lines(file)
        with place.stream(first) as other:
            return lines is not None and lines[-1:] == (self._first_lines(other) or [])[-1:]

    def _first_lines(self, file: IO[bytes]) -> list[bytes] | None:
        """Read the lines before the first row, and return the line of names as the last of them; None if it is not simply the
        line behind those that are left out."""
        lines = [file.readline().rstrip(b"\r\n") for _ in range(self.options.skip + (self.options.header is True))]
        if self.options.header is not True:
            at = file.tell()
            head = file.read(len(BOM))
            file.seek(at)
            return [] if at or not (head.startswith(BOM) or is_other(head)) else None
        names = lines[-1].translate(self.options.there) if self.options.there is not None else lines[-1]
        return lines if names and names.count(b'"') % 2 == 0 else None

    def marked(self, data: bytes) -> bytes:
        return data if self._settled.there is None else data.translate(self._settled.there)

    def block(self, start: int, end: int) -> Any:
        # only plain text has blocks, so the encoding says nothing
        plain = replace(self._settled, encoding="") == COMMA
        return [start, end] if plain else [start, end, self._settled.as_json()]

    def of_block(self, block: Any) -> Csv:
        return Csv(CsvOptions.from_json(block[2])) if len(block) > 2 else self

    def holds(self, data_type: pa.DataType) -> bool:
        # Arrow, which writes them, does not know views
        return not (pa.types.is_nested(data_type) or is_octets(data_type) or str(data_type) == "string_view")

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        if self._settled == COMMA:
            return Dated(Gathered(pa_csv.CSVWriter(stream, schema)), self.name)
        return self.line_writer(stream, schema)

    def lines(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        if self._settled != COMMA:
            return CsvRows(stream, schema, self._settled)
        made: Writer = pa_csv.CSVWriter(stream, schema)
        return made


class _Files:
    """The files of one table, which must all be written in the same way."""

    def __init__(self, form: Csv, table: Reading) -> None:
        self._form = form
        self._table = table
        self._first = ""

    def open(self, path: str, like: pa.Schema | None) -> Opened:
        file = self._table.unpacked(path)
        asked = self._table.asked
        if asked is not None:
            # text cannot become a list: the cast reports it
            asked = pa.schema([field for field in asked if not pa.types.is_nested(field.type)])
        with closed_on_failure(file.close):
            form, pieces, notes = self._form.text(file.read, path, bad=self._table.bad)
            parser = parse_csv.CsvParser(pieces, asked, like, self._table.only, csv=form.options, sure=form.sure)
            try:
                schema, batches = parse.opened(pieces, tolerant(parser, pieces, self._table.bad, self._table.fits))
            finally:
                # the names that a parser has found are those of a text that has columns
                if parser.names is not None:
                    self._compare(path, form.options, len(parser.names), notes)
        return schema, ahead(closing(batches, file.close))

    def _compare(self, path: str, options: CsvOptions, columns: int, notes: list[str]) -> None:
        """Keep how the first file is written, and compare every other with it.

        Raises:
            SourceError: another file is written in another way.
        """
        first = self._table.told.csv
        if first is None:
            self._table.told.csv, self._first = options, path
            self._table.told.notes += notes
            return
        # a file of one column has nothing between its cells
        if columns > 1 and options.delimiter != first.delimiter:
            raise SourceError(
                f"source: {path} is {options.delimiter!r}-separated, and {self._first} is {first.delimiter!r}-separated; give "
                f"them to two jobs, or say it for all: input_csv= (--input-csv) delimiter={word_of(first.delimiter)}"
            )
        if options.encoding != first.encoding:
            raise SourceError(
                f"source: {path} is {options.encoding}, and {self._first} is {first.encoding}; give them to two jobs, or convert "
                "one"
            )


FORMAT = Csv()
