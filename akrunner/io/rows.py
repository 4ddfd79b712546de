"""Rows of an iterable (dicts, tuples), or RecordBatches or frames of one -> batches of one schema."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io import frames
from akrunner.io.arrivals import by_size_or_age
from akrunner.io.frames import INFER_ROWS, columns_in_words
from akrunner.io.table import TableSource
from akrunner.io.values import Unfit, as_type, zoned
from akrunner.schema import Schema

_CHUNK = 8192
_NAME = "the iterable"
#: what pyarrow raises at values that do not fit
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError)


def from_rows(rows: Iterable[Any], schema: Optional[Schema], flush_seconds: Optional[float]) -> TableSource:
    """An iterable as a table. Args: as `open_source`. Raises: SourceError: its rows do not say their columns."""
    iterator = iter(rows)
    if schema is not None and flush_seconds is not None:
        # an endless source may take its time to the first row: that must not hold up the start
        return TableSource(schema.arrow, lambda: _arriving(iterator, schema.arrow, flush_seconds, True), _NAME)
    head = list(itertools.islice(iterator, 1))
    every = itertools.chain(head, iterator)
    if head and isinstance(head[0], (pa.RecordBatch, pa.Table)):
        return TableSource(head[0].schema, lambda: _alike(every, head[0].schema), _NAME)
    if head and _is_frame(head[0]):
        arrow, batches = frames.from_frames(head[0], iterator)
        return TableSource(arrow, lambda: batches, _NAME)
    if schema is not None:
        arrow = schema.arrow
    elif not head:
        raise SourceError("source: the iterable is empty, so its columns are not known; give input_schema=")
    elif not isinstance(head[0], Mapping):
        raise SourceError(f"source: rows of {type(head[0]).__name__} do not name their columns; give input_schema=, or dicts")
    else:
        if flush_seconds is None:
            head += itertools.islice(iterator, INFER_ROWS - 1)
            every = itertools.chain(head, iterator)
        arrow = _guessed(head)
    asked = schema is not None
    if flush_seconds is not None:
        return TableSource(arrow, lambda: _arriving(every, arrow, flush_seconds, asked), _NAME)
    return TableSource(arrow, lambda: _batched(every, arrow, asked), _NAME)


def from_cursor(cursor: Any, schema: Optional[Schema]) -> TableSource:
    """The rows of a database cursor, once. Raises: SourceError: it has none, or they lack a column."""
    names, rows, head = frames.from_cursor(cursor)
    guessed = frames.schema_of_rows(names, head)
    if schema is not None:
        types = {field.name: field.type for field in schema}
        guessed = pa.schema([(field.name, types.get(field.name, field.type)) for field in guessed])
    return TableSource(guessed, lambda: _batched(rows, guessed, False), "the cursor")


def _guessed(head: List[Any]) -> pa.Schema:
    """The columns of the first rows: those of all of them, in the order they come up."""
    names = list(dict.fromkeys(itertools.chain.from_iterable(row for row in head if isinstance(row, Mapping))))
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise SourceError(f"source: the key {odd!r} of a row is no text, so it names no column")
    return frames.schema_of_rows(names, [[row.get(name) for name in names] for row in head if isinstance(row, Mapping)])


def _batched(rows: Iterator[Any], schema: pa.Schema, asked: bool) -> Iterator[pa.RecordBatch]:
    batcher = _RowBatcher(schema, asked)
    yield from map(batcher, iter(lambda: list(itertools.islice(rows, _CHUNK)), []))
    batcher.end()


def _arriving(rows: Iterator[Any], schema: pa.Schema, flush_seconds: float, asked: bool) -> Iterator[pa.RecordBatch]:
    """Rows, or RecordBatches, of a source that is not to be waited for."""
    for first in rows:
        every = itertools.chain([first], rows)
        if isinstance(first, (pa.RecordBatch, pa.Table)):
            yield from _alike(every, schema)
        elif _is_frame(first):
            yield from _alike((frames.from_pandas(frame) for frame in every), schema)
        else:
            yield from by_size_or_age(every, _RowBatcher(schema, asked), _CHUNK, flush_seconds)


def _alike(parts: Iterable[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of an iterable. Raises: SourceError: one has other columns than the first, or than was asked for."""
    for number, part in enumerate(parts):
        if not isinstance(part, (pa.RecordBatch, pa.Table)):
            raise SourceError(f"source: batch {number} of the iterable is {type(part).__name__}, not a RecordBatch")
        if part.schema != schema:
            if not set(schema.names) <= set(part.schema.names) or len(set(part.schema.names)) < len(part.schema.names):
                raise SourceError(
                    f"source: batch {number} of the iterable has other columns ({columns_in_words(part.schema)}) than {columns_in_words(schema)}"
                )
            try:
                part = part.select(schema.names).cast(schema)
            except pa.ArrowException as e:
                raise SourceError(
                    f"source: batch {number} of the iterable cannot have the columns {columns_in_words(schema)}: {e}"
                ) from None
        yield from part.to_batches() if isinstance(part, pa.Table) else [part]


class _RowBatcher:
    """Rows of an iterable -> a batch; keeps count, for errors. Args: asked: the columns were asked for: others are passed over."""

    def __init__(self, schema: pa.Schema, asked: bool) -> None:
        self._schema = schema
        self._asked = asked
        self._at = 0
        self._unseen: Set[str] = set(schema.names) if asked else set()
        self._zones: Dict[str, bool] = {}

    def __call__(self, rows: List[Any]) -> pa.RecordBatch:
        kinds = set(map(type, rows))
        named = {issubclass(kind, Mapping) for kind in kinds}
        try:
            if len(named) > 1 or any(issubclass(kind, (str, bytes, set, frozenset)) for kind in kinds):
                raise TypeError("rows are all dicts, or all tuples")
            batch = self._of_dicts(rows) if named == {True} else self._of_tuples(rows)
        except _UNFIT as e:
            raise self._error(rows, e) from None
        self._at += len(rows)
        return batch

    def _of_dicts(self, rows: List[Any]) -> pa.RecordBatch:
        if self._unseen or not self._asked:
            keys = set().union(*rows)
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
            arrays.append(as_type(values, field.type))
            zoned = self._zoned(values, field)
            if zoned is not None:
                zones[field.name] = zoned
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._zones = zones
        return batch

    def _zoned(self, values: Sequence[Any], field: pa.Field) -> Optional[bool]:
        """Whether the column's times have a zone. Raises: ValueError: those before them are otherwise."""
        now = zoned(values, field.type)
        if now is not None and self._zones.get(field.name, now) != now:
            odd = ("a zone", "none") if now else ("no zone", "one")
            raise ValueError(
                f"a time in column {field.name!r} has {odd[0]}, and those before it have {odd[1]}: give all of them a zone, or none"
            )
        return now

    def end(self) -> None:
        """Raises: SourceError: no row had a column that was asked for: it would be null everywhere, without a word."""
        if self._unseen and self._at:
            raise SourceError(f"input_schema: no row of {_NAME} has a column {min(self._unseen)!r}")

    def _error(self, rows: List[Any], error: BaseException) -> SourceError:
        """Which of the rows it is."""
        where = f"rows {self._at} to {self._at + len(rows) - 1} do"
        half_by_half = _RowBatcher(self._schema, self._asked)
        half_by_half._at, half_by_half._zones = self._at, self._zones
        middle = len(rows) // 2
        for half in (rows[:middle], rows[middle:]) if middle else ():
            try:
                half_by_half(half)
            except SourceError as e:
                return e
        if len(rows) == 1:
            where = f"row {self._at} does"
        what = error.what if isinstance(error, Unfit) else str(error)
        if isinstance(error, ValueError) and "zip()" in what:
            what = f"it has {len(rows[0]) if len(rows) == 1 else 'another number of'} values"
        return SourceError(f"source: {where} not fit the columns ({columns_in_words(self._schema)}): {what}")


def _is_frame(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "pandas" and type(value).__name__ == "DataFrame"
