"""Operators that convert a column: its type, or to and from tensors and vectors.

Each conversion is available as a batch operator, as a stream operator, and (but for types) as a stage of a pipeline:

::

    a Change (params -> columns in, columns out)  --in batches--> ...BatchOp   --in streams--> ...StreamOp
    a stage's transform() uses one or the other
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from akrunner.alink.environment import current
from akrunner.alink.flow import Flow, StreamOperator
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param, WithParams
from akrunner.alink.tables import DUCKDBS, FLINKS, arrow_schema, arrow_table, from_arrow, in_one, is_flinks, queried
from akrunner.alink.tensors import ELEMENTS, Tensors, reduced, reshaped, tensors_of, vectors_as_text
from akrunner.errors import ConfigError, DataError
from akrunner.foreign import ours
from akrunner.schema import is_list
from akrunner.wire.near import nearest

Shapes = dict[str, tuple[int, ...]]

SELECTED_COL = Param("selectedCol", "text", "The column.", required=True)
OUTPUT_COL = Param("outputCol", "text", "Name of the column that is made; the selected one is replaced without it.")
RESERVED = Param("reservedCols", "texts", "Columns of the table to keep; all of them without it.")
THREADS = Param("numThreads", "whole", "Taken as Alink takes it; columns are converted whole here.", 1)
INVALID = Param(
    "handleInvalidMethod", "text", "What is done with a row that holds no tensor: ERROR fails, SKIP makes a null.", "ERROR",
    aliases=("handleInvalid",), choices=("ERROR", "SKIP"),
)  # fmt: skip
ELEMENT = Param(
    "tensorDataType", "text", "Type of the elements; without it that of the text, DOUBLE where the text says none.",
    choices=tuple(ELEMENTS),
)  # fmt: skip
SHAPE = Param("tensorShape", "wholes", "Shape of every tensor; without it that of the text.")
METHOD = Param(
    "convertMethod", "text", "FLATTEN keeps every number; the others go over the first axis.", "FLATTEN",
    choices=("FLATTEN", "SUM", "MEAN", "MAX", "MIN"),
)  # fmt: skip
TO_TENSOR = (SELECTED_COL, OUTPUT_COL, RESERVED, ELEMENT, SHAPE, INVALID, THREADS)
TO_VECTOR = (SELECTED_COL, OUTPUT_COL, RESERVED, METHOD, THREADS)

_SQL = {
    "STRING": "VARCHAR", "VARCHAR": "VARCHAR", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "INT": "INT", "BIGINT": "BIGINT",
    "LONG": "BIGINT", "BOOLEAN": "BOOLEAN", "DECIMAL": "DECIMAL(38, 18)",
}  # fmt: skip
TARGET = Param("targetType", "text", "What the columns become.", required=True, aliases=("newType",), choices=tuple(_SQL))
CONVERTED = Param("selectedCols", "texts", "The columns; all of them without it.")


class Change(WithParams):
    """Base class of the conversions that make one column from another."""

    TAKES: ClassVar[tuple[Param, ...]] = ()

    def _changed(self, column: pa.Array, shape: tuple[int, ...] | None) -> tuple[pa.Array, tuple[int, ...] | None]:
        """Convert a column. Args: shape: shape of its values, or None. Returns: (the new column, shape of its values)."""
        raise NotImplementedError

    def _mapped(self, rows: pa.RecordBatch, shapes: Shapes) -> tuple[pa.RecordBatch, Shapes]:
        """Convert the column `selectedCol` of a batch.

        Returns: (the rows, with the columns in Alink's order; the shape of the new column, {} if it is unknown).
        Raises: ConfigError: a column does not exist; DataError: a value cannot be converted.
        """
        name = self._get("selectedCol")
        if name not in rows.schema.names:
            raise ConfigError(f"selectedCol: there is no column {name!r}{nearest(name, rows.schema.names)}")
        reserved = self._get("reservedCols")
        for one in reserved or ():
            if one not in rows.schema.names:
                raise ConfigError(f"reservedCols: there is no column {one!r}{nearest(one, rows.schema.names)}")
        with ours(DataError, f"column {name!r}"):
            made, shape = self._changed(rows.column(name), shapes.get(name))
        output = self._get("outputCol") or name
        columns = {n: c for n, c in zip(rows.schema.names, rows.columns) if reserved is None or n in reserved or n == output}
        columns[output] = made
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns)), {} if shape is None else {output: shape}


class ToTensorChange(Change):
    """Converts text, vectors or numbers to tensors."""

    def _changed(self, column: pa.Array, shape: tuple[int, ...] | None) -> tuple[pa.Array, tuple[int, ...] | None]:
        name = self._get("selectedCol")
        element, wanted = self._get("tensorDataType"), self._get("tensorShape")
        read = tensors_of(column, element)
        if read.wrong is not None and (read.whole or self._get("handleInvalidMethod") == "ERROR"):
            row, why = read.wrong
            raise DataError(
                f"row {row}, column {name!r}: {why}; handleInvalidMethod=SKIP makes a null of a row", row=row, column=name
            )
        if wanted is not None:
            return _fixed(reshaped(read, wanted, name))
        if shape is not None and math.prod(shape) == math.prod(read.shape or ()):
            read.shape = shape
        if not len(column) and element == "STRING" and not is_list(column.type):
            read.shape = ()
        return read.column(False), read.shape


def _fixed(read: Tensors) -> tuple[pa.Array, tuple[int, ...] | None]:
    return read.column(True), read.shape


class TensorToVectorChange(Change):
    """Converts tensors to vectors of doubles."""

    def _changed(self, column: pa.Array, shape: tuple[int, ...] | None) -> tuple[pa.Array, tuple[int, ...] | None]:
        read = tensors_of(column, None)
        name = self._get("selectedCol")
        if read.wrong is not None:
            raise DataError(f"row {read.wrong[0]}, column {name!r}: {read.wrong[1]}", row=read.wrong[0], column=name)
        if pa.types.is_string(read.values.type):
            raise DataError(f"column {name!r}: a tensor of texts is no vector", column=name)
        if shape is not None:
            read = reshaped(read, shape, name)
        found = reduced(read, self._get("convertMethod"))
        return found.column(False), found.shape


# -- in batches and streams


class ChangeBatchOp(Change, BatchOperator):
    """Base class of the operators that convert a column of a table."""

    _KEEP = True
    _found: Shapes | None = None

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self._check_required()
        table = arrow_schema(inputs[0]).empty_table() if dry else arrow_table(inputs[0])
        rows, found = self._mapped(in_one(table), self._inputs[0]._shapes())
        if not dry:
            self._found = found
        return from_arrow(pa.Table.from_batches([rows]))

    def _shapes(self) -> Shapes:
        found = self._found
        if found is None:
            nothing = in_one(self._inputs[0]._schema().empty_table())
            found = self._mapped(nothing, self._inputs[0]._shapes())[1]
        return {**super()._shapes(), **found}


class ChangeStreamOp(Change, StreamOperator):
    """Base class of the operators that convert a column of a stream."""

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self._check_required()
        rows, _ = self._mapped(in_one(arrow_schema(inputs[0]).empty_table()), self._inputs[0]._shapes())
        return current().connection.from_arrow(rows.schema.empty_table())

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        flow.give(self, self._mapped(batch, self._inputs[0]._shapes())[0])

    def _shapes(self) -> Shapes:
        nothing = in_one(self._inputs[0]._schema().empty_table())
        return {**super()._shapes(), **self._mapped(nothing, self._inputs[0]._shapes())[1]}


class ToTensorBatchOp(ToTensorChange, ChangeBatchOp):
    """Turns a column of text (Alink's text of tensors or vectors), lists or numbers into tensors."""

    TAKES = TO_TENSOR


class ToTensorStreamOp(ToTensorChange, ChangeStreamOp):
    """Turns a stream's column of text (Alink's text of tensors or vectors), lists or numbers into tensors."""

    TAKES = TO_TENSOR


class VectorToTensorBatchOp(ToTensorChange, ChangeBatchOp):
    """Turns a column of vectors into tensors."""

    TAKES = TO_TENSOR


class VectorToTensorStreamOp(ToTensorChange, ChangeStreamOp):
    """Turns a stream's column of vectors into tensors."""

    TAKES = TO_TENSOR


class TensorToVectorBatchOp(TensorToVectorChange, ChangeBatchOp):
    """Turns a column of tensors into vectors."""

    TAKES = TO_VECTOR


class TensorToVectorStreamOp(TensorToVectorChange, ChangeStreamOp):
    """Turns a stream's column of tensors into vectors."""

    TAKES = TO_VECTOR


# -- types


class TypeConvert(WithParams):
    """Casts columns in place, as SQL does."""

    TAKES: ClassVar[tuple[Param, ...]] = (TARGET, CONVERTED)

    def _cast(self, relation: Any) -> Any:
        target, chosen = self._get("targetType"), self._get("selectedCols")
        schema = arrow_schema(relation)
        for name in chosen or ():
            if name not in schema.names:
                raise ConfigError(f"selectedCols: there is no column {name!r}{nearest(name, schema.names)}")
        if any(is_list(f.type) for f in schema if chosen is None or f.name in chosen):
            relation, schema = self._lists(relation, target, chosen)
        written = FLINKS if is_flinks(relation) else DUCKDBS
        fields = [
            written.name(field.name) if chosen is not None and field.name not in chosen else
            f"{_cast(written.name(field.name), field.type, target)} AS {written.name(field.name)}"
            for field in schema
        ]  # fmt: skip
        return queried(f"SELECT {', '.join(fields)} FROM {{input}}", input=relation)

    def _lists(self, relation: Any, target: str, chosen: Sequence[str] | None) -> tuple[Any, pa.Schema]:
        """Return (the relation with columns of vectors turned into text, its schema).

        Raises: ConfigError: a column of vectors is to become another type than a text.
        """
        rows = in_one(arrow_table(relation))
        for at, field in enumerate(rows.schema):
            if is_list(field.type) and (chosen is None or field.name in chosen):
                if _SQL[target] != "VARCHAR":
                    raise ConfigError(
                        f"selectedCols: column {field.name!r} is {field.type}, which becomes STRING and nothing else"
                    )
                rows = rows.set_column(at, field.name, vectors_as_text(rows.column(at)))
        made = pa.Table.from_batches([rows])
        return (from_arrow(made) if is_flinks(relation) else current().connection.from_arrow(made)), made.schema


def _cast(name: str, found: pa.DataType, target: str) -> str:
    wanted = _SQL[target]
    if pa.types.is_boolean(found) and wanted not in ("VARCHAR", "BOOLEAN"):
        return f"CAST(CASE WHEN {name} THEN 1 WHEN NOT {name} THEN 0 END AS {wanted})"
    if pa.types.is_floating(found) and wanted in ("INT", "BIGINT"):
        # cut the fraction off as Java does: 2.7 becomes 2, whereas DuckDB's CAST rounds it to 3
        return f"CAST(TRUNC({name}) AS {wanted})" if name.startswith('"') else f"CAST({name} AS {wanted})"
    return f"CAST({name} AS {wanted})"


class TypeConvertBatchOp(TypeConvert, BatchOperator):
    """Casts columns of a table in place, as SQL does."""

    TAKES = (TARGET, CONVERTED)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self._check_required()
        return self._cast(inputs[0])


class TypeConvertStreamOp(TypeConvert, StreamOperator):
    """Casts columns of a stream in place, as SQL does."""

    TAKES = (TARGET, CONVERTED)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self._check_required()
        if self._get("targetType") == "DECIMAL":
            raise ConfigError("TypeConvertStreamOp.targetType: DECIMAL is for batches (TypeConvertBatchOp), as in Alink")
        return self._cast(inputs[0])
