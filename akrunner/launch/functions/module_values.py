"""Computes the values that a module's expressions have in the tasks, and compares them with what the module holds in this
process. None of the module's code is run.

Values that can be computed are numbers, strings, lists and dicts of these, members of enums, paths, times, simple dataclasses,
arrays, environment variables, and the module's own functions and classes. If a part of a list, a dict or a dataclass cannot be
computed, its other parts still can.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import copy
import dataclasses
import datetime
import enum
import inspect
import linecache
import math
import operator
import os
import pathlib
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from akrunner.launch.functions import module_code
from akrunner.launch.functions.as_written import MOST, NOTHING, evaluated, lambda_of, value_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
HOLDERS = (dict, list, set, collections.deque)
#: containers that a module may fill itself
FILLED = (*HOLDERS, np.ndarray)
#: functions and classes that may be called to compute a value
_MAKERS = (
    bool, bytes, complex, dict, float, frozenset, int, list, range, set, str, tuple, datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
    pathlib.Path, pathlib.PurePath, pathlib.PurePosixPath, types.SimpleNamespace, os.environ.get, os.getenv, os.path.join, collections.OrderedDict,
    collections.defaultdict, collections.Counter, collections.deque, copy.copy, copy.deepcopy, enumerate, reversed, sorted, sum, zip,
)  # fmt: skip
#: containers that may hold parts that are not known
_OPEN = (dict, list, tuple, types.SimpleNamespace, collections.OrderedDict, collections.deque)
#: function that makes an array -> a function of the same arguments that returns how many items it has
_ARRAYS: dict[Any, Callable[..., int]] = {
    np.array: lambda data, **_: 0,
    np.asarray: lambda data, **_: 0,
    np.zeros: lambda shape, **_: math.prod(np.atleast_1d(shape).tolist()),
    np.ones: lambda shape, **_: math.prod(np.atleast_1d(shape).tolist()),
    np.full: lambda shape, *_, **__: math.prod(np.atleast_1d(shape).tolist()),
    np.arange: lambda *given, **_: len(range(*map(int, given))),
    np.linspace: lambda start, stop, num=50, **_: num,
    np.eye: lambda n, m=None, **_: n * (m or n),
    np.identity: lambda n, **_: n * n,
}
#: functions that a computed expression may call, unless the module has another meaning for their names
_SAFE: dict[str, Any] = {
    one.__name__: one
    for one in (abs, all, any, bool, dict, enumerate, float, frozenset, int, len, list, max, min, reversed, round, set, sorted, str, sum, tuple, zip)
}  # fmt: skip
#: methods and attributes of plain values and their containers, which change nothing
_READ = {
    "astype", "copy", "encode", "endswith", "format", "get", "items", "join", "keys", "lower", "name", "parent", "removeprefix", "removesuffix", "replace",
    "reshape", "rsplit", "split", "splitlines", "startswith", "stem", "strip", "suffix", "title", "tolist", "union", "upper", "values",
}  # fmt: skip
_READABLE = (str, bytes, dict, list, tuple, set, frozenset, pathlib.PurePath, np.ndarray)
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
}  # fmt: skip
_SIMPLE = (
    ast.ListComp, ast.SetComp, ast.DictComp, ast.comprehension, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr, ast.FormattedValue, ast.Call, ast.Attribute, ast.Subscript, ast.Slice,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


@dataclass(frozen=True)
class Defined:
    """Stands for a function, a class or a lambda, by its definition."""

    node: ast.AST


def is_plain(value: Any) -> bool:
    """Whether a value is a number, a string, None or a member of an enum, and cannot be changed in place."""
    return type(value) in _PLAIN or isinstance(value, enum.Enum)


def is_whole(value: Any, defined: bool = False) -> bool:
    """Whether all of a value is known, and no part of it is a definition. Args: defined: a part may be a definition."""
    if isinstance(value, Defined):
        # a dataclass itself
        return defined
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return all(is_whole(one, defined) for one in value)
    if isinstance(value, types.SimpleNamespace) or (dataclasses.is_dataclass(value) and hasattr(value, "__dict__")):
        return all(is_whole(one, defined) for one in vars(value).values())
    return value is not NOTHING


def is_empty(value: Any) -> bool:
    """Whether a container, one of `FILLED`, is empty."""
    return not (value.size if isinstance(value, np.ndarray) else value)


def made(node: Any, module: types.ModuleType, known: dict[str, Any]) -> Any:
    """Return the value that an expression has in the tasks, or a `Defined`; `NOTHING` if it is not known.

    Args:
        known: the names that are bound before it, with their values.
    """
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
        return Defined(node)
    if isinstance(node, ast.Name):
        # names such as `__name__` are each module's own
        return known.get(node.id, value_of(node, {}) if not node.id.startswith("__") else NOTHING)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        parts = [made(one, module, known) for one in node.elts]
        kind = list if isinstance(node, ast.List) else tuple if isinstance(node, ast.Tuple) else set
        if kind is set and not all(map(is_whole, parts)):
            return NOTHING
        with contextlib.suppress(TypeError):
            return kind(parts)
        return NOTHING
    if isinstance(node, ast.Dict):
        pairs: list[tuple[Any, Any]] = []
        for key, value in zip(node.keys, node.values):
            part = made(value, module, known)
            if key is not None:
                pairs.append((made(key, module, known), part))
            elif isinstance(part, dict):
                pairs += part.items()
            else:
                return NOTHING
        with contextlib.suppress(TypeError):
            return NOTHING if any(key is NOTHING for key, _ in pairs) else dict(pairs)
        return NOTHING
    found = NOTHING
    if isinstance(node, ast.Call):
        found = _called(node, module, known)
    elif isinstance(node, ast.Attribute):
        found = _constant_of(node, module)
        if found is NOTHING and node.attr in _READ:
            whose = made(node.value, module, known)
            found = getattr(whose, node.attr, NOTHING) if isinstance(whose, pathlib.PurePath) else NOTHING
    elif isinstance(node, ast.BinOp):
        found = _joined(node, module, known)
    if found is NOTHING and isinstance(node, ast.expr):
        found = value_of(node, {name: one for name, one in known.items() if is_plain(one)})
    return _computed(node, module, known) if found is NOTHING and isinstance(node, ast.expr) else found


def _joined(node: ast.BinOp, module: types.ModuleType, known: dict[str, Any]) -> Any:
    """Return the result of an operator between two containers, paths, times or arrays; `NOTHING` if it is not known."""
    left, right = made(node.left, module, known), made(node.right, module, known)
    does = _OPERATORS.get(type(node.op))
    # lists of definitions can be joined, but no text made of a definition
    defined = not is_plain(left)
    if does is None or not is_whole(left, defined) or not is_whole(right, defined) or (is_plain(left) and is_plain(right)):
        return NOTHING
    sizes = [len(one) if isinstance(one, (list, tuple)) else one if isinstance(one, int) else 1 for one in (left, right)]
    if does is operator.mul and math.prod(sizes) > MOST:
        return NOTHING
    with contextlib.suppress(Exception):
        return does(left, right)
    return NOTHING


def _computed(node: ast.expr, module: types.ModuleType, known: dict[str, Any]) -> Any:
    """Return the value of an f-string, a comprehension, or a part of something; `NOTHING` if it is not known."""
    inner = list(ast.walk(node))
    own = {one.id for one in inner if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    around = {name: one for name, one in [*_SAFE.items(), ("range", _range)] if name not in vars(module)}
    callable_ = {*around}
    around.update(
        {one.id: known[one.id] for one in inner if isinstance(one, ast.Name) and is_whole(known.get(one.id, NOTHING))}
    )
    for one in inner:
        if not isinstance(one, _SIMPLE) or (isinstance(one, ast.Name) and one.id not in own and one.id not in around):
            return NOTHING
        if isinstance(one, ast.Attribute) and one.attr not in _READ:
            return NOTHING
        method = isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
        if isinstance(one, ast.Call) and not method and not (isinstance(one.func, ast.Name) and one.func.id in callable_ - own):
            return NOTHING
    return evaluated(node, around)


def _range(*args: int) -> range:
    found = range(*args)
    if len(found) > MOST:
        raise ValueError("too many")
    return found


def _constant_of(node: ast.Attribute, module: types.ModuleType) -> Any:
    """Return a member of an enum, or a class or plain value of the standard library or numpy, which no program sets; otherwise
    `NOTHING`.
    """
    around, value = _looked_up(node.value, module), _looked_up(node, module)
    if isinstance(around, enum.EnumMeta) and isinstance(value, around):
        return value
    installed = isinstance(around, types.ModuleType) and around.__name__.partition(".")[0] in (
        *sys.stdlib_module_names,
        "numpy",
    )
    return value if installed and (isinstance(value, type) or is_plain(value)) else NOTHING


def _called(node: ast.Call, module: types.ModuleType, known: dict[str, Any]) -> Any:
    function = _looked_up(node.func, module)
    values = [made(one, module, known) for one in node.args]
    named = {str(one.arg): made(one.value, module, known) for one in node.keywords}
    if any(one.arg is None for one in node.keywords):
        return NOTHING
    with contextlib.suppress(Exception):
        if isinstance(node.func, ast.Attribute) and function is NOTHING and node.func.attr in _READ:
            whose = made(node.func.value, module, known)
            readable = isinstance(whose, _READABLE) and all(map(is_whole, [whose, *values, *named.values()]))
            return getattr(whose, node.func.attr)(*values, **named) if readable else NOTHING
        if _is_simple(function):
            return _instance(function, values, named)
        if any(function is one for one in _OPEN):
            return function(*values, **named)
        if not all(map(is_whole, [*values, *named.values()])):
            return NOTHING
        sized = next((size for maker, size in _ARRAYS.items() if function is maker), None)
        if sized is not None:
            return _array(function, values, named) if sized(*values, **named) <= MOST else NOTHING
        if any(function == one for one in _MAKERS) or _is_named_tuple(function):
            return function(*values, **named)
    return NOTHING


def _array(function: Any, values: list[Any], named: dict[str, Any]) -> Any:
    found: np.ndarray[Any, Any] = function(*values, **named)
    return NOTHING if found.dtype.hasobject else found


def _is_named_tuple(kind: Any) -> bool:
    if not isinstance(kind, type) or not issubclass(kind, tuple) or not hasattr(kind, "_fields"):
        return False
    new = getattr(kind.__new__, "__code__", None)
    # its code is generated by collections, and in no file
    return new is not None and new.co_filename.startswith("<")


def _by_factory(factory: Any) -> Any:
    """Return what `field(default_factory=...)` makes; `NOTHING` if it is not known."""
    if factory in (list, dict, set):
        return factory()
    if _is_simple(factory):
        return _instance(factory, [], {})
    module = sys.modules.get(str(getattr(factory, "__module__", "")))
    if isinstance(factory, types.FunctionType) and factory.__name__ == "<lambda>" and module is not None:
        node = lambda_of(factory, "".join(linecache.getlines(factory.__code__.co_filename)))
        return made(node.body, module, {}) if node is not None else NOTHING
    return NOTHING


def _instance(kind: Any, values: list[Any], named: dict[str, Any]) -> Any:
    """Return the instance that a call of a simple dataclass makes. Raises: TypeError: the arguments do not fit."""
    fields = dataclasses.fields(kind)
    given = inspect.signature(kind.__init__).bind(None, *values, **named).arguments
    held: dict[str, Any] = {}
    for one in fields:
        if one.name in given:
            held[one.name] = given[one.name]
        elif one.default is not dataclasses.MISSING:
            held[one.name] = one.default
        elif one.default_factory is not dataclasses.MISSING:
            held[one.name] = _by_factory(one.default_factory)
    found = object.__new__(kind)
    if not hasattr(found, "__dict__") and not all(map(is_whole, held.values())):
        return NOTHING
    for name, value in held.items():
        object.__setattr__(found, name, value)
    return found


def _looked_up(node: ast.expr, module: types.ModuleType) -> Any:
    """Return what a name, or a chain of names (os.environ.get), means in a module; `NOTHING` if it is not known."""
    if isinstance(node, ast.Name):
        return vars(module).get(node.id, value_of(node, {}))
    around = _looked_up(node.value, module) if isinstance(node, ast.Attribute) else NOTHING
    simple = isinstance(around, (types.ModuleType, type)) or around is os.environ
    # asking a module for an attribute it does not have yet may make it import something, or warn
    there = not isinstance(around, types.ModuleType) or (isinstance(node, ast.Attribute) and node.attr in vars(around))
    return getattr(around, node.attr, NOTHING) if isinstance(node, ast.Attribute) and simple and there else NOTHING


def _is_simple(kind: Any) -> bool:
    """Whether it is a dataclass whose instances are made by its fields alone."""
    if not inspect.isclass(kind) or not dataclasses.is_dataclass(kind) or hasattr(kind, "__post_init__"):
        return False
    init = vars(kind).get("__init__")
    # its code is generated by dataclasses, and in no file
    written = isinstance(init, types.FunctionType) and init.__code__.co_filename == "<string>"
    return written and kind.__new__ is object.__new__


def is_same(now: Any, then: Any, module: types.ModuleType) -> bool:
    """Whether the value that a module holds (`now`) is the one that its file makes (`then`); True if the latter is not
    known.
    """
    if then is NOTHING:
        return True
    if isinstance(then, Defined):
        return _is_defined(now, then.node, module)
    if isinstance(then, enum.Enum):
        # the module of an enum may have been imported again
        return isinstance(now, enum.Enum) and str(now) == str(then)
    if type(now) is not type(then):
        return False
    if isinstance(then, collections.defaultdict) and then.default_factory is not None:
        # looking up a key of a defaultdict adds the key
        bare = then.default_factory()
        now = {key: value for key, value in now.items() if key in then or value != bare}
    if isinstance(then, dict):
        # in the same order, because a script may rely on it
        return len(now) == len(then) and all(
            is_same(*one, module) and is_same(*other, module)
            for one, other in zip(zip(now, then), zip(now.values(), then.values()))
        )
    if isinstance(then, (list, tuple)):
        return len(now) == len(then) and all(is_same(one, other, module) for one, other in zip(now, then))
    if isinstance(then, types.SimpleNamespace) or (dataclasses.is_dataclass(then) and hasattr(then, "__dict__")):
        return is_same(vars(now), vars(then), module)
    if isinstance(then, (set, frozenset)):
        return bool(now == then)
    if isinstance(then, np.ndarray):
        return bool(now.dtype == then.dtype and now.shape == then.shape and now.tobytes() == then.tobytes())
    return repr(now) == repr(then)


def _is_defined(now: Any, node: Any, module: types.ModuleType) -> bool:
    """Whether a name still means what its definition has made. A decorated class always counts as such."""
    if isinstance(node, ast.ClassDef):
        return bool(node.decorator_list) or (inspect.isclass(now) and now.__qualname__ == node.name)
    if not isinstance(now, types.FunctionType):
        return False
    file = now.__code__.co_filename
    elsewhere = file != "<string>" and os.path.abspath(file) != os.path.abspath(str(module.__file__))
    if isinstance(node, ast.Lambda):
        return not elsewhere and now.__code__.co_name == "<lambda>" and module_code.is_at(now, node.lineno)
    return now.__code__.co_name == node.name and not elsewhere
