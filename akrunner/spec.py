"""What a job is, as values: validated once, on construction, and never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from akrunner.checks import (
    MOST_TASKS,
    check_arguments,
    check_choice,
    check_count,
    check_environment,
    check_flag,
    check_host,
    check_params,
    check_path,
    check_seconds,
    shown,
)
from akrunner.errors import ConfigError
from akrunner.schema import Schema
from akrunner.wire import asks_about
from akrunner.wire.context import Context, TFConfig

CHIEF = "chief"
WORKER = "worker"
PS = "ps"
EVALUATOR = "evaluator"

MODES = ("batch", "stream", "train")
KERAS = (None, "legacy")
DATA_FORMATS = ("examples", "columns")
STALL_ACTIONS = ("warn", "fail")
#: more cores, cards or threads than any machine has
_MOST_THREADS = 16384
#: of a look at the input: it is kept in memory
_MOST_STEPS = 10_000


@dataclass(frozen=True, order=True)
class TaskSpec:
    """One member of the cluster.

    Attributes:
        role: chief, worker, ps or evaluator; index: within the role, from 0.
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


@dataclass(frozen=True)
class ClusterSpec:
    """How many of each role.

    Attributes:
        num_workers: processes that share the rows. Worker 0 of them is the chief, unless there is none.
        num_ps: parameter servers.
        evaluator: one more task, that evaluates what the others train.
        coordinator: the chief only coordinates (`tf.distribute.coordinator.ClusterCoordinator`): it gets no rows, is no worker,
            and comes on top of `num_workers`; workers and parameter servers serve it until it is done.
        chief: whether there is one; without it all are workers, and worker 0 is the first. None: as True, but a worker alone is told of
            no cluster.
        flags: the tasks are told of each other by flags as well, as PAI tells them: `--job_name`, `--task_index`, `--ps_hosts`, `--worker_hosts`.
        evaluator_told: every task is told of the evaluator, as PAI tells them; else only the evaluator is.
    Raises: ConfigError: a count is not a whole number, or there is no worker.
    """

    num_workers: int = 1
    num_ps: int = 0
    evaluator: bool = False
    coordinator: bool = False
    chief: bool | None = None
    flags: bool = False
    evaluator_told: bool = False

    def __post_init__(self) -> None:
        for name, least in (("num_workers", 1), ("num_ps", 0)):
            _put(self, name, check_count(name, getattr(self, name), least, MOST_TASKS))
        for name in ("evaluator", "coordinator"):
            check_flag(name, getattr(self, name))
        if self.chief is not None:
            check_flag("chief", self.chief)
        if self.coordinator and self.chief is False:
            raise ConfigError(
                "coordinator= is for a chief that coordinates, and chief=False (--no-chief) says that there is none"
            )

    @classmethod
    def of(
        cls,
        num_workers: int | None = None,
        num_ps: int | None = None,
        parallelism: int | None = None,
        evaluator: bool = False,
        coordinator: bool = False,
        chief: bool | None = None,
    ) -> ClusterSpec:
        """A cluster of `parallelism` workers and parameter servers, divided as Alink does where a count is not given.

        Neither given: a quarter parameter servers, at least one; but one worker alone when `parallelism` is 1. One given: the
        rest. Without `parallelism`: one worker, no parameter server.
        Raises: ConfigError: the counts do not fit.
        """
        if parallelism is not None:
            parallelism = check_count("parallelism", parallelism, 1, MOST_TASKS)
            num_workers = check_count("num_workers", num_workers, 0, MOST_TASKS) if num_workers is not None else None
            num_ps = check_count("num_ps", num_ps, 0, MOST_TASKS) if num_ps is not None else None
            if num_workers is None and num_ps is None:
                num_ps = max(parallelism // 4, 1) if parallelism > 1 else 0
            if num_workers is None:
                num_workers = parallelism - (num_ps or 0)
                if num_workers < 1:
                    raise ConfigError(f"num_ps={num_ps} leaves no worker of parallelism={parallelism}")
            elif num_ps is None:
                num_ps = parallelism - num_workers
                if num_ps < 0:
                    raise ConfigError(f"num_workers={num_workers} is more than parallelism={parallelism}")
            elif num_workers + num_ps > parallelism:
                raise ConfigError(f"num_workers={num_workers} and num_ps={num_ps} are more than parallelism={parallelism}")
        return cls(1 if num_workers is None else num_workers, 0 if num_ps is None else num_ps, evaluator, coordinator, chief)

    @property
    def tasks(self) -> tuple[TaskSpec, ...]:
        """chief, workers, ps, evaluator: the order results and reports come in."""
        chiefs = [TaskSpec(CHIEF, 0)] if self.chief is not False else []
        workers = [TaskSpec(WORKER, i) for i in range(self.num_workers - int(bool(chiefs) and not self.coordinator))]
        servers = [TaskSpec(PS, i) for i in range(self.num_ps)]
        return (*chiefs, *workers, *servers, *([TaskSpec(EVALUATOR, 0)] if self.evaluator else []))

    @property
    def alone(self) -> bool:
        """Whether the one task there is is to run as in plain Python, without TF_CONFIG."""
        return self.chief is None and len(self.tasks) == 1

    @property
    def fed(self) -> tuple[TaskSpec, ...]:
        """The tasks that get rows."""
        return tuple(t for t in self.tasks if t.role == WORKER or (t.role == CHIEF and not self.coordinator))

    @property
    def awaited(self) -> tuple[TaskSpec, ...]:
        """The tasks whose end is the job's, unless they only serve: chief and workers."""
        return tuple(t for t in self.tasks if t.role in (CHIEF, WORKER))


@dataclass(frozen=True)
class ResourceSpec:
    """What of the machine each task may use.

    Attributes:
        gpus_per_worker: graphics cards of its own for chief and workers, none for the others; None: left as they are.
        cpus_per_worker: cores of its own; None: all of them, and where several tasks compute, as many threads as they have in each.
        intra_op_parallelism: threads TensorFlow uses inside one operation; None: as many as the task has cores.
    Raises: ConfigError: not a whole number.
    """

    gpus_per_worker: int | None = None
    cpus_per_worker: int | None = None
    intra_op_parallelism: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("gpus_per_worker", 0), ("cpus_per_worker", 1), ("intra_op_parallelism", 1)):
            value = getattr(self, name)
            if value is not None:
                _put(self, name, check_count(name, value, least, _MOST_THREADS))


@dataclass(frozen=True)
class SupervisionSpec:
    """How long is waited for what, and what happens then. Seconds.

    Attributes:
        timeout: the whole job may take; None: no limit.
        start_timeout: a worker process may take to say "opened".
        exit_grace: a task gets to end by itself once it was told to, or once it has finished.
        evaluator_timeout: the evaluator gets for the last checkpoint once chief and workers are done.
        stall_timeout: nothing may move: no rows, no report, no processor time; 0: never mind.
        stall_action: then: "fail", or "warn" and go on.
        max_restarts: how often every task is started again after a failure.
    Raises: ConfigError: a value is out of its range; the message names the argument.
    """

    timeout: float | None = None
    start_timeout: float = 60.0
    exit_grace: float = 2.0
    evaluator_timeout: float = 60.0
    stall_timeout: float = 600.0
    stall_action: str = "fail"
    max_restarts: int = 0

    def __post_init__(self) -> None:
        _put(self, "timeout", check_seconds("timeout", self.timeout, none=True))
        for name in ("start_timeout", "exit_grace"):
            _put(self, name, check_seconds(name, getattr(self, name)))
        for name in ("evaluator_timeout", "stall_timeout"):
            _put(self, name, check_seconds(name, getattr(self, name), zero=True))
        check_choice("stall_action", self.stall_action, STALL_ACTIONS)
        _put(self, "max_restarts", check_count("max_restarts", self.max_restarts, 0))


def _put(spec: Any, name: str, value: Any) -> None:
    """Of a spec while it is made: the value as it was checked."""
    object.__setattr__(spec, name, value)


@dataclass(frozen=True)
class SplitSpec:
    """How a table's rows are split, by hashes.

    Attributes: names: of the splits; fractions: of the rows in each, together 1; by: the column whose value says it, None: the row's number; seed: another
        one splits otherwise.
    """

    names: tuple[str, ...]
    fractions: tuple[float, ...]
    by: str | None = None
    seed: int = 0


@dataclass(frozen=True)
class ScriptSpec:
    """The script and its files, as they will lie in every task's work dir.

    Attributes:
        real: the file the user named.
        path: where it will be in the work dir, with "/".
        files: (file, path in the work dir) of plain files; the script is among them unless it comes out of an archive.
        archives: (archive, directory in the work dir, "" for itself, bytes it may unpack to, 0 for the default) to unpack.
        module: a module of the bundle to run in place of a script, "" for a script.
        program: the script is run as `__main__`, as a shell does; else its `main(task_config)` is called, or
        context_entry: the function that takes the context of Deep Learning on Flink, "" where there is none.
        pai: a program as PAI-TensorFlow runs it: flags it does not define do no harm, and its directory is on the module path.
        shown: the file whose name and lines tracebacks have, "" for `real`.
    """

    real: str
    path: str
    files: tuple[tuple[str, str], ...] = ()
    archives: tuple[tuple[str, str, int], ...] = ()
    module: str = ""
    program: bool = False
    context_entry: str = ""
    pai: bool = False
    shown: str = ""

    @property
    def name(self) -> str:
        """The file that the user knows as the script."""
        return self.shown or self.real


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do beyond running a job: it says so, and nobody asks by its name.

    Attributes:
        here: its tasks are processes of this machine, which have the cores, files and interpreters that this process sees. False: what is not
            here may be there.
        unpacks: packed environments (`python_env=`) are unpacked where its tasks are.
        pyflink: it takes tables of PyFlink, whose rows do not come through this process.
        watches: a stream of predictions takes new models while it runs (`watch=`).
        detaches: its jobs may outlive this process (`--detach`).
        parallelism: workers and parameter servers together, of a job that says nothing of either; None: one worker.
    """

    here: bool = True
    unpacks: bool = False
    pyflink: bool = False
    watches: bool = False
    detaches: bool = False
    parallelism: int | None = None


@dataclass(frozen=True)
class TablesSpec:
    """Tables the script asks for itself, by name.

    Attributes:
        inputs: those it may read, outputs: those it may write, each as the user spelt it, in that order.
        store: what keeps them (`akrunner.tables.store.TableStore`).
        project: of names without one.
        overwrite: what is written replaces a table's rows; else it comes behind them.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    store: Any = field(repr=False)
    project: str | None = None
    overwrite: bool = True

    def describe(self) -> dict[str, Any]:
        """What the worker is told."""
        return {"inputs": list(self.inputs), "outputs": list(self.outputs)}


@dataclass(frozen=True)
class JobSpec:
    """One run.

    Attributes:
        script: the script and its files.
        script_args: what stands behind the script's name in `sys.argv`.
        schema: of the input table.
        python: path of the interpreter the tasks run under.
        cluster: roles.
        output_schema: of the rows the script writes, None when it writes none.
        output_inferred: without an output schema, whether the first batch written decides which columns there are.
        user_params: handed to the script; JSON values.
        mode: batch; stream: rows come once, as they arrive; train: batch, and the chief leaves a SavedModel.
        data_format: how rows travel: examples (`tf.train.Example`), or columns (each of its own type, and faster).
        flush_seconds: stream: the longest a row is held back on its way in or out.
        keras: None, or "legacy" for Keras 2 through tf-keras.
        env: environment variables set for the tasks.
        tensorboard: directory the tasks' reports are written to as event files, None for none.
        overlay: directory of packages the tasks may import that their interpreter does not have, "" for none.
        model: SavedModel directory the tasks read, "" for none.
        supervision: how long is waited for what.
        resources: what of the machine each task may use.
        bind_host: address TensorFlow's servers are given; advertised_host: the name other tasks know it by, None for the same.
        work_dir: where to keep everything the job makes; None: a temporary directory, removed afterwards.
        keep: keep the work dir.
        checkpoint_dir: directory every task reaches, handed to the script.
        model_dir: train: an existing directory of the host's that the chief's SavedModel is moved into, as `model`, and its
            latest checkpoint, if asked for, as `checkpoint`.
        save_latest_checkpoint: train: whether the script is given a `latest_ckpt_dir` and must fill it.
        tables: that the script reads and writes itself, by name; None: none.
        notes: what is to be told of the job from its start, as a warning.
        split: how the rows are split, None: they are not.
        profile_input: steps that each script's input is looked at closely, None: only what costs nothing is measured.
        chunk_rows: the most rows in one frame.
        chunk_bytes: about the most bytes in one frame.
    Raises: ConfigError: a value is out of its range; the message names the argument.
    """

    script: ScriptSpec
    schema: Schema
    python: str
    cluster: ClusterSpec = ClusterSpec()
    output_schema: Schema | None = None
    output_inferred: bool = False
    user_params: Mapping[str, Any] = field(default_factory=dict, repr=False)
    script_args: Sequence[str] = field(default=(), repr=False)
    mode: str = "batch"
    data_format: str = "examples"
    keras: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    overlay: str = ""
    model: str = ""
    tensorboard: str | None = None
    supervision: SupervisionSpec = SupervisionSpec()
    resources: ResourceSpec = ResourceSpec()
    bind_host: str = "127.0.0.1"
    advertised_host: str | None = None
    work_dir: str | None = None
    keep: bool = False
    checkpoint_dir: str | None = None
    model_dir: str | None = None
    save_latest_checkpoint: bool = False
    flush_seconds: float = 0.02
    tables: TablesSpec | None = None
    notes: tuple[str, ...] = ()
    split: SplitSpec | None = None
    profile_input: int | None = None
    chunk_rows: int = 8192
    chunk_bytes: int = 4 << 20

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, MODES, "known modes are")
        check_choice("data_format", self.data_format, DATA_FORMATS, "known formats are")
        if self.mode == "train" and self.model_dir is None:
            raise ConfigError("mode='train' needs model_dir=")
        if not (self.keras is None or isinstance(self.keras, str)) or self.keras not in KERAS:
            raise ConfigError(f"keras={shown(self.keras)}: give 'legacy' for Keras 2 (tf-keras), or leave it out")
        _put(self, "user_params", check_params("user_params", self.user_params))
        _put(self, "script_args", check_arguments("script_args", self.script_args))
        _put(self, "env", check_environment("env", self.env))
        _put(self, "flush_seconds", check_seconds("flush_seconds", self.flush_seconds))
        for name in ("work_dir", "checkpoint_dir", "tensorboard"):
            if getattr(self, name) is not None:
                _put(self, name, check_path(name, getattr(self, name)))
        if self.profile_input is False:
            _put(self, "profile_input", None)
        if self.profile_input is not None:
            _put(self, "profile_input", check_count("profile_input", self.profile_input, 1, _MOST_STEPS))
        check_host("bind_host", self.bind_host)
        if self.advertised_host is not None:
            check_host("advertised_host", self.advertised_host, empty=False)
        if self.mode == "stream" and self.supervision.max_restarts:
            raise ConfigError("max_restarts: a stream's rows come once, so it cannot be started again; leave it out")
        if self.mode == "stream" and self.split is not None:
            raise ConfigError("split: a stream's rows come once and one after the other; its script takes them apart itself")
        if self.mode == "stream" and self.cluster.coordinator:
            raise ConfigError(
                "coordinator: workers read their rows from files, which a stream has not; use mode batch or train"
            )
        if self.bind_host in ("0.0.0.0", "::", "") and self.advertised_host is None:
            raise ConfigError(f"bind_host={self.bind_host!r} is every address: name the one others reach with advertised_host=")

    @property
    def asks_about(self) -> bool:
        """Whether the script, if it is a program, is asked for its help."""
        return asks_about(self.script_args)

    @property
    def staying(self) -> tuple[TaskSpec, ...]:
        """The tasks whose processes stay when their script has ended well, until the scripts of all of them have: what stays with them is
        TensorFlow's server, which the sessions of the others may need. Chief and workers of a cluster in PAI mode, as on PAI."""
        return self.cluster.awaited if self.script.pai and not self.cluster.alone else ()

    def can_restart(self, replayable: bool) -> bool:
        """Whether the job can be started again after a failure. Args: replayable: its rows can be read again from the start."""
        return self.mode != "stream" and replayable

    def check_restarts(self, replayable: bool, source: str) -> None:
        """Args: source: its rows' name. Raises: ConfigError: the job is to be started again after a failure, and cannot be."""
        if self.supervision.max_restarts and not self.can_restart(replayable):
            raise ConfigError(
                f"max_restarts: {source} can be read only once, so the job could not be started again; give a file, or a table in memory"
            )

    @property
    def task_env(self) -> dict[str, str]:
        """What is set in the tasks' environment, before TensorFlow is imported."""
        legacy = {"TF_USE_LEGACY_KERAS": "1"} if self.keras == "legacy" else {}
        return {**legacy, **self.env}

    def context(
        self,
        task: TaskSpec,
        tf_config: TFConfig,
        task_dir: str,
        work_dir: str,
        checkpoint_dir: str | None,
        attempt: int = 0,
        cpus: Sequence[int] = (),
    ) -> Context:
        """What a worker process is told, as JSON. Args: cpus: the cores it may use, none for all."""
        return {
            "mode": self.mode,
            "task": task.name,
            "tf_config": tf_config,
            # then it is not told in TF_CONFIG
            "alone": self.cluster.alone,
            # after its last word, until it is told to stop
            "stays": task in self.staying,
            # what this one exports is the model
            "first": self.cluster.tasks[0].name,
            "cluster_flags": self.cluster.flags,
            "num_workers": self.cluster.num_workers,
            "attempt": attempt,
            "cpus": list(cpus),
            "fed": [fed.name for fed in self.cluster.fed],
            "task_dir": task_dir,
            "work_dir": work_dir,
            "data_format": self.data_format,
            "barriers": False,
            # names of the splits, none: every row is like any other
            "splits": list(self.split.names) if self.split is not None else [],
            "dataset_file": f"{task_dir}/dataset." + ("columns" if self.data_format == "columns" else "tfrecord"),
            "script": {
                "path": self.script.path,
                "real": self.script.name,
                "module": self.script.module,
                "program": self.script.program,
                "context_entry": self.script.context_entry,
                "pai": self.script.pai,
                "args": list(self.script_args),
            },
            # rows of the result may also be left in a file
            "output_file": f"{task_dir}/output.tfrecord",
            "file_names": {path: self.script.name if path == self.script.path else real for real, path in self.script.files},
            "user_params": dict(self.user_params),
            "schema": self.schema.describe(),
            "output_schema": self.output_schema.describe() if self.output_schema is not None else None,
            "output_inferred": self.output_inferred,
            "checkpoint_dir": checkpoint_dir,
            "saved_model_dir": f"{task_dir}/saved_model" if self.mode == "train" else None,
            # out, it shares the delay with the way in
            "flush_seconds": self.flush_seconds / 4,
            "latest_ckpt_dir": f"{task_dir}/latest_ckpt" if self.save_latest_checkpoint else None,
            "env": self.task_env,
            "overlay": self.overlay,
            "model": self.model,
            "tables": self.tables.describe() if self.tables is not None else None,
            # steps that the input doctor is to look at, 0: only what costs nothing
            "profile_input": self.profile_input or 0,
        }
