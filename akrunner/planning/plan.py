"""A plan, and its text."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akrunner.checks import counted
from akrunner.planning.tasks import PlannedTask, lines_of_tasks
from akrunner.planning.text import (
    INDENT,
    SHOWN,
    indented,
    interpreter_shown,
    line_of,
    line_of_given,
    more_columns,
    side_by_side,
    width_of_terminal,
)
from akrunner.tables import grid
from akrunner.tables.shown import NULL
from akrunner.trial import Trial
from akrunner.wire.context import TFConfig

#: the most characters of a value that are shown
_LONGEST = 60
#: columns of text of a table if there is no terminal
_WIDE = 120
#: how many addresses of a role in TF_CONFIG are shown
_ADDRESSES = 4
#: what becomes of a null if the job has no default for it
UNREAD = "an error"
_UNLESS = (
    f"{UNREAD}: but for a default (--default COLUMN=VALUE, in Python defaults=), or a script that reads batches(nulls='none')"
)
#: the columns of an output without a schema
FIRST_BATCH = "the columns of the first batch the script writes (no output schema is given)"


@dataclass(frozen=True)
class PlannedColumn:
    """A column of the input.

    Attributes:
        name: the column's name.
        type: its Arrow type ("int64", "list<item: float>").
        feature: what a script gets: "int64, one value", "float32, 4 values", "bytes, any number of values"; with
            `data_format="columns"`, a numpy array ("float64, one value").
        nulls: number of nulls, None if they are not counted.
        null: what a null becomes in `dataset()` and `batches()`: an error, if neither a default nor `batches(nulls=)` is given.
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
        script: the script's file.
        entry: what is called in the script.
        files: (file, path in the work dir) of each file that goes to every task, the script included.
        python: path of the tasks' interpreter.
        python_version: version of that Python, "" if only the cluster can tell.
        tensorflow: version of its TensorFlow, "" if only the cluster can tell.
        keras: its Keras, "2 (tf-keras)", "3"..., "" if only the cluster can tell.
        requirements: the requirements that are installed at the start, None if there are none.
        source: the input's name.
        rows: number of rows of the input, None if it is not known before they are read.
        columns: each column with its type, its feature, and what becomes of its nulls.
        data_format: examples or columns.
        split: how rows are split, in words, "" if they are not.
        tasks: every process that the job will have.
        output: where rows go, in words.
        output_schema: "id bigint, p double", a sentence if the first batch decides, "" if the script writes no rows.
        user_params: the params for the script, as text, without secrets.
        env: variables that are set in the tasks' environment, without secrets.
        script_args: the arguments behind the script's name in `sys.argv`, without secrets.
        limits: name of each limit -> seconds, or number.
        warnings: what is likely to go wrong, or to be slow.
        trial: the result of the script over a few rows, None if it was not tried.
        output_format: format of the file, or files, that rows go to, "" if rows go to none.
        bad_rows: what becomes of rows of the input that cannot be read, in words, "" if they fail the job.
        given: with a job file: where each value that is no default came from, "num_workers: the call"; () without a job file.
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
    bad_rows: str = ""
    given: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*_lines(self, width_of_terminal()), *line_of_given(self.given)])

    def __repr__(self) -> str:
        # a notebook shows this if the plan is the last line of a cell
        return str(self)

    def _repr_html_(self) -> str:
        from akrunner.planning import shown

        return shown.plan([*_lines(self), *line_of_given(self.given)], {"input": _rows(self.columns[:SHOWN])})


def _lines(plan: Plan, width: int | None = None) -> list[str]:
    """Return the lines of a plan. Args: width: the columns of the terminal, to which the table of columns is fitted."""
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
    shown = plan.columns[:SHOWN]
    lines += side_by_side(_rows(shown), width)
    lines += more_columns(len(plan.columns) - len(shown), width)
    if any(one.null == UNREAD for one in shown):
        lines += indented(_UNLESS, width)
    if plan.bad_rows:
        lines += line_of("bad rows", plan.bad_rows)
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
    """Return the lines about a trial. Args: decides: whether the first batch decides the output's columns."""
    lines = line_of(
        "tried", f"{counted(trial.rows_in, 'row')} in, {counted(trial.rows_out, 'row')} out, {trial.seconds:.1f} s; thrown away"
    )
    if trial.written is not None:
        types = [f"{_named(field.name)} {field.type}" for field in trial.written.schema]
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
    """Return a TF_CONFIG in which each role has at most `_ADDRESSES` entries: of more addresses only the first are kept."""
    few = {
        role: some if len(some) <= _ADDRESSES else [*some[: _ADDRESSES - 1], f"and {len(some) - _ADDRESSES + 1:,} more"]
        for role, some in config["cluster"].items()
    }
    return {"cluster": few, "task": config["task"]}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _named(column: str) -> str:
    """Return a column's name in one line, whatever is in it."""
    return column if column.isprintable() else ascii(column)


def _rows(columns: tuple[PlannedColumn, ...]) -> Sequence[tuple[str, ...]]:
    rows = [("column", "type", "the script gets", "nulls", "a null becomes")]
    rows += [
        (_named(one.name), one.type, one.feature, "?" if one.nulls is None else f"{one.nulls:,}", one.null) for one in columns
    ]
    return rows
