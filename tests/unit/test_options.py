"""The table of options, and what is written from it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest

from akrunner.options import OPTIONS, VERBS, Verb, carried, misfit, of_verb

ROOT = Path(__file__).parents[2]


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("gen_options", ROOT / "scripts" / "gen_options.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_generated_is_current() -> None:
    for name, text in generator().pages().items():
        assert (ROOT / name).read_text() == text, "run scripts/gen-options"


def test_an_option_is_declared_once() -> None:
    names = [one.name for one in OPTIONS]
    assert len(names) == len(set(names))
    tree = ast.parse((ROOT / "akrunner" / "options" / "table.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Option"]
    assert len(calls) == len(names)
    # the places of the verbs' room that are written by hand name no default of their own
    for place in ("api.py", "prepare.py", "serving/job.py"):
        by_hand = ast.parse((ROOT / "akrunner" / place).read_text())
        for node in ast.walk(by_hand):
            if isinstance(node, ast.FunctionDef) and node.name in {verb.does for verb in VERBS}:
                assert not node.args.defaults and not node.args.kw_defaults, node.name


def test_every_option_is_of_a_verb_that_there_is() -> None:
    known = {verb.name for verb in VERBS}
    for one in OPTIONS:
        assert one.verbs and set(one.verbs) <= known, one.name
        assert {*one.required, *one.also, *one.instead, *one.defaults} <= set(one.verbs), one.name
        assert one.text.endswith("."), one.name


def function_of(verb: Verb) -> Any:
    """The public function of a verb, or a class's `__init__`."""
    found = getattr(importlib.import_module(verb.home[:-3].replace("/", ".")), verb.name)
    return found.__init__ if verb.of_class else found


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_hands_every_option_on(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: List[Any] = []

    def taken(given: Any, **apart: Any) -> None:
        seen.append((given, apart))

    values: Dict[str, Any] = {one.name: object() for one in of_verb(verb.name)}
    function = function_of(verb)
    if verb.of_class:
        function(SimpleNamespace(**{verb.does.removeprefix("self."): taken}), **values)
    else:
        monkeypatch.setitem(function.__globals__, verb.does, taken)
        function(**values)
    [(given, apart)] = seen
    assert type(given).__name__ == verb.arguments
    for one in of_verb(verb.name):
        assert (apart[one.name] if one.apart else getattr(given, one.name)) is values[one.name], one.name


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_people_see_every_option(verb: Verb) -> None:
    function = function_of(verb)
    parameters = inspect.signature(function).parameters
    assert [name for name in parameters if name != "self"] == [one.name for one in of_verb(verb.name)]
    for one in of_verb(verb.name):
        default = inspect.Parameter.empty if verb.name in one.required else one.default_in(verb.name)
        assert parameters[one.name].default == default, one.name
        assert f"{one.name}: {one.text_in(verb.name)}" in " ".join(function.__doc__.split()), one.name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("num_worker", "there is no option 'num_worker' for predict; did you mean 'num_workers'?"),
        ("evaluator", "evaluator= means nothing for predict: it is an option of run, train, stream"),
        ("xyzzy", "there is no option 'xyzzy' for predict"),
    ],
)
def test_what_is_misspelt_or_misplaced_is_told(name: str, words: str) -> None:
    assert misfit(["timeout", name], "predict", carried("predict")) == words
    assert misfit(["timeout"], "predict", carried("predict")) is None
