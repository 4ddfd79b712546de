"""Columns, described as `{name, dtype, shape[, feature_type]}`, as features, placeholders and datasets."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional

import tensorflow as tf

#: Alink's names; the format has one float and one int type
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

#: what an Example holds; other types are read as int64 and cast
_HELD = (tf.int64, tf.float32, tf.string)


def _dtype(column: Dict[str, Any]) -> Any:
    name = str(column["dtype"]).lower()
    if name not in dtype_str_map:
        raise ValueError("column %r has dtype %r; known: %s" % (column["name"], name, ", ".join(sorted(dtype_str_map))))
    return dtype_str_map[name]


def parse_feature_specs(example_config: List[Dict[str, Any]]) -> Dict[str, Any]:
    """{name: feature} of columns: of the class that `feature_type` names, `FixedLenFeature` without it."""
    return {column["name"]: _feature(column) for column in example_config}


def _feature(column: Dict[str, Any]) -> Any:
    kind, dtype = column.get("feature_type") or tf.io.FixedLenFeature, _dtype(column)
    if kind is tf.io.FixedLenSequenceFeature:
        return kind(list(column["shape"]), dtype, allow_missing=True)
    if kind in (tf.io.VarLenFeature, getattr(tf.io, "RaggedFeature", None)):
        # they have no shape
        return kind(dtype)
    if not callable(kind):
        raise ValueError(
            "column %r has feature_type %r; it is a class: tf.io.FixedLenFeature, tf.io.VarLenFeature, ..."
            % (column["name"], kind)
        )
    return kind(list(column["shape"]), dtype)


def get_example_parser(feature_specs: Dict[str, Any], label_col: Optional[str]) -> Callable[..., Any]:
    """A function: one serialized Example -> (features, label); features alone where there is no label. Booleans and bytes, which
    an Example holds as int64, are cast to what `feature_specs` says."""
    cast = {name: spec.dtype for name, spec in feature_specs.items() if getattr(spec, "dtype", tf.int64) not in _HELD}
    held = {name: spec._replace(dtype=tf.int64) if name in cast else spec for name, spec in feature_specs.items()}

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
    """{name: placeholder} for a serving function; `export_batch_dim` puts the batch's dimension in front. Args: ignored: whatever
    else an `export_config` has."""
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
    """Records -> parsed, given to `post_process_dataset` (a row an element), shuffled (`batch_size * shuffle_factor` rows), repeated,
    batched: (features, label)."""
    dataset = raw_dataset_fn()
    dataset = dataset.map(get_example_parser(feature_specs, label_col), num_parallel_calls=num_parallel_calls)
    if post_process_dataset is not None:
        dataset = post_process_dataset(dataset)
    if shuffle_factor:
        dataset = dataset.shuffle(int(batch_size) * int(shuffle_factor))
    dataset = dataset.repeat(num_epochs).batch(int(batch_size))
    return dataset.prefetch(prefetch_buffer_size or 1)


def get_dataset_fn(**options: Any) -> Callable[..., Any]:
    """`get_dataset` with these options, to be called without any."""
    return functools.partial(get_dataset, **options)
