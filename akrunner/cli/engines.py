"""`--engine` and what belongs to it."""

from __future__ import annotations

from typing import Any, List, Optional

import akrunner
from akrunner.cli.guarded import pairs


def chosen(name: str, master: str, python: Optional[str], worker_python: Optional[str], options: List[str]) -> Any:
    """The engine. Raises: ConfigError: what is only for another one was given."""
    if name == "flink":
        from akrunner.engines.flink import FlinkEngine

        return FlinkEngine(master, python=python, python_executable=worker_python, options=pairs(options, "--flink-option"))
    if master != "local" or python or worker_python or options:
        raise akrunner.ConfigError(
            "--flink-master, --flink-python, --flink-worker-python and --flink-option need --engine flink"
        )
    return name
