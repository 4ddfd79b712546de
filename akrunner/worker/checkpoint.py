"""A model and its place in the rows, saved as one (`task_config.checkpoint`): a job that is started again goes on there.

::

    checkpoint_dir/akrunner-saves/worker-0/00000002/     the second save, complete as soon as it has this name
                                           position.json    which rows the model has been trained on
                                           objects.*        the TensorFlow objects
                                           state/           what the script's `save=` wrote
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import socket
import time
import zlib
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from akrunner.wire import saves
from akrunner.worker import data, reading
from akrunner.worker.asking import unknown

if TYPE_CHECKING:
    import tensorflow as tf

    from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig

_OBJECTS = "objects"
_STATE = "state"
_PART = ".part"
#: seconds in which the process of a job that was ended has to be gone
_ENDING = 10.0
#: arguments of `dataset` that are steps of the pipeline (`reading.Reading`)
_STEPS = ("map", "image", "interleave", "prefetch")
#: blocks of the file of rows that are compared, and the bytes of each
_SAMPLES = 64
_SAMPLE = 1 << 16


class Checkpoint(object):
    """What `task_config.checkpoint(...)` returns.

    Attributes:
        epoch: the number of epochs that are done.
        step: the number of batches that the model has been trained on, in all epochs.
        restored: whether the objects have the values of an earlier save.
    """

    #: what has to be the same in a job that goes on
    _needs = "the same table in the same order, the same select= and num_workers="

    def __init__(
        self, config: Any, every: Optional[int] = None, keep: int = 2, seed: Optional[int] = None,
        save: Optional[Callable[[str], Any]] = None, restore: Optional[Callable[[str], Any]] = None,
        objects: Optional[Mapping[str, Any]] = None, fed: Sequence[str] = (), task: str = "", resume: bool = False,
        run_id: str = "", replayed: bool = False,
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
        """
        if every is not None:
            reading.check_positive("every", every)
        reading.check_positive("keep", keep)
        reading.check_counts(1, seed=seed)
        if (save is None) != (restore is None):
            raise ValueError("save= and restore= belong together: what one writes, the other reads")
        if save is None and not objects:
            raise ValueError(
                "checkpoint(): name what is saved, such as model=model, optimizer=optimizer; or give save= and restore="
            )
        self._config = config
        self._every = every
        self._keep = keep
        self._save = save
        self._restore = restore
        self._objects = dict(objects or {})
        self._root = os.path.join(str(config.checkpoint_dir), saves.FOLDER)
        self._tasks = list(fed) or [task]
        self._run_id = run_id
        self._replayed = replayed
        self._task = task
        self.epoch = 0
        self.step = 0
        self.restored = False
        #: batches of the current epoch that the model has been trained on
        self._batch = 0
        #: the number of the newest save; 0 for none
        self._number = 0
        #: the number of the save with which this attempt began; 0 for none
        self._begun_with = 0
        #: whether a save is due as soon as the epoch has ended
        self._due = False
        #: whether an epoch was given in this attempt
        self._trains = False
        self._seed = int.from_bytes(os.urandom(4), "little") if seed is None else seed
        self._how: Optional[Dict[str, Any]] = None
        self._expected: Optional[int] = None
        #: whether the script has taken the last batch of this epoch; None if nobody knows
        self._taken: Optional[bool] = None
        self._rows = self._print()
        if not replayed:
            _hold(self._folder(task))
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
                "or begin anew in another checkpoint_dir" % (count, self._root)
            )
        while self.epoch < count:
            self._trains = True
            if self._batch and self._how is not None:
                # the script has left this epoch, and goes on with it
                self._resumed = self._how
            self._how = None
            yield self.epoch
            if self._how is None:
                raise RuntimeError(
                    "epoch %d read no rows: checkpoint.dataset(...) or checkpoint.batches(...) gives them" % self.epoch
                )
            self._ended()
            if self._every is None or self._due or self.epoch == count:
                self._save_once()

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
        folder = self._folder(self._task)
        name = saves.name_of(self._number + 1)
        part = os.path.join(folder, name + _PART)
        # of an attempt that was ended while it saved
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        if self._objects:
            import tensorflow as tf

            _made(tf, self._objects).write(os.path.join(part, _OBJECTS))
        if self._save is not None:
            state = os.path.join(part, _STATE)
            os.mkdir(state)
            self._save(state)
        with open(os.path.join(part, saves.POSITION), "w") as f:
            json.dump(self._position(), f, sort_keys=True)
        _flush(part)
        try:
            os.rename(part, os.path.join(folder, name))
        except OSError as e:
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise RuntimeError(
                "checkpoint(): %s is there already: another job, or another checkpoint() of this script, saves in the same "
                "directory: each needs a checkpoint_dir of its own" % os.path.join(folder, name)
            ) from None
        _flush_folder(folder)
        self._number += 1
        self._written = (self.epoch, self._batch)
        self._due = False
        self._prune()

    def _save_once(self) -> None:
        """Save, unless this was done at the same position before."""
        if self._written != (self.epoch, self._batch):
            self.save()

    # -- going on

    def _go_on(self, resume: bool, restarted: bool) -> None:
        found = self._saves(self._task)
        goes_on = resume or restarted
        # an attempt that failed before it saved leaves those of an earlier job to the next attempt
        own = restarted and bool(found) and self._said(found[-1]).get("run_id") == self._run_id
        if found and not resume and not own and not self._replayed:
            raise ValueError(
                "checkpoint_dir: %s holds the saves of an earlier job: --resume (resume=True) goes on with them; a job that begins "
                "anew needs another directory" % self._root
            )
        if found and goes_on:
            # before one is removed: of another number of workers, some may have no saves
            self._check_rows(found[-1])
        # a replay does what the attempt would do next
        common = self._common(self._made_before if not self._replayed else lambda task, number: True) if goes_on else []
        missing = [task for task in self._tasks if not self._saves(task)]
        # what comes after it was saved by some tasks only, before they were ended
        newest = self._begun_with = common[-1] if common else 0
        self._remove([number for number in found if number > newest])
        self._clean()
        if common:
            self._read(newest)
            self._number = newest
            print(
                "akrunner: goes on in epoch %d, after %d batches in all (%s)" % (self.epoch, self.step, self._root), flush=True
            )
        elif found and goes_on:
            why = "%s had not saved yet" % ", ".join(missing) if missing else "no save is one that all tasks have"
            print("akrunner: begins with the first row: %s" % why, flush=True)

    def _said(self, number: int) -> Dict[str, Any]:
        """Return the position of a save. Raises: ValueError: it is damaged."""
        return saves.read(self._folder(self._task), number)

    def _check_rows(self, number: int) -> None:
        """Raises: ValueError: a save was made with other rows, or by another version."""
        folder = os.path.join(self._folder(self._task), saves.name_of(number))
        said = self._said(number)
        if said.get("version") != saves.VERSION:
            raise ValueError("%s was saved by another version of akrunner: begin with another checkpoint_dir" % folder)
        if said["rows"] != self._rows:
            raise ValueError(
                "checkpoint_dir: the rows of this task are not those that %s was saved with (%s): going on needs %s; a job with others "
                "begins anew in another checkpoint_dir" % (folder, _differs(said["rows"], self._rows), self._needs)
            )

    def _read(self, number: int) -> None:
        """Take position and objects from a save. Raises: ValueError: it does not fit these rows or objects."""
        self._check_rows(number)
        folder = os.path.join(self._folder(self._task), saves.name_of(number))
        said = self._said(number)
        if said["saved"] != self._saved():
            raise ValueError(
                "checkpoint(): %s has %s, and the script gives %s"
                % (folder, ", ".join(said["saved"]) or "nothing", ", ".join(self._saved()))
            )
        if self._objects:
            import tensorflow as tf

            made = _made(tf, self._objects)
            status = getattr(made, "read", made.restore)(os.path.join(folder, _OBJECTS))
            try:
                # variables that are made later get their values then
                status.assert_existing_objects_matched()
            except AssertionError as e:
                raise ValueError("checkpoint(): the objects are not those that %s was saved with: %s" % (folder, e)) from None
        if self._restore is not None:
            self._restore(os.path.join(folder, _STATE))
        self.epoch, self._batch, self.step, self._seed = said["epoch"], said["batch"], said["step"], said["seed"]
        self._resumed = said["how"]
        self._written = (self.epoch, self._batch)
        self.restored = True

    def _position(self) -> Dict[str, Any]:
        return {
            "version": saves.VERSION, "epoch": self.epoch, "batch": self._batch, "step": self.step, "seed": self._seed,
            "rows": self._rows, "how": self._how, "saved": self._saved(), "run_id": self._run_id,
            "attempt": self._config.attempt,
        }  # fmt: skip

    def _saved(self) -> List[str]:
        return sorted(self._objects) + (["save="] if self._save is not None else [])

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
                % (self.epoch, _differs(self._resumed, how))
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
        return _print_of(self._config)

    # -- files

    def _folder(self, task: str) -> str:
        return saves.folder_of(str(self._config.checkpoint_dir), task)

    def _saves(self, task: str) -> List[int]:
        """Return the numbers of a task's complete saves, in order."""
        return saves.numbers(self._folder(task))

    def _common(self, counts: Callable[[str, int], bool]) -> List[int]:
        """Return the numbers of the saves that every task has, in order: tasks that compute together go on together.

        A task may begin later than another one, which has saved again by then: the saves that it finds of its own are not of
        the same course as those.

        Args:
            counts: whether a task's save of that number counts.
        """
        return sorted(set.intersection(*({n for n in self._saves(task) if counts(task, n)} for task in self._tasks)))

    def _made_before(self, task: str, number: int) -> bool:
        """Whether a save was made before this attempt."""
        return not self._made_now(task, number)

    def _of_this_course(self, task: str, number: int) -> bool:
        """Whether a save is one of those that led to where this attempt is."""
        return number <= self._begun_with or self._made_now(task, number)

    def _made_now(self, task: str, number: int) -> bool:
        """Whether a save was made in this attempt of this job."""
        try:
            with open(os.path.join(self._folder(task), saves.name_of(number), saves.POSITION)) as f:
                said = json.load(f)
        except (OSError, ValueError):
            return False  # it is being removed, or damaged, which is told when it is read
        return isinstance(said, dict) and (said.get("run_id"), said.get("attempt")) == (self._run_id, self._config.attempt)

    def _prune(self) -> None:
        """Remove saves that are older than those to keep, except those that this task needs to go on with another one."""
        common = self._common(self._of_this_course)
        mine = self._saves(self._task)
        if common:
            oldest = min([common[-1]] + mine[-self._keep :])
            self._remove([number for number in mine if number < oldest])

    def _remove(self, numbers: Sequence[int]) -> None:
        for number in [] if self._replayed else numbers:
            path = os.path.join(self._folder(self._task), saves.name_of(number))
            # a job that is ended while it removes a save leaves none that looks complete
            shutil.rmtree(path + _PART, ignore_errors=True)
            os.rename(path, path + _PART)
            shutil.rmtree(path + _PART, ignore_errors=True)

    def _clean(self) -> None:
        """Remove what is left of saves that were cut off."""
        folder = self._folder(self._task)
        if not self._replayed and os.path.isdir(folder):
            for name in os.listdir(folder):
                if name.endswith(_PART):
                    shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


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
    )


def _hold(folder: str) -> None:
    """Let no other process save in a task's directory as long as this process lives, whatever ends it.

    Raises:
        ValueError: another process saves there.
        OSError: the file that is locked cannot be made.
    """
    # a file in the place of the directory is told first
    saves.numbers(folder)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    # it stays open: the lock would go with the first descriptor of that file that this process closes
    lock = os.open(folder + ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    until = time.monotonic() + _ENDING
    while not _locked(lock):
        if time.monotonic() > until:
            owner = os.pread(lock, 256, 0).decode("utf-8", "replace").strip()
            raise ValueError(
                "checkpoint_dir: another job saves in %s now (process %s): each job needs a checkpoint_dir of its own"
                % (folder, owner or "unknown")
            )
        # the process of a job that was killed may still be ending
        time.sleep(0.1)
    os.ftruncate(lock, 0)
    os.pwrite(lock, ("%d on %s\n" % (os.getpid(), socket.gethostname())).encode("utf-8"), 0)


def _locked(lock: int) -> bool:
    """Lock a file. Returns: whether this process has the lock, or the file system has none."""
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        return e.errno not in (errno.EACCES, errno.EAGAIN)
    return True


def _made(tf: Any, objects: Mapping[str, Any]) -> Any:
    """Return TensorFlow's checkpoint of the objects."""
    made = tf.train.Checkpoint(**objects)
    if not hasattr(made, "read"):
        # TensorFlow 1.15 looks for this counter when it restores, and makes it only if it is asked for
        assert made.save_counter is not None
    return made


def _seed_of_all() -> Optional[int]:
    """Return the seed that `tf.random.set_seed` has set; TensorFlow's own one if it was not called."""
    import tensorflow as tf

    seed: Optional[int] = tf.compat.v1.get_seed(0)[0]
    return seed


def _differs(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    return ", ".join(
        "%s %r, now %r" % (name, before[name], now.get(name)) for name in sorted(before) if before[name] != now.get(name)
    )


def _print_of(config: BatchTaskConfig) -> Dict[str, Any]:
    """Return what tells a task's rows from others: their number, the columns, and a checksum of parts of their file."""
    path = config.dataset_file
    size = os.path.getsize(path) if os.path.exists(path) else 0
    crc = 0
    if size:
        with open(path, "rb") as f:
            for at in sorted({(size - min(size, _SAMPLE)) * i // (_SAMPLES - 1) for i in range(_SAMPLES)}):
                f.seek(at)
                crc = zlib.crc32(f.read(_SAMPLE), crc)
    return {
        "rows": config.dataset_length, "columns": [column["name"] for column in config.schema], "bytes": size,
        "checksum": crc & 0xFFFFFFFF, "workers": config.num_workers,
    }  # fmt: skip


def _flush(folder: str) -> None:
    """Have the system write a folder and all files in it to the disk."""
    for where, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(where, name), "rb") as f:
                os.fsync(f.fileno())
        _flush_folder(where)


def _flush_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
