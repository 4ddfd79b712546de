"""Which columns of a table go to the tasks, and what replaces nulls there: `columns=` and `defaults=`."""

from __future__ import annotations

import dataclasses
import datetime
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.checks import check_names, shown
from akrunner.column_types import Family, family_of
from akrunner.errors import ConfigError, SourceError
from akrunner.io.table import TableSource
from akrunner.schema import is_list, is_text, to_array
from akrunner.wire.near import nearest

#: for each family of types: the words for its default values, and whether a value is one
_KINDS: dict[Family, tuple[str, Callable[[Any], bool]]] = {
    Family.TRUTH: ("True or False", lambda value: isinstance(value, (bool, np.bool_))),
    Family.WHOLE: ("a whole number", lambda value: _is_number(value, numbers.Integral)),
    Family.DECIMAL: ("a whole number", lambda value: _is_number(value, numbers.Integral)),
    Family.REAL: ("a number, or NaN", lambda value: _is_number(value, numbers.Real)),
    Family.TEXT: ("text", lambda value: isinstance(value, str)),
    Family.DATE: (
        "a date, or text like '2026-11-23'",
        lambda value: isinstance(value, (datetime.date, str)) and not isinstance(value, datetime.datetime),
    ),
    Family.MOMENT: (
        "a datetime, or text like '2026-11-23 12:00:00'",
        lambda value: isinstance(value, (datetime.datetime, str)),
    ),
    Family.TIME_OF_DAY: ("a time, or text like '12:00:00'", lambda value: isinstance(value, (datetime.time, str))),
    Family.SPAN: ("a timedelta", lambda value: isinstance(value, datetime.timedelta)),
    Family.OCTETS: ("text or bytes", lambda value: isinstance(value, (str, bytes))),
}


def check_columns(given: Any) -> list[str] | None:
    """Return `columns=` after the checks that need no table.

    Raises:
        ConfigError: it is not a list of names.
    """
    names = check_names("columns", given)
    if names == []:
        raise ConfigError("columns is empty: name at least one, or leave it out for all")
    return names


def check_defaults(given: Any) -> dict[str, Any] | None:
    """Return `defaults=` after the checks that need no table.

    Raises:
        ConfigError: it is not a mapping of columns to values.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise ConfigError(f"defaults must say which column gets which value, {{'age': 0}}, not {shown(given)}")
    none = next((name for name, value in given.items() if value is None), None)
    if none is not None:
        raise ConfigError(f"defaults: {none!r} gets None, which is a null again; give a value (NaN in a column of floats)")
    return dict(given)


def taken(table: TableSource, columns: Sequence[str]) -> TableSource:
    """Return the table with only `columns`, in the order in which they are given.

    Raises:
        SourceError: the table lacks one of them.
    """
    schema = pa.schema([table.schema.field(_known(name, table, "columns")) for name in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table.batches():
            yield batch.select(list(columns))

    # without `files`: machines that read the files themselves would read all columns. Of a database, only these may be read already
    held = table.held if schema.names == table.schema.names else None
    return dataclasses.replace(table, schema=schema, open=batches, files=None, held=held, each=None)


def filled(table: TableSource, defaults: Mapping[str, Any]) -> TableSource:
    """Return the table with a value in place of each null of some columns.

    Args:
        defaults: for each of those columns, the value.
    Raises:
        SourceError: the table lacks such a column, or the column cannot hold the value.
    """
    instead = {name: _default(table.schema.field(_known(name, table, "defaults")), value) for name, value in defaults.items()}
    schema = pa.schema(
        [field.with_type(instead[field.name].type) if field.name in instead else field for field in table.schema]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table.batches():
            columns: list[pa.Array] = [
                _filled(column, instead[field.name]) if field.name in instead else column
                for field, column in zip(batch.schema, batch.columns)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return dataclasses.replace(table, schema=schema, open=batches, files=None, held=None, each=None)


def _known(name: str, table: TableSource, parameter: str) -> str:
    names = table.schema.names
    if name not in names:
        there = (
            f"{table.name} has no column {name!r} (it has"
            if parameter == "columns"
            else f"no column {name!r} goes to the tasks (there are"
        )
        raise SourceError(f"{parameter}: {there} {', '.join(names)}){nearest(name, names)}")
    return name


def _default(field: pa.Field, value: Any) -> pa.Array:
    """Return the value as an array of length 1, of the column's type.

    Raises:
        SourceError: the column cannot hold the value.
    """
    kind = field.type
    if isinstance(kind, pa.FixedShapeTensorType):
        storage = _default(field.with_type(kind.storage_type), np.asarray(value).reshape(-1).tolist())
        return pa.ExtensionArray.from_storage(kind, storage)
    if pa.types.is_null(kind):
        # a column without a single value, so its type is unknown
        return pa.array([value])
    many = is_list(kind)
    one = kind.value_type if many else kind
    family = Family.TEXT if is_text(one) else family_of(one)
    words, fits = _KINDS.get(family or Family.OCTETS, _KINDS[Family.OCTETS])
    values = value.tolist() if isinstance(value, np.ndarray) else value
    if not (isinstance(values, (list, tuple)) and all(map(fits, values)) if many else fits(values)):
        raise SourceError(
            f"defaults: column {field.name!r} is {kind}, and {shown(value)} is none of its values; give "
            + (f"a list, each of it {words}" if many else words)
        )
    try:
        if not pa.types.is_temporal(one):
            return to_array([values], kind)
        if many and any(isinstance(each, str) for each in values):
            made = pa.concat_arrays([_time(each, one) for each in values])
            return pa.ListArray.from_arrays(pa.array([0, len(made)], pa.int32()), made).cast(kind)
        return to_array([values], kind) if many else _time(values, one)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as e:
        raise SourceError(f"defaults: column {field.name!r} is {kind}, and cannot hold {shown(value)}: {e}") from None


def _time(value: Any, kind: pa.DataType) -> pa.Array:
    """Return a time, or the text of one, as an array of length 1. The errors are those of `to_array`."""
    if isinstance(value, str) and family_of(kind) is Family.TIME_OF_DAY:
        # Arrow reads a time of day only from text that has a date, too
        return pa.array([f"1970-01-01 {value}"]).cast(pa.timestamp("ns")).cast(kind)
    return pa.array([value]).cast(kind) if isinstance(value, str) else to_array([value], kind)


def _filled(column: pa.Array, instead: pa.Array) -> pa.Array:
    if not column.null_count:
        return column
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(column.type, _filled(column.storage, instead.storage))
    if pa.types.is_null(column.type):
        return pa.repeat(instead[0], len(column))
    return pc.fill_null(column, instead[0])


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, (bool, np.bool_))
