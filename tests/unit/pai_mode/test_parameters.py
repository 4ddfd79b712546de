"""PAI's parameters, -name, -Dcluster and the script's flags: values of values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode import flags
from akrunner.pai_mode.algorithms import environment_of
from akrunner.pai_mode.clusters import Tasks, tasks_of
from akrunner.pai_mode.parameters import PARAMETERS, known
from akrunner.pai_mode.words import parsed


def test_what_is_not_as_on_pai_is_said_once_for_each() -> None:
    found, warnings = known(
        parsed("PAI -name t -Darn=x -DSCRIPT=a.py -Dwhatever=1 -DautoStrategy='false' -Dtags=a -lineage '{}'")
    )
    assert found == {"arn": "x", "script": "a.py", "autoStrategy": "false", "tags": "a"}
    assert [warning.partition(" ")[0] for warning in warnings] == ["arn", "-Dwhatever", "-lineage"]


@pytest.mark.parametrize(
    "given, meant", [("scirpt", "script"), ("table", "tables"), ("entry_file", "entryFile"), ("gpuRequire", "gpuRequired")]
)
def test_a_slip_is_told_with_what_was_meant(given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"no parameter -D{given}; did you mean -D{meant}"):
        known(parsed(f"PAI -name t -D{given}=1"))


def test_every_parameter_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "pai.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(PARAMETERS) <= documented


@pytest.mark.parametrize(
    "name, environment, told",
    [
        ("tensorflow1150", "tf1.15", ""),
        ("tensorflow115_ext", "tf1.15", ""),
        ("tensorflow_cpu_1150", "tf1.15", ""),
        ("tensorflow_cpu_1120", "tf1.15", "is TensorFlow 1.12, on Python 2.7"),
        ("tensorflow", "tf1.15", "says no version"),
        ("tensorflow1120_cpu_ext", "tf1.15", "is TensorFlow 1.12, on Python 2.7, on PAI"),
        ("tensorflow1120_py3", "tf1.15", "is TensorFlow 1.12 on PAI"),
        ("tensorflow180", "tf1.15", "is TensorFlow 1.8, on Python 2.7"),
        ("tensorflow140_lite_beta_kd", "tf1.15", "is TensorFlow 1.4"),
        ("tensorflow180_hvd_test", "tf1.15", "Horovod"),
        ("tensorflow230", "tf2.3", ""),
        ("tensorflow2120", "tf2", ""),
        ("tensorflow2", "tf2", ""),
        ("tensorflow2_gpu", "tf2", ""),
        ("tensorflow2.0", "tf2.3", ""),
    ],
)
def test_the_name_picks_the_environment(name: str, environment: str, told: str) -> None:
    found, notes = environment_of(name)
    assert found == environment
    assert told in " ".join(notes) and bool(told) == bool(notes)


@pytest.mark.parametrize(
    "name, told",
    [
        ("pytorch180", "none of PAI-TensorFlow's"),
        ("easy_rec_ext", "a product on top.*-DentryFile"),
        ("tensorboard", "tensorboard --logdir"),
        ("tensorfow1150", "did you mean tensorflow1150"),
        ("randomforests", "an algorithm of PAI's own"),
        ("tensorflow990", "no TensorFlow 9"),
    ],
)
def test_a_name_that_cannot_run_says_what_can(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        environment_of(name)


def test_roles_of_a_cluster() -> None:
    text = r"{\"ps\":{\"count\":2,\"cpu\":600}, \"worker\":{\"count\":3,\"gpu\":50,\"cpu\":250,\"memory\":1000},\"evaluator\":{\"count\":1}}"
    assert tasks_of({"cluster": text}) == Tasks(3, 2, True, True, gpus=1, cpus=2)
    assert tasks_of({"cluster": '{"chief":{"count":1},"worker":{"count":"2"}}'}) == Tasks(3, given=True)
    assert tasks_of({"cluster": '{"worker":1}', "gpuRequired": "0"}) == Tasks(1, given=True)
    assert tasks_of({"gpuRequired": "200"}) == Tasks(gpus=2)
    assert tasks_of({"gpuRequired": ""}) == Tasks() == tasks_of({})


@pytest.mark.parametrize(
    "text, told",
    [
        ("{x", "is not JSON"),
        ("[]", "must be an object of roles"),
        ("{}", "names no worker"),
        ('{"ps":{"count":1}}', "names no worker"),
        ('{"wroker":{"count":1}}', "no role 'wroker'; did you mean 'worker'"),
        ('{"worker":{"cont":1}}', "'cont'; did you mean 'count'"),
        ('{"worker":{"count":0}}', "at least one worker"),
        ('{"worker":{"count":1.5}}', "whole number"),
        ('{"worker":{"count":-1}}', "between 0 and"),
        ('{"worker":{"count":1},"evaluator":{"count":2}}', "one evaluator"),
        ('{"worker":[1]}', "must be an object"),
        ('{"worker":' + "[" * 100_000, "JSON|deep"),
    ],
)
def test_a_cluster_that_is_none(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        tasks_of({"cluster": text})


def test_cluster_and_cards_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="cluster and gpuRequired should not be set at the same time"):
        tasks_of({"cluster": '{"worker":{"count":1}}', "gpuRequired": "100"})


def test_flags_as_a_shell_divides_them() -> None:
    text = """ --a=1 --b='x y' \\
        --json='{"k": [1, 2]}'
        --c \\
        --d=a=b positional"""
    assert flags.from_text(text) == ["--a=1", "--b=x y", '--json={"k": [1, 2]}', "--c", "--d=a=b", "positional"]
    assert flags.from_text("") == []
    with pytest.raises(ConfigError, match="userDefinedParameters: no closing quotation"):
        flags.from_text("--a='b")


def test_hyper_parameters_of_a_file() -> None:
    text = "\ufeff# comment\n\nbatch_size=10\n --lr = 0.1 \r\nname='x y'\nempty=\nq=a=b;\n// end\n"
    assert flags.from_file(text, "h.txt") == ["--batch_size=10", "--lr=0.1", "--name=x y", "--empty=", "--q=a=b"]
    with pytest.raises(ConfigError, match="line 2 of h.txt must be key=value"):
        flags.from_file("a=1\nb 2\n", "h.txt")


def test_oss_in_flags_becomes_a_directory_wherever_it_stands() -> None:
    def local(uri: str) -> str:
        return "/here/" + uri.partition("?")[0][6:]

    given = [
        "--m=oss://b.h/m/?role_arn=acs:x",
        '--j={"c": "oss://b/c.json"}',
        "--l=oss://b/1,oss://b/2",
        "--t=odps://p/tables/t",
    ]
    found, replaced = flags.localised(given, local)
    assert found == ["--m=/here/b.h/m/", '--j={"c": "/here/b/c.json"}', "--l=/here/b/1,/here/b/2", "--t=odps://p/tables/t"]
    assert replaced[0] == ("oss://b.h/m/", "/here/b.h/m/") and len(replaced) == 4
