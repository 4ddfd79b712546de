"""Every type of docs/types.md, written to every format that holds it, and read again with its type declared."""

from __future__ import annotations

import datetime
import decimal
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.column_types import TABLE, UNITS, ColumnType, Family, type_of
from akrunner.errors import SinkError, SourceError
from akrunner.io import formats, parse
from akrunner.io.bad_rows import BadRows, Limit
from akrunner.io.parse_json import JsonParser
from akrunner.io.sources import open_source
from akrunner.io.text import Pieces
from akrunner.schema import Schema, is_text

VALUES: dict[Family, list[Any]] = {
    Family.TRUTH: [True, None, False],
    Family.WHOLE: [1, None, 127],
    Family.REAL: [0.5, None, -2.0],
    Family.TEXT: ["a", None, 'ä\n"q", \\x41'],
    Family.OCTETS: [b"\xff", None, b"\\"],
    Family.DATE: [datetime.date(2026, 11, 25), None, datetime.date(1901, 2, 3)],
    Family.MOMENT: [datetime.datetime(2026, 11, 25, 12), None, datetime.datetime(1931, 1, 1, 0, 0, 1)],
    Family.TIME_OF_DAY: [datetime.time(1, 2, 3), None, datetime.time(0)],
    Family.SPAN: [datetime.timedelta(seconds=5), None, -datetime.timedelta(days=3)],
    Family.DECIMAL: [decimal.Decimal(5), None, decimal.Decimal(-7)],
    Family.NOTHING: [None, None, None],
}
#: the Arrow types of the table, each with its units and variants
TYPES = [
    kind for row in TABLE for kind in (row.arrow, *row.also, *(row.of_unit(unit) for unit in UNITS if row.of_unit is not None))
]
KINDS = [*dict.fromkeys(TYPES), *dict.fromkeys(pa.list_(kind) for kind in TYPES if kind != pa.null())]


def column_of(kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        inner = column_of(kind.value_type)
        return pa.array([inner.to_pylist(), None, []], kind)
    row = type_of(kind)
    assert isinstance(row, ColumnType)
    return pa.array(VALUES[row.family], kind)


def written(form: str, column: pa.Array, folder: Path) -> Path:
    """A file of a table with the numbers of its rows, and the column."""
    table = pa.table({"id": pa.array(range(len(column))), "x": column})
    path = folder / f"t{formats.named(form).endings[0]}"
    with path.open("wb") as stream:
        writer = formats.writer_of(form, stream, table.schema, codec.write_examples)
        for batch in table.to_batches():
            writer.write(batch)
        writer.close()
    return path


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "avro", "excel", "parquet", "arrow"])
def test_what_is_written_is_read_again(form: str, kind: pa.DataType, tmp_path: Path) -> None:
    column = column_of(kind)
    try:
        formats.named(form).check(pa.schema([("x", kind)]))
    except SinkError as e:
        # it is said before a job starts
        assert "'x'" in str(e) and str(kind) in str(e)
        return
    path = written(form, column, tmp_path)
    # no schema in words says these, and Arrow's parsers do not know them
    declared = {pa.float16(): pa.float32()}.get(kind, pa.decimal128(38, 0) if pa.types.is_decimal(kind) else kind)
    schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("x", declared if form == "csv" else kind)]))
    found = open_source(str(path), read_examples=codec.read_examples, input_format=form, input_schema=schema)
    read = pa.Table.from_batches(found.batches(), found.schema)
    assert read["id"].to_pylist() == list(range(len(column)))
    # a cell of CSV with nothing in it is an empty text where a text is declared
    null = "" if form == "csv" and is_text(kind) else None
    assert read["x"].combine_chunks().cast(kind).to_pylist() == [null if one is None else one for one in column.to_pylist()]


@pytest.mark.parametrize("kind", [kind for kind in TYPES if formats.named("jsonl").holds(kind) and kind != pa.null()], ids=str)
def test_json_within_objects_and_lists(kind: pa.DataType) -> None:
    values = column_of(kind).to_pylist()
    nested = pa.struct([("one", kind), ("many", pa.list_(pa.struct([("x", kind)])))])
    rows = [{"one": value, "many": [{"x": value}, None, {"x": None}]} for value in values]
    table = pa.table({"x": pa.array([*rows, None, {"one": None, "many": None}], nested)})
    stream = io.BytesIO()
    writer = formats.named("jsonl").writer(stream, table.schema)
    for batch in table.to_batches():
        writer.write(batch)
    writer.close()
    stream.seek(0)
    pieces = Pieces(stream.read, False, "rows")
    _, batches = parse.opened(pieces, JsonParser(pieces, table.schema))
    assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("date", '"2026-13-01"', "column 'x': JSON conversion error to date32.*: .*2026-13-01"),
        ("date", "5", r"column 'x' is date32\[day\], and a value here is a number"),
        ("bigint", '"five"', "column 'x' is int64, and a value here is a text"),
        ("array<date>", '["2026-02-30"]', "column 'x': JSON conversion error to list<item: date32.*2026-02-30"),
        ("timestamp with time zone", "[1]", r"column 'x' is timestamp\[us, tz=UTC\], and a value here is a list"),
    ],
)
@pytest.mark.parametrize("array", [False, True])
def test_a_value_that_does_not_fit_is_told_with_its_column_and_type(
    kind: str, value: str, told: str, array: bool, tmp_path: Path
) -> None:
    rows = ['{"x": null}', f'{{"x": {value}}}']
    (tmp_path / "t.json").write_text(f"[{', '.join(rows)}]" if array else "\n".join(rows))
    with pytest.raises(SourceError, match=rf"line {1 if array else 2}: {told}.*input_schema= \(--input-schema\) says its type"):
        found = open_source(str(tmp_path / "t.json"), read_examples=codec.read_examples, input_schema=Schema.parse(f"x {kind}"))
        list(found.batches())


def test_rows_with_dates_are_no_bad_rows(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"x": "2026-01-02"}\n{"x": "2026-13-02"}\n{"x": null}\n')
    bad = BadRows(None, Limit(1))
    found = open_source(
        str(tmp_path / "t.jsonl"), read_examples=codec.read_examples, input_schema=Schema.parse("x date"), bad=bad
    )
    assert pa.Table.from_batches(found.batches())["x"].to_pylist() == [datetime.date(2026, 1, 2), None]
    (warning,) = bad.news()
    assert "t.jsonl line 2: column 'x': JSON conversion error to date32[day]" in warning


def test_a_number_in_a_column_that_the_user_calls_text_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"x": "a"}\n{"x": 5}\n')
    with pytest.raises(SourceError, match="line 2: .*says that it is text: give it the type that its values have"):
        found = open_source(str(tmp_path / "t.jsonl"), read_examples=codec.read_examples, input_schema=Schema.parse("x string"))
        list(found.batches())
