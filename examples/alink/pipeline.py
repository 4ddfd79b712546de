"""TF2TableModelTrainer in a Pipeline: fit, transform, save, load; single rows with LocalPredictor. `fit` gives a
TFTableModelPredictor; a model in a directory is a TFSavedModelPredictor's."""

import iris

from akrunner.alink import (
    LocalPredictor,
    Pipeline,
    PipelineModel,
    TF2TableModelTrainer,
    TFSavedModelPredictor,
    TFTableModelPredictor,
)


def main(folder="iris-pipeline"):
    trainer = (
        TF2TableModelTrainer()
        .setMainScriptFile(str(iris.HERE / "scripts" / "train_iris.py"))
        .setUserParams(iris.PARAMS)
        .setNumWorkers(1)
        .setNumPSs(0)
        .setPythonEnv("tf2")
        .setInputSignatureDefs(["features"])
        .setOutputSchemaStr(iris.PREDICTED)
        .setReservedCols(["id", "species"])
    )
    # the columns the model is fed with
    features = iris.table().select("id, species, [" + ", ".join(iris.FEATURES) + "]::FLOAT[4] AS features")
    fitted = trainer.fit(iris.table())
    assert isinstance(fitted, TFTableModelPredictor)
    accuracy = iris.accuracy(fitted.transform(features))
    print("accuracy:", accuracy)
    model = PipelineModel(fitted)
    model.save(folder, overwrite=True)
    again = PipelineModel.load(folder)
    assert iris.accuracy(again.transform(features)) == accuracy
    with LocalPredictor(folder, "id bigint, species string, features FLOAT_TENSOR") as predictor:
        row = predictor.map([7, "setosa", [5.1, 3.5, 1.4, 0.2]])
    print(dict(zip(predictor.getOutputColNames(), row)))
    with_path = TFSavedModelPredictor(
        modelPath=f"{folder}/stage-0.zip", inputSignatureDefs=["features"], outputSchemaStr=iris.PREDICTED
    )
    assert iris.accuracy(Pipeline(with_path).fit(features).transform(features)) == accuracy
    return accuracy, row


if __name__ == "__main__":
    main()
