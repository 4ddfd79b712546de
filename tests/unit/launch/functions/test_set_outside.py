"""A function does not go to the tasks with a module that is something else there than here."""

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions.set_outside import check_imports, held_as_made

SETTINGS = """
import dataclasses, os, pathlib, types

EPOCHS = 3
SIZES: tuple = (1, 2)
TWICE = 1
TWICE = 2
A, B = 1, 2
if EPOCHS > 2:
    BRANCH = "deep"
else:
    BRANCH = "flat"
RATES = {"lr": 0.1, "steps": [1, EPOCHS]}
KINDS = {"a", "b"}
WHERE = pathlib.Path("data")
FROM_ENV = os.environ.get("AKRUNNER_TEST_NOT_SET", "none")
MODEL = None
FILLED = {"lr": 0.1}

@dataclasses.dataclass
class Config:
    lr: float = 0.1
    sizes: list = dataclasses.field(default_factory=list)

CONFIG = Config(sizes=[1])
SPACE = types.SimpleNamespace(lr=0.1)

class Names:
    lr = 0.1

def epochs(most=5):
    return EPOCHS

def stop():
    return 0

FUNCTIONS = {epochs, stop}
LISTED = [epochs] + [stop]
HELD = {"stop": stop, "none": lambda: None}

MODE = "a"
# what follows is changed by the module itself
SEEN = []
CACHE = {"a": 1}
ALIAS = OTHER = {"a": 1}
MADE = os.getpid()

class Counter:
    count = 0
    known = []

    def __init__(self):
        Counter.count += 1
        self.known.append(1)

_BUILT = None
CALLS = 0
TIMES = {"use": 0}

def use(mode):
    global CALLS
    CALLS += 1
    TIMES["use"] += 1
    SEEN.append(mode)
    hand_on(CACHE)
    return built()

def built():
    global _BUILT
    if _BUILT is None:
        _BUILT = 5
    return _BUILT

def configure(epochs, mode):
    global MODE
    MODE = mode
    RATES.update(epochs=epochs)

def hand_on(cache):
    cache["b"] = 2
"""
#: the module of a function that is given to the tasks
PROGRAM = "import pathlib\n\ndef main(task_config):\n    return pathlib.Path()\n"
USER = "import set_outside_{n} as s\nfrom set_outside_{n} import FILLED\n\nFILLED['lr'] = 0.5\n\ndef epochs():\n    return s.EPOCHS, FILLED\n"
NUMBERS = itertools.count()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    n = next(NUMBERS)
    (tmp_path / f"set_outside_{n}.py").write_text(SETTINGS)
    (tmp_path / f"set_outside_user_{n}.py").write_text(USER.format(n=n))
    (tmp_path / f"set_outside_program_{n}.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(f"set_outside_{n}")
    for name in (f"set_outside_{n}", f"set_outside_user_{n}", f"set_outside_program_{n}"):
        sys.modules.pop(name, None)


def program_of(settings: ModuleType) -> str:
    """The name of a program that is imported. (This module would be one that brings all of akrunner along, to be read.)"""
    return importlib.import_module(settings.__name__.replace("outside", "outside_program")).__name__


def look(settings: ModuleType) -> None:
    check_imports(f"import {settings.__name__}", "a_program", "main")


def test_what_the_module_itself_does_is_no_matter(settings: Any) -> None:
    look(settings)
    settings.use("b")
    settings.OTHER["b"] = 2
    settings.Counter()
    settings.MADE, settings.NEW = 5, 1
    look(settings)


def test_what_a_function_sets_for_others_is_told(settings: Any) -> None:
    settings.configure(3, "b")
    with pytest.raises(ScriptError, match=r"RATES is \{.*'epochs': 3\} here"):
        look(settings)
    del settings.RATES["epochs"]
    with pytest.raises(ScriptError, match="MODE is 'b' here, but 'a' in"):
        look(settings)


def test_another_module_of_the_program_is_not_run_in_the_tasks(settings: Any, tmp_path: Path) -> None:
    name = settings.__name__.replace("outside", "outside_tune")
    (tmp_path / f"{name}.py").write_text(f"import {settings.__name__} as s\ns.RATES['lr'] = 7\n")
    importlib.import_module(name)
    sys.modules.pop(name)
    with pytest.raises(ScriptError, match="RATES is"):
        look(settings)


SET: dict[str, Callable[[Any], object]] = {
    "EPOCHS": lambda s: setattr(s, "EPOCHS", 10),
    "EPOCHS is 3.0 here, but 3": lambda s: setattr(s, "EPOCHS", 3.0),
    r"SIZES is \(1, 3\) here, but \(1, 2\)": lambda s: setattr(s, "SIZES", (1, 3)),
    "TWICE is 1 here, but 2": lambda s: setattr(s, "TWICE", 1),
    "B is 9": lambda s: setattr(s, "B", 9),
    "BRANCH is 'other'": lambda s: setattr(s, "BRANCH", "other"),
    r"RATES is \{'lr': 0.5": lambda s: s.RATES.update(lr=0.5),
    "RATES is .*4.* here": lambda s: s.RATES["steps"].append(4),
    "KINDS is": lambda s: s.KINDS.add("c"),
    r"WHERE is PosixPath\('x'\) here, but pathlib.Path\('data'\)": lambda s: setattr(s, "WHERE", Path("x")),
    "FROM_ENV is 'zz'": lambda s: setattr(s, "FROM_ENV", "zz"),
    "MODEL is <object": lambda s: setattr(s, "MODEL", object()),
    r"CONFIG is Config\(lr=0.5": lambda s: setattr(s.CONFIG, "lr", 0.5),
    r"CONFIG is Config\(lr=0.1, sizes=\[1, 2\]\)": lambda s: s.CONFIG.sizes.append(2),
    r"SPACE is namespace\(lr=1\)": lambda s: setattr(s.SPACE, "lr", 1),
    "Names.lr in .* is 0.5 here, but 0.1": lambda s: setattr(s.Names, "lr", 0.5),
    "Names is .* here, but defined by class": lambda s: setattr(s, "Names", ModuleType),
    r"LISTED is \[.*\] here, but \[epochs\] \+ \[stop\]": lambda s: s.LISTED.pop(),
    "epochs is .* here, but defined by def": lambda s: setattr(s, "epochs", lambda: 1),
    r"the default most of epochs\(\) in .* is 6 here, but 5": lambda s: setattr(s.epochs, "__defaults__", (6,)),
}


@pytest.mark.parametrize("words", SET)
def test_what_was_set_is_named(settings: Any, words: str) -> None:
    SET[words](settings)
    with pytest.raises(
        ScriptError, match=rf"{words}.*{settings.__name__}.py, which is what the tasks import; .*within main\(\)"
    ):
        look(settings)


def test_it_is_found_behind_functions_other_modules_and_late_imports(settings: Any) -> None:
    name = settings.__name__.replace("outside", "outside_user")
    importlib.import_module(name)
    program = program_of(settings)
    settings.EPOCHS = 10
    for line in (
        f"import {name}",
        f"from {name} import epochs",
        f"import {name} as x, os",
        f"from {settings.__name__} import epochs",
    ):
        with pytest.raises(ScriptError, match="EPOCHS is 10"):
            check_imports(f"def main(task_config):\n    {line}\n", program, "main")


def test_what_another_module_may_fill_is_no_matter(settings: Any) -> None:
    name = settings.__name__.replace("outside", "outside_user")
    importlib.import_module(name)
    program = program_of(settings)
    check_imports(f"import {name}", program, "main")
    # but it is, if the tasks do not import it, or if it is the module of the function, which is not run there
    for text, of in ((f"import {settings.__name__}", program), (f"import {name}", name)):
        with pytest.raises(ScriptError, match="FILLED is"):
            check_imports(text, of, "main")


def test_what_holds_functions_as_its_file_makes_it_is_named_and_not_copied(settings: Any) -> None:
    held = held_as_made([settings])
    for name in ("HELD", "LISTED", "RATES"):
        assert held[id(getattr(settings, name))] == f"__import__({settings.__name__!r}, fromlist=[{name!r}]).{name}"
    assert id(settings.FUNCTIONS) not in held
    settings.HELD["stop"] = settings.epochs
    assert id(settings.HELD) not in held_as_made([settings])


def test_packages_and_the_standard_library_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    import json.decoder

    monkeypatch.setattr(json.decoder, "NaN", 1.0)
    check_imports("import json, pytest, missing_module\nfrom . import x\n", __name__, "main")
