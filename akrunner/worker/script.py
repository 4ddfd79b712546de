"""Loading the user's script as a module, and cutting our own frames out of its tracebacks."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import linecache
import os
import sys
import traceback
import types
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple

from akrunner.worker.waits import shown

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


class _Hidden(object):
    """Finder by which `import copy` means Python's own module, or an installed one, although the script is called copy.py.

    The script lies in the first directory of `sys.path`; TensorFlow imports such modules at any moment.
    """

    def __init__(self, work_dir: str, name: str) -> None:
        self._work_dir = work_dir
        self._name = name

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        return elsewhere(self._work_dir, name) if name == self._name and path is None else None


def elsewhere(work_dir: str, name: str) -> Optional[ModuleSpec]:
    """Spec of the module that `import name` would give without the work dir; None when there is none."""
    if name in sys.builtin_module_names:
        return importlib.machinery.BuiltinImporter.find_spec(name)
    found = importlib.machinery.PathFinder.find_spec(name, [path for path in sys.path if path != work_dir])
    return found if found is not None and found.loader is not None else None


def hide(work_dir: str, relative: str) -> None:
    """Let a script with the name of another module not stand in that module's way; before anything else is imported."""
    name, ending = os.path.splitext(relative)
    if ending == ".py" and "/" not in relative and elsewhere(work_dir, name) is not None:
        sys.meta_path.insert(0, _Hidden(work_dir, name))


def load(work_dir: str, relative: str, real_name: str) -> types.ModuleType:
    """Import the script and return its module.

    Args:
        work_dir: where the user's files were laid out; first on `sys.path` already.
        relative: the script's path in it.
        real_name: path of the file the user named; the code carries it, so that tracebacks and debuggers lead there.
    """
    path, package = _place(work_dir, relative)
    name = os.path.splitext(os.path.basename(path))[0]
    if package:
        importlib.import_module(package)
        name = package + "." + name
    elif name in sys.modules or elsewhere(work_dir, name) is not None:
        name = "script_" + name
    spec: Any = importlib.util.spec_from_file_location(name, path, loader=_Loader(name, path, real_name))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def program(work_dir: str, relative: str, real_name: str, alone: bool = False) -> Callable[[], None]:
    """The script as a shell would run it. Args: as for `load`; alone: it is in no package, whatever its directory looks like.

    Returns: what runs it, as the module `__main__`.
    """
    path, package = _place(work_dir, relative)
    package = "" if alone else package
    code = _Loader("__main__", path, real_name).get_code("__main__")
    module = types.ModuleType("__main__")
    vars(module).update(__file__=path, __package__=package or None, __builtins__=__builtins__)
    if package:
        importlib.import_module(package)

    def run() -> None:
        # for pickle, for absl's flags, and for processes started by multiprocessing, which load its file again
        sys.modules["__main__"] = module
        exec(code, vars(module))

    return run


def _place(work_dir: str, relative: str) -> Tuple[str, str]:
    """(path of the copy, the package it lies in)."""
    return os.path.join(work_dir, *relative.split("/")), _package(work_dir, relative)


def _package(work_dir: str, relative: str) -> str:
    """Dotted name of the package the script lies in, empty for a plain script."""
    parts = relative.split("/")[:-1]
    if not parts or not os.path.exists(os.path.join(work_dir, *parts + ["__init__.py"])):
        return ""
    first = len(parts) - 1
    while first > 0 and os.path.exists(os.path.join(work_dir, *parts[:first] + ["__init__.py"])):
        first -= 1
    if first:
        sys.path.insert(0, os.path.join(work_dir, *parts[:first]))
    return ".".join(parts[first:])


class _Loader(importlib.machinery.SourceFileLoader):
    """Reads the copy in the work dir, compiles it under the name of the file it was copied from.

    Whoever asks for the source of that file (AutoGraph, which compiles functions anew when they are traced; tracebacks) gets the copy's
    lines: what stands in the file by then may be another version.
    """

    def __init__(self, name: str, path: str, real_name: str) -> None:
        super(_Loader, self).__init__(name, path)
        self._real_name = real_name

    def get_code(self, fullname: str) -> types.CodeType:
        source = self.get_data(self.path)
        text = importlib.util.decode_source(source)
        # without a time of change the lines are never compared with the file's
        linecache.cache[self._real_name] = (len(text), None, text.splitlines(True), self._real_name)
        return compile(source, self._real_name, "exec", dont_inherit=True)


def format_failure(error: BaseException, names: Dict[str, str], ours: str) -> str:
    """The traceback of an exception as text: our frames left out, copied files under the names they were copied from.

    Args:
        names: path of a copy -> path of the file the user named.
        ours: a path prefix of our own code.
    """
    formatted = traceback.TracebackException(type(error), error, error.__traceback__)
    seen = set()

    def trim(part: Any) -> None:
        if part is None or id(part) in seen:
            return
        seen.add(id(part))
        stack = [frame for frame in part.stack if not frame.filename.startswith((ours, shown.NAME))]
        while stack and stack[0].filename.startswith("<frozen importlib"):
            stack.pop(0)
        part.stack = traceback.StackSummary.from_list([_renamed(frame, names) for frame in stack])
        trim(part.__cause__)
        trim(part.__context__)

    trim(formatted)
    return shown.left_out("".join(formatted.format()))


def _renamed(frame: traceback.FrameSummary, names: Dict[str, str]) -> traceback.FrameSummary:
    real = names.get(frame.filename)
    if real is None:
        return frame
    linecache.checkcache(frame.filename)
    return traceback.FrameSummary(real, frame.lineno, frame.name, line=frame.line)
