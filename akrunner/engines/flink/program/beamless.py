"""What describes a function to Java, without Beam: PyFlink imports all of Beam for it, to find out whether its coders are fast. That takes more
of the processor than all else that a program with a small job computes, and only Flink's Python workers want to know it."""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

_PACKAGE = "pyflink.fn_execution"


def import_later(name: str = _PACKAGE) -> None:
    """Have the code of a package itself run when somebody wants what it defines; its modules can be imported at once. Does nothing if the
    package was imported already, or is not there.

    Args:
        name: the package's name; its parent is imported.
    """
    parent, _, own = name.rpartition(".")
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None or spec.submodule_search_locations is None:
        return
    package = importlib.util.module_from_spec(spec)
    package.__getattr__ = _Later(package)  # type: ignore[method-assign]
    # as an import does
    sys.modules[name] = package
    setattr(importlib.import_module(parent), own, package)


class _Later:
    """A package's `__getattr__`, which runs its code. Args: package: the package."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        self._lock = threading.RLock()
        self._runs = False

    def __call__(self, name: str) -> Any:
        package = self._package
        assert package.__spec__ is not None and package.__spec__.loader is not None
        # whoever imports a module of the package looks first whether it is there already
        wanted = not name.startswith("__") and importlib.util.find_spec(f"{package.__name__}.{name}") is None
        with self._lock:
            if wanted and not self._runs:
                self._runs = True
                package.__spec__.loader.exec_module(package)
            if wanted and name in vars(package):
                return vars(package)[name]
        raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")
