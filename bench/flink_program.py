"""A PyFlink program (`.envs/program`) that times itself: argv: what, interpreter of the tasks, directory of the scripts, rows.

Prints seconds for so many rows of one bigint and ten doubles: `rows` through PyFlink's own ProcessFunction, `table` through a script of
ours; or `latency`, milliseconds of each row from the source through a script and back to Flink.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

os.environ["_python_worker_execution_mode"] = "process"  # as on a cluster

from pyflink.common import Types
from pyflink.common.watermark_strategy import WatermarkStrategy
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.table import StreamTableEnvironment, Table

import akrunner
from akrunner import flink

WHAT, PYTHON, SCRIPTS, COUNT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
PARALLELISM = 2


class Touch(ProcessFunction):  # type: ignore[misc]
    """Looks at every row, as a person's first ProcessFunction would."""

    def open(self, runtime_context: Any) -> None:
        self.total = 0

    def process_element(self, value: Any, ctx: Any) -> Iterator[int]:
        self.total += value[0]
        return iter(())


def table_of(environment: StreamExecutionEnvironment, t_env: StreamTableEnvironment, count: int) -> Table:
    """Made inside Java, so that the source costs next to nothing."""
    numbers = environment.from_source(
        NumberSequenceSource(1, count), WatermarkStrategy.for_monotonous_timestamps(), "numbers", Types.LONG()
    )
    t_env.create_temporary_view("numbers", t_env.from_data_stream(numbers))
    column = t_env.from_path("numbers").get_schema().get_field_names()[0]
    doubles = ", ".join(f"CAST(`{column}` AS DOUBLE) * {i + 0.5} AS x{i}" for i in range(10))
    return t_env.sql_query(f"SELECT `{column}` AS id, {doubles} FROM numbers")


def main() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(PARALLELISM)
    t_env = StreamTableEnvironment.create(environment)
    if WHAT == "latency":
        print(json.dumps(latency(t_env)))
        return
    table = table_of(environment, t_env, COUNT)
    began = time.perf_counter()
    if WHAT == "rows":
        t_env.to_data_stream(table).process(Touch(), output_type=Types.INT()).print()
        environment.execute()
    else:
        options = {"num_workers": PARALLELISM, "data_format": "columns", "python_env": PYTHON}
        result = akrunner.run(f"{SCRIPTS}/touch.py", table, engine="flink", **options)
        assert result.stats.rows_in == COUNT
    print(json.dumps(time.perf_counter() - began))


def time_of(text: str) -> datetime:
    """As text: on its way to Python a timestamp may lose or win a second."""
    return datetime.fromisoformat(text)


def latency(t_env: StreamTableEnvironment) -> list[float]:
    t_env.execute_sql(
        "CREATE TABLE clock (i BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', 'fields.i.kind' = 'sequence',"
        f" 'fields.i.start' = '1', 'fields.i.end' = '{COUNT}')"
    )
    stamped = t_env.sql_query("SELECT i, CAST(CURRENT_ROW_TIMESTAMP() AS TIMESTAMP(3)) AS sent FROM clock")
    job = flink.stream(
        f"{SCRIPTS}/echo.py", stamped, output_schema="i bigint, sent timestamp(3)", num_workers=PARALLELISM,
        python_env=PYTHON, flush_seconds=0.02,
    )  # fmt: skip
    back = t_env.sql_query(
        "SELECT i, CAST(sent AS STRING), CAST(CAST(CURRENT_ROW_TIMESTAMP() AS TIMESTAMP(3)) AS STRING)"
        f" FROM {job.table} WHERE MOD(i, 20) = 0"
    )
    # every twentieth: collect() takes a few hundred rows a second, and would hold all others back
    with back.execute().collect() as rows:
        taken = [(row[0], (time_of(row[2]) - time_of(row[1])).total_seconds() * 1000) for row in rows]
    # only the last quarter: the rows before it had piled up while the tasks started, or came while the pile was worked off
    return [late for i, late in taken if i > COUNT * 3 // 4]


main()
