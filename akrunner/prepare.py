"""A job's arguments, as a person gives them -> a `JobSpec` and its table. Everything that can be known before a process starts
is checked here."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union

import pyarrow as pa

from akrunner import codec
from akrunner.errors import ConfigError, ScriptError
from akrunner.io.sources import open_source
from akrunner.io.table import TableSource
from akrunner.launch import environments, fetch, files, interpreters
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ResourceSpec, ScriptSpec, SupervisionSpec

PathLike = Union[str, "os.PathLike[str]"]
SchemaLike = Union[str, pa.Schema, Schema]


@dataclass(frozen=True)
class Arguments:
    """What `akrunner.run`, `train` and `stream` take in common, by the names they take it, and what each adds."""

    script: PathLike
    source: Any
    user_params: Optional[Mapping[str, Any]] = None
    user_files: Sequence[PathLike] = ()
    output_schema: Optional[SchemaLike] = None
    output: Optional[PathLike] = None
    num_workers: Optional[int] = None
    num_ps: Optional[int] = None
    parallelism: Optional[int] = None
    evaluator: bool = False
    coordinator: bool = False
    python_env: Optional[PathLike] = None
    select: Optional[str] = None
    input_schema: Optional[SchemaLike] = None
    input_format: Optional[str] = None
    requirements: Optional[PathLike] = None
    keras: Optional[str] = None
    data_format: str = "examples"
    tensorboard: Optional[PathLike] = None
    env: Optional[Mapping[str, str]] = None
    timeout: Optional[float] = None
    start_timeout: float = 60.0
    stall_timeout: float = 600.0
    stall_action: str = "fail"
    evaluator_timeout: float = 60.0
    max_restarts: int = 0
    gpus_per_worker: Optional[int] = None
    cpus_per_worker: Optional[int] = None
    intra_op_parallelism: Optional[int] = None
    bind_host: str = "127.0.0.1"
    advertised_host: Optional[str] = None
    work_dir: Optional[PathLike] = None
    checkpoint_dir: Optional[PathLike] = None
    debug: bool = False
    save_latest_checkpoint: bool = False
    flush_seconds: Optional[float] = None
    engine: Any = "local"

    @classmethod
    def of(cls, given: Mapping[str, Any], **replaced: Any) -> "Arguments":
        """From a function's `locals()`: what it took under the names here."""
        named = {one.name: given[one.name] for one in dataclasses.fields(cls) if one.name in given}
        return cls(**{**named, **replaced})


@dataclass(frozen=True)
class Prepared:
    """A job whose arguments are all checked, and its table."""

    job: JobSpec
    table: TableSource


def prepare(mode: str, given: Arguments, model_dir: Optional[str] = None) -> Prepared:
    """Args: model_dir: of a train job, where its model goes.

    Raises: ConfigError: an argument is wrong.
    """
    parallelism = given.parallelism
    if parallelism is None and given.num_workers is None and given.num_ps is None:
        parallelism = getattr(given.engine, "parallelism", None)
    cluster = ClusterSpec.of(given.num_workers, given.num_ps, parallelism, given.evaluator, given.coordinator)
    supervision = SupervisionSpec(
        timeout=given.timeout,
        start_timeout=given.start_timeout,
        evaluator_timeout=given.evaluator_timeout,
        stall_timeout=given.stall_timeout,
        stall_action=given.stall_action,
        max_restarts=given.max_restarts,
    )
    resources = ResourceSpec(given.gpus_per_worker, given.cpus_per_worker, given.intra_op_parallelism)
    script = files.collect(given.script, given.user_files)
    out_schema = schema_of(given.output_schema, "output_schema")
    in_schema = schema_of(given.input_schema, "input_schema")
    _check_output(script, out_schema, given.output)
    python = interpreter_for(given.python_env, given.engine, given.keras)
    table = open_source(
        given.source,
        read_examples=codec.read_examples,
        input_schema=in_schema,
        input_format=given.input_format,
        select=given.select,
        flush_seconds=given.flush_seconds,
    )
    requirements = _text(given.requirements)
    if requirements is not None and (environments.is_packed(python) or not os.path.exists(python)):
        raise ConfigError(
            f"requirements= are installed for an interpreter of this machine, and {python} is on the cluster's: pack them with it"
        )
    job = JobSpec(
        script=script,
        schema=Schema.from_arrow(table.schema),
        python=python,
        cluster=cluster,
        output_schema=out_schema,
        user_params=given.user_params if given.user_params is not None else {},
        mode=mode,
        keras=given.keras,
        data_format=given.data_format,
        tensorboard=_text(given.tensorboard),
        env=given.env if given.env is not None else {},
        overlay=environments.overlay(python, requirements) if requirements is not None else "",
        supervision=supervision,
        resources=resources,
        bind_host=given.bind_host,
        advertised_host=given.advertised_host,
        work_dir=_text(given.work_dir),
        keep=given.debug or given.work_dir is not None,
        checkpoint_dir=_made(given.checkpoint_dir),
        model_dir=model_dir,
        save_latest_checkpoint=given.save_latest_checkpoint,
        flush_seconds=given.flush_seconds if given.flush_seconds is not None else 0.02,
    )
    if job.supervision.max_restarts and not table.replayable:
        raise ConfigError(
            f"max_restarts: {table.name} can be read only once, so the job could not be started again; give a file, or a table "
            "in memory"
        )
    return Prepared(job, table)


def schema_of(given: Optional[SchemaLike], parameter: str) -> Optional[Schema]:
    """A schema from whatever stands for one. Raises: SchemaError; ConfigError: something else."""
    if given is None or isinstance(given, Schema):
        return given
    if isinstance(given, pa.Schema):
        return Schema.from_arrow(given)
    if isinstance(given, str):
        return Schema.parse(given, parameter)
    raise ConfigError(f"{parameter} must be text like 'id bigint, p double', not {type(given).__name__}")


def _check_output(script: ScriptSpec, schema: Optional[Schema], output: Optional[PathLike]) -> None:
    if schema is not None:
        return
    if output is not None:
        raise ConfigError("output= needs output_schema= (--output-schema): the columns the script writes")
    line = files.writes_output(files.read_script(script))
    if line is not None:
        raise ScriptError(
            "the script writes rows, but there is no output_schema= (--output-schema); give for instance "
            f"'id bigint, p double'\n  File \"{script.real}\", line {line}"
        )


def interpreter_for(python_env: Optional[PathLike], engine: Any, keras: Optional[str] = None) -> str:
    """Path of the tasks' interpreter. On a cluster's machines, one that is only there is looked at there, and a packed environment is
    unpacked there. Raises: PythonEnvError."""
    named = _text(python_env)
    if named is not None and getattr(engine, "name", engine) != "local":
        if os.path.isabs(named) and not os.path.exists(named):
            return named
        # the local cluster's machine is this one
        if environments.is_packed(named) and getattr(engine, "master", "local") != "local":
            return named if fetch.is_url(named) else os.path.abspath(os.path.expanduser(named))
    return interpreters.resolve(named, keras).path


def _made(directory: Optional[PathLike]) -> Optional[str]:
    if directory is None:
        return None
    path = os.path.abspath(os.path.expanduser(os.fspath(directory)))
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        raise ConfigError(f"checkpoint_dir: cannot make {path}: {e.strerror}") from None
    return path


def _text(path: Optional[PathLike]) -> Optional[str]:
    return os.fspath(path) if path is not None else None
