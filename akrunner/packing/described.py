"""What a part adds to `dataset.json`."""

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

#: columns that are named
_NAMED = 100
#: of decimals that 64 bits always hold
_DIGITS = 18
_DOUBLES = "format='parquet' (--format parquet) keeps doubles"


def words_of(schema: pa.Schema) -> str:
    """An Arrow schema as text that JSON can hold."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_in(words: str) -> pa.Schema:
    """The schema of `words_of`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(words)))


def check_columns(schema: pa.Schema, form: str) -> None:
    """Raises: SchemaError: files of this format do not hold a column; all of them are named."""
    odd = [(field.name, words) for field in schema for words in _not_held(field, form)]
    if odd:
        others = [name for name, _ in odd[1:]]
        more = f". Nor do they hold {', '.join(map(repr, others[:_NAMED]))}" if others else ""
        raise SchemaError(f"{odd[0][1]}{more}")


def check_as_before(before: dict[str, Any] | None, schema: pa.Schema) -> None:
    """Args: before: `dataset.json`, None: nothing counts yet; schema: of rows that are to be added. Raises: SinkError: they have other columns than those there,
    and nobody could read both."""
    if before is None:
        return
    form = before["format"]
    there = {one["name"]: one["type"] for one in before["columns"]}
    new = {field.name: type_words(field.type, form) for field in schema}
    odd = [name for name in [*there, *new] if there.get(name) != new.get(name)]
    if odd:
        has, comes = (f"{odd[0]!r} is {some[odd[0]]}" if odd[0] in some else f"there is no {odd[0]!r}" for some in (there, new))
        raise SinkError(
            f"output: what is new has other columns than what is packed: there {has}, and now {comes}; input_schema= and select= (--input-schema, --select) "
            "make them as they were, overwrite=True (--overwrite) packs everything anew"
        )


def check_values(batch: pa.RecordBatch, form: str, first: int, name: str) -> None:
    """Raises: DataError: files of this format do not hold a value. Args: first: which row of the table `name` the batch begins with."""
    if not formats.named(form).examples:
        return
    try:
        codec.check_values(batch, first)
    except DataError as e:
        # what a job is told does not help here
        words = str(e).replace("data_format='columns' (--data-format) keeps doubles", _DOUBLES)
        raise DataError(f"source: {name}: {words}", row=e.row, column=e.column) from None


def rounded(schema: pa.Schema, form: str) -> list[str]:
    """What is to be said of doubles, which a `tf.train.Example` keeps as 32 bits."""
    names = [field.name for field in schema if _is_double(field.type)] if formats.named(form).examples else []
    if not names:
        return []
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    are = "is double, and is" if len(names) == 1 else "are double, and are"
    return [
        f"{', '.join(map(repr, names[:_NAMED]))}{more} {are} rounded to 32 bits, as a tf.train.Example has them: format='parquet' (--format parquet) keeps all of them"
    ]


def wider(schema: pa.Schema, form: str) -> list[str]:
    """What is to be said of whole numbers that Parquet and Arrow keep, and of which a job reads only what 64 bits hold."""
    names = [field.name for field in schema if _is_wide(field.type)] if not formats.named(form).examples else []
    if not names:
        return []
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    are = "is a decimal" if len(names) == 1 else "are decimals"
    return [
        f"{', '.join(map(repr, names[:_NAMED]))}{more} {are} of more digits than 64 bits hold: the files keep all of them, and a job refuses a larger value; "
        f"select={replaced(names[0])!r} (--select) makes text of it, here or in the job"
    ]


def _is_wide(data_type: pa.DataType) -> bool:
    if is_list(data_type):
        return _is_wide(data_type.value_type)
    is_whole = pa.types.is_decimal(data_type) and data_type.scale <= 0
    return bool(is_whole and data_type.precision - data_type.scale > _DIGITS)


def _is_double(data_type: pa.DataType) -> bool:
    return _is_double(data_type.value_type) if is_list(data_type) else bool(pa.types.is_float64(data_type))


def _not_held(field: pa.Field, form: str) -> Iterator[str]:
    """Why files of a format do not hold a column, if they do not."""
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
            f"column {field.name!r} is {field.type}, which files of {form} do not hold ({str(e).splitlines()[0]}); make it something else: "
            f"select={replaced(field.name)!r} (--select)"
        )


def type_words(data_type: pa.DataType, form: str) -> str:
    """A type as `--input-schema` has it; of Parquet and Arrow files as Arrow has it, where that has no word. Of TFRecord files what they hold: floats are of 32 bits there."""
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
    # Parquet and Arrow keep what has no word as it is: 64 bits do not hold every decimal without digits behind its point
    kind = dataset.feature_of("", data_type) if formats.named(form).examples else None
    return undeclared(kind).name if kind else str(data_type)


def described(
    before: dict[str, Any] | None,
    plan: dict[str, Any],
    results: list[dict[str, Any]],
    part: int,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """The whole of `dataset.json` of what leaves no file out. Args: before: what was there and goes on counting; plan: of this part; results: of its shards, in
    order."""
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
            bool(formats.get("webp")),
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
