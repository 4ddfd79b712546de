"""Calls functions when the script, or a library that it uses, imports a module: after the import, or around it.

The module is loaded by its own loader, which stays in its place. Only asking whether a module exists changes nothing.
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
    """Register functions for the import of a module.

    Args:
        name: the module's name.
        then: called with the module when it has been imported; at once if it already has been. None for none.
        around: called with the function that loads the module, which it has to call. None for none.
    """
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
    """Finds a module by the other finders, and is removed when the module is loaded."""

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
            # `_Loader` has a loader's methods, but is not of its class
            spec.loader = cast(Any, _Loader(spec.loader, self))
        return spec


class _Loader(object):
    """Loads a module by another loader, which it puts back in its place. Args: finder: is removed when the module is loaded."""

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
