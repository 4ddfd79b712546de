"""Turns a row of Python values into bytes, and back: `Values` of `control.proto`, which lists every kind of value.
Reading the bytes never runs code."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable
from typing import Any

from akrunner.engines.flink import control_pb2 as pb
from akrunner.errors import DataError


def packed(row: Iterable[Any]) -> bytes:
    """Return a row as bytes.

    Raises:
        DataError: a value is of a kind that `Values` does not have.
    """
    return bytes(pb.Values(values=map(_value, row)).SerializeToString())


def unpacked(data: bytes) -> tuple[Any, ...]:
    """Return the row that `packed` has turned into bytes. Lists and tuples come back as lists."""
    return tuple(map(_cell, pb.Values.FromString(data).values))


def _value(cell: Any) -> Any:
    if cell is None:
        return pb.Value()
    # the most frequent kind first; a bool is also an int, and a datetime also a date
    if isinstance(cell, float):
        return pb.Value(real=cell)
    if isinstance(cell, bool):
        return pb.Value(truth=cell)
    if isinstance(cell, int):
        return pb.Value(number=cell)
    if isinstance(cell, str):
        return pb.Value(text=cell)
    if isinstance(cell, (bytes, bytearray)):
        return pb.Value(data=bytes(cell))
    if isinstance(cell, decimal.Decimal):
        return pb.Value(decimal=str(cell))
    if isinstance(cell, datetime.datetime):
        return pb.Value(moment=cell.isoformat())
    if isinstance(cell, datetime.date):
        return pb.Value(date=cell.isoformat())
    if isinstance(cell, datetime.time):
        return pb.Value(time=cell.isoformat())
    if isinstance(cell, (list, tuple)):
        return pb.Value(list=pb.Values(values=map(_value, cell)))
    raise DataError(f"a value of {type(cell).__name__} does not go through Python; select the column as something else")


def _cell(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    given = getattr(value, kind)
    if kind == "list":
        return [_cell(one) for one in given.values]
    return _READ[kind](given) if kind in _READ else given


_READ: dict[str, Callable[[str], Any]] = {
    "decimal": decimal.Decimal,
    "moment": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
}
