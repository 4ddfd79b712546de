from __future__ import annotations

from typing import Any, Dict

import pytest

from akrunner.errors import ConfigError
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec

SCHEMA = Schema.parse("a bigint")


def job(**fields: Any) -> JobSpec:
    return JobSpec(ScriptSpec("/s.py", "s.py"), SCHEMA, "/usr/bin/python3", **fields)


def test_tasks() -> None:
    tasks = ClusterSpec(3, 2).tasks
    assert [t.name for t in tasks] == ["chief:0", "worker:0", "worker:1", "ps:0", "ps:1"]
    assert [t.name for t in tasks if t.gets_rows] == ["chief:0", "worker:0", "worker:1"]


@pytest.mark.parametrize(
    ("counts", "words"),
    [((0, 0), "num_workers=0"), ((1, -1), "num_ps=-1"), ((1.5, 0), "whole number"), ((True, 0), "whole number")],
)
def test_counts(counts: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ClusterSpec(*counts)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mode": "bach"}, "mode='bach'"),
        ({"keras": "2"}, "keras='2'.*legacy"),
        ({"user_params": {"f": object()}}, "user_params must hold JSON"),
        ({"user_params": [1]}, "user_params must be a dict"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": "5"}, "timeout='5'"),
        ({"start_timeout": -1}, "start_timeout=-1"),
        ({"env": {"A": 1}}, "env: 'A'=1 must be text"),
    ],
)
def test_values(fields: Dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        job(**fields)


def test_legacy_keras_is_only_set_when_asked_for() -> None:
    assert job().task_env == {}
    assert job(keras="legacy").task_env == {"TF_USE_LEGACY_KERAS": "1"}
    assert job(keras="legacy", env={"TF_USE_LEGACY_KERAS": "0"}).task_env == {"TF_USE_LEGACY_KERAS": "0"}
