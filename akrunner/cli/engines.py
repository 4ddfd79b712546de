"""`--engine` and what belongs to it."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional

import akrunner
from akrunner.cli import detached, lines
from akrunner.cli.values import pairs
from akrunner.engines.registry import engine_of


def chosen(
    name: str, master: Optional[str], python: Optional[str], worker_python: Optional[str], options: List[str], files_here: bool
) -> Any:
    """The engine. Raises: ConfigError: what is only for another one was given."""
    if name == "flink":
        from akrunner.engines.flink import FlinkEngine

        return FlinkEngine(
            master or os.environ.get(detached.MASTER) or "local",
            python=python,
            python_executable=worker_python,
            options=pairs(options, "--flink-option"),
            files_there=not files_here,
        )
    if master not in (None, "local") or python or worker_python or options or files_here:
        raise akrunner.ConfigError(
            "--flink-master, --flink-python, --flink-worker-python, --flink-option and --flink-files-here need --engine flink"
        )
    return name


def check_detach(options: Mapping[str, Any], wanted: bool) -> None:
    """Raises: ConfigError: the job is to go on without its submitter, and there is no cluster that keeps it."""
    if wanted and not engine_of(options["engine"]).capabilities.detaches:
        raise akrunner.ConfigError("--detach is for a Flink cluster that stays: --engine flink --flink-master HOST:PORT")


def detach(script: str, source: Any, mode: str, options: Dict[str, Any], as_json: bool, quiet: bool) -> None:
    """Submit the job, and say how it is called. Args: options: of the command line. Raises: as `akrunner.detached.submit`."""
    check_detach(options, True)
    engine = options.pop("engine")
    from akrunner.detached import submit

    lines.check_not_stdout(options.get("output"))
    detached.submitted(submit(script, source, engine=engine, mode=mode, **options), as_json, quiet)
