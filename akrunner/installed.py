"""What installed packages add, by entry points: listed without an import, and imported when it is wanted.

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
    """What packages add to one group of entry points. A package that is broken is in nobody's way who does not ask for what it adds."""

    def __init__(self, group: str, what: str, wrong: Callable[[str, Any], str | None], kind: type[AkrunnerError]) -> None:
        """Args: group: of the entry points; what: they are, "format"; wrong: (name, what was found) -> why it is none, half a sentence,
        or None; kind: of the errors."""
        self._group = group
        self._what = what
        self._wrong = wrong
        self._kind = kind

    def names(self) -> list[str]:
        """All, in order; none of their packages is imported."""
        return sorted(_found(self._group, tuple(sys.path)))

    def get(self, name: str) -> T:
        """What has one of the `names`. Imports its package.

        Raises: of the kind that was given: two packages add it, its package cannot be imported, or has no such thing.
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
        """What pip calls the package that adds one of the `names`."""
        return _package(_found(self._group, tuple(sys.path))[name][0])

    def whole(self) -> list[T]:
        """All that can be imported."""
        return [found for found, _ in _tried(self, tuple(sys.path)) if found is not None]

    def broken(self) -> list[str]:
        """Of what cannot be imported: why."""
        return [why for _, why in _tried(self, tuple(sys.path)) if why]


@functools.lru_cache(maxsize=8)
def _tried(group: Installed[Any], path: tuple[str, ...]) -> list[tuple[Any, str]]:
    """[names] What it is, or None and why it cannot be imported: tried once, and not for each file of a directory. Args: path: as of `_found`."""
    tried: list[tuple[Any, str]] = []
    for name in group.names():
        try:
            tried.append((group.get(name), ""))
        except AkrunnerError as e:
            tried.append((None, str(e)))
    return tried


@functools.lru_cache(maxsize=8)
def _found(group: str, path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    """Name -> entry points. Args: path: `sys.path`, on which packages are looked for: looking takes milliseconds for each hundred."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return found


def _package(point: EntryPoint) -> str:
    """What pip calls the package."""
    return point.dist.name if point.dist is not None else point.module
