"""L4: arguments -> JobSpec -> engine -> result."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Tuple, Union

import pyarrow as pa

from akrunner import codec
from akrunner.engines.base import Engine, Observer, Stats, TaskResult
from akrunner.errors import ConfigError, ScriptError, SourceError
from akrunner.io.follow import open_text
from akrunner.io.sinks import FileSink, LineWriter, MemorySink
from akrunner.io.sources import open_source
from akrunner.io.table import TableSource
from akrunner.launch import environments, files, interpreters
from akrunner.model import Model, check_target, remove_checkpoints
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec
from akrunner.stream_job import StreamJob

if TYPE_CHECKING:
    import pandas

__all__ = ["LineWriter", "Result", "environments", "interpreters", "run", "stream", "train"]

PathLike = Union[str, "os.PathLike[str]"]
SchemaLike = Union[str, pa.Schema, Schema]


@dataclass(frozen=True)
class Result:
    """A job that succeeded.

    Attributes:
        table: what the scripts wrote, the chief's rows first; None when it went to a file or there is no output schema.
        output: the file it (of a train job: the model) went to, if it did.
        tasks: what became of each task.
        stats: times, rows, bytes; `stats.bound` says whether the job was input-bound or compute-bound.
        work_dir: the directory of the job, None unless it was kept (`work_dir=`, `debug=True`).
        model: what a train job left, None for others.
    """

    table: Optional[pa.Table]
    output: Optional[str]
    tasks: Tuple[TaskResult, ...]
    stats: Stats
    work_dir: Optional[str]
    model: Optional[Model] = None

    def to_pandas(self) -> "pandas.DataFrame":
        """The table as a pandas frame. Raises: ConfigError: there is no table in memory."""
        if self.table is None:
            raise ConfigError("there is no table in memory: give output_schema=, and no output=")
        return self.table.to_pandas()


def run(
    script: PathLike,
    source: Any,
    *,
    user_params: Optional[Mapping[str, Any]] = None,
    user_files: Sequence[PathLike] = (),
    output_schema: Optional[SchemaLike] = None,
    output: Optional[PathLike] = None,
    output_format: Optional[str] = None,
    overwrite: bool = False,
    num_workers: int = 1,
    num_ps: int = 0,
    python_env: Optional[PathLike] = None,
    select: Optional[str] = None,
    input_schema: Optional[SchemaLike] = None,
    input_format: Optional[str] = None,
    requirements: Optional[PathLike] = None,
    keras: Optional[str] = None,
    data_format: str = "examples",
    tensorboard: Optional[PathLike] = None,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[float] = None,
    start_timeout: float = 60.0,
    work_dir: Optional[PathLike] = None,
    checkpoint_dir: Optional[PathLike] = None,
    debug: bool = False,
    engine: Union[str, Engine] = "local",
    observer: Optional[Observer] = None,
) -> Result:
    """Run a script over a table: every worker gets its share of the rows, and `main(task_config)` is called in each.

    Args:
        script: file or URL that defines `main(task_config)`; may also lie in one of `user_files`.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON lines, Arrow/Feather, TFRecord); a
            pyarrow Table, RecordBatchReader or Dataset, a pandas or polars frame, a DuckDB relation, a dict of arrays, an
            iterable of rows.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`,
            "#sha256=..." checks what came.
        output_schema: columns the script writes, "id bigint, p double".
        output: file to write them to (.parquet .csv .jsonl .arrow .tfrecord); None: they come back as `result.table`.
        output_format: of `output`, where its name does not tell; overwrite: replace an existing file.
        num_workers: processes that share the rows; num_ps: parameter servers.
        python_env: what has TensorFlow: an interpreter, a venv or conda directory, a packed one (conda-pack; local or a URL), or
            tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this one.
        requirements: requirements.txt to install beside it, once; what it has already wins.
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        input_schema: columns to take and their types; needed for TFRecord. input_format: where names do not tell.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        data_format: "examples": rows reach the script as `tf.train.Example`s; "columns": as columns of their own types, several
            times faster, for scripts that read them by `task_config.dataset()` or `task_config.batches()`.
        tensorboard: directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs.
        env: environment variables for the tasks.
        timeout: seconds the job may take; None: as long as it takes.
        start_timeout: seconds a worker process may take to start.
        work_dir: new directory to keep everything in; None: a temporary one, gone afterwards.
        checkpoint_dir: directory handed to the script, the same for every task.
        debug: keep the work dir, for `akrunner replay`, and pass the tasks' log lines to the observer.
        engine: "local", or an engine.
        observer: is told the progress.
    Returns: the result.
    Raises:
        ConfigError: an argument is wrong; nothing was started.
        DataError: a value of the table cannot cross.
        JobError: the job failed; the message holds the script's traceback.
    """
    prepared = _prepare(
        "batch", script, source, user_params, user_files, output_schema, output, num_workers, num_ps, python_env, select,
        input_schema, input_format, requirements, keras, data_format, tensorboard, env, timeout, start_timeout, work_dir, checkpoint_dir, debug,
    )  # fmt: skip
    return _run(prepared, engine, observer, output, output_format, overwrite)


def train(
    script: PathLike,
    source: Any,
    *,
    model_out: Optional[PathLike] = None,
    save_latest_checkpoint: bool = False,
    remove_checkpoint_before_training: bool = False,
    user_params: Optional[Mapping[str, Any]] = None,
    user_files: Sequence[PathLike] = (),
    output_schema: Optional[SchemaLike] = None,
    overwrite: bool = False,
    num_workers: int = 1,
    num_ps: int = 0,
    python_env: Optional[PathLike] = None,
    select: Optional[str] = None,
    input_schema: Optional[SchemaLike] = None,
    input_format: Optional[str] = None,
    requirements: Optional[PathLike] = None,
    keras: Optional[str] = None,
    data_format: str = "examples",
    tensorboard: Optional[PathLike] = None,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[float] = None,
    start_timeout: float = 60.0,
    work_dir: Optional[PathLike] = None,
    checkpoint_dir: Optional[PathLike] = None,
    debug: bool = False,
    engine: Union[str, Engine] = "local",
    observer: Optional[Observer] = None,
) -> Result:
    """Run a script that trains a model: as `run`, and what the chief exported to `task_config.saved_model_dir` comes back.

    Args:
        model_out: directory, or file ending in .zip, to save the model to; None: it is `result.model` only, in a temporary
            directory that goes with it.
        save_latest_checkpoint: give the script a `latest_ckpt_dir` and bring back what it puts there.
        remove_checkpoint_before_training: empty `checkpoint_dir` of checkpoints of earlier runs first.
        the others: as for `run`.
    Returns: the result; `result.model` is the model, `result.table` what the scripts wrote.
    Raises: as `run`; ScriptFailedError too when the chief left no SavedModel that TensorFlow can read.
    """
    if model_out is not None:
        check_target(os.fspath(model_out), overwrite)
    if remove_checkpoint_before_training:
        if checkpoint_dir is None:
            raise ConfigError("remove_checkpoint_before_training= needs checkpoint_dir=")
        remove_checkpoints(os.path.expanduser(os.fspath(checkpoint_dir)))
    folder = tempfile.mkdtemp(prefix="akrunner-model-")
    try:
        prepared = _prepare(
            "train", script, source, user_params, user_files, output_schema, None, num_workers, num_ps, python_env, select,
            input_schema, input_format, requirements, keras, data_format, tensorboard, env, timeout, start_timeout, work_dir, checkpoint_dir, debug, folder,
            save_latest_checkpoint,
        )  # fmt: skip
        result = _run(prepared, engine, observer, None, None, False)
        checkpoint = os.path.join(folder, "checkpoint") if save_latest_checkpoint else None
        model = Model(os.path.join(folder, "model"), checkpoint, temporary=folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    saved = model.save(model_out, overwrite) if model_out is not None else None
    return dataclasses.replace(result, model=model, output=saved)


def stream(
    script: PathLike,
    source: Any,
    *,
    user_params: Optional[Mapping[str, Any]] = None,
    user_files: Sequence[PathLike] = (),
    output_schema: Optional[SchemaLike] = None,
    num_workers: int = 1,
    num_ps: int = 0,
    python_env: Optional[PathLike] = None,
    select: Optional[str] = None,
    input_schema: Optional[SchemaLike] = None,
    input_format: Optional[str] = None,
    follow: bool = False,
    flush_seconds: float = 0.02,
    requirements: Optional[PathLike] = None,
    keras: Optional[str] = None,
    data_format: str = "examples",
    tensorboard: Optional[PathLike] = None,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[float] = None,
    start_timeout: float = 60.0,
    work_dir: Optional[PathLike] = None,
    checkpoint_dir: Optional[PathLike] = None,
    debug: bool = False,
    engine: Union[str, Engine] = "local",
    observer: Optional[Observer] = None,
) -> StreamJob:
    """Run a script over rows as they arrive, possibly for ever. Returns at once.

    The script gets a `StreamTaskConfig`: `dataset_fn()` is a dataset of its rows, each to be read once. With several workers, chunks
    of rows go to them in turn. A slow script holds the source back.

    Args:
        source: as for `run`; of an iterable of rows, each is sent on as it comes. "-" reads lines of stdin: JSON, or CSV with
            `input_format="csv"`.
        follow: the source is one JSON lines or CSV file that is still growing: wait for more at its end, for ever.
        flush_seconds: the longest a row waits for others to be sent with, on its way in and out together.
        the others: as for `run`.
    Returns: the running job: iterate it for output RecordBatches; errors surface there; `close()` or `with` ends it.
    Raises: ConfigError: an argument is wrong; nothing was started.
    """
    chosen = engine_of(engine)
    source, input_format, input_schema = lines_source(source, input_format, input_schema, follow)
    prepared = _prepare(
        "stream", script, source, user_params, user_files, output_schema, None, num_workers, num_ps, python_env, select,
        input_schema, input_format, requirements, keras, data_format, tensorboard, env, timeout, start_timeout, work_dir, checkpoint_dir, debug,
        flush_seconds=flush_seconds,
    )  # fmt: skip
    schema = prepared.job.output_schema
    return StreamJob(
        lambda sink, cancel: chosen.run(prepared.job, prepared.table, sink, observer, cancel), schema.arrow if schema else None
    )


def lines_source(
    source: Any, form: Optional[str], schema: Optional[SchemaLike], follow: bool
) -> Tuple[Any, Optional[str], Optional[SchemaLike]]:
    """(source, format, schema): as they are, or stdin or a growing file opened, which has its format and schema in it."""
    if follow or (isinstance(source, str) and source == "-"):
        return _open_lines(source, form, schema, follow), None, None
    return source, form, schema


def _open_lines(source: Any, form: Optional[str], schema: Optional[SchemaLike], follow: bool) -> TableSource:
    """Stdin or a growing file."""
    if not isinstance(source, (str, os.PathLike)):
        raise ConfigError("follow= is for one file; the source is " + type(source).__name__)
    name = os.fspath(source)
    form = form or ("csv" if name.lower().endswith(".csv") else "jsonl")
    if form not in ("csv", "jsonl"):
        raise ConfigError(f"input_format={form!r}: lines are read as jsonl or csv")
    try:
        fd = 0 if name == "-" else os.open(os.path.expanduser(name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as e:
        raise SourceError(f"source: {name}: {e.strerror}") from None
    return open_text(fd, form, schema_of(schema, "input_schema"), follow, "stdin" if name == "-" else name)


@dataclass(frozen=True)
class _Prepared:
    """A job whose arguments are all checked, and its table."""

    job: JobSpec
    table: TableSource


def _prepare(
    mode: str,
    script: PathLike,
    source: Any,
    user_params: Optional[Mapping[str, Any]],
    user_files: Sequence[PathLike],
    output_schema: Optional[SchemaLike],
    output: Optional[PathLike],
    num_workers: int,
    num_ps: int,
    python_env: Optional[PathLike],
    select: Optional[str],
    input_schema: Optional[SchemaLike],
    input_format: Optional[str],
    requirements: Optional[PathLike],
    keras: Optional[str],
    data_format: str,
    tensorboard: Optional[PathLike],
    env: Optional[Mapping[str, str]],
    timeout: Optional[float],
    start_timeout: float,
    work_dir: Optional[PathLike],
    checkpoint_dir: Optional[PathLike],
    debug: bool,
    model_dir: Optional[str] = None,
    save_latest_checkpoint: bool = False,
    flush_seconds: Optional[float] = None,
) -> _Prepared:
    """Everything that can be known before a process starts is checked here."""
    spec_files = files.collect(script, user_files)
    cluster = ClusterSpec(num_workers, num_ps)
    out_schema = schema_of(output_schema, "output_schema")
    in_schema = schema_of(input_schema, "input_schema")
    _check_output(spec_files, out_schema, output)
    interpreter = interpreters.resolve(os.fspath(python_env) if python_env is not None else None, keras)
    table = open_source(
        source,
        read_examples=codec.read_examples,
        input_schema=in_schema,
        input_format=input_format,
        select=select,
        flush_seconds=flush_seconds,
    )
    job = JobSpec(
        script=spec_files,
        schema=Schema.from_arrow(table.schema),
        python=interpreter.path,
        cluster=cluster,
        output_schema=out_schema,
        user_params=user_params if user_params is not None else {},
        mode=mode,
        keras=keras,
        data_format=data_format,
        tensorboard=os.fspath(tensorboard) if tensorboard is not None else None,
        env=env if env is not None else {},
        overlay=environments.overlay(interpreter.path, os.fspath(requirements)) if requirements is not None else "",
        timeout=timeout,
        start_timeout=start_timeout,
        work_dir=os.fspath(work_dir) if work_dir is not None else None,
        keep=debug or work_dir is not None,
        checkpoint_dir=_made(checkpoint_dir),
        model_dir=model_dir,
        save_latest_checkpoint=save_latest_checkpoint,
        flush_seconds=flush_seconds if flush_seconds is not None else 0.02,
    )
    return _Prepared(job, table)


def _run(
    prepared: _Prepared,
    engine: Union[str, Engine],
    observer: Optional[Observer],
    output: Optional[PathLike],
    output_format: Optional[str],
    overwrite: bool,
) -> Result:
    """Run it, its rows into memory or a file."""
    chosen, job, schema = engine_of(engine), prepared.job, prepared.job.output_schema
    if schema is None or output is None:
        memory = MemorySink(schema.arrow) if schema is not None else None
        outcome = chosen.run(job, prepared.table, memory, observer)
        rows = memory.table() if memory is not None else None
        return Result(rows, None, outcome.tasks, outcome.stats, outcome.work_dir)
    sink = FileSink(os.fspath(output), schema.arrow, codec.write_examples, output_format, overwrite)
    try:
        outcome = chosen.run(job, prepared.table, sink, observer)
        sink.commit()
    except BaseException:
        sink.abort()
        raise
    return Result(None, sink.path, outcome.tasks, outcome.stats, outcome.work_dir)


def engine_of(engine: Union[str, Engine]) -> Engine:
    """An engine from its name. Raises: ConfigError: there is none of it."""
    if not isinstance(engine, str):
        return engine
    if engine == "local":
        from akrunner.engines.local import LocalEngine

        return LocalEngine()
    raise ConfigError(f"engine={engine!r}: this version has 'local'")


def schema_of(given: Optional[SchemaLike], parameter: str) -> Optional[Schema]:
    """A schema from whatever stands for one. Raises: SchemaError; ConfigError: something else."""
    if given is None or isinstance(given, Schema):
        return given
    if isinstance(given, pa.Schema):
        return Schema.from_arrow(given)
    if isinstance(given, str):
        return Schema.parse(given, parameter)
    raise ConfigError(f"{parameter} must be text like 'id bigint, p double', not {type(given).__name__}")


def _check_output(script: Any, schema: Optional[Schema], output: Optional[PathLike]) -> None:
    if schema is not None:
        return
    if output is not None:
        raise ConfigError("output= needs output_schema= (--output-schema): the columns the script writes")
    line = files.writes_output(files.read_script(script))
    if line is not None:
        raise ScriptError(
            "the script writes rows, but there is no output_schema= (--output-schema); give for instance "
            f"'id bigint, p double'\n  File \"{script.real}\", line {line}"
        )


def _made(directory: Optional[PathLike]) -> Optional[str]:
    if directory is None:
        return None
    path = os.path.abspath(os.path.expanduser(os.fspath(directory)))
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        raise ConfigError(f"checkpoint_dir: cannot make {path}: {e.strerror}") from None
    return path
