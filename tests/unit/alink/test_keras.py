"""KerasSequential operators, as far as no TensorFlow is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner import alink
from akrunner.alink.keras import details, fed_column, probabilities
from akrunner.alink.keras_models import KerasModel
from akrunner.errors import ConfigError, DataError, ModelError
from akrunner.model import Model


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    alink.resetEnv()
    yield
    alink.resetEnv()


def model(tmp_path: Path, labels: Any, size: int = 100_000) -> KerasModel:
    (tmp_path / "m").mkdir(exist_ok=True)
    (tmp_path / "m" / "saved_model.pb").write_bytes(np.random.default_rng(1).bytes(size))
    return KerasModel(Model(str(tmp_path / "m")), "t", labels)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [["no", "yes"], [1, 2, 7], [False, True], None])
def test_the_model_table_there_and_back(labels: Any, tmp_path: Path) -> None:
    given = None if labels is None else pa.array(labels)
    kind = pa.float64() if given is None else given.type
    table = model(tmp_path, given, 3_000_000).to_table(kind)
    assert (
        table.schema.names == ["model_id", "model_info", "label_value"]
        and max(map(len, filter(None, table[1].to_pylist()))) <= 32768
    )
    meta = {name: json.loads(value) for name, value in json.loads(table[1][0].as_py()).items()}
    assert meta["tfInputCols"] == ["t"] and meta["isOutputLogits"] is (labels is not None)
    rng = np.random.default_rng(2).permutation(table.num_rows)
    back = KerasModel.from_table(table.take(rng))
    assert back.tensor_col == "t" and (back.labels is None if labels is None else back.labels.to_pylist() == labels)
    assert (Path(back.model.path) / "saved_model.pb").read_bytes() == (tmp_path / "m" / "saved_model.pb").read_bytes()


def test_what_is_no_model(tmp_path: Path) -> None:
    table = model(tmp_path, pa.array(["a", "b"])).to_table(pa.string())
    with pytest.raises(ModelError, match="has model_id, model_info and label_value"):
        KerasModel.from_table(table.select([0, 1]))
    with pytest.raises(ModelError, match="it has no labels"):
        KerasModel.from_table(table.slice(0, table.num_rows - 2))
    with pytest.raises(ModelError, match="the model table is empty"):
        KerasModel.from_table(table.slice(0, 0))
    with pytest.raises(ModelError, match="damaged"):
        KerasModel.from_table(table.slice(1))


def test_labels_and_probabilities() -> None:
    two = probabilities(np.array([[0.0], [800.0], [-800.0]]), 2)
    assert two[:, 1].tolist() == [0.5, 1.0, 0.0]
    three = probabilities(np.array([[1000.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), 3)
    assert three[0].tolist() == [1.0, 0.0, 0.0] and three[1].sum() == pytest.approx(1)
    said = details(np.array([[0.25, 0.75], [1.0, 0.0]]), pa.array(['a "quoted"', "é"])).to_pylist()
    assert [json.loads(one) for one in said] == [{'a "quoted"': 0.25, "é": 0.75}, {'a "quoted"': 1.0, "é": 0.0}]
    assert json.loads(details(np.array([[0.5, 0.5]]), pa.array([False, True]))[0].as_py()) == {"false": 0.5, "true": 0.5}


def test_tensors_a_model_is_fed_with() -> None:
    column = fed_column(pa.array(["FLOAT#2,2#1 2 3 4"]), "t", None)
    assert isinstance(column.type, pa.FixedShapeTensorType) and tuple(column.type.shape) == (2, 2)
    assert tuple(fed_column(pa.array([[1.0, 2.0]]), "t", (2, 1)).type.shape) == (2, 1)
    assert fed_column(pa.array([[1.0, 2.0], [3.0, 4.0]]), "t", None).type == pa.list_(pa.float64(), 2)
    with pytest.raises(DataError, match="row 1, column 't': its shape is not that of the first row"):
        fed_column(pa.array([[1.0], [1.0, 2.0]]), "t", None)
    with pytest.raises(DataError, match="row 0, column 't': 'x' is no number"):
        fed_column(pa.array(["x"]), "t", None)


def trainer(**more: Any) -> Any:
    given = dict(tensorCol="t", labelCol="y", layers=["Dense(1)"])
    return alink.KerasSequentialClassifierTrainBatchOp(**{**given, **more})


def test_columns_and_types_without_running_anything() -> None:
    rows = alink.MemSourceBatchOp([("1 2", 1)], "t string, y int")
    trained = trainer().linkFrom(rows)
    assert trained.getSchemaStr() == "model_id BIGINT, model_info VARCHAR, label_value INT"
    predict = alink.KerasSequentialClassifierPredictBatchOp(predictionCol="p", predictionDetailCol="d", reservedCols=["y"])
    assert predict.linkFrom(trained, rows).getSchemaStr() == "y INT, p INT, d VARCHAR"
    stream = alink.MemSourceStreamOp([("1 2", 1)], "t string, y int")
    other = alink.KerasSequentialRegressorPredictStreamOp(trained, predictionCol="y").linkFrom(stream)
    assert other.getSchemaStr() == "t VARCHAR, y DOUBLE"
    with pytest.raises(ConfigError, match="tensorCol: there is no column 'x'"):
        trainer(tensorCol="x").linkFrom(rows).getColNames()
    with pytest.raises(AttributeError, match="has no setPredictionDetailCol"):
        alink.KerasSequentialRegressorPredictBatchOp().setPredictionDetailCol("d")
    with pytest.raises(ConfigError, match="give it the batch operator that has the model, or setModelFilePath"):
        alink.KerasSequentialClassifierPredictStreamOp(predictionCol="p").linkFrom(stream)
    with pytest.raises(ConfigError, match="linked from rows and from a ModelStreamFileSourceStreamOp, not MemSourceStreamOp"):
        alink.KerasSequentialClassifierPredictStreamOp(trained, predictionCol="p").linkFrom(stream, stream)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "has no rows"),
        ([("1 2", None)], "row 0, column 'y': is null"),
        ([("1 2", 1), (None, 1)], "row 1, column 't': is null"),
        ([("1 2", 1), ("1 2 3", 1)], "row 1, column 't': its shape is not that of the first row"),
    ],
)
def test_rows_that_cannot_be_trained_on(rows: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        trainer().linkFrom(alink.MemSourceBatchOp(rows, "t string, y int")).collect()


@pytest.mark.slow
def test_a_stage_is_saved_with_its_model(tmp_path: Path) -> None:
    table = model(tmp_path, pa.array(["a", "b"])).to_table(pa.string())
    path = str(tmp_path / "model.ak")
    stage = alink.KerasSequentialClassificationModel(predictionCol="p", modelFilePath=path, modelStreamFilePath="models")
    stage.setModelData(alink.TableSourceBatchOp(table))
    alink.PipelineModel(stage).save(str(tmp_path / "saved"))
    assert alink.AkSourceBatchOp(filePath=path).collectToTable() == table
    with pytest.raises(ConfigError, match="setOverwriteSink"):
        alink.PipelineModel(stage).save(str(tmp_path / "other"))
    alink.PipelineModel(stage.setOverwriteSink(True)).save(str(tmp_path / "other"))
    (again,) = alink.PipelineModel.load(str(tmp_path / "saved"))._stages
    assert again.getModelStreamFilePath() == "models" and again.getModelData().collectToTable() == table
    fresh = alink.KerasSequentialClassificationModel(predictionCol="p").setModelFilePath(path)
    assert fresh.getModelData().collectToTable() == table
    with pytest.raises(ConfigError, match="KerasSequentialRegressionModel has no model: fit a trainer"):
        alink.KerasSequentialRegressionModel(predictionCol="p").getModelData()
