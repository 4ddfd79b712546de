"""A model and its place in the rows, saved as one (`task_config.checkpoint`): a job that is started again goes on there.

::

    checkpoint_dir/akrunner-saves/worker-0/00000002/     the second save, complete as soon as it has this name
                                           position.json    which rows the model has been trained on
                                           objects.*        the TensorFlow objects
                                           state/           what the script's `save=` wrote
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from akrunner.wire import saves
from akrunner.worker import data, reached, reading
from akrunner.worker.asking import unknown
from akrunner.worker.rows_print import differs, print_of
from akrunner.worker.saved_state import State
from akrunner.worker.saving import TaskSaves, hold

if TYPE_CHECKING:
    import tensorflow as tf

    from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig

#: arguments of `dataset` that are steps of the pipeline (`reading.Reading`)
_STEPS = ("map", "image", "interleave", "prefetch")


class Checkpoint(object):
    """What `task_config.checkpoint(...)` returns.

    Attributes:
        epoch: the number of epochs that are done.
        step: the number of batches that the model has been trained on, in all epochs.
        restored: whether the objects have the values of an earlier save.
    """

    #: what has to be the same in a job that goes on
    _needs = (
        "the same table in the same order, read in the same way (input_schema=, input_format=, input_csv=, select=), and the same "
        "num_workers="
    )
    _first = "the first row"

    def __init__(
        self, config: Any, every: Optional[int] = None, keep: int = 2, seed: Optional[int] = None,
        save: Optional[Callable[[str], Any]] = None, restore: Optional[Callable[[str], Any]] = None,
        objects: Optional[Mapping[str, Any]] = None, fed: Sequence[str] = (), task: str = "", resume: bool = False,
        run_id: str = "", replayed: bool = False, goes_on_with: Optional[int] = None, read_as: Optional[Mapping[str, Any]] = None,
    ) -> None:  # fmt: skip
        """Restore the newest save if the job goes on.

        Args:
            config: the task's config.
            every, keep, seed, save, restore: see `BatchTaskConfig.checkpoint`, also for the errors.
            objects: name -> TensorFlow object.
            fed: the names of the tasks that get rows.
            task: the name of this one.
            resume: whether the job goes on with an earlier job's saves.
            run_id: what tells this job from every other one.
            replayed: whether a job's task is replayed, so that nothing may be changed in its directory.
            goes_on_with: the number of the save with which this attempt begins, 0 for none; None: the tasks find it.
            read_as: what decides where the rows of the job's files begin.
        """
        if every is not None:
            reading.check_positive("every", every)
        reading.check_positive("keep", keep)
        reading.check_counts(1, seed=seed)
        self._config = config
        self._every = every
        self._keep = keep
        self._state = State(objects or {}, save, restore)
        self._saves = TaskSaves(str(config.checkpoint_dir), list(fed) or [task], task, run_id, config.attempt, replayed)
        self._run_id = run_id
        self._replayed = replayed
        self._goes_on_with = goes_on_with
        self.epoch = 0
        self.step = 0
        self.restored = False
        #: batches of the current epoch that the model has been trained on
        self._batch = 0
        #: whether a save is due as soon as the epoch has ended
        self._due = False
        #: whether an epoch was given in this attempt
        self._trains = False
        self._seed = int.from_bytes(os.urandom(4), "little") if seed is None else seed
        self._how: Optional[Dict[str, Any]] = None
        self._expected: Optional[int] = None
        self._epochs: Optional[int] = None
        #: whether the script has taken the last batch of this epoch; None if nobody knows
        self._taken: Optional[bool] = None
        self._read_as = read_as or {}
        self._rows = self._print()
        if not replayed:
            hold(self._saves.folder)
        self._written: Optional[Tuple[int, int]] = None
        self._resumed: Optional[Dict[str, Any]] = None
        self._go_on(resume, config.attempt > 0)

    # -- what the script calls

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the numbers of the epochs that are left, from 0 to `count - 1`; the first of them may have begun before.

        After each epoch it counts what was trained; a save is made after each epoch if there is no `every=`, after the last
        one, and where one is due with an epoch's last batch.

        Args:
            count: the number of epochs in all.
        Raises:
            RuntimeError: `trained()` was not called after each batch.
        """
        reading.check_positive("count", count)
        if self.restored and self.epoch >= count and not self._trains:
            self._config._job.note(
                "checkpoint(): all %d epochs were done before (%s), so nothing was trained: give epochs() a larger number to go on, "
                "or begin anew in another checkpoint_dir" % (count, self._saves.root)
            )
        while self.epoch < count:
            self._trains = True
            if self._batch and self._how is not None:
                # the script has left this epoch, and goes on with it
                self._resumed = self._how
            self._how = None
            self._epochs = count
            yield self.epoch
            if self._how is None:
                raise RuntimeError(
                    "epoch %d read no rows: checkpoint.dataset(...) or checkpoint.batches(...) gives them" % self.epoch
                )
            self._ended()
            if self._every is None or self._due or self.epoch == count:
                self._save_once()
        course = reached.current()
        if course is not None:
            course.over(reached.CHECKPOINT)

    def dataset(self, batch_size: int, shuffle: Any = False, seed: Optional[int] = None, **options: Any) -> tf.data.Dataset:
        """Return the batches of this epoch that the model has not been trained on.

        Args:
            batch_size: rows in a batch; this and the others as for `BatchTaskConfig.dataset`.
            shuffle: False, True or the buffer's size in rows. Every epoch has an order of its own, and has it again when the job
                goes on.
            seed: the seed of the shuffle; None for one that the save remembers.
            **options: the others of `BatchTaskConfig.dataset`, without `repeat`, `cache` and `deterministic`.
        Returns:
            a dataset of one epoch, or of its rest.
        Raises:
            TypeError: there is no such argument, or it has no meaning here.
            ValueError: the save was made in the middle of an epoch of other batches.
        """
        known = [*_STEPS, "batch_size", "shuffle", "seed", *_OF_DATASETS]
        how = reading.Reading(**{name: options.pop(name) for name in _STEPS if name in options})
        split = options.pop("split", None)
        self._check(options, known, "dataset")
        by_tensorflow = bool(shuffle) and (how.by_row or isinstance(self._config._source(split), data.Examples))
        how.skip = self._begun(
            batch_size, shuffle, seed, split, options, counted=how.interleave is None, by_tensorflow=by_tensorflow
        )
        given = self._seed_of(shuffle, seed)
        return self._config._source(split).dataset(batch_size, shuffle=shuffle, repeat=1, seed=given, how=how, **options)

    def batches(self, batch_size: int, **options: Any) -> Iterator[Dict[str, Any]]:
        """Return an iterator over the batches of this epoch that the model has not been trained on, as numpy arrays.

        Args:
            batch_size: rows in a batch.
            **options: the others of `BatchTaskConfig.batches`.
        Raises:
            TypeError: there is no such argument.
            ValueError: the save was made in the middle of an epoch of other batches.
        """
        split = options.pop("split", None)
        self._check(options, ["batch_size", *_OF_BATCHES], "batches")
        left_out = self._begun(batch_size, False, None, split, options)
        rows: Iterator[Dict[str, Any]] = self._config._source(split).batches(batch_size, **options)
        for _ in range(left_out):
            next(rows, None)
        self._taken = False
        return self._to_the_end(rows)

    def _to_the_end(self, rows: Iterator[Dict[str, Any]]) -> Iterator[Dict[str, Any]]:
        """Yield the batches, and note that all were taken."""
        yield from rows
        self._taken = True

    def trained(self, batches: int = 1) -> None:
        """Say that the model has been trained on the next batch; saves every `every` batches.

        Args:
            batches: how many batches it was.
        Raises:
            RuntimeError: the epoch has fewer batches.
        """
        reading.check_positive("batches", batches)
        self._check_within()
        before = self.step
        self._batch += batches
        self.step += batches
        course = reached.current()
        if course is not None:
            course.tell(reached.CHECKPOINT, self._batch, self._expected, self.epoch + 1, self._epochs)
        if self._expected is not None and self._batch > self._expected:
            raise RuntimeError(
                "trained() was called for %d batches of an epoch that has %d: call it once for each batch"
                % (self._batch, self._expected)
            )
        if self._every is not None and before // self._every != self.step // self._every:
            if self._batch == self._expected:
                # not now: what the script does after the last batch would be lost, and there is no rest that fit() could read
                self._due = True
            else:
                self._save_once()

    def _check_within(self) -> None:
        if self._how is None:
            raise RuntimeError("trained() belongs between the batches of an epoch: for epoch in checkpoint.epochs(n): ...")

    def _check_unread(self) -> None:
        if self._how is not None:
            raise RuntimeError(
                "an epoch's rows are given once: for epoch in checkpoint.epochs(n): ... Other rows, as for an evaluation, come "
                "from task_config.dataset()"
            )

    def _trained_by_fit(self, batches: int) -> None:
        """Count what one step of `fit` has trained on; the last of fit(steps_per_execution=) may have had fewer batches."""
        left = batches if self._expected is None else self._expected - self._batch
        self.trained(max(1, min(batches, left)))

    def callback(self) -> Any:
        """Return a callback for `Model.fit(checkpoint.dataset(...), epochs=1)` that calls `trained()` after each batch."""
        import tensorflow as tf

        return _callback(tf.keras.callbacks.Callback, self)

    def save(self) -> None:
        """Save the objects and the position, as one: a job that is ended while it saves goes on from the save before.

        Raises:
            OSError: the directory cannot be written.
        """
        if self._replayed:
            return
        self._saves.write(self._fill)
        self._written = (self.epoch, self._batch)
        self._due = False
        self._saves.prune(self._keep)

    def _fill(self, folder: str) -> None:
        """Write all of a save to its directory."""
        self._state.write(folder)
        with open(os.path.join(folder, saves.POSITION), "w") as f:
            json.dump(self._position(), f, sort_keys=True)

    def _save_once(self) -> None:
        """Save, unless this was done at the same position before."""
        if self._written != (self.epoch, self._batch):
            self.save()

    # -- going on

    def _go_on(self, resume: bool, restarted: bool) -> None:
        kept = self._saves
        found = kept.numbers()
        goes_on = resume or restarted
        # an attempt that failed before it saved leaves those of an earlier job to the next attempt
        own = restarted and bool(found) and kept.of_this_job(found[-1])
        if found and not resume and not own and not self._replayed:
            raise ValueError(
                "checkpoint_dir: %s holds the saves of an earlier job: --resume (resume=True) goes on with them; a job that begins "
                "anew needs another directory" % kept.root
            )
        if found and goes_on:
            # before one is removed: of another number of workers, some may have no saves
            self._check_rows(found[-1])
        newest = self._begins_with(found) if goes_on else 0
        missing = kept.lacking()
        kept.begin(newest)
        if newest:
            self._read(newest)
            print(
                "akrunner: goes on in epoch %d, after %d batches in all (%s)" % (self.epoch, self.step, kept.root), flush=True
            )
        elif found and goes_on:
            why = "%s had not saved yet" % ", ".join(missing) if missing else "no save is one that all tasks have"
            print("akrunner: begins with %s: %s" % (self._first, why), flush=True)

    def _begins_with(self, found: List[int]) -> int:
        """Return the number of the save with which this attempt begins; 0 for none.

        Args:
            found: the numbers of this task's saves.
        Raises:
            ValueError: the save is gone behind which the rows come.
        """
        number = self._goes_on_with
        if number is None or self._replayed:
            return self._saves.common()
        # a newer one is of a task that was not gone yet, and has saved once more: the rows come from behind this one
        if number and number not in found:
            raise ValueError(
                "checkpoint_dir: %s, with which this attempt begins, is gone: another job has removed it (each needs a checkpoint_dir of "
                "its own), or a task of the attempt before, which saved once more; start the job again with resume=True (--resume)"
                % self._saves.path(number)
            )
        return number

    def _check_rows(self, number: int) -> None:
        """Raises: ValueError: a save was made with other rows, or by another version."""
        folder, said = self._saves.path(number), self._saves.said(number)
        if said.get("version") != saves.VERSION:
            raise ValueError("%s was saved by another version of akrunner: begin with another checkpoint_dir" % folder)
        # a save of an earlier version says less of its rows
        if differs(said["rows"], self._rows):
            raise ValueError(
                "checkpoint_dir: the rows of this task are not those that %s was saved with (%s): going on needs %s; a job with others "
                "begins anew in another checkpoint_dir" % (folder, differs(said["rows"], self._rows), self._needs)
            )

    def _read(self, number: int) -> None:
        """Take position and objects from a save. Raises: ValueError: it does not fit these rows or objects."""
        self._check_rows(number)
        folder, said = self._saves.path(number), self._saves.said(number)
        if said["saved"] != self._state.names:
            raise ValueError(
                "checkpoint(): %s has %s, and the script gives %s"
                % (folder, ", ".join(said["saved"]) or "nothing", ", ".join(self._state.names))
            )
        self._state.read(folder)
        self.epoch, self._batch, self.step, self._seed = said["epoch"], said["batch"], said["step"], said["seed"]
        self._resumed = said["how"]
        self._written = (self.epoch, self._batch)
        self.restored = True

    def _position(self) -> Dict[str, Any]:
        return {
            "version": saves.VERSION, "epoch": self.epoch, "batch": self._batch, "step": self.step, "seed": self._seed,
            "rows": self._rows, "how": self._how, "saved": self._state.names, "run_id": self._run_id,
            "attempt": self._config.attempt,
        }  # fmt: skip

    # -- an epoch

    def _check(self, options: Mapping[str, Any], known: List[str], method: str) -> None:
        for name, why in _NOT_HERE.items():
            if name in options:
                raise TypeError("%s= of checkpoint.%s(): %s" % (name, method, why))
        for name in options:
            if name not in known:
                raise TypeError(unknown(type(self), method, name, known))

    def _begun(
        self, batch_size: int, shuffle: Any, seed: Optional[int], split: Optional[str], options: Mapping[str, Any], counted: bool = True,
        by_tensorflow: bool = False,
    ) -> int:  # fmt: skip
        """Note how an epoch is read, and return the number of batches that the model has been trained on in it.

        Args:
            batch_size, shuffle, seed, split, options: what the script gave.
            counted: whether the number of its batches is known.
            by_tensorflow: whether TensorFlow shuffles, whose order also follows the seed of all its operations.
        """
        reading.check_counts(batch_size, shuffle, seed=seed)
        self._check_unread()
        how = dict(
            batch_size=batch_size, shuffle=shuffle, seed=seed, split=split, drop_remainder=bool(options.get("drop_remainder")),
            uneven=options.get("uneven", "keep"),
        )  # fmt: skip
        if by_tensorflow:
            how["tf.random.set_seed()"] = _seed_of_all()
        if self._batch and self._resumed is not None and how != self._resumed:
            raise ValueError(
                "the save was made in the middle of epoch %d, with %s: go on with the same"
                % (self.epoch, differs(self._resumed, how))
            )
        self._how = how
        self._taken = None
        self._expected = self._batches(how) if counted else None
        return self._batch

    def _batches(self, how: Mapping[str, Any]) -> int:
        """Return the number of batches of an epoch."""
        rows: int = self._config._source(how["split"])._evener.count(how["uneven"])
        size: int = how["batch_size"]
        return rows // size if how["drop_remainder"] else -(-rows // size)

    def _seed_of(self, shuffle: Any, seed: Optional[int]) -> Optional[int]:
        """Return the seed of this epoch's order; None if rows come in their order."""
        return ((self._seed if seed is None else seed) + self.epoch) & 0x7FFFFFFF if shuffle else seed

    def _ended(self) -> None:
        if not self._batch and self._expected != 0:
            raise RuntimeError(NOT_TRAINED % self.epoch)
        if self._expected is not None and self._batch < self._expected:
            self._fewer()
        self.epoch += 1
        self._batch = 0
        self._how = self._resumed = None

    def _fewer(self) -> None:
        """Tell that an epoch had more batches than `trained()` was called for.

        Raises:
            RuntimeError: the script has taken all of them.
        """
        told = "trained() was called for %d of the %d batches of epoch %d" % (self._batch, self._expected or 0, self.epoch)
        if self._taken:
            raise RuntimeError(
                "%s, which the script has all taken: call it for a batch that is left out (continue), too, as the save counts "
                "batches" % told
            )
        if self._taken is None:
            self._config._job.note(
                "checkpoint(): %s. If the script has left that epoch early, all is well; if it leaves out batches (continue), it has "
                "to call trained() for them, too, as the save counts batches" % told
            )

    def _print(self) -> Dict[str, Any]:
        """Return what tells this task's rows from others."""
        return print_of(self._config, self._read_as)


_OF_DATASETS = ("drop_remainder", "label", "defaults", "uneven", "columns", "weights", "split")
_OF_BATCHES = ("defaults", "drop_remainder", "uneven", "columns", "nulls", "split")
_NOT_HERE = {
    "repeat": "for epoch in checkpoint.epochs(n) repeats",
    "cache": "each epoch is a dataset of its own, which would fill the cache anew",
    "deterministic": "batches have to come in the same order when the job goes on",
}


#: the error about an epoch, whose number it has
NOT_TRAINED = (
    "epoch %d has ended, and trained() was not called: call it after each batch, or give fit() "
    "callbacks=[checkpoint.callback()]"
)
_SERVED = (
    "checkpoint(): with parameter servers (num_ps=, coordinator=) other tasks change the model while one saves it, so that no place "
    "in the rows belongs to it: train in step (MultiWorkerMirroredStrategy, without num_ps= and coordinator=), or save by "
    "tf.train.Checkpoint in task_config.checkpoint_dir and read all rows again"
)


def of(config: BatchTaskConfig, context: Any, options: Mapping[str, Any]) -> Checkpoint:
    """Return the checkpoint of a task. Args: context: the task's context; options: what the script gave."""
    return Checkpoint(config, **of_task(config, context), **options)


def of_task(config: Union[BatchTaskConfig, StreamTaskConfig], context: Any) -> Dict[str, Any]:
    """Return the arguments of a `Checkpoint` that the context has.

    Raises:
        RuntimeError: a model that is trained in this way has no place in the rows.
    """
    if context["tf_config"]["cluster"].get("ps") or context["first"] not in context["fed"]:
        raise RuntimeError(_SERVED)
    if context["task"] not in context["fed"]:
        raise RuntimeError("checkpoint() is for tasks that get rows, and %s gets none" % context["task"])
    return dict(
        fed=context["fed"],
        task=context["task"],
        resume=context["resume"],
        run_id=context["run_id"],
        replayed=config._job.replayed,
        goes_on_with=context["goes_on_with"],
        read_as=context["read_as"],
    )


def _seed_of_all() -> Optional[int]:
    """Return the seed that `tf.random.set_seed` has set; TensorFlow's own one if it was not called."""
    import tensorflow as tf

    seed: Optional[int] = tf.compat.v1.get_seed(0)[0]
    return seed


def _callback(base: Any, checkpoint: Checkpoint) -> Any:
    class Trained(base):  # type: ignore[misc]
        """Counts the batches of `fit`."""

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._done = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            # the number of the last batch; fit(steps_per_execution=) trains on several in one call
            checkpoint._trained_by_fit(batch + 1 - self._done)
            self._done = batch + 1

    return Trained()
