"""What a program has set in its modules goes with a function: `main` comes to the same here and in a task, which imports the modules' files."""

import collections
import importlib
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions import writing
from akrunner.worker import carried

Both = Callable[..., tuple[Any, Any]]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    """What `main` of a program gives here, and in a task. The program imports a module, as m."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(module: str, program: str, first: str = "import carried_module as m") -> tuple[Any, Any]:
        (tmp_path / "carried_module.py").write_text(textwrap.dedent(module))
        (tmp_path / "carried_program.py").write_text(f"{first}\n" + textwrap.dedent(program))
        importlib.invalidate_caches()
        main = importlib.import_module("carried_program").main
        text, _ = writing.source_of(main)
        before = repr(main(None))
        del sys.modules["carried_module"]
        made = types.ModuleType("script_in_a_task")
        monkeypatch.setitem(sys.modules, made.__name__, made)
        exec(compile(text, "<script>", "exec", dont_inherit=True), vars(made))
        return before, repr(made.main(None))

    yield run
    for name in ("carried_module", "carried_program"):
        sys.modules.pop(name, None)


SETTER = """
CONFIG = {"lr": 1}
def configure(**given):
    for name, value in given.items():
        if name not in CONFIG: raise KeyError(name)
        CONFIG[name] = value
"""
LAZY = """
import threading
LOCK, MEAN, READY = None, 0.0, False
def load():
    global LOCK, MEAN, READY
    LOCK, MEAN, READY = threading.Lock(), 1.5, True
def get():
    if MEAN == 0.0: load()
    return LOCK.locked(), MEAN
"""
GLOBAL = """
def square(x): return x * x
def double(x): return x * 2
PROFILES = {"a": {"x": 1}, "b": {"x": 2}}
RATE, NAMES, ACTIVE, LOSS = None, ["a"], PROFILES["a"], square
def use(rate, names, active, loss):
    global RATE, NAMES, ACTIVE, LOSS
    if RATE is None: RATE = rate
    NAMES, ACTIVE, LOSS = names, PROFILES[active], loss
"""
CLASSES = """
from dataclasses import dataclass, field
from typing import NamedTuple
@dataclass
class Model:
    units: int = 8
@dataclass
class Settings:
    model: Model = field(default_factory=Model)
    layers: list = field(default_factory=lambda: [64, 32])
class Point(NamedTuple):
    x: int = 1
settings, point = Settings(), Point(3)
def use():
    global settings
    settings = Settings(Model(3))
"""
#: what a file has, and nobody knows without running it; and what a program sets in its place
UNKNOWN = [
    ("os.environ.get('NOBODY_SETS_IT') == '1'", "True"),
    ("os.environ.get('NOBODY_SETS_IT') or 'cpu'", "'gpu'"),
    ("int(os.environ.get('NOBODY_SETS_IT') or 3)", "9"),
    ("'NOBODY_SETS_IT' in os.environ", "True"),
    ("f\"{os.environ.get('NOBODY_SETS_IT', 'b')}-x\"", "'mine'"),
    ("os.cpu_count()", "17"),
    ("math.pi * 2", "3"),
    ("M['a']", "m.M.b"),
    ("json.loads('[1]')", "{'a': [2]}"),
    ("sum(x * x for x in range(3))", "100"),
]
COMPUTED = """
import copy
from datetime import date, timedelta
from pathlib import Path
import numpy as np
BASE = {"a": [1]}
A = {**BASE, "b": 1}
B = BASE | {"b": 1}
C = {value: key for key, value in {"x": 1}.items()}
D = dict(zip(["a", "b"], range(2)))
E = copy.deepcopy(BASE)
F = np.arange(6).reshape(2, 3) / 2
G = date(2020, 1, 1) + timedelta(days=30)
H = Path("data").parent / "raw"
WORDS = "a b"
I = sorted({word.strip() for word in WORDS.split() if word})
"""


MODES = """
import enum
class Mode(enum.Enum):
    SLOW, FAST = "s", "f"
MODE = Mode.SLOW
"""
PROFILES = """
from dataclasses import dataclass
@dataclass
class Profile:
    n: int
LOW, HIGH = Profile(1), Profile(2)
ALL = [LOW, HIGH]
DEFAULT = {"lr": 1}
CURRENT, OTHER = DEFAULT, None
def of(current=DEFAULT): return current
"""
SEEDED = """
import random
SEED = None
def seed(n):
    global SEED
    if SEED != n:
        random.seed(n)
        SEED = n
"""
ORDERED = """
from collections import OrderedDict
KEPT = OrderedDict()
def keep(name):
    KEPT[name] = 1
    if len(KEPT) > 2: KEPT.popitem(last=False)
def get(kept=KEPT): return list(kept)
"""


@pytest.mark.parametrize(
    ("module", "program"),
    [
        (MODES, "m.MODE = m.Mode.FAST\ndef main(c): return m.MODE is m.Mode.FAST, m.Mode.SLOW.name"),
        (PROFILES, "m.ALL.sort(key=lambda one: -one.n)\ndef main(c): return m.ALL, m.LOW, m.ALL[0] is m.HIGH"),
        (PROFILES, "m.CURRENT = {**m.DEFAULT, 'lr': 5}\ndef main(c): return m.CURRENT, m.DEFAULT, m.of()"),
        (PROFILES, "m.DEFAULT['lr'] = 5\ndef main(c): return m.CURRENT, m.DEFAULT, m.of() is m.DEFAULT"),
        (PROFILES, "m.CURRENT = m.OTHER = {'x': 1}\ndef main(c): return m.CURRENT is m.OTHER, m.CURRENT, m.DEFAULT"),
        (PROFILES, "m.CURRENT = m.HIGH; m.HIGH.n = 7\ndef main(c): return m.CURRENT is m.HIGH is m.ALL[1], m.ALL"),
        (SEEDED, "import random\nm.seed(3)\ndef main(c):\n    m.seed(3)\n    return random.Random(m.SEED).random(), m.SEED"),
        (SEEDED, "import random\nm.seed(3)\ndef main(c):\n    random.seed(9)\n    m.SEED = None\n    m.seed(3)\n    return random.random()"),
        (ORDERED, "m.keep('a'); m.keep('b')\ndef main(c):\n    m.keep('c')\n    return m.get(), list(m.KEPT)"),
        ("lr = 1", "m.lr = 5\nclass Model:\n    def __init__(self, lr): self.lr = lr\ndef main(c): return Model(m.lr).lr"),
        ("class P: rates = {}\nclass Q: rates = {}", "m.P.rates['x'] = 1; m.Q.rates = m.P.rates\ndef main(c): return m.P.rates is m.Q.rates, m.Q.rates"),
        (SETTER, "m.CONFIG['lr'] = 5\ndef main(c): return m.CONFIG"),
        (SETTER, "m.configure(lr=5)\ndef main(c): return m.CONFIG"),
        ("INDEX = {'': 0}\ndef add(w):\n    if w not in INDEX: INDEX[w] = len(INDEX)", "m.add('x')\ndef main(c): return m.INDEX"),
        ("N = {'n': 0}\ndef fit(x): N['n'] = N.get('n', 0) + x", "m.fit(3)\ndef main(c): return m.N"),
        (GLOBAL, "m.use(5, ['q'], 'b', m.double)\ndef main(c): return m.RATE, m.NAMES, m.ACTIVE, m.LOSS(3)"),
        (GLOBAL, "m.use(5, ['q'], 'b', lambda x: x + 1)\ndef main(c): return m.LOSS(3)"),
        (GLOBAL, "m.NAMES.append('z')\ndef main(c): return m.NAMES, m.LOSS(3)"),
        (LAZY, "m.get()\ndef main(c): return m.get()"),
        ("D = False\ndef set_(d):\n    global D\n    D = d", "m.set_(True)\ndef main(c): return m.D"),
        ("D, N = False, []\ndef done():\n    global D\n    N.append(1); D = True\ndef get():\n    if not D: done()\n    return len(N) > 0", "m.get()\ndef main(c): return m.get()"),
        (CLASSES, "m.settings.model.units = 16; m.settings.layers.append(1)\ndef main(c): return m.settings"),
        (CLASSES, "m.use(); m.point = m.Point(9)\ndef main(c): return m.settings, m.point, isinstance(m.settings, m.Settings)"),
        ("R = {'s': {'n': 1}, 'b': {}}\nfor name in R: R[name]['name'] = name\nS = R['s']", "def main(c): return m.R, m.S is m.R['s']"),
        ("R = {'s': {'n': 1}, 'b': {}}\nS = R['s']\nS['u'] = 3", "def main(c): return m.R, m.S is m.R['s'], m.S"),
        ("R = [{'a': 1}]\ndef norm(r): r['x'] = 1\nfor r in R: norm(r)", "def main(c): return m.R"),
        ("LR = 1\nfor k in ['LR']: globals()[k] = 5", "def main(c): return m.LR"),
        ("L = []\ndef load(): L.extend(['cat'])", "m.load()\nL = m.L\ndef main(c):\n    m.L.append('z')\n    return L, L is m.L"),
        ("H = None\ndef hook(f):\n    global H\n    H = f\n    return f", "@m.hook\ndef mine(): return 2\ndef main(c): return m.H()"),
        ("L = []\ndef register(f):\n    L.append(f)\n    return f", "@m.register\ndef mine(): return 2\ndef main(c): return mine(), [f() for f in m.L]"),
        ("R = {}\nclass Base:\n    def __init_subclass__(cls): R[cls.__name__] = cls", "class Mine(m.Base):\n    def go(self): return 5\ndef main(c): return "
        "Mine().go(), list(m.R)"),
        ("class Base:\n    kinds = []\n    def __init_subclass__(cls): Base.kinds.append(cls.__name__)", "class Mine(m.Base): pass\ndef main(c): return "
        "Mine.__name__, m.Base.kinds"),
        ("L = []\ndef register(f):\n    L.append(f.__name__)\n    return f", "@m.register\ndef mine(): return 2\nm.L.append('x')\ndef main(c): return mine(), "
        "m.L"),
        ("class C:\n    rates, lr, n = {'a': 1}, 1, 0\n    @classmethod\n    def use(cls, lr): cls.lr = lr\n    def __init__(self): C.n += 1", "m.C.rates['a'] = 5; m.C.use(7); m.C()\ndef main(c): return m.C.rates, m.C.lr, m.C.n"),
        ("N = 0", "m.N = 5\ndef main(c):\n    m.N += 1\n    return m.N"),
        ("class Base: pass\ndef names(): return [one.__name__ for one in Base.__subclasses__()]", "class Mine(m.Base): pass\ndef main(c): return m.names(), "
        "Mine.__name__"),
        ("def traced(f): return lambda: f() + 1\ndef f(): return 1\nglobals()['f'] = traced(f)", "def main(c): return m.f()"),
        ("class K:\n    def go(self): return 1\ndef trace(kind):\n    for n in ['go']: setattr(kind, n, (lambda f: lambda self: f(self) + 1)(getattr(kind, "
        "n)))\ntrace(K)", "def main(c): return m.K().go()"),
        ("E = 1", "from carried_module import E\nm.E = 5; m.NEW = [1]; m.ALSO = 2\ndef main(c): return E, m.E, m.ALSO"),
        *((COMPUTED, f"m.{name} = {value!r}\ndef main(c): return m.{name}") for name, value in zip("ABCDEI", (1, [2], {3}, "4", 5.5, None))),
        (COMPUTED, "m.F[0, 0] = 9; m.G = m.date(2021, 1, 1); m.H = m.Path('q')\ndef main(c): return m.F, m.G, m.H"),
        (COMPUTED, "def main(c): return m.A, m.B, m.C, m.D, m.E, m.F, m.G, m.H, m.I"),
        ("K = 1", "m.K = 3\ndef main(c):\n    import carried_module as late\n    return late.K"),
        ("K = {'x': 1}\ndef get(): return K", "from carried_module import K, get\nK['x'] = 7\ndef main(c): return K, get(), K is get()"),
        ("K = [1]", "from carried_module import K as L\nL += [2]\nALSO = {'l': L}\ndef main(c): return L, ALSO['l'] is L, m.K is L"),
        ("K = 1", "m.K = 3\nfrom carried_module import K\ndef main(c): return K, m.K"),
        *((f"import os, math, enum, json\nM = enum.Enum('M', 'a b')\nX = {expression}", f"m.X = {value}\ndef main(c): return m.X") for expression, value in UNKNOWN),
        ("import os\nX = os.environ.get('NOBODY_SETS_IT') == '1'", "from carried_module import X\nm.X = True\ndef main(c): return m.X, X"),
        ("import os\nX = {'a': os.getpid()}", "def main(c): return m.X['a'] > 0"),
        ("class P:\n    def __init__(self): self.lr = 1\nD = {'p': P()}", "m.D['p'].lr = 6\ndef main(c): return m.D['p'].lr"),
        ("class P:\n    def __init__(self): self.lr = 1\nD = {'p': P()}", "for one in m.D.values(): one.lr = 6\ndef main(c): return m.D['p'].lr"),
        ("class P:\n    def __init__(self): self.lr = 1\nD = {'p': [P()]}", "own = m.D['p'][0]\nown.lr = 6\ndef main(c): return m.D['p'][0].lr"),
        ("class P:\n    def __init__(self): self.lr = 1\nD = {'p': P()}\ndef bump(): D['p'].lr = 11", "m.bump()\ndef main(c): return m.D['p'].lr"),
        ("class P:\n    def __init__(self): self.lr = 1\nL, T = [P()], (P(),)", "m.L[0].lr, m.T[0].lr = 6, 7\ndef main(c): return m.L[0].lr, m.T[0].lr"),
        ("class P:\n    def __init__(self): self.lr = 1\nclass C:\n    p = P()\n    class In: opts = [1]", "m.C.p.lr = 6\nm.C.In.opts.append(2)\ndef main(c): "
        "return m.C.p.lr, m.C.In.opts"),
        ("import collections\nN = collections.namedtuple('N', 'a')\nV = N([1])", "m.V.a.append(2)\ndef main(c): return m.V.a"),
        ("def f(): return f.lr\nf.lr = 1", "m.f.lr = 3\ndef main(c): return m.f()"),
        ("import enum\nclass K(enum.Enum):\n    A, B = 1, 2\n    def __init__(self, v): self.extra = v", "m.K.A.extra = 99\ndef main(c): return [one.extra "
        "for one in m.K]"),
        ("import enum\nclass K(enum.Enum): A = 1\ndef setit(): K.A.extra = 5", "m.setit()\ndef main(c): return m.K.A.extra"),
        ("class S:\n    def __init__(self): self.lr = 1\nS1 = S()", "m.S1.lr = 5\ndef main(c): return m.S1.lr"),
        ("class S:\n    def __init__(self): self.words = {}\n    def add(self, w): self.words[w] = len(self.words)\nV = S()", "from carried_module import "
        "V\nV.add('a')\nV.add('b')\ndef main(c): return V.words, m.V is V"),
        ("class A(dict): __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__\ncfg = A(lr=1, model=A(n=1))", "m.cfg.model.n = 3\ndef main(c): return "
        "m.cfg.model.n, m.cfg"),
        ("import argparse\ndef parser():\n    p = argparse.ArgumentParser()\n    p.add_argument('--lr', type=float, default=1)\n    return p\nARGS = "
        "parser().parse_args([])", "m.parser().parse_args(['--lr', '2'], namespace=m.ARGS)\ndef main(c): return m.ARGS"),
        ("C = {}\nC['lr'] = 1\nC.update(n=3)", "m.C['lr'] = 5\ndef main(c): return m.C"),
        ("import os\nclass C: lr = float(os.environ.get('NOBODY_SETS_IT') or 1)", "from carried_module import C\nC.lr = 5\ndef main(c): return C.lr"),
        ("CFG = dict(lr=len('a'))\ndef set_lr(v): CFG['lr'] = v", "m.set_lr(5)\ndef main(c): return m.CFG"),
        ("class A:\n    def __init__(self, p): self.p = p\na = A(1)\ndef setup(p):\n    global a\n    a = A(p)", "m.setup(9)\ndef main(c): return m.a.p"),
        ("from pathlib import Path\nROOT = Path(__file__).parent\nC = {'data': str(ROOT / 'd'), 'lr': 1}\ndef configure(**k): C.update(k)", "m.configure(lr=3)\ndef main(c): return m.C"),
        ("class B:\n    on = False\n    @classmethod\n    def use(cls): cls.on = True\nclass N(B): pass", "m.N.use()\ndef main(c): return m.N.on, m.B.on"),
        ("class N: lr = 1", "m.N.new = 4; m.N.lr = 2\ndef main(c): return m.N.new, m.N.lr"),
        ("X = 1\ndef get(): return EXTRA", "m.EXTRA = {'a': 2}\ndef main(c): return m.EXTRA, m.get()"),
        ("class A:\n    def __init__(self, p): self.p = p\na = A(1)", "from unittest import mock\nmock.patch('carried_module.a', m.A(7)).start()\ndef "
        "main(c): return m.a.p"),
        ("import numpy as np, random\nR, S, T = np.random.default_rng(0), random.Random(1), np.random.RandomState(2)", "import numpy as np, random\nm.R = "
        "np.random.default_rng(5)\nm.S.seed(7); m.T = np.random.RandomState(9)\ndef main(c):\n    m.R, m.S, m.T = copies\n    return m.R.random(), "
        "m.S.random(), m.T.rand()\nimport copy\ncopies = copy.deepcopy((m.R, m.S, m.T))"),
        ("MISSING = object()\nclass O:\n    def __init__(self): self.x = MISSING", "NONE = object()\nmine = m.O()\nA = [NONE]\ndef main(c): return mine.x is "
        "m.MISSING, A[0] is NONE, NONE is m.MISSING"),
        ("import os\nX = os.getpid() * 0", "setattr(m, 'X', 5)\ndef main(c): return m.X"),
        ("from dataclasses import dataclass, field\n@dataclass\nclass O: lr: float = 1\n@dataclass\nclass C:\n    opt: O = field(default_factory=O)\n    n: "
        "int = 1\nD = C()", "from dataclasses import replace\nm.D.opt.lr = 7\ncfg = replace(m.D, n=2)\ndef main(c): return cfg, m.D, cfg.opt is m.D.opt"),
    ],
)  # fmt: skip
def test_it_comes_to_the_same(both: Both, module: str, program: str) -> None:
    here, there = both(module, program)
    assert here == there


@pytest.mark.parametrize(
    ("module", "program", "words"),
    [
        ("LOCK = None", "import threading\nm.LOCK = threading.Lock()\ndef main(c): return m.LOCK", "m.* is <unlocked .* here, but None in"),
        ("def f(): return 1", "m.f = lambda: 2\ndef main(c): return m.f()", "f is .* here, but defined by def"),
        ("class Base: pass", "class Mine(m.Base): pass\nBase = m.Base\ndef main(c): return Base.__subclasses__()", r"Base.__subclasses__\(\)"),
        ("class Base: pass\ndef names(): return Base.__subclasses__()", "class Mine(m.Base): pass\ndef main(c): return m.names()", "looks for the subclasses of Base .*carried_program.Mine"),
        ("class K: pass", "import importlib\nold = m.K()\nimportlib.reload(m)\ndef main(c): return old", "old, of a class carried_module.K that has been "
        "defined again"),
        ("class Base:\n    def __init_subclass__(cls): cls.items.append(1)", "class Mine(m.Base):\n    items = []\ndef main(c): return Mine.items", "the definition of Mine changes Mine"),
    ],
)  # fmt: skip
def test_what_cannot_go_is_refused(both: Both, module: str, program: str, words: str) -> None:
    with pytest.raises(ScriptError, match=words):
        both(module, program)


def test_what_only_functions_import_stays_as_its_file_has_it(both: Both) -> None:
    program = "def use():\n    import carried_module\n    carried_module.K = 3\nuse()\ndef main(c):\n    import carried_module\n    return carried_module.K"
    with pytest.raises(ScriptError, match="carried_module.K is 3 here, but 1"):
        both("K = 1", program, first="")


def test_what_another_module_has_from_it_goes_along_too(both: Both, tmp_path: Path) -> None:
    (tmp_path / "carried_reader.py").write_text("from carried_module import K\ndef fit(): return K")
    (tmp_path / "carried_starred.py").write_text("from carried_module import *\ndef fit(): return K")
    (tmp_path / "carried_late.py").write_text("import carried_module\ndef fit(): return carried_module.K")
    program = "import carried_reader as before\nm.K = 3\nimport carried_starred as after\ndef main(c):\n    import carried_late\n    return before.fit(), after.fit(), carried_late.fit(), m.K"
    try:
        here, there = both("K = 1", program)
    finally:
        for name in ("carried_reader", "carried_starred", "carried_late"):
            sys.modules.pop(name, None)
    assert here == there == "(1, 3, 3, 3)"


def test_who_has_looked_at_what_was_set_is_told(both: Both, tmp_path: Path) -> None:
    (tmp_path / "carried_reader.py").write_text("import carried_module\ndef fit(lr=carried_module.K): return lr")
    try:
        words = r"which is what the tasks import; carried_reader looks at it when it is imported, .*main\(\); give it by user_params="
        with pytest.raises(ScriptError, match=words):
            both("K = 1", "m.K = 3\nimport carried_reader\ndef main(c): return carried_reader.fit(), m.K")
    finally:
        sys.modules.pop("carried_reader", None)


def put(there: Any, value: Any, monkeypatch: pytest.MonkeyPatch, in_place: bool = True) -> Any:
    module: Any = types.ModuleType("carried_here")
    module.X = module.Y = there
    monkeypatch.setitem(sys.modules, "carried_here", module)
    carried.put([("carried_here", "X"), ("carried_here", "Y"), ("no_module_of_this_name", "X")], value, in_place)
    assert module.X is module.Y
    return module.X


@pytest.mark.parametrize(
    ("there", "value"),
    [
        ([1], [2, 3]),
        ({"a": 1, "b": 2}, {"b": 3, "a": 4}),
        ({1}, {2, 3}),
        (collections.deque([1], 2), collections.deque([5], 2)),
        (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=3, a=4)),
        (collections.Counter("ab"), collections.Counter("bcc")),
        (collections.defaultdict(list, a=1), collections.defaultdict(int, b=2)),
        (np.zeros(2), np.ones(2)),
        (types.SimpleNamespace(a=1), types.SimpleNamespace(b=[2])),
    ],
)
def test_what_is_there_holds_what_came(there: Any, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = put(there, value, monkeypatch)
    assert found is there and repr(found) == repr(value)
    if isinstance(found, collections.OrderedDict):
        assert found.popitem() == ("a", 4) and list(found) == ["b"]
    if isinstance(found, collections.defaultdict):
        assert found["q"] == 0
    assert put(there, value, monkeypatch, in_place=False) is value


@pytest.mark.parametrize(
    ("there", "value"),
    [
        (None, [1]),
        ([1], None),
        (np.zeros(2), np.ones(3)),
        (1, 2),
        (collections.deque([1], 2), collections.deque([1], 3)),
        (collections.OrderedDict(a=1), {"a": 2}),
    ],
)
def test_what_is_of_another_kind_is_replaced(there: Any, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = repr(there)
    assert put(there, value, monkeypatch) is value and repr(there) == before
