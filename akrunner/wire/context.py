"""What a task is told before anything else: its context. The host writes it by these declarations, the worker checks it by them, and
type checkers read in both halves what may be taken from it."""

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional

from akrunner.wire.frames import WireError

if TYPE_CHECKING:
    from typing import TypedDict
else:
    # Python 3.7 has none; at run time only the annotations are read
    TypedDict = object


class Script(TypedDict):
    """The person's script.

    Attributes:
        path: below the work directory, with "/"; real: where the person has it.
        module: of ours, that is run in its place, "" for none.
        program: it is run as a program, for it has no `main`; context_entry: the name of a `map_func(context)`, "" for none.
        pai: it is started as PAI starts one; args: what stands behind its name in `sys.argv`.
    """

    path: str
    real: str
    module: str
    program: bool
    context_entry: str
    pai: bool
    args: List[str]


class Role(TypedDict):
    """A task's place in its cluster. Attributes: type: chief, worker, ps or evaluator; index: among those of its type."""

    type: str
    index: int


class TFConfig(TypedDict):
    """As TensorFlow reads it. Attributes: cluster: addresses of the tasks of each type; task: which of them this one is."""

    cluster: Dict[str, List[str]]
    task: Role


class Context(TypedDict):
    """What a worker process is told.

    Attributes:
        mode: batch, stream or train; data_format: of its rows on the wire, examples or columns.
        task: its name; first: that of the task whose model is the job's; fed: names of those that get rows.
        tf_config: of the cluster; alone: it is no cluster, and TF_CONFIG is not set; cluster_flags: PAI's flags of it are given.
        stays: after its last word, until it is told to stop; attempt: how often the job was begun again.
        cpus: the cores it may use, none for all; env: variables that are set; overlay: a directory of further packages, "" for none.
        task_dir: the task's own directory; work_dir: that of the script; the other paths are below, but for checkpoint_dir (the job's),
        and null where there is none.
        file_names: of the script's files, by their path below the work directory -> where the person has them.
        barriers: a checkpoint's marks come with the rows; splits: names of the table's, none if every row is like any other.
        schema, output_schema: a dict for each column (`Field.describe`); output_inferred: what is written first says what the output's is.
        flush_seconds: what is written in a stream is sent no later.
        model: a SavedModel's directory, "" for none; tables: those the job names, null for none (`TableNames.describe`).
        profile_input: steps that the input doctor looks at, 0: what costs nothing.
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
    cpus: List[int]
    fed: List[str]
    task_dir: str
    work_dir: str
    data_format: str
    barriers: bool
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
    """A context, with every field it must have, of the right type. Raises: WireError: it is none."""
    _check("context", body, Context)
    # what may have been sent besides is passed over by whoever reads it
    return body  # type: ignore[return-value]


def _check(name: str, body: Any, declared: Any) -> None:
    for field, annotation in declared.__annotations__.items():
        if field not in body:
            raise WireError("a %s has no %r" % (name, field))
        if not _fits(body[field], annotation):
            raise WireError("a %s has the %r %.100r" % (name, field, body[field]))


def _fits(value: Any, annotation: Any) -> bool:
    if annotation is Any:
        return True
    origin = getattr(annotation, "__origin__", None)
    if origin is None and hasattr(annotation, "__annotations__"):
        if not isinstance(value, dict):
            return False
        _check(annotation.__name__, value, annotation)
        return True
    if origin is None:
        # a boolean is no number, and a whole number is one
        return type(value) in ((float, int) if annotation is float else (annotation,))
    of = annotation.__args__
    if origin in (list, List):
        return isinstance(value, list) and all(_fits(one, of[0]) for one in value)
    if origin in (dict, Dict):
        return isinstance(value, dict) and all(_fits(k, of[0]) and _fits(one, of[1]) for k, one in value.items())
    return any(_fits(value, one) for one in of)
