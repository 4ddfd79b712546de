"""Starts TensorFlow's server, for tasks that do the work that other tasks send."""

from __future__ import annotations

import os
from typing import Any, Dict


def start(cluster: Dict[str, Any], role: str, index: int) -> Any:
    """Start the server of one task and return it. Args: cluster: role -> list of "host:port"."""
    # a call to a worker that has died fails at once and does not wait
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")
    import tensorflow as tf

    return tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=role, task_index=index, protocol="grpc", start=True)
