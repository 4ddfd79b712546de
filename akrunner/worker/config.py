"""The task config that a script's `main(task_config)` receives: a class for each mode."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from akrunner.wire import messages, shapes
from akrunner.worker import data, reading, running
from akrunner.worker.asking import told

if TYPE_CHECKING:
    # Python 3.7 has no Literal, and does not evaluate annotations
    from typing import Literal

    import tensorflow as tf
    from numpy.typing import NDArray

    from akrunner.worker.checkpoint import Checkpoint
    from akrunner.worker.context import TFContext
    from akrunner.worker.output import OutputWriter
    from akrunner.worker.stream_checkpoint import StreamCheckpoint


class TaskConfig(object):
    """The part of the task config that all modes have.

    As Alink's, it is made from keywords, ignores unknown keywords, and has every field as a plain attribute.

    Attributes:
        tf_context: the context object of the Flink-AI-Extended interface; `flink_stream_dataset()` is one of its methods.
        num_workers: the number of workers in the cluster, with the chief unless it only coordinates (`coordinator=True`).
        cluster: role -> list of "host:port", as in TF_CONFIG; one worker alone has no TF_CONFIG unless the job says `chief=`.
        task_type: "chief", "worker", "ps" or "evaluator". Without a chief (`chief=False`) worker 0 takes its part.
        task_index: index within the role, from 0.
        work_dir: directory of the script and its files; also the current directory.
        user_params: the dict of params that the job was given.
        schema: list of dicts, one for each column: name, kind (of its feature: int64, float, bytes), dtype (if rows travel as
            columns), shape ([] for a scalar, None if it varies), type (in the table), unit (of a time), nullable.
        checkpoint_dir: a directory that every task of the job can reach, or None.
        attempt: how often the job was started again after a failure (`max_restarts=`); if it is not 0, restore a checkpoint.
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
        """Make a config from its attributes, as the task does.

        Args:
            **fields: the attributes, by name; an attribute that is not given is None.
        """
        for name in self.FIELDS:
            setattr(self, name, fields.get(name))

    def __repr__(self) -> str:
        shown = ", ".join("%s=%r" % (k, v) for k, v in sorted(self.__dict__.items()) if not k.startswith("_"))
        return "%s(%s)" % (type(self).__name__, shown)

    @property
    def feature_spec(self) -> Dict[str, Any]:
        """The dict {column: feature} for `tf.io.parse_example`.

        A missing float becomes NaN. A missing int or string is an error of `parse_example`, unless you replace its entry by one
        with a `default_value`. A list whose length varies is a `VarLenFeature` (a SparseTensor).
        """
        return data.feature_spec(self.schema)

    def report(self, metrics: Mapping[str, Any], step: Optional[int] = None, steps: Optional[int] = None) -> None:
        """Send metrics to the host, which shows them while the job runs and keeps them in the job's stats.

        Args:
            metrics: dict name -> number (anything that `float()` takes). No metric is called `task`, `step` or `time_ns`, as these
                are told of every report.
            step: the training step that they belong to; None for none.
            steps: how many steps there will be in all: with it, who watches the job sees which share of them is done, and how long
                the rest will take; None: not known.
        Raises:
            TypeError: `metrics` is no dict.
            ValueError: a metric is called `task`, `step` or `time_ns`; a name contains half of a surrogate pair, which no file can
                hold; `step` has more than 64 bits; or `steps` is not 1 at least.
        """
        if not hasattr(metrics, "items"):
            raise TypeError('report(): give a dict of metrics, such as {"loss": 0.3}, not %s' % type(metrics).__name__)
        named = {str(k): float(v) for k, v in metrics.items()}
        at = None if step is None else int(step)
        for name in named:
            if name in messages.TAKEN:
                raise ValueError(
                    "report(): no metric can be called %r: %s"
                    % (name, "give the step as report({...}, step=...)" if name == "step" else "give it another name")
                )
            if not shapes.fits(name, shapes.Text):
                raise ValueError(
                    "report(): the metric %a has half of a surrogate pair in its name: give it another name" % name
                )
        if at is not None and not shapes.fits(at, shapes.Int64):
            raise ValueError("report(): step=%d does not fit into 64 bits" % at)
        of = None if steps is None else int(steps)
        if of is not None and not 1 <= of < 1 << 63:
            raise ValueError("report(): steps=%d: give how many steps there will be in all, 1 at least" % of)
        self._job.report(named, at, of)

    def serve(self) -> None:
        """Do the work that the chief sends, until the job is done.

        This is for the workers and parameter servers of a `ClusterCoordinator`, and for parameter servers of any kind. It
        starts TensorFlow's server for this task and returns when the job is done, so `return task_config.serve()` is all that
        such a task needs.

        Raises:
            RuntimeError: the task is the chief or the evaluator, or a worker of a job without a chief: no task would send it
                work.
        """
        if self.task_type not in ("worker", "ps"):
            raise RuntimeError("serve() is for workers and parameter servers; this task is the %s" % self.task_type)
        if self.task_type == "worker" and "chief" not in self.cluster:
            raise RuntimeError("serve() is for workers that a chief asks, and this job has none (chief=False, --no-chief)")
        from akrunner.worker import serve

        server = serve.start(self.cluster, self.task_type, self.task_index)
        self._job.serve()
        # the server has to live until here
        del server


class BatchTaskConfig(TaskConfig):
    """A batch task: its rows may be read many times. As Alink's `BatchTaskConfig`.

    Attributes:
        dataset_file: TFRecord file of this task's rows, each a `tf.train.Example`. With `data_format="columns"` only
            `dataset()` and `batches()` can read the file.
        dataset_length: the number of rows in it.
        output_writer: takes the rows of the result, see `OutputWriter`.
    """

    dataset_file: str
    dataset_length: int
    output_writer: OutputWriter
    _splits: Any

    FIELDS = TaskConfig.FIELDS + ("dataset_file", "dataset_length", "output_writer", "_splits")

    @property
    def splits(self) -> Dict[str, int]:
        """The number of this task's rows in each split.

        {} if the job has not declared splits (`split={"train": 0.8, "test": 0.2}`).
        """
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
        """Return this task's rows as a `tf.data.Dataset` of parsed batches, which TensorFlow does not shard again.

        The steps come in the order that TensorFlow's guides recommend: rows are shuffled, repeated, batched, parsed a batch at
        a time, mapped by several threads, prefetched.

        Args:
            batch_size: rows in a batch.
            shuffle: False, True (a buffer of 10 batches) or the buffer's size in rows.
            repeat: the number of epochs; None for endless.
            drop_remainder: leave out a last batch that is not full.
            label: a column to separate from the others: each element is then (features, label).
            defaults: column -> value for nulls. Without one, a null float becomes NaN, which is written as NaN and not as null
                (for a null, give `write_batch` the array `numpy.ma.masked_invalid(values)`); a null list whose length varies
                becomes empty; any other null is an error.
            seed: the seed of the shuffle.
            uneven: what to do because workers' shares differ by up to one row. If workers compute together, one batch more on
                one of them makes the others wait for ever. "drop" leaves out the rows that other workers do not have; "pad"
                adds rows of zeros and empty strings with a weight of 0: elements are (features, label, weight), as Keras takes
                them, or without `label` have a column `sample_weight`; "keep" gives every row once. The job's stats say how
                many rows were dropped or added.
            columns: the names of the columns to read besides `label` and `weights`; None for all. A column that is not read
                needs no default for its nulls.
            map: a function that several threads call, in order, for each batch: with its columns, with (features, label), or
                with (features, label, weights).
            image: decode a column of encoded images (JPEG, PNG, GIF, BMP), one image in a call and several calls at once,
                before rows are batched. Give (height, width); or True if the images need no resizing; or a dict of `column`
                (default: "image", or the only binary column), `size` (None if all images are of one size), `channels` (1, 3 or
                4; default 3), `fit` ("stretch", "crop" or "pad"), `dtype` ("float32", from 0 to 1, or "uint8") and `augment`:
                True ("flip" and "shift"), or a list of "flip", "shift", "brightness", "contrast" and functions of one float32
                image.
            cache: keep what is the same in every epoch, that is, parsed rows, and decoded and resized images: True or "memory"
                in memory, "disk" in a file beside the rows. Random steps (the shuffle, `augment`) and `map` come after the
                cache. False or None: keep nothing.
            interleave: a function that returns a dataset for one row's columns, for instance of the file that a column names.
                Several such datasets are read at the same time, and their elements are cached, shuffled, repeated, batched and
                given to `map`.
            prefetch: batches made ahead; 0 for none, -1 for `tf.data.AUTOTUNE`; None for 2.
            deterministic: False if batches, images and files may come in another order when one takes longer than the next.
                None for True.
            weights: a column of numbers that says how much each row counts: each element is then (features, label, weights), as
                `Model.fit` takes them, the weights as float32. Needs `label`. Rows that `uneven="pad"` adds have weight 0.
            split: the split whose rows to read, one of those that the job has declared (`split={"train": 0.8, "test": 0.2}`);
                None for all rows.
        Returns:
            a dataset of dicts, column -> tensor [batch, ...]; a list whose length varies is a SparseTensor. Examples hold
            int64, float32 and bytes; with `data_format="columns"` every column keeps its own type.
        """
        how = reading.Reading(map, image, cache, interleave, prefetch, deterministic)
        source = self._source(split)
        made = source.dataset(batch_size, shuffle, repeat, drop_remainder, label, defaults, seed, uneven, columns, how, weights)
        # of a row's own dataset nobody knows how many rows it has
        rows = source._evener.count(uneven)
        return made if interleave is not None else reading.sized(made, rows, batch_size, repeat, drop_remainder)

    @told
    def per_worker_dataset(
        self, batch_size: int, shuffle: Union[bool, int] = False, repeat: Optional[int] = None, drop_remainder: bool = False,
        label: Optional[str] = None, defaults: Optional[Mapping[str, Any]] = None, seed: Optional[int] = None,
        map: Optional[Callable[..., Any]] = None, image: Union[bool, Tuple[int, int], Dict[str, Any], None] = None,
        cache: Union[bool, str, None] = False, interleave: Optional[Callable[..., Any]] = None, prefetch: Optional[int] = None,
        deterministic: Optional[bool] = True, weights: Optional[str] = None, split: Optional[str] = None,
    ) -> tf.data.Dataset:  # fmt: skip
        """Return a dataset of the rows of the worker that reads it, for `ClusterCoordinator.create_per_worker_dataset`.

        The coordinator calls the function that it is given on the chief, and every worker reads the dataset that is returned.

        Args:
            batch_size: rows in a batch; this and the others as for `dataset`.
            shuffle: False, True, or the buffer's size in rows.
            repeat: the number of epochs; None for endless.
            drop_remainder: leave out a last batch that is not full.
            label: a column to separate from the others.
            defaults: column -> value for nulls.
            seed: the seed of the shuffle.
            map: a function of each batch.
            image: decode a column of encoded images.
            cache: True, or "memory"; "disk" is refused.
            interleave: a function that returns a dataset for one row's columns.
            prefetch: batches made ahead.
            deterministic: False if batches may come in another order.
            weights: a column of numbers that says how much each row counts.
            split: the split whose rows to read; None for all rows.
        Returns:
            a dataset like that of `dataset`.
        Raises:
            RuntimeError: the job has `data_format="columns"`, whose rows only Python can read.
            ValueError: `cache="disk"` was given: the workers would keep their rows in files of the chief.
        """
        # a relative path, which TensorFlow opens in each worker's own current directory
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
        """Return an iterator over this task's rows, once, as batches {column: numpy array [rows, ...]}.

        TensorFlow is not used and not imported: rows can be read before a strategy is made, inside an `input_fn`, and by
        scripts without TensorFlow.

        A list whose length varies becomes an object array of arrays, and text an object array of bytes. If a column has nulls
        and no default, taking it out of a batch that has such a null is an error. Examples hold int64, float32 and bytes; with
        `data_format="columns"`, the fastest way to read rows, every column keeps its own type.

        A null float becomes NaN, and is written as NaN; `write_batch` writes nulls for `numpy.ma.masked_invalid(values)`.

        Args:
            batch_size: rows in a batch.
            defaults: column -> value for nulls.
            drop_remainder: leave out a last batch that is not full.
            uneven: as for `dataset`: "keep", "drop" or "pad".
            columns: the names of the columns to read; None for all.
            nulls: how nulls without a default are given: "error", as described above; "none": a column with nulls in a batch is
                an object array with None for each null; "mask": columns are masked arrays (`numpy.ma.MaskedArray`), except
                lists whose length varies, which are object arrays with None. `write_batch` takes both, so a table can be copied
                with its nulls.
            split: the split whose rows to read, one of those that the job has declared; None for all rows.
        Returns:
            an iterator over the rows, once.
        """
        batches: Iterator[Dict[str, NDArray[Any]]] = self._source(split).batches(
            batch_size, defaults, drop_remainder, uneven, columns, nulls
        )
        return batches

    def checkpoint(
        self, every: Optional[int] = None, keep: int = 2, seed: Optional[int] = None,
        save: Optional[Callable[[str], Any]] = None, restore: Optional[Callable[[str], Any]] = None, **objects: Any,
    ) -> Checkpoint:  # fmt: skip
        """Save a model and its place in the rows as one, so that a job that is started again goes on there.

        After a failure (`max_restarts=`), or in a new job with the same `checkpoint_dir` and `resume=True`, the objects have the
        values of the newest save, and the epoch goes on with the rows that follow: in each epoch none is read twice and none is
        left out. In a job of several workers each one saves, and all go on from the newest save that all of them have.

        ::

            checkpoint = task_config.checkpoint(every=1000, model=model, optimizer=optimizer)
            for epoch in checkpoint.epochs(10):
                for features, label in checkpoint.dataset(64, shuffle=True, label="y"):
                    step(features, label)
                    checkpoint.trained()

        Args:
            every: save after so many batches; None: after each epoch.
            keep: how many saves to keep.
            seed: the seed of the orders of all epochs; None: one is drawn, and saved.
            save: a function that writes what is to be saved into the directory that it is given: for what is no TensorFlow
                object.
            restore: a function that reads from such a directory what `save` wrote.
            **objects: what is saved, such as `model=model, optimizer=optimizer`: what `tf.train.Checkpoint` takes.
        Returns:
            the `Checkpoint`, restored if the job goes on.
        Raises:
            ValueError: the directory has saves of an earlier job and `resume` is not given; or the saves are of other rows, of
                other objects.
            RuntimeError: this task gets no rows, or parameter servers have the model.
        """
        from akrunner.worker import checkpoint

        given = dict(every=every, keep=keep, seed=seed, save=save, restore=restore, objects=objects)
        return checkpoint.of(self, running.context(), given)

    @told
    def steps_per_epoch(
        self, batch_size: int, drop_remainder: bool = False, uneven: str = "drop", split: Optional[str] = None
    ) -> int:
        """Return the number of batches that every worker can read in one pass over its rows.

        The number is equal on all workers, so that none waits in a collective operation for a worker that has no rows left.

        Args:
            batch_size: rows in a batch on one worker.
            drop_remainder: count full batches only.
            uneven: "drop", or "pad" for a `dataset(..., uneven="pad")`.
            split: count the rows of this split only; None for all rows.
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
    """A batch task that exports a model. As Alink's `TrainTaskConfig`.

    Attributes:
        saved_model_dir: the directory for the SavedModel, which may also be in a timestamped directory below it. The job takes
            the model of the chief only, or of worker 0 if there is no chief.
        latest_ckpt_dir: the directory for the latest checkpoint, or None if the job does not ask for it.
    """

    saved_model_dir: str
    latest_ckpt_dir: Optional[str]

    FIELDS = BatchTaskConfig.FIELDS + ("saved_model_dir", "latest_ckpt_dir")


class StreamTaskConfig(TaskConfig):
    """A task of a stream: its rows come as they arrive, once, and the stream may be endless. As Alink's `StreamTaskConfig`.

    Attributes:
        dataset_fn: a function that returns a `tf.data.Dataset` of scalar serialized Examples; rows can be read once.
        output_writer: takes the rows of the result, and sends them within milliseconds.
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
        """Return the stream as a dataset of parsed batches, prefetched; a batch waits until it is full.

        Args:
            batch_size: rows in a batch; this and the others as for `BatchTaskConfig.dataset`.
            drop_remainder: leave out a last batch that is not full.
            label: a column to separate from the others.
            defaults: column -> value for nulls.
            columns: the names of the columns to read; None for all.
            map: a function of each batch.
            image: decode a column of encoded images.
            prefetch: batches made ahead.
            deterministic: False if batches may come in another order.
            weights: a column of numbers that says how much each row counts.
            **other: no further argument is accepted.
        Returns:
            a dataset of dicts, column -> tensor [batch, ...], which can be read once.
        Raises:
            TypeError: there is a further argument; the message lists the arguments that a stream takes.
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
        """Return an iterator over the stream as batches {column: numpy array [rows, ...]}; a batch waits until it is full.

        Args:
            batch_size: rows in a batch; this and the others as for `BatchTaskConfig.batches`.
            defaults: column -> value for nulls.
            drop_remainder: leave out a last batch that is not full.
            columns: the names of the columns to read; None for all.
            nulls: "error", "none" or "mask".
        Returns:
            an iterator over the rows as they arrive, once.
        """
        batches: Iterator[Dict[str, NDArray[Any]]] = self._rows.batches(
            batch_size, defaults, drop_remainder, columns=columns, nulls=nulls
        )
        return batches

    def checkpoint(
        self, every: Optional[int] = None, keep: int = 2,
        save: Optional[Callable[[str], Any]] = None, restore: Optional[Callable[[str], Any]] = None, **objects: Any,
    ) -> StreamCheckpoint:  # fmt: skip
        """Save a model and its place in the stream as one, so that a job that is started again goes on there.

        After a failure (`max_restarts=`), or in a new job with the same `checkpoint_dir` and `resume=True`, the objects have the
        values of the newest save, and the stream goes on with the rows behind it: none is learned twice and none is left out.
        Call it before the first row is read.

        ::

            checkpoint = task_config.checkpoint(every=1000, model=model, optimizer=optimizer)
            for epoch in checkpoint.epochs():  # what comes between two saves
                for features, label in checkpoint.dataset(64, label="y"):
                    step(features, label)
                    checkpoint.trained()

        Args:
            every: a save is due after so many batches; it is made at the next mark of the stream, at the same rows by all tasks.
            keep: how many saves to keep.
            save: a function that writes what is to be saved into the directory that it is given: for what is no TensorFlow
                object.
            restore: a function that reads from such a directory what `save` wrote.
            **objects: what is saved, such as `model=model, optimizer=optimizer`: what `tf.train.Checkpoint` takes.
        Returns:
            the `StreamCheckpoint`, restored if the job goes on.
        Raises:
            ValueError: the directory has saves of an earlier job and `resume` is not given; or the saves are of other columns, of
                another number of workers, of other objects.
            RuntimeError: the rows behind a save could not be read again, or rows were read already.
        """
        from akrunner.worker import stream_checkpoint

        given = dict(every=every, keep=keep, save=save, restore=restore, objects=objects)
        return stream_checkpoint.of(self, running.context(), running.stream(), given)
