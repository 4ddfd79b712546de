"""`Context` and `TFContext` for scripts of Deep Learning on Flink (`map_func(context)`), backed by the task of this process.

They follow `dl_on_flink_framework.context` and `dl_on_flink_tensorflow.tensorflow_context` of version 0.5, and also have the
older names of Flink AI Extended. There, the submitting program says whether rows are lines of CSV or Examples; here, the
properties say it, or else the functions that the script calls.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Tuple

from akrunner.wire.context import TFConfig
from akrunner.worker import lines, running
from akrunner.worker.context import TFContext as _Rows

#: properties that say how rows are encoded: their value is a class whose name has CSV or Example in it
_IN = "sys:decoding_class"
_OUT = "sys:encoding_class"
#: attribute of the original context that a task here does not have -> what to write instead
_NOT_HERE = {
    "get_finished_worker_nodes": "a parameter server is ended when all workers are done: wait with `server.join()`",
    "get_context_proto": "context.properties, get_index() and get_node_type() say what is in it",
    "stop_node": "return from the function: the job ends when every worker has",
    "channel": "there is no Java process to talk to",
    "inQueueName": "take get_tfdataset_from_flink(), or from_java() for the file of the rows",
    "outQueueName": "take get_row_writer_to_flink(), or to_java() for a file whose records become rows",
}
for _old, _new in (
    ("get_finish_workers", "get_finished_worker_nodes"), ("stop_job", "stop_node"), ("context_pb", "get_context_proto"),
    ("stub", "channel"), ("inQueueMMapLen", "inQueueName"), ("outQueueMMapLen", "outQueueName"),
):  # fmt: skip
    _NOT_HERE[_old] = _NOT_HERE[_new]


class Context(object):
    """What a task knows about itself.

    Attributes:
        roleName: "worker" or "ps".
        index: the task's index within its role; worker 0 is the first.
        roleParallelism: role -> number of its tasks.
        properties: the user params, every value as a string, and "cluster".
        identity: the task's name.
        mode: the job's mode.
        userScript: the script's path.
        funcName: the name of the script's `map_func`.
        failNum: how often the job was started before.
    """

    def __init__(self) -> None:
        told = running.context()
        cluster = workers_only(told["tf_config"]["cluster"])
        self.roleName, self.index = role_of(told["tf_config"])
        self.roleParallelism = {role: len(addresses) for role, addresses in cluster.items()}
        self.properties = {key: str(value) for key, value in told["user_params"].items()}
        self.properties.setdefault("cluster", json.dumps(described(cluster)))
        self.identity = told["task"]
        self.mode = told["mode"]
        self.userScript = told["script"]["real"]
        self.funcName = told["script"]["context_entry"]
        self.failNum: int = told["attempt"]

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_HERE:
            raise AttributeError("context.%s is not in akrunner: %s" % (name, _NOT_HERE[name]))
        raise AttributeError("a context has no %r; the task config of the task has more: akrunner.worker.current()" % name)

    def get_property(self, key: str) -> Optional[str]:
        """Return one user param as a string, or None if there is no such param."""
        return self.properties.get(key)

    def get_index(self) -> int:
        """Return the task's index within its role."""
        return self.index

    def get_node_type(self) -> str:
        """Return "worker" or "ps"."""
        return self.roleName

    def get_node_type_count_map(self) -> Dict[str, int]:
        """Return role -> number of its tasks."""
        return self.roleParallelism

    def get_current_attempt_index(self) -> int:
        """Return how often the job was started before."""
        return self.failNum

    get_role_name, get_role_parallelism_map, get_failed_num = get_node_type, get_node_type_count_map, get_current_attempt_index

    def from_java(self) -> str:
        """Return the path of the TFRecord file of Examples with the task's rows.

        Raises: RuntimeError: there is no such file, because the job is a stream or its rows are columns.
        """
        told = running.context()
        if told["mode"] == "stream" or told["data_format"] != "examples":
            raise RuntimeError(
                "from_java(): rows of a stream, or as columns, are in no file of Examples: take "
                "TFContext(context).get_tfdataset_from_flink()"
            )
        path: str = told["dataset_file"]
        return path

    def to_java(self) -> str:
        """Return the path of a TFRecord file whose Examples become rows of the result when the script has ended."""
        path: str = running.context()["output_file"]
        return path


class TFContext(Context):
    """A `Context` with functions for TensorFlow. Args: other: the context that the script was given; None for this task's."""

    def __init__(self, other: Optional[Context] = None) -> None:
        super(TFContext, self).__init__()
        if other is not None:
            self.__dict__.update(vars(other))

    def get_tf_cluster_config(self) -> Dict[str, List[str]]:
        """Return role -> list of "host:port", for "worker", and for "ps" if there are any."""
        return self.to_tf_cluster(self.properties["cluster"])

    def set_tf_config_env(self) -> Tuple[Dict[str, List[str]], str, int]:
        """Set TF_CONFIG, with worker 0 as the chief. Returns: its (cluster, task type, task index)."""
        return self.export_cluster_env(self.properties["cluster"], self.roleName, self.index)

    get_tf_cluster, export_estimator_cluster = get_tf_cluster_config, set_tf_config_env

    @staticmethod
    def to_tf_cluster(cluster_str: str) -> Dict[str, List[str]]:
        """Return role -> list of "host:port" from the property "cluster"."""
        roles = {job["name"]: job["tasks"] for job in json.loads(cluster_str)["job"]}
        tasks = {role: [roles[role][str(i)] for i in range(len(roles[role]))] for role in ("ps", "worker") if roles.get(role)}
        return {role: ["%s:%s" % (one["ip"], one["props"]["sys:tf_port"]) for one in ones] for role, ones in tasks.items()}

    @staticmethod
    def cluster_to_estimator(cluster_str: str) -> Dict[str, List[str]]:
        """Return the same as `to_tf_cluster`, but with worker 0 as the chief."""
        cluster = TFContext.to_tf_cluster(cluster_str)
        first, others = cluster["worker"][0], cluster.pop("worker")[1:]
        if others:
            cluster["worker"] = others
        cluster["chief"] = [first]
        return cluster

    @staticmethod
    def export_cluster_env(cluster_str: str, job_name: str, index: int) -> Tuple[Dict[str, List[str]], str, int]:
        """Do as `set_tf_config_env`, for the task that the arguments name."""
        cluster = TFContext.cluster_to_estimator(cluster_str)
        chief = job_name == "worker" and index == 0
        kind = "chief" if chief else job_name
        number = index - 1 if kind == "worker" else index
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": kind, "index": number}})
        return cluster, kind, number

    def get_tfdataset_from_flink(
        self, compression_type: Optional[str] = None, buffer_size: int = 0, num_parallel_reads: Optional[int] = None
    ) -> Any:
        """Return this task's rows as a `tf.data.Dataset` of strings: lines of CSV, or serialized Examples.

        The arguments are ignored.
        """
        if self._coded(_IN, "decode_csv"):
            return lines.dataset(running.config())
        return _Rows(running.context(), running.writer(), running.stream()).flink_stream_dataset()

    flink_stream_dataset = get_tfdataset_from_flink

    def example_input_dataset(self) -> Any:
        """Return a dataset of the rows, each parsed by `self.features`, which the script sets."""
        import tensorflow as tf

        features = self.features
        return self.get_tfdataset_from_flink().map(lambda record: tf.io.parse_single_example(record, features))

    def get_row_writer_to_flink(self) -> lines.RowWriter:
        """Return a writer that takes rows of the result; see `lines.RowWriter`."""
        return lines.RowWriter(self)

    def get_tfrecord_writer_to_flink(self) -> lines.RecordWriter:
        """Return a writer that takes tensors of records; see `lines.RecordWriter`."""
        return lines.RecordWriter(self.to_java())

    def output_writer_op(self, input_list: List[Any]) -> Tuple[Any, Any]:
        """Return (an operation that writes a tensor of records, an operation that closes the writer)."""
        writer = self.get_tfrecord_writer_to_flink()
        return writer.write(input_list), writer.close()

    def _coded(self, key: str, reads: str) -> bool:
        """Whether rows are lines of CSV.

        Args:
            key: the property that says so.
            reads: if it is not set: the name of a function that only scripts with rows of CSV call.
        """
        told = self.properties.get(key)
        return "csv" in told.lower() if told else running.script_says(reads)


def workers_only(cluster: Dict[str, List[str]]) -> Dict[str, List[str]]:
    """Return a cluster in which the chief is worker 0, as everywhere in Deep Learning on Flink."""
    named = {"worker": cluster.get("chief", []) + cluster.get("worker", []), "ps": cluster.get("ps", [])}
    return {role: addresses for role, addresses in named.items() if addresses}


def role_of(tf_config: TFConfig) -> Tuple[str, int]:
    """Return a task's (role, index) in the cluster that `workers_only` returns."""
    role, index = tf_config["task"]["type"], tf_config["task"]["index"]
    if role == "chief":
        return "worker", 0
    return role, index + len(tf_config["cluster"].get("chief", [])) if role == "worker" else index


def described(cluster: Dict[str, List[str]]) -> Dict[str, Any]:
    """Return a cluster in the form of the property "cluster"."""
    jobs = []
    for role, addresses in cluster.items():
        tasks = {}
        for i, address in enumerate(addresses):
            host, _, port = address.rpartition(":")
            tasks[str(i)] = {"ip": host, "props": {"sys:tf_port": port}}
        jobs.append({"name": role, "tasks": tasks})
    return {"job": jobs}


def get_gpus(num_gpu: int = 1, worker_index: int = -1) -> List[str]:
    """Return the numbers of up to `num_gpu` of the graphics cards that akrunner gave this task (`gpus_per_worker=`), as
    strings.

    [] if the task has none.

    Args:
        worker_index: ignored.
    Raises:
        RuntimeError: the task has cards, but fewer than `num_gpu`.
    """
    there = [card.strip() for card in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if card.strip() not in ("", "-1")]
    if there and len(there) < num_gpu:
        raise RuntimeError(
            "get_gpus(%d): this task has %d graphics cards; gpus_per_worker=%d gives it more" % (num_gpu, len(there), num_gpu)
        )
    return there[:num_gpu]
