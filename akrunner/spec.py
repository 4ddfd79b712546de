"""The description of a job as values, which are validated once, on construction, and never changed."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

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

#: a job's mode: type checkers find a misspelt one wherever it is compared
Mode = Literal["batch", "stream", "train"]
MODES: tuple[Mode, ...] = get_args(Mode)
KERAS = (None, "legacy")
DATA_FORMATS = ("examples", "columns")
STALL_ACTIONS = ("warn", "fail")
#: more cores, graphics cards or threads than any machine has
_MOST_THREADS = 16384
#: the most steps of `profile_input`: what is measured is kept in memory
_MOST_STEPS = 10_000


@dataclass(frozen=True, order=True)
class TaskSpec:
    """One member of the cluster.

    Attributes:
        role: chief, worker, ps or evaluator.
        index: number of the task within its role, from 0.
    """

    role: str
    index: int

    @property
    def name(self) -> str:
        """Return the task's name in log prefixes and errors: `worker:1`."""
        return f"{self.role}:{self.index}"

    @property
    def key(self) -> str:
        """Return the task's name in file names: `worker-1`."""
        return f"{self.role}-{self.index}"


@dataclass(frozen=True)
class ClusterSpec:
    """How many tasks of each role a job has.

    Attributes:
        num_workers: number of tasks that share the rows. The first of them is the chief, unless there is no chief.
        num_ps: number of parameter servers.
        evaluator: whether there is one more task, which evaluates what the others train.
        coordinator: whether the chief only coordinates (`tf.distribute.coordinator.ClusterCoordinator`). Then it gets no rows,
            is no worker, and comes on top of `num_workers`; workers and parameter servers serve it until it is done.
        chief: whether there is a chief; without one, all these tasks are workers, and worker 0 is the first. None: as True, but
            if the chief is the only task, it is not told of a cluster.
        flags: whether the tasks are told of each other by flags as well, as on PAI: `--job_name`, `--task_index`, `--ps_hosts`,
            `--worker_hosts`.
        evaluator_told: whether every task is told of the evaluator, as on PAI; else only the evaluator itself is.
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
        """Make a cluster of `parallelism` workers and parameter servers; a count that is not given is chosen as Alink does.

        If neither count is given, a quarter are parameter servers, at least one, but with `parallelism` 1 there is only one
        worker. If one count is given, the other is the rest. Without `parallelism`, the default is one worker and no parameter
        server.
        Raises: ConfigError: the counts do not fit together.
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

    @functools.cached_property
    def tasks(self) -> tuple[TaskSpec, ...]:
        """Return all tasks, in the order of results and reports: chief, workers, ps, evaluator."""
        chiefs = [TaskSpec(CHIEF, 0)] if self.chief is not False else []
        workers = [TaskSpec(WORKER, i) for i in range(self.num_workers - int(bool(chiefs) and not self.coordinator))]
        servers = [TaskSpec(PS, i) for i in range(self.num_ps)]
        return (*chiefs, *workers, *servers, *([TaskSpec(EVALUATOR, 0)] if self.evaluator else []))

    @property
    def alone(self) -> bool:
        """Whether the only task runs as in plain Python, without TF_CONFIG."""
        return self.chief is None and len(self.tasks) == 1

    @property
    def with_rows(self) -> tuple[TaskSpec, ...]:
        """Return the tasks that get rows."""
        return tuple(t for t in self.tasks if t.role == WORKER or (t.role == CHIEF and not self.coordinator))

    @functools.cached_property
    def awaited(self) -> tuple[TaskSpec, ...]:
        """Return the chief and the workers: the job ends when they have ended (a task that only serves is not waited for)."""
        return tuple(t for t in self.tasks if t.role in (CHIEF, WORKER))


@dataclass(frozen=True)
class ResourceSpec:
    """The part of the machine that each task may use.

    Attributes:
        gpus_per_worker: how many graphics cards each task that gets rows (chief and workers) has for itself, while the other
            tasks have none; None: graphics cards are left as they are.
        cpus_per_worker: how many cores each task that gets rows has for itself; None: every task may use all cores, and if
            several tasks compute, each uses as many threads as its share of the cores.
        intra_op_parallelism: how many threads TensorFlow uses inside one operation; None: as many as the task has cores.
    Raises: ConfigError: a value is not a whole number, or out of its range.
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
    """The time limits of a job, in seconds, and what happens when one has passed.

    Attributes:
        timeout: how long the whole job may take; None: no limit.
        start_timeout: how long a worker process may take until it says "opened".
        exit_grace: how long a task has to end by itself, after it was told to end or has finished.
        evaluator_timeout: how long the evaluator has for the last checkpoint, after chief and workers are done.
        stall_timeout: how long nothing may move: no rows, no report, no processor time; 0: no limit.
        stall_action: what happens after `stall_timeout`: "fail", or "warn" and go on.
        max_restarts: how many times all tasks may be started again after a failure.
        restart_delay: how long to wait before the first restart; before each further one twice as long (`akrunner.cluster.failure`).
    Raises: ConfigError: a value is out of its range; the message names the argument.
    """

    timeout: float | None = None
    start_timeout: float = 60.0
    exit_grace: float = 2.0
    evaluator_timeout: float = 60.0
    stall_timeout: float = 600.0
    stall_action: str = "fail"
    max_restarts: int = 0
    restart_delay: float = 1.0

    @property
    def waits(self) -> tuple[float | None, float | None]:
        """How many seconds the job may take, and how many a wait in which something has to move; None: as many as it likes."""
        return self.timeout, (self.stall_timeout or None) if self.stall_action == "fail" else None

    def __post_init__(self) -> None:
        _put(self, "timeout", check_seconds("timeout", self.timeout, none=True))
        for name in ("start_timeout", "exit_grace"):
            _put(self, name, check_seconds(name, getattr(self, name)))
        for name in ("evaluator_timeout", "stall_timeout", "restart_delay"):
            _put(self, name, check_seconds(name, getattr(self, name), zero=True))
        check_choice("stall_action", self.stall_action, STALL_ACTIONS)
        _put(self, "max_restarts", check_count("max_restarts", self.max_restarts, 0))


def check_advertised(bind_host: Any, advertised_host: Any) -> None:
    """Check that tasks of this machine know where others reach them. On Flink each machine knows its own address.

    Raises:
        ConfigError: their servers listen at every address, and none is named.
    """
    if isinstance(bind_host, str) and bind_host in ("0.0.0.0", "::", "") and advertised_host is None:
        raise ConfigError(
            f"bind_host={bind_host!r} (--bind-host) is every address: name the one others reach with advertised_host= "
            "(--advertised-host)"
        )


def come_once(option: str, source: str) -> ConfigError:
    """Return the error of a stream whose rows come once, and which is to go on after an end all the same.

    Args: option: the parameter that asks for it; source: the name of the rows.
    """
    return ConfigError(
        f"{option}: the rows of {source} come once, so that a stream of them cannot go on after an end; give kafka://, "
        "redis://, files:// or a file"
    )


def _put(spec: Any, name: str, value: Any) -> None:
    """Set an attribute of a frozen spec while it is made, to the value that a check has returned."""
    object.__setattr__(spec, name, value)


@dataclass(frozen=True)
class SplitSpec:
    """How a table's rows are split, by hashes.

    Attributes:
        names: the names of the splits.
        fractions: the fraction of the rows in each split; their sum is 1.
        by: the column whose value is hashed, None: the row's number is hashed.
        seed: seed of the hash; another seed splits the rows in another way.
    """

    names: tuple[str, ...]
    fractions: tuple[float, ...]
    by: str | None = None
    seed: int = 0


@dataclass(frozen=True)
class ScriptSpec:
    """The script and its files, as they will be in every task's work dir.

    Attributes:
        real: the file that the user named.
        path: the script's path in the work dir, with "/".
        files: (file, path in the work dir) of each plain file; the script is among them unless it comes out of an archive.
        archives: (archive, directory in the work dir, bytes it may unpack to) of each archive to unpack. The directory is ""
            for the work dir itself; the bytes are 0 for the default.
        module: a module of the bundle that is run in place of a script, "" if there is a script.
        program: whether the script is run as `__main__`, as from a shell; if not, its `main(task_config)` or its
            `context_entry` is called.
        context_entry: name of the function that takes the context of Deep Learning on Flink, "" if the script has none.
        pai: whether the script is a program run as on PAI-TensorFlow: flags that it does not define are no error, and its
            directory is on the module path.
        shown: the file that tracebacks name and take their lines from, "" for `real`.
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
        """Return the file that the user knows as the script."""
        return self.shown or self.real


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do beyond running a job. Other code asks for these values, and never for the engine's name.

    Attributes:
        here: whether its tasks are processes of this machine, with the cores, files and interpreters that this process sees.
            False: a file or interpreter that is missing here may exist where the tasks run.
        unpacks: whether packed environments (`python_env=`) are unpacked where its tasks run.
        pyflink: whether it takes tables of PyFlink, whose rows do not come through this process.
        watches: whether a stream of predictions takes new models while it runs (`watch=`).
        marks: whether it says which rows of a stream are answered (`JobSpec.marked`), as streams whose positions are stored need.
        detaches: whether its jobs may outlive this process (`--detach`).
        parallelism: how many workers and parameter servers together a job has that gives neither count; None: one worker.
    """

    here: bool = True
    unpacks: bool = False
    pyflink: bool = False
    watches: bool = False
    marks: bool = False
    detaches: bool = False
    parallelism: int | None = None


@dataclass(frozen=True)
class TablesSpec:
    """The tables that the script opens itself, by name.

    Attributes:
        inputs: names of the tables that it may read, as the user spelt them, in the user's order.
        outputs: names of the tables that it may write, as the user spelt them, in the user's order.
        store: the store that keeps the tables (`akrunner.tables.store.TableStore`).
        project: the project of names that have none.
        overwrite: whether written rows replace a table's rows; if not, they are appended.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    store: Any = field(repr=False)
    project: str | None = None
    overwrite: bool = True

    def describe(self) -> dict[str, Any]:
        """Return what a worker process is told of the tables."""
        return {"inputs": list(self.inputs), "outputs": list(self.outputs)}


@dataclass(frozen=True)
class JobSpec:
    """A whole job.

    Attributes:
        script: the script and its files.
        script_args: the arguments behind the script's name in `sys.argv`.
        schema: schema of the input table.
        python: path of the interpreter that runs the tasks.
        cluster: the tasks and their roles.
        output_schema: schema of the rows that the script writes, None if it writes none.
        output_inferred: whether, without an output schema, the first batch that is written decides the output's columns.
        user_params: params for the script, as JSON values.
        mode: batch; stream: rows come once, as they arrive; train: batch, and the chief leaves a SavedModel.
        data_format: how rows travel: examples (`tf.train.Example`), or columns (each of its own type, and faster).
        flush_seconds: in stream: the longest time a row is held back on its way in or out.
        keras: None, or "legacy" for Keras 2 through tf-keras.
        env: environment variables that are set for the tasks.
        tensorboard: directory to which the tasks' reports are written as event files, None for none.
        overlay: directory of packages that the tasks may import and their interpreter does not have, "" for none.
        model: SavedModel directory that the tasks read, "" for none.
        supervision: the job's time limits.
        resources: the part of the machine that each task may use.
        bind_host: address on which TensorFlow's servers listen.
        advertised_host: name by which other tasks reach those servers, None: `bind_host`.
        work_dir: directory for everything the job makes; None: a temporary directory, which is removed afterwards.
        keep: whether to keep the work dir.
        checkpoint_dir: directory that every task can reach, given to the script; None for none.
        resume: whether the job goes on with the saves of `task_config.checkpoint()` that are in `checkpoint_dir`.
        read_as: what decides where the rows of the table's files begin, as JSON values; {}: nothing that a user says.
        run_id: what tells this job from every other one.
        model_dir: in train: an existing directory of the host. The chief's SavedModel is moved into it as `model`, and its
            latest checkpoint, if asked for, as `checkpoint`.
        save_latest_checkpoint: in train: whether the script is given a `latest_ckpt_dir` and must fill it.
        tables: the tables that the script opens itself, by name; None for none.
        notes: warnings that the job gives from its start.
        marked: in stream: whether the source is told which of its rows are answered.
        split: how the rows are split; None: they are not.
        profile_input: for how many steps each script's input is profiled; None: only what costs nothing is measured.
        kept: the directory in which this run is kept (`akrunner.history`); None: it is not kept.
        hparams: what the event files say of `user_params`: numbers and short texts, without secrets.
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
    mode: Mode = "batch"
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
    resume: bool = False
    read_as: Mapping[str, Any] = field(default_factory=dict)
    model_dir: str | None = None
    save_latest_checkpoint: bool = False
    flush_seconds: float = 0.02
    tables: TablesSpec | None = None
    notes: tuple[str, ...] = ()
    marked: bool = False
    split: SplitSpec | None = None
    profile_input: int | None = None
    kept: str | None = None
    hparams: Mapping[str, bool | float | str] = field(default_factory=dict, repr=False)
    chunk_rows: int = 8192
    chunk_bytes: int = 4 << 20
    run_id: str = field(default_factory=lambda: secrets.token_hex(8), compare=False)

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
        if self.resume and (self.cluster.num_ps or self.cluster.coordinator):
            raise ConfigError(
                "resume: with num_ps= or coordinator= (--num-ps, --coordinator) other tasks change the model while one saves it, so "
                "that no save has a place in the rows; leave it out: what the script itself saves in checkpoint_dir= is there"
            )
        if self.mode == "stream" and self.split is not None:
            raise ConfigError("split: a stream's rows come once and one after the other; its script takes them apart itself")
        if self.mode == "stream" and self.cluster.coordinator:
            raise ConfigError("coordinator: workers read their rows from files, which a stream has not; use run or train")

    @property
    def asks_about(self) -> bool:
        """Whether the arguments ask the script, if it is a program, for its help (or for its version)."""
        return asks_about(self.script_args)

    @property
    def staying(self) -> tuple[TaskSpec, ...]:
        """Return the tasks whose processes stay after their script has ended well, until all these tasks' scripts have ended.

        TensorFlow's server stays with the process, as the sessions of other tasks may need it. In PAI mode these tasks are the
        chief and the workers of a cluster, as on PAI; else there are none.
        """
        return self.cluster.awaited if self.script.pai and not self.cluster.alone else ()

    def can_restart(self, replayable: bool) -> bool:
        """Whether the job can be started again after a failure. Args: replayable: whether its rows can be read again.

        A stream is started again only if that is asked for: what its script has written so far stays.
        """
        return self.marked and self.supervision.max_restarts > 0 if self.mode == "stream" else replayable

    def check_restarts(self, replayable: bool, source: str) -> None:
        """Check that the job can be started again, if it is to be started again after a failure (`max_restarts`).

        Args: replayable: whether its rows can be read again from the start; source: the name of the rows, for the error.
        Raises: ConfigError: it cannot be started again.
        """
        if self.mode == "stream" and not self.marked and (self.supervision.max_restarts or self.resume):
            raise come_once("max_restarts" if self.supervision.max_restarts else "resume", source)
        if self.supervision.max_restarts and not self.can_restart(replayable):
            raise ConfigError(
                f"max_restarts: {source} can be read only once, so the job could not be started again; give a file, or a "
                "table in memory"
            )

    @property
    def task_env(self) -> dict[str, str]:
        """Return the variables that are set in the tasks' environment before TensorFlow is imported."""
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
        """Return the context that a worker process is given, as JSON values.

        Args: cpus: the cores it may use, empty for all.
        """
        return {
            "mode": self.mode,
            "task": task.name,
            "tf_config": tf_config,
            # if True, the task gets no TF_CONFIG
            "alone": self.cluster.alone,
            # whether the process stays after its last message, until it is told to stop
            "stays": task in self.staying,
            # the first task: its export is the model
            "first": self.cluster.tasks[0].name,
            "cluster_flags": self.cluster.flags,
            "num_workers": self.cluster.num_workers,
            "attempt": attempt,
            "resume": self.resume,
            "read_as": dict(self.read_as),
            "run_id": self.run_id,
            "cpus": list(cpus),
            "fed": [task.name for task in self.cluster.with_rows],
            "task_dir": task_dir,
            "work_dir": work_dir,
            "data_format": self.data_format,
            "barriers": self.marked,
            # the barriers tell places from which the stream can go on
            "places": self.marked,
            "goes_on_with": None,
            # names of the splits, empty if the rows are not split
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
            # a file in which the script may also leave rows of the result
            "output_file": f"{task_dir}/output.tfrecord",
            "file_names": {path: self.script.name if path == self.script.path else real for real, path in self.script.files},
            "user_params": dict(self.user_params),
            "schema": self.schema.describe(),
            "output_schema": self.output_schema.describe() if self.output_schema is not None else None,
            "output_inferred": self.output_inferred,
            "checkpoint_dir": checkpoint_dir,
            "saved_model_dir": f"{task_dir}/saved_model" if self.mode == "train" else None,
            # a quarter: the ways in and out share the delay
            "flush_seconds": self.flush_seconds / 4,
            "latest_ckpt_dir": f"{task_dir}/latest_ckpt" if self.save_latest_checkpoint else None,
            "env": self.task_env,
            "overlay": self.overlay,
            "model": self.model,
            "tables": self.tables.describe() if self.tables is not None else None,
            # how many steps the input doctor profiles, 0: it measures only what costs nothing
            "profile_input": self.profile_input or 0,
        }
