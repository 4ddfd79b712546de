"""Writes a function that is given in place of a script, with what it needs of its globals, as a script file.

::

    def train(task_config): ...     ->     import numpy as np; EPOCHS = 3
                                           def helper(x): ...
                                           def train(task_config): ...
                                           main = train

If all of it is from one file, each line keeps its number in that file, so that a traceback shows the line numbers that the user
knows.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import enum
import inspect
import linecache
import os
import re
import symtable
import sys
import tokenize
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from akrunner import leftovers
from akrunner.errors import ScriptError
from akrunner.foreign import ours
from akrunner.launch import cache
from akrunner.launch.functions import annotations as annotated
from akrunner.launch.functions import as_written, at_import, live, own_modules
from akrunner.launch.functions.as_written import NOTHING
from akrunner.launch.functions.found import Found, Piece
from akrunner.launch.functions.literals import Line
from akrunner.launch.functions.surroundings import as_imported, import_of, in_a_cell, known_to, texts_around
from akrunner.launch.functions.value_kinds import Unwritten

#: stands in tracebacks in place of a file's name
_CELL = "a notebook's cell"
#: days for which the cache keeps a script made of a function; it is made again when it is needed
_KEPT_DAYS = 30
#: prefix of the names of values that replace expressions
_LIVE = "_akrunner_of_"
#: the names that IPython adds to the builtins
_OF_NOTEBOOKS = ("display", "get_ipython")
_FUTURE = "from __future__ import annotations"


@dataclass(frozen=True)
class Written:
    """A function as a script.

    Attributes:
        path: the script.
        shown: the user's file, or the words for a notebook's cell, whose line numbers the script has; "": there is none.
    """

    path: str
    shown: str


def written(function: Callable[..., Any]) -> Written:
    """Write a script whose `main` is this function, into the cache, or into a temporary directory if the cache cannot be
    written.

    Raises:
        ScriptError: it is no plain function, has no source, or uses a value that cannot be written as source; the error names
            the value.
    """
    text, shown = source_of(function)
    name = re.sub(r"[^a-zA-Z0-9_]", "_", _named(function))

    def make(folder: str) -> None:
        with open(os.path.join(folder, f"{name}.py"), "w", encoding="utf-8") as stream:
            stream.write(text)

    try:
        place = cache.directory("functions", cache.key(name, text))
        cache.forget_old(os.path.dirname(place), _KEPT_DAYS)
        folder = cache.made_once(place, make)
    except OSError:
        # the cache only saves the work of writing it again
        with ours(ScriptError, f"script: cannot write it to {cache.shown()}, nor to a temporary directory (TMPDIR)"):
            folder = leftovers.temp_folder("akrunner-function-")
            make(folder)
    return Written(os.path.join(folder, f"{name}.py"), shown)


def source_of(function: Callable[..., Any]) -> tuple[str, str]:
    """Return (the script's text, the file whose line numbers it has, or "" if there is none).

    Raises:
        ScriptError: as `written`.
    """
    plain = _plain(function)
    if plain is None or plain.__name__ == "<lambda>":
        kind = "a lambda" if getattr(function, "__name__", "") == "<lambda>" else f"a {type(function).__name__}"
        raise ScriptError(
            f"script: {kind} cannot be handed to other processes; give a function made by def, or a script's path"
        )
    if inspect.iscoroutinefunction(plain) or inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise ScriptError(f"script: {plain.__name__}() is a generator, or async; a function is needed that is called once")
    try:
        # a decorator may supply the other arguments
        inspect.signature(function, follow_wrapped=False).bind(None)
    except TypeError:
        raise ScriptError(
            f"script: {plain.__name__}{inspect.signature(plain)} must take one argument, the task config; other values come "
            "by user_params="
        ) from None
    found = Found(plain, _referred, _is_by_call, names={plain.__name__: function})
    _add(plain, function, found, plain.__name__)
    if plain.__name__ != "main" and "main" in found.names:
        raise ScriptError(
            f"script: {plain.__name__}() uses another function, main; call {plain.__name__} main, or give a script's path"
        )
    return _laid(found, plain)


def _plain(thing: Any) -> types.FunctionType | None:
    """Return the function itself, or the function that was decorated; None if the object is no function."""
    plain = inspect.unwrap(thing) if callable(thing) and not inspect.isclass(thing) else thing
    return plain if isinstance(plain, types.FunctionType) else None


def _named(function: Callable[..., Any]) -> str:
    return str(inspect.unwrap(function).__name__)


def _laid(found: Found, function: types.FunctionType) -> tuple[str, str]:
    """Return (the script's text, its file). If all of the text is from one file, its lines have their numbers in that file; if it
    is from several, the file is ""."""
    found.add_carried()
    found.check_subclasses()
    last = [] if function.__name__ == "main" else [f"main = {function.__name__}"]
    pieces, future = found.pieces, [_FUTURE] if all(piece.postponed for piece in found.pieces) else []
    if not future:
        pieces = [replace(one, text=annotated.all_quoted(one.text)) if one.postponed else one for one in pieces]
    values = found.values.lines()
    lines = [*found.lines, *(line.text for line in values if not line.needs)]
    late = [line for line in values if line.needs]
    if any(_does_something(piece.text) for piece in pieces):
        # set what modules hold behind all pieces: a decorator, or deriving a class, may add something to a module's value, and
        # the value that is set has it in it already
        every = frozenset(piece.name for piece in pieces)
        late += [Line(line.text, every) for line in values if line.puts]
    begins = "; ".join([*future, *lines])
    files = {piece.file for piece in pieces}
    ordered = sorted(pieces, key=lambda piece: piece.first)
    if len(files) == 1 and "" not in files and ordered[0].first == 1 and len(ordered) == 1 and _stands_alone(ordered[0].text):
        # the definition stands on the first lines of a notebook's cell, so what it needs when it is called goes behind it
        return "\n".join([ordered[0].text, *lines, *(line.text for line in late), *last]) + "\n", _shown(ordered[0].file)
    if len(files) == 1 and "" not in files and ordered[0].first > 1:
        text = _on_their_lines(begins, ordered, late)
        if text:
            return "\n".join([*text, *last]) + "\n", _shown(ordered[0].file)
    behind = _behind(pieces, late)
    parts = [
        begins,
        *(f"\n\n{piece.text}" + "".join(f"\n{one}" for one in after) for piece, after in zip(pieces, behind)),
        *last,
    ]
    return "\n".join(parts) + "\n", ""


def _behind(pieces: list[Piece], late: list[Line]) -> list[list[str]]:
    """Return, for each piece, the statements to put behind it: each stands behind the pieces that it needs, in the given
    order.
    """
    found: list[list[str]] = [[] for _ in pieces]
    at = 0
    for line in late:
        # a value may also need another value that stands before it
        at = max(at, *(i for i, piece in enumerate(pieces) if piece.name in line.needs))
        found[at].append(line.text)
        name = line.text.partition(" = ")[0]
        if name.startswith(_LIVE) and any(re.search(rf"\b{name}\b", piece.text) for piece in pieces[: at + 1]):
            length, _, rest = name[len(_LIVE) :].partition("_")
            raise ScriptError(
                f"script: {rest[: int(length)]} has a value in its definition that needs what is defined behind it; "
                f"{at_import.INSTEAD}"
            )
    return found


def _live_name(thing: Any, what: object) -> str:
    """Return a name for a value of a definition. The length of the definition's name is in it, because A.b_c and A_b.c are
    two.
    """
    return f"{_LIVE}{len(thing.__name__)}_{thing.__name__}_{what}"


def _on_their_lines(begins: str, pieces: list[Piece], late: list[Line]) -> list[str]:
    """Return the lines of a text that has each piece on the lines where its file has it; [] if there is no line for a value
    between two pieces.
    """
    lines = [begins]
    for piece, after in zip(pieces, _behind(pieces, late)):
        if len(lines) > piece.first - 1:
            return []
        lines += [""] * (piece.first - 1 - len(lines))
        lines += piece.text.split("\n")
        lines += ["; ".join(after)] if after else []
    return lines


def _shown(file: str) -> str:
    return file if os.path.isfile(file) else _CELL


def _stands_alone(text: str) -> bool:
    """Whether a function's definition computes nothing but the function: it has no decorator, no annotation, and no default but
    literals.
    """
    (whole,) = ast.parse(text).body
    if not isinstance(whole, ast.FunctionDef) or whole.decorator_list:
        return False
    for node in ast.walk(whole):
        if (
            isinstance(node, ast.AnnAssign)
            or not isinstance(getattr(node, "annotation", None), (ast.Constant, type(None)))
            or not isinstance(getattr(node, "returns", None), (ast.Constant, type(None)))
        ):
            return False
    defaults = [*whole.args.defaults, *(one for one in whole.args.kw_defaults if one is not None)]
    return all(as_written.value_of(one, {}) is not NOTHING for one in defaults)


def _does_something(text: str) -> bool:
    """Whether a definition has decorators or base classes, whose code runs when Python reaches the definition."""
    whole: Any = ast.parse(text).body[0]
    return bool(whole.decorator_list or getattr(whole, "bases", ()))


def _add(thing: Any, value: Any, found: Found, user: str) -> None:
    """Add a function or a class, behind what it needs.

    Args:
        value: the object behind its name, which may be `thing` itself or a wrapper of it.
        user: the function that is to be the script's, for errors.
    """
    for base in thing.__mro__[1:] if isinstance(thing, type) else ():
        if base in found.begun:
            found.held.append(base)
            raise ScriptError(
                f"script: {base.__name__} holds {thing.__name__}, which is made from it, so that neither can be defined "
                f"first; {at_import.INSTEAD}"
            )
    piece = _piece(thing, user)
    known = known_to(thing)
    around = texts_around(thing)
    as_written.check(thing, piece.text, piece.first if piece.file else 0)
    _write_live(thing, value, piece, known, found, user)
    at_import.check(thing, value, piece.text, known, around)
    found.sets |= _attributes_set(piece.text)
    found.words.update(re.findall(r"\w+", piece.text))
    found.check_imports(piece.text, thing.__module__)
    piece.postponed = annotated.postponed(thing, known)
    settled = annotated.settled(piece.text, piece.postponed, annotated.read_in(around))
    piece.text = settled.text
    asked = _asks_what_there_is(piece.text, known, thing)
    if asked:
        raise ScriptError(
            f"script: {piece.name}() uses {asked}, which in a task has only what {user}() and what it calls use by name; use "
            "what it needs by name, hand it over (user_params=), or give a script's path"
        )
    for name in _used(piece, user):
        of_notebook = name in _OF_NOTEBOOKS and (_is_ipythons(name, known[name]) if name in known else hasattr(builtins, name))
        if name in known and not of_notebook:
            _need(name, known[name], thing, found, user)
        elif of_notebook and not _is_tried(name, piece.text):
            raise ScriptError(
                f"script: {piece.name}() uses {name}, which only a notebook has, as %magics and !commands do; leave it out, "
                "or give a script's path"
            )
    for name in sorted(settled.said):
        if name in known and name not in found.names:
            _may_need(name, known[name], thing, found, user)
    found.pieces.append(piece)


def _write_live(thing: Any, value: Any, piece: Piece, known: dict[str, Any], found: Found, user: str) -> None:
    """Replace defaults and class attributes, whose expressions may come to something else in the tasks, by their present
    values.

    Args:
        value: as of `_add`.
    Raises:
        ScriptError: a value cannot be written as source.
    """
    words: dict[ast.expr, str] = {}
    found.begun.append(thing)
    for number, one in enumerate(live.values_of(thing, piece.text, known)):
        name = _live_name(thing, number)
        before = found.copied()
        try:
            found.values.add(name, one.value, user, one.name)
        except ScriptError:
            found.restore(before)
            if one.settled or thing in found.held or not live.is_made_anew(one.value, thing):
                raise
        else:
            words[one.node] = name
    behind = []
    for attribute, held in as_written.added(thing, value, piece.text).items():
        name = _live_name(thing, attribute)
        found.values.add(name, held, user, f"{thing.__name__}.{attribute}")
        behind.append(f"{thing.__name__}.{attribute} = {name}")
    for member, held in as_written.set_in_members(thing).items():
        name = _live_name(thing, member)
        found.values.add(name, held, user, f"{thing.__name__}.{member}")
        behind.append(f"{thing.__name__}[{member!r}].__dict__.update({name})")
    found.begun.remove(thing)
    piece.text = "\n".join([live.in_place(piece.text, words), *(["; ".join(behind)] if behind else [])])


def _may_need(name: str, value: Any, of: Any, found: Found, user: str) -> None:
    """Add what only annotations that are strings name, as `_need` does; if it cannot go to the tasks, leave it out, because the
    annotation stays a string.
    """
    before = found.copied()
    try:
        _need(name, value, of, found, user)
    except ScriptError:
        found.restore(before)


def _piece(thing: Any, user: str) -> Piece:
    try:
        file = inspect.getsourcefile(thing) or ""
        as_written.check_on_disk(thing, file)
        lines, first = inspect.getsourcelines(thing)
    except (OSError, TypeError):
        text = in_a_cell(thing)
        if text:
            return Piece(thing.__name__, text, "", 1)
        raise ScriptError(
            f"script: the source of {thing.__name__}(), which {user}() needs, is not to be had; define it in a file or in a "
            "cell of a notebook, or give a script's path"
        ) from None
    text = _dedented(lines).rstrip()
    try:
        body = ast.parse(text).body
    except SyntaxError:
        body = []
    own = thing.__code__.co_name if isinstance(thing, types.FunctionType) else thing.__name__
    if os.path.isfile(file) and body and (len(body) > 1 or getattr(body[0], "name", own) != own):
        raise as_written.changed_on_disk(thing, file)
    if not body:
        raise ScriptError(
            f"script: {thing.__name__}() is part of a longer expression; define it by itself, by def, or give a script's path"
        )
    # Python's tracebacks treat a notebook's cell as a file, although it is on no disk
    return Piece(thing.__name__, text, file if os.path.isfile(file) or file in linecache.cache else "", first)


def _dedented(lines: list[str]) -> str:
    """Return a definition without the blanks before its first line. Lines within a multi-line string stay as they are."""
    blanks = len(lines[0]) - len(lines[0].lstrip())
    if not blanks:
        return "".join(lines)
    within: set[int] = set()
    begun: list[int] = []
    with contextlib.suppress(tokenize.TokenError, IndentationError):
        for token in tokenize.generate_tokens(iter(lines).__next__):
            name = tokenize.tok_name[token.type]
            if name.endswith("STRING_START"):
                begun.append(token.start[0])
            elif name.endswith("STRING_END"):
                within.update(range(begun.pop() + 1, token.end[0] + 1))
            elif token.type == tokenize.STRING:
                within.update(range(token.start[0] + 1, token.end[0] + 1))
    return "".join(
        line if number in within else line[blanks:] if not line[:blanks].strip() else line.lstrip()
        for number, line in enumerate(lines, 1)
    )


def _used(piece: Piece, user: str) -> list[str]:
    """Return the names that a piece takes from outside, in order, without those in annotations that are strings."""
    try:
        top = symtable.symtable(f"{_FUTURE}\n{piece.text}" if piece.postponed else piece.text, "<function>", "exec")
    except SyntaxError as e:
        around = re.match(r"no binding for nonlocal '(\w+)'", e.msg)
        if around is None:
            raise
        raise ScriptError(
            f"script: {piece.name}() changes {around[1]} of the function around it (nonlocal), which a task does not have; "
            f"make it inside {user}(), or change what a list or a dict holds"
        ) from None
    found: dict[str, None] = {}
    changed = _changed(piece.text)

    def look(table: symtable.SymbolTable, outermost: bool) -> None:
        for symbol in table.get_symbols():
            taken = symbol.is_referenced() or symbol.get_name() in changed
            # `x = x` in a class takes the right x from outside
            within = table.get_type() == "class" and symbol.is_local() and symbol.is_referenced()
            if within or (taken and (symbol.is_global() or (outermost and symbol.is_referenced()))):
                found.setdefault(symbol.get_name())
        for inner in table.get_children():
            look(inner, False)

    look(top, True)
    return [name for name in found if name != "annotations" or not piece.postponed]


def _asks_what_there_is(text: str, known: dict[str, Any], of: Any) -> str:
    """Return the code by which a function or class looks up what else its module has, such as `globals()`; "" if it has
    none.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id == "globals" and "globals" not in known:
            return "globals()"
        if isinstance(node, ast.Attribute) and node.attr == "__subclasses__" and isinstance(node.value, ast.Name):
            base = known.get(node.value.id)
            module = sys.modules.get(base.__module__) if isinstance(base, type) else None
            if isinstance(base, type) and (_is_ours(base, of) or (module is not None and own_modules.is_own(module))):
                return f"{base.__name__}.__subclasses__()"
        if isinstance(node, ast.Subscript) and ast.unparse(node) in ("sys.modules[__name__]", "modules[__name__]"):
            return ast.unparse(node)
    return ""


def _attributes_set(text: str) -> set[str]:
    return {
        f".{one.attr}" for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
    }


def _changed(text: str) -> set[str]:
    """Return the names that `+=` and the like change, and that `del` removes: both need a value behind the name, and symtable
    reports neither as a reference.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets if isinstance(node, ast.Delete) else []
        found |= {one.id for one in targets if isinstance(one, ast.Name)}
    return found


def _need(name: str, value: Any, of: Any, found: Found, user: str) -> None:
    """Add what stands behind a name to the script. Raises: ScriptError: it cannot go to the tasks."""
    if name in found.names:
        if found.names[name] is not value:
            raise ScriptError(f"script: {user}() and what it calls mean different things by {name}; give a script's path")
        return
    if getattr(builtins, name, NOTHING) is value or _is_ipythons(name, value):
        return
    found.names[name] = value
    plain = _plain(value) or value
    if isinstance(plain, (types.FunctionType, type)) and _is_ours(plain, of) and not _is_by_call(plain, of):
        if plain is value and _expression_of(plain):
            found.values.add(name, value, user)
            return
        if plain.__name__ != name and plain.__name__ != "<lambda>" and known_to(plain).get(plain.__name__) is value:
            # the name is another name for it
            found.values.add(name, value, user)
            return
        if plain.__name__ != name:
            instead = f"write {name} by def" if plain.__name__ == "<lambda>" else f"define {name} by its own name"
            if "<locals>" in plain.__qualname__:
                instead = (
                    f"make it within {user}(), if a call made {name}, or have the decorator that made it use functools.wraps"
                )
            raise ScriptError(
                f"script: {user}() uses {plain.__name__} by the name {name}, and {plain.__name__} is no name of it now; "
                f"{instead}, or give a script's path"
                if plain.__name__ != "<lambda>"
                else f"script: {user}() uses a lambda by the name {name}; {instead}, or give a script's path"
            )
        _add(plain, value, found, user)
        return
    imported = as_imported(name, value, of) or import_of(name, value)
    ours = imported.startswith(f"from {of.__module__} import ") or (isinstance(plain, type) and _is_ours(plain, of))
    if imported and not ours:
        found.coming = own_modules.imported_by(imported)
        found.check_imports(imported, of.__module__)
        if _is_held(value) and imported.startswith("from ") and any(map(own_modules.is_own, found.coming)):
            # import it only after its module holds what goes along to the tasks
            found.values.add_imported(imported, value)
        else:
            found.lines.append(imported)
    else:
        found.values.add(name, value, user)


def _is_held(value: Any) -> bool:
    """Whether a value is no function, class or module. (Of these, each process that imports them has its own.)"""
    return not isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType))


def _is_ipythons(name: str, value: Any) -> bool:
    """Whether a value is what IPython has put in place of a builtin, as it does with `open`."""
    of = str(getattr(value, "__module__", None) or "").partition(".")[0]
    return (hasattr(builtins, name) or name in _OF_NOTEBOOKS) and of == "IPython"


def _is_tried(name: str, text: str) -> bool:
    """Whether a text uses a name only within `try`, where its absence is caught."""
    tree = ast.parse(text)
    tried = {id(one) for node in ast.walk(tree) if isinstance(node, ast.Try) for one in ast.walk(node)}
    return all(id(one) in tried for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id == name)


def _is_by_call(value: Any, of: Any) -> bool:
    """Whether a value is an enum or a named tuple's class, from the function's module, that a call has made: there is no source
    of it.
    """
    if not isinstance(value, type) or not (
        issubclass(value, enum.Enum) or (value.__bases__ == (tuple,) and hasattr(value, "_fields"))
    ):
        return False
    if not _is_ours(value, of):
        return False
    try:
        inspect.findsource(value)
    except (OSError, TypeError):
        return not in_a_cell(value)
    return False


def _referred(name: str, value: Any, found: Found) -> tuple[str, str]:
    """Return (an expression for a function, class or module that a value holds, the name of the piece that must stand before
    it, or "").

    Raises:
        Unwritten, ScriptError: there is no such expression.
    """
    if isinstance(value, types.ModuleType):
        if import_of("_", value) != f"import {value.__name__} as _":
            raise Unwritten(name, value)
        return f"__import__({value.__name__!r}, fromlist=['_'])", ""
    plain, user, own = _plain(value) or value, found.function.__name__, str(getattr(value, "__name__", ""))
    if getattr(builtins, own, NOTHING) is value:
        return own, ""
    if value is type(None):
        return "type(None)", ""
    if isinstance(plain, (types.FunctionType, type)) and _is_ours(plain, found.function) and plain.__name__ != "<lambda>":
        own = plain.__name__
        now = known_to(plain).get(own, plain)
        if now is not value and any(one is value for one in getattr(now, "__dict__", {}).values()):
            raise ScriptError(
                f"script: {user}() uses {own}, which is what the class {type(now).__name__} has made of it as a decorator, "
                "and would be made anew in a task; have a function decorate it (functools.wraps), or give a script's path"
            )
        if now is not value:
            raise ScriptError(
                f"script: {user}() uses {name}, and {own} has been defined again since that was made; make it again, behind "
                f"{own} (in a notebook: run its cell), or give a script's path"
            )
        _need(own, value, found.function, found, user)
        return own, own
    outer, _, inner = (_outside(value) if isinstance(value, type) else "").partition(".")
    around = known_to(value).get(outer) if inner and value.__module__ in ("__main__", found.function.__module__) else None
    if around is not None and _at(around, inner) is value:
        # a class within another class, which is made with that
        if around in found.begun:
            raise Unwritten(name, value)
        _need(outer, around, found.function, found, user)
        return f"{outer}.{inner}", outer
    text = _expression_of(value)
    if text and _is_ours(value, found.function):
        known = known_to(value)
        for one in _used(Piece("<lambda>", text, "", 1), user):
            if one in known:
                _need(one, known[one], value, found, user)
        return f"({text})", ""
    imported = import_of("_", value)
    if not imported:
        now = getattr(sys.modules.get(value.__module__), value.__qualname__, None) if isinstance(value, type) else None
        if isinstance(now, type):
            raise ScriptError(
                f"script: {user}() uses {name}, of a class {value.__module__}.{value.__qualname__} that has been defined "
                "again since (importlib.reload); make it again, or give a script's path"
            )
        raise Unwritten(name, value)
    module, own = value.__module__, value.__qualname__
    found.check_imports(imported, found.function.__module__)
    return f"__import__({module!r}, fromlist=[{own!r}]).{own}", ""


def _at(thing: Any, path: str) -> Any:
    """Return what a class holds at a path of names with dots between them; None if there is nothing."""
    for name in path.split("."):
        thing = vars(thing).get(name) if isinstance(thing, type) else None
    return thing


def _expression_of(value: Any) -> str:
    """Return the source of a lambda. Return "" if the value is no lambda, if it has values of its own (defaults, variables of a
    function around it), or if several lambdas on its line may be the one.
    """
    if not isinstance(value, types.FunctionType) or value.__name__ != "<lambda>":
        return ""
    if value.__defaults__ or value.__kwdefaults__ or value.__closure__ or vars(value):
        return ""
    try:
        lines, _ = inspect.findsource(value)
    except (OSError, TypeError):
        return ""
    node = as_written.lambda_of(value, "".join(lines))
    return ast.unparse(node) if node is not None else ""


def _is_ours(value: Any, of: Any) -> bool:
    """Whether a function or a class is from the module of the one that uses it, or from the program itself; other processes
    cannot import it.
    """
    return value.__module__ in ("__main__", of.__module__) and "." not in _outside(value)


def _outside(value: Any) -> str:
    """Return the qualified name of a thing without the functions that it was made in."""
    return str(value.__qualname__).rpartition("<locals>.")[2]
