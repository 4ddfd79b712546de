"""Python files as trees, for tests that read many of them: a file is parsed once and walked once, and its tree goes again."""

from __future__ import annotations

import ast
import contextlib
import gc
import re
from collections.abc import Iterator


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


def head(text: str) -> list[ast.AST]:
    """Parse a text up to its first function or class, where most of its imports are. Returns: these nodes, [] if a longer text begins there."""
    first = re.search(r"^(def|class|async def|@)", text, re.MULTILINE)
    try:
        return nodes(text[: first.start()] if first else text)
    except SyntaxError:
        return []
