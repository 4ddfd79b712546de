"""Every process that a job will have, with its cores, its variables and TF_CONFIG."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.launch import devices
from akrunner.planning.tasks import PlannedTask, lines_of_tasks, planned_tasks, too_many
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ResourceSpec, ScriptSpec


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of four cores and two cards, whose environment says nothing of threads."""
    monkeypatch.setattr(devices, "cpus", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(devices, "gpus", lambda: ["0", "1"])
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        monkeypatch.delenv(name, raising=False)


def planned(cluster: ClusterSpec, **fields: Any) -> dict[str, PlannedTask]:
    job = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", cluster, **fields)
    return {task.name: task for task in planned_tasks(job)}


def test_a_worker_alone_is_told_of_no_cluster() -> None:
    (task,) = planned(ClusterSpec()).values()
    assert task == PlannedTask("chief:0", True, (), {}, None)


def test_of_a_cluster_each_task_has_its_place_in_tf_config() -> None:
    tasks = planned(ClusterSpec(2, 1, evaluator=True), advertised_host="me.example")
    assert list(tasks) == ["chief:0", "worker:0", "ps:0", "evaluator:0"]
    assert [task.gets_rows for task in tasks.values()] == [True, True, False, False]
    config = tasks["worker:0"].tf_config
    assert config is not None and config["task"] == {"type": "worker", "index": 0}
    assert config["cluster"] == {"chief": ["me.example:0"], "worker": ["me.example:0"], "ps": ["me.example:0"]}
    assert tasks["worker:0"].env["TF_CONFIG"] == "..."


def test_cores_and_cards_are_those_that_the_job_will_give() -> None:
    tasks = planned(ClusterSpec(2, 1), resources=ResourceSpec(gpus_per_worker=1, cpus_per_worker=2))
    assert [task.cores for task in tasks.values()] == [(0, 1), (2, 3), ()]
    assert [task.env["CUDA_VISIBLE_DEVICES"] for task in tasks.values()] == ["0", "1", ""]
    assert tasks["chief:0"].env["OMP_NUM_THREADS"] == "2"


def test_cards_are_not_looked_for_if_none_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpus", lambda: pytest.fail("nobody asked"))
    assert "CUDA_VISIBLE_DEVICES" not in planned(ClusterSpec(2))["chief:0"].env


def test_more_cards_than_there_are_are_refused_with_the_parameter() -> None:
    with pytest.raises(ConfigError, match="^gpus_per_worker=2: 2 workers need 4 graphics cards, this machine has 2"):
        planned(ClusterSpec(2), resources=ResourceSpec(gpus_per_worker=2))


def test_threads_that_the_job_sets_itself_stay() -> None:
    assert "OMP_NUM_THREADS" not in planned(ClusterSpec(2), env={"OMP_NUM_THREADS": "3"})["chief:0"].env


def test_lines_say_what_each_task_gets() -> None:
    lines = lines_of_tasks(
        [
            PlannedTask("chief:0", True, (0, 1), {"OMP_NUM_THREADS": "2", "TF_CONFIG": "..."}, None),
            PlannedTask("ps:0", False, (), {}, None),
        ]
    )
    assert lines == [
        "tasks:        2",
        " " * 14 + "chief:0     gets rows; cores 0, 1; OMP_NUM_THREADS=2",
        " " * 14 + "ps:0        gets no rows; all cores",
    ]


@pytest.mark.parametrize("count, last", [(40, "worker:39"), (41, "and 1 more"), (1041, "and 1,001 more")])
def test_of_many_tasks_the_first_are_shown(count: int, last: str) -> None:
    lines = lines_of_tasks([PlannedTask(f"worker:{i}", True, (), {}, None) for i in range(count)])
    assert lines[0].split() == ["tasks:", str(count)] and lines[-1].strip().startswith(last)
    assert len(lines) == min(count, 40) + 1 + (count > 40)


def test_more_workers_than_rows_are_told_with_the_number_that_is_enough() -> None:
    assert too_many(2, 3) == "2 rows for 3 workers: 1 of them gets none; num_workers=2 (--num-workers) is enough"
    assert too_many(1, 3) == "1 row for 3 workers: 2 of them get none; num_workers=1 (--num-workers) is enough"
    assert too_many(1000, 1002).startswith("1,000 rows for 1002 workers: 2 of them get none;")
