"""What a prediction would do, with nothing of it started: `akrunner.plan_predict`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.api import IN_MEMORY, table_of
from akrunner.checks import shown
from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.planning import PlannedTask, counted, known_rows, line_of, lines_of_tasks, neat, planned_tasks
from akrunner.serving.arguments import PredictArguments
from akrunner.serving.job import checked

#: inputs, outputs and columns that are shown
_SHOWN = 40


@dataclass(frozen=True)
class PredictPlan:
    """What a prediction would do; `print(plan)` shows it.

    Attributes:
        engine: local, flink, or one that a package adds.
        model: its directory, zip or URL.
        signature: which of the model's.
        inputs: (input of the model, "float32 [?, 4]", columns that feed it).
        outputs: (output of the model, column it becomes, the column's type).
        kept: columns of the table that stand beside the outputs.
        defaults: column -> what stands there for a null, as text.
        python: the workers' interpreter.
        requirements: that are installed at the start, None: there are none.
        source: the table's name.
        rows: of the table; None: not known before they are read.
        batch_size: rows the model gets at once.
        tasks: every process, as many as there will be.
        output: where the rows go, in words.
        limits: name -> seconds of what the job waits for.
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

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        # what a notebook shows of a cell's last line
        return str(self)


def plan_prediction(given: PredictArguments) -> PredictPlan:
    """`akrunner.plan_predict`. Raises: ConfigError: what `predict` itself would raise before it starts anything."""
    if isinstance(given.source, Iterator) and not isinstance(given.source, pa.RecordBatchReader):
        raise ConfigError(
            "source: an iterator's rows come once, and a plan would take the first of them; give a list, a table or a file"
        )
    engine = engine_of(given.engine)
    source = table_of(given.source, engine)
    # requirements are looked at, and not installed
    prediction = checked(dataclasses.replace(given, source=source, engine=engine), install=False)
    job, plan = prediction.job, prediction.plan
    engine.check(job)
    files = prediction.table.read_from if given.select is None else None
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
        rows=known_rows(given.source if given.select is None else None, files),
        batch_size=given.batch_size,
        tasks=planned_tasks(job),
        output=neat(str(given.output)) if given.output is not None else IN_MEMORY,
        limits={
            "start_timeout": job.supervision.start_timeout,
            "stall_timeout": job.supervision.stall_timeout,
            "timeout": job.supervision.timeout,
        },
    )


def _lines(plan: PredictPlan) -> list[str]:
    rows = counted(plan.rows, "row") if plan.rows is not None else "rows are counted as they are read"
    lines = [f"predict on engine {plan.engine}; nothing was started"]
    lines += line_of("model", f"{plan.model}: {plan.signature}, {counted(plan.batch_size, 'row')} at once")
    fed = [f"{name} {kind}  <- {', '.join(columns)}" for name, kind, columns in plan.inputs[:_SHOWN]]
    made = [f"{name}  -> {column} {kind}" for name, column, kind in plan.outputs[:_SHOWN]]
    for title, some, whole in (("inputs", fed, len(plan.inputs)), ("outputs", made, len(plan.outputs))):
        some += [f"and {whole - _SHOWN:,} more"] if whole > _SHOWN else []
        for place, words in enumerate(some or ["none"]):
            lines += line_of(title, words) if not place else [f"{'':14}{words}"]
    more = f" and {len(plan.kept) - _SHOWN:,} more" if len(plan.kept) > _SHOWN else ""
    lines += line_of("kept", (", ".join(plan.kept[:_SHOWN]) or "no column of the table") + more)
    if plan.defaults:
        lines += line_of("nulls", ", ".join(f"{name}: {value}" for name, value in plan.defaults.items()))
    lines += line_of("interpreter", plan.python)
    if plan.requirements is not None:
        lines += line_of("requirements", f"{plan.requirements}, installed at the start")
    lines += line_of("input", f"{plan.source}: {rows}")
    lines += lines_of_tasks(plan.tasks)
    lines += line_of("output", plan.output)
    return lines + line_of("limits", ", ".join(f"{name}={value}" for name, value in plan.limits.items() if value is not None))
