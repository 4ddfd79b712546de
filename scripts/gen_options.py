"""Write what repeats the table of options (`akrunner.options`): `scripts/gen-options`."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from akrunner.engines.base import Stats, TaskResult
from akrunner.errors import TaskFailure
from akrunner.jobfile import HEADS, JOB, JOB_TEXT, head_of, schema
from akrunner.options import COMMANDS, OPTIONS, VERBS, Option, Verb, of_command, of_verb

ROOT = Path(__file__).resolve().parents[1]
#: lines of docstrings
_WIDTH = 132
_BEGIN, _END = "# options: written by scripts/gen-options\n", "# end of what scripts/gen-options writes\n"

_HEAD = {
    "akrunner/verbs.py": '''\
"""`akrunner.run`, `train`, `stream` and `plan`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from akrunner.api import run_batch, run_stream, run_train
from akrunner.engines.base import Engine, Observer
from akrunner.jobfile import from_file, given
from akrunner.options.told import told
from akrunner.planning.making import plan_job
from akrunner.planning.plan import Plan
from akrunner.prepare.arguments import Arguments, CsvLike, NotifyLike, PathLike, SchemaLike, ScriptLike, SplitLike
from akrunner.running.result import Result
from akrunner.sequences import SequenceNotStr
from akrunner.stream_job import StreamJob

__all__ = ["plan", "run", "stream", "train"]
''',
    "akrunner/serving/verbs.py": '''\
"""`akrunner.predict` and `predict_stream`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from akrunner.engines.base import Engine, Observer
from akrunner.jobfile import from_file, given
from akrunner.options.told import told
from akrunner.prepare.arguments import CsvLike, NotifyLike, PathLike, SchemaLike
from akrunner.running.result import Result
from akrunner.sequences import SequenceNotStr
from akrunner.serving.arguments import ModelLike, PredictArguments
from akrunner.serving.job import run_predict, run_predict_stream
from akrunner.serving.planned import PredictPlan, plan_prediction
from akrunner.serving.watching import WatchLike
from akrunner.stream_job import StreamJob

__all__ = ["plan_predict", "predict", "predict_stream"]
''',
    "akrunner/flink.py": '''\
"""Jobs inside a PyFlink program: a Table in, a Table out. Written by scripts/gen-options from `akrunner.options`: change that, and run it.

    >>> from akrunner import flink
    >>> job = flink.stream("score.py", t_env.from_path("clicks"), output_schema="id bigint, p double")
    >>> job.table.execute_insert("scores")
    >>> scored = flink.predict("model.zip", t_env.from_path("clicks")).table

Nothing runs before the program executes the table; each task runs beside a subtask of the program's own Flink job, and its rows go to it
and on without leaving that machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from akrunner.engines.base import Observer
from akrunner.engines.flink.host.attached import Attached
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.options.told import told
from akrunner.prepare.arguments import Arguments, PathLike, SchemaLike, ScriptLike
from akrunner.programs import predicted, scripted, streamed
from akrunner.sequences import SequenceNotStr
from akrunner.serving.arguments import ModelLike, PredictArguments

__all__ = ["Attached", "FlinkEngine", "predict", "run", "stream"]
''',
    "akrunner/packing/verbs.py": '''\
"""`akrunner.pack`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from akrunner.io.paths import PathLike
from akrunner.options.told import told
from akrunner.packing.job import run_pack
from akrunner.packing.progress import PackProgress
from akrunner.packing.result import Packed
from akrunner.packing.settings import PackArguments, Split
from akrunner.schema import Schema

__all__ = ["pack"]
''',
    "akrunner/pai_mode/verbs.py": '''\
"""`akrunner.pai`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from akrunner.engines.base import Engine, Observer
from akrunner.options.told import told
from akrunner.pai_mode.arguments import PaiArguments
from akrunner.pai_mode.job import Done, run_pai
from akrunner.prepare.arguments import NotifyLike, PathLike
from akrunner.running.result import Result
from akrunner.sequences import SequenceNotStr

__all__ = ["pai"]
''',
}
#: files that are written in part -> what, in their order: the fields of a class, its `__init__`, a function
_PARTS: Mapping[str, Sequence[str]] = {
    "akrunner/prepare/arguments.py": ["Arguments"],
    "akrunner/serving/arguments.py": ["PredictArguments"],
    "akrunner/serving/local.py": ["LocalPredictor"],
    "akrunner/packing/settings.py": ["PackArguments"],
    "akrunner/pai_mode/arguments.py": ["PaiArguments"],
    "akrunner/warming.py": ["WarmArguments", "warm"],
    "akrunner/checkup/__init__.py": ["DoctorArguments", "doctor"],
}


def pages() -> dict[str, str]:
    """File -> its text, as the table has it."""
    functions = {
        home: "\n\n".join([head, *(_function(verb) for verb in VERBS if verb.home == home)]) for home, head in _HEAD.items()
    }
    return {
        **functions,
        **{home: _parts(home, names) for home, names in _PARTS.items()},
        "docs/options.md": reference(),
        "docs/job.schema.json": json.dumps(schema(), indent=1) + "\n",
        "docs/result.schema.json": json.dumps(results(), indent=1) + "\n",
    }


#: a type of Python -> the same in JSON Schema; a float that is no finite number is null in JSON
_JSON_TYPES: Mapping[Any, Any] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},
    str: {"type": "string"},
    Any: {},
}
#: what is written besides the fields of the dataclasses
_OF_RESULT = {
    "ok": ({"const": True}, "the job has succeeded"),
    "exit_code": ({"const": 0}, "the exit code of the command"),
    "output": ({"type": ["string", "null"]}, "where the rows, or the model, are"),
    "rows_out": ({"type": "integer"}, "how many rows the scripts wrote"),
    "work_dir": ({"type": ["string", "null"]}, "the directory of the job, if it was kept"),
    "run": ({"type": ["string", "null"]}, "the name under which the run is kept (`akrunner show RUN`)"),
}
_OF_FAILURE = {
    "ok": ({"const": False}, "the command has failed"),
    "error": (
        {"type": "string"},
        "the class of the error, as in `akrunner.errors`; Interrupted or Terminated if a signal came, UsageError of a command line, "
        "InternalError of a fault of akrunner",
    ),
    "message": ({"type": "string"}, "what went wrong, and what to change"),
    "exit_code": ({"enum": [1, 2, 3, 4, 70, 124, 129, 130, 131, 143]}, "the exit code of the command"),
    "error_code": (
        {"type": ["string", "null"]},
        "the short code of the message, such as AK301: `akrunner explain AK301` says cause and cure; null if a signal came",
    ),
    "failure": (
        {"oneOf": [{"$ref": "#/$defs/task_failure"}, {"type": "null"}]},
        "the task that failed first, if one is to blame",
    ),
    "others": ({"type": "array", "items": {"$ref": "#/$defs/task_failure"}}, "how the other tasks ended"),
    "warnings": ({"type": "array", "items": {"type": "string"}}, "what happened before that"),
    "work_dir": ({"type": ["string", "null"]}, "the directory of the job, or of its logs, if it was kept"),
    "run": ({"type": ["string", "null"]}, "the name under which the run is kept (`akrunner show RUN`)"),
    "log": ({"type": ["string", "null"]}, "the whole log of the task that failed first"),
}
#: what only some failures have
_OF_SOME = {
    "row": ({"type": "integer"}, "the row, counted from 0, that cannot be converted"),
    "column": ({"type": "string"}, "its column"),
    "broken": ({"type": "array"}, "[path, why] of each file that is damaged"),
    "unfetched": ({"type": "array"}, "[path, why] of each file that could not be fetched"),
    "statement": ({"type": "integer"}, "which of several SQL statements failed, from 1"),
    "results": ({"type": "array"}, "what the statements before it did"),
    "lines": ({"type": "array"}, "lines of a job whose cluster is gone"),
}
_SUBMITTED = {
    "ok": ({"const": True}, "the job was submitted (`--detach`), and runs"),
    "exit_code": ({"const": 0}, "the exit code of the command"),
    "job": ({"type": "string"}, "Flink's id of the job"),
    "master": ({"type": "string"}, "the address of the cluster"),
    "name": ({"type": "string"}, "the name that Flink shows"),
    "run": ({"type": ["string", "null"]}, "the name under which the run is kept (`akrunner show RUN`)"),
}
#: what a notification has besides the result or the failure
_ABOUT = {
    "id": ({"type": "string"}, "the same in every try to tell this end, and in no other one"),
    "verb": ({"type": "string"}, "run, train, stream, predict, predict_stream or pai"),
    "script": ({"type": "string"}, "the name of the script, or of the model"),
    "machine": ({"type": "string"}, "the machine of the process that ran the job"),
    "began": ({"type": "number"}, "when it began, in seconds since 1970"),
    "ended": ({"type": "number"}, "when it ended"),
}


def results() -> dict[str, Any]:
    """The schema of what `--json` prints of a job, and of what `notify=` is told."""
    stats, task = ({"$ref": f"#/$defs/{name}"} for name in ("stats", "task"))
    result = {
        **_OF_RESULT,
        "stats": (stats, "numbers of the job"),
        "tasks": ({"type": "array", "items": task}, "the result of each task"),
    }
    about = {"about": (_object(_ABOUT), "of a notification: which job it is")}
    last = {"metrics": ({"type": "object"}, "of a notification: task -> what it reported last")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The end of a job of akrunner",
        "description": "Written by scripts/gen-options. What --json prints of run, train, stream and predict, and what notify= is told. "
        "Fields may be added; none goes away, or gets another type, within a major version.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in ("result", "submitted", "failed")],
        "$defs": {
            "result": _object(result, {**about, **last}),
            "submitted": _object(_SUBMITTED),
            "failed": _object(_OF_FAILURE, {**_OF_SOME, **about}),
            "stats": _of_dataclass(Stats),
            "task": _of_dataclass(TaskResult),
            "task_failure": _of_dataclass(TaskFailure),
        },
    }


def _object(
    needed: Mapping[str, tuple[Any, str]], some: Mapping[str, tuple[Any, str]] = MappingProxyType({})
) -> dict[str, Any]:
    """The schema of an object. Args: needed: the fields that it always has, each with its schema and what it is; some: those that it may have."""
    fields = {name: {**kind, "description": text} for name, (kind, text) in {**needed, **some}.items()}
    return {"type": "object", "properties": fields, "required": list(needed)}


def _of_dataclass(kind: type) -> dict[str, Any]:
    """The schema of a dataclass, whose docstring describes its fields."""
    said = " " + " ".join((kind.__doc__ or "").partition("Attributes:")[2].split())
    types = typing.get_type_hints(kind)
    names = [one.name for one in dataclasses.fields(kind)]
    ends = [said.index(f" {name}: ") for name in names] + [len(said)]
    texts = {name: said[begin + len(name) + 3 : end].strip().rstrip(".") for name, begin, end in zip(names, ends, ends[1:])}
    return _object({name: (_json_type(types[name]), texts[name]) for name in names})


def _json_type(kind: Any) -> dict[str, Any]:
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if type(None) in inside:
        return {"type": [_json_type(inside[0])["type"], "null"]}
    if origin in (list, tuple):
        return {"type": "array", "items": _json_type(inside[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _json_type(inside[1])}
    return dict(_JSON_TYPES[kind])


def _function(verb: Verb) -> str:
    options = of_verb(verb.name)
    lines = [
        *([f'@from_file("{verb.name.removeprefix("plan_")}")'] if head_of(verb.name) else []),
        f'@told("{verb.name}")',
        *(["def __init__(", "    self,"] if verb.of_class else [f"def {verb.function}("]),
    ]
    head, named = head_of(verb.name), False
    for one in options:
        if one.name not in verb.positional and not named:
            lines += ["    *,", *(["    job: PathLike | None = None,"] if head else [])]
            named = True
        kind, default = one.type_in(verb.name), "" if one.required_in(verb) else f" = {_value(one.default_in(verb.name))}"
        if one.name == head:
            # or a job file says it
            kind, default = f"{kind} | None", " = None"
        lines.append(f"    {one.name}: {kind}{default},")
    lines += [f") -> {verb.returns}:", *_docstring(verb)]
    lines += [f"    {'' if verb.of_class else 'return '}{verb.does}(", f"        {verb.arguments}("]
    apart = [one.name for one in options if one.apart or one.name in verb.apart]
    lines += [
        f"            {one.name}={f'given({head})' if one.name == head else one.name},"
        for one in options
        if one.name not in apart
    ]
    lines += ["        ),"]
    lines += [f"        {name}={name}," for name in apart]
    return "\n".join([*lines, "    )", ""])


def _docstring(verb: Verb) -> Iterator[str]:
    text, closing = (textwrap.indent(one, "    ").splitlines() for one in (verb.text, verb.closing))
    yield '    """' + text[0].strip()
    yield from text[1:]
    yield ""
    yield "    Args:"
    said = [(one.name, one.text_in(verb.name)) for one in of_verb(verb.name)]
    if head_of(verb.name):
        said.insert(len(verb.positional), (JOB, JOB_TEXT))
    for name, words in said:
        yield from textwrap.wrap(
            f"{name}: {words}",
            _WIDTH - 4 * verb.of_class,
            initial_indent=" " * 8,
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
        )
    yield from closing
    yield '    """'


def _value(value: Any) -> str:
    if isinstance(value, tuple) and value:
        return f"({', '.join(map(_value, value))}{',' * (len(value) == 1)})"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _parts(home: str, names: Sequence[str]) -> str:
    """A module with those parts of it as the table has them."""
    text = (ROOT / home).read_text()
    for number, name in enumerate(names):
        *before, rest = text.split(_BEGIN, number + 1)
        ahead = _BEGIN.join(before)
        indent = ahead[ahead.rindex("\n") + 1 :]
        _, _, after = rest.partition(indent + _END)
        verb = next((verb for verb in VERBS if verb.name == name), None)
        made = (
            _function(verb) + "\n" * (1 if indent else 2) if verb is not None else "".join(f"{one}\n" for one in _fields(name))
        )
        text = f"{ahead}{_BEGIN}{textwrap.indent(made, indent)}{indent}{_END}{after}"
    return text


def _fields(name: str) -> Iterator[str]:
    verbs = [verb for verb in VERBS if verb.arguments == name and not verb.takes]
    carried = [one for one in OPTIONS if not one.apart and {verb.name for verb in verbs} & set(one.verbs)]
    always = [one.name for one in carried if all(one.required_in(verb) for verb in verbs)]
    first = [*always, *dict.fromkeys(name for verb in verbs for name in verb.positional)]
    for one in sorted(carried, key=lambda one: first.index(one.name) if one.name in first else len(first)):
        kind, default = _of_class(one, [verb.name for verb in verbs])
        value = f" = field(default={_value(default)}, repr=False)" if one.private else f" = {_value(default)}"
        yield f"{one.name}: {kind}{'' if one.name in always else value}"


def _of_class(option: Option, verbs: Sequence[str]) -> tuple[str, Any]:
    """An option's annotation, and its default, in what carries it; where verbs differ, those that most have."""
    alone = verbs[0] if len(verbs) == 1 else ""
    kind = option.type_in(alone)
    # akrunner's own callers have a word of the command line there
    plain = re.sub(r"Literal\[.*?\]", "str", kind)
    return option.inner if option.inner and alone not in option.types else plain, option.default_in(alone)


#: verbs with a section of their own: what their options do is said there, whole
_APART = ("pai", "pack", "warm", "doctor")
_SECTIONS = {
    "pai": "`akrunner.pai` and `akrunner pai`",
    "pack": "`akrunner.pack` and `akrunner pack`",
    "warm start": "`akrunner.warm` and `akrunner warm start`",
    "doctor": "`akrunner.doctor` and `akrunner doctor`",
    "replay": "`akrunner replay`",
    "init": "`akrunner init`",
}
_INTRODUCTION = """\
# Options

Written by `scripts/gen-options` from `akrunner/options/`. Each is a keyword of the functions in its second column \
(`akrunner.run`, `train`, `stream`, `predict`, `predict_stream`, `LocalPredictor`); below it, how the commands \
`akrunner run`, `train`, `stream` and `predict` call it, if they have it. `akrunner.flink.run`, `stream` and `predict`, for programs of \
PyFlink, take those of `run`, `stream` and `predict_stream` that do not say where rows are. `pai`, `pack`, `warm`, `doctor` and the commands \
`replay` and `init` have sections of their own, at the end, with all they take. What stands in the second column as a command is not in Python.

A variable `AKRUNNER_<NAME>` below it gives the commands its default, where it is a matter of the machine or the person and \
not of the job: a flag wins over it, and an error that is about its value names it. `AKRUNNER_FLINK_MASTER` is the default of \
`--flink-master` with `--engine flink`.

An option that means nothing beside the others (`overwrite=` without `output=`, `--evaluator-timeout` without `--evaluator`) is an error \
that names what it needs, in Python, on the command line and in job files; a default of such a variable is none.

Rare options are flat names like the others, under headings here, in `--help-all` and in the schema of job files. Values that hold several of them \
(`Resources(cpus_per_worker=2)`, `Supervision(timeout=60)`) were tried on the examples: one of them uses such an option at all, its call became longer, and \
every option would have had a second name beside its flag, its variable and its key in a job file."""


def reference() -> str:
    """The page of the options."""
    lines = [_INTRODUCTION]
    of_jobs = [one for one in OPTIONS if _takers(one)]
    for group in dict.fromkeys(one.group for one in of_jobs):
        lines += ["", f"## {group}", "", "| option | of | default | |", "| --- | --- | --- | --- |"]
        for one in of_jobs:
            if one.group == group and not one.hidden:
                names = [f"`{one.name}`"] if set(one.verbs) - set(_APART) else []
                names += [f"`{word}`" for word in (", ".join(_of_jobs(one)), one.variable) if word]
                lines.append(f"| {'<br>'.join(names)} | {', '.join(_takers(one))} | {_default(one)} | {_cell(one)} |")
    for name, title in _SECTIONS.items():
        lines += ["", f"## {title}", "", "| option | default | |", "| --- | --- | --- |", *_section(name)]
    return "\n".join([*lines, ""])


def _of_jobs(option: Option) -> Sequence[str]:
    """The flags of an option as commands of jobs have it; of others it may be what stands without one."""
    command = next((name for name in ("run", "train", "stream", "predict") if option in of_command(name)), None)
    return option.words_in(command) if command is not None else option.words


def _takers(option: Option) -> list[str]:
    """Who takes it, of those who run jobs."""
    commands = [f"`akrunner {name}`" for name in option.commands if name in HEADS]
    return [*(verb for verb in option.verbs if verb not in _APART), *commands]


def _default(option: Option) -> str:
    verbs = [verb for verb in option.verbs if verb not in _APART]
    if verbs and set(verbs) <= set(option.required):
        return "required"
    others = [f"{verb}: `{_value(value)}`" for verb, value in option.defaults.items() if verb in verbs or "." in verb]
    required = [verb for verb in option.required if verb not in _APART]
    return "; ".join([f"`{_value(option.default)}`", *others, *([f"required by {', '.join(required)}"] if required else [])])


def _cell(option: Option) -> str:
    if not set(option.verbs) - set(_APART):
        return next(option.help_in(name) for name in option.commands).replace("|", "\\|")
    other: dict[str, list[str]] = {}
    for verb, text in [*option.instead.items(), *option.also.items()]:
        if verb not in _APART:
            other.setdefault(text, []).append(f"`{verb}`")
    return " ".join([option.text, *(f"{', '.join(verbs)}: {text}" for text, verbs in other.items())]).replace("|", "\\|")


def _section(name: str) -> Iterator[str]:
    """The rows of a command, and its function if it has one."""
    command = COMMANDS[name]
    verb = next((verb for verb in VERBS if verb.name in command.verbs), None)
    taken = of_verb(verb.name) if verb is not None else ()
    has = of_command(name)
    for one in (*taken, *(one for one in has if one not in taken and not one.hidden)):
        words = one.words_in(name) if one in has else ()
        names = [f"`{one.name}`"] if one in taken else []
        names += [f"`{', '.join(words)}`"] if words else [f"`{one.many_in(name) or one.name.upper()}`"] if one in has else []
        names += [f"`{one.variable_in(name)}`"] if one in has and one.variable_in(name) else []
        default = f"`{_value(one.default_in(verb.name if verb is not None else name))}`"
        if name in one.defaults and name not in command.verbs:
            default += f"; the command: `{_value(one.defaults[name])}`"
        if (verb is not None and one.required_in(verb)) or name in one.needed:
            default = "required"
        text = one.text_in(verb.name) if verb is not None and one in taken else one.help_in(name)
        yield f"| {'<br>'.join(names)} | {default} | {text.replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text)
