"""The matching of a model's signature with a table: which columns feed which inputs, and which outputs become which columns.

It has no side effects, and is checked before anything starts.

::

    table batch --select, cast--> feed batch --worker--> outputs --+ reserved columns--> result batch
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.checks import check_names
from akrunner.column_types import DTYPES
from akrunner.errors import ConfigError, ModelError
from akrunner.io.pairing import Fed, Pairing
from akrunner.schema import Field, Schema
from akrunner.signature import Signature, TensorSpec
from akrunner.wire.features import BYTES, FLOAT, KINDS
from akrunner.wire.near import nearest

#: a dtype in a signature -> the Arrow type of a column
ARROW: dict[str, pa.DataType] = {**{dtype: row.arrow for dtype, row in DTYPES.items()}, KINDS[BYTES].tensor: pa.string()}


#: names of inputs that TensorFlow and Keras have made up, which say nothing about their meaning
_NUMBERED = re.compile(r"(keras_tensor|inputs?|args?|.+_input)(_\d+)*")


@dataclass(frozen=True)
class Input:
    """One input of the signature.

    Attributes:
        spec: the input in the signature.
        columns: the columns of the table that feed it, laid side by side if there are several.
        travels: the names of these columns in the batches sent to the workers.
        shape: the shape that a row is given, None if the column's own shape fits.
    """

    spec: TensorSpec
    columns: tuple[str, ...]
    travels: tuple[str, ...]
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Plan:
    """How a table becomes a prediction.

    Attributes:
        inputs: the inputs of the signature.
        feed: the schema of the batches sent to the workers.
        outputs: (column, output of the signature), in order.
        output_schema: the columns that the outputs become.
        reserved: the columns of the table that are kept.
        result: the schema of the prediction.
        notes: warnings about matches that the user may not mean.
    """

    inputs: tuple[Input, ...]
    feed: Schema
    outputs: tuple[tuple[str, str], ...]
    output_schema: Schema
    reserved: tuple[str, ...]
    result: pa.Schema
    notes: tuple[str, ...] = ()

    @classmethod
    def make(
        cls,
        signature: Signature,
        table: pa.Schema,
        selected_cols: Sequence[str] | None = None,
        input_signature_defs: Sequence[str] | None = None,
        output_signature_defs: Sequence[str] | None = None,
        output_schema: Schema | None = None,
        reserved_cols: Sequence[str] | None = None,
    ) -> Plan:
        """Match a model's signature with a table.

        Args: signature: the model's; table: the schema of the input; the others: as for `akrunner.predict`.
        Raises: ConfigError, ModelError: they do not fit; the message says what the model wants.
        """
        matched = _match_inputs(
            signature,
            table,
            check_names("selected_cols", selected_cols),
            check_names("input_signature_defs", input_signature_defs),
        )
        inputs: list[Input] = []
        fields: list[Field] = []
        for name, columns in matched.items():
            spec = signature.inputs[name]
            given = [Field(column, table.field(column).type) for column in columns]
            shape = _check_input(signature, spec, given)
            travels = tuple(str(len(fields) + i) for i in range(len(given)))
            fields += [Field(t, _travels_as(spec, f)) for t, f in zip(travels, given)]
            inputs.append(Input(spec, tuple(columns), travels, shape))
        outputs, schema = _match_outputs(signature, check_names("output_signature_defs", output_signature_defs), output_schema)
        reserved = _reserved(table, check_names("reserved_cols", reserved_cols))
        asked = selected_cols is not None or input_signature_defs is not None
        notes = (
            () if asked else tuple(_guessed(one) for one in inputs if one.columns != (one.spec.name,) and _says_something(one))
        )
        return cls(tuple(inputs), Schema(tuple(fields)), outputs, schema, reserved, _result(table, reserved, schema), notes)

    def params(self) -> dict[str, Any]:
        """Return what a worker process is told of the plan."""
        inputs = [
            {"name": i.spec.name, "columns": i.travels, "shape": None if i.shape is None else list(i.shape)}
            for i in self.inputs
        ]
        return {"inputs": inputs, "outputs": [{"column": column, "name": name} for column, name in self.outputs]}

    @functools.cached_property
    def pairing(self) -> Pairing:
        """Return the pairing, which makes a feed batch of each batch of the table, and joins it with its outputs."""
        inputs = tuple(Fed(one.spec.name, one.spec.dtype, one.columns, one.travels) for one in self.inputs)
        return Pairing(inputs, self.feed.arrow, tuple(self.output_schema.names), self.result)

    def model_inputs(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the feed batch for a batch of the table, as `Pairing.model_inputs` does."""
        return self.pairing.model_inputs(batch, first_row)

    def joined(self, batch: pa.RecordBatch, outputs: pa.RecordBatch) -> pa.RecordBatch:
        """Return the result for a batch of the table and its outputs, as `Pairing.joined` does."""
        return self.pairing.joined(batch, outputs)


def _column_of(table: pa.Schema, name: str, parameter: str) -> str:
    if name not in table.names:
        raise ConfigError(
            f"{parameter}: the table has no column {name!r}{nearest(name, table.names)} ({', '.join(table.names)})"
        )
    return name


def _match_inputs(
    signature: Signature, table: pa.Schema, selected: list[str] | None, names: list[str] | None
) -> dict[str, list[str]]:
    """Return input -> the columns that feed it. Raises: ConfigError, ModelError: columns and inputs do not match."""
    if selected == [] or names == []:
        raise ConfigError(
            f"{'selected_cols' if selected == [] else 'input_signature_defs'}=[]: a model is fed by at least one column"
        )
    wants = _wants(signature)
    for name in names or ():
        if name not in signature.inputs:
            raise ModelError(
                f"input_signature_defs: the model has no input {name!r}{nearest(name, list(signature.inputs))}; {wants}"
            )
    for column in selected or ():
        _column_of(table, column, "selected_cols")
    single = next(iter(signature.inputs)) if len(signature.inputs) == 1 else None
    if names is None:
        if selected is None:
            selected = list(signature.inputs)
            if single is not None and single not in table.names and len(table.names) == 1:
                selected = list(table.names)
            for name in selected:
                if name not in table.names:
                    raise ModelError(
                        f"the table has no column {name!r} ({', '.join(table.names)}), and {wants}; say with selected_cols= "
                        "which columns feed the model, in the order of input_signature_defs="
                    )
        if single is not None:
            names = [single]
        elif set(selected) == set(signature.inputs):
            names = selected
        else:
            missing = [name for name in signature.inputs if name not in selected]
            raise ModelError(
                f"selected_cols={selected!r} has no column for input {(missing or ['?'])[0]!r}: {wants}; name the inputs in "
                "the order of the columns with input_signature_defs="
            )
    elif selected is None:
        selected = [_column_of(table, name, "input_signature_defs, for want of selected_cols") for name in names]
    if len(names) == 1:
        matched = {names[0]: selected}
    elif len(names) == len(selected):
        matched = {name: [column] for name, column in zip(names, selected)}
    else:
        raise ModelError(f"{len(selected)} selected_cols and {len(names)} input_signature_defs: each input takes one; {wants}")
    for name in signature.inputs:
        if name not in matched:
            raise ModelError(f"input {name!r} of the model gets no column: {wants}")
    return matched


def _says_something(fed: Input) -> bool:
    """Whether a person has chosen the input's name; Keras and TensorFlow number the names that they make up."""
    return _NUMBERED.fullmatch(fed.spec.name) is None


def _guessed(fed: Input) -> str:
    return (
        f"the table's only column, {fed.columns[0]!r}, feeds the model's only input, {fed.spec.name!r}; "
        f"selected_cols={list(fed.columns)!r} (--selected-cols {fed.columns[0]}) says that it is meant"
    )


def _wants(signature: Signature) -> str:
    return f"the model's signature {signature}"


def _check_input(signature: Signature, spec: TensorSpec, fields: list[Field]) -> tuple[int, ...] | None:
    """Check that columns can feed an input.

    Returns: the shape that a row must be given, None if the columns have the right shape.
    Raises: ModelError: they cannot feed it.
    """
    wants = f"input {spec}"
    if spec.shape is not None and (not spec.shape or spec.shape[0] is not None):
        what = f"takes exactly {spec.shape[0]} rows at a time" if spec.shape else "is one value, not one a row"
        raise ModelError(f"{wants} {what}; export the model with a batch dimension that is not fixed (None)")
    for field in fields:
        _check_dtype(wants, spec, field)
    row = spec.row_shape
    if len(fields) > 1:
        lists = [field.name for field in fields if field.is_list]
        if lists or (row is not None and (len(row) != 1 or row[0] not in (None, len(fields)))):
            what = f"column {lists[0]!r} is a list" if lists else f"{len(fields)} columns make {len(fields)} numbers a row"
            raise ModelError(f"{wants} does not fit the {len(fields)} columns of selected_cols: {what}")
        return None
    (field,) = fields
    if not field.is_list:
        if row is not None and row not in ((), (1,), (None,)):
            raise ModelError(
                f"{wants}: column {field.name!r} ({field.type}) has one value a row; give a list, or several columns"
            )
        return None if row is None else (1,) * len(row)
    if row == ():
        raise ModelError(f"{wants} takes one value a row: column {field.name!r} ({field.type}) is a list")
    return _row_shape(wants, field, row)


def _row_shape(wants: str, field: Field, row: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """Return the shape to give to a row of a list column, None for its own.

    Args: wants: the input in words, for errors; row: the shape of a row of the input, None if it is not known.
    Raises: ModelError: the column's rows cannot have a shape that fits.
    """
    if row is None:
        return field.shape
    unknown = row.count(None)
    if field.shape is None:
        if not unknown:
            return tuple(size for size in row if size is not None)
        if len(row) > 1:
            raise ModelError(
                f"{wants}: column {field.name!r} ({field.type}) says nothing of its shape; make it a fixed_shape_tensor column"
            )
        return None
    if len(field.shape) == len(row) and all(want in (None, have) for want, have in zip(row, field.shape)):
        return field.shape
    have, want = math.prod(field.shape), math.prod(size for size in row if size is not None)
    if unknown == 0 and have == want:
        return tuple(size for size in row if size is not None)
    if unknown == 1 and want and have % want == 0 and len(field.shape) == 1:
        return tuple(have // want if size is None else size for size in row)
    shape = " x ".join(map(str, field.shape))
    raise ModelError(f"{wants}: column {field.name!r} has {shape} values a row, which do not make that shape")


def _check_dtype(wants: str, spec: TensorSpec, field: Field) -> None:
    kind = field.kind  # raises SchemaError if the column cannot cross at all
    value = field.value_type
    if spec.dtype not in ARROW:
        raise ModelError(f"{wants}: no column can feed {spec.dtype}")
    if spec.dtype == "string":
        fits = kind == BYTES
    elif spec.dtype.startswith("float"):
        fits = kind != BYTES
    elif spec.dtype == "bool":
        fits = pa.types.is_boolean(value)
    else:
        fits = kind != BYTES and kind != FLOAT
    if not fits:
        cast = {"string": "VARCHAR", "bool": "BOOLEAN"}.get(
            spec.dtype, "DOUBLE" if spec.dtype.startswith("float") else "BIGINT"
        )
        raise ModelError(
            f"{wants}: column {field.name!r} is {field.type}, which does not become {spec.dtype}; "
            f"select='* REPLACE (CAST({field.name} AS {cast}) AS {field.name})' would make it so"
        )


def _travels_as(spec: TensorSpec, field: Field) -> pa.DataType:
    target = ARROW[spec.dtype] if spec.dtype != "string" else pa.large_binary()
    if not field.is_list:
        return target
    return pa.list_(target) if field.shape is None else pa.list_(target, math.prod(field.shape))


def _match_outputs(
    signature: Signature, names: list[str] | None, schema: Schema | None
) -> tuple[tuple[tuple[str, str], ...], Schema]:
    gives = f"the model's signature {signature}"
    for name in names or ():
        if name not in signature.outputs:
            known = list(signature.outputs)
            raise ModelError(f"output_signature_defs: the model has no output {name!r}{nearest(name, known)}; {gives}")
    if schema is None:
        names = names or list(signature.outputs)
        fields = tuple(Field(name, _column_type(signature.outputs[name])) for name in names)
        return tuple((name, name) for name in names), Schema(fields)
    if names is None:
        names = schema.names
        if len(names) == 1 and len(signature.outputs) == 1:
            names = list(signature.outputs)
        for name in names:
            if name not in signature.outputs:
                raise ModelError(
                    f"output_schema: the model has no output {name!r}{nearest(name, list(signature.outputs))}; {gives}; name "
                    "the outputs in the order of the columns with output_signature_defs="
                )
    if len(names) != len(schema):
        raise ModelError(
            f"{len(schema)} columns in output_schema and {len(names)} output_signature_defs: each column takes one"
        )
    for field, name in zip(schema, names):
        _check_output(field, signature.outputs[name])
    return tuple(zip(schema.names, names)), schema


def _check_output(field: Field, spec: TensorSpec) -> None:
    gives = f"output {spec}"
    if spec.dtype not in ARROW:
        raise ModelError(f"{gives}: no column can hold {spec.dtype}")
    if (field.kind == BYTES) != (spec.dtype == "string"):
        raise ModelError(f"{gives}: column {field.name!r} of output_schema is {field.type}, which cannot hold {spec.dtype}")
    row = spec.row_shape
    if row is None:
        return
    if field.is_list and not row:
        raise ModelError(
            f"{gives} has one value a row: column {field.name!r} of output_schema must be one number, not {field.type}"
        )
    if not field.is_list and None not in row and math.prod(size or 1 for size in row) != 1:
        raise ModelError(
            f"{gives} has many values a row: declare column {field.name!r} of output_schema as FLOAT_TENSOR or array<...>"
        )


def _column_type(spec: TensorSpec) -> pa.DataType:
    if spec.dtype not in ARROW:
        raise ModelError(
            f"output {spec}: no column can hold {spec.dtype}; name the outputs you want with output_signature_defs="
        )
    kind = ARROW[spec.dtype]
    return kind if spec.row_shape in ((), (1,)) else pa.list_(kind)


def _reserved(table: pa.Schema, names: list[str] | None) -> tuple[str, ...]:
    if names is None:
        return tuple(table.names)
    wanted = {_column_of(table, name, "reserved_cols") for name in names}
    return tuple(name for name in table.names if name in wanted)


def _result(table: pa.Schema, reserved: tuple[str, ...], outputs: Schema) -> pa.Schema:
    """Return the schema of a prediction: the kept columns in the table's order, then the outputs.

    An output with the name of a kept column takes that column's place.
    """
    fields = {name: table.field(name) for name in reserved}
    for field in outputs.arrow:
        fields[field.name] = field
    return pa.schema(list(fields.values()))
