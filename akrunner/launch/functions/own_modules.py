"""Finds the user's own modules that an import brings to a task, and the definitions that the task would have twice because of
it.

::

    main's module: train.py         in a task
    import util                     util.py is imported; the script is made of main, and of what main uses of train.py
    util.py
    from train import Config        train.py is imported as well: another Config than the script's
"""

from __future__ import annotations

import collections
import contextlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from akrunner.launch.functions.as_written import parsed
from akrunner.launch.functions.module_text import Import, Text, imports_in, text_of
from akrunner.launch.functions.module_values import is_plain
from akrunner.launch.functions.users import is_users


def is_own(module: types.ModuleType) -> bool:
    """Whether a module is the user's own, and can be imported by tasks: it is not the program itself."""
    return is_users(module) and module.__name__.partition(".")[0] != "__main__"


def imported_by(text: str) -> list[types.ModuleType]:
    """Return the modules that a definition's text imports, as far as this process has them."""
    found: list[types.ModuleType] = []
    pending, seen = [text], set[str]()
    while pending:
        for one in imports_in(parsed(pending.pop())):
            root = one.module.partition(".")[0]
            if one.level or not root:
                continue
            found += _brought(one.module, one.name)
            if root not in sys.modules and root not in seen:
                # a module that only the task imports may bring others that this process has
                seen.add(root)
                pending += _text_of_unloaded(root)
    return found


def _text_of_unloaded(name: str) -> list[str]:
    """Return the text of a module of the user's own that this process has not imported, in a list; [] if there is none."""
    if name in sys.stdlib_module_names:
        return []
    with contextlib.suppress(Exception):
        spec = importlib.machinery.PathFinder.find_spec(name)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py") and "-packages" not in spec.origin:
            with open(spec.origin, encoding="utf-8") as stream:
                return [stream.read()]
    return []


def source_of(one: Import, module: types.ModuleType) -> str:
    """Return the full name of the module that an import in `module` names; "" if there can be no such module."""
    if not one.level:
        return one.module
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    try:
        return importlib.util.resolve_name("." * one.level + one.module, package)
    except ImportError:
        return ""


def used_by(function: str, of: str) -> list[types.ModuleType]:
    """Return the modules that a function, and what it uses of its module, imports or has by name. If the module has no such
    function by that name, return the modules of everything it has.
    """
    around = vars(sys.modules.get(of, types.ModuleType(of)))
    start = inspect.unwrap(around[function]) if callable(around.get(function)) else None
    pending: list[Any] = [start] if isinstance(start, types.FunctionType) else list(around.values())
    found: dict[str, types.ModuleType] = {}
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, types.CodeType):
            pending += [const for const in one.co_consts if isinstance(const, types.CodeType)]
            pending += [around[name] for name in one.co_names if name in around]
            found.update(
                (name, sys.modules[name]) for name in one.co_names if isinstance(sys.modules.get(name), types.ModuleType)
            )
        elif isinstance(one, types.ModuleType):
            found[one.__name__] = one
        elif isinstance(one, (types.FunctionType, type)) and one.__module__ == of:
            pending += [one.__code__] if isinstance(one, types.FunctionType) else [*vars(one).values(), *one.__bases__]
            pending += [vars(one)["__wrapped__"]] if "__wrapped__" in vars(one) else []
        elif isinstance(module := sys.modules.get(str(getattr(one, "__module__", ""))), types.ModuleType):
            found[module.__name__] = module
    return list(found.values())


def reached(modules: Iterable[types.ModuleType]) -> dict[str, types.ModuleType]:
    """Return the user's own modules that a task imports if it imports these, also those that only a function of theirs
    imports.
    """

    def brings(module: types.ModuleType) -> Iterator[types.ModuleType]:
        text = text_of(module)
        for one in text.imports:
            yield from _brought(source_of(one, module), one.name)
        yield from _beside(module) if text.imports_any else ()

    return _walked(modules, brings)


def at_once(modules: Iterable[types.ModuleType]) -> dict[str, types.ModuleType]:
    """Return the user's own modules that are imported as soon as these are, without those that only a function or a condition
    imports.
    """

    def brings(module: types.ModuleType) -> Iterator[types.ModuleType]:
        for bindings in text_of(module).bindings.values():
            for one in bindings:
                if isinstance(one, Import):
                    yield from _brought(source_of(one, module), one.name)

    return _walked(modules, brings)


def _walked(
    modules: Iterable[types.ModuleType], brings: Callable[[types.ModuleType], Iterable[types.ModuleType]]
) -> dict[str, types.ModuleType]:
    """Return the user's own modules among these, and among those that they bring."""
    pending = list(modules)
    found: dict[str, types.ModuleType] = {}
    while pending:
        module = pending.pop()
        if module.__name__ not in found and is_own(module):
            found[module.__name__] = module
            pending += brings(module)
    return found


def _beside(module: types.ModuleType) -> list[types.ModuleType]:
    """Return all modules that an import with a computed name may mean: those in the folder of the module, or of its outermost
    package, and below.
    """
    root = sys.modules.get(module.__name__.partition(".")[0], module)
    folder = os.path.dirname(str(getattr(root, "__file__", None) or module.__file__)) + os.sep
    loaded = [one for one in list(sys.modules.values()) if isinstance(one, types.ModuleType)]
    return [one for one in loaded if str(getattr(one, "__file__", "")).startswith(folder)]


def held(modules: Iterable[types.ModuleType]) -> dict[str, types.ModuleType]:
    """Return the modules that `reached` finds, and the modules of the functions and classes that they hold, in the order in
    which they are found.
    """
    pending: list[Any] = list(modules)
    found: dict[str, types.ModuleType] = {}
    while pending:
        one = pending.pop(0)
        module = sys.modules.get(one.__module__) if isinstance(one, (types.FunctionType, type)) else one
        if not isinstance(module, types.ModuleType) or module.__name__ in found or not is_own(module):
            continue
        found[module.__name__] = module
        pending += [inner for one in text_of(module).imports for inner in _brought(source_of(one, module), one.name)]
        # a package has each of its modules that anything has imported, by name
        below = f"{module.__name__}."
        pending += [
            value
            for value in list(vars(module).values())
            if isinstance(value, (types.FunctionType, type))
            or (isinstance(value, types.ModuleType) and not value.__name__.startswith(below))
        ]
    return found


def _brought(source: str, name: str) -> Iterator[types.ModuleType]:
    """Yield the modules that an import brings along: packages, the module, and the module of this name within it."""
    parts = [*source.split("."), *([name] if name else [])]
    for end in range(1, len(parts) + 1):
        module = sys.modules.get(".".join(parts[:end]))
        if isinstance(module, types.ModuleType):
            yield module


def doubled(modules: Iterable[types.ModuleType], of: str) -> tuple[str, str]:
    """Find a module that uses something of the function's own module, which a task would have a second time.

    Args:
        of: the function's module.
    Returns:
        (module, the name that it uses); ("", "") if there is none.
    """
    own = sys.modules.get(of)
    if own is None:
        return "", ""
    for module in modules:
        text = text_of(module)
        for one in text.imports if module is not own else ():
            for name in _taken(one, source_of(one, module), text, of):
                value = vars(own).get(name)
                if name in vars(own) and not name.startswith("__") and not _is_alike(value, name, own, set()):
                    return module.__name__, name
    return "", ""


def _taken(one: Import, source: str, text: Text, of: str) -> Iterator[str]:
    """Yield the names of the module `of` that another module uses by one of its imports."""
    whole = source if not one.name else f"{source}.{one.name}"
    if whole == of:
        # import a.b as c; from a import b; import a.b
        begins = f"{one.bound if one.name or one.bound != of.partition('.')[0] else of}."
        for chain in text.loaded:
            if chain.startswith(begins):
                yield chain[len(begins) :].partition(".")[0]
    elif one.name and one.bound in text.loaded:
        value = vars(sys.modules.get(source, types.ModuleType(source))).get(one.name)
        if source == of or (isinstance(value, (types.FunctionType, type)) and value.__module__ == of):
            yield one.name if source == of else str(getattr(value, "__name__", ""))


def _is_alike(value: Any, name: str, own: types.ModuleType, seen: set[str]) -> bool:
    """Whether it does not matter that a name of a module exists twice: it is a plain value that no code sets, or a function
    that uses nothing else.
    """
    if name in seen or isinstance(value, types.ModuleType):
        return True
    text = text_of(own)
    if own.__name__ == "__main__" or name in text.declared or f".{name}" in text.hung:
        return False
    seen.add(name)
    if isinstance(value, (types.FunctionType, type)) and value.__module__ != own.__name__:
        return True
    if isinstance(value, types.FunctionType) and not vars(value):
        around, pending = vars(own), [value.__code__]
        while pending:
            code = pending.pop()
            pending += [one for one in code.co_consts if isinstance(one, types.CodeType)]
            if not all(_is_alike(around[one], one, own, seen) for one in code.co_names if one in around):
                return False
        return True
    return is_plain(value)


def looked_for(modules: Iterable[types.ModuleType]) -> Iterator[tuple[types.ModuleType, type, type]]:
    """Yield (module, one of its classes, a subclass of that class) for modules that look for the subclasses of their
    classes.
    """
    for module in modules:
        own = [one for one in list(vars(module).values()) if isinstance(one, type) and one.__module__ == module.__name__]
        for base in own if "__subclasses__" in text_of(module).words else ():
            pending: list[type] = [*type.__subclasses__(base)]
            seen: set[type] = set()
            while pending:
                kind = pending.pop(0)
                if kind not in seen:
                    seen.add(kind)
                    pending += type.__subclasses__(kind)
                    yield module, base, kind


def holds_besides(value: Any, modules: Iterable[types.ModuleType]) -> bool:
    """Whether anything in these modules holds an object otherwise than by a name of the module: as the default of a function,
    an attribute of a class or an instance, or an item of a list.
    """
    for module in modules:
        for one in list(vars(module).values()):
            if one is not value and any(inner is value for inner in _held_by(one, module)):
                return True
    return False


def _held_by(one: Any, module: types.ModuleType) -> Iterator[Any]:
    if isinstance(one, types.FunctionType) and one.__module__ == module.__name__:
        yield from one.__defaults__ or ()
        yield from (one.__kwdefaults__ or {}).values()
        yield from (cell.cell_contents for cell in one.__closure__ or () if cell != types.CellType())
    elif isinstance(one, type) and one.__module__ == module.__name__:
        for inner in list(vars(one).values()):
            yield inner
            yield from _held_by(getattr(inner, "__func__", inner), module) if not isinstance(inner, type) else ()
    elif isinstance(one, dict):
        yield from list(one.values())
    elif isinstance(one, (list, tuple, collections.deque)):
        yield from list(one)
    elif type(one).__module__ == module.__name__:
        yield from list(getattr(one, "__dict__", {}).values())
