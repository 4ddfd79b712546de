"""Refuses the import of modules that Alink's `akdl` has and this one does not: the error says what to ship instead."""

from __future__ import annotations

from typing import NoReturn

_SHIP = (
    "ship Alink's own akdl, the directory or a zip of it, in the user files (user_files=, --user-files; userFiles of an "
    "operator), with what it needs in the environment: it is taken in place of this one"
)


def refuse(name: str, what: str, instead: str = _SHIP) -> NoReturn:
    """Refuse the import of a module.

    Args:
        name: the module's name.
        what: what the module is.
        instead: what the user can do instead.
    Raises:
        ImportError: always.
    """
    raise ImportError("Alink's %s (%s) is not in akrunner: %s" % (name, what, instead), name=name)
