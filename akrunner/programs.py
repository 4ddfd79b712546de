"""The functions behind `akrunner.flink`, for jobs of PyFlink programs. `akrunner.flink` itself is generated."""

from __future__ import annotations

import dataclasses
from typing import Any

from akrunner.engines.base import Observer
from akrunner.engines.flink.host.attached import Attached
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.engines.flink.host.table import FlinkTable
from akrunner.errors import ConfigError
from akrunner.io.limits import in_time
from akrunner.prepare.arguments import Arguments
from akrunner.prepare.job import prepare
from akrunner.running.inputs import table_of
from akrunner.serving.arguments import PredictArguments
from akrunner.serving.job import checked
from akrunner.spec import Mode


def scripted(given: Arguments, observer: Observer | None) -> Attached:
    return _attached("batch", given, observer, 0)


def streamed(given: Arguments, observer: Observer | None, max_restarts: int) -> Attached:
    return _attached("stream", given, observer, max_restarts)


def predicted(given: PredictArguments, observer: Observer | None, max_restarts: int) -> Attached:
    engine = given.engine if given.engine is not None else FlinkEngine()
    # the time of the job itself begins when the program executes the table
    with in_time(given.timeout):
        prediction = checked(dataclasses.replace(given, source=_table(given.source, engine), engine=engine))
    job: Attached = prediction.attach(engine, observer, max_restarts)
    return job


def _attached(mode: Mode, given: Arguments, observer: Observer | None, restarts: int) -> Attached:
    engine = given.engine if given.engine is not None else FlinkEngine()
    table = _table(given.source, engine)
    with in_time(given.timeout):
        prepared = prepare(mode, dataclasses.replace(given, source=table, engine=engine))
    return engine.attach(prepared.job, table, observer, restarts)


def _table(source: Any, engine: FlinkEngine) -> FlinkTable:
    table = table_of(source, engine)
    if not isinstance(table, FlinkTable):
        raise ConfigError(
            f"source must be a PyFlink Table or DataStream, not {type(source).__name__}; akrunner.run and akrunner.predict "
            "take the others"
        )
    return table
