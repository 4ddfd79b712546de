"""Finds out whether the functions and classes of a module are still those that its file defines."""

from __future__ import annotations

import abc
import ast
import functools
import importlib.machinery
import inspect
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

from akrunner.launch.functions.as_written import NOTHING, mangled, same_code
from akrunner.launch.functions.module_text import Text

#: decorator, or name of a method that Python itself converts -> the type of the object it becomes
_MADE_BY: dict[str, Any] = {
    "property": property, "staticmethod": staticmethod, "classmethod": classmethod,
    "__new__": staticmethod, "__init_subclass__": classmethod, "__class_getitem__": classmethod,
}  # fmt: skip


def changed_on_disk(module: types.ModuleType) -> bool:
    """Whether the module has a function, or one of its classes a method, that came from its file and is no longer in that
    file.
    """
    spec = getattr(module, "__spec__", None)
    # other loaders may change the code they load, as those of test runners and of type checkers do
    if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
        return False
    file = str(module.__file__)
    there = _codes_of(file)
    if there is None:
        return True
    for code in _own_codes(module, file):
        # some decorators give their own functions the file of the function that they decorate
        theirs = code.co_qualname not in there and "<locals>" in code.co_qualname
        if not theirs and not any(same_code(code, one) for one in there.get(code.co_qualname, [])):
            return True
    return False


def is_at(function: types.FunctionType, line: int) -> bool:
    """Whether a lambda is the one that stands in this line of its file, and not another lambda of the file. True if the file
    cannot be read or compiled.
    """
    there = _codes_of(function.__code__.co_filename)
    codes = [one for one in (there or {}).get(function.__code__.co_qualname, []) if one.co_firstlineno == line]
    return there is None or any(same_code(function.__code__, one) for one in codes)


def replaced(
    kind: type, node: ast.ClassDef, module: types.ModuleType, text: Text, hung: set[str], any_hung: bool
) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of methods, properties and the like of a class that are no longer what its definition has made, and
    of attributes that its definition does not have.

    Args:
        hung: the attributes that the modules themselves set in classes, as ".name".
        any_hung: whether the modules also set attributes whose names they compute.
    """
    if node.decorator_list or node.keywords or type(kind) not in (type, abc.ABCMeta) or issubclass(kind, tuple):
        return
    if any("__init_subclass__" in vars(base) for base in kind.__mro__[1:-1]):
        return
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    names = [name for one in node.body for name in bound(one)]
    for one in methods:
        value = vars(kind).get(mangled(one.name, kind), NOTHING)
        # setattr(kind, name, traced(getattr(kind, name)))
        by_itself = any_hung and getattr(value, "__module__", None) == module.__name__
        own = names.count(one.name) == 1 and f".{one.name}" not in hung and not by_itself
        if own and value is not NOTHING and not _is_method(value, one, f"{kind.__qualname__}.{one.name}", module, text):
            yield one.name, value
    if any_hung or any(hasattr(type(value), "__set_name__") for value in vars(kind).values() if not _is_known(value)):
        return
    # a base class of an installed package may do anything with the classes derived from it
    if any(base.__module__ not in ("builtins", "abc") and not _is_beside(base) for base in kind.__mro__):
        return
    said = {name for one in ast.walk(node) for name in bound(one)}
    for name, value in vars(kind).items():
        ours = "__" not in name and not name.startswith("_abc_") and not inspect.isgetsetdescriptor(value)
        if ours and name not in said and f".{name}" not in hung and not inspect.ismemberdescriptor(value):
            yield name, value


def _is_known(value: Any) -> bool:
    # a property's __set_name__ only notes its name
    return isinstance(value, functools.cached_property) or type(value) is property


def _is_beside(base: type) -> bool:
    """Whether a class is from no installed package."""
    file = str(getattr(sys.modules.get(base.__module__), "__file__", ""))
    root = base.__module__.partition(".")[0]
    return file.endswith(".py") and "-packages" not in file and root not in sys.stdlib_module_names


def bound(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    inner = [node] if isinstance(node, ast.Name) else ast.walk(node) if isinstance(node, ast.stmt) else ()
    return [one.id for one in inner if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)]


def _is_method(value: Any, node: ast.FunctionDef, qualname: str, module: types.ModuleType, text: Text) -> bool:
    """Whether a value in a class is what this definition of a method has made, as far as that can be told."""
    made: Any = _MADE_BY.get(node.name, types.FunctionType)
    if node.decorator_list:
        (decorator, *more) = node.decorator_list
        name = decorator.id if isinstance(decorator, ast.Name) and not more else ""
        made = _MADE_BY.get(name) if name not in text.bindings else None
    if made is None:
        return True
    code = getattr(getattr(value, "fget", getattr(value, "__func__", value)), "__code__", None)
    if type(value) is not made or code is None:
        return False
    # an edited file is reported by `changed_on_disk`, so only the name and the file are compared here
    return bool(code.co_qualname == qualname) and os.path.abspath(code.co_filename) == os.path.abspath(str(module.__file__))


def _own_codes(module: types.ModuleType, file: str) -> Iterator[types.CodeType]:
    """Yield the code objects of the functions and methods that a module holds, as far as they are from its file."""
    pending = [one for one in vars(module).values() if getattr(one, "__module__", None) == module.__name__]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, types.FunctionType):
            if one.__code__.co_filename == file:
                yield one.__code__
            pending += [vars(one)["__wrapped__"]] if "__wrapped__" in vars(one) else []
        elif isinstance(one, type):
            pending += [
                inner for inner in vars(one).values() if not isinstance(inner, type) or inner.__module__ == module.__name__
            ]
        elif isinstance(one, property):
            pending += [one.fget, one.fset, one.fdel]
        elif isinstance(one, (staticmethod, classmethod)):
            pending.append(one.__func__)
        elif isinstance(one, functools.cached_property):
            pending.append(one.func)


def _codes_of(file: str) -> dict[str, list[types.CodeType]] | None:
    try:
        return _compiled(file, os.stat(file).st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=256)
def _compiled(file: str, changed: int) -> dict[str, list[types.CodeType]]:
    """Return all code objects of a file by their qualified names.

    Args:
        changed: when the file was changed, so that a new version is compiled again.
    """
    with open(file, "rb") as stream:
        pending = [compile(stream.read(), file, "exec", dont_inherit=True)]
    found: dict[str, list[types.CodeType]] = {}
    while pending:
        code = pending.pop()
        found.setdefault(code.co_qualname, []).append(code)
        pending += [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return found
