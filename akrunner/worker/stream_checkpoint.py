"""A model and its place in a stream, saved as one (`task_config.checkpoint` of a stream).

::

    host      rows ... BARRIER(save, place) rows ...          all tasks get the same barriers
    task      an epoch: the rows up to that barrier -> save: the model, and the place that the barrier tells -> ANSWERED
    host      every task has saved there -> the position in Kafka, Redis, ... is stored

A job that goes on seeks the place of the newest save that all tasks have. So no row that is in it is read again, and none behind
it is left out, whatever was stored elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional

from akrunner.worker import checkpoint, reading

if TYPE_CHECKING:
    import tensorflow as tf

    from akrunner.worker.config import StreamTaskConfig
    from akrunner.worker.stream import RowStream

_NO_PLACE = (
    "checkpoint(): nobody could give the rows of this stream again that come after a save: a stream goes on from kafka://, "
    "redis:// or files://, or from a file (--follow) with resume=True (--resume) or max_restarts=, on engine='local'"
)


class StreamCheckpoint(checkpoint.Checkpoint):
    """What `task_config.checkpoint(...)` returns in a stream.

    Attributes:
        epoch: the number of epochs that are done: what comes between two saves is one.
        step: the number of batches that the model has been trained on, in all.
        restored: whether the objects have the values of an earlier save.
    """

    _needs = "the same columns and num_workers="
    _first = "the position that the stream's source has stored, or its beginning"

    def __init__(self, config: StreamTaskConfig, stream: RowStream, **given: Any) -> None:
        """Restore the newest save if the job goes on.

        Args:
            config: the task's config.
            stream: its rows.
            **given: as for `Checkpoint`.
        """
        if given.get("every") is None:
            raise ValueError("checkpoint(): a stream has no end at which to save: give every=1000, for instance, in batches")
        stream.in_epochs()
        self._stream = stream
        #: whether a save was asked for
        self._asked = False
        #: the number of the barrier at which was saved last
        self._last = 0
        self._place: Optional[Mapping[str, Any]] = None
        super(StreamCheckpoint, self).__init__(config, **given)

    # -- what the script calls

    def epochs(self, count: Optional[int] = None) -> Iterator[int]:
        """Yield the numbers of epochs until the stream ends: what comes between two saves is an epoch.

        When the rows of an epoch have been read, the model is saved. A save that is due comes at the next mark of the stream,
        which is behind the rows that are under way to the tasks; the last one at the stream's end.

        Args:
            count: nothing: nobody knows how many there will be.
        Raises:
            TypeError: `count` was given.
            RuntimeError: the rows of an epoch were not read to their end, or `trained()` was not called.
        """
        if count is not None:
            raise TypeError("epochs(%r): the epochs of a stream go on until it ends: write epochs()" % (count,))
        while self._stream.wait() or self._stream.reached is not None:
            if self._stream.reached is None:
                self._how = None
                yield self.epoch
                self._check_read()
                self.epoch += 1
                self._batch = 0
            if self._stream.reached is not None:
                self._save_here()

    def dataset(self, batch_size: int, shuffle: Any = False, seed: Optional[int] = None, **options: Any) -> tf.data.Dataset:
        """Return the batches of this epoch.

        Args:
            batch_size: rows in a batch; the last one of an epoch may have fewer.
            shuffle: a stream's rows come in their order: False.
            seed: None.
            **options: the others of `StreamTaskConfig.dataset`.
        Returns:
            a dataset that ends where the epoch does.
        """
        self._reads(batch_size, options)
        given = {name: value for name, value in (("shuffle", shuffle), ("seed", seed)) if value not in (False, None)}
        return self._config.dataset(batch_size, **dict(options, **given))

    def batches(self, batch_size: int, **options: Any) -> Iterator[Dict[str, Any]]:
        """Return an iterator over the batches of this epoch, as numpy arrays.

        Args:
            batch_size: rows in a batch; the last one of an epoch may have fewer.
            **options: the others of `StreamTaskConfig.batches`.
        """
        self._reads(batch_size, options)
        rows: Iterator[Dict[str, Any]] = self._config.batches(batch_size, **options)
        return rows

    def trained(self, batches: int = 1) -> None:
        """Say that the model has been trained on the next batch; after every `every` batches a save is due.

        Args:
            batches: how many batches it was.
        """
        reading.check_positive("batches", batches)
        self._check_within()
        assert self._every is not None
        before = self.step
        self._batch += batches
        self.step += batches
        if before // self._every != self.step // self._every:
            self.save()

    def save(self) -> None:
        """Ask for a save: all tasks save where the epoch ends, at the next mark of the stream."""
        if not self._asked:
            self._asked = True
            self._config._job.due(self._last)

    # -- an epoch

    def _reads(self, batch_size: int, options: Mapping[str, Any]) -> None:
        reading.check_counts(batch_size)
        if options.get("drop_remainder"):
            raise TypeError(
                "drop_remainder=True of a stream's checkpoint would leave out the rest of each epoch, and save as if it was learned"
            )
        self._check_unread()
        self._how = {"batch_size": batch_size}

    def _check_read(self) -> None:
        """Raises: RuntimeError: the rows of an epoch were not read, or not counted."""
        if self._how is None or self._stream.left:
            raise RuntimeError(
                "epoch %d of the stream was not read to its end: read checkpoint.dataset(...) or checkpoint.batches(...) until "
                "it ends; a script that wants no more rows returns" % self.epoch
            )
        if not self._batch:
            raise RuntimeError(checkpoint.NOT_TRAINED % self.epoch)

    def _save_here(self) -> None:
        """Save at the barrier that has been reached, and go on behind it."""
        barrier = self._stream.reached
        assert barrier is not None
        self._place = barrier.place
        super(StreamCheckpoint, self).save()
        self._last = barrier.number
        self._asked = False
        self._stream.go_on()

    def _position(self) -> Dict[str, Any]:
        return dict(super(StreamCheckpoint, self)._position(), place=self._place)

    def _print(self) -> Dict[str, Any]:
        return {"columns": [column["name"] for column in self._config.schema], "workers": self._config.num_workers}


def of(config: StreamTaskConfig, context: Any, stream: Any, options: Mapping[str, Any]) -> StreamCheckpoint:
    """Return the checkpoint of a stream's task.

    Args:
        config: the task's config.
        context: its context.
        stream: its rows.
        options: what the script gave.
    """
    if not context["places"]:
        raise RuntimeError(_NO_PLACE)
    return StreamCheckpoint(config, stream, **checkpoint.of_task(config, context), **options)
