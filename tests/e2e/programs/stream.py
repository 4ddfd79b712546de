"""A user's PyFlink program: a stream with checkpoints. argv: address of a cluster, interpreter of the tasks, script, directory of the
rows, how many, how many a second, savepoint to start from or "". Prints what came of it. Without a savepoint its script fails once, is
started again, another job's script fails for good, and so does a job by a fault of akrunner's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from pyflink.common import Configuration
from pyflink.table import StreamTableEnvironment

import akrunner
from akrunner import flink
from akrunner.engines.flink.host.remote import RemoteProcess
from akrunner.engines.flink.program.submit import environment_of
from akrunner.engines.flink.rest import Address

MASTER, PYTHON, SCRIPT, OUT, ROWS, RATE, SAVEPOINT = sys.argv[1:]
OPTIONS = {"output_schema": "a bigint", "data_format": "columns", "python_env": PYTHON}


def tell(name: str, value: Any) -> None:
    print("TOLD " + json.dumps([name, value]), flush=True)


def tables(savepoint: str) -> StreamTableEnvironment:
    """An environment with checkpoints, and in it a clock and a place for its rows."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "500 ms")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    configuration.set_string("restart-strategy.fixed-delay.delay", "100 ms")
    if savepoint:
        configuration.set_string("execution.state-recovery.path", savepoint)
    # the cluster has Flink's Python, 42 MB, which one of the jobs brings all the same, as it would to another cluster
    environment = environment_of(configuration, Address.of(MASTER).flink_options, brings_python=bool(savepoint))
    environment.set_parallelism(2)
    t_env = StreamTableEnvironment.create(environment)
    t_env.execute_sql(
        f"CREATE TABLE clock (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{RATE}', 'fields.a.kind' = 'sequence',"
        f" 'fields.a.start' = '0', 'fields.a.end' = '{int(ROWS) - 1}')"
    )
    t_env.execute_sql(f"CREATE TABLE kept (a BIGINT) WITH ('connector' = 'filesystem', 'path' = '{OUT}', 'format' = 'csv')")
    return t_env


def run(t_env: StreamTableEnvironment, fails: int | None, restarts: int, told: Callable[[str, Any], None]) -> None:
    job = flink.stream(
        SCRIPT, t_env.from_path("clock"), num_workers=2, max_restarts=restarts, user_params={"fails": fails}, **OPTIONS
    )
    result = job.table.execute_insert("kept")
    told("job", str(result.get_job_client().get_job_id()))
    try:
        outcome = job.wait(150)
        told("outcome", [outcome.stats.attempt, outcome.stats.warnings, outcome.stats.rows_in, outcome.stats.rows_out])
    except akrunner.AkrunnerError as e:
        told("error", [type(e).__name__, str(e), getattr(e, "fault", False)])
    try:
        result.wait(20_000)
        told("Flink", "finished")
    except Exception as e:
        told("Flink", str(e))


clock = tables(SAVEPOINT)
for name, wrong in (
    ("a parameter server", {"num_workers": 2, "num_ps": 1}),
    ("a script of whole tables", {"run": True}),
):
    try:
        made = flink.run if wrong.pop("run", False) else flink.stream
        made(SCRIPT, clock.from_path("clock"), **OPTIONS, **wrong)
    except akrunner.ConfigError as e:
        tell(name, str(e))
if SAVEPOINT:
    run(clock, None, 0, tell)
else:
    run(clock, 3, 1, tell)
    # until somebody has looked at what it has left
    sys.stdin.read()
    run(tables(""), 0, 0, lambda name, value: tell("for good: " + name, value))

    def wrong(self: RemoteProcess, word: object) -> None:
        raise AttributeError("no such thing")

    RemoteProcess._take = wrong  # type: ignore[method-assign]
    run(tables(""), None, 3, lambda name, value: tell("a fault: " + name, value))
