"""Columns, described as `{name, dtype, shape[, feature_type]}`, as features, placeholders and datasets."""

import functools

import tensorflow as tf

#: Alink's names; the format has one float and one int type
dtype_str_map = {
    "byte": tf.int64,
    "ubyte": tf.int64,
    "int": tf.int64,
    "long": tf.int64,
    "float": tf.float32,
    "double": tf.float32,
    "boolean": tf.int64,
    "bool": tf.int64,
    "string": tf.string,
}


def _dtype(column):
    name = str(column["dtype"]).lower()
    if name not in dtype_str_map:
        raise ValueError("column %r has dtype %r; known: %s" % (column["name"], name, ", ".join(sorted(dtype_str_map))))
    return dtype_str_map[name]


def parse_feature_specs(example_config):
    """{name: FixedLenFeature} of columns."""
    return {column["name"]: tf.io.FixedLenFeature(list(column["shape"]), _dtype(column)) for column in example_config}


def get_example_parser(feature_specs, label_col):
    """A function: one serialized Example -> (features, label); features alone where there is no label."""

    def parse(record):
        features = tf.io.parse_single_example(record, feature_specs)
        if not label_col:
            return features
        label = features.pop(label_col)
        return features, label

    return parse


def get_feature_placeholders(placeholders_config, export_batch_dim=False):
    """{name: placeholder} for a serving function; `export_batch_dim` puts the batch's dimension in front."""
    placeholders = {}
    for column in placeholders_config:
        shape = ([None] if export_batch_dim else []) + list(column["shape"])
        placeholders[column["name"]] = tf.compat.v1.placeholder(_dtype(column), shape, name=column["name"])
    return placeholders


def get_dataset(
    feature_specs,
    raw_dataset_fn,
    label_col,
    batch_size,
    num_epochs,
    num_parallel_calls=8,
    shuffle_factor=10,
    prefetch_buffer_size=None,
    post_process_dataset=None,
    **ignored,
):
    """Records -> parsed, shuffled (`batch_size * shuffle_factor` rows), repeated, batched: (features, label)."""
    dataset = raw_dataset_fn()
    dataset = dataset.map(get_example_parser(feature_specs, label_col), num_parallel_calls=num_parallel_calls)
    if shuffle_factor:
        dataset = dataset.shuffle(int(batch_size) * int(shuffle_factor))
    dataset = dataset.repeat(num_epochs).batch(int(batch_size))
    if post_process_dataset is not None:
        dataset = post_process_dataset(dataset)
    return dataset.prefetch(prefetch_buffer_size or 1)


def get_dataset_fn(**options):
    """`get_dataset` with these options, to be called without any."""
    return functools.partial(get_dataset, **options)
