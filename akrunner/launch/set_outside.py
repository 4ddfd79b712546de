"""What somebody has set in modules of the user's own since they were imported (`settings.EPOCHS = 3` in a notebook): the tasks import the files, and have what
these make.

::

    settings.py                             in this process             in the tasks
    EPOCHS = 1                              settings.EPOCHS is 3        1: refused
    RATES = {"lr": 0.1}                     RATES["lr"] is 0.5          0.1: refused
    CACHE = {}; def get(x): CACHE[x] = ...  CACHE has something in it   the module does that itself: no matter

Told is what can be computed without running anything of the module: numbers, texts, lists and dicts of these, paths, times, simple dataclasses, the environment's
variables, and whether functions and classes are still the file's own.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import datetime
import functools
import inspect
import os
import pathlib
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from akrunner.errors import ScriptError
from akrunner.launch import live
from akrunner.launch.as_written import NOTHING, parsed, value_of
from akrunner.launch.at_import import LOOKING, READING

#: more than this of a value is not shown
_LONGEST = 60
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
#: what may be called to learn what it gives
_MAKERS = (
    bool, bytes, complex, dict, float, frozenset, int, list, range, set, str, tuple, datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
    pathlib.Path, pathlib.PurePath, pathlib.PurePosixPath, types.SimpleNamespace, os.environ.get, os.getenv, os.path.join,
)  # fmt: skip


def check_imports(text: str, of: str, user: str) -> None:
    """Args: text: an import, or a function or class that imports when it is called; of: the module it is from; user: the function that is to be the script's, for
    errors.

    Raises: ScriptError: a module it names, or one of the user's own that this uses, holds something else than its file makes; it names it.
    """
    names: list[str] = []
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    seen: set[str] = set()
    modules = [one for name in names for one in _own_within(sys.modules.get(name), seen)]
    # other modules of the program are not run in the tasks, nor is that of the function itself
    altered = {one.__name__: _file_of(one).altered for one in modules if one.__name__ != of}
    for module in modules:
        told = _changed(module, set().union(*(names for name, names in altered.items() if name != module.__name__)))
        if told:
            raise ScriptError(
                f"script: {told} in {module.__file__}, which is what the tasks import; set it within {user}(), give it by user_params=, or change the "
                "file (and import it again: importlib.reload)"
            )


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


def _changed(module: types.ModuleType, elsewhere: set[str]) -> str:
    """What a module has otherwise than its file, half a sentence; "" for nothing. Args: elsewhere: `_File.altered` of the user's other modules: they may do so
    when they are imported, as they are in the tasks."""
    file = _file_of(module)
    made: dict[str, Any] = {}
    for name, bindings in file.bindings.items():
        values = [_made(node, module, made) for node in bindings]
        # of a name that is set twice nobody knows which one another expression has seen
        certain = len(values) == 1 and name not in file.often and not isinstance(values[0], _Defined)
        made[name] = values[0] if certain else NOTHING
        now = vars(module).get(name, NOTHING)
        if (
            now is NOTHING
            or isinstance(now, types.ModuleType)
            or any(value is NOTHING for value in values)
            or {name, f".{name}"} & elsewhere
        ):
            continue
        if name in file.declared and type(now) not in _PLAIN:
            # what is made when it is first wanted, as it is in the tasks
            continue
        # what begins empty is there to be filled
        empty = isinstance(values[-1], (dict, list, set)) and not values[-1]
        if empty or (name in file.touched and not isinstance(values[-1], (_Defined, *_PLAIN))):
            continue
        if not any(_is_same(now, value, module) for value in values):
            return f"{module.__name__}.{name} is {_shown(now)} here, but {_said(bindings[-1])}"
        if len(bindings) == 1 and isinstance(bindings[0], (ast.FunctionDef, ast.ClassDef)) and name not in file.altered:
            for one in live.values_of(now, ast.unparse(bindings[0]), {}):
                if one.settled and _is_certain(one, file):
                    return f"{one.name} in {module.__name__} is {_shown(one.value)} here, but {_said(one.node)}"
    return ""


def _is_certain(one: live.Live, file: _File) -> bool:
    """Whether it is the definition itself that says something else: names mean what they did when the file was run, and what is in a list changes."""
    if any(isinstance(node, ast.Name) for node in ast.walk(one.node)) or type(one.value) not in _PLAIN:
        return False
    own = one.name.rpartition(".")[2]
    return not {own, f".{own}"} & file.touched


@dataclass
class _File:
    """What a module's file says. Attributes: bindings: name -> what it is bound to: an expression, a definition, or None for what is not known; where there is more
    than one, it depends on a condition; often: those that are bound more than once; altered: what the file changes in place whenever it is run, names and
    .attributes; touched: these, what it hands on to where it may be changed, what its functions count and keep for themselves, and attributes that they change; declared: what they set by
    `global`."""

    bindings: dict[str, list[ast.AST | None]] = field(default_factory=dict)
    often: set[str] = field(default_factory=set)
    altered: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)


def _file_of(module: types.ModuleType) -> _File:
    with contextlib.suppress(OSError):
        return _read(str(module.__file__), os.stat(str(module.__file__)).st_mtime_ns)
    return _File()


@functools.lru_cache(maxsize=1024)
def _read(path: str, changed: int) -> _File:
    """Args: changed: when the file was, so that it is read again then."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        tree = parsed(stream.read())
    found = _File()
    for node in tree.body:
        _bind(node, found, False)
    looked_at = {id(one) for node in ast.walk(tree) for one in _looked_at(node)}
    run = list(_run(tree))
    for inner in ast.walk(tree):
        if isinstance(inner, ast.ImportFrom) and any(alias.name == "*" for alias in inner.names):
            # whatever that brings
            return _File()
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and id(inner) not in looked_at:
            found.touched.add(inner.id)
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            changes, counts = _kept(inner)
            found.declared |= _declared(inner)
            found.touched |= counts | {one for one in changes if one.startswith(".")}
            found.bindings.update({name: [None] for name in counts & _declared(inner)})
    for inner in run:
        found.altered |= _changes(inner)
        if isinstance(inner, ast.Global):
            found.bindings.update({name: [None] for name in inner.names})
    found.touched |= found.altered
    return found


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """All that is run when a module is imported: also the functions that its own statements call, and decorate with."""
    functions = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in node.decorator_list:
                inner = decorator.func if isinstance(decorator, ast.Call) else decorator
                own = functions.pop(inner.id, None) if isinstance(inner, ast.Name) else None
                pending += own.body if own is not None else [decorator]
            continue
        yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
            pending += functions.pop(node.func.id).body
        pending += ast.iter_child_nodes(node)


def _declared(function: ast.AST) -> set[str]:
    return {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}


def _kept(function: ast.AST) -> tuple[set[str], set[str]]:
    """(what a function changes, what of it is a count, or kept for later: it looks at it, too). Who sets something and does not look at it sets it for others, as a
    `configure(rate)` does."""
    nodes = list(ast.walk(function))
    declared = _declared(function)
    read = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    set_here = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    changed = [one for node in nodes for one in _changes(node)]
    counted = {
        one for node in nodes if isinstance(node, ast.AugAssign) for one in (_changes(node.target) | _names(node.target))
    }
    kept = {name for name in {*changed, *(set_here & declared)} if name in counted or read.count(name) > changed.count(name)}
    return {*changed, *(set_here & declared)}, kept


def _names(node: ast.AST) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) else set()


def _bind(node: ast.AST, found: _File, conditional: bool) -> None:
    """Note what a statement of a module binds."""

    def note(name: str, value: ast.AST | None) -> None:
        if name in found.bindings:
            found.often.add(name)
        # what is set again for certain is that
        found.bindings[name] = [*found.bindings.get(name, []), value] if conditional else [value]

    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        # what a decorator makes of a function is known to nobody; a class is one still
        note(node.name, None if isinstance(node, ast.FunctionDef) and node.decorator_list else node)
        return
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        # what has two names may be changed by either
        said = node.value if len(targets) == 1 or isinstance(node.value, ast.Constant) else None
        for target in targets if node.value is not None else ():
            for one, value in _paired(target, said):
                note(one, value)
        return
    if isinstance(node, ast.If):
        for statement in [*node.body, *node.orelse]:
            _bind(statement, found, True)
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            found.bindings[inner.id] = [None]
        elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
            found.bindings[inner.name] = [None]
        elif isinstance(inner, ast.alias):
            found.bindings[inner.asname or inner.name.partition(".")[0]] = [None]


def _paired(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    """(name, what it gets) of an assignment."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else []
        starred = any(isinstance(one, ast.Starred) for one in [*target.elts, *parts])
        for at, one in enumerate(target.elts):
            yield from _paired(one, parts[at] if parts and not starred else None)
    elif isinstance(target, ast.Starred):
        yield from _paired(target.value, None)


def _looked_at(node: ast.AST) -> list[ast.AST]:
    """The expressions within one that are only looked at."""
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        return [node.value]
    if isinstance(node, (ast.For, ast.comprehension)):
        return [node.iter]
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return [node.test]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.FormattedValue, ast.Starred)):
        return list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        looking = isinstance(node.func, ast.Name) and node.func.id in LOOKING
        return [node.func, *(node.args if looking else [])]
    return []


def _changes(node: ast.AST) -> set[str]:
    """What code changes in place: names, and attributes as ".name"."""
    one: Any = None
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        one = node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in READING:
        one = node.func.value
    found: set[str] = set()
    while isinstance(one, (ast.Attribute, ast.Subscript, ast.Starred)):
        if isinstance(one, ast.Attribute):
            found.add(f".{one.attr}")
        one = one.value
    return found | ({one.id} if isinstance(one, ast.Name) else set())


@dataclass(frozen=True)
class _Defined:
    """A function or a class, by its definition."""

    node: ast.AST


def _made(node: ast.AST | None, module: types.ModuleType, made: dict[str, Any]) -> Any:
    """What an expression comes to in the tasks, or a definition; `NOTHING`: nobody knows. Args: made: what the names bound before it are."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return _Defined(node)
    if isinstance(node, ast.Name):
        # what a module is called is its own
        return made.get(node.id, value_of(node, {}) if not node.id.startswith("__") else NOTHING)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        parts = [_made(one, module, made) for one in node.elts]
        kind = list if isinstance(node, ast.List) else tuple if isinstance(node, ast.Tuple) else set
        with contextlib.suppress(TypeError):
            return NOTHING if _unknown(parts) else kind(parts)
        return NOTHING
    if isinstance(node, ast.Dict):
        keys, values = [_made(one, module, made) for one in node.keys], [_made(one, module, made) for one in node.values]
        with contextlib.suppress(TypeError):
            return NOTHING if _unknown([*keys, *values]) else dict(zip(keys, values, strict=True))
        return NOTHING
    if isinstance(node, ast.Call):
        return _called(node, module, made)
    return (
        value_of(node, {name: one for name, one in made.items() if type(one) in _PLAIN})
        if isinstance(node, ast.expr)
        else NOTHING
    )


def _unknown(values: list[Any]) -> bool:
    return any(value is NOTHING or isinstance(value, _Defined) for value in values)


def _called(node: ast.Call, module: types.ModuleType, made: dict[str, Any]) -> Any:
    function = _looked_up(node.func, module)
    values = [_made(one, module, made) for one in node.args]
    named = {str(one.arg): _made(one.value, module, made) for one in node.keywords}
    if _unknown([*values, *named.values()]) or any(one.arg is None for one in node.keywords):
        return NOTHING
    with contextlib.suppress(Exception):
        if any(function == one for one in _MAKERS) or _is_simple(function):
            return function(*values, **named)
    return NOTHING


def _looked_up(node: ast.expr, module: types.ModuleType) -> Any:
    """What a name, or a chain of names (os.environ.get), means in a module."""
    if isinstance(node, ast.Name):
        return vars(module).get(node.id, value_of(node, {}))
    around = _looked_up(node.value, module) if isinstance(node, ast.Attribute) else NOTHING
    simple = isinstance(around, (types.ModuleType, type)) or around is os.environ
    return getattr(around, node.attr, NOTHING) if isinstance(node, ast.Attribute) and simple else NOTHING


def _is_simple(kind: Any) -> bool:
    """Whether it is a dataclass whose instances nothing but its fields makes."""
    if not inspect.isclass(kind) or not dataclasses.is_dataclass(kind) or hasattr(kind, "__post_init__"):
        return False
    init = vars(kind).get("__init__")
    # written by dataclasses, in no file
    written = isinstance(init, types.FunctionType) and init.__code__.co_filename == "<string>"
    factories = (dataclasses.MISSING, list, dict, set)
    return (
        written and kind.__new__ is object.__new__ and all(one.default_factory in factories for one in dataclasses.fields(kind))
    )


def _is_same(now: Any, made: Any, module: types.ModuleType) -> bool:
    """Whether what a module holds is what its file makes."""
    if isinstance(made, _Defined):
        return _is_defined(now, made.node, module)
    if type(now) is not type(made):
        return False
    if isinstance(made, dict):
        # in their order, as a script may rely on that
        return len(now) == len(made) and all(
            _is_same(*one, module) and _is_same(*other, module)
            for one, other in zip(zip(now, made), zip(now.values(), made.values()))
        )
    if isinstance(made, (list, tuple)):
        return len(now) == len(made) and all(_is_same(one, other, module) for one, other in zip(now, made))
    if isinstance(made, types.SimpleNamespace) or (dataclasses.is_dataclass(made) and hasattr(made, "__dict__")):
        return _is_same(vars(now), vars(made), module)
    if isinstance(made, (set, frozenset)):
        return bool(now == made)
    return repr(now) == repr(made)


def _is_defined(now: Any, node: Any, module: types.ModuleType) -> bool:
    """Whether a name still means what its definition has made, whatever decorated a class."""
    if isinstance(node, ast.ClassDef):
        return bool(node.decorator_list) or (inspect.isclass(now) and now.__qualname__ == node.name)
    if not isinstance(now, types.FunctionType):
        return False
    file = now.__code__.co_filename
    elsewhere = file != "<string>" and os.path.abspath(file) != os.path.abspath(str(module.__file__))
    return now.__code__.co_name == node.name and not elsewhere


def _said(node: Any) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return f"defined by {'def' if isinstance(node, ast.FunctionDef) else 'class'}"
    return _short(ast.unparse(node))


def _shown(value: Any) -> str:
    if isinstance(value, (types.FunctionType, type)):
        return f"{value.__module__}.{value.__qualname__}"
    try:
        return _short(repr(value))
    except Exception:
        return f"another {type(value).__name__}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
