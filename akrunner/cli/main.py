"""The `akrunner` command."""

from __future__ import annotations

import functools
import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

import typer

import akrunner
from akrunner.cli import detached, engines, lines, predicting, show, streaming, values
from akrunner.cli import doctor as doctor_command
from akrunner.cli import env as env_commands
from akrunner.cli import flink as flink_commands
from akrunner.cli import pack as pack_command
from akrunner.cli import pai as pai_command
from akrunner.cli import tables as tables_commands
from akrunner.cli import warm as warm_commands
from akrunner.cli.guarded import EPILOG, asks_for_json, emit, ended
from akrunner.foreign import ours

if TYPE_CHECKING:
    from akrunner.api import Result

app = typer.Typer(
    name="akrunner",
    help="Run a TensorFlow script over a table.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def akrunner_command(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"akrunner {akrunner.__version__}")
        raise typer.Exit()


_CLUSTER = "Cluster"
_RESOURCES = "Resources"
_TROUBLE = "When something goes wrong"

_RUN_HELP = """
Run SCRIPT over a table: each worker process gets its share of the rows and calls the script's main(task_config), or runs it as a program.

[bold]Examples[/bold]

  akrunner run train.py --input iris.csv --output-schema "id bigint, p double" --output out.parquet

  akrunner run train.py -i 'data/*.parquet' --num-workers 2 --param batch_size=16 --user-file model.py

  akrunner run train.py -i sales.csv --select "SELECT a, b FROM input WHERE a > 0" --debug

  akrunner run train.py -i iris.csv --mode train --model-out model.zip

  akrunner run program.py -i iris.csv -- --epochs 3 --lr 0.1

  akrunner run ps.py -i iris.csv --num-workers 2 --num-ps 1 --coordinator --max-restarts 2

  akrunner run train.py -i s3://bucket/day.parquet --engine flink --flink-master HOST:8081 --detach --output s3://bucket/out.parquet
  --output-schema "id bigint, p double"

  tail -f events.jsonl | akrunner run score.py -i - --mode stream --output-schema "id bigint, p double"
"""


@app.command("run", help=_RUN_HELP, epilog=EPILOG)
def run(
    ctx: typer.Context,
    script: str = typer.Argument(
        ..., help="File that defines main(task_config), or a program; what stands behind -- is its command line."
    ),
    input: List[str] = typer.Option(
        ..., "--input", "-i", help="Table to read: file, glob, directory, URL, or odps://PROJECT/tables/T. Repeatable."
    ),
    mode: str = typer.Option(
        "batch", help="batch; train: what the chief exports to saved_model_dir is the result; stream: rows as they arrive."
    ),
    follow: bool = typer.Option(False, "--follow", help="Wait for more at the file's end (--mode stream)."),
    model_out: Optional[str] = typer.Option(None, help="Directory or .zip to save the trained model to (--mode train)."),
    output: Optional[str] = typer.Option(
        None,
        "--output",
        "-o",
        help="File to write: .parquet .csv .jsonl .arrow .tfrecord. DIR/ for a directory with a file of each task. - for stdout: JSON lines, "
        "or --output-format csv. odps://PROJECT/tables/T: rows are added to the table.",
    ),
    output_schema: Optional[str] = typer.Option(None, help='Columns the script writes: "id bigint, p double".'),
    select: Optional[str] = typer.Option(None, help="SQL over the table, called `input` in it."),
    param: List[str] = typer.Option(
        [], "--param", "-p", help=f"KEY=VALUE for user_params; VALUE is JSON, else text. Repeatable. {values.FROM_FILE}"
    ),
    params_file: Optional[str] = typer.Option(None, help="JSON file of user_params; --param wins over it."),
    user_file: List[str] = typer.Option(
        [], "--user-file", "-f", help="File, directory or archive to lay beside the script. Repeatable."
    ),
    num_workers: Optional[int] = typer.Option(
        None, help="Worker processes; the rows are dealt to them. Default: 1.", rich_help_panel=_CLUSTER
    ),
    num_ps: Optional[int] = typer.Option(None, help="Parameter servers. Default: 0.", rich_help_panel=_CLUSTER),
    parallelism: Optional[int] = typer.Option(
        None,
        help="Workers and parameter servers together; what --num-workers or --num-ps does not say is the rest, or a quarter "
        "parameter servers.",
        rich_help_panel=_CLUSTER,
    ),
    evaluator: bool = typer.Option(
        False, "--evaluator", help="One more task, that evaluates what the others train.", rich_help_panel=_CLUSTER
    ),
    coordinator: bool = typer.Option(
        False,
        "--coordinator",
        help="The chief only coordinates (ClusterCoordinator): one more task, without rows.",
        rich_help_panel=_CLUSTER,
    ),
    chief: Optional[bool] = typer.Option(
        None,
        "--chief/--no-chief",
        help="--no-chief: workers only, worker 0 first. --chief: TF_CONFIG also for one worker alone. Default: worker 0 is the chief, and "
        "one alone has no TF_CONFIG.",
        rich_help_panel=_CLUSTER,
    ),
    engine: str = typer.Option("local", help="local, or flink: a task slot for each task.", rich_help_panel=_CLUSTER),
    flink_master: str = typer.Option(
        "local",
        help="Flink's REST address, HOST:PORT or a URL; local: a cluster that comes and goes with the job.",
        rich_help_panel=_CLUSTER,
    ),
    flink_python: Optional[str] = typer.Option(
        None, help="Interpreter with PyFlink. Default: this one.", rich_help_panel=_CLUSTER
    ),
    flink_worker_python: Optional[str] = typer.Option(
        None, help="Interpreter with PyFlink on the TaskManagers. Default: as --flink-python.", rich_help_panel=_CLUSTER
    ),
    flink_option: List[str] = typer.Option(
        [], help="KEY=VALUE of Flink's own configuration. Repeatable.", rich_help_panel=_CLUSTER
    ),
    flink_files_here: bool = typer.Option(
        False,
        "--flink-files-here",
        help="Read and write files in this process, also those the TaskManagers could: rows are dealt one by one then.",
        rich_help_panel=_CLUSTER,
    ),
    detach: bool = typer.Option(
        False,
        "--detach",
        help="Submit the job to --flink-master and return; `akrunner status`, `logs` and `cancel` are for it.",
        rich_help_panel=_CLUSTER,
    ),
    bind_host: str = typer.Option("127.0.0.1", help="Address TensorFlow's servers get.", rich_help_panel=_CLUSTER),
    advertised_host: Optional[str] = typer.Option(None, help="Name others reach it by.", rich_help_panel=_CLUSTER),
    gpus_per_worker: Optional[int] = typer.Option(
        None, help="Graphics cards of its own for each worker. Default: all see all.", rich_help_panel=_RESOURCES
    ),
    cpus_per_worker: Optional[int] = typer.Option(
        None, help="Cores of its own for each worker. Default: all share all.", rich_help_panel=_RESOURCES
    ),
    intra_op_parallelism: Optional[int] = typer.Option(
        None, help="Threads TensorFlow uses inside one operation. Default: its share of the cores.", rich_help_panel=_RESOURCES
    ),
    python_env: Optional[str] = typer.Option(
        None, help="Interpreter, venv or conda directory, packed environment, or tf1.15, tf2.3, tf2. Default: this one."
    ),
    requirements: Optional[str] = typer.Option(
        None, help="requirements.txt to install beside the interpreter, once; what it has already wins."
    ),
    keras: Optional[str] = typer.Option(None, help="'legacy' for Keras 2 (tf-keras)."),
    data_format: str = typer.Option(
        "examples",
        help="How rows travel: examples, or columns: faster, for scripts that use task_config.dataset() or batches().",
    ),
    tensorboard: Optional[str] = typer.Option(None, help="Directory to write what tasks report() to, for TensorBoard."),
    env: List[str] = typer.Option([], "--env", help=f"KEY=VALUE for the tasks' environment. Repeatable. {values.FROM_FILE}"),
    env_file: List[str] = typer.Option(
        [],
        help="File of KEY=VALUE lines for the tasks' environment: nobody can read it in the process list. --env wins over it.",
    ),
    input_schema: Optional[str] = typer.Option(None, help="Columns to read and their types; needed for TFRecord."),
    input_format: Optional[str] = typer.Option(None, help="csv, parquet, jsonl, arrow or tfrecord, where names do not tell."),
    output_format: Optional[str] = typer.Option(None, help="The same for --output."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an existing --output, or a table's rows."),
    output_live: bool = typer.Option(False, "--output-live", help=streaming.LIVE),
    checkpoint_dir: Optional[str] = typer.Option(None, help="Directory for checkpoints, the same for every task."),
    work_dir: Optional[str] = typer.Option(None, help="New directory to keep logs, rows and files in."),
    debug: bool = typer.Option(False, "--debug", help="Echo every task's log and keep the work dir for `akrunner replay`."),
    max_restarts: int = typer.Option(
        0, help="Start everything again after a failure, up to so many times.", rich_help_panel=_TROUBLE
    ),
    timeout: Optional[float] = typer.Option(
        None, help="Seconds the job may take; then every task's stacks are shown.", rich_help_panel=_TROUBLE
    ),
    start_timeout: float = typer.Option(60.0, help="Seconds a worker process may take to start.", rich_help_panel=_TROUBLE),
    stall_timeout: float = typer.Option(
        600.0, help="Seconds nothing may move until it is told who waits for whom; 0: never.", rich_help_panel=_TROUBLE
    ),
    stall_action: str = typer.Option("fail", help="And then: fail, or warn and go on.", rich_help_panel=_TROUBLE),
    evaluator_timeout: float = typer.Option(
        60.0, help="Seconds the evaluator gets when the others are done.", rich_help_panel=_TROUBLE
    ),
    profile_input: Optional[int] = typer.Option(None, help=show.PROFILE_INPUT, rich_help_panel=_TROUBLE, min=1),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout, for machines."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no closing line."),
) -> None:
    screen = show.Screen(as_json=as_json, quiet=quiet, log=debug)

    rows_to = (
        lines.form_of(output, output_format, as_json, output_schema, needed=True) if mode == "batch" and not detach else None
    )

    def job() -> "Optional[Result]":
        with screen:
            streams_to = None if output == lines.STDOUT else output
            if mode == "stream":
                show.check_json(as_json, streams_to)
            common: Dict[str, Any] = dict(
                user_params=values.params(param, params_file),
                user_files=user_file,
                script_args=ctx.obj,
                output_schema=output_schema,
                overwrite=overwrite,
                num_workers=num_workers,
                num_ps=num_ps,
                parallelism=parallelism,
                evaluator=evaluator,
                chief=chief,
                bind_host=bind_host,
                advertised_host=advertised_host,
                gpus_per_worker=gpus_per_worker,
                cpus_per_worker=cpus_per_worker,
                intra_op_parallelism=intra_op_parallelism,
                stall_timeout=stall_timeout,
                stall_action=stall_action,
                evaluator_timeout=evaluator_timeout,
                profile_input=profile_input,
                python_env=python_env,
                select=select,
                input_schema=input_schema,
                input_format=input_format,
                requirements=requirements,
                keras=keras,
                data_format=data_format,
                tensorboard=tensorboard,
                env=values.environment(env, env_file),
                timeout=timeout,
                start_timeout=start_timeout,
                work_dir=work_dir,
                checkpoint_dir=checkpoint_dir,
                debug=debug,
                observer=screen,
                engine=engines.chosen(engine, flink_master, flink_python, flink_worker_python, flink_option, flink_files_here),
            )
            source = input if len(input) > 1 else input[0]
            if not quiet:
                tables_commands.say_stores([*input, output])
            if output_live and mode != "stream":
                raise akrunner.ConfigError("--output-live is for --mode stream")
            if detach:
                lines.check_not_stdout(output)
                common.update(coordinator=coordinator, max_restarts=max_restarts)
                outputs = dict(output=output, output_format=output_format, model_out=model_out, follow=follow)
                engines.detach(script, source, mode, {**common, **outputs}, as_json, quiet)
                return None
            if mode == "stream":
                if model_out is not None:
                    raise akrunner.ConfigError("--model-out needs --mode train")
                if coordinator or max_restarts:
                    named = "--coordinator" if coordinator else "--max-restarts"
                    raise akrunner.ConfigError(f"{named} is for rows that can be read again: --mode batch or train")
                del common["overwrite"]
                streamed = streaming.Output(streams_to, overwrite, output_live)
                streaming.run(script, input, streamed, screen, {**common, "follow": follow})
                return None
            common.update(coordinator=coordinator, max_restarts=max_restarts)
            if mode == "train":
                if output is not None:
                    raise akrunner.ConfigError("--output is for --mode batch; a train job's model goes to --model-out")
                if model_out is None:
                    raise akrunner.ConfigError("--mode train needs --model-out: where to save the model")
                return akrunner.train(script, source, model_out=model_out, **common)
            if mode != "batch":
                raise akrunner.ConfigError(f"--mode {mode}: known modes are batch, stream, train")
            if follow or "-" in input:
                raise akrunner.ConfigError("--follow and --input - need --mode stream")
            if model_out is not None:
                raise akrunner.ConfigError("--model-out needs --mode train")
            # all rows are here when the job has succeeded
            target, form = (None, None) if rows_to is not None else (output, output_format)
            return akrunner.run(script, source, output=target, output_format=form, **common)

    result = job()
    if result is not None:
        screen.result(result, rows_to)


app.add_typer(env_commands.app, name="env")
app.add_typer(flink_commands.app, name="flink")
app.add_typer(tables_commands.app, name="tables")
app.add_typer(warm_commands.app, name="warm")
for command in (detached.status, detached.logs, detached.cancel):
    app.command(command.__name__, epilog=detached.EPILOG)(command)
app.command("doctor", help=doctor_command.HELP, epilog=doctor_command.EPILOG)(doctor_command.doctor)
app.command("pack", help=pack_command.HELP, epilog=EPILOG)(pack_command.pack)
app.command("pai", help=pai_command.HELP, epilog=EPILOG)(pai_command.pai)
app.command("predict", help=predicting.HELP, epilog=EPILOG)(predicting.predict)


_REPLAY_HELP = """
Run one task's main() again from the work dir a job kept (--debug or --work-dir): in the foreground, in the task's own
interpreter, so that breakpoint() works. Its rows, files and parameters are all in there.

[bold]Examples[/bold]

  akrunner replay /tmp/akrunner-ab12cd

  akrunner replay /tmp/akrunner-ab12cd --task worker:0
"""


@app.command("replay", help=_REPLAY_HELP)
def replay(
    work_dir: str = typer.Argument(..., help="Directory a job kept."),
    task: Optional[str] = typer.Option(None, help="Which task; default: the chief."),
    cluster: bool = typer.Option(False, "--cluster", help="Keep TF_CONFIG as it was, other tasks included."),
    print_command: bool = typer.Option(False, "--print-command", help="Only print the command, for an IDE."),
    as_json: bool = typer.Option(
        False, "--json", help="One JSON object on stdout, for machines: the command, with --print-command, or what is wrong."
    ),
) -> None:
    if as_json and not print_command:
        raise akrunner.ConfigError("--json: what is printed is the script's own; with --print-command it is the command")
    try:
        with open(os.path.join(work_dir, "job.json")) as f:
            job = json.load(f)
        tasks, python = [str(name) for name in job["tasks"]], str(job["python"])
        chosen = task or tasks[0]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise akrunner.ConfigError(
            f"{work_dir} is not a work dir a job kept: it has no job.json (run the job with --debug)"
        ) from None
    if chosen not in tasks:
        raise akrunner.ConfigError(f"--task {chosen}: this job had {', '.join(tasks)}")
    directory = os.path.abspath(os.path.join(work_dir, "tasks", chosen.replace(":", "-")))
    if not os.path.exists(os.path.join(directory, "context.json")):
        raise akrunner.ConfigError(
            f"{directory} has no context.json: this work dir was not kept whole (run the job with --debug)"
        )
    command = [python, os.path.join(os.path.abspath(work_dir), "bundle.zip"), "replay", directory]
    command += ["--cluster"] if cluster else []
    if as_json:
        emit({"ok": True, "exit_code": 0, "command": command})
        return
    if print_command:
        typer.echo(shlex.join(command))
        return
    sys.stdout.flush()
    # the same process from here on: a debugger has the terminal to itself
    with ours(akrunner.ConfigError, f"{python} cannot be run"):
        os.execv(command[0], command)


@functools.cache
def _command() -> Any:
    """What Typer makes of the functions here."""
    return typer.main.get_command(app)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run a command line, this process's by default. Returns: the exit code; everything there is to say was said."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # what stands behind -- is the script's, also what looks like an option of ours
    ours, script_args = given, []
    if given[:1] == ["run"] and "--" in given:
        ours, script_args = given[: given.index("--")], given[given.index("--") + 1 :]

    if ours[:1] == ["--json"]:
        # every command has the option itself
        ours = [*ours[1:], "--json"]
    if ours[:1] == ["pai"]:
        ours, script_args = pai_command.divided(ours[1:])
        ours = ["pai", *ours]

    ours = values.with_steps(ours)

    def run() -> Any:
        # as Typer does it, but for what it makes of exceptions
        command = _command()
        with command.make_context("akrunner", ours, obj=script_args) as context:
            return command.invoke(context)

    return ended(run, asks_for_json(given))
