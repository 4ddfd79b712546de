"""What a script's `main(task_config)` is given."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from akrunner.worker import data, reading
from akrunner.worker.asking import told

if TYPE_CHECKING:
    # Python 3.7 has none, and looks at no annotation
    from typing import Literal

    import tensorflow as tf
    from numpy.typing import NDArray

    from akrunner.worker.context import TFContext
    from akrunner.worker.output import OutputWriter


class TaskConfig(object):
    """Common to all modes. As Alink's: built by keyword, unknown keywords ignored, every field a plain attribute.

    Attributes:
        tf_context: the context object of the Flink-AI-Extended interface; `flink_stream_dataset()` among its methods.
        num_workers: workers in the cluster, the chief included unless it only coordinates (`coordinator=True`).
        cluster: role -> list of "host:port", as in TF_CONFIG; one worker alone has no TF_CONFIG unless the job says `chief=`.
        task_type: "chief", "worker", "ps" or "evaluator". Without a chief (`chief=False`) worker 0 is the first.
        task_index: index within the role, from 0.
        work_dir: directory of the script and its files; also the current directory.
        user_params: dict, as given to the job.
        schema: list of dicts, a column each: name, kind (of its feature: int64, float, bytes), dtype (where rows travel as
            columns), shape ([] a scalar, null when it varies), type (the table's), unit (of a time), nullable.
        checkpoint_dir: a directory every task of the job reaches, or None.
        attempt: 0, or how often the job was started again after a failure (`max_restarts=`): restore a checkpoint then.
    """

    tf_context: TFContext
    num_workers: int
    cluster: Dict[str, List[str]]
    task_type: str
    task_index: int
    work_dir: str
    user_params: Dict[str, Any]
    schema: List[Dict[str, Any]]
    checkpoint_dir: Optional[str]
    attempt: int
    _job: Any
    _rows: Any

    FIELDS: ClassVar[Tuple[str, ...]] = (
        "tf_context", "num_workers", "cluster", "task_type", "task_index", "work_dir", "user_params", "schema",
        "checkpoint_dir", "attempt", "_job", "_rows",
    )  # fmt: skip

    def __init__(self, **fields: Any) -> None:
        """As a task makes it.

        Args:
            **fields: the attributes, by name; those that are missing are None.
        """
        for name in self.FIELDS:
            setattr(self, name, fields.get(name))

    def __repr__(self) -> str:
        shown = ", ".join("%s=%r" % (k, v) for k, v in sorted(self.__dict__.items()) if not k.startswith("_"))
        return "%s(%s)" % (type(self).__name__, shown)

    @property
    def feature_spec(self) -> Dict[str, Any]:
        """{column: feature} for `tf.io.parse_example`. A missing float is NaN; a missing int or string is an error of
        `parse_example` unless you replace its entry by one with a `default_value`. A list whose length varies is a
        `VarLenFeature` (a SparseTensor)."""
        return data.feature_spec(self.schema)

    def report(self, metrics: Mapping[str, Any], step: Optional[int] = None) -> None:
        """Send numbers to whoever started the job: shown while it runs and kept in its stats.

        Args:
            metrics: dict name -> number (anything `float()` takes).
            step: the training step they belong to.
        """
        self._job.report({str(k): float(v) for k, v in metrics.items()}, None if step is None else int(step))

    def serve(self) -> None:
        """Be one of those that do what the chief asks: for workers and parameter servers of a `ClusterCoordinator`, and
        parameter servers of any kind. Starts TensorFlow's server for this task and returns when the job is done, so that
        `return task_config.serve()` is all such a task needs.

        Raises:
            RuntimeError: called by the chief or the evaluator, whom nobody could ask.
        """
        if self.task_type not in ("worker", "ps"):
            raise RuntimeError("serve() is for workers and parameter servers; this task is the %s" % self.task_type)
        if self.task_type == "worker" and "chief" not in self.cluster:
            raise RuntimeError("serve() is for workers that a chief asks, and this job has none (chief=False, --no-chief)")
        from akrunner.worker import serve

        server = serve.start(self.cluster, self.task_type, self.task_index)
        self._job.serve()
        # alive until here
        del server


class BatchTaskConfig(TaskConfig):
    """A batch task: its rows may be read many times. As Alink's `BatchTaskConfig`.

    Attributes:
        dataset_file: TFRecord file of this task's rows, each a `tf.train.Example`. With `data_format="columns"` a file only
            `dataset()` and `batches()` read.
        dataset_length: rows in it.
        output_writer: takes the rows of the result, see `OutputWriter`.
    """

    dataset_file: str
    dataset_length: int
    output_writer: OutputWriter
    _splits: Any

    FIELDS = TaskConfig.FIELDS + ("dataset_file", "dataset_length", "output_writer", "_splits")

    @property
    def splits(self) -> Dict[str, int]:
        """Rows of this task in each split that the job has declared (`split={"train": 0.8, "test": 0.2}`), {} where it has declared none."""
        counts: Dict[str, int] = self._splits.counts()
        return counts

    def _source(self, split: Optional[str]) -> Any:
        return self._rows if split is None else self._splits.source(self._rows, split)

    @told
    def dataset(
        self, batch_size: int, shuffle: Union[bool, int] = False, repeat: Optional[int] = 1, drop_remainder: bool = False,
        label: Optional[str] = None, defaults: Optional[Mapping[str, Any]] = None, seed: Optional[int] = None,
        uneven: Literal["keep", "drop", "pad"] = "keep", columns: Optional[Sequence[str]] = None, map: Optional[Callable[..., Any]] = None,
        image: Union[bool, Tuple[int, int], Dict[str, Any], None] = None, cache: Union[bool, str, None] = False,
        interleave: Optional[Callable[..., Any]] = None, prefetch: Optional[int] = None, deterministic: Optional[bool] = True,
        weights: Optional[str] = None, split: Optional[str] = None,
    ) -> tf.data.Dataset:  # fmt: skip
        """This task's rows as a `tf.data.Dataset` of parsed batches, never sharded again, in the order that TensorFlow's guides recommend:
        shuffled, repeated, batched, parsed a batch at a time, mapped by several threads, prefetched.

        Args:
            batch_size: rows a batch.
            shuffle: False, True (a buffer of 10 batches) or the buffer's size in rows.
            repeat: epochs; None for ever.
            drop_remainder: leave out a last batch that is not full.
            label: a column to give apart: elements are then (features, label).
            defaults: column -> value for nulls. Without one a null float is NaN, which is written as NaN and not as null (`write_batch` takes
                `numpy.ma.masked_invalid(values)`); a null list whose length varies is empty; any other is an error.
            seed: of the shuffle.
            uneven: workers' shares differ by up to a row, and one batch more on one of them is waited for by all the others for
                ever where they compute together. "drop" leaves out what others do not have; "pad" makes up rows of zeros and
                empty strings, which a weight of 0 marks: elements are (features, label, weight), as Keras takes them, or without
                `label` have a column `sample_weight`; "keep" gives every row once. What was dropped or padded is in the job's stats.
            columns: names of those to read, with `label` and `weights`; None: all. What is not read need have no value for its nulls.
            map: a function of each batch, called by several threads and in order: of the columns, of (features, label) or (features, label, weights).
            image: decode a column of encoded images (JPEG, PNG, GIF, BMP), an image at a time and many at once, before rows are batched: (height,
                width), or a dict of `column` (default: "image", or the only binary one), `size` (None: all are of one size), `channels` (1,
                3, 4; default 3), `fit` ("stretch", "crop" or "pad"), `dtype` ("float32", from 0 to 1, or "uint8") and `augment`: True ("flip"
                and "shift"), a list of those, "brightness", "contrast" and functions of one float32 image. True: no size.
            cache: True, or "memory", keeps in memory, "disk" beside the rows, what is the same in every epoch: parsed rows, decoded and resized images. What is
                by chance (a shuffle, `augment`) and `map` come after it. False, None: nothing is kept.
            interleave: a function of one row's columns that gives a dataset, of the file that a column names, say. Several are read at the same
                time, and it is their elements that are cached, shuffled, repeated, batched and given to `map`.
            prefetch: batches made ahead, 0 for none, -1 for `tf.data.AUTOTUNE`; None: 2.
            deterministic: False: batches, images and files may come in another order if one takes longer than the next. None: True.
            weights: a column of numbers that says how much each row counts: elements are (features, label, weights), as `Model.fit` takes them,
                the weights as float32; needs `label`. Rows that `uneven="pad"` makes up have 0 in it.
            split: only the rows of this split, of those that the job has declared (`split={"train": 0.8, "test": 0.2}`); None: all rows.
        Returns:
            a dataset of dicts, column -> tensor [batch, ...]; a list whose length varies is a SparseTensor. Examples hold
            int64, float32 and bytes; with `data_format="columns"` every column keeps its own type.
        """
        how = reading.Reading(map, image, cache, interleave, prefetch, deterministic)
        return self._source(split).dataset(
            batch_size, shuffle, repeat, drop_remainder, label, defaults, seed, uneven, columns, how, weights
        )

    @told
    def per_worker_dataset(
        self, batch_size: int, shuffle: Union[bool, int] = False, repeat: Optional[int] = None, drop_remainder: bool = False,
        label: Optional[str] = None, defaults: Optional[Mapping[str, Any]] = None, seed: Optional[int] = None,
        map: Optional[Callable[..., Any]] = None, image: Union[bool, Tuple[int, int], Dict[str, Any], None] = None,
        cache: Union[bool, str, None] = False, interleave: Optional[Callable[..., Any]] = None, prefetch: Optional[int] = None,
        deterministic: Optional[bool] = True, weights: Optional[str] = None, split: Optional[str] = None,
    ) -> tf.data.Dataset:  # fmt: skip
        """The rows of whichever worker it is drawn in, for `ClusterCoordinator.create_per_worker_dataset`: the function given
        to that is called on the chief, and what it returns is read in every worker.

        Args:
            batch_size: rows a batch; this and the others as for `dataset`.
            shuffle: False, True, or the buffer's size in rows.
            repeat: epochs; None for ever.
            drop_remainder: leave out a last batch that is not full.
            label: a column to give apart.
            defaults: column -> value for nulls.
            seed: of the shuffle.
            map: a function of each batch.
            image: decode a column of encoded images.
            cache: True, or "memory"; nothing is kept on disk.
            interleave: a function of one row's columns that gives a dataset.
            prefetch: batches made ahead.
            deterministic: False: batches may come in another order.
            weights: a column of numbers, how much each row counts.
            split: only the rows of this split.
        Returns:
            a dataset as `dataset` gives it.
        Raises:
            RuntimeError: with `data_format="columns"`, whose rows only Python can read.
            ValueError: `cache="disk"`, which would be the chief's.
        """
        # each worker's current directory is its own, and TensorFlow opens the file there
        path = os.path.relpath(self.dataset_file, self.work_dir)
        if not isinstance(self._rows, data.Examples):
            raise RuntimeError("per_worker_dataset needs data_format='examples'")
        how = reading.Reading(map, image, cache, interleave, prefetch, deterministic)
        if how.cache == "disk":
            raise ValueError("cache='disk': each worker would keep its rows in a file of the chief's; give cache=True")
        rows = data.Examples(self.schema, path, split=self._splits.of(split, path) if split is not None else None)
        return rows.dataset(batch_size, shuffle, repeat, drop_remainder, label, defaults, seed, how=how, weights=weights)

    @told
    def batches(
        self, batch_size: int, defaults: Optional[Mapping[str, Any]] = None, drop_remainder: bool = False,
        uneven: Literal["keep", "drop", "pad"] = "keep", columns: Optional[Sequence[str]] = None,
        nulls: Literal["error", "none", "mask"] = "error", split: Optional[str] = None,
    ) -> Iterator[Dict[str, NDArray[Any]]]:  # fmt: skip
        """This task's rows once, as a plain iterator of {column: numpy array [rows, ...]}. TensorFlow has no part in it, and is not
        imported: rows can be read before a strategy is made, inside an `input_fn`, and by scripts without TensorFlow.

        In both formats a list whose length varies is an object array of arrays, text an object array of bytes, and a column with nulls
        for which there is no default an error when it is taken out of a batch that has one, not before. Examples hold int64, float32 and
        bytes; with `data_format="columns"`, the fastest way in, every column keeps its own type.

        A null float is NaN, and written it stays NaN; masked (`numpy.ma.masked_invalid(values)`) it is a null again for `write_batch`.

        Args:
            batch_size: rows a batch.
            defaults: column -> value for nulls.
            drop_remainder: leave out a last batch that is not full.
            uneven: as for `dataset`: "keep", "drop" or "pad".
            columns: names of those to read; None: all.
            nulls: those for which there is no default: "error", as said above; "none": a column of a batch that has some is an object array
                with None for each; "mask": columns are masked arrays (`numpy.ma.MaskedArray`), but for lists whose length varies, which are
                object arrays with None. `write_batch` takes both back, so that a table is copied with its nulls.
            split: only the rows of this split, of those that the job has declared; None: all rows.
        Returns:
            an iterator over the rows, once.
        """
        batches: Iterator[Dict[str, NDArray[Any]]] = self._source(split).batches(
            batch_size, defaults, drop_remainder, uneven, columns, nulls
        )
        return batches

    @told
    def steps_per_epoch(
        self, batch_size: int, drop_remainder: bool = False, uneven: str = "drop", split: Optional[str] = None
    ) -> int:
        """Batches every worker can draw in one pass: equal on all workers, so that none waits in a collective for one
        that has run out.

        Args:
            batch_size: rows a batch on one worker.
            drop_remainder: count full batches only.
            uneven: "drop", or "pad" for a `dataset(..., uneven="pad")`.
            split: of the rows of this split only.
        Returns:
            the number of batches.
        """
        reading.check_counts(batch_size)
        shares: List[int] = self._job.shares or [self.dataset_length]
        if split is not None:
            shares = self._splits.shares(split)
        rows = max(shares) if uneven == "pad" else min(shares)
        return rows // batch_size if drop_remainder else -(-rows // batch_size)


class TrainTaskConfig(BatchTaskConfig):
    """A batch task that leaves a model. As Alink's `TrainTaskConfig`.

    Attributes:
        saved_model_dir: where to export the SavedModel, there or in a timestamped child; only the chief's, or worker 0's, is taken.
        latest_ckpt_dir: where to put the latest checkpoint, when the job asks for it, else None.
    """

    saved_model_dir: str
    latest_ckpt_dir: Optional[str]

    FIELDS = BatchTaskConfig.FIELDS + ("saved_model_dir", "latest_ckpt_dir")


class StreamTaskConfig(TaskConfig):
    """A task whose rows come as they arrive, once, possibly for ever. As Alink's `StreamTaskConfig`.

    Attributes:
        dataset_fn: call it for a `tf.data.Dataset` of scalar serialized Examples; rows can be drawn once.
        output_writer: takes the rows of the result; they leave within milliseconds.
    """

    dataset_fn: Callable[[], tf.data.Dataset]
    output_writer: OutputWriter

    FIELDS = TaskConfig.FIELDS + ("dataset_fn", "output_writer")

    def dataset(
        self, batch_size: int, drop_remainder: bool = False, label: Optional[str] = None,
        defaults: Optional[Mapping[str, Any]] = None, columns: Optional[Sequence[str]] = None,
        map: Optional[Callable[..., Any]] = None, image: Union[bool, Tuple[int, int], Dict[str, Any], None] = None,
        prefetch: Optional[int] = None, deterministic: Optional[bool] = True, weights: Optional[str] = None, **other: Any,
    ) -> tf.data.Dataset:  # fmt: skip
        """The stream as parsed batches, prefetched; a batch waits until it is full.

        Args:
            batch_size: rows a batch; this and the others as for `BatchTaskConfig.dataset`.
            drop_remainder: leave out a last batch that is not full.
            label: a column to give apart.
            defaults: column -> value for nulls.
            columns: names of those to read; None: all.
            map: a function of each batch.
            image: decode a column of encoded images.
            prefetch: batches made ahead.
            deterministic: False: batches may come in another order.
            weights: a column of numbers, how much each row counts.
            **other: none is taken.
        Returns:
            a dataset of dicts, column -> tensor [batch, ...], which can be drawn once.
        Raises:
            TypeError: another argument; it says what a stream takes.
        """
        reading.check_stream(other)
        how = reading.Reading(map, image, prefetch=prefetch, deterministic=deterministic)
        return self._rows.dataset(
            batch_size, drop_remainder=drop_remainder, label=label, defaults=defaults, columns=columns, how=how, weights=weights
        )

    @told
    def batches(
        self, batch_size: int, defaults: Optional[Mapping[str, Any]] = None, drop_remainder: bool = False,
        columns: Optional[Sequence[str]] = None, nulls: Literal["error", "none", "mask"] = "error",
    ) -> Iterator[Dict[str, NDArray[Any]]]:  # fmt: skip
        """The stream as {column: numpy array [rows, ...]}; a batch waits until it is full.

        Args:
            batch_size: rows a batch; this and the others as for `BatchTaskConfig.batches`.
            defaults: column -> value for nulls.
            drop_remainder: leave out a last batch that is not full.
            columns: names of those to read; None: all.
            nulls: "error", "none" or "mask".
        Returns:
            an iterator over the rows as they come, once.
        """
        batches: Iterator[Dict[str, NDArray[Any]]] = self._rows.batches(
            batch_size, defaults, drop_remainder, columns=columns, nulls=nulls
        )
        return batches
