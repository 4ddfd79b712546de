"""Which table a job reads, when its argument is no table yet: stdin, a growing file, a stream of Kafka, Redis or files, a table
of a PyFlink program."""

from __future__ import annotations

import os
from typing import Any

from akrunner import codec
from akrunner.checks import STDIN, check_flag, check_path, check_seconds, check_stdin, shown
from akrunner.engines.base import Engine
from akrunner.errors import ConfigError, SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import formats, streams
from akrunner.io.bad_rows import BadRows
from akrunner.io.follow import open_text
from akrunner.io.table import TableSource
from akrunner.prepare.arguments import SchemaLike
from akrunner.prepare.schemas import schema_of
from akrunner.schema import Schema
from akrunner.tables.opening import open_source


def lines_source(
    source: Any, form: str | None, schema: SchemaLike | None, follow: bool, bad: BadRows | None = None
) -> tuple[Any, str | None, SchemaLike | None]:
    """Open the source if it is stdin ("-") or a growing file (`follow`).

    Args: bad: takes the bad rows of these lines; None: they are errors.
    Returns: (source, format, schema): unchanged, or the opened lines, which know their format and schema, None and None.
    """
    if check_flag("follow", follow) or (isinstance(source, str) and source == "-"):
        return _open_lines(source, form, schema, follow, bad), None, None
    return source, form, schema


def arriving_source(
    source: Any,
    form: str | None,
    schema: SchemaLike | None,
    follow: bool,
    engine: Engine,
    flush_seconds: float,
    bad: BadRows | None = None,
) -> tuple[Any, str | None, SchemaLike | None]:
    """Open the source of a stream job as `lines_source` does, and also if it is a stream's URL (`kafka://`).

    Args: source, form, schema, follow, bad: as for `lines_source`; engine: the job's; flush_seconds: how long a row may wait.
    Returns: as `lines_source`.
    """
    if not streams.is_stream(source):
        return lines_source(source, form, schema, follow, bad)
    url = os.fspath(source)
    shown_url = redacted(url.partition("?")[0])
    if check_flag("follow", follow):
        raise ConfigError(f"follow= (--follow) is for a file that grows; {shown_url} is followed without it")
    if not engine.capabilities.marks:
        raise ConfigError(
            f"source: {shown_url} is read by engine='local'; on {engine.name} give a table of your PyFlink program, with Flink's "
            "own connector"
        )
    if bad is not None:
        raise SourceError(
            f"bad_rows= (--bad-rows) is for lines of files and stdin, and {shown_url} is a stream of messages: leave it out"
        )
    columns = schema_of(schema, "input_schema")

    def file(path: str, columns: Schema | None) -> TableSource:
        return open_source(path, read_examples=codec.read_examples, input_schema=columns, input_format=form)

    system = streams.system_of(url)
    if form is not None and not system.has_files:
        raise SourceError(f"input_format= (--input-format) is for files; {shown_url} says with ?value= what its values are")
    with ours(SourceError, f"source: cannot read {shown_url}"):
        check_seconds("flush_seconds", flush_seconds)
        return system.open(url, columns, flush_seconds, file), None, None


def _open_lines(source: Any, form: str | None, schema: SchemaLike | None, follow: bool, bad: BadRows | None) -> TableSource:
    """Open stdin or a growing file, to read its lines as they arrive."""
    if not isinstance(source, (str, os.PathLike)):
        raise ConfigError("follow= is for one file; the source is " + type(source).__name__)
    name = check_path("source", source, SourceError)
    lines = formats.lines_named(form) if form else formats.lines_of(name) or formats.LINES[0]
    if lines is None:
        raise ConfigError(f"input_format={shown(form)}: lines are read as {' or '.join(one.name for one in formats.LINES)}")
    check_stdin("source", STDIN if name == "-" else name, SourceError)
    columns = schema_of(schema, "input_schema")
    try:
        fd = 0 if name == "-" else os.open(os.path.expanduser(name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as e:
        raise SourceError(f"source: {name}: {e.strerror}") from None
    try:
        return open_text(fd, lines, columns, follow, "stdin" if name == "-" else name, bad)
    except BaseException:
        if fd != 0:
            os.close(fd)
        raise


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
