"""The table of column types: each row says everything that depends on the type of a column.

::

    "bigint" in a schema     --WORDS-->    row  -->  the feature of an Example, the numpy dtype if rows travel as columns, the
    a column of Arrow        --type_of-->            limits of a value on its way back, its names in MaxCompute, Alink, Flink

To add a type, add its row to `TABLE` (docs/extending.md shows how). `scripts/gen-types` writes docs/types.md from the table. A
worker process does not have this table: `Field.describe` tells it the types of its columns, and it has only the table of the
three kinds of feature (`akrunner.wire.features`).
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.wire.features import BYTES, FLOAT, INT64, KINDS

#: Arrow's units of time -> how many decimal digits of a second each has: timestamp(3) is timestamp[ms]
UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class Family(enum.Enum):
    """The kind of values that a type has.

    Code that depends only on this kind (which values a default may have, which type may be cast to which) looks at the family,
    and not at the type.
    """

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
        name: the type's name in akrunner, and the first word for it in a schema.
        arrow: the Arrow type that the word stands for.
        family: the kind of its values.
        feature: the kind of feature of a `tf.train.Example` that holds its values.
        dtype: numpy's name for one number of this type if rows travel as columns; "bytes" for text and bytes.
        declared: whether a schema can ask for this type; a column of a table can also have types that no schema can ask for.
        words: other words for the type in a schema.
        sized: the words among `name` and `words` that take a size in parentheses: varchar(20), timestamp(3).
        of_unit: makes the Arrow type for a unit, if a schema may say a unit: timestamp[ms]; None if it may not.
        element: Alink's name for such a value in a tensor: FLOAT makes FLOAT_TENSOR a word for many of these values in a row.
        tensors: other words for many of these values in a row.
        also: Arrow types whose columns have this type as well, with any unit, width or precision.
        wider: the next Arrow type that holds all values of this one, for systems that have no type like this one.
        alink: Alink's names for the type; akrunner writes the first one.
        maxcompute: MaxCompute's name for the type.
        flink: Flink's name for the type, as `DataTypes` has it.
        python: the Python type that stands for this type in a schema that is a dict.
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
        """Whether the type's name is a word of SQL, and not numpy's name."""
        return self.declared and self.name != self.dtype

    @property
    def many(self) -> tuple[str, ...]:
        """Return the words for many of the type's values in a row."""
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
    # "float" has 32 bits, as in Alink. A tf.train.Example has no wider floats
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
    # a moment, whatever the zone in which it is shown: SQL's `timestamp with time zone`
    ColumnType(
        "timestamp_ltz", pa.timestamp("us", "UTC"), Family.MOMENT, INT64, "int64", words=("timestamptz",),
        sized=("timestamp_ltz", "timestamptz"), of_unit=lambda unit: pa.timestamp(unit, "UTC"),
        maxcompute="timestamp",
    ),
    ColumnType(
        "date", pa.date32(), Family.DATE, INT64, "int64", words=("date32",), also=(pa.date64(),),
        alink=("DATE", "SQL_DATE"), maxcompute="date", flink="DATE", python=datetime.date,
    ),
    ColumnType("uint8", pa.uint8(), Family.WHOLE, INT64, "uint8", element="UBYTE", wider=pa.int16()),
    ColumnType("uint16", pa.uint16(), Family.WHOLE, INT64, "uint16", wider=pa.int32()),
    ColumnType("uint32", pa.uint32(), Family.WHOLE, INT64, "uint32", wider=pa.int64()),
    # a value too large for a bigint is an error when it comes
    ColumnType("uint64", pa.uint64(), Family.WHOLE, INT64, "uint64", maxcompute="bigint"),
    ColumnType("float16", pa.float16(), Family.REAL, FLOAT, "float16", declared=False, wider=pa.float32()),
    ColumnType(
        "time", pa.time64("us"), Family.TIME_OF_DAY, INT64, "int64", declared=False, also=(pa.time32("ms"),), flink="TIME",
    ),
    ColumnType("duration", pa.duration("us"), Family.SPAN, INT64, "int64", declared=False),
    # SQL's literal `1.` is a decimal; decimals with digits behind the point cannot cross
    ColumnType(
        "decimal", pa.decimal128(38, 0), Family.DECIMAL, INT64, "int64", declared=False,
        also=(pa.decimal256(76, 0), *(getattr(pa, name)(1, 0) for name in ("decimal32", "decimal64") if hasattr(pa, name))),
        maxcompute="decimal", flink="DECIMAL",
    ),
    # a column without a single value (of an empty CSV file) is left out of every row, so any kind of feature would do
    ColumnType("null", pa.null(), Family.NOTHING, FLOAT, "float32", declared=False, maxcompute="string"),
)  # fmt: skip

#: words of a schema, in small letters -> the row of the type. `MANY`: words for many values of a type in a row
WORDS: dict[str, ColumnType] = {word: row for row in TABLE if row.declared for word in (row.name, *row.words)}
MANY: dict[str, ColumnType] = {word: row for row in TABLE for word in row.many}
#: numpy's name of a number or boolean -> the row of the type
DTYPES: dict[str, ColumnType] = {row.dtype: row for row in TABLE if row.family in NUMBERS}


def _by_id() -> dict[int, list[ColumnType]]:
    found: dict[int, list[ColumnType]] = {}
    for row in TABLE:
        for number in {one.id for one in (row.arrow, *row.also)}:
            found.setdefault(number, []).append(row)
    return found


#: Arrow's id of a type, which is the same for all units, widths and precisions -> the rows that have a type with this id
_BY_ID = _by_id()


def type_of(data_type: pa.DataType) -> ColumnType | None:
    """Return the row of a type, None if it has none. Lists and dictionaries have no row; the type of their values has one."""
    rows = _BY_ID.get(data_type.id, ())
    if len(rows) < 2:
        return rows[0] if rows else None
    if pa.types.is_timestamp(data_type):
        return next(row for row in rows if (row.arrow.tz is None) == (data_type.tz is None))
    # the row of exactly this type, or else the row that has it under `also`
    return next((row for row in rows if row.arrow == data_type), None) or next(
        (row for row in rows if any(one.id == data_type.id for one in row.also)), rows[0]
    )


def family_of(data_type: pa.DataType) -> Family | None:
    """Return the family of a type, None if the table has no such type."""
    row = type_of(data_type)
    return row.family if row is not None else None


def is_octets(data_type: pa.DataType) -> bool:
    """Return whether a column of this type holds bytes: of any length, or all of one."""
    return family_of(data_type) is Family.OCTETS


def wider(row: ColumnType, has: Callable[[ColumnType], Any]) -> ColumnType | None:
    """Return the narrowest type for which `has` is true, among `row` and the wider types that hold all its values.

    Returns: None if there is no such type.
    """
    found: ColumnType | None = row
    while found is not None and not has(found):
        found = type_of(found.wider) if found.wider is not None else None
    return found


def undeclared(feature: str) -> ColumnType:
    """Return the type to take for a column if only its kind of feature is known."""
    kind = KINDS[feature]
    return DTYPES[kind.dtype] if kind.dtype in DTYPES else WORDS["varbinary"]


def limits(data_type: pa.DataType) -> tuple[int, int] | None:
    """Return the smallest and the largest integer that a type of booleans, integers or 32-bit times can hold.

    Returns: None if the type can hold any integer of 64 bits.
    """
    family = family_of(data_type)
    if family is Family.TRUTH:
        return 0, 1
    bits = data_type.bit_width if family is Family.WHOLE or family in TIMES else 64
    if pa.types.is_unsigned_integer(data_type):
        return 0, min(2**bits - 1, 2**63 - 1)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if bits < 64 else None
