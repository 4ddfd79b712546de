"""TFTableModelTrainBatchOp: a model trained with a script of TensorFlow 1, run by TensorFlow 2."""

import json

import iris

from akrunner.alink import RandomTableSourceBatchOp, TFTableModelPredictBatchOp, TFTableModelTrainBatchOp


def main():
    # whether the first number is the larger one
    source = RandomTableSourceBatchOp(numRows=600, numCols=2, idCol="id").select(
        "*, CASE WHEN col0 > col1 THEN 1. ELSE 0. END AS label"
    )
    params = {"featureCols": json.dumps(["col0", "col1"]), "labelCol": "label", "batch_size": 32, "num_epochs": 40}
    model = (
        TFTableModelTrainBatchOp()
        .setMainScriptFile(str(iris.HERE / "scripts" / "tf_dnn_train.py"))
        .setUserParams(json.dumps(params))
        .setNumWorkers(1)
        .setNumPSs(0)
        .linkFrom(source)
    )
    predicted = TFTableModelPredictBatchOp(
        selectedCols=["col0", "col1"], outputSchemaStr="class_ids long", signatureDefKey="predict"
    ).linkFrom(model, source)
    ((share,),) = predicted.select("AVG(CASE WHEN class_ids = label THEN 1.0 ELSE 0.0 END)").collect()
    print("accuracy:", float(share))
    return float(share)


if __name__ == "__main__":
    main()
