"""Pipelines: what is fitted on what, what is saved and loaded, and how single rows go through the stages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink import (
    BatchOperator,
    KerasSequentialClassifier,
    LocalPredictor,
    MemSourceBatchOp,
    MemSourceStreamOp,
    Pipeline,
    PipelineModel,
    Select,
    TF2TableModelTrainer,
    TFTableModelPredictor,
    TFTableModelTrainer,
    ToTensor,
)
from akrunner.alink.pipeline import Trainer
from akrunner.alink.scripts import TFTableModelTrainBatchOp
from akrunner.errors import ConfigError, ModelError
from akrunner.model import Model


def table() -> BatchOperator:
    return MemSourceBatchOp([(1, "a"), (2, "b")], "id bigint, s string")


class Learned(Trainer):
    """Learns a name for the column that it adds; keeps the columns it was fitted on."""

    fitted: list[list[str]]

    def fit(self, operator: BatchOperator) -> Any:
        self.fitted = [*getattr(self, "fitted", []), operator.getColNames()]
        return Select(clause=f"*, {len(self.fitted)} AS learned{len(operator.getColNames())}")


def test_each_trainer_is_fitted_on_what_the_stages_before_it_give() -> None:
    first, second = Learned(), Learned()
    model = Pipeline(Select(clause="id")).add(first).add(Select(clause="*, 0 AS z")).add(second).fit(table())
    assert first.fitted == [["id"]] and second.fitted == [["id", "learned1", "z"]]
    assert model.transform(table()).getColNames() == ["id", "learned1", "z", "learned3"]
    assert model.transform(MemSourceStreamOp([(1, "a")], "id bigint, s string")).getColNames()[-1] == "learned3"
    # a pipeline can be fitted again
    assert Pipeline(first).fit(table()).transform(table()).collect() == [(1, "a", 2), (2, "b", 2)]


def test_a_pipeline_of_nothing_or_of_something_else_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"the pipeline is empty: add\(stage\) first"):
        Pipeline().fit(table())
    with pytest.raises(ConfigError, match="Pipeline.add takes a trainer or a predictor, not str"):
        Pipeline().add("Select")  # type: ignore[arg-type]


def test_a_trainer_trains_at_once_and_its_model_gets_the_parameters_of_predictions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"a model")
    trained: list[dict[str, Any]] = []

    def run(operator: Any, source: Any, job: Any) -> pa.Table:
        trained.append(operator._given)
        return Model(str(tmp_path / "m")).to_table()

    monkeypatch.setattr(TFTableModelTrainBatchOp, "_run", run)
    trainer = TFTableModelTrainer(
        mainScriptFile="m.py", selectedCols=["s"], outputSchemaStr="p float", reservedCols=["id"], pythonEnv="x"
    )
    model = trainer.fit(table())
    assert trained == [{"mainScriptFile": "m.py", "selectedCols": ["s"], "pythonEnv": "x"}]
    assert isinstance(model, TFTableModelPredictor) and model.getSelectedCols() is None
    assert (model.getOutputSchemaStr(), model.getReservedCols(), model.getPythonEnv()) == ("p float", ["id"], "x")
    assert model.transform(table()).getColNames() == ["id", "p"] and len(trained) == 1
    assert trainer.setInferSelectedCols(["id"]).fit(table()).getSelectedCols() == ["id"]


def test_a_trainer_says_what_it_needs_before_it_trains() -> None:
    with pytest.raises(ConfigError, match="TF2TableModelTrainer needs outputSchemaStr"):
        TF2TableModelTrainer(mainScriptFile="m.py").fit(table())
    with pytest.raises(ConfigError, match="KerasSequentialClassifier needs"):
        KerasSequentialClassifier().fit(table())


def test_a_pipeline_is_saved_and_loaded(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"a model")
    predictor = TFTableModelPredictor(outputSchemaStr="p float")
    predictor.setModelData(BatchOperator.fromTable(Model(str(tmp_path / "m")).to_table()))
    model = PipelineModel(Select(clause="id, s AS v"), ToTensor(selectedCol="id", tensorShape=[1]), predictor)
    path = tmp_path / "deep" / "saved"
    assert model.save(str(path)) is model
    assert sorted(one.name for one in path.iterdir()) == ["pipeline.json", "stage-2.zip"]
    assert json.loads((path / "pipeline.json").read_text())[0] == {"stage": "Select", "params": {"clause": "id, s AS v"}}
    # wherever the directory is moved to
    path.rename(tmp_path / "moved")
    loaded = PipelineModel.load(str(tmp_path / "moved"))
    assert loaded.transform(table()).getColNames() == ["id", "v", "p"] and len(loaded._stages) == 3
    assert loaded._stages[2].transform(table()).getModelPath() == str(tmp_path / "moved" / "stage-2.zip")


def test_a_saved_pipeline_is_replaced_only_where_that_is_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "saved")
    PipelineModel(Select(clause="id")).save(path)
    other = PipelineModel(Select(clause="s"))
    with pytest.raises(ModelError, match=f"save: {path} holds a pipeline already; overwrite=True replaces it"):
        other.save(path)
    other.save(path, overwrite=True)
    assert PipelineModel.load(path).transform(table()).collect() == [("a",), ("b",)]
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match=f"save: cannot write {tmp_path}/file/x: Not a directory"):
        other.save(str(tmp_path / "file" / "x"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not a saved pipeline: it has no pipeline.json"),
        ("{", "is damaged: its pipeline.json is not JSON"),
        ("{}", "is damaged: its pipeline.json is not a list of stages"),
        ('[{"stage": "Select"}]', "is not a list of stages"),
        ('[{"stage": 1, "params": {}}]', "is not a list of stages"),
        ('[{"stage": "Select", "params": {}, "model": 1}]', "is not a list of stages"),
        ('[{"stage": "Selct", "params": {}}]', "has a stage 'Selct', which is none of Select, ToTensor"),
    ],
)
def test_what_is_no_saved_pipeline_is_told(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "pipeline.json").write_text(text)
    with pytest.raises(ModelError, match=f"load: .*{words}"):
        PipelineModel.load(str(tmp_path))


def test_a_model_of_a_saved_pipeline_lies_beside_its_description(tmp_path: Path) -> None:
    entry = {"stage": "TFSavedModelPredictor", "params": {"outputSchemaStr": "p float"}, "model": "../../etc/stage-0.zip"}
    (tmp_path / "pipeline.json").write_text(json.dumps([entry]))
    (stage,) = PipelineModel.load(str(tmp_path))._stages
    assert stage.getModelPath() == str(tmp_path / "stage-0.zip")


def test_single_rows_go_through_all_stages(tmp_path: Path) -> None:
    model = PipelineModel(Select(clause="id * 2 AS n, s"), Select(clause="s, n + 1 AS m"))
    model.save(str(tmp_path / "saved"))
    for made in (
        model.collectLocalPredictor("id bigint, s string"),
        LocalPredictor(str(tmp_path / "saved"), "id bigint, s string"),
    ):
        with made as predictor:
            assert predictor.getOutputColNames() == ["s", "m"] and predictor.getOutputSchemaStr() == "s VARCHAR, m BIGINT"
            assert predictor.map([1, "a"]) == ("a", 3) and predictor.map((None, None)) == (None, None)
            with pytest.raises(ConfigError, match=r"map: 1 values for 2 columns \(id, s\)"):
                predictor.map([1])


class Closed(Select):
    """Notes when the predictor of its single rows is closed."""

    TAKES = Select.TAKES

    def _single(self, schema: pa.Schema) -> Any:
        self.open = True
        return self

    def close(self) -> None:
        self.open = False


def test_stages_are_closed_at_the_end_or_where_a_later_one_does_not_start() -> None:
    stage = Closed(clause="id")
    with LocalPredictor(PipelineModel(stage), "id bigint"):
        assert stage.open
    assert not stage.open
    with pytest.raises(ConfigError, match="nope"):
        LocalPredictor(PipelineModel(stage, Select(clause="nope")), "id bigint")
    assert not stage.open
