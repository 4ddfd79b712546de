"""The bundle under real TensorFlow: the one the tests run in, and every one of the matrix that was prepared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional

import pyarrow as pa
import pytest

import akrunner
from akrunner.launch.interpreters import Interpreter
from tests.conftest import Script
from tests.worker import scripts

pytestmark = pytest.mark.tensorflow


def table() -> pa.Table:
    matrix = pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4] * 5), 4)
    return pa.table(
        {
            "i": pa.array([1, None, -3, 4, 5]),
            "s": pa.array(["a", None, "é", "", "e"]),
            "f": pa.array([0.5, None, 1.5, 2.5, 3.5]),
            "v": pa.FixedSizeListArray.from_arrays(pa.array([float(i + 1) for i in range(10)], pa.float32()), 2),
            "m": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), (2, 2)), matrix),
            "ragged": pa.array([[1, 2], [], [3], [4, 5, 6], [7]]),
        }
    )


def check_everything(script: Script, python_env: Optional[str]) -> akrunner.Result:
    result = akrunner.run(
        script(scripts.EVERYTHING),
        table(),
        user_params={"n": 3, "nested": {"a": [1, None]}},
        output_schema="i bigint, p double, s string, v FLOAT_TENSOR",
        python_env=python_env,
    )
    assert result.table is not None
    assert result.table["i"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert result.table["p"].to_pylist() == [0.0, 0.5, 1.0, None, 0.1, 2.5], "a double is not narrowed on the way back"
    assert result.table["s"].to_pylist() == ["row0", "row1", "row2", None, "row4", "row5"]
    assert result.table["v"].to_pylist() == [[], [1.0], [1.0], None, [1.0] * 3, [1.0] * 2]
    assert [(r["task"], r["step"], r["loss"]) for r in result.stats.reports] == [("chief:0", 10, 0.5)]
    return result


def check_all_reduce(script: Script, python_env: Optional[str]) -> None:
    rows: Any = {"x": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 2.0], "y": [2.0, 4.0, 6.0, 2.0, 4.0, 6.0, 4.0]}
    result = akrunner.run(
        script(scripts.ALL_REDUCE),
        rows,
        num_workers=2,
        output_schema="rows bigint, w double",
        python_env=python_env,
        timeout=120,
    )
    assert result.table is not None and result.stats.shares == (4, 3)
    assert result.table["rows"].to_pylist() == [7, 7], "each worker saw the sum over both"
    first, second = result.table["w"].to_pylist()
    assert first == second and abs(first - 2.0) < 0.05, "one model, trained on the rows of both"


def check_columns(script: Script, python_env: Optional[str]) -> None:
    options: Any = dict(data_format="columns", python_env=python_env)
    result = akrunner.run(script(scripts.COLUMNS), table(), output_schema="i bigint", **options)
    assert result.table is not None and result.table["i"].to_pylist() == [5]
    rows = {"i": range(1000), "s": ["x"] * 1000}
    with akrunner.stream(script(scripts.COLUMN_STREAM), pa.table(rows), output_schema="total bigint", **options) as job:
        assert [batch.column("total").to_pylist() for batch in job] == [[sum(range(1000))]]


def test_columns(leaves_nothing: Path, script: Script) -> None:
    check_columns(script, None)


@pytest.mark.matrix
def test_columns_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_columns(script, matrix_python.path)


def test_everything_a_batch_script_may_use(leaves_nothing: Path, script: Script) -> None:
    check_everything(script, None)


def test_two_workers_form_a_cluster(leaves_nothing: Path, script: Script) -> None:
    check_all_reduce(script, None)


@pytest.mark.matrix
def test_everything_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    result = check_everything(script, matrix_python.path)
    assert f"tensorflow {matrix_python.tensorflow}" in result.tasks[0].log_tail


@pytest.mark.matrix
@pytest.mark.parametrize("matrix_python", ["tf2.3", "newest"], indirect=True)
def test_two_workers_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_all_reduce(script, matrix_python.path)


@pytest.mark.matrix
def test_train_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    result = akrunner.train(script(scripts.TRAIN), {"a": [1, 2]}, python_env=matrix_python.path)
    assert result.model is not None and "saved_model.pb" in os.listdir(result.model.path)
    assert result.model.to_table()["model_info"][0].as_py() == "1700000000.zip"
    del result


@pytest.mark.matrix
def test_stream_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    table = {"i": list(range(1000)), "s": ["x"] * 1000}
    with akrunner.stream(script(scripts.STREAM), table, python_env=matrix_python.path, output_schema="total bigint") as job:
        assert [batch.column("total").to_pylist() for batch in job] == [[sum(range(1000))]]
