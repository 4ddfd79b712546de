"""Loads the user's script as a module or a program, and removes akrunner's own frames from its tracebacks."""

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
    """A finder that makes `import copy` find Python's or an installed module, even if the script is named copy.py.

    The script is in the first directory of `sys.path`, and TensorFlow may import such a module at any time.
    """

    def __init__(self, work_dir: str, name: str) -> None:
        self._work_dir = work_dir
        self._name = name

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        return elsewhere(self._work_dir, name) if name == self._name and path is None else None


def elsewhere(work_dir: str, name: str) -> Optional[ModuleSpec]:
    """Return the spec of the module that `import name` would find without the work directory; None if there is none."""
    if name in sys.builtin_module_names:
        return importlib.machinery.BuiltinImporter.find_spec(name)
    found = importlib.machinery.PathFinder.find_spec(name, [path for path in sys.path if path != work_dir])
    return found if found is not None and found.loader is not None else None


def hide(work_dir: str, relative: str) -> None:
    """Keep a script that has the name of another module from hiding that module. Call it before anything else is imported."""
    name, ending = os.path.splitext(relative)
    if ending == ".py" and "/" not in relative and elsewhere(work_dir, name) is not None:
        sys.meta_path.insert(0, _Hidden(work_dir, name))


def load(work_dir: str, relative: str, real_name: str) -> types.ModuleType:
    """Import the script and return its module.

    Args:
        work_dir: the directory with the user's files, which is already first on `sys.path`.
        relative: the script's path below it.
        real_name: path of the file that the user named; the code is compiled under it, so that tracebacks and debuggers
            show that file.
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
    """Prepare the script to be run as a shell would run it.

    Args:
        work_dir, relative, real_name: as for `load`.
        alone: whether the script counts as being in no package, even if its directory looks like one.
    Returns:
        the function that runs it, as the module `__main__`.
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
    """Return (path of the copy, name of the package that it is in; "" for none)."""
    return os.path.join(work_dir, *relative.split("/")), _package(work_dir, relative)


def _package(work_dir: str, relative: str) -> str:
    """Return the dotted name of the package that the script is in, "" for none; put its root on the module path if needed."""
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
    """Reads the script's copy in the work directory and compiles it under the name of the user's file.

    AutoGraph, which compiles functions again when it traces them, and tracebacks ask for the source of that file. They get the
    lines of the copy, because the file may have been changed by then.
    """

    def __init__(self, name: str, path: str, real_name: str) -> None:
        super(_Loader, self).__init__(name, path)
        self._real_name = real_name

    def get_code(self, fullname: str) -> types.CodeType:
        source = self.get_data(self.path)
        text = importlib.util.decode_source(source)
        # the None is the file's modification time: without it linecache never compares the lines with the file
        linecache.cache[self._real_name] = (len(text), None, text.splitlines(True), self._real_name)
        return compile(source, self._real_name, "exec", dont_inherit=True)


def format_failure(error: BaseException, names: Dict[str, str], ours: str) -> str:
    """Return the traceback of an exception as text, without akrunner's frames, and with the user's files in place of copies.

    Args:
        error: the exception.
        names: path of a copy -> path of the file that the user named.
        ours: the path prefix of akrunner's own code.
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
