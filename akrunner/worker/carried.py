"""Puts values that the submitting program has set in its modules since it imported them into the task's own modules."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque
from typing import Any, List, Tuple

import numpy as np

_MISSING = object()


def put(places: List[Tuple[str, str]], value: Any, in_place: bool) -> None:
    """Set a value under one or more names of modules, so that all of them hold the same object.

    A module that cannot be imported is left out.

    Args:
        places: (module, name) of each; the name may be inside a class of the module: `Config.rates`.
        in_place: whether the object that the first name holds is kept and filled with the value's contents, if it is of the
            value's type, because other names refer to that object, too.
    """
    for at, (module, name) in enumerate(places):
        try:
            around: Any = importlib.import_module(module)
        except ImportError:
            # if the script needs the module, the script's own import raises the error
            continue
        *classes, own = name.split(".")
        for one in classes:
            around = getattr(around, one)
        there = vars(around).get(own, _MISSING)
        if in_place and not at and there is not value and _refilled(there, value):
            value = there
        setattr(around, own, value)


def _refilled(there: Any, value: Any) -> bool:
    """Replace an object's contents by those of another one of the same type; return whether that was possible."""
    kind = type(there)
    if (kind.__module__, kind.__qualname__) != (type(value).__module__, type(value).__qualname__):
        return False
    if isinstance(there, np.ndarray):
        if there.dtype != value.dtype or there.shape != value.shape or not there.flags.writeable:
            return False
        there[...] = value
    elif isinstance(there, (set, list, dict)):
        held = list(value.items() if isinstance(value, dict) else value)
        there.clear()
        if isinstance(there, OrderedDict):
            for key, one in held:
                there[key] = one
        elif isinstance(there, dict):
            dict.update(there, held)
        else:
            there.extend(held) if isinstance(there, list) else there.update(held)
        if isinstance(there, defaultdict):
            there.default_factory = value.default_factory
    elif isinstance(there, deque) and there.maxlen == value.maxlen:
        held = list(value)
        there.clear()
        there.extend(held)
    elif not hasattr(there, "__dict__") and not any("__slots__" in vars(one) for one in kind.__mro__):
        return False
    for name in (name for one in kind.__mro__ for name in vars(one).get("__slots__", ()) if hasattr(value, name)):
        object.__setattr__(there, name, getattr(value, name))
    if hasattr(there, "__dict__"):
        attributes = dict(vars(value))
        vars(there).clear()
        vars(there).update(attributes)
    return True
