"""Which values of a table's rows travel to the worker that answers them, and how the answers are joined with the rows. Pure
functions, which run on a machine of Flink as well as in the host.

::

    table batch --fed--> what travels --worker--> outputs --+ kept columns, joined--> result batch
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import decoded, integers_of, known_numbers_of, truths_of
from akrunner.column_types import TIMES, family_of
from akrunner.errors import DataError
from akrunner.schema import is_list, to_floats


@dataclass(frozen=True)
class Fed:
    """The columns of a table that feed one input of a model.

    Attributes:
        name: the input's name.
        dtype: the input's type.
        columns: the columns of the table, side by side.
        travels: the columns' names on the way to the worker.
    """

    name: str
    dtype: str
    columns: tuple[str, ...]
    travels: tuple[str, ...]


@dataclass(frozen=True)
class Pairing:
    """What travels to the worker, and what the result is made of.

    Attributes:
        inputs: what feeds each input of the model.
        feed: the schema of the batches that travel to the worker.
        outputs: the columns of the answers.
        result: the schema of the rows that are made of the table's rows and the answers.
    """

    inputs: tuple[Fed, ...]
    feed: pa.Schema
    outputs: tuple[str, ...]
    result: pa.Schema

    def model_inputs(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return the batch that travels to the worker for a batch of the table.

        Raises:
            DataError: a value is null, or is a number that does not fit the model's input; it names the row and the column.
        """
        arrays = []
        for one in self.inputs:
            for column, travels in zip(one.columns, one.travels):
                target = self.feed.field(travels).type
                arrays.append(_cast(batch.column(column), target, column, one, first_row))
        return pa.RecordBatch.from_arrays(arrays, schema=self.feed)

    def joined(self, batch: pa.RecordBatch, outputs: pa.RecordBatch) -> pa.RecordBatch:
        """Return the result for a batch of the table: the columns that are kept, and the outputs for its rows."""
        names = set(self.outputs)
        arrays = [outputs.column(f.name) if f.name in names else batch.column(f.name) for f in self.result]
        return pa.RecordBatch.from_arrays(arrays, schema=self.result)


def _cast(array: pa.Array, target: pa.DataType, name: str, one: Fed, first_row: int) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    given = array.type
    # before the nulls are counted: in a dictionary array Arrow counts only the nulls among the indices
    array = decoded(array)
    flat_type = target.value_type if is_list(target) else target
    floating = pa.types.is_floating(flat_type)
    if array.null_count and (is_list(target) or not floating):
        row = first_row + int(np.flatnonzero(truths_of(array.is_null()))[0])
        raise DataError(
            f"row {row}, column {name!r}: is null, which input {one.name!r} of the model cannot take; give "
            f"defaults={{{name!r}: ...}} (--default {name}=...), or leave the row out with select=",
            row=row,
            column=name,
        )
    if is_list(array.type) and array.flatten().null_count:
        inside = truths_of(array.flatten().is_null())
        row = first_row + int(pc.list_parent_indices(array)[int(np.flatnonzero(inside)[0])].as_py())
        raise DataError(
            f"row {row}, column {name!r}: has a null in its list, which input {one.name!r} of the model cannot take; fill or "
            "drop it, here or in select= (--select)",
            row=row,
            column=name,
        )
    if family_of(array.type) in TIMES:
        array = integers_of(array)
    if array.type == target:
        return array
    if pa.types.is_large_binary(flat_type) and not is_list(target) and pa.types.is_string(array.type):
        array = array.cast(pa.large_string())
    try:
        return as_input(array, target)
    except pa.ArrowInvalid as e:
        row = first_row + _first_misfit(array, target)
        raise DataError(
            f"row {row}, column {name!r}: does not fit {one.dtype}, which input {one.name!r} takes: {e}", row=row, column=name
        ) from None
    except pa.ArrowNotImplementedError:
        raise DataError(
            f"column {name!r} is {given}, which does not fit {one.dtype}, as input {one.name!r} takes", column=name
        ) from None


def as_input(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the values in the type of the model's input.

    A double may be rounded to the model's float, as users expect. It must not become infinite, and an integer must not be cut
    or lose digits.

    Raises:
        pa.ArrowInvalid: a value would do so.
        pa.ArrowNotImplementedError: Arrow cannot convert between the types.
    """
    flat = target.value_type if is_list(target) else target
    if not pa.types.is_floating(flat):
        return array.cast(target)
    made = to_floats(array, target)
    whole = pc.list_flatten(array) if is_list(array.type) else array
    if pa.types.is_integer(whole.type):
        ends = pc.min_max(whole).as_py()
        most = 1 << {16: 11, 32: 24}.get(flat.bit_width, 53)
        if ends["min"] is not None and not -most <= ends["min"] <= ends["max"] <= most:
            _check_digits(whole, pc.list_flatten(made) if is_list(target) else made)
    return made


def _check_digits(whole: pa.Array, floats: pa.Array) -> None:
    """Check that integers keep their values as floats.

    Raises:
        pa.ArrowInvalid: an integer becomes another number.
    """
    numbers, made = known_numbers_of(whole), known_numbers_of(floats).astype(np.float64)
    # the float above the largest integer of the type cannot be converted back
    outside = made >= 2.0 ** (8 * numbers.dtype.itemsize) / (2 if numbers.dtype.kind == "i" else 1)
    lost = outside | (np.where(outside, 0, made).astype(numbers.dtype) != numbers)
    if lost.any():
        at = int(np.argmax(lost))
        raise pa.ArrowInvalid(
            f"{numbers[at]} would become {int(made[at])}; give it as a double (CAST(... AS DOUBLE)) to have it rounded"
        )


def _first_misfit(array: pa.Array, target: pa.DataType) -> int:
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            as_input(array.slice(low, middle - low), target)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low
