"""A user's PyFlink program: argv: address of a cluster, interpreter of the tasks, directory of the scripts. Prints what came of each job."""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, Schema, StreamTableEnvironment, Table, TableDescriptor, TableEnvironment

import akrunner
from akrunner import flink
from akrunner.engines.flink.program.submit import environment_of
from akrunner.engines.flink.rest import Address

MASTER, PYTHON, SCRIPTS = sys.argv[1:]
ENGINE = flink.FlinkEngine()
environment = environment_of(Configuration(), Address.of(MASTER).flink_options, brings_python=False)
environment.set_parallelism(2)
t_env = StreamTableEnvironment.create(environment)
numbers = t_env.from_elements([(i, i / 2) for i in range(1000)], ["a", "x"])
typed = t_env.sql_query(
    "SELECT * FROM (VALUES (CAST(1 AS TINYINT), CAST(2 AS SMALLINT), 3, CAST(4 AS BIGINT), CAST(1.5 AS FLOAT), CAST(2.5 AS DOUBLE), TRUE,"
    " 'häß', CAST(NULL AS DOUBLE), X'00ff', ARRAY[1, 2, 3], ARRAY['x', 'yz'], TIMESTAMP '2026-01-02 03:04:05.123456', DATE '2026-01-02',"
    " CAST(12 AS DECIMAL(10, 0)))) AS T(i8, i16, i32, i64, f32, f64, b, s, n, y, a, t, ts, d, whole)"
)
WRITES = (
    "b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double, s string, y binary, ts timestamp, dt date,"
    " a FLOAT_TENSOR, u UBYTE_TENSOR, t STRING_TENSOR, n string"
)


def tell(name: str, value: Any) -> None:
    print("TOLD " + json.dumps([name, value]), flush=True)


def script(name: str) -> str:
    return f"{SCRIPTS}/{name}.py"


def run(name: str, source: Any, **options: Any) -> akrunner.Result:
    return akrunner.run(script(name), source, engine=ENGINE, python_env=PYTHON, timeout=200, **options)


def inserted(table: Table) -> list[list[float]]:
    """The rows of a table of numbers. `collect` of so many takes more of the processor than their job: thirty calls of Java for each, and a
    question to the cluster every 100 ms."""
    with tempfile.TemporaryDirectory() as folder:
        names = zip(table.get_schema().get_field_names(), table.get_schema().get_field_data_types())
        schema = functools.reduce(lambda made, column: made.column(*column), names, Schema.new_builder())
        sink = TableDescriptor.for_connector("filesystem").schema(schema.build()).option("path", folder).format("csv")
        table.execute_insert(sink.build()).wait()
        files = [file for file in Path(folder).iterdir() if not file.name.startswith(".")]
        return [[float(cell) for cell in line.split(",")] for file in files for line in file.read_text().splitlines()]


def refused(name: str, call: Any) -> None:
    try:
        call()
    except (akrunner.AkrunnerError, TypeError) as e:
        tell(name, [type(e).__name__, str(e)])


result = run("doubles", numbers, num_workers=2, num_ps=1, data_format="columns", output_schema="a bigint, x double")
tell(
    "to the caller",
    [sorted(result.table["a"].to_pylist()) == list(range(1000)), list(result.stats.shares), result.stats.rows_in],
)
tell("sum", sum(result.table["x"].to_pylist()))
tell("types in", run("sees", typed, data_format="columns", output_schema="name string, value string").table.to_pylist())

stream = environment.from_collection(
    [(1, "a"), (2, "b")], type_info=Types.ROW_NAMED(["i", "s"], [Types.LONG(), Types.STRING()])
)
tell("a DataStream, as Examples", run("sees", stream, output_schema="name string, value string").table.to_pylist())

refused("too many", lambda: run("doubles", numbers, num_workers=50, output_schema="a bigint, x double"))
refused("select", lambda: run("doubles", numbers, output_schema="a bigint, x double", select="SELECT a FROM input"))
refused("local", lambda: akrunner.run(script("doubles"), numbers, python_env=PYTHON, output_schema="a bigint, x double"))
refused("map", lambda: run("sees", t_env.sql_query("SELECT MAP['a', 1] AS m"), output_schema="name string, value string"))
refused(
    "decimal", lambda: run("sees", t_env.sql_query("SELECT CAST(1.25 AS DECIMAL(10, 2)) AS m"), output_schema="name string")
)
other = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
refused("batch", lambda: run("sees", other.from_elements([(1,)], ["a"]), output_schema="name string, value string"))

job = flink.run(
    script("doubles"),
    numbers,
    num_workers=2,
    num_ps=1,
    data_format="columns",
    output_schema="a bigint, x double",
    python_env=PYTHON,
)
found = inserted(job.table)
tell("to a table", [len(found), sum(row[0] for row in found), sum(row[1] for row in found)])
tell("waited", [job.wait(60).stats.rows_out, job.wait().stats.rows_in])

job = flink.run(script("writes"), numbers.limit(1), data_format="columns", output_schema=WRITES, python_env=PYTHON)
seen = t_env.sql_query(f"SELECT b, i8, i16, i32, i64, f, d, s, y, CAST(ts AS STRING), dt, a, u, t, n FROM {job.table}")
with seen.execute().collect() as rows:
    tell("types out", [[repr(value) for value in row] for row in rows])
job.wait(60)

moment = t_env.sql_query("SELECT TO_TIMESTAMP_LTZ(1700000000123, 3) AS z")
job = flink.run(
    script("moves"), moment, data_format="columns", output_schema="z timestamp(6) with time zone", python_env=PYTHON
)
seen = t_env.sql_query(
    f"SELECT z = TO_TIMESTAMP_LTZ(1700000000123, 3), z > TO_TIMESTAMP_LTZ(1700000000122, 3) FROM {job.table}"
)
with seen.execute().collect() as rows:
    tell("a moment", [list(row) for row in rows])
job.wait(60)

# py4j's connection is taken, as it is while a thread that ends says which objects are not used any more: the program goes on over another one, and so in
# another thread of Java, where Flink's planner knows nothing. `taken` keeps the connection open
connections = get_gateway()._gateway_client.deque
taken = [connections.pop() for _ in range(len(connections))]
try:
    # as Flink itself fails there (FLINK-23020); akrunner mends what this leaves behind
    t_env._j_tenv.toDataStream(numbers._j_table)
except Exception as e:
    tell("FLINK-23020", "metadataHandlerProvider" in str(e))
job = flink.run(script("raises"), numbers, output_schema="a bigint", python_env=PYTHON)
try:
    job.table.execute().wait()
except Exception as e:
    tell("Flink says", "ValueError: bad luck" in str(e))
refused("wait says", lambda: job.wait(60))

t_env.execute_sql("CREATE TABLE nowhere (a BIGINT, x DOUBLE) WITH ('connector' = 'blackhole')")
t_env.execute_sql(
    f"CREATE TABLE gone (a BIGINT, x DOUBLE) WITH ('connector' = 'filesystem', 'path' = '{SCRIPTS}/none', 'format' = 'csv')"
)
options = {"output_schema": "a bigint, x double", "data_format": "columns", "python_env": PYTHON}
job = flink.run(script("doubles"), t_env.from_path("gone"), engine=flink.FlinkEngine(slot_timeout=100), **options)
result = job.table.execute_insert("nowhere")
refused("never ran", lambda: job.wait(result=result))
job = flink.run(script("doubles"), numbers, engine=flink.FlinkEngine(slot_timeout=0.2), **options)
refused("never executed", job.wait)

kept = t_env.sql_query(
    f"SELECT a, x, CAST(a AS DECIMAL(12, 2)) AS d, CASE WHEN a > 1 THEN 's' END AS s FROM {numbers} WHERE a < 4"
)
predicted = akrunner.predict(f"{SCRIPTS}/double", kept, engine=ENGINE, python_env=PYTHON, num_workers=2)
tell("predicted", sorted([str(value) for value in row.values()] for row in predicted.table.to_pylist()))

t_env.execute_sql(
    "CREATE TABLE clock (i BIGINT, x DOUBLE) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', 'fields.i.kind' = 'sequence',"
    " 'fields.i.start' = '0', 'fields.i.end' = '999', 'fields.x.min' = '-1000', 'fields.x.max' = '1000')"
)
ticking = t_env.sql_query("SELECT i AS a, x FROM clock")
job = flink.stream(script("doubles"), ticking, data_format="columns", output_schema="a bigint, x double", python_env=PYTHON)
tell("a stream to a table", sum(row[0] for row in inserted(job.table)))
tell("its rows", job.wait(60).stats.rows_out)

job = flink.predict(
    f"{SCRIPTS}/double", t_env.from_path("clock"), output_schema="y double", reserved_cols=["i"], python_env=PYTHON
)
found = inserted(job.table)
tell("a stream predicted", [len(found), sum(row[0] for row in found), list(job.table.get_schema().get_field_names())])

t_env.execute_sql("CREATE TABLE endless (a BIGINT, x DOUBLE) WITH ('connector' = 'datagen', 'rows-per-second' = '500')")
seen = 0
with akrunner.stream(
    script("doubles"),
    t_env.from_path("endless"),
    engine=ENGINE,
    data_format="columns",
    output_schema="a bigint, x double",
    python_env=PYTHON,
) as running:
    for batch in running:
        seen += batch.num_rows
        if seen > 600:
            break
tell("an endless one", seen)

refused("misspelled", lambda: flink.run(script("doubles"), numbers, output_schema="a bigint", num_worker=2))
refused("an output", lambda: flink.predict(f"{SCRIPTS}/double", numbers, output="file.csv"))
refused("not Flink's", lambda: flink.run(script("doubles"), {"a": [1]}, output_schema="a bigint"))
