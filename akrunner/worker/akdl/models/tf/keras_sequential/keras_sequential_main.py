"""A Keras Sequential model whose layers, optimizer, loss and metrics are given as text."""

import json
import os

import tensorflow as tf
from akdl.engine.train import train_keras_model


def main(task_config):
    """Train it on one tensor column of a train job and export it.

    Args: task_config: `TrainTaskConfig`; user params: `model_config` (JSON: {"layers": ["Dense(64, activation='relu')", ...]}),
        `tensor_cols` or the only column of tensor_shapes.txt, `label_col`, `label_type`, `optimizer` ("Adam()"), `batch_size`,
        `num_epochs`, `validation_split`, `save_best_only`, `best_exporter_metric`, `save_checkpoints_epochs`,
        `add_output_layer`, `loss`, `metrics`. The number of classes is the first line of the file `ALINK:bc_1`; 1: regression.
    """
    params = task_config.user_params
    column, shape, dtype = _tensor(task_config)
    classes = _classes(params)
    layers = [_evaluated(text, tf.keras.layers) for text in json.loads(params["model_config"])["layers"]]
    if _flag(params.get("add_output_layer", "true")):
        # logits
        layers.append(tf.keras.layers.Dense(1 if classes <= 2 else classes))
    image = tf.keras.Input(shape=tuple(shape), name=column, dtype=tf.float32)
    model = tf.keras.Model(image, tf.keras.Sequential(layers)(image))
    loss = params.get("loss")
    if loss:
        loss = _evaluated(loss, tf.keras.losses)
    elif classes == 1:
        loss = "mse"
    elif classes == 2:
        loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    else:
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    metrics = [_evaluated(text, tf.keras.metrics) for text in _listed(params.get("metrics"))]
    model.compile(_evaluated(params.get("optimizer", "Adam()"), tf.keras.optimizers), loss, metrics=metrics or None)

    def only_tensor(rows):
        def pair(features, target):
            return tf.cast(features[column], tf.float32), target

        return rows.map(pair)

    label = params["label_col"]
    label_dtype = params.get("label_type", "long" if classes > 1 else "float").lower()
    path = task_config.dataset_file
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


def _tensor(task_config):
    """(name, shape, dtype) of the tensor column."""
    with open(os.path.join(task_config.work_dir, "tensor_shapes.txt")) as f:
        shapes = json.load(f)
    with open(os.path.join(task_config.work_dir, "tensor_types.txt")) as f:
        types = json.load(f)
    names = _listed(task_config.user_params.get("tensor_cols")) or list(shapes)
    if len(names) != 1:
        raise ValueError("one tensor column is wanted, there are %d: %s" % (len(names), ", ".join(names)))
    return names[0], shapes[names[0]], types.get(names[0], "float")


def _classes(params):
    path = params.get("ALINK:bc_1")
    if path is None:
        return int(params.get("num_classes", 2))
    with open(path) as f:
        return int(float(f.readline().split()[-1]))


def _callbacks(task_config):
    params = task_config.user_params
    folder = params.get("ALINK:model_dir") or params.get("model_dir")
    if not folder or not (params.get("save_checkpoints_epochs") or params.get("save_checkpoints_secs")):
        return None
    return [
        tf.keras.callbacks.ModelCheckpoint(
            os.path.join(folder, "ckpt.weights.h5"),
            monitor=params.get("best_exporter_metric", "loss"),
            save_best_only=_flag(params.get("save_best_only", "false")),
            save_weights_only=True,
        )
    ]


def _evaluated(text, module):
    """`"Dense(64)"` with a module's names. It is the user's own code, as the script is."""
    names = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return eval(text, {"tf": tf, "keras": tf.keras, **names})


def _listed(value):
    if not value:
        return []
    return json.loads(value) if isinstance(value, str) else list(value)


def _flag(value):
    return str(value).lower() == "true"
