"""`akrunner predict`: a SavedModel over a table, or over rows as they arrive."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import typer

import akrunner
from akrunner.cli import detached, given, lines, running, show, streaming, tables
from akrunner.cli.guarded import of_jobs
from akrunner.cli.keyed import KEYED
from akrunner.io.streams import is_stream
from akrunner.options import of_command
from akrunner.running.handing import handed_over

HELP = """
Run a SavedModel over a table: the rows that come out are those of the table, in their order, with the model's outputs.

The columns that feed the model are those named as its inputs, or --selected-cols in the order of --input-signature-defs. The model's
signature is checked first; a table that does not fit it is refused, and the error shows the signature.

[bold]Examples[/bold]

  akrunner predict model.zip --input digits.parquet --output out.parquet

  akrunner predict exported/ -i iris.csv --selected-cols sepal_length,sepal_width,petal_length,petal_width \\
    --output-schema "p FLOAT_TENSOR" --reserved-cols id --num-workers 2 -o out.parquet

  tail -f events.jsonl | akrunner predict model.zip -i - --input-schema "id bigint, x double"
"""
EPILOG = of_jobs("the reason")


#: the options that only `predict_stream` has, and the options that only `predict` has
_ARRIVING, _WHOLE = (
    [one for one in of_command("predict") if only in one.verbs and other not in one.verbs]
    for only, other in (("predict_stream", "predict"), ("predict", "predict_stream"))
)


def predict(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    output_live, detach, dry_run_rows = words["output_live"], words["detach"], words["dry_run_rows"]
    model, output, as_json = words["model"], words["output"], words["as_json"]
    streams = words["follow"] or "-" in words["source"] or any(map(is_stream, words["source"]))
    screen = show.of_command(words, answers=True, between=streams and lines.on_terminal(output))
    rows_to = None
    if not streams and not detach:
        rows_to = lines.form_of(output, words["output_format"], as_json, words["output_schema"])
    csv = lines.csv_of(words["output_csv"], rows_to)
    with screen:
        _check(words, streams, output_live, detach)
        options = {**given.options("predict_stream" if streams else "predict", words), "observer": screen}
        if not words["quiet"]:
            tables.say_stores([*words["source"], output])
        if dry_run_rows is not None:
            raise akrunner.ConfigError(
                f"--dry-run={dry_run_rows} tries a script over some rows; what a prediction would do is shown by --dry-run"
            )
        if words["dry_run"]:
            _plan(ctx, words, model, options, streams, detach)
            return
        if detach:
            detached.detach(model, given.source(words), "predict", options, as_json, words["quiet"])
            return
        if streams:
            path = None if lines.is_stdout(output) else output
            show.check_json(as_json, path)
            streamed = streaming.Output(path, words["overwrite"], output_live)
            streaming.predict(model, words["source"], streamed, screen, options)
            return
        if rows_to is not None:
            # the rows are kept in memory until all of them are there
            options.update(output=None, output_format=None, output_csv=None)
        with handed_over(screen.rows_to(rows_to, csv, options)):
            result = akrunner.predict(model, given.source(words), **options)
    screen.result(result, preview=rows_to is None)


def _plan(
    ctx: typer.Context,
    words: Mapping[str, Any],
    model: str,
    options: Mapping[str, Any],
    streams: bool,
    detach: bool,
) -> None:
    """Print what the prediction would do. Raises: ConfigError: the prediction itself would raise it."""
    if streams:
        raise akrunner.ConfigError(
            "--dry-run looks at a table; of rows as they arrive (--input -, --follow) give it some in a file"
        )
    detached.check_detach(options, detach)
    output = words["output"] if not lines.is_stdout(words["output"]) else None
    meant = {name: value for name, value in options.items() if name != "observer"}
    for one in ("output_format", "output_csv"):
        meant[one] = words[one] if output is not None else None
    meant["output"] = output
    plan = akrunner.plan_predict(model, given.source(words), **meant)
    if output is None:
        form = lines.form_of(words["output"], words["output_format"], words["as_json"], words["output_schema"]) or ""
        plan = dataclasses.replace(plan, output="stdout", output_format=form)
    hidden = words[KEYED]["env"].hidden
    plan = dataclasses.replace(plan, env={key: "***" if key in hidden else value for key, value in plan.env.items()})
    running.say_plan(ctx, words, options["observer"], plan, str(plan), {})


def _check(words: Mapping[str, Any], streams: bool, live: bool, detached: bool) -> None:
    """Check options against each other. Raises: ConfigError: an option means nothing for this prediction."""
    if streams and detached:
        raise akrunner.ConfigError("--follow and --input - are for a job that is not detached")
    if live and not streams:
        raise akrunner.ConfigError("--output-live is for a stream: --input - or --follow")
    for one in _WHOLE if streams else _ARRIVING:
        # output and overwrite mean something for a stream, too
        if words[one.name] != one.default and one.name not in ("output", "overwrite"):
            where = "a table that is read whole" if streams else "rows as they arrive: --input - or --follow"
            raise akrunner.ConfigError(f"{one.words[0]} is for {where}")


__all__ = ["EPILOG", "HELP", "predict"]
