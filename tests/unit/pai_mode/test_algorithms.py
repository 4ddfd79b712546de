"""What of PAI's -name stands behind the product's own word: the version in all its spellings, Horovod, and names of other products."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.algorithms import environment_of


@pytest.mark.parametrize(
    "name, environment, version",
    [
        (" TensorFlow1150 ", "tf1.15", ""),
        ("tensorflow1.15.5", "tf1.15", ""),
        ("tensorflow110", "tf1.15", "TensorFlow 1.10,"),
        ("tensorflow1100", "tf1.15", "TensorFlow 1.10,"),
        ("tensorflow12", "tf1.15", "TensorFlow 1.2,"),
        ("tensorflow1.4", "tf1.15", "TensorFlow 1.4,"),
        ("tensorflow1130", "tf1.15", "TensorFlow 1.13 on PAI"),
        ("tensorflow2.3_gpu", "tf2.3", ""),
        ("tensorflow24", "tf2", ""),
        ("tensorflow2.10", "tf2", ""),
        (f"tensorflow2.{'9' * 5000}", "tf2", ""),
        ("tensorflow_gpu_230", "tf2.3", ""),
    ],
)
def test_a_version_is_read_however_it_is_spelt(name: str, environment: str, version: str) -> None:
    found, notes = environment_of(name)
    assert found == environment
    assert [version in note for note in notes] == ([True] if version else [])


def test_python_2_is_named_only_where_pai_has_it() -> None:
    assert "Python 2.7" in environment_of("tensorflow1120")[1][0]
    for name in ("tensorflow1130", "tensorflow1120_PY3"):
        assert "Python 2.7" not in environment_of(name)[1][0]


def test_each_thing_that_is_not_as_on_pai_has_its_own_note() -> None:
    _, notes = environment_of("tensorflow1120_hvd")
    assert len(notes) == 2 and "Horovod" in notes[0] and "1.12" in notes[1]
    assert ["Horovod" in note for note in environment_of("tensorflow2_horovod")[1]] == [True]


@pytest.mark.parametrize(
    "name, told",
    [
        ("EasyTransfer_x", "its script by -name tensorflow1120"),
        ("alink_lr", "run its operators by akrunner.alink"),
        ("ps_lr", "-name ps_lr is none of PAI-TensorFlow's"),
        ("XGBoost", "-name XGBoost is none of PAI-TensorFlow's"),
        ("tensorflow1150x", "did you mean tensorflow1150"),
        ("tensorflow3", "there is no TensorFlow 3; write tensorflow1150"),
        ("tensorflow0", "there is no TensorFlow 0"),
        (f"tensorflow{'9' * 5000}.1", "-name .* there is no TensorFlow 999999999;"),
        ("logisticregression_binary", "-name logisticregression_binary is an algorithm of PAI's own"),
    ],
)
def test_another_name_is_refused_with_what_to_write(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        environment_of(name)
