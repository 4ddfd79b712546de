"""Writes values of each kind as expressions that make them again in another process. `literals` takes care of objects that
several names share.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copyreg
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import logging
import math
import operator
import pathlib
import random
import re
import sys
import types
import typing
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from akrunner.launch.functions.users import is_users

#: an integer of so many bits or more is not written in decimals
_LONG_INT = 10_000
_OF_PANDAS = ("Timestamp", "Timedelta", "NaTType", "NAType")
#: what errors say of a dict or a set that does not find its own keys
MOVED = " that holds what has another hash by now than when it was put in"
#: the streams for a logger's records that a task has, too
_STREAMS = ("stdout", "stderr")


class Writing(Protocol):
    """The part of `literals.Values` that this module uses: it writes the parts of a value, and knows which values have
    names.
    """

    @property
    def by_call(self) -> Callable[[Any], bool]:
        """Whether a value is a class of the script's own module that a call has made, and no `class` statement."""

    def reference(self, name: str, value: Any) -> str:
        """Return an expression for a function, class or module that the script has."""

    def inside(self, name: str, value: Any) -> str:
        """Return the items of a sequence, with commas between them."""

    def pairs(self, name: str, value: Any) -> str:
        """Return a dict as a literal."""

    def part(self, name: str, value: Any) -> str:
        """Return an expression for a part of a value."""

    def array(self, name: str, value: np.ndarray[Any, Any]) -> str:
        """Return an expression for an array."""


class Unwritten(Exception):
    """A value cannot be written. Its arguments: (what the value is called, the value, what is said of it beyond its type)."""


def key_of(key: Any) -> str:
    return (
        repr(key)
        if isinstance(key, (str, bool)) or (isinstance(key, int) and key.bit_length() < _LONG_INT)
        else type(key).__name__
    )


def expression(values: Writing, name: str, value: Any) -> str:
    """Return an expression that makes a value again. Raises: Unwritten, RecursionError: there is none."""
    kind = type(value)
    for kinds, write in _WRITERS:
        if kind in kinds:
            return write(values, name, value)
    if isinstance(value, enum.Enum):
        chosen = f"[{value.name!r}]" if value.name in kind.__members__ else f"({values.part(name, value.value)})"
        return values.reference(name, kind) + chosen
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return _named_tuple(values, name, value)
    if isinstance(value, logging.Logger):
        return _logger(name, value)
    if isinstance(value, pathlib.PurePath):
        kind_ = "Path" if isinstance(value, pathlib.Path) else kind.__name__
        return f"__import__('pathlib').{kind_}({str(value)!r})"
    if isinstance(value, np.generic):
        return _scalar(name, value)
    if isinstance(value, np.dtype) and value.hasobject is False and value.names is None:
        return f"__import__('numpy').dtype({value.str!r})"
    if kind.__name__ == "DType" and kind.__module__.startswith("tensorflow."):
        return f"__import__('tensorflow').dtypes.as_dtype({value.name!r})"
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in _OF_PANDAS:
        return _of_pandas(values, name, value)
    if _is_record(value):
        return _record(values, name, value)
    if values.by_call(value):
        return _class_by_call(values, name, value)
    if isinstance(value, np.ufunc):
        return _ufunc(name, value)
    if isinstance(value, np.random.BitGenerator):
        return _bit_generator(values, name, value)
    if isinstance(value, (type, types.FunctionType, types.ModuleType)) and not isinstance(value, types.GenericAlias):
        return values.reference(name, value)
    return values.reference(name, value) if _is_named(value) else _of_typing(values, name, value)


def is_one(value: Any) -> bool:
    """Whether it matters that a value is one and the same object wherever it is used."""
    # an object() has nothing but its identity
    return (
        type(value) is object
        or _is_record(value)
        or isinstance(
            value,
            (
                list,
                dict,
                set,
                bytearray,
                collections.deque,
                np.ndarray,
                random.Random,
                np.random.RandomState,
                np.random.Generator,
                np.random.BitGenerator,
                np.random.SeedSequence,
                functools.partial,
                types.SimpleNamespace,
                typing.TypeVar,
            ),
        )
    )


def _is_record(value: Any) -> bool:
    """Whether an object is no more than its attributes, and the items of a dict or a list: an instance of a dataclass (or of
    attrs'), of a class of the user's own, or of argparse's Namespace.
    """
    kind = type(value)
    own = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
    if dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__"):
        # for a dataclass with slots, Python itself makes two of these methods
        special = any(name in vars(one) for name in own for one in kind.__mro__[:-1] if "__slots__" not in vars(one))
        return kind.__new__ is object.__new__ and not special
    if not (kind is argparse.Namespace or _is_users(kind)) or isinstance(value, type) or kind in copyreg.dispatch_table:
        return False
    return kind.__new__ in (object.__new__, dict.__new__, list.__new__) and not any(
        name in vars(one) for name in own for one in kind.__mro__[:-1] if one not in (dict, list)
    )


def _is_users(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return module is not None and (kind.__module__ == "__main__" or is_users(module))


def _record(values: Writing, name: str, value: Any) -> str:
    """Write an instance, with what it holds, as pickle makes it again: its __init__ does not run."""
    kind, held = type(value), {**getattr(value, "__dict__", {})}
    for own in (
        one
        for base in kind.__mro__
        for one, descriptor in vars(base).items()
        if isinstance(descriptor, types.MemberDescriptorType)
    ):
        with contextlib.suppress(AttributeError):
            held[own] = object.__getattribute__(value, own)
    inside = ", ".join(f"({own!r}, {values.part(f'{name}.{own}', one)})" for own, one in held.items())
    base = "dict" if isinstance(value, dict) else "list" if isinstance(value, list) else "object"
    made = f"{base}.__new__({values.reference(name, kind)})"
    does = ["[object.__setattr__(made, *one) for one in held]"]
    if isinstance(value, dict):
        does.append(f"dict.update(made, {values.pairs(name, dict.copy(value))})")
    if isinstance(value, list):
        does.append(f"list.extend(made, [{values.inside(name, list.copy(value))}])")
    return f"(lambda made, held: [made, {', '.join(does)}][0])({made}, [{inside}])"


def _named_tuple(values: Writing, name: str, value: Any) -> str:
    """Write a named tuple as pickle makes it again: a __new__ of its class does not run."""
    kind, inside = values.reference(name, type(value)), values.inside(name, value)
    made = f"tuple.__new__({kind}, ({inside}{',' if len(value) == 1 else ''}))"
    held = getattr(value, "__dict__", {})
    return f"(lambda made: [made.__dict__.update({values.pairs(name, held)}), made][1])({made})" if held else made


def _is_named(value: Any) -> bool:
    """Whether it is a function of a type of its own, as numpy's are, that a module has by its name."""
    try:
        named = callable(value) and isinstance(value.__module__, str) and isinstance(value.__qualname__, str)
        return named and typing.get_origin(value) is None and not isinstance(value, typing.TypeVar)
    except Exception:
        # an object that answers to every attribute may raise anything
        return False


def _of_pandas(values: Writing, name: str, value: Any) -> str:
    pandas, kind = "__import__('pandas')", type(value).__name__
    if kind in ("NaTType", "NAType"):
        return f"{pandas}.{kind[:-4]}"
    if kind == "Timedelta":
        return f"{pandas}.Timedelta({value.value}, 'ns')"
    if value.tzinfo is None:
        return f"{pandas}.Timestamp({value.isoformat()!r})"
    utc = value.tz_convert("UTC").tz_localize(None).isoformat()
    return f"{pandas}.Timestamp({utc!r}).tz_localize('UTC').tz_convert({values.part(f'{name}.tz', value.tzinfo)})"


def _class_by_call(values: Writing, name: str, kind: Any) -> str:
    """Write a class that a call has made: `Point = namedtuple("Point", "x y")`, `Color = Enum("Color", "RED")`."""
    own = kind.__name__
    if issubclass(kind, enum.Enum):
        members = {key: one.value for key, one in kind.__members__.items()}
        return f"{values.reference(name, kind.__bases__[-1])}({own!r}, {values.pairs(name, members)})"
    types_ = vars(kind).get("__annotations__")
    if types_:
        fields = ", ".join(f"({field!r}, {values.part(f'{name}.{field}', one)})" for field, one in types_.items())
        return f"__import__('typing').NamedTuple({own!r}, [{fields}])"
    defaults = f", defaults=[{values.inside(name, kind._field_defaults.values())}]" if kind._field_defaults else ""
    return f"__import__('collections').namedtuple({own!r}, {list(kind._fields)!r}{defaults})"


def kind_of(value: Any) -> str:
    if isinstance(value, type):
        return f"of the class {value.__qualname__}"
    kind = "lambda" if isinstance(value, types.FunctionType) and value.__name__ == "<lambda>" else type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _plain(values: Writing, name: str, value: Any) -> str:
    return repr(value)


def _int(values: Writing, name: str, value: int) -> str:
    # Python refuses to write or read decimals of thousands of digits
    return repr(value) if value.bit_length() < _LONG_INT else hex(value)


def _float(values: Writing, name: str, value: float) -> str:
    return repr(value) if math.isfinite(value) else f"float({str(value)!r})"


def _complex(values: Writing, name: str, value: complex) -> str:
    return f"complex({_float(values, name, value.real)}, {_float(values, name, value.imag)})"


def _sequence(values: Writing, name: str, value: Any) -> str:
    inside = values.inside(name, value)
    return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"


def _set(values: Writing, name: str, value: Any) -> str:
    if any(one not in value for one in value):
        raise Unwritten(name, value, MOVED)
    return f"{type(value).__name__}([{', '.join(values.part(f'a member of {name}', one) for one in value)}])"


def _dict(values: Writing, name: str, value: Any) -> str:
    return values.pairs(name, value)


def _of_collections(values: Writing, name: str, value: Any) -> str:
    kind = f"__import__('collections').{type(value).__name__}"
    if isinstance(value, collections.deque):
        return f"{kind}([{values.inside(name, value)}], {value.maxlen})"
    if isinstance(value, collections.defaultdict):
        made = "None" if value.default_factory is None else values.part(f"{name}.default_factory", value.default_factory)
        return f"{kind}({made}, {values.pairs(name, value)})"
    return f"{kind}({values.pairs(name, value)})"


def _namespace(values: Writing, name: str, value: types.SimpleNamespace) -> str:
    return f"__import__('types').SimpleNamespace(**{values.pairs(name, vars(value))})"


def _time(values: Writing, name: str, value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, (datetime.datetime, datetime.time)):
        fields = ["hour", "minute", "second", "microsecond"]
        if isinstance(value, datetime.datetime):
            fields = ["year", "month", "day", *fields]
        zone = f", tzinfo={values.part(f'{name}.tzinfo', value.tzinfo)}" if value.tzinfo is not None else ""
        fold = ", fold=1" if value.fold else ""
        return f"__import__('datetime').{kind}({', '.join(str(getattr(value, one)) for one in fields)}{zone}{fold})"
    return f"__import__('datetime').{repr(value).partition('.')[2]}"


def _zone(values: Writing, name: str, value: Any) -> str:
    if isinstance(value, zoneinfo.ZoneInfo):
        if not value.key:
            raise Unwritten(name, value, " without a key")
        return f"__import__('zoneinfo').ZoneInfo({value.key!r})"
    offset = _time(values, name, value.utcoffset(None))
    return (
        f"__import__('datetime').timezone({offset}, {value.tzname(None)!r})"
        if value != datetime.UTC
        else ("__import__('datetime').timezone.utc")
    )


def _decimal(values: Writing, name: str, value: Any) -> str:
    return f"__import__({type(value).__module__!r}).{value!r}"


def _pattern(values: Writing, name: str, value: Any) -> str:
    return f"__import__('re').compile({value.pattern!r}, {value.flags})"


def _partial(values: Writing, name: str, value: Any) -> str:
    given = [values.part(f"{name}.func", value.func)]
    if value.args:
        given.append(f"*({values.inside(f'{name}.args', value.args)},)")
    if value.keywords:
        given.append(f"**{values.pairs(f'{name}.keywords', value.keywords)}")
    made = f"__import__('functools').partial({', '.join(given)})"
    held = vars(value)
    return f"(lambda made: [made.__dict__.update({values.pairs(name, held)}), made][1])({made})" if held else made


def _new_type(values: Writing, name: str, value: Any) -> str:
    return f"__import__('typing').NewType({value.__name__!r}, {values.part(name, value.__supertype__)})"


def _getter(values: Writing, name: str, value: Any) -> str:
    kind, given = value.__reduce__()
    return f"__import__('operator').{kind.__name__}({values.inside(name, given)})"


def _slice(values: Writing, name: str, value: slice) -> str:
    return f"slice({values.part(name, value.start)}, {values.part(name, value.stop)}, {values.part(name, value.step)})"


def _array(values: Writing, name: str, value: np.ndarray[Any, Any]) -> str:
    return values.array(name, value)


def _random(values: Writing, name: str, value: random.Random) -> str:
    return f"(lambda made: [made.setstate({value.getstate()!r}), made][1])(__import__('random').Random())"


def _random_state(values: Writing, name: str, value: np.random.RandomState) -> str:
    if type(value._bit_generator) is not np.random.MT19937:
        raise Unwritten(name, value, f" of a {type(value._bit_generator).__name__}")
    return f"(lambda made: [made.set_state({_state(value.get_state())}), made][1])(__import__('numpy').random.RandomState())"


def _generator(values: Writing, name: str, value: np.random.Generator) -> str:
    return f"__import__('numpy').random.Generator({values.part(f'{name}.bit_generator', value.bit_generator)})"


def _bit_generator(values: Writing, name: str, value: Any) -> str:
    """Write a bit generator with its state, and with the seeds of the generators that it makes (`spawn`)."""
    kind, seeds = type(value).__name__, getattr(value, "seed_seq", None)
    if getattr(np.random, kind, None) is not type(value):
        raise Unwritten(name, value)
    seed = "" if seeds is None else values.part(f"{name}.seed_seq", seeds)
    made = f"__import__('numpy').random.{kind}({seed})"
    return f"(lambda made: [setattr(made, 'state', {_state(value.state)}), made][1])({made})"


def _seeds(values: Writing, name: str, value: np.random.SeedSequence) -> str:
    given = [f"{own}={_state(getattr(value, own))}" for own in ("entropy", "spawn_key", "pool_size", "n_children_spawned")]
    return f"__import__('numpy').random.SeedSequence({', '.join(given)})"


def _state(value: Any) -> str:
    """Write the state of a generator: numbers, strings, and arrays, dicts and tuples of them."""
    if isinstance(value, np.ndarray):
        return f"__import__('numpy').array({value.tolist()!r}, {value.dtype.str!r})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_state(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_state, value))}{',' if value else ''})"
    return repr(int(value)) if isinstance(value, np.integer) else repr(value)


def _scalar(name: str, value: np.generic) -> str:
    if isinstance(value, (np.str_, np.bytes_)):
        return f"__import__('numpy').{type(value).__name__}({value.item()!r})"
    if not isinstance(value, (np.bool_, np.number, np.datetime64)) or isinstance(value, (np.longdouble, np.clongdouble)):
        raise Unwritten(name, value)
    # as bytes, because the string of a value may mean another value to another version of numpy
    return f"__import__('numpy').frombuffer({value.tobytes()!r}, {value.dtype.str!r})[0]"


def _ufunc(name: str, value: np.ufunc) -> str:
    own = value.__name__
    if getattr(np, own, None) is not value:
        raise Unwritten(name, value)
    return f"__import__('numpy').{own}"


def _logger(name: str, value: logging.Logger) -> str:
    """Write a logger, with its level and the handlers of its records."""
    root = value is logging.getLogger()
    made = f"__import__('logging').getLogger({'' if root else repr(value.name)})"
    does = []
    if value.level != (logging.WARNING if root else logging.NOTSET):
        does.append(f"setLevel({value.level})")
    if not root and not value.propagate:
        does.append("__setattr__('propagate', False)")
    if not root and value.disabled:
        does.append("__setattr__('disabled', True)")
    if value.filters:
        raise Unwritten(name, value, " with a filter")
    for handler in [] if root else value.handlers:
        if type(handler) is not logging.NullHandler:
            does.append(f"addHandler({_handler(name, value, handler)})")
    parts = [made, *(f"{made}.{one}" for one in does), *([] if root or not value.propagate else _basic_config())]
    return f"[{', '.join(parts)}][0]" if len(parts) > 1 else made


def _basic_config() -> list[str]:
    """Write the call of `logging.basicConfig` that has set up the root logger, from which the others have their level and their
    streams; [] if it was not called.
    """
    root = logging.getLogger()
    plain = [one for one in root.handlers if type(one) is logging.StreamHandler and one.stream in (sys.stdout, sys.stderr)]
    form = plain[0].formatter if plain else None
    if not plain or type(form) not in (type(None), logging.Formatter):
        return []
    stream = _STREAMS[plain[0].stream is sys.stderr]
    kind = type(form._style) if form is not None else logging.PercentStyle
    style = {logging.StrFormatStyle: "{", logging.StringTemplateStyle: "$"}.get(kind, "%")
    words = f", format={form._fmt!r}, datefmt={form.datefmt!r}, style={style!r}" if form is not None else ""
    return [f"__import__('logging').basicConfig(level={root.level}, stream=__import__('sys').{stream}{words})"]


def _handler(name: str, value: logging.Logger, handler: Any) -> str:
    stream = [one for one in _STREAMS if getattr(handler, "stream", None) is getattr(sys, one)]
    form = handler.formatter
    style: Any = getattr(form, "_style", None)
    if (
        type(handler) is not logging.StreamHandler
        or not stream
        or handler.filters
        or type(form) not in (type(None), logging.Formatter)
    ):
        raise Unwritten(name, value, f" with a {type(handler).__name__} that only this process has")
    made = f"__import__('logging').StreamHandler(__import__('sys').{stream[0]})"
    does = [f"setLevel({handler.level})"] if handler.level else []
    if form is not None:
        signs = {logging.PercentStyle: "%", logging.StrFormatStyle: "{", logging.StringTemplateStyle: "$"}
        if style is None or type(style) not in signs:
            raise Unwritten(name, value, " with a formatter of its own")
        does.append(f"setFormatter(__import__('logging').Formatter({form._fmt!r}, {form.datefmt!r}, {signs[type(style)]!r}))")
    return f"(lambda made: [{', '.join(['made', *(f'made.{one}' for one in does)])}][0])({made})"


def _of_typing(values: Writing, name: str, value: Any) -> str:
    """Write a type as annotations and classes name it: `List[float]`, a `TypeVar`."""
    if isinstance(value, typing.TypeVar):
        limits = [values.part(f"{name}'s constraint", one) for one in value.__constraints__]
        bound = [f"bound={values.part(name, value.__bound__)}"] if value.__bound__ is not None else []
        variance = [f"{one}=True" for one in ("covariant", "contravariant") if getattr(value, f"__{one}__")]
        return f"__import__('typing').TypeVar({', '.join([repr(value.__name__), *limits, *bound, *variance])})"
    origin, inner = typing.get_origin(value), typing.get_args(value)
    if origin is None:
        own = getattr(value, "_name", None)
        if type(value).__module__ == "typing" and isinstance(own, str) and getattr(typing, own, None) is value:
            return f"__import__('typing').{own}"
        if isinstance(value, typing.ForwardRef):
            return repr(value.__forward_arg__)
        dumped = callable(getattr(type(value), "model_dump", None))
        raise Unwritten(name, value, " (what its model_dump() gives can be)" * dumped)
    if origin in (typing.Union, getattr(types, "UnionType", None)):
        parts, head = inner, "__import__('typing').Union"
    elif origin is typing.Literal:
        parts, head = inner, "__import__('typing').Literal"
    else:
        own = getattr(value, "_name", None)
        parts = inner
        head = f"__import__('typing').{own}" if isinstance(own, str) and hasattr(typing, own) else values.part(name, origin)
        if not parts:
            # typing.List has nothing in brackets, tuple[()] has an empty tuple
            return head if getattr(typing, str(own), None) is value else f"{head}[()]"
    written = ", ".join(f"[{values.inside(name, one)}]" if isinstance(one, list) else values.part(name, one) for one in parts)
    return f"{head}[{written}{',' if len(parts) == 1 and origin is tuple else ''}]"


_WRITERS: tuple[tuple[tuple[Any, ...], Callable[[Writing, str, Any], str]], ...] = (
    ((int,), _int),
    ((bool, str, bytes, type(None), range, bytearray), _plain),
    ((type(Ellipsis), type(NotImplemented)), _plain),
    ((float,), _float),
    ((complex,), _complex),
    ((tuple, list), _sequence),
    ((set, frozenset), _set),
    ((dict,), _dict),
    ((collections.OrderedDict, collections.defaultdict, collections.Counter, collections.deque), _of_collections),
    ((types.SimpleNamespace,), _namespace),
    ((datetime.date, datetime.time, datetime.datetime, datetime.timedelta), _time),
    ((datetime.timezone, zoneinfo.ZoneInfo), _zone),
    ((decimal.Decimal, fractions.Fraction), _decimal),
    ((uuid.UUID,), lambda values, name, value: f"__import__('uuid').{value!r}"),
    ((re.Pattern,), _pattern),
    ((functools.partial,), _partial),
    ((typing.NewType,), _new_type),
    ((operator.itemgetter, operator.attrgetter), _getter),
    (
        (types.MappingProxyType,),
        lambda values, name, value: f"__import__('types').MappingProxyType({values.pairs(name, value)})",
    ),
    ((slice,), _slice),
    ((np.ndarray,), _array),
    ((random.Random,), _random),
    ((np.random.RandomState,), _random_state),
    ((np.random.Generator,), _generator),
    ((np.random.SeedSequence,), _seeds),
    ((object,), lambda values, name, value: "object()"),
)
