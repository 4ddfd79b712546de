"""Finds what a program has set in modules of the user's own since they were imported (`settings.EPOCHS = 3` in a notebook). The
tasks import the files of these modules, and so have the values that the files make, and the values that go along with the
function.

::

    settings.py                             in this process             in the tasks
    EPOCHS = 1                              settings.EPOCHS is 3        1, and 3 goes with the function
    RATES = {"lr": 0.1}                     RATES["lr"] is 0.5          goes, too; a value that cannot go (a lock) is refused
    CACHE = {}; def get(x): CACHE[x] = ...  CACHE has items             goes if it can; else no matter: the module fills it
    _READY = False; def init(): if not ...  settings._READY is True     False: True only says what this process has done
    from base import SCALE                  settings.SCALE is 3         what base.SCALE is, and 3 goes with the function
    class Model: def predict(self): ...     Model.predict is another    the definition: refused
    MODELS = {}; def register(c): ...       MODELS has models.Linear    empty, if they do not import models: refused

This finds differences that can be computed without running any code of the module (`module_values`), functions and classes that
are no longer those of the file (`module_code`), and a function's own module that the tasks would have twice (`own_modules`).
"""

from __future__ import annotations

import abc
import ast
import contextlib
import dataclasses
import enum
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

from akrunner.errors import ScriptError
from akrunner.launch.functions import as_written, live, module_code, own_modules
from akrunner.launch.functions.as_written import NOTHING
from akrunner.launch.functions.module_text import Import, Text, paired, text_of
from akrunner.launch.functions.module_values import FILLED, HOLDERS, Defined, is_empty, is_plain, is_same, is_whole, made
from akrunner.launch.functions.modules_around import Around, Carry, is_of_here
from akrunner.launch.functions.set_by_program import ByProgram

#: a file that has one of these words may bind names that do not stand in it
_COMPUTING = {"globals", "locals", "vars", "exec", "eval", "setattr", "__dict__", "__getattr__"}
#: how many modules deep a value is followed that a module takes from another
_DEEPEST = 3
#: the characters of a value that errors show
_LONGEST = 60


def check_imports(
    text: str,
    of: str,
    user: str,
    sets: frozenset[str] = frozenset(),
    words: frozenset[str] = frozenset(),
    carry: Carry = lambda module, name, value, own: False,
    by_program: ByProgram | None = None,
) -> None:
    """Check that the tasks, when they import the modules that a text imports, get what these modules hold in this process.

    Args:
        text: an import, or a function or class that imports when it is called.
        of: the module that the text is from.
        user: the function that is to be the script's, for errors.
        sets: the attributes, as ".name", that the function and its helpers set themselves; they may have any value here.
        words: all words in these functions that may be a name.
        carry: called with each value that a module holds and its file does not make; says whether the value goes to the tasks.
        by_program: what the program that has the function sets.
    Raises:
        ScriptError: a module that the text imports, or one of the user's own that such a module uses, holds a value that its
            file does not make and that does not go along, has changed on disk since, or imports the function's own module; the
            error names the module.
    """
    roots = own_modules.imported_by(text)
    modules = own_modules.held(roots)
    if not modules:
        return
    imported = own_modules.reached(roots)
    who, what = own_modules.doubled((one for one in imported.values() if one.__name__ != of), of)
    if who:
        raise ScriptError(
            f"script: {who} uses {what} of {of}, the module that {user}() is from: a task would have {of} twice, as the "
            f"script and as what {who} imports, and two {what}, of which isinstance(), except and what they hold know nothing "
            "of each other; move what both need to a module of its own, or give a script's path"
        )
    # other modules of the program are not run in the tasks, nor is the function's own module
    run = own_modules.reached([*roots, *own_modules.used_by(user, of)])
    around = Around(
        {name: one for name, one in run.items() if name != of}, of, set(sets), words, carry, by_program or ByProgram()
    )
    for module in modules.values():
        for name, whose in _put_by_others(module, around):
            raise ScriptError(
                f"script: {module.__name__}.{name} has what {whose} puts there when it is imported, and the tasks, which "
                f"import {module.__file__}, do not import {whose}; import what fills it within {user}()"
            )
        told, reader = _changed(module, around)
        if told:
            instead = f"set it within {user}(), " * (not reader)
            looked = f"; {reader} looks at it when it is imported, so that it cannot go along with {user}()" * bool(reader)
            raise ScriptError(
                f"script: {told} in {module.__file__}, which is what the tasks import{looked}; {instead}give it by "
                "user_params=, or change the file (and import it again: importlib.reload)"
            )
        if module_code.changed_on_disk(module):
            raise ScriptError(
                f"script: {module.__file__} has changed since it was imported; import it again (importlib.reload)"
            )
    # checked last, after all modules that their names may come from
    for module in modules.values():
        told = _rebound(module, around)
        if told:
            raise ScriptError(
                f"script: {told}, which is what the tasks import; set it within {user}(), give it by user_params=, or import "
                f"{module.__name__} again (importlib.reload)"
            )


def held_as_made(modules: Iterable[types.ModuleType]) -> dict[int, str]:
    """Return id -> expression for the lists, dicts and the like that these modules hold as their files make them, and for what
    these hold.
    """
    found: dict[int, str] = {}
    for module in modules:
        file = text_of(module)
        # MISSING = object() can only be told by its identity
        for name in [one for one, value in vars(module).items() if type(value) is object]:
            found[id(vars(module)[name])] = _meant(module, name)
        for name, bindings, (then, *more) in _values(module, file, _starred(module, file)):
            now = vars(module).get(name)
            known = isinstance(bindings[0], ast.expr) and not more and is_whole(then, defined=True)
            if known and not is_plain(then) and type(now) is type(then) and is_same(now, then, module):
                _note(now, _meant(module, name), found, 0)
    return found


def _meant(module: types.ModuleType, name: str) -> str:
    return f"__import__({module.__name__!r}, fromlist=[{name!r}]).{name}"


def _note(value: Any, meant: str, found: dict[int, str], depth: int) -> None:
    """Note the expression for a value, and for what it holds."""
    if (
        is_plain(value)
        or isinstance(value, (types.FunctionType, type))
        or found.setdefault(id(value), meant) != meant
        or depth > 3
    ):
        return
    if isinstance(value, dict):
        for key, one in value.items():
            if is_plain(key) and not isinstance(key, enum.Enum):
                _note(one, f"{meant}[{key!r}]", found, depth + 1)
    elif isinstance(value, (list, tuple)):
        for at, one in enumerate(value[:_LONGEST]):
            _note(one, f"{meant}[{at}]", found, depth + 1)
    elif dataclasses.is_dataclass(value):
        for name, one in getattr(value, "__dict__", {}).items():
            _note(one, f"{meant}.{name}", found, depth + 1)


def _value_in(source: str, name: str, depth: int) -> Any:
    """Return the value that the file of a module of the user's own makes of a name; `NOTHING` if it is not known."""
    module = sys.modules.get(source)
    if module is None or not own_modules.is_own(module):
        return NOTHING
    file = text_of(module)
    for one, _, values in _values(module, file, _starred(module, file), depth):
        if one == name:
            return values[0] if len(values) == 1 and not {name} & (file.often | file.began.keys() | file.altered) else NOTHING
    return NOTHING


def _values(
    module: types.ModuleType, file: Text, starred: set[str], depth: int = 0
) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Yield (name, what its file binds it to, the values of that) for each name of a module.

    Args:
        depth: how many modules were followed to get here.
    """
    known: dict[str, Any] = dict.fromkeys(starred, NOTHING)
    for name, now in file.bindings.items():
        bindings = file.began.get(name, now)
        values = [made(node, module, known) for node in bindings]
        # an iterator has already given its items
        values = [NOTHING if hasattr(one, "__next__") else one for one in values]
        # if a name is set twice, it is not known which value another expression has seen
        certain = len(values) == 1 and not {name} & (file.often | starred | file.began.keys() | file.altered)
        first = bindings[0]
        known[name] = NOTHING
        if certain and isinstance(first, Import) and first.name and depth < _DEEPEST:
            known[name] = _value_in(own_modules.source_of(first, module), first.name, depth + 1)
        elif certain:
            known[name] = values[0]
        yield name, bindings, values


def _changed(module: types.ModuleType, around: Around) -> tuple[str, str]:
    """Find something that a module holds otherwise than its file makes it.

    Returns:
        (half a sentence that says what differs, or "" if nothing does; the module that looks at it when it is imported, or ""
        if there is none).
    """
    file = text_of(module)
    elsewhere = around.altered_by_import(module.__name__)
    starred = _starred(module, file)
    for name, bindings, values in _values(module, file, starred):
        now = vars(module).get(name, NOTHING)
        then = values[-1]
        if now is NOTHING or isinstance(now, types.ModuleType):
            continue
        if isinstance(now, types.FunctionType) and now.__module__ == module.__name__ and around.set_by_program(module, name):
            for attribute, value in vars(now).items():
                if attribute in around.by_program.attributes:
                    around.goes(module.__name__, f"{name}.{attribute}", value, False)
        unknown = name in starred or any(value is NOTHING for value in values)
        if unknown or {name, f".{name}"} & elsewhere or name in file.altered:
            around.carries_unknown(module, name, name in file.declared)
            continue
        if not any(is_same(now, value, module) for value in values):
            own = name in file.declared
            # the value only says that something was done in this process
            done = (own or (isinstance(then, FILLED) and is_empty(then))) and around.guards(name)
            here = not done and bool(around.changing(name)) and is_of_here(now, module)
            here = here and not around.set_by_program(module, name)
            defined = isinstance(bindings[-1], (ast.FunctionDef, ast.ClassDef))
            if defined and _COMPUTING & file.words and getattr(now, "__module__", None) == module.__name__:
                # globals()[name] = traced(globals()[name])
                continue
            reader = "" if defined or done or here else around.reader(name, module.__name__)
            goes = not (defined or done or here or reader)
            if (
                done
                or here
                or (goes and around.goes(module.__name__, name, now, own))
                or _is_its_own(name, now, then, file, around)
            ):
                continue
            if {name, f".{name}"} & around.sets:
                continue
            return f"{module.__name__}.{name} is {_shown(now)} here, but {_said(bindings[-1])}", reader
        if not is_whole(then, defined=True) and around.carries_unknown(module, name, name in file.declared):
            # it is not known what the file makes of the things it holds
            continue
        if len(bindings) == 1 and isinstance(bindings[0], (ast.FunctionDef, ast.ClassDef)) and name not in file.altered:
            told = _changed_within(now, bindings[0], module, file, around)
            if told:
                return told, ""
    return _added(module, file, starred, around), ""


def _is_its_own(name: str, now: Any, then: Any, file: Text, around: Around) -> bool:
    """Whether the module itself may have given a name its present value, as it does in the tasks, too: when it first needs it,
    or to keep it for later.
    """
    if name in file.began or (name in file.declared and not is_plain(now)):
        return True
    if name in file.touched and not isinstance(then, Defined) and not is_plain(then):
        return True
    return isinstance(then, FILLED) and isinstance(now, type(then)) and around.keeps(name, is_empty(then))


def _added(module: types.ModuleType, file: Text, starred: set[str], around: Around) -> str:
    """Return half a sentence, as `_changed`, for a plain value by a name that the file does not have, and that the function or
    another file uses.
    """
    wanted = around.words.union(*(text.words for text in around.texts.values()))
    if around.hangs_any(file) or _COMPUTING & file.words:
        return ""
    for name, now in list(vars(module).items()):
        hung = set().union(file.hung, *(text.hung for text in around.texts.values()))
        ours = name in file.words or name in starred or f".{name}" in around.altered_by_import() | hung
        by_program = (module.__name__, name) in around.by_program.names
        known, ours = is_plain(now) or by_program, ours and not (by_program and name not in file.bindings)
        if known and name in wanted and not ours and not name.startswith("__"):
            if around.goes(module.__name__, name, now, False):
                continue
            return f"{module.__name__}.{name} is {_shown(now)} here, but not there"
    return ""


def _changed_within(now: Any, node: Any, module: types.ModuleType, file: Text, around: Around) -> str:
    """Return half a sentence, as `_changed`, for the defaults and attributes of a function, or for a class."""
    carried = _carried_of(now, node, module, file, around)
    for one in live.values_of(now, ast.unparse(node), {}):
        if one.settled and one.name not in carried and _is_certain(one, file, around):
            return f"{one.name} in {module.__name__} is {_shown(one.value)} here, but {_said(one.node)}"
    if isinstance(now, types.FunctionType) and isinstance(node, ast.FunctionDef) and not node.decorator_list:
        for name, value in vars(now).items():
            if (module.__name__, f"{node.name}.{name}") in around.gone:
                continue
            if is_plain(value) and f".{name}" not in around.hung | file.hung and not around.hangs_any(file):
                return f"{module.__name__}.{node.name}.{name} is {_shown(value)} here, but not there"
    if not isinstance(node, ast.ClassDef) or not isinstance(now, type):
        return ""
    whole = f"{module.__name__}.{node.name}"
    if now.__module__ != module.__name__ and not node.decorator_list and ".__module__" not in around.hung | file.hung:
        if not any(isinstance(one, ast.Name) and one.id == "__module__" for one in ast.walk(node)):
            return f"{whole} is {_shown(now)} here, but defined by class"
    for name, value in module_code.replaced(now, node, module, file, around.hung | file.hung, around.hangs_any(file)):
        if f"{node.name}.{name}" in carried:
            continue
        there = any(isinstance(one, ast.FunctionDef) and one.name == name for one in node.body)
        return f"{whole}.{name} is {_shown(value)} here, but {'defined by def' if there else 'not there'}"
    if not node.decorator_list and not node.keywords and type(now) is type:
        for statement in node.body:
            told = _filled(now, statement, node, module, around)
            if told and f"{node.name}.{told.partition(' ')[0]}" not in carried:
                return f"{whole}.{told}"
    return ""


def _carried_of(now: Any, node: Any, module: types.ModuleType, file: Text, around: Around, path: str = "") -> set[str]:
    """Return the attributes of a class, by their names ("Config.rates"), that are no longer what its definition makes, and that
    go with the function.

    Args:
        path: the name of the class with the classes around it; "": its name.
    """
    path = path or getattr(node, "name", "")
    top = path.partition(".")[0]
    if isinstance(node, ast.ClassDef) and isinstance(now, enum.EnumMeta) and around.set_by_program(module, top):
        for name, held in as_written.set_in_members(now).items():
            for key, value in held.items():
                around.goes(module.__name__, f"{path}.{name}.{key}", value, False)
    if not isinstance(node, ast.ClassDef) or type(now) not in (type, abc.ABCMeta) or issubclass(now, tuple):
        return set()
    found: set[str] = set()
    by_import = around.altered_by_import() | file.altered
    said = [
        one
        for statement in node.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        for one in paired(target, statement.value)
    ]
    for name, value in said:
        if value is None or name.startswith("__") or f".{name}" in by_import:
            continue
        own = vars(now).get(name, NOTHING)
        then = made(value, module, {})
        by_program = name in around.by_program.attributes and around.by_program.has(module.__name__, top, now)
        unknown = own is NOTHING or (then is NOTHING and not by_program)
        as_made = then is not NOTHING and is_same(own, then, module)
        if unknown or as_made or isinstance(then, Defined) or isinstance(own, (types.FunctionType, type)):
            continue
        whole = f"{path}.{name}"
        if around.guards(name) or around.reader(name, module.__name__):
            continue
        if around.goes(module.__name__, whole, own, False):
            found.add(whole)
    bound = {target for one in node.body for target in module_code.bound(one)}
    for name, value in list(vars(now).items()) if around.set_by_program(module, top) or found else ():
        # attributes that its definition does not have
        if name in bound or name.startswith("_") or isinstance(value, (types.FunctionType, type)) or hasattr(value, "__get__"):
            continue
        if around.goes(module.__name__, f"{path}.{name}", value, False):
            found.add(f"{path}.{name}")
    for inner in [one for one in node.body if isinstance(one, ast.ClassDef)]:
        found |= _carried_of(vars(now).get(inner.name), inner, module, file, around, f"{path}.{inner.name}")
    return found


def _filled(kind: type, statement: ast.stmt, node: ast.ClassDef, module: types.ModuleType, around: Around) -> str:
    """Return half a sentence, as `_changed`, for a list, dict or the like that a statement of a class makes."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        return ""
    name = statement.targets[0].id
    handled = f".{name}" in around.sets.union(text_of(module).touched, *(text.touched for text in around.texts.values()))
    again = sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node)) > 1
    then, now = made(statement.value, module, {}), vars(kind).get(name, NOTHING)
    if not isinstance(then, FILLED) or handled or again or now is NOTHING or is_same(now, then, module):
        return ""
    if around.keeps(name, is_empty(then)):
        return ""
    return f"{name} is {_shown(now)} here, but {_said(statement.value)}"


def _is_certain(one: live.Live, file: Text, around: Around) -> bool:
    """Whether the definition itself certainly says something else. It is not certain if the expression has names, which mean
    what they did when the file was run, or if the value can be changed in place.
    """
    if any(isinstance(node, ast.Name) for node in ast.walk(one.node)) or not is_plain(one.value):
        return False
    own = one.name.rpartition(".")[2]
    return not {own, f".{own}"} & file.touched and f".{own}" not in around.hung


def _starred(module: types.ModuleType, file: Text) -> set[str]:
    """Return the names that may come from modules of which everything was imported (`from x import *`)."""
    sources = [sys.modules.get(own_modules.source_of(one, module)) for one in file.imports if one.name == "*"]
    return {name for source in sources if source is not None for name in vars(source)}


def _rebound(module: types.ModuleType, around: Around) -> str:
    """Return half a sentence, as `_changed`, for the names that a module has imported from others."""
    file = text_of(module)
    if {"globals", "locals"} & file.loaded:
        # the names that such code sets are not known
        return ""
    starred = _starred(module, file)
    elsewhere = around.sets | around.altered_by_import()
    for name, (binding, *more) in file.bindings.items():
        now = vars(module).get(name, NOTHING)
        if more or not isinstance(binding, Import) or now is NOTHING or name in file.often | file.declared | starred:
            continue
        source, taken = own_modules.source_of(binding, module), binding.name
        whole = sys.modules.get(
            source if taken or "." not in source or binding.bound != source.partition(".")[0] else binding.bound
        )
        if whole is None or taken == "*" or {name, f".{name}", f".{taken}"} & elsewhere:
            continue
        then = vars(whole).get(taken, sys.modules.get(f"{source}.{taken}", NOTHING)) if taken else whole
        if (source, taken) in around.gone and is_plain(now):
            # the module imported the name before it was set, or since
            around.goes(module.__name__, name, now, False)
            continue
        if then is not NOTHING and not _is_taken(now, then, whole, taken):
            if is_plain(now) and is_plain(then) and around.goes(module.__name__, name, now, False):
                continue
            # what is built into Python has no file
            file_of = getattr(whole, "__file__", None)
            said = f"{source}.{taken} is {_shown(then)}{f' in {file_of}' if file_of else ''}" if taken else _shown(then)
            return f"{module.__name__}.{name} is {_shown(now)} here, but {said}"
    # from settings import *
    for source in {own_modules.source_of(one, module) for one in file.imports if one.name == "*"}:
        for name in [taken for whose, taken in around.gone if whose == source]:
            if is_plain(vars(module).get(name, NOTHING)) and name not in file.bindings:
                around.goes(module.__name__, name, vars(module)[name], False)
    return ""


def _is_taken(now: Any, then: Any, source: types.ModuleType, name: str) -> bool:
    """Whether what a module has imported from another one is still what that module holds, or what it held before it set the
    name itself or was imported again.
    """
    if now is then or is_same(now, then, source):
        return True
    if isinstance(then, types.ModuleType):
        # some modules put another module in their own place
        return isinstance(now, types.ModuleType)
    own = own_modules.is_own(source)
    text = text_of(source) if own or str(getattr(source, "__file__", "")).endswith(".py") else Text()
    if name in text.declared | text.often or f".{name}" in text.hung or len(text.bindings.get(name, [])) > 1:
        return True
    if isinstance(now, (types.FunctionType, types.BuiltinFunctionType, type)):
        # another part of the program may have replaced it in the source module since
        places = {source.__name__, getattr(then, "__module__", None)}
        return now.__module__ in places and now.__name__ in (name, getattr(then, "__name__", name))
    if not own and not (is_plain(now) and is_plain(then) and source is not sys):
        return is_plain(then) or not callable(then) or not type(now).__module__.startswith("unittest.mock")
    with contextlib.suppress(Exception):
        # a reload makes it again
        return (
            type(now).__qualname__ == type(then).__qualname__
            and not is_plain(then)
            and (now == then or not own or _is_remade(now, then))
        )
    return True


def _is_remade(now: Any, then: Any) -> bool:
    return type(now) is not type(then) or repr(vars(now)) == repr(vars(then))


def _put_by_others(module: types.ModuleType, around: Around) -> Iterator[tuple[str, str]]:
    """Yield (name in a module, the module that fills it) for registries that hold functions, classes or instances of a module
    which the tasks do not import.
    """
    file = text_of(module)
    for whole, name, holder in _holders(module, file):
        if f".{name}" in around.sets:
            continue
        for value in list(holder.values() if isinstance(holder, dict) else holder):
            kind = value if isinstance(value, (types.FunctionType, type)) else type(value)
            whose = sys.modules.get(str(kind.__module__))
            if whose is None or whose.__name__ in around.run or whose.__name__ == around.of or not own_modules.is_own(whose):
                continue
            at_import = {id(one) for called in text_of(whose).at_import for one in file.functions.get(called, [])}
            if at_import & around.changing(name):
                yield whole, whose.__name__


def _holders(module: types.ModuleType, file: Text) -> Iterator[tuple[str, str, Any]]:
    """Yield (name, its last part, value) of the lists, dicts and the like that a module holds, also in its classes and their
    instances.
    """
    for name, bindings in file.bindings.items():
        now = vars(module).get(name)
        if isinstance(now, HOLDERS) and any(isinstance(one, ast.expr) for one in bindings):
            yield name, name, now
        elif (now if isinstance(now, type) else type(now)).__module__ == module.__name__:
            for own, value in list(getattr(now, "__dict__", {}).items()):
                if isinstance(value, HOLDERS) and not own.startswith("__"):
                    yield f"{name}.{own}", own, value


def _said(node: Any) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return f"defined by {'def' if isinstance(node, ast.FunctionDef) else 'class'}"
    return _short(ast.unparse(node))


def _shown(value: Any) -> str:
    if isinstance(value, (types.FunctionType, type)):
        return f"{value.__module__}.{value.__qualname__}"
    try:
        return _short(repr(value))
    except Exception:
        return f"another {type(value).__name__}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
