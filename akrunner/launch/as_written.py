"""Whether the source of a function or a class, which is all that goes to other processes, still says what it is in this one."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import inspect
import os
import sys
import types
from typing import Any, Dict, List

from akrunner.checks import shown
from akrunner.errors import ScriptError
from akrunner.launch.literals import INSTEAD

#: where nothing is known; None may be a value
NOTHING = object()


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
    spec = getattr(sys.modules.get(thing.__module__), "__spec__", None)
    # other loaders may change what they load, as those of tests and of checkers of types do
    if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader or not os.path.isfile(file):
        return
    theirs = [thing] if isinstance(thing, types.FunctionType) else list(vars(thing).values())
    try:
        with open(file, "rb") as stream:
            there = _codes_of(stream.read(), file)
    except (OSError, SyntaxError, ValueError):
        raise changed_on_disk(thing, file) from None
    for one in theirs:
        if isinstance(one, types.FunctionType) and one.__module__ == thing.__module__ and one.__code__.co_filename == file:
            if not any(same_code(one.__code__, code) for code in there):
                raise changed_on_disk(thing, file)


@functools.lru_cache(maxsize=4)
def _codes_of(source: bytes, file: str) -> List[types.CodeType]:
    """All codes of a file; many functions of one are looked at, one after another."""
    return _codes(compile(source, file, "exec", dont_inherit=True))


def _codes(code: types.CodeType) -> List[types.CodeType]:
    """A code and all within."""
    inner = [one for const in code.co_consts if isinstance(const, types.CodeType) for one in _codes(const)]
    return [code, *inner]


def same_code(one: Any, other: Any) -> bool:
    """Whether two codes do the same, wherever they stand."""
    if not isinstance(one, types.CodeType) or not isinstance(other, types.CodeType):
        return type(one) is type(other) and repr(one) == repr(other)
    same = ("co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_argcount", "co_kwonlyargcount", "co_flags")
    return (
        all(getattr(one, name) == getattr(other, name) for name in same)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(same_code, one.co_consts, other.co_consts))
    )


def check(thing: Any, text: str, known: Dict[str, Any]) -> None:
    """Raises: ScriptError: a function or a class has something by now that its source, which is all that goes to the tasks, does not say."""
    body = ast.parse(text).body
    if len(body) != 1:
        return
    (whole,) = body
    if isinstance(whole, ast.FunctionDef) and isinstance(thing, types.FunctionType):
        if not whole.decorator_list:
            for name in vars(thing):
                raise ScriptError(
                    f"script: {thing.__name__}.{name} was set behind the definition of {thing.__name__}(), whose source alone goes to the tasks; {INSTEAD}"
                )
        _check_defaults(thing, whole, known)
    elif (
        isinstance(whole, ast.ClassDef)
        and inspect.isclass(thing)
        and not whole.decorator_list
        and type(thing) is type
        and not issubclass(thing, tuple)
    ):
        _check_class(thing, whole, known)


def _check_defaults(function: types.FunctionType, whole: ast.FunctionDef, known: Dict[str, Any]) -> None:
    arguments = [*whole.args.posonlyargs, *whole.args.args]
    given = list(zip(arguments[len(arguments) - len(whole.args.defaults) :], whole.args.defaults, function.__defaults__ or ()))
    for argument, default in zip(whole.args.kwonlyargs, whole.args.kw_defaults):
        if default is not None and argument.arg in (function.__kwdefaults__ or {}):
            given.append((argument, default, (function.__kwdefaults__ or {})[argument.arg]))
    for argument, default, value in given:
        now = value_of(default, known)
        if now is not NOTHING and now is not value and (type(now) is not type(value) or repr(now) != repr(value)):
            raise ScriptError(
                f"script: the default {argument.arg}={ast.unparse(default)} of {function.__name__}() was {shown(value)} when it was defined, and would be "
                f"{shown(now)} in the tasks; define {function.__name__}() again, or hand the value over in user_params="
            )


def _check_class(kind: type, whole: ast.ClassDef, known: Dict[str, Any]) -> None:
    said: Dict[str, Any] = {}
    for node in ast.walk(whole):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            said.setdefault(node.name, None)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            said.setdefault(node.id, None)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            said.update({bound(node, alias): None for alias in node.names})
    for node in whole.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            said[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            said[node.target.id] = node.value
    methods = [node.name for node in whole.body if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    hooked = any("__init_subclass__" in vars(base) for base in kind.__mro__[1:-1])
    for name, value in vars(kind).items():
        if (name.startswith("__") and name.endswith("__")) or name.startswith("_abc_") or (name not in said and hooked):
            continue
        if isinstance(value, types.MemberDescriptorType):
            # of __slots__
            continue
        now = value_of(said[name], known) if said.get(name) is not None else NOTHING
        other = now is not NOTHING and (type(now) is not type(value) or repr(now) != repr(value))
        replaced = name in methods and (not isinstance(value, types.FunctionType) or value.__code__.co_name != name)
        if other and any(isinstance(node, ast.Name) for node in ast.walk(said[name])):
            raise ScriptError(
                f"script: {kind.__name__}.{name} = {ast.unparse(said[name])} was {shown(value)} when {kind.__name__} was defined, and would be {shown(now)} in the "
                f"tasks; define {kind.__name__} again, or hand the value over in user_params="
            )
        if (name not in said and not (name.startswith("_") and "__" in name)) or other or replaced:
            raise ScriptError(
                f"script: {kind.__name__}.{name} was set behind the definition of {kind.__name__}, whose source alone goes to the tasks; {INSTEAD}"
            )


def value_of(node: ast.expr, known: Dict[str, Any]) -> Any:
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
