"""Stages of a pipeline: each transforms tables and streams, is stored and loaded, and applies to single rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink import (
    AkSourceBatchOp,
    BatchOperator,
    KerasSequentialClassificationModel,
    MemSourceBatchOp,
    MemSourceStreamOp,
    Select,
    StreamOperator,
    TensorToVector,
    TFSavedModelPredictBatchOp,
    TFSavedModelPredictor,
    TFSavedModelPredictStreamOp,
    TFTableModelPredictBatchOp,
    TFTableModelPredictor,
    TFTableModelPredictStreamOp,
    ToTensor,
    VectorToTensor,
    stages,
)
from akrunner.alink.keras_models import KerasModel
from akrunner.errors import ConfigError
from akrunner.model import Model


def table() -> BatchOperator:
    return MemSourceBatchOp([("1 2", 1), ("3 4", 2)], "v string, n bigint")


def stream() -> StreamOperator:
    return MemSourceStreamOp([("1 2", 1)], "v string, n bigint")


@pytest.fixture
def model(tmp_path: Path) -> Model:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"a model")
    return Model(str(tmp_path / "m"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "rows"),
    [
        (Select(clause="n + 1 AS m"), [(2,), (3,)]),
        (ToTensor(selectedCol="v", reservedCols=[]), [([1.0, 2.0],), ([3.0, 4.0],)]),
        (VectorToTensor(selectedCol="v", outputCol="t"), [("1 2", 1, [1.0, 2.0]), ("3 4", 2, [3.0, 4.0])]),
    ],
)
def test_a_stage_without_a_model_transforms_tables_streams_and_rows(stage: Any, rows: list[Any]) -> None:
    batch, flow = stage.transform(table()), stage.transform(stream())
    assert isinstance(batch, BatchOperator) and isinstance(flow, StreamOperator)
    assert batch.collect() == rows and flow.getSchemaStr() == batch.getSchemaStr()
    single = stage._single(pa.schema([("v", pa.string()), ("n", pa.int64())]))
    assert tuple(single.predict({"v": "1 2", "n": 1}).values()) == rows[0]
    single.close()
    # it is stored by its parameters alone
    assert stage._stored("/nowhere/x") is None
    assert type(stage)._loaded(stage._given, None).transform(table()).collect() == rows


def test_tensors_become_vectors_again() -> None:
    tensors = ToTensor(selectedCol="v").transform(table())
    assert TensorToVector(selectedCol="v", convertMethod="SUM").transform(tensors).collect() == [([3.0], 1), ([7.0], 2)]
    assert TensorToVector(selectedCol="v").transform(tensors).collect() == [([1.0, 2.0], 1), ([3.0, 4.0], 2)]


def test_what_a_stage_needs_is_asked_for() -> None:
    with pytest.raises(ConfigError, match="SelectBatchOp needs clause"):
        Select().transform(table()).collect()


def test_a_saved_model_is_stored_with_its_pipeline(model: Model, tmp_path: Path) -> None:
    stage = TFSavedModelPredictor(modelPath=model.path, outputSchemaStr="p float", reservedCols=[])
    assert isinstance(stage.transform(table()), TFSavedModelPredictBatchOp) and stage.transform(table()).getColNames() == ["p"]
    assert isinstance(stage.transform(stream()), TFSavedModelPredictStreamOp)
    stored = stage._stored(str(tmp_path / "stage-0"))
    assert stored == str(tmp_path / "stage-0.zip") and Path(stored).exists()
    params = {name: value for name, value in stage._given.items() if name != "modelPath"}
    loaded = TFSavedModelPredictor._loaded(params, stored)
    assert loaded.getModelPath() == stored and loaded.getOutputSchemaStr() == "p float"
    assert (Path(loaded._open().path) / "saved_model.pb").read_bytes() == b"a model"


def test_a_model_table_is_given_or_read_from_its_file(model: Model, tmp_path: Path) -> None:
    given = BatchOperator.fromTable(model.to_table())
    stage = TFTableModelPredictor(outputSchemaStr="p float", reservedCols=["n"], modelFilePath=str(tmp_path / "t.ak"))
    assert stage.setModelData(given) is stage and stage.getModelData() is given
    batch = stage.transform(table())
    assert isinstance(batch, TFTableModelPredictBatchOp) and batch._inputs[0] is given and batch.getColNames() == ["n", "p"]
    assert isinstance(stage.transform(stream()), TFTableModelPredictStreamOp)
    stored = stage._stored(str(tmp_path / "stage-0"))
    # and it is written to the file that is named, once
    assert AkSourceBatchOp(filePath=str(tmp_path / "t.ak")).collectToTable() == model.to_table()
    with pytest.raises(ConfigError, match="setOverwriteSink"):
        stage._stored(str(tmp_path / "stage-0"))
    stage.setOverwriteSink(True)._stored(str(tmp_path / "stage-0"))
    read = TFTableModelPredictor(outputSchemaStr="p float", modelFilePath=str(tmp_path / "t.ak"))
    assert isinstance(read.getModelData(), AkSourceBatchOp)
    read._stored(str(tmp_path / "stage-1"))
    assert stored == str(tmp_path / "stage-0.zip") and (tmp_path / "stage-1.zip").exists()


def test_a_model_that_was_loaded_runs_from_the_file_of_its_pipeline(model: Model, tmp_path: Path) -> None:
    stored = model.save(str(tmp_path / "stage-0.zip"))
    params = {"outputSchemaStr": "p float", "modelFilePath": "/gone.ak", "modelStreamFilePath": "models"}
    loaded = TFTableModelPredictor._loaded(params, stored)
    batch = loaded.transform(table())
    assert (
        isinstance(batch, TFSavedModelPredictBatchOp) and batch.getModelPath() == stored and loaded.getModelFilePath() is None
    )
    assert isinstance(loaded.transform(stream()), TFTableModelPredictStreamOp) and loaded.getModelStreamFilePath() == "models"
    assert (Path(Model.from_table(loaded.getModelData().collectToTable()).path) / "saved_model.pb").read_bytes() == b"a model"


def test_a_stage_without_a_model_says_how_it_gets_one() -> None:
    for stage in (TFTableModelPredictor(outputSchemaStr="p float"), KerasSequentialClassificationModel(predictionCol="p")):
        for call in (stage.getModelData, lambda stage=stage: stage.transform(table()), lambda stage=stage: stage._stored("x")):
            with pytest.raises(
                ConfigError, match=r"has no model: fit a trainer, call setModelData\(operator\), or setModelFilePath"
            ):
                call()


def test_a_keras_model_is_stored_as_its_table(model: Model, tmp_path: Path) -> None:
    rows = KerasModel(model, "v", pa.array(["a", "b"])).to_table(pa.string())
    stage = KerasSequentialClassificationModel(predictionCol="p").setModelData(BatchOperator.fromTable(rows))
    stored = stage._stored(str(tmp_path / "stage-0"))
    assert stored == str(tmp_path / "stage-0.ak")
    loaded = KerasSequentialClassificationModel._loaded({"predictionCol": "p", "modelFilePath": "/gone"}, stored)
    assert loaded.getModelData().collectToTable() == rows and loaded.getModelFilePath() is None
    assert loaded.transform(table()).getSchemaStr() == "v VARCHAR, n BIGINT, p VARCHAR"


def test_single_rows_keep_all_columns_unless_some_are_named(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(stages, "_LocalPredictor", lambda model, **given: asked.append({**given, "model": model}))
    schema = pa.schema([("v", pa.string()), ("n", pa.int64())])
    for kept in (None, ["n"], []):
        TFSavedModelPredictor(modelPath=model.path, outputSchemaStr="p float", reservedCols=kept)._single(schema)
    assert [one["reserved_cols"] for one in asked] == [["v", "n"], ["n"], []]
    assert asked[0]["input_schema"] == schema and asked[0]["output_schema"] == "p float"
