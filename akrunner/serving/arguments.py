"""What `predict`, `predict_stream` and `LocalPredictor` take, by the names they take it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Union

import pyarrow as pa

from akrunner.model import Model
from akrunner.prepare import PathLike, SchemaLike
from akrunner.sequences import SequenceNotStr

ModelLike = Union[Model, PathLike, pa.Table]


@dataclass(frozen=True)
class PredictArguments:
    """The options of a prediction; of those that a function does not take, the default."""

    # options: written by scripts/gen-options
    model: ModelLike
    source: Any = None
    selected_cols: Optional[SequenceNotStr[str]] = None
    input_signature_defs: Optional[SequenceNotStr[str]] = None
    output_signature_defs: Optional[SequenceNotStr[str]] = None
    signature_def_key: str = "serving_default"
    graph_def_tag: str = "serve"
    reserved_cols: Optional[SequenceNotStr[str]] = None
    batch_size: int = 1024
    select: Optional[str] = None
    defaults: Optional[Mapping[str, Any]] = None
    input_schema: Optional[SchemaLike] = None
    input_format: Optional[str] = None
    flush_seconds: float = 0.02
    output_schema: Optional[SchemaLike] = None
    output: Optional[PathLike] = None
    output_format: Optional[str] = None
    overwrite: bool = False
    num_workers: Optional[int] = None
    engine: Any = "local"
    python_env: Optional[PathLike] = None
    requirements: Optional[PathLike] = None
    keras: Optional[str] = None
    env: Optional[Mapping[str, str]] = field(default=None, repr=False)
    gpus_per_worker: Optional[int] = None
    cpus_per_worker: Optional[int] = None
    intra_op_parallelism: Optional[int] = None
    timeout: Optional[float] = None
    start_timeout: float = 60.0
    stall_timeout: float = 600.0
    stall_action: str = "fail"
    work_dir: Optional[PathLike] = None
    # end of what scripts/gen-options writes
