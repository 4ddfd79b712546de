"""Finds out whether the top level of a script does something, as a page of statements does, or only defines things.

A call that is not inside a function or a class counts as doing something: on its own, or behind `=`, `if`, `try`, `assert`,
`raise`. A call that makes a constant or asks about the machine does not count, because modules that only define functions have
such calls, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: calls that make constants, or ask for something
_PLAIN = {
    "getLogger", "get_logger", "namedtuple", "NamedTuple", "TypedDict", "Enum", "TypeVar", "NewType", "cast", "compile", "join", "dirname",
    "abspath", "realpath", "basename", "expanduser", "Path", "PurePath", "getcwd", "getenv", "get", "exists", "isfile", "isdir", "import_module",
    "find_spec", "dict", "list", "set", "tuple", "frozenset", "int", "float", "str", "bool", "bytes", "range", "len", "sorted", "zip", "enumerate",
    "min", "max", "sum", "abs", "round", "isinstance", "issubclass", "hasattr", "getattr", "callable", "startswith", "endswith", "split", "strip",
    "lower", "upper", "format", "keys", "values", "items", "version", "Version", "parse", "partial", "object", "type", "super", "any", "all",
    "field", "OrderedDict", "defaultdict", "Counter", "MappingProxyType", "timedelta", "python_version", "system",
}  # fmt: skip
#: methods that do work, whatever name their result gets
_WORK = {"fit", "fit_generator", "train", "train_and_evaluate", "evaluate", "predict", "run"}
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def doing(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that do something; those inside `if` and `try` one by one."""
    own = frozenset(node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return _doing(tree.body, own)


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that are made when a statement or an expression runs, without those in functions and classes that it
    defines.
    """
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, _DEFINES):
            continue
        if isinstance(part, ast.Call):
            yield part
        pending += ast.iter_child_nodes(part)


def _doing(body: list[ast.stmt], own: frozenset[str]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, (ast.For, ast.While, ast.With)) or _works(node, own):
            yield node
            continue
        for inside in blocks(node, after_import=False):
            yield from _doing(inside, own)


def _works(node: ast.stmt, own: frozenset[str]) -> bool:
    """Whether a statement itself does something, apart from the statements in its blocks."""
    if isinstance(node, ast.Expr):
        return any(True for _ in calls(node))
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        constant = all(isinstance(one, ast.Name) and (one.id.isupper() or one.id.startswith("__")) for one in targets)
        return any(_is_work(call, own, constant) for call in calls(node))
    if isinstance(node, ast.Raise):
        # making the exception itself is no work
        given = [*node.exc.args, *(one.value for one in node.exc.keywords)] if isinstance(node.exc, ast.Call) else []
        made = isinstance(node.exc, ast.Call) and _called(node.exc) in own
        return made or any(_is_work(call, own, False) for part in given for call in calls(part))
    test = getattr(node, "test", None) or getattr(node, "subject", None)
    return test is not None and any(_is_work(call, own, False) for call in calls(test))


def _is_work(call: ast.Call, own: frozenset[str], constant: bool) -> bool:
    """Whether a call does something. Args: constant: whether its result gets a name as constants have."""
    name = _called(call)
    if isinstance(call.func, ast.Name) and name in own:
        return True
    if isinstance(call.func, ast.Attribute) and name in _WORK:
        return True
    return not constant and name not in _PLAIN


def _called(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""


def blocks(node: ast.stmt, after_import: bool = True) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements inside `if`, `for`, `with`, `try`, `match` and the like, but none of functions and classes.

    Args:
        after_import: also yield the statements that run when an import fails, which are no work of the script's.
    """
    if isinstance(node, _DEFINES):
        return
    body = getattr(node, "body", [])
    only_imports = bool(body) and all(isinstance(one, (ast.Import, ast.ImportFrom)) for one in body)
    yield body
    for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        if after_import or not (only_imports and isinstance(part, ast.ExceptHandler)):
            yield part.body
    yield getattr(node, "orelse", [])
    yield getattr(node, "finalbody", [])
