"""Turns an iterable of rows (tuples, or dicts and other objects that name their values), of RecordBatches or of frames into
batches of one schema."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io import frames
from akrunner.io.arrivals import by_size_or_age
from akrunner.io.casts import as_in_first, asked
from akrunner.io.frames import INFER_ROWS, columns_in_words
from akrunner.io.table import TableSource
from akrunner.io.values import Unfit, as_type, zoned
from akrunner.schema import Schema, repeated

_CHUNK = 8192
_NAME = "the iterable"
#: how many columns of a row an error names
_SHOWN = 20
#: the exceptions that pyarrow raises for values that do not fit a type
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError)


def from_rows(rows: Iterable[Any], schema: Schema | None, flush_seconds: float | None) -> TableSource:
    """Return an iterable as a table. The arguments are those of `open_source`.

    Raises:
        SourceError: the rows do not tell their columns.
    """
    iterator = iter(rows)
    if schema is not None and flush_seconds is not None:
        # an endless source may be slow to give its first row, and that must not delay the start
        return TableSource(schema.arrow, lambda: _arriving(iterator, schema.arrow, flush_seconds, True), _NAME)
    head = list(itertools.islice(iterator, 1))
    every = itertools.chain(head, iterator)
    if head and (_is_batch(head[0]) or _is_frame(head[0])):
        return _of_tables(every, schema)
    if schema is not None:
        arrow = schema.arrow
    elif not head:
        raise SourceError("source: the iterable is empty, so its columns are not known; give input_schema=")
    elif _names_of(head[0]) is None:
        raise SourceError(f"source: rows of {type(head[0]).__name__} do not name their columns; give input_schema=, or dicts")
    else:
        if flush_seconds is None:
            head += itertools.islice(iterator, INFER_ROWS - 1)
            every = itertools.chain(head, iterator)
        arrow = _guessed(head)
    asked_for = schema is not None
    if flush_seconds is not None:
        return TableSource(arrow, lambda: _arriving(every, arrow, flush_seconds, asked_for), _NAME)
    return TableSource(arrow, lambda: _batched(every, arrow, asked_for), _NAME)


def from_cursor(cursor: Any, schema: Schema | None) -> TableSource:
    """Return the rows of a database cursor as a table that can be read once.

    Raises:
        SourceError: the cursor has executed no query, two of its columns have the same name, or a column's values have no
            common type.
    """
    names, rows, head = frames.from_cursor(cursor)
    guessed = frames.schema_of_rows(names, head)
    if schema is not None:
        types = {field.name: field.type for field in schema}
        guessed = pa.schema([(field.name, types.get(field.name, field.type)) for field in guessed])
    declared = schema.names if schema is not None else []
    return TableSource(guessed, lambda: map(_RowBatcher(guessed, False, declared), _cut(rows)), "the cursor")


def _guessed(head: list[Any]) -> pa.Schema:
    """Return the schema of the first rows: all columns that any of them has, in the order in which they first appear."""
    try:
        dicts = [row for row in _as_dicts(head) if isinstance(row, Mapping)]
    except ValueError as e:
        raise SourceError(f"source: {e}") from None
    names = list(dict.fromkeys(itertools.chain.from_iterable(dicts)))
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise SourceError(f"source: the key {odd!r} of a row is no text, so it names no column")
    return frames.schema_of_rows(names, [[row.get(name) for name in names] for row in dicts])


def _names_of(row: Any) -> list[Any] | None:
    """Return the names that a row gives its values: a dict, a named tuple, an instance of a dataclass or a row of SQLite has
    them. Return None if the row names no values."""
    if isinstance(row, Mapping):
        return list(row)
    if isinstance(row, tuple):
        return list(row._fields) if hasattr(row, "_fields") else None
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return [field.name for field in dataclasses.fields(row)]
    return list(row.keys()) if _is_row_of_sqlite(row) else None


def _is_row_of_sqlite(row: Any) -> bool:
    return type(row).__name__ == "Row" and type(row).__module__ == "sqlite3"


def _as_dicts(rows: list[Any]) -> list[Any]:
    """Return the rows with a dict in place of every row that names its values.

    Raises:
        ValueError: two values of a row have the same name.
    """
    if not any(
        issubclass(kind, tuple) or dataclasses.is_dataclass(kind) or kind.__name__ == "Row" for kind in set(map(type, rows))
    ):
        return rows
    return list(map(_as_dict, rows))


def _as_dict(row: Any) -> Any:
    names = None if isinstance(row, Mapping) else _names_of(row)
    if names is None:
        return row
    twice = repeated(names)
    if twice is not None:
        raise ValueError(f"two columns of a row are called {twice!r}; name them apart (SELECT ... AS ...)")
    if isinstance(row, tuple) or _is_row_of_sqlite(row):
        return dict(zip(names, row))
    return {name: getattr(row, name) for name in names}


def _batched(rows: Iterator[Any], schema: pa.Schema, asked_for: bool) -> Iterator[pa.RecordBatch]:
    batcher = _RowBatcher(schema, asked_for)
    yield from map(batcher, _cut(rows))
    batcher.end()


def _cut(rows: Iterator[Any]) -> Iterator[list[Any]]:
    return iter(lambda: list(itertools.islice(rows, _CHUNK)), [])


def _arriving(rows: Iterator[Any], schema: pa.Schema, flush_seconds: float, asked_for: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an iterable of rows, RecordBatches or frames that may be slow: a batch does not wait until it is
    full."""
    for first in rows:
        every = itertools.chain([first], rows)
        if _is_batch(first):
            yield from _alike(every, schema, "batch", asked_for)
        elif _is_frame(first):
            yield from _alike(map(frames.from_pandas, every), schema, "frame", asked_for)
        else:
            yield from by_size_or_age(every, _RowBatcher(schema, asked_for), _CHUNK, flush_seconds)


def _of_tables(every: Iterator[Any], schema: Schema | None) -> TableSource:
    """Return RecordBatches, or frames, as one table; with the columns of `schema` if the first of them has those."""
    first = next(every)
    what = "frame" if _is_frame(first) else "batch"
    if what == "frame":
        first, every = frames.from_pandas(first), map(frames.from_pandas, every)
    parts = itertools.chain([first], every)
    asked_for = schema is not None and set(schema.names) <= set(first.schema.names)
    arrow = schema.arrow if schema is not None and asked_for else first.schema
    return TableSource(arrow, lambda: _alike(parts, arrow, what, asked_for), _NAME)


def _alike(parts: Iterable[Any], schema: pa.Schema, what: str, asked_for: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an iterable, with their columns matched by name.

    Args:
        what: the word for one part of the iterable ("batch", "frame") in errors.
        asked_for: whether the user asked for the schema's columns; other columns are ignored then.
    Raises:
        SourceError: a part has other columns than the first one, or lacks a column that was asked for.
    """
    rows = 0
    for number, part in enumerate(parts):
        if not _is_batch(part):
            raise SourceError(f"source: {what} {number} of the iterable is {type(part).__name__}, not a RecordBatch")
        names, wanted = part.schema.names, set(schema.names)
        fits = wanted <= set(names) and len(set(names)) == len(names) and (asked_for or len(names) == len(wanted))
        if part.schema != schema and not fits:
            raise SourceError(
                f"source: {what} {number} of the iterable has other columns ({columns_in_words(part.schema)}) than "
                f"{columns_in_words(schema)}; input_schema= says which to take"
            )
        for batch in part.to_batches() if isinstance(part, pa.Table) else [part]:
            if batch.schema != schema:
                columns = [
                    asked(batch.column(field.name), field, rows)
                    if asked_for
                    else as_in_first(batch, field, f"{what} {number} of the iterable", "the first")
                    for field in schema
                ]
                batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            rows += batch.num_rows
            yield batch


class _UnfitColumn(ValueError):
    """The values of a column do not fit its type; the message names the column and the reason."""


class _RowBatcher:
    """Turns rows of an iterable into batches, and counts the rows for errors."""

    def __init__(self, schema: pa.Schema, asked_for: bool, declared: Sequence[str] | None = None) -> None:
        """Args:
        asked_for: whether the user asked for these columns; other columns are ignored then.
        declared: the columns of a cursor whose types the user gave; a cursor's rows are read by position, whatever their
            keys are. None: the rows come from no cursor.
        """
        self._schema = schema
        self._asked = asked_for
        self._declared = declared
        self._rounded = set(schema.names) if asked_for else set(declared or ())
        self._at = 0
        self._unseen: set[str] = set(schema.names) if asked_for else set()
        self._zones: dict[str, bool] = {}
        self._first: list[Any] = []

    def __call__(self, rows: list[Any]) -> pa.RecordBatch:
        try:
            if self._declared is None:
                rows = _as_dicts(rows)
            kinds = set(map(type, rows))
            named = {issubclass(kind, Mapping) for kind in kinds}
            if len(named) > 1 or any(issubclass(kind, (str, bytes, set, frozenset)) for kind in kinds):
                raise TypeError("rows are all dicts, or all tuples")
            batch = self._of_dicts(rows) if named == {True} else self._of_tuples(rows)
        except _UNFIT as e:
            raise self._error(rows, e) from None
        self._at += len(rows)
        return batch

    def _of_dicts(self, rows: list[Any]) -> pa.RecordBatch:
        if self._unseen or not self._asked:
            keys = set().union(*rows)
            self._first = self._first or list(rows[0])
            self._unseen -= keys
            unknown = keys.difference(self._schema.names) if not self._asked else None
            if unknown:
                raise ValueError(
                    f"a row has a column {min(map(str, unknown))!r} that those before it have not; input_schema= says which "
                    "to take"
                )
        columns = [[row.get(field.name) for row in rows] for field in self._schema]
        return self._batch(columns)

    def _of_tuples(self, rows: Sequence[Any]) -> pa.RecordBatch:
        self._unseen = set()
        return self._batch(list(zip(*rows, strict=True)))

    def _batch(self, columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        arrays, zones = [], dict(self._zones)
        for values, field in zip(columns, self._schema, strict=True):
            try:
                arrays.append(as_type(values, field.type, field.name in self._rounded))
            except _UNFIT as e:
                what = e.what if isinstance(e, Unfit) else str(e)
                raise _UnfitColumn(f"column {field.name!r}: {what}{self._instead(field)}") from None
            zoned = self._zoned(values, field)
            if zoned is not None:
                zones[field.name] = zoned
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._zones = zones
        return batch

    def _zoned(self, values: Sequence[Any], field: pa.Field) -> bool | None:
        """Whether the column's times have a time zone.

        Raises:
            ValueError: the earlier times have one and these have none, or the other way round.
        """
        now = zoned(values, field.type)
        if now is not None and self._zones.get(field.name, now) != now:
            odd = ("a zone", "none") if now else ("no zone", "one")
            raise ValueError(
                f"a time in column {field.name!r} has {odd[0]}, and those before it have {odd[1]}: give all of them a zone, "
                "or none"
            )
        return now

    def _instead(self, field: pa.Field) -> str:
        """Return the advice to give about values that differ in type from earlier ones."""
        if field.name in self._rounded:
            return ""
        return f"; the first rows say {field.type}: input_schema= says which type it is to have"

    def end(self) -> None:
        """Check, after the last row, that every column that was asked for was seen: a column that no row has would silently be
        null everywhere.

        Raises:
            SourceError: no row had one of the columns.
        """
        if self._unseen and self._at:
            first = ", ".join(map(str, self._first[:_SHOWN])) + (", ..." if len(self._first) > _SHOWN else "")
            raise SourceError(f"input_schema: no row of {_NAME} has a column {min(self._unseen)!r} (the first has {first})")

    def _error(self, rows: list[Any], error: BaseException) -> SourceError:
        """Return an error that names the row, of these rows, that does not fit."""
        where = f"rows {self._at} to {self._at + len(rows) - 1} do"
        half_by_half = _RowBatcher(self._schema, self._asked, self._declared)
        half_by_half._at, half_by_half._zones = self._at, self._zones
        middle = len(rows) // 2
        for half in (rows[:middle], rows[middle:]) if middle else ():
            try:
                half_by_half(half)
            except SourceError as e:
                return e
        if len(rows) == 1:
            where = f"row {self._at} does"
        what = str(error)
        if isinstance(error, ValueError) and "zip()" in what:
            what = f"it has {len(rows[0]) if len(rows) == 1 else 'another number of'} values"
        return SourceError(f"source: {where} not fit the columns ({columns_in_words(self._schema)}): {what}")


def _is_batch(value: Any) -> bool:
    return isinstance(value, (pa.RecordBatch, pa.Table))


def _is_frame(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "pandas" and type(value).__name__ == "DataFrame"
