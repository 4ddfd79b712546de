"""Iris in a PyFlink program: a Table goes through a TensorFlow script and comes out as a Table, which Flink's SQL goes on with.

    flink run -m HOST:PORT -pyclientexec PROGRAM_PYTHON -pyexec FLINK_PYTHON -py examples/flink/iris_table.py TENSORFLOW_PYTHON

PROGRAM_PYTHON has akrunner and PyFlink, FLINK_PYTHON (on the cluster) PyFlink, TENSORFLOW_PYTHON (there too) TensorFlow. Or, on a cluster that comes
and goes with the program: `_python_worker_execution_mode=process PROGRAM_PYTHON examples/flink/iris_table.py TENSORFLOW_PYTHON`
"""

import csv
import pathlib
import sys

from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

from akrunner import flink

IRIS = pathlib.Path(__file__).parents[1] / "iris"


def main() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    t_env = StreamTableEnvironment.create(environment)
    # in place of whatever your tables come from: Kafka, Hive, files
    with open(IRIS / "iris.csv") as f:
        names, *rows = csv.reader(f)
    flowers = t_env.from_elements([(int(i), *map(float, sizes), species) for i, *sizes, species in rows], names)

    job = flink.run(
        IRIS / "iris.py",
        flowers,
        output_schema="id bigint, species string, predicted string, p double",
        user_params={"epochs": 15},
        python_env=sys.argv[1] if sys.argv[1:] else None,
    )
    # nothing has run so far; executing the table does it
    correct = "SUM(CASE WHEN species = predicted THEN 1 ELSE 0 END)"
    counted = t_env.sql_query(f"SELECT species, COUNT(*) AS flowers, {correct} AS correct FROM {job.table} GROUP BY species")
    with counted.execute().collect() as changes:
        latest = {species: (flowers, correct) for species, flowers, correct in changes}
    for species, (flowers, correct) in sorted(latest.items()):
        print(f"{species}: {correct} of {flowers}")
    stats = job.wait().stats
    print(f"{stats.rows_in} rows in, {stats.rows_out} out, {stats.main_seconds:.1f} s in main()")


if __name__ == "__main__":
    main()
