"""A function as a script: what of its surroundings goes with it, and what cannot."""

from __future__ import annotations

import collections
import datetime
import decimal
import functools
import importlib
import linecache
import logging
import math
import os.path
import pathlib
import re
import sys
import threading
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from akrunner import leftovers
from akrunner.errors import ScriptError
from akrunner.launch.functions import writing
from akrunner.wire import frames as wire_frames

SCALE = 2.5
NAMES = ("a", "b")
LIMIT = math.inf
PLACE = pathlib.Path("data")
LOG = logging.getLogger("of.a.script")
TABLE = threading.Lock()
SUM = np.float64(1.5)


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


class Box:
    """Uses what only its methods name."""

    def __init__(self, x: float) -> None:
        self.x = x * SCALE

    def twice(self) -> float:
        return _double(self.x)


def _double(x: float) -> float:
    return x * 2 if x < LIMIT else math.nan


@_marked
def _boxed(x: Any) -> TABLE:  # type: ignore[valid-type]  # an annotation is never computed
    SUM = 3  # its own
    return Box(x).twice() + SUM


def train(args: Any) -> list[Any]:
    """What all the others are for."""
    values = [_boxed(x) for x in args["x"]]
    return [np.sum(values), NAMES, LOG.name, os.path.join(str(PLACE), "x"), OrderedDict(a=wire_frames.__name__)]


def main(task_config: Any, *, more: int = 1) -> int:
    return more


def uses_table(args: Any) -> Any:
    return TABLE


WEIGHTS = {"w": [1, np.array([None])]}
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


def halving(by: int) -> Any:
    return lambda x: x / by


HALF = halving(2)


def uses_an_array(args: Any) -> Any:
    return WEIGHTS


def uses_itself(args: Any) -> Any:
    return ENDLESS


def calls_a_lambda(args: Any) -> Any:
    return HALF(args)


try:
    import no_such_module
except ImportError:
    no_such_module = None


def lacks_a_module(args: Any) -> bool:
    return no_such_module is None


VALUES = [
    SUM,
    np.int8(-3),
    frozenset([1]),
    set(),
    datetime.date(2026, 1, 2),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime.timedelta(seconds=1.5),
    decimal.Decimal("1.50"),
    re.compile("a+", re.I),
    (1,),
    [math.inf, {"a": (None, b"x")}],
    complex(1, -0.0),
]
SAME = VALUES


def gives_values(args: Any) -> Any:
    SAME.append(args)
    return VALUES


def recurses(n: Any) -> Any:
    return 0 if not n else recurses(n - 1)


def _run(function: Callable[..., Any]) -> Callable[..., Any]:
    """The script's main, as another process would have it."""
    text, _ = writing.source_of(function)
    module: dict[str, Any] = {"__name__": "script"}
    exec(compile(text, "<script>", "exec"), module)
    made = module["main"]
    assert callable(made)
    return made


@pytest.mark.slow
def test_what_a_function_needs_goes_with_it() -> None:
    given = {"x": [1.0, 2.0]}
    assert _run(train)(given) == train(given) == [21.0, ("a", "b"), "of.a.script", "data/x", {"a": "akrunner.wire.frames"}]


@pytest.mark.slow
def test_each_line_has_the_number_it_has_in_its_file() -> None:
    text, shown = writing.source_of(train)
    assert os.path.samefile(shown, __file__)
    lines, own = text.splitlines(), pathlib.Path(__file__).read_text().splitlines()
    assert lines[0].startswith("from __future__ import annotations; ") and lines[-1] == "main = train"
    kept = [i for i, line in enumerate(lines[1:-1], 1) if line]
    assert all(lines[i] == own[i] for i in kept)
    assert [own[i].split("(")[0] for i in kept if own[i].startswith("def ")] == [
        "def _marked",
        "def _double",
        "def _boxed",
        "def train",
    ]
    assert "import os.path" in lines[0] and "from akrunner.wire import frames as wire_frames" in lines[0]


def test_a_main_stays_one() -> None:
    assert _run(main)(None) == 1 and "main =" not in writing.source_of(main)[0]
    assert _run(recurses)(3) == 0


def test_what_a_function_closes_over() -> None:
    factor = 3

    def add(x: int) -> int:
        return x + factor

    def inner(args: int) -> int:
        return add(args) * factor

    assert _run(inner)(2) == 15


def test_cells_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        "from os import path as where, sep\nimport numpy as np\nSTEP = 2\n%matplotlib inline",
        "from os import path as where, sep\nimport numpy as np\nSTEP = 2",
        "def help_(x):\n    return np.asarray(x) + STEP",
        "class Kept:\n    n = 1",
        "class Kept:\n    n = STEP",
        "def work(cfg):\n    return [help_(cfg).tolist(), where.join('a', 'b'), sep, Kept.n]",
    ]
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    module.__dict__["In"] = cells
    for number, cell in enumerate(cells[1:]):
        name = f"<cell {number}>"
        linecache.cache[name] = (len(cell), None, [line + "\n" for line in cell.splitlines()], name)
        exec(compile(cell, name, "exec"), module.__dict__)
    work = module.__dict__["work"]
    text, shown = writing.source_of(work)
    assert shown == "" and "from os import path as where" in text
    assert _run(work)([1, 2]) == [[3, 4], "a/b", "/", 2]
    # one that needs no other: its lines are those of its cell
    cell = "import numpy as np\n\ndef alone(cfg):\n    return np.asarray(cfg).tolist()"
    linecache.cache["<cell 9>"] = (len(cell), None, [line + "\n" for line in cell.splitlines()], "<cell 9>")
    exec(compile(cell, "<cell 9>", "exec"), module.__dict__)
    text, shown = writing.source_of(module.__dict__["alone"])
    assert shown == "a notebook's cell" and text.splitlines()[2:4] == cell.splitlines()[2:]
    del linecache.cache["<cell 9>"]
    # and one that stands at the beginning of its cell
    cell = "def first(cfg):\n    return np.asarray(cfg).tolist()"
    linecache.cache["<cell 10>"] = (len(cell), None, [line + "\n" for line in cell.splitlines()], "<cell 10>")
    exec(compile(cell, "<cell 10>", "exec"), module.__dict__)
    text, shown = writing.source_of(module.__dict__["first"])
    assert shown == "a notebook's cell" and text.splitlines()[:2] == cell.splitlines()
    assert _run(module.__dict__["first"])([1]) == [1]
    del linecache.cache["<cell 10>"]
    # %%time has it compiled as a part of no cell
    timed = "def timed(cfg):\n    return STEP"
    cells.append(f"get_ipython().run_cell_magic('time', '', {timed!r})")
    exec(compile(timed, "<timed exec>", "exec"), module.__dict__)
    assert _run(module.__dict__["timed"])(0) == 2
    for number in range(len(cells) - 2):
        del linecache.cache[f"<cell {number}>"]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda args: 1, "a lambda cannot be handed to other processes"),
        (functools.partial(train), "a partial cannot be handed"),
        (Box, "a type cannot be handed"),
        (uses_table, r"uses_table\(\) uses TABLE, a lock, which cannot be handed .*user_params="),
        (uses_an_array, r"uses WEIGHTS\['w'\]\[1\], a ndarray of object, which cannot be handed"),
        (uses_itself, "uses ENDLESS, which has itself in it"),
        (
            calls_a_lambda,
            "uses a lambda by the name HALF; make it within .*, if a call made HALF, or have the decorator that made it use functools.wraps",
        ),
    ],
)
def test_what_cannot_go(function: Any, said: str) -> None:
    with pytest.raises(ScriptError, match=said):
        writing.source_of(function)


def test_values_of_many_types_go() -> None:
    assert _run(lacks_a_module)(0)
    assert repr(_run(gives_values)(7)) == repr([*VALUES, 7]), "and two names of one list are two names of one list"


def test_a_text_of_several_lines_keeps_its_blanks() -> None:
    def inner(args: Any) -> str:
        return (
            """a
        b
c"""
            + f"""{args}
    d"""
        )

    assert _run(inner)(1) == "a\n        b\nc1\n    d" == inner(1)


DEFAULT = 1
LATER_DEFAULT = 1


def has_defaults(args: Any, k: int = DEFAULT, *, m: int = DEFAULT + 1) -> int:
    return k + m


def has_a_changed_default(args: Any, k: int = LATER_DEFAULT) -> int:
    return k


LATER_DEFAULT = 2


class Pair(NamedTuple):
    x: int = 1


class Slotted:
    __slots__ = ("a",)
    _b: ClassVar[int] = 2

    def __init__(self) -> None:
        self.a = self.__c()

    def __c(self) -> int:
        return 3


def uses_classes(args: Any) -> Any:
    return [Pair().x, Slotted().a, Slotted._b]


STEP = 3


class Stepped:
    step = STEP


def uses_a_step(args: Any) -> Any:
    return Stepped.step


class Changed:
    n = 1
    many: list[int] = []

    def go(self) -> int:
        return self.n


def go(self: Any) -> int:
    return 5


class Cfg:
    epochs = 2


def hook(x: int) -> int:
    return x


def uses_what_was_added(args: Any) -> Any:
    return [Cfg.epochs, vars(Cfg).get("lr"), vars(Cfg).get("tags"), hook(1), getattr(hook, "rate", None)]


def tag(value: int) -> Any:
    def tagged(thing: Any) -> Any:
        thing.tag, thing.conf, thing.made = value, {"lr": 1}, len
        return thing

    return tagged


@tag(3)
class Tagged:
    tag: int
    conf: dict[str, int]
    own = 1


@tag(3)
def tagged() -> int:
    return 1


class Counting:
    def __init_subclass__(cls) -> None:
        cls.label = cls.__name__


class Counted(Counting):
    label: str


def uses_what_was_decorated(args: Any) -> Any:
    return [Tagged.tag, Tagged.conf, Tagged.own, vars(Tagged)["made"]("ab"), vars(tagged)["tag"], Counted.label]


@pytest.mark.slow
def test_what_a_decorator_has_set_and_somebody_since_is_as_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(uses_what_was_decorated)(0) == [3, {"lr": 1}, 1, 2, 3, "Counted"]
    for thing, name, value in ((Tagged, "tag", 50), (Tagged, "own", 5), (tagged, "tag", 60), (Counted, "label", "changed")):
        monkeypatch.setattr(thing, name, value)
    Tagged.conf["lr"] = 60
    assert _run(uses_what_was_decorated)(0) == [50, {"lr": 60}, 5, 2, 60, "changed"]


SCALES = {"up": lambda x: x * STEP, "down": lambda x: x / STEP, "nest": lambda x: lambda y: x + y}
twice, again = lambda x: 2 * x, lambda n: 1 if n < 2 else n * again(n - 1)
SEVENS = collections.defaultdict(lambda: 7)
long = lambda x: (  # noqa: E731
    x + 10
)


def uses_lambdas(args: Any) -> Any:
    return [SCALES["up"](2), SCALES["down"](9), SCALES["nest"](1)(2), twice(4), again(5), SEVENS["a"], long(1)]


@pytest.mark.slow
def test_lambdas_go_as_they_are_written() -> None:
    assert _run(uses_lambdas)(0) == uses_lambdas(0) == [6, 3.0, 3, 8, 120, 7, 11]


def uses_subclasses(args: Any) -> Any:
    return Counting.__subclasses__()


def uses_its_module(args: Any) -> Any:
    return vars(sys.modules[__name__])


def uses_others_subclasses(args: Any) -> Any:
    return len(int.__subclasses__()) > 0


def test_what_asks_what_else_there_is_is_refused() -> None:
    for function, named in ((uses_subclasses, r"Counting.__subclasses__\(\)"), (uses_its_module, r"sys.modules\[__name__\]")):
        with pytest.raises(ScriptError, match=named + ", which in a task has only what"):
            writing.source_of(function)
    assert _run(uses_others_subclasses)(0) is True


class Again:
    pass


AGAIN = Again()


def uses_again(args: Any) -> Any:
    return AGAIN


def test_an_instance_of_a_class_that_was_defined_again_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(_run(uses_again)(0)).__name__ == "Again"
    monkeypatch.setattr(sys.modules[__name__], "Again", type("Again", (), {"__module__": __name__}))
    with pytest.raises(
        ScriptError, match="uses AGAIN, and Again has been defined again since that was made; make it again, behind Again"
    ):
        writing.source_of(uses_again)


@pytest.mark.slow
def test_what_was_added_to_a_class_or_a_function_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(uses_what_was_added)(0) == [2, None, None, 1, None]
    monkeypatch.setattr(Cfg, "lr", 0.5, raising=False)
    monkeypatch.setattr(Cfg, "tags", ["a"], raising=False)
    monkeypatch.setattr(Cfg, "epochs", 9)
    monkeypatch.setattr(hook, "rate", 7, raising=False)
    assert _run(uses_what_was_added)(0) == [9, 0.5, ["a"], 1, 7]


@pytest.mark.slow
def test_what_its_source_does_not_say_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(has_defaults)(0) == 3
    assert _run(uses_classes)(0) == [1, 3, 2]
    assert _run(has_a_changed_default)(0) == 1

    def uses(args: Any) -> Any:
        return Changed().go()

    assert _run(uses)(0) == 1
    for name, value in (("more", go), ("more", property(go)), ("go", lambda self: 5), ("go", go)):
        with monkeypatch.context() as patched:
            patched.setattr(Changed, name, value, raising=False)
            with pytest.raises(ScriptError, match=rf"Changed.{name} was set behind the definition of Changed"):
                writing.source_of(uses)
    with monkeypatch.context() as patched:
        patched.setattr(Changed, "n", 2)
        assert _run(uses)(0) == 2
        patched.setattr(Changed, "n", TABLE)
        with pytest.raises(
            ScriptError, match=r"uses\(\) uses Changed.n, a lock, which cannot be handed to other processes; make it inside"
        ):
            writing.source_of(uses)
        patched.delattr(Changed, "n")
        with pytest.raises(ScriptError, match="Changed.n was deleted behind the definition of Changed"):
            writing.source_of(uses)
        patched.setattr(sys.modules[__name__], "STEP", 4)
        assert _run(uses_a_step)(0) == 3
    monkeypatch.setattr(main, "factor", go, raising=False)
    with pytest.raises(ScriptError, match="main.factor was set behind the definition of main"):
        writing.source_of(main)


def test_a_module_that_has_changed_on_disk_is_told(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "changes_on_disk.py"
    text = "def other(x):\n    return 0\n\n\ndef f(x):\n    return [1]\n"
    file.write_text(text)
    module = importlib.import_module("changes_on_disk")
    assert _run(module.f)(0) == [1]
    file.write_text(text.replace("return 0", "return 3"))
    assert _run(module.f)(0) == [1], "another function is another's"
    for changed in (text.replace("[1]", "[2]"), "import os\nimport re\n\n" + text.replace("[1]", "[2]"), "def f(:"):
        file.write_text(changed)
        with pytest.raises(ScriptError, match=r"changes_on_disk.py has changed since f\(\) was imported"):
            writing.source_of(module.f)
    monkeypatch.delitem(sys.modules, "changes_on_disk")


def _two(a: Any, b: Any) -> None: ...


def _none() -> None: ...


def _keyword(a: Any, *, b: Any) -> None: ...


@pytest.mark.parametrize("function", [_two, _none, _keyword])
def test_it_takes_the_task_config_only(function: Any) -> None:
    with pytest.raises(
        ScriptError, match=rf"{function.__name__}\(.*\) .*must take one argument, the task config; .*user_params="
    ):
        writing.source_of(function)


def _generator(args: Any) -> Any:
    yield 1


async def _async(args: Any) -> None: ...


@pytest.mark.parametrize("function", [_generator, _async])
def test_it_is_called_once(function: Any) -> None:
    with pytest.raises(ScriptError, match="is a generator, or async"):
        writing.source_of(function)


def test_one_without_a_source() -> None:
    module: dict[str, Any] = {"__name__": "__main__"}
    exec("def typed(args):\n    return 1", module)
    with pytest.raises(ScriptError, match=r"the source of typed\(\), which typed\(\) needs, is not to be had"):
        writing.source_of(module["typed"])


@pytest.mark.slow
def test_the_same_function_is_the_same_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = writing.written(train)
    assert made == writing.written(train) and made != writing.written(main)
    assert os.path.basename(made.path) == "train.py" and made.path.startswith(str(tmp_path))
    assert os.stat(os.path.dirname(made.path)).st_mode & 0o077 == 0


COUNT = 3
GONE = "g"


def counts(args: int) -> int:
    global COUNT, GONE, LATER
    COUNT += args
    LATER = COUNT
    del GONE
    return LATER


def test_a_number_that_a_function_changes() -> None:
    assert (_run(counts)(2), COUNT) == (5, 3), "a task has its own"


def test_what_a_function_around_it_has_cannot_be_changed() -> None:
    seen = 0

    def inner(args: int) -> int:
        nonlocal seen
        seen += args
        return seen

    with pytest.raises(ScriptError, match=r"inner\(\) changes seen of the function around it \(nonlocal\)"):
        writing.source_of(inner)


@pytest.mark.parametrize("place", ["/proc/akrunner-nowhere", "/dev/null"])
def test_without_a_cache_it_is_in_a_temporary_directory(
    place: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache only spares writing it again."""

    def main(task_config: Any) -> None:
        print(task_config)

    monkeypatch.setenv("XDG_CACHE_HOME", place)
    path = writing.written(main).path
    assert not path.startswith(place) and "def main" in pathlib.Path(path).read_text()
    leftovers.drop(str(pathlib.Path(path).parent))
    monkeypatch.setattr(leftovers, "temp_folder", lambda prefix: (tmp_path / "no" / "where").mkdir())
    with pytest.raises(
        ScriptError,
        match=f"cannot write it to the cache, {place}/akrunner \\(XDG_CACHE_HOME\\), nor to a temporary directory \\(TMPDIR\\)",
    ):
        writing.written(main)
