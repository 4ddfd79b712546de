"""Whether the functions and classes of a module are still those of its file."""

from __future__ import annotations

import ast
import os
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

from akrunner.launch.functions import module_code
from akrunner.launch.functions.module_text import text_of
from tests.unit.launch.functions.conftest import Written

CONF = """
    import abc
    import functools

    def fit(a):
        def inner():
            return a
        return inner

    FIRST = lambda x: x + 1
    SECOND = lambda x: x + 2

    class Model(abc.ABC):
        options = {}

        def predict(self):
            return 1

        @property
        def width(self):
            return 1

        @staticmethod
        def make():
            return 1

        @classmethod
        def name(cls):
            return 1

        @functools.cached_property
        def size(self):
            return 1

    class Plain:
        options = {}

        @property
        def width(self):
            return 1

    def plus(self):
        return 9
"""


@pytest.fixture
def conf(written: Written) -> Any:
    return written({"conf.py": CONF})("conf")


def rewritten(module: types.ModuleType, old: str, new: str) -> None:
    """Change its file, and the time at which it was changed."""
    path = Path(str(module.__file__))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    os.utime(path, (1, 1))


def replaced(module: Any, name: str = "Model", hung: frozenset[str] = frozenset(), any_hung: bool = False) -> list[str]:
    tree = ast.parse(Path(str(module.__file__)).read_text())
    (node,) = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name]
    found = module_code.replaced(getattr(module, name), node, module, text_of(module), set(hung), any_hung)
    return [name for name, _ in found]


def test_a_module_that_was_not_touched(conf: Any) -> None:
    assert not module_code.changed_on_disk(conf)
    rewritten(conf, "def fit", "# moved\n\ndef fit")
    assert not module_code.changed_on_disk(conf), "another line is no other code"
    rewritten(conf, "def plus", "def more(): ...\n\ndef plus")
    assert not module_code.changed_on_disk(conf)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return a\n", "return a + 1\n"),
        ("x + 2", "x + 3"),
        ("def fit(a)", "def fit(a, *b)"),
        ("def plus", "def minus"),
        *[(f"def {name}({of}):\n        return 1", f"def {name}({of}):\n        return 2") for name, of in (("predict", "self"), ("width", "self"), ("make", ""), ("name", "cls"), ("size", "self"))],
        ("import abc", "import abc ("),
        ("import abc", "\0"),
    ],
)  # fmt: skip
def test_a_file_whose_code_is_another_has_changed(conf: Any, old: str, new: str) -> None:
    rewritten(conf, old, new)
    assert module_code.changed_on_disk(conf)


def test_a_file_that_is_gone_has_changed(conf: Any) -> None:
    os.remove(conf.__file__)
    assert module_code.changed_on_disk(conf)


def test_a_module_of_another_loader_is_not_judged(conf: Any) -> None:
    rewritten(conf, "return a\n", "return 7\n")
    conf.__spec__.loader = object()
    assert not module_code.changed_on_disk(conf)
    conf.__spec__ = None
    assert not module_code.changed_on_disk(conf) and not module_code.changed_on_disk(types.ModuleType("made"))


def test_functions_of_other_modules_do_not_count(conf: Any, written: Written) -> None:
    other = written({"other.py": "def away():\n    return 1\n"})("other")
    conf.borrowed = other.away
    rewritten(other, "return 1", "return 2")
    assert not module_code.changed_on_disk(conf) and module_code.changed_on_disk(other)


def test_a_function_behind_a_wrapper_counts(written: Written) -> None:
    module = written({
        "wrapped.py": "import functools\n\ndef kept(f):\n    @functools.wraps(f)\n    def inner():\n        return f()\n    return inner\n\n@kept\ndef "
        "go():\n    return 1\n"
    })("wrapped")  # fmt: skip
    assert not module_code.changed_on_disk(module)
    rewritten(module, "return 1", "return 2")
    assert module_code.changed_on_disk(module)


def test_a_lambda_is_known_by_its_line(conf: Any) -> None:
    lines = textwrap.dedent(CONF).strip("\n").splitlines()
    first, second = (1 + next(at for at, line in enumerate(lines) if line.startswith(name)) for name in ("FIRST", "SECOND"))
    assert module_code.is_at(conf.FIRST, first) and module_code.is_at(conf.SECOND, second)
    assert not module_code.is_at(conf.FIRST, second) and not module_code.is_at(conf.FIRST, 1)
    os.remove(conf.__file__)
    assert module_code.is_at(conf.FIRST, second), "nobody can tell"


def test_a_class_that_was_not_touched(conf: Any) -> None:
    assert replaced(conf) == []


@pytest.mark.parametrize("name", ["predict", "width", "make", "name"])
def test_a_method_that_was_replaced_is_found(conf: Any, name: str) -> None:
    setattr(conf.Model, name, lambda *given: 1)
    assert replaced(conf) == [name]
    assert replaced(conf, hung=frozenset({f".{name}"})) == [], "modules set it themselves"


def test_a_method_of_the_same_kind_is_found_by_its_name(conf: Any) -> None:
    conf.Model.predict = conf.plus
    assert replaced(conf) == ["predict"]
    # setattr(kind, name, ...) of the module itself may have done that
    assert replaced(conf, any_hung=True) == []


def test_an_attribute_that_the_definition_does_not_have_is_found(conf: Any) -> None:
    assert replaced(conf, "Plain") == []
    conf.Plain.more, conf.Plain.options = 1, {"a": 1}
    assert replaced(conf, "Plain") == ["more"]
    assert replaced(conf, "Plain", frozenset({".more"})) == [] == replaced(conf, "Plain", any_hung=True)


@pytest.mark.parametrize(
    "text",
    [
        "def kept(kind):\n    return kind\n@kept\nclass Model:\n    def predict(self): ...",
        "class Meta(type): ...\nclass Model(metaclass=Meta):\n    def predict(self): ...",
        "class Base:\n    def __init_subclass__(cls): ...\nclass Model(Base):\n    def predict(self): ...",
        "class Model(tuple):\n    def predict(self): ...",
        "def kept(f):\n    return f\nclass Model:\n    @kept\n    def predict(self): ...",
        "class Model:\n    def predict(self): ...\n    def predict(self, more): ...",
    ],
)
def test_what_others_may_have_made_is_not_judged(written: Written, text: str) -> None:
    module = written({"special.py": text})("special")
    module.Model.predict = 7
    assert replaced(module) == []


def test_a_base_class_of_a_package_may_add_what_it_likes(written: Written) -> None:
    module = written({"derived.py": "import threading\nclass Model(threading.Thread):\n    def run(self): ..."})("derived")
    module.Model.more = 1
    assert replaced(module) == []
    module.Model.run = lambda self: 1
    assert replaced(module) == ["run"], "but not replace a method"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(): x = 1", ["f"]),
        ("async def f(): ...", ["f"]),
        ("class A: x = 1", ["A"]),
        ("import a.b, c as d", ["a", "d"]),
        ("from a import b, c as d", ["b", "d"]),
        ("a = b", ["a"]),
        ("a, (b, *c) = d", ["a", "b", "c"]),
        ("for a in b:\n    c = 1", ["a", "c"]),
        ("del a", ["a"]),
        ("a.b = 1", []),
        ("f(a)", []),
    ],
)
def test_names_that_a_statement_binds(text: str, names: list[str]) -> None:
    assert sorted(module_code.bound(ast.parse(text).body[0])) == names
