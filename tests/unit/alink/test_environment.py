"""On which TensorFlow operators run that are told of none."""

from __future__ import annotations

from typing import Any, Callable, Dict, Type

import pytest

from akrunner import alink
from akrunner.alink.scripts import python_env
from akrunner.errors import PythonEnvError
from akrunner.launch import environments, interpreters

OPERATORS = [
    alink.TensorFlow2BatchOp,
    alink.TensorFlow2StreamOp,
    alink.TF2TableModelTrainBatchOp,
    alink.KerasSequentialClassifierTrainBatchOp,
]
There = Callable[..., None]


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> There:
    """Which named environments there are: name -> version of its TensorFlow."""
    monkeypatch.delenv("TF231_PYTHON_ENV_PATH", raising=False)

    def only(versions: Dict[str, str]) -> None:
        def named(recipe: environments.Recipe) -> interpreters.Interpreter:
            if recipe.name not in versions:
                raise PythonEnvError(f"python_env={recipe.name!r}: create one with `akrunner env create {recipe.name}`")
            return interpreters.Interpreter("/a/python", (3, 8, 1), versions[recipe.name], "")

        monkeypatch.setattr(interpreters, "named", named)

    return only


@pytest.mark.parametrize("operator", OPERATORS)
def test_tensorflow_2_is_alinks(there: There, operator: Type[Any]) -> None:
    there({"tf2.3": "2.3.4", "tf2": "2.20.0"})
    assert python_env(operator()) == "tf2.3"
    assert python_env(operator(pythonEnv="tf2")) == "tf2"
    assert python_env(alink.TensorFlowBatchOp()) == "tf1.15"


def test_another_tensorflow_2_is_told_of(there: There) -> None:
    there({"tf2": "2.20.0"})
    with pytest.warns(
        RuntimeWarning, match=r"^TensorFlow2BatchOp runs on TensorFlow 2.20.0 .*`akrunner env create tf2.3`.*pythonEnv='tf2'"
    ):
        assert python_env(alink.TensorFlow2BatchOp()) == "tf2"
    assert python_env(alink.TensorFlow2BatchOp(pythonEnv="tf2")) == "tf2"


def test_no_tensorflow_2(there: There) -> None:
    there({"tf1.15": "1.15.5"})
    with pytest.raises(PythonEnvError, match="`akrunner env create tf2.3`"):
        python_env(alink.TensorFlow2BatchOp())


def test_one_that_was_named_and_is_not_there(there: There, monkeypatch: pytest.MonkeyPatch) -> None:
    there({"tf2": "2.20.0"})
    monkeypatch.setenv("TF231_PYTHON_ENV_PATH", "/nowhere")
    with pytest.raises(PythonEnvError, match=r"^TF231_PYTHON_ENV_PATH=/nowhere is no environment with TensorFlow 2\.3\."):
        python_env(alink.TensorFlow2BatchOp())
