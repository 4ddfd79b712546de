"""TF2TableModelTrainBatchOp trains; its model is a table, which TFTableModelPredictBatchOp and -StreamOp run. Written to a
directory, the same model runs in TFSavedModelPredictBatchOp and -StreamOp."""

import pathlib

import iris

import akrunner
from akrunner.alink import (
    CsvSinkStreamOp,
    StreamOperator,
    TF2TableModelTrainBatchOp,
    TFSavedModelPredictBatchOp,
    TFSavedModelPredictStreamOp,
    TFTableModelPredictBatchOp,
    TFTableModelPredictStreamOp,
)


def main(folder="iris-model"):
    folder = pathlib.Path(folder)
    model = (
        TF2TableModelTrainBatchOp()
        .setMainScriptFile(str(iris.HERE / "scripts" / "train_iris.py"))
        .setUserParams(iris.PARAMS)
        .setNumWorkers(1)
        .setNumPSs(0)
        .setPythonEnv("tf2")
        .linkFrom(iris.table())
    )
    predict = dict(selectedCols=iris.FEATURES, outputSchemaStr=iris.PREDICTED)
    predicted = TFTableModelPredictBatchOp(reservedCols=["id", "species"], **predict).linkFrom(model, iris.table())
    print("accuracy, from the table:", iris.accuracy(predicted))

    akrunner.Model.from_table(model.collectToTable()).save(folder, overwrite=True)
    again = TFSavedModelPredictBatchOp(modelPath=str(folder), **predict).linkFrom(iris.table())
    print("accuracy, from the directory:", iris.accuracy(again))

    # CSV has no arrays: the class is enough
    TFTableModelPredictStreamOp(model, **predict).linkFrom(iris.stream()).select("id, species, class").link(
        CsvSinkStreamOp(filePath=str(folder / "table.csv"), overwriteSink=True)
    )
    TFSavedModelPredictStreamOp(modelPath=str(folder), **predict).linkFrom(iris.stream()).select("id, species, class").link(
        CsvSinkStreamOp(filePath=str(folder / "directory.csv"), overwriteSink=True)
    )
    StreamOperator.execute()


if __name__ == "__main__":
    main()
