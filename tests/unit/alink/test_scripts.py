"""What a script operator's parameters become as arguments of a job, and the files that lie beside the script."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink import (
    BatchOperator,
    MemSourceBatchOp,
    TensorFlow2BatchOp,
    TensorFlowBatchOp,
    TF2TableModelTrainBatchOp,
    TFTableModelTrainBatchOp,
    scripts,
)
from akrunner.alink.environment import current
from akrunner.alink.scripts import ScriptJob, chosen, python_env, text_params, with_shapes
from akrunner.errors import ConfigError
from akrunner.model import MODEL_SCHEMA

SCHEMA = pa.schema([("id", pa.int64())])


def operator(**given: Any) -> TensorFlow2BatchOp:
    return TensorFlow2BatchOp(**{"mainScriptFile": "m.py", "outputSchemaStr": "a bigint", "pythonEnv": "tf2", **given})


def arguments(**given: Any) -> dict[str, Any]:
    job = ScriptJob(operator(**given), SCHEMA)
    job.close()
    return job.arguments()


def table() -> BatchOperator:
    return MemSourceBatchOp([(1, "a"), (2, "b")], "id bigint, s string")


def test_parameters_become_arguments() -> None:
    found = arguments(userFiles=["a.zip"], numWorkers=2, numPSs=1, intraOpParallelism=3, userParams={"x": 1, "y": "z"})
    assert found["user_files"] == ["a.zip"] and found["user_params"] == {"x": "1", "y": "z"}
    assert (found["num_workers"], found["num_ps"], found["intra_op_parallelism"], found["python_env"]) == (2, 1, 3, "tf2")
    assert found["chief"] is True and found["engine"] == "local" and found["observer"] is None and found["debug"] is False
    current().debug = True
    assert arguments()["debug"] is True and arguments()["observer"] is not None


@pytest.mark.parametrize(
    ("parallelism", "workers", "servers", "found"),
    [
        (None, None, None, None),
        (4, None, None, 4),
        (4, 2, None, 4),
        (4, 6, None, 6),
        (4, None, 5, 5),
        (4, 2, 1, None),
        (None, 2, None, None),
        (1, 0, None, 1),
    ],
)
def test_tasks_are_divided_where_their_numbers_are_not_all_given(
    parallelism: int | None, workers: int | None, servers: int | None, found: int | None
) -> None:
    current().parallelism = parallelism
    assert arguments(numWorkers=workers, numPSs=servers)["parallelism"] == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"a": "x", "b": 1, "c": None, "d": [1, "\u00e9"], "e": True}, {"a": "x", "b": "1", "c": "null", "d": '[1, "\\u00e9"]', "e": "true"}),
        ('{"a": 0.5}', {"a": "0.5"}),
        ({}, {}),
    ],
)  # fmt: skip
def test_every_user_param_is_a_text(given: Any, found: dict[str, str]) -> None:
    assert text_params(given) == found


def test_files_tell_a_script_the_shapes_and_types_of_its_tensors() -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("t", pa.fixed_shape_tensor(pa.float32(), (2, 3))),
            ("v", pa.list_(pa.float64())),
            ("w", pa.list_(pa.string())),
        ]
    )
    job = ScriptJob(operator(userFiles=["mine"]), schema)
    mine, *made = job.arguments()["user_files"]
    files = {Path(one).name: json.loads(Path(one).read_text()) for one in made}
    assert mine == "mine" and files["tensor_shapes.txt"] == {"t": [2, 3]}
    assert files["tensor_types.txt"] == {"t": "float", "v": "double", "w": "string"}
    job.close()
    assert not any(Path(one).exists() for one in made)
    assert arguments()["user_files"] == []


def test_side_inputs_are_files_that_user_params_name() -> None:
    sides = [pa.table({"a": [1, None], "b": ["x y", ""]}), pa.table({"c": pa.array([], pa.int64())})]
    job = ScriptJob(operator(), SCHEMA, sides)
    found = job.arguments()
    assert found["user_params"] == {"ALINK:bc_1": "bc_1", "ALINK:bc_2": "bc_2"}
    assert [Path(one).read_text() for one in found["user_files"]] == ["1 x y\n \n", ""]
    job.put("ALINK:model_dir", "/m")
    assert job.arguments()["user_params"]["ALINK:model_dir"] == "/m"
    job.close()


def test_the_environment_is_the_given_one_or_that_of_alinks_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"mainScriptFile": "m.py", "outputSchemaStr": "a bigint"}
    asked: list[tuple[str, str]] = []
    there = SimpleNamespace(tensorflow="2.16.1", path="/envs/tf2")

    def instead(name: str, other: str) -> Any:
        asked.append((name, other))
        return there if len(asked) > 1 else None

    monkeypatch.setattr(scripts, "instead_of", instead)
    assert python_env(TensorFlowBatchOp(**given)) == "tf1.15" and python_env(operator(pythonEnv="/my")) == "/my" and asked == []
    assert python_env(TensorFlow2BatchOp(**given)) == "tf2.3"
    with pytest.warns(
        RuntimeWarning, match=r"TensorFlow2BatchOp runs on TensorFlow 2\.16\.1 \(/envs/tf2\); Alink's runs on 2\.3"
    ):
        assert python_env(TensorFlow2BatchOp(**given)) == "tf2"
    assert asked == [("tf2.3", "tf2")] * 2


def test_columns_are_chosen_in_the_order_they_are_named() -> None:
    # the variable keeps the operator, and so the rows beneath it
    source = table()
    relation = source._relation()
    assert chosen(relation, None) is relation and chosen(relation, ["s", "id"]).columns == ["s", "id"]
    with pytest.raises(ConfigError, match="selectedCols: there is no column 'x'; the table has id, s"):
        chosen(relation, ["id", "x"])


def test_lists_get_the_shapes_that_are_known_of_them() -> None:
    given = BatchOperator.fromTable(pa.table({"t": [[1.0, 2.0], [3.0, 4.0]]}))
    relation = given._relation()
    source, schema = with_shapes(relation, {"t": (2, 1), "gone": (3,)})
    assert tuple(schema.field("t").type.shape) == (2, 1) and source.num_rows == 2
    source, schema = with_shapes(relation, {"gone": (3,)})
    assert source is relation and schema.field("t").type == pa.list_(pa.float64())


class Verb:
    """In place of `run` or `train`: keeps what it is asked for."""

    def __init__(self, result: Any = None) -> None:
        self.result = result
        self.asked: dict[str, Any] = {}
        self.files: list[str] = []

    def __call__(self, script: str, source: Any, **given: Any) -> Any:
        self.asked = {**given, "script": script, "rows": source.fetchall()}
        self.files = given["user_files"]
        assert all(Path(one).exists() for one in self.files)
        if self.result is None:
            raise OSError("it failed")
        return self.result


def test_a_script_runs_once_over_the_chosen_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Verb(SimpleNamespace(table=pa.table({"a": [5]})))
    monkeypatch.setattr(scripts.verbs, "run", run)
    side = MemSourceBatchOp([(7,)], "n bigint")
    made = operator(selectedCols=["s"]).linkFrom(table(), side)
    assert made.getSchemaStr() == "a BIGINT" and run.asked == {}
    assert made.collect() == [(5,)] and made.select("a + 1 AS b").collect() == [(6,)]
    assert (run.asked["script"], run.asked["rows"], run.asked["output_schema"]) == ("m.py", [("a",), ("b",)], "a bigint")
    assert [Path(one).name for one in run.files] == ["bc_1"] and not any(Path(one).exists() for one in run.files)


def test_the_files_go_where_the_job_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Verb()
    monkeypatch.setattr(scripts.verbs, "run", run)
    with pytest.raises(OSError, match="it failed"):
        operator().linkFrom(table(), table()).collect()
    assert run.files and not any(Path(one).exists() for one in run.files)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [TFTableModelTrainBatchOp, TF2TableModelTrainBatchOp])
@pytest.mark.parametrize(("folder", "remove", "removes"), [("ckpt", True, True), ("ckpt", False, False), (None, True, False)])
def test_a_trainer_is_told_where_its_checkpoints_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: Any, folder: str | None, remove: bool, removes: bool
) -> None:
    model = pa.table({"model_id": [0], "model_info": ["m.zip"]}, schema=MODEL_SCHEMA)
    train = Verb(SimpleNamespace(model=SimpleNamespace(to_table=lambda: model)))
    monkeypatch.setattr(scripts.verbs, "train", train)
    path = None if folder is None else str(tmp_path / folder)
    made = kind(mainScriptFile="m.py", pythonEnv="x", checkpointFilePath=path, removeCheckpointBeforeTraining=remove)
    assert made.linkFrom(table()).getColNames() == ["model_id", "model_info"]
    assert made.collectToTable() == model
    params = train.asked["user_params"]
    assert params["ALINK:remove_checkpoint_before_training"] == json.dumps(remove) and params.get("ALINK:model_dir") == path
    assert (train.asked["checkpoint_dir"], train.asked["remove_checkpoint_before_training"]) == (path, removes)


def test_what_a_script_needs_is_asked_for_when_it_is_linked() -> None:
    with pytest.raises(ConfigError, match="TensorFlow2BatchOp needs mainScriptFile: call setMainScriptFile"):
        TensorFlow2BatchOp(outputSchemaStr="a bigint").linkFrom(table())
