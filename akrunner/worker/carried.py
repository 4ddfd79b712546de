"""What a program has set in its modules since it imported them, put into the modules that a task has imported."""

from __future__ import annotations

import importlib
from collections import deque
from typing import Any, Callable, Dict, Optional

import numpy as np

_MISSING = object()


def put(module: str, name: str, value: Any) -> None:
    """Have a module hold a value: in the lists, dicts and such that it has there, so that whoever has these has the value, too. Args: name: in it, or in a class of
    its (`Config.rates`)."""
    try:
        around: Any = importlib.import_module(module)
    except ImportError:
        # the script says so itself, if it wants it
        return
    *classes, own = name.split(".")
    for one in classes:
        around = getattr(around, one)
    setattr(around, own, _Refilling().of(vars(around).get(own, _MISSING), value))


class _Refilling:
    """Has objects hold what others hold; each of one kind holds what one other does."""

    def __init__(self) -> None:
        self._made: Dict[int, Any] = {}
        self._used: Dict[int, Any] = {}

    def of(self, there: Any, value: Any) -> Any:
        """Returns: what is there, with what the value holds; the value, where that cannot be."""
        if id(value) in self._made:
            return self._made[id(value)]
        fill = self._fill(there, value) if there is not value and id(there) not in self._used else None
        if fill is None:
            return value
        # while there is one, its id is no other's
        self._made[id(value)], self._used[id(there)] = there, value
        fill(there, value)
        return there

    def _fill(self, there: Any, value: Any) -> Optional[Callable[[Any, Any], None]]:
        """What fills an object of this kind, None: nothing."""
        kind = type(there)
        if (kind.__module__, kind.__qualname__) != (type(value).__module__, type(value).__qualname__):
            return None
        if isinstance(there, np.ndarray):
            same = there.dtype == value.dtype and there.shape == value.shape and there.flags.writeable
            return self._array if same else None
        for held, fill in ((dict, self._dict), (list, self._list), (deque, self._list), (set, self._set)):
            if isinstance(there, held):
                return fill if getattr(there, "maxlen", None) == getattr(value, "maxlen", None) else None
        plain = hasattr(there, "__dict__") and not isinstance(there, type) and not callable(there)
        return self._attributes if plain else None

    def _array(self, there: Any, value: Any) -> None:
        there[...] = value

    def _dict(self, there: Any, value: Any) -> None:
        pairs = [(key, self.of(dict.get(there, key, _MISSING), one)) for key, one in dict.items(value)]
        dict.clear(there)
        dict.update(there, pairs)
        if hasattr(there, "__dict__"):
            self._attributes(there, value)

    def _list(self, there: Any, value: Any) -> None:
        before = list(there)
        held = [self.of(before[at] if at < len(before) else _MISSING, one) for at, one in enumerate(value)]
        there.clear()
        there.extend(held)
        if hasattr(there, "__dict__"):
            self._attributes(there, value)

    def _set(self, there: Any, value: Any) -> None:
        members = list(value)
        there.clear()
        there.update(members)

    def _attributes(self, there: Any, value: Any) -> None:
        before = vars(there)
        held = {name: self.of(before.get(name, _MISSING), one) for name, one in vars(value).items()}
        before.clear()
        before.update(held)
