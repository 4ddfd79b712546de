from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ResourceSpec, ScriptSpec, SupervisionSpec

SCHEMA = Schema.parse("a bigint")


def job(**fields: Any) -> JobSpec:
    return JobSpec(ScriptSpec("/s.py", "s.py"), SCHEMA, "/usr/bin/python3", **fields)


def test_tasks() -> None:
    tasks = ClusterSpec(3, 2).tasks
    assert [t.name for t in tasks] == ["chief:0", "worker:0", "worker:1", "ps:0", "ps:1"]
    assert [t.name for t in ClusterSpec(3, 2).with_rows] == ["chief:0", "worker:0", "worker:1"]


def test_no_look_is_false_as_well_as_none() -> None:
    assert job(profile_input=False).profile_input is None and job(profile_input=7).profile_input == 7
    with pytest.raises(ConfigError, match="profile_input"):
        job(profile_input=True)


def test_a_coordinator_is_no_worker() -> None:
    cluster = ClusterSpec(2, 1, evaluator=True, coordinator=True)
    assert [t.name for t in cluster.tasks] == ["chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0"]
    assert [t.name for t in cluster.with_rows] == ["worker:0", "worker:1"]
    # until they say that they serve
    assert [t.name for t in cluster.awaited] == ["chief:0", "worker:0", "worker:1"]


@pytest.mark.parametrize(
    ("workers", "servers", "parallelism", "expected"),
    [
        (None, None, None, (1, 0)),
        (3, None, None, (3, 0)),
        (None, 2, None, (1, 2)),
        (None, None, 1, (1, 0)),
        (None, None, 2, (1, 1)),
        (None, None, 4, (3, 1)),
        (None, None, 8, (6, 2)),
        (3, None, 4, (3, 1)),
        (4, None, 4, (4, 0)),
        (None, 1, 4, (3, 1)),
        (None, 0, 4, (4, 0)),
        (2, 1, 4, (2, 1)),
    ],
)
def test_counts_that_are_not_given(workers: Any, servers: Any, parallelism: Any, expected: Any) -> None:
    cluster = ClusterSpec.of(workers, servers, parallelism)
    assert (cluster.num_workers, cluster.num_ps) == expected


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((None, 4, 4), "num_ps=4 leaves no worker of parallelism=4"),
        ((5, None, 4), "num_workers=5 is more than parallelism=4"),
        ((3, 2, 4), "num_workers=3 and num_ps=2 are more than parallelism=4"),
        ((None, None, 0), "parallelism=0"),
        ((0, None, 4), "num_workers=0"),
        ((None, "1", 4), "num_ps must be a whole number"),
    ],
)
def test_counts_that_do_not_fit(counts: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ClusterSpec.of(*counts)


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
        ({"user_params": {"f": object()}}, r"user_params\['f'\] is an object: give what JSON has"),
        ({"user_params": [1]}, "user_params must be a dict"),
        ({"resume": True, "cluster": ClusterSpec(2, 1)}, "resume: with num_ps= or coordinator= .*no save has a place"),
        ({"resume": True, "cluster": ClusterSpec(coordinator=True)}, "resume: with num_ps= or coordinator="),
        ({"mode": "stream", "cluster": ClusterSpec(coordinator=True)}, "coordinator: "),
        ({"env": {"A": True}}, "env: 'A' has a value of type bool: names and values must be text"),
    ],
)
def test_values(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        job(**fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": "5"}, "timeout='5'"),
        ({"start_timeout": -1}, "start_timeout=-1"),
        ({"stall_timeout": -1}, "stall_timeout=-1"),
        ({"stall_action": "cry"}, "stall_action='cry'.*warn, fail"),
        ({"max_restarts": -1}, "max_restarts=-1"),
        ({"max_restarts": 1.5}, "max_restarts must be a whole number"),
    ],
)
def test_supervision(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SupervisionSpec(**fields)


@pytest.mark.parametrize("fields", [{"gpus_per_worker": -1}, {"cpus_per_worker": 0}, {"intra_op_parallelism": "2"}])
def test_resources(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(fields))):
        ResourceSpec(**fields)


def test_legacy_keras_is_only_set_when_asked_for() -> None:
    assert job().task_env == {}
    assert job(keras="legacy").task_env == {"TF_USE_LEGACY_KERAS": "1"}
    assert job(keras="legacy", env={"TF_USE_LEGACY_KERAS": "0"}).task_env == {"TF_USE_LEGACY_KERAS": "0"}


def test_a_cluster_without_a_chief() -> None:
    cluster = ClusterSpec(3, 1, chief=False)
    assert [task.name for task in cluster.tasks] == ["worker:0", "worker:1", "worker:2", "ps:0"]
    assert (
        [task.name for task in cluster.with_rows]
        == [task.name for task in cluster.awaited]
        == ["worker:0", "worker:1", "worker:2"]
    )
    with pytest.raises(ConfigError, match="coordinator= is for a chief that coordinates"):
        ClusterSpec(2, coordinator=True, chief=False)


def test_who_is_alone() -> None:
    """One task, and nobody said what it is."""
    assert ClusterSpec().alone
    assert not any(one.alone for one in (ClusterSpec(chief=True), ClusterSpec(chief=False), ClusterSpec(2), ClusterSpec(1, 1)))


def test_who_stays_when_it_is_done() -> None:
    """Chief and workers of PAI's clusters, and nobody else."""
    program = ScriptSpec("/s.py", "s.py", program=True, pai=True)
    stay = JobSpec(program, SCHEMA, "/usr/bin/python3", cluster=ClusterSpec(2, 1, evaluator=True))
    assert [task.name for task in stay.staying] == ["chief:0", "worker:0"]
    told = {task.name: stay.context(task, {}, "/t", "/w", None)["stays"] for task in stay.cluster.tasks}
    assert told == {"chief:0": True, "worker:0": True, "ps:0": False, "evaluator:0": False}
    assert JobSpec(program, SCHEMA, "/usr/bin/python3").staying == job(cluster=ClusterSpec(2, 1)).staying == ()
