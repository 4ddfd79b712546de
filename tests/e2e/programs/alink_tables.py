"""Alink's operators on tables of Flink's. argv: address of a cluster, interpreter of the tasks, directory of the scripts. Prints what came
of it."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import DataTypes, StreamTableEnvironment

import akrunner
from akrunner.alink import (
    BatchOperator,
    CsvSinkBatchOp,
    MemSourceBatchOp,
    TensorFlow2BatchOp,
    TFSavedModelPredictBatchOp,
    resetEnv,
    useRemoteEnv,
)

MASTER, PYTHON, SCRIPTS = sys.argv[1:]
host, _, port = MASTER.partition(":")


def tell(name: str, value: Any) -> None:
    print("TOLD " + json.dumps([name, value]), flush=True)


environment = useRemoteEnv(host, int(port), 2)
people = MemSourceBatchOp([(1, "a", 1.5), (2, "b", None), (3, "a", 4.0)], "id BIGINT, `kind` STRING, x DOUBLE")
grouped = people.groupBy("kind", "kind, COUNT(*) AS n, JSON_OBJECT(KEY 'most' VALUE MAX(id)) AS j")
tell("schema", grouped.getSchemaStr())
# JSON_OBJECT is Flink's
tell("Flink's SQL", sorted(grouped.collect()))
tell("ordered", people.orderBy("id", limit=2, order="desc").as_("a, b, c").collect())
more = people.join(people.select("id AS other, x AS y").where("y IS NOT NULL"), "a.id = b.other", "a.id, b.y")
tell("joined", sorted(more.collect()))
tell("anti", people.join(more.alias(["other", "y"]), "a.id = b.other", "a.id", "ANTI").collect())
tell("others", [len(people.unionAll(people).distinct().collect()), len(people.firstN(2).collect())])
dice = people.unionAll(people, people, people).select("id, RAND() AS r")
low, high = dice.where("r < 0.5"), dice.where("r >= 0.5")
tell("drawn once", len(low.collect()) + len(high.collect()))

t_env = environment.flink.environment
rows = t_env.from_elements(
    [(i, i / 2) for i in range(1000)],
    DataTypes.ROW([DataTypes.FIELD("a", DataTypes.BIGINT()), DataTypes.FIELD("x", DataTypes.DOUBLE())]),
)
some = BatchOperator.fromTable(rows).where("MOD(a, 2) = 0")
doubled = TensorFlow2BatchOp(
    mainScriptFile=f"{SCRIPTS}/doubles.py", pythonEnv=PYTHON, outputSchemaStr="a BIGINT, x DOUBLE", numWorkers=2, numPSs=0
).linkFrom(some)
tell("a script over Flink's table", doubled.groupBy("MOD(a, 2)", "COUNT(*) AS n, SUM(a) AS a, SUM(x) AS x").collect())
doubled.link(CsvSinkBatchOp(filePath=f"{SCRIPTS}/doubled.csv"))
BatchOperator.execute()
with open(f"{SCRIPTS}/doubled.csv") as f:
    tell("a file", len(f.readlines()))
model = TFSavedModelPredictBatchOp(
    modelPath=f"{SCRIPTS}/double", outputSchemaStr="y DOUBLE", reservedCols=["a"], pythonEnv=PYTHON, selectedCols=["x"]
)
tell("predicted", sorted(model.linkFrom(some.where("a < 6")).collect()))
other = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
for name, wrong in (
    ("wrong SQL", lambda: people.select("nothing").collect()),
    ("another environment", lambda: BatchOperator.fromTable(other.from_elements([(1,)], ["a"]))),
):
    try:
        wrong()
    except akrunner.ConfigError as e:
        tell(name, str(e))
resetEnv()
try:
    BatchOperator.fromTable(rows)
except akrunner.ConfigError as e:
    tell("no environment", str(e))
