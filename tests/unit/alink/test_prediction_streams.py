"""Operators that predict over streams: from what they are linked, what the job is asked for, and which new models it takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink import (
    BatchOperator,
    KerasSequentialClassifierPredictStreamOp,
    KerasSequentialRegressorPredictStreamOp,
    MemSourceStreamOp,
    ModelStreamFileSourceStreamOp,
    StreamOperator,
    TFSavedModelPredictStreamOp,
    TFTableModelPredictStreamOp,
    prediction_streams,
)
from akrunner.alink.ak import write_ak
from akrunner.alink.environment import current
from akrunner.alink.keras import _LOGITS, KerasPlan
from akrunner.alink.keras_models import KerasModel
from akrunner.errors import ConfigError, ModelError
from akrunner.model import Model
from akrunner.serving.watching import Watch
from tests.unit.alink.rows import Rows


class Job:
    """In place of a running prediction: gives the batches that a function makes of those it gets."""

    def __init__(self, rows: Iterator[pa.RecordBatch], answer: Any) -> None:
        self._rows, self._answer = rows, answer

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return map(self._answer, self._rows)


def flowed(operator: StreamOperator) -> list[Any]:
    sink = operator.link(Rows())
    StreamOperator.execute()
    return sink.rows


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the prediction is asked for; it doubles the ids."""
    found: dict[str, Any] = {}

    def answer(batch: pa.RecordBatch) -> pa.RecordBatch:
        return (
            found["answer"](batch)
            if "answer" in found
            else pa.RecordBatch.from_pydict({"p": [2 * i for i in batch.column(0).to_pylist()]})
        )

    def predict_stream(model: Any, rows: Iterator[pa.RecordBatch], **given: Any) -> Job:
        found.update(given, model=model)
        return Job(rows, answer)

    monkeypatch.setattr(prediction_streams, "predict_stream", predict_stream)
    return found


@pytest.fixture
def model(tmp_path: Path) -> Model:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"a model")
    return Model(str(tmp_path / "m"))


def stream() -> StreamOperator:
    return MemSourceStreamOp([(1, 0.5), (2, 1.5)], "id bigint, x double")


def written(path: Path, table: pa.Table) -> str:
    # the variable keeps the operator, and so the rows beneath it
    source = BatchOperator.fromTable(table)
    write_ak(str(path), source._relation(), True)
    return str(path)


def test_a_saved_model_answers_the_rows_of_a_stream(asked: dict[str, Any]) -> None:
    current().parallelism = 2
    made = TFSavedModelPredictStreamOp(modelPath="/m", outputSchemaStr="p bigint", reservedCols=[], selectedCols=["id"])
    assert made.linkFrom(stream()).getSchemaStr() == "p BIGINT" and flowed(made) == [(2,), (4,)]
    assert (asked["model"], asked["num_workers"], asked["watch"], asked["selected_cols"]) == ("/m", 2, None, ["id"])
    assert asked["input_schema"].names == ["id", "x"] and asked["engine"] == "local"


def test_a_model_table_comes_from_an_operator_or_a_file(asked: dict[str, Any], model: Model, tmp_path: Path) -> None:
    table = model.to_table()
    for made in (
        TFTableModelPredictStreamOp(BatchOperator.fromTable(table), outputSchemaStr="p bigint", reservedCols=[]),
        TFTableModelPredictStreamOp(
            modelFilePath=written(tmp_path / "m.ak", table), outputSchemaStr="p bigint", reservedCols=[]
        ),
    ):
        assert flowed(made.linkFrom(stream())) == [(2,), (4,)]
        assert (Path(asked["model"].path) / "saved_model.pb").read_bytes() == b"a model" and asked["watch"] is None


def test_new_models_come_from_a_stream_of_models_that_gives_no_rows(
    asked: dict[str, Any], model: Model, tmp_path: Path
) -> None:
    made = TFTableModelPredictStreamOp(BatchOperator.fromTable(model.to_table()), outputSchemaStr="p bigint", reservedCols=[])
    made.linkFrom(stream(), ModelStreamFileSourceStreamOp(filePath=str(tmp_path / "new"), scanInterval=1))
    assert flowed(made) == [(2,), (4,)]
    assert asked["watch"] == Watch(str(tmp_path / "new"), 1.0, None, Model.from_table)


def test_what_it_is_linked_from_is_checked(model: Model) -> None:
    with pytest.raises(
        ConfigError, match=r"TFTableModelPredictStreamOp\(model\): give it the batch operator that has the model"
    ):
        TFTableModelPredictStreamOp(outputSchemaStr="p bigint").linkFrom(stream())
    made = TFTableModelPredictStreamOp(BatchOperator.fromTable(model.to_table()), outputSchemaStr="p bigint")
    with pytest.raises(ConfigError, match="linked from rows and from a ModelStreamFileSourceStreamOp, not MemSourceStreamOp"):
        made.linkFrom(stream(), stream())
    with pytest.raises(ConfigError, match="is linked from 1 to 2 tables, not 3"):
        made.linkFrom(stream(), stream(), stream())


def keras(model: Model, labels: list[Any] | None = None, column: str = "t") -> KerasModel:
    return KerasModel(model, column, None if labels is None else pa.array(labels))


def test_the_type_of_a_label_is_that_of_the_models(model: Model, tmp_path: Path) -> None:
    table = keras(model, ["a", "b"]).to_table(pa.string())
    rows = MemSourceStreamOp([("1 2",)], "t string")
    for made in (
        KerasSequentialClassifierPredictStreamOp(BatchOperator.fromTable(table), predictionCol="p"),
        KerasSequentialClassifierPredictStreamOp(modelFilePath=written(tmp_path / "k.ak", table), predictionCol="p"),
    ):
        assert made.linkFrom(rows).getSchemaStr() == "t VARCHAR, p VARCHAR"
    plain = keras(model).to_table(pa.float64())
    regression = KerasSequentialRegressorPredictStreamOp(BatchOperator.fromTable(plain), predictionCol="p", reservedCols=[])
    assert regression.linkFrom(rows).getSchemaStr() == "p DOUBLE"


def test_a_new_model_has_to_be_like_the_one_in_use(model: Model) -> None:
    made = KerasSequentialClassifierPredictStreamOp(None, predictionCol="p", modelFilePath="k.ak")
    made._opened = keras(model, ["a", "b"])
    assert (Path(made._next(keras(model, ["a", "b"]).to_table(pa.string())).path) / "saved_model.pb").exists()
    for other, words in (
        (keras(model, ["a", "b"], "u").to_table(pa.string()), "fed with another column, or is of another kind"),
        (keras(model).to_table(pa.string()), "fed with another column, or is of another kind"),
        (keras(model, ["b", "a"]).to_table(pa.string()), r"its labels are \['b', 'a'\], and those of the stream \['a', 'b'\]"),
    ):
        with pytest.raises(ModelError, match=words):
            made._next(other)


def test_texts_feed_a_keras_model_as_tensors_and_its_answers_become_labels(
    asked: dict[str, Any], model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KerasPlan, "arguments", lambda plan: {"selected_cols": [plan.feeds]})
    fed: list[Any] = []

    def answer(batch: pa.RecordBatch) -> pa.RecordBatch:
        fed.extend(batch.column(batch.num_columns - 1).to_pylist())
        logits = pa.array([[1.0, 5.0]] + [[5.0, 1.0]] * (batch.num_rows - 1))
        return pa.RecordBatch.from_arrays([batch.column("t"), logits], names=["t", _LOGITS])

    asked["answer"] = answer
    made = KerasSequentialClassifierPredictStreamOp(
        BatchOperator.fromTable(keras(model, ["a", "b"]).to_table(pa.string())), predictionCol="p"
    )
    assert flowed(made.linkFrom(MemSourceStreamOp([("1 2",), ("3 4",)], "t string"))) == [("1 2", "b"), ("3 4", "a")]
    assert fed == [[1.0, 2.0], [3.0, 4.0]] and asked["reserved_cols"] == ["t"] and asked["selected_cols"] != ["t"]
