"""TensorFlow's view of a task's rows. TensorFlow is imported when something here is called, not before."""


def feature_spec(schema, defaults=None):
    """Columns -> features for `tf.io.parse_example`; see `TaskConfig.feature_spec`."""
    import tensorflow as tf

    dtypes = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}
    defaults = defaults or {}
    unknown = sorted(set(defaults) - {column["name"] for column in schema})
    if unknown:
        raise ValueError("defaults names columns that are not there: %s" % ", ".join(unknown))
    spec = {}
    for column in schema:
        name, dtype, shape = column["name"], dtypes[column["kind"]], column["shape"]
        if shape is None:
            spec[name] = tf.io.VarLenFeature(dtype)
            continue
        default = defaults.get(name)
        if default is None and column["kind"] == "float" and column["nullable"]:
            default = float("nan")
        if default is not None and shape:
            count = 1
            for size in shape:
                count *= size
            default = [default] * count if not isinstance(default, (list, tuple)) else default
        spec[name] = tf.io.FixedLenFeature(shape, dtype, default_value=default)
    return spec


def dataset(path, schema, batch_size, shuffle, repeat, drop_remainder, label, defaults, seed):
    """See `BatchTaskConfig.dataset`."""
    import tensorflow as tf

    records = tf.data.TFRecordDataset(path, buffer_size=1 << 20)
    if shuffle:
        buffer = 10 * batch_size if shuffle is True else int(shuffle)
        records = records.shuffle(buffer, seed=seed)
    if repeat != 1:
        records = records.repeat(repeat)

    return parsed(records, schema, batch_size, drop_remainder, label, defaults)


def parsed(records, schema, batch_size, drop_remainder, label, defaults):
    """A dataset of serialized Examples -> parsed batches."""
    import tensorflow as tf

    spec = feature_spec(schema, defaults)
    if label is not None and label not in spec:
        raise ValueError("label=%r is not a column; columns: %s" % (label, ", ".join(spec)))

    def parse(batch):
        columns = tf.io.parse_example(batch, spec)
        if label is None:
            return columns
        target = columns.pop(label)
        return columns, target

    # parse a whole batch at a time: one record at a time is 10 to 80 times slower
    parsed = records.batch(batch_size, drop_remainder=drop_remainder).map(parse)
    return unsharded(parsed).prefetch(2)


def unsharded(dataset):
    """The rows were already split over the workers: keep a distribution strategy from doing it again."""
    import tensorflow as tf

    options = tf.data.Options()
    distribute = options.experimental_distribute
    if hasattr(distribute, "auto_shard_policy"):
        distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    else:
        distribute.auto_shard = False
    return dataset.with_options(options)


def batches(dataset):
    """A dataset of dicts as numpy arrays, in whichever mode this TensorFlow runs."""
    import tensorflow as tf

    if tf.executing_eagerly():
        for batch in dataset:
            yield {name: _numpy(value) for name, value in batch.items()}
        return
    graph_batch = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    with tf.compat.v1.Session() as session:
        while True:
            try:
                batch = session.run(graph_batch)
            except tf.errors.OutOfRangeError:
                return
            yield batch


def _numpy(value):
    return value.numpy() if hasattr(value, "numpy") else value
