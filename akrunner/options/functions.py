"""The public functions that take options."""

from __future__ import annotations

from akrunner.options.declared import Verb

_PREDICTING = ("PredictArguments", "akrunner/serving/verbs.py")

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
        "PredictArguments",
        "akrunner/serving/local.py",
        of_class=True,
    ),
)
