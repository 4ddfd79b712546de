"""Refuses the import of modules that Alink's `akdl` has and this one does not: the error says what to ship instead."""

from __future__ import annotations

from typing import NoReturn

_SHIP = (
    "ship Alink's own akdl, the directory or a zip of it, in the user files (user_files=, --user-files; userFiles of an operator), with "
    "what it needs in the environment: it is taken in place of this one"
)


def refuse(name: str, what: str, instead: str = _SHIP) -> NoReturn:
    """Refuse the import of a module.

    Args:
        name: its name; what: what it is; instead: what to do.
    Raises:
        ImportError: always.
    """
    raise ImportError("Alink's %s (%s) is not in akrunner: %s" % (name, what, instead), name=name)
