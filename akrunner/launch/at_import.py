"""What a module did when it was imported, and would do otherwise in the tasks, where values are what they have become since.

::

    RATE = 2
    @scaled(RATE)           scaled(5) in the tasks: refused
    def f(x): ...
    RATE = 5

    @listed                 listed appends to LIST, which goes to the tasks with f in it already: refused
    def g(x): ...
"""

from __future__ import annotations

import ast
import collections
import inspect
import sys
import textwrap
import types
from typing import Any, Dict, Iterator, List, Set, Tuple

import numpy as np

from akrunner.errors import ScriptError
from akrunner.launch.as_written import NOTHING, bound, parsed, same_code, value_of

INSTEAD = "put it into a file of its own and give that as the script"
_MUTABLE = (list, dict, set, bytearray, collections.deque, np.ndarray)
#: methods that change nothing
_READING = {
    "get",
    "items",
    "keys",
    "values",
    "copy",
    "index",
    "count",
    "most_common",
    "union",
    "intersection",
    "difference",
    "issubset",
    "issuperset",
}
#: functions that change nothing they are given
_LOOKING = {
    "all", "any", "bool", "dict", "enumerate", "frozenset", "id", "isinstance", "iter", "len", "list", "max", "min", "print", "range", "repr", "reversed",
    "set", "sorted", "str", "sum", "tuple", "type", "zip",
}  # fmt: skip
_Place = Tuple[int, int]


def check(thing: Any, value: Any, text: str, known: Dict[str, Any], sources: List[str]) -> None:
    """Args: thing: a function or a class; value: what its name means, which may be it, wrapped; text: its source; known: what stands behind the names it may use;
    sources: the text of its module, or its cells.

    Raises: ScriptError: defined again in the tasks, it would be another.
    """
    body = ast.parse(text).body
    if len(body) != 1 or not isinstance(body[0], (ast.FunctionDef, ast.ClassDef)):
        return
    whole: Any = body[0]
    own = f"{thing.__name__}()" if isinstance(thing, types.FunctionType) else thing.__name__
    if value is not thing and not whole.decorator_list:
        raise ScriptError(f"script: {own} was wrapped behind its definition; write what wraps it as a decorator, or {INSTEAD}")
    registry = getattr(value, "registry", None)
    if isinstance(registry, types.MappingProxyType) and hasattr(value, "dispatch") and len(registry) > 1:
        kinds = ", ".join(one.__name__ for one in registry if one is not object)
        raise ScriptError(
            f"script: {own} has implementations for {kinds}, which were registered behind its definition and do not go to the tasks; {INSTEAD}"
        )
    if isinstance(whole, ast.ClassDef) and inspect.isclass(thing):
        _check_bases(thing, whole, known)
    run = list(_run_at_once(whole))
    _check_rebound(thing, own, {name for node in run for name in _loaded(node)}, known, sources)
    changed = sorted({name for node in run for name in _changes(node, known, set())})
    if changed:
        raise ScriptError(
            f"script: the definition of {own} changes {changed[0]}, which goes to the tasks as it is now: it would be changed twice; {INSTEAD}"
        )


def _check_bases(kind: type, whole: ast.ClassDef, known: Dict[str, Any]) -> None:
    for node in whole.bases:
        now = known.get(node.id, NOTHING) if isinstance(node, ast.Name) else NOTHING
        if isinstance(now, type) and now not in kind.__bases__ and now not in getattr(kind, "__orig_bases__", ()):
            before = [one for one in kind.__bases__ if one.__name__ == now.__name__]
            if not before or not _alike(before[0], now):
                raise ScriptError(
                    f"script: {kind.__name__} was made from another {ast.unparse(node)} than there is now; define {kind.__name__} again, or {INSTEAD}"
                )


def _alike(one: type, other: type) -> bool:
    """Whether two classes are the same one, defined twice."""

    def own(kind: type) -> Dict[str, Any]:
        return {key: value for key, value in vars(kind).items() if key not in ("__dict__", "__weakref__", "__firstlineno__")}

    left, right = own(one), own(other)
    return left.keys() == right.keys() and all(
        same_code(left[key].__code__, right[key].__code__)
        if isinstance(left[key], types.FunctionType) and isinstance(right[key], types.FunctionType)
        else type(left[key]) is type(right[key])
        and (key.startswith("_abc") or " at 0x" in repr(left[key]) or repr(left[key]) == repr(right[key]))
        for key in left
    )


def _run_at_once(whole: Any) -> Iterator[ast.AST]:
    """What of a definition Python computes when it comes to it, but for defaults (`as_written` compares them) and annotations."""
    yield from whole.decorator_list
    if isinstance(whole, ast.ClassDef):
        yield from whole.bases
        yield from (one.value for one in whole.keywords)
        for node in whole.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from _run_at_once(node)
            elif isinstance(node, ast.AnnAssign):
                yield from [node.value] if node.value is not None else []
            else:
                yield node


def _loaded(node: ast.AST) -> Set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _check_rebound(thing: Any, own: str, names: Set[str], known: Dict[str, Any], sources: List[str]) -> None:
    """Raises: ScriptError: a name that its definition uses meant something else then."""
    if "<locals>" in thing.__qualname__ or not names:
        return
    trees = [parsed(one) for one in sources]
    places = [
        (at, node.lineno)
        for at, tree in enumerate(trees)
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == thing.__name__
    ]
    if not places:
        return
    for name in names:
        if name == thing.__name__ or name not in known or isinstance(known[name], types.ModuleType):
            continue
        bindings = [(at, line, node) for at, tree in enumerate(trees) for line, node in _bindings(tree, name)]
        before = [node for at, line, node in bindings if (at, line) <= places[-1]]
        later = [node for at, line, node in bindings if (at, line) > places[-1]]
        if not later or (before and _says(before[-1], known[name], known)):
            continue
        if not before or any(ast.dump(one) != ast.dump(before[-1]) for one in later):
            raise ScriptError(
                f"script: {name} has been set again since {own} was defined with it; define {own} again behind it, or {INSTEAD}"
            )


def _says(node: ast.AST, value: Any, known: Dict[str, Any]) -> bool:
    """Whether an assignment still says what the value is."""
    said = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    now = value_of(said, {}) if isinstance(said, ast.expr) else NOTHING
    return now is not NOTHING and type(now) is type(value) and repr(now) == repr(value)


def _bindings(tree: ast.Module, name: str) -> Iterator[Tuple[int, ast.AST]]:
    """Where a module binds a name, and how: also what its functions do by `global`."""
    pending: List[Tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while pending:
        node, outside = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if outside and node.name == name:
                yield node.lineno, node
            inner = list(ast.walk(node))
            if not isinstance(node, ast.ClassDef) and any(isinstance(one, ast.Global) and name in one.names for one in inner):
                # whoever calls it does so at any time
                yield sys.maxsize, node
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any(bound(node, alias) == name for alias in node.names):
                yield node.lineno, node
            continue
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            if any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in ast.walk(node)):
                yield node.lineno, node
            continue
        pending = [(one, True) for one in ast.iter_child_nodes(node)] + pending


def _changes(node: ast.AST, known: Dict[str, Any], seen: Set[int]) -> Set[str]:
    """The names of lists, dicts and such that something changes when it is computed, and of numbers that it sets by `global`."""
    found: Set[str] = set()
    if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        # a decorator: it is called, and so is what it gives
        target, depth = (node.func, 1) if isinstance(node, ast.Call) else (node, 0)
        if isinstance(target, ast.Name):
            found |= _changed_by(known.get(target.id), depth, seen)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if isinstance(known.get(target.value.id), _MUTABLE) and target.attr not in _READING:
                found.add(target.value.id)
    return found | _changed_in(list(_statements([node], 0)), known, set(), seen)


def _changed_by(function: Any, depth: int, seen: Set[int]) -> Set[str]:
    """What a call of a function changes. Args: depth: of functions in it, which are called at once, too."""
    function = inspect.unwrap(function) if callable(function) and not inspect.isclass(function) else function
    if not isinstance(function, types.FunctionType) or id(function) in seen or function.__module__ in sys.stdlib_module_names:
        return set()
    seen.add(id(function))
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError):
        return set()
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        return set()
    nodes = list(_statements(body[0].body, depth))
    declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    local = {one.arg for one in ast.walk(body[0].args) if isinstance(one, ast.arg)} - declared
    return _changed_in(nodes, {key: one for key, one in function.__globals__.items() if key not in local}, declared, seen)


def _statements(nodes: List[Any], depth: int) -> Iterator[ast.AST]:
    """All nodes, not those of functions that are deeper than so many."""
    for node in nodes:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            if depth:
                yield from _statements(node.body if isinstance(node.body, list) else [node.body], depth - 1)
        else:
            yield from _statements(list(ast.iter_child_nodes(node)), depth)


def _changed_in(nodes: List[ast.AST], known: Dict[str, Any], declared: Set[str], seen: Set[int]) -> Set[str]:
    found: Set[str] = set()

    def mutable(node: Any) -> bool:
        return isinstance(node, ast.Name) and isinstance(known.get(node.id), _MUTABLE)

    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in declared:
            found.add(node.id)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and mutable(node.value):
            found.add(node.value.id)  # type: ignore[attr-defined]
        elif isinstance(node, ast.AugAssign) and mutable(node.target):
            found.add(node.target.id)  # type: ignore[union-attr]
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and mutable(called.value) and called.attr not in _READING:
                found.add(called.value.id)  # type: ignore[attr-defined]
            if isinstance(called, ast.Name):
                found |= _changed_by(known.get(called.id), 0, seen)
            if not (isinstance(called, ast.Name) and called.id in _LOOKING):
                by_call = isinstance(called, ast.Name) and isinstance(known.get(called.id), types.FunctionType)
                found |= {one.id for one in node.args if mutable(one) and by_call}  # type: ignore[attr-defined]
    return found
