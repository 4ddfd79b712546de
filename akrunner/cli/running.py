"""`akrunner run`: a script over a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

import typer

import akrunner
from akrunner.cli import engines, lines, show, streaming, tables, values

if TYPE_CHECKING:
    from akrunner.api import Result

HELP = """
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

_CLUSTER = "Cluster"
_RESOURCES = "Resources"
_TROUBLE = "When something goes wrong"


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
                tables.say_stores([*input, output])
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
