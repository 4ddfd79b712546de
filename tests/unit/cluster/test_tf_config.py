from __future__ import annotations

from typing import Any, Dict

import pytest

from akrunner.cluster.failure import root_cause
from akrunner.cluster.tf_config import tf_config
from akrunner.errors import TaskFailure
from akrunner.spec import ClusterSpec, TaskSpec

CASES = [
    (ClusterSpec(1), "chief", 0, {"chief": ["h:0"]}),
    (ClusterSpec(2), "chief", 0, {"chief": ["h:0"], "worker": ["h:1"]}),
    (ClusterSpec(2), "worker", 0, {"chief": ["h:0"], "worker": ["h:1"]}),
    (ClusterSpec(3, 2), "worker", 1, {"chief": ["h:0"], "worker": ["h:1", "h:2"], "ps": ["h:3", "h:4"]}),
    (ClusterSpec(1, 1), "ps", 0, {"chief": ["h:0"], "ps": ["h:1"]}),
]


@pytest.mark.parametrize(("cluster", "role", "index", "members"), CASES)
def test_tf_config(cluster: ClusterSpec, role: str, index: int, members: Dict[str, Any]) -> None:
    addresses = {task: f"h:{i}" for i, task in enumerate(cluster.tasks)}
    got = tf_config(cluster, addresses, TaskSpec(role, index))
    assert got == {"cluster": members, "task": {"type": role, "index": index}}


def test_the_earliest_failure_is_the_root_cause() -> None:
    first, second = TaskFailure("worker:1", "raised", time_ns=5), TaskFailure("chief:0", "died", time_ns=9)
    assert root_cause([second, first]) == (first, [second])
