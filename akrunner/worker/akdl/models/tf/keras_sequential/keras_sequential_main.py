"""Trains a Keras Sequential model whose layers, optimizer, loss and metrics are given as text."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

import tensorflow as tf
from akdl.engine.inputs import dtype_str_map
from akdl.engine.train import check_keras, train_keras_model

from akrunner.worker import tf_data

#: a file of at most so many bytes is parsed once for all epochs, and its rows are kept: for so few, beginning to parse them anew in each epoch
#: takes longer than parsing
_FEW_BYTES = 4 << 20


def main(task_config: Any) -> None:
    """Train the model on one tensor column of a train job, and export it.

    Args:
        task_config: a `TrainTaskConfig` with the user params `model_config` (JSON: {"layers": ["Dense(64,
            activation='relu')", ...]}), `tensor_cols` (if it is missing, the only column in tensor_shapes.txt), `label_col`,
            `label_type`, `optimizer` ("Adam()"), `batch_size`, `num_epochs`, `validation_split`, `save_best_only`,
            `best_exporter_metric`, `save_checkpoints_epochs`, `add_output_layer`, `loss`, `metrics`. The first line of the
            file `ALINK:bc_1` is the number of classes; 1 is a regression.
    """
    check_keras()
    params = task_config.user_params
    column, shape, dtype = _tensor(task_config)
    classes = _classes(params)
    layers = json.loads(params["model_config"])["layers"]
    # the model gets numbers of any type as floats
    fed = tf.string if dtype == "string" else tf.float32
    model = create_model(column, shape, fed, layers, _flag(params.get("add_output_layer", "true")), classes)
    loss, metrics = _judged(params, classes)
    model.compile(_optimizer(params), loss, metrics=metrics or None)
    started = _checkpoint(params)
    if started is not None and os.path.exists(started):
        model.load_weights(started)

    path = task_config.dataset_file
    few = os.path.getsize(path) <= _FEW_BYTES

    def only_tensor(rows: Any) -> Any:
        @tf_data.as_written
        def pair(features: Dict[str, Any], target: Any) -> Tuple[Any, Any]:
            values = features[column]
            return (values if dtype == "string" else tf.cast(values, tf.float32)), target

        pairs = rows.map(pair)
        return pairs.cache() if few else pairs

    label = params["label_col"]
    label_dtype = params.get("label_type", "long" if classes > 1 else "float").lower()
    train_keras_model(
        model,
        {
            "example_config": [
                {"name": column, "dtype": dtype, "shape": shape},
                {"name": label, "dtype": label_dtype, "shape": [1]},
            ],
            "label_col": label,
        },
        {
            "raw_dataset_fn": lambda: tf.data.TFRecordDataset(path),
            "batch_size": int(params.get("batch_size", 128)),
            "num_epochs": int(params.get("num_epochs", 10)),
            "validation_split": float(params.get("validation_split", 0)),
            "callbacks": _callbacks(task_config),
            "post_process_dataset": only_tensor,
        },
        task_config,
    )


def get_info_info(task_config: Any) -> Tuple[List[Dict[str, Any]], str, int]:
    """Return the input of a task, from its params and files.

    Returns:
        The columns, as in `example_config`, with the label as the last one; the label's name; and the number of classes, 1
        for a regression.
    """
    params = task_config.user_params
    shapes, types = _tensors(task_config)
    label = params["label_col"]
    columns = [{"name": name, "shape": shape, "dtype": types.get(name, "float")} for name, shape in shapes.items()]
    columns.append({"name": label, "shape": shapes.get(label, []), "dtype": params["label_type"]})
    return columns, label, _classes(params)


def create_model(
    tensor_name: str, tensor_shape: Sequence[Optional[int]], tensor_dtype: Any, layers_str: Sequence[str],
    add_output_layer: bool, num_classes: int,
) -> Any:  # fmt: skip
    """Build the model: an input, the layers, and a layer whose output is logits (for a regression, the number itself).

    Args:
        tensor_name: the name of the input.
        tensor_shape: the shape of the input, without the batch.
        tensor_dtype: the type of the input: a TensorFlow type, or one of Alink's names for them.
        layers_str: texts like "Dense(64, activation='relu')".
        add_output_layer: whether the last layer is added.
        num_classes: the number of classes, 1 for a regression.
    """
    dtype = tf.as_dtype(dtype_str_map.get(tensor_dtype, tensor_dtype) if isinstance(tensor_dtype, str) else tensor_dtype)
    given = tf.keras.Input(shape=tuple(tensor_shape), name=tensor_name, dtype=dtype.name)
    found = given
    for text in layers_str:
        found = _evaluated(text, tf.keras.layers)(found)
    if add_output_layer:
        head = tf.keras.layers.Dense(num_classes if num_classes > 2 else 1, name="y" if num_classes == 1 else "logits")
        found = head(found)
    return tf.keras.Model(given, found)


def _judged(params: Dict[str, Any], classes: int) -> Tuple[Any, List[Any]]:
    """Return (loss, metrics)."""
    asked = [_evaluated(text, tf.keras.metrics) for text in _listed(params.get("metrics"))]
    if params.get("loss"):
        return _evaluated(params["loss"], tf.keras.losses), asked
    if classes == 1:
        return tf.keras.losses.MeanAbsoluteError(), asked or [
            "mse",
            tf.keras.metrics.RootMeanSquaredError(name="RMSE"),
            "mae",
            "mape",
            "msle",
        ]
    from akdl.models.tf.keras_sequential import metrics_from_logits as known

    if classes > 2:
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return loss, asked or [known.SparseCategoricalAccuracy(True, name="sparse_categorical_accuracy")]
    wanted = [
        (known.AUC, "auc"),
        (known.BinaryAccuracy, "binary_accuracy"),
        (known.TruePositives, "true_positives"),
        (known.FalsePositives, "false_positives"),
        (known.TrueNegatives, "true_negatives"),
        (known.FalseNegatives, "false_negatives"),
        (known.Precision, "precision"),
        (known.Recall, "recall"),
    ]
    return tf.keras.losses.BinaryCrossentropy(from_logits=True), asked or [kind(True, name=name) for kind, name in wanted]


def _optimizer(params: Dict[str, Any]) -> Any:
    optimizer = _evaluated(params.get("optimizer", "Adam()"), tf.keras.optimizers)
    if params.get("learning_rate"):
        optimizer.learning_rate = float(params["learning_rate"])
    return optimizer


def _tensor(task_config: Any) -> Tuple[str, List[int], str]:
    """Return (name, shape, dtype) of the tensor column."""
    shapes, types = _tensors(task_config)
    names = _listed(task_config.user_params.get("tensor_cols")) or list(shapes)
    if len(names) != 1:
        raise ValueError("one tensor column is wanted, there are %d: %s" % (len(names), ", ".join(names)))
    return names[0], shapes[names[0]], types.get(names[0], "float")


def _tensors(task_config: Any) -> Tuple[Dict[str, List[int]], Dict[str, str]]:
    """Return ({column: shape}, {column: type}) of the tensor columns."""
    with open(os.path.join(task_config.work_dir, "tensor_shapes.txt")) as f:
        shapes = json.load(f)
    with open(os.path.join(task_config.work_dir, "tensor_types.txt")) as f:
        return shapes, json.load(f)


def _classes(params: Dict[str, Any]) -> int:
    path = params.get("ALINK:bc_1")
    if path is None:
        return int(params.get("num_classes", 1))
    with open(path) as f:
        return int(float(f.readline().split()[-1]))


#: metrics of which a larger value is better
_LARGER = (
    "acc",
    "auc",
    "binary_accuracy",
    "precision",
    "recall",
    "true_positives",
    "true_negatives",
    "sparse_categorical_accuracy",
)


def _checkpoint(params: Dict[str, Any]) -> Optional[str]:
    """Return the path of the file in which the weights are kept, None if they are not kept."""
    folder = params.get("ALINK:model_dir") or params.get("model_dir")
    # in a sub-directory that `remove_checkpoint_files` removes
    return os.path.join(folder, "keras", "ckpt.weights.h5") if folder else None


def _callbacks(task_config: Any) -> List[Any]:
    params = task_config.user_params
    found = []
    if _flag(params.get("save_best_only", "false")):
        split = float(params.get("validation_split") or 0)
        found.append(_Best(params.get("best_exporter_metric") or "loss", split > 0))
    path = _checkpoint(params)
    if path and (params.get("save_checkpoints_epochs") or params.get("save_checkpoints_secs")):
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        found.append(tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True))
    return found


class _Best(tf.keras.callbacks.Callback):
    """Keeps the weights of the best epoch, and puts them into the model when training ends."""

    def __init__(self, metric: str, validated: bool) -> None:
        super(_Best, self).__init__()
        self._metric = "val_" + metric if validated else metric
        self._larger = metric in _LARGER
        self._best: Optional[float] = None
        self._weights: Any = None

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, float]] = None) -> None:
        logs = logs or {}
        if self._metric not in logs:
            raise ValueError("bestMetric: there is no %r, only %s" % (self._metric, ", ".join(sorted(logs))))
        value = logs[self._metric]
        if self._best is None or (value > self._best if self._larger else value < self._best):
            self._best, self._weights = value, self.model.get_weights()

    def on_train_end(self, logs: Optional[Dict[str, float]] = None) -> None:
        if self._weights is not None:
            self.model.set_weights(self._weights)


def _evaluated(text: str, module: Any) -> Any:
    """Evaluate a text such as "Dense(64)" with the names of a module. It is the user's own code, as the script is."""
    names = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    names.update(tf=tf, keras=tf.keras, layers=tf.keras.layers, optimizers=tf.keras.optimizers)
    if "hub" in text or "KerasLayer" in text:
        hub = importlib.import_module("tensorflow_hub")
        names.update(hub=hub, KerasLayer=hub.KerasLayer)
    return eval(text, names)


def _listed(value: Any) -> List[Any]:
    if not value:
        return []
    return json.loads(value) if isinstance(value, str) else list(value)


def _flag(value: Any) -> bool:
    return str(value).lower() == "true"
