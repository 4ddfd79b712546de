"""Settings of the user's own modules that somebody has changed since the import (`settings.EPOCHS = 3` in a notebook): the tasks import the file, and have what it says.

Only what is certain is told: a name that the file binds once, to a number, a text or a tuple of these, and that no function of it declares global.
"""

from __future__ import annotations

import ast
import collections
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

from akrunner.errors import ScriptError
from akrunner.launch.as_written import NOTHING, parsed, value_of

#: more than this of a value is not shown
_LONGEST = 60


def check(imported: Any, user: str) -> None:
    """Args: imported: a module that a function uses, or what it has from one; user: the function's name, for errors.

    Raises: ScriptError: the module, or one of the user's own that it uses, holds another value than its file says; it names it.
    """
    for one in _own_within(imported, set()):
        with open(str(one.__file__), encoding="utf-8", errors="replace") as stream:
            settings = _settings(parsed(stream.read()))
        for name, said in settings.items():
            now = vars(one).get(name, NOTHING)
            if now is not NOTHING and _is_plain(now) and (type(now), repr(now)) != (type(said), repr(said)):
                raise ScriptError(
                    f"script: {one.__name__}.{name} is {_shown(now)} here, but {_shown(said)} in {one.__file__}, which is what the tasks import; "
                    f"set it within {user}(), give it by user_params=, or change the file (and import it again: importlib.reload)"
                )


def check_imports(text: str, user: str) -> None:
    """The same of the modules that a definition imports when it is called. Args: text: its source. Raises: ScriptError."""
    for node in ast.walk(parsed(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            check(sys.modules.get(name), user)


def _own_within(imported: Any, seen: set[str]) -> Iterator[types.ModuleType]:
    """A module, or that of a function or a class, and those it holds, as far as they are the user's own: files of no package that was installed."""
    made = isinstance(imported, (types.FunctionType, type))
    module = sys.modules.get(imported.__module__) if made else imported
    if not isinstance(module, types.ModuleType) or module.__name__ in seen or not _is_own(module):
        return
    seen.add(module.__name__)
    yield module
    for value in list(vars(module).values()):
        yield from _own_within(value, seen)


def _is_own(module: types.ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    root = module.__name__.partition(".")[0]
    if (
        not isinstance(file, str)
        or not file.endswith(".py")
        or root in sys.stdlib_module_names
        or root in ("akrunner", "__main__")
    ):
        return False
    return not any(part in ("site-packages", "dist-packages") for part in file.split(os.sep)) and os.path.isfile(file)


def _settings(tree: ast.Module) -> dict[str, Any]:
    """Name -> value, of those that a module binds once, wherever that is, and to what is plain."""
    bindings = collections.Counter(_bound(tree))
    found: dict[str, Any] = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else getattr(node, "target", None)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(target, ast.Name) and node.value is not None:
            value = value_of(node.value, {})
            if bindings[target.id] == 1 and value is not NOTHING and _is_plain(value):
                found[target.id] = value
    return found


def _bound(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.append(node.id)
        elif isinstance(node, ast.Global):
            # a function sets it, as it may in the tasks
            names += node.names * 2
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.alias):
            names.append(node.asname or node.name.partition(".")[0])
    return names


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return type(value) is tuple and all(_is_plain(one) for one in value)
    return type(value) in (bool, int, float, complex, str, bytes)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
