"""What is done when the script, or a library it uses, imports a module: after it, or around it.

A module that is found is loaded by the loader that it has, which stays in its place; who only asks whether a module is there changes nothing.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Callable, List, Optional, cast

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(
    name: str, then: Optional[Callable[[ModuleType], Any]] = None, around: Optional[Callable[[Callable[[], Any]], Any]] = None
) -> None:
    """Args: name: of a module; then: called with it when it is imported, now if it already is; around: called with what loads it, which it calls."""
    if name in sys.modules:
        if then is not None:
            then(sys.modules[name])
        return
    finder = next((one for one in sys.meta_path if isinstance(one, _Finder) and one.name == name), None)
    if finder is None:
        finder = _Finder(name)
        sys.meta_path.insert(0, finder)
    finder.around = around or finder.around
    if then is not None:
        finder.then.append(then)


class _Finder(object):
    """Finds a module where the others do, until it is loaded."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.then: List[Callable[[ModuleType], Any]] = []
        self.around: Optional[Callable[[Callable[[], Any]], Any]] = None
        self._asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        if name != self.name or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            # a loader by what it does, not by its class
            spec.loader = cast(Any, _Loader(spec.loader, self))
        return spec


class _Loader(object):
    """Loads as another one does, which it leaves in its place. Args: finder: goes then."""

    def __init__(self, loader: Any, finder: _Finder) -> None:
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        loader, finder = self._loader, self._finder
        cast(Any, module).__spec__.loader = module.__loader__ = loader
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        if finder.around is None:
            loader.exec_module(module)
        else:
            finder.around(lambda: loader.exec_module(module))
        while finder.then:
            finder.then.pop(0)(module)
