"""The table of options, and what is written from it."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Tuple

import pytest

import akrunner
from akrunner.options import OPTIONS, VERBS, Verb, carried, misfit, of_verb
from akrunner.spec import JobSpec, ResourceSpec, SupervisionSpec

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
    assert all(one.verbs for one in OPTIONS)


def _defaults(path: Path) -> Iterator[Tuple[str, str, str]]:
    """(function, option, default) of each parameter in a module that is called as an option and has a default of its own."""
    known = {one.name for one in OPTIONS}
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef):
            continue
        named = [*node.args.posonlyargs, *node.args.args]
        pairs = [*zip(named[len(named) - len(node.args.defaults) :], node.args.defaults)]
        pairs += [(one, value) for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults) if value is not None]
        for one, value in pairs:
            if one.arg in known and ast.unparse(value) != "None":
                yield node.name, one.arg, ast.unparse(value)


#: by hand: what is called as an option, and is another thing
OTHERS = {
    ("serving/local.py", "close", "timeout"),
    ("detached/jobs.py", "logs", "follow"),
    # of a stream they are the command's: the function gives batches
    ("cli/running.py", "stream", "output"),
    ("cli/running.py", "stream", "overwrite"),
}


def test_no_default_is_written_by_hand() -> None:
    """Between the table and the job: what is generated has them, and nobody else."""
    package = ROOT / "akrunner"
    places = ["api.py", "prepare.py", *(f"cli/{one}.py" for one in ("given", "running", "streaming", "predicting", "engines"))]
    places += [
        str(one.relative_to(package)) for room in ("serving", "detached") for one in sorted((package / room).glob("*.py"))
    ]
    found = {(place, *one[:2]) for place in places for one in _defaults(package / place)}
    generated = {("serving/verbs.py", verb.name, one.name) for verb in VERBS for one in of_verb(verb.name)}
    generated |= {("serving/local.py", "__init__", one.name) for one in of_verb("LocalPredictor")}
    assert found - generated == OTHERS


@pytest.mark.parametrize("spec", [JobSpec, SupervisionSpec, ResourceSpec])
def test_what_a_job_is_made_of_has_no_other_defaults(spec: Any) -> None:
    declared = {one.name: one.default for one in OPTIONS}
    for one in dataclasses.fields(spec):
        if (
            one.name in declared
            and one.default is not dataclasses.MISSING
            and one.default not in (None, "", declared[one.name])
        ):
            raise AssertionError(f"{spec.__name__}.{one.name} is {one.default!r}, and the option {declared[one.name]!r}")


@pytest.mark.parametrize("function", [akrunner.pai, akrunner.warm])
def test_who_takes_the_same_takes_it_with_the_same_default(function: Any) -> None:
    """Functions whose signatures are their own; None: as their own words have it."""
    declared = {one.name: one.default for one in OPTIONS}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in declared and parameter.default not in (parameter.empty, None, declared[name]):
            # what warm keeps ready is for one worker, as a job without num_workers has
            assert (function, name, parameter.default) == (akrunner.warm, "num_workers", 1), (name, parameter.default)


def test_every_option_is_of_a_verb_that_there_is() -> None:
    known = {verb.name for verb in VERBS}
    for one in OPTIONS:
        assert one.verbs and set(one.verbs) <= known, one.name
        of_it = {verb for verb in known if one in of_verb(verb)}
        assert {*one.required, *one.also, *one.instead, *one.defaults, *one.types} <= of_it, one.name
        assert one.text.endswith("."), one.name


def function_of(verb: Verb) -> Any:
    """The public function of a verb, or a class's `__init__`."""
    found = getattr(importlib.import_module(verb.home[:-3].replace("/", ".")), verb.function)
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
        monkeypatch.setitem(inspect.unwrap(function).__globals__, verb.does, taken)
        function(**values)
    [(given, apart)] = seen
    assert type(given).__name__ == verb.arguments
    for one in of_verb(verb.name):
        assert (apart[one.name] if one.apart or one.name in verb.apart else getattr(given, one.name)) is values[one.name], (
            one.name
        )


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_people_see_every_option(verb: Verb) -> None:
    function = function_of(verb)
    parameters = inspect.signature(function).parameters
    assert [name for name in parameters if name != "self"] == [one.name for one in of_verb(verb.name)]
    for one in of_verb(verb.name):
        default = inspect.Parameter.empty if one.required_in(verb) else one.default_in(verb.name)
        assert parameters[one.name].default == default, one.name
        assert f"{one.name}: {one.text_in(verb.name)}" in " ".join(function.__doc__.split()), one.name


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_keyword_that_is_not_there_is_told_the_right_one(verb: Verb) -> None:
    function = function_of(verb)
    with pytest.raises(TypeError, match=rf"^akrunner.{verb.name}: there is no option 'engin' for .*did you mean 'engine'"):
        function(*(["model"] if verb.of_class else []), **{"engin": "local"})
    other = "model_out" if verb.name not in ("train", "plan") else "watch"
    with pytest.raises(TypeError, match=rf"{other}= means nothing for {verb.name}: it is an option of "):
        function(**{other: None})


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
