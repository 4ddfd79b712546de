"""TensorFlow's server, for tasks that do what others ask of them."""

from __future__ import annotations

import os
from typing import Any, Dict


def start(cluster: Dict[str, Any], role: str, index: int) -> Any:
    """The running server of one task. Args: cluster: role -> list of "host:port"."""
    # a worker that has gone is an error at once, not something to wait for
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")
    import tensorflow as tf

    return tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=role, task_index=index, protocol="grpc", start=True)
