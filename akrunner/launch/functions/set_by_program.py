"""Finds what the text of a program sets, or changes, in the modules that the program has imported.

::

    import settings                      settings.DEBUG = True               (settings, DEBUG) is set
    from settings import CFG             CFG["lr"] = 0.5; CFG.update(n=3)    CFG is changed
    parser.parse_args(namespace=ARGS)                                        ARGS is changed
"""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from akrunner.launch.functions.as_written import NOTHING, tree_of
from akrunner.launch.functions.at_import import READING
from akrunner.launch.functions.module_values import is_plain

#: how deep in lists and dicts, and at how many items of each, an object that the program changes is looked for
_DEEPEST, _MANY = 3, 1000
#: methods that do not change their object
_LOOKING = READING | {name for name in dir(str) if not name.startswith("_")}


@dataclass
class ByProgram:
    """What a program sets.

    Attributes:
        names: (module, name in it) of each name that it sets.
        held: the ids of the objects that it changes in place.
        attributes: the names of all attributes that it sets in anything, and of the attributes on the way to them.
        called: the names of all functions that it calls.
    """

    names: set[tuple[str, str]] = field(default_factory=set)
    held: set[int] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)

    def has(self, module: str, name: str, value: Any) -> bool:
        """Whether the program sets a module's name, or changes what it holds. Args: value: the name's value."""
        return (module, name) in self.names or (bool(self.held) and self._holds(value, 0))

    def _holds(self, value: Any, depth: int) -> bool:
        if id(value) in self.held:
            return True
        if depth == _DEEPEST or is_plain(value) or isinstance(value, (type, types.ModuleType, types.FunctionType)):
            return False
        # the items themselves, even if a class of the user's has its own way of iterating
        kind = next((one for one in (list, tuple) if issubclass(type(value), one)), None)
        inside = kind.__iter__(value) if kind is not None else dict.values(value) if issubclass(type(value), dict) else ()
        return any(self._holds(one, depth + 1) for one in itertools.islice(inside, _MANY))


def set_by(
    texts: Iterable[str], known: Mapping[str, Any], own: Callable[[str], types.ModuleType | None], without: str
) -> ByProgram:
    """Find what the texts of a program set.

    Args:
        known: the program's names, with their values.
        own: returns the module of a name if it is one of the user's own, None otherwise.
        without: the function whose text does not count, because a task runs it, too.
    """
    found = ByProgram()
    for text in texts:
        for node in _outside(tree_of(text), without):
            for target in _changed_by(node):
                _note(target, known, own, found)
            if isinstance(node, ast.Call):
                found.called.add(node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""))
                found.names |= {(module, name) for module, name in _patched(node) if own(module)}
    return found


def _outside(tree: ast.AST, without: str) -> Iterator[ast.AST]:
    """Yield all nodes except those of the function called `without`."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        inner = ast.iter_child_nodes(node)
        pending += [one for one in inner if not (isinstance(one, ast.FunctionDef) and one.name == without)]


def _changed_by(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node sets (a.b, a[b]), or changes in place (a, for a.append())."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        yield node
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        # CFG |= {...}
        yield ast.Subscript(node.target, ast.Constant(None))
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr not in _LOOKING:
            yield ast.Subscript(node.func.value, ast.Constant(None))
        if isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr") and len(node.args) > 1:
            whose, name = node.args[:2]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield ast.Attribute(whose, name.value)
        yield from (ast.Subscript(one.value, ast.Constant(None)) for one in node.keywords if one.arg == "namespace")


def _patched(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield the (module, name) that a call such as `mock.patch("settings.DEBUG", True)` sets, by its text."""
    said = call.args[0] if call.args else None
    if isinstance(said, ast.Constant) and isinstance(said.value, str) and len(call.args) + len(call.keywords) > 1:
        module, _, name = said.value.rpartition(".")
        if module and name.isidentifier():
            yield module, name


def _note(target: ast.expr, known: Mapping[str, Any], own: Callable[[str], types.ModuleType | None], found: ByProgram) -> None:
    """Note what `a.b["c"] = ...` changes: b of the module a, or the object a."""
    # the attribute names on the way, "" for an item
    way: list[str] = []
    node = target
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        way[:0] = [node.attr] if isinstance(node, ast.Attribute) else [""] if isinstance(node, ast.Subscript) else []
        node = node.value
    found.attributes.update(name for name in way if name)
    if not isinstance(node, ast.Name):
        return
    value = known.get(node.id, NOTHING)
    # a module that only a function of the program imports
    value = own(node.id) if value is NOTHING else value
    while isinstance(value, types.ModuleType) and way and way[0]:
        name = way.pop(0)
        inner = vars(value).get(name, NOTHING)
        if not isinstance(inner, types.ModuleType):
            if own(value.__name__) is value:
                found.names.add((value.__name__, name))
            if not way:
                return
        value = inner
    if way and not (value is None or value is NOTHING or is_plain(value) or isinstance(value, types.ModuleType)):
        found.held.add(id(value))
