"""Jobs inside a PyFlink program: a Table in, a Table out. Written by scripts/gen-options from `akrunner.options`: change that, and run it.

    >>> from akrunner import flink
    >>> job = flink.stream("score.py", t_env.from_path("clicks"), output_schema="id bigint, p double")
    >>> job.table.execute_insert("scores")
    >>> scored = flink.predict("model.zip", t_env.from_path("clicks")).table

Nothing runs before the program executes the table; each task runs beside a subtask of the program's own Flink job, and its rows go to it
and on without leaving that machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from akrunner.engines.base import Observer
from akrunner.engines.flink.host.attached import Attached
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.options.told import told
from akrunner.prepare.arguments import Arguments, PathLike, SchemaLike, ScriptLike
from akrunner.programs import predicted, scripted, streamed
from akrunner.sequences import SequenceNotStr
from akrunner.serving.arguments import ModelLike, PredictArguments

__all__ = ["Attached", "FlinkEngine", "predict", "run", "stream"]


@told("flink.run")
def run(
    script: ScriptLike,
    source: Any,
    *,
    user_params: Mapping[str, Any] | None = None,
    user_files: SequenceNotStr[PathLike] = (),
    script_args: SequenceNotStr[str] = (),
    data_format: Literal["examples", "columns"] = "examples",
    output_schema: SchemaLike,
    num_workers: int | None = None,
    num_ps: int | None = None,
    parallelism: int | None = None,
    evaluator: bool = False,
    coordinator: bool = False,
    chief: bool | None = None,
    bind_host: str = "127.0.0.1",
    advertised_host: str | None = None,
    engine: FlinkEngine | None = None,
    python_env: PathLike | None = None,
    requirements: PathLike | None = None,
    keras: Literal["legacy"] | None = None,
    env: Mapping[str, str] | None = None,
    gpus_per_worker: int | None = None,
    cpus_per_worker: int | None = None,
    intra_op_parallelism: int | None = None,
    timeout: float | None = None,
    start_timeout: float = 60.0,
    stall_timeout: float = 600.0,
    stall_action: Literal["fail", "warn"] = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: int | None = None,
    tensorboard: PathLike | None = None,
    work_dir: PathLike | None = None,
    checkpoint_dir: PathLike | None = None,
    resume: bool = False,
    debug: bool = False,
    observer: Observer | None = None,
) -> Attached:
    """Run a script over a bounded Table or DataStream of PyFlink.

    A worker's whole output waits in its TaskManager until its script has returned: for much of it, name a file (`akrunner.run` with
    `output=`).

    Args:
        script: file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config
            by `akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its
            source goes to the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it
            uses.
        source: a Table or DataStream.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`,
            "#sha256=..." checks what came.
        script_args: the words after the script's name in `sys.argv`, ["--epochs", "3"].
        data_format: "examples": rows reach the script as `tf.train.Example`s; "columns": as columns of their own types, several
            times faster, for scripts that read them by `task_config.dataset()` or `task_config.batches()`.
        output_schema: columns the script writes, "id bigint, p double"; or {"id": "int64", "p": float}, `frame.dtypes`, a pyarrow
            schema. None: those of the first batch it writes; a stream, and rows of a Table, need it.
        num_workers: processes that share the rows, worker 0 the chief; None: 1.
        num_ps: parameter servers; None: 0.
        parallelism: workers and parameter servers together, to be divided where `num_workers` or `num_ps` is not given: a quarter
            parameter servers, as Alink does, or the rest.
        evaluator: one more task, of role "evaluator", for scripts that evaluate what the others train (Estimators).
        coordinator: the chief only coordinates (`ClusterCoordinator`): it comes on top of `num_workers` and gets no rows.
        chief: False: there are workers only, worker 0 first, for scripts that count `cluster["worker"]` or take worker 0 for the
            chief. None: a chief, but one worker alone runs as in plain Python, without TF_CONFIG; True: with one also then.
        bind_host: the address of this machine at which TensorFlow's servers listen.
        advertised_host: the name by which the tasks reach each other's servers, which TF_CONFIG has; None: `bind_host`, or, on
            Flink, each machine's own address.
        engine: for its `options` and `host`; None: the program's own.
        python_env: the environment with TensorFlow: an interpreter, a venv or conda directory, a packed environment (conda-pack;
            local or a URL), or tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this interpreter.
        requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        env: environment variables for the tasks.
        gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
        cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are cores.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
        timeout: seconds the job may take; None: as long as it takes.
        start_timeout: seconds a worker process may take to start.
        stall_timeout: how many seconds nothing may move (no rows, no `report()`, no processor time) before the job reports every
            task's stack, and which task waits for which; 0: never.
        stall_action: what happens then: "fail" ends the job, "warn" lets it go on.
        evaluator_timeout: seconds the evaluator gets for the last checkpoint when chief and workers are done.
        profile_input: steps, 1 to 10,000, at which TensorFlow's profiler looks for what the scripts' input waits for:
            `stats.inputs`, and in words `stats.input_verdict`; 20 is a good number. Not in a task of a cluster, where it can end
            the process. None, or False: it is not started; what clocks tell is measured anyway.
        tensorboard: directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs; with
            `user_params`, for its tab HPARAMS.
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
        checkpoint_dir: directory handed to the script, the same for every task.
        resume: go on where an earlier job with the same `checkpoint_dir` was ended, if the script saves by
            `task_config.checkpoint()`; where there is no save yet, the job begins with the first row.
        debug: keep the work dir, for `akrunner replay`.
        observer: an object that is told of the job's progress.
    Returns:
        the job, with the `table` of what the scripts write.
    Raises:
        ConfigError: an argument is wrong.
    """
    return scripted(
        Arguments(
            script=script,
            source=source,
            user_params=user_params,
            user_files=user_files,
            script_args=script_args,
            data_format=data_format,
            output_schema=output_schema,
            num_workers=num_workers,
            num_ps=num_ps,
            parallelism=parallelism,
            evaluator=evaluator,
            coordinator=coordinator,
            chief=chief,
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
            tensorboard=tensorboard,
            work_dir=work_dir,
            checkpoint_dir=checkpoint_dir,
            resume=resume,
            debug=debug,
        ),
        observer=observer,
    )


@told("flink.stream")
def stream(
    script: ScriptLike,
    source: Any,
    *,
    user_params: Mapping[str, Any] | None = None,
    user_files: SequenceNotStr[PathLike] = (),
    script_args: SequenceNotStr[str] = (),
    flush_seconds: float = 0.02,
    data_format: Literal["examples", "columns"] = "examples",
    output_schema: SchemaLike,
    num_workers: int | None = None,
    num_ps: int | None = None,
    parallelism: int | None = None,
    evaluator: bool = False,
    chief: bool | None = None,
    bind_host: str = "127.0.0.1",
    advertised_host: str | None = None,
    engine: FlinkEngine | None = None,
    python_env: PathLike | None = None,
    requirements: PathLike | None = None,
    keras: Literal["legacy"] | None = None,
    env: Mapping[str, str] | None = None,
    gpus_per_worker: int | None = None,
    cpus_per_worker: int | None = None,
    intra_op_parallelism: int | None = None,
    timeout: float | None = None,
    start_timeout: float = 60.0,
    stall_timeout: float = 600.0,
    stall_action: Literal["fail", "warn"] = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: int | None = None,
    max_restarts: int = 0,
    tensorboard: PathLike | None = None,
    work_dir: PathLike | None = None,
    checkpoint_dir: PathLike | None = None,
    debug: bool = False,
    observer: Observer | None = None,
) -> Attached:
    """Run a script over a Table or DataStream of PyFlink that may never end, row by row as they come.

    With `execution.checkpointing.interval` set, no row is lost: a checkpoint waits until the script has asked for a row behind all it
    has been given, and Flink starts from the last one when a machine fails. A row may come twice then.

    Args:
        script: file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config
            by `akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its
            source goes to the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it
            uses.
        source: a Table or DataStream.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`,
            "#sha256=..." checks what came.
        script_args: the words after the script's name in `sys.argv`, ["--epochs", "3"].
        flush_seconds: how many seconds a row waits at most for others to be sent with it, on its way in and out together.
        data_format: "examples": rows reach the script as `tf.train.Example`s; "columns": as columns of their own types, several
            times faster, for scripts that read them by `task_config.dataset()` or `task_config.batches()`.
        output_schema: columns the script writes, "id bigint, p double"; or {"id": "int64", "p": float}, `frame.dtypes`, a pyarrow
            schema. None: those of the first batch it writes; a stream, and rows of a Table, need it.
        num_workers: processes that share the rows, worker 0 the chief; None: 1.
        num_ps: parameter servers; None: 0.
        parallelism: workers and parameter servers together, to be divided where `num_workers` or `num_ps` is not given: a quarter
            parameter servers, as Alink does, or the rest.
        evaluator: one more task, of role "evaluator", for scripts that evaluate what the others train (Estimators).
        chief: False: there are workers only, worker 0 first, for scripts that count `cluster["worker"]` or take worker 0 for the
            chief. None: a chief, but one worker alone runs as in plain Python, without TF_CONFIG; True: with one also then.
        bind_host: the address of this machine at which TensorFlow's servers listen.
        advertised_host: the name by which the tasks reach each other's servers, which TF_CONFIG has; None: `bind_host`, or, on
            Flink, each machine's own address.
        engine: for its `options` and `host`; None: the program's own.
        python_env: the environment with TensorFlow: an interpreter, a venv or conda directory, a packed environment (conda-pack;
            local or a URL), or tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this interpreter.
        requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        env: environment variables for the tasks.
        gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
        cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are cores.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
        timeout: seconds the job may take; None: as long as it takes.
        start_timeout: seconds a worker process may take to start.
        stall_timeout: how many seconds nothing may move (no rows, no `report()`, no processor time) before the job reports every
            task's stack, and which task waits for which; 0: never.
        stall_action: what happens then: "fail" ends the job, "warn" lets it go on.
        evaluator_timeout: seconds the evaluator gets for the last checkpoint when chief and workers are done.
        profile_input: steps, 1 to 10,000, at which TensorFlow's profiler looks for what the scripts' input waits for:
            `stats.inputs`, and in words `stats.input_verdict`; 20 is a good number. Not in a task of a cluster, where it can end
            the process. None, or False: it is not started; what clocks tell is measured anyway.
        max_restarts: how often what fails itself may be started again, as when a machine fails.
        tensorboard: directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs; with
            `user_params`, for its tab HPARAMS.
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
        checkpoint_dir: directory handed to the script, the same for every task.
        debug: keep the work dir, for `akrunner replay`.
        observer: an object that is told of the job's progress.
    Returns:
        the job, with the `table` of what the scripts write.
    Raises:
        ConfigError: an argument is wrong.
    """
    return streamed(
        Arguments(
            script=script,
            source=source,
            user_params=user_params,
            user_files=user_files,
            script_args=script_args,
            flush_seconds=flush_seconds,
            data_format=data_format,
            output_schema=output_schema,
            num_workers=num_workers,
            num_ps=num_ps,
            parallelism=parallelism,
            evaluator=evaluator,
            chief=chief,
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
            tensorboard=tensorboard,
            work_dir=work_dir,
            checkpoint_dir=checkpoint_dir,
            debug=debug,
        ),
        max_restarts=max_restarts,
        observer=observer,
    )


@told("flink.predict")
def predict(
    model: ModelLike,
    source: Any,
    *,
    selected_cols: SequenceNotStr[str] | None = None,
    input_signature_defs: SequenceNotStr[str] | None = None,
    output_signature_defs: SequenceNotStr[str] | None = None,
    signature_def_key: str = "serving_default",
    graph_def_tag: str = "serve",
    reserved_cols: SequenceNotStr[str] | None = None,
    batch_size: int = 1024,
    flush_seconds: float = 0.02,
    output_schema: SchemaLike | None = None,
    num_workers: int | None = None,
    engine: FlinkEngine | None = None,
    python_env: PathLike | None = None,
    requirements: PathLike | None = None,
    keras: Literal["legacy"] | None = None,
    env: Mapping[str, str] | None = None,
    gpus_per_worker: int | None = None,
    cpus_per_worker: int | None = None,
    intra_op_parallelism: int | None = None,
    timeout: float | None = None,
    start_timeout: float = 60.0,
    stall_timeout: float = 600.0,
    stall_action: Literal["fail", "warn"] = "fail",
    max_restarts: int = 0,
    work_dir: PathLike | None = None,
    observer: Observer | None = None,
) -> Attached:
    """Run a SavedModel over a Table or DataStream of PyFlink that may never end; its other columns, or those of `reserved_cols`, are kept beside.

    Args:
        model: a `Model`, a SavedModel's directory or zip, local or a URL, or a model table.
        source: a Table or DataStream.
        selected_cols: columns that feed the model, in the order of `input_signature_defs`; None: those named as the inputs, or the
            only column for the only input. For a model of one input several columns are laid side by side: [rows, columns].
        input_signature_defs: the signature's inputs, in the order of the columns; None: named as the columns.
        output_signature_defs: the signature's outputs, in the order of `output_schema`; None: named as its columns.
        signature_def_key: which signature.
        graph_def_tag: which graph (tags, separated by commas).
        reserved_cols: columns of the table to keep; None: all. An output named as one of them takes its place.
        batch_size: rows that the model gets at a time, at most.
        flush_seconds: how many seconds a row waits at most for others to be sent with it, on its way in and out together.
        output_schema: columns the outputs become, "p double, embedding FLOAT_TENSOR"; an output of any rank is laid out row-major.
            None: every output, of its own type.
        num_workers: processes that share the rows, worker 0 the chief; None: 1.
        engine: for its `options` and `host`; None: the program's own.
        python_env: the environment with TensorFlow: an interpreter, a venv or conda directory, a packed environment (conda-pack;
            local or a URL), or tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this interpreter.
        requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        env: environment variables for the tasks.
        gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
        cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are cores.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
        timeout: seconds the job may take; None: as long as it takes.
        start_timeout: seconds a worker process may take to start.
        stall_timeout: how many seconds nothing may move (no rows, no `report()`, no processor time) before the job reports every
            task's stack, and which task waits for which; 0: never.
        stall_action: what happens then: "fail" ends the job, "warn" lets it go on.
        max_restarts: how often what fails itself may be started again, as when a machine fails.
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
        observer: an object that is told of the job's progress.
    Returns:
        the job, with the `table` of what the model gives.
    Raises:
        ConfigError: an argument is wrong.
    """
    return predicted(
        PredictArguments(
            model=model,
            source=source,
            selected_cols=selected_cols,
            input_signature_defs=input_signature_defs,
            output_signature_defs=output_signature_defs,
            signature_def_key=signature_def_key,
            graph_def_tag=graph_def_tag,
            reserved_cols=reserved_cols,
            batch_size=batch_size,
            flush_seconds=flush_seconds,
            output_schema=output_schema,
            num_workers=num_workers,
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
            work_dir=work_dir,
        ),
        max_restarts=max_restarts,
        observer=observer,
    )
