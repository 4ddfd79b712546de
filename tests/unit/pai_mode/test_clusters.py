"""How many tasks a command asks for, and what each may use: numbers at their limits, roles that stand alone, JSON within JSON."""

from __future__ import annotations

import json

import pytest

from akrunner.checks import MOST_TASKS
from akrunner.errors import ConfigError
from akrunner.pai_mode.clusters import Tasks, tasks_of


@pytest.mark.parametrize(
    "parameters, tasks",
    [
        ({"workerCount": "1"}, Tasks(1)),
        ({"workerCount": "3"}, Tasks(3, given=True)),
        ({"workerCount": ""}, Tasks(1)),
        ({"workerCount": "2", "gpuRequired": "100"}, Tasks(2, given=True, gpus=1)),
        ({"gpuRequired": "0"}, Tasks(gpus=0)),
        ({"gpuRequired": "101"}, Tasks(gpus=2)),
    ],
)
def test_without_roles_there_are_workers_alone(parameters: dict[str, str], tasks: Tasks) -> None:
    assert tasks_of(parameters) == tasks


@pytest.mark.parametrize(
    "parameters, told",
    [
        ({"workerCount": "0"}, "-DworkerCount=0: there must be at least 1"),
        ({"workerCount": "two"}, "-DworkerCount='two' must be a whole number"),
        ({"gpuRequired": "-100"}, "-DgpuRequired=-100: 0 or more"),
    ],
)
def test_a_number_that_is_none_names_its_parameter(parameters: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        tasks_of(parameters)


@pytest.mark.parametrize(
    "roles, tasks",
    [
        ({"worker": {"count": 2}}, Tasks(2, given=True)),
        ({"worker": {"memory": 4096}}, Tasks(1, given=True)),
        ({"worker": {}}, Tasks(1, given=True)),
        ({"ps": 1, "worker": {}}, Tasks(1, 1, given=True)),
        ({"chief": {"count": 1, "gpu": 200, "cpu": 400}}, Tasks(1, given=True, gpus=2, cpus=4)),
        ({"chief": 1, "worker": {"count": 2, "gpu": 100}}, Tasks(3, given=True, gpus=1)),
        ({"chief": 1, "worker": 0}, Tasks(1, given=True)),
        ({"ps": 0, "worker": 1, "evaluator": 0}, Tasks(1, given=True)),
        ({"ps": {}, "worker": 1, "evaluator": {}}, Tasks(1, 1, True, True)),
        ({"worker": {"count": " 2 ", "gpu": 0, "cpu": 0}}, Tasks(2, given=True, gpus=0)),
        ({"worker": {"cpu": 1}}, Tasks(1, given=True, cpus=1)),
        ({"worker": MOST_TASKS}, Tasks(MOST_TASKS, given=True)),
    ],
)
def test_roles(roles: object, tasks: Tasks) -> None:
    assert tasks_of({"cluster": json.dumps(roles)}) == tasks


def test_json_may_come_as_a_text_of_json_or_with_the_backslashes_of_a_shell() -> None:
    text = json.dumps({"ps": {"count": 1}, "worker": {"count": 2}})
    for given in (text, json.dumps(text), text.replace('"', '\\"'), text.replace('"', '\\\\\\"')):
        assert tasks_of({"cluster": given}) == Tasks(2, 1, given=True)


@pytest.mark.parametrize(
    "text, told",
    [
        (f'{{"worker":{MOST_TASKS + 1}}}', f"count of worker is {MOST_TASKS + 1}: between 0 and {MOST_TASKS}"),
        ('{"worker":{"count":true}}', "count of worker must be a whole number, not True"),
        ('{"worker":{"count":null}}', "count of worker must be a whole number, not None"),
        ('{"worker":{"gpu":"one"}}', "gpu of worker must be a whole number, not 'one'"),
        ('{"worker":{"cpu":-1}}', "cpu of worker is -1: between 0 and 1000000000"),
        ('{"worker":{"memory":1000000001}}', "memory of worker is 1000000001: between 0 and 1000000000"),
        ('{"worker":true}', "worker must be an object"),
        ('{"worker":1,"chief":2}', "there can be one chief, not 2"),
        ('{"chief":{"count":0}}', "there must be at least one worker"),
        ('"worker"', "is not JSON"),
        ("1", "must be an object of roles"),
    ],
)
def test_what_is_wrong_is_told_with_its_role(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        tasks_of({"cluster": text})
    assert str(raised.value).startswith("-Dcluster")
