"""The option `--engine`, and the options that are only for one engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import akrunner
from akrunner.cli import detached, lines
from akrunner.cli.values import pairs
from akrunner.engines.registry import engine_of
from akrunner.options import OPTIONS, is_given, named

#: options that are only for Flink: their names begin with flink_
FLAGS = tuple(one.name for one in OPTIONS if one.name.startswith("flink_"))


def chosen(name: str, words: Mapping[str, Any]) -> Any:
    """Return the engine for `--engine`.

    Args: name: the value of `--engine`; words: the values of the command's options, by name; those in `FLAGS` are read.
    Raises: ConfigError: an option that is only for another engine was given.
    """
    if name == "flink":
        from akrunner.engines.flink import FlinkEngine

        return FlinkEngine(
            words["flink_master"] or os.environ.get(detached.MASTER) or "local",
            python=words["flink_python"],
            python_executable=words["flink_worker_python"],
            options=pairs(words["flink_option"], "--flink-option"),
            files_there=not words.get("flink_files_here"),
            host=words["flink_host"],
            port=words["flink_port"],
            tls=not words["flink_no_tls"],
        )
    idle = [named(flag).words[0] for flag in FLAGS if is_given(words.get(flag))]
    if idle:
        need = "needs" if len(idle) == 1 else "need"
        raise akrunner.ConfigError(f"{' and '.join(idle)} {need} --engine flink; the engine is {name}")
    return name


def check_detach(options: Mapping[str, Any], wanted: bool) -> None:
    """Check `--detach`. Raises: ConfigError: the job is to run detached, and its engine has no cluster that keeps it."""
    if wanted and not engine_of(options["engine"]).capabilities.detaches:
        raise akrunner.ConfigError("--detach is for a Flink cluster that stays: --engine flink --flink-master HOST:PORT")


def detach(script: str, source: Any, mode: str, options: dict[str, Any], as_json: bool, quiet: bool) -> None:
    """Submit a detached job, and print its id.

    Args: options: the options of the command line.
    Raises: the exceptions of `akrunner.detached.submit`.
    """
    check_detach(options, True)
    engine = options.pop("engine")
    from akrunner.detached import submit

    lines.check_not_stdout(options.get("output"))
    detached.submitted(submit(script, source, engine=engine, mode=mode, **options), as_json, quiet)
