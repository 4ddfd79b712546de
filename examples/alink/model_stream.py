"""A prediction stream that takes a new model while it runs. AppendModelStreamFileSinkBatchOp, in another program, puts models into a
model stream; a predictor of streams looks there: setModelStreamFilePath(folder), or linked from a ModelStreamFileSourceStreamOp."""

import subprocess
import sys

import iris
from keras_sequential import FEATURES

from akrunner.alink import (
    AkSinkBatchOp,
    AkSourceBatchOp,
    AppendModelStreamFileSinkBatchOp,
    BatchOperator,
    CsvSinkStreamOp,
    KerasSequentialRegressorPredictStreamOp,
    KerasSequentialRegressorTrainBatchOp,
    ModelStreamFileSourceStreamOp,
    RandomTableSourceStreamOp,
    StreamOperator,
)


def train(folder, epochs):
    """One model of a few rows' training, and one of more."""
    for name, count in (("first", 1), ("second", epochs)):
        trainer = KerasSequentialRegressorTrainBatchOp(
            tensorCol="features",
            labelCol="petal_length",
            layers=["Dense(8, activation='relu')"],
            numEpochs=count,
            batchSize=16,
            pythonEnv="tf2",
        )
        model = trainer.linkFrom(iris.table().select(FEATURES))
        model.link(AkSinkBatchOp(filePath=f"{folder}-{name}.ak", overwriteSink=True))
    BatchOperator.execute()


def put(folder):
    """What another program does when it has a new model."""
    AkSourceBatchOp(filePath=f"{folder}-second.ak").link(AppendModelStreamFileSinkBatchOp(filePath=folder, numKeepModel=3))
    BatchOperator.execute()


def main(folder="models", rows=400, epochs=30):
    train(folder, epochs)
    later = subprocess.Popen([sys.executable, __file__, folder])
    source = RandomTableSourceStreamOp(maxRows=rows, numCols=1, timePerSample=0.05)
    flowers = source.select("num, [5.1, 3.5, 1.4, 0.2]::FLOAT[4] AS features")
    predictor = KerasSequentialRegressorPredictStreamOp().setPredictionCol("said").setReservedCols(["num"])
    predictor.setModelFilePath(f"{folder}-first.ak")
    predictor.linkFrom(flowers, ModelStreamFileSourceStreamOp(filePath=folder, scanInterval=0.5))
    predictor.link(CsvSinkStreamOp(filePath=f"{folder}.csv", overwriteSink=True))
    StreamOperator.execute()
    later.wait()


if __name__ == "__main__":
    put(sys.argv[1]) if len(sys.argv) > 1 else main()
