"""The arguments of a script's job, and their types."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from akrunner.schema import Schema
from akrunner.sequences import SequenceNotStr
from akrunner.spec import ScriptSpec

PathLike = str | os.PathLike[str]
#: a path or URL; or a function that takes the task config
ScriptLike = PathLike | Callable[[Any], Any]


class ArrowSchema(Protocol):
    """A `pyarrow.Schema`. pyarrow has no type annotations, so type checkers would let any object pass for its class."""

    def __arrow_c_schema__(self) -> object: ...


class Dtypes(Protocol):
    """pandas' `frame.dtypes`, for type checkers that do not have pandas' types."""

    @property
    def dtypes(self) -> Any: ...

    def items(self) -> Iterable[tuple[Any, Any]]: ...


#: text, a schema, or columns and their types: a mapping, pandas' `frame.dtypes`, a structured dtype of numpy
SchemaLike = str | ArrowSchema | Schema | Mapping[str, Any] | Dtypes | np.dtype[Any]
#: names of splits and their shares of the rows
SplitLike = str | Mapping[str, float]
#: how CSV is written: text such as "delimiter=;,null=NA", or a mapping
CsvLike = str | Mapping[str, Any]
#: who is told of the end of a job: a URL, or a function that takes a dict
NotifyLike = str | Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Arguments:
    """The arguments of `akrunner.run`, `train` and `stream`, under the names of their parameters.

    Attributes: script: a path, a function, or a script that was examined already (`files.collect_program`).
    """

    # options: written by scripts/gen-options
    script: ScriptLike | ScriptSpec
    source: Any = None
    user_params: Mapping[str, Any] | None = field(default=None, repr=False)
    user_files: SequenceNotStr[PathLike] = ()
    script_args: SequenceNotStr[str] = field(default=(), repr=False)
    save_latest_checkpoint: bool = False
    tables: SequenceNotStr[str] = ()
    project: str | None = None
    select: str | None = None
    columns: SequenceNotStr[str] | None = None
    defaults: Mapping[str, Any] | None = None
    decimals: str = "refuse"
    split: SplitLike | None = None
    split_by: str | None = None
    split_seed: int = 0
    input_schema: SchemaLike | None = None
    input_format: str | None = None
    input_csv: CsvLike | None = None
    bad_rows: PathLike = "fail"
    max_bad_rows: int | str = 100
    flush_seconds: float = 0.02
    data_format: str = "examples"
    output_tables: SequenceNotStr[str] = ()
    output_schema: SchemaLike | None = None
    output: PathLike | None = None
    output_format: str | None = None
    output_csv: CsvLike | None = None
    overwrite: bool = False
    partition_by: SequenceNotStr[str] | None = None
    sort_by: SequenceNotStr[str] | None = None
    max_rows_per_file: int | None = None
    max_bytes_per_file: int | str | None = None
    output_compression: str | None = None
    append: bool = False
    manifest: bool = False
    num_workers: int | None = None
    num_ps: int | None = None
    parallelism: int | None = None
    evaluator: bool = False
    coordinator: bool = False
    chief: bool | None = None
    bind_host: str = "127.0.0.1"
    advertised_host: str | None = None
    engine: Any = "local"
    python_env: PathLike | None = None
    requirements: PathLike | None = None
    keras: str | None = None
    env: Mapping[str, str] | None = field(default=None, repr=False)
    gpus_per_worker: int | None = None
    cpus_per_worker: int | None = None
    intra_op_parallelism: int | None = None
    timeout: float | None = None
    start_timeout: float = 60.0
    stall_timeout: float = 600.0
    stall_action: str = "fail"
    evaluator_timeout: float = 60.0
    profile_input: int | None = None
    max_restarts: int = 0
    restart_delay: float = 1.0
    tensorboard: PathLike | None = None
    work_dir: PathLike | None = None
    checkpoint_dir: PathLike | None = None
    resume: bool = False
    debug: bool = False
    keep_run: bool | None = None
    notify: NotifyLike | None = field(default=None, repr=False)
    metrics_file: PathLike | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    mlflow: str | None = field(default=None, repr=False)
    mlflow_experiment: str | None = None
    report: PathLike | None = None
    progress: str = "auto"
    # end of what scripts/gen-options writes
