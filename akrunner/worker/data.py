"""A task's rows in the Examples format, and the code that it shares with the columns format (`akrunner.worker.columnar`).

TensorFlow is imported when a `dataset` is made, and numpy when `batches` are: a task that reads its file itself needs neither.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from akrunner.wire.features import KINDS
from akrunner.wire.near import nearest
from akrunner.worker import placing
from akrunner.worker.parts import WEIGHT, Parts
from akrunner.worker.reading import Order, Reading, check_counts, check_room, check_seed, noted
from akrunner.worker.waits import timing

if TYPE_CHECKING:
    from akrunner.worker.splits import Split
    from akrunner.worker.stream import RowStream

_BUFFER = 1 << 20
#: each cache on disk has a file of its own
_CACHES = itertools.count()


class Examples(object):
    """A task's rows that arrive as serialized Examples.

    TensorFlow parses them for datasets, numpy (`akrunner.worker.examples`) for plain batches.
    """

    def __init__(
        self, schema: List[Dict[str, Any]], path: Optional[str] = None, stream: Optional[RowStream] = None,
        evener: Optional[Evener] = None, split: Optional[Split] = None,
    ) -> None:  # fmt: skip
        """Make the source of a task's rows.

        Args:
            schema: as `TaskConfig.schema`.
            path: a TFRecord file.
            stream: a `RowStream`, in place of a file.
            evener: makes the workers' shares of a file's rows equal.
            split: only the rows of this split are read; None for all.
        """
        self._schema = schema
        self._path = path
        self._stream: Any = stream
        self._evener: Any = evener
        self._split = split
        #: rows that the longest pass of `batches` has given out; None if `batches` was not used, so that it is unknown how the
        #: script reads
        self.given = None

    def part(self, split: Split, evener: Evener) -> Examples:
        """Return the source of one split's rows."""
        return type(self)(self._schema, self._path, None, evener, split)

    def dataset(
        self, batch_size: int, shuffle: Union[bool, int] = False, repeat: Optional[int] = 1, drop_remainder: bool = False,
        label: Optional[str] = None, defaults: Optional[Mapping[str, Any]] = None, seed: Optional[int] = None,
        uneven: str = "keep", columns: Optional[Sequence[str]] = None, how: Optional[Reading] = None,
        weights: Optional[str] = None,
    ) -> Any:  # fmt: skip
        """See `BatchTaskConfig.dataset`. Args: how: the steps that are asked for; None for a plain `Reading`."""
        how = how or Reading()
        parts = Parts(label, weights, uneven == "pad")
        check_counts(batch_size, shuffle, repeat, seed)
        parts.check(self._schema, how)
        from akrunner.worker.defaults import checked

        defaults = checked(defaults, self._schema)
        schema = taken_of(self._schema, parts.taken(columns))
        image = how.images(schema)
        check_seed(seed, shuffle, image)
        check_cache(self, how, image)
        spec = feature_spec(schema, _defaults_of(schema, defaults))
        if self._stream is not None and self._stream.barriers:
            return self._in_turn(spec, batch_size, drop_remainder, parts, image, how)
        records = self._records(spec, uneven, parts.made)
        order = order_of(self, how, batch_size, shuffle, repeat, drop_remainder, seed, uneven)
        import tensorflow as tf

        def row(record: Any) -> Dict[str, Any]:
            columns: Dict[str, Any] = tf.io.parse_single_example(record, spec)
            return columns

        if how.interleave is not None:
            return order.of_files(records.map(row))
        if image is not None:
            return order.of_images(records, lambda record: image.decoded(row(record)), parts.of, image)
        return order.of_records(records, lambda batch: parts.of(tf.io.parse_example(batch, spec)))

    def _in_turn(
        self, spec: Dict[str, Any], batch_size: int, drop_remainder: bool, parts: Parts, image: Any, how: Reading
    ) -> Any:
        """Return the dataset of a stream with barriers: no row is read before the script asks for it."""
        import tensorflow as tf

        def parse(batch: Any) -> Any:
            columns = tf.io.parse_example(batch, spec)
            return parts.of(columns if image is None else image.batch(columns))

        does = () if image is None else image.of_decoding() + image.of_finishing()
        return how.in_turn(noted(self._stream.batches(batch_size, drop_remainder).map(parse), *does))

    def _records(self, spec: Dict[str, Any], uneven: str, made: bool) -> Any:
        """Return a dataset of serialized Examples, as many as `uneven` says.

        Args:
            spec: the features by which rows are parsed; a column of weights is added to it.
            made: whether rows get a column of weights.
        """
        import tensorflow as tf

        if self._stream is not None:
            return self._stream.dataset()
        records = tf.data.TFRecordDataset(self._path, buffer_size=_BUFFER)
        if self._split is not None:
            records = self._split.of_records(records)
        if uneven == "keep":
            return records
        keep, pad = self._evener.plan(uneven)
        if keep is not None:
            records = records.take(keep)
        if made:
            spec[WEIGHT] = tf.io.FixedLenFeature([], tf.float32, default_value=1.0)
        if pad:
            records = records.concatenate(tf.data.Dataset.from_tensors(self._padding_row(made)).repeat(pad))
        return records

    def batches(
        self, batch_size: int, defaults: Optional[Mapping[str, Any]] = None, drop_remainder: bool = False, uneven: str = "keep",
        columns: Optional[Sequence[str]] = None, nulls: str = "error",
    ) -> Iterator[Dict[str, Any]]:  # fmt: skip
        """See `BatchTaskConfig.batches`."""
        from akrunner.worker.examples import ExampleRows

        rows = ExampleRows(self._schema, self._path, self._stream, self._evener, self._split)
        return counted(self, rows.plain(batch_size, defaults, drop_remainder, uneven, columns, nulls))

    def chunks(self, lazy: bool = False) -> Iterator[Tuple[int, Any]]:
        """Return an iterator over all rows, once, as `Columns.chunks` returns it."""
        from akrunner.worker.examples import ExampleRows

        return ExampleRows(self._schema, self._path, self._stream, self._evener, self._split).chunks(lazy=lazy)

    def _padding_row(self, made: bool) -> bytes:
        """Return a serialized Example of zeros and empty strings. Args: made: whether to add a column of weights, with 0."""
        import tensorflow as tf

        example = tf.train.Example()
        features = example.features.feature
        for column in self._schema:
            if column["shape"] is None:
                continue
            count = 1
            for size in column["shape"]:
                count *= size
            value = features[column["name"]]
            kind = KINDS[column["kind"]]
            getattr(value, kind.field).value.extend([kind.blank] * count)
        if made:
            features[WEIGHT].float_list.value.append(0.0)
        row: bytes = example.SerializeToString()
        return row


class Evener(object):
    """Makes the shares of all workers equal: it drops rows, or adds rows of padding with weight 0.

    Args:
        rows: the number of this worker's rows.
        shares: the number of rows of every worker; None or empty for this worker alone.
        told: called with `rows_dropped=` or `rows_padded=`.
    """

    def __init__(self, rows: int, shares: Optional[Sequence[int]], told: Callable[..., Any]) -> None:
        self._rows = rows
        self._shares = shares
        self._told = told
        #: the most rows that one pass may have, with padding
        self.most = max([rows] + list(shares or ()))

    def part(self, rows: int, shares: Sequence[int]) -> Evener:
        """Return the evener of some of the rows. Args: rows, shares: as for the class, counting those rows only."""
        return Evener(rows, shares, self._told)

    def plan(self, uneven: str) -> Tuple[Optional[int], int]:
        """Return (rows to keep, None for all; rows of padding to add) for one pass, and report them to `told`.

        Raises: ValueError: `uneven` is not "drop", "pad" or "keep".
        """
        shares = self._shares or [self._rows]
        if uneven == "drop":
            keep = min(shares)
            self._told(rows_dropped=max(0, self._rows - keep))
            return keep, 0
        if uneven == "pad":
            pad = max(0, max(shares) - self._rows)
            self._told(rows_padded=pad)
            return None, pad
        if uneven == "keep":
            return None, 0
        raise ValueError("uneven=%r: give 'drop', 'pad' or 'keep'" % (uneven,))

    def count(self, uneven: str) -> int:
        """Return the number of rows in one pass."""
        shares = self._shares or [self._rows]
        return {"drop": min(shares), "pad": max(shares)}.get(uneven, self._rows)


def feature_spec(schema: List[Dict[str, Any]], defaults: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """Return {column: feature} for `tf.io.parse_example`; see `TaskConfig.feature_spec`."""
    import tensorflow as tf

    from akrunner.worker.defaults import checked

    defaults = checked(defaults, schema)
    spec = {}
    for column in schema:
        name, dtype, shape = column["name"], getattr(tf, KINDS[column["kind"]].tensor), column["shape"]
        if shape is None:
            spec[name] = tf.io.VarLenFeature(dtype)
            continue
        default = defaults.get(name)
        if default is None and column["kind"] == "float" and column["nullable"]:
            default = float("nan")
        if isinstance(default, bool):
            # Examples hold booleans as numbers
            default = int(default)
        if default is not None and shape:
            count = 1
            for size in shape:
                count *= size
            default = [default] * count if not isinstance(default, (list, tuple)) else default
        spec[name] = tf.io.FixedLenFeature(shape, dtype, default_value=default)
    return spec


def _defaults_of(schema: List[Dict[str, Any]], defaults: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """Return the defaults of those columns that are in a schema."""
    names = [column["name"] for column in schema]
    return {name: value for name, value in (defaults or {}).items() if name in names}


def taken_of(schema: List[Dict[str, Any]], names: Optional[Sequence[str]]) -> List[Dict[str, Any]]:
    """Return the columns of a schema that a script asked for.

    Args:
        schema: as `TaskConfig.schema`.
        names: the names of those columns; None for all.
    Raises:
        ValueError: there is no such column, or the names are none or a single text.
    """
    if names is None:
        return schema
    if isinstance(names, str):
        raise ValueError("columns=%r: give a list of names" % names)
    known = [column["name"] for column in schema]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = "there is no column %r" % (unknown[0],) if unknown else "empty"
        hint = nearest(unknown[0], known) if unknown else ""
        raise ValueError("columns=%r: %s; columns: %s%s" % (names, wrong, ", ".join(known), hint))
    return [column for column in schema if column["name"] in names]


def counted(source: Any, batches: Iterator[Dict[str, Any]]) -> Iterator[Dict[str, Any]]:
    """Yield the batches of one pass, and count their rows in `source.given`."""
    rows = 0
    source.given = source.given or 0
    for batch in timing.batches(iter(batches), _rows_of):
        rows += _rows_of(batch)
        source.given = max(source.given, rows)
        yield batch


def _rows_of(batch: Dict[str, Any]) -> int:
    from akrunner.worker import chunks

    if isinstance(batch, chunks.Batch):
        return batch.rows
    for values in batch.values():
        return len(values)
    return 0


def buffer_rows(shuffle: Union[bool, int], batch_size: int) -> int:
    return 10 * batch_size if shuffle is True else int(shuffle)


def order_of(
    source: Any, how: Reading, batch_size: int, shuffle: Union[bool, int], repeat: Optional[int], drop_remainder: bool,
    seed: Optional[int], uneven: str,
) -> Order:  # fmt: skip
    """Return the `Order` of the steps for a source's rows. Args: source: `Examples` or `Columns`."""
    buffer = buffer_rows(shuffle, batch_size) if shuffle else 0
    if source._stream is not None or source._evener is None:
        return Order(how, batch_size, buffer, repeat, drop_remainder, seed)
    # TensorFlow allocates a buffer of the size that is asked for, even if there are fewer rows
    buffer = min(buffer, max(1, source._evener.most))
    place = "%s.cache-%d" % (source._path, next(_CACHES))
    return Order(how, batch_size, buffer, repeat, drop_remainder, seed, source._evener.count(uneven), place)


def check_cache(source: Any, how: Reading, image: Any) -> None:
    """Raise a ValueError if the rows or images that `cache=` keeps in memory do not fit there."""
    if how.cache != "memory" or source._stream is not None or source._evener is None:
        return
    rows = source._evener.most
    if image is not None and image.size is not None:
        check_room(rows * image.bytes_each(), "%d images of %dx%dx%d" % ((rows,) + image.size + (image.channels,)))
    else:
        check_room(os.path.getsize(source._path) if os.path.exists(source._path) else 0, "the rows")


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
