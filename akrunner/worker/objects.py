"""Object arrays that say of which type their numbers were: numpy has no null, and in its place `None` among Python's numbers.

The type is in the dtype's metadata, which an array's slices, copies and chosen rows keep, and what is computed from it does not. numpy is imported when there
are arrays: a script without any needs none.
"""

from typing import Any, List, Optional

from akrunner.wire.columns import WIDTHS

_KEY = "akrunner.dtype"
#: what Arrow, polars and pandas call them -> numpy
_OTHERS = {"halffloat": "float16", "float": "float32", "double": "float64", "boolean": "bool"}


def empty(rows: int, of: Optional[str]) -> Any:
    """An object array, all of it None. Args: of: numpy's name for the type of the numbers that are to be in it, None: nobody knows."""
    import numpy as np

    return np.full(rows, None, np.dtype(object, metadata={_KEY: of}) if of is not None else np.dtype(object))


def made(values: List[Any], of: Optional[str]) -> Any:
    """An object array of Python's values. Args: of: as of `empty`."""
    array = empty(len(values), of)
    array[:] = values
    return array


def named(words: str) -> Optional[str]:
    """numpy's name for a type of numbers, from that of a library: "Int32" of polars and pandas, "double" of Arrow, "float[pyarrow]"; None: it has none."""
    name = words.partition("[")[0].lower()
    name = _OTHERS.get(name, name)
    return name if name in WIDTHS else None


def type_of(values: Any) -> Optional[str]:
    """numpy's name for the type that an array's numbers were of; None: it does not say. Args: values: of numpy, or a series of pandas."""
    dtype = getattr(values, "dtype", None)
    said = (getattr(dtype, "metadata", None) or {}).get(_KEY)
    if isinstance(said, str):
        return said
    return named(str(dtype)) if type(values).__module__.partition(".")[0] == "pandas" else None


def as_they_were(numbers: Any, of: str) -> Any:
    """An array of numbers in the type that they were of, where it holds each of them exactly; else as they are: a script may have put others there."""
    import numpy as np

    kinds = numbers.dtype.kind + np.dtype(of).kind
    if kinds not in ("bb", "ff", "if", "uf", "ii", "iu", "ui", "uu"):
        return numbers
    with np.errstate(all="ignore"):
        cast = numbers.astype(of)
        back = cast.astype(numbers.dtype)
        # a number of 64 bits may have come back from one of another sign
        same = (back == numbers) if kinds == "bb" else (back == numbers) & ((cast < 0) == (numbers < 0))
    return cast if (same | (numbers != numbers)).all() else numbers
