"""Write what repeats the table of options (`akrunner.options`): `scripts/gen-options`."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any, Dict, Iterator, List

from akrunner.jobfile import schema
from akrunner.options import OPTIONS, VERBS, Option, Verb, of_verb

ROOT = Path(__file__).resolve().parents[1]
#: lines of docstrings
_WIDTH = 132
_BEGIN, _END = "    # options: written by scripts/gen-options\n", "    # end of what scripts/gen-options writes\n"

_HEAD = {
    "akrunner/verbs.py": '''\
"""L4: `akrunner.run`, `train`, `stream` and `plan`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Sequence, Union

from akrunner.api import Result, run_batch, run_stream, run_train
from akrunner.engines.base import Engine, Observer
from akrunner.jobfile import from_file
from akrunner.options.told import told
from akrunner.planning import Plan, plan_job
from akrunner.prepare import Arguments, PathLike, SchemaLike, ScriptLike, SplitLike
from akrunner.stream_job import StreamJob

__all__ = ["plan", "run", "stream", "train"]
''',
    "akrunner/serving/verbs.py": '''\
"""`akrunner.predict` and `predict_stream`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Sequence, Union

from akrunner.api import Result
from akrunner.engines.base import Engine, Observer
from akrunner.jobfile import from_file
from akrunner.options.told import told
from akrunner.prepare import PathLike, SchemaLike
from akrunner.serving.arguments import ModelLike, PredictArguments
from akrunner.serving.job import run_predict, run_predict_stream
from akrunner.serving.planned import PredictPlan, plan_prediction
from akrunner.serving.watching import WatchLike
from akrunner.stream_job import StreamJob

__all__ = ["plan_predict", "predict", "predict_stream"]
''',
    "akrunner/flink.py": '''\
"""L4: jobs inside a PyFlink program: a Table in, a Table out. Written by scripts/gen-options from `akrunner.options`: change that, and run it.

    >>> from akrunner import flink
    >>> job = flink.stream("score.py", t_env.from_path("clicks"), output_schema="id bigint, p double")
    >>> job.table.execute_insert("scores")
    >>> scored = flink.predict("model.zip", t_env.from_path("clicks")).table

Nothing runs before the program executes the table; each task runs beside a subtask of the program's own Flink job, and its rows go to it
and on without leaving that machine.
"""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Sequence

from akrunner.engines.base import Observer
from akrunner.engines.flink.attached import Attached
from akrunner.engines.flink.engine import FlinkEngine
from akrunner.options.told import told
from akrunner.prepare import Arguments, PathLike, SchemaLike, ScriptLike
from akrunner.programs import predicted, scripted, streamed
from akrunner.serving.arguments import ModelLike, PredictArguments

__all__ = ["Attached", "FlinkEngine", "predict", "run", "stream"]
''',
}
#: files that are written in part -> what: the fields of a class, or its `__init__`
_PARTS = {
    "akrunner/prepare.py": "Arguments",
    "akrunner/serving/arguments.py": "PredictArguments",
    "akrunner/serving/local.py": "LocalPredictor",
}


def pages() -> Dict[str, str]:
    """File -> its text, as the table has it."""
    functions = {
        home: "\n\n".join([head, *(_function(verb) for verb in VERBS if verb.home == home)]) for home, head in _HEAD.items()
    }
    return {
        **functions,
        **{home: _part(home, name) for home, name in _PARTS.items()},
        "docs/options.md": reference(),
        "docs/job.schema.json": json.dumps(schema(), indent=1) + "\n",
    }


def _function(verb: Verb) -> str:
    options = of_verb(verb.name)
    lines = [
        *([] if verb.of_class or verb.takes else [f'@from_file("{verb.name.removeprefix("plan_")}")']),
        f'@told("{verb.name}")',
        *(["def __init__(", "    self,"] if verb.of_class else [f"def {verb.function}("]),
    ]
    named = False
    for one in options:
        if not one.positional and not named:
            lines.append("    *,")
            named = True
        default = "" if one.required_in(verb) else f" = {_value(one.default_in(verb.name))}"
        lines.append(f"    {one.name}: {one.type_in(verb.name)}{default},")
    lines += [f") -> {verb.returns}:", *_docstring(verb)]
    lines += [f"    {'' if verb.of_class else 'return '}{verb.does}(", f"        {verb.arguments}("]
    apart = [one.name for one in options if one.apart or one.name in verb.apart]
    lines += [f"            {one.name}={one.name}," for one in options if one.name not in apart]
    lines += ["        ),"]
    lines += [f"        {name}={name}," for name in apart]
    return "\n".join([*lines, "    )", ""])


def _docstring(verb: Verb) -> Iterator[str]:
    text, closing = (textwrap.indent(one, "    ").splitlines() for one in (verb.text, verb.closing))
    yield '    """' + text[0].strip()
    yield from text[1:]
    yield ""
    yield "    Args:"
    for one in of_verb(verb.name):
        yield from textwrap.wrap(
            f"{one.name}: {one.text_in(verb.name)}",
            _WIDTH - 4 * verb.of_class,
            initial_indent=" " * 8,
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
        )
    yield from closing
    yield '    """'


def _value(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _part(home: str, name: str) -> str:
    """A module with that part of it as the table has it."""
    before, _, rest = (ROOT / home).read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    made = next((textwrap.indent(_function(verb), "    ") + "\n" for verb in VERBS if verb.name == name), None)
    return before + _BEGIN + (made or "".join(f"    {one}\n" for one in _fields(name))) + _END + after


def _fields(name: str) -> Iterator[str]:
    verbs = [verb for verb in VERBS if verb.arguments == name and not verb.takes]
    carried = [one for one in OPTIONS if not one.apart and {verb.name for verb in verbs} & set(one.verbs)]
    always = [one.name for one in carried if all(one.required_in(verb) for verb in verbs)]
    for one in sorted(carried, key=lambda one: one.name not in always):
        value = f" = field(default={_value(one.default)}, repr=False)" if one.private else f" = {_value(one.default)}"
        yield f"{one.name}: {one.inner or one.type}{'' if one.name in always else value}"


def reference() -> str:
    """The page of the options."""
    lines = [
        "# Options of a job",
        "",
        "Written by `scripts/gen-options` from `akrunner/options/`. Each is a keyword of the functions in its second column "
        "(`akrunner.run`, `train`, `stream`, `predict`, `predict_stream`, `LocalPredictor`); below it, how the commands "
        "`akrunner run`, `train`, `stream` and `predict` call it, if they have it. `akrunner.flink.run`, `stream` and `predict`, for programs of "
        "PyFlink, take those of `run`, `stream` and `predict_stream` that do not say where rows are.",
        "",
        "A variable `AKRUNNER_<NAME>` below it gives the commands its default, where it is a matter of the machine or the person and "
        "not of the job: a flag wins over it, and an error that is about its value names it. `AKRUNNER_FLINK_MASTER` is the default of "
        "`--flink-master` with `--engine flink`.",
        "",
        "Rare options are flat names like the others, under headings here, in `--help-all` and in the schema of job files. Values that hold several of them "
        "(`Resources(cpus_per_worker=2)`, `Supervision(timeout=60)`) were tried on the examples: one of them uses such an option at all, its call became longer, and "
        "every option would have had a second name beside its flag, its variable and its key in a job file.",
    ]
    for group in dict.fromkeys(one.group for one in OPTIONS):
        lines += ["", f"## {group}", "", "| option | of | default | |", "| --- | --- | --- | --- |"]
        for one in OPTIONS:
            if one.group == group:
                names = "<br>".join(f"`{name}`" for name in (one.name, ", ".join(one.words), one.variable) if name)
                lines.append(f"| {names} | {', '.join(one.verbs)} | {_default(one)} | {_cell(one)} |")
    return "\n".join([*lines, ""])


def _default(option: Option) -> str:
    if set(option.verbs) <= set(option.required):
        return "required"
    others = [f"{verb}: `{_value(value)}`" for verb, value in option.defaults.items()]
    required = [f"required by {', '.join(option.required)}"] if option.required else []
    return "; ".join([f"`{_value(option.default)}`", *others, *required])


def _cell(option: Option) -> str:
    other: Dict[str, List[str]] = {}
    for verb, text in [*option.instead.items(), *option.also.items()]:
        other.setdefault(text, []).append(f"`{verb}`")
    return " ".join([option.text, *(f"{', '.join(verbs)}: {text}" for text, verbs in other.items())]).replace("|", "\\|")


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text)
