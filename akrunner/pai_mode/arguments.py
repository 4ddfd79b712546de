"""The arguments of `akrunner.pai`, carried from the function, or the command, to the code that uses them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from akrunner.prepare.arguments import NotifyLike, PathLike


@dataclass(frozen=True)
class PaiArguments:
    """The arguments of `pai` that apply to each of its jobs; `akrunner.options` describes them. `Runner` checks them."""

    # options: written by scripts/gen-options
    variables: Mapping[str, str] | None = field(default=None, repr=False)
    tables_root: PathLike | None = None
    oss_roots: Mapping[str, str] | None = None
    project: str | None = None
    num_workers: int | None = None
    num_ps: int | None = None
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
    stall_timeout: float | None = None
    stall_action: str | None = None
    evaluator_timeout: float = 60.0
    profile_input: int | None = None
    max_restarts: int | None = None
    restart_delay: float = 1.0
    tensorboard: PathLike | None = None
    work_dir: PathLike | None = None
    debug: bool = False
    keep_run: bool | None = None
    notify: NotifyLike | None = field(default=None, repr=False)
    metrics_file: PathLike | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    mlflow: str | None = field(default=None, repr=False)
    mlflow_experiment: str | None = None
    progress: str = "auto"
    # end of what scripts/gen-options writes

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> PaiArguments:
        """Return the arguments found, by name, among some options; other options are ignored."""
        known = [one.name for one in dataclasses.fields(cls)]
        return cls(**{name: value for name, value in options.items() if name in known})

    def by_name(self) -> dict[str, Any]:
        """Return a dict: name -> value."""
        return dict(vars(self))
