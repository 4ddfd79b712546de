"""Every option of a job, declared once."""

from __future__ import annotations

from akrunner.options.declared import SCRIPTS, Option

_JOB, _INPUT, _OUTPUT, _MODEL = "Script", "Input", "Output", "Model"
_CLUSTER, _PYTHON, _RESOURCES = "Cluster", "Interpreter", "Resources"
_TROUBLE, _PLACES = "When something goes wrong", "Directories and progress"
_BATCH = ("run", "train")
_PREDICTIONS = ("predict", "predict_stream")
_MODELS = (*_PREDICTIONS, "LocalPredictor")

#: texts of several verbs
_ARRIVING = 'Of an iterable, each row is sent on as it comes. "-" reads lines of stdin: JSON, or CSV with `input_format="csv"`.'
_OUTPUTS = (
    'columns the outputs become, "p double, embedding FLOAT_TENSOR"; an output of any rank is laid out row-major. None: every output, '
    "of its own type."
)

OPTIONS = (
    Option(
        "script",
        "ScriptLike",
        _JOB,
        'file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config by '
        "`akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its source goes to "
        "the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that it uses.",
        required=SCRIPTS,
        positional=True,
        inner="Union[ScriptLike, ScriptSpec]",
    ),
    Option(
        "model",
        "ModelLike",
        _MODEL,
        "a `Model`, a SavedModel's directory or zip, local or a URL, or a model table.",
        verbs=_MODELS,
        required=_MODELS,
        positional=True,
    ),
    Option(
        "source",
        "Any",
        _INPUT,
        "the table: a path, many, a glob, a directory, a URL (CSV, Parquet, JSON lines, Arrow/Feather, TFRecord); a pyarrow Table, "
        "RecordBatchReader or Dataset, a pandas or polars frame, a DuckDB relation, a dict of arrays, an iterable of rows.",
        required=("train", "stream", *_PREDICTIONS),
        also={
            "run": "None: there is none, where `tables` or `output_tables` names what the script asks for.",
            "stream": _ARRIVING,
            "predict": "A PyFlink Table's rows stay where Flink has them, and come in no order of their own.",
            "predict_stream": _ARRIVING,
        },
        positional=True,
        verbs=(*SCRIPTS, *_PREDICTIONS),
    ),
    Option(
        "selected_cols",
        "Optional[Sequence[str]]",
        _MODEL,
        "columns that feed the model, in the order of `input_signature_defs`; None: those named as the inputs. For a model of one input "
        "several columns are laid side by side: [rows, columns].",
        verbs=_MODELS,
    ),
    Option(
        "input_signature_defs",
        "Optional[Sequence[str]]",
        _MODEL,
        "the signature's inputs, in the order of the columns; None: named as the columns.",
        verbs=_MODELS,
    ),
    Option(
        "output_signature_defs",
        "Optional[Sequence[str]]",
        _MODEL,
        "the signature's outputs, in the order of `output_schema`; None: named as its columns.",
        verbs=_MODELS,
    ),
    Option("signature_def_key", "str", _MODEL, "which signature.", "serving_default", verbs=_MODELS),
    Option("graph_def_tag", "str", _MODEL, "which graph (tags, separated by commas).", "serve", verbs=_MODELS),
    Option(
        "reserved_cols",
        "Optional[Sequence[str]]",
        _MODEL,
        "columns of the table to keep; None: all. An output named as one of them takes its place.",
        verbs=_MODELS,
        instead={"LocalPredictor": "columns of the row to give back, none by default; None: all."},
        defaults={"LocalPredictor": ()},
    ),
    Option("batch_size", "int", _MODEL, "rows the model is given at a time, at most.", 1024, verbs=_MODELS),
    Option(
        "watch",
        "Optional[WatchLike]",
        _MODEL,
        "where new models come while the stream runs: a model that is replaced (a directory, a zip, an .ak file), a directory that gets "
        "more of them, or a model stream of Alink's. The newest is loaded beside the one in use, and predicts the rows that come after "
        "that. One that does not fit or cannot be loaded is not taken, with a warning.",
        verbs=("predict_stream",),
        apart=True,
    ),
    Option(
        "watch_seconds", "float", _MODEL, "seconds between two looks at `watch`.", 10.0, verbs=("predict_stream",), apart=True
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
        verbs=(*SCRIPTS, *_MODELS),
        instead={one: _OUTPUTS for one in _MODELS},
    ),
    Option(
        "output",
        "Optional[PathLike]",
        _OUTPUT,
        'file to write them to (.parquet .csv .jsonl .arrow .tfrecord); "dir/": a directory with a file of each task, parquet unless '
        "`output_format` says otherwise; None: they come back as `result.table`.",
        verbs=("run", "predict"),
    ),
    Option(
        "output_format",
        "Optional[str]",
        _OUTPUT,
        "of `output`, where its name does not tell.",
        verbs=("run", "predict"),
    ),
    Option(
        "overwrite",
        "bool",
        _OUTPUT,
        "replace what is there already: in `run` and `predict` at `output`, in `train` at `model_out`.",
        False,
        verbs=(*_BATCH, "predict"),
    ),
    Option(
        "num_workers",
        "Optional[int]",
        _CLUSTER,
        "processes that share the rows, worker 0 the chief; None: 1.",
        verbs=(*SCRIPTS, *_PREDICTIONS),
    ),
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
        verbs=(*SCRIPTS, *_MODELS),
    ),
    Option(
        "select",
        "Optional[str]",
        _INPUT,
        "SQL over the table, which it calls `input`; or only what stands between SELECT and FROM.",
        verbs=(*SCRIPTS, *_PREDICTIONS),
    ),
    Option(
        "input_schema",
        "Optional[SchemaLike]",
        _INPUT,
        "columns to take and their types; needed for TFRecord.",
        verbs=(*SCRIPTS, *_MODELS),
        instead={
            "LocalPredictor": 'columns of the rows, "x double, image FLOAT_TENSOR"; None: one column for every input of the signature, named '
            "as it."
        },
    ),
    Option(
        "input_format",
        "Optional[str]",
        _INPUT,
        "format of the source, where names do not tell.",
        verbs=(*SCRIPTS, *_PREDICTIONS),
    ),
    Option(
        "follow",
        "bool",
        _INPUT,
        "the source is one JSON lines or CSV file that is still growing: wait for more at its end, for ever.",
        False,
        verbs=("stream", "predict_stream"),
        apart=True,
    ),
    Option(
        "flush_seconds",
        "float",
        _INPUT,
        "the longest, in seconds, a row waits for others to be sent with, on its way in and out together.",
        0.02,
        verbs=("stream", "predict_stream"),
    ),
    Option(
        "requirements",
        "Optional[PathLike]",
        _PYTHON,
        "requirements.txt to install beside `python_env`, once; what it has already wins.",
        verbs=(*SCRIPTS, *_MODELS),
    ),
    Option(
        "keras",
        "Optional[str]",
        _PYTHON,
        '"legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.',
        verbs=(*SCRIPTS, *_MODELS),
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
    Option(
        "env",
        "Optional[Mapping[str, str]]",
        _PYTHON,
        "environment variables for the tasks.",
        private=True,
        verbs=(*SCRIPTS, *_MODELS),
    ),
    Option(
        "timeout",
        "Optional[float]",
        _TROUBLE,
        "seconds the job may take; None: as long as it takes.",
        verbs=(*SCRIPTS, *_PREDICTIONS),
    ),
    Option(
        "start_timeout",
        "float",
        _TROUBLE,
        "seconds a worker process may take to start.",
        60.0,
        verbs=(*SCRIPTS, *_MODELS),
    ),
    Option(
        "stall_timeout",
        "float",
        _TROUBLE,
        "seconds nothing may move (no rows, no `report()`, no processor time) until every task's stack and who waits for whom is told; "
        "0: never.",
        600.0,
        verbs=(*SCRIPTS, *_PREDICTIONS),
    ),
    Option(
        "stall_action",
        "str",
        _TROUBLE,
        'what follows then: "fail", or "warn" and go on.',
        "fail",
        verbs=(*SCRIPTS, *_PREDICTIONS),
    ),
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
        verbs=(*SCRIPTS, *_MODELS),
    ),
    Option(
        "cpus_per_worker",
        "Optional[int]",
        _RESOURCES,
        "cores of its own for each worker; None: all share all, with as many threads in total as there are cores.",
        verbs=(*SCRIPTS, *_MODELS),
    ),
    Option(
        "intra_op_parallelism",
        "Optional[int]",
        _RESOURCES,
        "threads TensorFlow uses inside one operation; None: its share of the cores.",
        verbs=(*SCRIPTS, *_MODELS),
    ),
    Option("bind_host", "str", _CLUSTER, "address of this machine TensorFlow's servers get.", "127.0.0.1"),
    Option("advertised_host", "Optional[str]", _CLUSTER, "the name others reach `bind_host` by."),
    Option(
        "work_dir",
        "Optional[PathLike]",
        _PLACES,
        "new directory to keep everything in; None: a temporary one, gone afterwards.",
        verbs=(*SCRIPTS, *_PREDICTIONS),
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
        verbs=(*SCRIPTS, *_MODELS),
    ),
    Option(
        "observer",
        "Optional[Observer]",
        _PLACES,
        "is told the progress.",
        apart=True,
        verbs=(*SCRIPTS, *_PREDICTIONS),
    ),
)
