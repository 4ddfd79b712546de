"""What the modules of the user's own that a task imports do to each other: who sets, fills, hands on, or looks at what, and when."""

from __future__ import annotations

import collections
import enum
import functools
import os
import pathlib
import sys
import tempfile
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from akrunner.launch.module_text import Function, Text, text_of
from akrunner.launch.set_by_program import ByProgram

#: (module, name, value, whether functions of the module set it by `global`) -> whether the value goes to the tasks with the function
Carry = Callable[[str, str, Any, bool], bool]
#: parts of a value that are looked at
_MOST = 10_000


@dataclass
class Around:
    """What the modules of the user's own do to each other.

    Attributes:
        run: those that are imported in the tasks, without the function's own.
        of: that.
        sets: what the function sets itself.
        words: all that may be a name in it.
        carry, by_program: as of `set_outside.check_imports`.
        texts: what their files say.
        functions: theirs, by the names they are called by.
        gone: (module, name) of what goes along.
    """

    run: dict[str, types.ModuleType]
    of: str
    sets: set[str]
    words: frozenset[str]
    carry: Carry
    by_program: ByProgram
    texts: dict[str, Text] = field(init=False)
    functions: dict[str, list[Function]] = field(init=False)
    gone: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.texts = {name: text_of(one) for name, one in self.run.items()}
        self.functions = {}
        for text in self.texts.values():
            for name, ones in text.functions.items():
                self.functions.setdefault(name, []).extend(ones)

    def carries_unknown(self, module: types.ModuleType, name: str, own: bool) -> bool:
        """Whether a name goes with the function although nobody knows what its file makes of it: the program sets it. Args: own: as of `Carry`."""
        if not self.set_by_program(module, name) or {name, f".{name}"} & self.sets:
            return False
        if self.guards(name) or self.reader(name, module.__name__):
            return False
        return self.goes(module.__name__, name, vars(module)[name], own)

    def set_by_program(self, module: types.ModuleType, name: str) -> bool:
        """Whether the program itself sets a module's name, or changes what is behind it, or calls a function of the modules that does."""
        if self.by_program.has(module.__name__, name, vars(module)[name]):
            return True
        return any(one in self.by_program.called for at in self.changing(name) for one in self.names[at])

    def goes(self, module: str, name: str, value: Any, own: bool) -> bool:
        """As `Carry`."""
        if not self.carry(module, name, value, own):
            return False
        self.gone.add((module, name))
        return True

    def altered_by_import(self, but: str = "") -> set[str]:
        """What the modules change when they are imported, leaving out the one called `but`."""
        return set().union(*(text.altered for name, text in self.texts.items() if name != but))

    @functools.cached_property
    def hung(self) -> set[str]:
        """What any of the modules sets in something else, as classes."""
        return self.sets.union(*(text.hung for text in self.texts.values()))

    def hangs_any(self, file: Text) -> bool:
        """Whether one of the modules, or the file, sets something in something else whose name it computes."""
        return any(text.hangs_any for text in self.texts.values()) or file.hangs_any

    @functools.cached_property
    def callers(self) -> dict[str, list[Function]]:
        """The functions that call one of a name."""
        found: dict[str, list[Function]] = {}
        for one in self.every.values():
            for name in one.calls:
                found.setdefault(name, []).append(one)
        return found

    def keeps(self, name: str, empty: bool) -> bool:
        """Whether the modules themselves fill a list, dict or such: those that change it look at it, too, or do so by the way, or when they are imported; or they
        hand it on, so that nobody can tell. Who only sets something sets it for others, as a `set_option(name, value)` does. Args: empty: whether it begins
        empty: what has something in it from the start, and is handed on by functions, is looked at by who gets it, rather than filled."""
        either = {name, f".{name}"}
        if any(either & text.handed for text in self.texts.values()):
            return True
        lent = [text.lent[one] for text in self.texts.values() for one in either if one in text.lent]
        if lent and (empty or any(one.fills for called in set().union(*lent) for one in self.functions.get(called, []))):
            return True
        changing = self.changing(name)
        looking = {at for at, one in self.every.items() if either & one.looks}
        own = sys.modules.get(self.of)
        known = text_of(own) if own is not None and hasattr(own, "__file__") else None
        if not looking and known is not None and changing and not any(one.rpartition(".")[2] == name for one in known.loaded):
            return True
        if any(self.every[at].computes for at in changing) or changing & self._leading_to(looking):
            return True
        at_import = {called for text in self.texts.values() for called in text.at_import}
        return any(id(one) in changing for called in at_import for one in self.functions.get(called, []))

    def guards(self, name: str) -> bool:
        """Whether a function decides by what is called so whether it does something, and sets it or calls one that does: `if not READY: load()`."""
        changing = [self.every[at] for at in self.changing(name)]
        return any({name, f".{name}"} & one.asks and one.does for one in changing)

    def reader(self, name: str, module: str) -> str:
        """Another module that looks at what is called so when it is imported, by itself or by a function, which may have been before or after it was set; "": there
        is none."""
        either = {name, f".{name}"}
        for one, text in self.texts.items():
            looking = (function.looks for called in text.at_import for function in self.functions.get(called, []))
            if one != module and any(either & read for read in [text.read, *looking]):
                return one
        return ""

    def changing(self, name: str) -> set[int]:
        """The functions, by their ids, that change what is called so, or call one that does."""
        return self._leading_to({at for at, one in self.every.items() if {name, f".{name}"} & one.changes})

    @functools.cached_property
    def every(self) -> dict[int, Function]:
        """All functions, by their ids."""
        return {id(one): one for ones in self.functions.values() for one in ones}

    @functools.cached_property
    def names(self) -> dict[int, list[str]]:
        """The names that each function, by its id, is called by."""
        found: dict[int, list[str]] = {}
        for name, ones in self.functions.items():
            for one in ones:
                found.setdefault(id(one), []).append(name)
        return found

    def _leading_to(self, functions: set[int]) -> set[int]:
        """Functions, and those that call them, by their ids."""
        found, pending = set(functions), list(functions)
        while pending:
            calling = [
                id(one) for name in self.names[pending.pop()] for one in self.callers.get(name, []) if id(one) not in found
            ]
            found.update(calling)
            pending += calling
        return found


def is_of_here(value: Any, module: types.ModuleType) -> bool:
    """Whether a value says where this process is, which a task is not: a path below the module's directory, the current or the temporary one."""
    places = [os.path.dirname(os.path.abspath(str(module.__file__))), os.getcwd(), tempfile.gettempdir()]
    pending, seen = [value], 0
    while pending and seen < _MOST:
        one, seen = pending.pop(), seen + 1
        if isinstance(one, (str, pathlib.PurePath)):
            if any(str(one).startswith(place) for place in places if len(place) > 1):
                return True
        elif isinstance(one, dict):
            pending += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset, collections.deque)):
            pending += one
        elif hasattr(one, "__dict__") and not isinstance(one, (type, types.FunctionType, types.ModuleType, enum.Enum)):
            pending += vars(one).values()
    return False
