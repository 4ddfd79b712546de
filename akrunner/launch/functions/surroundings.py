"""The surroundings of a function or a class that goes to other processes: the text of its module or a notebook's cells, the
names it may use, imports.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from typing import Any

from akrunner.launch.functions.as_written import NOTHING, bound, parsed, tree_of


def known_to(thing: Any) -> dict[str, Any]:
    """Return the names that a function, or the methods of a class, may use, with their values."""
    if isinstance(thing, types.FunctionType):
        return {**thing.__globals__, **inspect.getclosurevars(thing).nonlocals}
    module = sys.modules.get(thing.__module__)
    return dict(vars(module)) if module is not None else {}


def as_imported(name: str, value: Any, of: Any) -> str:
    """Return the import statement by which the user's program has a name; "" if there is none. Packages often offer names that
    only their import statement says.
    """
    found = ""
    # a value of None may stand in place of a module that is not installed
    for text in texts_around(of) if value is not None else ():
        for node in ast.walk(tree_of(text)):
            for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
                if bound(node, alias) == name and _brings(node, alias, value):
                    found = ast.unparse(type(node)(**{**vars(node), "names": [alias]}))
    return found


def texts_around(of: Any) -> list[str]:
    """Return the text of the file that a function is in; in a notebook, the texts of all cells."""
    cells = known_to(of).get("In")
    if isinstance(cells, list):
        return [_within_magic(cell) for cell in cells if isinstance(cell, str)]
    try:
        return ["".join(inspect.findsource(of)[0])]
    except (OSError, TypeError):
        return []


def _within_magic(cell: str) -> str:
    """Return a cell without the magic of its first line (%%time): a notebook keeps such a cell as a call that gets the rest as
    a string.
    """
    if ".run_cell_magic(" not in cell.split("\n", 1)[0]:
        return cell
    body = parsed(cell).body
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    rest = call.args[-1] if isinstance(call, ast.Call) and call.args else None
    return str(rest.value) if isinstance(rest, ast.Constant) else cell


def _brings(node: Any, alias: ast.alias, value: Any) -> bool:
    if isinstance(node, ast.Import):
        there = sys.modules.get(alias.name if alias.asname else alias.name.partition(".")[0])
    elif node.level or node.module is None:
        return False
    else:
        there = getattr(sys.modules.get(node.module), alias.name, sys.modules.get(f"{node.module}.{alias.name}"))
    # a module that is loaded at its first use, as tensorflow.keras is, is another object afterwards
    return there is value or (_is_lazy(value) and isinstance(there, types.ModuleType))


def _is_lazy(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and type(value) is not types.ModuleType


def import_of(name: str, value: Any) -> str:
    """Return an import statement that gets a value by the value's own name; "" if there is none."""
    if isinstance(value, types.ModuleType):
        lazy = vars(value)
        around = lazy.get("_tfll_parent_module_globals", {}).get("__name__", "")
        within = lazy.get("_tfll_name") or lazy.get("_tfll_local_name")
        if around.partition(".")[0] == "tensorflow" and within:
            return f"from tensorflow import {within} as {name}"
        return (
            f"import {value.__name__} as {name}"
            if value.__name__ != "__main__" and sys.modules.get(value.__name__) is value
            else ""
        )
    try:
        module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    except Exception:
        # an object that answers to every attribute may raise anything
        return ""
    if not isinstance(module, str) or not isinstance(own, str) or not own.isidentifier() or module == "__main__":
        return ""
    return f"from {module} import {own} as {name}" if getattr(sys.modules.get(module), own, NOTHING) is value else ""


def in_a_cell(thing: Any) -> str:
    """Return the source of a notebook's class, or of a function in a cell with a magic, which `inspect` does not find; "" if
    there is none.
    """
    kind = ast.ClassDef if inspect.isclass(thing) else ast.FunctionDef
    for cell in reversed(texts_around(thing)):
        for node in tree_of(cell).body:
            if isinstance(node, kind) and node.name == thing.__name__:
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                return "\n".join(cell.splitlines()[first - 1 : node.end_lineno])
    return ""
