"""The table of options, and what is written from it."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path
from typing import Any, Dict, List

import pytest

from akrunner import verbs
from akrunner.options import OPTIONS, VERBS, Verb, of_verb
from akrunner.prepare import Arguments

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
    tree = ast.parse((ROOT / "akrunner" / "options.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Option"]
    assert len(calls) == len(names)
    # the places of the verbs' room that are written by hand name no default of their own
    for place in ("api.py", "prepare.py"):
        by_hand = ast.parse((ROOT / "akrunner" / place).read_text())
        for node in ast.walk(by_hand):
            if isinstance(node, ast.FunctionDef) and node.name in ("run_batch", "run_train", "run_stream", "prepare"):
                assert not node.args.defaults and not node.args.kw_defaults, node.name


def test_every_option_is_of_a_verb_that_there_is() -> None:
    known = {verb.name for verb in VERBS}
    for one in OPTIONS:
        assert one.verbs and set(one.verbs) <= known, one.name
        assert set(one.required) <= set(one.verbs) and set(one.also) <= set(one.verbs), one.name
        assert one.text.endswith("."), one.name


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_hands_every_option_on(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: List[Any] = []
    monkeypatch.setattr(verbs, verb.does, lambda given, **apart: seen.append((given, apart)))
    values: Dict[str, Any] = {one.name: object() for one in of_verb(verb.name)}
    getattr(verbs, verb.name)(**values)
    [(given, apart)] = seen
    assert isinstance(given, Arguments)
    for one in of_verb(verb.name):
        assert (apart[one.name] if one.apart else getattr(given, one.name)) is values[one.name], one.name


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_people_see_every_option(verb: Verb) -> None:
    function = getattr(verbs, verb.name)
    parameters = inspect.signature(function).parameters
    assert list(parameters) == [one.name for one in of_verb(verb.name)]
    for one in of_verb(verb.name):
        default = inspect.Parameter.empty if verb.name in one.required else one.default
        assert parameters[one.name].default == default, one.name
        assert f"\n        {one.name}: {one.text[:20]}" in function.__doc__, one.name
