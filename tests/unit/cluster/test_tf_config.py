from __future__ import annotations

from typing import Any

import pytest

from akrunner.cluster.tf_config import tf_config
from akrunner.spec import ClusterSpec, TaskSpec

CASES = [
    (ClusterSpec(1), "chief", 0, {"chief": ["h:0"]}),
    (ClusterSpec(2), "chief", 0, {"chief": ["h:0"], "worker": ["h:1"]}),
    (ClusterSpec(2), "worker", 0, {"chief": ["h:0"], "worker": ["h:1"]}),
    (ClusterSpec(3, 2), "worker", 1, {"chief": ["h:0"], "worker": ["h:1", "h:2"], "ps": ["h:3", "h:4"]}),
    (ClusterSpec(1, 1), "ps", 0, {"chief": ["h:0"], "ps": ["h:1"]}),
    (ClusterSpec(2, 1, True), "chief", 0, {"chief": ["h:0"], "worker": ["h:1"], "ps": ["h:2"]}),
    (ClusterSpec(2, 1, True), "ps", 0, {"chief": ["h:0"], "worker": ["h:1"], "ps": ["h:2"]}),
    (ClusterSpec(2, 1, True), "evaluator", 0, {"chief": ["h:0"], "worker": ["h:1"], "ps": ["h:2"], "evaluator": ["h:3"]}),
    (ClusterSpec(1, chief=False), "worker", 0, {"worker": ["h:0"]}),
    (ClusterSpec(2, 1, chief=False), "worker", 1, {"worker": ["h:0", "h:1"], "ps": ["h:2"]}),
    (ClusterSpec(1, 1, coordinator=True), "worker", 0, {"chief": ["h:0"], "worker": ["h:1"], "ps": ["h:2"]}),
]


@pytest.mark.parametrize(("cluster", "role", "index", "members"), CASES)
def test_tf_config(cluster: ClusterSpec, role: str, index: int, members: dict[str, Any]) -> None:
    addresses = {task: f"h:{i}" for i, task in enumerate(cluster.tasks)}
    got = tf_config(cluster, addresses, TaskSpec(role, index))
    assert got == {"cluster": members, "task": {"type": role, "index": index}}
