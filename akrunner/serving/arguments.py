"""The arguments of `predict`, `predict_stream` and `LocalPredictor`, under the names of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from akrunner.model import Model
from akrunner.prepare.arguments import CsvLike, NotifyLike, PathLike, SchemaLike
from akrunner.sequences import SequenceNotStr

ModelLike: TypeAlias = Model | PathLike | pa.Table


@dataclass(frozen=True)
class PredictArguments:
    """The options of a prediction; an option that a function does not take has its default."""

    # options: written by scripts/gen-options
    model: ModelLike
    source: Any = None
    selected_cols: SequenceNotStr[str] | None = None
    input_signature_defs: SequenceNotStr[str] | None = None
    output_signature_defs: SequenceNotStr[str] | None = None
    signature_def_key: str = "serving_default"
    graph_def_tag: str = "serve"
    reserved_cols: SequenceNotStr[str] | None = None
    batch_size: int = 1024
    select: str | None = None
    defaults: Mapping[str, Any] | None = None
    decimals: str = "refuse"
    input_schema: SchemaLike | None = None
    input_format: str | None = None
    input_csv: CsvLike | None = None
    bad_rows: PathLike = "fail"
    max_bad_rows: int | str = 100
    flush_seconds: float = 0.02
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
    work_dir: PathLike | None = None
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
