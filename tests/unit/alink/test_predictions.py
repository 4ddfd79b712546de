"""Operators that run a SavedModel over a table: their columns, and what the prediction is asked for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink import MemSourceBatchOp, TFSavedModelPredictBatchOp, TFTableModelPredictBatchOp, predictions
from akrunner.alink.environment import current
from akrunner.alink.predictions import predict_arguments, predicted_schema
from akrunner.errors import ConfigError
from akrunner.model import Model


def table() -> MemSourceBatchOp:
    return MemSourceBatchOp([(1, "a", 0.5), (2, "b", 1.5)], "id bigint, s string, x double")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "reserved", "schema"),
    [
        ("p float", None, "id BIGINT, s VARCHAR, x DOUBLE, p FLOAT"),
        ("p float", ["x", "id"], "id BIGINT, x DOUBLE, p FLOAT"),
        ("p float", [], "p FLOAT"),
        ("s bigint, p float", None, "id BIGINT, s BIGINT, x DOUBLE, p FLOAT"),
        ("s bigint, p float", ["id"], "id BIGINT, s BIGINT, p FLOAT"),
    ],
)
def test_kept_columns_stand_before_the_outputs(output: str, reserved: list[str] | None, schema: str) -> None:
    made = TFSavedModelPredictBatchOp(modelPath="m", outputSchemaStr=output, reservedCols=reserved).linkFrom(table())
    assert made.getSchemaStr() == schema
    source = table()
    assert predicted_schema(made, source._relation()).names == [one.split()[0] for one in schema.split(", ")]


def test_parameters_become_arguments_of_predict() -> None:
    made = TFSavedModelPredictBatchOp(
        modelPath="m", outputSchemaStr="p float", selectedCols=["x"], inputSignatureDefs=["in"], outputSignatureDefs=["out"],
        signatureDefKey="key", graphDefTag="tag", reservedCols=["id"], intraOpParallelism=2, pythonEnv="tf2",
    )  # fmt: skip
    assert predict_arguments(made) == {
        "selected_cols": ["x"],
        "input_signature_defs": ["in"],
        "output_signature_defs": ["out"],
        "signature_def_key": "key",
        "graph_def_tag": "tag",
        "output_schema": "p float",
        "reserved_cols": ["id"],
        "python_env": "tf2",
        "env": {"TF_NUM_INTRAOP_THREADS": "2"},
    }
    plain = predict_arguments(TFSavedModelPredictBatchOp(outputSchemaStr="p float"))
    assert (plain["signature_def_key"], plain["graph_def_tag"], plain["reserved_cols"]) == ("serving_default", "serve", None)


@pytest.fixture
def predicted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What predictions are asked for, which give the ids of the rows."""
    asked: list[dict[str, Any]] = []

    def predict(model: Any, source: Any, **given: Any) -> Any:
        rows = source.fetchall()
        asked.append({**given, "model": model, "rows": rows})
        return SimpleNamespace(table=pa.table({"p": [row[0] for row in rows]}))

    monkeypatch.setattr(predictions, "predict", predict)
    return asked


def test_a_saved_model_runs_once_when_its_rows_are_needed(predicted: list[dict[str, Any]]) -> None:
    current().parallelism = 3
    made = TFSavedModelPredictBatchOp(modelPath="/m", outputSchemaStr="p bigint", reservedCols=[]).linkFrom(table())
    assert made.getColNames() == ["p"] and predicted == []
    assert made.collect() == [(1,), (2,)] and made.where("p > 1").collect() == [(2,)]
    (asked,) = predicted
    assert (asked["model"], asked["num_workers"], asked["engine"], asked["output_schema"]) == ("/m", 3, "local", "p bigint")
    assert asked["rows"] == [(1, "a", 0.5), (2, "b", 1.5)]


def test_a_model_table_is_the_first_input(predicted: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"a model")
    rows = [tuple(row.values()) for row in Model(str(tmp_path / "m")).to_table().to_pylist()]
    made = TFTableModelPredictBatchOp(outputSchemaStr="p bigint", reservedCols=[])
    made.linkFrom(MemSourceBatchOp(rows, "model_id bigint, model_info string"), table())
    assert made.collect() == [(1,), (2,)] and predicted[0]["num_workers"] == 1
    assert (Path(predicted[0]["model"].path) / "saved_model.pb").read_bytes() == b"a model"


def test_what_is_missing_is_told_when_it_is_linked() -> None:
    with pytest.raises(ConfigError, match="TFSavedModelPredictBatchOp needs modelPath"):
        TFSavedModelPredictBatchOp(outputSchemaStr="p float").linkFrom(table())
    with pytest.raises(ConfigError, match="TFTableModelPredictBatchOp needs outputSchemaStr"):
        TFTableModelPredictBatchOp().linkFrom(table(), table())
    with pytest.raises(ConfigError, match="TFTableModelPredictBatchOp is linked from 2 tables, not 1"):
        TFTableModelPredictBatchOp(outputSchemaStr="p float").linkFrom(table())
