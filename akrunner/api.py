"""L4: arguments -> JobSpec -> engine -> result."""

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

#: columns that are named of a result
_NAMED = 8
#: what a plan says of rows that no output= takes
IN_MEMORY = "result.table, in memory"


@dataclass(frozen=True)
class Result:
    """A job that succeeded.

    Attributes:
        table: what the scripts wrote, the chief's rows first; None when it went to a file, or nothing was written and there is no output schema.
        output: the file it (of a train job: the model) went to, if it did.
        tasks: what became of each task.
        stats: times, rows, bytes; `stats.bound` says whether the job was input-bound or compute-bound, if it is known.
        work_dir: the directory of the job, None unless it was kept (`work_dir=`, `debug=True`).
        model: what a train job left, None for others.
    """

    table: pa.Table | None
    output: str | None
    tasks: tuple[TaskResult, ...]
    stats: Stats
    work_dir: str | None
    model: Model | None = None

    def __repr__(self) -> str:
        # what a notebook shows of a cell's last line
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
        """The table as a pandas frame.

        Returns:
            a frame of its own, as `table.to_pandas()` makes it. One thing is another: a column of integers that has nulls, and numbers beyond 2**53,
            has pandas' nullable integers (`Int64`, `UInt64`), as the doubles that others with nulls become (NaN for a null) cannot hold them.
        Raises:
            ConfigError: there is no table in memory, or no pandas.
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
    """`akrunner.run`. Raises: as it does."""
    given, engine = _with_engine(given, observer)
    return _run(prepare("batch", given), engine, observer, given.output, given.output_format, given.overwrite)


def run_train(
    given: Arguments,
    model_out: PathLike | None,
    remove_checkpoint_before_training: bool,
    observer: Observer | None,
) -> Result:
    """`akrunner.train`. Raises: as it does."""
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
    """`akrunner.stream`. Raises: as it does."""
    given, engine = _with_engine(given, observer)
    source, form, columns = lines_source(given.source, given.input_format, given.input_schema, follow)
    prepared = prepare("stream", dataclasses.replace(given, source=source, input_format=form, input_schema=columns))
    schema = prepared.job.output_schema
    return StreamJob(
        lambda sink, cancel: engine.run(prepared.job, prepared.table, sink, observer, cancel), schema.arrow if schema else None
    )


def _with_engine(given: Arguments, observer: Observer | None) -> tuple[Arguments, Engine]:
    """The arguments with their engine opened and their table where it is, and the engine. Raises: ConfigError."""
    engine = engine_of(given.engine)
    check_observer(observer)
    return dataclasses.replace(given, engine=engine, source=table_of(given.source, engine)), engine


def lines_source(
    source: Any, form: str | None, schema: SchemaLike | None, follow: bool
) -> tuple[Any, str | None, SchemaLike | None]:
    """(source, format, schema): as they are, or stdin or a growing file opened, which has its format and schema in it."""
    if check_flag("follow", follow) or (isinstance(source, str) and source == "-"):
        return _open_lines(source, form, schema, follow), None, None
    return source, form, schema


def _open_lines(source: Any, form: str | None, schema: SchemaLike | None, follow: bool) -> TableSource:
    """Stdin or a growing file."""
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
    """Run it, its rows into memory or a file."""
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
        # of a table the columns are declared: prepare has seen to that
        sink = FirstBatchSink(path, lambda columns: sink_to(path, columns, codec.write_examples, output_format, overwrite))
    outcome = committed(sink, lambda: engine.run(job, prepared.table, sink, observer))
    return Result(None, None if outcome.only_asked else sink.path, outcome.tasks, outcome.stats, outcome.work_dir)


def check_stream_output(output: str, overwrite: bool, schema: SchemaLike | None) -> None:
    """Args: schema: of the rows, None: not known yet. Raises: SinkError: they cannot go there; SchemaError."""
    known = schema_of(schema, "output_schema")
    check_output(output, None, overwrite, known.arrow if known is not None else pa.schema([]))


def check_lines(form: str, schema: SchemaLike | None) -> None:
    """Args: form: csv or jsonl; schema: of the rows, None: not known yet. Raises: SinkError: lines cannot hold them; SchemaError."""
    known = schema_of(schema, "output_schema")
    if known is not None:
        formats.named(form).check(known.arrow)


def check_stream_apart(source: str, form: str | None, follow: bool, output: str) -> None:
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


def stream_sink(output: str, schema: pa.Schema | None, overwrite: bool) -> RowsSink:
    """Where a stream's rows go that count when it has ended well. Raises: WriteError: they cannot go there; the job runs already."""
    try:
        return file_sink(output, schema if schema is not None else pa.schema([]), codec.write_examples, None, overwrite)
    except SinkError as e:
        raise WriteError(str(e)) from None


class Ended(Protocol):
    """A job that has ended well. Attributes: only_asked: its script was asked for its help, and has done nothing else."""

    @property
    def only_asked(self) -> bool: ...


Job = TypeVar("Job", bound=Ended)


def committed(sink: OutputSink | FirstBatchSink, run: Callable[[], Job]) -> Job:
    """Run a job that writes to a sink, and commit what it has written; nothing if its script was only asked for its help.

    Returns: what `run` returns, once the job has ended.
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
    if not engine.capabilities.pyflink:
        raise ConfigError("source: a PyFlink table's rows are where Flink is; give engine='flink'")
    from akrunner.engines.flink.host.table import FlinkTable

    return FlinkTable.of(source)


def check_observer(observer: Any) -> None:
    """Raises: ConfigError: it could not be told anything."""
    with ours(ConfigError, "observer: it cannot be asked what it is"):
        right = observer is None or all(callable(getattr(observer, name, None)) for name in ("progress", "log"))
    if not right:
        raise ConfigError(f"observer must have progress(progress) and log(task, line), not be {shown(observer)}")
