"""`DNNClassifier` over float columns, in a stream job: one pass over the rows, then the model as model rows."""

from __future__ import annotations

import os
from typing import Any

from akdl.models.tf.dnn.common import float_columns, train_dnn
from akdl.runner import io_helper


def main(task_config: Any) -> None:
    """Args: task_config: `StreamTaskConfig`; user params as `dnn_train`, num_epochs ignored: a stream has one."""
    task_config.saved_model_dir = os.path.join(task_config.work_dir, "saved_model_dir")
    train_dnn(task_config, float_columns(task_config), [30, 10], task_config.dataset_fn, repeat=False)
    if task_config.task_type == "chief" and task_config.task_index == 0:
        io_helper.output_model_to_flink(task_config.saved_model_dir, task_config.output_writer)
