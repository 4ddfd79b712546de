"""Rows of an iterable (dicts and whatever else names its values, or tuples), or RecordBatches or frames of one -> batches of one schema."""

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
#: columns of a row that an error names
_SHOWN = 20
#: what pyarrow raises at values that do not fit
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError)


def from_rows(rows: Iterable[Any], schema: Schema | None, flush_seconds: float | None) -> TableSource:
    """An iterable as a table. Args: as `open_source`. Raises: SourceError: its rows do not say their columns."""
    iterator = iter(rows)
    if schema is not None and flush_seconds is not None:
        # an endless source may take its time to the first row: that must not hold up the start
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
    """The rows of a database cursor, once. Raises: SourceError: it has none, or they lack a column."""
    names, rows, head = frames.from_cursor(cursor)
    guessed = frames.schema_of_rows(names, head)
    if schema is not None:
        types = {field.name: field.type for field in schema}
        guessed = pa.schema([(field.name, types.get(field.name, field.type)) for field in guessed])
    declared = schema.names if schema is not None else []
    return TableSource(guessed, lambda: map(_RowBatcher(guessed, False, declared), _cut(rows)), "the cursor")


def _guessed(head: list[Any]) -> pa.Schema:
    """The columns of the first rows: those of all of them, in the order they come up."""
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
    """What a row calls its values: a dict, a named tuple, an instance of a dataclass, a row of SQLite. None: it names none."""
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
    """The rows, those that name their values as dicts. Raises: ValueError: two values of one have one name."""
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
    """Rows, or RecordBatches, of a source that is not to be waited for."""
    for first in rows:
        every = itertools.chain([first], rows)
        if _is_batch(first):
            yield from _alike(every, schema, "batch", asked_for)
        elif _is_frame(first):
            yield from _alike(map(frames.from_pandas, every), schema, "frame", asked_for)
        else:
            yield from by_size_or_age(every, _RowBatcher(schema, asked_for), _CHUNK, flush_seconds)


def _of_tables(every: Iterator[Any], schema: Schema | None) -> TableSource:
    """RecordBatches, or frames, as one table: in the columns that are asked for, if the first has them."""
    first = next(every)
    what = "frame" if _is_frame(first) else "batch"
    if what == "frame":
        first, every = frames.from_pandas(first), map(frames.from_pandas, every)
    parts = itertools.chain([first], every)
    asked_for = schema is not None and set(schema.names) <= set(first.schema.names)
    arrow = schema.arrow if schema is not None and asked_for else first.schema
    return TableSource(arrow, lambda: _alike(parts, arrow, what, asked_for), _NAME)


def _alike(parts: Iterable[Any], schema: pa.Schema, what: str, asked_for: bool) -> Iterator[pa.RecordBatch]:
    """The batches of an iterable, their columns by name. Args: what: each is called; asked_for: the columns are, and others are passed over.

    Raises: SourceError: one has other columns than the first, or than was asked for.
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
    """Values of a column do not fit it; says which, and why."""


class _RowBatcher:
    """Rows of an iterable -> a batch; keeps count, for errors."""

    def __init__(self, schema: pa.Schema, asked_for: bool, declared: Sequence[str] | None = None) -> None:
        """Args: asked_for: the columns were asked for: others are passed over; declared: those of a cursor whose types were asked for, whose rows go by
        position whatever they are called; None: it is no cursor."""
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
                    f"a row has a column {min(map(str, unknown))!r} that those before it have not; input_schema= says which to take"
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
        """Whether the column's times have a zone. Raises: ValueError: those before them are otherwise."""
        now = zoned(values, field.type)
        if now is not None and self._zones.get(field.name, now) != now:
            odd = ("a zone", "none") if now else ("no zone", "one")
            raise ValueError(
                f"a time in column {field.name!r} has {odd[0]}, and those before it have {odd[1]}: give all of them a zone, or none"
            )
        return now

    def _instead(self, field: pa.Field) -> str:
        """What to do about values that are not as those before them."""
        if field.name in self._rounded:
            return ""
        return f"; the first rows say {field.type}: input_schema= says which type it is to have"

    def end(self) -> None:
        """Raises: SourceError: no row had a column that was asked for: it would be null everywhere, without a word."""
        if self._unseen and self._at:
            first = ", ".join(map(str, self._first[:_SHOWN])) + (", ..." if len(self._first) > _SHOWN else "")
            raise SourceError(f"input_schema: no row of {_NAME} has a column {min(self._unseen)!r} (the first has {first})")

    def _error(self, rows: list[Any], error: BaseException) -> SourceError:
        """Which of the rows it is."""
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
