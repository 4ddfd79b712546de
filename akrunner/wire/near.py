"""Suggests the known name that a misspelt one means. Runs on Python 3.7 with the standard library only."""

import difflib
from typing import Any, Iterable


def nearest(name: Any, known: Iterable[str], least: float = 0.6, before: str = "") -> str:
    """Return `"; did you mean 'x'?"` with the closest known name, or "" if none is similar.

    Args:
        least: how similar a name must be, from 0 to 1 (the ratio of `difflib`).
        before: text to put before the found name, as the directory of a file.
    """
    if not isinstance(name, str):
        return ""
    names = list(known)
    # to difflib, upper and lower case are different letters
    lower = {one.lower(): one for one in reversed(names)}
    close = [lower[name.lower()]] if name.lower() in lower else difflib.get_close_matches(name, names, 1, least)
    close = close or [lower[one] for one in difflib.get_close_matches(name.lower(), lower, 1, least)]
    return "; did you mean %r?" % (before + close[0]) if close else ""
