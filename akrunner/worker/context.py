"""`task_config.tf_context`: the context object scripts of the Flink-AI-Extended family expect."""


class TFContext(object):
    """Attributes: index: of the task in its role; output_writer_op: the task's output writer."""

    def __init__(self, context, writer, stream=None):
        self._context = context
        self._stream = stream
        self.output_writer_op = writer
        self.index = context["tf_config"]["task"]["index"]

    def flink_stream_dataset(self, buffer_size=0):
        """This task's rows as a `tf.data.Dataset` of scalar serialized Examples. Args: buffer_size: ignored."""
        if self._stream is not None:
            return self._stream.dataset()
        if self._context["data_format"] == "columns":
            raise RuntimeError("data_format='columns': use task_config.dataset(batch_size) or task_config.batches(batch_size)")
        import tensorflow as tf

        return tf.data.TFRecordDataset(self._context["dataset_file"])

    def get_tf_cluster(self):
        """role -> list of "host:port"."""
        return self._context["tf_config"]["cluster"]

    def export_estimator_cluster(self):
        """role -> list of "host:port", as `get_tf_cluster`; TF_CONFIG in the environment says the same already."""
        return self.get_tf_cluster()

    def get_role_name(self):
        """ "chief", "worker", "ps" or "evaluator"."""
        return self._context["tf_config"]["task"]["type"]

    def get_index(self):
        """Index within the role."""
        return self.index

    @property
    def properties(self):
        """User params, every value a string."""
        return {key: str(value) for key, value in self._context["user_params"].items()}

    def get_property(self, key):
        """One user param as a string, None when there is none."""
        return self.properties.get(key)
