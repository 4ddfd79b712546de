"""Keras models that are a list of layers, on any TensorFlow: KerasSequentialClassifierTrainBatchOp,
KerasSequentialClassifierPredictBatchOp and KerasSequentialClassifierPredictStreamOp."""

import iris

from akrunner.alink import (
    CsvSinkStreamOp,
    KerasSequentialClassifierPredictBatchOp,
    KerasSequentialClassifierPredictStreamOp,
    KerasSequentialClassifierTrainBatchOp,
    MemSourceStreamOp,
    StreamOperator,
)

LAYERS = ["Dense(16, activation='relu')", "Dense(16, activation='relu')"]
FEATURES = "id, species, petal_length, [" + ", ".join(iris.FEATURES) + "]::FLOAT[4] AS features"


def main(output="predicted.csv", python_env="tf2"):
    flowers = iris.table().select(FEATURES)
    trainer = (
        KerasSequentialClassifierTrainBatchOp()
        .setTensorCol("features")
        .setLabelCol("species")
        .setLayers(LAYERS)
        .setOptimizer("Adam(learning_rate=0.02)")
        .setNumEpochs(40)
        .setBatchSize(16)
        .setPythonEnv(python_env)
    )
    model = trainer.linkFrom(flowers)
    predictor = KerasSequentialClassifierPredictBatchOp(
        predictionCol="said", predictionDetailCol="detail", reservedCols=["species"], pythonEnv=python_env
    )
    rows = predictor.linkFrom(model, flowers).collect()
    right = sum(species == said for species, said, _ in rows) / len(rows)
    print("accuracy:", right, "and", rows[0])

    # a stream of Alink's text of tensors
    some = MemSourceStreamOp([(1, "FLOAT#4#5.1 3.5 1.4 0.2 "), (2, "FLOAT#4#6.3 3.3 6.0 2.5 ")], "id bigint, features string")
    stream = KerasSequentialClassifierPredictStreamOp(model, predictionCol="said", reservedCols=["id"], pythonEnv=python_env)
    stream.linkFrom(some).link(CsvSinkStreamOp(filePath=output, overwriteSink=True))
    StreamOperator.execute()
    return right


if __name__ == "__main__":
    main()
