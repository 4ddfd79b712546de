"""The option `--engine`, and the options that are only for one engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import akrunner
from akrunner.cli.values import pairs
from akrunner.options import OPTIONS, is_given, named

#: the environment variable that names the cluster
MASTER = "AKRUNNER_FLINK_MASTER"
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
            words["flink_master"] or os.environ.get(MASTER) or "local",
            python=words["flink_python"],
            python_executable=words["flink_worker_python"],
            options=pairs(words["flink_option"], "--flink-option"),
            files_there=_files_there(bool(words.get("flink_files_here")), bool(words.get("flink_files_there"))),
            host=words["flink_host"],
            port=words["flink_port"],
            tls=not words["flink_no_tls"],
        )
    idle = [named(flag).words[0] for flag in FLAGS if is_given(words.get(flag))]
    if idle:
        need = "needs" if len(idle) == 1 else "need"
        raise akrunner.ConfigError(f"{' and '.join(idle)} {need} --engine flink; the engine is {name}")
    return name


def _files_there(here: bool, there: bool) -> bool | None:
    """Return what `--flink-files-here` and `--flink-files-there` say together; None if neither was given.

    Raises:
        ConfigError: both were given.
    """
    if here and there:
        raise akrunner.ConfigError("--flink-files-here and --flink-files-there exclude each other: leave one of them out")
    return there or (False if here else None)
