"""The table of options, and what is written from it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import akrunner
from akrunner.cli.main import main
from akrunner.jobfile import head_of
from akrunner.options import COMMANDS, OPTIONS, VERBS, Command, Verb, carried, meaningless, misfit, named, of_command, of_verb
from akrunner.options.naming import IN_SCRIPTS
from akrunner.spec import JobSpec, ResourceSpec, SupervisionSpec
from akrunner.worker.config import BatchTaskConfig
from tests.trees import functions, nodes

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
    texts = [path.read_text() for path in (ROOT / "akrunner" / "options").glob("*.py")]
    calls = [
        node for text in texts for node in nodes(text) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Option"
    ]
    assert len(calls) == len(names)
    assert all(one.verbs or one.commands for one in OPTIONS)


_WRITTEN = re.compile("# options: written by scripts/gen-options\n.*?# end of what scripts/gen-options writes\n", re.DOTALL)


def _read_by_hand(text: str) -> set[str]:
    """Names that a module reads, or mentions as text. Args: text: of the module, without what scripts/gen-options writes."""
    read = set()
    for node in nodes(text):
        if isinstance(node, ast.Attribute):
            read.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            read.add(node.value)
    return read


def test_every_option_is_used() -> None:
    """One that is declared only would be accepted everywhere, and change nothing."""
    package = ROOT / "akrunner"
    files = [
        path for path in package.rglob("*.py") if path.parent.name != "options" and path.name not in ("verbs.py", "flink.py")
    ]
    unread = {one.name for one in OPTIONS}
    for path in files:
        text = _WRITTEN.sub("\n", path.read_text())
        # most files mention none of those that no file before them has read
        if any(name in text for name in unread):
            unread -= _read_by_hand(text)
    assert not unread


#: the class of each verb's arguments, and the classes of arguments that several of these have
TAKEN = {
    "run": "Arguments",
    "train": "Arguments",
    "stream": "Arguments",
    "predict": "PredictArguments",
    "predict_stream": "PredictArguments",
}
PARTS = {"Reads", "LaidOut", "Asked"}


class _Function:
    """A function that is asked about for each verb. Attributes: node: it; kinds: each parameter -> the names in its annotation."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node = node
        named = [*node.args.args, *node.args.kwonlyargs]
        self.kinds = {
            one.arg: {getattr(n, "id", "") for n in ast.walk(one.annotation)} for one in named if one.annotation is not None
        }

    @functools.cached_property
    def read(self) -> list[ast.Attribute | ast.Name]:
        """The attributes of names, and the names, that it reads."""
        return [
            node
            for node in ast.walk(self.node)
            if (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
            or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        ]


def _read_from(functions: list[_Function], classes: set[str]) -> set[str]:
    """Names that functions read: of their arguments of one of the classes, and, beside such an argument, their own arguments."""
    read = set()
    for function in functions:
        given = {name for name, kinds in function.kinds.items() if classes & kinds}
        for node in function.read if given else ():
            if isinstance(node, ast.Name):
                read.add(node.id)
            elif isinstance(node.value, ast.Name) and node.value.id in given:
                read.add(node.attr)
    return read


def _unheeded(functions: list[_Function]) -> list[str]:
    """Verbs and their options that no function reads from the arguments of the verb."""
    found = []
    for verb, kind in TAKEN.items():
        read = _read_from(functions, {kind, *PARTS})
        found += [f"{verb}: {one.name}" for one in OPTIONS if verb in one.verbs and one.name not in read]
    return found


@functools.cache
def _functions() -> list[_Function]:
    """Those of the files that mention a class of arguments."""
    classes = {*TAKEN.values(), *PARTS}
    texts = [path.read_text() for path in (ROOT / "akrunner").rglob("*.py") if path.parent.name != "options"]
    mention = [text for text in texts if any(name in text for name in classes)]
    return [_Function(one) for text in mention for one in functions(text)]


def test_every_verb_uses_its_options() -> None:
    """An option of run and predict that only prepare/job.py uses would be accepted by predict, and change nothing there."""
    assert _unheeded(_functions()) == []


def test_an_option_that_only_one_verb_uses_is_noticed() -> None:
    scripts = [one for one in _functions() if "PredictArguments" not in ast.unparse(one.node.args)]
    missed = _unheeded(scripts)
    assert {"predict: reserved_cols", "predict: batch_size", "predict: env"} <= set(missed)
    assert not [one for one in missed if not one.startswith("predict") or one.endswith((": select", ": partition_by"))]


#: modules of the commands whose options come from the table
_COMMANDS = ("running", "streaming", "predicting", "pai", "pack", "warm", "doctor", "replaying", "init")


@pytest.mark.parametrize("name", _COMMANDS)
def test_no_command_declares_an_option(name: str) -> None:
    """They have them from the table."""
    text = (ROOT / "akrunner" / "cli" / f"{name}.py").read_text()
    assert "typer.Option(" not in text and "typer.Argument(" not in text


def _defaults(path: Path) -> Iterator[tuple[str, str, str]]:
    """(function, option, default) of each parameter in a module that is called as an option and has a default of its own."""
    known = {one.name for one in OPTIONS}
    for node in functions(path.read_text()):
        named = [*node.args.posonlyargs, *node.args.args]
        pairs = [*zip(named[len(named) - len(node.args.defaults) :], node.args.defaults)]
        pairs += [(one, value) for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults) if value is not None]
        for one, value in pairs:
            if one.arg in known and ast.unparse(value) != "None":
                yield node.name, one.arg, ast.unparse(value)


#: by hand: what is called as an option, and is another thing
OTHERS = {
    ("serving/local.py", "close", "timeout"),
    ("detached/lines.py", "logs", "follow"),
    # parts of a shell script's run
    ("pai_mode/job.py", "read", "arguments"),
    ("pai_mode/job.py", "script", "arguments"),
    ("pai_mode/job.py", "called", "quiet"),
    ("pai_mode/job.py", "_planned", "tables"),
    ("pai_mode/plan.py", "planned", "tables"),
    ("pai_mode/shell/calls.py", "_add", "file"),
    # the flag of the table
    ("cli/warm.py", "status", "as_json"),
    ("cli/warm.py", "stop", "as_json"),
}


#: what no command has: Python's objects, and what stands on the command line in another way
PYTHON_ONLY = {"observer", "progress", "script_args", "arguments", "preload"}


def test_no_default_is_written_by_hand() -> None:
    """Between the table and the job: what is generated has them, and nobody else."""
    package = ROOT / "akrunner"
    places = ["api.py", "warming.py"]
    places += [f"cli/{one}.py" for one in (*_COMMANDS, "given", "engines", "statements", "odpscmd")]
    rooms = ("prepare", "serving", "detached", "packing", "pai_mode", "checkup")
    places += [str(one.relative_to(package)) for room in rooms for one in sorted((package / room).rglob("*.py"))]
    found = {(place, *one[:2]) for place in places for one in _defaults(package / place)}
    generated = {
        (verb.home.removeprefix("akrunner/"), "__init__" if verb.of_class else verb.name, one.name)
        for verb in VERBS
        for one in of_verb(verb.name)
    }
    assert found - generated == OTHERS


@pytest.mark.parametrize("spec", [JobSpec, SupervisionSpec, ResourceSpec])
def test_what_a_job_is_made_of_has_no_other_defaults(spec: Any) -> None:
    declared = {one.name: one.default for one in OPTIONS if one.verbs}
    for one in dataclasses.fields(spec):
        if (
            one.name in declared
            and one.default is not dataclasses.MISSING
            and one.default not in (None, "", declared[one.name])
        ):
            raise AssertionError(f"{spec.__name__}.{one.name} is {one.default!r}, and the option {declared[one.name]!r}")


def test_every_option_is_of_a_verb_and_a_command_that_there_are() -> None:
    known = {verb.name for verb in VERBS}
    for one in OPTIONS:
        assert set(one.verbs) <= known and set(one.commands) <= set(COMMANDS), one.name
        of_it = {verb for verb in known if one in of_verb(verb)}
        has_it = {name for name, command in COMMANDS.items() if {*one.verbs} & {*command.verbs} or name in one.commands}
        assert {*one.required, *one.also, *one.instead, *one.types} <= of_it, one.name
        assert {*one.helps, *one.flagged, *one.stands, *one.needed, *one.manys, *one.unheeded} <= has_it, one.name
        assert set(one.defaults) <= of_it | has_it and (isinstance(one.often, bool) or set(one.often) <= has_it), one.name
        assert set(one.needs) <= known | set(COMMANDS) and all(named(name) for names in one.needs.values() for name in names), (
            one.name
        )
        assert not one.commands or any(one.help_in(command) for command in one.commands), one.name
        assert one.text.endswith(".") if one.verbs else not one.text, one.name


def function_of(verb: Verb) -> Any:
    """The public function of a verb, or a class's `__init__`."""
    found = getattr(importlib.import_module(verb.home[:-3].removesuffix("/__init__").replace("/", ".")), verb.function)
    return found.__init__ if verb.of_class else found


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_hands_every_option_on(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def taken(given: Any, **apart: Any) -> None:
        seen.append((given, apart))

    values: dict[str, Any] = {one.name: object() for one in of_verb(verb.name)}
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
    head = head_of(verb.name)
    assert [name for name in parameters if name not in ("self", "job" if head else "")] == [
        one.name for one in of_verb(verb.name)
    ]
    assert ("job" in parameters) == bool(head)
    for one in of_verb(verb.name):
        default = inspect.Parameter.empty if one.required_in(verb) and one.name != head else one.default_in(verb.name)
        assert parameters[one.name].default == default, one.name
        assert f"{one.name}: {one.text_in(verb.name)}" in " ".join(function.__doc__.split()), one.name


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_keyword_that_is_not_there_is_told_the_right_one(verb: Verb) -> None:
    function = function_of(verb)
    meant = "engine" if "engine" in carried(verb.name) else of_verb(verb.name)[-1].name
    words = rf"^akrunner.{verb.name}: there is no option '{meant[:-1]}' for .*did you mean '{meant}'"
    with pytest.raises(TypeError, match=words):
        function(*(["model"] if verb.of_class else []), **{meant[:-1]: "local"})
    other = "model_out" if verb.name not in ("train", "plan") else "watch"
    with pytest.raises(TypeError, match=rf"{other}= means nothing for {verb.name}: it is an option of "):
        function(**{other: None})


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_a_flag_that_is_misspelt_is_told_the_right_one(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [word for one in of_command(command.name) if not one.hidden for word in one.words_in(command.name)]
    long = max((flag.partition("/")[0] for flag in flags), key=len)
    assert main([*command.name.split(), long[:-1] + "x", "--json"]) == 2
    assert f"{long}" in json.loads(capsys.readouterr().out)["message"]


def test_a_command_has_what_its_functions_have() -> None:
    """Or the reference says that it is of Python alone."""
    for command in COMMANDS.values():
        has = of_command(command.name)
        for verb in command.verbs:
            # what a stream gives back is Python's; arguments of a shell script stand behind it
            left = {one.name for one in of_verb(verb) if one not in has and one.name not in ("source", "output")}
            assert left <= PYTHON_ONLY, (command.name, left)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("num_worker", "there is no option 'num_worker' for predict; did you mean 'num_workers'?"),
        ("evaluator", "evaluator= means nothing for predict: it is an option of run, train, stream"),
        ("xyzzy", "there is no option 'xyzzy' for predict"),
        ("quiet", "quiet= means nothing for predict: it is an option of the command only, akrunner predict --quiet"),
    ],
)
def test_what_is_misspelt_or_misplaced_is_told(name: str, words: str) -> None:
    assert misfit(["timeout", name], "predict", carried("predict")) == words
    assert misfit(["timeout"], "predict", carried("predict")) is None


def test_an_option_of_another_verb_is_told_with_those_that_are_called_alike() -> None:
    words = misfit(["seed"], "run", carried("run"))
    assert words == (
        "seed= means nothing for run: it is an option of pack, and an argument of task_config.dataset(), which the script calls; run has split_seed="
    )


@pytest.mark.parametrize(
    ("verb", "name", "words"),
    [
        ("run", "output_live", "output_live= means nothing for run: it is an option of akrunner stream and akrunner predict"),
        (
            "plan",
            "shuffle",
            "shuffle= means nothing for plan: it is an argument of task_config.dataset(), which the script calls",
        ),
        (
            "train",
            "nulls",
            "nulls= means nothing for train: it is an argument of task_config.batches(), which the script calls",
        ),
        ("train", "output", "output= means nothing for train: it is an option of run, predict, pack; train has model_out="),
        ("predict", "shuffle", "there is no option 'shuffle' for predict"),
    ],
)
def test_what_stands_in_the_wrong_place(verb: str, name: str, words: str) -> None:
    assert misfit([name], verb, [one.name for one in of_verb(verb)]) == words


#: what means nothing beside what is not there, or there
_IDLE = [
    ("run", {"overwrite": True}, "overwrite= (--overwrite) means nothing without output= (--output); leave it out, or give both"),
    ("train", {"overwrite": True}, "overwrite= (--overwrite) means nothing without model_out= (--model-out)"),
    ("predict", {"output_format": "csv"}, "output_format= (--output-format) means nothing without output= (--output)"),
    ("run", {"evaluator_timeout": 60.0}, "evaluator_timeout= (--evaluator-timeout) means nothing without evaluator= (--evaluator)"),
    ("flink.stream", {"evaluator_timeout": 1}, "evaluator_timeout= (--evaluator-timeout) means nothing without evaluator="),
    ("plan", {"verb": "train", "overwrite": True}, "overwrite= (--overwrite) means nothing without model_out="),
    ("plan_predict", {"overwrite": True}, "overwrite= (--overwrite) means nothing without output="),
    ("run", {"columns": ["a"], "tables": ["t"]}, "columns= (--columns) means nothing without source= (--input)"),
    ("run", {"source": "t", "split_seed": 0}, "split_seed= (--split-seed) means nothing without split= (--split)"),
    ("pack", {"split_by": "exact"}, "split_by= (--split-by) means nothing without split= (--split)"),
    ("predict_stream", {"watch_seconds": 1.0}, "watch_seconds= (--watch-seconds) means nothing without watch= (--watch)"),
    ("run", {"parallelism": 4, "num_workers": 3, "num_ps": 1}, "parallelism= (--parallelism) means nothing beside both num_workers= and num_ps="),
    ("stream", {"stall_timeout": 0, "stall_action": "warn"}, "stall_action= (--stall-action) means nothing with stall_timeout=0"),
    ("run", {"advertised_host": "h"}, "advertised_host= (--advertised-host) means nothing for one worker alone on this machine"),
    ("train", {"bind_host": "h", "num_workers": 1, "engine": "local"}, "bind_host= (--bind-host) means nothing for one worker alone on this machine"),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "given", "words"), _IDLE)
def test_what_means_nothing_beside_the_others_is_told(verb: str, given: dict[str, Any], words: str) -> None:
    assert (meaningless(verb, given, given) or "").startswith(words)
    function = function_of(next(one for one in VERBS if one.name == verb))
    ahead = {name: "x" for name in ("script", "model", "output") if verb in named(name).required}
    with pytest.raises(akrunner.ConfigError, match=re.escape(words)):
        function(**{**ahead, **given})


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("run", {"overwrite": True, "output": "o.csv"}),
        ("run", {"overwrite": False, "output_format": None, "defaults": {}, "advertised_host": None}),
        ("train", {"overwrite": True, "model_out": "m"}),
        ("pack", {"overwrite": True}),
        ("pai", {"evaluator_timeout": 1.0, "advertised_host": "h"}),
        ("run", {"parallelism": 4, "num_workers": 3}),
        ("run", {"stall_action": "warn"}),
        *(("run", {"advertised_host": "h", **more}) for more in ({"num_workers": 2}, {"chief": True}, {"evaluator": True}, {"engine": "flink"})),
        ("flink.run", {"advertised_host": "h"}),
        ("run", {"advertised_host": "h", "num_workers": object(), "parallelism": object(), "num_ps": object()}),
    ],
)  # fmt: skip
def test_what_means_something_is_not(verb: str, given: dict[str, Any]) -> None:
    assert meaningless(verb, given, given) is None


def test_what_is_said_to_be_of_scripts_is_an_argument_there() -> None:
    for name, said in IN_SCRIPTS.items():
        for method in (BatchTaskConfig.dataset, BatchTaskConfig.batches):
            assert (name in inspect.signature(method).parameters) is (method.__name__ in said), name
