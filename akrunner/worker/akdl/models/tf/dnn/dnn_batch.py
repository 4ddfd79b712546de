"""`DNNClassifier` over float columns, in a batch job: the job's output is the trained model, as model rows."""

from __future__ import annotations

import os
from typing import Any

from akdl.models.tf.dnn import dnn_train
from akdl.runner import io_helper
from akdl.runner.config import TrainTaskConfig


def main(task_config: Any) -> None:
    """Train the model, and write it as model rows.

    Args:
        task_config: a `BatchTaskConfig`, with the user params of `dnn_train`.
    """
    folder = os.path.join(task_config.work_dir, "saved_model_dir")
    fields = {name: value for name, value in task_config.__dict__.items() if name != "saved_model_dir"}
    dnn_train.main(TrainTaskConfig(saved_model_dir=folder, **fields))
    if task_config.task_type == "chief" and task_config.task_index == 0:
        io_helper.output_model_to_flink(folder, task_config.output_writer)
