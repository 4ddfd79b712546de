"""Defaults and class attributes of a function's script: what they are here is what they are in every task."""

from __future__ import annotations

import ast
import linecache
import sys
import textwrap
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions import live, writing

_COUNT = iter(range(1000))


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs texts as cells of a notebook; `use` of the last is the script. Returns: what a task has of it."""
    made = []

    def run(*texts: str) -> Any:
        module = types.ModuleType(f"notebook_{next(_COUNT)}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        vars(module)["In"] = ["", *(textwrap.dedent(text).lstrip("\n") for text in texts)]
        for text in texts:
            text = textwrap.dedent(text).lstrip("\n")
            name = f"<cell-{next(_COUNT)}>"
            made.append(name)
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
            exec(compile(text, name, "exec", dont_inherit=True), vars(module))
        here = vars(module)["use"](None)
        for _ in range(2):
            task = types.ModuleType("script_in_a_task")
            monkeypatch.setitem(sys.modules, task.__name__, task)
            exec(compile(writing.source_of(vars(module)["use"])[0], "<script>", "exec", dont_inherit=True), vars(task))
            there = vars(task)["main"](None)
            assert repr(there) == repr(here)
        return there

    yield run
    for name in made:
        linecache.cache.pop(name, None)


NET = """
class Net:
    def __init__(self, units=UNITS): self.units = units
    @staticmethod
    def s(units=UNITS, *, more=UNITS + 1): return units, more
    @classmethod
    def c(cls, units=UNITS): return units
    @property
    def p(self, units=UNITS): return units
    f = lambda self, units=UNITS: units
    class Inner:
        def m(self, units=UNITS): return units
"""
USE_NET = "def use(c): n = Net(); return n.units, n.s(), n.c(), n.p, n.f(), n.Inner().m()"


def test_defaults_of_methods_whose_names_were_set_again(cells: Any) -> None:
    assert cells("UNITS = 32", NET, "UNITS = 64", USE_NET) == (32, (32, 33), 32, 32, 32, 32)


def test_defaults_of_dataclasses(cells: Any) -> None:
    made = """
    import dataclasses, time
    @dataclasses.dataclass
    class P:
        a: float = RATES["a"]
        b: float = dataclasses.field(default=time.time(), repr=False)
        c: list = dataclasses.field(default_factory=list)
        def more(self, k=RATES["a"]): return k
    """
    rate, _, nothing, more = cells(
        "RATES = {'a': 1.5}", made, "RATES['a'] = 7", "def use(c): p = P(); return p.a, p.b, p.c, p.more()"
    )
    assert (rate, nothing, more) == (1.5, [], 1.5)


@pytest.mark.parametrize(
    ("before", "default", "after", "want"),
    [
        ("cfg = {'lr': 0.1}", "cfg['lr']", "cfg['lr'] = 5", 0.1),
        ("N = ['a', 'b']", "len(N)", "N.append('c')", 2),
        ("N = 1", "f'run-{N}'", "N = 2", "run-1"),
        ("def make(): return [1]", "make()", "", [1]),
        ("import types; cfg = types.SimpleNamespace(lr=1)", "cfg.lr", "cfg.lr = 2", 1),
        ("L = [1]", "L", "L.append(2)", [1, 2]),
        ("L = [1]", "L", "L = [3]", [1]),
        ("", "[]", "keeps.__defaults__[0].append(4)", [4]),
        ("", "(1,\n           2)", "", (1, 2)),
        ("N = 1", "(N +\n    len('ab'))", "N = 9", 3),
        ("N = 1", "{'a': [N]}", "N = 9", {"a": [1]}),
    ],
)
def test_defaults_of_functions(cells: Any, before: str, default: str, after: str, want: Any) -> None:
    assert cells(before, f"def keeps(x, k={default}): return k", after, "def use(c): return keeps(1)") == want
    assert (
        cells(
            before,
            f"def use(x, *, keeps=None, k={default}): return k",
            after.replace("keeps.__defaults__[0]", "use.__kwdefaults__['k']"),
        )
        == want
    )


@pytest.mark.parametrize(
    "made",
    [
        "datetime.datetime.now()",
        "uuid.uuid4()",
        "uuid.uuid4().hex",
        "random.random()",
        "time.time()",
        "os.environ.get('HOME')",
        "[time.time()]",
    ],
)
def test_what_would_be_made_anew_is_the_same_in_every_task(cells: Any, made: str) -> None:
    imports = "import datetime, os, random, time, uuid"
    cells(imports, f"class Run:\n    id = {made}\n    a, b = {made}, 1", "def use(c): return Run.id, Run.a, Run.b")
    cells(imports, f"def use(c, k={made}): return k")


@pytest.mark.parametrize(
    ("body", "change", "want"),
    [
        ("MEAN = np.zeros(3)", "C.MEAN[:] = 2.0", "[2. 2. 2.]"),
        ("MEAN = 1", "C.MEAN = 2", "2"),
        ("MEAN = {}", "C.MEAN['a'] = 1", "{'a': 1}"),
        ("x = 2\n    MEAN = x * 3", "x = 9", "6"),
        ("MEAN = None", "C.MEAN = np.float32(0.5)", "0.5"),
        (
            "__hidden = len('ab')\n    @classmethod\n    def get(cls): return cls.__hidden\n    MEAN = 1",
            "C.MEAN = C.get()",
            "2",
        ),
    ],
)
def test_class_attributes_that_were_changed(cells: Any, body: str, change: str, want: str) -> None:
    assert cells("import numpy as np", f"class C:\n    {body}", change, "def use(c): return str(C.MEAN)") == want


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "change", "said"),
    [
        ("@property\n    def p(self): return 1", "C.p = property(lambda self: 2)", "C.p was set behind the definition of C"),
        ("@staticmethod\n    def p(): return 1", "C.p = staticmethod(lambda: 2)", "C.p was set behind the definition of C"),
        ("@classmethod\n    def p(cls): return 1", "C.p = 5", "C.p was set behind the definition of C"),
        (
            "def q(self): pass\n    def r(self): pass\n    def p(self): return 1",
            "def p(self): return 2\nC.p = p",
            "C.p was set behind",
        ),
        ("p = 1", "del C.p", "C.p was deleted behind the definition of C"),
        ("def p(self): return 1", "del C.p; C.q = len", "C.p was deleted behind"),
        ("def p(self): return 1", "C.q = len", "C.q was set behind"),
        ("def p(self): return 1", "del C.p", "C.p was deleted behind"),
        ("def p(self, k=1): return 1", "C.p.__defaults__ = None", r"the defaults of C.p\(\) were set behind its definition"),
        ("p = 1", "C.p = C()", r"uses C.p, a C, which cannot be handed"),
        (
            "p = ['x'] * 10**6",
            "C.p[0] = 'y'",
            r"uses C.p, which is 5,000,000 characters long as Python writes it, more than the 4,000,000",
        ),
    ],
)
def test_what_cannot_be_said_is_refused(cells: Any, body: str, change: str, said: str) -> None:
    with pytest.raises(ScriptError, match=said):
        cells(f"class C:\n    {body}", change, "def use(c): return C and None")


def test_what_no_text_holds_is_made_in_each_task(cells: Any) -> None:
    made = """
    class C:
        lock = threading.Lock()
        locks = [threading.Lock()]
        n = itertools.count()
        area = math.hypot
        pi = math.pi
        one = staticmethod(abs)
    """
    assert cells(
        "import itertools, math, threading",
        made,
        "def use(c): return C.lock.locked(), next(C.n) * 0, C.area(3, 4), C.pi > 3, C.one(-1)",
    ) == (
        False,
        0,
        5.0,
        True,
        1,
    )


@pytest.mark.parametrize("registry", ["{}", "dict()"])
def test_a_class_that_holds_those_made_from_it(cells: Any, registry: str) -> None:
    base = f"""
    class Base:
        made = {registry}
        def __init_subclass__(cls): Base.made[cls.__name__] = cls
    """
    with pytest.raises(ScriptError, match="Base holds A, which is made from it, .*; put it into a file of its own"):
        cells(base, "class A(Base): pass", "def use(c): return sorted(Base.made)")
    with pytest.raises(ScriptError, match="the definition of A changes Base, .*; put it into a file of its own"):
        cells(base, "class A(Base): pass", "def use(c): return sorted(A.made)")
    assert cells(base, "def use(c): return sorted(Base.made)") == []


def test_a_registry_that_a_hook_of_classes_changes(cells: Any) -> None:
    base = """
    class Base:
        def __init_subclass__(cls, **more): MADE[cls.__name__] = cls
    """
    for use in ("sorted(MADE)", "A.__name__"):
        with pytest.raises(ScriptError, match="the definition of A changes MADE, which goes to the tasks as it is now"):
            cells("MADE = {}", base, "class A(Base): pass", f"def use(c): return {use}")


def test_methods_that_python_makes_otherwise(cells: Any) -> None:
    made = """
    class C:
        def __new__(cls, k=N): o = object.__new__(cls); o.k = k; return o
        def __class_getitem__(cls, k): return k
        def __init_subclass__(cls, k=N): cls.n = k
    class D(C): pass
    """
    assert cells("N = 1", made, "N = 2", "def use(c): return C().k, C[3], D.n, D().k") == (1, 3, 1, 1)


def test_defaults_of_dataclasses_with_slots(cells: Any) -> None:
    made = """
    import dataclasses
    @dataclasses.dataclass(slots=True, frozen=True)
    class P:
        a: int = 3
        b: int = N
        c: list = dataclasses.field(default_factory=list)
    """
    assert cells("N = 1", made, "N = 2; KEPT = P(5)", "def use(c): return P(), KEPT.a, P(a=1, b=2).b")[1:] == (5, 2)


def test_class_variables_of_dataclasses(cells: Any) -> None:
    made = """
    import dataclasses, typing
    @dataclasses.dataclass
    class P:
        a: int = 3
        n: typing.ClassVar[int] = 1
    """
    assert cells(made, "P.n = 7", "def use(c): return P().a, P.n") == (3, 7)


def test_an_attribute_that_is_no_longer_the_default_of_its_field(cells: Any) -> None:
    kind = "from dataclasses import dataclass\n@dataclass{slots}\nclass Config:\n    lr: float = 0.1"
    assert cells(kind.format(slots="(slots=True)"), "def use(c): return Config().lr") == 0.1
    with pytest.raises(
        ScriptError, match=r"Config.lr was set behind the definition of Config, whose instances have the value that it had then"
    ):
        cells(kind.format(slots=""), "Config.lr = 0.5", "def use(c): return Config.lr")


def test_expressions_are_replaced_and_every_line_stays_where_it_was() -> None:
    text = "def f(\u00e9=A, b=(\n    1\n)): ...\nx = 2"
    whole = ast.parse(text).body[0]
    assert isinstance(whole, ast.FunctionDef)
    first, second = whole.args.defaults
    there = live.in_place(text, {first: "0.5", second: "7"})
    assert there.count("\n") == text.count("\n") and "\u00e9=0.5" in there and there.endswith("\nx = 2")
    compile(there, "f", "exec")


@pytest.mark.parametrize(
    ("value", "anew"), [(threading.Lock(), True), ([threading.Lock()], True), (1, False), ("a", False), ([], False)]
)
def test_a_lock_may_be_made_again_in_each_task_and_a_number_not(value: Any, anew: bool) -> None:
    assert live.is_made_anew(value, test_a_lock_may_be_made_again_in_each_task_and_a_number_not) is anew
