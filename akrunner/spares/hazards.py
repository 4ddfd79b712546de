"""Finds code that a script runs before it imports TensorFlow, and that has no effect afterwards: such a job starts cold.

The text of the job's Python files is searched, so such code is found wherever it is. Behind a line that is certain to import
TensorFlow it does not matter; before such a line, or in a file without one, it may.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

#: the largest number of files that are searched, and the largest size of one in bytes
_MOST_FILES = 2000
_MOST_BYTES = 4 << 20
#: modules that import TensorFlow, or that TensorFlow imports and that read the environment then
_TENSORFLOW = frozenset({"tensorflow", "keras", "tf_keras", "akdl"})
#: variables that are read when they are needed, and not when TensorFlow is imported
_LATE = frozenset({"TF_CONFIG"})
_CHANGES = frozenset({"__setitem__", "__delitem__", "setdefault", "update", "pop", "popitem", "clear", "__ior__"})
#: name of a function -> what it does
_CALLS = {
    "putenv": "changes the environment",
    "unsetenv": "changes the environment",
    "load_dotenv": "changes the environment",
    "sched_setaffinity": "chooses its cores",
    "setrlimit": "sets limits",
    "setdlopenflags": "changes how libraries are loaded",
    "setlocale": "sets the locale",
    "simplefilter": "sets what happens to warnings",
    "invalidate_caches": "changes how modules are found",
}
#: attributes of `sys` that decide what is imported
_IMPORTING = frozenset({"path", "modules", "meta_path", "path_hooks"})
_LIST_CHANGES = frozenset(
    {"insert", "remove", "clear", "reverse", "sort", "pop", "setdefault", "update", "__setitem__", "extend"}
)


def hazard(folder: str) -> str:
    """Return why a job with these files starts cold, in words; "" if nothing in them rules a warm worker out."""
    count = 0
    for path, name in _sources(folder):
        count += 1
        try:
            if count > _MOST_FILES or os.path.getsize(path) > _MOST_BYTES:
                return (
                    "the job's Python files are too many, or too large, to look at what they do before they import TensorFlow"
                )
            with open(path, "rb") as f:
                tree = ast.parse(f.read())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # the script cannot import such a file either
        found = _first(tree)
        if found is not None:
            line, what = found
            return f"{name}, line {line}, {what}, which may matter before TensorFlow is imported, and not afterwards"
    return ""


def _sources(folder: str) -> Iterator[tuple[str, str]]:
    """Yield (path, path relative to the folder) of every Python file."""
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(base, name)
                yield path, os.path.relpath(path, folder)


def _first(tree: ast.Module) -> tuple[int, str] | None:
    """Return (line, what it does) of the first code in a file that may run before TensorFlow is imported and matters then;
    None for none.
    """
    certain = min((node.lineno for node in tree.body if _imports(node)), default=None)
    found = [
        (node.lineno, what)
        for node in ast.walk(tree)
        if isinstance(node, (ast.expr, ast.stmt)) and (certain is None or node.lineno < certain)
        for what in [_does(node)]
        if what
    ]
    return min(found, default=None)


def _imports(node: ast.stmt) -> bool:
    """Whether this statement imports TensorFlow, whatever runs before it."""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in _TENSORFLOW for alias in node.names)
    return isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in _TENSORFLOW


def _does(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return _calls(node)
    targets = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    return next((what for what in map(_assigns, targets) if what), "")


def _calls(node: ast.Call) -> str:
    name = _last(node.func)
    over = _last(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if over in ("environ", "environb") and name in _CHANGES:
        keys = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
        return _sets(keys[0] if keys and name != "update" else None)
    if (
        over in _IMPORTING
        and name in _LIST_CHANGES
        and isinstance(node.func, ast.Attribute)
        and _owner(node.func.value) == "sys"
    ):
        return f"changes sys.{over}"
    if name == "filterwarnings":
        action = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        return "" if action == "ignore" else "sets what happens to warnings"
    if name == "simplefilter":
        action = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        return "" if action == "ignore" else _CALLS[name]
    if name == "delenv":
        return "changes the environment"
    return _CALLS.get(name, "")


def _owner(node: ast.AST) -> str:
    """Return `sys` for `sys.path`."""
    return _last(node.value) if isinstance(node, ast.Attribute) else ""


def _assigns(target: ast.AST) -> str:
    if isinstance(target, (ast.Tuple, ast.List)):
        return next((what for what in map(_assigns, target.elts) if what), "")
    if isinstance(target, ast.Subscript):
        name = _last(target.value)
        if name in ("environ", "environb"):
            key = target.slice
            return _sets(key.value if isinstance(key, ast.Constant) else None)
        return f"changes sys.{name}" if name in _IMPORTING and _owner(target.value) == "sys" else ""
    name = _last(target)
    if name == "environ":
        return _sets(None)
    if isinstance(target, ast.Attribute) and name in _IMPORTING and _last(target.value) == "sys":
        return f"changes sys.{name}"
    return ""


def _sets(variable: object) -> str:
    if variable in _LATE:
        return ""
    return f"changes the environment variable {variable}" if isinstance(variable, str) else "changes the environment"


def _last(node: ast.AST) -> str:
    """Return `environ` for `os.environ`, and for `environ`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
