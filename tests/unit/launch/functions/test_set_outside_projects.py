"""Programs of several modules: what was set in one of them, or taken from it, is told; what they do themselves is no matter."""

import importlib
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions.set_outside import check_imports

Project = Callable[[dict[str, str]], None]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Writes files, of which the tests import what they want."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()

    yield write
    for name, module in list(sys.modules.items()):
        if name not in before and str(tmp_path) in str(getattr(module, "__file__", "")):
            del sys.modules[name]


def load(name: str) -> Any:
    return importlib.import_module(name)


def look(name: str, of: str = "train", **more: Any) -> None:
    check_imports(f"import {name}", of, "main", **more)


def refused(name: str, words: str, of: str = "train") -> None:
    with pytest.raises(ScriptError, match=words):
        look(name, of)


CONF = """
    import collections, enum, logging, math, os, pathlib, time

    SCALE = 2.0
    OVERRIDES = {}
    HOOKS = []
    TAGS = set()
    STEPS_SEEN = collections.OrderedDict()

    class Mode(enum.Enum):
        FAST = 1
        SLOW = 2

    MODE = Mode.FAST
    N = 7
    NAME = f"run{N:03d}"
    X = 1
    X += 2
    SQUARES = {n: n * N for n in range(3)}
    COUNTS = collections.Counter(a=1)
    GROUPS = collections.defaultdict(list)

    def inc(x):
        return x + 1

    def dec(x):
        return x - 1

    default = inc
    TABLE = {"f": inc}
    LINE = lambda r: r.strip()
    OTHER = lambda r: r

    class Model:
        k = 1
        options = {}

        def predict(self, x):
            return x + 1

        @property
        def width(self):
            return 1

        @staticmethod
        def make():
            return Model()

        @classmethod
        def name(cls):
            return cls.__name__

    class Sub(Model):
        pass

    def set_option(name, value):
        OVERRIDES[name] = value
"""
MID = """
    import conf as settings
    from conf import SCALE, Model as M, inc
    from math import sqrt

    def f(x):
        return inc(x) * SCALE
"""
ALTERED: dict[str, Callable[[Any, Any], object]] = {
    r"conf.OVERRIDES is \{'k': 5\} here, but \{\} in": lambda c, m: c.set_option("k", 5),
    r"conf.HOOKS is \[1\] here": lambda c, m: c.HOOKS.append(1),
    r"conf.TAGS is \{1\} here": lambda c, m: c.TAGS.add(1),
    r"conf.STEPS_SEEN is": lambda c, m: c.STEPS_SEEN.update(a=1),
    "conf.MODE is <Mode.SLOW: 2> here, but Mode.FAST": lambda c, m: setattr(c, "MODE", c.Mode.SLOW),
    "conf.NAME is 'other' here": lambda c, m: setattr(c, "NAME", "other"),
    "conf.X is 4 here, but 1 [+] 2": lambda c, m: setattr(c, "X", 4),
    "conf.SQUARES is": lambda c, m: c.SQUARES.pop(0),
    "conf.COUNTS is": lambda c, m: c.COUNTS.update("a"),
    "conf.GROUPS is": lambda c, m: c.GROUPS["a"].append(1),
    "conf.default is conf.dec here, but inc": lambda c, m: setattr(c, "default", c.dec),
    "conf.TABLE is": lambda c, m: c.TABLE.update(f=c.dec),
    "conf.LINE is": lambda c, m: setattr(c, "LINE", c.OTHER),
    "conf.Model.options is": lambda c, m: c.Model.options.update(a=1),
    "conf.Model.predict is .*lambda.* here, but defined by def": lambda c, m: setattr(c.Model, "predict", lambda self, x: x),
    "conf.Model.width is": lambda c, m: setattr(c.Model, "width", property(lambda self: 9)),
    "conf.Model.make is": lambda c, m: setattr(c.Model, "make", staticmethod(lambda: 9)),
    "conf.Model.name is": lambda c, m: setattr(c.Model, "name", classmethod(lambda cls: 9)),
    "conf.Sub.k is 99 here, but not there": lambda c, m: setattr(c.Sub, "k", 99),
    "conf.Model is .* here, but defined by class": lambda c, m: setattr(c, "Model", type("Model", (c.Model,), {})),
    "mid.SCALE is 10.0 here, but conf.SCALE is 2.0": lambda c, m: setattr(m, "SCALE", 10.0),
    "mid.inc is .*lambda.* here, but conf.inc is conf.inc": lambda c, m: setattr(m, "inc", lambda x: x),
    "mid.M is <Mock .* here, but conf.Model": lambda c, m: setattr(m, "M", Mock()),
    "mid.settings is <Mock": lambda c, m: setattr(m, "settings", Mock()),
    "mid.sqrt is .* here, but math.sqrt": lambda c, m: setattr(m, "sqrt", lambda x: x),
}


@pytest.mark.parametrize("words", ALTERED)
def test_what_was_set_is_told(project: Project, words: str) -> None:
    project({"conf.py": CONF, "mid.py": MID})
    mid, conf = load("mid"), load("conf")
    look("mid")
    # looking something up puts it there
    conf.GROUPS["seen"]
    look("mid")
    ALTERED[words](conf, mid)
    refused("mid", words)


def test_what_the_function_sets_itself_may_be_anything(project: Project) -> None:
    project({"conf.py": CONF, "mid.py": MID})
    mid, conf = load("mid"), load("conf")
    conf.X, mid.SCALE, conf.Sub.k = 4, 10.0, 99
    look("mid", sets=frozenset({".X", ".SCALE", ".k"}))
    refused("mid", "conf.X is 4")


def test_relative_late_and_starred_imports_are_followed(project: Project) -> None:
    project(
        {
            "pkg/__init__.py": "",
            "pkg/settings.py": "LR = 2.0\nNAMES = ['a']\n",
            "pkg/steps.py": "from .settings import LR\n",
            "pkg/late.py": "def f(x):\n    from . import settings\n    return x * settings.LR\n",
            "pkg/star.py": "from .settings import *\nRATE = 1\ndef n():\n    return len(NAMES)\n",
        }
    )
    steps, _, star, settings = load("pkg.steps"), load("pkg.late"), load("pkg.star"), load("pkg.settings")
    for name in ("pkg.steps", "pkg.late", "pkg.star"):
        look(name)
    steps.LR = 3.0
    refused("pkg.steps", "pkg.steps.LR is 3.0 here, but pkg.settings.LR is 2.0")
    settings.LR = steps.LR = 9.0
    refused("pkg.late", "pkg.settings.LR is 9.0 here")
    settings.LR = steps.LR = 2.0
    star.RATE = 2
    refused("pkg.star", "pkg.star.RATE is 2 here")


def test_a_file_that_was_edited_is_told(project: Project, tmp_path: Path) -> None:
    text = "class A:\n    def f(self):\n        return 'a' in {'a', 'b', 'c'}\n\ndef g(x):\n    return x + 1\n"
    project({"helper.py": text})
    load("helper")
    for moved in (f"# a comment\n\n{text}", text):
        project({"helper.py": moved})
        look("helper")
    for n, (one, other) in enumerate({"x + 1": "x + 1000", "'a' in": "'b' in", "def g": "def h", "x + 1\n": "x +\n"}.items()):
        project({"helper.py": text.replace(one, other)})
        os.utime(tmp_path / "helper.py", (n, n))
        refused("helper", "helper.py has changed since it was imported; import it again")


REGISTRY = """
    MODELS = {}
    def register(name):
        def decorated(kind):
            assert name not in MODELS
            MODELS[name] = kind
            return kind
        return decorated
    def get(name):
        return MODELS[name]
"""
MODELS = "from registry import register\n@register('lin')\nclass Lin:\n    pass\n"


INSTANCE = """
    class Registry:
        def __init__(self):
            self.MODELS = {}
        def register(self, name):
            def decorated(kind):
                self.MODELS[name] = kind
                return kind
            return decorated
    registry = Registry()
    register = registry.register
    def get(name):
        return registry.MODELS[name]
"""


@pytest.mark.parametrize("registry", [REGISTRY, REGISTRY.replace("assert name not in MODELS", "pass"), INSTANCE])
def test_a_registry_is_filled_in_the_tasks_as_well_if_they_import_what_fills_it(project: Project, registry: str) -> None:
    train = "import registry, {0}\ndef main(tc):\n    {1}\n    return registry.get('lin')\n"
    project({"registry.py": registry, "models.py": MODELS, "train.py": train.format("models", "pass")})
    load("train")
    refused("registry", "registry.*MODELS has what models puts there .* do not import models; import what fills it within main")
    for inner in ("import models", "models"):
        project({"train.py": train.format("models", inner)})
        importlib.reload(load("train"))
        look("registry")
    look("models")


def test_the_functions_own_module_is_not_imported_again(project: Project) -> None:
    train = """
        import util
        RATE = 3
        class Config: pass
        class Error(Exception): pass
        STATE = {"n": 1}
        def pure(x): return x * RATE
        def reads(): return STATE["n"]
        def main(tc): util.f()
    """
    for used in ("Config", "Error", "STATE", "reads"):
        for line in (
            f"from train import {used}\n    {used}",
            f"import train\n    train.{used}",
            f"import train as t\n    t.{used}",
        ):
            project({"train.py": train, "util.py": f"def f():\n    {line}\n"})
            for name in ("train", "util"):
                sys.modules.pop(name, None)
            load("train")
            refused("util", f"util uses {used} of train, the module that main.. is from.* a module of its own")
            look("util", "other")
    for line in (
        "from train import pure, RATE\n    pure(RATE)",
        "import train",
        "from typing import TYPE_CHECKING\n    if TYPE_CHECKING:\n        from train import Config\n        Config",
        "from train import Config\n    x: Config",
    ):
        project({"util.py": f"def f():\n    {line}\n"})
        sys.modules.pop("util", None)
        load("util")
        look("util")


def test_a_package_may_name_what_is_in_it(project: Project) -> None:
    project(
        {
            "proj/__init__.py": "from .train import Config, main\n",
            "proj/util.py": "def f(x):\n    return x\n",
            "proj/train.py": "from .util import f\nclass Config: pass\ndef main(tc): f(Config)\n",
        }
    )
    load("proj")
    look("proj.util", "proj.train")
    project({"proj/util.py": "def f(x):\n    from . import Config\n    return isinstance(x, Config)\n"})
    importlib.reload(load("proj.util"))
    refused("proj.util", "proj.util uses Config of proj.train", "proj.train")


INNOCENT = {
    "shop/__init__.py": """
        import importlib, pkgutil
        from .base import *
        from .config import CONFIG, Config
        __all__ = ["CONFIG", "Config"]
        for _found in pkgutil.iter_modules([__path__[0] + "/plugins"]):
            importlib.import_module(f"{__name__}.plugins.{_found.name}")
    """,
    "shop/plugins/__init__.py": "",
    "shop/plugins/fast.py": "from ..registry import REG, register\n@register\nclass Fast: pass\nREG.add('fast')(Fast)\n",
    "shop/registry.py": """
        class Registry:
            def __init__(self): self.known = {}
            def add(self, name):
                def put(kind):
                    self.known[name] = kind
                    return kind
                return put
        REG = Registry()
        CLASSES = []
        def register(kind):
            CLASSES.append(kind)
            return kind
    """,
    "shop/base.py": """
        import abc, functools, logging, os, pathlib, time, typing, random
        try:
            import not_there as json
        except ImportError:
            import json
        if typing.TYPE_CHECKING:
            from shop.config import Config
        log = logging.getLogger(__name__)
        log.addHandler(logging.NullHandler())
        START = time.time()
        BASE = pathlib.Path(__file__).parent
        DEBUG = bool(os.environ.get("SHOP_DEBUG"))
        SUBCLASSES = {}
        TIMES = []
        def timed(f):
            @functools.wraps(f)
            def wrapper(*args, **kwargs):
                TIMES.append(f.__name__)
                return f(*args, **kwargs)
            return wrapper
        class Base(abc.ABC):
            made = 0
            seen = []
            _instance = None
            def __init_subclass__(cls, **more):
                SUBCLASSES[cls.__name__] = cls
            def __init__(self):
                type(self).made += 1
                self.seen.append(1)
            @classmethod
            def get(cls):
                if cls._instance is None:
                    cls._instance = cls()
                return cls._instance
            @abc.abstractmethod
            def run(self): ...
            @functools.cached_property
            def costs(self): return 1
        class Lazy:
            def __new__(cls):
                if not hasattr(cls, "_one"):
                    cls._one = super().__new__(cls)
                return cls._one
    """,
    "shop/config.py": """
        from __future__ import annotations
        import collections, dataclasses, enum
        from dataclasses import dataclass, field
        @dataclass
        class Config:
            lr: float = 0.1
            sizes: list = field(default_factory=lambda: [1])
        class Level(enum.IntEnum):
            LOW = 1
            HIGH = 2
        CONFIG = Config()
        LEVEL = Level.LOW
        Point = collections.namedtuple("Point", "x y")
        class Named(collections.namedtuple("Named", "a")):
            pass
    """,
    "shop/work.py": """
        import functools, threading
        from . import base as b, config
        from .base import Base, TIMES, timed
        _CACHE = {}
        _lock = threading.Lock()
        _STORE = dict()
        HISTORY = []
        CALLS = 0
        _ENGINE = None
        STATS = {}
        def _get(k): return _STORE.get(k)
        def _put(k, v): _STORE[k] = v
        def note(x): HISTORY.append(x)
        def count(name): STATS[name] = 1
        class Worker(Base):
            def run(self):
                return self.costs
        @functools.lru_cache(maxsize=None)
        def cached(x): return x
        @timed
        def work(x):
            global CALLS, _ENGINE
            CALLS += 1
            if _ENGINE is None:
                _ENGINE = object()
            with _lock:
                if x not in _CACHE:
                    _CACHE[x] = cached(x)
            if _get(x) is None:
                _put(x, 1)
            note(x)
            count("work")
            Worker.get().run()
            b.Lazy()
            return _CACHE[x]
        def size(): return len(HISTORY), len(STATS)
    """,
}


@pytest.mark.slow
def test_what_programs_do_themselves_is_no_matter(project: Project) -> None:
    project(INNOCENT)
    work = load("shop.work")
    for _ in range(2):
        for name in ("shop", "shop.work", "shop.registry", "shop.plugins.fast"):
            look(name)
        work.work(1)
        work.Worker()
    importlib.reload(load("shop.config"))
    for name in ("shop", "shop.work"):
        look(name)


def test_modules_of_other_loaders_and_odd_ones_are_let_be(project: Project) -> None:
    project({"odd.py": "from builtins import print\nfrom sys import stdout\nimport os.path as p, xml.dom\nf = lambda: 1\n"})
    odd = load("odd")
    look("odd")
    odd.f.__module__ = "elsewhere"
    odd.new = ModuleType("new")
    look("odd")


@pytest.mark.parametrize(
    "use",
    ["import base\nTABLE = [base.SCALE]", "import base\nTABLE = base.table()", "import base\ndef f(x=base.SCALE): return x"],
)
def test_what_another_module_looks_at_when_it_is_imported_does_not_go_along(project: Project, use: str) -> None:
    """It may have been set before, or since."""
    project({"base.py": "SCALE, OTHER = 1, 1\ndef table(): return [SCALE]\n", "use.py": use})
    load("use")
    base = load("base")
    base.OTHER = 5
    taken: list[str] = []

    def carry(module: str, name: str, value: Any, own: bool) -> bool:
        taken.append(name)
        return True

    look("use", carry=carry)
    assert taken == ["OTHER"]
    base.SCALE = 5
    with pytest.raises(ScriptError, match="base.SCALE is 5 here, but 1"):
        look("use", carry=carry)
