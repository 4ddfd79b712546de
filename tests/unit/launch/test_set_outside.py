"""A function does not go to the tasks with a module that says something else there than here."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from akrunner.errors import ScriptError
from akrunner.launch.set_outside import check, check_imports

SETTINGS = """
EPOCHS = 3
SIZES: tuple = (1, 2)
MODE = "a"
TWICE = 1
TWICE = 2
SEEN = []
MADE = len("ab")

def use(mode):
    global MODE
    MODE = mode

def epochs():
    return EPOCHS
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "set_outside_settings.py").write_text(SETTINGS)
    (tmp_path / "set_outside_user.py").write_text("import set_outside_settings as s\n\ndef epochs():\n    return s.EPOCHS\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("set_outside_settings")
    for name in ("set_outside_settings", "set_outside_user"):
        sys.modules.pop(name, None)


def test_what_the_module_itself_does_is_no_matter(settings: ModuleType) -> None:
    settings.use("b")
    settings.SEEN.append(1)
    settings.TWICE, settings.MADE = 1, 5
    settings.NEW = 1  # type: ignore[attr-defined]
    settings.EPOCHS = object()
    check(settings, "main")
    check(settings.use, "main")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("EPOCHS", 10, "10 here, but 3"), ("SIZES", (1, 3), r"\(1, 3\) here, but \(1, 2\)"), ("EPOCHS", 3.0, "3.0 here, but 3 ")],
)
def test_a_setting_that_was_changed_is_named(settings: ModuleType, name: str, value: object, words: str) -> None:
    setattr(settings, name, value)
    with pytest.raises(
        ScriptError, match=rf"set_outside_settings.{name} is {words}.*set_outside_settings.py, .*within main\(\)"
    ):
        check(settings, "main")


def test_it_is_found_behind_functions_other_modules_and_late_imports(settings: ModuleType) -> None:
    user = importlib.import_module("set_outside_user")
    settings.EPOCHS = 10  # type: ignore[attr-defined]
    for imported in (settings.epochs, user, user.epochs):
        with pytest.raises(ScriptError, match="EPOCHS is 10"):
            check(imported, "main")
    for line in ("import set_outside_user", "from set_outside_user import epochs", "import set_outside_settings as x, os"):
        with pytest.raises(ScriptError, match="EPOCHS is 10"):
            check_imports(f"def main(task_config):\n    {line}\n", "main")


def test_packages_and_the_standard_library_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    import json.decoder

    monkeypatch.setattr(json.decoder, "NaN", 1.0)
    check(json, "main")
    check(pytest, "main")
    check(3, "main")
    check_imports("def main(c):\n    import missing_module\n    from . import x\n", "main")
