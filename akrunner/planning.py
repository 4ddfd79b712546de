"""What a job would do, with nothing of it started: `akrunner.plan`.

::

    arguments --> checked (akrunner.prepare) --> Plan: interpreter, script, columns, tasks, output --> text
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from akrunner.api import IN_MEMORY, lines_source, table_of
from akrunner.checks import check_choice, check_count, check_flag, check_path, shown
from akrunner.cluster.resources import assign
from akrunner.cluster.tf_config import tf_config
from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError, ModelError
from akrunner.foreign import ours, redacted
from akrunner.io import formats
from akrunner.io.formats.base import Format
from akrunner.io.paths import Files, PathLike
from akrunner.io.sinks import format_shown
from akrunner.io.table import TableSource
from akrunner.launch import capacity, devices, files, imported
from akrunner.launch.interpreters import Interpreter
from akrunner.model import check_target
from akrunner.options import of_verb
from akrunner.prepare import Arguments, checked
from akrunner.schema import Field, Schema
from akrunner.spec import JobSpec, SplitSpec, TaskSpec
from akrunner.tables import grid
from akrunner.tables.shown import NULL
from akrunner.trial import Trial, tried
from akrunner.wire.context import TFConfig
from akrunner.wire.features import FLOAT, KINDS

MODES = {"run": "batch", "train": "train", "stream": "stream"}
#: columns, files and tasks that are shown, of more the first
_SHOWN = 40
#: characters of a value
_LONGEST = 60
#: what lines begin with that go on with what is said above them, and how wide a table is where no terminal says it
_INDENT, _WIDE = " " * 14, 120
#: what stands for a secret; a shorter one is part of any word, and is not looked for in what a script prints
_HIDDEN, _SHORTEST = "***", 4
#: addresses of a role that are shown of TF_CONFIG
_ADDRESSES = 4
#: what becomes of a null that nobody has said more of
_UNREAD = "an error, but for defaults= or nulls="
#: files whose rows are counted, by what stands at their ends
_COUNTED = 1000


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
class PlannedTask:
    """A process.

    Attributes: name: "worker:0"; gets_rows; cores: that are its own, none: it may use all; env: variables that are set for it; tf_config: what TF_CONFIG will
        say, with port 0 for ports that are chosen at the start; None: it is told of no cluster.
    """

    name: str
    gets_rows: bool
    cores: tuple[int, ...]
    env: Mapping[str, str]
    tf_config: TFConfig | None


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


def plan_job(given: Arguments, verb: str, model_out: PathLike | None, follow: bool, try_rows: int | None = None) -> Plan:
    """`akrunner.plan`. Raises: ConfigError: what the verb itself would raise before it starts anything; JobError: the script failed that was tried."""
    check_choice("verb", verb, tuple(MODES))
    if try_rows is not None:
        check_count("try_rows", try_rows, 1)
        if follow or (isinstance(given.source, str) and given.source == "-"):
            raise ConfigError(
                "try_rows (--dry-run=N): rows that arrive would be taken from the stream; name a file that is there"
            )
    if isinstance(given.source, Iterator) and not isinstance(given.source, pa.RecordBatchReader):
        raise ConfigError(
            "source: an iterator's rows come once, and a plan would take the first of them; give a list, a table or a file"
        )
    _check_meant(verb, {**vars(given), "model_out": model_out, "follow": follow})
    engine = engine_of(given.engine)
    source, form, columns = lines_source(table_of(given.source, engine), given.input_format, given.input_schema, follow)
    if model_out is not None:
        with ours(ModelError, f"model_out: cannot open {model_out}"):
            check_target(check_path("model_out", model_out, ModelError), check_flag("overwrite", given.overwrite))
    taken = {**vars(given), "engine": engine, "source": source, "input_format": form, "input_schema": columns}
    prepared, requirements = checked(MODES[verb], Arguments(**taken))
    job, table = prepared.job, prepared.table
    engine.check(job)
    interpreter = prepared.interpreter or Interpreter(job.python, (), "", "")
    tasks = planned_tasks(job)
    # of a query's result nobody knows how many rows it has
    source, standing = (given.source, table.read_from) if given.select is None else (None, None)
    nulls = known_nulls(source, standing)
    columns_ = tuple(_column(field, job.data_format, nulls, given.defaults or {}) for field in job.schema)
    rows = known_rows(source, standing)
    writes = given.output is not None or (
        not job.script.program and files.writes_output(files.read_script(job.script)) is not None
    )
    columns = (
        _words(job.output_schema) if job.output_schema is not None else _FIRST_BATCH if job.output_inferred and writes else ""
    )
    output = neat(str(given.output)) if given.output is not None else IN_MEMORY if columns else "none"
    if verb == "train":
        output = f"model: {neat(str(model_out)) if model_out is not None else 'result.model'}" + (
            f"; rows: {output}" if columns else ""
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
        columns=columns_,
        data_format=job.data_format,
        split=_split(job.split),
        tasks=tasks,
        output=output,
        output_schema=columns,
        user_params={name: value_shown(name, value) for name, value in job.user_params.items()},
        env={name: value_shown(name, value) for name, value in job.env.items()},
        script_args=_words_of(job.script_args),
        limits={
            "start_timeout": job.supervision.start_timeout,
            "stall_timeout": job.supervision.stall_timeout,
            "timeout": job.supervision.timeout,
            "max_restarts": job.supervision.max_restarts,
        },
        warnings=tuple(_warnings(job, given.output, columns_, tasks, rows, requirements, trial)),
        trial=trial,
        output_format=format_shown(os.fspath(given.output), given.output_format) if given.output is not None else "",
    )


def _trial(job: JobSpec, table: TableSource, requirements: str | None, rows: int) -> Trial:
    """The script over a few rows; what the plan hides, the script may have printed."""
    trial = tried(job, table, requirements, rows)
    given = {**job.user_params, **job.env}
    pairs = [
        (value if isinstance(value, str) else json.dumps(value), value_shown(name, value)) for name, value in given.items()
    ]
    pairs += zip(job.script_args, _words_of(job.script_args))
    hidden = [value for value, plain in pairs if plain == _HIDDEN and len(value) >= _SHORTEST]
    return dataclasses.replace(trial, printed=redacted(trial.printed, sorted(hidden, key=len, reverse=True)))


def _check_meant(verb: str, values: Mapping[str, Any]) -> None:
    """Raises: ConfigError: the verb itself does not take an option that was given."""
    own = {one.name for one in of_verb(verb)}
    for one in of_verb("plan"):
        value = values.get(one.name)
        # of another type it may not be comparable at all
        left_out = value is None or (type(value) is type(one.default) and value == one.default)
        if one.name not in own and not left_out:
            raise ConfigError(f"{one.name}= means nothing for {verb}: it is an option of {', '.join(one.verbs)}")


def neat(path: str) -> str:
    """A path without `dir/../`, where that is the same place: those of a job file are put behind its directory."""
    if ".." not in path.split(os.sep) or "://" in path:
        return path
    short = os.path.normpath(path) + (os.sep if path.endswith(os.sep) else "")
    # what is up from a link is somewhere else
    return short if os.path.realpath(short) == os.path.realpath(path) else path


def _column(field: Field, form: str, nulls: Mapping[str, int], defaults: Mapping[str, Any]) -> PlannedColumn:
    kind = field.dtype if form == "columns" else KINDS[field.kind].dtype
    shape = field.shape
    count = "any number of values" if shape is None else "one value" if shape == () else f"{' x '.join(map(str, shape))} values"
    if field.name in defaults:
        null = f"{shown(defaults[field.name])}, of defaults="
    elif not field.nullable:
        null = "there is none"
    elif field.shape is None:
        null = "an empty list"
    else:
        null = _UNREAD if field.kind != FLOAT else "NaN" if shape == () else "NaN in each place"
    return PlannedColumn(field.name, str(field.type), f"{kind}, {count}", nulls.get(field.name), null)


def _split(spec: SplitSpec | None) -> str:
    if spec is None:
        return ""
    shares = ", ".join(f"{name} {fraction:.4g}" for name, fraction in zip(spec.names, spec.fractions))
    what = "each row's number" if spec.by is None else f"the value of {spec.by!r}"
    return f"{shares}; by a hash of {what}" + (f", seed {spec.seed}" if spec.seed else "")


def planned_tasks(job: JobSpec) -> tuple[PlannedTask, ...]:
    """Every process of a job."""
    cluster = job.cluster
    gpus = devices.gpus() if job.resources.gpus_per_worker is not None else []
    parts = assign(cluster, job.resources, gpus, devices.cpus(), {**os.environ, **job.task_env})
    host = job.advertised_host or job.bind_host
    addresses: dict[TaskSpec, str] = {task: f"{host}:0" for task in cluster.tasks}
    return tuple(
        PlannedTask(
            task.name,
            task in cluster.fed,
            parts[task].cpus,
            {**parts[task].env, **({} if cluster.alone else {"TF_CONFIG": "..."})},
            None if cluster.alone else tf_config(cluster, addresses, task),
        )
        for task in cluster.tasks
    )


def keras_of(interpreter: Interpreter, job: JobSpec) -> str:
    if not interpreter.tensorflow[:1].isdigit():
        return ""
    version = tuple(int(part) for part in interpreter.tensorflow.split(".")[:2] if part.isdigit())
    if version < (2, 16):
        return "2 (tf.keras)"
    return f"2 (tf-keras {interpreter.tf_keras})" if job.keras == "legacy" else "3"


def value_shown(name: str, value: Any) -> str:
    """A value as text; of one whose name says that it is a secret, ***."""
    text = value if isinstance(value, str) else json.dumps(value)
    return redacted(f"{name}={text}").partition("=")[2]


def _words_of(script_args: Sequence[str]) -> tuple[str, ...]:
    """The script's own words, without secrets: what stands behind `--password` is one, too."""
    before = ["", *script_args]
    return tuple(
        _HIDDEN
        if option.startswith("-") and not word.startswith("-") and value_shown(option.lstrip("-"), word) == _HIDDEN
        else redacted(word)
        for option, word in zip(before, script_args)
    )


#: the columns of an output without a schema
_FIRST_BATCH = "the columns of the first batch the script writes (there is no output_schema=)"


def _words(schema: Schema) -> str:
    return ", ".join(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema)


def known_rows(source: Any, files: Files | None) -> int | None:
    """How many there are, where that is known without reading them."""
    if files is None:
        return _length(source)
    counts = [form.row_count(path) for form, path in _standing(files)]
    return sum(one for one in counts if one is not None) if counts and None not in counts else None


def _length(source: Any) -> int | None:
    """How many rows a table in memory has."""
    if isinstance(source, Mapping):
        # of arrays, all of one length
        return _length(next(iter(source.values()), ()))
    if isinstance(source, (list, tuple)):
        return None if any(isinstance(one, (str, os.PathLike)) for one in source[:1]) else len(source)
    if isinstance(source, (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray, np.ndarray)):
        return len(source)
    # of pandas and polars: a frame, or a column; a query that has not run yet has no shape
    known = type(source).__module__.partition(".")[0] in ("pandas", "polars")
    shape = getattr(source, "shape", None) if known else None
    return int(shape[0]) if isinstance(shape, tuple) else None


def known_nulls(source: Any, files: Files | None) -> dict[str, int]:
    """Column -> how many nulls it has, of those of which it is known."""
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return {name: int(source.column(name).null_count) for name in source.schema.names}
    found: Counter[str] = Counter()
    unknown = set()
    for form, path in _standing(files):
        for name, count in form.null_counts(path).items():
            if count is None:
                unknown.add(name)
            else:
                found[name] += count
    return {name: count for name, count in found.items() if name not in unknown}


def _standing(there: Files | None) -> list[tuple[Format, str]]:
    """The files a table is read from, as they stand on this machine."""
    if there is None or not there.is_local or len(there.paths) > _COUNTED:
        return []
    form = formats.named(there.format)
    return [(form, path) for path in there.paths]


def _warnings(
    job: JobSpec,
    output: PathLike | None,
    columns: tuple[PlannedColumn, ...],
    tasks: tuple[PlannedTask, ...],
    rows: int | None,
    requirements: str | None,
    trial: Trial | None,
) -> list[str]:
    """Args: output: of the job, None: its rows stay in memory; rows: of its input, None: nobody knows; requirements: that are installed first; trial: what came
    of the script over the first rows, None: it was not tried."""
    told = list(job.notes)
    met = trial.nulls if trial is not None else ()
    fed = sum(task.gets_rows for task in tasks)
    if rows == 0 and job.mode == "batch" and job.output_inferred and output is not None:
        told.append(
            f"the input has no rows: unless the script writes some all the same, the job fails at its end, and {redacted(str(output))} is not made, "
            "as nobody knows its columns; with output_schema= (--output-schema) it is made, without rows"
        )
    elif rows == 0:
        told.append("the input has no rows: the script runs, and gets none")
    elif rows is not None and rows < fed:
        told.append(too_many(rows, fed))
    for one in columns:
        if one.nulls and one.null == _UNREAD and one.name not in met:
            told.append(
                f"column {one.name!r} has {one.nulls:,} null{'s' if one.nulls > 1 else ''}: a script that reads it needs "
                f"defaults={{{one.name!r}: ...}} in dataset() or batches(), or batches(nulls='none')"
            )
    cores, computing = len(devices.cpus()), sum(task.gets_rows for task in tasks)
    if job.resources.cpus_per_worker is None and computing > 4 * cores:
        told.append(f"{computing} workers share {cores} cores: fewer (num_workers=, --num-workers) would be as quick")
    most, why = capacity.most_tasks()
    if len(tasks) > most:
        told.append(f"{len(tasks)} tasks are more than the {most} that fit here ({why})")
    code = files.read_script(job.script)
    if not requirements:
        for name, line in imported.missing(job, code):
            beside = f"{name}.py" if os.path.isfile(os.path.join(os.path.dirname(job.script.real), f"{name}.py")) else ""
            instead = (
                f"it lies beside the script: user_files=['{beside}'] (--user-file {beside}) sends it along"
                if beside
                else "install it there, or give requirements= (--requirements) or user_files= (--user-file)"
            )
            told.append(f"the script imports {name} in line {line}, and {job.python} does not have it: {instead}")
    return told + (_unwritten(job, code, output, rows) if trial is None else _left_out(job, trial, output))


def too_many(rows: int, fed: int) -> str:
    """That there are fewer rows than workers who get some."""
    return f"{rows:,} rows for {fed} workers: {fed - rows} of them get{'s' if fed - rows == 1 else ''} none; num_workers={rows} (--num-workers) is enough"


def _unwritten(job: JobSpec, code: bytes, output: PathLike | None, rows: int | None) -> list[str]:
    """What a script seems not to write, by its text."""
    told = []
    if job.output_schema is not None and not job.script.program and files.writes_output(code) is None and job.mode == "batch":
        told.append("output_schema= is given, and the script itself never calls output_writer: the output may stay empty")
    elif job.output_inferred and output is not None and rows != 0 and not _mentions(job, code, b"output_writer"):
        told.append(
            f"output= (--output) is given, and the script never mentions output_writer, which writes rows: if it writes none, the job fails at its end, and "
            f"{redacted(str(output))} is not made"
        )
    if job.mode == "train" and not _mentions(job, code, b"saved_model_dir"):
        told.append(
            "the script never mentions task_config.saved_model_dir, where the model of a training job is looked for: if it exports none there, the job fails "
            "at its end"
        )
    return told


def _left_out(job: JobSpec, trial: Trial, output: PathLike | None) -> list[str]:
    """What a script that was tried did not write."""
    told = []
    if not trial.rows_out and (output is not None or job.output_schema is not None):
        what = f"output={str(output)!r} (--output)" if output is not None else "output_schema= (--output-schema)"
        end = "" if job.output_schema is not None else "; a job that writes none fails at its end, as nobody knows the columns"
        told.append(f"the script wrote no row over these {counted(trial.rows_in, 'row')}, and {redacted(what)} is given{end}")
    if job.mode == "train" and not trial.exported:
        told.append(
            "the script exported nothing to task_config.saved_model_dir over these rows: a training job without a model fails at its end"
        )
    return told


def _mentions(job: JobSpec, code: bytes, word: bytes) -> bool:
    """Whether a word stands in the script, or may stand in what it calls: a file that goes with it, or Alink's own modules, which write and export."""
    if word in code or b"akdl" in code or job.script.archives:
        return True
    for path, _ in job.script.files:
        with contextlib.suppress(OSError):
            if path.endswith(".py") and word in Path(path).read_bytes():
                return True
    return False


def _lines(plan: Plan) -> list[str]:
    started = "nothing was started" if plan.trial is None else "nothing was started but the script over the first rows"
    lines = [f"{plan.verb} on engine {plan.engine}; {started}"]
    lines += line_of("script", f"{plan.script}: {plan.entry}")
    others = [place for _, place in plan.files if os.path.basename(plan.script) != place]
    if others:
        lines += line_of(
            "files", ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else "")
        )
    lines += line_of("interpreter", interpreter_shown(plan.python, plan.python_version, plan.tensorflow, plan.keras))
    if plan.requirements is not None:
        lines += line_of("requirements", f"{plan.requirements}, installed at the start")
    rows = counted(plan.rows, "row") if plan.rows is not None else "rows are counted as they are read"
    lines += line_of("input", f"{plan.source}: {rows}, {counted(len(plan.columns), 'column')} as {plan.data_format}")
    lines += _table(plan.columns[:_SHOWN])
    if len(plan.columns) > _SHOWN:
        lines.append(f"{'':14}and {len(plan.columns) - _SHOWN:,} more columns")
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
    return lines + (_tried(plan.trial, plan.output_schema == _FIRST_BATCH) if plan.trial is not None else [])


def interpreter_shown(python: str, version: str, tensorflow: str, keras: str) -> str:
    """An interpreter and what is in it. Args: version: its own, "" where only the cluster can tell."""
    return python + (f" (Python {version}, TensorFlow {tensorflow}, Keras {keras})" if version else " (on the cluster)")


def _tried(trial: Trial, decides: bool) -> list[str]:
    """Args: decides: whether the first batch says which columns there are."""
    lines = line_of(
        "tried", f"{counted(trial.rows_in, 'row')} in, {counted(trial.rows_out, 'row')} out, {trial.seconds:.1f} s; thrown away"
    )
    if trial.written is not None:
        types = [f"{field.name} {field.type}" for field in trial.written.schema]
        more = f" and {len(types) - _SHOWN:,} more" if len(types) > _SHOWN else ""
        lines += line_of("decides", ", ".join(types[:_SHOWN]) + more) if decides else []
        names = trial.written.column_names
        values = [
            [NULL if row[name] is None else str(row[name]) for name in names] for row in trial.written[:_SHOWN].to_pylist()
        ]
        rows, fits = grid.lines(names, values, shutil.get_terminal_size((_WIDE, 0)).columns - len(_INDENT))
        more = grid.others(names, fits, "--json has them all")
        lines += [_INDENT + row for row in [*rows, *([more] if more else [])]]
    if trial.exported:
        lines += line_of("exported", ", ".join(trial.exported[:_SHOWN]))
    lines += [f"warning: {one}" for one in trial.warnings]
    printed = trial.printed.rstrip("\n").splitlines()[-_SHOWN:]
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


def lines_of_tasks(tasks: Sequence[PlannedTask]) -> list[str]:
    """What a plan says of the processes."""
    lines = line_of("tasks", f"{len(tasks)}")
    for task in tasks[:_SHOWN]:
        told = ["gets rows" if task.gets_rows else "gets no rows"]
        told.append(f"cores {', '.join(map(str, task.cores))}" if task.cores else "all cores")
        told += [f"{name}={value}" for name, value in task.env.items() if name != "TF_CONFIG"]
        lines.append(f"{'':14}{task.name:12}{'; '.join(told)}")
    if len(tasks) > _SHOWN:
        lines.append(f"{'':14}and {len(tasks) - _SHOWN:,} more")
    return lines


def line_of_given(given: Sequence[str]) -> list[str]:
    """Where each value of a plan came from; none: it was all given in one place."""
    return line_of("given", "; ".join(given)) if given else []


def counted(number: int, what: str) -> str:
    """ "1 row", "2,000 rows"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def line_of(name: str, words: str) -> list[str]:
    """A line of a plan, as a list of one."""
    return [f"{name + ':':14}{words}"]


def _table(columns: tuple[PlannedColumn, ...]) -> list[str]:
    rows = [("column", "type", "the script gets", "nulls", "a null becomes")]
    rows += [(one.name, one.type, one.feature, "?" if one.nulls is None else f"{one.nulls:,}", one.null) for one in columns]
    return side_by_side(rows)


def side_by_side(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of a table, its headings first."""
    widths = [min(40, max(len(row[place]) for row in rows)) for place in range(len(rows[0]))]
    return [(" " * 14 + "  ".join(cell.ljust(width) for cell, width in zip(row, widths))).rstrip() for row in rows]
