"""Whether the source of a function or a class, which is all that goes to other processes, still says what it is in this one."""

from __future__ import annotations
import __future__

import abc
import ast
import builtins
import collections
import enum
import functools
import importlib.machinery
import inspect
import os
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from akrunner.errors import ScriptError
from akrunner.launch.literals import INSTEAD

#: where nothing is known; None may be a value
NOTHING = object()
#: of a code, what it does
_PARTS = (
    "co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_argcount", "co_kwonlyargcount", "co_posonlyargcount", "co_flags",
)  # fmt: skip
#: lists within lists
_DEEPEST = 10
#: what decorators make of a method, and Python itself of those of some names
_MADE_BY: dict[str, Any] = {
    "property": property, "staticmethod": staticmethod, "classmethod": classmethod,
    "__new__": staticmethod, "__init_subclass__": classmethod, "__class_getitem__": classmethod,
}  # fmt: skip


def bound(node: Any, alias: ast.alias) -> str:
    return alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)


def parsed(text: str) -> ast.Module:
    """A module's text, or a cell's; one with a magic has nothing in it."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def changed_on_disk(thing: Any, file: str) -> ScriptError:
    return ScriptError(
        f"script: {file} has changed since {thing.__name__}() was imported from it; import it again (importlib.reload), or restart, or give a script's path"
    )


def check_on_disk(thing: Any, file: str) -> None:
    """Raises: ScriptError: the file has another text for it by now than this process runs."""
    module = sys.modules.get(thing.__module__)
    spec = getattr(module, "__spec__", None)
    # a program that is run by its path has none
    plain = thing.__module__ == "__main__" and spec is None and getattr(module, "__file__", None) == file
    # other loaders may change what they load, as those of tests and of checkers of types do
    if not (plain or type(getattr(spec, "loader", None)) is importlib.machinery.SourceFileLoader) or not os.path.isfile(file):
        return
    theirs = [thing] if isinstance(thing, types.FunctionType) else list(vars(thing).values())
    try:
        with open(file, "rb") as stream:
            text = stream.read()
        for one in theirs:
            if isinstance(one, types.FunctionType) and one.__module__ == thing.__module__ and one.__code__.co_filename == file:
                if not any(same_code(one.__code__, code) for code in _codes_of(text, one.__code__)):
                    raise changed_on_disk(thing, file)
    except (OSError, SyntaxError, ValueError):
        raise changed_on_disk(thing, file) from None


def _codes_of(source: bytes, of: types.CodeType) -> list[types.CodeType]:
    """All codes of a file, made as one of it was. Raises: SyntaxError, ValueError."""
    # whoever runs a program's text may hand its own on to it
    return _compiled(source, of.co_filename, of.co_flags & __future__.annotations.compiler_flag)


@functools.lru_cache(maxsize=4)
def _compiled(source: bytes, file: str, flags: int) -> list[types.CodeType]:
    """Many functions of a file are looked at, one after another."""
    return _codes(compile(source, file, "exec", flags, dont_inherit=True))


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """A code and all within."""
    inner = [one for const in code.co_consts if isinstance(const, types.CodeType) for one in _codes(const)]
    return [code, *inner]


def same_code(one: Any, other: Any) -> bool:
    """Whether two codes, or constants, do the same, wherever they stand."""
    if type(one) is not type(other):
        return False
    if isinstance(one, types.CodeType):
        return all(getattr(one, name) == getattr(other, name) for name in _PARTS) and same_code(one.co_consts, other.co_consts)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same_code, one, other))
    # a set shows what it holds in any order
    return bool(one == other) if isinstance(one, frozenset) else repr(one) == repr(other)


def lambda_of(value: types.FunctionType, text: str) -> ast.Lambda | None:
    """The expression in a file's or a cell's text that has made a lambda. None: the text has no such, or has changed."""
    try:
        codes = _codes_of(text.encode(), value.__code__)
    except (SyntaxError, ValueError):
        return None
    if not any(same_code(value.__code__, one) for one in codes):
        return None
    # what belongs to no expression, as the start of the code, has no width
    places = [
        (line, first) for line, _, first, end in value.__code__.co_positions() if line is not None and first is not None and end
    ]
    around = [
        node
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.Lambda)
        and node.lineno == value.__code__.co_firstlineno
        and (node.body.lineno, node.body.col_offset) <= min(places, default=(node.body.lineno, node.body.col_offset))
        and max(places, default=(0, 0)) <= (node.body.end_lineno or 0, node.body.end_col_offset or 0)
    ]
    if not places and len(around) > 1:
        # some Pythons keep no place of a constant
        return None
    # of those within each other, the innermost
    return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)


def check(thing: Any, text: str, first: int) -> None:
    """Args: text: its source; first: the line of its file that this begins at, 0: nobody knows.

    Raises: ScriptError: a function or a class has something by now that its source, which is all that goes to the tasks, does not say.
    """
    body = ast.parse(text).body
    if len(body) != 1:
        return
    (whole,) = body
    if isinstance(whole, ast.ClassDef) and _is_as_written(thing, whole):
        _check_class(thing, whole, first)


def added(thing: Any, value: Any, text: str) -> dict[str, Any]:
    """The attributes of a function or a class that its source does not say: they were set behind it, or by what decorates it, and since. Args: value: what its
    name means, which may be it, wrapped; text: its source.

    Raises: ScriptError: one of them is code.
    """
    body = ast.parse(text).body
    if len(body) != 1 or isinstance(value, (enum.EnumMeta, tuple)):
        return {}
    if not _is_as_written(thing, body[0]) or (inspect.isclass(thing) and _is_hooked(thing)):
        settable = not any("__setattr__" in vars(kind) for kind in type(value).__mro__ if kind not in (type, object))
        # code that decorates it makes the rest again
        return {
            name: one
            for name, one in getattr(value, "__dict__", {}).items()
            if settable and name[0] != "_" and _is_plain(one, 0)
        }
    found = {name: vars(thing)[name] for name in (_unsaid(thing, body[0]) if inspect.isclass(thing) else vars(thing))}
    for name, value in found.items():
        if callable(value) or hasattr(type(value), "__get__"):
            raise _set_behind(thing, name)
    return found


def set_in_members(kind: Any) -> dict[str, dict[str, Any]]:
    """Member of an enum -> its attributes: they may have been set behind the definition, which does not say them. Only numbers, texts, and lists and dicts of these:
    the definition makes the rest again."""
    found: dict[str, dict[str, Any]] = {}
    members: Mapping[str, Any] = kind.__members__ if isinstance(kind, enum.EnumMeta) else {}
    for name, member in members.items():
        held = {key: one for key, one in vars(member).items() if not (key[0] == key[-1] == "_") and _is_plain(one, 0)}
        if held:
            found[name] = held
    return found


def _is_plain(value: Any, depth: int) -> bool:
    """Whether it is numbers, texts, or lists and dicts of these."""
    if type(value) in (list, tuple, set, frozenset, dict):
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        return depth < _DEEPEST and all(_is_plain(one, depth + 1) for one in inside)
    return type(value) in (bool, int, float, complex, str, bytes, type(None))


def _is_as_written(thing: Any, whole: ast.stmt) -> bool:
    """Whether a definition has made it, and nothing else had a part in it."""
    if isinstance(whole, ast.FunctionDef) and isinstance(thing, types.FunctionType):
        return not whole.decorator_list
    return (
        isinstance(whole, ast.ClassDef)
        and inspect.isclass(thing)
        and (not whole.decorator_list or (len(whole.decorator_list) == 1 and "__dataclass_fields__" in vars(thing)))
        and type(thing) in (type, abc.ABCMeta)
        and not issubclass(thing, tuple)
    )


def mangled(name: str, kind: type) -> str:
    """A name that stands in a class, as Python keeps it."""
    own = kind.__name__.lstrip("_")
    return f"_{own}{name}" if name.startswith("__") and not name.endswith("__") and own else name


def _unsaid(kind: type, whole: ast.AST) -> list[str]:
    """The attributes of a class that its source does not say."""
    said: set[str] = set()
    for node in ast.walk(whole):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            said.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            said.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            said.update(bound(node, alias) for alias in node.names)
    if _is_hooked(kind):
        return []
    # what has two underscores was mangled, and __slots__ makes members
    return [
        name
        for name, value in vars(kind).items()
        if name not in said
        and "__" not in name
        and not name.startswith("_abc_")
        and type(value) is not types.MemberDescriptorType
    ]


def _is_hooked(kind: type) -> bool:
    return any("__init_subclass__" in vars(base) for base in kind.__mro__[1:-1])


def _check_class(kind: type, whole: ast.ClassDef, first: int) -> None:
    deleted = {one.id for one in ast.walk(whole) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Del)}
    hooked, fields = _is_hooked(kind), vars(kind).get("__dataclass_fields__", {})
    for name in _replaced(kind, whole, first):
        raise _set_behind(kind, name)
    for node in whole.body:
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = (
            [node.name]
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            else [one.id for one in targets if isinstance(one, ast.Name)]
        )
        for name in names:
            if mangled(name, kind) not in vars(kind) and name not in deleted and name not in fields and not hooked:
                raise ScriptError(
                    f"script: {kind.__name__}.{name} was deleted behind the definition of {kind.__name__}, whose source alone goes to the tasks; {INSTEAD}"
                )


def _set_behind(thing: Any, name: str) -> ScriptError:
    own = thing.__name__ if inspect.isclass(thing) else f"{thing.__name__}()"
    return ScriptError(
        f"script: {thing.__name__}.{name} was set behind the definition of {own}, whose source alone goes to the tasks; {INSTEAD}"
    )


def _replaced(kind: type, whole: ast.ClassDef, first: int) -> Iterator[str]:
    """The methods, properties and such that are no longer what stands in the class. Args: first: as of `check`."""
    nodes = [one for one in whole.body if isinstance(one, ast.FunctionDef)]
    names = [node.name for node in nodes]
    codes = []
    for node in nodes:
        made: Any = _MADE_BY.get(node.name, types.FunctionType)
        if node.decorator_list:
            (decorator, *more) = node.decorator_list
            made = _MADE_BY.get(decorator.id) if isinstance(decorator, ast.Name) and not more else None
        value = vars(kind).get(mangled(node.name, kind), NOTHING)
        # of several definitions by one name, the class has the last; what other decorators make nobody knows
        if names.count(node.name) > 1 or made is None or value is NOTHING:
            continue
        code = getattr(getattr(value, "fget", getattr(value, "__func__", value)), "__code__", None)
        if type(value) is not made or code is None or code.co_name != node.name:
            yield node.name
        else:
            line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            codes.append((node.name, code.co_filename, code.co_firstlineno - line))
    places = collections.Counter((file, at) for _, file, at in codes)
    for name, file, at in codes:
        if (first and at != first - 1) or (file, at) != places.most_common(1)[0][0]:
            yield name


def value_of(node: ast.expr, known: dict[str, Any]) -> Any:
    """What an expression of literals and names is, `NOTHING` if it calls or looks up anything."""
    if isinstance(node, ast.Name):
        return known.get(node.id, getattr(builtins, node.id, NOTHING))
    simple = (
        ast.Constant,
        ast.Name,
        ast.Tuple,
        ast.List,
        ast.Dict,
        ast.Set,
        ast.UnaryOp,
        ast.BinOp,
        ast.Load,
        ast.operator,
        ast.unaryop,
    )
    for one in ast.walk(node):
        if not isinstance(one, simple):
            return NOTHING
        if isinstance(one, ast.Name) and not isinstance(known.get(one.id), (bool, int, float, str, bytes)):
            return NOTHING
    try:
        return eval(compile(ast.Expression(node), "<default>", "eval"), {"__builtins__": {}}, known)
    except Exception:
        return NOTHING
