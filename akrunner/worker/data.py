"""A task's rows in the Examples format, and the code that it shares with the columns format (`akrunner.worker.column_rows`).

TensorFlow is imported when a `dataset` is made, and numpy when `batches` are: a task that reads its file itself needs neither.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from akrunner.wire.features import KINDS
from akrunner.worker import reached, tf_data
from akrunner.worker.common import check_cache, counted, order_of, taken_of
from akrunner.worker.parts import WEIGHT, Parts
from akrunner.worker.reading import Reading, check_counts, check_seed, noted

if TYPE_CHECKING:
    from akrunner.worker.splits import Split
    from akrunner.worker.stream import RowStream

_BUFFER = 1 << 20
#: a file of at most so many bytes, of at most so many values, is parsed once for all epochs
_FEW_BYTES, _FEW_VALUES = 4 << 20, 1 << 17


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
        self._path: Any = path
        self._stream: Any = stream
        self._evener: Any = evener
        self._split = split
        #: rows that the longest pass of `batches` has given out; None if `batches` was not used, so that it is unknown how the
        #: script reads
        self.given = None
        self.read = reached.Rows(None)

    def part(self, split: Split, evener: Evener) -> Examples:
        """Return the source of one split's rows."""
        made = type(self)(self._schema, self._path, None, evener, split)
        made.read = self.read.of(split.number)
        return made

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
        order = order_of(self, how, batch_size, shuffle, repeat, drop_remainder, seed, uneven)
        few = None if how.by_row or how.cache == "disk" else self._few(spec, uneven, parts)
        if few is not None:
            return order.of_parsed(few)
        records = self._records(spec, uneven, parts.made)
        import tensorflow as tf

        @tf_data.as_written
        def row(record: Any) -> Dict[str, Any]:
            columns: Dict[str, Any] = tf.io.parse_single_example(record, spec)
            return columns

        if how.interleave is not None:
            return order.of_files(records.map(row))
        if image is not None:
            return order.of_images(records, tf_data.as_written(lambda record: image.decoded(row(record))), parts.of, image)
        return order.of_records(records, tf_data.as_written(lambda batch: parts.of(tf.io.parse_example(batch, spec))))

    def _in_turn(
        self, spec: Dict[str, Any], batch_size: int, drop_remainder: bool, parts: Parts, image: Any, how: Reading
    ) -> Any:
        """Return the dataset of a stream with barriers: no row is read before the script asks for it."""
        import tensorflow as tf

        def parse(batch: Any) -> Any:
            columns = tf.io.parse_example(batch, spec)
            return parts.of(columns if image is None else image.batch(columns))

        as_written = tf_data.as_written if image is None else image.as_written
        does = () if image is None else image.of_decoding() + image.of_finishing()
        return how.in_turn(noted(self._stream.batches(batch_size, drop_remainder).map(as_written(parse)), *does))

    def _few(self, spec: Dict[str, Any], uneven: str, parts: Parts) -> Any:
        """Return a dataset of the single rows as the script gets them, parsed and in memory; None if there are too many for that.

        TensorFlow takes some milliseconds in each epoch to begin with the functions of a dataset that parse rows, or choose those of
        a split: for few rows, longer than for all else. Also returns None if a graph is being built, whose datasets are read where it
        runs; if the number of a column's values varies, whose batches are no slices of all rows; in a job of several workers, as Keras
        takes the number of batches, where it knows it, for that of its steps before a strategy cuts each batch into one for each worker,
        and as each worker would decide by its own file; and if the rows cannot be parsed, which must be an error of the batch that they
        are in.

        Args:
            spec, uneven: as for `_records`.
        """
        import tensorflow as tf

        varies = any(column["shape"] is None and column["name"] in spec for column in self._schema)
        if self._stream is not None or self._evener is None or varies or not self._evener.is_alone:
            return None
        if not tf.executing_eagerly() or os.path.getsize(self._path) > _FEW_BYTES:
            return None
        # nothing is dropped or added for others, which it reports
        self._evener.plan(uneven)
        try:
            rows = self._all_records()
            if not 0 < len(rows) * len(spec) <= _FEW_VALUES:
                return None
            with tf.device("/cpu:0"):
                columns = tf.io.parse_example(tf.constant(rows), dict(spec, **_weight(tf) if parts.made else {}))
                if sum(int(values.shape.num_elements()) for values in columns.values()) > _FEW_VALUES:
                    return None
                return tf.data.Dataset.from_tensor_slices(parts.of(columns))
        except Exception:
            return None

    def _all_records(self) -> List[bytes]:
        """Return all serialized Examples of the file, or of the split."""
        # imported only here, because it imports numpy
        from akrunner.worker import records

        memory = records.read_file(self._path)
        parts = records.cut(memory, self._path) if memory is not None else ()
        places = [place for starts, ends in parts for place in zip(starts.tolist(), ends.tolist())]
        if self._split is not None:
            places = [places[number] for number in self._split.rows().tolist()]
        return [bytes(memory[start:end]) for start, end in places] if memory is not None else []

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
            spec.update(_weight(tf))
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
        return counted(self, rows.plain(batch_size, defaults, drop_remainder, uneven, columns, nulls), uneven)

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


def _weight(tf: Any) -> Dict[str, Any]:
    """Return the feature of the column of weights: rows of padding have 0, all others have none."""
    return {WEIGHT: tf.io.FixedLenFeature([], tf.float32, default_value=1.0)}


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
        """Return an Evener for a part of the rows. Args: rows, shares: as for the class, of that part alone."""
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

    @property
    def is_alone(self) -> bool:
        """Whether this worker is the only one."""
        return len(self._shares or ()) < 2

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
