"""L4: arguments -> JobSpec -> engine -> result."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Tuple, Union

import pyarrow as pa

from akrunner import codec, leftovers
from akrunner.checks import check_flag, check_path, shown
from akrunner.engines.base import Engine, Observer, Outcome, Stats, TaskResult
from akrunner.errors import ConfigError, ModelError, SinkError, SourceError, WriteError
from akrunner.foreign import ours, underway
from akrunner.io.follow import open_text
from akrunner.io.paths import check_apart, expand
from akrunner.io.sinks import LineWriter, MemorySink, check_types
from akrunner.io.table import TableSource
from akrunner.launch import environments, interpreters
from akrunner.model import Model, check_target, new_folder, remove_checkpoints
from akrunner.prepare import Arguments, PathLike, Prepared, SchemaLike, ScriptLike, check_output, prepare, schema_of
from akrunner.stream_job import StreamJob
from akrunner.tables.names import is_table
from akrunner.tables.opening import OutputSink, RowsSink, file_sink, sink_to

if TYPE_CHECKING:
    import pandas

__all__ = ["LineWriter", "Result", "environments", "interpreters", "run", "stream", "train"]


@dataclass(frozen=True)
class Result:
    """A job that succeeded.

    Attributes:
        table: what the scripts wrote, the chief's rows first; None when it went to a file or there is no output schema.
        output: the file it (of a train job: the model) went to, if it did.
        tasks: what became of each task.
        stats: times, rows, bytes; `stats.bound` says whether the job was input-bound or compute-bound, if it is known.
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
        """The table as a pandas frame. Raises: ConfigError: there is no table in memory, or no pandas."""
        if self.table is None:
            raise ConfigError("there is no table in memory: give output_schema=, and no output=")
        try:
            return self.table.to_pandas()
        except ModuleNotFoundError as e:
            raise ConfigError(f"to_pandas() needs pandas: pip install 'akrunner[pandas]' ({e})") from None


def run(
    script: ScriptLike,
    source: Any = None,
    *,
    tables: Sequence[str] = (),
    output_tables: Sequence[str] = (),
    project: Optional[str] = None,
    user_params: Optional[Mapping[str, Any]] = None,
    user_files: Sequence[PathLike] = (),
    script_args: Sequence[str] = (),
    output_schema: Optional[SchemaLike] = None,
    output: Optional[PathLike] = None,
    output_format: Optional[str] = None,
    overwrite: bool = False,
    num_workers: Optional[int] = None,
    num_ps: Optional[int] = None,
    parallelism: Optional[int] = None,
    evaluator: bool = False,
    coordinator: bool = False,
    chief: Optional[bool] = None,
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
    stall_timeout: float = 600.0,
    stall_action: str = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: Optional[int] = None,
    max_restarts: int = 0,
    gpus_per_worker: Optional[int] = None,
    cpus_per_worker: Optional[int] = None,
    intra_op_parallelism: Optional[int] = None,
    bind_host: str = "127.0.0.1",
    advertised_host: Optional[str] = None,
    work_dir: Optional[PathLike] = None,
    checkpoint_dir: Optional[PathLike] = None,
    debug: bool = False,
    engine: Union[str, Engine] = "local",
    observer: Optional[Observer] = None,
) -> Result:
    """Run a script over a table: every worker gets its share of the rows, and `main(task_config)` is called in each.

    Args:
        script: file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config by
            `akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its source goes to
            the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it uses.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON lines, Arrow/Feather, TFRecord); a
            pyarrow Table, RecordBatchReader or Dataset, a pandas or polars frame, a DuckDB relation, a dict of arrays, an
            iterable of rows. None: there is none, where `tables=` or `output_tables=` names what the script asks for.
        tables: "odps://project/tables/t/pt=v", tables the script may read itself, as scripts of PAI do: by `TableRecordDataset`,
            `TableReader`, ... (see the docs of PAI); output_tables: those it may write, by `TableWriter`: what it writes replaces what
            was there when the job has succeeded. project: of names without one.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`,
            "#sha256=..." checks what came.
        script_args: what stands behind the script's name in `sys.argv`, ["--epochs", "3"].
        output_schema: columns the script writes, "id bigint, p double"; or {"id": "int64", "p": float}, `frame.dtypes`, a pyarrow schema.
        output: file to write them to (.parquet .csv .jsonl .arrow .tfrecord); "dir/": a directory with a file of each task, parquet unless
            `output_format=` says otherwise; None: they come back as `result.table`.
        output_format: of `output`, where its name does not tell; overwrite: replace an existing file.
        num_workers: processes that share the rows, worker 0 the chief; None: 1. num_ps: parameter servers; None: 0.
        parallelism: workers and parameter servers together, to be divided where `num_workers` or `num_ps` is not given: a quarter
            parameter servers, as Alink does, or the rest.
        evaluator: one more task, of role "evaluator", for scripts that evaluate what the others train (Estimators).
        coordinator: the chief only coordinates (`ClusterCoordinator`): it comes on top of `num_workers` and gets no rows.
        chief: False: there are workers only, worker 0 first, for scripts that count `cluster["worker"]` or take worker 0 for the chief. None:
            a chief, but one worker alone runs as in plain Python, without TF_CONFIG; True: with one also then.
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
        stall_timeout: seconds nothing may move (no rows, no `report()`, no processor time) until every task's stack and who
            waits for whom is told; 0: never. stall_action: and then "fail", or "warn" and go on.
        evaluator_timeout: seconds the evaluator gets for the last checkpoint when chief and workers are done.
        profile_input: steps at which TensorFlow's profiler looks for what the scripts' input waits for: `stats.inputs`, and in words
            `akrunner.engines.inputs.verdict(stats)`; 20 is a good number. Not in a task of a cluster, where it can end the process. None: it is not
            started; what clocks tell is measured anyway.
        max_restarts: how often everything is started again after a failure, with the rows from the start and the same
            `checkpoint_dir`; `task_config.attempt` counts. The source must be one that can be read again.
        gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
        cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are cores.
        intra_op_parallelism: threads TensorFlow uses inside one operation.
        bind_host: address of this machine TensorFlow's servers get; advertised_host: the name others reach it by.
        work_dir: new directory to keep everything in; None: a temporary one, gone afterwards.
        checkpoint_dir: directory handed to the script, the same for every task.
        debug: keep the work dir, for `akrunner replay`.
        engine: "local", "flink", or an engine (`akrunner.engines.flink.FlinkEngine`).
        observer: is told the progress.
    Returns: the result.
    Raises:
        ConfigError: an argument is wrong; nothing was started.
        DataError: a value of the table cannot cross.
        JobError: the job failed; the message holds the script's traceback.
    """
    engine = engine_of(engine)
    check_observer(observer)
    source = table_of(source, engine)
    prepared = prepare("batch", Arguments.of(locals()))
    return _run(prepared, engine, observer, output, output_format, overwrite)


def train(
    script: ScriptLike,
    source: Any,
    *,
    model_out: Optional[PathLike] = None,
    save_latest_checkpoint: bool = False,
    remove_checkpoint_before_training: bool = False,
    user_params: Optional[Mapping[str, Any]] = None,
    user_files: Sequence[PathLike] = (),
    script_args: Sequence[str] = (),
    output_schema: Optional[SchemaLike] = None,
    overwrite: bool = False,
    num_workers: Optional[int] = None,
    num_ps: Optional[int] = None,
    parallelism: Optional[int] = None,
    evaluator: bool = False,
    coordinator: bool = False,
    chief: Optional[bool] = None,
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
    stall_timeout: float = 600.0,
    stall_action: str = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: Optional[int] = None,
    max_restarts: int = 0,
    gpus_per_worker: Optional[int] = None,
    cpus_per_worker: Optional[int] = None,
    intra_op_parallelism: Optional[int] = None,
    bind_host: str = "127.0.0.1",
    advertised_host: Optional[str] = None,
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
    engine = engine_of(engine)
    check_observer(observer)
    source = table_of(source, engine)
    given = Arguments.of(locals())
    check_flag("overwrite", overwrite)
    if model_out is not None:
        model_out = check_path("model_out", model_out, ModelError)
        with ours(ModelError, f"model_out: cannot open {model_out}"):
            check_target(model_out, overwrite)
    if check_flag("remove_checkpoint_before_training", remove_checkpoint_before_training) and checkpoint_dir is None:
        raise ConfigError("remove_checkpoint_before_training= needs checkpoint_dir=")
    prepared = prepare("train", given)
    if prepared.job.checkpoint_dir is not None and remove_checkpoint_before_training:
        with ours(ConfigError, f"checkpoint_dir: cannot empty {prepared.job.checkpoint_dir}"):
            remove_checkpoints(prepared.job.checkpoint_dir)
    folder = new_folder()
    try:
        job = dataclasses.replace(prepared.job, model_dir=folder)
        result = _run(Prepared(job, prepared.table), engine, observer, None, None, False)
        model_dir = os.path.join(folder, "model")
        if all(task.only_asked for task in result.tasks) and not (os.path.isdir(model_dir) and os.listdir(model_dir)):
            leftovers.drop(folder)
            return result
        checkpoint = os.path.join(folder, "checkpoint") if save_latest_checkpoint else None
        model = Model(model_dir, checkpoint, temporary=folder)
    except BaseException:
        leftovers.drop(folder)
        raise
    saved = None
    if model_out is not None:
        with underway(WriteError, "model_out"):
            saved = model.save(model_out, overwrite)
    return dataclasses.replace(result, model=model, output=saved)


def stream(
    script: ScriptLike,
    source: Any,
    *,
    user_params: Optional[Mapping[str, Any]] = None,
    user_files: Sequence[PathLike] = (),
    script_args: Sequence[str] = (),
    output_schema: Optional[SchemaLike] = None,
    num_workers: Optional[int] = None,
    num_ps: Optional[int] = None,
    parallelism: Optional[int] = None,
    evaluator: bool = False,
    chief: Optional[bool] = None,
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
    stall_timeout: float = 600.0,
    stall_action: str = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: Optional[int] = None,
    gpus_per_worker: Optional[int] = None,
    cpus_per_worker: Optional[int] = None,
    intra_op_parallelism: Optional[int] = None,
    bind_host: str = "127.0.0.1",
    advertised_host: Optional[str] = None,
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
    check_observer(observer)
    source = table_of(source, chosen)
    source, input_format, input_schema = lines_source(source, input_format, input_schema, follow)
    given = Arguments.of(locals())
    prepared = prepare("stream", given)
    schema = prepared.job.output_schema
    return StreamJob(
        lambda sink, cancel: chosen.run(prepared.job, prepared.table, sink, observer, cancel), schema.arrow if schema else None
    )


def lines_source(
    source: Any, form: Optional[str], schema: Optional[SchemaLike], follow: bool
) -> Tuple[Any, Optional[str], Optional[SchemaLike]]:
    """(source, format, schema): as they are, or stdin or a growing file opened, which has its format and schema in it."""
    if check_flag("follow", follow) or (isinstance(source, str) and source == "-"):
        return _open_lines(source, form, schema, follow), None, None
    return source, form, schema


def _open_lines(source: Any, form: Optional[str], schema: Optional[SchemaLike], follow: bool) -> TableSource:
    """Stdin or a growing file."""
    if not isinstance(source, (str, os.PathLike)):
        raise ConfigError("follow= is for one file; the source is " + type(source).__name__)
    name = check_path("source", source, SourceError)
    form = form or ("csv" if name.lower().endswith(".csv") else "jsonl")
    if not isinstance(form, str) or form not in ("csv", "jsonl"):
        raise ConfigError(f"input_format={shown(form)}: lines are read as jsonl or csv")
    try:
        fd = 0 if name == "-" else os.open(os.path.expanduser(name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as e:
        raise SourceError(f"source: {name}: {e.strerror}") from None
    return open_text(fd, form, schema_of(schema, "input_schema"), follow, "stdin" if name == "-" else name)


def _run(
    prepared: Prepared,
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
    sink = sink_to(os.fspath(output), schema.arrow, codec.write_examples, output_format, overwrite)
    outcome = committed(sink, lambda: chosen.run(job, prepared.table, sink, observer))
    return Result(None, None if outcome.only_asked else sink.path, outcome.tasks, outcome.stats, outcome.work_dir)


def check_stream_output(output: str, overwrite: bool, schema: Optional[SchemaLike]) -> None:
    """Args: schema: of the rows, None: not known yet. Raises: SinkError: they cannot go there; SchemaError."""
    known = schema_of(schema, "output_schema")
    check_output(output, None, overwrite, known.arrow if known is not None else pa.schema([]))


def check_lines(form: str, schema: Optional[SchemaLike]) -> None:
    """Args: form: csv or jsonl; schema: of the rows, None: not known yet. Raises: SinkError: lines cannot hold them; SchemaError."""
    known = schema_of(schema, "output_schema")
    if known is not None:
        check_types(form, known.arrow)


def check_stream_apart(source: str, form: Optional[str], follow: bool, output: str) -> None:
    """Args: source, form, follow: as `source`, `input_format`, `follow` of `stream`.

    Raises: SinkError: the output is what is read, or lies among it; SourceError: there is nothing to read.
    """
    if source == "-" or follow:
        with ours(SourceError, f"source: {source}"):
            read = os.fstat(0) if source == "-" else os.stat(os.path.expanduser(source))
        if os.path.isfile(output) and os.path.samestat(read, os.stat(output)):
            raise SinkError(
                f"output: {output} is the input, which would be read and written at the same time; write to another place (--output)"
            )
        return
    if is_table(source):
        # what is read is the table as it was
        return
    with ours(SourceError, "source: it cannot be read"):
        files = expand(source, form)
    check_apart(files, output)


def stream_sink(output: str, schema: Optional[pa.Schema], overwrite: bool) -> RowsSink:
    """Where a stream's rows go that count when it has ended well. Raises: WriteError: they cannot go there; the job runs already."""
    try:
        return file_sink(output, schema if schema is not None else pa.schema([]), codec.write_examples, None, overwrite)
    except SinkError as e:
        raise WriteError(str(e)) from None


def committed(sink: OutputSink, run: Callable[[], Outcome]) -> Outcome:
    """Run a job that writes to a sink, and commit what it has written; nothing if its script was only asked for its help.

    Raises: what `run` raises; WriteError: it cannot be stored. Either way nothing is there, and what was there before still is.
    """
    try:
        outcome = run()
        if outcome.only_asked:
            sink.abort()
            return outcome
        with underway(WriteError, f"output: cannot store {sink.path}"):
            sink.commit()
    except BaseException:
        sink.abort()
        raise
    return outcome


def table_of(source: Any, engine: Engine) -> Any:
    """A source as it is, but for a table of a PyFlink program. Raises: ConfigError: an engine that cannot reach it."""
    if type(source).__module__.partition(".")[0] != "pyflink":
        return source
    if engine.name != "flink":
        raise ConfigError("source: a PyFlink table's rows are where Flink is; give engine='flink'")
    from akrunner.engines.flink.table import FlinkTable

    return FlinkTable.of(source)


def engine_of(engine: Union[str, Engine]) -> Engine:
    """An engine from its name. Raises: ConfigError: there is none of it."""
    if not isinstance(engine, str):
        with ours(ConfigError, "engine: it cannot be asked what it is"):
            right = isinstance(getattr(engine, "name", None), str) and callable(getattr(engine, "run", None))
        if isinstance(engine, type) or not right:
            raise ConfigError(
                f"engine must be 'local', 'flink' or an engine (akrunner.engines.flink.FlinkEngine), not {shown(engine)}"
            )
        return engine
    if engine == "local":
        from akrunner.engines.local import LocalEngine

        return LocalEngine()
    if engine == "flink":
        from akrunner.engines.flink import FlinkEngine

        return FlinkEngine()
    raise ConfigError(f"engine={shown(engine)}: this version has 'local' and 'flink'")


def check_observer(observer: Any) -> None:
    """Raises: ConfigError: it could not be told anything."""
    with ours(ConfigError, "observer: it cannot be asked what it is"):
        right = observer is None or all(callable(getattr(observer, name, None)) for name in ("progress", "log"))
    if not right:
        raise ConfigError(f"observer must have progress(progress) and log(task, line), not be {shown(observer)}")
