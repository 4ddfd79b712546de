"""Keras models that are a list of layers in pipelines: KerasSequentialClassifier gives a KerasSequentialClassificationModel,
KerasSequentialRegressor a KerasSequentialRegressionModel; and as operators, KerasSequentialRegressorTrainBatchOp,
KerasSequentialRegressorPredictBatchOp and KerasSequentialRegressorPredictStreamOp."""

import iris
from keras_sequential import FEATURES, LAYERS

from akrunner.alink import (
    KerasSequentialClassificationModel,
    KerasSequentialClassifier,
    KerasSequentialRegressionModel,
    KerasSequentialRegressor,
    KerasSequentialRegressorPredictBatchOp,
    KerasSequentialRegressorPredictStreamOp,
    KerasSequentialRegressorTrainBatchOp,
    LocalPredictor,
    MemSourceStreamOp,
    Pipeline,
    PipelineModel,
    Select,
    StreamOperator,
)

TRAINED = dict(
    tensorCol="features", layers=LAYERS, optimizer="Adam()", learningRate=0.02, numEpochs=40, batchSize=16, pythonEnv="tf2"
)


def main(folder="keras-pipeline"):
    flowers = iris.table()
    classifier = KerasSequentialClassifier(labelCol="species", predictionCol="said", predictionDetailCol="detail", **TRAINED)
    model = Pipeline(Select(clause=FEATURES), classifier).fit(flowers)
    model.save(folder, overwrite=True)
    again = PipelineModel.load(folder)
    assert isinstance(again._stages[1], KerasSequentialClassificationModel)
    rows = again.transform(flowers).select("species, said").collect()
    right = sum(species == said for species, said in rows) / len(rows)
    schema = "id bigint, species string, petal_length double, sepal_length double, sepal_width double, petal_width double"
    with LocalPredictor(folder, schema) as predictor:
        row = dict(zip(predictor.getOutputColNames(), predictor.map([1, None, 1.4, 5.1, 3.5, 0.2])))
    print("accuracy:", right, "and", row["said"])
    return right, row["said"]


def regression():
    lengths = iris.table().select(FEATURES)
    fitted = KerasSequentialRegressor(labelCol="petal_length", predictionCol="said", **TRAINED).fit(lengths)
    assert isinstance(fitted, KerasSequentialRegressionModel)
    trained = KerasSequentialRegressorTrainBatchOp(labelCol="petal_length", **TRAINED).linkFrom(lengths)
    predictor = KerasSequentialRegressorPredictBatchOp(predictionCol="said", reservedCols=["petal_length"])
    rows = predictor.linkFrom(trained, lengths).collect()
    some = MemSourceStreamOp([(1, [5.1, 3.5, 1.4, 0.2])], "id bigint, features FLOAT_TENSOR")
    KerasSequentialRegressorPredictStreamOp(trained, predictionCol="said", reservedCols=["id"]).linkFrom(some).print()
    fitted.transform(some).print()
    StreamOperator.execute()
    return sum(abs(length - said) for length, said in rows) / len(rows)


if __name__ == "__main__":
    main()
    print("mean error:", regression())
