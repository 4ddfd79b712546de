"""What `help()` and editors show of every public name, read by a parser of Google's style: nothing is left out, and nothing is told that is not there."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import docstring_parser as parsing

import akrunner
import akrunner.alink
import akrunner.flink
import akrunner.worker

_SECTION = re.compile(
    r"^ *(Args|Attributes|Raises|Returns|Yields):(?! *$)|[.\w] (Args|Attributes|Raises|Returns|Yields):", re.MULTILINE
)


def _functions(home: str, kind: type) -> Iterator[tuple[str, Callable[..., Any], str | None]]:
    """A class's public methods, as far as they are ours, and how it is made where that is its own."""
    made_by_it = not dataclasses.is_dataclass(kind) and not issubclass(kind, Exception)
    own = [one for one in kind.__mro__ if one.__module__.startswith("akrunner.")]
    for name, value in [pair for one in own for pair in vars(one).items()]:
        value = getattr(value, "__func__", value)
        if inspect.isfunction(value) and (not name.startswith("_") or (name == "__init__" and made_by_it)):
            # a class may tell what it is made of
            yield (
                (home, value, kind.__doc__)
                if name == "__init__" and not value.__doc__
                else (f"{home}.{name}", value, value.__doc__)
            )


def _public() -> Iterator[tuple[str, Any, str | None]]:
    """Names, what they are (functions, classes, their methods and properties), and what is told of them."""
    for module in (akrunner, akrunner.worker, akrunner.flink, akrunner.alink):
        # Alink's others are names that say that they are not here
        for name in akrunner.alink.OPERATORS if module is akrunner.alink else module.__all__:
            value = getattr(module, name)
            home = f"{module.__name__}.{name}"
            yield home, value, value.__doc__
            if inspect.isclass(value):
                yield from _functions(home, value)
                for own, one in vars(value).items():
                    if isinstance(one, (property, functools.cached_property)) and not own.startswith("_"):
                        yield f"{home}.{own}", one, one.__doc__


@functools.cache
def gaps(value: Any, told_of_it: str | None) -> list[str]:
    """What the docstring of a function, class or property lacks, has too much, or has where no parser finds it. Many classes have the same methods."""
    text = inspect.cleandoc(told_of_it or "")
    if not text:
        return ["there is no docstring"]
    found = [f"not on a line of its own: {one.group().strip()}" for one in _SECTION.finditer(text)]
    read = parsing.parse(text, style=parsing.DocstringStyle.GOOGLE)
    if not read.short_description:
        found.append("no first line")
    if inspect.isclass(value):
        own = [
            name
            for name, kind in vars(value).get("__annotations__", {}).items()
            if not name.startswith("_") and "ClassVar" not in kind
        ]
        told = {one.arg_name for one in read.params if one.args[0] == "attribute"}
        return found + [f"attribute {name} is not told" for name in own if name not in told]
    if not inspect.isfunction(value):
        return found
    parameters = [one for one in inspect.signature(value).parameters.values() if one.name not in ("self", "cls")]
    names = [one.name for one in parameters if not one.name.startswith("_")]
    told = [one.arg_name.lstrip("*") for one in read.params if one.args[0] == "param"]
    found += [f"parameter {name} is not told" for name in names if name not in told]
    found += [f"there is no parameter {name}" for name in told if name not in names]
    found += [f"nothing is said of {one.arg_name}" for one in read.params if not (one.description or "").strip()]
    gives = inspect.signature(value).return_annotation not in ("None", None, inspect.Signature.empty)
    if gives != (read.returns is not None):
        found.append("what it returns is not told" if gives else "it returns nothing")
    elif gives and (read.returns.type_name or not read.returns.description):
        found.append(f"a parser takes {read.returns.type_name!r} for the type it returns")
    named = {one.type_name for one in read.raises}
    return found + [f"that it raises {name} is not told" for name in sorted(_raised(value) - named)]


def _raised(function: Callable[..., Any]) -> set[str]:
    """Exceptions that its own lines raise."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = {_name(node.exc) for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None}
    return {name for name in raised if name is not None and name != "StopIteration"}


def _name(raised: ast.expr) -> str | None:
    made = raised.func if isinstance(raised, ast.Call) else raised
    name = made.attr if isinstance(made, ast.Attribute) else made.id if isinstance(made, ast.Name) else ""
    return name if name[:1].isupper() else None


def test_every_public_docstring_is_read_without_a_gap() -> None:
    found = [(name, gaps(value, told)) for name, value, told in _public()]
    assert len(found) > 1000 and [(name, lacks) for name, lacks in found if lacks] == []


def test_a_gap_is_found() -> None:
    def told(rows: int, seed: int) -> str:
        """Rows in order. Raises: ValueError: there are none.

        Args:
            rows: how many.
            sead: of the order.
        """
        if not rows:
            raise ValueError(seed)
        return ""

    assert gaps(told, told.__doc__) == [
        "not on a line of its own: . Raises:",
        "parameter seed is not told",
        "there is no parameter sead",
        "what it returns is not told",
        "that it raises ValueError is not told",
    ]
