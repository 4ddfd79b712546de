from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from akrunner import alink
from akrunner.alink.params import Param
from akrunner.errors import ConfigError, ModelError, SchemaError

ROOT = Path(__file__).parents[3]


def test_setters_getters_and_keywords() -> None:
    one = alink.TensorFlowBatchOp().setNumWorkers(2).setUserFiles(["a.py"]).setMainScriptFile("m.py")
    two = alink.TensorFlowBatchOp(numWorkers=2, userFiles=["a.py"], mainScriptFile="m.py")
    for op in (one, two):
        assert (op.getNumWorkers(), op.getUserFiles(), op.getMainScriptFile()) == (2, ["a.py"], "m.py")
        assert (op.getNumPSs(), op.getIntraOpParallelism(), op.getUserParams()) == (None, 4, "{}")
    assert repr(one) == "TensorFlowBatchOp(numWorkers=2, userFiles=['a.py'], mainScriptFile='m.py')"


@pytest.mark.parametrize("setter", ["setOutputSchemaStr", "setSchemaStr", "setSchema", "setTableSchema"])
def test_aliases(setter: str) -> None:
    op = getattr(alink.TensorFlow2BatchOp(), setter)("id bigint")
    assert op.getOutputSchemaStr() == "id bigint"


def test_lists_may_be_json_or_one_text() -> None:
    assert alink.TensorFlowBatchOp().setUserFile("a.py").getUserFiles() == ["a.py"]
    assert alink.TensorFlowBatchOp().setScriptFiles('["a.py", "b.zip"]').getUserFiles() == ["a.py", "b.zip"]
    assert alink.TensorFlowBatchOp().setUserParams(json.dumps({"a": 1})).getUserParams() == {"a": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "pipeline.json is not JSON"),
        ("{}", "not a list of stages"),
        ('["Select"]', "not a list of stages"),
        ('[{"stage": "Select"}]', "not a list of stages"),
        ("[" * 100_000, "pipeline.json is not JSON: .*nested too deep"),
        ('[{"stage": "Other", "params": {}}]', "has a stage 'Other'"),
    ],
)
def test_a_pipeline_that_is_damaged(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "pipeline.json").write_text(text)
    with pytest.raises(ModelError, match="load: .*" + words):
        alink.PipelineModel.load(str(tmp_path))


@pytest.mark.parametrize(
    ("setter", "value", "words"),
    [
        ("setUserParams", '{"a": {"b": 1, "b": 2}}', ".userParams: .* has the key 'b' twice in one object"),
        ("setNumWorkers", "two", "numWorkers takes a whole number, not 'two'"),
        ("setNumWorkers", True, "numWorkers takes a whole number"),
        ("setUserFiles", [1], "userFiles takes a list of texts"),
        ("setUserFiles", "[1", "userFiles takes a list of texts"),
        ("setUserParams", "{bad", "is not JSON"),
        ("setUserParams", "[1]", "userParams takes a dict"),
        ("setMainScriptFile", 3, "mainScriptFile takes text"),
        ("setSelectedCols", 3, "selectedCols takes a list of texts"),
    ],
)
def test_wrong_types_fail_at_once(setter: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"TensorFlowBatchOp.*{words}"):
        getattr(alink.TensorFlowBatchOp(), setter)(value)


def test_a_schema_is_read_at_once() -> None:
    with pytest.raises((SchemaError, ConfigError), match="bigin"):
        alink.TensorFlowBatchOp().setOutputSchemaStr("id bigin")


def test_unknown_setters_name_the_nearest() -> None:
    with pytest.raises(AttributeError, match="TensorFlowBatchOp has no setNumWorker; did you mean setNumWorkers?"):
        alink.TensorFlowBatchOp().setNumWorker(2)
    with pytest.raises(ConfigError, match="TensorFlowBatchOp has no parameter numWorker; did you mean numWorkers?"):
        alink.TensorFlowBatchOp(numWorker=2)
    with pytest.raises(AttributeError, match="has no setModelPath"):
        alink.TensorFlowBatchOp().setModelPath("m")


def test_what_is_required_is_asked_for_when_linked() -> None:
    table = alink.MemSourceBatchOp([(1,)], "a bigint")
    with pytest.raises(ConfigError, match="TensorFlowBatchOp needs mainScriptFile: call setMainScriptFile"):
        table.link(alink.TensorFlowBatchOp())
    with pytest.raises(ConfigError, match="needs outputSchemaStr"):
        table.link(alink.TensorFlowBatchOp(mainScriptFile="a.py"))


def test_setters_say_what_they_take() -> None:
    said = alink.TensorFlowBatchOp.setNumPSs.__doc__ or ""
    assert "Parameter servers" in said and "a whole number" in said and "Returns:\n    this operator" in said
    assert "setNumPSs" in dir(alink.TensorFlowBatchOp())


def test_defaults_are_alinks() -> None:
    predict = alink.TFSavedModelPredictBatchOp()
    assert predict.getGraphDefTag() == "serve" and predict.getSignatureDefKey() == "serving_default"
    assert alink.TFTableModelTrainBatchOp().getRemoveCheckpointBeforeTraining() is False


@pytest.mark.slow
def test_the_pages_are_those_of_the_declarations() -> None:
    sys.path.insert(0, str(ROOT / "docs" / "operators"))
    try:
        import generate
    finally:
        sys.path.pop(0)
    there = {path.name: path.read_text() for path in (ROOT / "docs" / "operators").glob("*.md")}
    assert generate.pages() == there, "run scripts/gen-docs"


def test_a_parameter_stores_what_it_takes_and_names_what_it_does_not() -> None:
    one = Param("how", "text", "How.", choices=("FAIL", "SKIP"))
    assert (one.check(None), one.check("skip"), one.takes) == (None, "SKIP", "one of FAIL, SKIP")
    with pytest.raises(ConfigError, match="^how takes one of FAIL, SKIP, not 'stop'$"):
        one.check("stop")
    assert one.must().required and not one.required
