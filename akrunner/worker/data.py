"""A task's rows as Examples, and what they have in common with columns (`akrunner.worker.columnar`). TensorFlow is imported
when something here is called, not before."""

_BUFFER = 1 << 20


class Examples(object):
    """Serialized Examples, parsed by TensorFlow."""

    def __init__(self, schema, path=None, stream=None):
        """path: TFRecord file; stream: or a `RowStream`."""
        self._schema = schema
        self._path = path
        self._stream = stream

    def dataset(self, batch_size, shuffle=False, repeat=1, drop_remainder=False, label=None, defaults=None, seed=None):
        """See `BatchTaskConfig.dataset`."""
        import tensorflow as tf

        if self._stream is not None:
            records = self._stream.dataset()
        else:
            records = tf.data.TFRecordDataset(self._path, buffer_size=_BUFFER)
        if shuffle:
            records = records.shuffle(buffer_rows(shuffle, batch_size), seed=seed)
        if repeat != 1:
            records = records.repeat(repeat)
        spec = feature_spec(self._schema, defaults)
        check_label(label, spec)

        def parse(batch):
            return apart(tf.io.parse_example(batch, spec), label)

        # parse a whole batch at a time: one record at a time is 10 to 80 times slower
        parsed = records.batch(batch_size, drop_remainder=drop_remainder).map(parse)
        return unsharded(parsed).prefetch(2)

    def batches(self, batch_size, defaults=None, drop_remainder=False):
        """See `BatchTaskConfig.batches`."""
        return evaluated(self.dataset(batch_size, defaults=defaults, drop_remainder=drop_remainder))


def feature_spec(schema, defaults=None):
    """Columns -> features for `tf.io.parse_example`; see `TaskConfig.feature_spec`."""
    import tensorflow as tf

    dtypes = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}
    defaults = defaults or {}
    unknown_defaults(defaults, schema)
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


def unknown_defaults(defaults, schema):
    """Raises: ValueError: `defaults` names a column that is not there."""
    unknown = sorted(set(defaults or ()) - {column["name"] for column in schema})
    if unknown:
        raise ValueError("defaults names columns that are not there: %s" % ", ".join(unknown))


def check_label(label, names):
    """Raises: ValueError: there is no such column."""
    if label is not None and label not in names:
        raise ValueError("label=%r is not a column; columns: %s" % (label, ", ".join(names)))


def apart(columns, label):
    """(features, label), or the columns as they are."""
    if label is None:
        return columns
    columns = dict(columns)
    target = columns.pop(label)
    return columns, target


def buffer_rows(shuffle, batch_size):
    return 10 * batch_size if shuffle is True else int(shuffle)


def from_generator(source, specs):
    """`tf.data.Dataset.from_generator` as this TensorFlow wants it called. Args: specs: {name: (dtype, shape)}, or one such."""
    import tensorflow as tf

    one = isinstance(specs, tuple)
    named = {"": specs} if one else specs
    if hasattr(tf, "TensorSpec") and tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 4):
        signature = {name: tf.TensorSpec(shape, dtype) for name, (dtype, shape) in named.items()}
        return tf.data.Dataset.from_generator(source, output_signature=signature[""] if one else signature)
    types = {name: dtype for name, (dtype, _) in named.items()}
    shapes = {name: tf.TensorShape(shape) for name, (_, shape) in named.items()}
    return tf.data.Dataset.from_generator(source, types[""] if one else types, shapes[""] if one else shapes)


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


def evaluated(dataset):
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
