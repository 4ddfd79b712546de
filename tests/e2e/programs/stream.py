"""A user's PyFlink program: a stream with checkpoints. argv: address of a cluster, interpreter of the tasks, script, directory of the
rows, how many, how many a second, how often its script may be started again, savepoint to start from or "". Prints what came of it."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyflink.common import Configuration
from pyflink.table import StreamTableEnvironment

import akrunner
from akrunner import flink
from akrunner.engines.flink.rest import Address
from akrunner.engines.flink.submit import environment_of

MASTER, PYTHON, SCRIPT, OUT, ROWS, RATE, RESTARTS, SAVEPOINT = sys.argv[1:]
configuration = Configuration()
configuration.set_string("execution.checkpointing.interval", "500 ms")
configuration.set_string("restart-strategy.type", "fixed-delay")
configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
configuration.set_string("restart-strategy.fixed-delay.delay", "100 ms")
if SAVEPOINT:
    configuration.set_string("execution.state-recovery.path", SAVEPOINT)
environment = environment_of(configuration, Address.of(MASTER).flink_options)
environment.set_parallelism(2)
t_env = StreamTableEnvironment.create(environment)
t_env.execute_sql(
    f"CREATE TABLE clock (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{RATE}', 'fields.a.kind' = 'sequence',"
    f" 'fields.a.start' = '0', 'fields.a.end' = '{int(ROWS) - 1}')"
)
t_env.execute_sql(f"CREATE TABLE kept (a BIGINT) WITH ('connector' = 'filesystem', 'path' = '{OUT}', 'format' = 'csv')")


def tell(name: str, value: Any) -> None:
    print("TOLD " + json.dumps([name, value]), flush=True)


options = {"output_schema": "a bigint", "data_format": "columns", "python_env": PYTHON}
for name, wrong in (
    ("a parameter server", {"num_workers": 2, "num_ps": 1}),
    ("a script of whole tables", {"run": True}),
):
    try:
        made = flink.run if wrong.pop("run", False) else flink.stream
        made(SCRIPT, t_env.from_path("clock"), **options, **wrong)
    except akrunner.ConfigError as e:
        tell(name, str(e))
job = flink.stream(
    SCRIPT,
    t_env.from_path("clock"),
    num_workers=2,
    max_restarts=int(RESTARTS),
    user_params={"fails": None if SAVEPOINT else 3 if RESTARTS == "1" else 0},
    **options,
)
result = job.table.execute_insert("kept")
tell("job", str(result.get_job_client().get_job_id()))
try:
    outcome = job.wait(150)
    tell("outcome", [outcome.stats.attempt, outcome.stats.warnings, outcome.stats.rows_in, outcome.stats.rows_out])
except akrunner.AkrunnerError as e:
    tell("error", [type(e).__name__, str(e)])
try:
    result.wait(20_000)
    tell("Flink", "finished")
except Exception as e:
    tell("Flink", str(e))
