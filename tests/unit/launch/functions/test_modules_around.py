"""What the user's own modules do to each other: who fills what, who decides by it, who has looked at it."""

from __future__ import annotations

import collections
import enum
import os
import pathlib
import tempfile
import types
from typing import Any

import pytest

from akrunner.launch.functions.modules_around import Around, is_of_here
from akrunner.launch.functions.set_by_program import ByProgram
from tests.unit.launch.functions.conftest import Written


def around(
    modules: list[Any], of: str = "train", sets: frozenset[str] = frozenset(), by: ByProgram | None = None, **more: Any
) -> Around:
    run = {one.__name__: one for one in modules}
    carry = more.get("carry", lambda *given: True)
    return Around(run, of, {*sets}, frozenset(), carry, by if by is not None else ByProgram())


@pytest.mark.parametrize(
    ("text", "empty", "keeps"),
    [
        # a cache, a registry
        ("KEPT = {}\ndef get(k):\n    if k not in KEPT:\n        KEPT[k] = k\n    return KEPT[k]", True, True),
        ("KEPT = []\ndef register(f):\n    KEPT.append(f)\n    return f\n@register\ndef g(): ...", True, True),
        ("KEPT = []\ndef make(a):\n    KEPT.append(a)\n    return len(a)", True, True),
        ("KEPT = []\ndef put(a):\n    KEPT.append(a)\ndef step(a):\n    put(a)\n    return KEPT", True, True),
        # set for others
        ("KEPT = {}\ndef set_option(k, v):\n    KEPT[k] = v", True, False),
        ("KEPT = {}\ndef set_option(k, v):\n    KEPT[k] = v\ndef get():\n    return KEPT['a']", True, False),
        ("KEPT = {}\ndef get():\n    return KEPT['a']", True, False),
        # handed on
        ("KEPT = []\ndef go():\n    fill(KEPT)", True, True),
        ("KEPT = [1]\ndef go():\n    fill(KEPT)", False, False),
        ("KEPT = [1]\ndef fill(a):\n    a.append(1)\ndef go():\n    fill(KEPT)", False, True),
        ("class A:\n    KEPT = []\ngo(A.KEPT)", True, True),
    ],
)
def test_a_container_that_modules_fill_themselves(written: Written, text: str, empty: bool, keeps: bool) -> None:
    module = written({"conf.py": f"def fill(a): ...\ndef go(a=None): ...\n{text}"})("conf")
    assert around([module]).keeps("KEPT", empty) == keeps


def test_nobody_fills_for_a_program_that_does_not_look(written: Written) -> None:
    """A list that only its own functions know, and the program's file never names."""
    load = written(
        {
            "conf.py": "KEPT = []\ndef put(a):\n    KEPT.append(a)\n",
            "train.py": "import conf\n",
            "reads.py": "import conf\nconf.KEPT\n",
        }
    )
    conf = load("conf")
    load("train"), load("reads")
    assert around([conf], "train").keeps("KEPT", True)
    assert not around([conf], "reads").keeps("KEPT", True)


@pytest.mark.parametrize(
    ("text", "guards"),
    [
        ("READY = False\ndef once():\n    global READY\n    if not READY:\n        load()\n        READY = True", True),
        (
            "READY = False\ndef once():\n    if not READY:\n        mark()\n        load()\ndef mark():\n    global READY\n    READY = True",
            True,
        ),
        ("READY = False\ndef once():\n    global READY\n    if not READY:\n        READY = True", False),
        ("READY = False\ndef once():\n    if not READY:\n        load()", False),
        ("READY = False\ndef once():\n    global READY\n    READY = True\n    load()", False),
    ],
)
def test_a_name_that_says_whether_something_was_done(written: Written, text: str, guards: bool) -> None:
    assert around([written({"conf.py": text})("conf")]).guards("READY") == guards


def test_another_module_that_looks_at_a_name_when_it_is_imported(written: Written) -> None:
    load = written({
        "conf.py": "RATE = 1\nTWICE = RATE * 2\n", "early.py": "import conf\nBOTH = conf.RATE + 1\n",
        "by_call.py": "import conf\ndef now():\n    return conf.MODE\nMODE_THEN = now()\n", "late.py": "import conf\ndef then():\n    return conf.LATE\n",
    })  # fmt: skip
    vars(load("conf")).update(MODE=1, LATE=1)
    modules = around([load(name) for name in ("conf", "early", "by_call", "late")])
    assert modules.reader("RATE", "conf") == "early" and modules.reader("MODE", "conf") == "by_call"
    assert modules.reader("LATE", "conf") == "" == modules.reader("TWICE", "conf")


def test_changes_are_followed_through_calls(written: Written) -> None:
    load = written({
        "one.py": "N = 0\ndef low():\n    global N\n    N += 1\n", "two.py": "import one\ndef high():\n    one.low()\ndef highest():\n    high()\ndef "
        "other(): ...\n",
    })  # fmt: skip
    modules = around([load("one"), load("two")])
    assert {name for at in modules.changing("N") for name in modules.names[at]} == {"low", "high", "highest"}
    assert modules.changing("none") == set()


def test_functions_that_call_each_other_end(written: Written) -> None:
    modules = around([written({"conf.py": "N = 0\ndef a():\n    global N\n    N = 1\n    b()\ndef b():\n    a()\n"})("conf")])
    assert len(modules.changing("N")) == 2


def test_what_the_program_sets_itself_or_by_a_function(written: Written) -> None:
    conf = written({"conf.py": "RATE = 1\nNAMES = []\nOTHER = 1\ndef configure(rate):\n    global RATE\n    RATE = rate\n"})(
        "conf"
    )
    assert not around([conf]).set_by_program(conf, "RATE")
    assert around([conf], by=ByProgram(called={"configure"})).set_by_program(conf, "RATE")
    assert not around([conf], by=ByProgram(called={"configure"})).set_by_program(conf, "OTHER")
    assert around([conf], by=ByProgram(names={("conf", "OTHER")})).set_by_program(conf, "OTHER")
    assert around([conf], by=ByProgram(held={id(conf.NAMES)})).set_by_program(conf, "NAMES")


def test_a_value_that_the_program_sets_goes_along_unless_others_depend_on_it(written: Written) -> None:
    load = written({
        "conf.py": "RATE = READY = SEEN = 1\ndef once():\n    global READY\n    if not READY:\n        load()\n        READY = 1\n",
        "reads.py": "from conf import SEEN\nTWICE = SEEN * 2\n",
    })  # fmt: skip
    conf, reads = load("conf"), load("reads")
    asked: list[Any] = []

    def carry(*given: Any) -> bool:
        asked.append(given)
        return True

    by = ByProgram(names={("conf", name) for name in ("RATE", "READY", "SEEN")})
    modules = around([conf, reads], by=by, carry=carry)
    assert modules.carries_unknown(conf, "RATE", False) and modules.gone == {("conf", "RATE")}
    assert asked == [("conf", "RATE", 1, False)]
    assert not modules.carries_unknown(conf, "READY", True) and not modules.carries_unknown(conf, "SEEN", False)
    assert not around([conf], by=by, sets=frozenset({".RATE"})).carries_unknown(conf, "RATE", False), (
        "the function sets it itself"
    )
    assert not around([conf]).carries_unknown(conf, "RATE", False), "nobody sets it"
    refuses = around([conf], by=by, carry=lambda *given: False)
    assert not refuses.carries_unknown(conf, "RATE", False) and refuses.gone == set()


def test_what_modules_change_and_set_when_they_are_imported(written: Written) -> None:
    load = written({
        "one.py": "A = []\nA.append(1)\nclass K: ...\nK.rate = 1\n", "two.py": "B = []\nB.append(1)\n",
        "names.py": "class K: ...\nfor name in 'ab':\n    setattr(K, name, 1)\n",
    })  # fmt: skip
    modules = around([load("one"), load("two")], sets=frozenset({".own"}))
    assert {"A", "B"} <= modules.altered_by_import() and "A" not in modules.altered_by_import("one")
    assert {".own", ".rate"} <= modules.hung
    names = around([load("names")])
    assert not modules.hangs_any(modules.texts["one"])
    assert modules.hangs_any(names.texts["names"]) and names.hangs_any(modules.texts["one"])


class Mode(enum.Enum):
    A = "/tmp"


def test_a_place_that_only_this_process_has(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("conf")
    module.__file__ = "/the/users/program/conf.py"
    monkeypatch.setattr(tempfile, "tempdir", "/scratch")
    monkeypatch.chdir(tmp_path)
    here = ["/the/users/program/data", pathlib.PurePosixPath("/scratch/x"), os.path.join(tmp_path, "a"), [1, ("/scratch/x",)], {"k": {"/scratch/x"}}, {"/scratch/x": 1}, types.SimpleNamespace(a="/scratch/x"), collections.deque(["/scratch/x"])]  # fmt: skip
    away = ["/the/users", "data", 7, None, [], {"a": ["/etc"]}, Mode.A, Mode, len, os, pathlib.PurePosixPath("/etc")]
    assert all(is_of_here(one, module) for one in here) and not any(is_of_here(one, module) for one in away)
    assert not is_of_here([1] * 10_000 + ["/the"], module)


def test_a_value_that_holds_itself_is_looked_at_once_and_again_but_not_for_ever() -> None:
    module = types.ModuleType("conf")
    module.__file__ = "/the/users/program/conf.py"
    round_: list[Any] = [1]
    round_.append(round_)
    assert not is_of_here(round_, module)
