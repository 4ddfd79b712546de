"""Pieces of tf.data pipelines, written as each TensorFlow from 1.15 on wants them."""

from __future__ import annotations

from typing import Any, Callable, Sequence, TypeVar

from akrunner.worker import placing

F = TypeVar("F", bound=Callable[..., Any])


def as_written(function: F) -> F:
    """Return the function, marked so that TensorFlow's AutoGraph does not translate it, nor what it calls.

    For functions without `if` and `for` over tensors that call nothing of the script's: to translate them takes longer than all else that is
    done with few rows.
    """
    function.autograph_info__ = {}  # type: ignore[attr-defined]
    return function


def unbatched(tf: Any, dataset: Any) -> Any:
    """Return a dataset of the single entries of each element."""
    return dataset.unbatch() if hasattr(dataset, "unbatch") else dataset.apply(tf.data.experimental.unbatch())


def from_generator(source: Callable[..., Any], specs: Any, args: Sequence[Any] = ()) -> Any:
    """Call `tf.data.Dataset.from_generator` with the arguments that the installed TensorFlow expects.

    Args:
        source: the generator function.
        specs: (dtype, shape) of an element; or {name: (dtype, shape)}, or a list of (dtype, shape).
        args: tensors that the source is called with.
    """
    import tensorflow as tf

    def shaped(make: Callable[..., Any]) -> Any:
        if isinstance(specs, dict):
            return {name: make(*spec) for name, spec in specs.items()}
        return make(*specs) if not isinstance(specs[0], (tuple, list)) else tuple(make(*spec) for spec in specs)

    given: Any = tuple(args) or None
    placing.reads()
    if hasattr(tf, "TensorSpec") and tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 4):
        return tf.data.Dataset.from_generator(
            source, output_signature=shaped(lambda dtype, shape: tf.TensorSpec(shape, dtype)), args=given
        )
    types, shapes = shaped(lambda dtype, shape: dtype), shaped(lambda dtype, shape: tf.TensorShape(shape))
    return tf.data.Dataset.from_generator(source, types, shapes, given)


def not_ahead(dataset: Any) -> Any:
    """Return the dataset with options that keep tf.data from reading ahead, in it and in datasets made from it."""
    import tensorflow as tf

    options = tf.data.Options()
    optimized = options.experimental_optimization
    tuned = getattr(options, "autotune", None)
    for holder, name in ((optimized, "apply_default_optimizations"), (optimized, "autotune"), (tuned, "enabled")):
        if hasattr(type(holder), name):
            setattr(holder, name, False)
    for name in ("inject_prefetch", "map_parallelization", "parallel_batch"):
        if hasattr(type(optimized), name):
            setattr(optimized, name, False)
    return dataset.with_options(options)


def unsharded(dataset: Any) -> Any:
    """Return the dataset with options that keep a distribution strategy from sharding it: the rows are already split."""
    import tensorflow as tf

    placing.reads()
    options = tf.data.Options()
    distribute = options.experimental_distribute
    if hasattr(distribute, "auto_shard_policy"):
        distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    else:
        distribute.auto_shard = False
    _untuned(options)
    return dataset.with_options(options)


def _untuned(options: Any) -> None:
    """Turn the autotuner off.

    Maps then run one call for each core, as many as the tuner would choose, and ending a loop does not wait for the tuner: in
    TensorFlow 2.6 and later it may sleep on after the end of an iterator, for half as long as the loop took, up to a minute.
    """
    if hasattr(type(options), "autotune"):
        options.autotune.enabled = False
