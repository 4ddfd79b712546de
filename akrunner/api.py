"""L4: arguments -> JobSpec -> engine -> result."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Tuple, Union

import pyarrow as pa

from akrunner import codec
from akrunner.engines.base import Engine, Observer, Stats, TaskResult
from akrunner.errors import ConfigError, ScriptError
from akrunner.io.sinks import FileSink, MemorySink
from akrunner.io.sources import open_source
from akrunner.launch import files, interpreters
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec

if TYPE_CHECKING:
    import pandas

PathLike = Union[str, "os.PathLike[str]"]
SchemaLike = Union[str, pa.Schema, Schema]


@dataclass(frozen=True)
class Result:
    """A job that succeeded.

    Attributes:
        table: what the scripts wrote, the chief's rows first; None when it went to a file or there is no output schema.
        output: the file it went to, if it did.
        tasks: what became of each task.
        stats: times, rows, bytes; `stats.bound` says whether the job was input-bound or compute-bound.
        work_dir: the directory of the job, None unless it was kept (`work_dir=`, `debug=True`).
    """

    table: Optional[pa.Table]
    output: Optional[str]
    tasks: Tuple[TaskResult, ...]
    stats: Stats
    work_dir: Optional[str]

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
    keras: Optional[str] = None,
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
        script: file that defines `main(task_config)`; may also lie in one of `user_files`.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON lines, Arrow/Feather, TFRecord); a
            pyarrow Table, RecordBatchReader or Dataset, a pandas or polars frame, a DuckDB relation, a dict of arrays, an
            iterable of rows.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script.
        output_schema: columns the script writes, "id bigint, p double".
        output: file to write them to (.parquet .csv .jsonl .arrow .tfrecord); None: they come back as `result.table`.
        output_format: of `output`, where its name does not tell; overwrite: replace an existing file.
        num_workers: processes that share the rows; num_ps: parameter servers.
        python_env: interpreter, or venv or conda directory, that has TensorFlow; None: this one.
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        input_schema: columns to take and their types; needed for TFRecord. input_format: where names do not tell.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
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
    chosen = _engine(engine)
    spec_files = files.collect(script, user_files)
    cluster = ClusterSpec(num_workers, num_ps)
    out_schema = _schema(output_schema, "output_schema")
    in_schema = _schema(input_schema, "input_schema")
    _check_output(spec_files, out_schema, output)
    interpreter = interpreters.resolve(os.fspath(python_env) if python_env is not None else None, keras)
    table = open_source(
        source,
        read_examples=codec.read_examples,
        input_schema=in_schema,
        input_format=input_format,
        select=select,
    )
    job = JobSpec(
        script=spec_files,
        schema=Schema.from_arrow(table.schema),
        python=interpreter.path,
        cluster=cluster,
        output_schema=out_schema,
        user_params=user_params if user_params is not None else {},
        keras=keras,
        env=env if env is not None else {},
        timeout=timeout,
        start_timeout=start_timeout,
        work_dir=os.fspath(work_dir) if work_dir is not None else None,
        keep=debug or work_dir is not None,
        checkpoint_dir=_made(checkpoint_dir),
    )
    if out_schema is None or output is None:
        memory = MemorySink(out_schema) if out_schema is not None else None
        outcome = chosen.run(job, table, memory, observer)
        rows = memory.table() if memory is not None else None
        return Result(rows, None, outcome.tasks, outcome.stats, outcome.work_dir)
    sink = FileSink(os.fspath(output), out_schema, codec.write_examples, output_format, overwrite)
    try:
        outcome = chosen.run(job, table, sink, observer)
        sink.commit()
    except BaseException:
        sink.abort()
        raise
    return Result(None, sink.path, outcome.tasks, outcome.stats, outcome.work_dir)


def _engine(engine: Union[str, Engine]) -> Engine:
    if not isinstance(engine, str):
        return engine
    if engine == "local":
        from akrunner.engines.local import LocalEngine

        return LocalEngine()
    raise ConfigError(f"engine={engine!r}: this version has 'local'")


def _schema(given: Optional[SchemaLike], parameter: str) -> Optional[Schema]:
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
