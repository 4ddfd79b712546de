"""Builds TF_CONFIG from a cluster: a pure function of values."""

from __future__ import annotations

from collections.abc import Mapping

from akrunner.spec import EVALUATOR, ClusterSpec, TaskSpec
from akrunner.wire.context import TFConfig


def tf_config(cluster: ClusterSpec, addresses: Mapping[TaskSpec, str], task: TaskSpec) -> TFConfig:
    """Return the TF_CONFIG of one task.

    Args:
        cluster: the roles.
        addresses: "host:port" of every task.
        task: the task that gets it.
    Returns:
        `{"cluster": {"chief": [...], "worker": [...], "ps": [...]}, "task": {"type": ..., "index": ...}}`; roles without a task
        are left out. With one worker: `{"chief": [address]}`, or `{"worker": [address]}` without a chief. The evaluator is in
        its own TF_CONFIG only, unless all tasks are to be told of it: TensorFlow 2 would wait for it.
    """
    members: dict[str, list[str]] = {}
    for member in cluster.tasks:
        if member.role == EVALUATOR and member != task and not cluster.evaluator_told:
            continue
        members.setdefault(member.role, []).append(addresses[member])
    return {"cluster": members, "task": {"type": task.role, "index": task.index}}
