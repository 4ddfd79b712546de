# ruff: noqa: F403, F405
"""TensorFlowBatchOp: Alink's own example, with only the import line changed."""

import json
import pathlib

from akrunner.alink import *

SCRIPT = str(pathlib.Path(__file__).parent / "scripts" / "tf_dnn_batch.py")


def main():
    source = RandomTableSourceBatchOp().setNumRows(100).setNumCols(10)
    colNames = source.getColNames()
    label = "label"
    userParams = {"featureCols": json.dumps(colNames), "labelCol": label, "batch_size": 16, "num_epochs": 1}
    tensorFlowBatchOp = (
        TensorFlowBatchOp()
        .setUserFiles([SCRIPT])
        .setMainScriptFile(SCRIPT)
        .setUserParams(json.dumps(userParams))
        .setOutputSchemaStr("model_id long, model_info string")
        .setNumWorkers(1)
        .setNumPSs(0)
    )
    source = source.select("*, case when RAND() > 0.5 then 1. else 0. end as label").link(tensorFlowBatchOp).print()
    return source


if __name__ == "__main__":
    main()
