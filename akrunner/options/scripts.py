"""Options about the script, or the model, that a job runs."""

from __future__ import annotations

from akrunner.options.declared import SCRIPTS, Option
from akrunner.options.headings import MODEL, MODELS, SCRIPT

OPTIONS = (
    Option(
        "script",
        "ScriptLike",
        SCRIPT,
        'file or URL that defines `main(task_config)`, or a program (`if __name__ == "__main__":`) that has its task config by '
        "`akrunner.worker.current()`; may also lie in one of `user_files`. Or a function that takes the task config: its "
        "source goes to the tasks, with the imports, functions, classes, numbers and texts of its module, or notebook, that "
        "it uses.",
        also=dict.fromkeys((*SCRIPTS, "plan"), "Or a job file (`job.toml`), which sets options, too."),
        verbs=(*SCRIPTS, "plan"),
        required=(*SCRIPTS, "plan"),
        inner="ScriptLike | ScriptSpec",
        help="File that defines main(task_config), or a program; what stands behind -- is its command line. Or a job file "
        "(job.toml), which sets options, too.",
        often=True,
        stands=SCRIPTS,
    ),
    Option(
        "user_params",
        "Mapping[str, Any] | None",
        SCRIPT,
        "handed to the script as `task_config.user_params`; JSON values.",
        private=True,
        help="KEY=VALUE for user_params; VALUE is JSON, else text. Repeatable. @FILE for VALUE: what is in the file; @@ for "
        "an @ itself.",
        flags=(
            "--param",
            "-p",
        ),
        often=True,
        many="KEY=VALUE",
    ),
    Option(
        "user_files",
        "SequenceNotStr[PathLike]",
        SCRIPT,
        'files, directories and archives to lay beside the script, local or URLs; "a.zip#models" unpacks into `models`, '
        '"#sha256=..." '
        "checks what came.",
        (),
        help="File, directory or archive to lay beside the script. Repeatable.",
        flags=(
            "--user-file",
            "-f",
        ),
        often=True,
        many="FILE",
    ),
    Option(
        "script_args",
        "SequenceNotStr[str]",
        SCRIPT,
        'the words after the script\'s name in `sys.argv`, ["--epochs", "3"].',
        (),
        private=True,
    ),
    Option(
        "verb",
        'Literal["run", "train", "stream"]',
        SCRIPT,
        "the function whose job is planned: run, train or stream.",
        "run",
        verbs=("plan",),
        apart=True,
    ),
    Option(
        "try_rows",
        "int | None",
        SCRIPT,
        "also run the script itself, with one worker on this machine, over so many of the first rows for each worker of the "
        "job, and throw away what it writes, exports and saves. None: it is not run.",
        verbs=("plan",),
        apart=True,
        least=1,
    ),
    Option(
        "model",
        "ModelLike",
        MODEL,
        "a `Model`, a SavedModel's directory or zip, local or a URL, or a model table.",
        verbs=MODELS,
        required=(*MODELS, "plan_predict"),
        help="SavedModel: its directory, or a zip of it. Or a job file (job.toml), which sets options, too.",
        often=True,
        stands=("predict",),
    ),
    Option(
        "selected_cols",
        "SequenceNotStr[str] | None",
        MODEL,
        "columns that feed the model, in the order of `input_signature_defs`; None: those named as the inputs, or the only "
        "column for the only input. For a model of one input several columns are laid side by side: [rows, columns].",
        verbs=MODELS,
        help="Columns that feed the model, separated by commas. Default: those with the names of its inputs, or, if table and "
        "model have one each, that one.",
        often=True,
    ),
    Option(
        "input_signature_defs",
        "SequenceNotStr[str] | None",
        MODEL,
        "the signature's inputs, in the order of the columns; None: named as the columns.",
        verbs=MODELS,
        help="The model's inputs, in the order of --selected-cols.",
    ),
    Option(
        "output_signature_defs",
        "SequenceNotStr[str] | None",
        MODEL,
        "the signature's outputs, in the order of `output_schema`; None: named as its columns.",
        verbs=MODELS,
        help="The model's outputs, in the order of --output-schema.",
    ),
    Option(
        "signature_def_key",
        "str",
        MODEL,
        "which signature.",
        "serving_default",
        verbs=MODELS,
        help="Name of the model's signature to call.",
    ),
    Option(
        "graph_def_tag",
        "str",
        MODEL,
        "which graph (tags, separated by commas).",
        "serve",
        verbs=MODELS,
        help="Tag of the model's graph to run.",
    ),
    Option(
        "reserved_cols",
        "SequenceNotStr[str] | None",
        MODEL,
        "columns of the table to keep; None: all. An output named as one of them takes its place.",
        verbs=MODELS,
        instead={"LocalPredictor": "columns of the row to give back, none by default; None: all."},
        defaults={"LocalPredictor": ()},
        help='Columns of the table to keep; "" for none. Default: all.',
        often=True,
    ),
    Option(
        "batch_size",
        "int",
        MODEL,
        "rows that the model gets at a time, at most.",
        1024,
        verbs=MODELS,
        help="Rows that the model gets at a time.",
        often=True,
        least=1,
    ),
    Option(
        "watch",
        "WatchLike | None",
        MODEL,
        "where new models come while the stream runs: a model that is replaced (a directory, a zip, an .ak file), a directory "
        "that gets more of them, or a model stream of Alink's. The newest is loaded beside the one in use, and predicts the "
        "rows that come after that. One that does not fit or cannot be loaded is not taken, with a warning.",
        verbs=("predict_stream",),
        apart=True,
        help="Model, or directory of models, to look at for newer ones while a stream is predicted: the newest takes over.",
    ),
    Option(
        "watch_seconds",
        "float",
        MODEL,
        "seconds between two looks at `watch`.",
        10.0,
        verbs=("predict_stream",),
        apart=True,
        help="Seconds between two looks at --watch.",
        needs=dict.fromkeys(("predict", "predict_stream"), ("watch",)),
        above=0,
    ),
    Option(
        "model_out",
        "PathLike | None",
        MODEL,
        "directory, or file ending in .zip, to save the model to; None: it is `result.model` only, in a temporary directory "
        "that goes with it.",
        verbs=("train",),
        apart=True,
        help="Directory or .zip to save the trained model to.",
        often=True,
    ),
    Option(
        "save_latest_checkpoint",
        "bool",
        MODEL,
        "give the script a `latest_ckpt_dir` and bring back what it puts there.",
        False,
        verbs=("train",),
        help="Give the script a latest_ckpt_dir; what it puts there is stored with the model.",
    ),
    Option(
        "remove_checkpoint_before_training",
        "bool",
        MODEL,
        "empty `checkpoint_dir` of checkpoints of earlier runs first.",
        False,
        verbs=("train",),
        apart=True,
        flags=("--remove-checkpoints",),
        needs={"train": ("checkpoint_dir",)},
        help="First remove the checkpoints of earlier runs from --checkpoint-dir.",
    ),
)
