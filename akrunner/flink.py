"""L4: jobs inside a PyFlink program: a Table in, a Table out.

    >>> from akrunner import flink
    >>> job = flink.stream("score.py", t_env.from_path("clicks"), output_schema="id bigint, p double")
    >>> job.table.execute_insert("scores")
    >>> scored = flink.predict("model.zip", t_env.from_path("clicks")).table

Nothing runs before the program executes the table; each task runs beside a subtask of the program's own Flink job, and its rows go to it
and on without leaving that machine.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from akrunner.api import table_of
from akrunner.engines.base import Observer
from akrunner.engines.flink.attached import Attached
from akrunner.engines.flink.engine import FlinkEngine
from akrunner.engines.flink.table import FlinkTable
from akrunner.errors import ConfigError
from akrunner.options import carried, misfit
from akrunner.prepare import Arguments, SchemaLike, ScriptLike, prepare
from akrunner.serving.arguments import ModelLike, PredictArguments
from akrunner.serving.job import checked

__all__ = ["Attached", "FlinkEngine", "predict", "run", "stream"]


#: options of `akrunner.run` and `stream` that say where rows are, and how they are read and written
_OF_OTHERS = frozenset(
    "script model source tables output_tables project output output_format overwrite select columns defaults input_schema input_format follow engine observer".split()
)


def run(
    script: ScriptLike,
    source: Any,
    *,
    output_schema: SchemaLike,
    engine: Optional[FlinkEngine] = None,
    observer: Optional[Observer] = None,
    **options: Any,
) -> Attached:
    """Run a script over a bounded Table or DataStream.

    A worker's whole output waits in its TaskManager until its script has returned: for much of it, name a file (`akrunner.run` with
    `output=`).

    Args:
        script: as for `akrunner.run`.
        source: a PyFlink Table or DataStream.
        output_schema: columns the script writes, as for `akrunner.run`.
        engine: for its `options` and `host`.
        observer: is told the progress.
        **options: as for `akrunner.run`.
    Returns:
        the job, with the `table` of what the scripts write.
    Raises:
        ConfigError: an argument is wrong.
    """
    return _attached("batch", script, source, output_schema, engine, observer, options)


def stream(
    script: ScriptLike,
    source: Any,
    *,
    output_schema: SchemaLike,
    flush_seconds: float = 0.02,
    max_restarts: int = 0,
    engine: Optional[FlinkEngine] = None,
    observer: Optional[Observer] = None,
    **options: Any,
) -> Attached:
    """Run a script over a Table or DataStream that may never end, row by row as they come.

    With `execution.checkpointing.interval` set, no row is lost: a checkpoint waits until the script has asked for a row behind all it
    has been given, and Flink starts from the last one when a machine fails. A row may come twice then.

    Args:
        script: as for `akrunner.stream`.
        source: a PyFlink Table or DataStream.
        output_schema: columns the script writes.
        flush_seconds: the longest a row waits on its way through.
        max_restarts: how often a script that fails itself may be started again likewise.
        engine: for its `options` and `host`.
        observer: is told the progress.
        **options: as for `akrunner.stream`.
    Returns:
        the job, with the `table` of what the scripts write.
    Raises:
        ConfigError: an argument is wrong.
    """
    options["flush_seconds"] = flush_seconds
    return _attached("stream", script, source, output_schema, engine, observer, options, max_restarts)


def predict(
    model: ModelLike,
    source: Any,
    *,
    flush_seconds: float = 0.02,
    max_restarts: int = 0,
    engine: Optional[FlinkEngine] = None,
    observer: Optional[Observer] = None,
    **options: Any,
) -> Attached:
    """Run a SavedModel over a Table or DataStream that may never end; its other columns, or those of `reserved_cols`, are kept beside.

    Args:
        model: as for `akrunner.predict`.
        source: a PyFlink Table or DataStream.
        flush_seconds: the longest a row waits on its way through.
        max_restarts: how often a model that fails may be started again, as for `stream`.
        engine: for its `options` and `host`.
        observer: is told the progress.
        **options: as for `akrunner.predict`.
    Returns:
        the job, with the `table` of what the model gives.
    Raises:
        ConfigError: an argument is wrong.
    """
    _check("predict", options)
    chosen = engine if engine is not None else FlinkEngine()
    prediction = checked(PredictArguments(model, _table(source, chosen), engine=chosen, flush_seconds=flush_seconds, **options))
    job: Attached = prediction.attach(chosen, observer, max_restarts)
    return job


def _table(source: Any, engine: FlinkEngine) -> FlinkTable:
    table = table_of(source, engine)
    if not isinstance(table, FlinkTable):
        raise ConfigError(
            f"source must be a PyFlink Table or DataStream, not {type(source).__name__}; akrunner.run and akrunner.predict take the "
            "others"
        )
    return table


def _attached(
    mode: str,
    script: ScriptLike,
    source: Any,
    output_schema: SchemaLike,
    engine: Optional[FlinkEngine],
    observer: Optional[Observer],
    options: Any,
    restarts: int = 0,
) -> Attached:
    verb = "run" if mode == "batch" else mode
    _check(verb, options)
    chosen = engine if engine is not None else FlinkEngine()
    table = _table(source, chosen)
    prepared = prepare(mode, Arguments(script, table, output_schema=output_schema, engine=chosen, **options))
    return chosen.attach(prepared.job, table, observer, restarts)


def _check(verb: str, options: Mapping[str, Any]) -> None:
    """Raises: ConfigError: an option that is not there, or means nothing here."""
    for name in options:
        if name in _OF_OTHERS:
            raise ConfigError(
                f"{name}= means nothing here: rows come from a Table or DataStream and go to one; it is for akrunner.{verb}"
            )
    wrong = misfit(options, verb, set(carried(verb)) - _OF_OTHERS)
    if wrong is not None:
        raise ConfigError(wrong)
