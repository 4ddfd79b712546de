"""Hooks that end an Estimator's training early, depending on the metrics of its evaluations.

The chief reads the metrics and sets a variable, which all workers read with each step.
"""

from __future__ import annotations

import collections
import os
from typing import Any, Callable, Dict, List, Optional, Tuple

import tensorflow as tf
from akdl.engine.estimators import estimator_module

_ALL_REDUCE = ("CollectiveAllReduceStrategy", "MultiWorkerMirroredStrategy")


def make_early_stopping_hook(
    estimator: Any,
    should_stop_fn: Callable[[], bool],
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> Any:
    """Return a hook that ends the training on all workers when `should_stop_fn()` is true. The chief calls that function.

    Args:
        estimator: the Estimator.
        should_stop_fn: returns whether to stop.
        run_every_secs, run_every_steps: how often it is called, in seconds or in steps; the other one is None.
    Raises:
        TypeError: `estimator` is not an Estimator.
        ValueError: both intervals are given.
        RuntimeError: TensorFlow has no Estimators.
    """
    module = estimator_module()
    if not isinstance(estimator, module.Estimator):
        raise TypeError("`estimator` must be a tf.estimator.Estimator, not %s" % type(estimator).__name__)
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("run_every_secs and run_every_steps cannot both be given; one of them is None")
    config = estimator.config
    if type(config.train_distribute).__name__.startswith(_ALL_REDUCE):
        # with these strategies, a variable is summed over the workers; TensorFlow's own hook takes that into account
        return module.experimental.make_early_stopping_hook(estimator, should_stop_fn, run_every_secs, run_every_steps)
    return _Asks(should_stop_fn, run_every_secs, run_every_steps) if config.is_chief else _IsTold()


def stop_if_higher_hook(
    estimator: Any, metric_name: str, threshold: float, eval_dir: Optional[str] = None, min_steps: int = 0,
    run_every_secs: Optional[float] = 60, run_every_steps: Optional[int] = None,
) -> Any:  # fmt: skip
    """Return a hook that ends the training when a metric is higher than a threshold.

    Args:
        metric_name: "loss", "accuracy", ...
        threshold: the threshold.
        eval_dir: the directory of the evaluations' event files, None for the estimator's own.
        min_steps: evaluations before this step do not count.
        estimator, run_every_secs, run_every_steps: as in `make_early_stopping_hook`.
    """
    should_stop = _crossed(_evaluations(estimator, metric_name, eval_dir, min_steps), lambda value: value > threshold)
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator: Any, metric_name: str, threshold: float, eval_dir: Optional[str] = None, min_steps: int = 0,
    run_every_secs: Optional[float] = 60, run_every_steps: Optional[int] = None,
) -> Any:  # fmt: skip
    """Return a hook that ends the training when a metric is lower than a threshold. Args: as in `stop_if_higher_hook`."""
    should_stop = _crossed(_evaluations(estimator, metric_name, eval_dir, min_steps), lambda value: value < threshold)
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator: Any, metric_name: str, max_steps_without_increase: int, eval_dir: Optional[str] = None, min_steps: int = 0,
    run_every_secs: Optional[float] = 60, run_every_steps: Optional[int] = None,
) -> Any:  # fmt: skip
    """Return a hook that ends the training when a metric has not increased for so many steps.

    Args:
        max_steps_without_increase: the number of steps.
        estimator, metric_name, eval_dir, min_steps, run_every_secs, run_every_steps: as in `stop_if_higher_hook`.
    """
    values = _evaluations(estimator, metric_name, eval_dir, min_steps)
    should_stop = _stood_still(values, max_steps_without_increase, lambda value, best: value > best)
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Any, metric_name: str, max_steps_without_decrease: int, eval_dir: Optional[str] = None, min_steps: int = 0,
    run_every_secs: Optional[float] = 60, run_every_steps: Optional[int] = None,
) -> Any:  # fmt: skip
    """Return a hook that ends the training when a metric has not decreased for so many steps.

    Args:
        max_steps_without_decrease: the number of steps.
        estimator, metric_name, eval_dir, min_steps, run_every_secs, run_every_steps: as in `stop_if_higher_hook`.
    """
    values = _evaluations(estimator, metric_name, eval_dir, min_steps)
    should_stop = _stood_still(values, max_steps_without_decrease, lambda value, best: value < best)
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def read_eval_metrics(eval_dir: str) -> Dict[int, Dict[str, float]]:
    """Return the metrics of the evaluations whose event files are in a directory: an ordered {step: {metric: value}}."""
    found: Dict[int, Dict[str, float]] = collections.defaultdict(dict)
    # in TensorFlow 1, glob raises an error if the directory does not exist
    paths = tf.io.gfile.glob(os.path.join(eval_dir, "events.out.tfevents.*")) if tf.io.gfile.exists(eval_dir) else []
    for path in sorted(paths):
        for event in tf.compat.v1.train.summary_iterator(path):
            values = {one.tag: one.simple_value for one in event.summary.value if one.HasField("simple_value")}
            if values:
                found[event.step].update(values)
    return collections.OrderedDict(sorted(found.items()))


def _evaluations(estimator: Any, metric: str, eval_dir: Optional[str], min_steps: int) -> Callable[[], List[Tuple[int, float]]]:
    """Return a function that returns [(step, value)] of a metric so far.

    It raises ValueError if the evaluations lack that metric.
    """

    def values() -> List[Tuple[int, float]]:
        found = read_eval_metrics(eval_dir or estimator.eval_dir())
        known = sorted(set(name for metrics in found.values() for name in metrics))
        if known and metric not in known:
            raise ValueError("the evaluations have no metric %r; they have %s" % (metric, ", ".join(known)))
        return [(step, metrics[metric]) for step, metrics in found.items() if step >= min_steps and metric in metrics]

    return values


def _crossed(evaluations: Callable[[], List[Tuple[int, float]]], beyond: Callable[[float], bool]) -> Callable[[], bool]:
    def should_stop() -> bool:
        return any(beyond(value) for _, value in evaluations())

    return should_stop


def _stood_still(
    evaluations: Callable[[], List[Tuple[int, float]]], most_steps: int, better: Callable[[float, float], bool]
) -> Callable[[], bool]:
    def should_stop() -> bool:
        best = None
        for step, value in evaluations():
            if best is None or better(value, best[1]):
                best = step, value
            if step - best[0] >= most_steps:
                return True
        return False

    return should_stop


def _stop_variable() -> Any:
    """Return the variable that is true when training ends.

    It has its name from TensorFlow's own hooks, to fit their checkpoints.
    """
    v1 = tf.compat.v1
    with v1.variable_scope("signal_early_stopping", reuse=v1.AUTO_REUSE):
        return v1.get_variable(
            "STOP", [], tf.bool, v1.constant_initializer(False), trainable=False, collections=[v1.GraphKeys.GLOBAL_VARIABLES]
        )


class _Asks(tf.compat.v1.train.SessionRunHook):
    """The chief's hook: asks whether to stop, and tells the other workers by the variable."""

    def __init__(
        self, should_stop_fn: Callable[[], bool], run_every_secs: Optional[float], run_every_steps: Optional[int]
    ) -> None:
        if not callable(should_stop_fn):
            raise TypeError("`should_stop_fn` must be a function without arguments, not %r" % (should_stop_fn,))
        self._should_stop = should_stop_fn
        self._timer = tf.compat.v1.train.SecondOrStepTimer(every_secs=run_every_secs, every_steps=run_every_steps)

    def begin(self) -> None:
        self._step = tf.compat.v1.train.get_global_step()
        self._tell = tf.compat.v1.assign(_stop_variable(), True)

    def before_run(self, run_context: Any) -> Any:
        return tf.compat.v1.train.SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = run_values.results
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop():
                run_context.session.run(self._tell)
                run_context.request_stop()


class _IsTold(tf.compat.v1.train.SessionRunHook):
    """The hook of the other workers: stops when the chief has set the variable."""

    def begin(self) -> None:
        self._told = _stop_variable()

    def before_run(self, run_context: Any) -> Any:
        return tf.compat.v1.train.SessionRunArgs(self._told)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results:
            run_context.request_stop()
