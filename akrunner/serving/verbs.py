"""`akrunner.predict` and `predict_stream`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from akrunner.engines.base import Engine, Observer
from akrunner.jobfile import from_file, given
from akrunner.options.told import told
from akrunner.prepare.arguments import CsvLike, NotifyLike, PathLike, SchemaLike
from akrunner.running.result import Result
from akrunner.sequences import SequenceNotStr
from akrunner.serving.arguments import ModelLike, PredictArguments
from akrunner.serving.job import run_predict, run_predict_stream
from akrunner.serving.planned import PredictPlan, plan_prediction
from akrunner.serving.watching import WatchLike
from akrunner.stream_job import StreamJob

__all__ = ["plan_predict", "predict", "predict_stream"]


@from_file("predict")
@told("predict")
def predict(
    model: ModelLike | None = None,
    source: Any = None,
    *,
    job: PathLike | None = None,
    selected_cols: SequenceNotStr[str] | None = None,
    input_signature_defs: SequenceNotStr[str] | None = None,
    output_signature_defs: SequenceNotStr[str] | None = None,
    signature_def_key: str = "serving_default",
    graph_def_tag: str = "serve",
    reserved_cols: SequenceNotStr[str] | None = None,
    batch_size: int = 1024,
    select: str | None = None,
    defaults: Mapping[str, Any] | None = None,
    decimals: Literal["refuse", "float64", "text", "int64"] = "refuse",
    input_schema: SchemaLike | None = None,
    input_format: str | None = None,
    input_csv: CsvLike | None = None,
    bad_rows: PathLike = "fail",
    max_bad_rows: int | str = 100,
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
    work_dir: PathLike | None = None,
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
    """Run a SavedModel over a table. The model runs in worker processes; the order of the rows is kept.

    Args:
        model: a `Model`, a SavedModel's directory or zip, local or a URL, or a model table.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON, Arrow/Feather, Avro, Excel, numpy's .npy
            and .npz, TFRecord; with `input_format`, images or texts); a pyarrow Table, RecordBatchReader or Dataset, a pandas or
            polars frame, a DuckDB relation, a dict of arrays, an iterable of rows; a cursor, a result of SQLAlchemy, or a
            connection or engine whose database runs `select`. A PyFlink Table's rows stay where Flink has them, and come in no
            order of their own.
        job: a job file (`job.toml`) that says it all; what is given beside it wins over what it says.
        selected_cols: columns that feed the model, in the order of `input_signature_defs`; None: those named as the inputs, or the
            only column for the only input. For a model of one input several columns are laid side by side: [rows, columns].
        input_signature_defs: the signature's inputs, in the order of the columns; None: named as the columns.
        output_signature_defs: the signature's outputs, in the order of `output_schema`; None: named as its columns.
        signature_def_key: which signature.
        graph_def_tag: which graph (tags, separated by commas).
        reserved_cols: columns of the table to keep; None: all. An output named as one of them takes its place.
        batch_size: rows that the model gets at a time, at most.
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        defaults: column -> what stands there for a null, {"age": 0}, of the column's type, for the model and in the rows that come
            out. None: nulls stay nulls.
        decimals: what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all
            digits, "12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not
            fit; "refuse": an error, unless there are no digits behind the point. In the rows that come out, too.
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
        output_schema: columns the outputs become, "p double, embedding FLOAT_TENSOR"; an output of any rank is laid out row-major.
            None: every output, of its own type.
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
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
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
        ConfigError: an argument is wrong, or the table does not fit the model's signature; nothing was started.
        DataError: a value does not fit what the model takes.
        JobError: the job failed.
    """
    return run_predict(
        PredictArguments(
            model=given(model),
            source=source,
            selected_cols=selected_cols,
            input_signature_defs=input_signature_defs,
            output_signature_defs=output_signature_defs,
            signature_def_key=signature_def_key,
            graph_def_tag=graph_def_tag,
            reserved_cols=reserved_cols,
            batch_size=batch_size,
            select=select,
            defaults=defaults,
            decimals=decimals,
            input_schema=input_schema,
            input_format=input_format,
            input_csv=input_csv,
            bad_rows=bad_rows,
            max_bad_rows=max_bad_rows,
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


@from_file("predict")
@told("plan_predict")
def plan_predict(
    model: ModelLike | None = None,
    source: Any = None,
    *,
    job: PathLike | None = None,
    selected_cols: SequenceNotStr[str] | None = None,
    input_signature_defs: SequenceNotStr[str] | None = None,
    output_signature_defs: SequenceNotStr[str] | None = None,
    signature_def_key: str = "serving_default",
    graph_def_tag: str = "serve",
    reserved_cols: SequenceNotStr[str] | None = None,
    batch_size: int = 1024,
    select: str | None = None,
    defaults: Mapping[str, Any] | None = None,
    decimals: Literal["refuse", "float64", "text", "int64"] = "refuse",
    input_schema: SchemaLike | None = None,
    input_format: str | None = None,
    input_csv: CsvLike | None = None,
    bad_rows: PathLike = "fail",
    max_bad_rows: int | str = 100,
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
    work_dir: PathLike | None = None,
    keep_run: bool | None = None,
    notify: NotifyLike | None = None,
    metrics_file: PathLike | None = None,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    mlflow: str | None = None,
    mlflow_experiment: str | None = None,
    report: PathLike | None = None,
    progress: Literal["auto", "bar", "plain", "none", "json"] = "auto",
) -> PredictPlan:
    """Look at a prediction as `predict` would, and start nothing of it: `print(akrunner.plan_predict("model.zip", "iris.csv"))`.

    It takes what that takes, and checks it in the same way. Files at URLs are fetched, and the interpreter is asked what it has.

    Args:
        model: a `Model`, a SavedModel's directory or zip, local or a URL, or a model table.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON, Arrow/Feather, Avro, Excel, numpy's .npy
            and .npz, TFRecord; with `input_format`, images or texts); a pyarrow Table, RecordBatchReader or Dataset, a pandas or
            polars frame, a DuckDB relation, a dict of arrays, an iterable of rows; a cursor, a result of SQLAlchemy, or a
            connection or engine whose database runs `select`. A PyFlink Table's rows stay where Flink has them, and come in no
            order of their own.
        job: a job file (`job.toml`) that says it all; what is given beside it wins over what it says.
        selected_cols: columns that feed the model, in the order of `input_signature_defs`; None: those named as the inputs, or the
            only column for the only input. For a model of one input several columns are laid side by side: [rows, columns].
        input_signature_defs: the signature's inputs, in the order of the columns; None: named as the columns.
        output_signature_defs: the signature's outputs, in the order of `output_schema`; None: named as its columns.
        signature_def_key: which signature.
        graph_def_tag: which graph (tags, separated by commas).
        reserved_cols: columns of the table to keep; None: all. An output named as one of them takes its place.
        batch_size: rows that the model gets at a time, at most.
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        defaults: column -> what stands there for a null, {"age": 0}, of the column's type, for the model and in the rows that come
            out. None: nulls stay nulls.
        decimals: what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all
            digits, "12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not
            fit; "refuse": an error, unless there are no digits behind the point. In the rows that come out, too.
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
        output_schema: columns the outputs become, "p double, embedding FLOAT_TENSOR"; an output of any rank is laid out row-major.
            None: every output, of its own type.
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
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
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
        the plan; printed, it shows which columns feed which inputs of the model, what becomes of its outputs, and every task.
    Raises:
        ConfigError: as `predict` would, before it starts anything.
    """
    return plan_prediction(
        PredictArguments(
            model=given(model),
            source=source,
            selected_cols=selected_cols,
            input_signature_defs=input_signature_defs,
            output_signature_defs=output_signature_defs,
            signature_def_key=signature_def_key,
            graph_def_tag=graph_def_tag,
            reserved_cols=reserved_cols,
            batch_size=batch_size,
            select=select,
            defaults=defaults,
            decimals=decimals,
            input_schema=input_schema,
            input_format=input_format,
            input_csv=input_csv,
            bad_rows=bad_rows,
            max_bad_rows=max_bad_rows,
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
    )


@from_file("predict_stream")
@told("predict_stream")
def predict_stream(
    model: ModelLike | None = None,
    source: Any = None,
    *,
    job: PathLike | None = None,
    selected_cols: SequenceNotStr[str] | None = None,
    input_signature_defs: SequenceNotStr[str] | None = None,
    output_signature_defs: SequenceNotStr[str] | None = None,
    signature_def_key: str = "serving_default",
    graph_def_tag: str = "serve",
    reserved_cols: SequenceNotStr[str] | None = None,
    batch_size: int = 1024,
    watch: WatchLike | None = None,
    watch_seconds: float = 10.0,
    select: str | None = None,
    defaults: Mapping[str, Any] | None = None,
    decimals: Literal["refuse", "float64", "text", "int64"] = "refuse",
    input_schema: SchemaLike | None = None,
    input_format: str | None = None,
    input_csv: CsvLike | None = None,
    bad_rows: PathLike = "fail",
    max_bad_rows: int | str = 100,
    follow: bool = False,
    flush_seconds: float = 0.02,
    output_schema: SchemaLike | None = None,
    num_workers: int | None = None,
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
    work_dir: PathLike | None = None,
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
    """Run a SavedModel over rows as they arrive, possibly for ever. Returns at once.

    Args:
        model: a `Model`, a SavedModel's directory or zip, local or a URL, or a model table.
        source: the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON, Arrow/Feather, Avro, Excel, numpy's .npy
            and .npz, TFRecord; with `input_format`, images or texts); a pyarrow Table, RecordBatchReader or Dataset, a pandas or
            polars frame, a DuckDB relation, a dict of arrays, an iterable of rows; a cursor, a result of SQLAlchemy, or a
            connection or engine whose database runs `select`. Of an iterable, each row is sent on as it comes. "-" reads lines of
            stdin: JSON, or CSV with `input_format="csv"`. "kafka://broker/topic?group=g", "redis://host/stream?group=g" and
            "files:///directory?group=g" go on where the group was.
        job: a job file (`job.toml`) that says it all; what is given beside it wins over what it says.
        selected_cols: columns that feed the model, in the order of `input_signature_defs`; None: those named as the inputs, or the
            only column for the only input. For a model of one input several columns are laid side by side: [rows, columns].
        input_signature_defs: the signature's inputs, in the order of the columns; None: named as the columns.
        output_signature_defs: the signature's outputs, in the order of `output_schema`; None: named as its columns.
        signature_def_key: which signature.
        graph_def_tag: which graph (tags, separated by commas).
        reserved_cols: columns of the table to keep; None: all. An output named as one of them takes its place.
        batch_size: rows that the model gets at a time, at most.
        watch: where new models come while the stream runs: a model that is replaced (a directory, a zip, an .ak file), a directory
            that gets more of them, or a model stream of Alink's. The newest is loaded beside the one in use, and predicts the rows
            that come after that. One that does not fit or cannot be loaded is not taken, with a warning.
        watch_seconds: seconds between two looks at `watch`.
        select: SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.
        defaults: column -> what stands there for a null, {"age": 0}, of the column's type, for the model and in the rows that come
            out. None: nulls stay nulls.
        decimals: what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all
            digits, "12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not
            fit; "refuse": an error, unless there are no digits behind the point. In the rows that come out, too.
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
        output_schema: columns the outputs become, "p double, embedding FLOAT_TENSOR"; an output of any rank is laid out row-major.
            None: every output, of its own type.
        num_workers: processes that share the rows, worker 0 the chief; None: 1.
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
        work_dir: new directory to keep everything in; None: a temporary one, which is removed afterwards.
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
        the running job; iterate it for RecordBatches of kept columns and outputs, in the order the rows came.
    Raises:
        ConfigError: an argument is wrong, or the rows do not fit the model's signature; nothing was started.
    """
    return run_predict_stream(
        PredictArguments(
            model=given(model),
            source=source,
            selected_cols=selected_cols,
            input_signature_defs=input_signature_defs,
            output_signature_defs=output_signature_defs,
            signature_def_key=signature_def_key,
            graph_def_tag=graph_def_tag,
            reserved_cols=reserved_cols,
            batch_size=batch_size,
            select=select,
            defaults=defaults,
            decimals=decimals,
            input_schema=input_schema,
            input_format=input_format,
            input_csv=input_csv,
            bad_rows=bad_rows,
            max_bad_rows=max_bad_rows,
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
        watch=watch,
        watch_seconds=watch_seconds,
        follow=follow,
        observer=observer,
    )
