"""The present values of a function's defaults and a class's attributes, where their expressions may come to other values in the
tasks.

::

    RATE = 0.1
    def train(task_config, rate=RATE, run=uuid4()): ...     rate is 0.1, also if RATE is 0.5 by now; run is the same
                                                            in every task
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from akrunner.errors import ScriptError
from akrunner.launch.functions.as_written import NOTHING, mangled, value_of
from akrunner.launch.functions.literals import INSTEAD

#: how deep lists and dicts may be nested in each other
_DEEPEST = 10


@dataclass(frozen=True)
class Live:
    """A value that an expression of a definition has made.

    Attributes:
        node: the expression.
        value: the value.
        name: what errors call it.
        settled: whether the expression certainly comes to another value by now.
    """

    node: ast.expr
    value: Any
    name: str
    settled: bool


def values_of(thing: Any, text: str, known: dict[str, Any]) -> list[Live]:
    """Return the values of a definition that its source alone does not say.

    Args:
        thing: a function or a class.
        text: its source.
        known: the names it may use, with their values.
    Raises:
        ScriptError: a function has other defaults, or a dataclass other defaults of fields, than its source.
    """
    body = ast.parse(text).body
    if len(body) != 1:
        return []
    if isinstance(body[0], ast.FunctionDef) and isinstance(thing, types.FunctionType):
        return list(_of_function(thing, body[0].args, known, thing.__name__))
    if isinstance(body[0], ast.ClassDef) and inspect.isclass(thing):
        return list(_of_class(thing, body[0], known, thing.__name__))
    return []


def is_made_anew(value: Any, of: Any, depth: int = 0) -> bool:
    """Whether a value that cannot be written may as well be made again in each task: a lock, a layer, or a list that holds one
    of these.

    Numbers and strings may not, because they may come out different in each task; nor may instances of the user's own classes
    that have attributes, unless they can be called.

    Args:
        of: the function or class that the value belongs to.
    """
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        inside = value.values() if isinstance(value, dict) else value
        return depth < _DEEPEST and any(is_made_anew(one, of, depth + 1) for one in inside)
    if isinstance(value, (int, float, complex, str, bytes, bytearray, np.ndarray, np.generic, type(None))):
        return False
    return type(value).__module__ not in ("__main__", of.__module__) or not getattr(value, "__dict__", None) or callable(value)


def in_place(text: str, words: dict[ast.expr, str]) -> str:
    """Return a source text with some of its expressions replaced; each line stays where it was.

    Args:
        words: expression -> its replacement.
    """
    lines = text.encode().split(b"\n")
    for node in sorted(words, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        said = words[node].encode()
        if first == last:
            lines[first] = head + said + tail
        else:
            lines[first : last + 1] = [head + b"(" + said, *[b""] * (last - first - 1), b")" + tail]
    return b"\n".join(lines).decode()


def _of_function(function: types.FunctionType, arguments: ast.arguments, known: dict[str, Any], own: str) -> Iterator[Live]:
    named = [*arguments.posonlyargs, *arguments.args]
    values, keywords = function.__defaults__ or (), function.__kwdefaults__ or {}
    written = {one.arg for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is not None}
    if len(values) != len(arguments.defaults) or set(keywords) != written:
        raise ScriptError(
            f"script: the defaults of {own}() were set behind its definition, and its source alone goes to the tasks; {INSTEAD}"
        )
    given = list(zip(named[len(named) - len(values) :], arguments.defaults, values))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        if default is not None:
            given.append((argument, default, keywords[argument.arg]))
    for argument, default, value in given:
        yield from _unless_said(default, value, known, f"the default {argument.arg} of {own}()")


def _of_class(kind: type, whole: ast.ClassDef, known: dict[str, Any], own: str) -> Iterator[Live]:
    if issubclass(kind, enum.Enum):
        return
    there = {**vars(kind), **getattr(kind, "_field_defaults", {})}
    for field in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) and "__dataclass_fields__" in there else ():
        if field.default is not dataclasses.MISSING:
            attribute = there.get(field.name, field.default)
            # with slots, a class has descriptors by the names of its fields
            if attribute is not field.default and not isinstance(attribute, types.MemberDescriptorType):
                raise ScriptError(
                    f"script: {own}.{field.name} was set behind the definition of {own}, whose instances have the value that "
                    f"it had then; {INSTEAD}"
                )
            there[field.name] = field.default
    # if a name is bound more than once, the class keeps only its last value
    bound = [name for node in whole.body for name in _bound(node)]
    around = dict(known)
    for at, node in enumerate(whole.body):
        names = _bound(node)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            (name,) = names
            if any(isinstance(one, type(node)) and one.name == name for one in whole.body[at + 1 :]):
                # the class keeps only the last definition, as with overloads
                continue
            inner = _within(node, there.get(mangled(name, kind)))
            if isinstance(node, ast.ClassDef) and inspect.isclass(inner):
                yield from _of_class(inner, node, around, f"{own}.{name}")
            elif isinstance(node, ast.FunctionDef) and isinstance(inner, types.FunctionType):
                yield from _of_function(inner, node.args, around, f"{own}.{name}")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            values = [there.get(mangled(name, kind), NOTHING) for name in names]
            # for attributes that a decorator has turned into slots, the text says what they begin with
            values = [NOTHING if isinstance(one, types.MemberDescriptorType) else one for one in values]
            expression, value = _default_of_field(node.value), _one(node, values)
            if value is not NOTHING and all(bound.count(name) == 1 for name in names) and expression is not None:
                if isinstance(expression, ast.Lambda) and isinstance(value, types.FunctionType):
                    yield from _of_function(value, expression.args, around, f"{own}.{names[0]}")
                else:
                    yield from _unless_said(expression, value, around, f"{own}.{', '.join(names)}")
        for name in names:
            around[name] = there.get(mangled(name, kind), NOTHING)
            if around[name] is NOTHING:
                del around[name]


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a class binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)]


def _within(node: Any, value: Any) -> Any:
    """Return the function that a definition in a class has made, whatever its decorators made of it; None if it cannot be
    told.
    """
    if isinstance(node, ast.ClassDef):
        return value
    if isinstance(value, property):
        said = [one.attr for one in node.decorator_list if isinstance(one, ast.Attribute)]
        value = value.fset if "setter" in said else value.fdel if "deleter" in said else value.fget
    elif isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, functools.cached_property):
        value = value.func
    value = inspect.unwrap(value) if callable(value) else value
    own = isinstance(value, types.FunctionType) and value.__code__.co_name == node.name
    # of several definitions with one name, the class keeps only one
    return value if own and value.__code__.co_argcount == len(node.args.posonlyargs) + len(node.args.args) else None


def _one(node: Any, values: list[Any]) -> Any:
    """Return the value that the right side of an assignment had; `NOTHING` if the names it has bound do not say it."""
    if not values or any(value is NOTHING for value in values):
        return NOTHING
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if all(isinstance(one, ast.Name) for one in targets):
        return values[0] if all(value is values[0] for value in values) else NOTHING
    (first, *more) = targets
    if more or not isinstance(first, ast.Tuple) or not all(isinstance(one, ast.Name) for one in first.elts):
        return NOTHING
    return tuple(values)


def _default_of_field(node: ast.expr) -> ast.expr | None:
    """Return the expression of an attribute's value; for `field(default=x)` that is x, or None if it has no default."""
    called = node.func if isinstance(node, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    if name != "field" or not isinstance(node, ast.Call):
        return node
    return next((one.value for one in node.keywords if one.arg == "default"), None)


def _unless_said(node: ast.expr, value: Any, known: dict[str, Any], name: str) -> Iterator[Live]:
    said = _says(node, value, known)
    if not said:
        yield Live(node, value, name, said is False)


def _says(node: ast.expr, value: Any, known: dict[str, Any]) -> bool | None:
    """Whether an expression comes to this value; None: that cannot be told without running it."""
    now = value_of(node, known)
    if now is NOTHING:
        now = _looked_up(node, known)
    if now is not NOTHING:
        return _is_same(now, value)
    if any(isinstance(one, ast.Starred) for one in ast.iter_child_nodes(node)):
        return None
    if isinstance(node, (ast.List, ast.Tuple)) and isinstance(value, (list, tuple)):
        parts = [] if len(node.elts) != len(value) else [_says(one, other, known) for one, other in zip(node.elts, value)]
    elif isinstance(node, ast.Dict) and type(value) is dict and len(node.values) == len(value) and None not in node.keys:
        parts = [
            _says(one, other, known)
            for key, item in zip(zip(node.keys, node.values), value.items())
            for one, other in zip(key, item)
            if one
        ]
    else:
        return None
    return len(parts) == len(value) * (2 if isinstance(node, ast.Dict) else 1) and (True if all(parts) else None)


def _looked_up(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return what an expression such as tf.nn.relu finds by name in a module, a class or a dict; `NOTHING` if it is no such
    expression.
    """
    if isinstance(node, ast.Name):
        return known.get(node.id, NOTHING)
    around: Any = _looked_up(node.value, known) if isinstance(node, (ast.Attribute, ast.Subscript)) else NOTHING
    if isinstance(node, ast.Attribute):
        return getattr(around, node.attr, NOTHING) if isinstance(around, (types.ModuleType, type)) else NOTHING
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(around) in (dict, list, tuple):
        try:
            return around[node.slice.value]
        except (LookupError, TypeError):
            return NOTHING
    return NOTHING


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, (set, frozenset)) and type(one) is type(other):
        # repr() of a set lists its items in any order
        return bool(one == other) and sorted(map(repr, one)) == sorted(map(repr, other))
    if type(one) is not type(other) or repr(one) != repr(other):
        return False
    return not isinstance(one, np.ndarray) or (one.dtype == other.dtype and one.tobytes() == other.tobytes())
