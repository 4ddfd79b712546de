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
from akrunner.io.sources import only_columns
from akrunner.io.streams.counted import counted
from akrunner.io.table import Awaited, TableSource
from akrunner.io.taken import check_columns
from akrunner.prepare.reading import Reading
from akrunner.schema import Schema
from akrunner.spec import come_once

#: the arguments that say where rows come from, and how they are written there
_SAID = ("source", "input_format", "input_schema", "input_csv")


def lines_source(given: Mapping[str, Any], follow: bool) -> dict[str, Any]:
    """Open the source if it is stdin ("-") or a growing file (`follow`).

    Args: given: the job's arguments, by their names.
    Returns: the arguments that say where rows come from: unchanged, or the opened lines as `source`, and None for the others, as
        the lines know them.
    """
    said = {name: given[name] for name in _SAID}
    if _are_lines(said["source"], follow):
        reading = _reading(given)
        if follow and reading.bad is not None:
            # such a job has no end that is its success: it is stopped
            reading = replace(reading, bad=reading.bad.of_messages())
        return {**dict.fromkeys(said), "source": reading.lines(said["source"], follow)}
    return said


def _are_lines(source: Any, follow: bool) -> bool:
    """Whether the source is stdin or a growing file. Raises: ConfigError: `follow` is no boolean."""
    return check_flag("follow", follow) or (isinstance(source, str) and source == "-")


def arriving_source(given: Mapping[str, Any], follow: bool, engine: Engine) -> dict[str, Any]:
    """Open the source of a stream job as `lines_source` does, and also if it is a stream's URL (`kafka://`).

    Args: given, follow: as for `lines_source`; engine: the job's.
    Returns: as `lines_source`; lines without a schema as `Awaited`.
    """
    source, form = given["source"], given["input_format"]
    with ours(SourceError, "source: it cannot be read"):
        arrives = streams.is_stream(source)
    if not arrives:
        return _arriving_lines(given, follow, engine)
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
    system = streams.system_of(url)
    columns = check_columns(given.get("columns")) if system.has_files else None
    if reading.schema is None and reading.csv is not None and reading.csv.header is False:
        # the places of all columns are their names, so all are read
        columns = None

    def file(path: str, taken: Schema | None) -> TableSource:
        found = None
        if bad is not None:
            # a file that only tells the columns is read again for its rows
            found = bad.of_file(path) if taken is not None else BadRows(None, bad.limit)
        # a CSV without a line of names needs the whole `input_schema=`, as its columns are told apart by their places
        return replace(reading, schema=reading.schema or taken, bad=found, columns=columns).open(path)

    if bad is not None and system.has_files:
        _check_apart(bad, url)
    if form is not None and not system.has_files:
        raise SourceError(f"input_format= (--input-format) is for files; {shown_url} says with ?value= what its values are")
    if reading.csv is not None and not system.has_files:
        raise SourceError(f"input_csv= (--input-csv) is for files; {shown_url} says with ?value= what its values are")
    with ours(SourceError, f"source: cannot read {shown_url}"):
        check_seconds("flush_seconds", given["flush_seconds"])
        schema = only_columns(reading.schema, columns) if reading.schema is not None else None
        opened = system.open(url, schema, given["flush_seconds"], file)
    if bad is not None:
        opened = _leaving_out(opened, bad)
    if opened.arriving is not None:
        opened.arriving.source.read_as = reading.read_as
    return {**dict.fromkeys(_SAID), "source": opened}


def _arriving_lines(given: Mapping[str, Any], follow: bool, engine: Engine) -> dict[str, Any]:
    """Open the source of a stream job as `lines_source` does, and so that the job can go on in it. Returns: as `arriving_source`."""
    restarts = check_count("max_restarts", given.get("max_restarts", 0), 0)
    again = check_flag("resume", given.get("resume", False)) or restarts > 0
    if again and isinstance(given["source"], str) and given["source"] == "-" and engine.capabilities.marks:
        # before its first row, which may never come
        raise come_once("max_restarts" if restarts else "resume", "stdin")

    def opened() -> dict[str, Any]:
        lines = lines_source(given, follow)
        return _going_on(given, lines) if follow and again else lines

    if not _are_lines(given["source"], follow) or _reading(given).schema is not None:
        return opened()
    _reading(given).check_lines(given["source"])
    # the first row may never come, and until then nobody would hear of a mistake in the other arguments
    return {**dict.fromkeys(_SAID), "source": Awaited(lambda: opened()["source"])}


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
    return {**lines, "source": counted(first, path, again, _reading(given).read_as)}


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
