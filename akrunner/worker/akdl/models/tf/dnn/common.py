"""Functions that the modules of this package share."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List

import tensorflow as tf
from akdl.engine.estimators import estimator_module
from akdl.engine.run_config import generate_run_config
from akdl.engine.train import train_estimator


def train_dnn(
    task_config: Any,
    columns: List[Dict[str, Any]],
    hidden_units: List[int],
    raw_dataset_fn: Callable[[], Any],
    repeat: bool = True,
) -> None:
    """Train and export a `DNNClassifier` for two classes.

    Args:
        task_config: the task's config.
        columns: descriptions of the feature columns: {name, dtype, shape}.
        hidden_units: the number of units of each hidden layer.
        raw_dataset_fn: returns a dataset of serialized Examples.
        repeat: whether the rows are shuffled, and read as often as `num_epochs` says; if False, they are read once, in order.
    """
    params = task_config.user_params
    label = params["labelCol"]
    model_dir = params.get("ALINK:model_dir") or params.get("model_dir") or os.path.join(task_config.work_dir, "model_dir")
    features = [tf.feature_column.numeric_column(column["name"], shape=tuple(column["shape"])) for column in columns]
    estimator = estimator_module().DNNClassifier(
        hidden_units=hidden_units, feature_columns=features, n_classes=2, model_dir=model_dir, config=generate_run_config()
    )
    train_estimator(
        estimator,
        {"example_config": columns + [{"name": label, "dtype": "long", "shape": [1]}], "label_col": label},
        {
            "raw_dataset_fn": raw_dataset_fn,
            "batch_size": int(params.get("batch_size", 32)),
            "num_epochs": int(params.get("num_epochs", 1)) if repeat else 1,
            "shuffle_factor": 10 if repeat else 0,
        },
        {"placeholders_config": columns},
        task_config,
    )


def float_columns(task_config: Any) -> List[Dict[str, Any]]:
    """Return descriptions of the columns in the user param `featureCols`: each holds one float."""
    return [{"name": name, "dtype": "float", "shape": [1]} for name in json.loads(task_config.user_params["featureCols"])]
