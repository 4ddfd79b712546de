"""Conversion of Alink's text for vectors and tensors into columns of lists, a whole column at a time.

::

    "1.0 2.0"   "$4$0:1.0 2:3.0"   "FLOAT#2,2#1.0 2.0 3.0 4.0 "   "STRING#2#2 3 #ab bcd "   -> values end to end, lengths, shape
    dense       sparse, size 4      tensor of shape [2, 2]          tensor of two texts, of 2 and 3 characters
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.column_types import TABLE, Family
from akrunner.errors import DataError
from akrunner.io.units import cut
from akrunner.schema import is_list, is_text, to_floats

#: Alink's name of an element type -> Arrow type; the floating types, which most tensors have, come first
ELEMENTS: dict[str, pa.DataType] = {
    row.element: row.arrow for row in sorted(TABLE, key=lambda row: row.family is not Family.REAL) if row.element
}
_TYPED = r"(?s)^\s*(?P<type>[A-Za-z]+)#(?P<shape>[0-9,\s]*)#(?P<values>.*)$"
_SPARSE = r"(?s)^\s*(?:\$(?P<size>\d*)\$)?(?P<pairs>[^$]*)$"
_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf(inity)?)$"

Shape = tuple[int, ...]


@dataclass
class Tensors:
    """A column of tensors.

    Attributes:
        values: the numbers or texts of all rows, end to end.
        lengths: how many values each row has [rows].
        valid: which rows are not null [rows].
        shape: the shape of every row's tensor; None: the shapes differ or are unknown.
        wrong: (row, reason) of the first row that is not a tensor; None: every row is one. Rows that are not tensors are null.
        whole: whether the column as a whole is wrong, so that no row of it was read.
    """

    values: pa.Array
    lengths: np.ndarray[Any, Any]
    valid: np.ndarray[Any, Any]
    shape: Shape | None
    wrong: tuple[int, str] | None = None
    whole: bool = False

    def column(self, fixed: bool) -> pa.Array:
        """Return the tensors as an Arrow column.

        The column has one value for each row if the shape is (); else a fixed-size list for each row if `fixed` is true and the
        shape is known; else a list for each row.
        """
        if self.shape == ():
            return _spread(self.values, self.valid)
        offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        if not fixed or self.shape is None:
            mask = pa.array(~self.valid) if not self.valid.all() else None
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), self.values, mask=mask)
        size = math.prod(self.shape)
        every = np.repeat(self.valid, size)
        values = self.values if every.all() else _spread(self.values, every)
        mask = pa.array(~self.valid) if not self.valid.all() else None
        return pa.FixedSizeListArray.from_arrays(values, size, mask=mask)


def _spread(values: pa.Array, valid: np.ndarray[Any, Any]) -> pa.Array:
    """Return a column that has the values, in order, in the rows that are `valid`, and null in the others."""
    if valid.all():
        return values
    return values.take(pa.array(np.cumsum(valid) - 1, pa.int64(), mask=~valid))


def tensors_of(column: pa.Array, element: str | None) -> Tensors:
    """Read a column of text, lists or numbers as tensors.

    Args: element: the type that the elements are to have (a key of `ELEMENTS`); None: the type that the column has.
    """
    if isinstance(column, pa.ExtensionArray):
        shape = tuple(column.type.shape) if isinstance(column.type, pa.FixedShapeTensorType) else None
        found = tensors_of(column.storage, element)
        found.shape = shape or found.shape
        return found
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if is_list(column.type):
        kept = column.drop_null()
        lengths = np.zeros(len(column), np.int64)
        lengths[valid] = pc.list_value_length(kept).to_numpy(zero_copy_only=False)
        values = pc.list_flatten(kept)
        return _typed(Tensors(values, lengths, valid, _same(lengths[valid])), _name_of(values.type), element)
    if not is_text(column.type):
        values = column.drop_null()
        name = _name_of(values.type)
        if name not in ("STRING", "BOOLEAN"):
            values, name = values.cast(pa.float64()), "DOUBLE"
        return _typed(Tensors(values, valid.astype(np.int64), valid, (1,)), name, element)
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return _texts(column, valid, element)


def reshaped(tensors: Tensors, shape: Sequence[int], name: str) -> Tensors:
    """Set the shape of all tensors, and return them. Raises: DataError: a row has another number of values than the shape."""
    size = math.prod(shape)
    other = np.flatnonzero(tensors.valid & (tensors.lengths != size))
    if len(other):
        row = int(other[0])
        raise DataError(
            f"row {row}, column {name!r}: {tensors.lengths[row]} values, and tensorShape={list(shape)} takes {size}",
            row=row,
            column=name,
        )
    tensors.shape = tuple(shape)
    return tensors


def _same(lengths: np.ndarray[Any, Any]) -> Shape | None:
    return (int(lengths[0]),) if len(lengths) and (lengths == lengths[0]).all() else None


def _name_of(data_type: pa.DataType) -> str:
    """Return Alink's name of an element type: for other types LONG if they are whole numbers, else DOUBLE."""
    return next(
        (name for name, known in ELEMENTS.items() if known == data_type), "LONG" if pa.types.is_integer(data_type) else "DOUBLE"
    )


def _typed(tensors: Tensors, found: str, element: str | None) -> Tensors:
    """Return the tensors with elements of type `element` (None: keep type `found`).

    If Alink does not convert from `found` to `element`, every row of the result is wrong.
    """
    wanted = element or found
    target = ELEMENTS[wanted]
    fits = (
        found == wanted
        or (wanted == "FLOAT" and found == "DOUBLE")
        or (wanted == "DOUBLE" and found not in ("STRING", "BOOLEAN"))
    )
    if not fits:
        some = np.flatnonzero(tensors.valid)
        wrong = (int(some[0]), f"holds {found} values, which do not become {wanted}") if len(some) else None
        nothing = np.zeros(len(tensors.valid), bool)
        return Tensors(pa.array([], target), nothing.astype(np.int64), nothing, tensors.shape, wrong, True)
    values = tensors.values
    if values.type != target:
        tensors.values = to_floats(values, target) if pa.types.is_floating(target) else values.cast(target)
    return tensors


# -- text


def _texts(column: pa.Array, valid: np.ndarray[Any, Any], element: str | None) -> Tensors:
    typed = pc.extract_regex(column, _TYPED)
    names = pc.utf8_upper(pc.struct_field(typed, "type"))
    has_type = names.is_valid().to_numpy(zero_copy_only=False)
    found = names.drop_null().unique().to_pylist()
    unknown = [name for name in found if name not in ELEMENTS]
    if has_type.any() and (unknown or len(found) > 1 or not has_type[valid].all()):
        told = (
            "rows of several types" if not unknown else f"tensors of type {unknown[0]}, which is none of {', '.join(ELEMENTS)}"
        )
        return _nothing(column, valid, ~has_type if not unknown else has_type, f"holds {told}", element)
    if not has_type.any():
        if element == "STRING":
            # plain text becomes a tensor that holds this one text and has no dimensions
            return Tensors(column.drop_null(), valid.astype(np.int64), valid, ())
        return _typed(_vectors(column, valid), "DOUBLE", element)
    shapes = pc.struct_field(typed, "shape").drop_null()
    values = pc.struct_field(typed, "values").drop_null()
    read = _strings(values, valid) if found[0] == "STRING" else _numbers(values, valid, ELEMENTS[found[0]])
    if len(shapes.unique()) == 1:
        told_shape = tuple(int(size) for size in shapes[0].as_py().replace(" ", "").split(",") if size)
        if all(length == math.prod(told_shape) for length in np.unique(read.lengths[read.valid])):
            read.shape = told_shape
        elif read.wrong is None:
            read.wrong = (int(np.flatnonzero(valid)[0]), f"has not the number of values its shape {list(told_shape)} takes")
    return _typed(read, found[0], element)


def _nothing(
    column: pa.Array, valid: np.ndarray[Any, Any], bad: np.ndarray[Any, Any], why: str, element: str | None
) -> Tensors:
    rows = np.flatnonzero(valid & bad)
    none = np.zeros(len(column), bool)
    row = int(rows[0]) if len(rows) else 0
    return Tensors(pa.array([], ELEMENTS[element or "DOUBLE"]), none.astype(np.int64), none, None, (row, why), True)


def _numbers(texts: pa.Array, valid: np.ndarray[Any, Any], target: pa.DataType) -> Tensors:
    """Read numbers that are separated by spaces or commas.

    Args: texts: the texts of the valid rows; valid: which rows of the column are valid [rows]; target: the type of the numbers.
    """
    trimmed = pc.utf8_trim(texts, " ,\t\r\n")
    parts = pc.split_pattern_regex(trimmed, r"[,\s]+")
    counts = pc.list_value_length(parts).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = pc.list_flatten(parts)
    pattern = r"(?i)^(true|false)$" if pa.types.is_boolean(target) else _NUMBER
    if pa.types.is_integer(target):
        pattern = r"^[+-]?\d+$"
    good = pc.match_substring_regex(flat, pattern).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(texts)), counts)
    # a text that has only separators holds no numbers, and is not an error
    blank = pc.equal(pc.utf8_length(trimmed), 0).to_numpy(zero_copy_only=False)
    bad = np.zeros(len(texts), bool)
    bad[owner[~good]] = True
    bad &= ~blank
    keep = ~(bad | blank)
    values = flat.filter(pa.array(keep[owner]))
    if pa.types.is_uint8(target):
        # Java has no unsigned byte, so Alink writes 200 as -56
        numbers = pa.array(values.cast(pa.int16()).to_numpy(zero_copy_only=False).astype(np.uint8))
    else:
        numbers = values.cast(target)
    rows = np.flatnonzero(valid)
    lengths = np.zeros(len(valid), np.int64)
    lengths[rows] = np.where(keep, counts, 0)
    left = valid.copy()
    left[rows[bad]] = False
    wrong = None
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        odd = flat.filter(pa.array(~good & (owner == first)))[0].as_py()
        wrong = (int(rows[first]), f"{odd!r} is no {'number' if not pa.types.is_boolean(target) else 'true or false'}")
    return Tensors(numbers, lengths, left, _same(lengths[left]), wrong)


def _strings(texts: pa.Array, valid: np.ndarray[Any, Any]) -> Tensors:
    """Read tensors of texts: the lengths of the texts in UTF-16 units, then `#`, then the texts, each followed by a space."""
    parts = pc.extract_regex(texts, r"(?s)^(?P<lengths>[-0-9 ]*)#(?P<texts>.*)$")
    told, bodies = pc.struct_field(parts, "lengths"), pc.struct_field(parts, "texts")
    bad = parts.is_null().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(valid)
    left = valid.copy()
    left[rows[bad]] = False
    sizes = _numbers(told.drop_null(), np.ones(int((~bad).sum()), bool), pa.int64())
    values = cut(bodies.drop_null(), sizes.values.to_numpy(), sizes.lengths)
    lengths = np.zeros(len(valid), np.int64)
    lengths[left] = sizes.lengths
    wrong = (int(rows[bad][0]), "is no tensor of texts") if bad.any() else None
    return Tensors(values, lengths, left, _same(lengths[left]), wrong)


def _vectors(column: pa.Array, valid: np.ndarray[Any, Any]) -> Tensors:
    """Read vectors; a column may have dense ones, sparse ones, or both."""
    texts = column.drop_null()
    is_sparse = pc.match_substring_regex(texts, r"[:$]|^\s*$").to_numpy(zero_copy_only=False)
    if not is_sparse.any():
        return _numbers(texts, valid, pa.float64())
    rows = np.flatnonzero(valid)
    parts = [(rows[is_sparse], _sparse(texts.filter(pa.array(is_sparse))))]
    if not is_sparse.all():
        dense = texts.filter(pa.array(~is_sparse))
        parts.append((rows[~is_sparse], _numbers(dense, np.ones(len(dense), bool), pa.float64())))
    place = np.full(len(column), -1)
    place[np.concatenate([rows for rows, _ in parts])] = np.arange(len(rows))
    lists = pa.concat_arrays([part.column(False) for _, part in parts]).take(pa.array(place, mask=place < 0))
    left = lists.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    wrong = sorted((int(rows[part.wrong[0]]), part.wrong[1]) for rows, part in parts if part.wrong is not None)
    return Tensors(pc.list_flatten(lists), lengths, left, _same(lengths[left]), wrong[0] if wrong else None)


def _sparse(texts: pa.Array) -> Tensors:
    """Read sparse vectors such as "$4$0:1.0 2:3.0" (size 4, then pairs of index and value) as dense ones."""
    matched = pc.extract_regex(texts, _SPARSE)
    size = pc.struct_field(matched, "size")
    sizes = pc.if_else(pc.equal(size, ""), None, size).cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    pairs = pc.replace_substring_regex(pc.struct_field(matched, "pairs").fill_null("?"), r"\s*:\s*", " ")
    read = _numbers(pairs, np.ones(len(texts), bool), pa.float64())
    good = read.valid & (read.lengths % 2 == 0) & (sizes >= 0)
    numbers = read.values.to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(texts)), np.where(good, read.lengths // 2, 0))
    kept = numbers[np.repeat(good, read.lengths)]
    index, value = kept[0::2].astype(np.int64), kept[1::2]
    outside = (index < 0) | (index >= sizes[owner])
    beyond = np.zeros(len(texts), bool)
    beyond[owner[outside]] = True
    good &= ~beyond
    wrong = None
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        why = "is a sparse vector that does not tell its size ($size$...)" if sizes[row] < 0 else "is no sparse vector"
        wrong = (row, f"has an index beyond its size, {sizes[row]}" if beyond[row] else why)
    lengths = np.where(good, sizes, 0)
    dense = np.zeros(int(lengths.sum()))
    fits = ~beyond[owner]
    dense[(np.cumsum(lengths) - lengths)[owner[fits]] + index[fits]] = value[fits]
    return Tensors(pa.array(dense), lengths, good, _same(lengths[good]), wrong)


def vectors_as_text(column: pa.Array) -> pa.Array:
    """Return a column of lists of numbers as Alink's text for vectors, such as "1.0 2.0"."""
    found = tensors_of(column, None)
    texts = found.values.cast(pa.string())
    lists: Any = pa.ListArray.from_arrays(
        pa.array(np.concatenate([[0], np.cumsum(found.lengths)]), pa.int32()), texts, mask=pa.array(~found.valid)
    )
    return pc.binary_join(lists, " ")


def reduced(tensors: Tensors, method: str) -> Tensors:
    """Reduce tensors to vectors of doubles.

    Args: method: SUM, MEAN, MAX or MIN over the first axis, or FLATTEN (keeps every number).
    """
    values = tensors.values.cast(pa.float64())
    rows = int(tensors.valid.sum())
    if method == "FLATTEN":
        return Tensors(values, tensors.lengths, tensors.valid, _same(tensors.lengths[tensors.valid]))
    numbers = values.to_numpy(zero_copy_only=False)
    shape: list[int] = [*tensors.shape] if tensors.shape is not None else []
    function: Any = {"SUM": np.add, "MEAN": np.add, "MAX": np.maximum, "MIN": np.minimum}[method]
    if shape and rows:
        block = numbers.reshape(rows, shape[0], -1)
        flat = function.reduce(block, axis=1)
        counts = shape[0]
    else:
        # the lengths differ: these are vectors, whose only axis is the first
        lengths = tensors.lengths[tensors.valid]
        if (lengths == 0).any():
            raise DataError(f"a vector without numbers has no {method}")
        flat = function.reduceat(numbers, np.cumsum(lengths) - lengths)[:, None] if rows else np.zeros((0, 1))
        counts = lengths[:, None] if rows else 1
    flat = flat / counts if method == "MEAN" else flat
    lengths = np.where(tensors.valid, flat.shape[1] if rows else 0, 0).astype(np.int64)
    return Tensors(pa.array(np.ascontiguousarray(flat).reshape(-1)), lengths, tensors.valid, _same(lengths[tensors.valid]))
