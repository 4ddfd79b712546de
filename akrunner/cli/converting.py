"""Converts the words of a command line without pydantic where they need no more than Python.

Newer versions of Typer have pydantic convert the value of every parameter, also of those that were not given. To import
pydantic and to have it make a converter for each parameter takes a seventh of the time in which a command starts.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

#: a type -> the words for which pydantic returns what the type itself does; it has rules of its own for others ("1_000", " 1")
_PLAIN: Mapping[Any, re.Pattern[str]] = {
    int: re.compile(r"0|[1-9][0-9]{0,8}"),
    float: re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,8})?"),
}


class _Converter:
    """Has the method of Typer's own converters that Typer calls.

    Args:
        make: makes Typer's own converter of the parameter.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a parameter's value. Args: value: a word, several, a value of a job file, the default, or None for no value."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        with contextlib.suppress(AttributeError, ValueError):
            # names of Typer's own, which another version may not have; a number of thousands of digits, which Typer refuses
            wanted, told = param.type_descriptor.annotation, param.type_descriptor.parameter_info
            if told.min is None and told.max is None and told.parser is None:
                if type(value) is wanted:
                    return value
                if wanted is str and type(value) in (int, float):
                    # from a job file
                    return str(value)
                if wanted == list[str] and isinstance(value, (list, tuple)) and all(type(one) is str for one in value):
                    return list(value)
                if type(value) is str and wanted in _PLAIN and _PLAIN[wanted].fullmatch(value):
                    return wanted(value)
        return self._make().coerce(value, param=param, ctx=ctx)


def hasten(parameter: Any) -> None:
    """Have Typer ask `_Converter` for a parameter's value. Does nothing in versions of Typer that do not use pydantic.

    Args:
        parameter: an option or argument of one of Typer's commands.
    """
    if hasattr(parameter, "get_runtime_param"):
        converter = _Converter(parameter.get_runtime_param)
        parameter.get_runtime_param = functools.partial(_same, converter)


def _same(converter: _Converter) -> _Converter:
    return converter
