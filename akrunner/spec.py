"""What a job is, as values: validated once, on construction, and never changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

from akrunner.errors import ConfigError
from akrunner.schema import Schema

CHIEF = "chief"
WORKER = "worker"
PS = "ps"

MODES = ("batch", "stream", "train")
KERAS = (None, "legacy")
DATA_FORMATS = ("examples", "columns")


@dataclass(frozen=True, order=True)
class TaskSpec:
    """One member of the cluster.

    Attributes:
        role: chief, worker or ps; index: within the role, from 0.
    """

    role: str
    index: int

    @property
    def name(self) -> str:
        """`worker:1`, as in log prefixes and errors."""
        return f"{self.role}:{self.index}"

    @property
    def key(self) -> str:
        """`worker-1`, as in file names."""
        return f"{self.role}-{self.index}"

    @property
    def gets_rows(self) -> bool:
        return self.role in (CHIEF, WORKER)


@dataclass(frozen=True)
class ClusterSpec:
    """How many of each role. Worker 0 is the chief: `num_workers` counts it.

    Raises: ConfigError: a count is not a whole number, or there is no worker.
    """

    num_workers: int = 1
    num_ps: int = 0

    def __post_init__(self) -> None:
        for name, least in (("num_workers", 1), ("num_ps", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(f"{name} must be a whole number, not {value!r}")
            if value < least:
                raise ConfigError(f"{name}={value}: there must be at least {least}")

    @property
    def tasks(self) -> Tuple[TaskSpec, ...]:
        """chief, workers, ps: the order results and reports come in."""
        workers = [TaskSpec(WORKER, i) for i in range(self.num_workers - 1)]
        return (TaskSpec(CHIEF, 0), *workers, *(TaskSpec(PS, i) for i in range(self.num_ps)))

    @property
    def fed(self) -> Tuple[TaskSpec, ...]:
        """The tasks that get rows."""
        return tuple(task for task in self.tasks if task.gets_rows)


@dataclass(frozen=True)
class ScriptSpec:
    """The script and its files, as they will lie in every task's work dir.

    Attributes:
        real: the file the user named.
        path: where it will be in the work dir, with "/".
        files: (file, path in the work dir) of plain files; the script is among them unless it comes out of an archive.
        archives: (archive, directory in the work dir, "" for itself) to unpack.
        module: a module of the bundle to run in place of a script, "" for a script.
    """

    real: str
    path: str
    files: Tuple[Tuple[str, str], ...] = ()
    archives: Tuple[Tuple[str, str], ...] = ()
    module: str = ""


@dataclass(frozen=True)
class JobSpec:
    """One run.

    Attributes:
        script: the script and its files.
        schema: of the input table.
        python: path of the interpreter the tasks run under.
        cluster: roles.
        output_schema: of the rows the script writes, None when it writes none.
        user_params: handed to the script; JSON values.
        mode: batch; stream: rows come once, as they arrive; train: batch, and the chief leaves a SavedModel.
        data_format: how rows travel: examples (`tf.train.Example`), or columns (each of its own type, and faster).
        flush_seconds: stream: the longest a row is held back on its way in or out.
        keras: None, or "legacy" for Keras 2 through tf-keras.
        env: environment variables set for the tasks.
        tensorboard: directory the tasks' reports are written to as event files, None for none.
        overlay: directory of packages the tasks may import that their interpreter does not have, "" for none.
        timeout: seconds the whole job may take; None: no limit.
        start_timeout: seconds a worker process may take to say "opened".
        exit_grace: seconds a task gets to end by itself once it was told to, or once it has finished.
        work_dir: where to keep everything the job makes; None: a temporary directory, removed afterwards.
        keep: keep the work dir.
        checkpoint_dir: directory every task reaches, handed to the script.
        model_dir: train: an existing directory of the host's that the chief's SavedModel is moved into, as `model`, and its
            latest checkpoint, if asked for, as `checkpoint`.
        save_latest_checkpoint: train: whether the script is given a `latest_ckpt_dir` and must fill it.
        chunk_rows: the most rows in one frame.
        chunk_bytes: about the most bytes in one frame.
    Raises: ConfigError: a value is out of its range; the message names the argument.
    """

    script: ScriptSpec
    schema: Schema
    python: str
    cluster: ClusterSpec = ClusterSpec()
    output_schema: Optional[Schema] = None
    user_params: Mapping[str, Any] = field(default_factory=dict)
    mode: str = "batch"
    data_format: str = "examples"
    keras: Optional[str] = None
    env: Mapping[str, str] = field(default_factory=dict)
    overlay: str = ""
    tensorboard: Optional[str] = None
    timeout: Optional[float] = None
    start_timeout: float = 60.0
    exit_grace: float = 2.0
    work_dir: Optional[str] = None
    keep: bool = False
    checkpoint_dir: Optional[str] = None
    model_dir: Optional[str] = None
    save_latest_checkpoint: bool = False
    flush_seconds: float = 0.02
    chunk_rows: int = 8192
    chunk_bytes: int = 4 << 20

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"mode={self.mode!r}: known modes are {', '.join(MODES)}")
        if self.data_format not in DATA_FORMATS:
            raise ConfigError(f"data_format={self.data_format!r}: known formats are {', '.join(DATA_FORMATS)}")
        if self.mode == "train" and self.model_dir is None:
            raise ConfigError("mode='train' needs model_dir=")
        if self.keras not in KERAS:
            raise ConfigError(f"keras={self.keras!r}: give 'legacy' for Keras 2 (tf-keras), or leave it out")
        if not isinstance(self.user_params, Mapping):
            raise ConfigError(f"user_params must be a dict, not {type(self.user_params).__name__}")
        for name in ("timeout", "start_timeout", "exit_grace", "flush_seconds"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and value > 0):
                raise ConfigError(f"{name}={value!r}: give seconds, more than 0")
        try:
            json.dumps(self.user_params)
        except (TypeError, ValueError) as e:
            raise ConfigError(f"user_params must hold JSON values only (text, numbers, lists, dicts): {e}") from None
        for key, value in self.env.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise ConfigError(f"env: {key!r}={value!r} must be text")

    @property
    def task_env(self) -> Dict[str, str]:
        """What is set in the tasks' environment, before TensorFlow is imported."""
        legacy = {"TF_USE_LEGACY_KERAS": "1"} if self.keras == "legacy" else {}
        return {**legacy, **self.env}

    def context(
        self, task: TaskSpec, tf_config: Mapping[str, Any], task_dir: str, work_dir: str, checkpoint_dir: Optional[str]
    ) -> Dict[str, Any]:
        """What a worker process is told, as JSON."""
        return {
            "mode": self.mode,
            "task": task.name,
            "tf_config": tf_config,
            "num_workers": self.cluster.num_workers,
            "task_dir": task_dir,
            "work_dir": work_dir,
            "data_format": self.data_format,
            "dataset_file": f"{task_dir}/dataset." + ("columns" if self.data_format == "columns" else "tfrecord"),
            "script": {"path": self.script.path, "real": self.script.real, "module": self.script.module},
            "file_names": {path: real for real, path in self.script.files},
            "user_params": dict(self.user_params),
            "schema": self.schema.describe(),
            "output_schema": self.output_schema.describe() if self.output_schema is not None else None,
            "checkpoint_dir": checkpoint_dir,
            "saved_model_dir": f"{task_dir}/saved_model" if self.mode == "train" else None,
            # out, it shares the delay with the way in
            "flush_seconds": self.flush_seconds / 4,
            "latest_ckpt_dir": f"{task_dir}/latest_ckpt" if self.save_latest_checkpoint else None,
            "env": self.task_env,
            "overlay": self.overlay,
        }
