"""Every option of a job, declared once. `scripts/gen-options` writes from this table what repeats it: `run`, `train` and `stream`
(`akrunner/verbs.py`), `Arguments` (`akrunner/prepare.py`) and `docs/options.md`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Tuple

EVERY = ("run", "train", "stream")


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        name: its keyword.
        type: its annotation, as it is written in a signature.
        group: the heading it stands under in the reference.
        text: what it does: values, units, what None means.
        default: what it is when nobody gives it.
        verbs: the functions that take it.
        required: those of them that do not go without.
        also: what is true in one verb only, after the text.
        positional: may be given without its name.
        private: is left out of the `repr` of a job's arguments, as it may hold secrets.
        apart: reaches the verb's function beside `Arguments`, since only that verb knows what to do with it.
        inner: its annotation in `Arguments`, where akrunner itself may give more than a person, or the type is not known there.
    """

    name: str
    type: str
    group: str
    text: str
    default: Any = None
    verbs: Tuple[str, ...] = EVERY
    required: Tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    positional: bool = False
    private: bool = False
    apart: bool = False
    inner: str = ""


@dataclass(frozen=True)
class Verb:
    """A public function that takes options.

    Attributes:
        name: its name.
        returns: its return annotation.
        does: the function of `akrunner.api` that it calls.
        text: its docstring above `Args:`.
        closing: its docstring below them.
    """

    name: str
    returns: str
    does: str
    text: str
    closing: str


VERBS = (
    Verb(
        "run",
        "Result",
        "run_batch",
        "Run a script over a table: every worker gets its share of the rows, and `main(task_config)` is called in each.",
        """\
Returns: the result.
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
Returns: the result; `result.model` is the model, `result.table` what the scripts wrote.
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
Returns: the running job: iterate it for output RecordBatches; errors surface there; `close()` or `with` ends it.
Raises: ConfigError: an argument is wrong; nothing was started.""",
    ),
)

_JOB, _INPUT, _OUTPUT, _MODEL = "Script", "Input", "Output", "Model"
_CLUSTER, _PYTHON, _RESOURCES = "Cluster", "Interpreter", "Resources"
_TROUBLE, _PLACES = "When something goes wrong", "Directories and progress"
_BATCH = ("run", "train")

OPTIONS = (
    Option(
        "script",
        "ScriptLike",
        _JOB,
        'file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config by '
        "`akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its source goes to "
        "the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it uses.",
        required=EVERY,
        positional=True,
        inner="Union[ScriptLike, ScriptSpec]",
    ),
    Option(
        "source",
        "Any",
        _INPUT,
        "the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON lines, Arrow/Feather, TFRecord); a pyarrow Table, "
        "RecordBatchReader or Dataset, a pandas or polars frame, a DuckDB relation, a dict of arrays, an iterable of rows.",
        required=("train", "stream"),
        also={
            "run": "None: there is none, where `tables` or `output_tables` names what the script asks for.",
            "stream": 'Of an iterable, each row is sent on as it comes. "-" reads lines of stdin: JSON, or CSV with `input_format="csv"`.',
        },
        positional=True,
    ),
    Option(
        "model_out",
        "Optional[PathLike]",
        _MODEL,
        "directory, or file ending in .zip, to save the model to; None: it is `result.model` only, in a temporary directory that goes "
        "with it.",
        verbs=("train",),
        apart=True,
    ),
    Option(
        "save_latest_checkpoint",
        "bool",
        _MODEL,
        "give the script a `latest_ckpt_dir` and bring back what it puts there.",
        False,
        verbs=("train",),
    ),
    Option(
        "remove_checkpoint_before_training",
        "bool",
        _MODEL,
        "empty `checkpoint_dir` of checkpoints of earlier runs first.",
        False,
        verbs=("train",),
        apart=True,
    ),
    Option(
        "tables",
        "Sequence[str]",
        _INPUT,
        '"odps://project/tables/t/pt=v", tables the script may read itself, as scripts of PAI do: by `TableRecordDataset`, '
        "`TableReader`, ... (see the docs of PAI).",
        (),
        verbs=("run",),
    ),
    Option(
        "output_tables",
        "Sequence[str]",
        _OUTPUT,
        "tables the script may write, by `TableWriter`: what it writes replaces what was there when the job has succeeded.",
        (),
        verbs=("run",),
    ),
    Option(
        "project",
        "Optional[str]",
        _INPUT,
        "project of the names in `tables` and `output_tables` that are without one.",
        verbs=("run",),
    ),
    Option(
        "user_params",
        "Optional[Mapping[str, Any]]",
        _JOB,
        "handed to the script as `task_config.user_params`; JSON values.",
        private=True,
    ),
    Option(
        "user_files",
        "Sequence[PathLike]",
        _JOB,
        'files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`, "#sha256=..." '
        "checks what came.",
        (),
    ),
    Option(
        "script_args",
        "Sequence[str]",
        _JOB,
        'what stands behind the script\'s name in `sys.argv`, ["--epochs", "3"].',
        (),
        private=True,
    ),
    Option(
        "output_schema",
        "Optional[SchemaLike]",
        _OUTPUT,
        'columns the script writes, "id bigint, p double"; or {"id": "int64", "p": float}, `frame.dtypes`, a pyarrow schema. None: it '
        "writes none.",
    ),
    Option(
        "output",
        "Optional[PathLike]",
        _OUTPUT,
        'file to write them to (.parquet .csv .jsonl .arrow .tfrecord); "dir/": a directory with a file of each task, parquet unless '
        "`output_format` says otherwise; None: they come back as `result.table`.",
        verbs=("run",),
    ),
    Option("output_format", "Optional[str]", _OUTPUT, "of `output`, where its name does not tell.", verbs=("run",)),
    Option(
        "overwrite",
        "bool",
        _OUTPUT,
        "replace what is there already: in `run` at `output`, in `train` at `model_out`.",
        False,
        verbs=_BATCH,
    ),
    Option("num_workers", "Optional[int]", _CLUSTER, "processes that share the rows, worker 0 the chief; None: 1."),
    Option("num_ps", "Optional[int]", _CLUSTER, "parameter servers; None: 0."),
    Option(
        "parallelism",
        "Optional[int]",
        _CLUSTER,
        "workers and parameter servers together, to be divided where `num_workers` or `num_ps` is not given: a quarter parameter "
        "servers, as Alink does, or the rest.",
    ),
    Option(
        "evaluator",
        "bool",
        _CLUSTER,
        'one more task, of role "evaluator", for scripts that evaluate what the others train (Estimators).',
        False,
    ),
    Option(
        "coordinator",
        "bool",
        _CLUSTER,
        "the chief only coordinates (`ClusterCoordinator`): it comes on top of `num_workers` and gets no rows.",
        False,
        verbs=_BATCH,
    ),
    Option(
        "chief",
        "Optional[bool]",
        _CLUSTER,
        'False: there are workers only, worker 0 first, for scripts that count `cluster["worker"]` or take worker 0 for the chief. None: '
        "a chief, but one worker alone runs as in plain Python, without TF_CONFIG; True: with one also then.",
    ),
    Option(
        "python_env",
        "Optional[PathLike]",
        _PYTHON,
        "what has TensorFlow: an interpreter, a venv or conda directory, a packed one (conda-pack; local or a URL), or tf1.15, tf2.3, "
        "tf2, which `akrunner env` finds and creates; None: this one.",
    ),
    Option(
        "select",
        "Optional[str]",
        _INPUT,
        "SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.",
    ),
    Option("input_schema", "Optional[SchemaLike]", _INPUT, "columns to take and their types; needed for TFRecord."),
    Option("input_format", "Optional[str]", _INPUT, "format of the source, where names do not tell."),
    Option(
        "follow",
        "bool",
        _INPUT,
        "the source is one JSON lines or CSV file that is still growing: wait for more at its end, for ever.",
        False,
        verbs=("stream",),
        apart=True,
    ),
    Option(
        "flush_seconds",
        "float",
        _INPUT,
        "the longest, in seconds, a row waits for others to be sent with, on its way in and out together.",
        0.02,
        verbs=("stream",),
    ),
    Option(
        "requirements",
        "Optional[PathLike]",
        _PYTHON,
        "requirements.txt to install beside `python_env`, once; what it has already wins.",
    ),
    Option(
        "keras",
        "Optional[str]",
        _PYTHON,
        '"legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.',
    ),
    Option(
        "data_format",
        "str",
        _INPUT,
        '"examples": rows reach the script as `tf.train.Example`s; "columns": as columns of their own types, several times faster, for '
        "scripts that read them by `task_config.dataset()` or `task_config.batches()`.",
        "examples",
    ),
    Option(
        "tensorboard",
        "Optional[PathLike]",
        _PLACES,
        "directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs.",
    ),
    Option("env", "Optional[Mapping[str, str]]", _PYTHON, "environment variables for the tasks.", private=True),
    Option("timeout", "Optional[float]", _TROUBLE, "seconds the job may take; None: as long as it takes."),
    Option("start_timeout", "float", _TROUBLE, "seconds a worker process may take to start.", 60.0),
    Option(
        "stall_timeout",
        "float",
        _TROUBLE,
        "seconds nothing may move (no rows, no `report()`, no processor time) until every task's stack and who waits for whom is told; "
        "0: never.",
        600.0,
    ),
    Option("stall_action", "str", _TROUBLE, 'what follows then: "fail", or "warn" and go on.', "fail"),
    Option(
        "evaluator_timeout",
        "float",
        _TROUBLE,
        "seconds the evaluator gets for the last checkpoint when chief and workers are done.",
        60.0,
    ),
    Option(
        "profile_input",
        "Optional[int]",
        _TROUBLE,
        "steps at which TensorFlow's profiler looks for what the scripts' input waits for: `stats.inputs`, and in words "
        "`akrunner.engines.inputs.verdict(stats)`; 20 is a good number. Not in a task of a cluster, where it can end the process. None: "
        "it is not started; what clocks tell is measured anyway.",
    ),
    Option(
        "max_restarts",
        "int",
        _TROUBLE,
        "how often everything is started again after a failure, with the rows from the start and the same `checkpoint_dir`; "
        "`task_config.attempt` counts. The source must be one that can be read again.",
        0,
        verbs=_BATCH,
    ),
    Option(
        "gpus_per_worker",
        "Optional[int]",
        _RESOURCES,
        "graphics cards of its own for each worker, none for the others; None: all see all.",
    ),
    Option(
        "cpus_per_worker",
        "Optional[int]",
        _RESOURCES,
        "cores of its own for each worker; None: all share all, with as many threads in total as there are cores.",
    ),
    Option(
        "intra_op_parallelism",
        "Optional[int]",
        _RESOURCES,
        "threads TensorFlow uses inside one operation; None: its share of the cores.",
    ),
    Option("bind_host", "str", _CLUSTER, "address of this machine TensorFlow's servers get.", "127.0.0.1"),
    Option("advertised_host", "Optional[str]", _CLUSTER, "the name others reach `bind_host` by."),
    Option(
        "work_dir",
        "Optional[PathLike]",
        _PLACES,
        "new directory to keep everything in; None: a temporary one, gone afterwards.",
    ),
    Option("checkpoint_dir", "Optional[PathLike]", _PLACES, "directory handed to the script, the same for every task."),
    Option("debug", "bool", _PLACES, "keep the work dir, for `akrunner replay`.", False),
    Option(
        "engine",
        "Union[str, Engine]",
        _CLUSTER,
        '"local", "flink", or an engine (`akrunner.engines.flink.FlinkEngine`).',
        "local",
        inner="Any",
    ),
    Option("observer", "Optional[Observer]", _PLACES, "is told the progress.", apart=True),
)


def of_verb(verb: str) -> Tuple[Option, ...]:
    """The options a verb takes, in their order."""
    return tuple(one for one in OPTIONS if verb in one.verbs)
