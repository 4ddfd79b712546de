"""Rows on stdout: with `--output -` all rows of a job that has succeeded, as lines or as a stream of Arrow; and the rows of a
stream as they come, as lines."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from typing import IO, Any

import pyarrow as pa

import akrunner
from akrunner.cli.guarded import silence_stdout
from akrunner.foreign import redacted
from akrunner.io import formats
from akrunner.io.csv_options import CsvOptions
from akrunner.io.limits import Limits, narrowed
from akrunner.io.piped import DESCRIPTORS, Piped
from akrunner.io.sinks import ArrowStream, LineWriter, format_shown
from akrunner.options import named
from akrunner.running.outputs import check_lines

STDOUT = "-"
#: the format of whole tables on stdout that is none of lines
_ARROW = "arrow"
#: other names of stdout
_NAMES = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def is_stdout(output: str | None) -> bool:
    """Whether rows written to `output` go to stdout, where the command prints other text as well.

    Raises: ConfigError: stdout was redirected to this file; writing the output would replace the file, and lose the text in it.
    """
    if output is None or output == STDOUT or output in _NAMES:
        return output is not None
    try:
        there, ours = os.stat(os.path.expanduser(output)), os.fstat(1)
    except (OSError, ValueError):
        # the output does not exist, it is a URL, or stdout is closed
        return False
    if not os.path.samestat(there, ours) or os.path.samestat(ours, os.stat(os.devnull)):
        return False
    if stat.S_ISREG(there.st_mode) and not output.startswith(DESCRIPTORS):
        raise akrunner.ConfigError(
            f"output: {redacted(output)} is where stdout goes, too; name another file, or - for the rows on stdout"
        )
    return True


def on_terminal(output: str | None) -> bool:
    """Whether the rows of a stream go to a terminal. Args: output: the value of --output; without one, rows go to stdout."""
    return sys.stdout is not None and sys.stdout.isatty() and (output is None or is_stdout(output))


def form_of(output: str | None, form: str | None, as_json: bool, schema: str | None) -> str | None:
    """Return the format in which all rows of a job go to stdout: one of lines, or arrow; None if they do not go there.

    Args: output: the value of --output; form: the value of --output-format; as_json: whether --json is given; schema: the
        schema of the rows, None if it is not known yet.
    Raises: ConfigError: the rows cannot go to stdout.
    """
    if not is_stdout(output):
        return None
    if as_json:
        raise akrunner.ConfigError(f"--json: with --output {output} the rows go to stdout themselves; name a file for them")
    chosen = form or formats.LINES[0].name
    if chosen != _ARROW and formats.lines_named(chosen) is None:
        known = ", ".join(one.name for one in formats.LINES)
        raise akrunner.ConfigError(f"--output-format {form}: stdout takes {known} or {_ARROW}; name a file with --output")
    if chosen == _ARROW and sys.stdout is not None and sys.stdout.isatty():
        raise akrunner.ConfigError(
            f"--output-format {_ARROW}: stdout is a terminal, which cannot show it; redirect it, or leave the option out for lines"
        )
    check_lines(chosen, schema)
    return chosen


def csv_of(given: str | None, form: str | None) -> CsvOptions | None:
    """Return how rows go to stdout as CSV; None: with commas, or they go elsewhere.

    Args: given: the value of --output-csv; form: what `form_of` returned.
    Raises: ConfigError: the value is wrong, or the rows go to stdout in another format.
    """
    csv = CsvOptions.of(given, "output_csv")
    if csv is not None and form is not None and not formats.named(form).delimited:
        raise akrunner.ConfigError(f"--output-csv: {form} goes to stdout; give --output-format csv")
    if csv is not None and form is not None and not csv.delimiter and "," in (csv.decimal, csv.quote):
        raise akrunner.ConfigError(
            "--output-csv: ',' stands between cells; give another delimiter, such as delimiter=semicolon"
        )
    return csv


def planned_form(path: str | None) -> str:
    """Return the format in which a stream's rows are written, for a plan. Args: path: the output file, None for stdout."""
    return format_shown(path, None) if path is not None else formats.LINES[0].name


def check_not_stdout(output: str | None) -> None:
    """Check that the output of a detached job is not stdout. Raises: ConfigError: it is."""
    if is_stdout(output):
        raise akrunner.ConfigError(f"--output {output}: a detached job has no stdout here; name a file")


def limits_of(options: Mapping[str, Any]) -> Limits:
    """Return the limits under which the rows of a job that begins now go to stdout, once it has succeeded.

    Its time goes on. Its `stall_timeout` counts only if one was asked for: who pages through a result may pause for long, and
    the rows are nowhere else.

    Args: options: the job's.
    """
    stall = options.get("stall_timeout")
    asked = stall != named("stall_timeout").default and options.get("stall_action") != "warn"
    return narrowed(options.get("timeout"), stall if asked else None)


def write(batches: Iterable[pa.RecordBatch], form: str, schema: pa.Schema | None, csv: CsvOptions | None = None) -> None:
    """Write rows to stdout as they come, within the limits of the block that runs (`akrunner.io.limits`).

    Args: form: as `form_of` returns it; schema: the schema of the rows, None if there are none; csv: how CSV is written.

    Raises: WriteError: stdout cannot be written; JobTimeoutError, JobStalledError: nobody reads it.
    """
    stream = _stdout()
    try:
        writer = (ArrowStream if form == _ARROW else LineWriter)(stream, form, schema, csv=csv)
        for batch in batches:
            writer.write(batch)
        writer.close()
    except BrokenPipeError:
        # the reader of the pipe has ended, as in `| head`
        silence_stdout()
    except akrunner.WriteError:
        silence_stdout()
        raise
    finally:
        # the writer has flushed the rows, or has failed: nobody is waited for
        if isinstance(stream, Piped):
            stream.drop()


def _stdout() -> IO[bytes]:
    """Return a stream to stdout whose writes wait for the reader as `Piped` does; Python's own one if stdout is no descriptor that
    can be written."""
    try:
        sys.stdout.flush()
        return Piped(os.dup(sys.stdout.fileno()), "stdout")
    except (OSError, ValueError):
        return sys.stdout.buffer
