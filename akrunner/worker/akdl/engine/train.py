"""Trains a script's Estimator or Keras model on the task's rows, and exports it to the directory where the job looks for it."""

from __future__ import annotations

import logging
import os
from typing import Any, Callable, Dict, Tuple

import tensorflow as tf
from akdl.engine import early_stopping
from akdl.engine.estimators import estimator_module
from akdl.engine.inputs import get_dataset_fn, get_feature_placeholders, parse_feature_specs


def train_estimator(
    estimator: Any, input_config: Dict[str, Any], train_config: Dict[str, Any], export_config: Dict[str, Any], task_config: Any
) -> None:
    """Run `train_and_evaluate` on this task's rows. Then chief 0 (or the only worker) exports to `task_config.saved_model_dir`.

    Args:
        estimator: the Estimator.
        input_config: {example_config, label_col}.
        train_config: {raw_dataset_fn, batch_size, num_epochs, ...}: the arguments of `get_dataset`; also max_steps and
            eval_steps.
        export_config: {placeholders_config, ...}.
        task_config: the task's config.
    """
    dataset_fn = _dataset_fn(input_config, train_config)

    def evaluated_on() -> Any:
        # a stream's rows come once, and training reads them: evaluation gets none
        return dataset_fn().take(0) if hasattr(task_config, "dataset_fn") else dataset_fn()

    module = estimator_module()
    module.train_and_evaluate(
        estimator,
        module.TrainSpec(dataset_fn, max_steps=train_config.get("max_steps")),
        module.EvalSpec(evaluated_on, steps=train_config.get("eval_steps", 1), throttle_secs=0, start_delay_secs=0),
    )
    if _exports(task_config):
        _export(estimator, input_config, export_config, task_config)


def train_estimator_one_worker(
    estimator: Any, input_config: Dict[str, Any], train_config: Dict[str, Any], export_config: Dict[str, Any], task_config: Any
) -> None:
    """Train an Estimator in one worker, with a validation set and early stopping, and export the latest or the best model.

    Args:
        estimator, input_config, task_config: as in `train_estimator`.
        train_config: as in `train_estimator`; also `valid_raw_dataset_fn`, which returns the rows for validation, or
            `validation_split`, the share of the rows that is used for validation and not for training;
            `early_stopping_patience_steps`, `save_checkpoints_steps`, `eval_steps`.
        export_config: as in `train_estimator`; also `exporter_type`, "latest" or "best"; `best_exporter_metric` and
            `metric_bigger` (True: a larger value is better), which `train_config` may have, too.
    """
    train_fn, eval_fn = _split(input_config, train_config, float(train_config.get("validation_split") or 0))
    told = dict(train_config, **export_config)
    metric, bigger = told.get("best_exporter_metric", "loss"), bool(told.get("metric_bigger", False))
    module = estimator_module()
    hooks = []
    patience = train_config.get("early_stopping_patience_steps")
    if patience:
        stop = early_stopping.stop_if_no_increase_hook if bigger else early_stopping.stop_if_no_decrease_hook
        steps = max(1, int(train_config.get("save_checkpoints_steps") or 10))
        hooks.append(stop(estimator, metric, int(patience), run_every_secs=None, run_every_steps=steps))
    exporters = []
    receiver = _receiver(input_config, export_config)
    best = export_config.get("exporter_type", "latest") == "best"
    if best:

        def better(best_eval_result: Dict[str, float], current_eval_result: Dict[str, float]) -> bool:
            old, new = best_eval_result[metric], current_eval_result[metric]
            return new > old if bigger else new < old

        exporters = [module.BestExporter("best", receiver, compare_fn=better, exports_to_keep=1)]
    module.train_and_evaluate(
        estimator,
        module.TrainSpec(train_fn, hooks=hooks, max_steps=train_config.get("max_steps")),
        module.EvalSpec(
            eval_fn, steps=train_config.get("eval_steps"), exporters=exporters, throttle_secs=0, start_delay_secs=0
        ),
    )
    found = os.path.join(estimator.model_dir, "export", "best")
    if best and os.path.isdir(found) and os.listdir(found):
        from akdl.runner.io_helper import gfile_copy_dir_content

        gfile_copy_dir_content(found, task_config.saved_model_dir)
    else:
        estimator.export_saved_model(task_config.saved_model_dir, receiver)


def train_keras_model(model: Any, input_config: Dict[str, Any], train_config: Dict[str, Any], task_config: Any) -> None:
    """Fit a compiled Keras model on this task's rows.

    In a job that trains, chief 0 (or the only worker) saves the model to `task_config.saved_model_dir`.

    Args:
        model: the compiled model.
        input_config, task_config: as in `train_estimator`.
        train_config: as in `train_estimator`; also `validation_split`, `callbacks`, `verbose`.
    Raises:
        RuntimeError: as in `check_keras`.
    """
    check_keras()
    split = float(train_config.get("validation_split") or 0)
    # in a graph, Keras does not see the end of a dataset: it gets an endless one, and the number of batches to draw
    counted = not tf.executing_eagerly()
    train_fn, eval_fn = _split(input_config, train_config, split, epochs=None if counted else 1)
    options = {}
    if split:
        options["validation_data"] = eval_fn().repeat() if counted else eval_fn()
    if counted:
        batch = int(train_config["batch_size"])
        kept = -(-task_config.dataset_length // _every(split)) if split else 0
        options["steps_per_epoch"] = max(1, -(-(task_config.dataset_length - kept) // batch))
        if split:
            options["validation_steps"] = max(1, -(-kept // batch))
    model.fit(
        train_fn(),
        epochs=int(train_config["num_epochs"]),
        callbacks=train_config.get("callbacks"),
        verbose=train_config.get("verbose", 2),
        **options,
    )
    if _exports(task_config) and getattr(task_config, "saved_model_dir", None):
        save_keras_model(model, task_config.saved_model_dir)


def save_keras_model(model: Any, directory: str) -> None:
    """Save a Keras model as a SavedModel with a serving signature, in the way of this TensorFlow's Keras."""
    logging.info("exporting to %s", directory)
    if tf.__version__.startswith("1."):
        tf.keras.experimental.export_saved_model(model, directory, serving_only=True)
    elif not tf.executing_eagerly():
        session = tf.compat.v1.keras.backend.get_session()
        outputs = dict(zip(model.output_names, model.outputs))
        tf.compat.v1.saved_model.simple_save(session, directory, dict(zip(model.input_names, model.inputs)), outputs)
    elif hasattr(model, "export"):
        model.export(directory)
    else:
        model.save(directory, save_format="tf")


def check_keras() -> None:
    """Check that Keras can train.

    Raises:
        RuntimeError: TensorFlow 2's behaviour is turned off, and this Keras, or its optimizers, cannot train without it.
    """
    version = tuple(int(part) for part in tf.__version__.split(".")[:2])
    if not tf.executing_eagerly() and version >= (2, 11):
        raise RuntimeError(
            "from TensorFlow 2.11 on (this is %s) Keras does not train without TensorFlow 2's behaviour, which "
            "akdl.engine.run_config turns off when it is imported, as in Alink: do not import that, or run the job on "
            "python_env='tf2.3' (--python-env)" % tf.__version__
        )


def _dataset_fn(input_config: Dict[str, Any], train_config: Dict[str, Any]) -> Callable[[], Any]:
    options = dict(train_config)
    options.pop("label_col", None)
    specs = parse_feature_specs(input_config["example_config"])
    made: Callable[[], Any] = get_dataset_fn(feature_specs=specs, label_col=input_config["label_col"], **options)
    return made


def _every(share: float) -> int:
    """Return n such that every n-th row is about this share of the rows."""
    return max(2, round(1 / share))


_SAME = object()


def _split(
    input_config: Dict[str, Any], train_config: Dict[str, Any], share: float, epochs: Any = _SAME
) -> Tuple[Callable[[], Any], Callable[[], Any]]:
    """Return two functions that return datasets: one for training, one for validation.

    The rows for validation are those of `valid_raw_dataset_fn`, if there is one; otherwise every n-th row, which training
    does not get; or, if the share is 0, the same rows as for training.

    Args:
        share: the share of the rows for validation.
        epochs: the number of epochs for training, in place of that in `train_config`; None: without end.
    """
    options = dict(train_config)
    if epochs is not _SAME:
        options["num_epochs"] = epochs
    raw, valid = options.pop("raw_dataset_fn"), options.pop("valid_raw_dataset_fn", None)

    def part(keep: bool) -> Callable[[], Any]:
        def wanted(i: Any, record: Any) -> Any:
            return tf.equal(tf.equal(i % _every(share), 0), keep)

        def record_of(i: Any, record: Any) -> Any:
            return record

        def rows() -> Any:
            return raw().enumerate().filter(wanted).map(record_of)

        return rows if share and valid is None else raw

    train = _dataset_fn(input_config, dict(options, raw_dataset_fn=part(False)))
    check = _dataset_fn(input_config, dict(options, raw_dataset_fn=valid or part(True), num_epochs=1, shuffle_factor=0))
    return train, check


def _exports(task_config: Any) -> bool:
    return bool((task_config.task_type == "chief" and task_config.task_index == 0) or task_config.num_workers == 1)


def _receiver(input_config: Dict[str, Any], export_config: Dict[str, Any]) -> Callable[[], Any]:
    columns = export_config.get("placeholders_config") or [
        column for column in input_config["example_config"] if column["name"] != input_config["label_col"]
    ]
    build = estimator_module().export.build_raw_serving_input_receiver_fn

    def receiver() -> Any:
        return build(get_feature_placeholders(columns, export_batch_dim=export_config.get("export_batch_dim", True)))()

    return receiver


def _export(estimator: Any, input_config: Dict[str, Any], export_config: Dict[str, Any], task_config: Any) -> None:
    logging.info("exporting to %s", task_config.saved_model_dir)
    estimator.export_saved_model(task_config.saved_model_dir, _receiver(input_config, export_config))
