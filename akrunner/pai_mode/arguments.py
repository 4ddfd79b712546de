"""What `akrunner.pai` was given, carried from the function, or the command, to where it is used."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional

from akrunner.prepare import PathLike


@dataclass(frozen=True)
class PaiArguments:
    """Arguments of `pai` that hold for every job of it; `akrunner.options` says what each is. Checked by `Runner`."""

    # options: written by scripts/gen-options
    variables: Optional[Mapping[str, str]] = field(default=None, repr=False)
    tables_root: Optional[PathLike] = None
    oss_roots: Optional[Mapping[str, str]] = None
    project: Optional[str] = None
    num_workers: Optional[int] = None
    num_ps: Optional[int] = None
    bind_host: str = "127.0.0.1"
    advertised_host: Optional[str] = None
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
    stall_timeout: Optional[float] = None
    stall_action: Optional[str] = None
    evaluator_timeout: float = 60.0
    profile_input: Optional[int] = None
    max_restarts: Optional[int] = None
    tensorboard: Optional[PathLike] = None
    work_dir: Optional[PathLike] = None
    debug: bool = False
    # end of what scripts/gen-options writes

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> PaiArguments:
        """Those among some options, by name."""
        known = [one.name for one in dataclasses.fields(cls)]
        return cls(**{name: value for name, value in options.items() if name in known})

    def by_name(self) -> Dict[str, Any]:
        """Each under its name."""
        return dict(vars(self))
