"""`akrunner run`, `train` and `stream`: a script over a table, or over rows as they arrive."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Literal

import typer

import akrunner
from akrunner.checks import MOST_DIGITS, shown, whole_of
from akrunner.cli import detached, given, jobfiles, lines, show, streaming, tables
from akrunner.cli.guarded import emit
from akrunner.cli.keyed import KEYED
from akrunner.folders.words import harmless
from akrunner.foreign import redacted
from akrunner.planning.text import neat
from akrunner.running.handing import handed_over
from akrunner.running.outputs import IN_MEMORY

RUN_HELP = """
Run SCRIPT over a table: each worker process gets its share of the rows and calls the script's main(task_config), or runs it as a program.

[bold]Examples[/bold]

  akrunner run train.py --input iris.csv --output-schema "id bigint, p double" --output out.parquet

  akrunner run train.py -i 'data/*.parquet' --num-workers 2 --param batch_size=16 --user-file model.py

  akrunner run train.py -i sales.csv --select "SELECT a, b FROM input WHERE a > 0" --debug

  akrunner run program.py -i iris.csv -- --epochs 3 --lr 0.1

  akrunner run job.toml --num-workers 4

  akrunner run ps.py -i iris.csv --num-workers 2 --num-ps 1 --coordinator --max-restarts 2

  akrunner run train.py -i s3://bucket/day.parquet --engine flink --flink-master HOST:8081 --detach --output s3://bucket/out.parquet
  --output-schema "id bigint, p double"
"""
TRAIN_HELP = """
Run SCRIPT, which trains a model, over a table: as `akrunner run`, and what the chief exports to task_config.saved_model_dir is the result.

[bold]Examples[/bold]

  akrunner train train.py --input iris.csv --model-out model.zip

  akrunner train train.py -i 'data/*.parquet' --num-workers 2 --model-out exported/ --overwrite
"""
STREAM_HELP = """
Run SCRIPT over rows as they arrive, possibly for ever: lines of stdin or of a growing file in, lines on stdout out.

[bold]Examples[/bold]

  tail -f events.jsonl | akrunner stream score.py --input - --output-schema "id bigint, p double"

  akrunner stream score.py -i events.jsonl --follow --output-schema "id bigint, p double" -o scores.jsonl --output-live
"""


def run(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    output, detach = words["output"], words["detach"]
    _check_asked(ctx, words)
    screen = show.of_command(words)
    rows_to = None if detach else lines.form_of(output, words["output_format"], words["as_json"], words["output_schema"])
    csv = lines.csv_of(words["output_csv"], rows_to)
    with screen:
        options = _options("run", ctx, words, screen)
        source = _table(words, "run")
        if rows_to is not None:
            # the rows are kept in memory until all of them are there
            options.update(output=None, output_format=None, output_csv=None)
        if words["dry_run"]:
            detached.check_detach(options, detach)
            _plan("run", ctx, words, source, options, form=rows_to)
            return
        if detach:
            detached.detach(words["script"], source, "batch", options, words["as_json"], words["quiet"])
            return
        with handed_over(screen.rows_to(rows_to, csv, options)):
            result = akrunner.run(words["script"], source, **options)
    screen.result(result, preview=rows_to is None)


def train(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    detach = words["detach"]
    screen = show.of_command(words)
    with screen:
        options = _options("train", ctx, words, screen)
        source = _table(words, "train")
        file = jobfiles.file_of(ctx)
        if words["model_out"] is None and file is not None:
            raise jobfiles.lacking(file, "model_out", "--model-out")
        if words["model_out"] is None:
            raise akrunner.ConfigError("akrunner train needs --model-out: where to save the model")
        if words["dry_run"]:
            detached.check_detach(options, detach)
            _plan("train", ctx, words, source, options)
            return
        if detach:
            detached.detach(words["script"], source, "train", options, words["as_json"], words["quiet"])
            return
        result = akrunner.train(words["script"], source, **options)
    screen.result(result)


def stream(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    output = words["output"]
    screen = show.of_command(words, between=words["output_schema"] is not None and lines.on_terminal(output))
    with screen:
        path = None if lines.is_stdout(output) else output
        show.check_json(words["as_json"], path)
        options = _options("stream", ctx, words, screen)
        if not words["quiet"]:
            tables.say_stores([*words["source"], output])
        streamed = streaming.Output(path, words["overwrite"], words["output_live"])
        if words["dry_run"]:
            streaming.check(words["source"], streamed, options)
            form = lines.planned_form(path) if options.get("output_schema") is not None else None
            _plan("stream", ctx, words, given.source(words), options, _output(path, options), form)
            return
        streaming.run(words["script"], words["source"], streamed, screen, options)


def _options(verb: str, ctx: typer.Context, words: Mapping[str, Any], screen: show.Screen) -> Any:
    return {**given.options(verb, words), "script_args": ctx.obj, "observer": screen}


def _output(path: str | None, options: Mapping[str, Any]) -> str | None:
    """Return where the rows of a stream go, in words; None if the script writes none."""
    if options.get("output_schema") is None:
        return None
    return path if path is not None else "stdout"


def _plan(
    verb: Literal["run", "train", "stream"],
    ctx: typer.Context,
    words: Mapping[str, Any],
    source: Any,
    options: Mapping[str, Any],
    output: str | None = None,
    form: str | None = None,
) -> None:
    """Print what the job would do.

    Args:
        verb: the verb of the job.
        ctx: Typer's context.
        words: the command's values.
        source: the table.
        options: the keyword arguments of the verb's function.
        output: where the rows go, None: where the plan says.
        form: the format of the rows if the command itself writes them, None if it does not.
    """
    rows = words["dry_run_rows"]
    try_rows = whole_of(rows) if rows is not None else None
    if rows is not None and not try_rows:
        said = rows if len(rows) <= MOST_DIGITS else shown(rows)
        raise akrunner.ConfigError(
            f"--dry-run={said}: over how many rows is the script tried? Give a whole number from 1 on, --dry-run=5"
        )
    meant = {name: value for name, value in options.items() if name not in ("observer", "remove_checkpoint_before_training")}

    def planned(try_rows: int | None) -> akrunner.Plan:
        plan = _hidden(akrunner.plan(words["script"], source, verb=verb, try_rows=try_rows, **meant), words)
        place = plan.output.replace(IN_MEMORY, "stdout") if output is None else output
        written = form if form is not None and place != "none" else plan.output_format
        return dataclasses.replace(plan, output=place, output_format=written)

    try:
        plan = planned(try_rows)
    except akrunner.JobError:
        if not words["as_json"]:
            # the script failed over the first rows; the plan of the job helps to see why
            say_plan(ctx, words, options["observer"], None, str(planned(None)), {})
        raise
    more = {"trial": _asdict(plan.trial)}
    say_plan(ctx, words, options["observer"], dataclasses.replace(plan, trial=None), str(plan), more)


def _hidden(plan: akrunner.Plan, words: Mapping[str, Any]) -> akrunner.Plan:
    """Return the plan with *** for values that were given in files, as such files are for secrets."""
    params, env = words[KEYED]["user_params"], words[KEYED]["env"]
    secret = [one.values[key] for one in (params, env) for key in one.hidden]
    told = [value if isinstance(value, str) else json.dumps(value) for value in secret]
    trial = plan.trial
    if trial is not None:
        trial = dataclasses.replace(
            trial, printed=redacted(trial.printed, sorted((one for one in told if len(one) > 3), key=len, reverse=True))
        )
    return dataclasses.replace(
        plan,
        user_params={key: "***" if key in params.hidden else value for key, value in plan.user_params.items()},
        env={key: "***" if key in env.hidden else value for key, value in plan.env.items()},
        trial=trial,
    )


def say_plan(
    ctx: typer.Context, words: Mapping[str, Any], screen: show.Screen, plan: Any, text: str, more: Mapping[str, Any]
) -> None:
    """Print a plan, and where each value came from. Args: text: the plan as text; more: further entries of the JSON object."""
    screen.ends_display()
    origins = jobfiles.origins(ctx, words[KEYED])
    if words["as_json"]:
        # the plan has the output in words, and JSON has its path
        output = (
            words["model_out"] if "model_out" in words else words["output"] if not lines.is_stdout(words["output"]) else None
        )
        place = neat(output) if output is not None else None
        emit({"ok": True, "exit_code": 0, **dataclasses.asdict(plan), **more, "output": place, "given": origins})
    else:
        typer.echo(harmless(f"{text}\ngiven:        " + "; ".join(origins)))


def _asdict(trial: Any) -> Mapping[str, Any] | None:
    """Return a trial's result for JSON, None if the script was not tried."""
    if trial is None:
        return None
    written = trial.written
    return {
        **vars(trial),
        "written": written.to_pylist() if written is not None else None,
        "types": {field.name: str(field.type) for field in written.schema} if written is not None else None,
    }


def _table(words: Mapping[str, Any], verb: str) -> Any:
    """Return the table of a job that reads a whole table. Raises: ConfigError: it is stdin, whose rows arrive one by one."""
    if "-" in words["source"]:
        raise akrunner.ConfigError(f"--input -: akrunner {verb} reads a table; for lines of stdin there is akrunner stream")
    if not words["quiet"]:
        tables.say_stores([*words["source"], words.get("output")])
        tables.say_asked(_asked(words), words.get("project"))
    return given.source(words)


def _asked(words: Mapping[str, Any]) -> list[str]:
    """Return the names of the tables that the script opens itself."""
    return [*words.get("tables", []), *words.get("output_tables", [])]


def _check_asked(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    """Check that the job has an input table, or tables that its script opens. Raises: Typer's error for a missing option."""
    if not words["source"] and not _asked(words):
        missing = copy.copy(next(one for one in ctx.command.params if one.name == "source"))
        missing.required = True
        missing.process_value(ctx, ())
