"""A user's PyFlink program, of what most of them do, for `tests.java`. argv: address of a cluster, interpreter of the tasks, a script that
writes what it reads."""

from __future__ import annotations

import contextlib
import sys

import psutil
from py4j.protocol import Py4JError
from pyflink.common import Configuration
from pyflink.java_gateway import get_gateway
from pyflink.table import StreamTableEnvironment

import akrunner
from akrunner import flink
from akrunner.engines.flink.program.submit import environment_of
from akrunner.engines.flink.rest import Address

MASTER, PYTHON, SCRIPT = sys.argv[1:]
OPTIONS = {"data_format": "columns", "output_schema": "a bigint, x double", "python_env": PYTHON, "num_workers": 2}
environment = environment_of(Configuration(), Address.of(MASTER).flink_options, brings_python=False)
environment.set_parallelism(2)
t_env = StreamTableEnvironment.create(environment)
numbers = t_env.from_elements([(i, i / 2) for i in range(1000)], ["a", "x"])
akrunner.run(SCRIPT, numbers, engine=flink.FlinkEngine(), timeout=100, **OPTIONS)
t_env.execute_sql(
    "CREATE TABLE clock (a BIGINT, x DOUBLE) WITH ('connector' = 'datagen', 'rows-per-second' = '500', 'fields.a.kind' = 'sequence',"
    " 'fields.a.start' = '0', 'fields.a.end' = '99')"
)
job = flink.stream(SCRIPT, t_env.from_path("clock"), **OPTIONS)
seen = t_env.sql_query(f"SELECT MOD(a, 2), COUNT(*) AS n, SUM(x) AS x FROM {job.table} GROUP BY MOD(a, 2)")
with seen.execute().collect() as rows:
    list(rows)
job.wait(60)
# Java archives what it has loaded when it ends by itself
(java,) = [child for child in psutil.Process().children() if "java" in child.name()]
with contextlib.suppress(Py4JError, OSError):
    # it does not come back
    get_gateway().jvm.System.exit(0)
java.wait(100)
