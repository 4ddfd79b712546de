"""A task's rows in the columns format: `Columns` makes datasets and plain batches of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from akrunner.worker import chunks, common, reached, reading, tf_data
from akrunner.worker import defaults as defaulting
from akrunner.worker.parts import WEIGHT, Parts, check_weight

if TYPE_CHECKING:
    from akrunner.worker.data import Evener
    from akrunner.worker.reading import Order, Reading
    from akrunner.worker.splits import Split
    from akrunner.worker.stream import RowStream

#: rows handed to `tf.data` at a time if rows are large, such as encoded images
_ROWS_OF_IMAGES = 32


class Columns(object):
    """A task's rows that arrive as columns: a file of chunks, or a stream of them."""

    def __init__(
        self, schema: List[Dict[str, Any]], path: Optional[str] = None, stream: Optional[RowStream] = None,
        evener: Optional[Evener] = None, split: Optional[Split] = None,
    ) -> None:  # fmt: skip
        """Make the source of a task's rows.

        Args:
            schema: as `TaskConfig.schema`.
            path: a file of chunks.
            stream: a `RowStream` of chunks, in place of a file.
            evener: makes the workers' shares of a file's rows equal.
            split: only the rows of this split are read; None for all.
        """
        self._schema = schema
        self._path: Any = path
        self._stream = stream
        self._evener: Any = evener
        self._split = split
        #: see `data.Examples.given`
        self.given = None
        self.read = reached.Rows(None)

    def part(self, split: Split, evener: Evener) -> Columns:
        """Return the source of one split's rows."""
        made = type(self)(self._schema, self._path, None, evener, split)
        made.read = self.read.of(split.number)
        return made

    def chunks(
        self,
        defaults: Optional[Mapping[str, Any]] = None,
        uneven: str = "keep",
        taken: Optional[Sequence[str]] = None,
        lazy: Union[bool, str] = False,
        made: bool = True,
    ) -> Iterator[Tuple[int, Any]]:
        """Return an iterator over all rows, once, in chunks (rows, {column: values}) as they arrived.

        `chunks.NOW` comes before each barrier of a stream.

        Args:
            defaults, uneven: see `BatchTaskConfig.dataset`.
            taken, lazy: see `chunks.unpack`.
            made: whether rows get a column of weights if `uneven` is "pad".
        """
        if uneven != "keep":
            keep, pad = self._evener.plan(uneven)
            if uneven == "pad":
                return self._padded(defaults, pad, taken, lazy, made)
            return chunks.first(self._chunks(defaults, taken, lazy), keep)
        return self._chunks(defaults, taken, lazy)

    def _chunks(
        self, defaults: Optional[Mapping[str, Any]], taken: Optional[Sequence[str]], lazy: Union[bool, str]
    ) -> Iterator[Tuple[int, Any]]:
        defaults = defaulting.checked(defaults, self._schema)
        if self._stream is not None:
            payloads: Iterator[Any] = (payload for _, payload in self._stream.chunks())
        else:
            payloads = chunks.read_file(self._path)
        first = 0
        mine = self._split.rows() if self._split is not None else None
        for payload in payloads:
            if payload is None:
                yield chunks.NOW
                continue
            # a null in a row of another split is no error
            rows, columns = chunks.unpack(payload, self._schema, defaults, taken, lazy if mine is None else lazy or True, first)
            if mine is None:
                yield rows, columns
            else:
                numbers = chunks.among(mine, first, rows)
                if len(numbers):
                    yield len(numbers), chunks.picked(columns, numbers, first, lazy)
            first += rows

    def _padded(
        self,
        defaults: Optional[Mapping[str, Any]],
        pad: int,
        taken: Optional[Sequence[str]],
        lazy: Union[bool, str],
        made: bool,
    ) -> Iterator[Tuple[int, Any]]:
        """Yield the rows and then the rows of padding. Args: pad: how many of these; made: as for `chunks`."""
        for rows, columns in self._chunks(defaults, taken, lazy):
            yield rows, dict(columns, **{WEIGHT: np.ones(rows, np.float32)}) if made else columns
        if pad:
            padding = self._padding(pad, taken)
            yield pad, dict(padding, **{WEIGHT: np.zeros(pad, np.float32)}) if made else padding

    def _padding(self, rows: int, taken: Optional[Sequence[str]]) -> Dict[str, Any]:
        """Return rows of padding: zeros, empty strings and empty lists."""
        columns: Dict[str, Any] = {}
        for column in common.taken_of(self._schema, taken):
            text = column["dtype"] == "bytes"
            dtype = object if text else column["dtype"]
            if column["shape"] is None:
                columns[column["name"]] = chunks.Ragged(np.empty(0, dtype), np.zeros(rows, np.int64))
            else:
                columns[column["name"]] = np.full([rows] + column["shape"], b"" if text else 0, dtype)
        return columns

    def batches(
        self, batch_size: int, defaults: Optional[Mapping[str, Any]] = None, drop_remainder: bool = False, uneven: str = "keep",
        columns: Optional[Sequence[str]] = None, nulls: str = "error",
    ) -> Iterator[Dict[str, Any]]:  # fmt: skip
        """See `BatchTaskConfig.batches`."""
        return common.counted(self, self.plain(batch_size, defaults, drop_remainder, uneven, columns, nulls), uneven)

    def plain(
        self, batch_size: int, defaults: Optional[Mapping[str, Any]], drop_remainder: bool, uneven: str,
        columns: Optional[Sequence[str]], nulls: str,
    ) -> Iterator[Dict[str, Any]]:  # fmt: skip
        """Return the same batches as `batches`, without counting the rows that the script takes."""
        reading.check_counts(batch_size)
        defaults = defaulting.checked(defaults, self._schema)
        if uneven == "pad":
            check_weight([column["name"] for column in self._schema])
        common.taken_of(self._schema, columns)
        if chunks.check_nulls(nulls) != "error":
            kept = chunks.rebatched(self.chunks(defaults, uneven, columns, lazy=chunks.KEPT), batch_size, drop_remainder)
            return (chunks.with_nulls(batch, nulls) for batch in kept)
        rows = self.chunks(defaults, uneven, columns, lazy=True)
        return map(chunks.given, chunks.rebatched(rows, batch_size, drop_remainder))

    def dataset(
        self, batch_size: int, shuffle: Union[bool, int] = False, repeat: Optional[int] = 1, drop_remainder: bool = False,
        label: Optional[str] = None, defaults: Optional[Mapping[str, Any]] = None, seed: Optional[int] = None,
        uneven: str = "keep", columns: Optional[Sequence[str]] = None, how: Optional[Reading] = None,
        weights: Optional[str] = None,
    ) -> Any:  # fmt: skip
        """See `BatchTaskConfig.dataset`. Args: how: the steps that are asked for; None for a plain `Reading`."""
        import tensorflow as tf

        how = how or reading.Reading()
        parts = Parts(label, weights, uneven == "pad")
        reading.check_counts(batch_size, shuffle, repeat, seed)
        parts.check(self._schema, how)
        defaults = defaulting.checked(defaults, self._schema)
        taken = parts.taken(columns)
        schema = common.taken_of(self._schema, taken)
        image = how.images(schema)
        reading.check_seed(seed, shuffle, image)
        common.check_cache(self, how, image)
        ragged = [column["name"] for column in schema if column["shape"] is None]
        if uneven != "keep":
            # a wrong word is refused, and dropped or padded rows are noted, now and not when the first row is drawn
            self._evener.plan(uneven)
        order = common.order_of(self, how, batch_size, shuffle, repeat, drop_remainder, seed, uneven)
        in_turn = self._stream is not None and self._stream.barriers

        if how.by_row and not in_turn:
            if ragged:
                raise ValueError(
                    "image= and interleave= go by the row, and data_format='columns' has none where a list's length varies "
                    "(%s): name the others with columns=, or use data_format='examples'" % ", ".join(ragged)
                )
            return self._by_row(tf, schema, order, parts, defaults, uneven, taken, image)

        # a cache comes before the repetition
        cached = how.cache is not None and not shuffle and order.whole()
        epochs = 1 if cached else repeat

        def source() -> Iterator[Dict[str, Any]]:
            rows = self._epochs(batch_size, shuffle, epochs, defaults, seed, uneven, taken, parts.made)
            if how.skip:
                rows = chunks.rest(rows, how.skip * batch_size)
            if ragged:
                for batch in chunks.rebatched(rows, batch_size, drop_remainder):
                    yield dict(_flat(batch))
            else:
                # a stream's rows are handed on as they arrive and do not wait for more
                yield from chunks.stacks(rows, batch_size, drop_remainder, chunks.ROWS_AT_ONCE if self._stream is None else 1)

        specs = self._specs(tf, schema, batch_size if drop_remainder else None, bool(ragged), parts.made)
        dataset = tf_data.from_generator(source, specs)
        if not ragged:
            # tf.data takes the stacks apart into batches, so that one call of Python makes many batches
            dataset = tf_data.unbatched(tf, dataset)
        if cached:
            dataset = order.cached(dataset)
            dataset = dataset if repeat == 1 else dataset.repeat(repeat)

        def finished(columns: Dict[str, Any]) -> Any:
            columns = _sparse(tf, columns, ragged)
            return parts.of(columns if image is None else image.batch(columns))

        if ragged or label is not None or image is not None:
            as_written = tf_data.as_written if image is None else image.as_written
            does = () if image is None else image.of_decoding() + image.of_finishing()
            dataset = reading.noted(dataset.map(as_written(finished)), *does)
        return how.in_turn(dataset) if in_turn else how.finished(dataset)

    def _by_row(
        self, tf: Any, schema: List[Dict[str, Any]], order: Order, parts: Parts, defaults: Optional[Mapping[str, Any]],
        uneven: str, taken: Optional[Sequence[str]], image: Any,
    ) -> Any:  # fmt: skip
        """Return the dataset if something is done with each row before rows are batched (`image=`, `interleave=`)."""
        most = 1 if self._stream is not None else _ROWS_OF_IMAGES

        def source() -> Iterator[Dict[str, Any]]:
            for rows, columns in self.chunks(defaults, uneven, taken, made=parts.made):
                for first in range(0, rows, most):
                    yield chunks.cut(columns, first, min(rows, first + most))

        rows = tf_data.unbatched(tf, tf_data.from_generator(source, self._specs(tf, schema, None, True, parts.made)))
        if image is None:
            return order.of_files(rows)
        return order.of_images(rows, image.decoded, parts.of, image)

    def _epochs(
        self, batch_size: int, shuffle: Union[bool, int], repeat: Optional[int], defaults: Optional[Mapping[str, Any]],
        seed: Optional[int], uneven: str, taken: Optional[Sequence[str]], made: bool,
    ) -> Iterator[Tuple[int, Any]]:  # fmt: skip
        for epoch in itertools.count() if repeat in (None, -1) else range(repeat):
            rows = self.chunks(defaults, uneven, taken, made=made)
            if shuffle:
                rows = chunks.shuffled(rows, common.buffer_rows(shuffle, batch_size), None if seed is None else seed + epoch)
            some = False
            for chunk in rows:
                some = True
                yield chunk
            if not some:
                return  # an empty table would be repeated for ever

    def _specs(
        self, tf: Any, schema: List[Dict[str, Any]], batch_size: Optional[int], flat: bool, made: bool
    ) -> Dict[str, Tuple[Any, List[Any]]]:
        """Return {name: (dtype, shape)} of the generator's elements.

        Args:
            batch_size: the batches' size, None if it varies.
            flat: whether elements are batches, and not stacks of batches.
            made: whether there is a column of weights.
        """
        specs: Dict[str, Tuple[Any, List[Any]]] = {}
        before: List[Any] = [] if flat else [None]
        for column in schema:
            dtype = tf.string if column["dtype"] == "bytes" else tf.as_dtype(column["dtype"])
            if column["shape"] is None:
                specs[column["name"]] = (dtype, [None])
                specs[column["name"] + _LENGTHS] = (tf.int64, [None])
            else:
                specs[column["name"]] = (dtype, [*before, batch_size] + column["shape"])
        if made:
            specs[WEIGHT] = (tf.float32, [*before, batch_size])
        return specs


_LENGTHS = "/lengths"


def _flat(batch: Any) -> Iterator[Tuple[str, Any]]:
    """Yield a batch's columns, each ragged one as two: its values, and its lengths."""
    for name, values in batch.items():
        if isinstance(values, chunks.Ragged):
            yield name, values.values
            yield name + _LENGTHS, values.lengths
        else:
            yield name, values


def _sparse(tf: Any, columns: Dict[str, Any], ragged: List[str]) -> Dict[str, Any]:
    """Replace the values and lengths of ragged columns by the SparseTensor that `parse_example` would return."""
    columns = dict(columns)
    for name in ragged:
        columns[name] = tf.RaggedTensor.from_row_lengths(columns[name], columns.pop(name + _LENGTHS)).to_sparse()
    return columns
