"""Functions of a module as a script: what the module did when it was imported is the same there, or refused."""

from __future__ import annotations

import importlib
import linecache
import logging
import pathlib
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions import at_import, writing

Module = Callable[[str], Any]


@pytest.fixture
def module(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """Imports a text as a module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names: list[str] = []

    def make(text: str) -> Any:
        name = f"module_of_{tmp_path.name}_{len(names)}".replace("[", "_").replace("]", "_").replace("-", "_")
        names.append(name)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text).lstrip("\n"))
        return importlib.import_module(name)

    yield make
    for name in names:
        sys.modules.pop(name, None)
    for name in [name for name in linecache.cache if name.startswith(str(tmp_path))]:
        del linecache.cache[name]


def there(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a task has of it: its module, registered as a worker does."""
    text, _ = writing.source_of(function)
    made = types.ModuleType("script_in_a_task")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(compile(text, "<script>", "exec", dont_inherit=True), vars(made))
    return made


CLASSES = """
{future}
import dataclasses
import functools
import typing
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import ClassVar, List


class Inner:
    pass


@dataclass
class Options:
    size: int
    start: InitVar[int]
    names: List[str] = dataclasses.field(default_factory=list)
    limit: ClassVar[int] = 3
    said: "ClassVar[int]" = 4
    inner: typing.Optional[Inner] = None
    _: KW_ONLY
    last: int = 0

    def __post_init__(self, start):
        self.size += start


def typed(function):
    hints = typing.get_type_hints(function)
    return functools.wraps(function)(lambda *given: [hints[name](one) for name, one in zip(hints, given)])


@typed
def read(a: int, b: float): ...


def use(config):
    made = Options(1, 2, last=5)
    names = [one.name for one in dataclasses.fields(made)]
    return names, made.size, made.last, repr(typing.get_type_hints(Options)["names"]), read("1", "2")
"""


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
def test_annotations_are_what_they_are_in_the_module(future: str, module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    use = module(CLASSES.format(future=future)).use
    # a text that is the text of a text says nothing to dataclasses
    fields = ["size", "names", *(["said"] if future else []), "inner", "last"]
    expected = (fields, 3, 5, "typing.List[str]", [1, 2.0])
    assert use(0) == expected == there(use, monkeypatch).main(0)
    assert ("from __future__" in writing.source_of(use)[0]) == bool(future)


def test_what_nothing_reads_of_annotations_need_not_go(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module("""
        import decimal as big, threading
        TABLE = [threading.Lock(), threading.Lock()]

        class Box:
            def get(
                self, x: big.Decimal = None, *more: TABLE
            ) -> TABLE[
                1
            ]:
                y: TABLE = 1
                def inner(z: TABLE): return z
                return inner(y), (1 / 0 if x else 0)

        def use(config: TABLE) -> "TABLE":
            return Box().get(config)
    """)
    text, shown = writing.source_of(made.use)
    assert "decimal" not in text.splitlines()[0] and shown
    task = there(made.use, monkeypatch)
    assert task.main(None) == (1, 0)
    with pytest.raises(ZeroDivisionError) as raised:
        task.main(1)
    with pytest.raises(ZeroDivisionError) as own:
        made.use(1)
    assert raised.traceback[-1].lineno == own.traceback[-1].lineno


def test_annotations_of_a_class_go_or_are_named(module: Module) -> None:
    made = module("""
        import threading
        THING = threading.Lock()
        class Box:
            x: THING = 1
        def use(config):
            return Box.x
    """)
    with pytest.raises(ScriptError, match="uses THING, a lock"):
        writing.source_of(made.use)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            """
            from functools import singledispatch
            @singledispatch
            def show(x): return "any"
            @show.register
            def _(x: int): return "int"
            def use(config): return show(config)
            """,
            r"show\(\) has implementations for int, which were registered behind its definition .*; put it into a file of its own",
        ),
        (
            """
            import functools
            RATE = 2
            def scaled(rate):
                def outer(function): return functools.wraps(function)(lambda x: function(x) * rate)
                return outer
            @scaled(RATE)
            def double(x): return x
            RATE = 5
            def use(config): return double(config)
            """,
            r"RATE has been set again since double\(\) was defined with it",
        ),
        (
            """
            class Base:
                n = 1
            class Box(Base): pass
            class Base:
                n = 2
            def use(config): return Box.n
            """,
            "Box was made from another Base than there is now; define Box again, or",
        ),
        (
            """
            REG = []
            def listed(function):
                REG.append(function.__name__)
                return function
            @listed
            def one(x): return x
            def use(config): return REG, one(1)
            """,
            r"the definition of one\(\) changes REG, which goes to the tasks as it is now: it would be changed twice",
        ),
        (
            """
            REG = {}
            def named(name):
                def outer(function):
                    REG[name] = 1
                    return function
                return outer
            @named("a")
            def use(config): return REG
            """,
            r"the definition of use\(\) changes REG",
        ),
        (
            """
            COUNT = 0
            def counted(function):
                global COUNT
                COUNT += 1
                return function
            @counted
            def use(config): return COUNT
            """,
            r"the definition of use\(\) changes COUNT",
        ),
        (
            """
            import functools
            RATES = {"a": 2}
            def scaled(rate):
                def outer(function): return functools.wraps(function)(lambda x: function(x) * rate)
                return outer
            @scaled(RATES["a"])
            def double(x): return x
            RATES["a"] = 5
            def use(config): return double(config)
            """,
            r"RATES has been set again since double\(\) was defined with it",
        ),
        (
            """
            import functools
            RATE = 2
            def scaled(function):
                rate = RATE
                return functools.wraps(function)(lambda x: function(x) * rate)
            @scaled
            def double(x): return x
            def change():
                global RATE
                RATE = 7
            change()
            def use(config): return double(config)
            """,
            r"RATE has been set again since double\(\) was defined with it",
        ),
        (
            """
            REG = []
            class Box:
                REG.append("Box")
            def use(config): return REG, Box
            """,
            r"the definition of Box changes REG",
        ),
        (
            """
            import functools
            def twice(function):
                @functools.wraps(function)
                def inner(x): return 2 * function(x)
                return inner
            def use(config): return config
            use = twice(use)
            """,
            r"use\(\) was wrapped behind its definition; write what wraps it as a decorator",
        ),
    ],
    ids=["registered", "number", "base", "appended", "named", "counted", "entry", "global", "body", "wrapped"],
)
def test_what_would_be_otherwise_in_a_task_is_refused(text: str, said: str, module: Module) -> None:
    with pytest.raises(ScriptError, match=said):
        writing.source_of(module(text).use)


def test_what_is_as_it_was_goes(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    use = module("""
        import functools
        RATE = 2
        SEEN = {}
        NAMES = ["a"]

        def kept(function):
            print(len(NAMES), NAMES[0])
            @functools.wraps(function)
            def inner(x):
                if x not in SEEN:
                    SEEN[x] = function(x)
                return SEEN[x]
            return inner

        def scaled(rate):
            def outer(function): return functools.wraps(function)(lambda x: function(x) * rate)
            return outer

        class Base:
            n = 1

        MORE = [1]

        class Box(Base):
            rates = [RATE]
            more = MORE

        MORE.append(2)

        @kept
        def triple(x): return 3 * x

        @scaled(RATE)
        def double(x): return x

        RATE = 2

        def use(config): return double(config), triple(config), Box.n, Box.rates, Box.more
    """).use
    assert there(use, monkeypatch).main(4) == use(4) == (8, 12, 1, [2], [1, 2])


def test_a_cell_that_is_run_again_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    base, box = "class Base:\n    def n(self):\n        return 1", "class Box(Base):\n    pass"
    cells = [base, box, "def use(cfg):\n    return Box().n()", base]
    session = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", session)
    session.__dict__["In"] = cells
    for number, cell in enumerate(cells):
        name = f"<cell {number} of another>"
        monkeypatch.setitem(linecache.cache, name, (len(cell), None, [line + "\n" for line in cell.splitlines()], name))
        exec(compile(cell, name, "exec"), session.__dict__)
    assert there(session.__dict__["use"], monkeypatch).main(0) == 1
    cells.append(base.replace("return 1", "return 2"))
    exec(compile(cells[-1], "<cell 0 of another>", "exec"), session.__dict__)
    with pytest.raises(ScriptError, match="Box was made from another Base"):
        writing.source_of(session.__dict__["use"])


def test_one_list_is_one_list_whatever_holds_it(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    use = module("""
        KEPT = [1]
        A = {"k": KEPT, "l": [KEPT]}
        INNER = {"x": 1}
        B = [INNER, INNER]
        def use(config):
            A["l"][0].append(2)
            B[0]["x"] = 7
            return KEPT, A, B
    """).use
    assert there(use, monkeypatch).main(0) == use(0) == ([1, 2], {"k": [1, 2], "l": [[1, 2]]}, [{"x": 7}, {"x": 7}])


def test_a_logger_is_as_it_was_set(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module("""
        import logging, sys
        LOG = logging.getLogger("of.this.test.at.import")
        def use(config):
            return LOG.level, LOG.propagate, [(one.level, one.formatter._fmt, one.stream is sys.stderr) for one in LOG.handlers]
    """)
    log = made.LOG
    log.setLevel(logging.DEBUG)
    log.propagate = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(5)
    handler.setFormatter(logging.Formatter("{message}!", style="{"))
    log.addHandler(handler)
    expected: dict[str, Any] = {"was": made.use(0)}
    text, _ = writing.source_of(made.use)
    log.setLevel(logging.NOTSET)
    log.propagate = True
    log.removeHandler(handler)
    task: dict[str, Any] = {"__name__": "script"}
    exec(text, task)
    assert task["main"](0) == expected["was"] == (10, False, [(5, "{message}!", True)])
    for one in list(log.handlers):
        log.removeHandler(one)
    log.addHandler(logging.FileHandler("/dev/null"))
    with pytest.raises(ScriptError, match="uses LOG, a Logger with a FileHandler that only this process has"):
        writing.source_of(made.use)
    log.handlers[0].close()
    log.removeHandler(log.handlers[0])
    log.setLevel(logging.NOTSET)
    log.propagate = True


def test_a_module_that_is_loaded_when_it_is_used_is_imported(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tensorflow.keras: once it was used, its package has another object by its name."""

    class Lazy(types.ModuleType):
        pass

    package, lazy = types.ModuleType("tensorflow"), Lazy("keras")
    vars(lazy).update(_tfll_parent_module_globals=vars(package), _tfll_name="keras")
    vars(package)["keras"] = lazy
    monkeypatch.setitem(sys.modules, "tensorflow", package)
    made = module("""
        from tensorflow import keras
        import tensorflow as tf
        layers = tf.keras
        def use(config): return keras.Model, layers.Model
    """)
    real = types.ModuleType("keras.really")
    vars(real)["Model"] = 1
    vars(package)["keras"] = real
    text, _ = writing.source_of(made.use)
    assert "from tensorflow import keras; from tensorflow import keras as layers" in text
    assert there(made.use, monkeypatch).main(0) == (1, 1)


def test_an_enum_is_what_it_was_whatever_its_members_were_handed_to(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module(
        """
        import enum
        from dataclasses import dataclass

        class Mode(enum.Enum):
            A = "a"
            B = "b"

        @dataclass
        class Config:
            mode: Mode = Mode.A

        class Sizes:
            OF = {Mode.A: 2, Mode.B: 5}

        CONFIG = Config(mode=Mode.B)
        MODE = Mode.B

        def main(task_config):
            return CONFIG.mode is Mode.B and Sizes.OF[MODE] == 5
        """
    )
    assert there(made.main, monkeypatch).main(None) is True


def test_a_builtin_that_ipython_has_replaced_is_the_builtin(module: Module) -> None:
    made = module("def main(task_config):\n    return open(task_config)\n")

    def replaced(*given: Any) -> Any:
        raise AssertionError

    replaced.__module__ = "IPython.core.interactiveshell"
    made.open = replaced
    text, _ = writing.source_of(made.main)
    assert "open =" not in text and "IPython" not in text


CHANGED_TWICE = {
    "Layer": """
        class Layer:
            known = []
            def __init_subclass__(cls): Layer.known.append(cls.__name__)
        class Dense(Layer): pass
        def main(c): return Dense
        """,
    "Kinds": """
        class Kinds:
            items = []
            @classmethod
            def add(cls, function): cls.items.append(function.__name__); return function
        @Kinds.add
        def one(): return 1
        def main(c): return one()
        """,
    "Calls": """
        class Calls: count = 0
        def counted(function):
            Calls.count += 1
            return function
        @counted
        def one(): return 1
        def main(c): return one()
        """,
    "seen": """
        from dataclasses import dataclass, field
        @dataclass
        class Seen: names: list = field(default_factory=list)
        seen = Seen()
        def noted(function): seen.names.append(function.__name__); return function
        @noted
        def one(): return 1
        def main(c): return one()
        """,
}


@pytest.mark.parametrize("name", CHANGED_TWICE)
def test_an_attribute_that_a_definition_changes_is_not_changed_twice(name: str, module: Module) -> None:
    with pytest.raises(ScriptError, match=f"changes {name}, which goes to the tasks as it is now: it would be changed twice"):
        writing.source_of(module(CHANGED_TWICE[name]).main)


def test_an_attribute_that_a_definition_sets_is_set_again(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module("""
        import functools
        class Tagged:
            def __init_subclass__(cls, tag="x"): cls.tag = tag
        class Own(Tagged, tag="y"): pass
        def counting(function):
            @functools.wraps(function)
            def inner(): inner.calls += 1; return function()
            inner.calls = 0
            return inner
        @counting
        def one(): return 1
        def main(c): return Own.tag, one(), one.calls
        """)
    assert there(made.main, monkeypatch).main(None) == ("y", 1, 1)


def test_names_that_are_looked_for_by_their_text_are_refused(module: Module) -> None:
    made = module("RATE = 0.1\ndef main(c): return globals().get('RATE', 0.5)\n")
    with pytest.raises(
        ScriptError, match=r"main\(\) uses globals\(\), which in a task has only what main\(\) and what it calls use by name"
    ):
        writing.source_of(made.main)


def test_another_name_for_a_function_means_it_in_a_task(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module("""
        def relu(x): return max(0, x)
        act = relu
        def main(x): return act(x)
    """)
    assert there(made.main, monkeypatch).main(-1) == 0
    # its own name may mean another one by now
    made.relu = lambda x: x
    with pytest.raises(ScriptError, match="uses relu by the name act, and relu is no name of it now"):
        writing.source_of(made.main)


def test_what_basic_config_has_set_is_so_in_a_task(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module("""
        import logging
        LOG = logging.getLogger("of.this.test.of.basic.config")
        def main(config): LOG.info("here")
    """)
    root = logging.getLogger()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s!"))
    monkeypatch.setattr(root, "handlers", [handler])
    monkeypatch.setattr(root, "level", logging.INFO)
    text, _ = writing.source_of(made.main)
    assert (
        f"basicConfig(level={logging.INFO}, stream=__import__('sys').stderr, format='%(message)s!', datefmt=None, style='%')"
        in text
    )
    # of handlers that only this process has, nothing goes
    monkeypatch.setattr(root, "handlers", [logging.NullHandler()])
    assert "basicConfig" not in writing.source_of(made.main)[0]


BY_CALL = """
class Registry:
    def __init__(self): self.names = {}
    def __call__(self, name):
        def inner(f):
            self.names[name] = f.__name__
            return f
        return inner

class Order:
    def __init__(self): self.places = []
    def __call__(self, f):
        self.places.append(f.__name__)
        return f

class Counted:
    def __init__(self, f): self.f, self.calls = f, 0
    def __call__(self, x): return self.f(x)

register, order = Registry(), Order()

@register("a")
def registered(x): return x

@order
def placed(x): return x

@Counted
def counted(x): return x

def asks(task_config): return register.names, registered(1)
def places(task_config): return order.places, placed(1)
def counts(task_config): return counted(1)
"""


def test_instances_as_decorators(module: Module) -> None:
    made = module(BY_CALL)
    for function, words in (
        (made.asks, r"the definition of registered\(\) changes register, which goes"),
        (made.places, r"the definition of placed\(\) changes order, which goes"),
        (made.counts, "counted, which is what the class Counted has made of it as a decorator"),
    ):
        with pytest.raises(ScriptError, match=words):
            writing.source_of(function)


SAME = {
    "what a generator makes": """
        import numpy as np
        G = np.random.default_rng(1)
        G.spawn(2)
        def main(config): return G.bit_generator.state["state"], G.bit_generator.seed_seq.spawn(1)[0].state
        """,
    "one bit generator of two": """
        import numpy as np
        bits = np.random.PCG64([3, 4])
        A, B = np.random.Generator(bits), np.random.Generator(bits)
        def main(config): return A.bit_generator is B.bit_generator, bits is A.bit_generator, bits.state["state"]
        """,
    "a named tuple with a __new__": """
        import collections
        class P(collections.namedtuple("P", "x y")):
            def __new__(cls, x, y): return super().__new__(cls, x * 100, y)
        class One(collections.namedtuple("One", "x")): pass
        p, one = P(1, 2), One([3])
        p.note = "here"
        def main(config): return tuple(p), p.note, type(p).__name__, tuple(one)
        """,
    "what members of an enum have": """
        import enum
        class S(enum.Enum):
            X, Y = "x", "y"
            def __init__(self, value): self.weight, self.lock = 1.0, __import__("threading").Lock()
        S.X.weight, S.Y.more = 5.0, {"a": [1]}
        def main(config): return S.X.weight, S.Y.weight, S.Y.more, hasattr(S.X, "lock")
        """,
    "what a partial has": """
        import functools
        P = functools.partial(int, base=2)
        P.note = [1]
        def main(config): return P("101"), P.note
        """,
    "a registered class that is decorated": """
        import abc
        class Base(abc.ABC): pass
        @Base.register
        class D: pass
        def plugin(c):
            Base.register(c)
            return c
        @plugin
        class E: pass
        class Plugins:
            def register(self, c):
                Base.register(c)
                return c
        plugins = Plugins()
        @plugins.register
        class F: pass
        class Plugin:
            def __init__(self, base): self.base = base
            def __call__(self, c):
                self.base.register(c)
                return c
        @Plugin(Base)
        class G: pass
        KINDS = {"a": Base}
        @KINDS["a"].register
        class H: pass
        def main(config): return [issubclass(one, Base) for one in (D, E, F, G, H)]
        """,
    "names that would be one with another between them": """
        import enum
        class A(enum.Enum): B_C = 1
        class A_B(enum.Enum): C = 1
        A.B_C.w, A_B.C.w = 5, 7
        class P: pass
        class P_Q: pass
        P.Q_R, P_Q.R = 5, 7
        def main(config): return A.B_C.w, A_B.C.w, P.Q_R, P_Q.R
        """,
    "an instance of a class within another, and a structured array": """
        import numpy as np
        class Outer:
            class In: v = 1
        X, A = Outer.In(), np.zeros(2, [("a", "i4"), ("b", "f8")])
        X.w, A["a"] = 3, 7
        def main(config): return X.v, X.w, type(X).__qualname__, A.tolist(), A.dtype
        """,
    "a class with an instance of one within it": """
        class P:
            class Q: v = 1
            q = Q()
            def has(self, one=None): return self.q.v
        def main(config): return P.q.v, P().has()
        """,
    "one sequence of seeds of two": """
        import numpy as np
        seeds = np.random.SeedSequence(5, spawn_key=(1,))
        G, H = np.random.default_rng(seeds), np.random.default_rng(seeds)
        def main(config): return [one.bit_generator.seed_seq.spawn_key for one in G.spawn(1) + H.spawn(1)] == [(1, 0), (1, 1)], G.random()
        """,
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_behind_a_value_is_the_same(name: str, module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module(SAME[name])
    # first in the task: a program's own call changes what it has
    assert there(made.main, monkeypatch).main(None) == made.main(None)


REFUSED = {
    "a registry of a metaclass": (
        """
        class M(type):
            reg = {}
            def __init__(c, n, b, d): M.reg[n] = len(M.reg)
        class A(metaclass=M): pass
        def main(config): return M.reg, A
        """,
        "the definition of A changes M",
    ),
    "a list of a metaclass": (
        """
        class M(type):
            reg = []
            def __new__(m, n, b, d):
                m.reg.append(n)
                return super().__new__(m, n, b, d)
        class A(metaclass=M): pass
        def main(config): return M.reg, A
        """,
        "the definition of A changes M",
    ),
    "a class that was registered": (
        """
        import abc
        class Base(abc.ABC): pass
        class D: pass
        Base.register(D)
        def main(config): return issubclass(D, Base)
        """,
        "Base.register(D) was called behind the definition of Base",
    ),
    "a class that was registered behind a decorator of another": (
        """
        import abc
        class Base(abc.ABC): pass
        class Other(abc.ABC): pass
        @Other.register
        class D: pass
        Base.register(D)
        def main(config): return issubclass(D, Base)
        """,
        "Base.register(D) was called behind the definition of Base",
    ),
    "a class that was registered with another kind by a decorator": (
        """
        import abc, atexit
        class A(abc.ABC): pass
        class B(abc.ABC): pass
        def plugin(c):
            A.register(c)
            atexit.register(print)
            return c
        @plugin
        class D: pass
        B.register(D)
        def main(config): return issubclass(D, B)
        """,
        "B.register(D) was called behind the definition of B",
    ),
    "records": (
        """
        import numpy as np
        A = np.asarray(np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]))
        def main(config): return A[0].a
        """,
        "A, a ndarray of",
    ),
    "a dataclass that was registered": (
        """
        import abc
        from dataclasses import dataclass
        class Base(abc.ABC): pass
        @dataclass
        class D: x: int = 0
        Base.register(D)
        def main(config): return issubclass(D, Base)
        """,
        "Base.register(D) was called behind the definition of Base",
    ),
    "a structure whose fields lie in another order": (
        """
        import numpy as np
        A = np.zeros(2, [("a", "i4"), ("b", "f8")])[["b", "a"]].copy()[["a"]]
        def main(config): return A
        """,
        "A, a ndarray of",
    ),
    "a class of a library that was registered": (
        """
        import abc
        class Base(abc.ABC): pass
        Base.register(dict)
        def main(config): return issubclass(dict, Base)
        """,
        "is not called in the tasks; put it into a file",
    ),
    "seeds of a kind of their own": (
        """
        import numpy as np
        class S(np.random.SeedSequence): pass
        G = np.random.default_rng(S(5))
        def main(config): return G.spawn(1)
        """,
        "G.bit_generator.seed_seq, a S",
    ),
    "numbers of a kind that has no such state": (
        """
        import numpy as np
        R = np.random.RandomState(np.random.PCG64(1))
        def main(config): return R.rand()
        """,
        "R, a RandomState of a PCG64",
    ),
    "a key that was changed": (
        """
        class K:
            def __init__(self, n): self.n = n
            def __hash__(self): return hash(self.n)
            def __eq__(self, other): return self.n == other.n
        k = K(1)
        d, s = {k: 5}, {k}
        k.n = 2
        def main(config): return k in d
        """,
        "has another hash by now",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_definition_would_do_again_is_refused(name: str, module: Module) -> None:
    text, said = REFUSED[name]
    with pytest.raises(ScriptError, match=re.escape(said)):
        writing.source_of(module(text).main)


def test_a_function_that_was_wrapped_behind_its_definition_is_refused() -> None:
    def f() -> None:
        """It is in no module."""

    at_import.check(f, f, "def f(): ...", {}, [])
    with pytest.raises(ScriptError, match=r"^script: f\(\) was wrapped behind its definition"):
        at_import.check(f, print, "def f(): ...", {}, [])
