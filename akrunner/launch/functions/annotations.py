"""Finds, in the source of a function or a class that goes to the tasks, the annotations that some code reads there.

Annotations that no code reads become strings, as `from __future__ import annotations` makes them: the tasks then need not have
the names in them.
"""

from __future__ import annotations
import __future__

import ast
import re
import types
from dataclasses import dataclass, field
from typing import Any

from akrunner.launch.functions.live import in_place

#: decorators that do not read annotations
_BLIND = {
    "abstractmethod",
    "cache",
    "cached_property",
    "classmethod",
    "contextmanager",
    "deleter",
    "final",
    "getter",
    "lru_cache",
    "override",
    "property",
    "setter",
    "staticmethod",
    "wraps",
}
#: matches in the source of a module that reads annotations itself
_READS = re.compile(r"\b(__annotations__|get_type_hints|get_annotations)\b|\binspect\.signature\b|\bimport signature\b")


@dataclass(frozen=True)
class Settled:
    """A definition, after `settled` has decided which of its annotations become strings.

    Attributes:
        text: the definition's source, with as many lines as before.
        said: the names in annotations that are strings in the tasks and are read there.
    """

    text: str
    said: set[str]


def postponed(thing: Any, known: dict[str, Any]) -> bool:
    """Whether the annotations were strings where a function or a class was defined (`from __future__ import annotations`).

    Args:
        thing: the function or class.
        known: the global names of its module, with their values.
    """
    flag = __future__.annotations.compiler_flag
    theirs = [thing] if isinstance(thing, types.FunctionType) else list(vars(thing).values())
    for one in theirs:
        if isinstance(one, types.FunctionType) and one.__module__ == thing.__module__ and "<" not in one.__code__.co_filename:
            return bool(one.__code__.co_flags & flag)
        if isinstance(one, types.FunctionType) and one is thing:
            return bool(one.__code__.co_flags & flag)
    return known.get("annotations") is __future__.annotations


def read_in(sources: list[str]) -> bool:
    """Whether a module reads annotations itself. Args: sources: the module's text, or its notebook cells."""
    return any(_READS.search(one) for one in sources)


def settled(text: str, texts: bool, all_read: bool) -> Settled:
    """Turn the annotations of a definition that no code reads into strings.

    Args:
        text: the source of one definition.
        texts: whether its annotations are strings already (`postponed`); the source then stays as it is.
        all_read: whether its module reads annotations itself (`read_in`).
    """
    look = _Look(all_read)
    tree = ast.parse(text)
    look.visit(tree)
    said = {
        name
        for one in look.read
        for part in ast.walk(one)
        for name in (_names(ast.unparse(one)) if texts else _names(str(getattr(part, "value", ""))) if _is_text(part) else ())
    }
    return Settled(text if texts else quoted(text, look.unread), said)


def all_quoted(text: str) -> str:
    """Return the source of a definition with all its annotations as strings."""
    look = _Look(False)
    look.visit(ast.parse(text))
    return quoted(text, [*look.read, *look.unread], again=True)


@dataclass
class _Look(ast.NodeVisitor):
    all_read: bool
    read: list[ast.expr] = field(default_factory=list)
    unread: list[ast.expr] = field(default_factory=list)
    _within: bool = False

    def visit_FunctionDef(self, node: Any) -> None:
        seen = self.all_read or any(_called(one) not in _BLIND for one in node.decorator_list)
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        found = [one.annotation for one in every if one is not None and one.annotation is not None]
        (self.read if seen else self.unread).extend([*found, *([node.returns] if node.returns is not None else [])])
        outside, self._within = self._within, True
        for one in node.body:
            self.visit(one)
        self._within = outside

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outside, self._within = self._within, False
        for one in node.body:
            self.visit(one)
        self._within = outside

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # Python evaluates the annotations of a class body, but never those of a function's local variables
        (self.unread if self._within else self.read).append(node.annotation)


def _called(decorator: ast.expr) -> str:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _names(text: str) -> set[str]:
    """Return the names in an annotation that is a string, and in strings within it."""
    try:
        parts = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError):
        return set()
    found = {part.id for part in parts if isinstance(part, ast.Name)}
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value != text:
            found |= _names(part.value)
    return found


def quoted(text: str, nodes: list[ast.expr], again: bool = False) -> str:
    """Return a source text with some of its expressions turned into strings; each line stays where it was.

    Args:
        again: also quote the expressions that are strings already.
    """
    chosen = [one for one in nodes if not isinstance(one, ast.Constant) or (again and isinstance(one.value, str))]
    return in_place(text, {one: repr(ast.unparse(one)) for one in chosen})
