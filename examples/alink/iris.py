"""What the examples of models share."""

import json
import pathlib

from akrunner.alink import CsvSourceBatchOp, CsvSourceStreamOp

HERE = pathlib.Path(__file__).parent
FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = ["setosa", "versicolor", "virginica"]
SCHEMA = "id bigint, sepal_length double, sepal_width double, petal_length double, petal_width double, species string"
PREDICTED = "p FLOAT_TENSOR, class bigint"
PARAMS = json.dumps({"featureCols": json.dumps(FEATURES), "labelCol": "species", "species": json.dumps(SPECIES), "epochs": 30})


def table():
    """The flowers."""
    return CsvSourceBatchOp().setFilePath(str(HERE.parent / "iris" / "iris.csv")).setSchemaStr(SCHEMA).setIgnoreFirstLine(True)


def stream():
    """The flowers, one after another."""
    return CsvSourceStreamOp().setFilePath(str(HERE.parent / "iris" / "iris.csv")).setSchemaStr(SCHEMA).setIgnoreFirstLine(True)


def accuracy(predicted):
    """Of rows with `species` and `class`, a batch operator."""
    names = "[" + ", ".join(f"'{name}'" for name in SPECIES) + "]"
    ((share,),) = predicted.select(f"AVG(CASE WHEN {names}[class + 1] = species THEN 1.0 ELSE 0.0 END) AS accuracy").collect()
    return float(share)
