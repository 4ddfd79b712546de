"""Python files as trees, for tests that read many of them: a file is parsed once and walked once, and its tree goes again."""

from __future__ import annotations

import ast
import contextlib
import gc
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Garbage is not looked for meanwhile: a tree is tens of thousands of objects, none of which is garbage, and to look through them again and
    again takes longer than to make them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def nodes(text: str | ast.AST) -> list[ast.AST]:
    """Parse a text, if it is not a tree. Returns: its nodes, in the order of `ast.walk`, in two thirds of its time."""
    with uncollected():
        found: list[ast.AST] = [ast.parse(text) if isinstance(text, str) else text]
        for node in found:
            for value in vars(node).values():
                if isinstance(value, ast.AST):
                    found.append(value)
                elif isinstance(value, list):
                    found += [one for one in value if isinstance(one, ast.AST)]
        return found


def kinds(text: str) -> dict[type[ast.AST], list[Any]]:
    """Parse a text. Returns: each class of nodes -> those of it, in the order of `ast.walk`; [] for a class of which it has none."""
    found: dict[type[ast.AST], list[Any]] = defaultdict(list)
    for node in nodes(text):
        found[type(node)].append(node)
    return found


def functions(text: str) -> Iterator[ast.FunctionDef]:
    """Parse a text. Yields: its functions, also those within others: only statements are looked through, which are a fifth of all nodes."""
    with uncollected():
        pending: list[Any] = [ast.parse(text)]
    for node in pending:
        if isinstance(node, ast.FunctionDef):
            yield node
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, name, ())
            pending += inner if isinstance(inner, list) else ()


def head(text: str) -> list[ast.AST]:
    """Parse a text up to its first function or class, where most of its imports are. Returns: these nodes, [] if a longer text begins there."""
    first = re.search(r"^(def|class|async def|@)", text, re.MULTILINE)
    try:
        return nodes(text[: first.start()] if first else text)
    except SyntaxError:
        return []
