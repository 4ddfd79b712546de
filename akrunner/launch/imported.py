"""Modules that a script imports at once, and that its interpreter does not have: told before anything starts."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable

from akrunner.errors import ScriptError
from akrunner.launch import bundle, own_modules
from akrunner.launch.asking import ask
from akrunner.spec import JobSpec

_SECONDS = 20.0
_COMPILED = (".so", ".pyd", ".pyc")
#: what the worker makes when it is not there
_AT_RUN_TIME = ("pyflink",)
#: in the interpreter of the tasks, which does not see the directory this is called in; a module that is only looked for is not run
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
    """Raises: ScriptError: a function that was given in place of a script uses a module of the user's own that the tasks do not have. Args: source: the script
    that was made of it."""
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
            f"script: the function uses {name}, a module of yours that the tasks do not have: user_files=[{shown!r}] sends it along"
        )


def _brought(job: JobSpec) -> set[str]:
    """What modules and packages that go with the script may be called: those in a directory, too, which a script may put on the module path."""
    found: set[str] = set()
    for _, target in job.script.files:
        *folders, name = target.split("/")
        stem, ending = os.path.splitext(name)
        found.update(folders, [stem] if ending == ".py" else [name.partition(".")[0]] if ending in _COMPILED else [])
    return found


def imports_of(source: bytes) -> dict[str, int]:
    """Top-level name -> line, of what a script imports whenever it is run: not within a function, an `if`, or a `try`."""
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
    """(module, line of the script) of those that the tasks' interpreter does not find. Nothing if it cannot be asked. Args: source: the script's; asked_for: whether
    a module is looked for."""
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
    # what is in an archive lies where the script is, or where its name says
    if not wanted or not job.python or job.overlay or job.script.archives:
        return []
    try:
        asked = ask([job.python, "-c", _LOOK, *wanted], _SECONDS, {**os.environ, **job.env}, noted=False)
        return [(name, wanted[name]) for name in json.loads(asked.out)] if asked.code == 0 else []
    except (OSError, ValueError, KeyError):
        return []
