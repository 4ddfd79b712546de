"""Which table a job reads, when its argument is no table yet: stdin, a growing file, a stream of Kafka, Redis or files, a table
of a PyFlink program."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from akrunner.checks import check_count, check_flag, check_seconds
from akrunner.engines.base import Engine
from akrunner.errors import ConfigError, SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import streams
from akrunner.io.bad_rows import BadRows
from akrunner.io.streams.counted import counted
from akrunner.io.table import TableSource
from akrunner.prepare.reading import Reading
from akrunner.schema import Schema


def lines_source(given: Mapping[str, Any], follow: bool) -> dict[str, Any]:
    """Open the source if it is stdin ("-") or a growing file (`follow`).

    Args: given: the job's arguments, by their names.
    Returns: the arguments that say where rows come from: unchanged, or the opened lines as `source`, and None for the others, as
        the lines know them.
    """
    said = {name: given[name] for name in ("source", "input_format", "input_schema", "input_csv")}
    source = said["source"]
    if check_flag("follow", follow) or (isinstance(source, str) and source == "-"):
        reading = _reading(given)
        if follow and reading.bad is not None:
            # such a job has no end that is its success: it is stopped
            reading = replace(reading, bad=reading.bad.of_messages())
        return {**dict.fromkeys(said), "source": reading.lines(source, follow)}
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
    reading = _reading(given)
    bad = reading.bad.of_messages() if reading.bad is not None else None

    def file(path: str, columns: Schema | None) -> TableSource:
        found = None
        if bad is not None:
            # a file that only tells the columns is read again for its rows
            found = bad.of_file() if columns is not None else BadRows(None, bad.limit)
        return replace(reading, schema=columns, bad=found).open(path)

    system = streams.system_of(url)
    if bad is not None and system.has_files:
        _check_apart(bad, url)
    if form is not None and not system.has_files:
        raise SourceError(f"input_format= (--input-format) is for files; {shown_url} says with ?value= what its values are")
    if reading.csv is not None and not system.has_files:
        raise SourceError(f"input_csv= (--input-csv) is for files; {shown_url} says with ?value= what its values are")
    with ours(SourceError, f"source: cannot read {shown_url}"):
        check_seconds("flush_seconds", given["flush_seconds"])
        opened = system.open(url, reading.schema, given["flush_seconds"], file)
    if bad is not None:
        opened = _leaving_out(opened, bad)
    return {"source": opened, "input_format": None, "input_schema": None, "input_csv": None}


def _check_apart(bad: BadRows, url: str) -> None:
    """Check that bad rows are not written to the directory in which files arrive. Raises: SourceError: they are."""
    folder = urllib.parse.unquote(url.partition("?")[0].partition("://")[2])
    if bad.directory is not None and os.path.realpath(bad.directory) == os.path.realpath(folder):
        raise SourceError(
            f"bad_rows= (--bad-rows): {bad.directory} is the directory in which files arrive: what is written there would be read as one "
            "of them; name another directory"
        )


def _reading(given: Mapping[str, Any]) -> Reading:
    """Check the arguments that say how rows are written. Raises: ConfigError: a value is wrong."""
    names = ("input_schema", "input_format", "input_csv", "bad_rows", "max_bad_rows")
    return Reading.written(**{name: given[name] for name in names})


def _leaving_out(table: TableSource, bad: BadRows) -> TableSource:
    """Return a stream whose bad messages, or rows of files, are left out and counted."""
    assert table.arriving is not None
    table.arriving.source.bad = bad

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.open()
        bad.end()

    return replace(table, bad=bad, open=batches)


def _going_on(given: Mapping[str, Any], lines: dict[str, Any]) -> dict[str, Any]:
    """Return a growing file that `lines_source` has opened as one whose lines are counted, so that it can go on at one of them."""
    first: TableSource = lines["source"]

    def again() -> TableSource:
        if first.bad is not None:
            first.bad.restart()
        # the bad rows of every attempt go to those who took them from the first one, which know those that come again
        return replace(_reading({**given, "input_schema": first.schema}), bad=first.bad).lines(given["source"], True)

    path = os.path.abspath(os.path.expanduser(os.fspath(given["source"])))
    return {**lines, "source": counted(first, path, again)}


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
