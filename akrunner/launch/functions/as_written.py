"""Checks whether the source of a function or a class, which is all that goes to other processes, still says what the object is
in this one.
"""

from __future__ import annotations
import __future__

import abc
import ast
import builtins
import collections
import copy
import enum
import functools
import importlib.machinery
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from akrunner.errors import ScriptError
from akrunner.launch.functions.literals import INSTEAD

#: stands for a value that is not known, because None may be a value
NOTHING = object()
#: values of more items than this, or integers of more bits, are not computed
MOST = 100_000
#: the attributes of a code object that say what it does
_PARTS = (
    "co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_argcount", "co_kwonlyargcount", "co_posonlyargcount", "co_flags",
)  # fmt: skip
#: how deep lists and dicts may be nested in each other
_DEEPEST = 10
#: decorator, or name of a method that Python itself converts -> the type of the object it becomes
_MADE_BY: dict[str, Any] = {
    "property": property, "staticmethod": staticmethod, "classmethod": classmethod,
    "__new__": staticmethod, "__init_subclass__": classmethod, "__class_getitem__": classmethod,
}  # fmt: skip


def bound(node: Any, alias: ast.alias) -> str:
    return alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)


def parsed(text: str) -> ast.Module:
    """Parse the text of a module or of a notebook's cell; a text that does not parse, as a cell with a magic, counts as
    empty.
    """
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


@functools.lru_cache(maxsize=64)
def tree_of(text: str) -> ast.Module:
    """As `parsed`, of the program's own text, which is asked about once for each name that a function uses. Nobody may change the tree."""
    return parsed(text)


def changed_on_disk(thing: Any, file: str) -> ScriptError:
    return ScriptError(
        f"script: {file} has changed since {thing.__name__}() was imported from it; import it again (importlib.reload), or "
        "restart, or give a script's path"
    )


def check_on_disk(thing: Any, file: str) -> None:
    """Check that a file still has the code of a function or class that this process imported from it.

    Raises:
        ScriptError: the file's code for it is no longer the code that this process runs, or the file cannot be read or parsed.
    """
    module = sys.modules.get(thing.__module__)
    spec = getattr(module, "__spec__", None)
    # a program that is run by its path has no module spec
    plain = thing.__module__ == "__main__" and spec is None and getattr(module, "__file__", None) == file
    # other loaders may change the code they load, as those of test runners and of type checkers do
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
    """Return all code objects of a file, compiled with the same `__future__` flag as the code `of`.

    Raises:
        SyntaxError, ValueError: the file does not compile.
    """
    # a tool that runs a program's text may compile it with the tool's own `__future__` flags
    return _compiled(source, of.co_filename, of.co_flags & __future__.annotations.compiler_flag)


@functools.lru_cache(maxsize=4)
def _compiled(source: bytes, file: str, flags: int) -> list[types.CodeType]:
    """Compile a file's source; cached, because many functions of one file are looked at one after another."""
    return _codes(compile(source, file, "exec", flags, dont_inherit=True))


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """Return a code object and all code objects within it."""
    inner = [one for const in code.co_consts if isinstance(const, types.CodeType) for one in _codes(const)]
    return [code, *inner]


def same_code(one: Any, other: Any) -> bool:
    """Whether two code objects, or two constants, do the same, wherever they stand in their files."""
    if type(one) is not type(other):
        return False
    if isinstance(one, types.CodeType):
        return all(getattr(one, name) == getattr(other, name) for name in _PARTS) and same_code(one.co_consts, other.co_consts)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same_code, one, other))
    # repr() of a set lists its items in any order
    return bool(one == other) if isinstance(one, frozenset) else repr(one) == repr(other)


def lambda_of(value: types.FunctionType, text: str) -> ast.Lambda | None:
    """Find the expression in a file's or a cell's text that has made a lambda.

    Returns:
        The expression; None if the text has no such lambda or has changed, or if several lambdas may be the one.
    """
    try:
        codes = _codes_of(text.encode(), value.__code__)
    except (SyntaxError, ValueError):
        return None
    if not any(same_code(value.__code__, one) for one in codes):
        return None
    # instructions that belong to no expression, such as the start of the code, have no width
    places = [
        (line, first) for line, _, first, end in value.__code__.co_positions() if line is not None and first is not None and end
    ]
    around = [
        node
        for node in ast.walk(tree_of(text))
        if isinstance(node, ast.Lambda)
        and node.lineno == value.__code__.co_firstlineno
        and (node.body.lineno, node.body.col_offset) <= min(places, default=(node.body.lineno, node.body.col_offset))
        and max(places, default=(0, 0)) <= (node.body.end_lineno or 0, node.body.end_col_offset or 0)
    ]
    if not places and len(around) > 1:
        # some Python versions keep no position for a constant
        return None
    # of lambdas within each other, take the innermost
    return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)


def check(thing: Any, text: str, first: int) -> None:
    """Check that the methods and attributes of a class are still those that its source defines. Functions are not checked here,
    nor classes that a decorator (other than `dataclass`) or a metaclass may have changed.

    Args:
        text: the source of the function or class.
        first: the line of its file at which the source begins; 0: not known.
    Raises:
        ScriptError: a method was replaced, or an attribute deleted, after the class was defined; its source, which is all that
            goes to the tasks, does not say so.
    """
    body = ast.parse(text).body
    if len(body) != 1:
        return
    (whole,) = body
    if isinstance(whole, ast.ClassDef) and _is_as_written(thing, whole):
        _check_class(thing, whole, first)


def added(thing: Any, value: Any, text: str) -> dict[str, Any]:
    """Return the attributes of a function or a class that its source does not say: they were set after the definition, or by a
    decorator.

    Of an object that a decorator or an `__init_subclass__` had a part in, only public attributes that are numbers, strings, or
    lists and dicts of these are returned: the decorator or the hook makes the rest again in the tasks.

    Args:
        value: the object behind its name, which may be `thing` itself or a wrapper of it.
        text: its source.
    Raises:
        ScriptError: one of the attributes is code.
    """
    body = ast.parse(text).body
    if len(body) != 1 or isinstance(value, (enum.EnumMeta, tuple)):
        return {}
    if not _is_as_written(thing, body[0]) or (inspect.isclass(thing) and _is_hooked(thing)):
        settable = not any("__setattr__" in vars(kind) for kind in type(value).__mro__ if kind not in (type, object))
        # the code that decorates it makes the rest again
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
    """Return, for each member of an enum, its attributes: they may have been set after the definition, which does not say them.

    Only numbers, strings, and lists and dicts of these are returned: the definition makes the rest again.
    """
    found: dict[str, dict[str, Any]] = {}
    members: Mapping[str, Any] = kind.__members__ if isinstance(kind, enum.EnumMeta) else {}
    for name, member in members.items():
        held = {key: one for key, one in vars(member).items() if not (key[0] == key[-1] == "_") and _is_plain(one, 0)}
        if held:
            found[name] = held
    return found


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a value is a number, a string, None, or a list, set or dict of these."""
    if type(value) in (list, tuple, set, frozenset, dict):
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        return depth < _DEEPEST and all(_is_plain(one, depth + 1) for one in inside)
    return type(value) in (bool, int, float, complex, str, bytes, type(None))


def _is_as_written(thing: Any, whole: ast.stmt) -> bool:
    """Whether its definition alone has made the function or class, without decorators (but `dataclass`) or metaclasses that had
    a part in it.
    """
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
    """Return the name under which Python keeps a name that stands in a class (`__x` becomes `_Kind__x`)."""
    own = kind.__name__.lstrip("_")
    return f"_{own}{name}" if name.startswith("__") and not name.endswith("__") and own else name


def _unsaid(kind: type, whole: ast.AST) -> list[str]:
    """Return the names of the class attributes that the source of the class does not say."""
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
    # a name with two underscores may have been mangled, and __slots__ makes member descriptors
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
                    f"script: {kind.__name__}.{name} was deleted behind the definition of {kind.__name__}, whose source alone "
                    f"goes to the tasks; {INSTEAD}"
                )


def _set_behind(thing: Any, name: str) -> ScriptError:
    own = thing.__name__ if inspect.isclass(thing) else f"{thing.__name__}()"
    return ScriptError(
        f"script: {thing.__name__}.{name} was set behind the definition of {own}, whose source alone goes to the tasks; "
        f"{INSTEAD}"
    )


def _replaced(kind: type, whole: ast.ClassDef, first: int) -> Iterator[str]:
    """Yield the names of methods, properties and the like that are no longer what the class definition says.

    Args:
        first: as of `check`.
    """
    nodes = [one for one in whole.body if isinstance(one, ast.FunctionDef)]
    names = [node.name for node in nodes]
    codes = []
    for node in nodes:
        made: Any = _MADE_BY.get(node.name, types.FunctionType)
        if node.decorator_list:
            (decorator, *more) = node.decorator_list
            made = _MADE_BY.get(decorator.id) if isinstance(decorator, ast.Name) and not more else None
        value = vars(kind).get(mangled(node.name, kind), NOTHING)
        # if several definitions have one name, the class keeps only the last; the results of other decorators are not known
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
    """Compute the value of an expression of literals and names; `NOTHING` if it calls or looks up anything, or cannot be
    computed.
    """
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
    return evaluated(node, known)


def evaluated(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """Run an expression with these names and no others; `NOTHING` if it fails, or if a part of it would be larger than `MOST`."""
    try:
        if any(isinstance(one, ast.comprehension) or type(getattr(one, "op", None)) in _GROWING for one in ast.walk(node)):
            node = ast.fix_missing_locations(_Bounded().visit(copy.deepcopy(node)))
        guards = {sign: guard for sign, guard in _GROWING.values()} | {"for": _counting()}
        return eval(compile(ast.Expression(node), "<expression>", "eval"), {**known, **guards, "__builtins__": {}})
    except Exception:
        return NOTHING


class _Bounded(ast.NodeTransformer):
    """Has the operators by which a short expression makes a large value, and the loops of comprehensions, done by functions
    that stop in time. These have names that no expression can have.
    """

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if type(node.op) not in _GROWING:
            return node
        return ast.Call(ast.Name(_GROWING[type(node.op)][0], ast.Load()), [node.left, node.right], [])

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = ast.Call(ast.Name("for", ast.Load()), [node.iter], [])
        return node


def _counting() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function that yields items, at most `MOST` in all its calls. Raises: ValueError: there are more."""
    left = iter(range(MOST))

    def each(items: Iterable[Any]) -> Iterator[Any]:
        for one in items:
            if next(left, None) is None:
                raise ValueError("too many")
            yield one

    return each


def _times(left: Any, right: Any) -> Any:
    for one, times in ((left, right), (right, left)):
        if isinstance(one, (str, bytes, list, tuple)) and isinstance(times, int) and len(one) * times > MOST:
            raise ValueError("too many")
    return left * right


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > MOST:
        raise ValueError("too many")
    return left**right


def _shifted(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right > MOST:
        raise ValueError("too many")
    return left << right


#: operator -> (its sign, the function that does it)
_GROWING: dict[Any, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Mult: ("*", _times),
    ast.Pow: ("**", _power),
    ast.LShift: ("<<", _shifted),
}
