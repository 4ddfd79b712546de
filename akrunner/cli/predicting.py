"""`akrunner predict`."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import typer

import akrunner
from akrunner.cli import engines, lines, show, streaming, tables, values
from akrunner.cli.guarded import EPILOG

HELP = """
Run a SavedModel over a table: the rows that come out are those of the table, in their order, with the model's outputs.

The columns that feed the model are those named as its inputs, or --selected-cols in the order of --input-signature-defs. What the model
takes and gives is checked first; a table that does not fit is refused with the model's signature.

[bold]Examples[/bold]

  akrunner predict model.zip --input digits.parquet --output out.parquet

  akrunner predict exported/ -i iris.csv --selected-cols sepal_length,sepal_width,petal_length,petal_width \\
    --output-schema "p FLOAT_TENSOR" --reserved-cols id --num-workers 2 -o out.parquet

  tail -f events.jsonl | akrunner predict model.zip -i - --input-schema "id bigint, x double"
"""


def predict(
    model: str = typer.Argument(..., help="SavedModel: its directory, or a zip of it."),
    input: List[str] = typer.Option(
        ..., "--input", "-i", help="Table to read: file, glob, directory, URL, odps://PROJECT/tables/T; - for lines of stdin."
    ),
    follow: bool = typer.Option(False, "--follow", help="Wait for more at the file's end; results go out as they come."),
    output: Optional[str] = typer.Option(None, "--output", "-o", help="File to write: .parquet .csv .jsonl .arrow .tfrecord."),
    output_schema: Optional[str] = typer.Option(
        None, help='Columns the outputs become: "p double, v FLOAT_TENSOR". Default: all outputs, of their own types.'
    ),
    selected_cols: Optional[str] = typer.Option(
        None, help="Columns that feed the model, separated by commas. Default: those named as its inputs."
    ),
    input_signature_defs: Optional[str] = typer.Option(None, help="The model's inputs, in the order of --selected-cols."),
    output_signature_defs: Optional[str] = typer.Option(None, help="The model's outputs, in the order of --output-schema."),
    reserved_cols: Optional[str] = typer.Option(None, help='Columns of the table to keep; "" for none. Default: all.'),
    signature_def_key: str = typer.Option("serving_default", help="Which signature of the model."),
    graph_def_tag: str = typer.Option("serve", help="Which graph of the model."),
    batch_size: int = typer.Option(1024, help="Rows the model is given at a time."),
    num_workers: int = typer.Option(1, help="Worker processes; the rows are dealt to them."),
    select: Optional[str] = typer.Option(None, help="SQL over the table, called `input` in it."),
    python_env: Optional[str] = typer.Option(
        None, help="Interpreter, venv or conda directory, packed environment, or tf1.15, tf2.3, tf2. Default: this one."
    ),
    env: List[str] = typer.Option([], "--env", help=f"KEY=VALUE for the workers' environment. Repeatable. {values.FROM_FILE}"),
    env_file: List[str] = typer.Option(
        [],
        help="File of KEY=VALUE lines for the workers' environment: nobody can read it in the process list. --env wins over it.",
    ),
    input_schema: Optional[str] = typer.Option(None, help="Columns to read and their types; needed for TFRecord."),
    input_format: Optional[str] = typer.Option(None, help="csv, parquet, jsonl, arrow or tfrecord, where names do not tell."),
    output_format: Optional[str] = typer.Option(None, help="The same for --output."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an existing --output."),
    output_live: bool = typer.Option(False, "--output-live", help=streaming.LIVE),
    timeout: Optional[float] = typer.Option(None, help="Seconds the job may take; then every task's stacks are shown."),
    start_timeout: float = typer.Option(60.0, help="Seconds a worker process may take to start."),
    engine: str = typer.Option("local", help="local, or flink: a task slot for each worker."),
    flink_master: str = typer.Option(
        "local", help="Flink's REST address, HOST:PORT or a URL; local: a cluster that comes and goes with the job."
    ),
    flink_python: Optional[str] = typer.Option(None, help="Interpreter with PyFlink. Default: this one."),
    flink_worker_python: Optional[str] = typer.Option(
        None, help="Interpreter with PyFlink on the TaskManagers. Default: as --flink-python."
    ),
    flink_option: List[str] = typer.Option([], help="KEY=VALUE of Flink's own configuration. Repeatable."),
    detach: bool = typer.Option(
        False,
        "--detach",
        help="Submit the job to --flink-master and return; `akrunner status`, `logs` and `cancel` are for it.",
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout, for machines."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no closing line."),
) -> None:
    screen = show.Screen(as_json=as_json, quiet=quiet, log=False)
    streams = follow or "-" in input
    rows_to = None if streams or detach else lines.form_of(output, output_format, as_json, output_schema, needed=False)

    def job() -> "Optional[akrunner.Result]":
        with screen:
            options: Dict[str, Any] = dict(
                selected_cols=_names(selected_cols),
                input_signature_defs=_names(input_signature_defs),
                output_signature_defs=_names(output_signature_defs),
                reserved_cols=_names(reserved_cols),
                signature_def_key=signature_def_key,
                graph_def_tag=graph_def_tag,
                output_schema=output_schema,
                batch_size=batch_size,
                num_workers=num_workers,
                select=select,
                python_env=python_env,
                env=values.environment(env, env_file),
                input_schema=input_schema,
                input_format=input_format,
                timeout=timeout,
                start_timeout=start_timeout,
                observer=screen,
                engine=engines.chosen(engine, flink_master, flink_python, flink_worker_python, flink_option, False),
            )
            source = input if len(input) > 1 else input[0]
            if not quiet:
                tables.say_stores([*input, output])
            if output_live and not streams:
                raise akrunner.ConfigError("--output-live is for a stream: --input - or --follow")
            if detach:
                lines.check_not_stdout(output)
                outputs = dict(output=output, output_format=output_format, overwrite=overwrite, follow=follow)
                engines.detach(model, source, "predict", {**options, **outputs}, as_json, quiet)
                return None
            if streams:
                path = None if output == lines.STDOUT else output
                show.check_json(as_json, path)
                streamed = streaming.Output(path, overwrite, output_live)
                streaming.predict(model, input, streamed, screen, {**options, "follow": follow})
                return None
            # all rows are here when the job has succeeded
            target, form = (None, None) if rows_to is not None else (output, output_format)
            return akrunner.predict(model, source, output=target, output_format=form, overwrite=overwrite, **options)

    result = job()
    if result is not None:
        screen.result(result, rows_to)


def _names(given: Optional[str]) -> Optional[List[str]]:
    if given is None:
        return None
    return [name.strip() for name in given.split(",")] if given.strip() else []


__all__ = ["EPILOG", "HELP", "predict"]
