"""An Estimator's RunConfig for the cluster this task is in."""

import json
import os

import tensorflow as tf
from akdl.engine.estimators import estimator_module


def generate_run_config(
    intra_op_parallelism_threads=4,
    inter_op_parallelism_threads=1,
    log_device_placement=False,
    save_checkpoints_steps=50,
    log_step_count_steps=10,
    keep_checkpoint_max=1,
    device_count=None,
    gpu_devices=None,
    **ignored,
):
    """The `RunConfig` of this task, its strategy chosen by TF_CONFIG.

    Parameter servers in it: parameter-server training. Several workers: an all-reduce over them. Else none; or a mirrored one over
    several `gpu_devices`, for which TF_CONFIG is dropped.
    """
    told = json.loads(os.environ.get("TF_CONFIG") or "{}")
    cluster = told.get("cluster", {})
    options = dict(
        log_device_placement=log_device_placement,
        intra_op_parallelism_threads=int(intra_op_parallelism_threads),
        inter_op_parallelism_threads=int(inter_op_parallelism_threads),
        device_count=device_count,
    )
    strategy = None
    if gpu_devices is not None and len(gpu_devices) > 1:
        os.environ.pop("TF_CONFIG", None)
        strategy = tf.distribute.MirroredStrategy(gpu_devices)
    elif cluster.get("ps"):
        if _is_tf1():
            options["device_filters"] = _device_filters(told["task"])
        elif told["task"]["type"] != "evaluator":
            strategy = tf.distribute.experimental.ParameterServerStrategy()
    elif cluster.get("worker"):
        strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    return estimator_module().RunConfig(
        session_config=tf.compat.v1.ConfigProto(**{k: v for k, v in options.items() if v is not None}),
        save_checkpoints_steps=int(save_checkpoints_steps),
        log_step_count_steps=int(log_step_count_steps),
        keep_checkpoint_max=int(keep_checkpoint_max),
        train_distribute=strategy,
    )


def _is_tf1():
    return tf.__version__.startswith("1.")


def _device_filters(task):
    """A worker talks with the parameter servers and itself, so that it does not wait for the other workers to start."""
    if task["type"] == "ps":
        return None
    own = "/job:%s/task:%d" % (task["type"], task["index"])
    return ["/job:ps", own] if task["type"] == "chief" else ["/job:ps", "/job:chief", own]
