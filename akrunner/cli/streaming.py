"""`akrunner stream` and `akrunner predict -i -`: lines are read as they come, and rows are written as they come.

::

    no --output                    JSON lines on stdout, each batch at once
    --output FILE                  the file is there when the stream has ended well, and only then
    --output FILE --output-live    the file is written in place, each batch at once, so that others can read along; if the job
                                   fails, the file stays as it is
    --output kafka://...           rows are added as they come (also redis://); with ?transactional_id=NAME, exactly once

Of an input that is remembered (kafka://, redis://, files://), rows count as read once what was made of them is written.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import akrunner
from akrunner.cli import lines, show, signals
from akrunner.foreign import redacted, secrets
from akrunner.io import formats
from akrunner.io.commits import told_of
from akrunner.io.limits import in_time
from akrunner.io.piped import Piped, check_writable, is_special, opened
from akrunner.io.sinks import LineWriter
from akrunner.io.streams import check_restarts, is_stream
from akrunner.running.outputs import (
    check_not_arriving,
    check_stream_apart,
    check_stream_output,
    check_stream_url,
    run_into,
    stream_sink,
)

#: seconds that a stream has, after SIGTERM or Ctrl-C, to answer the rows that it has read
_FINISH_SECONDS = 8.0
#: seconds that it has after these to write what it has made
_WRITE_SECONDS = 2.0


@dataclass(frozen=True)
class Output:
    """The destination of rows, from the command line.

    Attributes:
        path: the file, None for stdout.
        overwrite: whether a file that is there is replaced.
        live: whether the file is written in place.
    """

    path: str | None
    overwrite: bool
    live: bool


def run(script: str, inputs: list[str], output: Output, screen: show.Screen, options: dict[str, Any]) -> None:
    """Run a script over lines as they come, until the input ends.

    Raises: ConfigError: an argument is wrong; nothing was started.
    """
    with in_time(options.get("timeout")):
        check(inputs, output, options)
        started = akrunner.stream(script, inputs[0], **options)
    _write_out(started, output, screen)


def predict(model: str, inputs: list[str], output: Output, screen: show.Screen, options: dict[str, Any]) -> None:
    """Run a model over lines as they come, until the input ends. Raises: ConfigError: as `run` does."""
    with in_time(options.get("timeout")):
        _check(inputs, output, options)
        started = akrunner.predict_stream(model, inputs[0], **options)
    _write_out(started, output, screen)


def check(inputs: list[str], output: Output, options: dict[str, Any]) -> None:
    """Check the arguments of a script's stream before it starts. Raises: ConfigError: one is wrong."""
    _check(inputs, output, options)
    if output.path is not None and options.get("output_schema") is None:
        raise akrunner.ConfigError("--output needs --output-schema: the columns the script writes")


def _check(inputs: list[str], output: Output, options: dict[str, Any]) -> None:
    if any(map(is_stream, inputs)) and len(inputs) == 1:
        _check_stream(inputs[0], output, options)
        return
    if len(inputs) > 1:
        raise akrunner.ConfigError("a stream reads one --input: a file, or - for stdin")
    if output.path is None:
        if output.live:
            raise akrunner.ConfigError("--output-live needs --output: the file to write in place")
        return
    if is_stream(output.path):
        _check_to_stream(output, options, inputs[0])
        return
    if output.live:
        _check_live(output.path, output.overwrite)
        check_stream_apart(inputs[0], options.get("input_format"), bool(options.get("follow")), output.path)
        return
    if options.get("follow"):
        raise akrunner.ConfigError(
            "--output is there when the stream has ended, and --follow never ends: add --output-live, and the file is written "
            "in place, line by line"
        )
    check_stream_output(output.path, output.overwrite, options.get("output_schema"))
    check_stream_apart(inputs[0], options.get("input_format"), False, output.path)


def _check_stream(source: str, output: Output, options: dict[str, Any]) -> None:
    """Check the output of a stream that is read from a URL. Raises: ConfigError: rows cannot be written there."""
    if output.path is None:
        if output.live:
            raise akrunner.ConfigError("--output-live needs --output: the file to write in place")
        return
    if is_stream(output.path):
        _check_to_stream(output, options, source)
        return
    check_not_arriving(source, output.path)
    if output.live:
        _check_live(output.path, output.overwrite)
    elif "idle=" not in source:
        raise akrunner.ConfigError(
            "--output is there when the stream has ended, and this one never ends: add --output-live, and the file is written in "
            "place, line by line; or ?idle=SECONDS to the input, which ends it once no row has come for so long"
        )
    else:
        check_stream_output(output.path, output.overwrite, options.get("output_schema"))


def _check_to_stream(output: Output, options: dict[str, Any], source: str) -> None:
    """Check that rows can go to a stream. Raises: ConfigError: they cannot."""
    assert output.path is not None
    if output.live or output.overwrite:
        flag = "--output-live" if output.live else "--overwrite"
        raise akrunner.ConfigError(f"{flag} is for a file; rows are added to {redacted(output.path)} as they come")
    check_restarts(output.path, int(options.get("max_restarts") or 0), bool(options.get("resume")))
    check_stream_url(output.path, options.get("output_schema"), source)


def _check_live(path: str, overwrite: bool) -> None:
    _form(path)
    if "://" in path:
        raise akrunner.SinkError(
            f"output: {path}: --output-live writes local files; leave it out, and the output comes at the end"
        )
    check_writable(path)
    if os.path.isfile(path) and not overwrite:
        raise akrunner.SinkError(f"output: {path} exists; give --overwrite to replace it")
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.path.isdir(folder):
        raise akrunner.SinkError(
            f"output: {path} is a directory"
            if os.path.isdir(path)
            else redacted(f"output: there is no directory {folder}", secrets(path))
        )
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise akrunner.SinkError(f"output: {path} may not be written")


def _write_out(started: akrunner.StreamJob, output: Output, screen: show.Screen) -> None:
    with started as job:
        if not job.remembers:
            _write_all(job, output, screen)
        else:
            # the first signal ends the input, so that what was read is answered, and remembered as read
            with _ended_in_time(output) as asked, signals.instead(lambda: (job.finish(_FINISH_SECONDS), asked())):
                _write_all(job, output, screen)
    screen.streamed(job, None if job.only_asked else output.path)


@contextlib.contextmanager
def _ended_in_time(output: Output) -> Iterator[Callable[[], None]]:
    """Yield a function for a signal that lets a stream end by itself: it raises the signal that ends the command if the block
    has not ended in time, because nobody takes what it writes: no reader of a pipe, no server of a stream. The commit of a file takes
    its time."""
    asked, ended = threading.Event(), threading.Event()

    def watch() -> None:
        asked.wait()
        if not ended.wait(_FINISH_SECONDS + _WRITE_SECONDS):
            os.kill(os.getpid(), signal.SIGTERM)

    if output.path is None or output.live or is_stream(output.path) or is_special(output.path):
        threading.Thread(target=watch, name="akrunner-ending", daemon=True).start()
    try:
        yield asked.set
    finally:
        ended.set()
        asked.set()


def _write_all(job: akrunner.StreamJob, output: Output, screen: show.Screen) -> None:
    if output.path is not None and is_stream(output.path):
        job.write_to(output.path)
        return
    with job.limited():
        if output.path is None:
            lines.write(job, formats.LINES[0].name, job.schema)
        elif output.live:
            _in_place(job, output.path, screen)
        else:
            _committed(job, output, screen)


def _in_place(job: akrunner.StreamJob, path: str, screen: show.Screen) -> None:
    stream: IO[bytes] | None = None
    writer: LineWriter | None = None
    rows = 0
    try:
        for batch in job:
            if writer is None:
                # the file that was there is kept until there is something to write in its place
                stream = _created(path)
                writer = LineWriter(stream, _form(path), job.schema, path)
            writer.write(batch)
            rows += batch.num_rows
        if writer is None and not job.only_asked:
            stream = _created(path)
            writer = LineWriter(stream, _form(path), job.schema, path)
        if writer is not None:
            writer.close()
    except BaseException:
        screen.note(_left(path, rows, writer is not None))
        raise
    finally:
        # the writer has flushed the rows, or has failed: the reader of a pipe need not be waited for
        if isinstance(stream, Piped):
            stream.drop()
        elif stream is not None:
            stream.close()


def _left(path: str, rows: int, begun: bool) -> str:
    """Say what a stream that has failed leaves in its file. Args: rows: how many are there for sure; begun: whether the first
    ones were being written."""
    if rows:
        return f"{rows:,} rows written so far are in {path}"
    return f"{path} may have some of the first rows" if begun else f"{path} is as it was: no rows had been written"


def _created(path: str) -> IO[bytes]:
    """Open the output; a FIFO waits for its reader, within the job's limits. Raises: WriteError: it cannot be opened."""
    try:
        return opened(path, path, wait=True) if is_special(path) else open(path, "wb")
    except OSError as e:
        raise akrunner.WriteError(f"output: cannot open {path}: {e.strerror}") from None


def _committed(job: akrunner.StreamJob, output: Output, screen: show.Screen) -> None:
    assert output.path is not None
    sink = stream_sink(output.path, job.schema, output.overwrite)
    rows = 0
    # no row is safe before the file is there
    job.hold()

    def written() -> akrunner.StreamJob:
        nonlocal rows
        for batch in job:
            sink.write_rows(batch)
            rows += batch.num_rows
        return job

    try:
        run_into(sink, written)
    except BaseException as e:
        # a signal that came while the output was committed has a note that says what became of it
        if told_of(e):
            raise
        screen.note(
            f"{output.path} was not written: it comes when the stream has ended well, and {rows:,} rows were thrown away "
            "(--output-live writes them as they come)"
        )
        raise
    job.release()


def _form(output: str) -> str:
    form = formats.lines_of(output)
    if form is not None:
        return form.name
    if os.path.exists(output) and not os.path.isfile(output) and not os.path.isdir(output):
        return formats.LINES[0].name
    known = " or ".join(one.endings[0] for one in formats.LINES)
    raise akrunner.SinkError(f"output: {output}: --output-live writes {known}, line by line")
