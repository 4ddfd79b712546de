"""Makes an Estimator's RunConfig for the cluster that this task belongs to.

On TensorFlow 2, importing this module switches to TensorFlow 1's behaviour, as importing Alink's module does: its scripts use
placeholders and sessions, and do not turn eager execution off themselves. No other module of akrunner changes TensorFlow.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Sequence

import tensorflow as tf
from akdl.engine.estimators import estimator_module

_TF1 = tf.__version__.startswith("1.")
if not _TF1:
    tf.compat.v1.disable_v2_behavior()


def generate_run_config(
    intra_op_parallelism_threads: int = 4, inter_op_parallelism_threads: int = 1, log_device_placement: bool = False,
    save_checkpoints_steps: int = 50, log_step_count_steps: int = 10, keep_checkpoint_max: int = 1,
    device_count: Optional[Dict[str, int]] = None, gpu_devices: Optional[Sequence[int]] = None, **ignored: Any,
) -> Any:  # fmt: skip
    """Return the `RunConfig` of this task. TF_CONFIG decides on the strategy.

    If TF_CONFIG has parameter servers, training uses them; if it has several workers, training uses an all-reduce between them;
    otherwise there is no strategy. With `gpu_devices`, TF_CONFIG is dropped: this task computes alone on these cards, with
    mirrored variables if there are several.

    Args:
        intra_op_parallelism_threads, inter_op_parallelism_threads, log_device_placement, device_count: as in `ConfigProto`.
        save_checkpoints_steps, log_step_count_steps, keep_checkpoint_max: as in `RunConfig`.
        gpu_devices: numbers of the machine's cards.
    """
    strategy = None
    if gpu_devices:
        os.environ.pop("TF_CONFIG", None)
        os.environ.update(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=",".join(map(str, gpu_devices)))
        device_count = {"GPU": len(gpu_devices)}
        if len(gpu_devices) > 1:
            # TensorFlow counts the visible cards from 0
            strategy = tf.compat.v1.distribute.MirroredStrategy(["/gpu:%d" % i for i in range(len(gpu_devices))])
    told = json.loads(os.environ.get("TF_CONFIG") or "{}")
    cluster = told.get("cluster", {})
    options: Dict[str, Any] = dict(
        log_device_placement=log_device_placement,
        intra_op_parallelism_threads=int(intra_op_parallelism_threads),
        inter_op_parallelism_threads=int(inter_op_parallelism_threads),
        allow_soft_placement=True,
        device_count=device_count,
    )
    if cluster.get("ps"):
        if _TF1:
            options["device_filters"] = _device_filters(told["task"])
        elif told["task"]["type"] != "evaluator":
            strategy = tf.compat.v1.distribute.experimental.ParameterServerStrategy()
    elif cluster.get("worker"):
        strategy = tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy()
    session_config = tf.compat.v1.ConfigProto(**{k: v for k, v in options.items() if v is not None})
    session_config.gpu_options.allow_growth = True
    return estimator_module().RunConfig(
        session_config=session_config,
        save_checkpoints_steps=int(save_checkpoints_steps),
        log_step_count_steps=int(log_step_count_steps),
        keep_checkpoint_max=int(keep_checkpoint_max),
        train_distribute=strategy,
    )


def _device_filters(task: Dict[str, Any]) -> List[str]:
    """Return filters by which a task talks only to the parameter servers and to itself.

    Without them, a session would wait for all tasks of the cluster, even for those that have ended.
    """
    return ["/job:ps", "/job:%s/task:%d" % (task["type"], task["index"])]
