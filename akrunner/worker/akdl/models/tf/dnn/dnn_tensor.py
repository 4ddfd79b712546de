"""`DNNClassifier` over one tensor column, in a train job."""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow as tf
from akdl.models.tf.dnn.common import train_dnn


def dnn_tensor(task_config: Any) -> None:
    """Train the model, and export it.

    Args:
        task_config: a `TrainTaskConfig`, with the user params tensorCol, labelCol, batch_size and num_epochs.
    """
    name = task_config.user_params["tensorCol"]
    with open(os.path.join(task_config.work_dir, "tensor_shapes.txt")) as f:
        shape = json.load(f)[name]
    path = task_config.dataset_file
    columns = [{"name": name, "dtype": "float", "shape": shape}]
    train_dnn(task_config, columns, [1024, 1024, 512, 256, 128], lambda: tf.data.TFRecordDataset(path))


main = dnn_tensor
