"""`DNNClassifier` over float columns, in a train job."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from akdl.models.tf.dnn.common import float_columns, train_dnn


def main(task_config: Any) -> None:
    """Train the model, and export it.

    Args:
        task_config: a `TrainTaskConfig`, with the user params featureCols (a JSON list), labelCol, batch_size and num_epochs.
    """
    path = task_config.dataset_file
    train_dnn(task_config, float_columns(task_config), [30, 10], lambda: tf.data.TFRecordDataset(path))
