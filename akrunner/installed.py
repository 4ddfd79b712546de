"""Extensions that installed packages add by entry points: listed without an import, and imported when they are used.

::

    pyproject.toml of a package:  [project.entry-points."akrunner.formats"]
                                  abc = "their_package:FORMAT"            ->  Installed("akrunner.formats", ...).get("abc")
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from akrunner.errors import AkrunnerError
from akrunner.foreign import ours

T = TypeVar("T")


class Installed(Generic[T]):
    """The extensions that packages add to one group of entry points.

    A broken package is an error only for callers that ask for its extension.
    """

    def __init__(self, group: str, what: str, wrong: Callable[[str, Any], str | None], kind: type[AkrunnerError]) -> None:
        """Remember the group; nothing is looked up yet.

        Args:
            group: name of the group of entry points.
            what: the word for one extension in errors: "format".
            wrong: (name, the imported object) -> half a sentence that says why the object is no such extension, or None if it
                is one.
            kind: the class of the errors to raise.
        """
        self._group = group
        self._what = what
        self._wrong = wrong
        self._kind = kind

    def names(self) -> list[str]:
        """Return the names of all extensions, sorted. Imports none of their packages."""
        return sorted(_found(self._group, tuple(sys.path)))

    def get(self, name: str) -> T:
        """Return the extension with one of the `names`. Imports its package.

        Raises: `kind`: two packages add the name, its package cannot be imported, or the package has no such extension.
        """
        points = _found(self._group, tuple(sys.path))[name]
        packages = sorted({_package(point) for point in points})
        if len(packages) > 1:
            raise self._kind(f"{self._what} {name!r}: the packages {' and '.join(packages)} both add it; uninstall one of them")
        place = f"{self._what} {name!r} of the package {packages[0]} ({self._group}: {name} = {points[0].value!r})"
        with ours(self._kind, f"{place} cannot be imported"):
            found = points[0].load()
        wrong = self._wrong(name, found)
        if wrong is not None:
            raise self._kind(f"{place} cannot be used: {wrong}")
        made: T = found
        return made

    def package(self, name: str) -> str:
        """Return pip's name of the package that adds one of the `names`."""
        return _package(_found(self._group, tuple(sys.path))[name][0])

    def whole(self) -> list[T]:
        """Return all extensions that can be imported."""
        return [found for found, _ in _tried(self, tuple(sys.path)) if found is not None]

    def broken(self) -> list[str]:
        """Return, for each extension that cannot be imported, why."""
        return [why for _, why in _tried(self, tuple(sys.path)) if why]


@functools.lru_cache(maxsize=8)
def _tried(group: Installed[Any], path: tuple[str, ...]) -> list[tuple[Any, str]]:
    """Return, for each name of a group, (the extension, "") or (None, why it cannot be imported).

    The result is cached, so that this happens once, and not for each file of a directory.
    Args: path: `sys.path`, as for `_found`.
    """
    tried: list[tuple[Any, str]] = []
    for name in group.names():
        try:
            tried.append((group.get(name), ""))
        except AkrunnerError as e:
            tried.append((None, str(e)))
    return tried


@functools.lru_cache(maxsize=8)
def _found(group: str, path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    """Return name -> entry points of a group. Cached, as the search takes milliseconds for each hundred packages.

    Args: path: `sys.path`, on which the packages are; another path is searched anew.
    """
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return found


def _package(point: EntryPoint) -> str:
    """Return pip's name of the package, or the module's name if it is not known."""
    return point.dist.name if point.dist is not None else point.module
