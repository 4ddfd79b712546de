"""Which of the user's own modules an import brings to a task, and what the task would then have twice."""

from __future__ import annotations

import collections
import json
import sys
import types
from typing import Any

import pytest

from akrunner.launch.functions import own_modules
from akrunner.launch.functions.module_text import Import
from tests.unit.launch.functions.conftest import Written


def names(modules: Any) -> list[str]:
    return sorted(modules if isinstance(modules, dict) else [one.__name__ for one in modules])


def test_the_program_itself_is_no_module_of_its_own(written: Written) -> None:
    load = written({"conf.py": ""})
    assert own_modules.is_own(load("conf")) and not own_modules.is_own(json)
    main = types.ModuleType("__main__")
    main.__file__ = load("conf").__file__
    assert not own_modules.is_own(main)


def test_modules_that_a_text_imports(written: Written) -> None:
    load = written({"pack/__init__.py": "", "pack/sub/__init__.py": "", "pack/sub/leaf.py": "A = 1", "conf.py": ""})
    load("pack.sub.leaf"), load("conf")
    assert names(own_modules.imported_by("import pack.sub.leaf")) == ["pack", "pack.sub", "pack.sub.leaf"]
    assert names(own_modules.imported_by("from pack.sub import leaf")) == ["pack", "pack.sub", "pack.sub.leaf"]
    assert names(own_modules.imported_by("from pack.sub.leaf import A")) == ["pack", "pack.sub", "pack.sub.leaf"]
    assert names(own_modules.imported_by("def f():\n    import conf")) == ["conf"]
    for text in ("from . import conf", "import not_there", "x = 1", "import conf ("):
        assert own_modules.imported_by(text) == []


def test_a_module_that_only_the_task_imports_may_bring_others(written: Written) -> None:
    load = written({"conf.py": "", "later.py": "import latest", "latest.py": "import conf, later", "bad.py": "import conf ("})
    load("conf")
    assert names(own_modules.imported_by("import later")) == ["conf"]
    assert own_modules.imported_by("import bad") == []
    assert "later" not in sys.modules and "latest" not in sys.modules, "nothing is run for that"


@pytest.mark.parametrize(
    ("level", "module", "of", "name"),
    [
        (0, "a.b", "anything", "a.b"),
        (1, "b", "pack", "pack.b"),
        (1, "", "pack", "pack"),
        (1, "b", "pack.leaf", "pack.b"),
        (2, "b", "pack.sub", "pack.b"),
        (2, "b", "pack.leaf", ""),
        (1, "b", "alone", ""),
    ],
)
def test_the_full_name_of_what_is_imported(level: int, module: str, of: str, name: str) -> None:
    around = types.ModuleType(of)
    if of in ("pack", "pack.sub"):
        around.__path__ = []
    assert own_modules.source_of(Import(level, module, "x", "x"), around) == name


def test_modules_that_a_function_uses(written: Written) -> None:
    files = {name: "A = 1\ndef f(): ...\n" for name in ("one.py", "two.py", "three.py", "four.py", "five.py")}
    load = written({**files, "main_of.py": """
        import functools, one, two as second, four
        from three import f
        def kept(g):
            @functools.wraps(g)
            def inner(*given):
                return g(*given)
            return inner
        def helper():
            return second.A
        @kept
        def train(task_config):
            def inner():
                import five
                return helper()
            return f() and inner()
        class Model:
            def fit(self): return one.A
        def fits(task_config): return Model().fit()
    """})  # fmt: skip
    load("five"), load("main_of")
    used = names(own_modules.used_by("train", "main_of"))
    assert {"two", "three", "five"} <= set(used) and not {"one", "four"} & set(used)
    used = names(own_modules.used_by("fits", "main_of"))
    assert "one" in used and not {"two", "three", "four"} & set(used)
    everything = names(own_modules.used_by("not_there", "main_of"))
    assert {"one", "two", "three", "four"} <= set(everything)
    assert own_modules.used_by("train", "no_module") == []


@pytest.fixture
def chain(written: Written) -> Any:
    load = written({
        "top.py": "import middle, json\nif middle:\n    import optional\n",
        "middle.py": "def f():\n    import last\n    from pkg import part\n",
        "optional.py": "", "last.py": "from top import middle\n",
        "pkg/__init__.py": "", "pkg/part.py": "from . import beside\nimportlib = None\n", "pkg/beside.py": "", "unused.py": "",
    })  # fmt: skip
    for name in ("top", "last", "pkg.part", "unused"):
        load(name)
    return load


def test_modules_that_are_reached_at_all_and_at_once(chain: Any) -> None:
    top = chain("top")
    assert names(own_modules.reached([top])) == ["last", "middle", "optional", "pkg", "pkg.beside", "pkg.part", "top"]
    assert names(own_modules.at_once([top])) == ["middle", "top"]
    assert names(own_modules.at_once([chain("pkg.part")])) == ["pkg", "pkg.beside", "pkg.part"]
    assert own_modules.reached([]) == {} == own_modules.reached([json])


def test_an_import_of_a_computed_name_may_bring_all_beside_it(written: Written) -> None:
    load = written({
        "plug/__init__.py": "", "plug/a.py": "", "plug/b/__init__.py": "", "plug/loads.py": "import importlib\ndef go(name):\n    return "
        "importlib.import_module(name)",
        "away.py": "",
    })  # fmt: skip
    for name in ("plug.a", "plug.b", "away"):
        load(name)
    assert names(own_modules.reached([load("plug.loads")])) == ["plug", "plug.a", "plug.b", "plug.loads"]


def test_modules_that_are_held_by_what_a_module_has(written: Written) -> None:
    load = written({
        "holds.py": "import brought", "brought.py": "from far import Kind\nTABLE = {}", "far.py": "class Kind: ...\n",
        "given.py": "def hook(): ...\n", "pkg/__init__.py": "", "pkg/inner.py": "",
    })  # fmt: skip
    holds = load("holds")
    assert list(own_modules.held([holds])) == ["holds", "brought", "far"]
    holds.hook = load("given").hook
    assert "given" in own_modules.held([holds])
    load("pkg.inner")
    assert list(own_modules.held([load("pkg")])) == ["pkg"], "a package has each of its modules by name"
    assert own_modules.held([json]) == {}


PROGRAM = """
    import threading
    RATE = 1
    LIMITS = [1, 2]
    class Config: ...
    def plain(x): return x * RATE
    def uses(x): return LIMITS
    def counted():
        global COUNT
        COUNT = 1
    COUNT = 0
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from program import Config\nKIND = Config", "Config"),
        ("from program import Config as C\ndef f():\n    return C()", "Config"),
        ("import program\nKIND = program.Config", "Config"),
        ("import program as p\ndef f():\n    return p.LIMITS", "LIMITS"),
        ("from program import uses\nuses(1)", "uses"),
        ("from program import COUNT\nprint(COUNT)", "COUNT"),
        # by another module that has it from there
        ("from through import Config\nConfig()", "Config"),
        # it does not matter, or is not used
        ("from program import RATE, plain\nplain(RATE)", ""),
        ("from program import threading\nthreading.Lock()", ""),
        ("from program import Config\ndef f(a: Config): ...", ""),
        ("import program\nprogram.gone", ""),
        ("import program\nprogram.__spec__", ""),
        ("import json\njson.dumps(1)", ""),
    ],
)
def test_what_a_task_would_have_twice(written: Written, text: str, name: str) -> None:
    load = written({"program.py": PROGRAM, "through.py": "from program import Config", "util.py": text})
    load("program"), load("through")
    try:
        util = load("util")
    except AttributeError:
        # what the program did not have yet
        util = types.ModuleType("util")
        util.__file__ = load("through").__file__.replace("through", "util")
    assert own_modules.doubled([util], "program") == (("util", name) if name else ("", ""))
    assert own_modules.doubled([load("program")], "program") == ("", "") == own_modules.doubled([util], "no_module")


def test_subclasses_that_a_module_looks_for(written: Written) -> None:
    load = written({
        "bases.py": "class Base: ...\nclass Other: ...\ndef all_of():\n    return Base.__subclasses__()\n",
        "kinds.py": "from bases import Base\nclass One(Base): ...\nclass Two(One): ...\n",
        "silent.py": "class Quiet: ...\nclass Below(Quiet): ...\n",
    })  # fmt: skip
    bases, kinds = load("bases"), load("kinds")
    assert list(own_modules.looked_for([bases])) == [(bases, bases.Base, kinds.One), (bases, bases.Base, kinds.Two)]
    assert list(own_modules.looked_for([load("silent")])) == []


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("THING = GIVEN", False),
        ("def f(a=GIVEN): ...", True),
        ("def f(*, a=GIVEN): ...", True),
        ("def around(a):\n    def f(): return a\n    return f\nF = around(GIVEN)", True),
        ("class A:\n    a = GIVEN", True),
        ("class A:\n    def f(self, a=GIVEN): ...", True),
        ("class A:\n    @staticmethod\n    def f(a=GIVEN): ...", True),
        ("class A:\n    def __init__(self): self.a = GIVEN\nONE = A()", True),
        ("A = [1, GIVEN]", True),
        ("A = {'k': GIVEN}", True),
        ("A = collections.deque([GIVEN])", True),
        ("A = [[GIVEN]]", False),
        ("B = [list(GIVEN)]", False),
        ("def around():\n    def f(): return late\n    if 0: late = 1\n    return f\nF = around()", False),
    ],
)
def test_what_holds_an_object_besides_a_name(written: Written, text: str, held: bool) -> None:
    module = written({"keeper.py": f"import collections\nGIVEN = [1]\n{text}"})("keeper")
    assert own_modules.holds_besides(module.GIVEN, [module]) == held
    assert not own_modules.holds_besides(collections.OrderedDict(), [module]) and not own_modules.holds_besides(
        module.GIVEN, []
    )
