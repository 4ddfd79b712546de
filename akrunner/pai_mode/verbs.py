"""`akrunner.pai`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from akrunner.engines.base import Engine, Observer
from akrunner.options.told import told
from akrunner.pai_mode.arguments import PaiArguments
from akrunner.pai_mode.job import Done, run_pai
from akrunner.prepare.arguments import NotifyLike, PathLike
from akrunner.running.result import Result
from akrunner.sequences import SequenceNotStr

__all__ = ["pai"]


@told("pai")
def pai(
    command: str | Sequence[str] | None = None,
    *,
    file: PathLike | None = None,
    arguments: SequenceNotStr[str] = (),
    variables: Mapping[str, str] | None = None,
    tables_root: PathLike | None = None,
    oss_roots: Mapping[str, str] | None = None,
    project: str | None = None,
    num_workers: int | None = None,
    num_ps: int | None = None,
    bind_host: str = "127.0.0.1",
    advertised_host: str | None = None,
    engine: str | Engine = "local",
    python_env: PathLike | None = None,
    requirements: PathLike | None = None,
    keras: Literal["legacy"] | None = None,
    env: Mapping[str, str] | None = None,
    gpus_per_worker: int | None = None,
    cpus_per_worker: int | None = None,
    intra_op_parallelism: int | None = None,
    timeout: float | None = None,
    start_timeout: float = 60.0,
    stall_timeout: float | None = None,
    stall_action: Literal["fail", "warn"] | None = None,
    evaluator_timeout: float = 60.0,
    profile_input: int | None = None,
    max_restarts: int | None = None,
    restart_delay: float = 1.0,
    tensorboard: PathLike | None = None,
    work_dir: PathLike | None = None,
    debug: bool = False,
    keep_run: bool | None = None,
    notify: NotifyLike | None = None,
    metrics_file: PathLike | None = None,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    mlflow: str | None = None,
    mlflow_experiment: str | None = None,
    progress: Literal["auto", "bar", "plain", "none", "json"] = "auto",
    observer: Observer | None = None,
) -> Result | list[Done]:
    """Run a script of PAI-TensorFlow by its command: `PAI -name tensorflow1150 -Dscript=... -Dtables=odps://...;`.

    Tables are local ones (`akrunner tables`), or MaxCompute's where there are credentials; `oss://` is a directory, or the bucket. What is given here wins over
    what the command says.

    Args:
        command: PAI's command as it is typed into MaxCompute's client, also with other statements; or its words, ["-name",
            "tensorflow1150", ...].
        file: in place of the command: a file of statements (`odpscmd -f`), or a shell script that hands statements to odpscmd; bash
            runs the whole script.
        arguments: arguments of the shell script.
        variables: values of `${name}` in statements; for a shell script, variables of its environment.
        tables_root: directory of local tables; None: AKRUNNER_TABLES, or the user's own.
        oss_roots: bucket -> the directory that `oss://bucket` stands for.
        project: project of tables whose names have none; None: AKRUNNER_PROJECT.
        num_workers: workers, the chief among them, in place of what the command says.
        num_ps: parameter servers, in place of what the command says.
        bind_host: the address of this machine at which TensorFlow's servers listen.
        advertised_host: the name by which the tasks reach each other's servers, which TF_CONFIG has; None: `bind_host`, or, on
            Flink, each machine's own address.
        engine: "local", "flink", one that a package adds, or an engine (`akrunner.engines.flink.FlinkEngine`).
        python_env: the environment with TensorFlow, as for `run`; None: the one that the command's name stands for.
        requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        env: environment variables for the tasks.
        gpus_per_worker: graphics cards of its own for each worker, in place of what the command says.
        cpus_per_worker: cores of its own for each worker, in place of what the command says.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
        timeout: seconds a job may take, in place of `maxTrainingTimeInHour`.
        start_timeout: seconds a worker process may take to start.
        stall_timeout: how many seconds nothing may move before the job reports which task waits for which, in place of
            `maxHungTimeBeforeGCInSeconds`; None: 600, if the command does not say.
        stall_action: what happens then: "fail" ends the job, "warn" lets it go on; None: as the command says, or "fail".
        evaluator_timeout: seconds the evaluator gets for the last checkpoint when chief and workers are done.
        profile_input: steps, 1 to 10,000, at which TensorFlow's profiler looks for what the scripts' input waits for:
            `stats.inputs`, and in words `stats.input_verdict`; 20 is a good number. Not in a task of a cluster, where it can end
            the process. None, or False: it is not started; what clocks tell is measured anyway.
        max_restarts: how often everything is started again after a failure, in place of what `enableDynamicCluster` means (3).
        restart_delay: seconds to wait before the job is started again for the first time (`max_restarts=`); before each further
            time twice as long, up to 300, and a tenth more or less. 0: it never waits.
        tensorboard: directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs; with
            `user_params`, for its tab HPARAMS.
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
        debug: keep the work dir, for `akrunner replay`.
        keep_run: whether this run is kept, for `akrunner runs` and `akrunner.runs`: its arguments (no secrets), versions, numbers,
            metrics, warnings, logs, and why it failed. None: it is, unless AKRUNNER_KEEP_RUN is 0.
        notify: who is told of the job's end, also of one that is refused: a URL that gets a POST of the JSON object of `--json`, or
            a function that gets it as a dict. If that fails, it is a warning.
        metrics_file: file to write the job's numbers to as OpenMetrics, every five seconds and at the end: rows, bytes, states,
            restarts, stalls.
        metrics_port: port that serves the same numbers while the job runs, as http://127.0.0.1:PORT/metrics.
        metrics_host: address of this machine at which `metrics_port=` listens. Whoever can reach it can read the numbers: there is
            no password.
        mlflow: URI of an MLflow tracking server, at which the job becomes a run: params, metrics, status, model, logs; needs
            akrunner's extra `mlflow`. "auto": as MLFLOW_TRACKING_URI, or the program around the job, says. What cannot be logged is
            a warning.
        mlflow_experiment: the name of the run's experiment, which is made if it is not there. None: MLFLOW_EXPERIMENT_NAME, else
            MLFLOW_EXPERIMENT_ID, else MLflow's default.
        progress: how it is shown how far the job is: bar (drawn on the terminal, in a notebook in the output of the cell), plain (a
            line on stderr now and then), json (events on stderr), none. auto: what AKRUNNER_PROGRESS says; else nothing, but in a
            notebook, without `observer`, as bar.
        observer: an object that is told of the job's progress. A shell script's jobs have none.
    Returns:
        the result, its `output` the tables that were written; a list, one for each statement, where there are others or a file.
    Raises:
        ConfigError: as `akrunner.run`. Of a file, the statements before the one that failed are done.
        JobError: as `akrunner.run`; a shell script ended with another exit code than 0.
    """
    return run_pai(
        PaiArguments(
            variables=variables,
            tables_root=tables_root,
            oss_roots=oss_roots,
            project=project,
            num_workers=num_workers,
            num_ps=num_ps,
            bind_host=bind_host,
            advertised_host=advertised_host,
            engine=engine,
            python_env=python_env,
            requirements=requirements,
            keras=keras,
            env=env,
            gpus_per_worker=gpus_per_worker,
            cpus_per_worker=cpus_per_worker,
            intra_op_parallelism=intra_op_parallelism,
            timeout=timeout,
            start_timeout=start_timeout,
            stall_timeout=stall_timeout,
            stall_action=stall_action,
            evaluator_timeout=evaluator_timeout,
            profile_input=profile_input,
            max_restarts=max_restarts,
            restart_delay=restart_delay,
            tensorboard=tensorboard,
            work_dir=work_dir,
            debug=debug,
            keep_run=keep_run,
            notify=notify,
            metrics_file=metrics_file,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            mlflow=mlflow,
            mlflow_experiment=mlflow_experiment,
            progress=progress,
        ),
        command=command,
        file=file,
        arguments=arguments,
        observer=observer,
    )
