"""A user's PyFlink program without the Java operators. argv: address of a cluster, interpreter of the tasks, directory of the scripts.
Prints what came of each job."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from pyflink.common import Configuration
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, StreamTableEnvironment

import akrunner
from akrunner import flink
from akrunner.engines.flink.program import bridge
from akrunner.engines.flink.program.submit import environment_of
from akrunner.engines.flink.rest import Address

MASTER, PYTHON, SCRIPTS = sys.argv[1:]
environment = environment_of(Configuration(), Address.of(MASTER).flink_options, brings_python=False)
environment.set_parallelism(2)
t_env = StreamTableEnvironment.create(environment)
numbers = t_env.from_elements([(i, i / 2) for i in range(1000)], ["a", "x"])
# a literal of bytes is nothing PyFlink's own functions take
blobs = t_env.from_elements([(bytearray(b"\0\xff"),)], DataTypes.ROW([DataTypes.FIELD("y", DataTypes.BYTES())]))
typed = t_env.sql_query(
    "SELECT * FROM (VALUES (CAST(1 AS TINYINT), CAST(2 AS SMALLINT), 3, CAST(4 AS BIGINT), CAST(1.5 AS FLOAT), CAST(2.5 AS DOUBLE), TRUE,"
    " 'häß', CAST(NULL AS DOUBLE), ARRAY[1, 2, 3], ARRAY['x', 'yz'], TIMESTAMP '2026-01-02 03:04:05.123456', DATE '2026-01-02',"
    " CAST(12 AS DECIMAL(10, 0)))) AS T(i8, i16, i32, i64, f32, f64, b, s, n, a, t, ts, d, whole),"
    f" {blobs}"
)
WRITES = (
    "b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double, s string, y binary, ts timestamp, dt date,"
    " a FLOAT_TENSOR, u UBYTE_TENSOR, t STRING_TENSOR, n string"
)
ENGINE = flink.FlinkEngine(java_operators=False)


def tell(name: str, value: Any) -> None:
    print("TOLD " + json.dumps([name, value]), flush=True)


def script(name: str) -> str:
    return f"{SCRIPTS}/{name}.py"


options = {"data_format": "columns", "python_env": PYTHON}
seen = akrunner.run(script("sees"), typed, engine=ENGINE, output_schema="name string, value string", num_ps=1, **options)
tell("types in", seen.table.to_pylist())

# as in tables.py: the program goes on in another thread of Java
connections = get_gateway()._gateway_client.deque
taken = [connections.pop() for _ in range(len(connections))]
job = flink.run(script("writes"), numbers.limit(1), output_schema=WRITES, engine=ENGINE, **options)
columns = t_env.sql_query(f"SELECT b, i8, i16, i32, i64, f, d, s, y, CAST(ts AS STRING), dt, a, u, t, n FROM {job.table}")
with columns.execute().collect() as rows:
    tell("types out", [[repr(value) for value in row] for row in rows])
job.wait(60)

t_env.execute_sql(
    "CREATE TABLE clock (i BIGINT, x DOUBLE) WITH ('connector' = 'datagen', 'rows-per-second' = '500', 'fields.i.kind' = 'sequence',"
    " 'fields.i.start' = '0', 'fields.i.end' = '999')"
)
ticking = t_env.sql_query("SELECT i AS a, x FROM clock")
# a Flink whose classes inside are others
source, bridge._source = bridge._source, lambda name: source(name).replace("ArrowSerializer", "NoSuchSerializer")
bridge.operators_compile.cache_clear()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    job = flink.stream(script("doubles"), ticking, num_workers=2, output_schema="a bigint, x double", **options)
bridge._source = source
tell("said", [str(one.message) for one in said if one.category is RuntimeWarning])
tell("a stream to a table", int(job.table.to_pandas()["a"].sum()))
tell("shares", list(job.wait(60).stats.shares))

job = flink.run(script("raises"), numbers, output_schema="a bigint", engine=ENGINE, python_env=PYTHON)
try:
    job.table.execute().wait()
except Exception as e:
    tell("Flink says", "ValueError: bad luck" in str(e))

checkpoints = Configuration()
checkpoints.set_string("execution.checkpointing.interval", "1 s")
other = StreamTableEnvironment.create(environment_of(checkpoints, Address.of(MASTER).flink_options))
try:
    flink.stream(
        script("raises"), other.from_elements([(1,)], ["a"]), output_schema="a bigint", engine=ENGINE, python_env=PYTHON
    )
except akrunner.ConfigError as e:
    tell("checkpoints", str(e))
# other programs may run in this process
bridge.operators_compile.cache_clear()
