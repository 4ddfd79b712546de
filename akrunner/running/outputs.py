"""Where the rows of a job go: checks before it starts, the sinks of streams, and the commit when it has succeeded."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol, TypeVar

import pyarrow as pa

from akrunner import codec
from akrunner.checks import check_flag, check_path
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.foreign import ours, redacted, underway
from akrunner.io import formats, streams, systems
from akrunner.io.bad_rows import BadRows, kept
from akrunner.io.commits import uncommitted
from akrunner.io.limits import Limits, current, narrowed, under
from akrunner.io.paths import check_apart, expand, local_place
from akrunner.io.sinks import FirstBatchSink
from akrunner.prepare.arguments import SchemaLike
from akrunner.prepare.schemas import schema_of
from akrunner.tables.names import is_table
from akrunner.tables.opening import OutputSink, RowsSink, file_sink

#: where a plan says that the rows go if `output=` is not given
IN_MEMORY = "result.table, in memory"


def check_stream_output(output: str, overwrite: bool, schema: SchemaLike | None) -> None:
    """Check that a stream's rows can be written to `output`.

    Args: schema: the schema of the rows, None if it is not known yet.
    Raises: SinkError: the rows cannot be written there; SchemaError: the schema is wrong.
    """
    known = schema_of(schema, "output_schema")
    check_flag("overwrite", overwrite)
    path = check_path("output", output, SinkError)
    with ours(SinkError, f"output: {path}"):
        # as `stream_sink` opens it
        file_sink(path, known.arrow if known is not None else pa.schema([]), codec.write_examples, None, overwrite)


def check_stream_url(output: str, schema: SchemaLike | None, source: str) -> None:
    """Check that rows can be written to a stream by its URL (`kafka://`), as far as that is known before the job starts.

    Args: schema: the schema of the rows, None if it is not known yet; source: what the job reads, as `source` of `stream`.
    Raises: SinkError: the rows cannot be written there; SchemaError: the schema is wrong.
    """
    known = schema_of(schema, "output_schema")
    with ours(SinkError, f"output: cannot write {redacted(output.partition('?')[0])}"):
        streams.system_of(output).check_output(output, known.arrow if known is not None else None, source)


def check_not_arriving(source: str, output: str) -> None:
    """Check that a file that is written does not arrive among those that the job reads.

    Args: source: the URL of a stream.
    Raises: SinkError: it does.
    """
    if source.partition("://")[0].lower() != "files" or output.endswith("/"):
        return
    from akrunner.io.streams.files import arrives

    path = local_place(output)
    if path is not None and arrives(source, path):
        raise SinkError(
            f"output: {output} lies in the directory in which files arrive ({redacted(source.partition('?')[0])}), and would be read as one "
            "of them: write to another directory, or name the files to read (?pattern=*.csv)"
        )


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
        written = local_place(output)
        if written is not None and os.path.isfile(written) and os.path.samestat(read, os.stat(written)):
            raise SinkError(
                f"output: {output} is the input, which would be read and written at the same time; write to another place "
                "(--output)"
            )
        return
    if is_table(source) or systems.is_system(source):
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


def keeping(bad: BadRows | None, run: Callable[[], Job]) -> Job:
    """Run a job, and commit the bad rows of its input once it has succeeded, or none if its script was only asked for its help.

    Returns: the return value of `run`.
    Raises: the exceptions of `run`; WriteError: the bad rows cannot be stored. In both cases none are.
    """
    if bad is None:
        return run()
    # the bad rows are there before the output is; `kept` around both removes them again if the output cannot be stored
    with kept(bad):
        outcome = run()
        bad.abort() if outcome.only_asked else bad.commit()
        return outcome


def run_into(
    sink: OutputSink | FirstBatchSink, run: Callable[[], Job], waits: tuple[float | None, float | None] | None = None
) -> Job:
    """Run a job that writes to a sink, and commit its output, or nothing if its script was only asked for its help.

    Args: waits: as `SupervisionSpec.waits`, for the waits of the sink; None: the block around this has limits.
    Returns: the return value of `run`, once the job has ended.
    Raises: the exceptions of `run`; WriteError: the output cannot be stored. In both cases the output is not written, and one
        that was there before is still there. A job with output tables has committed them by then, with this sink
        (`akrunner.engines.attempts`); if only the sink failed, its error says that the tables are written.
    """
    limits = narrowed(*waits) if waits is not None else current()
    # what is aborted is given its time, also if the job's time is over
    with under(Limits()), uncommitted(sink), under(limits):
        outcome = run()
        if outcome.only_asked:
            # here, and not behind the block, where a failure would be told as one behind a commit
            sink.abort()
        else:
            with underway(WriteError, f"output: cannot store {sink.path}"):
                sink.commit()
        return outcome
