"""Parameters of operators: one declaration (`Param`) makes the setter, the getter, the keyword argument and the documentation.

::

    TensorFlowBatchOp().setNumWorkers(2)      TensorFlowBatchOp(numWorkers=2)      .getNumWorkers()
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from akrunner.checks import KeyTwice, check_params, once_each, shown
from akrunner.column_types import WORDS, Family, type_of, wider
from akrunner.errors import ConfigError
from akrunner.foreign import in_words, ours
from akrunner.schema import Schema


@dataclass(frozen=True)
class Param:
    """One parameter of an operator.

    Attributes:
        name: the parameter's name as Alink writes it, such as "numWorkers".
        kind: a key of `_KINDS`, which says what values are accepted.
        doc: one sentence for the documentation.
        default: the value used if none is given; None: there is no default.
        required: whether a value must be given.
        aliases: other names of the parameter.
        choices: the texts that are accepted, in upper or lower case; empty: any text.
    """

    name: str
    kind: str
    doc: str
    default: Any = None
    required: bool = False
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    @property
    def takes(self) -> str:
        """What values the parameter accepts, in words."""
        return "one of " + ", ".join(self.choices) if self.choices else _KINDS[self.kind][0]

    def check(self, value: Any) -> Any:
        """Check a value and return it as it is stored; None stays None. Raises: ConfigError: the value is not of `kind`."""
        if value is None:
            return None
        with ours(ConfigError, f"{self.name} takes {self.takes}"):
            kept = _KINDS[self.kind][1](value)
        if self.choices and isinstance(kept, str):
            kept = kept.upper() if kept.upper() in self.choices else None
        if kept is None:
            raise ConfigError(f"{self.name} takes {self.takes}, not {shown(value)}")
        return kept

    def must(self) -> Param:
        """Return a copy of the parameter that is required."""
        return dataclasses.replace(self, required=True)


def _text(value: Any) -> str | None:
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    return text if isinstance(text, str) and "\0" not in text else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    return number if math.isfinite(number) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: Any) -> list[str] | None:
    """Return a list of texts, given a list, a list as JSON text, or a single text; None if the value is none of these."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, (str, os.PathLike)):
        value = [value]
    if not isinstance(value, (list, tuple)):
        return None
    texts = [_text(one) for one in value]
    return None if any(text is None for text in texts) else [text for text in texts if text is not None]


def _wholes(value: Any) -> list[int] | None:
    """Return a list of whole numbers, given a list or a list as JSON text; None if the value is neither."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, (list, tuple)):
        return None
    wholes = [_whole(one) for one in value]
    return None if None in wholes else [one for one in wholes if one is not None]


def _numbers(value: Any) -> list[float] | None:
    """Return a list of numbers, given a list or a single number; None if the value is neither."""
    numbers = [_number(one) for one in (value if isinstance(value, (list, tuple)) else [value])]
    return None if None in numbers else [one for one in numbers if one is not None]


def _object(value: Any) -> dict[str, Any] | None:
    """Return a dict, given a dict or one as JSON text; None if the value is neither.

    Raises: ConfigError: a text is not JSON, or has a key twice in one object.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value, object_pairs_hook=once_each)
        except KeyTwice as e:
            raise ConfigError(f"{shown(value)} has the key {str(e)!r} twice in one object; which value is meant?") from None
        except (ValueError, RecursionError) as e:
            raise ConfigError(f"{shown(value)} is not JSON: {in_words(e)}") from None
    return check_params("its value", value) if isinstance(value, Mapping) else None


def _schema(value: Any) -> str | None:
    if isinstance(value, str):
        Schema.parse(value, "outputSchemaStr")
        return value
    return None


_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "text": ("text", _text),
    "whole": ("a whole number", _whole),
    "wholes": ("a list of whole numbers, or the JSON text of one", _wholes),
    "number": ("a number", _number),
    "numbers": ("a list of numbers", _numbers),
    "flag": ("True or False", _flag),
    "texts": ("a list of texts, or the JSON text of one", _texts),
    "object": ("a dict, or the JSON text of one", _object),
    "schema": ('text like "id bigint, p double"', _schema),
    "any": ("anything", lambda value: value),
}


#: names for which no getter or setter is made: `getSchemaStr` returns the table's columns, not the parameter `schemaStr`
_TAKEN = ("getSchemaStr",)


class WithParams:
    """Base class that gives each parameter a class declares in `TAKES` a setter, a getter and a keyword argument."""

    TAKES: ClassVar[tuple[Param, ...]] = ()
    #: each name or alias of a parameter -> the parameter
    _named: ClassVar[dict[str, Param]] = {}
    #: name of a class -> it, of every class below this one. Operators make operators that are defined in modules above their own by it
    _classes: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # a class of the user's own does not take the place of akrunner's
        cls._classes.setdefault(cls.__name__, cls)
        cls._named = {name: param for param in cls.TAKES for name in (param.name, *param.aliases)}
        for name, param in cls._named.items():
            for made in (_setter(name, param), _getter(name, param)):
                if made.__name__ not in _TAKEN:
                    setattr(cls, made.__name__, made)

    def __init__(self, **given: Any) -> None:
        """Set parameters; others can be set later with the setters.

        Args:
            **given: parameters by name, with values as the setters take them.
        Raises:
            ConfigError: a parameter is unknown, or its value has a wrong type.
        """
        self._given: dict[str, Any] = {}
        for name, value in given.items():
            if name not in self._named:
                raise ConfigError(f"{type(self).__name__} has no parameter {name}{self._nearest(name, self._named)}")
            self._put(self._named[name], value)

    def _put(self, param: Param, value: Any) -> None:
        try:
            self._given[param.name] = param.check(value)
        except ConfigError as e:
            raise ConfigError(f"{type(self).__name__}.{param.name}: {e}") from None

    def _get(self, name: str) -> Any:
        """Return a parameter's value, or its default. Raises: ConfigError: the parameter is required, and was not given."""
        param = self._named[name]
        value = self._given.get(param.name, param.default)
        if value is None and param.required:
            title = param.name[0].upper() + param.name[1:]
            raise ConfigError(f"{type(self).__name__} needs {param.name}: call set{title}({param.takes})")
        return value

    def _check_required(self) -> None:
        for param in self.TAKES:
            self._get(param.name)

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for an attribute that does not exist
        raise AttributeError(f"{type(self).__name__} has no {name}{self._nearest(name, dir(type(self)))}")

    @staticmethod
    def _nearest(name: str, known: Any) -> str:
        close = difflib.get_close_matches(name, [one for one in known if not one.startswith("_")], n=1)
        return f"; did you mean {close[0]}?" if close else ""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self._given.items())
        return f"{type(self).__name__}({shown})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _setter(name: str, param: Param) -> Callable[[WithParams, Any], WithParams]:
    def put(self: WithParams, value: Any) -> WithParams:
        self._put(param, value)
        return self

    put.__name__ = "set" + name[0].upper() + name[1:]
    put.__doc__ = f"{param.doc}\n\nArgs:\n    value: {param.takes}.{_default(param)}\nReturns:\n    this operator."
    return put


def _getter(name: str, param: Param) -> Callable[[WithParams], Any]:
    def get(self: WithParams) -> Any:
        return self._given.get(param.name, param.default)

    get.__name__ = "get" + name[0].upper() + name[1:]
    get.__doc__ = f"{param.doc}\n\nReturns:\n    what was set, or the default."
    return get


def _default(param: Param) -> str:
    return " Required." if param.required else f" Default: {param.default!r}."


def schema_text(schema: pa.Schema) -> str:
    """Return an Arrow schema as Alink's text, such as "id BIGINT, p DOUBLE"."""
    return ", ".join(f"{field.name} {type_text(field.type)}" for field in schema)


#: family of a number whose type Alink does not have -> the Alink type used for it
_WITHOUT_NAME = {Family.WHOLE: "BIGINT", Family.REAL: "DOUBLE"}


def type_text(data_type: pa.DataType) -> str:
    """Return Alink's name of an Arrow type; the Arrow name in upper case where Alink has none."""
    row = type_of(data_type)
    if row is not None and row.family in _WITHOUT_NAME and not row.alink:
        return _WITHOUT_NAME[row.family]
    if row is not None and row.family is Family.MOMENT:
        # Alink's timestamps are moments; no name of its tells a zone
        row = WORDS["timestamp"]
    known = wider(row, lambda one: one.alink) if row is not None else None
    if known is not None:
        # Alink's SQL calls a text VARCHAR; Alink's files use the other name
        return "VARCHAR" if known.family is Family.TEXT else known.alink[0]
    if pa.types.is_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return f"ARRAY<{type_text(data_type.value_type)}>"
    return str(data_type).upper()


__all__ = ["Param", "WithParams", "schema_text", "type_text"]
