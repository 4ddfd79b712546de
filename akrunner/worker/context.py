"""`task_config.tf_context`: the context object that scripts of the Flink-AI-Extended family expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING:
    from akrunner.wire.context import Context
    from akrunner.worker.output import OutputWriter
    from akrunner.worker.stream import RowStream


class TFContext(object):
    """The context of a task. Attributes: index: the task's index in its role; output_writer_op: the task's output writer."""

    def __init__(self, context: Context, writer: OutputWriter, stream: Optional[RowStream] = None) -> None:
        self._context = context
        self._stream = stream
        self.output_writer_op = writer
        self.index: int = context["tf_config"]["task"]["index"]

    def flink_stream_dataset(self, buffer_size: int = 0) -> Any:
        """Return this task's rows as a `tf.data.Dataset` of scalar serialized Examples. Args: buffer_size: ignored."""
        if self._stream is not None:
            return self._stream.dataset()
        if self._context["data_format"] == "columns":
            raise RuntimeError("data_format='columns': use task_config.dataset(batch_size) or task_config.batches(batch_size)")
        import tensorflow as tf

        return tf.data.TFRecordDataset(self._context["dataset_file"])

    def get_tf_cluster(self) -> Dict[str, List[str]]:
        """Return the cluster: role -> list of "host:port"."""
        cluster: Dict[str, List[str]] = self._context["tf_config"]["cluster"]
        return cluster

    def export_estimator_cluster(self) -> Dict[str, List[str]]:
        """Return the same as `get_tf_cluster`; TF_CONFIG is already set in the environment."""
        return self.get_tf_cluster()

    def get_role_name(self) -> str:
        """Return "chief", "worker", "ps" or "evaluator"."""
        role: str = self._context["tf_config"]["task"]["type"]
        return role

    def get_index(self) -> int:
        """Return the task's index within its role."""
        return self.index

    @property
    def properties(self) -> Dict[str, str]:
        """The user params, every value as a string."""
        return {key: str(value) for key, value in self._context["user_params"].items()}

    def get_property(self, key: str) -> Optional[str]:
        """Return one user param as a string, or None if there is no such param."""
        return self.properties.get(key)
