"""Units of timestamps and dates. A script gets and returns them as integers, so only the two schemas tell their units."""

from __future__ import annotations

import pyarrow as pa

from akrunner.column_types import TIMES, UNITS, family_of
from akrunner.errors import SchemaError
from akrunner.schema import Schema, plain

_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds", "days": "days"}
_DECLARED = {"days": "date", **{unit: f"timestamp({digits})" for unit, digits in UNITS.items()}}
_ZONED = {"days": "date", **{unit: f"timestamp_ltz({digits})" for unit, digits in UNITS.items()}}


def unit_of(data_type: pa.DataType) -> str | None:
    """Return the unit that the integers of a timestamp or date count; None for any other type."""
    if pa.types.is_date32(data_type):
        return "days"
    if pa.types.is_date64(data_type):
        return "ms"
    return str(data_type.unit) if pa.types.is_timestamp(data_type) else None


def _as_given(data_type: pa.DataType) -> pa.DataType:
    """Return the type in which a script gets values of this type."""
    return plain(pa.schema([("", data_type)])).field(0).type if family_of(data_type) in TIMES else data_type


def check_units(table: Schema, output: Schema | None) -> None:
    """Check that a timestamp which the script may pass on under its name has the same unit in the table and in the output
    schema: the script passes on an integer.

    Raises:
        SchemaError: the units differ, and the output schema does not give its unit explicitly, so the user cannot have meant
            that; or the output schema has a type in which no script gets values, such as one copied from the schema of the
            job's own table.
    """
    columns = {field.name: field for field in table}
    for field in output or ():
        source = columns.get(field.name)
        if source is not None and _as_given(field.value_type) == source.value_type != field.value_type:
            raise SchemaError(
                f"output_schema (--output-schema): column {field.name!r} is {field.value_type}, and a script is given the "
                f"table's as {source.value_type}: declare that if it hands on what it was given; if it makes something else "
                "of it, call that by another name"
            )
        have = unit_of(source.value_type) if source is not None else None
        want = unit_of(field.value_type)
        if source is None or not field.unsized or have is None or want is None or have == want:
            continue
        declared = _DECLARED if getattr(field.value_type, "tz", None) is None else _ZONED
        raise SchemaError(
            f"output_schema (--output-schema): column {field.name!r} is a timestamp in {_WORDS[want]}, and the table's "
            f"{field.name!r} is a {source.value_type}, in {_WORDS[have]}: say '{field.name} {declared[have]}' if the script "
            f"hands on what it was given, '{field.name} {declared[want]}' if it makes {_WORDS[want]} of it"
        )
