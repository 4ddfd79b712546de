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

import abc
import ast
import collections
import dataclasses
import enum
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from akrunner.errors import ScriptError
from akrunner.launch.as_written import NOTHING, bound, parsed, same_code, value_of

INSTEAD = "put it into a file of its own, and give that as the script, or import it from there (user_files=)"
_MUTABLE = (list, dict, set, bytearray, collections.deque, np.ndarray)
#: methods that change nothing
READING = {
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
LOOKING = {
    "all", "any", "bool", "dict", "enumerate", "frozenset", "id", "isinstance", "iter", "len", "list", "max", "min", "print", "range", "repr", "reversed",
    "set", "sorted", "str", "sum", "tuple", "type", "zip",
}  # fmt: skip
_Place = tuple[int, int]


def check(thing: Any, value: Any, text: str, known: dict[str, Any], sources: list[str]) -> None:
    """Args: thing: a function or a class; value: what its name means, which may be it, wrapped; text: its source; known: what stands behind the names it may use;
    sources: the text of its module, or its cells.

    Raises: ScriptError: defined again in the tasks, it would be another.
    """
    # behind the definition stands what was set in it since
    whole: Any = ast.parse(text).body[0]
    if not isinstance(whole, (ast.FunctionDef, ast.ClassDef)):
        return
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
        _check_registered(thing, known)
    run = [one for node in _run_at_once(whole) for one in _ran(node, known, set())]
    if isinstance(whole, ast.ClassDef) and inspect.isclass(thing):
        hooks = [vars(base)["__init_subclass__"] for base in thing.__mro__[1:-1] if "__init_subclass__" in vars(base)]
        run += [one for hook in hooks for one in _called(getattr(hook, "__func__", hook), 0, set(), thing)]
        run += [one for hook, first in _of_metaclass(thing) for one in _called(hook, 0, set(), first)]
    beside = [one for one in run if one.module in ("", thing.__module__)]
    apart = [dataclasses.replace(one, apart=True) for one in run if one not in beside]
    changed = sorted({name for one in [*beside, *apart] for name in _changed(one)})
    if changed:
        raise ScriptError(
            f"script: the definition of {own} changes {changed[0]}, which goes to the tasks as it is now: it would be changed twice; {INSTEAD}"
        )
    _check_rebound(thing, own, beside, known, sources)


def _check_bases(kind: type, whole: ast.ClassDef, known: dict[str, Any]) -> None:
    for node in whole.bases:
        now = known.get(node.id, NOTHING) if isinstance(node, ast.Name) else NOTHING
        if isinstance(now, type) and now not in kind.__bases__ and now not in getattr(kind, "__orig_bases__", ()):
            before = [one for one in kind.__bases__ if one.__name__ == now.__name__]
            if not before or not _alike(before[0], now):
                raise ScriptError(
                    f"script: {kind.__name__} was made from another {ast.unparse(node)} than there is now; define {kind.__name__} again, or {INSTEAD}"
                )


def _check_registered(kind: type, known: dict[str, Any]) -> None:
    """Raises: ScriptError: another class counts as one of this kind since its definition."""
    dump: Any = getattr(abc, "_get_dump", None)
    registry = dump(kind)[0] if dump is not None and isinstance(kind, abc.ABCMeta) else ()
    for other in filter(None, (one() for one in registry)):
        if not any(_may_register(one, kind, known) for one in _decorators(other)):
            derived = f"derive {other.__name__} from {kind.__name__}, or " if other.__module__ == kind.__module__ else ""
            raise ScriptError(
                f"script: {kind.__name__}.register({other.__name__}) was called behind the definition of {kind.__name__}, and is not called in the tasks; "
                f"{derived}{INSTEAD}"
            )


def _decorators(kind: type) -> list[ast.expr]:
    try:
        whole = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except (OSError, TypeError, SyntaxError):
        return []
    return whole.decorator_list if isinstance(whole, ast.ClassDef) else []


def _may_register(decorator: ast.expr, kind: type, known: dict[str, Any]) -> bool:
    """Whether it may be what has registered the class, which it does in each task again: it is the kind's own `register`, or one of nobody knows what; or a function
    of the user's that has such a one, or looks for it by its name."""
    if _is_register(decorator, kind, known):
        return True
    target, depth = (decorator.func, 1) if isinstance(decorator, ast.Call) else (decorator, 0)
    run = _called(_decorating(target, known), depth, set())
    return any(
        _is_register(node, kind, one.known) or (isinstance(node, ast.Constant) and node.value == "register")
        for one in run
        for node in one.nodes
    )


def _is_register(node: ast.AST, kind: type, known: dict[str, Any]) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "register":
        return False
    whose = known.get(node.value.id) if isinstance(node.value, ast.Name) else _meant(node.value, known)
    return whose is None or whose is kind


def _decorating(node: ast.expr, known: dict[str, Any]) -> Any:
    """As `_meant`, of what decorates, also of a module's; of a class what its instances do when they are called."""
    of = known.get(node.value.id) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else None
    found = (
        vars(of).get(node.attr) if isinstance(of, types.ModuleType) and isinstance(node, ast.Attribute) else _meant(node, known)
    )
    return vars(found).get("__call__") if inspect.isclass(found) else found


def _of_metaclass(kind: type) -> Iterator[tuple[Any, Any]]:
    """(function, its first argument) of what a metaclass runs when it makes a class."""
    for base in inspect.getmro(type(kind))[:-2]:
        for name, first in (("__prepare__", type(kind)), ("__new__", type(kind)), ("__init__", kind)):
            hook = vars(base).get(name)
            if hook is not None and base not in (abc.ABCMeta, enum.EnumMeta):
                yield getattr(hook, "__func__", hook), first


def _alike(one: type, other: type) -> bool:
    """Whether two classes are the same one, defined twice."""

    def own(kind: type) -> dict[str, Any]:
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


@dataclass(frozen=True)
class _Run:
    """Statements that are run when Python comes to a definition. Attributes: nodes: all, those within others, too; known: what stands behind their names; declared:
    names that they set by `global`; module: that they are from, "": the definition's; apart: whether that is another one
    than the definition's; first: what the function they are of is a method of."""

    nodes: list[ast.AST]
    known: dict[str, Any]
    declared: set[str]
    module: str = ""
    apart: bool = False
    first: Any = None

    def goes(self, node: ast.AST) -> bool:
        """Whether what they change goes to the tasks as it is now: what another module has is there as its file makes it, not what a class or an instance has
        itself that its method is called for."""
        if not self.apart:
            return True
        while isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return False
        return self.known.get(node.value.id) is self.first and node.attr in getattr(self.first, "__dict__", {})

    @property
    def reads(self) -> set[str]:
        """The names that they take from outside."""
        return {one.id for one in self.nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)} & self.known.keys()


def _check_rebound(thing: Any, own: str, run: list[_Run], known: dict[str, Any], sources: list[str]) -> None:
    """Raises: ScriptError: a name that its definition uses meant something else then."""
    names = sorted({name for one in run for name in one.reads})
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
        # nobody changes what is in an enum, whatever its members are handed to
        enumerated = isinstance(known[name], type) and issubclass(known[name], enum.Enum)
        # what a base has is looked up in it, as it is by then
        inherited = isinstance(thing, type) and any(known[name] is base for base in thing.__mro__)
        kept = enumerated or inherited or all(_is_kept(one, name) for one in run)
        bindings = [(at, line, node) for at, tree in enumerate(trees) for line, node in _bindings(tree, name, not kept)]
        before = [node for at, line, node in bindings if (at, line) <= places[-1]]
        later = [node for at, line, node in bindings if (at, line) > places[-1]]
        # what was not there then was not used then
        if not before or not later or _says(before[-1], known[name]):
            continue
        if any(ast.dump(one) != ast.dump(before[-1]) for one in later):
            raise ScriptError(
                f"script: {name} has been set again since {own} was defined with it; define {own} again behind it, or {INSTEAD}"
            )


def _says(node: ast.AST, value: Any) -> bool:
    """Whether an assignment still says what the value is."""
    said = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    now = value_of(said, {}) if isinstance(said, ast.expr) else NOTHING
    return now is not NOTHING and type(now) is type(value) and repr(now) == repr(value)


def _is_kept(run: _Run, name: str) -> bool:
    """Whether a list, a dict or such is but given another name, by which it is the same one: nobody looks at what is in it."""
    values = [one.value for one in run.nodes if isinstance(one, (ast.Assign, ast.AnnAssign))]
    return all(one in values for one in run.nodes if isinstance(one, ast.Name) and one.id == name)


def _bindings(tree: ast.Module, name: str, inside: bool) -> Iterator[tuple[int, ast.AST]]:
    """Where a module binds a name, and how: also what its functions do by `global`. Args: inside: also where it changes what is in it."""
    pending: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
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
            parts = list(ast.walk(node))
            run = _Run(parts, {name: []}, set())
            if any(isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load) for one in parts):
                yield node.lineno, node
            elif inside and _changed(run):
                yield node.lineno, node
            continue
        pending = [(one, True) for one in ast.iter_child_nodes(node)] + pending


def _ran(node: ast.AST, known: dict[str, Any], seen: set[int]) -> Iterator[_Run]:
    """What is run when this, a decorator or a part of a class, is computed."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        # a decorator: it is called, and so is what it gives
        target, depth = (node.func, 1) if isinstance(node, ast.Call) else (node, 0)
        yield from _called(_meant(target, known), depth, seen)
    run = _Run(list(_statements([node], 0)), known, set())
    yield run
    yield from _calls(run, seen)


def _calls(run: _Run, seen: set[int]) -> Iterator[_Run]:
    for node in run.nodes:
        if isinstance(node, ast.Call):
            yield from _called(_meant(node.func, run.known), 0, seen)


def _meant(node: ast.AST, known: dict[str, Any]) -> Any:
    """What stands behind a name, or is an attribute of a class or an instance of the user's own behind it; None if nothing is known of it."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    around = _meant(node.value, known) if isinstance(node, ast.Attribute) else None
    kind = around if inspect.isclass(around) else type(around)
    file = str(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")
    root = kind.__module__.partition(".")[0]
    if not isinstance(node, ast.Attribute) or root in sys.stdlib_module_names or "site-packages" in file:
        return None
    found = inspect.getattr_static(around, node.attr, None)
    if isinstance(found, classmethod):
        return types.MethodType(found.__func__, kind)
    if isinstance(found, staticmethod):
        return found.__func__
    return types.MethodType(found, around) if isinstance(found, types.FunctionType) and around is not kind else found


def _called(function: Any, depth: int, seen: set[int], first: Any = None) -> Iterator[_Run]:
    """What a call of a function, or of an instance, runs. Args: depth: of functions in it, which are called at once, too; first: its first argument, None: not
    known."""
    by_call = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(by_call, types.FunctionType) and not isinstance(function, type):
        function = types.MethodType(by_call, function)
    if isinstance(function, types.MethodType):
        function, first = function.__func__, function.__self__
    function = inspect.unwrap(function) if callable(function) and not inspect.isclass(function) else function
    if not isinstance(function, types.FunctionType) or id(function) in seen or not _is_somebodys(function):
        return
    seen.add(id(function))
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError):
        return
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        return
    nodes = list(_statements(body[0].body, depth))
    declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    bound_ = {one.arg for one in ast.walk(body[0]) if isinstance(one, ast.arg)}
    bound_ |= {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    local = bound_ - declared
    known = {key: one for key, one in function.__globals__.items() if key not in local}
    if first is not None and body[0].args.args:
        known[body[0].args.args[0].arg] = first
    run = _Run(nodes, known, declared, str(function.__module__), first=first)
    yield run
    yield from _calls(run, seen)


def _is_somebodys(function: types.FunctionType) -> bool:
    """Whether it is no package's, which does what it does by itself."""
    root = str(function.__module__).partition(".")[0]
    return root not in sys.stdlib_module_names and "site-packages" not in function.__code__.co_filename


def _statements(nodes: list[Any], depth: int) -> Iterator[ast.AST]:
    """All nodes, not those of functions that are deeper than so many."""
    for node in nodes:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            if depth:
                yield from _statements(node.body if isinstance(node.body, list) else [node.body], depth - 1)
        else:
            yield from _statements(list(ast.iter_child_nodes(node)), depth)


def _changed(run: _Run) -> set[str]:
    """The names of lists, dicts and such that statements change, and of what they set by `global`."""
    found: set[str] = set()

    def mutable(node: Any) -> bool:
        return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(_meant(node, run.known), _MUTABLE) and run.goes(node)

    for node in run.nodes:
        changed: list[Any] = []
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in run.declared and run.goes(node):
            found.add(node.id)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed = [node.value]
        elif isinstance(node, ast.AugAssign):
            changed = [node.target]
            around = _meant(node.target.value, run.known) if isinstance(node.target, ast.Attribute) else None
            counted = not isinstance(around, types.ModuleType) and _meant(node.target, run.known) is not None
            if counted and around is not None and run.goes(node.target):
                # of a class or an instance that goes to the tasks with the number it has now
                found.add(_root(node.target, run.known))
        elif (
            isinstance(node, ast.Attribute)
            and node.attr not in READING
            and not isinstance(run.known.get(_name(node)), np.ndarray)
        ):
            # a method that is called, or handed over to whoever calls it
            changed = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in LOOKING:
            changed = node.args if isinstance(run.known.get(node.func.id), types.FunctionType) else []
        found |= {_root(one, run.known) for one in changed if mutable(one)}
    return found


def _root(node: Any, known: dict[str, Any]) -> str:
    """What to call a thing by, of which an attribute is changed: it may be called cls or self there, which says nothing."""
    while isinstance(node, ast.Attribute):
        node = node.value
    value = known.get(node.id)
    if inspect.isclass(value):
        return value.__name__
    return next((name for name, one in known.items() if one is value and name != "self"), str(node.id))


def _name(node: ast.Attribute) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else ""
