"""The content of `dataset.json`, and what a part adds to it; checks whether a format can hold a table's columns."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from akrunner import codec
from akrunner.column_types import UNITS, type_of, undeclared
from akrunner.errors import DataError, SchemaError, SinkError
from akrunner.io import formats
from akrunner.io.packed import MADE_BY, VERSION
from akrunner.packing import dataset
from akrunner.packing.shards import writer_of
from akrunner.schema import feature_kind, is_list, is_text, replaced

#: how many columns a message names
_NAMED = 100
#: how many columns a warning names
_FEW = 5
#: digits of a decimal that 64 bits always hold
_DIGITS = 18
_DOUBLES = "format='parquet' (--format parquet) keeps doubles"


def words_of(schema: pa.Schema) -> str:
    """Return an Arrow schema as text that JSON can hold."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_in(words: str) -> pa.Schema:
    """Return the schema that `words_of` turned into text."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(words)))


def check_columns(schema: pa.Schema, form: str) -> None:
    """Raise a SchemaError if files of a format cannot hold some of the columns; it names them, up to a limit."""
    odd = [(field.name, words) for field in schema for words in _not_held(field, form)]
    if odd:
        others = [name for name, _ in odd[1:]]
        more = f". Nor do they hold {', '.join(map(repr, others[:_NAMED]))}" if others else ""
        raise SchemaError(f"{odd[0][1]}{more}")


def check_as_before(before: dict[str, Any] | None, schema: pa.Schema) -> None:
    """Check that new rows have the columns of those that are packed, as no reader could read both otherwise.

    Args: before: `dataset.json`; None: nothing is packed yet; schema: schema of the new rows.
    Raises: SinkError: the columns differ.
    """
    if before is None:
        return
    form = before["format"]
    there = {one["name"]: one["type"] for one in before["columns"]}
    new = {field.name: type_words(field.type, form) for field in schema}
    odd = [name for name in [*there, *new] if there.get(name) != new.get(name)]
    if odd:
        has, comes = (f"{odd[0]!r} is {some[odd[0]]}" if odd[0] in some else f"there is no {odd[0]!r}" for some in (there, new))
        raise SinkError(
            f"output: what is new has other columns than what is packed: there {has}, and now {comes}; input_schema= and "
            "select= (--input-schema, --select) make them as they were, overwrite=True (--overwrite) packs everything anew"
        )


def check_values(batch: pa.RecordBatch, form: str, first: int, name: str) -> None:
    """Raise a DataError if files of a format cannot hold a value of a batch.

    Args: first: number of the batch's first row in its table; name: name of the table.
    """
    if not formats.named(form).examples:
        return
    try:
        codec.check_values(batch, first)
    except DataError as e:
        # the advice for jobs does not help here, so it is replaced
        words = str(e).replace("data_format='columns' (--data-format) keeps doubles", _DOUBLES)
        raise DataError(f"source: {name}: {words}", row=e.row, column=e.column) from None


def rounded(schema: pa.Schema, form: str) -> list[str]:
    """Return a warning about columns of doubles, if the format keeps 32 bits of them, as a `tf.train.Example` does."""
    names = [field.name for field in schema if _is_double(field.type)] if formats.named(form).examples else []
    if not names:
        return []
    more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
    are = "is double, and is" if len(names) == 1 else "are double, and are"
    return [
        f"{', '.join(map(repr, names[:_FEW]))}{more} {are} rounded to 32 bits, as a tf.train.Example has them: "
        "format='parquet' (--format parquet) keeps all of them"
    ]


def wider(schema: pa.Schema, form: str) -> list[str]:
    """Return a warning about whole numbers that Parquet and Arrow files keep, and a job reads only if 64 bits hold them."""
    names = [field.name for field in schema if _is_wide(field.type)] if not formats.named(form).examples else []
    if not names:
        return []
    more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
    are = "is a decimal" if len(names) == 1 else "are decimals"
    return [
        f"{', '.join(map(repr, names[:_FEW]))}{more} {are} of more digits than 64 bits hold: the files keep all of them, "
        f"and a job refuses a larger value; select={replaced(names[0])!r} (--select) makes text of it, here or in the job"
    ]


def _is_wide(data_type: pa.DataType) -> bool:
    if is_list(data_type):
        return _is_wide(data_type.value_type)
    is_whole = pa.types.is_decimal(data_type) and data_type.scale <= 0
    return bool(is_whole and data_type.precision - data_type.scale > _DIGITS)


def _is_double(data_type: pa.DataType) -> bool:
    return _is_double(data_type.value_type) if is_list(data_type) else bool(pa.types.is_float64(data_type))


def _not_held(field: pa.Field, form: str) -> Iterator[str]:
    """Give the reason why files of a format cannot hold a column, or nothing if they can."""
    if formats.named(form).examples:
        try:
            feature_kind(field.name, field.type)
        except SchemaError as e:
            yield f"{e}. Files of Parquet and Arrow keep it as it is: format='parquet' (--format parquet)"
        return
    try:
        writer_of(form, pa.BufferOutputStream(), pa.schema([field])).close()
    except pa.ArrowException as e:
        yield (
            f"column {field.name!r} is {field.type}, which files of {form} do not hold ({str(e).splitlines()[0]}); make it "
            f"something else: select={replaced(field.name)!r} (--select)"
        )


def type_words(data_type: pa.DataType, form: str) -> str:
    """Return the name of a type in the files of a format, as `--input-schema` writes it.

    Parquet and Arrow files keep a type that has no such name, so Arrow's name is returned. For TFRecord files it is the type
    that they hold: their floats have 32 bits.
    """
    if is_list(data_type):
        return f"array<{type_words(data_type.value_type, form)}>"
    if pa.types.is_dictionary(data_type):
        return type_words(data_type.value_type, form)
    if pa.types.is_floating(data_type) or pa.types.is_null(data_type):
        return "double" if data_type == pa.float64() and not formats.named(form).examples else "float"
    if pa.types.is_timestamp(data_type):
        return f"timestamp({UNITS[data_type.unit]})"
    row = type_of(data_type)
    if row is not None and row.sql and (row.arrow == data_type or is_text(data_type)):
        return row.name
    # Parquet and Arrow files keep such a type as it is: 64 bits do not hold every decimal without digits behind its point
    kind = dataset.feature_of("", data_type) if formats.named(form).examples else None
    return undeclared(kind).name if kind else str(data_type)


def described(
    before: dict[str, Any] | None,
    plan: dict[str, Any],
    results: list[dict[str, Any]],
    part: int,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Return the content of `dataset.json` once a part is added; its lists of files that were left out are empty here.

    Args:
        before: the `dataset.json` of the parts that still count; None: there are none.
        plan: the part's plan.
        results: the records of the part's shards, in order.
        part: the part's number.
        settings: the settings that the part was packed with.
    """
    schema, labels = schema_in(plan["columns"]), plan["labels"]
    splits: dict[str, Any] = {name: {"rows": 0, "bytes": 0, "labels": [], "files": []} for name in plan["splits"]}
    for name, split in ((before or {}).get("splits") or {}).items():
        splits[name] = {**split, "files": list(split["files"])}
    formats: dict[str, int] = dict((before or {}).get("formats") or {})
    for name, split in splits.items():
        counts = [*split["labels"], *([0] * (len(labels) - len(split["labels"])))]
        if "counts" in plan and labels:
            for i, more in enumerate(plan["counts"][plan["splits"].index(name)]):
                counts[i] += more
        split["labels"] = counts
    for shard, result in zip(plan["shards"], results):
        split = splits[shard["split"]]
        if result["rows"]:
            split["files"].append(
                {"name": shard["file"], "rows": result["rows"], "bytes": result["bytes"], "checksum": result["sum"]}
            )
        split["rows"] += result["rows"]
        split["bytes"] += result["bytes"]
        for number, more in result["labels"].items():
            split["labels"][int(number)] += more
        for name, more in result["formats"].items():
            formats[name] = formats.get(name, 0) + more
    return {
        "made_by": MADE_BY,
        "version": VERSION,
        "kind": plan["kind"],
        "format": settings["format"],
        "schema": ", ".join(f"{_quoted(field.name)} {type_words(field.type, settings['format'])}" for field in schema),
        "columns": _columns(schema, plan["kind"], settings["format"], labels, formats),
        "feature_spec": dataset.feature_spec(schema),
        "labels": labels,
        "splits": splits,
        "skipped_rows": 0,
        "skipped": [],
        "unfetched_rows": 0,
        "unfetched": [],
        "formats": formats,
        "settings": settings,
        "generation": plan.get("generation", 1),
        "parts": [*((before or {}).get("parts") or ()), part],
        "dealt": plan["dealt"],
        "read": dataset.snippet(
            schema,
            plan["kind"] == "images",
            next(name for name in splits if splits[name]["rows"] or name == list(splits)[-1]),
            settings["format"],
            bool(formats.get("bmp") or formats.get("webp")),
        ),
    }


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _columns(schema: pa.Schema, kind: str, form: str, labels: list[str], formats: dict[str, int]) -> list[dict[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {}
    if kind == "images":
        kinds["image"] = {"kind": "image", "encoded": True, "formats": formats}
    if labels:
        kinds["label"] = {"kind": "label", "classes": len(labels)}
    return [
        {"name": field.name, "type": type_words(field.type, form), "kind": "value", **kinds.get(field.name, {})}
        for field in schema
    ]
