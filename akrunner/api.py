"""`akrunner.run`, `train` and `stream` behind their signatures: arguments -> JobSpec -> engine -> result."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from akrunner import codec, leftovers
from akrunner.checks import STDIN, check_flag, check_path, check_stdin, shown
from akrunner.engines.base import Engine, Observer, Stats, TaskResult
from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError, ModelError, SinkError, SourceError, WriteError
from akrunner.foreign import ours, redacted, underway
from akrunner.io import formats
from akrunner.io.follow import open_text
from akrunner.io.frames import to_pandas
from akrunner.io.paths import check_apart, expand
from akrunner.io.sinks import FirstBatchSink, LineWriter, MemorySink
from akrunner.io.table import TableSource
from akrunner.launch import environments, interpreters
from akrunner.model import Model, check_target, new_folder, remove_checkpoints
from akrunner.prepare.arguments import Arguments, PathLike, SchemaLike
from akrunner.prepare.job import Prepared, check_output, prepare
from akrunner.prepare.schemas import schema_of
from akrunner.stream_job import StreamJob
from akrunner.tables.names import is_table
from akrunner.tables.opening import OutputSink, RowsSink, file_sink, sink_to

if TYPE_CHECKING:
    import pandas

__all__ = ["LineWriter", "Result", "environments", "interpreters", "run_batch", "run_stream", "run_train"]

#: how many column names the repr of a result shows
_NAMED = 8
#: where a plan says that the rows go if `output=` is not given
IN_MEMORY = "result.table, in memory"


@dataclass(frozen=True)
class Result:
    """A job that succeeded.

    Attributes:
        table: the rows that the scripts wrote, the chief's first; None if they went to a file, or if the scripts wrote nothing
            and there is no output schema.
        output: the file that the rows (in a train job: the model) were written to, None if there is none.
        tasks: the result of each task.
        stats: times, rows, bytes; `stats.bound` says whether the job was input-bound or compute-bound, if that is known.
        work_dir: the directory of the job, None unless it was kept (`work_dir=`, `debug=True`).
        model: the model of a train job, None for other jobs.
    """

    table: pa.Table | None
    output: str | None
    tasks: tuple[TaskResult, ...]
    stats: Stats
    work_dir: str | None
    model: Model | None = None

    def __repr__(self) -> str:
        # a notebook shows this if the result is the last line of a cell
        said = [f"{self.stats.rows_out:,} row{'' if self.stats.rows_out == 1 else 's'}"]
        if self.table is not None:
            names = self.table.column_names
            said[0] += f" of {', '.join(names[:_NAMED])}" + (
                f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            )
        said[0] += f" in {self.stats.seconds:.1f} s"
        where = (
            ("output", self.output),
            ("work_dir", self.work_dir),
            ("model", self.model.path if self.model is not None else None),
        )
        said += [f"{name} {redacted(place)}" for name, place in where if place is not None]
        count = len(self.stats.warnings)
        said += [f"{count} warning{'' if count == 1 else 's'} (stats.warnings)"] if count else []
        return f"<Result: {'; '.join(said)}>"

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas frame.

        Returns:
            a new frame, as `table.to_pandas()` makes it, with one difference. A column of integers with nulls becomes doubles
            (NaN for a null), but if it also has numbers beyond 2**53, which doubles cannot hold, it becomes pandas' nullable
            integers (`Int64`, `UInt64`).
        Raises:
            ConfigError: there is no table in memory, or pandas is not installed.
        """
        if self.table is None:
            raise ConfigError(
                "there is no table in memory: the script wrote nothing and there is no output_schema=, or it went to output="
            )
        try:
            return to_pandas(self.table)
        except ModuleNotFoundError as e:
            raise ConfigError(f"to_pandas() needs pandas: pip install 'akrunner[pandas]' ({e})") from None


def run_batch(given: Arguments, observer: Observer | None) -> Result:
    """Run a batch job, as `akrunner.run` says. Raises: the exceptions of `akrunner.run`."""
    given, engine = _with_engine(given, observer)
    return _run(prepare("batch", given), engine, observer, given.output, given.output_format, given.overwrite)


def run_train(
    given: Arguments,
    model_out: PathLike | None,
    remove_checkpoint_before_training: bool,
    observer: Observer | None,
) -> Result:
    """Run a train job, as `akrunner.train` says. Raises: the exceptions of `akrunner.train`."""
    given, engine = _with_engine(given, observer)
    check_flag("overwrite", given.overwrite)
    if model_out is not None:
        model_out = check_path("model_out", model_out, ModelError)
        with ours(ModelError, f"model_out: cannot open {model_out}"):
            check_target(model_out, given.overwrite)
    if check_flag("remove_checkpoint_before_training", remove_checkpoint_before_training) and given.checkpoint_dir is None:
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
        checkpoint = os.path.join(folder, "checkpoint") if given.save_latest_checkpoint else None
        model = Model(model_dir, checkpoint, temporary=folder)
    except BaseException:
        leftovers.drop(folder)
        raise
    saved = None
    if model_out is not None:
        with underway(WriteError, "model_out"):
            saved = model.save(model_out, given.overwrite)
    return dataclasses.replace(result, model=model, output=saved)


def run_stream(given: Arguments, follow: bool, observer: Observer | None) -> StreamJob:
    """Start a stream job, as `akrunner.stream` says. Raises: the exceptions of `akrunner.stream`."""
    given, engine = _with_engine(given, observer)
    source, form, columns = lines_source(given.source, given.input_format, given.input_schema, follow)
    prepared = prepare("stream", dataclasses.replace(given, source=source, input_format=form, input_schema=columns))
    schema = prepared.job.output_schema
    return StreamJob(
        lambda sink, cancel: engine.run(prepared.job, prepared.table, sink, observer, cancel), schema.arrow if schema else None
    )


def _with_engine(given: Arguments, observer: Observer | None) -> tuple[Arguments, Engine]:
    """Open the engine, and wrap the source if it is a PyFlink table (`table_of`).

    Returns: the arguments with both in them, and the engine.
    Raises: ConfigError: the engine or the observer is wrong, or the engine cannot reach the table.
    """
    engine = engine_of(given.engine)
    check_observer(observer)
    return dataclasses.replace(given, engine=engine, source=table_of(given.source, engine)), engine


def lines_source(
    source: Any, form: str | None, schema: SchemaLike | None, follow: bool
) -> tuple[Any, str | None, SchemaLike | None]:
    """Open the source if it is stdin ("-") or a growing file (`follow`).

    Returns: (source, format, schema): unchanged, or the opened lines, which know their format and schema, None and None.
    """
    if check_flag("follow", follow) or (isinstance(source, str) and source == "-"):
        return _open_lines(source, form, schema, follow), None, None
    return source, form, schema


def _open_lines(source: Any, form: str | None, schema: SchemaLike | None, follow: bool) -> TableSource:
    """Open stdin or a growing file, to read its lines as they arrive."""
    if not isinstance(source, (str, os.PathLike)):
        raise ConfigError("follow= is for one file; the source is " + type(source).__name__)
    name = check_path("source", source, SourceError)
    lines = formats.lines_named(form) if form else formats.lines_of(name) or formats.LINES[0]
    if lines is None:
        raise ConfigError(f"input_format={shown(form)}: lines are read as {' or '.join(one.name for one in formats.LINES)}")
    check_stdin("source", STDIN if name == "-" else name, SourceError)
    try:
        fd = 0 if name == "-" else os.open(os.path.expanduser(name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as e:
        raise SourceError(f"source: {name}: {e.strerror}") from None
    return open_text(fd, lines, schema_of(schema, "input_schema"), follow, "stdin" if name == "-" else name)


def _run(
    prepared: Prepared,
    engine: Engine,
    observer: Observer | None,
    output: PathLike | None,
    output_format: str | None,
    overwrite: bool,
) -> Result:
    """Run a prepared job, and keep its rows in memory or write them to `output`."""
    job, schema = prepared.job, prepared.job.output_schema
    if output is None or (schema is None and not job.output_inferred):
        memory = MemorySink(schema.arrow if schema is not None else None)
        outcome = engine.run(job, prepared.table, memory, observer)
        return Result(memory.table(), None, outcome.tasks, outcome.stats, outcome.work_dir)
    path = os.fspath(output)
    sink: OutputSink | FirstBatchSink
    if schema is not None:
        sink = sink_to(path, schema.arrow, codec.write_examples, output_format, overwrite)
    else:
        # the output is no table by name: `prepare` makes sure that such an output has an output schema
        sink = FirstBatchSink(path, lambda columns: sink_to(path, columns, codec.write_examples, output_format, overwrite))
    outcome = committed(sink, lambda: engine.run(job, prepared.table, sink, observer))
    return Result(None, None if outcome.only_asked else sink.path, outcome.tasks, outcome.stats, outcome.work_dir)


def check_stream_output(output: str, overwrite: bool, schema: SchemaLike | None) -> None:
    """Check that a stream's rows can be written to `output`.

    Args: schema: the schema of the rows, None if it is not known yet.
    Raises: SinkError: the rows cannot be written there; SchemaError: the schema is wrong.
    """
    known = schema_of(schema, "output_schema")
    check_output(output, None, overwrite, known.arrow if known is not None else pa.schema([]))


def check_lines(form: str, schema: SchemaLike | None) -> None:
    """Check that lines of a text format can hold the rows.

    Args: form: csv or jsonl; schema: the schema of the rows, None if it is not known yet.
    Raises: SinkError: lines cannot hold such rows; SchemaError: the schema is wrong.
    """
    known = schema_of(schema, "output_schema")
    if known is not None:
        formats.named(form).check(known.arrow)


def check_stream_apart(source: str, form: str | None, follow: bool, output: str) -> None:
    """Check that a stream does not write to a file that it reads.

    Args: source, form, follow: as `source`, `input_format`, `follow` of `stream`.
    Raises: SinkError: the output is a file of the input, or lies among the input's files; SourceError: there is nothing to
        read.
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
        # the job reads the table as it was when it started, so it may also write to the table
        return
    with ours(SourceError, "source: it cannot be read"):
        files = expand(source, form)
    check_apart(files, output)


def stream_sink(output: str, schema: pa.Schema | None, overwrite: bool) -> RowsSink:
    """Return a sink for a stream's rows, which count only once the stream has ended well.

    Args: schema: the schema of the rows, None if no row was written.
    Raises: WriteError: the rows cannot be written there. It is no SinkError because the job runs already.
    """
    try:
        return file_sink(output, schema if schema is not None else pa.schema([]), codec.write_examples, None, overwrite)
    except SinkError as e:
        raise WriteError(str(e)) from None


class Ended(Protocol):
    """A job that has ended well.

    Attributes: only_asked: whether its script was only asked for its help and did nothing else.
    """

    @property
    def only_asked(self) -> bool: ...


Job = TypeVar("Job", bound=Ended)


def committed(sink: OutputSink | FirstBatchSink, run: Callable[[], Job]) -> Job:
    """Run a job that writes to a sink, and commit its output, or nothing if its script was only asked for its help.

    Returns: the return value of `run`, once the job has ended.
    Raises: the exceptions of `run`; WriteError: the output cannot be stored. In both cases nothing is written, and an output
        that was there before is still there.
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
    """Return the source unchanged, or as a `FlinkTable` if it is a table of a PyFlink program.

    Raises: ConfigError: it is such a table, and the engine cannot reach it.
    """
    if type(source).__module__.partition(".")[0] != "pyflink":
        return source
    if not engine.capabilities.pyflink:
        raise ConfigError("source: a PyFlink table's rows are where Flink is; give engine='flink'")
    from akrunner.engines.flink.host.table import FlinkTable

    return FlinkTable.of(source)


def check_observer(observer: Any) -> None:
    """Check that an observer is None or has the methods `progress` and `log`. Raises: ConfigError: it is neither."""
    with ours(ConfigError, "observer: it cannot be asked what it is"):
        right = observer is None or all(callable(getattr(observer, name, None)) for name in ("progress", "log"))
    if not right:
        raise ConfigError(f"observer must have progress(progress) and log(task, line), not be {shown(observer)}")
