"""The context: the first message that a task receives.

The host writes it and the worker checks it by these declarations; type checkers use them in both halves.
"""

from typing import Any, Dict, List, Mapping, Optional

from akrunner.wire.shapes import TypedDict, check


class Script(TypedDict):
    """The user's script.

    Attributes:
        path: its path below the work directory, with "/".
        real: its path where the user keeps it.
        module: the module of akrunner that is run in its place; "" for none.
        program: whether it is run as a program, because it has no `main`.
        context_entry: the name of its `map_func(context)`; "" if it has none.
        pai: whether it is started as PAI starts a script.
        args: the arguments that follow its name in `sys.argv`.
    """

    path: str
    real: str
    module: str
    program: bool
    context_entry: str
    pai: bool
    args: List[str]


class Role(TypedDict):
    """A task's role in its cluster. Attributes: type: chief, worker, ps or evaluator; index: its number within that role."""

    type: str
    index: int


class TFConfig(TypedDict):
    """TF_CONFIG as TensorFlow reads it. Attributes: cluster: role -> addresses of its tasks; task: the role of this task."""

    cluster: Dict[str, List[str]]
    task: Role


class Context(TypedDict):
    """The context of one worker process.

    The paths that are not described here are below `task_dir`; a path is None if the job has no such file or directory.

    Attributes:
        mode: batch, stream or train.
        data_format: the format of the rows on the wire: examples or columns.
        task: this task's name.
        first: the name of the task whose model is the job's.
        fed: the names of the tasks that get rows.
        tf_config: the cluster, as TF_CONFIG describes it.
        alone: whether there is no cluster, so that TF_CONFIG is not set.
        cluster_flags: whether the script gets PAI's flags that describe the cluster.
        stays: whether the process stays after its last message until the host tells it to stop.
        attempt: how often the job has been started again.
        resume: whether the job goes on with the checkpoints of an earlier one.
        read_as: what decides where the rows of a text begin; a save that counts rows counts them by it.
        run_id: what tells this job from every other one; the same in each attempt.
        cpus: the cores the process may use; empty for all.
        env: environment variables to set.
        overlay: a directory of further packages; "" for none.
        task_dir: the task's own directory.
        work_dir: the script's directory.
        checkpoint_dir: the job's directory for checkpoints, which is not below `task_dir`.
        file_names: path of each of the script's files below the work directory -> its path where the user keeps it.
        barriers: whether marks come among the rows: those of Flink's checkpoints, or of a stream whose position is stored.
        places: whether these marks tell places in the stream from which another attempt, or job, can go on.
        goes_on_with: the number of the save of `checkpoint()` with which this attempt begins, as the rows come from behind it;
            0: with none; None: the tasks find it.
        splits: the names of the table's splits; empty if it has none.
        schema, output_schema: a dict for each column (`Field.describe`).
        output_inferred: whether the first rows that are written determine the output's schema.
        flush_seconds: a stream sends its output rows after this many seconds at the latest.
        model: a SavedModel's directory; "" for none.
        tables: the tables that the job names (`TableNames.describe`); None for none.
        profile_input: the number of steps that the input doctor looks at; 0 for only what costs nothing.
    """

    mode: str
    task: str
    tf_config: TFConfig
    alone: bool
    stays: bool
    first: str
    cluster_flags: bool
    num_workers: int
    attempt: int
    resume: bool
    read_as: Dict[str, Any]
    run_id: str
    cpus: List[int]
    fed: List[str]
    task_dir: str
    work_dir: str
    data_format: str
    barriers: bool
    places: bool
    goes_on_with: Optional[int]
    splits: List[str]
    dataset_file: str
    script: Script
    output_file: str
    file_names: Dict[str, str]
    user_params: Dict[str, Any]
    schema: List[Dict[str, Any]]
    output_schema: Optional[List[Dict[str, Any]]]
    output_inferred: bool
    checkpoint_dir: Optional[str]
    saved_model_dir: Optional[str]
    flush_seconds: float
    latest_ckpt_dir: Optional[str]
    env: Dict[str, str]
    overlay: str
    model: str
    tables: Optional[Dict[str, Any]]
    profile_input: int


def read(body: Mapping[str, Any]) -> Context:
    """Check that a message's body is a context, with every field and of the right types. Raises: WireError: it is not."""
    check("context", body, Context)
    # a newer host may send further fields; they are ignored
    return body  # type: ignore[return-value]
