"""The public functions that take options, and the commands of `akrunner`."""

from __future__ import annotations

from collections.abc import Mapping

from akrunner.options.declared import Command, Verb

_MODEL = ("model", "source")
_PREDICTING = (_MODEL, "PredictArguments", "akrunner/serving/verbs.py")

_FLINK = "akrunner/flink.py"
_ATTACHED = """\
Returns:
    the job, with the `table` of what the scripts write.
Raises:
    ConfigError: an argument is wrong."""

#: what a PyFlink program does by its own means, as its jobs do not end here
_NOT_IN_PROGRAMS = (
    "keep_run",
    "report",
    "progress",
    "notify",
    "metrics_file",
    "metrics_port",
    "metrics_host",
    "mlflow",
    "mlflow_experiment",
)

VERBS = (
    Verb(
        "run",
        "Result",
        "run_batch",
        "Run a script over a table: every worker gets its share of the rows, and `main(task_config)` is called in each.",
        """\
Returns:
    the result.
Raises:
    ConfigError: an argument is wrong; nothing was started.
    DataError: a value of the table cannot cross.
    JobError: the job failed; the message holds the script's traceback.""",
    ),
    Verb(
        "train",
        "Result",
        "run_train",
        "Run a script that trains a model: as `run`, and what the chief exported to `task_config.saved_model_dir` comes back.",
        """\
Returns:
    the result; `result.model` is the model, `result.table` what the scripts wrote.
Raises:
    ConfigError: an argument is wrong; nothing was started.
    DataError: a value of the table cannot cross.
    ScriptFailedError: the script failed, or the chief left no SavedModel that TensorFlow can read.
    JobError: the job failed otherwise.""",
    ),
    Verb(
        "stream",
        "StreamJob",
        "run_stream",
        """\
Run a script over rows as they arrive, possibly for ever. Returns at once.

The script gets a `StreamTaskConfig`: `dataset_fn()` is a dataset of its rows, each to be read once. With several workers, chunks
of rows go to them in turn. A slow script holds the source back.""",
        """\
Returns:
    the running job; iterate it for output RecordBatches; errors surface there; `close()` or `with` ends it.
Raises:
    ConfigError: an argument is wrong; nothing was started.""",
    ),
    Verb(
        "plan",
        "Plan",
        "plan_job",
        """\
Look at a job as `run`, `train` or `stream` would, and start nothing of it: `print(akrunner.plan("train.py", "iris.csv", num_workers=2))`.

It takes what these take, and checks it in the same way. Files at URLs are fetched, and interpreters are asked what they have.""",
        """\
Returns:
    the plan; printed, it shows the interpreter, the script, every column with what the script gets of it, every task, and what is likely to
    go wrong.
Raises:
    ConfigError: as the verb itself would, before it starts anything.""",
    ),
    Verb(
        "predict",
        "Result",
        "run_predict",
        "Run a SavedModel over a table. The model runs in worker processes; the order of the rows is kept.",
        """\
Returns:
    the result.
Raises:
    ConfigError: an argument is wrong, or the table does not fit the model's signature; nothing was started.
    DataError: a value does not fit what the model takes.
    JobError: the job failed.""",
        *_PREDICTING,
    ),
    Verb(
        "plan_predict",
        "PredictPlan",
        "plan_prediction",
        """\
Look at a prediction as `predict` would, and start nothing of it: `print(akrunner.plan_predict("model.zip", "iris.csv"))`.

It takes what that takes, and checks it in the same way. Files at URLs are fetched, and the interpreter is asked what it has.""",
        """\
Returns:
    the plan; printed, it shows which columns feed which inputs of the model, what becomes of its outputs, and every task.
Raises:
    ConfigError: as `predict` would, before it starts anything.""",
        *_PREDICTING,
    ),
    Verb(
        "predict_stream",
        "StreamJob",
        "run_predict_stream",
        "Run a SavedModel over rows as they arrive, possibly for ever. Returns at once.",
        """\
Returns:
    the running job; iterate it for RecordBatches of kept columns and outputs, in the order the rows came.
Raises:
    ConfigError: an argument is wrong, or the rows do not fit the model's signature; nothing was started.""",
        *_PREDICTING,
    ),
    Verb(
        "LocalPredictor",
        "None",
        "self._start",
        "Start the worker process and load the model; returns when both are done.",
        """\
Raises:
    ConfigError: an argument is wrong.
    JobError: the worker did not start, or cannot load the model.""",
        ("model",),
        "PredictArguments",
        "akrunner/serving/local.py",
        of_class=True,
    ),
    Verb(
        "flink.run",
        "Attached",
        "scripted",
        """\
Run a script over a bounded Table or DataStream of PyFlink.

A worker's whole output waits in its TaskManager until its script has returned: for much of it, name a file (`akrunner.run` with
`output=`).""",
        _ATTACHED,
        home=_FLINK,
        takes="run",
        # after a failure Flink starts a program's job again from a checkpoint, and a job over bounded rows has none
        leaves=("max_restarts", "restart_delay", *_NOT_IN_PROGRAMS),
    ),
    Verb(
        "flink.stream",
        "Attached",
        "streamed",
        """\
Run a script over a Table or DataStream of PyFlink that may never end, row by row as they come.

With `execution.checkpointing.interval` set, no row is lost: a checkpoint waits until the script has asked for a row behind all it
has been given, and Flink starts from the last one when a machine fails. A row may come twice then.""",
        _ATTACHED,
        home=_FLINK,
        takes="stream",
        # Flink's own checkpoints say where it goes on
        leaves=("resume", "restart_delay", *_NOT_IN_PROGRAMS),
        apart=("max_restarts",),
    ),
    Verb(
        "flink.predict",
        "Attached",
        "predicted",
        "Run a SavedModel over a Table or DataStream of PyFlink that may never end; its other columns, or those of "
        "`reserved_cols`, are kept beside.",
        _ATTACHED.replace("the scripts write", "the model gives"),
        _MODEL,
        "PredictArguments",
        _FLINK,
        takes="predict_stream",
        # for another model the user starts the program anew, and a Table itself knows where it ends
        leaves=("watch", "watch_seconds", *_NOT_IN_PROGRAMS),
        apart=("max_restarts",),
    ),
    Verb(
        "pai",
        "Result | list[Done]",
        "run_pai",
        """\
Run a script of PAI-TensorFlow by its command: `PAI -name tensorflow1150 -Dscript=... -Dtables=odps://...;`.

Tables are local ones (`akrunner tables`), or MaxCompute's where there are credentials; `oss://` is a directory, or the bucket. What is given here wins over
what the command says.""",
        """\
Returns:
    the result, its `output` the tables that were written; a list, one for each statement, where there are others or a file.
Raises:
    ConfigError: as `akrunner.run`. Of a file, the statements before the one that failed are done.
    JobError: as `akrunner.run`; a shell script ended with another exit code than 0.""",
        ("command",),
        "PaiArguments",
        "akrunner/pai_mode/verbs.py",
    ),
    Verb(
        "pack",
        "Packed",
        "run_pack",
        """\
Pack files, texts or a table into shards of records: shuffled as a whole, split once, and read as `--input OUTPUT/train`.

A run that was killed goes on when it is called again; when it is done, a later call packs only what is new.""",
        """\
Returns:
    what there is now, and what was left out.
Raises:
    ConfigError: an argument is wrong; nothing was written.
    ReadError: a file is broken.
    WriteError: a disk is full, or something else removes files while they are packed.
    JobError: there is too little memory, or too few threads or open files; the next run goes on.""",
        ("source", "output"),
        "PackArguments",
        "akrunner/packing/verbs.py",
    ),
    Verb(
        "warm",
        "Warm",
        "kept_warm",
        """\
Keep spare worker processes that have imported TensorFlow, so that jobs of this process begin at once. Returns at once.

>>> with akrunner.warm(workers=2):
...     akrunner.run("train.py", "iris.csv")

A job takes warm workers that are as its own worker processes would be; each is used once. They are forked from one process that has imported
TensorFlow, so another one takes its place at once. A job that needs others (another interpreter, variable, limit) starts cold,
`result.stats.starts` says why, and the next warm workers are made as that job wanted them. Nothing is different for the script.""",
        """\
Returns:
    an object with `wait()`, `status()` and `close()`, and a context manager.
Raises:
    ConfigError: an argument is wrong; nothing was started.""",
        ("python_env", "workers"),
        "WarmArguments",
        "akrunner/warming.py",
    ),
    Verb(
        "doctor",
        "Checkup",
        "looked_over",
        "Check this machine, or explain what became of a job. The checks run at the same time, each with a time limit.",
        """\
Returns:
    lines that say "ok", "look here" or "broken", and what to do; `print` shows them. What cannot be checked has a line, too.
Raises:
    ConfigError: an argument is wrong; `work_dir` is not the directory of a job, or does not exist.""",
        ("work_dir",),
        "DoctorArguments",
        "akrunner/checkup/__init__.py",
    ),
)

COMMANDS: Mapping[str, Command] = {
    one.name: one
    for one in (
        Command("run", ("run",), is_long=True),
        Command("train", ("train",), is_long=True),
        Command("stream", ("stream",), is_long=True),
        Command("predict", ("predict", "predict_stream"), is_long=True),
        Command("pai", ("pai",), is_long=True),
        Command("pack", ("pack",), is_long=True),
        Command("warm start", ("warm",)),
        Command("doctor", ("doctor",)),
        Command("replay", ()),
        Command("init", ()),
    )
}
