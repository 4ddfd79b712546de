"""The values of a stream's entries: JSON objects to columns, and rows to JSON objects, many at once."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeVar, cast

import pyarrow as pa

from akrunner.arrays import first_wrong
from akrunner.errors import SourceError
from akrunner.io import formats
from akrunner.io.casts import asked
from akrunner.io.parse_json import JsonParser
from akrunner.io.text import Piece, Pieces

Error = TypeVar("Error", bound=Exception)

#: says where a value is, by its number
Where = Callable[[int], str]

#: a character that no JSON text has as it is
_BETWEEN = b"\x1e"


def columns_of_json(values: Sequence[bytes | None], schema: pa.Schema, where: Where) -> pa.RecordBatch:
    """Return one row for each JSON object.

    Args:
        values: the objects; None is a row of nulls.
        schema: the columns; those of an object that it does not name are ignored.
        where: says where a value is, by its number.
    Raises:
        SourceError: a value is no JSON object, or does not fit the schema; the error says where it is.
    """
    try:
        return _parsed(values, schema)
    except SourceError:
        row, odd = first_odd(len(values), lambda begin, end: _parsed(values[begin:end], schema), SourceError)
        why = re.sub(r"^source: (cannot read its value as jsonl: line 1: |row 0, )?", "", str(odd))
        raise SourceError(f"source: {where(row)} cannot be read as JSON: {why}") from None


def first_odd(count: int, read: Callable[[int, int], Any], kind: type[Error]) -> tuple[int, Error]:
    """Return the number of the first of some values that cannot be read, and its error.

    Args:
        count: how many values there are. They cannot be read together.
        read: reads the values from one number up to another one.
        kind: the class of its errors.
    """
    low = first_wrong(count, read, kind)
    try:
        read(low, low + 1)
        # it is none of them alone
        read(0, count)
    except kind as e:
        return low, e
    raise AssertionError("the values can be read, after all")


def _parsed(values: Sequence[bytes | None], schema: pa.Schema) -> pa.RecordBatch:
    texts = [b"{}" if value is None else value for value in values]
    # in JSON, the end of a line is only a space between two words
    data = _BETWEEN.join(texts).replace(b"\n", b" ").replace(b"\r", b" ").replace(_BETWEEN, b"\n")
    parser = JsonParser(Pieces(lambda size: b"", False, "its value"), schema)
    batch = parser.parse(Piece(data + b"\n", 1, True))
    if batch.num_rows != len(values):
        raise SourceError(f"{len(values)} values hold {batch.num_rows} JSON objects: each has to be one object, on its own")
    columns = [asked(batch.column(field.name), field, 0) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class JsonValues:
    """Makes a JSON object of each row.

    Args:
        schema: the schema of the rows.
    Raises:
        SinkError: JSON cannot hold such rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        check_json(schema)
        self._stream = io.BytesIO()
        form = formats.lines_named("jsonl")
        assert form is not None
        self._writer = form.line_writer(cast(IO[bytes], self._stream), schema)

    def of(self, batch: pa.RecordBatch) -> list[bytes]:
        """Return the object of each row."""
        self._writer.write(batch)
        made = self._stream.getvalue()
        self._stream.seek(0)
        self._stream.truncate()
        return made.splitlines()

    def close(self) -> None:
        """Make no more."""
        self._writer.close()


def check_json(schema: pa.Schema) -> None:
    """Check that JSON can hold such rows.

    Raises:
        SinkError: it cannot.
    """
    formats.named("jsonl").check(schema)
