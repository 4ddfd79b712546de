"""The user's own modules that a task imports, and what they do to each other: which of them sets, fills, hands on, or looks at
what, and when.
"""

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

from akrunner.launch.functions.module_text import Function, Text, text_of
from akrunner.launch.functions.set_by_program import ByProgram

#: (module, name, value, whether functions of the module set it by `global`) -> whether the value goes to the tasks with the
#: function
Carry = Callable[[str, str, Any, bool], bool]
#: the number of parts of a value that are looked at
_MOST = 10_000


@dataclass
class Around:
    """What the user's own modules do to each other.

    Attributes:
        run: the modules that are imported in the tasks, by name, without the function's own module.
        of: the name of the function's own module.
        sets: the attributes that the function itself sets.
        words: all words of the function that may be a name.
        carry, by_program: as of `set_outside.check_imports`.
        texts: module name -> what its file says.
        functions: the functions of all modules, by the names they are called by.
        gone: (module, name) of each value that goes to the tasks with the function.
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
        """Whether a name's value goes with the function because the program sets it, although it is not known what the module's
        file makes of it.

        Args:
            own: as of `Carry`.
        """
        if not self.set_by_program(module, name) or {name, f".{name}"} & self.sets:
            return False
        if self.guards(name) or self.reader(name, module.__name__):
            return False
        return self.goes(module.__name__, name, vars(module)[name], own)

    def set_by_program(self, module: types.ModuleType, name: str) -> bool:
        """Whether the program itself sets a module's name or changes its value, or calls a function of the modules that does
        so.
        """
        if self.by_program.has(module.__name__, name, vars(module)[name]):
            return True
        return any(one in self.by_program.called for at in self.changing(name) for one in self.names[at])

    def goes(self, module: str, name: str, value: Any, own: bool) -> bool:
        """Whether the value goes to the tasks with the function, as `Carry` says; notes it in `gone` if it does."""
        if not self.carry(module, name, value, own):
            return False
        self.gone.add((module, name))
        return True

    def altered_by_import(self, but: str = "") -> set[str]:
        """Return what the modules change when they are imported, without the module called `but`."""
        return set().union(*(text.altered for name, text in self.texts.items() if name != but))

    @functools.cached_property
    def hung(self) -> set[str]:
        """The attributes that the function or any of the modules sets in something else, such as a class."""
        return self.sets.union(*(text.hung for text in self.texts.values()))

    def hangs_any(self, file: Text) -> bool:
        """Whether one of the modules, or the file, sets attributes in something else whose names it computes."""
        return any(text.hangs_any for text in self.texts.values()) or file.hangs_any

    @functools.cached_property
    def callers(self) -> dict[str, list[Function]]:
        """Name -> the functions that call a function of this name."""
        found: dict[str, list[Function]] = {}
        for one in self.every.values():
            for name in one.calls:
                found.setdefault(name, []).append(one)
        return found

    def keeps(self, name: str, empty: bool) -> bool:
        """Whether the modules themselves fill a list, a dict or the like.

        They do if the functions that change it also look at it, or return something of their own, or run at import. They count
        as if they did if they hand it on, because it cannot then be told. A function that only sets something, as
        `set_option(name, value)` does, sets it for others.

        Args:
            empty: whether the container begins empty. A container that is handed on and has items from the start is taken to be
                looked at by the functions that get it, not filled.
        """
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
        """Whether a function decides by this name whether to do something, and sets it or calls a function that does: `if not
        READY: load()`.
        """
        changing = [self.every[at] for at in self.changing(name)]
        return any({name, f".{name}"} & one.asks and one.does for one in changing)

    def reader(self, name: str, module: str) -> str:
        """Return the name of another module that looks at this name when it is imported, itself or by a function; it may have
        done so before or after the name was set. Return "" if there is none.
        """
        either = {name, f".{name}"}
        for one, text in self.texts.items():
            looking = (function.looks for called in text.at_import for function in self.functions.get(called, []))
            if one != module and any(either & read for read in [text.read, *looking]):
                return one
        return ""

    def changing(self, name: str) -> set[int]:
        """Return the ids of the functions that change what has this name, or call one that does."""
        return self._leading_to({at for at, one in self.every.items() if {name, f".{name}"} & one.changes})

    @functools.cached_property
    def every(self) -> dict[int, Function]:
        """All functions, by their ids."""
        return {id(one): one for ones in self.functions.values() for one in ones}

    @functools.cached_property
    def names(self) -> dict[int, list[str]]:
        """Id of each function -> the names it is called by."""
        found: dict[int, list[str]] = {}
        for name, ones in self.functions.items():
            for one in ones:
                found.setdefault(id(one), []).append(name)
        return found

    def _leading_to(self, functions: set[int]) -> set[int]:
        """Return the ids of these functions and of all functions that call them, directly or through others."""
        found, pending = set(functions), list(functions)
        while pending:
            calling = [
                id(one) for name in self.names[pending.pop()] for one in self.callers.get(name, []) if id(one) not in found
            ]
            found.update(calling)
            pending += calling
        return found


def is_of_here(value: Any, module: types.ModuleType) -> bool:
    """Whether a value names a place that only this process has: a path below the module's directory, the current or the
    temporary directory.
    """
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
