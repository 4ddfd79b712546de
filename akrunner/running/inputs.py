"""Which table a job reads, when its argument is no table yet: stdin, a growing file, a stream of Kafka, Redis or files, a table
of a PyFlink program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from akrunner import codec
from akrunner.checks import STDIN, check_count, check_flag, check_path, check_seconds, check_stdin, shown
from akrunner.engines.base import Engine
from akrunner.errors import ConfigError, SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import formats, streams
from akrunner.io.bad_rows import BadRows
from akrunner.io.csv_options import CsvOptions
from akrunner.io.follow import open_text
from akrunner.io.streams.counted import counted
from akrunner.io.table import TableSource
from akrunner.prepare.arguments import SchemaLike
from akrunner.prepare.schemas import schema_of
from akrunner.schema import Schema
from akrunner.tables.opening import open_source


def lines_source(given: Mapping[str, Any], follow: bool) -> dict[str, Any]:
    """Open the source if it is stdin ("-") or a growing file (`follow`).

    Args: given: the job's arguments, by their names.
    Returns: the arguments that say where rows come from: unchanged, or the opened lines as `source`, and None for the others, as
        the lines know them.
    """
    said = {name: given[name] for name in ("source", "input_format", "input_schema", "input_csv")}
    source = said["source"]
    if check_flag("follow", follow) or (isinstance(source, str) and source == "-"):
        csv = CsvOptions.of(said["input_csv"], "input_csv")
        bad = BadRows.of(given["bad_rows"], given["max_bad_rows"])
        opened = _open_lines(source, said["input_format"], said["input_schema"], csv, follow, bad)
        return {**dict.fromkeys(said), "source": opened}
    return said


def arriving_source(given: Mapping[str, Any], follow: bool, engine: Engine) -> dict[str, Any]:
    """Open the source of a stream job as `lines_source` does, and also if it is a stream's URL (`kafka://`).

    Args: given, follow: as for `lines_source`; engine: the job's.
    Returns: as `lines_source`.
    """
    source, form = given["source"], given["input_format"]
    with ours(SourceError, "source: it cannot be read"):
        arrives = streams.is_stream(source)
    if not arrives:
        lines = lines_source(given, follow)
        again = (
            check_flag("resume", given.get("resume", False)) or check_count("max_restarts", given.get("max_restarts", 0), 0) > 0
        )
        return _going_on(given, lines) if follow and again else lines
    url = os.fspath(source)
    shown_url = redacted(url.partition("?")[0])
    if check_flag("follow", follow):
        raise ConfigError(f"follow= (--follow) is for a file that grows; {shown_url} is followed without it")
    if not engine.capabilities.marks:
        raise ConfigError(
            f"source: {shown_url} is read by engine='local'; on {engine.name} give a table of your PyFlink program, with Flink's "
            "own connector"
        )
    if BadRows.of(given["bad_rows"], given["max_bad_rows"]) is not None:
        raise SourceError(
            f"bad_rows= (--bad-rows) is for lines of files and stdin, and {shown_url} is a stream of messages: leave it out"
        )
    columns = schema_of(given["input_schema"], "input_schema")
    csv = CsvOptions.of(given["input_csv"], "input_csv")

    def file(path: str, columns: Schema | None) -> TableSource:
        return open_source(path, read_examples=codec.read_examples, input_schema=columns, input_format=form, input_csv=csv)

    system = streams.system_of(url)
    if form is not None and not system.has_files:
        raise SourceError(f"input_format= (--input-format) is for files; {shown_url} says with ?value= what its values are")
    if csv is not None and not system.has_files:
        raise SourceError(f"input_csv= (--input-csv) is for files; {shown_url} says with ?value= what its values are")
    with ours(SourceError, f"source: cannot read {shown_url}"):
        check_seconds("flush_seconds", given["flush_seconds"])
        opened = system.open(url, columns, given["flush_seconds"], file)
    return {"source": opened, "input_format": None, "input_schema": None, "input_csv": None}


def _going_on(given: Mapping[str, Any], lines: dict[str, Any]) -> dict[str, Any]:
    """Return a growing file that `lines_source` has opened as one whose lines are counted, so that it can go on at one of them."""
    first: TableSource = lines["source"]

    def again() -> TableSource:
        if first.bad is not None:
            first.bad.restart()
        opened: TableSource = lines_source({**given, "input_schema": first.schema}, True)["source"]
        return opened

    path = os.path.abspath(os.path.expanduser(os.fspath(given["source"])))
    return {**lines, "source": counted(first, path, again)}


def _open_lines(
    source: Any, form: str | None, schema: SchemaLike | None, csv: CsvOptions | None, follow: bool, bad: BadRows | None
) -> TableSource:
    """Open stdin or a growing file, to read its lines as they arrive."""
    if not isinstance(source, (str, os.PathLike)):
        raise ConfigError("follow= is for one file; the source is " + type(source).__name__)
    name = check_path("source", source, SourceError)
    untold = formats.LINES[0] if csv is None else formats.csv.FORMAT
    lines = formats.lines_named(form) if form else formats.lines_of(name) or untold
    if lines is None:
        raise ConfigError(f"input_format={shown(form)}: lines are read as {' or '.join(one.name for one in formats.LINES)}")
    if csv is not None and not lines.delimited:
        raise ConfigError(f"input_csv= (--input-csv) is for CSV, and {name} is read as {lines.name}; leave it out")
    check_stdin("source", STDIN if name == "-" else name, SourceError)
    columns = schema_of(schema, "input_schema")
    if csv is not None and columns is not None:
        csv = csv.named(tuple(columns.names))
    try:
        fd = 0 if name == "-" else os.open(os.path.expanduser(name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as e:
        raise SourceError(f"source: {name}: {e.strerror}") from None
    try:
        return open_text(fd, lines.written_as(csv), columns, follow, "stdin" if name == "-" else name, bad)
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
