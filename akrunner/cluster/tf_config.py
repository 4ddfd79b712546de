"""Cluster -> TF_CONFIG: a function of values to values."""

from __future__ import annotations

from collections.abc import Mapping

from akrunner.spec import EVALUATOR, ClusterSpec, TaskSpec
from akrunner.wire.context import TFConfig


def tf_config(cluster: ClusterSpec, addresses: Mapping[TaskSpec, str], task: TaskSpec) -> TFConfig:
    """What TF_CONFIG says to one task.

    Args:
        cluster: the roles; addresses: "host:port" of every task; task: whose it is.
    Returns: `{"cluster": {"chief": [...], "worker": [...], "ps": [...]}, "task": {"type": ..., "index": ...}}`; roles nobody
        has are left out. With one worker: `{"chief": [address]}`, or `{"worker": [address]}` without a chief. The evaluator is in its own only,
        unless all are to be told of it: TensorFlow 2 would wait for it.
    """
    members: dict[str, list[str]] = {}
    for member in cluster.tasks:
        if member.role == EVALUATOR and member != task and not cluster.evaluator_told:
            continue
        members.setdefault(member.role, []).append(addresses[member])
    return {"cluster": members, "task": {"type": task.role, "index": task.index}}
