"""Excel's .xlsx files: a sheet is a table whose first row with anything in it names the columns.

Sheets are read by openpyxl, row by row; other libraries hold a whole sheet, with every cell that it could have, in memory. They
are written here, as XML that Arrow joins for many rows at a time: a library would make a Python object of each cell, and keep
the sheet in a file beside the output.
"""

from __future__ import annotations

import datetime
import importlib
import itertools
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import decoded
from akrunner.column_types import Family, family_of
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io.formats.base import Format, Opened, Reading, closed_on_failure, closing
from akrunner.io.writers import Writer
from akrunner.wire.near import nearest

#: rows that are Python objects at one time, on their way; the types of columns are guessed from the first of them
_ROWS = 4096
_MOST_ROWS, _MOST_COLUMNS, _MOST_CHARACTERS = 1_048_576, 16_384, 32_767
#: openpyxl holds all that is not a sheet in memory, above all the texts; a small zip can hold a very large one
_TEXT_BYTES = 1 << 30
#: the XML of a sheet that is written; zips with longer members are not opened by all programs
_SHEET_BYTES = (1 << 31) - (1 << 20)
#: the first bytes of an .xls file, and of an .xlsx file with a password
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ERRORS = {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"}
#: the end of a cell with a formula and without its result
_UNCOMPUTED = re.compile(
    rb"<(?:\w+:)?c\b([^<>]*)>\s*<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*"
    rb"</(?:\w+:)?c>"
)
#: what an error says of a column that is broken; `select=` names columns only when the sheet has been read
_LEAVE_OUT = (
    "leave the column out: name those to take in input_schema= (--input-schema), or, without select=, in columns= (--columns of run, "
    "train and stream)"
)
_LOOKED_AT = 1 << 20
#: longer than any cell with a formula
_CELL_BYTES = 1 << 16
#: what stands between the underscores of Excel's spelling of a character, for Arrow's regular expressions
_SPELT = "x[0-9A-Fa-f]{4}"
#: a character that no cell can hold
_MARK = "\x01"
_MIDNIGHT = datetime.time()
_MILLISECONDS = pa.timestamp("ms")
#: the family of an asked type -> the type in which cells are given
_GIVEN = {
    Family.TEXT: pa.string(),
    Family.OCTETS: pa.string(),
    Family.WHOLE: pa.int64(),
    Family.REAL: pa.float64(),
    Family.TRUTH: pa.bool_(),
    Family.DATE: pa.date32(),
    Family.MOMENT: _MILLISECONDS,
}
#: Python's types of cells -> words
_WORDS: dict[type, str] = {
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    datetime.datetime: "a date",
    datetime.date: "a date",
    datetime.time: "a time of day",
    datetime.timedelta: "a duration",
}
#: the type of a column -> the words for cells that it may have
_HELD = {
    pa.string(): "text",
    pa.int64(): "a number",
    pa.float64(): "a number",
    pa.bool_(): "a boolean",
    pa.date32(): "a date",
    _MILLISECONDS: "a date",
    pa.time32("ms"): "a time of day",
    pa.duration("ms"): "a duration",
}


class Excel(Format):
    """Excel's files. Which sheet is read is said behind the file's name: `book.xlsx?sheet=Q1`."""

    name = "excel"
    endings = (".xlsx",)
    title = "an Excel sheet"
    sheets = True
    doubtful = True

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        openpyxl = _openpyxl()
        stream = table.files.filesystem.open(path, "rb")
        with closed_on_failure(stream.close):
            _check_size(stream, path)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            sheet = _sheet(book, table.files.sheet, path)
            # the size that a file states may be wrong, and rows behind it would be left out
            sheet.reset_dimensions()
            cells = _Cells(f"sheet {sheet.title!r} of {path}", sheet.iter_rows(values_only=True), table.only)
            _check_formulas(book, sheet, path, cells)
            schema = cells.begin(table.asked, like)
        return schema, closing(cells.batches(), lambda: (book.close(), stream.close()))

    def holds(self, data_type: pa.DataType) -> bool:
        kind = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
        if family_of(kind) is Family.MOMENT:
            # a cell's time has no zone
            return kind.tz is None
        return family_of(kind) in {Family.TEXT, Family.WHOLE, Family.REAL, Family.TRUTH, Family.DATE, Family.NOTHING}

    def check(self, schema: pa.Schema) -> None:
        super().check(schema)
        if len(schema) > _MOST_COLUMNS:
            raise SinkError(f"output: an Excel sheet has at most {_MOST_COLUMNS:,} columns, not {len(schema):,}; write parquet")

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return _ExcelWriter(stream, schema)


# -- reading


def _openpyxl() -> Any:
    try:
        openpyxl = importlib.import_module("openpyxl")
    except ImportError as e:
        raise SourceError(
            f"source: Excel files are read by openpyxl, which is missing ({e}): pip install 'akrunner[excel]'"
        ) from None
    # it warns about what a file would lose if it were saved again, and about dates that become the error #VALUE!, which is told
    # here with its cell
    warnings.filterwarnings("ignore", category=UserWarning, module=r"openpyxl\.")
    return openpyxl


def _check_size(stream: Any, path: str) -> None:
    """Check that a file is a workbook, and of a size that fits in memory.

    Raises:
        SourceError: it is not.
    """
    if not zipfile.is_zipfile(stream):
        stream.seek(0)
        old = stream.read(len(_OLD)) == _OLD
        raise SourceError(
            f"source: cannot read {path}: it is "
            + (
                "an .xls file of old, or an .xlsx file with a password; save it as .xlsx, and without a password"
                if old
                else "no .xlsx file, or is cut short"
            )
        )
    with zipfile.ZipFile(stream) as parts:
        held = sum(part.file_size for part in parts.infolist() if not part.filename.startswith("xl/worksheets/"))
    stream.seek(0)
    if held > _TEXT_BYTES:
        raise SourceError(
            f"source: {path} has {held:,} bytes of texts and styles, and at most {_TEXT_BYTES:,} are read; save it as CSV"
        )


def _sheet(book: Any, name: str | None, path: str) -> Any:
    """Return the sheet of that name; None: the only one that is not hidden.

    Raises:
        SourceError: there is none of that name, or more than one that could be meant.
    """
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if name is not None:
        if name not in sheets:
            raise SourceError(f"source: {path} has no sheet {name!r} (it has {', '.join(sheets)}){nearest(name, list(sheets))}")
        return sheets[name]
    shown = [title for title, sheet in sheets.items() if sheet.sheet_state == "visible"]
    if len(shown) != 1:
        raise SourceError(
            f"source: {path} has {len(shown)} sheets that are shown; name one behind the file: {path}?sheet=NAME "
            f"(it has {', '.join(sheets)})"
        )
    return sheets[shown[0]]


def _check_formulas(book: Any, sheet: Any, path: str, cells: _Cells) -> None:
    """Check that each formula has a result. Programs that do not calculate store none, and the cell would be read as empty.

    Raises:
        SourceError: a formula in a column that is drawn, or in the row of names, has none.
    """
    columns = {_letters(place).encode() for place in cells.drawn} if cells.drawn is not None else None
    with book._archive.open(sheet._worksheet_path) as part:
        data = b""
        while more := part.read(_LOOKED_AT):
            data = data[-_CELL_BYTES:] + more
            for found in _UNCOMPUTED.finditer(data):
                cell = re.search(rb'\br="([A-Z]+)(\d+)"', found[1])
                # a name that is missing may be that of a column that is drawn
                if cell is not None and columns is not None and cell[1] not in columns and int(cell[2]) > cells.header:
                    continue
                # the result of ="" is text without any characters
                if b't="str"' not in found[1]:
                    raise SourceError(
                        f"source: cell {(cell[1] + cell[2]).decode() if cell else ''} of sheet {sheet.title!r} of {path} has a formula without "
                        "its result: open the file in Excel or LibreOffice, and save it"
                        + (f", or {_LEAVE_OUT}" if cell is not None and int(cell[2]) > cells.header else "")
                    )


class _Cells:
    """The cells of a sheet, as columns.

    Args:
        what: the words for the sheet in errors.
        rows: the values of the cells of each row.
        only: the names of the columns that are drawn; None: all. Nothing is said of the cells of the others.
    Attributes:
        drawn: the numbers of the columns that are drawn, from 0; None: all.
        header: the number of the row that names the columns, from 1.
    """

    def __init__(self, what: str, rows: Iterator[Sequence[Any]], only: Sequence[str] | None) -> None:
        self._what = what
        self._rows = _filled(rows)
        self.header, header = next(((number, row) for number, row in self._rows if row), (0, ()))
        self._number = self.header
        while header and header[-1] is None:
            header = header[:-1]
        self._titles = header
        self._names = [_unescaped(str(name)) for name in header]
        self.drawn: list[int] | None = None
        if only is not None:
            named = [place for place, name in enumerate(header) if name is not None]
            # if the table's columns are all in names of directories, the rows are those of any column
            self.drawn = [place for place in named if self._names[place] in only] or named
        self._kinds: list[pa.DataType] = []
        # these columns were asked for as text, and take any cell
        self._any: set[str] = set()
        self._first: list[Sequence[Any]] = []

    def begin(self, asked: pa.Schema | None, like: pa.Schema | None) -> pa.Schema:
        """Read the first rows, and return the schema. A column that is not drawn has the type null, if it has a name.

        Raises:
            SourceError: a column has no name, or cells of several types.
        """
        for place, name in enumerate(self._titles):
            if name is None and self.drawn is None:
                raise SourceError(
                    f"source: cell {_cell(place, self._number)} of {self._what} is empty, and would name a column (of merged cells only "
                    f"the first has the name): write a name into each cell of the first row that is not empty, or {_LEAVE_OUT}"
                )
        self._first = self._next()
        columns = self._columns(self._first)
        for place, (name, column) in enumerate(zip(self._names, columns)):
            kind = None
            if self.drawn is not None and place not in self.drawn:
                kind = pa.null()
            elif asked is not None and name in asked.names:
                family = family_of(asked.field(name).type)
                kind = _GIVEN.get(family) if family is not None else None
                self._any |= {name} if kind == pa.string() else set()
            elif like is not None and name in like.names:
                kind = like.field(name).type if like.field(name).type in _HELD else None
            self._kinds.append(kind if kind is not None else self._guess(name, place, column))
        named = (place for place, name in enumerate(self._titles) if name is not None)
        return pa.schema([(self._names[place], self._kinds[place]) for place in named])

    def _next(self) -> list[Sequence[Any]]:
        return [row for _, row in itertools.islice(self._rows, _ROWS)]

    def batches(self) -> Iterator[pa.RecordBatch]:
        rows = self._first
        places = self.drawn if self.drawn is not None else range(len(self._names))
        schema = pa.schema([(self._names[place], self._kinds[place]) for place in places])
        while rows:
            cells = self._columns(rows)
            columns = [self._array(place, cells[place]) for place in places]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            self._number += len(rows)
            rows = self._next()

    def _columns(self, rows: list[Sequence[Any]]) -> list[Sequence[Any]]:
        columns: list[Sequence[Any]] = list(itertools.zip_longest(*rows))
        width = len(self._names)
        for place, column in enumerate(columns[width:], width):
            odd = next((at for at, value in enumerate(column) if value is not None), None)
            if odd is not None and self.drawn is None:
                raise SourceError(
                    f"source: cell {self._at(place, odd)} of {self._what} is in a column without a name: give it one, or {_LEAVE_OUT}"
                )
        return columns[:width] + [[None] * len(rows)] * (width - len(columns))

    def _at(self, place: int, row: int) -> str:
        return _cell(place, self._number + 1 + row)

    def _guess(self, name: str, place: int, column: Sequence[Any]) -> pa.DataType:
        kinds = set(map(type, column)) - {type(None)}
        words = {_WORDS[kind] for kind in kinds}
        if len(words) > 1:
            seen: dict[str, str] = {}
            for at, value in enumerate(column):
                if value is not None:
                    word = f"the error {value}" if value in _ERRORS else _WORDS[type(value)]
                    seen.setdefault(word, f"{self._at(place, at)}" + (f" ({value!r})" if value not in _ERRORS else ""))
            shown = ", and ".join(f"{word} in {where}" for word, where in seen.items())
            raise SourceError(
                f"source: column {name!r} of {self._what} has {shown}; correct the cells, take all as text: "
                f"input_schema='{name} string' (--input-schema), or {_LEAVE_OUT}"
            )
        if words == {"a number"}:
            return pa.float64() if float in kinds else pa.int64()
        if words == {"a date"}:
            return pa.date32() if all(map(_is_day, column)) else _MILLISECONDS
        return next((kind for kind, word in _HELD.items() if {word} == words), pa.null())

    def _array(self, place: int, column: Sequence[Any]) -> pa.Array:
        """Return cells in their column's type.

        Raises:
            SourceError: a cell has another type, or an error of Excel's.
        """
        name, kind = self._names[place], self._kinds[place]
        kinds = set(map(type, column)) - {type(None)}
        if str in kinds:
            if name not in self._any and not _ERRORS.isdisjoint(column):
                at = next(at for at, value in enumerate(column) if value in _ERRORS)
                raise SourceError(
                    f"source: cell {self._at(place, at)} of {self._what} has the error {column[at]}; correct it, take the column "
                    f"{name!r} as text: input_schema='{name} string' (--input-schema), or {_LEAVE_OUT}"
                )
            column = list(map(_unescaped, column))
        if name in self._any:
            return pa.array(list(map(_as_text, column)), pa.string())
        fits = {_WORDS[one] for one in kinds} <= {_HELD.get(kind)}
        if fits and kind == pa.int64() and float in kinds:
            fits = all(not isinstance(value, float) or value.is_integer() for value in column)
            column = [int(value) if isinstance(value, float) and fits else value for value in column]
        if fits and kind == pa.date32():
            fits = all(map(_is_day, column))
        if not fits:
            raise self._odd(place, column)
        return pa.array(column, kind)

    def _odd(self, place: int, column: Sequence[Any]) -> SourceError:
        name, kind = self._names[place], self._kinds[place]

        def is_odd(value: Any) -> bool:
            if value is None or _WORDS[type(value)] != _HELD.get(kind):
                return value is not None
            return (kind == pa.int64() and value != int(value)) or (kind == pa.date32() and not _is_day(value))

        at = next(at for at, value in enumerate(column) if is_odd(value))
        return SourceError(
            f"source: cell {self._at(place, at)} of {self._what} has {column[at]!r}, and the column {name!r} is {kind}, as its first "
            f"rows or input_schema= say; input_schema='{name} string' (double, timestamp) says which type it is to have"
        )


def _filled(rows: Iterator[Sequence[Any]]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield (number, row); rows without anything in them are yielded as () if one with something follows."""
    empty: list[int] = []
    for number, row in enumerate(rows, 1):
        if row.count(None) == len(row):
            empty.append(number)
            continue
        yield from ((one, ()) for one in empty)
        empty = []
        yield number, row


def _cell(place: int, row: int) -> str:
    """Return the name of a cell: C5. Args: place: the column's number, from 0; row: from 1."""
    return f"{_letters(place)}{row}"


def _letters(place: int) -> str:
    """Return the name of a column: C. Args: place: its number, from 0."""
    letters, rest = "", place + 1
    while rest:
        rest, last = divmod(rest - 1, 26)
        letters = chr(65 + last) + letters
    return letters


def _is_day(value: Any) -> bool:
    return not isinstance(value, datetime.datetime) or value.time() == _MIDNIGHT


def _unescaped(value: Any) -> Any:
    """Return text without Excel's `_x000D_` for characters that XML cannot hold."""
    if isinstance(value, str) and "_x" in value:
        return re.sub(r"_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), value)
    return value


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return None if value is None else str(value)


# -- writing

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPES}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{_TYPES}.styles+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}">'
    f'<Relationship Id="rId1" Type="{_DOCUMENT}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_DOCUMENT}">'
    '<sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">'
    f'<Relationship Id="rId1" Type="{_DOCUMENT}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_DOCUMENT}/styles" Target="styles.xml"/></Relationships>',
    # the styles of cells: 0 plain, 1 a date, 2 a time
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss.000"/></numFmts>'
    '<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="3"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="165" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
}
#: days from Excel's day 0 to 1970; its first right day (it takes 1900 for a leap year), and the end of the year 9999
_EPOCH, _FIRST_DAY, _END = 25569, 61, 2_958_466
_DAY = 86_400_000


class _ExcelWriter:
    """Writes one sheet, called Sheet1."""

    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=4)
        for name, text in _PARTS.items():
            # with a fixed time, the same rows make the same file
            self._zip.writestr(zipfile.ZipInfo(name), _XML + text)
        part = zipfile.ZipInfo("xl/worksheets/sheet1.xml")
        part.compress_type = zipfile.ZIP_DEFLATED
        self._sheet = self._zip.open(part, "w")
        self._rows = 1
        self._bytes = 0
        self._put(f'{_XML}<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
        header = [_texts(name, pa.array([name], pa.string())) for name in schema.names]
        self._put("".join(["<row>", *(cell[0].as_py() for cell in header), "</row>"]).encode())

    def _put(self, data: Any) -> None:
        self._bytes += len(data)
        if self._bytes > _SHEET_BYTES:
            raise WriteError("output: an Excel sheet of more than 2 GiB cannot be opened; write parquet, or a directory (out/)")
        self._sheet.write(data)

    def write(self, batch: pa.RecordBatch) -> None:
        if self._rows + batch.num_rows > _MOST_ROWS:
            raise WriteError(
                f"output: an Excel sheet has at most {_MOST_ROWS:,} rows, one of them with the names of the columns; write parquet or "
                "csv, or a directory (out/), which has a file for each task"
            )
        for first in range(0, batch.num_rows, _ROWS):
            part = batch.slice(first, _ROWS)
            cells = [_cells(name, decoded(column)) for name, column in zip(part.schema.names, part.columns)]
            joined = pc.binary_join_element_wise(pa.scalar("<row>"), *cells, pa.scalar("</row>"), pa.scalar(""))
            self._put("".join(joined.to_pylist()).encode())
        self._rows += batch.num_rows

    def close(self) -> None:
        self._sheet.write(b"</sheetData></worksheet>")
        self._sheet.close()
        self._zip.close()


def _cells(name: str, column: pa.Array) -> pa.Array:
    """Return the XML of a column's cells.

    Raises:
        WriteError: a cell cannot hold a value.
    """
    family = family_of(column.type)
    if family is Family.TEXT:
        return _texts(name, column)
    if family is Family.NOTHING:
        return pa.array(["<c/>"] * len(column), pa.string())
    if family is Family.TRUTH:
        return pc.fill_null(pc.if_else(column, '<c t="b"><v>1</v></c>', '<c t="b"><v>0</v></c>'), "<c/>")
    style = ""
    if family in (Family.DATE, Family.MOMENT):
        style = ' s="1"' if family is Family.DATE else ' s="2"'
        column = _days(name, column)
    elif family is Family.REAL:
        if not pc.all(pc.is_finite(column)).as_py() and len(column) > column.null_count:
            raise WriteError(
                f"output: column {name!r} has a NaN or an infinite number, which no cell can hold; write parquet or csv"
            )
    else:
        ends = pc.min_max(column).as_py()
        if ends["min"] is not None and max(-ends["min"], ends["max"]) > 1 << 53:
            raise WriteError(
                f"output: column {name!r} has a number beyond 2**53, which Excel would round; write it as text, or write parquet or csv"
            )
    return pc.fill_null(_joined(f"<c{style}><v>", column.cast(pa.string()), "</v></c>"), "<c/>")


def _days(name: str, column: pa.Array) -> pa.Array:
    """Return dates and times as Excel's numbers of days."""
    if pa.types.is_timestamp(column.type):
        try:
            column = column.cast(_MILLISECONDS)
        except pa.ArrowInvalid:
            raise WriteError(
                f"output: column {name!r} has a time with a fraction of a millisecond, and Excel holds milliseconds; give the column "
                "as timestamp(3) in output_schema= (--output-schema), or write parquet or csv"
            ) from None
        days = pc.add(pc.divide(column.cast(pa.int64()).cast(pa.float64()), float(_DAY)), float(_EPOCH))
    else:
        days = pc.add(column.cast(pa.date32()).cast(pa.int32()), _EPOCH)
    ends = pc.min_max(days).as_py()
    if ends["min"] is not None and not _FIRST_DAY <= ends["min"] <= ends["max"] < _END:
        raise WriteError(
            f"output: column {name!r} has a date before March 1900 or after 9999, which Excel does not know; write parquet"
        )
    return days


def _texts(name: str, column: pa.Array) -> pa.Array:
    column = column.cast(pa.string())
    if (pc.max(pc.utf8_length(column)).as_py() or 0) > _MOST_CHARACTERS:
        raise WriteError(
            f"output: column {name!r} has a text of more than {_MOST_CHARACTERS:,} characters, which no cell can hold"
        )
    if pc.any(pc.match_substring_regex(column, "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\ufffe\uffff]")).as_py():
        raise WriteError(f"output: column {name!r} has a text with a control character, which no cell can hold; write parquet")
    column = _escaped(column)
    for one, spelt in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "_x000D_")):
        column = pc.replace_substring(column, one, spelt)
    return pc.fill_null(_joined('<c t="inlineStr"><is><t xml:space="preserve">', column, "</t></is></c>"), "<c/>")


def _escaped(column: pa.Array) -> pa.Array:
    """Return text in which nothing but what is escaped is taken for Excel's spelling of a character: `_x0041_` is A.

    Args:
        column: text without control characters; its carriage returns are still to be spelt.
    """
    if not pc.any(pc.match_substring_regex(column, f"_{_SPELT}[_\\r]")).as_py():
        return column
    # the end of a spelling may be the beginning of the next, which is found only when the first has been marked
    for _ in range(2):
        column = pc.replace_substring_regex(column, f"_({_SPELT}[_\\r{_MARK}])", f"{_MARK}\\1")
    return pc.replace_substring(column, _MARK, "_x005F_")


def _joined(before: str, column: pa.Array, behind: str) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(before), column, pa.scalar(behind), pa.scalar(""))


FORMAT = Excel()
