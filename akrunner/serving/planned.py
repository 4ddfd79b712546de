"""`akrunner.plan_predict`: what a prediction would do, without starting anything of it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from akrunner.checks import counted, shown
from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.io.sinks import format_shown
from akrunner.planning.known import keras_of, known_nulls, known_rows
from akrunner.planning.tasks import PlannedTask, lines_of_tasks, planned_tasks, too_many
from akrunner.planning.text import (
    INDENT,
    SHOWN,
    interpreter_shown,
    line_of,
    line_of_given,
    more_columns,
    neat,
    side_by_side,
    value_shown,
    width_of_terminal,
)
from akrunner.prepare.python import interpreter_for
from akrunner.running.inputs import table_of
from akrunner.running.outputs import IN_MEMORY
from akrunner.serving.arguments import PredictArguments
from akrunner.serving.job import checked
from akrunner.serving.plan import Plan

#: what becomes of a null that the model cannot take, if the column has no default
_REFUSED = "an error"


@dataclass(frozen=True)
class PredictColumn:
    """A column of the table.

    Attributes:
        name: the column's name.
        type: its Arrow type.
        feeds: the inputs of the model that it feeds.
        kept: whether it is kept beside the outputs.
        nulls: number of nulls, None if they are not counted.
        null: what a null becomes.
    """

    name: str
    type: str
    feeds: tuple[str, ...]
    kept: bool
    nulls: int | None
    null: str


@dataclass(frozen=True)
class PredictPlan:
    """What a prediction would do; `print(plan)` shows it.

    Attributes:
        engine: local, flink, or one that a package adds.
        model: the model's directory, zip or URL.
        signature: the key of the model's signature.
        inputs: (input of the model, "float32 [?, 4]", columns that feed it).
        outputs: (output of the model, column it becomes, the column's type).
        kept: the columns of the table that are kept beside the outputs.
        defaults: column -> the value that replaces a null, as text.
        python: path of the workers' interpreter.
        requirements: the requirements that are installed at the start, None if there are none.
        source: the table's name.
        rows: number of rows of the table, None if it is not known before they are read.
        batch_size: how many rows the model gets at once.
        tasks: every process that the job will have.
        output: where the rows go, in words.
        limits: name of each limit -> seconds.
        python_version: version of the workers' Python, "" if only the cluster can tell.
        tensorflow: version of its TensorFlow, "" if only the cluster can tell.
        keras: its Keras, "2 (tf-keras)", "3"..., "" if only the cluster can tell.
        columns: the columns of the table, each with its type, and what becomes of its nulls.
        output_format: format of the file, or files, that rows go to, "" if rows go to none.
        env: variables that are set in the workers' environment, without secrets.
        warnings: what is likely to go wrong.
        bad_rows: what becomes of rows of the table that cannot be read, in words, "" if they fail the job.
        given: with a job file: where each value that is no default came from; () without a job file.
    """

    engine: str
    model: str
    signature: str
    inputs: tuple[tuple[str, str, tuple[str, ...]], ...]
    outputs: tuple[tuple[str, str, str], ...]
    kept: tuple[str, ...]
    defaults: Mapping[str, str]
    python: str
    requirements: str | None
    source: str
    rows: int | None
    batch_size: int
    tasks: tuple[PlannedTask, ...]
    output: str
    limits: Mapping[str, Any]
    python_version: str = ""
    tensorflow: str = ""
    keras: str = ""
    columns: tuple[PredictColumn, ...] = ()
    output_format: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
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


def plan_prediction(given: PredictArguments) -> PredictPlan:
    """Make a plan, as `akrunner.plan_predict` says.

    Raises: ConfigError: `predict` itself would raise it before it starts anything.
    """
    if isinstance(given.source, Iterator) and not isinstance(given.source, pa.RecordBatchReader):
        raise ConfigError(
            "source: an iterator's rows come once, and a plan would take the first of them; give a list, a table or a file"
        )
    engine = engine_of(given.engine)
    source = table_of(given.source, engine)
    # requirements are checked, and not installed
    prediction = checked(dataclasses.replace(given, source=source, engine=engine), install=False)
    job, plan = prediction.job, prediction.plan
    engine.check(job)
    # with select=, the number of rows is not known before the query has run
    standing, files = (given.source, prediction.table.read_from) if given.select is None else (None, None)
    rows = known_rows(standing, files)
    interpreter = interpreter_for(given.python_env, engine.capabilities, given.keras)
    columns = columns_of(plan, prediction.table.schema, known_nulls(standing, files), given.defaults or {})
    tasks = planned_tasks(job)
    return PredictPlan(
        engine=engine.name,
        model=neat(redacted(str(given.model) if isinstance(given.model, (str, os.PathLike)) else prediction.model.path)),
        signature=given.signature_def_key,
        inputs=tuple((one.spec.name, str(one.spec).partition(" ")[2], one.columns) for one in plan.inputs),
        outputs=tuple((name, column, str(plan.output_schema.arrow.field(column).type)) for column, name in plan.outputs),
        kept=plan.reserved,
        defaults={name: shown(value) for name, value in (given.defaults or {}).items()},
        python=job.python,
        requirements=os.fspath(given.requirements) if given.requirements is not None else None,
        source=neat(redacted(prediction.table.name)),
        rows=rows,
        batch_size=given.batch_size,
        tasks=tasks,
        output=neat(str(given.output)) if given.output is not None else IN_MEMORY,
        limits={
            "start_timeout": job.supervision.start_timeout,
            "stall_timeout": job.supervision.stall_timeout,
            "timeout": job.supervision.timeout,
        },
        python_version=".".join(map(str, interpreter.python)),
        tensorflow=interpreter.tensorflow,
        keras=keras_of(interpreter, job),
        columns=columns,
        output_format=format_shown(os.fspath(given.output), given.output_format) if given.output is not None else "",
        env={name: value_shown(name, value) for name, value in job.env.items()},
        warnings=(*job.notes, *_warnings(columns, rows, len(tasks))),
        bad_rows=prediction.table.bad.planned() if prediction.table.bad is not None else "",
    )


def columns_of(
    plan: Plan, table: pa.Schema, nulls: Mapping[str, int], defaults: Mapping[str, Any]
) -> tuple[PredictColumn, ...]:
    """Return what becomes of each column of a table.

    Args:
        plan: the plan of the prediction.
        table: the table's schema.
        nulls: column -> number of nulls, for the columns whose number is known.
        defaults: the `defaults` of `predict`.
    """
    made = []
    for one in table:
        fed = [
            (each.spec.name, travels)
            for each in plan.inputs
            for name, travels in zip(each.columns, each.travels)
            if name == one.name
        ]
        kept = one.name in plan.reserved
        if one.name in defaults:
            null = f"{shown(defaults[one.name])}, the default"
        elif any(not pa.types.is_floating(plan.feed.arrow.field(travels).type) for _, travels in fed):
            null = _REFUSED
        elif fed:
            null = "NaN for the model"
        else:
            null = "stays null" if kept else "nothing: it is not read"
        made.append(PredictColumn(one.name, str(one.type), tuple(name for name, _ in fed), kept, nulls.get(one.name), null))
    return tuple(made)


def _warnings(columns: tuple[PredictColumn, ...], rows: int | None, workers: int) -> list[str]:
    """Return the plan's warnings. Args: rows: number of rows of the table, None if it is not known."""
    told = []
    if rows == 0:
        told.append("the input has no rows: the model is loaded, and predicts none")
    elif rows is not None and rows < workers:
        told.append(too_many(rows, workers))
    for one in columns:
        if one.nulls and one.null == _REFUSED:
            told.append(
                f"column {one.name!r} has {counted(one.nulls, 'null')}, which input {one.feeds[0]!r} of the model cannot "
                f"take: the prediction fails there; give defaults={{{one.name!r}: ...}} (--default {one.name}=...), or leave "
                "the rows out with select= (--select)"
            )
    return told


def _rows(columns: tuple[PredictColumn, ...]) -> Sequence[tuple[str, ...]]:
    rows = [("column", "type", "feeds", "kept", "nulls", "a null becomes")]
    rows += [
        (
            one.name,
            one.type,
            ", ".join(one.feeds) or "-",
            "yes" if one.kept else "no",
            "?" if one.nulls is None else f"{one.nulls:,}",
            one.null,
        )
        for one in columns
    ]
    return rows


def _lines(plan: PredictPlan, width: int | None = None) -> list[str]:
    """Return the lines of a plan. Args: width: the columns of the terminal, to which the table of columns is fitted."""
    rows = counted(plan.rows, "row") if plan.rows is not None else "rows are counted as they are read"
    lines = [f"predict on engine {plan.engine}; nothing was started"]
    lines += line_of("model", f"{plan.model}: {plan.signature}, {counted(plan.batch_size, 'row')} at once")
    fed = [f"{name} {kind}  <- {', '.join(columns)}" for name, kind, columns in plan.inputs[:SHOWN]]
    made = [f"{name}  -> {column} {kind}" for name, column, kind in plan.outputs[:SHOWN]]
    for title, some, whole in (("inputs", fed, len(plan.inputs)), ("outputs", made, len(plan.outputs))):
        some += [f"and {whole - SHOWN:,} more"] if whole > SHOWN else []
        for place, words in enumerate(some or ["none"]):
            lines += line_of(title, words) if not place else [f"{INDENT}{words}"]
    more = f" and {len(plan.kept) - SHOWN:,} more" if len(plan.kept) > SHOWN else ""
    lines += line_of("kept", (", ".join(plan.kept[:SHOWN]) or "no column of the table") + more)
    if plan.defaults:
        lines += line_of("nulls", ", ".join(f"{name}: {value}" for name, value in plan.defaults.items()))
    lines += line_of("interpreter", interpreter_shown(plan.python, plan.python_version, plan.tensorflow, plan.keras))
    if plan.requirements is not None:
        lines += line_of("requirements", f"{plan.requirements}, installed at the start")
    lines += line_of("input", f"{plan.source}: {rows}, {counted(len(plan.columns), 'column')}")
    lines += side_by_side(_rows(plan.columns[:SHOWN]), width)
    lines += more_columns(len(plan.columns) - SHOWN, width)
    if plan.bad_rows:
        lines += line_of("bad rows", plan.bad_rows)
    lines += lines_of_tasks(plan.tasks)
    lines += line_of("output", plan.output)
    if plan.output_format:
        lines += line_of("format", plan.output_format)
    if plan.env:
        lines += line_of("environment", ", ".join(f"{name}={value}" for name, value in plan.env.items()))
    lines += line_of("limits", ", ".join(f"{name}={value}" for name, value in plan.limits.items() if value is not None))
    return lines + [f"warning: {one}" for one in plan.warnings]
