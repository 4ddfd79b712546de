"""`DNNClassifier` over float columns, in a stream job: trains in one pass over the rows, then writes model rows."""

from __future__ import annotations

import os
from typing import Any

from akdl.models.tf.dnn.common import float_columns, train_dnn
from akdl.runner import io_helper


def main(task_config: Any) -> None:
    """Train the model, and write it as model rows.

    Args:
        task_config: a `StreamTaskConfig`, with the user params of `dnn_train`; num_epochs is ignored, as a stream can be read
            once.
    """
    task_config.saved_model_dir = os.path.join(task_config.work_dir, "saved_model_dir")
    train_dnn(task_config, float_columns(task_config), [30, 10], task_config.dataset_fn, repeat=False)
    if task_config.task_type == "chief" and task_config.task_index == 0:
        io_helper.output_model_to_flink(task_config.saved_model_dir, task_config.output_writer)
