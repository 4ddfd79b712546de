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
from akrunner.io.bad_rows import BadRow, BadRows
from akrunner.io.casts import asked
from akrunner.io.parse_json import JsonParser
from akrunner.io.text import Piece, Pieces

Error = TypeVar("Error", bound=Exception)
Entry = TypeVar("Entry")

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


def without_bad(
    entries: Sequence[Entry],
    read: Callable[[Sequence[Entry]], pa.RecordBatch],
    bad: BadRows | None,
    told: Callable[[Entry], tuple[str, bytes]],
) -> pa.RecordBatch | None:
    """Return the rows of a stream's entries, without those of bad ones, which are given to `BadRows`; None if all are bad.

    Args:
        read: makes rows of entries.
        bad: takes the bad ones; None: the first one is an error.
        told: says where an entry is, and what is in it.
    Raises:
        SourceError: an entry is bad, and `bad` is None, or has too many; or good ones cannot be read together.
    """
    if bad is None:
        return read(entries)
    try:
        batch = read(entries)
    except SourceError:
        good = _good(entries, read, bad, told)
        batch = read(good) if good else None
    if batch is not None:
        bad.were_read(batch.num_rows)
    return batch


def _good(
    entries: Sequence[Entry],
    read: Callable[[Sequence[Entry]], pa.RecordBatch],
    bad: BadRows,
    told: Callable[[Entry], tuple[str, bytes]],
) -> list[Entry]:
    """Return the entries that can be read each by itself; the others, found by halving, are given to `bad`."""
    good: list[Entry] = []
    waiting = [entries]
    while waiting:
        part = waiting.pop()
        try:
            read(part)
        except SourceError as e:
            if len(part) > 1:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
                continue
            place, text = told(part[0])
            reason = str(e).removeprefix("source: ").removeprefix(place).removeprefix(" cannot be read as JSON").lstrip(": ")
            bad.take("", [BadRow(0, reason, text, place)])
        else:
            good += part
    return good


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
