"""A PyFlink program for `flink run -py`: argv: interpreter of the tasks, script."""

from __future__ import annotations

import sys

from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

import akrunner
from akrunner import flink

PYTHON, SCRIPT = sys.argv[1:]
environment = StreamExecutionEnvironment.get_execution_environment()
environment.set_parallelism(2)
t_env = StreamTableEnvironment.create(environment)
numbers = t_env.from_elements([(i, i / 2) for i in range(100)], ["a", "x"])
options = {"num_workers": 2, "data_format": "columns", "output_schema": "a bigint, x double", "python_env": PYTHON}

result = akrunner.run(SCRIPT, numbers, engine="flink", **options)
print("TO THE CALLER", sum(result.table["a"].to_pylist()))
job = flink.run(SCRIPT, numbers, **options)
with job.table.execute().collect() as rows:
    print("TO A TABLE", sum(row[0] for row in rows))
