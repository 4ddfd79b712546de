"""Rows to stdout, as lines: `--output -` of a job that has succeeded, and what a stream writes, as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pyarrow as pa

import akrunner
from akrunner.api import LineWriter, check_lines
from akrunner.cli.guarded import silence_stdout
from akrunner.io import formats
from akrunner.io.sinks import format_shown

STDOUT = "-"


def form_of(output: str | None, form: str | None, as_json: bool, schema: str | None) -> str | None:
    """The format of lines in which rows go to stdout; None: they do not go there.

    Args: form: of --output-format; schema: of the rows, None: not known yet.
    Raises: ConfigError: they cannot go there.
    """
    if output != STDOUT:
        return None
    if as_json:
        raise akrunner.ConfigError("--json: with --output - the rows go to stdout themselves; name a file for them")
    chosen = formats.lines_named(form or formats.LINES[0].name)
    if chosen is None:
        known = " or ".join(one.name for one in formats.LINES)
        raise akrunner.ConfigError(f"--output-format {form}: stdout takes {known}; name a file with --output")
    check_lines(chosen.name, schema)
    return chosen.name


def planned_form(path: str | None) -> str:
    """The format in which a stream's rows are written. Args: path: of the file, None: stdout."""
    return format_shown(path, None) if path is not None else formats.LINES[0].name


def check_not_stdout(output: str | None) -> None:
    """Of a detached job. Raises: ConfigError."""
    if output == STDOUT:
        raise akrunner.ConfigError("--output -: a detached job has no stdout here; name a file")


def write(batches: Iterable[pa.RecordBatch], form: str, schema: pa.Schema | None) -> None:
    """Write rows to stdout as they come. Args: schema: of the rows, None: that of the first batch.

    Raises: WriteError: stdout does not take them.
    """
    writer = LineWriter(sys.stdout.buffer, form, schema)
    try:
        for batch in batches:
            writer.write(batch)
        writer.close()
    except BrokenPipeError:
        # `| head`: nobody wants more
        silence_stdout()
    except akrunner.WriteError:
        silence_stdout()
        raise
