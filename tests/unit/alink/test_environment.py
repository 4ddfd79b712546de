"""On which TensorFlow operators run that are told of none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas
import pytest

from akrunner import alink
from akrunner.alink.environment import Echo, Environment, current
from akrunner.alink.scripts import python_env
from akrunner.errors import ConfigError, PythonEnvError
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

    def only(versions: dict[str, str]) -> None:
        def named(recipe: environments.Recipe) -> interpreters.Interpreter:
            if recipe.name not in versions:
                raise PythonEnvError(f"python_env={recipe.name!r}: create one with `akrunner env create {recipe.name}`")
            return interpreters.Interpreter("/a/python", (3, 8, 1), versions[recipe.name], "")

        monkeypatch.setattr(interpreters, "named", named)

    return only


@pytest.mark.parametrize("operator", OPERATORS)
def test_tensorflow_2_is_alinks(there: There, operator: type[Any]) -> None:
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


def test_how_alinks_programs_begin(there: There, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a download of plugins: nothing is downloaded, and what runs instead is said."""
    monkeypatch.delenv("ALINK_PLUGINS_DIR", raising=False)
    there({"tf1.15": "1.15.5", "tf2": "2.20.0"})
    configuration = alink.AlinkGlobalConfiguration
    downloader = configuration.getPluginDownloader()
    for plugin, line in {
        "tf115_python_env_macosx": "nothing to download, scripts run on TensorFlow 1.15.5 of /a/python",
        "tf231_python_env_linux": "nothing to download, scripts run on TensorFlow 2.20.0 of /a/python; for TensorFlow 2.3: "
        "`akrunner env create tf2.3`",
        "mysql": "akrunner has no plugins and downloads none",
    }.items():
        downloader.downloadPlugin(plugin, "0.01")
        assert capsys.readouterr() == ("", f"{plugin}: {line}\n")
    there({})
    downloader.downloadAll()
    assert capsys.readouterr().err.count("`akrunner env create tf") == len(downloader.listAvailablePlugins()) == 2
    assert [downloader.listAvailablePluginVersions(name) for name in downloader.listAvailablePlugins()] == [["1.15"], ["2.3"]]
    with pytest.raises(ConfigError, match="pluginName"):
        downloader.downloadPlugin(3)
    assert configuration.getPluginDir() == "plugins" and not configuration.getAutoPluginDownload()
    assert re.fullmatch(r"(flink-[0-9.]+)?", configuration.getFlinkVersion())


def test_frames(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    batch = alink.dataframeToOperator(frame, "a long, b string", op_type="batch")
    (again,) = alink.collectToDataframes(batch)
    assert again.values.tolist() == frame.values.tolist()
    alink.dataframeToOperator(frame, "c long, d string", opType="stream").where("c > 1").print()
    alink.StreamOperator.execute()
    assert "2" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="op_type=None: give 'batch' or 'stream'"):
        alink.dataframeToOperator(frame, "a long, b string")


def test_what_such_programs_call(capsys: pytest.CaptureFixture[str]) -> None:
    frames: list[Any] = []
    rows = alink.BatchOperator.fromDataframe(pandas.DataFrame({"a": [1, 2]}), schemaStr="a int")
    rows.linkTo(alink.FirstNBatchOp().setSize(1)).lazyCollectToDataframe(frames.append, lambda frame: print(len(frame), "row"))
    alink.BatchOperator.execute("a job")
    assert [frame["a"].tolist() for frame in frames] == [[1]] and capsys.readouterr().out == "1 row\n"
    alink.StreamOperator.setParallelism(2)
    assert alink.useLocalEnv(1).parallelism == 1
    alink.resetEnv()


def test_pending_actions_run_once_in_their_order() -> None:
    ran: list[int] = []
    one = Environment(pending=[lambda: ran.append(1), lambda: ran.append(2)])
    one.execute()
    one.execute()
    assert ran == [1, 2]


def test_what_tasks_print_is_shown_to_who_asks_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert Environment().observer is None and isinstance(Environment(debug=True).observer, Echo)
    Echo().log("worker:0", "at work")
    assert capsys.readouterr().err == "[worker:0] at work\n"


def test_the_environment_that_is_chosen_is_the_current_one() -> None:
    assert alink.useLocalEnv(3) is current() and current().parallelism == 3
    alink.useLocalEnv(1)
