"""Checks what a train task leaves: a SavedModel that TensorFlow can read, and a checkpoint if the job asked for one."""

from __future__ import annotations

import os
from typing import Optional


def check(saved_model_dir: str, latest_ckpt_dir: Optional[str]) -> None:
    """Check the model and the checkpoint. Args: latest_ckpt_dir: None if the job asked for no checkpoint.

    Raises: RuntimeError: one of them is missing, or TensorFlow cannot read the model.
    """
    path = _newest(saved_model_dir)
    if path is None:
        raise RuntimeError(
            "main() returned, but left no SavedModel in task_config.saved_model_dir (%s); export one there, for instance "
            "with tf.saved_model.save(model, task_config.saved_model_dir)" % _content(saved_model_dir)
        )
    from tensorflow.python.saved_model import loader_impl

    try:
        loader_impl.parse_saved_model(path)
    except Exception as e:
        raise RuntimeError("TensorFlow cannot read the SavedModel main() left in %s: %s" % (path, e))
    if latest_ckpt_dir is not None and not (os.path.isdir(latest_ckpt_dir) and os.listdir(latest_ckpt_dir)):
        raise RuntimeError(
            "save_latest_checkpoint was asked for, but main() left nothing in task_config.latest_ckpt_dir; copy the checkpoint "
            "there"
        )


def _newest(directory: str) -> Optional[str]:
    """Return the directory, or else its newest timestamped child, that holds a SavedModel; None if there is none."""
    if not os.path.isdir(directory):
        return None
    children = [name for name in os.listdir(directory) if name.isdigit()]
    for name in [""] + sorted(children, key=int, reverse=True):
        path = os.path.join(directory, name)
        if any(os.path.exists(os.path.join(path, "saved_model." + kind)) for kind in ("pb", "pbtxt")):
            return path
    return None


def _content(directory: str) -> str:
    if not os.path.isdir(directory):
        return "it does not exist"
    names = sorted(os.listdir(directory))
    return "it holds only " + ", ".join(names[:5]) if names else "it is empty"
