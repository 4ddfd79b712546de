"""Finds modules that a script imports as soon as it starts and that its interpreter does not have, before anything starts."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable

from akrunner.errors import ScriptError
from akrunner.launch import bundle
from akrunner.launch.asking import ask
from akrunner.spec import JobSpec

_SECONDS = 20.0
_COMPILED = (".so", ".pyd", ".pyc")
#: modules that the worker provides if they are missing
_AT_RUN_TIME = ("pyflink",)
#: runs in the tasks' interpreter, without the directory that this process is in; a module is only looked for, not run
_LOOK = """
import importlib.util, json, sys
sys.path = [place for place in sys.path if place]
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return True
print(json.dumps([name for name in sys.argv[1:] if not there(name)]))
"""


def check_own(job: JobSpec, source: bytes) -> None:
    """Check that the tasks have the user's own modules that a function, given in place of a script, uses.

    Args:
        source: the script that was made of the function.
    Raises:
        ScriptError: the tasks do not have one of these modules.
    """
    # most jobs have a script, and need nothing that reads functions
    from akrunner.launch.functions import own_modules

    brought = _brought(job)

    def is_own(name: str) -> bool:
        module = sys.modules.get(name)
        return name not in brought and module is not None and own_modules.is_own(module)

    for name, _ in missing(job, source, is_own):
        place = os.path.abspath(str(getattr(sys.modules[name], "__file__", None) or name))
        place = os.path.dirname(place) if os.path.basename(place) == "__init__.py" else place
        near = os.path.relpath(place)
        shown = place if near.startswith(os.pardir) else near
        raise ScriptError(
            f"script: the function uses {name}, a module of yours that the tasks do not have: user_files=[{shown!r}] sends it "
            "along"
        )


def _brought(job: JobSpec) -> set[str]:
    """Return the names that the modules and packages sent with the script may have, also those in directories, which a script
    may put on the module path.
    """
    found: set[str] = set()
    for _, target in job.script.files:
        *folders, name = target.split("/")
        stem, ending = os.path.splitext(name)
        found.update(folders, [stem] if ending == ".py" else [name.partition(".")[0]] if ending in _COMPILED else [])
    return found


def imports_of(source: bytes) -> dict[str, int]:
    """Return the top-level names that a script imports whenever it runs, not within a function, an `if` or a `try`, with their
    lines.
    """
    found: dict[str, int] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        else:
            continue
        for name in names:
            found.setdefault(name.partition(".")[0], node.lineno)
    return found


def missing(job: JobSpec, source: bytes, asked_for: Callable[[str], bool] = lambda name: True) -> list[tuple[str, int]]:
    """Return (module, line of the script) for each import that the tasks' interpreter does not find; [] if the interpreter
    cannot be asked.

    Args:
        source: the script's source.
        asked_for: whether a module is to be looked for.
    """
    brought = _brought(job)
    wanted = {
        name: line
        for name, line in imports_of(source).items()
        if name not in _AT_RUN_TIME
        and name not in sys.builtin_module_names
        and name not in brought
        and name not in bundle.names()
        and asked_for(name)
    }
    # the contents of an archive lie beside the script, or in the directory that its `#name` says
    if not wanted or not job.python or job.overlay or job.script.archives:
        return []
    try:
        asked = ask([job.python, "-c", _LOOK, *wanted], _SECONDS, {**os.environ, **job.env}, noted=False)
        return [(name, wanted[name]) for name in json.loads(asked.out)] if asked.code == 0 else []
    except (OSError, ValueError, KeyError):
        return []
