"""TFTableModelTrainer: `fit` gives a TFTableModelPredictor."""

import json

import iris

from akrunner.alink import Pipeline, RandomTableSourceBatchOp, TFTableModelTrainer


def main():
    source = RandomTableSourceBatchOp(numRows=600, numCols=2).select("*, CASE WHEN col0 > col1 THEN 1. ELSE 0. END AS label")
    params = {"featureCols": json.dumps(["col0", "col1"]), "labelCol": "label", "batch_size": 32, "num_epochs": 40}
    trainer = TFTableModelTrainer(
        mainScriptFile=str(iris.HERE / "scripts" / "tf_dnn_train.py"),
        userParams=params,
        outputSchemaStr="class_ids long",
        signatureDefKey="predict",
        numWorkers=1,
        numPSs=0,
    )
    predicted = Pipeline().add(trainer).fit(source).transform(source)
    ((share,),) = predicted.select("AVG(CASE WHEN class_ids = label THEN 1.0 ELSE 0.0 END)").collect()
    print("accuracy:", float(share))
    return float(share)


if __name__ == "__main__":
    main()
