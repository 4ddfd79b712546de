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
from akrunner.io.parse import UNREADABLE
from akrunner.io.parse_json import JsonParser
from akrunner.io.text import Piece, Pieces

Error = TypeVar("Error", bound=Exception)
Entry = TypeVar("Entry")

#: says where a value is, by its number
Where = Callable[[int], str]


class NotTheirs(SourceError):
    """Values cannot be read, and the cause is not in them: a registry refuses their schema. None of them is bad.

    Attributes:
        row: the number of the first value that cannot be read; None: it is about no single one.
    """

    def __init__(self, text: str, row: int | None = None) -> None:
        super().__init__(text)
        self.row = row


#: a character that no JSON text has as it is
_BETWEEN = b"\x1e"
#: where a line that ends an object is followed by one that begins an object
_APART = re.compile(rb"\}[ \t]*\n[ \t]*\{")


def columns_of_json(values: Sequence[bytes | None], schema: pa.Schema, where: Where | None) -> pa.RecordBatch:
    """Return one row for each JSON object.

    Args:
        values: the objects; None is a row of nulls.
        schema: the columns; those of an object that it does not name are ignored.
        where: says where a value is, by its number; None: nobody asks which one cannot be read, which takes long to find.
    Raises:
        SourceError: a value is no JSON object, or does not fit the schema; the error says where it is.
    """
    if where is None:
        return _parsed(values, schema, JsonParser.rows)
    try:
        return _parsed(values, schema)
    except SourceError as e:
        row, odd = 0, e
        if len(values) > 1:
            row, odd = first_odd(len(values), lambda begin, end: _parsed(values[begin:end], schema), SourceError)
        why = re.sub(r"^source: (cannot read its value as jsonl: line 1: |row 0, )?", "", str(odd))
        raise SourceError(f"source: {where(row)} cannot be read as JSON: {why}") from None


def without_bad(
    entries: Sequence[Entry],
    read: Callable[[Sequence[Entry], bool], pa.RecordBatch],
    bad: BadRows | None,
    told: Callable[[Entry], tuple[str, bytes]],
) -> pa.RecordBatch | None:
    """Return the rows of a stream's entries, without those of bad ones, which are given to `BadRows`; None if all are bad.

    Args:
        read: makes rows of entries; with False, its error need not say which entry cannot be read.
        bad: takes the bad ones; None: the first one is an error.
        told: says where an entry is, and what is in it.
    Raises:
        SourceError: an entry is bad, and `bad` is None, or has too many; or good ones cannot be read together.
        NotTheirs: entries cannot be read, and are not bad. None was given to `bad`.
        Away: a registry does not answer. None was given to `bad`.
    """
    if bad is None:
        return read(entries, True)
    try:
        batch = read(entries, False)
    except NotTheirs:
        raise
    except SourceError:
        good, odd = _sorted(entries, read, bad.room)
        batch = read(good, True) if good else None
        # only now, as a registry that goes away before lets all of them be read again
        bad.take("", [_reasoned(one, read, told) for one in odd])
    if batch is not None:
        bad.were_read(batch.num_rows)
    return batch


def _sorted(
    entries: Sequence[Entry], read: Callable[[Sequence[Entry], bool], pa.RecordBatch], room: int
) -> tuple[list[Entry], list[Entry]]:
    """Return (the entries that can be read each by itself, the others, found by halving).

    Args:
        room: if there are more of the others, the rest is not looked at.
    """
    good: list[Entry] = []
    odd: list[Entry] = []
    waiting = [entries]
    while waiting and len(odd) <= room:
        part = waiting.pop()
        try:
            read(part, False)
        except NotTheirs:
            raise
        except SourceError:
            if len(part) > 1:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
            else:
                odd += part
        else:
            good += part
    return good, odd


def _reasoned(
    entry: Entry, read: Callable[[Sequence[Entry], bool], pa.RecordBatch], told: Callable[[Entry], tuple[str, bytes]]
) -> BadRow:
    """Return an entry that cannot be read, with the reason."""
    place, text = told(entry)
    try:
        read([entry], True)
    except SourceError as e:
        reason = str(e).removeprefix("source: ").removeprefix(place).removeprefix(" cannot be read as JSON").lstrip(": ")
        return BadRow(0, reason, text, place)
    raise AssertionError("the entry can be read, after all")


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


def _parsed(
    values: Sequence[bytes | None],
    schema: pa.Schema,
    parse: Callable[[JsonParser, Piece], pa.RecordBatch] = JsonParser.parse,
) -> pa.RecordBatch:
    texts = [b"{}" if value is None else value for value in values]
    # in JSON, the end of a line is only a space between two words
    data = _BETWEEN.join(texts).replace(b"\n", b" ").replace(b"\r", b" ").replace(_BETWEEN, b"\n")
    parser = JsonParser(Pieces(lambda size: b"", False, "its value"), schema)
    try:
        batch = parse(parser, Piece(data + b"\n", 1, True))
    except UNREADABLE as e:
        raise SourceError(f"source: {e}") from None
    if batch.num_rows != len(values):
        raise SourceError(f"{len(values)} values hold {batch.num_rows} JSON objects: each has to be one object, on its own")
    if not _is_one_each(data, len(values)):
        raise SourceError("a value is no JSON object on its own")
    columns = [asked(batch.column(field.name), field, 0) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_one_each(data: bytes, count: int) -> bool:
    """Whether each value is one object, if there are as many objects as values.

    Two objects in a value make up for an empty one, or for one that its neighbour ends. So there has to be one line for each value,
    and each has to begin and to end as an object does: no object can end in one line and begin in another one then.

    Args:
        data: the values, joined by ends of lines.
        count: how many values there are: at least one.
    """
    framed = b"}\n" + data + b"\n{"
    return framed.count(b"\n") == len(_APART.findall(framed)) == count + 1


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
