"""What stands around a function that goes to other processes: its names, its text, and how these were imported."""

from __future__ import annotations

import collections
import collections.abc
import os.path
import sys
import textwrap
import types
from typing import Any

import numpy as np
import pytest

from akrunner.launch.functions.surroundings import as_imported, import_of, in_a_cell, known_to, texts_around
from tests.unit.launch.functions.conftest import Written


def notebook(*cells: Any) -> dict[str, Any]:
    """Runs cells as a notebook does."""
    made: dict[str, Any] = {"__name__": "notebook", "In": ["", *cells]}
    for cell in cells:
        if isinstance(cell, str) and "run_cell_magic" not in cell:
            exec(compile(cell, "<cell>", "exec", dont_inherit=True), made)
    return made


PROGRAM = """
    import collections
    import os.path
    import collections.abc as shapes, numpy
    from collections import OrderedDict as Ordered, Counter
    try:
        import missing_for_sure as gone
    except ImportError:
        gone = None

    RATE = 1

    def around(a):
        b = a + 1
        def inner(task_config):
            return b + RATE
        return inner

    def main(task_config):
        from collections import deque
        return deque

    class Model:
        def fit(self):
            return RATE
"""


@pytest.fixture
def program(written: Written) -> Any:
    return written({"program.py": PROGRAM})("program")


def test_a_function_knows_its_module_and_what_is_around_it(program: Any) -> None:
    known = known_to(program.around(1))
    assert known["b"] == 2 and known["RATE"] == 1 and known["main"] is program.main
    assert "b" not in known_to(program.main)


def test_a_class_knows_its_module(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_to(program.Model)
    assert known["RATE"] == 1
    known["RATE"] = 2
    assert program.RATE == 1, "it is a copy"
    monkeypatch.setattr(program.Model, "__module__", "nowhere")
    assert known_to(program.Model) == {}


def test_the_text_around_a_function_is_its_file(program: Any) -> None:
    assert texts_around(program.main) == texts_around(program.Model) == [textwrap.dedent(PROGRAM).lstrip("\n")]
    made: dict[str, Any] = {}
    exec("def f(): ...", made)
    assert texts_around(made["f"]) == [], "it is in no file"


def test_the_text_around_a_function_of_a_notebook_is_its_cells() -> None:
    timed = "get_ipython().run_cell_magic('time', '', 'import os\\nx = 1\\n')"
    line = "get_ipython().run_line_magic('pip', 'install x')\ndef f(): ..."
    made = notebook("def f(): ...", timed, 7)
    assert texts_around(made["f"]) == ["", "def f(): ...", "import os\nx = 1\n"]
    made["In"] = [line, "get_ipython().run_cell_magic(broken"]
    assert texts_around(made["f"]) == [line, "get_ipython().run_cell_magic(broken"], "a text that is no call stays"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("collections", collections, "import collections"),
        ("os", os, "import os.path"),
        ("shapes", collections.abc, "import collections.abc as shapes"),
        ("numpy", np, "import numpy"),
        ("Ordered", collections.OrderedDict, "from collections import OrderedDict as Ordered"),
        ("Counter", collections.Counter, "from collections import Counter"),
        ("deque", collections.deque, "from collections import deque"),
        # another value by now, or another name
        ("numpy", collections, ""),
        ("Counter", collections.deque, ""),
        ("OrderedDict", collections.OrderedDict, ""),
        ("gone", None, ""),
    ],
)
def test_an_import_is_said_as_the_program_says_it(program: Any, name: str, value: Any, expected: str) -> None:
    assert as_imported(name, value, program.main) == expected


def test_a_module_of_a_package_is_imported_from_it(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    load = written({
        "mypkg/__init__.py": "",
        "mypkg/part.py": "A = []",
        "mypkg/uses.py": "from mypkg import part\nfrom . import part as near\nfrom .part import A\ndef f(): ...",
    })  # fmt: skip
    uses, part = load("mypkg.uses"), load("mypkg.part")
    assert as_imported("part", part, uses.f) == "from mypkg import part"
    # tasks have no package around the script, whatever has that name elsewhere
    monkeypatch.setitem(sys.modules, "part", part)
    assert as_imported("near", part, uses.f) == "" == as_imported("A", part.A, uses.f)


class Lazy(types.ModuleType):
    """As tensorflow.keras is until its first use."""


def test_a_module_that_is_loaded_at_its_first_use_is_another_object(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    program = written({"uses.py": "import collections as c\ndef f(): ..."})("uses")
    assert as_imported("c", Lazy("c"), program.f) == "import collections as c"
    assert as_imported("c", types.ModuleType("c"), program.f) == ""


def test_a_value_is_imported_by_its_own_name(program: Any) -> None:
    assert import_of("np", np) == "import numpy as np"
    assert import_of("Od", collections.OrderedDict) == "from collections import OrderedDict as Od"
    assert import_of("go", program.main) == "from program import main as go"


def test_what_has_no_name_of_its_own_is_not_imported(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Answers:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    replaced = program.main
    monkeypatch.setattr(program, "main", None)
    inner = program.around(1)
    for value in (7, None, types.ModuleType("made"), Answers(), replaced, inner, program.Model.fit):
        assert import_of("x", value) == ""
    monkeypatch.setattr(program.Model, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Model", program.Model, raising=False)
    assert import_of("x", program.Model) == "" == import_of("x", sys.modules["__main__"])


@pytest.mark.parametrize(
    ("around", "own", "expected"),
    [
        ("tensorflow", {"_tfll_name": "keras.api"}, "from tensorflow import keras.api as k"),
        ("tensorflow.python", {"_tfll_local_name": "keras"}, "from tensorflow import keras as k"),
        ("elsewhere", {"_tfll_local_name": "keras"}, ""),
        ("tensorflow", {}, ""),
    ],
)
def test_a_lazy_part_of_tensorflow_is_imported_from_it(around: str, own: dict[str, str], expected: str) -> None:
    lazy = Lazy("keras_of_nowhere")
    vars(lazy).update(_tfll_parent_module_globals={"__name__": around}, **own)
    assert import_of("k", lazy) == expected


def test_the_last_definition_in_a_notebook_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = notebook(
        "class Model:\n    rate = 1",
        "x = 1\n@decorated\nclass Model:\n    rate = 2\n\ny = 2".replace("@decorated\n", ""),
        "get_ipython().run_cell_magic('time', '', 'def fit():\\n    return 1\\n')",
    )
    monkeypatch.setitem(sys.modules, "notebook", types.ModuleType("notebook"))
    vars(sys.modules["notebook"]).update(made)
    assert in_a_cell(made["Model"]) == "class Model:\n    rate = 2"
    exec("def fit():\n    return 1", made)
    assert in_a_cell(made["fit"]) == "def fit():\n    return 1"
    exec("def other(): ...", made)
    assert in_a_cell(made["other"]) == ""


def test_decorators_go_with_their_definition() -> None:
    made = notebook("def kept(f):\n    return f\n", "\n@kept\n@kept\ndef fit():\n    return 1\nfit()")
    assert in_a_cell(made["fit"]) == "@kept\n@kept\ndef fit():\n    return 1"
