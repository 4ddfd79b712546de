"""Writes values as statements that make them again in another process.

::

    KEPT = [1]; A = {"k": KEPT}; B = [KEPT]     ->     KEPT = [1]
                                                       A = {'k': KEPT}
                                                       B = [KEPT]
"""

from __future__ import annotations

import ast
import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from akrunner.errors import ScriptError
from akrunner.launch.functions.value_kinds import MOVED, Unwritten, expression, is_one, key_of, kind_of

#: the characters that a written value may have
_LONGEST = 4_000_000
#: types of which it never matters whether two values are the same object
_PLAIN = frozenset({str, bytes, int, float, complex, bool, type(None)})
#: arrays of more bytes than this are written in base64
_MANY = 1000
INSTEAD = (
    "make it inside the function, or hand it over: numbers and text in user_params=, tables as the source, files in user_files="
)
_PUT = "__import__('akrunner.worker.carried', fromlist=['put']).put"


@dataclass(frozen=True)
class Line:
    """A statement of the script.

    Attributes:
        text: the statement.
        needs: the names of the functions and classes that must stand before it.
        puts: whether it makes a module hold a value, or imports from a module a value that it was made to hold.
    """

    text: str
    needs: frozenset[str]
    puts: bool = False


@dataclass(frozen=True)
class _Carried:
    """The arguments of one call of `Values.carry`."""

    places: tuple[tuple[str, str], ...]
    value: Any
    in_place: bool
    user: str


class _TooLong(Exception):
    """A value holds more than goes with a function. It is raised before all of the value is written."""


class Values:
    """The values of one script. An object that several values hold here is one object in the other process, too.

    Each value is looked at as soon as it is found, so that an error comes at once and the functions and classes in it are
    found; all values are written when all are known.
    """

    def __init__(
        self,
        refer: Callable[[str, Any], tuple[str, str]],
        by_call: Callable[[Any], bool],
        imported: Callable[[], dict[int, str]] = dict,
    ) -> None:
        """Begin without any value.

        Args:
            refer: takes a function or a class, by the name that errors use, and returns (an expression for it, the name of the
                piece that must stand before it, or ""). It raises `Unwritten`.
            by_call: whether a value is a class of the script's own module that a call has made, and no `class` statement.
            imported: called once all values are found; returns id -> expression of the objects that the script's own imports
                make, too.
        """
        self._refer, self.by_call, self._imported = refer, by_call, imported
        self._there: dict[int, str] = {}
        self._unput: dict[int, _Carried] = {}
        self._named: list[tuple[str, Any, str, str]] = []
        self._carried: list[_Carried] = []
        self._imports: list[tuple[str, Any]] = []
        self._put_at: dict[tuple[str, str], frozenset[str]] = {}
        self._times: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._open: set[int] = set()
        self._left = _LONGEST
        self._needs: set[str] = set()
        self._needed_by: dict[str, frozenset[str]] = {}
        self._lines: list[Line] = []
        self._writing = False
        self._arrays: dict[int, tuple[str, np.ndarray[Any, Any]]] = {}
        # an id belongs to an object only as long as the object exists
        self._kept: list[Any] = []

    def add(self, name: str, value: Any, user: str, shown: str = "") -> None:
        """Add a value by its name.

        Args:
            user: the function that uses it, for errors.
            shown: what errors call it; "": its name.
        Raises:
            ScriptError: it cannot be written; the error names the part that cannot.
        """
        self._checked(shown or name, value, user)
        self._named.append((name, value, user, shown or name))

    def add_imported(self, text: str, value: Any) -> None:
        """Add a value that the script imports from a module, after the module holds what goes along to the tasks.

        Args:
            text: the import, as `from settings import CFG as cfg`.
        """
        self._imports.append((text, value))

    @property
    def imports(self) -> list[str]:
        """The texts of the imports that `add_imported` added."""
        return [text for text, _ in self._imports]

    def carry(self, places: Sequence[tuple[str, str]], value: Any, in_place: bool, user: str) -> None:
        """Add a value that modules hold here. In the other process, which imports these modules, the script puts the value into
        them.

        Args:
            places, in_place: as `akrunner.worker.carried.put` takes them.
            user: as of `add`.
        Raises:
            ScriptError: as of `add`.
        """
        self._checked(".".join(places[0]), value, user)
        self._carried.append(_Carried(tuple(places), value, in_place, user))

    def __copy__(self) -> Values:
        """Return a copy of what is known so far, for `back_to`."""
        other = Values(self._refer, self.by_call, self._imported)
        other.back_to(self)
        return other

    def back_to(self, other: Values) -> None:
        """Go back to what a copy knows."""
        self._named, self._times, self._kept = [*other._named], {**other._times}, [*other._kept]
        self._arrays, self._carried, self._imports = {**other._arrays}, [*other._carried], [*other._imports]

    def lines(self) -> list[Line]:
        """Return all statements. Raises: ScriptError: a value cannot be written."""
        self._writing = True
        self._there = self._imported()
        self._unput = {id(one.value): one for one in self._carried if self._matters(one.value)}
        for one in self._carried:
            if not self._matters(one.value) or id(one.value) in self._unput:
                self._put(one)
        self._lines += [self._import(text, value) for text, value in self._imports]
        for name, value, user, shown in self._named:
            if id(value) in self._names:
                own = self._names[id(value)]
                self._lines.append(Line(f"{name} = {own}", self._needed_by[own]))
                continue
            self._needs = set()
            text = self._checked(shown, value, user)
            self._write(name, text, value)
        return self._lines

    def _put(self, one: _Carried) -> None:
        """Write the statement that makes modules hold a value, behind what the value itself needs; from then on the value is
        called by the first of its places.
        """
        at, meant = id(one.value), _of_module(*one.places[0])
        self._unput.pop(at, None)
        before, self._needs, there = self._needs, set(), self._there.get(at, "")
        text = there or self._made(".".join(one.places[0]), one.value, outermost=True)
        needs = frozenset(self._needs)
        self._needs = before
        self._lines.append(Line(f"{_PUT}({list(one.places)!r}, {text}, {one.in_place and not there})", needs, puts=True))
        self._put_at.update(dict.fromkeys(one.places, needs))
        if self._matters(one.value):
            self._names[at], self._needed_by[meant] = meant, needs

    def _import(self, text: str, value: Any) -> Line:
        """Return the line of an import. It stands behind the line that puts the imported value into its module, if there is
        one.
        """
        (node,) = ast.parse(text).body
        place = (str(node.module), node.names[0].name) if isinstance(node, ast.ImportFrom) else ("", "")
        own = self._names.get(id(value), "")
        needs = self._put_at.get(place, self._needed_by.get(own))
        return Line(text, needs or frozenset(), puts=needs is not None)

    def _matters(self, value: Any) -> bool:
        """Whether it matters that the value is one and the same object wherever it is used."""
        # most of what long lists hold, at a glance
        return type(value) not in _PLAIN and (is_one(value) or self.by_call(value))

    def _checked(self, name: str, value: Any, user: str) -> str:
        # a class in one value may bring another value along, which holds a part of the first
        around, self._open = self._open, set()
        before, self._left = self._left, _LONGEST
        try:
            text = self._made(name, value, outermost=True)
        except Unwritten as e:
            where, what, *more = e.args
            raise ScriptError(
                f"script: {user}() uses {where}, {kind_of(what)}{more[0] if more else ''}, which cannot be handed to other "
                f"processes; {INSTEAD}"
            ) from None
        except _TooLong:
            raise ScriptError(_too_long(name, user, "longer")) from None
        except RecursionError:
            raise ScriptError(f"script: {user}() uses {name}, which has itself in it, or is too deep; {INSTEAD}") from None
        finally:
            self._open, self._left = around, before
        if len(text) > _LONGEST:
            raise ScriptError(_too_long(name, user, f"{len(text):,} characters long as Python writes it, more"))
        return text

    def _write(self, name: str, text: str, value: Any) -> None:
        needs = frozenset(self._needs)
        self._names[id(value)] = name
        self._needed_by[name] = needs
        self._lines.append(Line(f"{name} = {text}", needs))

    def _made(self, name: str, value: Any, outermost: bool = False) -> str:
        """Return an expression that makes the value again, whatever the file imports; for a value that several others hold, its
        name.

        Raises:
            Unwritten, RecursionError, _TooLong: there is no such expression.
        """
        # count first, so that a value that is too long is not written only to be thrown away
        long = type(value) in (str, bytes, bytearray, list, tuple, dict, set, frozenset)
        self._left -= len(value) if long else value.nbytes if type(value) is np.ndarray else 1
        if self._left < 0:
            raise _TooLong
        if not self._matters(value):
            return expression(self, name, value)
        at = id(value)
        if at in self._there:
            # the module has this object already, and its functions may change it
            return self._there[at]
        if at in self._unput:
            self._put(self._unput[at])
        if self._writing and at in self._names:
            self._needs |= self._needed_by[self._names[at]]
            return self._names[at]
        if at in self._open:
            raise RecursionError
        if not self._writing:
            self._kept.append(value)
            self._times[at] = self._times.get(at, 0) + 1
            if self._times[at] > 1:
                return "_"
        shared = self._writing and self._times[at] > 1 and not outermost
        before, self._needs = self._needs, set() if shared else self._needs
        self._open.add(at)
        text = expression(self, name, value)
        self._open.discard(at)
        if not shared:
            return text
        own = f"_akrunner_{len(self._names)}"
        self._write(own, text, value)
        self._needs |= before
        return own

    def reference(self, name: str, value: Any) -> str:
        """Return an expression for a function, class or module that the script has."""
        if self.by_call(value):
            return self._made(name, value)
        text, needs = self._refer(name, value)
        if needs:
            self._needs.add(needs)
        return text

    def inside(self, name: str, value: Any) -> str:
        """Return the items of a sequence, with commas between them."""
        return ", ".join(self._made(f"{name}[{at}]", one) for at, one in enumerate(value))

    def pairs(self, name: str, value: Any) -> str:
        """Return a dict as a literal."""
        if any(key not in value for key in value):
            raise Unwritten(name, value, MOVED)
        inside = (
            f"{self._made(f'a key of {name}', key)}: {self._made(f'{name}[{key_of(key)}]', one)}" for key, one in value.items()
        )
        return "{" + ", ".join(inside) + "}"

    def part(self, name: str, value: Any) -> str:
        """Return an expression for a part of a value."""
        return self._made(name, value)

    def array(self, name: str, value: np.ndarray[Any, Any]) -> str:
        if not _is_whole(value.dtype):
            raise Unwritten(name, value, f" of {value.dtype}")
        kind = repr(value.dtype.descr if value.dtype.names else value.dtype.str)
        for other, one in self._arrays.values():
            if one is not value and np.may_share_memory(one, value):
                raise Unwritten(name, value, f" that shares its memory with {other} (a .copy() does not)")
        self._arrays[id(value)] = (name, value)
        if not value.size:
            return f"__import__('numpy').zeros({value.shape!r}, {kind})"
        order: Literal["F", "C"] = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        held = value.tobytes(order)
        long = len(held) > _MANY
        text = f"__import__('base64').b64decode({base64.b64encode(held).decode()!r})" if long else repr(held)
        shaped = f"reshape({value.shape!r}, order={order!r}).copy({order!r})"
        made = f"__import__('numpy').frombuffer({text}, {kind}).{shaped}"
        return made if value.flags.writeable else f"(lambda made: [made, made.setflags(write=False)][0])({made})"


def _is_whole(kind: np.dtype[Any]) -> bool:
    """Whether an array's bytes say all of its values, and the string of its type says all of the type. A structure qualifies,
    too, if its fields lie one behind the other.
    """
    if kind.names is None:
        return kind.kind in "biufcmMSU" and kind.char not in "gG"
    fields = [(name, kind[name]) for name in kind.names]
    plain = all(one.subdtype is None and one.names is None and _is_whole(one) for _, one in fields)
    return bool(fields) and plain and np.dtype(fields) == kind and kind.type is np.void


def _too_long(name: str, user: str, how: str) -> str:
    return (
        f"script: {user}() uses {name}, which is {how} than the {_LONGEST:,} characters that go with a function; load it "
        "within the function from a file of its own (user_files=), or give it as a table"
    )


def _of_module(module: str, name: str) -> str:
    return f"__import__({module!r}, fromlist=[{name!r}]).{name}"
