"""Which of the names that there are a misspelt one means. Python 3.7, standard library only."""

import difflib
from typing import Any, Iterable


def nearest(name: Any, known: Iterable[str], least: float = 0.6) -> str:
    """`"; did you mean 'x'?"` for the closest known name, "" if none is like it. Args: least: the part of both that is the same, of 1."""
    if not isinstance(name, str):
        return ""
    names = list(known)
    # to difflib another case is another letter
    lower = {one.lower(): one for one in reversed(names)}
    close = [lower[name.lower()]] if name.lower() in lower else difflib.get_close_matches(name, names, 1, least)
    close = close or [lower[one] for one in difflib.get_close_matches(name.lower(), lower, 1, least)]
    return "; did you mean %r?" % close[0] if close else ""
