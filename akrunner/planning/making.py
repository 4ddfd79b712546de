"""The making of a plan from the arguments of a job."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from akrunner.checks import check_choice, check_count, check_flag, check_path, shown
from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError, ModelError
from akrunner.foreign import ours, redacted
from akrunner.history.arguments import without_secret, without_secrets
from akrunner.io.paths import PathLike
from akrunner.io.sinks import format_shown
from akrunner.io.streams import is_stream
from akrunner.io.table import TableSource
from akrunner.launch import files
from akrunner.launch.interpreters import Interpreter
from akrunner.model import check_target
from akrunner.options import of_verb
from akrunner.planning.known import keras_of, known_nulls, known_rows
from akrunner.planning.likely import warnings_of
from akrunner.planning.plan import FIRST_BATCH, UNREAD, Plan, PlannedColumn
from akrunner.planning.tasks import planned_tasks
from akrunner.planning.text import HIDDEN, neat, value_shown
from akrunner.prepare.arguments import Arguments
from akrunner.prepare.job import checked
from akrunner.prepare.written import check_written
from akrunner.running.inputs import arriving_source, lines_source, table_of
from akrunner.running.outputs import IN_MEMORY
from akrunner.schema import Field, Schema
from akrunner.spec import JobSpec, Mode, SplitSpec
from akrunner.trial import Trial, tried
from akrunner.wire.features import FLOAT, KINDS

_MODES: Mapping[str, Mode] = {"run": "batch", "train": "train", "stream": "stream"}
#: characters of the shortest secret that is looked for in a script's prints; a shorter one may be a part of any word
_SHORTEST = 4


def plan_job(given: Arguments, verb: str, model_out: PathLike | None, follow: bool, try_rows: int | None = None) -> Plan:
    """Make a plan, as `akrunner.plan` says.

    Raises: ConfigError: the verb itself would raise it before it starts anything; JobError: the script failed in its trial.
    """
    check_choice("verb", verb, tuple(_MODES))
    if try_rows is not None:
        check_count("try_rows", try_rows, 1)
        if follow or (isinstance(given.source, str) and given.source == "-") or (verb == "stream" and is_stream(given.source)):
            raise ConfigError(
                "try_rows (--dry-run=N): rows that arrive would be taken from the stream; name a file that is there"
            )
    if isinstance(given.source, Iterator) and not isinstance(given.source, pa.RecordBatchReader):
        raise ConfigError(
            "source: an iterator's rows come once, and a plan would take the first of them; give a list, a table or a file"
        )
    _check_meant(verb, {**vars(given), "model_out": model_out, "follow": follow})
    check_written({**vars(given), "model_out": model_out})
    engine = engine_of(given.engine)
    sources = {**vars(given), "source": table_of(given.source, engine)}
    lines = arriving_source(sources, follow, engine) if verb == "stream" else lines_source(sources, follow)
    if model_out is not None:
        with ours(ModelError, f"model_out: cannot open {model_out}"):
            check_target(check_path("model_out", model_out, ModelError), check_flag("overwrite", given.overwrite))
    taken = {**vars(given), "engine": engine, **lines}
    prepared, requirements = checked(_MODES[verb], Arguments(**taken))
    job, table = prepared.job, prepared.table
    engine.check(job)
    interpreter = prepared.interpreter or Interpreter(job.python, (), "", "")
    tasks = planned_tasks(job)
    # with select=, the number of rows is not known before the query has run
    whole, files_ = (given.source, table.read_from) if given.select is None else (None, None)
    nulls = known_nulls(whole, files_)
    columns = tuple(_column(field, job.data_format, nulls, given.defaults or {}) for field in job.schema)
    rows = known_rows(whole, files_)
    writes = given.output is not None or (
        not job.script.program and files.writes_output(files.read_script(job.script)) is not None
    )
    written = (
        _words(job.output_schema) if job.output_schema is not None else FIRST_BATCH if job.output_inferred and writes else ""
    )
    output = neat(str(given.output)) if given.output is not None else IN_MEMORY if written else "none"
    if verb == "train":
        output = f"model: {neat(str(model_out)) if model_out is not None else 'result.model'}" + (
            f"; rows: {output}" if written else ""
        )
    trial = _trial(job, table, requirements, try_rows) if try_rows is not None else None
    return Plan(
        verb=verb,
        engine=engine.name,
        script=neat(job.script.name),
        entry="the program itself" if job.script.program else job.script.context_entry or "main(task_config)",
        files=tuple((place, target) for place, target in job.script.files),
        python=interpreter.path,
        python_version=".".join(map(str, interpreter.python)),
        tensorflow=interpreter.tensorflow,
        keras=keras_of(interpreter, job),
        requirements=requirements,
        source=neat(redacted(table.name)),
        rows=rows,
        columns=columns,
        data_format=job.data_format,
        split=_split(job.split),
        tasks=tasks,
        output=output,
        output_schema=written,
        user_params={name: value_shown(name, value) for name, value in job.user_params.items()},
        env={name: value_shown(name, value) for name, value in job.env.items()},
        script_args=tuple(without_secrets(job.script_args)),
        limits={
            "start_timeout": job.supervision.start_timeout,
            "stall_timeout": job.supervision.stall_timeout,
            "timeout": job.supervision.timeout,
            "max_restarts": job.supervision.max_restarts,
        },
        warnings=tuple(warnings_of(job, given.output, columns, tasks, rows, requirements, trial)),
        trial=trial,
        output_format=format_shown(os.fspath(given.output), given.output_format) if given.output is not None else "",
        bad_rows=table.bad.planned() if table.bad is not None else "",
    )


def _trial(job: JobSpec, table: TableSource, requirements: str | None, rows: int) -> Trial:
    """Try the script over a few rows, and hide in its prints the secrets that the plan hides."""
    trial = tried(job, table, requirements, rows)
    given = [(value, without_secret(name, value)) for name, value in (*job.user_params.items(), *job.env.items())]
    given += zip(job.script_args, without_secrets(job.script_args))
    hidden = [part for value, told in given for part in _hidden(value, told) if len(part) >= _SHORTEST]
    return dataclasses.replace(trial, printed=redacted(trial.printed, sorted(hidden, key=len, reverse=True)))


def _hidden(value: Any, told: Any) -> Iterator[str]:
    """Yield what is hidden of a value. Args: told: the value without its secrets."""
    if isinstance(value, Mapping) and isinstance(told, Mapping):
        for one, other in zip(value.values(), told.values()):
            yield from _hidden(one, other)
    elif isinstance(value, (list, tuple)) and isinstance(told, list):
        for one, other in zip(value, told):
            yield from _hidden(one, other)
    elif isinstance(told, str) and HIDDEN in told and value != told:
        text = value if isinstance(value, str) else json.dumps(value)
        before, _, after = told.partition(HIDDEN)
        yield text.removeprefix(before).removesuffix(after)


def _check_meant(verb: str, values: Mapping[str, Any]) -> None:
    """Check the options of a plan. Raises: ConfigError: the verb that is planned does not take an option that was given."""
    own = {one.name for one in of_verb(verb)}
    for one in of_verb("plan"):
        value = values.get(one.name)
        # a value of another type may not be comparable with the default
        left_out = value is None or (type(value) is type(one.default) and value == one.default)
        if one.name not in own and not left_out:
            raise ConfigError(f"{one.name}= means nothing for {verb}: it is an option of {', '.join(one.verbs)}")


def _column(field: Field, form: str, nulls: Mapping[str, int], defaults: Mapping[str, Any]) -> PlannedColumn:
    kind = field.dtype if form == "columns" else KINDS[field.kind].dtype
    shape = field.shape
    count = "any number of values" if shape is None else "one value" if shape == () else f"{' x '.join(map(str, shape))} values"
    if field.name in defaults:
        null = f"{shown(defaults[field.name])}, the default"
    elif not field.nullable:
        null = "there is none"
    elif field.shape is None:
        null = "an empty list"
    else:
        null = UNREAD if field.kind != FLOAT else "NaN" if shape == () else "NaN in each place"
    return PlannedColumn(field.name, str(field.type), f"{kind}, {count}", nulls.get(field.name), null)


def _split(spec: SplitSpec | None) -> str:
    if spec is None:
        return ""
    shares = ", ".join(f"{name} {fraction:.4g}" for name, fraction in zip(spec.names, spec.fractions))
    what = "each row's number" if spec.by is None else f"the value of {spec.by!r}"
    return f"{shares}; by a hash of {what}" + (f", seed {spec.seed}" if spec.seed else "")


def _words(schema: Schema) -> str:
    return ", ".join(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema)
