"""`from pyflink.common import Row`, for scripts of Deep Learning on Flink whose interpreter has no PyFlink."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from typing import Any, Callable, Dict, List, NoReturn, Tuple

_ABSENT = (
    "%s: this interpreter has no PyFlink, and akrunner has pyflink.common.Row in its place and nothing else. Tables and jobs "
    "are of the program that submits, which is a call of akrunner.run here; python_env= (--python-env) names an interpreter "
    "that has PyFlink"
)


class Row(Tuple[Any, ...]):
    """Values in their order, which may have names: `Row(1, "a")`, `Row(n=1, name="a")`, `Row("n", "name")(1, "a")`.

    It stands in for PyFlink's `Row`: values can be had by number, by name and as attributes.
    """

    _fields: List[str]

    def __new__(cls, *values: Any, **named: Any) -> Row:
        if values and named:
            raise ValueError("a Row has either values, or values with names")
        row = super(Row, cls).__new__(cls, named.values() if named else values)
        if named:
            row._fields = list(named)
        return row

    def __call__(self, *values: Any) -> Row:
        """Return a row with these values, whose names are the values of this row."""
        if len(values) > len(self):
            raise TypeError("a Row of %d names was given %d values: %s" % (len(self), len(values), list(self)))
        return Row(**dict(zip(self, values)))

    @property
    def _values(self) -> List[Any]:
        return list(self)

    def as_dict(self) -> Dict[str, Any]:
        """Return name -> value. Raises: TypeError: the row has no names."""
        if "_fields" not in vars(self):
            raise TypeError("a Row without names is no dict")
        return dict(zip(self._fields, self))

    def __getnewargs__(self) -> Tuple[Any, ...]:
        # with a tuple's own method, unpickling would pass all values as one
        return tuple(self)

    def __getitem__(self, which: Any) -> Any:
        return self.as_dict()[which] if isinstance(which, str) else super(Row, self).__getitem__(which)

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("_fields", ()):
            return self.as_dict()[name]
        raise AttributeError("a Row has no %r" % name)

    def __repr__(self) -> str:
        fields = vars(self).get("_fields")
        return "Row(%s)" % ", ".join(map(repr, self) if fields is None else ("%s=%r" % one for one in zip(fields, self)))


def stand_in() -> None:
    """Make `pyflink.common.Row` importable if neither the interpreter nor the user's files have PyFlink."""
    if "pyflink" in sys.modules or importlib.util.find_spec("pyflink") is not None:
        return
    package, common = (_package(name) for name in ("pyflink", "pyflink.common"))
    common.Row, package.common = Row, common


def _package(name: str) -> Any:
    """Make an empty package without a location: importing a submodule fails, as it does without PyFlink."""
    module: Any = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(name, None, is_package=True))
    module.__getattr__ = _not_here(name)
    sys.modules[name] = module
    return module


def _not_here(module: str) -> Callable[..., Any]:
    def absent(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(_ABSENT % (module + "." + name))

    return absent
