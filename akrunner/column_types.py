"""The table of column types: a row says everything that depends on the type of a column.

::

    "bigint" in a schema     --WORDS-->    row  -->  what an Example holds, what numpy has where rows travel as columns,
    a column of Arrow's      --type_of-->            the limits of a value on its way back, what MaxCompute, Alink and Flink call it

To add a type, add its row to `TABLE` (docs/extending.md does). `scripts/gen-types` writes docs/types.md from it. What crosses to a worker is
told there by `Field.describe`: the worker has no such table, but that of the three kinds of feature (`akrunner.wire.features`).
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.wire.features import BYTES, FLOAT, INT64, KINDS

#: Arrow's units of time, and how many digits of a second each counts: timestamp(3) is timestamp[ms]
UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class Family(enum.Enum):
    """What the values of a type are. What only depends on this (which values a default may have, what may be cast to what) asks no further."""

    TRUTH = enum.auto()
    WHOLE = enum.auto()
    REAL = enum.auto()
    DECIMAL = enum.auto()
    TEXT = enum.auto()
    OCTETS = enum.auto()
    DATE = enum.auto()
    MOMENT = enum.auto()
    TIME_OF_DAY = enum.auto()
    SPAN = enum.auto()
    NOTHING = enum.auto()


#: families whose values lie in memory as one number each, which numpy has too
NUMBERS = frozenset((Family.TRUTH, Family.WHOLE, Family.REAL))
#: families that count days, seconds or parts of one
TIMES = frozenset((Family.DATE, Family.MOMENT, Family.TIME_OF_DAY, Family.SPAN))


@dataclass(frozen=True)
class ColumnType:
    """A row of the table.

    Attributes:
        name: the word for it in a schema, and what we call it.
        arrow: the Arrow type that the word makes.
        family: what its values are.
        feature: which kind of feature of a `tf.train.Example` holds it.
        dtype: numpy's name for one number of it where rows travel as columns; "bytes" for text and bytes.
        declared: whether a schema can ask for it; a column of a table can have the others too.
        words: other words for it in a schema.
        sized: those of all its words that take a size in parentheses: varchar(20), timestamp(3).
        of_unit: makes the Arrow type of a unit, where a schema may say one: timestamp[ms].
        element: Alink's name for a value in a tensor: FLOAT makes FLOAT_TENSOR a word for many of these values in a row.
        tensors: other such words.
        also: Arrow types whose columns are of this type as well, of whatever unit, width or precision.
        wider: the next Arrow type that holds all its values, for what has no type like this one.
        alink: Alink's names for it; the first one is written.
        maxcompute: MaxCompute's name for it.
        flink: Flink's name for it, as `DataTypes` has it.
        python: the type of Python's that stands for it in a schema that is a dict.
        numpy_kinds: letters of numpy's kinds that are of this type, if they are not numbers.
    """

    name: str
    arrow: pa.DataType
    family: Family
    feature: str
    dtype: str
    declared: bool = True
    words: tuple[str, ...] = ()
    sized: tuple[str, ...] = ()
    of_unit: Callable[[str], pa.DataType] | None = None
    element: str = ""
    tensors: tuple[str, ...] = ()
    also: tuple[pa.DataType, ...] = ()
    wider: pa.DataType | None = None
    alink: tuple[str, ...] = ()
    maxcompute: str = ""
    flink: str = ""
    python: type | None = None
    numpy_kinds: str = ""

    @property
    def sql(self) -> bool:
        """Whether its name is a word of SQL's, and not numpy's."""
        return self.declared and self.name != self.dtype

    @property
    def many(self) -> tuple[str, ...]:
        """The words for many of its values in a row."""
        return (f"{self.element.lower()}_tensor", *self.tensors) if self.element else self.tensors


TABLE: tuple[ColumnType, ...] = (
    ColumnType(
        "tinyint", pa.int8(), Family.WHOLE, INT64, "int8", words=("int8",), element="BYTE", wider=pa.int16(),
        alink=("TINYINT", "BYTE"), maxcompute="tinyint", flink="TINYINT",
    ),
    ColumnType(
        "smallint", pa.int16(), Family.WHOLE, INT64, "int16", words=("int16",), wider=pa.int32(),
        alink=("SMALLINT", "SHORT"), maxcompute="smallint", flink="SMALLINT",
    ),
    ColumnType(
        "int", pa.int32(), Family.WHOLE, INT64, "int32", words=("integer", "int32"), element="INT", wider=pa.int64(),
        alink=("INT",), maxcompute="int", flink="INT",
    ),
    ColumnType(
        "bigint", pa.int64(), Family.WHOLE, INT64, "int64", words=("long", "int64"), element="LONG",
        alink=("BIGINT", "LONG"), maxcompute="bigint", flink="BIGINT", python=int,
    ),
    # Alink's word: of 32 bits. An Example has no wider floats
    ColumnType(
        "float", pa.float32(), Family.REAL, FLOAT, "float32", words=("float32",), element="FLOAT", tensors=("tensor",), wider=pa.float64(),
        alink=("FLOAT",), maxcompute="float", flink="FLOAT",
    ),
    ColumnType(
        "double", pa.float64(), Family.REAL, FLOAT, "float64", words=("float64",), element="DOUBLE", tensors=("dense_vector", "vector"),
        alink=("DOUBLE",), maxcompute="double", flink="DOUBLE", python=float,
    ),
    ColumnType(
        "boolean", pa.bool_(), Family.TRUTH, INT64, "bool", words=("bool",), element="BOOLEAN", tensors=("bool_tensor",),
        alink=("BOOLEAN", "BOOL"), maxcompute="boolean", flink="BOOLEAN", python=bool, numpy_kinds="b",
    ),
    ColumnType(
        "string", pa.string(), Family.TEXT, BYTES, "bytes", words=("varchar", "str", "utf8"), sized=("varchar",), element="STRING",
        also=(pa.large_string(), pa.string_view()), alink=("STRING", "VARCHAR"), maxcompute="string", flink="STRING", python=str,
        numpy_kinds="OUT",
    ),
    ColumnType(
        "varbinary", pa.binary(), Family.OCTETS, BYTES, "bytes", words=("binary", "bytes"), sized=("varbinary", "binary"),
        also=(pa.large_binary(), pa.binary_view(), pa.binary(1)), alink=("VARBINARY",), maxcompute="binary", flink="BYTES", python=bytes,
        numpy_kinds="S",
    ),
    ColumnType(
        "timestamp", pa.timestamp("us"), Family.MOMENT, INT64, "int64", words=("datetime64",), sized=("timestamp",), of_unit=pa.timestamp,
        alink=("TIMESTAMP", "SQL_TIMESTAMP"), maxcompute="timestamp", flink="TIMESTAMP", python=datetime.datetime,
    ),
    ColumnType(
        "date", pa.date32(), Family.DATE, INT64, "int64", words=("date32",), also=(pa.date64(),),
        alink=("DATE", "SQL_DATE"), maxcompute="date", flink="DATE", python=datetime.date,
    ),
    ColumnType("uint8", pa.uint8(), Family.WHOLE, INT64, "uint8", element="UBYTE", wider=pa.int16()),
    ColumnType("uint16", pa.uint16(), Family.WHOLE, INT64, "uint16", wider=pa.int32()),
    ColumnType("uint32", pa.uint32(), Family.WHOLE, INT64, "uint32", wider=pa.int64()),
    # a value that no bigint holds is told when it comes
    ColumnType("uint64", pa.uint64(), Family.WHOLE, INT64, "uint64", maxcompute="bigint"),
    ColumnType("float16", pa.float16(), Family.REAL, FLOAT, "float16", declared=False, wider=pa.float32()),
    ColumnType(
        "time", pa.time64("us"), Family.TIME_OF_DAY, INT64, "int64", declared=False, also=(pa.time32("ms"),), flink="TIME",
    ),
    ColumnType("duration", pa.duration("us"), Family.SPAN, INT64, "int64", declared=False),
    # SQL's 1. is one; those with digits behind the point cross nowhere
    ColumnType(
        "decimal", pa.decimal128(38, 0), Family.DECIMAL, INT64, "int64", declared=False,
        also=(pa.decimal256(76, 0), *(getattr(pa, name)(1, 0) for name in ("decimal32", "decimal64") if hasattr(pa, name))),
        maxcompute="decimal", flink="DECIMAL",
    ),
    # a column without a single value (an empty CSV's) is left out of every row, so that any kind would do
    ColumnType("null", pa.null(), Family.NOTHING, FLOAT, "float32", declared=False, maxcompute="string"),
)  # fmt: skip

#: words of a schema, in small letters -> the row; `MANY`: words for many such values in a row
WORDS: dict[str, ColumnType] = {word: row for row in TABLE if row.declared for word in (row.name, *row.words)}
MANY: dict[str, ColumnType] = {word: row for row in TABLE for word in row.many}
#: numpy's name of a number or boolean -> the row
DTYPES: dict[str, ColumnType] = {row.dtype: row for row in TABLE if row.family in NUMBERS}


def _by_id() -> dict[int, list[ColumnType]]:
    found: dict[int, list[ColumnType]] = {}
    for row in TABLE:
        for number in {one.id for one in (row.arrow, *row.also)}:
            found.setdefault(number, []).append(row)
    return found


#: Arrow's number for a type, which is the same for all units, widths and precisions of it -> the rows that have such a type
_BY_ID = _by_id()


def type_of(data_type: pa.DataType) -> ColumnType | None:
    """The row of a type; None: there is none. Of lists and dictionaries, the type of their values has one."""
    rows = _BY_ID.get(data_type.id, ())
    if len(rows) < 2:
        return rows[0] if rows else None
    # the row of this very type, or else the one that takes it as well
    return next((row for row in rows if row.arrow == data_type), None) or next(
        (row for row in rows if any(one.id == data_type.id for one in row.also)), rows[0]
    )


def family_of(data_type: pa.DataType) -> Family | None:
    """What the values of a type are; None: the table has no such type."""
    row = type_of(data_type)
    return row.family if row is not None else None


def wider(row: ColumnType, has: Callable[[ColumnType], Any]) -> ColumnType | None:
    """The row itself if it `has` what is looked for, else the next that has it and holds all values of this one; None: there is none."""
    found: ColumnType | None = row
    while found is not None and not has(found):
        found = type_of(found.wider) if found.wider is not None else None
    return found


def undeclared(feature: str) -> ColumnType:
    """The type of a column of which nothing is known but the kind of feature it comes in."""
    kind = KINDS[feature]
    return DTYPES[kind.dtype] if kind.dtype in DTYPES else WORDS["varbinary"]


def limits(data_type: pa.DataType) -> tuple[int, int] | None:
    """The least and the most of the integers that are values of a type: booleans, integers, times of 32 bits; None: any of 64 bits is."""
    family = family_of(data_type)
    if family is Family.TRUTH:
        return 0, 1
    bits = data_type.bit_width if family is Family.WHOLE or family in TIMES else 64
    if pa.types.is_unsigned_integer(data_type):
        return 0, min(2**bits - 1, 2**63 - 1)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if bits < 64 else None
