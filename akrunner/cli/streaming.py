"""`akrunner run --mode stream` and `akrunner predict -i -`: lines in as they come, rows out as they come."""

from __future__ import annotations

import os
import sys
from typing import IO, Any, Dict, List, Optional

import akrunner
from akrunner.api import LineWriter
from akrunner.cli import show


def run(
    script: str, inputs: List[str], output: Optional[str], overwrite: bool, screen: show.Screen, options: Dict[str, Any]
) -> None:
    """Run until the input ends. Rows go to stdout as JSON lines, or to a .jsonl or .csv file, each batch at once.

    Raises: ConfigError: an argument is wrong; nothing was started.
    """
    _check(inputs, output, overwrite)
    _write_out(akrunner.stream(script, inputs[0], **options), output, screen)


def predict(
    model: str, inputs: List[str], output: Optional[str], overwrite: bool, screen: show.Screen, options: Dict[str, Any]
) -> None:
    """As `run`, for `akrunner predict` of lines as they come."""
    _check(inputs, output, overwrite)
    _write_out(akrunner.predict_stream(model, inputs[0], **options), output, screen)


def _check(inputs: List[str], output: Optional[str], overwrite: bool) -> None:
    if len(inputs) > 1:
        raise akrunner.ConfigError("a stream reads one --input: a file, or - for stdin")
    _form(output)
    if output is not None and os.path.exists(output) and not overwrite:
        raise akrunner.SinkError(f"output: {output} exists; give --overwrite to replace it")


def _write_out(started: "akrunner.StreamJob", output: Optional[str], screen: show.Screen) -> None:
    with started as job:
        target: IO[bytes] = sys.stdout.buffer if output is None else _created(output)
        writer = LineWriter(target, _form(output), job.schema)
        try:
            for batch in job:
                writer.write(batch)
            writer.close()
        except BrokenPipeError:
            # `| head`: nobody wants more; what Python flushes at its end must not complain either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if output is not None:
            target.close()
    screen.streamed(job.stats, output)


def _created(output: str) -> IO[bytes]:
    try:
        return open(output, "wb")
    except OSError as e:
        raise akrunner.SinkError(f"output: cannot open {output}: {e.strerror}") from None


def _form(output: Optional[str]) -> str:
    if output is None:
        return "jsonl"
    for form in ("jsonl", "csv"):
        if output.lower().endswith("." + form):
            return form
    raise akrunner.SinkError(f"output: {output}: a stream is written to .jsonl or .csv, line by line")
