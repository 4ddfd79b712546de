"""Finds what a module did when it was imported and would do differently in the tasks, where names have the values they have by
now.

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
from akrunner.launch.functions.as_written import NOTHING, bound, same_code, tree_of, value_of

INSTEAD = "put it into a file of its own, and give that as the script, or import it from there (user_files=)"
_MUTABLE = (list, dict, set, bytearray, collections.deque, np.ndarray)
#: methods that do not change their object
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
#: functions that do not change their arguments
LOOKING = {
    "all", "any", "bool", "dict", "enumerate", "frozenset", "id", "isinstance", "iter", "len", "list", "max", "min", "print", "range", "repr", "reversed",
    "set", "sorted", "str", "sum", "tuple", "type", "zip",
}  # fmt: skip
_Place = tuple[int, int]


def check(thing: Any, value: Any, text: str, known: dict[str, Any], sources: list[str]) -> None:
    """Check that the definition of a function or class, when a task runs it again, makes the same function or class.

    Args:
        thing: the function or class.
        value: the object behind its name, which may be `thing` itself or a wrapper of it.
        text: its source.
        known: the names it may use, with their values.
        sources: the text of its module, or its notebook cells.
    Raises:
        ScriptError: the function or class would be a different one in the tasks.
    """
    # only the first statement is the definition; the statements after it set attributes that were added later
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
            f"script: {own} has implementations for {kinds}, which were registered behind its definition and do not go to the "
            f"tasks; {INSTEAD}"
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
            f"script: the definition of {own} changes {changed[0]}, which goes to the tasks as it is now: it would be changed "
            f"twice; {INSTEAD}"
        )
    _check_rebound(thing, own, beside, known, sources)


def _check_bases(kind: type, whole: ast.ClassDef, known: dict[str, Any]) -> None:
    for node in whole.bases:
        now = known.get(node.id, NOTHING) if isinstance(node, ast.Name) else NOTHING
        if isinstance(now, type) and now not in kind.__bases__ and now not in getattr(kind, "__orig_bases__", ()):
            before = [one for one in kind.__bases__ if one.__name__ == now.__name__]
            if not before or not _alike(before[0], now):
                raise ScriptError(
                    f"script: {kind.__name__} was made from another {ast.unparse(node)} than there is now; define "
                    f"{kind.__name__} again, or {INSTEAD}"
                )


def _check_registered(kind: type, known: dict[str, Any]) -> None:
    """Check that no other class was registered (`kind.register(...)`) as one of this kind after its definition.

    Raises:
        ScriptError: a class was, and not by one of its decorators.
    """
    dump: Any = getattr(abc, "_get_dump", None)
    registry = dump(kind)[0] if dump is not None and isinstance(kind, abc.ABCMeta) else ()
    for other in filter(None, (one() for one in registry)):
        if not any(_may_register(one, kind, known) for one in _decorators(other)):
            derived = f"derive {other.__name__} from {kind.__name__}, or " if other.__module__ == kind.__module__ else ""
            raise ScriptError(
                f"script: {kind.__name__}.register({other.__name__}) was called behind the definition of {kind.__name__}, and "
                f"is not called in the tasks; {derived}{INSTEAD}"
            )


def _decorators(kind: type) -> list[ast.expr]:
    try:
        whole = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except (OSError, TypeError, SyntaxError):
        return []
    return whole.decorator_list if isinstance(whole, ast.ClassDef) else []


def _may_register(decorator: ast.expr, kind: type, known: dict[str, Any]) -> bool:
    """Whether a decorator may be what has registered a class with `kind`; it then does so again in each task.

    It may if it is `kind.register` or the `register` of an object that is not known, or if it is a function of the user's that
    uses such a `register` or looks it up by its name.
    """
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
    """Return the object behind a decorator's expression, as `_meant` does, but also if it is in a module. For a class, return
    its `__call__`, which is what its instances run when they are called.
    """
    of = known.get(node.value.id) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else None
    found = (
        vars(of).get(node.attr) if isinstance(of, types.ModuleType) and isinstance(node, ast.Attribute) else _meant(node, known)
    )
    return vars(found).get("__call__") if inspect.isclass(found) else found


def _of_metaclass(kind: type) -> Iterator[tuple[Any, Any]]:
    """Yield (function, its first argument) for each function that a metaclass runs when it makes a class."""
    for base in inspect.getmro(type(kind))[:-2]:
        for name, first in (("__prepare__", type(kind)), ("__new__", type(kind)), ("__init__", kind)):
            hook = vars(base).get(name)
            if hook is not None and base not in (abc.ABCMeta, enum.EnumMeta):
                yield getattr(hook, "__func__", hook), first


def _alike(one: type, other: type) -> bool:
    """Whether two classes are the same class, defined twice."""

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
    """Yield the parts of a definition that Python computes as soon as it reaches the definition, except annotations and
    defaults (`live` has these).
    """
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
    """Statements that run when Python reaches a definition.

    Attributes:
        nodes: all syntax nodes of the statements, nested ones too.
        known: the names they use, with their values.
        declared: the names that they set by `global`.
        module: the module that the statements are from; "": the definition's.
        apart: whether that is another module than the definition's.
        first: the class or instance whose method the statements belong to; None: not known.
    """

    nodes: list[ast.AST]
    known: dict[str, Any]
    declared: set[str]
    module: str = ""
    apart: bool = False
    first: Any = None

    def goes(self, node: ast.AST) -> bool:
        """Whether what the statements change by this expression goes to the tasks with its present value.

        Statements of another module change the things of that module, which a task has as the module's file makes them; only
        the own attributes of the class or instance whose method is called (`first`) go with their present values.
        """
        if not self.apart:
            return True
        while isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return False
        return self.known.get(node.value.id) is self.first and node.attr in getattr(self.first, "__dict__", {})

    @property
    def reads(self) -> set[str]:
        """The names that the statements take from outside."""
        return {one.id for one in self.nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)} & self.known.keys()


def _check_rebound(thing: Any, own: str, run: list[_Run], known: dict[str, Any], sources: list[str]) -> None:
    """Raises: ScriptError: a name that the definition uses had another meaning when the definition was run."""
    names = sorted({name for one in run for name in one.reads})
    if "<locals>" in thing.__qualname__ or not names:
        return
    trees = [tree_of(one) for one in sources]
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
        # the members of an enum are not changed by the code they are handed to
        enumerated = isinstance(known[name], type) and issubclass(known[name], enum.Enum)
        # attributes of a base class are looked up at each use, and so have their present values
        inherited = isinstance(thing, type) and any(known[name] is base for base in thing.__mro__)
        kept = enumerated or inherited or all(_is_kept(one, name) for one in run)
        bindings = [(at, line, node) for at, tree in enumerate(trees) for line, node in _bindings(tree, name, not kept)]
        before = [node for at, line, node in bindings if (at, line) <= places[-1]]
        later = [node for at, line, node in bindings if (at, line) > places[-1]]
        # a name that was not bound before the definition was not used by it
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
    """Whether the statements do no more with a list, a dict or the like than give it another name: its contents are not looked
    at.
    """
    values = [one.value for one in run.nodes if isinstance(one, (ast.Assign, ast.AnnAssign))]
    return all(one in values for one in run.nodes if isinstance(one, ast.Name) and one.id == name)


def _bindings(tree: ast.Module, name: str, inside: bool) -> Iterator[tuple[int, ast.AST]]:
    """Yield (line, node) wherever a module binds a name, also where its functions do so by `global`. For such a function the
    line is `sys.maxsize`.

    Args:
        inside: also where the module changes the contents of the name's value.
    """
    pending: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while pending:
        node, outside = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if outside and node.name == name:
                yield node.lineno, node
            inner = list(ast.walk(node))
            if not isinstance(node, ast.ClassDef) and any(isinstance(one, ast.Global) and name in one.names for one in inner):
                # the function may be called at any time
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
    """Yield the statements that run when `node`, a decorator or a part of a class, is computed."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        # a decorator is called, and if it is a call itself, so is the function that this call returns
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
    """Return the object behind a name, or behind an attribute of a class or instance of the user's own; None if it is not
    known.
    """
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
    """Yield the statements that a call of a function, or of an instance, runs.

    Args:
        depth: how many levels of functions within it are called at once, too.
        first: its first argument; None: not known.
    """
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
    """Whether a function is the user's, and not one of the standard library's or of an installed package, which are trusted to
    do the same again.
    """
    root = str(function.__module__).partition(".")[0]
    return root not in sys.stdlib_module_names and "site-packages" not in function.__code__.co_filename


def _statements(nodes: list[Any], depth: int) -> Iterator[ast.AST]:
    """Yield all nodes, without those of functions that are nested deeper than `depth` levels."""
    for node in nodes:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            if depth:
                yield from _statements(node.body if isinstance(node.body, list) else [node.body], depth - 1)
        else:
            yield from _statements(list(ast.iter_child_nodes(node)), depth)


def _changed(run: _Run) -> set[str]:
    """Return the names of the lists, dicts and the like that statements change, and the names that they set by `global`."""
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
                # an attribute of a class or an instance, which goes to the tasks with the number it has now
                found.add(_root(node.target, run.known))
        elif (
            isinstance(node, ast.Attribute)
            and node.attr not in READING
            and not isinstance(run.known.get(_name(node)), np.ndarray)
        ):
            # a method that is called, or handed over to code that calls it
            changed = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in LOOKING:
            changed = node.args if isinstance(run.known.get(node.func.id), types.FunctionType) else []
        found |= {_root(one, run.known) for one in changed if mutable(one)}
    return found


def _root(node: Any, known: dict[str, Any]) -> str:
    """Return the name for an error to call a thing by, an attribute of which is changed: `cls` or `self`, its name in the code,
    would say nothing.
    """
    while isinstance(node, ast.Attribute):
        node = node.value
    value = known.get(node.id)
    if inspect.isclass(value):
        return value.__name__
    return next((name for name, one in known.items() if one is value and name != "self"), str(node.id))


def _name(node: ast.Attribute) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else ""
