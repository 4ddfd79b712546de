"""The model table of KerasSequential operators: what it is made of, and what of it is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink.keras_models import KerasModel, keras_schema
from akrunner.errors import ModelError
from akrunner.model import Model

SLICES = 1 << 20


@pytest.fixture
def model(tmp_path: Path) -> Model:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"a model")
    return Model(str(tmp_path / "m"))


def table(strings: list[str], labels: list[Any]) -> pa.Table:
    """A model table, each string in one slice."""
    ids = [i * SLICES for i in range(len(strings))] + [2147483647 * SLICES + i for i in range(len(labels))]
    rows = pa.array([None] * len(strings) + labels, pa.string())
    return pa.table([pa.array(ids), pa.array([*strings, *[None] * len(labels)]), rows], schema=keras_schema(pa.string()))


def described(**meta: Any) -> str:
    return json.dumps({name: json.dumps(value) for name, value in meta.items()})


def rows_of(model: Model, before: int = 0) -> list[str]:
    infos = [*["of the pipeline"] * before, *model.to_table()["model_info"].to_pylist()]
    return [json.dumps([i, text]) for i, text in enumerate(infos)]


def test_the_table_has_the_description_the_zip_and_the_labels(model: Model) -> None:
    made = KerasModel(model, "t", pa.array(["a", "b"])).to_table(pa.string())
    assert made.schema == keras_schema(pa.string())
    ids, infos, labels = (column.to_pylist() for column in made.columns)
    assert ids[0] == 0 and ids[1] == SLICES and ids[-2:] == [2147483647 * SLICES, 2147483647 * SLICES + 1]
    assert labels[-2:] == ["a", "b"] and set(labels[:-2]) == {None} and infos[-2:] == [None, None]
    meta = {name: json.loads(value) for name, value in json.loads(infos[0]).items()}
    assert (meta["tensorCol"], meta["taskType"], meta["tfOutputSignatureDef"]) == ("t", "CLASSIFICATION", "logits")
    number, name = json.loads(infos[1])
    assert number == 0 and name.endswith(".zip")


def test_a_regression_has_no_labels(model: Model) -> None:
    made = KerasModel(model, "t", None).to_table(pa.float64())
    assert made["label_value"].null_count == made.num_rows and made.schema.field("label_value").type == pa.float64()
    back = KerasModel.from_table(made)
    assert back.labels is None and back.tensor_col == "t"


def test_labels_become_the_type_of_the_column(model: Model) -> None:
    made = KerasModel(model, "t", pa.array([1, 2])).to_table(pa.int32())
    assert made["label_value"].to_pylist()[-2:] == [1, 2]
    assert KerasModel.from_table(made).labels == pa.array([1, 2], pa.int32())


@pytest.mark.parametrize(
    ("meta", "column"),
    [
        ({"tensorCol": "t", "tfInputCols": ["u", "v"]}, "u"),
        ({"tensorCol": "t", "tfInputCols": []}, "t"),
        ({"tensorCol": "t"}, "t"),
    ],
)
def test_the_column_that_feeds_the_model(model: Model, meta: dict[str, Any], column: str) -> None:
    assert KerasModel.from_table(table([described(**meta), *rows_of(model)], ["a"])).tensor_col == column


def test_rows_of_a_pipeline_before_the_model_are_passed_over(model: Model) -> None:
    found = KerasModel.from_table(table([described(tensorCol="t"), *rows_of(model, 3)], ["a", "b"]))
    assert (Path(found.model.path) / "saved_model.pb").read_bytes() == b"a model" and found.labels == pa.array(["a", "b"])


@pytest.mark.parametrize(
    ("strings", "words"),
    [
        ([], "the model table is empty"),
        (["not JSON"], "its description is not Alink's"),
        (["[1]"], "its description is not Alink's"),
        ([described(taskType="CLASSIFICATION")], "its description is not Alink's"),
        ([described(tensorCol="t"), "[0]"], "its description is not Alink's"),
        ([described(tensorCol="t"), '[0, "a text"]'], "no row of it is the name of a zip"),
        ([described(tensorCol="t"), json.dumps([0, "x" * 2000 + ".zip"])], "no row of it is the name of a zip"),
    ],
)
def test_a_damaged_table_is_told(strings: list[str], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        KerasModel.from_table(table(strings, ["a"]))


def test_a_classifier_without_labels_and_another_table_are_told(model: Model) -> None:
    with pytest.raises(ModelError, match="the model table is damaged: it has no labels"):
        KerasModel.from_table(table([described(tensorCol="t"), *rows_of(model)], []))
    with pytest.raises(ModelError, match="the model has the columns a, b: a KerasSequential model has model_id, model_info"):
        KerasModel.from_table(pa.table({"a": [1], "b": [2]}))
    with pytest.raises(ModelError, match="the model table is damaged"):
        KerasModel.from_table(pa.table({"model_id": ["x"], "model_info": ["y"], "label_value": ["z"]}))
