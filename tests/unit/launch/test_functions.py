"""A function as a script: what of its surroundings goes with it, and what cannot."""

from __future__ import annotations

import functools
import linecache
import logging
import math
import os.path
import pathlib
import sys
import types
from collections import OrderedDict
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from akrunner import leftovers
from akrunner.errors import ScriptError
from akrunner.launch import functions
from akrunner.wire import frames as wire_frames

SCALE = 2.5
NAMES = ("a", "b")
LIMIT = math.inf
PLACE = pathlib.Path("data")
LOG = logging.getLogger("of.a.script")
TABLE = object()
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
def _boxed(x: Any) -> "TABLE":  # type: ignore[valid-type]  # an annotation is never computed
    SUM = 3  # its own
    return Box(x).twice() + SUM


def train(args: Any) -> List[Any]:
    """What all the others are for."""
    values = [_boxed(x) for x in args["x"]]
    return [np.sum(values), NAMES, LOG.name, os.path.join(str(PLACE), "x"), OrderedDict(a=wire_frames.__name__)]


def main(task_config: Any, *, more: int = 1) -> int:
    return more


def uses_table(args: Any) -> Any:
    return TABLE


def uses_a_scalar(args: Any) -> Any:
    return SUM * args


def recurses(n: Any) -> Any:
    return 0 if not n else recurses(n - 1)


def _run(function: Callable[..., Any]) -> Callable[..., Any]:
    """The script's main, as another process would have it."""
    text, _ = functions.source_of(function)
    module: Dict[str, Any] = {"__name__": "script"}
    exec(compile(text, "<script>", "exec"), module)
    made = module["main"]
    assert callable(made)
    return made


def test_what_a_function_needs_goes_with_it() -> None:
    given = {"x": [1.0, 2.0]}
    assert _run(train)(given) == train(given) == [21.0, ("a", "b"), "of.a.script", "data/x", {"a": "akrunner.wire.frames"}]


def test_each_line_has_the_number_it_has_in_its_file() -> None:
    text, shown = functions.source_of(train)
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
    assert _run(main)(None) == 1 and "main =" not in functions.source_of(main)[0]
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
    text, shown = functions.source_of(work)
    assert shown == "" and "from os import path as where" in text
    assert _run(work)([1, 2]) == [[3, 4], "a/b", "/", 2]
    # one that needs no other: its lines are those of its cell
    cell = "import numpy as np\n\ndef alone(cfg):\n    return np.asarray(cfg).tolist()"
    linecache.cache["<cell 9>"] = (len(cell), None, [line + "\n" for line in cell.splitlines()], "<cell 9>")
    exec(compile(cell, "<cell 9>", "exec"), module.__dict__)
    text, shown = functions.source_of(module.__dict__["alone"])
    assert shown == "a notebook's cell" and text.splitlines()[2:4] == cell.splitlines()[2:]
    del linecache.cache["<cell 9>"]
    for number in range(len(cells) - 1):
        del linecache.cache[f"<cell {number}>"]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda args: 1, "a lambda cannot be handed to other processes"),
        (functools.partial(train), "a partial cannot be handed"),
        (Box, "a type cannot be handed"),
        (uses_table, r"uses_table\(\) uses TABLE, a object, which cannot be handed .*user_params="),
        (uses_a_scalar, "uses SUM, a float64"),
    ],
)
def test_what_cannot_go(function: Any, said: str) -> None:
    with pytest.raises(ScriptError, match=said):
        functions.source_of(function)


def _two(a: Any, b: Any) -> None: ...


def _none() -> None: ...


def _keyword(a: Any, *, b: Any) -> None: ...


@pytest.mark.parametrize("function", [_two, _none, _keyword])
def test_it_takes_the_task_config_only(function: Any) -> None:
    with pytest.raises(
        ScriptError, match=rf"{function.__name__}\(.*\) .*must take one argument, the task config; .*user_params="
    ):
        functions.source_of(function)


def _generator(args: Any) -> Any:
    yield 1


async def _async(args: Any) -> None: ...


@pytest.mark.parametrize("function", [_generator, _async])
def test_it_is_called_once(function: Any) -> None:
    with pytest.raises(ScriptError, match="is a generator, or async"):
        functions.source_of(function)


def test_one_without_a_source() -> None:
    module: Dict[str, Any] = {"__name__": "__main__"}
    exec("def typed(args):\n    return 1", module)
    with pytest.raises(ScriptError, match=r"the source of typed\(\), which typed\(\) needs, is not to be had"):
        functions.source_of(module["typed"])


def test_the_same_function_is_the_same_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = functions.written(train)
    assert made == functions.written(train) and made != functions.written(main)
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
        functions.source_of(inner)


@pytest.mark.parametrize("place", ["/proc/akrunner-nowhere", "/dev/null"])
def test_without_a_cache_it_is_in_a_temporary_directory(
    place: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache only spares writing it again."""

    def main(task_config: Any) -> None:
        print(task_config)

    monkeypatch.setenv("XDG_CACHE_HOME", place)
    path = functions.written(main).path
    assert not path.startswith(place) and "def main" in pathlib.Path(path).read_text()
    leftovers.drop(str(pathlib.Path(path).parent))
    monkeypatch.setattr(leftovers, "temp_folder", lambda prefix: (tmp_path / "no" / "where").mkdir())
    with pytest.raises(
        ScriptError,
        match=f"cannot write it to the cache, {place}/akrunner \\(XDG_CACHE_HOME\\), nor to a temporary directory \\(TMPDIR\\)",
    ):
        functions.written(main)
