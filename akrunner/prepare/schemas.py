"""Conversion of every value that can be given as a schema to a `Schema`."""

from __future__ import annotations

import pyarrow as pa

from akrunner import dtypes
from akrunner.errors import ConfigError, SchemaError
from akrunner.foreign import ours
from akrunner.prepare.arguments import SchemaLike
from akrunner.schema import BY_DECIMALS, BY_SELECT, Schema


def schema_of(given: SchemaLike | None, parameter: str) -> Schema | None:
    """Return a schema given in any form (text, dict, dtypes, Arrow's) as a `Schema`, None for None.

    Raises: SchemaError: the schema is wrong; ConfigError: the value is no schema.
    """
    try:
        return _schema_of(given, parameter)
    except SchemaError as e:
        what, sign, _ = str(e).partition(BY_SELECT)
        if not sign or parameter != "output_schema":
            raise
        # the hints name options that work on the input and not on the output
        raise SchemaError(
            f"output_schema: {what.removesuffix(BY_DECIMALS)}; declare it as a type that one can, and write such values: 'double' for a decimal, "
            "'string' for text of any kind"
        ) from None


def _schema_of(given: SchemaLike | None, parameter: str) -> Schema | None:
    if given is None or isinstance(given, Schema):
        return given
    if isinstance(given, pa.Schema):
        return Schema.from_arrow(given)
    if isinstance(given, str):
        with ours(SchemaError, parameter):
            return Schema.parse(given, parameter)
    with ours(SchemaError, parameter):
        items = dtypes.items_of(given)
        if items is not None:
            return dtypes.schema_of_items(items, parameter)
    raise ConfigError(
        f"{parameter} must be text like 'id bigint, p double', a dict of columns and types, or a schema of pyarrow's, not "
        f"{type(given).__name__}"
    )
