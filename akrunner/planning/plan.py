"""A plan, and how it reads."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from akrunner.planning.tasks import PlannedTask, lines_of_tasks
from akrunner.planning.text import INDENT, SHOWN, counted, interpreter_shown, line_of, line_of_given, side_by_side
from akrunner.tables import grid
from akrunner.tables.shown import NULL
from akrunner.trial import Trial
from akrunner.wire.context import TFConfig

#: characters of a value
_LONGEST = 60
#: how wide a table is where no terminal says it
_WIDE = 120
#: addresses of a role that are shown of TF_CONFIG
_ADDRESSES = 4
#: what becomes of a null that nobody has said more of
UNREAD = "an error, but for defaults= or nulls="
#: the columns of an output without a schema
FIRST_BATCH = "the columns of the first batch the script writes (there is no output_schema=)"


@dataclass(frozen=True)
class PlannedColumn:
    """A column of the input.

    Attributes:
        name, type: the type as Arrow has it ("int64", "list<item: float>").
        feature: what a script gets: "int64, one value", "float32, 4 values", "bytes, any number of values"; of `data_format="columns"` an array of numpy's
            ("float64, one value").
        nulls: how many there are, None: nobody has counted.
        null: what a null becomes in `dataset()` and `batches()`; an error, where neither a default nor `batches(nulls=)` is given.
    """

    name: str
    type: str
    feature: str
    nulls: int | None
    null: str


@dataclass(frozen=True)
class Plan:
    """What a job would do; `print(plan)` shows it.

    Attributes:
        verb: run, train or stream.
        engine: local or flink.
        script: the file.
        entry: what is called in it.
        files: (file, place in the work dir) that go to every task, the script among them.
        python: the tasks' interpreter; this and the next three are "" where only the cluster can tell.
        python_version: of the tasks.
        tensorflow: its version.
        keras: "2 (tf-keras)", "3"...
        requirements: that are installed at the start, None: there are none.
        source: the input's name.
        rows: of the input; None: not known before they are read.
        columns: each with its type, its feature, and what becomes of its nulls.
        data_format: examples or columns.
        split: how rows are split, in words, "" if they are not.
        tasks: every process of the job, as many as there will be.
        output: where rows go, in words.
        output_schema: "id bigint, p double", words where the first batch decides, "" if the script writes none.
        user_params: handed to the script, as text, without secrets.
        env: set in the tasks' environment, without secrets.
        script_args: what stands behind the script's name in `sys.argv`, without secrets.
        limits: name -> seconds, or number, of what the job waits for.
        warnings: what is likely to go wrong, or to be slow.
        trial: what came of the script over a few rows, None: it was not tried.
        output_format: of the file, or files, that rows go to; "": they go to none.
        given: beside a job file, where each value came from that is no default: "num_workers: the call"; (): there is no such file.
    """

    verb: str
    engine: str
    script: str
    entry: str
    files: tuple[tuple[str, str], ...]
    python: str
    python_version: str
    tensorflow: str
    keras: str
    requirements: str | None
    source: str
    rows: int | None
    columns: tuple[PlannedColumn, ...]
    data_format: str
    split: str
    tasks: tuple[PlannedTask, ...]
    output: str
    output_schema: str
    user_params: Mapping[str, str]
    env: Mapping[str, str]
    script_args: tuple[str, ...]
    limits: Mapping[str, Any]
    warnings: tuple[str, ...]
    trial: Trial | None = None
    output_format: str = ""
    given: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*_lines(self), *line_of_given(self.given)])

    def __repr__(self) -> str:
        # what a notebook shows of a cell's last line
        return str(self)


def _lines(plan: Plan) -> list[str]:
    started = "nothing was started" if plan.trial is None else "nothing was started but the script over the first rows"
    lines = [f"{plan.verb} on engine {plan.engine}; {started}"]
    lines += line_of("script", f"{plan.script}: {plan.entry}")
    others = [place for _, place in plan.files if os.path.basename(plan.script) != place]
    if others:
        lines += line_of(
            "files", ", ".join(others[:SHOWN]) + (f" and {len(others) - SHOWN:,} more" if len(others) > SHOWN else "")
        )
    lines += line_of("interpreter", interpreter_shown(plan.python, plan.python_version, plan.tensorflow, plan.keras))
    if plan.requirements is not None:
        lines += line_of("requirements", f"{plan.requirements}, installed at the start")
    rows = counted(plan.rows, "row") if plan.rows is not None else "rows are counted as they are read"
    lines += line_of("input", f"{plan.source}: {rows}, {counted(len(plan.columns), 'column')} as {plan.data_format}")
    lines += _table(plan.columns[:SHOWN])
    if len(plan.columns) > SHOWN:
        lines.append(f"{INDENT}and {len(plan.columns) - SHOWN:,} more columns")
    if plan.split:
        lines += line_of("split", plan.split)
    lines += lines_of_tasks(plan.tasks)
    config = plan.tasks[0].tf_config
    lines += line_of(
        "TF_CONFIG",
        json.dumps(_short_config(config)) + "   (ports are chosen at the start)"
        if config is not None
        else "not set: one worker alone",
    )
    lines += line_of("output", plan.output + (f": {plan.output_schema}" if plan.output_schema else ""))
    if plan.output_format:
        lines += line_of("format", plan.output_format)
    for name, values in (("params", plan.user_params), ("environment", plan.env)):
        if values:
            lines += line_of(name, ", ".join(f"{key}={_short(value)}" for key, value in values.items()))
    if plan.script_args:
        lines += line_of("arguments", " ".join(map(shlex.quote, plan.script_args)))
    lines += line_of("limits", ", ".join(f"{name}={value}" for name, value in plan.limits.items() if value is not None))
    lines += [f"warning: {one}" for one in plan.warnings]
    return lines + (_tried(plan.trial, plan.output_schema == FIRST_BATCH) if plan.trial is not None else [])


def _tried(trial: Trial, decides: bool) -> list[str]:
    """Args: decides: whether the first batch says which columns there are."""
    lines = line_of(
        "tried", f"{counted(trial.rows_in, 'row')} in, {counted(trial.rows_out, 'row')} out, {trial.seconds:.1f} s; thrown away"
    )
    if trial.written is not None:
        types = [f"{field.name} {field.type}" for field in trial.written.schema]
        more = f" and {len(types) - SHOWN:,} more" if len(types) > SHOWN else ""
        lines += line_of("decides", ", ".join(types[:SHOWN]) + more) if decides else []
        names = trial.written.column_names
        values = [
            [NULL if row[name] is None else str(row[name]) for name in names] for row in trial.written[:SHOWN].to_pylist()
        ]
        rows, fits = grid.lines(names, values, shutil.get_terminal_size((_WIDE, 0)).columns - len(INDENT))
        more = grid.others(names, fits, "--json has them all")
        lines += [INDENT + row for row in [*rows, *([more] if more else [])]]
    if trial.exported:
        lines += line_of("exported", ", ".join(trial.exported[:SHOWN]))
    lines += [f"warning: {one}" for one in trial.warnings]
    printed = trial.printed.rstrip("\n").splitlines()[-SHOWN:]
    return lines + [f"{'printed:' if not number else '':14}{line}" for number, line in enumerate(printed)]


def _short_config(config: TFConfig) -> TFConfig:
    """With some addresses of each role, of many the first."""
    few = {
        role: some if len(some) <= _ADDRESSES else [*some[: _ADDRESSES - 1], f"and {len(some) - _ADDRESSES + 1:,} more"]
        for role, some in config["cluster"].items()
    }
    return {"cluster": few, "task": config["task"]}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _table(columns: tuple[PlannedColumn, ...]) -> list[str]:
    rows = [("column", "type", "the script gets", "nulls", "a null becomes")]
    rows += [(one.name, one.type, one.feature, "?" if one.nulls is None else f"{one.nulls:,}", one.null) for one in columns]
    return side_by_side(rows)
