"""`akrunner.run`, `train`, `stream` and `plan`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from akrunner.api import run_batch, run_stream, run_train
from akrunner.engines.base import Engine, Observer
from akrunner.jobfile import from_file, given
from akrunner.options.told import told
from akrunner.planning.making import plan_job
from akrunner.planning.plan import Plan
from akrunner.prepare.arguments import Arguments, CsvLike, NotifyLike, PathLike, SchemaLike, ScriptLike, SplitLike
from akrunner.running.result import Result
from akrunner.sequences import SequenceNotStr
from akrunner.stream_job import StreamJob

__all__ = ["plan", "run", "stream", "train"]


@from_file("run")
@told("run")
def run(
    script: ScriptLike | None = None,
    source: Any = None,
    *,
    job: PathLike | None = None,
    user_params: Mapping[str, Any] | None = None,
    user_files: SequenceNotStr[PathLike] = (),
    script_args: SequenceNotStr[str] = (),
    tables: SequenceNotStr[str] = (),
    project: str | None = None,
    select: str | None = None,
    columns: SequenceNotStr[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    decimals: Literal["refuse", "float64", "text", "int64"] = "refuse",
    split: SplitLike | None = None,
    split_by: str | None = None,
    split_seed: int = 0,
    input_schema: SchemaLike | None = None,
    input_format: str | None = None,
    input_csv: CsvLike | None = None,
    bad_rows: PathLike = "fail",
    max_bad_rows: int | str = 100,
    data_format: Literal["examples", "columns"] = "examples",
    output_tables: SequenceNotStr[str] = (),
    output_schema: SchemaLike | None = None,
    output: PathLike | None = None,
    output_format: str | None = None,
    output_csv: CsvLike | None = None,
    overwrite: bool = False,
    partition_by: SequenceNotStr[str] | None = None,
    sort_by: SequenceNotStr[str] | None = None,
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | str | None = None,
    output_compression: str | None = None,
    append: bool = False,
    manifest: bool = False,
    num_workers: int | None = None,
    num_ps: int | None = None,
    parallelism: int | None = None,
    evaluator: bool = False,
    coordinator: bool = False,
    chief: bool | None = None,
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
    stall_timeout: float = 600.0,
    stall_action: Literal["fail", "warn"] = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: int | None = None,
    max_restarts: int = 0,
    restart_delay: float = 1.0,
    tensorboard: PathLike | None = None,
    work_dir: PathLike | None = None,
    checkpoint_dir: PathLike | None = None,
    resume: bool = False,
    debug: bool = False,
    keep_run: bool | None = None,
    notify: NotifyLike | None = None,
    metrics_file: PathLike | None = None,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    mlflow: str | None = None,
    mlflow_experiment: str | None = None,
    report: PathLike | None = None,
    progress: Literal["auto", "bar", "plain", "none", "json"] = "auto",
    observer: Observer | None = None,
) -> Result:
    """Run a script over a table: every worker gets its share of the rows, and `main(task_config)` is called in each.

    Args:
        script: file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config
            by `akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its
            source goes to the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it
            uses. Or a job file (`job.toml`), which sets options, too.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON, Arrow/Feather, Avro, Excel, numpy's .npy
            and .npz, TFRecord; with `input_format`, images or texts); a pyarrow Table, RecordBatchReader or Dataset, a pandas or
            polars frame, a DuckDB relation, a dict of arrays, an iterable of rows; a cursor, a result of SQLAlchemy, or a
            connection or engine whose database runs `select`. None: there is none, where `tables` or `output_tables` names what the
            script asks for.
        job: a job file (`job.toml`) that says it all; what is given beside it wins over what it says.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`,
            "#sha256=..." checks what came.
        script_args: the words after the script's name in `sys.argv`, ["--epochs", "3"].
        tables: "odps://project/tables/t/pt=v", tables the script may read itself, as scripts of PAI do: by `TableRecordDataset`,
            `TableReader`, ... (see the docs of PAI).
        project: project of the names in `tables` and `output_tables` that name none.
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        columns: the only columns that go to the tasks, in this order; None: all. The others are not read, either, where the format
            keeps columns apart (Parquet, Arrow files, tables by name), nor parsed in CSV. With `select`, which reads every column
            and computes, those of its result.
        defaults: column -> what stands there for a null, {"age": 0, "income": float("nan")}, of the column's type, before any task
            has the row; a script may give others theirs in `dataset()` and `batches()`. None: nulls stay nulls.
        decimals: what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all
            digits, "12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not
            fit; "refuse": an error, unless there are no digits behind the point.
        split: names of splits and their shares of the rows, {"train": 0.8, "test": 0.2} or "train=0.8,test=0.2", for
            `task_config.dataset(split="test")`; every row is in one of them, by a hash, whichever worker it goes to. None: rows are
            not split.
        split_by: the column whose value decides the split (it must go to the tasks): rows with the same value are in the same
            split, in every table. None: the row's number decides.
        split_seed: with another number, rows are split differently; the same number always gives the same splits.
        input_schema: columns to take and their types; needed for TFRecord.
        input_format: format of the source, if file names do not show it. Of a directory of many small files: "images", a row for
            each (path, label, bytes, height, width, format); "texts", a row for each (path, label, text); "lines", a row for each
            line (path, line, text), or several files of lines side by side, a column for each.
        input_csv: how CSV is written, "delimiter=;,null=NA" or {"delimiter": ";", "null": ["NA"]}; keys: delimiter, quote, header,
            null, decimal, comment, skip, encoding. None: the beginning of the first file tells the delimiter, and a warning says it
            if it is no comma.
        bad_rows: what becomes of rows of CSV and JSON lines, and of messages of Kafka and Redis, that do not parse, or do not fit
            `input_schema`: fail; skip: they are left out, counted, and the first shown; or a directory that rows are written to as
            JSON lines.
        max_bad_rows: with `bad_rows`: how many rows may be bad, 100, or which share of them, "1%" (judged from the 10,000th row on,
            and at the end); with more, the job fails.
        data_format: "examples": rows reach the script as `tf.train.Example`s; "columns": as columns of their own types, several
            times faster, for scripts that read them by `task_config.dataset()` or `task_config.batches()`.
        output_tables: tables the script may write, by `TableWriter`: what it writes replaces what was there when the job has
            succeeded.
        output_schema: columns the script writes, "id bigint, p double"; or {"id": "int64", "p": float}, `frame.dtypes`, a pyarrow
            schema. None: those of the first batch it writes; a stream, and rows of a Table, need it.
        output: file to write them to (.parquet .csv .jsonl .arrow .tfrecord .avro .xlsx .npy .npz; .csv.gz, .jsonl.zst:
            compressed); "dir/": a directory with a file of each task, parquet unless `output_format` says otherwise; None: they
            come back as `result.table`.
        output_format: format of `output`, if its name does not show it. `"json"`: an array of objects. `"csv.gz"`, `"jsonl.zst"`:
            compressed.
        output_csv: how `output` is written if it is CSV, "delimiter=tab,null=NA"; keys: delimiter, quote, header, null, decimal,
            encoding. None: with commas, and with tabs if the name ends in .tsv.
        overwrite: replace what is there already: in `run` and `predict` at `output`, in `train` at `model_out`.
        partition_by: columns whose values become names of directories, outermost first, as Hive, Spark, DuckDB and Arrow read them:
            `["day", "hour"]` writes `day=2026-11-26/hour=7/part-chief-0.parquet`; `output` is a directory. None: none.
        sort_by: columns by which all rows are sorted, `["user", "time desc"]`, nulls last; within their directories, with
            `partition_by`. The rows are kept on the disk until the last one is there (TMPDIR). None: they stay as tasks write them.
        max_rows_per_file: the most rows of a file in a directory; the next file has the next ones. None: no limit.
        max_bytes_per_file: the size that a file in a directory stays below, about, in bytes or as "128MB". None: no limit.
        output_compression: codec of Parquet: "zstd", "snappy", "gzip", "brotli", "lz4", "none"; of Arrow: "zstd", "lz4", "none";
            with a level as in "zstd:3". None: Parquet has snappy, Arrow none.
        append: put new files beside those that are in the directory `output`, all at once when the job has succeeded.
        manifest: write `_SUCCESS` into the directory `output`, last: JSON with its files, their rows and bytes, and the columns.
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
        engine: "local", "flink", one that a package adds, or an engine (`akrunner.engines.flink.FlinkEngine`).
        python_env: the environment with TensorFlow: an interpreter, a venv or conda directory, a packed environment (conda-pack;
            local or a URL), or tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this interpreter.
        requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        env: environment variables for the tasks.
        gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
        cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are cores.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
        timeout: seconds the job may take, with all that is done before its tasks start: packages of `requirements=` are installed,
            files downloaded, tables opened. Installing is not cut short; what it brings is kept. None: as long as it takes.
        start_timeout: seconds a worker process may take to start.
        stall_timeout: how many seconds nothing may move (no rows, no `report()`, no processor time) before the job reports every
            task's stack, and which task waits for which; 0: never.
        stall_action: what happens then: "fail" ends the job, "warn" lets it go on.
        evaluator_timeout: seconds the evaluator gets for the last checkpoint when chief and workers are done.
        profile_input: steps, 1 to 10,000, at which TensorFlow's profiler looks for what the scripts' input waits for:
            `stats.inputs`, and in words `stats.input_verdict`; 20 is a good number. Not in a task of a cluster, where it can end
            the process. None, or False: it is not started; what clocks tell is measured anyway.
        max_restarts: how often everything is started again after a failure, with the rows from the start and the same
            `checkpoint_dir`; `task_config.attempt` counts. The source must be one that can be read again. A stream goes on behind
            what was remembered, or behind the last save of `task_config.checkpoint()`.
        restart_delay: seconds to wait before the job is started again for the first time (`max_restarts=`); before each further
            time twice as long, up to 300, and a tenth more or less. 0: it never waits.
        tensorboard: directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs; with
            `user_params`, for its tab HPARAMS.
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
        checkpoint_dir: directory handed to the script, the same for every task.
        resume: go on where an earlier job with the same `checkpoint_dir` was ended, if the script saves by
            `task_config.checkpoint()`; where there is no save yet, the job begins with the first row.
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
        report: the file of an HTML page about the job (why it failed, learning curves, timeline, memory, logs), written when it has
            ended, whether it has succeeded or not; needs akrunner's extra `report`. `akrunner.runs.report` makes it later, too.
        progress: how it is shown how far the job is: bar (drawn on the terminal, in a notebook in the output of the cell), plain (a
            line on stderr now and then), json (events on stderr), none. auto: what AKRUNNER_PROGRESS says; else nothing, but in a
            notebook, without `observer`, as bar.
        observer: an object that is told of the job's progress.
    Returns:
        the result.
    Raises:
        ConfigError: an argument is wrong; nothing was started.
        DataError: a value of the table cannot cross.
        JobError: the job failed; the message holds the script's traceback.
    """
    return run_batch(
        Arguments(
            script=given(script),
            source=source,
            user_params=user_params,
            user_files=user_files,
            script_args=script_args,
            tables=tables,
            project=project,
            select=select,
            columns=columns,
            defaults=defaults,
            decimals=decimals,
            split=split,
            split_by=split_by,
            split_seed=split_seed,
            input_schema=input_schema,
            input_format=input_format,
            input_csv=input_csv,
            bad_rows=bad_rows,
            max_bad_rows=max_bad_rows,
            data_format=data_format,
            output_tables=output_tables,
            output_schema=output_schema,
            output=output,
            output_format=output_format,
            output_csv=output_csv,
            overwrite=overwrite,
            partition_by=partition_by,
            sort_by=sort_by,
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=max_bytes_per_file,
            output_compression=output_compression,
            append=append,
            manifest=manifest,
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
            max_restarts=max_restarts,
            restart_delay=restart_delay,
            tensorboard=tensorboard,
            work_dir=work_dir,
            checkpoint_dir=checkpoint_dir,
            resume=resume,
            debug=debug,
            keep_run=keep_run,
            notify=notify,
            metrics_file=metrics_file,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            mlflow=mlflow,
            mlflow_experiment=mlflow_experiment,
            report=report,
            progress=progress,
        ),
        observer=observer,
    )


@from_file("train")
@told("train")
def train(
    script: ScriptLike | None = None,
    source: Any = None,
    *,
    job: PathLike | None = None,
    user_params: Mapping[str, Any] | None = None,
    user_files: SequenceNotStr[PathLike] = (),
    script_args: SequenceNotStr[str] = (),
    model_out: PathLike | None = None,
    save_latest_checkpoint: bool = False,
    remove_checkpoint_before_training: bool = False,
    select: str | None = None,
    columns: SequenceNotStr[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    decimals: Literal["refuse", "float64", "text", "int64"] = "refuse",
    split: SplitLike | None = None,
    split_by: str | None = None,
    split_seed: int = 0,
    input_schema: SchemaLike | None = None,
    input_format: str | None = None,
    input_csv: CsvLike | None = None,
    bad_rows: PathLike = "fail",
    max_bad_rows: int | str = 100,
    data_format: Literal["examples", "columns"] = "examples",
    output_schema: SchemaLike | None = None,
    overwrite: bool = False,
    num_workers: int | None = None,
    num_ps: int | None = None,
    parallelism: int | None = None,
    evaluator: bool = False,
    coordinator: bool = False,
    chief: bool | None = None,
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
    stall_timeout: float = 600.0,
    stall_action: Literal["fail", "warn"] = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: int | None = None,
    max_restarts: int = 0,
    restart_delay: float = 1.0,
    tensorboard: PathLike | None = None,
    work_dir: PathLike | None = None,
    checkpoint_dir: PathLike | None = None,
    resume: bool = False,
    debug: bool = False,
    keep_run: bool | None = None,
    notify: NotifyLike | None = None,
    metrics_file: PathLike | None = None,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    mlflow: str | None = None,
    mlflow_experiment: str | None = None,
    report: PathLike | None = None,
    progress: Literal["auto", "bar", "plain", "none", "json"] = "auto",
    observer: Observer | None = None,
) -> Result:
    """Run a script that trains a model: as `run`, and what the chief exported to `task_config.saved_model_dir` comes back.

    Args:
        script: file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config
            by `akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its
            source goes to the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it
            uses. Or a job file (`job.toml`), which sets options, too.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON, Arrow/Feather, Avro, Excel, numpy's .npy
            and .npz, TFRecord; with `input_format`, images or texts); a pyarrow Table, RecordBatchReader or Dataset, a pandas or
            polars frame, a DuckDB relation, a dict of arrays, an iterable of rows; a cursor, a result of SQLAlchemy, or a
            connection or engine whose database runs `select`.
        job: a job file (`job.toml`) that says it all; what is given beside it wins over what it says.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`,
            "#sha256=..." checks what came.
        script_args: the words after the script's name in `sys.argv`, ["--epochs", "3"].
        model_out: directory, or file ending in .zip, to save the model to; None: it is `result.model` only, in a temporary
            directory that goes with it.
        save_latest_checkpoint: give the script a `latest_ckpt_dir` and bring back what it puts there.
        remove_checkpoint_before_training: empty `checkpoint_dir` of checkpoints of earlier runs first.
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        columns: the only columns that go to the tasks, in this order; None: all. The others are not read, either, where the format
            keeps columns apart (Parquet, Arrow files, tables by name), nor parsed in CSV. With `select`, which reads every column
            and computes, those of its result.
        defaults: column -> what stands there for a null, {"age": 0, "income": float("nan")}, of the column's type, before any task
            has the row; a script may give others theirs in `dataset()` and `batches()`. None: nulls stay nulls.
        decimals: what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all
            digits, "12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not
            fit; "refuse": an error, unless there are no digits behind the point.
        split: names of splits and their shares of the rows, {"train": 0.8, "test": 0.2} or "train=0.8,test=0.2", for
            `task_config.dataset(split="test")`; every row is in one of them, by a hash, whichever worker it goes to. None: rows are
            not split.
        split_by: the column whose value decides the split (it must go to the tasks): rows with the same value are in the same
            split, in every table. None: the row's number decides.
        split_seed: with another number, rows are split differently; the same number always gives the same splits.
        input_schema: columns to take and their types; needed for TFRecord.
        input_format: format of the source, if file names do not show it. Of a directory of many small files: "images", a row for
            each (path, label, bytes, height, width, format); "texts", a row for each (path, label, text); "lines", a row for each
            line (path, line, text), or several files of lines side by side, a column for each.
        input_csv: how CSV is written, "delimiter=;,null=NA" or {"delimiter": ";", "null": ["NA"]}; keys: delimiter, quote, header,
            null, decimal, comment, skip, encoding. None: the beginning of the first file tells the delimiter, and a warning says it
            if it is no comma.
        bad_rows: what becomes of rows of CSV and JSON lines, and of messages of Kafka and Redis, that do not parse, or do not fit
            `input_schema`: fail; skip: they are left out, counted, and the first shown; or a directory that rows are written to as
            JSON lines.
        max_bad_rows: with `bad_rows`: how many rows may be bad, 100, or which share of them, "1%" (judged from the 10,000th row on,
            and at the end); with more, the job fails.
        data_format: "examples": rows reach the script as `tf.train.Example`s; "columns": as columns of their own types, several
            times faster, for scripts that read them by `task_config.dataset()` or `task_config.batches()`.
        output_schema: columns the script writes, "id bigint, p double"; or {"id": "int64", "p": float}, `frame.dtypes`, a pyarrow
            schema. None: those of the first batch it writes; a stream, and rows of a Table, need it.
        overwrite: replace what is there already: in `run` and `predict` at `output`, in `train` at `model_out`.
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
        engine: "local", "flink", one that a package adds, or an engine (`akrunner.engines.flink.FlinkEngine`).
        python_env: the environment with TensorFlow: an interpreter, a venv or conda directory, a packed environment (conda-pack;
            local or a URL), or tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this interpreter.
        requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        env: environment variables for the tasks.
        gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
        cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are cores.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
        timeout: seconds the job may take, with all that is done before its tasks start: packages of `requirements=` are installed,
            files downloaded, tables opened. Installing is not cut short; what it brings is kept. None: as long as it takes.
        start_timeout: seconds a worker process may take to start.
        stall_timeout: how many seconds nothing may move (no rows, no `report()`, no processor time) before the job reports every
            task's stack, and which task waits for which; 0: never.
        stall_action: what happens then: "fail" ends the job, "warn" lets it go on.
        evaluator_timeout: seconds the evaluator gets for the last checkpoint when chief and workers are done.
        profile_input: steps, 1 to 10,000, at which TensorFlow's profiler looks for what the scripts' input waits for:
            `stats.inputs`, and in words `stats.input_verdict`; 20 is a good number. Not in a task of a cluster, where it can end
            the process. None, or False: it is not started; what clocks tell is measured anyway.
        max_restarts: how often everything is started again after a failure, with the rows from the start and the same
            `checkpoint_dir`; `task_config.attempt` counts. The source must be one that can be read again. A stream goes on behind
            what was remembered, or behind the last save of `task_config.checkpoint()`.
        restart_delay: seconds to wait before the job is started again for the first time (`max_restarts=`); before each further
            time twice as long, up to 300, and a tenth more or less. 0: it never waits.
        tensorboard: directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs; with
            `user_params`, for its tab HPARAMS.
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
        checkpoint_dir: directory handed to the script, the same for every task.
        resume: go on where an earlier job with the same `checkpoint_dir` was ended, if the script saves by
            `task_config.checkpoint()`; where there is no save yet, the job begins with the first row.
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
        report: the file of an HTML page about the job (why it failed, learning curves, timeline, memory, logs), written when it has
            ended, whether it has succeeded or not; needs akrunner's extra `report`. `akrunner.runs.report` makes it later, too.
        progress: how it is shown how far the job is: bar (drawn on the terminal, in a notebook in the output of the cell), plain (a
            line on stderr now and then), json (events on stderr), none. auto: what AKRUNNER_PROGRESS says; else nothing, but in a
            notebook, without `observer`, as bar.
        observer: an object that is told of the job's progress.
    Returns:
        the result; `result.model` is the model, `result.table` what the scripts wrote.
    Raises:
        ConfigError: an argument is wrong; nothing was started.
        DataError: a value of the table cannot cross.
        ScriptFailedError: the script failed, or the chief left no SavedModel that TensorFlow can read.
        JobError: the job failed otherwise.
    """
    return run_train(
        Arguments(
            script=given(script),
            source=source,
            user_params=user_params,
            user_files=user_files,
            script_args=script_args,
            save_latest_checkpoint=save_latest_checkpoint,
            select=select,
            columns=columns,
            defaults=defaults,
            decimals=decimals,
            split=split,
            split_by=split_by,
            split_seed=split_seed,
            input_schema=input_schema,
            input_format=input_format,
            input_csv=input_csv,
            bad_rows=bad_rows,
            max_bad_rows=max_bad_rows,
            data_format=data_format,
            output_schema=output_schema,
            overwrite=overwrite,
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
            max_restarts=max_restarts,
            restart_delay=restart_delay,
            tensorboard=tensorboard,
            work_dir=work_dir,
            checkpoint_dir=checkpoint_dir,
            resume=resume,
            debug=debug,
            keep_run=keep_run,
            notify=notify,
            metrics_file=metrics_file,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            mlflow=mlflow,
            mlflow_experiment=mlflow_experiment,
            report=report,
            progress=progress,
        ),
        model_out=model_out,
        remove_checkpoint_before_training=remove_checkpoint_before_training,
        observer=observer,
    )


@from_file("stream")
@told("stream")
def stream(
    script: ScriptLike | None = None,
    source: Any = None,
    *,
    job: PathLike | None = None,
    user_params: Mapping[str, Any] | None = None,
    user_files: SequenceNotStr[PathLike] = (),
    script_args: SequenceNotStr[str] = (),
    select: str | None = None,
    columns: SequenceNotStr[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    decimals: Literal["refuse", "float64", "text", "int64"] = "refuse",
    input_schema: SchemaLike | None = None,
    input_format: str | None = None,
    input_csv: CsvLike | None = None,
    bad_rows: PathLike = "fail",
    max_bad_rows: int | str = 100,
    follow: bool = False,
    flush_seconds: float = 0.02,
    data_format: Literal["examples", "columns"] = "examples",
    output_schema: SchemaLike | None = None,
    num_workers: int | None = None,
    num_ps: int | None = None,
    parallelism: int | None = None,
    evaluator: bool = False,
    chief: bool | None = None,
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
    stall_timeout: float = 600.0,
    stall_action: Literal["fail", "warn"] = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: int | None = None,
    max_restarts: int = 0,
    restart_delay: float = 1.0,
    tensorboard: PathLike | None = None,
    work_dir: PathLike | None = None,
    checkpoint_dir: PathLike | None = None,
    resume: bool = False,
    debug: bool = False,
    keep_run: bool | None = None,
    notify: NotifyLike | None = None,
    metrics_file: PathLike | None = None,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    mlflow: str | None = None,
    mlflow_experiment: str | None = None,
    report: PathLike | None = None,
    progress: Literal["auto", "bar", "plain", "none", "json"] = "auto",
    observer: Observer | None = None,
) -> StreamJob:
    """Run a script over rows as they arrive, possibly for ever. Returns at once.

    The script gets a `StreamTaskConfig`: `dataset_fn()` is a dataset of its rows, each to be read once. With several workers, chunks
    of rows go to them in turn. A slow script holds the source back.

    Args:
        script: file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config
            by `akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its
            source goes to the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it
            uses. Or a job file (`job.toml`), which sets options, too.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON, Arrow/Feather, Avro, Excel, numpy's .npy
            and .npz, TFRecord; with `input_format`, images or texts); a pyarrow Table, RecordBatchReader or Dataset, a pandas or
            polars frame, a DuckDB relation, a dict of arrays, an iterable of rows; a cursor, a result of SQLAlchemy, or a
            connection or engine whose database runs `select`. Of an iterable, each row is sent on as it comes. "-" reads lines of
            stdin: JSON, or CSV with `input_format="csv"`. "kafka://broker/topic?group=g", "redis://host/stream?group=g" and
            "files:///directory?group=g" go on where the group was.
        job: a job file (`job.toml`) that says it all; what is given beside it wins over what it says.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`,
            "#sha256=..." checks what came.
        script_args: the words after the script's name in `sys.argv`, ["--epochs", "3"].
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        columns: the only columns that go to the tasks, in this order; None: all. The others are not read, either, where the format
            keeps columns apart (Parquet, Arrow files, tables by name), nor parsed in CSV. With `select`, which reads every column
            and computes, those of its result.
        defaults: column -> what stands there for a null, {"age": 0, "income": float("nan")}, of the column's type, before any task
            has the row; a script may give others theirs in `dataset()` and `batches()`. None: nulls stay nulls.
        decimals: what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all
            digits, "12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not
            fit; "refuse": an error, unless there are no digits behind the point.
        input_schema: columns to take and their types; needed for TFRecord.
        input_format: format of the source, if file names do not show it. Of a directory of many small files: "images", a row for
            each (path, label, bytes, height, width, format); "texts", a row for each (path, label, text); "lines", a row for each
            line (path, line, text), or several files of lines side by side, a column for each.
        input_csv: how CSV is written, "delimiter=;,null=NA" or {"delimiter": ";", "null": ["NA"]}; keys: delimiter, quote, header,
            null, decimal, comment, skip, encoding. None: the beginning of the first file tells the delimiter, and a warning says it
            if it is no comma.
        bad_rows: what becomes of rows of CSV and JSON lines, and of messages of Kafka and Redis, that do not parse, or do not fit
            `input_schema`: fail; skip: they are left out, counted, and the first shown; or a directory that rows are written to as
            JSON lines.
        max_bad_rows: with `bad_rows`: how many rows may be bad, 100, or which share of them, "1%" (judged from the 10,000th row on,
            and at the end); with more, the job fails.
        follow: the source is one JSON lines or CSV file that is still growing: wait for more at its end, for ever.
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
        engine: "local", "flink", one that a package adds, or an engine (`akrunner.engines.flink.FlinkEngine`).
        python_env: the environment with TensorFlow: an interpreter, a venv or conda directory, a packed environment (conda-pack;
            local or a URL), or tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this interpreter.
        requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        env: environment variables for the tasks.
        gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
        cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are cores.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
        timeout: seconds the job may take, with all that is done before its tasks start: packages of `requirements=` are installed,
            files downloaded, tables opened. Installing is not cut short; what it brings is kept. None: as long as it takes.
        start_timeout: seconds a worker process may take to start.
        stall_timeout: how many seconds nothing may move (no rows, no `report()`, no processor time) before the job reports every
            task's stack, and which task waits for which; 0: never.
        stall_action: what happens then: "fail" ends the job, "warn" lets it go on.
        evaluator_timeout: seconds the evaluator gets for the last checkpoint when chief and workers are done.
        profile_input: steps, 1 to 10,000, at which TensorFlow's profiler looks for what the scripts' input waits for:
            `stats.inputs`, and in words `stats.input_verdict`; 20 is a good number. Not in a task of a cluster, where it can end
            the process. None, or False: it is not started; what clocks tell is measured anyway.
        max_restarts: how often everything is started again after a failure, with the rows from the start and the same
            `checkpoint_dir`; `task_config.attempt` counts. The source must be one that can be read again. A stream goes on behind
            what was remembered, or behind the last save of `task_config.checkpoint()`.
        restart_delay: seconds to wait before the job is started again for the first time (`max_restarts=`); before each further
            time twice as long, up to 300, and a tenth more or less. 0: it never waits.
        tensorboard: directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs; with
            `user_params`, for its tab HPARAMS.
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
        checkpoint_dir: directory handed to the script, the same for every task.
        resume: go on where an earlier job with the same `checkpoint_dir` was ended, if the script saves by
            `task_config.checkpoint()`; where there is no save yet, the job begins with the first row.
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
        report: the file of an HTML page about the job (why it failed, learning curves, timeline, memory, logs), written when it has
            ended, whether it has succeeded or not; needs akrunner's extra `report`. `akrunner.runs.report` makes it later, too.
        progress: how it is shown how far the job is: bar (drawn on the terminal, in a notebook in the output of the cell), plain (a
            line on stderr now and then), json (events on stderr), none. auto: what AKRUNNER_PROGRESS says; else nothing, but in a
            notebook, without `observer`, as bar.
        observer: an object that is told of the job's progress.
    Returns:
        the running job; iterate it for output RecordBatches; errors surface there; `close()` or `with` ends it.
    Raises:
        ConfigError: an argument is wrong; nothing was started.
    """
    return run_stream(
        Arguments(
            script=given(script),
            source=source,
            user_params=user_params,
            user_files=user_files,
            script_args=script_args,
            select=select,
            columns=columns,
            defaults=defaults,
            decimals=decimals,
            input_schema=input_schema,
            input_format=input_format,
            input_csv=input_csv,
            bad_rows=bad_rows,
            max_bad_rows=max_bad_rows,
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
            max_restarts=max_restarts,
            restart_delay=restart_delay,
            tensorboard=tensorboard,
            work_dir=work_dir,
            checkpoint_dir=checkpoint_dir,
            resume=resume,
            debug=debug,
            keep_run=keep_run,
            notify=notify,
            metrics_file=metrics_file,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            mlflow=mlflow,
            mlflow_experiment=mlflow_experiment,
            report=report,
            progress=progress,
        ),
        follow=follow,
        observer=observer,
    )


@from_file("plan")
@told("plan")
def plan(
    script: ScriptLike | None = None,
    source: Any = None,
    *,
    job: PathLike | None = None,
    user_params: Mapping[str, Any] | None = None,
    user_files: SequenceNotStr[PathLike] = (),
    script_args: SequenceNotStr[str] = (),
    verb: Literal["run", "train", "stream"] = "run",
    try_rows: int | None = None,
    model_out: PathLike | None = None,
    save_latest_checkpoint: bool = False,
    tables: SequenceNotStr[str] = (),
    project: str | None = None,
    select: str | None = None,
    columns: SequenceNotStr[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    decimals: Literal["refuse", "float64", "text", "int64"] = "refuse",
    split: SplitLike | None = None,
    split_by: str | None = None,
    split_seed: int = 0,
    input_schema: SchemaLike | None = None,
    input_format: str | None = None,
    input_csv: CsvLike | None = None,
    bad_rows: PathLike = "fail",
    max_bad_rows: int | str = 100,
    follow: bool = False,
    flush_seconds: float = 0.02,
    data_format: Literal["examples", "columns"] = "examples",
    output_tables: SequenceNotStr[str] = (),
    output_schema: SchemaLike | None = None,
    output: PathLike | None = None,
    output_format: str | None = None,
    output_csv: CsvLike | None = None,
    overwrite: bool = False,
    partition_by: SequenceNotStr[str] | None = None,
    sort_by: SequenceNotStr[str] | None = None,
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | str | None = None,
    output_compression: str | None = None,
    append: bool = False,
    manifest: bool = False,
    num_workers: int | None = None,
    num_ps: int | None = None,
    parallelism: int | None = None,
    evaluator: bool = False,
    coordinator: bool = False,
    chief: bool | None = None,
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
    stall_timeout: float = 600.0,
    stall_action: Literal["fail", "warn"] = "fail",
    evaluator_timeout: float = 60.0,
    profile_input: int | None = None,
    max_restarts: int = 0,
    restart_delay: float = 1.0,
    tensorboard: PathLike | None = None,
    work_dir: PathLike | None = None,
    checkpoint_dir: PathLike | None = None,
    resume: bool = False,
    debug: bool = False,
    keep_run: bool | None = None,
    notify: NotifyLike | None = None,
    metrics_file: PathLike | None = None,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    mlflow: str | None = None,
    mlflow_experiment: str | None = None,
    report: PathLike | None = None,
    progress: Literal["auto", "bar", "plain", "none", "json"] = "auto",
) -> Plan:
    """Look at a job as `run`, `train` or `stream` would, and start nothing of it: `print(akrunner.plan("train.py", "iris.csv", num_workers=2))`.

    It takes what these take, and checks it in the same way. Files at URLs are fetched, and interpreters are asked what they have.

    Args:
        script: file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config
            by `akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its
            source goes to the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it
            uses. Or a job file (`job.toml`), which sets options, too.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON, Arrow/Feather, Avro, Excel, numpy's .npy
            and .npz, TFRecord; with `input_format`, images or texts); a pyarrow Table, RecordBatchReader or Dataset, a pandas or
            polars frame, a DuckDB relation, a dict of arrays, an iterable of rows; a cursor, a result of SQLAlchemy, or a
            connection or engine whose database runs `select`.
        job: a job file (`job.toml`) that says it all; what is given beside it wins over what it says.
        user_params: handed to the script as `task_config.user_params`; JSON values.
        user_files: files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`,
            "#sha256=..." checks what came.
        script_args: the words after the script's name in `sys.argv`, ["--epochs", "3"].
        verb: the function whose job is planned: run, train or stream.
        try_rows: also run the script itself, with one worker on this machine, over so many of the first rows for each worker of the
            job, and throw away what it writes, exports and saves. None: it is not run.
        model_out: directory, or file ending in .zip, to save the model to; None: it is `result.model` only, in a temporary
            directory that goes with it.
        save_latest_checkpoint: give the script a `latest_ckpt_dir` and bring back what it puts there.
        tables: "odps://project/tables/t/pt=v", tables the script may read itself, as scripts of PAI do: by `TableRecordDataset`,
            `TableReader`, ... (see the docs of PAI).
        project: project of the names in `tables` and `output_tables` that name none.
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        columns: the only columns that go to the tasks, in this order; None: all. The others are not read, either, where the format
            keeps columns apart (Parquet, Arrow files, tables by name), nor parsed in CSV. With `select`, which reads every column
            and computes, those of its result.
        defaults: column -> what stands there for a null, {"age": 0, "income": float("nan")}, of the column's type, before any task
            has the row; a script may give others theirs in `dataset()` and `batches()`. None: nulls stay nulls.
        decimals: what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all
            digits, "12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not
            fit; "refuse": an error, unless there are no digits behind the point.
        split: names of splits and their shares of the rows, {"train": 0.8, "test": 0.2} or "train=0.8,test=0.2", for
            `task_config.dataset(split="test")`; every row is in one of them, by a hash, whichever worker it goes to. None: rows are
            not split.
        split_by: the column whose value decides the split (it must go to the tasks): rows with the same value are in the same
            split, in every table. None: the row's number decides.
        split_seed: with another number, rows are split differently; the same number always gives the same splits.
        input_schema: columns to take and their types; needed for TFRecord.
        input_format: format of the source, if file names do not show it. Of a directory of many small files: "images", a row for
            each (path, label, bytes, height, width, format); "texts", a row for each (path, label, text); "lines", a row for each
            line (path, line, text), or several files of lines side by side, a column for each.
        input_csv: how CSV is written, "delimiter=;,null=NA" or {"delimiter": ";", "null": ["NA"]}; keys: delimiter, quote, header,
            null, decimal, comment, skip, encoding. None: the beginning of the first file tells the delimiter, and a warning says it
            if it is no comma.
        bad_rows: what becomes of rows of CSV and JSON lines, and of messages of Kafka and Redis, that do not parse, or do not fit
            `input_schema`: fail; skip: they are left out, counted, and the first shown; or a directory that rows are written to as
            JSON lines.
        max_bad_rows: with `bad_rows`: how many rows may be bad, 100, or which share of them, "1%" (judged from the 10,000th row on,
            and at the end); with more, the job fails.
        follow: the source is one JSON lines or CSV file that is still growing: wait for more at its end, for ever.
        flush_seconds: how many seconds a row waits at most for others to be sent with it, on its way in and out together.
        data_format: "examples": rows reach the script as `tf.train.Example`s; "columns": as columns of their own types, several
            times faster, for scripts that read them by `task_config.dataset()` or `task_config.batches()`.
        output_tables: tables the script may write, by `TableWriter`: what it writes replaces what was there when the job has
            succeeded.
        output_schema: columns the script writes, "id bigint, p double"; or {"id": "int64", "p": float}, `frame.dtypes`, a pyarrow
            schema. None: those of the first batch it writes; a stream, and rows of a Table, need it.
        output: file to write them to (.parquet .csv .jsonl .arrow .tfrecord .avro .xlsx .npy .npz; .csv.gz, .jsonl.zst:
            compressed); "dir/": a directory with a file of each task, parquet unless `output_format` says otherwise; None: they
            come back as `result.table`.
        output_format: format of `output`, if its name does not show it. `"json"`: an array of objects. `"csv.gz"`, `"jsonl.zst"`:
            compressed.
        output_csv: how `output` is written if it is CSV, "delimiter=tab,null=NA"; keys: delimiter, quote, header, null, decimal,
            encoding. None: with commas, and with tabs if the name ends in .tsv.
        overwrite: replace what is there already: in `run` and `predict` at `output`, in `train` at `model_out`.
        partition_by: columns whose values become names of directories, outermost first, as Hive, Spark, DuckDB and Arrow read them:
            `["day", "hour"]` writes `day=2026-11-26/hour=7/part-chief-0.parquet`; `output` is a directory. None: none.
        sort_by: columns by which all rows are sorted, `["user", "time desc"]`, nulls last; within their directories, with
            `partition_by`. The rows are kept on the disk until the last one is there (TMPDIR). None: they stay as tasks write them.
        max_rows_per_file: the most rows of a file in a directory; the next file has the next ones. None: no limit.
        max_bytes_per_file: the size that a file in a directory stays below, about, in bytes or as "128MB". None: no limit.
        output_compression: codec of Parquet: "zstd", "snappy", "gzip", "brotli", "lz4", "none"; of Arrow: "zstd", "lz4", "none";
            with a level as in "zstd:3". None: Parquet has snappy, Arrow none.
        append: put new files beside those that are in the directory `output`, all at once when the job has succeeded.
        manifest: write `_SUCCESS` into the directory `output`, last: JSON with its files, their rows and bytes, and the columns.
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
        engine: "local", "flink", one that a package adds, or an engine (`akrunner.engines.flink.FlinkEngine`).
        python_env: the environment with TensorFlow: an interpreter, a venv or conda directory, a packed environment (conda-pack;
            local or a URL), or tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this interpreter.
        requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
        keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
        env: environment variables for the tasks.
        gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
        cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are cores.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
        timeout: seconds the job may take, with all that is done before its tasks start: packages of `requirements=` are installed,
            files downloaded, tables opened. Installing is not cut short; what it brings is kept. None: as long as it takes.
        start_timeout: seconds a worker process may take to start.
        stall_timeout: how many seconds nothing may move (no rows, no `report()`, no processor time) before the job reports every
            task's stack, and which task waits for which; 0: never.
        stall_action: what happens then: "fail" ends the job, "warn" lets it go on.
        evaluator_timeout: seconds the evaluator gets for the last checkpoint when chief and workers are done.
        profile_input: steps, 1 to 10,000, at which TensorFlow's profiler looks for what the scripts' input waits for:
            `stats.inputs`, and in words `stats.input_verdict`; 20 is a good number. Not in a task of a cluster, where it can end
            the process. None, or False: it is not started; what clocks tell is measured anyway.
        max_restarts: how often everything is started again after a failure, with the rows from the start and the same
            `checkpoint_dir`; `task_config.attempt` counts. The source must be one that can be read again. A stream goes on behind
            what was remembered, or behind the last save of `task_config.checkpoint()`.
        restart_delay: seconds to wait before the job is started again for the first time (`max_restarts=`); before each further
            time twice as long, up to 300, and a tenth more or less. 0: it never waits.
        tensorboard: directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs; with
            `user_params`, for its tab HPARAMS.
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
        checkpoint_dir: directory handed to the script, the same for every task.
        resume: go on where an earlier job with the same `checkpoint_dir` was ended, if the script saves by
            `task_config.checkpoint()`; where there is no save yet, the job begins with the first row.
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
        report: the file of an HTML page about the job (why it failed, learning curves, timeline, memory, logs), written when it has
            ended, whether it has succeeded or not; needs akrunner's extra `report`. `akrunner.runs.report` makes it later, too.
        progress: how it is shown how far the job is: bar (drawn on the terminal, in a notebook in the output of the cell), plain (a
            line on stderr now and then), json (events on stderr), none. auto: what AKRUNNER_PROGRESS says; else nothing, but in a
            notebook, without `observer`, as bar.
    Returns:
        the plan; printed, it shows the interpreter, the script, every column with what the script gets of it, every task, and what is likely to
        go wrong.
    Raises:
        ConfigError: as the verb itself would, before it starts anything.
    """
    return plan_job(
        Arguments(
            script=given(script),
            source=source,
            user_params=user_params,
            user_files=user_files,
            script_args=script_args,
            save_latest_checkpoint=save_latest_checkpoint,
            tables=tables,
            project=project,
            select=select,
            columns=columns,
            defaults=defaults,
            decimals=decimals,
            split=split,
            split_by=split_by,
            split_seed=split_seed,
            input_schema=input_schema,
            input_format=input_format,
            input_csv=input_csv,
            bad_rows=bad_rows,
            max_bad_rows=max_bad_rows,
            flush_seconds=flush_seconds,
            data_format=data_format,
            output_tables=output_tables,
            output_schema=output_schema,
            output=output,
            output_format=output_format,
            output_csv=output_csv,
            overwrite=overwrite,
            partition_by=partition_by,
            sort_by=sort_by,
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=max_bytes_per_file,
            output_compression=output_compression,
            append=append,
            manifest=manifest,
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
            max_restarts=max_restarts,
            restart_delay=restart_delay,
            tensorboard=tensorboard,
            work_dir=work_dir,
            checkpoint_dir=checkpoint_dir,
            resume=resume,
            debug=debug,
            keep_run=keep_run,
            notify=notify,
            metrics_file=metrics_file,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            mlflow=mlflow,
            mlflow_experiment=mlflow_experiment,
            report=report,
            progress=progress,
        ),
        verb=verb,
        try_rows=try_rows,
        model_out=model_out,
        follow=follow,
    )
