"""Makes features, placeholders and datasets of columns that are described as `{name, dtype, shape[, feature_type]}`."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional

import tensorflow as tf

from akrunner.worker import tf_data

#: Alink's names of types -> TensorFlow's types. An Example has only one type of float and one of int
dtype_str_map = {
    "byte": tf.int8,
    "ubyte": tf.uint8,
    "int": tf.int64,
    "long": tf.int64,
    "float": tf.float32,
    "double": tf.float32,
    "boolean": tf.bool,
    "bool": tf.bool,
    "string": tf.string,
}

#: types that an Example can hold; other types are read as int64 and cast
_HELD = (tf.int64, tf.float32, tf.string)


def _dtype(column: Dict[str, Any]) -> Any:
    name = str(column["dtype"]).lower()
    if name not in dtype_str_map:
        raise ValueError("column %r has dtype %r; known: %s" % (column["name"], name, ", ".join(sorted(dtype_str_map))))
    return dtype_str_map[name]


def parse_feature_specs(example_config: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return {name: feature} of columns.

    A feature's class is the column's `feature_type`, or `FixedLenFeature` if it has none.
    """
    return {column["name"]: _feature(column) for column in example_config}


def _feature(column: Dict[str, Any]) -> Any:
    kind, dtype = column.get("feature_type") or tf.io.FixedLenFeature, _dtype(column)
    if kind is tf.io.FixedLenSequenceFeature:
        return kind(list(column["shape"]), dtype, allow_missing=True)
    if kind in (tf.io.VarLenFeature, getattr(tf.io, "RaggedFeature", None)):
        # these classes take no shape
        return kind(dtype)
    if not callable(kind):
        raise ValueError(
            "column %r has feature_type %r; it is a class: tf.io.FixedLenFeature, tf.io.VarLenFeature, ..."
            % (column["name"], kind)
        )
    return kind(list(column["shape"]), dtype)


def get_example_parser(feature_specs: Dict[str, Any], label_col: Optional[str]) -> Callable[..., Any]:
    """Return a function: serialized Example -> (features, label), or features alone if there is no label.

    Booleans and bytes, which an Example holds as int64, are cast to the type in `feature_specs`.

    Args:
        feature_specs: {name: feature}, as `parse_feature_specs` returns them.
        label_col: the label's name, None if there is none.
    """
    cast = {name: spec.dtype for name, spec in feature_specs.items() if getattr(spec, "dtype", tf.int64) not in _HELD}
    held = {name: spec._replace(dtype=tf.int64) if name in cast else spec for name, spec in feature_specs.items()}

    @tf_data.as_written
    def parse(record: Any) -> Any:
        features = tf.io.parse_single_example(record, held)
        for name, dtype in cast.items():
            features[name] = tf.cast(features[name], dtype)
        if not label_col:
            return features
        label = features.pop(label_col)
        return features, label

    return parse


def get_feature_placeholders(
    placeholders_config: List[Dict[str, Any]], export_batch_dim: bool = False, **ignored: Any
) -> Dict[str, Any]:
    """Return {name: placeholder} for a serving function.

    Args:
        placeholders_config: descriptions of the columns.
        export_batch_dim: whether the shapes begin with the batch's dimension.
        ignored: the other entries of an `export_config`.
    """
    placeholders = {}
    for column in placeholders_config:
        shape = ([None] if export_batch_dim else []) + list(column["shape"])
        placeholders[column["name"]] = tf.compat.v1.placeholder(_dtype(column), shape, name=column["name"])
    return placeholders


def get_dataset(
    feature_specs: Dict[str, Any], raw_dataset_fn: Callable[[], Any], label_col: Optional[str], batch_size: int,
    num_epochs: Optional[int], num_parallel_calls: int = 8, shuffle_factor: int = 10,
    prefetch_buffer_size: Optional[int] = None, post_process_dataset: Optional[Callable[..., Any]] = None, **ignored: Any,
) -> Any:  # fmt: skip
    """Return a dataset of batches (features, label).

    The records are parsed, passed through `post_process_dataset`, shuffled, repeated `num_epochs` times, and put into batches.

    Args:
        feature_specs: {name: feature}, as `parse_feature_specs` returns them.
        raw_dataset_fn: returns a dataset of serialized Examples.
        label_col: the label's name, None if there is none.
        batch_size: rows of a batch.
        num_epochs: how often the rows come, None without end.
        num_parallel_calls: how many records are parsed at once.
        shuffle_factor: how many batches the shuffle buffer holds; 0: the rows are not shuffled.
        prefetch_buffer_size: how many batches are made ahead, None for 1.
        post_process_dataset: takes the dataset of parsed rows, one row in each element, and returns another one; None for none.
        ignored: other options.
    """
    dataset = raw_dataset_fn()
    dataset = dataset.map(get_example_parser(feature_specs, label_col), num_parallel_calls=num_parallel_calls)
    if post_process_dataset is not None:
        dataset = post_process_dataset(dataset)
    if shuffle_factor:
        dataset = dataset.shuffle(int(batch_size) * int(shuffle_factor))
    dataset = dataset.repeat(num_epochs).batch(int(batch_size))
    return dataset.prefetch(prefetch_buffer_size or 1)


def get_dataset_fn(**options: Any) -> Callable[..., Any]:
    """Return a function without arguments that calls `get_dataset` with these options."""
    return functools.partial(get_dataset, **options)
