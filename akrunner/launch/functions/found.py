"""What is known so far of a function that is to be a script: its pieces, imports and values, and what its modules hold that
goes to the tasks with it.
"""

from __future__ import annotations

import ast
import copy
import functools
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from akrunner.errors import ScriptError
from akrunner.launch.functions import own_modules, set_by_program, set_outside
from akrunner.launch.functions.as_written import NOTHING, tree_of
from akrunner.launch.functions.literals import Values
from akrunner.launch.functions.surroundings import known_to, texts_around
from akrunner.launch.functions.value_kinds import is_one


@dataclass
class Piece:
    """The source of a function or a class.

    Attributes:
        name: its name.
        text: its source.
        file: the file it is from; "": its source is in no file that others share.
        first: its first line in that file, from 1.
        postponed: whether its annotations are strings.
    """

    name: str
    text: str
    file: str
    first: int
    postponed: bool = False


@dataclass
class Found:
    """What is known so far of a function that is to be a script.

    Attributes:
        function: the function.
        refer, by_call: as `Values` takes them, but also given this object, or the function.
        lines: the imports.
        pieces: functions and classes, in an order in which they may stand.
        names: the names that are known, with their values.
        values: the values behind names, and the values that modules must hold.
        sets: the attributes that the functions set, as ".name".
        words: all words in the functions that may be a name.
        carried: (module, name) -> (a value that the module holds and its file does not make, whether the module's functions set
            it by `global`).
        keeping: the modules whose functions have set something that cannot go to the tasks.
        underway: the keys of `carried` that are being looked at.
        coming: the modules brought by the import that is being looked at.
        begun: the definitions whose values are being written.
        held: those of `begun` that such a value needs.
    """

    function: types.FunctionType
    refer: Callable[[str, Any, Found], tuple[str, str]]
    by_call: Callable[[Any, Any], bool]
    lines: list[str] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    values: Values = field(init=False)
    sets: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    carried: dict[tuple[str, str], tuple[Any, bool]] = field(default_factory=dict)
    keeping: set[str] = field(default_factory=set)
    underway: set[tuple[str, str]] = field(default_factory=set)
    coming: list[types.ModuleType] = field(default_factory=list)
    begun: list[Any] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = Values(
            lambda name, value: self.refer(name, value, self), lambda value: self.by_call(value, self.function), self.imported
        )

    def carry(self, module: str, name: str, value: Any, own: bool) -> bool:
        """Take a value that a module holds along to the tasks, if that is possible. This method is used as a
        `modules_around.Carry`.

        Returns:
            Whether the value goes to the tasks.
        """
        if (module, name) in self.underway or self.carried.get((module, name), (NOTHING,))[0] is value:
            return True
        if module not in self.at_once() and module not in self.imported_first:
            # otherwise the module would be imported earlier than the program imports it
            return False
        before = self.copied()
        self.underway.add((module, name))
        try:
            self.values.carry([(module, name)], value, False, self.function.__name__)
        except ScriptError:
            self.keeping |= {module} if own else set()
            return False
        finally:
            self.underway.remove((module, name))
            self.restore(before)
        self.carried[module, name] = value, own
        return True

    def add_carried(self) -> None:
        """Add the values in `carried`, which modules hold in the tasks, to `values`."""
        added: set[tuple[str, str]] = set()
        # the values that are added may need other modules
        while new := sorted(self.carried.keys() - added):
            run = self.at_once()
            for module, name in new:
                value, own = self.carried[module, name]
                if (module, name) in added or (own and module in self.keeping):
                    continue
                places = [(module, name)]
                if is_one(value):
                    also = [(one, key) for one, held in run.items() for key, it in vars(held).items() if it is value]
                    also += [one for one, (it, _) in self.carried.items() if it is value]
                    places += [one for one in dict.fromkeys(also) if one != (module, name)]
                added.update(places)
                in_place = is_one(value) and own_modules.holds_besides(value, run.values())
                self.values.carry(places, value, in_place, self.function.__name__)
            added.update(new)

    def at_once(self) -> dict[str, types.ModuleType]:
        """Return the user's own modules that are imported before any other statement of the script runs."""
        known = [one for one in self.names.values() if isinstance(one, types.ModuleType)]
        roots = [one for text in [*self.lines, *self.values.imports] for one in own_modules.imported_by(text)]
        found = own_modules.at_once([*known, *roots, *self.coming])
        return {name: one for name, one in found.items() if name != self.function.__module__}

    def modules(self) -> list[types.ModuleType]:
        """Return the user's own modules that the script imports."""
        texts = [*self.lines, *self.values.imports, *(piece.text for piece in self.pieces)]
        roots = [one for text in texts for one in own_modules.imported_by(text)]
        return [one for one in own_modules.reached(roots).values() if one.__name__ != self.function.__module__]

    def imported(self) -> dict[int, str]:
        """Return id -> expression of the objects that the script's imports make as they are here, as `Values` takes it."""
        return set_outside.held_as_made(self.modules())

    @functools.cached_property
    def imported_first(self) -> dict[str, types.ModuleType]:
        """The user's own modules that the program itself imports at its top level, and not only in functions."""
        trees = [tree_of(text) for text in texts_around(self.function)]
        statements = [one for tree in trees for one in getattr(tree, "body", ())]
        said = [ast.unparse(one) for one in statements if isinstance(one, (ast.Import, ast.ImportFrom))]
        return own_modules.at_once([module for text in said for module in own_modules.imported_by(text)])

    def check_imports(self, text: str, of: str) -> None:
        """Check an import or a definition of the module `of`, as `set_outside.check_imports` does."""
        user = self.function.__name__
        set_outside.check_imports(text, of, user, frozenset(self.sets), frozenset(self.words), self.carry, self.by_program)

    @functools.cached_property
    def by_program(self) -> set_by_program.ByProgram:
        """What the program sets in the modules that it has imported."""

        def own(name: str) -> types.ModuleType | None:
            module = sys.modules.get(name)
            return module if module is not None and own_modules.is_own(module) else None

        return set_by_program.set_by(texts_around(self.function), known_to(self.function), own, without=self.function.__name__)

    def check_subclasses(self) -> None:
        """Check that a task has all subclasses of the classes whose subclasses a module looks for.

        Raises:
            ScriptError: a subclass would be missing.
        """
        user, modules = self.function.__name__, self.modules()
        run = {one.__name__ for one in modules}
        for module, base, kind in own_modules.looked_for(modules):
            if kind.__module__ not in run and self.names.get(kind.__name__) is not kind:
                raise ScriptError(
                    f"script: {module.__name__} looks for the subclasses of {base.__name__} (__subclasses__()), and a task "
                    f"would not have {kind.__module__}.{kind.__name__}; use it by name in {user}(), or import what defines it "
                    "there"
                )

    def copied(self) -> tuple[list[str], list[Piece], dict[str, Any], Values]:
        """Return a copy of what is known so far, for `restore`."""
        return copy.copy(self.lines), copy.copy(self.pieces), copy.copy(self.names), copy.copy(self.values)

    def restore(self, before: tuple[list[str], list[Piece], dict[str, Any], Values]) -> None:
        """Go back to what was known when `copied` was called."""
        self.lines, self.pieces, self.names, values = before
        # in place, because a value that holds a class may be in the middle of being written
        self.values.back_to(values)
