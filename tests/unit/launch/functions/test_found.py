"""What is known of a function that is to be a script: the modules it brings, and the values they hold that go along."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions.found import Found, Piece
from akrunner.launch.functions.value_kinds import Unwritten
from tests.unit.launch.functions.conftest import Written


def refer(name: str, value: Any, found: Found) -> tuple[str, str]:
    raise Unwritten(name, value)


def found_of(function: Any, *lines: str) -> Found:
    return Found(function, refer, lambda value, of: False, lines=list(lines))


def texts(found: Found) -> list[str]:
    return [line.text for line in found.values.lines()]


FILES = {
    "conf.py": "RATE = 1\nTABLE = {}\nLOCK = None\n",
    "uses.py": "from conf import TABLE\nimport conf\n",
    "later.py": "import conf\n",
    "program.py": "import uses\ndef train(task_config):\n    import later\n    return uses.TABLE\n",
}


@pytest.fixture
def load(written: Written) -> Any:
    made = written(FILES)
    made("program"), made("later")
    return made


def test_modules_that_a_script_imports(load: Any) -> None:
    found = found_of(load("program").train, "import uses")
    assert [one.__name__ for one in found.modules()] == ["uses", "conf"] == list(found.at_once())
    assert found_of(load("program").train).modules() == [] and found_of(load("program").train).at_once() == {}
    # an import within a function does not run before the script's own statements
    found.pieces.append(Piece("train", "def train(task_config):\n    import later\n", "", 1))
    assert "later" in [one.__name__ for one in found.modules()] and "later" not in found.at_once()
    assert list(found.imported_first) == ["uses", "conf"]


def test_names_and_imports_under_way_bring_their_modules_at_once(load: Any) -> None:
    found = found_of(load("program").train)
    found.names["later"] = load("later")
    assert set(found.at_once()) == {"later", "conf"}
    found.names.clear()
    found.coming.append(load("uses"))
    assert set(found.at_once()) == {"uses", "conf"}
    found.coming.append(load("program"))
    assert "program" not in found.at_once(), "the function's own module is not imported in a task"


def test_what_modules_make_themselves_is_not_made_twice(load: Any) -> None:
    found = found_of(load("program").train, "import conf")
    made = found.imported()
    assert set(made) == {id(load("conf").TABLE)} and "conf" in made[id(load("conf").TABLE)]


def test_a_value_that_was_set_goes_along_to_all_that_hold_it(load: Any) -> None:
    conf, uses = load("conf"), load("uses")
    conf.RATE = 5
    conf.TABLE["k"] = [1]
    found = found_of(load("program").train, "import uses")
    assert found.carry("conf", "RATE", 5, False) and found.carry("conf", "TABLE", conf.TABLE, False)
    assert found.carry("conf", "TABLE", uses.TABLE, False), "it is on its way already"
    found.add_carried()
    rate, table = texts(found)
    assert "[('conf', 'RATE')], 5, False" in rate
    assert "('conf', 'TABLE'), ('uses', 'TABLE')" in table and "{'k': [1]}" in table


def test_a_value_is_put_in_place_if_something_else_in_the_modules_holds_it(written: Written) -> None:
    load = written(
        {"conf.py": "TABLE = {}\ndef get(table=TABLE):\n    return table\n", "program.py": "import conf\ndef train(c): ...\n"}
    )
    conf = load("conf")
    conf.TABLE["k"] = 1
    found = found_of(load("program").train, "import conf")
    assert found.carry("conf", "TABLE", conf.TABLE, False)
    found.add_carried()
    (line,) = texts(found)
    assert line.endswith("put([('conf', 'TABLE')], {'k': 1}, True)")


def test_a_value_that_cannot_be_written_stays(load: Any) -> None:
    found = found_of(load("program").train, "import conf")
    assert not found.carry("conf", "LOCK", threading.Lock(), False) and not found.keeping
    assert not found.carry("conf", "LOCK", threading.Lock(), True) and found.keeping == {"conf"}
    assert not found.carried and not found.underway
    # what the same module's functions have set stays with it, what the program has set does not
    assert found.carry("conf", "RATE", 5, True) and found.carry("conf", "TABLE", {}, False)
    found.add_carried()
    (line,) = texts(found)
    assert "'TABLE'" in line and "RATE" not in line


def test_no_module_is_imported_earlier_for_a_value(load: Any) -> None:
    found = found_of(load("program").train)
    assert not found.carry("later", "X", 1, False) and not found.carried
    assert found.carry("conf", "RATE", 1, False), "the program itself imports it first"


def test_what_was_found_for_nothing_is_forgotten(load: Any) -> None:
    found = found_of(load("program").train, "import conf")
    found.names["a"] = 1
    found.values.add("a", 1, "train")
    before = found.copied()
    values = found.values
    found.lines.append("import later")
    found.names["b"] = [2]
    found.pieces.append(Piece("f", "def f(): ...", "", 1))
    found.values.add("b", [2], "train")
    found.restore(before)
    assert found.lines == ["import conf"] and found.names == {"a": 1} and found.pieces == []
    assert found.values is values and texts(found) == ["a = 1"]


def test_an_import_that_is_another_by_now_is_refused(load: Any) -> None:
    conf = load("conf")
    found = found_of(load("program").train, "import conf")
    found.check_imports("import conf", "program")
    conf.LOCK = threading.Lock()
    with pytest.raises(ScriptError, match=r"^script: conf.LOCK is .* here, but None in .*/conf.py"):
        found.check_imports("import conf", "program")


def test_what_the_program_sets_in_its_modules(written: Written) -> None:
    load = written({
        "conf.py": "RATE = 1\nKEPT = 1\n", "program.py": "import conf, json\nconf.RATE = 5\njson.more = 1\ndef train(task_config):\n    conf.KEPT = 7\n",
    })  # fmt: skip
    program = load("program")
    try:
        assert found_of(program.train).by_program.names == {("conf", "RATE")}, (
            "neither a package, nor what the function sets itself"
        )
    finally:
        del sys.modules["json"].more  # type: ignore[attr-defined]


def test_a_subclass_that_a_task_would_not_have_is_told(written: Written) -> None:
    load = written({
        "bases.py": "class Base: ...\ndef names():\n    return [one.__name__ for one in Base.__subclasses__()]\n",
        "kinds.py": "from bases import Base\nclass Kind(Base): ...\n", "program.py": "import bases, kinds\ndef train(task_config):\n    return bases.names()\n",
    })  # fmt: skip
    program, kinds = load("program"), load("kinds")
    found = found_of(program.train, "import bases")
    with pytest.raises(
        ScriptError,
        match=r"^script: bases looks for the subclasses of Base \(__subclasses__\(\)\), and a task would not have kinds.Kind; use it by name in train\(\)",
    ):
        found.check_subclasses()
    found.names["Kind"] = kinds.Kind
    found.check_subclasses()
    found_of(program.train, "import bases, kinds").check_subclasses()
    found_of(types.FunctionType((lambda c: c).__code__, {"__name__": "nowhere"})).check_subclasses()
