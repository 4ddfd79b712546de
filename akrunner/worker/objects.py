"""Object arrays that remember the type that their numbers had.

numpy has no null; an array with nulls is an object array of Python numbers and `None`. The type of the numbers is kept in the
dtype's metadata: slices, copies and selected rows of the array keep it, arrays computed from it do not. numpy is imported when
there are arrays: a script without any does not need it.
"""

from typing import Any, List, Optional

from akrunner.wire.column_layout import WIDTHS

_KEY = "akrunner.dtype"
#: names of types in Arrow, polars and pandas that differ from numpy's -> numpy's
_OTHERS = {"halffloat": "float16", "float": "float32", "double": "float64", "boolean": "bool"}


def empty(rows: int, of: Optional[str]) -> Any:
    """Return an object array filled with None. Args: of: the numpy name of its numbers' type; None if unknown."""
    import numpy as np

    return np.full(rows, None, np.dtype(object, metadata={_KEY: of}) if of is not None else np.dtype(object))


def made(values: List[Any], of: Optional[str]) -> Any:
    """Return an object array of Python values. Args: of: as for `empty`."""
    array = empty(len(values), of)
    array[:] = values
    return array


def named(words: str) -> Optional[str]:
    """Return numpy's name for a library's type of numbers, such as "Int32" (polars, pandas), "double" (Arrow) or
    "float[pyarrow]".

    None if numpy has no such type.
    """
    name = words.partition("[")[0].lower()
    name = _OTHERS.get(name, name)
    return name if name in WIDTHS else None


def type_of(values: Any) -> Optional[str]:
    """Return the numpy name of the type that an array's numbers had, or None if it is not known.

    Args:
        values: a numpy array, or a pandas series.
    """
    dtype = getattr(values, "dtype", None)
    said = (getattr(dtype, "metadata", None) or {}).get(_KEY)
    if isinstance(said, str):
        return said
    return named(str(dtype)) if type(values).__module__.partition(".")[0] == "pandas" else None


def as_they_were(numbers: Any, of: str) -> Any:
    """Return numbers in the type `of` that they had, if it holds each of them exactly.

    Otherwise return them unchanged: the script may have put other numbers into the array.
    """
    import numpy as np

    kinds = numbers.dtype.kind + np.dtype(of).kind
    if kinds not in ("bb", "ff", "if", "uf", "ii", "iu", "ui", "uu"):
        return numbers
    with np.errstate(all="ignore"):
        cast = numbers.astype(of)
        back = cast.astype(numbers.dtype)
        # a cast between int64 and uint64 and back may give the same bits with another sign
        same = (back == numbers) if kinds == "bb" else (back == numbers) & ((cast < 0) == (numbers < 0))
    return cast if (same | (numbers != numbers)).all() else numbers
