"""The flags by which PAI tells a task of the others."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.cluster.tf_config import tf_config
from akrunner.spec import ClusterSpec
from akrunner.worker import pai_program


@pytest.mark.parametrize("chief", [None, False])
def test_the_chief_is_worker_0(chief: bool | None) -> None:
    cluster = ClusterSpec(2, 1, True, chief=chief, flags=True, evaluator_told=True)
    addresses = {task: f"h:{number}" for number, task in enumerate(cluster.tasks)}
    given: list[dict[str, Any]] = [tf_config(cluster, addresses, task) for task in cluster.tasks]
    assert all(one["cluster"]["evaluator"] == ["h:3"] for one in given)
    hosts = ["--ps_hosts=h:2", "--worker_hosts=h:0,h:1"]
    assert [pai_program.cluster_flags(one) for one in given] == [
        ["--job_name=worker", "--task_index=0", *hosts],
        ["--job_name=worker", "--task_index=1", *hosts],
        ["--job_name=ps", "--task_index=0", *hosts],
        ["--job_name=evaluator", "--task_index=0", *hosts],
    ]


def test_without_parameter_servers_their_list_is_empty() -> None:
    told = {"cluster": {"chief": ["h:0"]}, "task": {"type": "chief", "index": 0}}
    assert pai_program.cluster_flags(told) == ["--job_name=worker", "--task_index=0", "--ps_hosts=", "--worker_hosts=h:0"]
