"""What the file of a module says about what it binds, changes, calls and imports. None of its code is run.

::

    MODELS = {}                                 bindings: MODELS is {}
    def register(c): MODELS[c.__name__] = c     functions: register changes MODELS, and does not look at it
    @register                                   at_import: register
    class Linear: ...                           bindings: Linear is that class
"""

from __future__ import annotations

import ast
import collections
import contextlib
import functools
import os
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from akrunner.launch.functions.as_written import bound, parsed
from akrunner.launch.functions.at_import import LOOKING, READING

#: functions that import modules whose names a program computes
_IMPORTING = {"import_module", "__import__", "iter_modules", "walk_packages"}
#: methods that run when a class is called, and methods that run when a class is defined or derived
_MAKING = {"__init__", "__new__", "__post_init__"}
_DERIVING = {"__init_subclass__", "__set_name__"}
_OF_TEXTS = frozenset(name for name in dir(str) if not name.startswith("_"))
#: methods that only read, or change, their own object
_HARMLESS = (
    READING
    | _OF_TEXTS
    | set(
        "add append appendleft clear discard extend insert move_to_end pop popitem popleft remove reverse setdefault sort "
        "update".split()
    )
)
#: methods, and functions of modules, that do not change their arguments
_LOOKING = {
    "array", "asarray", "copy", "critical", "debug", "deepcopy", "dump", "dumps", "error", "format", "info", "join", "log", "pformat", "pprint", "startswith",
    "endswith", "warning",
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    """One name of an import.

    Attributes:
        level: the number of its leading dots.
        module: the module it names.
        name: the name that is taken from the module; "": the module itself; "*": all names.
        bound: the name it gets in the importing module.
    """

    level: int
    module: str
    name: str
    bound: str


@dataclass(eq=False)
class Function:
    """What a function does, together with the functions within it. Attributes of objects are written ".name".

    Attributes:
        changes: the names and attributes that it changes in place, or sets by `global`.
        looks: the names and attributes that it also looks at.
        calls: the names of the functions that it calls.
        computes: whether it returns anything but its arguments.
        fills: whether it changes its arguments in place.
        asks: the names and attributes by which it decides what to do (`if READY: ...`).
        does: whether it calls anything that may do more than look at an object, or change it.
    """

    changes: set[str]
    looks: set[str]
    calls: set[str]
    computes: bool
    fills: bool
    asks: set[str]
    does: bool


@dataclass
class Text:
    """What a module's file says. Attributes of objects are written ".name".

    Attributes:
        bindings: name -> what it is bound to: an expression, a definition, an `Import`, or None if that is not known; several
            if it depends on a condition.
        began: for the names that functions set by `global` and look at: what the file itself binds them to. (`bindings` has
            None for these.)
        often: the names that are bound more than once.
        altered: what the file changes in place whenever it is run.
        touched: all of `altered`; names that the file hands on, when it is run, to code that may change them; names that its
            functions count or keep for themselves; attributes that its functions change.
        handed: the attributes that the file hands on when it is run.
        lent: name or attribute that only the file's functions hand on, when they are called -> the names of the functions that
            it is handed to.
        declared: the names that functions set by `global`.
        hung: the attributes that the file sets of anything but `self`.
        hangs_any: whether the file also sets attributes whose names it computes.
        imports: all imports, also those in functions, except those that a task does not run.
        imports_any: whether the file also imports modules whose names it computes.
        loaded: names, and names with attributes ("a.b.c"), that are used other than as annotations.
        functions: functions by the names they are called by; for a class, the methods that make its instances.
        at_import: the names of what is called, or decorates something, whenever the file is run.
        words: all words of the file that may be a name.
        read: the names and attributes that the file looks at whenever it is run.
    """

    bindings: dict[str, list[ast.AST | Import | None]] = field(default_factory=dict)
    began: dict[str, list[ast.AST | Import | None]] = field(default_factory=dict)
    often: set[str] = field(default_factory=set)
    altered: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    lent: dict[str, set[str]] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    hung: set[str] = field(default_factory=set)
    hangs_any: bool = False
    imports: list[Import] = field(default_factory=list)
    imports_any: bool = False
    loaded: set[str] = field(default_factory=set)
    functions: dict[str, list[Function]] = field(default_factory=dict)
    at_import: set[str] = field(default_factory=set)
    words: frozenset[str] = frozenset()
    read: set[str] = field(default_factory=set)


def text_of(module: types.ModuleType) -> Text:
    with contextlib.suppress(OSError):
        return _read(str(module.__file__), os.stat(str(module.__file__)).st_mtime_ns)
    return Text()


def imports_in(tree: ast.AST) -> Iterator[Import]:
    """Yield the imports of a tree, except those under `if TYPE_CHECKING` and `if __name__ == "__main__"`."""
    for node in _in_tasks(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(0, alias.name, "", bound(node, alias))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import(node.level, node.module or "", alias.name, bound(node, alias))
        elif isinstance(node, ast.Call) and _last(node.func) in _IMPORTING and node.args:
            said = node.args[0]
            if isinstance(said, ast.Constant) and isinstance(said.value, str) and not said.value.startswith("."):
                yield Import(0, said.value, "", "")


@functools.lru_cache(maxsize=1024)
def _read(path: str, changed: int) -> Text:
    """Read a module's file. Args: changed: when the file was changed, so that a new version is read again."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    tree = parsed(text)
    found = Text(imports=list(imports_in(tree)), words=frozenset(re.findall(r"\w+", text)))
    for node in tree.body:
        _bind(node, found, False)
    _note_uses(tree, found)
    for inner in ast.walk(tree):
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = _function(inner)
            kept = function.changes & function.looks
            found.declared |= _declared(inner)
            found.touched |= kept | {one for one in function.changes if one.startswith(".")}
            set_here = kept & _declared(inner)
            found.began.update({name: found.bindings[name] for name in set_here & found.bindings.keys() - found.began.keys()})
            found.bindings.update({name: [None] for name in set_here})
            found.functions.setdefault(inner.name, []).append(function)
        elif isinstance(inner, ast.ClassDef):
            made = [_function(one) for one in inner.body if isinstance(one, ast.FunctionDef) and one.name in _MAKING]
            # a metaclass is called where a class is made
            kind = "__init_subclass__" if any(_last(base) == "type" for base in inner.bases) else inner.name
            found.functions.setdefault(kind, []).extend(made)
    for inner in _run(tree):
        found.altered |= _changes(inner)
        found.read |= _read_by(inner)
        found.at_import |= _called(inner)
        if isinstance(inner, ast.Global):
            found.bindings.update({name: [None] for name in inner.names})
    _note_aliases(tree, found)
    found.touched |= found.altered
    _note_lent(tree, found)
    return found


def _read_by(node: ast.AST) -> set[str]:
    """Return the names and attributes that a node looks at itself when it is run; for a function, those in its defaults."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner = [part for one in [*node.args.defaults, *node.args.kw_defaults] if one is not None for part in ast.walk(one)]
    else:
        inner = [node]
    return {_short(one) for one in inner if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)}


def _note_aliases(tree: ast.Module, found: Text) -> None:
    """Note that what is changed by another name, when the file is run, is changed: for part in PARTS: part["x"] = 1."""
    also: dict[str, set[str]] = {}
    for node in _run(tree):
        targets, value = [], None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            targets, value = [node.target], node.iter
        names = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
        for one in ast.walk(value) if value is not None else ():
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
                for name in names - {one.id}:
                    also.setdefault(name, set()).add(one.id)
    handed = {one.id for node in _run(tree) if isinstance(node, ast.Call) for one in node.args if isinstance(one, ast.Name)}
    pending = [name for name in also if name in found.altered | handed - found.bindings.keys()]
    while pending:
        more = also.get(pending.pop(), set()) - found.altered
        found.altered |= more
        pending += more


def _note_lent(tree: ast.Module, found: Text) -> None:
    """Note what is handed on to code that may change it: when the file is run, or only when its functions are called."""
    looked_at = {id(one) for node in ast.walk(tree) for one in _looked_at(node)}
    run = {id(one) for one in _run(tree)} - {id(one) for one in _named_again(tree, found.altered)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {id(one): {_last(node)} for node in calls for one in [*node.args, *(named.value for named in node.keywords)]}
    for node in _in_tasks(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and id(node) not in looked_at:
            if id(node) in run:
                (found.touched if isinstance(node, ast.Name) else found.handed).add(_short(node))
            else:
                found.lent.setdefault(_short(node), set()).update(called.get(id(node), ()))


def _named_again(tree: ast.Module, altered: set[str]) -> Iterator[ast.AST]:
    """Yield values that get another name by which nothing changes them when the file is run: B = A; class C: b = A."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for statement in [*tree.body, *(one for node in classes for one in node.body)]:
        if isinstance(statement, ast.Assign) and not any(
            {_short(one), f".{_last(one)}"} & altered if isinstance(one, (ast.Name, ast.Attribute)) else True
            for one in statement.targets
        ):
            yield statement.value


def _note_uses(tree: ast.Module, found: Text) -> None:
    said = {id(one) for node in ast.walk(tree) for annotation in _annotations(node) for one in ast.walk(annotation)}
    for node in ast.walk(tree):
        loaded = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if loaded and id(node) not in said:
            found.loaded.add(_chain(node))
        if isinstance(node, ast.Attribute) and not loaded and not _is_self(node.value):
            found.hung.add(_short(node))
        if isinstance(node, ast.Call) and _last(node.func) in ("setattr", "delattr") and len(node.args) > 1:
            whose, name = node.args[:2]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found.hung.add(f".{name.value}")
            elif not _is_self(whose):
                found.hangs_any = True
        if isinstance(node, ast.Call) and _last(node.func) in _IMPORTING:
            found.imports_any = found.imports_any or not (node.args and isinstance(node.args[0], ast.Constant))


def _annotations(node: ast.AST) -> list[ast.AST]:
    return [one for one in (getattr(node, "annotation", None), getattr(node, "returns", None)) if isinstance(one, ast.AST)]


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _short(node: Any) -> str:
    return node.id if isinstance(node, ast.Name) else f".{node.attr}"


def _chain(node: Any) -> str:
    """Return a.b.c as it is written; "" if it begins with anything but a name."""
    if isinstance(node, ast.Name):
        return node.id
    around = _chain(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{around}.{node.attr}" if around else ""


def _last(node: ast.AST) -> str:
    """Return the last name of a.b.c, or of what a call calls."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _in_tasks(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes except those below `if TYPE_CHECKING` and `if __name__ == "__main__"`."""
    yield tree
    inner = list(ast.iter_child_nodes(tree))
    if isinstance(tree, ast.If):
        by_name = (
            isinstance(tree.test, ast.Compare) and isinstance(tree.test.left, ast.Name) and tree.test.left.id == "__name__"
        )
        if by_name or _last(tree.test) == "TYPE_CHECKING":
            inner = list(tree.orelse)
    for node in inner:
        yield from _in_tasks(node)


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all nodes that run when a module is imported, also those of functions that its own statements call or use as
    decorators.
    """
    functions = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            yield from node.decorator_list
            for decorator in node.decorator_list:
                inner = decorator.func if isinstance(decorator, ast.Call) else decorator
                own = functions.pop(inner.id, None) if isinstance(inner, ast.Name) else None
                pending += own.body if own is not None else [decorator]
            continue
        yield node
        called = [node] if isinstance(node, ast.Call) else node.decorator_list if isinstance(node, ast.ClassDef) else []
        for one in called:
            function = one.func if isinstance(one, ast.Call) else one
            if isinstance(function, ast.Name) and function.id in functions:
                pending += functions.pop(function.id).body
        pending += ast.iter_child_nodes(node)


def _called(node: ast.AST) -> set[str]:
    """Return the names that a node, when it runs at import, may call. A class calls its decorators, and the methods that run
    when a class is derived.
    """
    if isinstance(node, ast.ClassDef):
        return {*(_last(one) for one in node.decorator_list), *(_DERIVING if node.bases or node.keywords else ())}
    return {_last(node)} if isinstance(node, (ast.Call, ast.Name, ast.Attribute)) else set()


def _function(node: ast.AST) -> Function:
    """Find out what a function does.

    A value that the function both changes and looks at is a counter, or something kept for later. A function that sets a value
    and does not look at it, as `configure(rate)` does, sets it for other functions.
    """
    nodes = list(ast.walk(node))
    loaded = [one for one in nodes if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)]
    read = collections.Counter(_short(one) for one in loaded)
    changed = collections.Counter(name for one in nodes for name in _changes(one))
    set_here = {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)} & _declared(node)
    counted = {name for one in nodes if isinstance(one, ast.AugAssign) for name in (_changes(one.target) | _names(one.target))}
    looks = {name for name in read if read[name] > changed[name]} | counted
    calls = {_last(one) for one in nodes if isinstance(one, ast.Call)}
    given = {one.arg for one in nodes if isinstance(one, ast.arg)}
    given |= {one.name for one in nodes if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    computes, fills = any(_computes(one, given) for one in nodes), bool({*changed} & (given - {"self", "cls"}))
    return Function({*changed, *set_here}, looks, calls, computes, fills, _asked(nodes), _does(nodes))


def _asked(nodes: list[ast.AST]) -> set[str]:
    """Return the names and attributes that conditions read (`if`, `while`, `assert`, `and`, `or`)."""
    tests = [one.test for one in nodes if isinstance(one, (ast.If, ast.While, ast.IfExp, ast.Assert))]
    tests += [one for one in nodes if isinstance(one, ast.BoolOp)]
    parts = [one for test in tests for one in ast.walk(test)]
    return {_short(one) for one in parts if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)}


def _does(nodes: list[ast.AST]) -> bool:
    """Whether a call does more than look at an object, or change the object whose method it is. Calls that make an exception to
    raise do not count.
    """
    raised = {id(one) for node in nodes if isinstance(node, ast.Raise) for one in ast.walk(node)}
    calls = [one for one in nodes if isinstance(one, ast.Call) and id(one) not in raised]
    return any(_last(one.func) not in (LOOKING if isinstance(one.func, ast.Name) else _HARMLESS) for one in calls)


def _computes(node: ast.AST, given: set[str]) -> bool:
    """Whether a statement of a function returns anything but an argument, a constant or a function within, or yields."""
    if not isinstance(node, ast.Return):
        return isinstance(node, (ast.Yield, ast.YieldFrom))
    return not isinstance(node.value, (ast.Constant, ast.Lambda, type(None))) and _last(node.value) not in given


def _declared(function: ast.AST) -> set[str]:
    return {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}


def _names(node: ast.AST) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) else set()


def _bind(node: ast.AST, found: Text, conditional: bool) -> None:
    """Note the names that a statement of a module binds."""

    def note(name: str, value: ast.AST | Import | None) -> None:
        if name in found.bindings:
            found.often.add(name)
        # a name that is certainly bound again has only its new value
        found.bindings[name] = [*found.bindings.get(name, []), value] if conditional else [value]

    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        # the result of a function's decorator is not known; a decorated class is still a class
        note(node.name, None if isinstance(node, ast.FunctionDef) and node.decorator_list else node)
    elif isinstance(node, (ast.Import, ast.ImportFrom)) and not conditional:
        for taken in imports_in(node):
            note(taken.bound, taken)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        # a value that has two names may be changed by either
        said = node.value if len(targets) == 1 or isinstance(node.value, ast.Constant) else None
        for target in targets if node.value is not None else ():
            for one, value in paired(target, said):
                note(one, value)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and not conditional:
        before = found.bindings.get(node.target.id, [])
        known = before[0] if len(before) == 1 and isinstance(before[0], ast.expr) else None
        note(node.target.id, known and ast.copy_location(ast.BinOp(known, node.op, node.value), node))
    elif isinstance(node, ast.If):
        for statement in [*node.body, *node.orelse]:
            _bind(statement, found, True)
    else:
        _forget(node, found)


def _forget(node: ast.AST, found: Text) -> None:
    """Note that the values are not known of the names that a statement of another kind binds."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            found.bindings[inner.id] = [None]
        elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
            found.bindings[inner.name] = [None]
        elif isinstance(inner, ast.alias):
            found.bindings[inner.asname or inner.name.partition(".")[0]] = [None]


def paired(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield (name, the expression whose value it gets, or None if not known) for each name in the target of an assignment."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else []
        starred = any(isinstance(one, ast.Starred) for one in [*target.elts, *parts])
        for at, one in enumerate(target.elts):
            yield from paired(one, parts[at] if parts and not starred else None)
    elif isinstance(target, ast.Starred):
        yield from paired(target.value, None)


def _looked_at(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that are only looked at."""
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
    if isinstance(node, ast.Dict):
        # a dict that is unpacked with ** is copied
        return [value for key, value in zip(node.keys, node.values) if key is None]
    if isinstance(node, ast.keyword):
        return [node.value] if node.arg is None else []
    if isinstance(node, ast.Call):
        looking = node.func.id in LOOKING if isinstance(node.func, ast.Name) else _last(node.func) in _LOOKING
        return [node.func, *(node.args if looking else [])]
    return []


def _changes(node: ast.AST) -> set[str]:
    """Return what a node changes in place: names, and attributes as ".name"."""
    one: Any = None
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        one = node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in READING | _OF_TEXTS:
        one = node.func.value
    found: set[str] = set()
    while isinstance(one, (ast.Attribute, ast.Subscript, ast.Starred)):
        if isinstance(one, ast.Attribute):
            found.add(f".{one.attr}")
        one = one.value
    return found | ({one.id} if isinstance(one, ast.Name) else set())
