"""Checks the arguments of `task_config.dataset`, and puts its steps into the order that TensorFlow's guides recommend.

::

    rows   ->           [cache] shuffle repeat batch  parse                [cache] [map]  prefetch
    few    ->  parse            shuffle repeat batch                               [map]  prefetch
    images -> [decode]  [cache] shuffle repeat decode, augment, batch              [map]  prefetch
    files  -> shuffle interleave [cache] shuffle repeat batch                      [map]  prefetch

The cache (`cache=`) comes as late as the order allows, but keeps only what is the same in every epoch: never the order of a
shuffle, and never the random results of `map=` or `augment`.
"""

from __future__ import annotations

import inspect
import operator
import os
from typing import Any, Callable, Dict, List, Optional, Union

from akrunner.wire.near import nearest
from akrunner.worker import images, mapping, tf_data
from akrunner.worker.tf_data import unbatched

#: batches made ahead, if `prefetch=` is not given
_AHEAD = 2
#: elements of a file that are handed from one thread to another together
_BLOCK = 32
#: the part of the free memory that a cache may take
_SHARE = 0.8
#: attribute of a dataset made by akrunner: facts about its function that the names of its operations do not tell
DOES = "_akrunner_does"
#: and: (the rows of one epoch, its epochs or None for endless, its batches in all or None)
ROWS = "_akrunner_rows"
#: the value of `tf.data.AUTOTUNE`
AUTOTUNE = -1


class Reading(object):
    """The steps that a script asks for in `dataset`, checked; see `BatchTaskConfig.dataset` for each of them."""

    def __init__(
        self, map: Optional[Callable[..., Any]] = None, image: Any = None, cache: Union[bool, str, None] = False,
        interleave: Optional[Callable[..., Any]] = None, prefetch: Optional[int] = None, deterministic: Optional[bool] = True,
    ) -> None:  # fmt: skip
        """Check the arguments. Raises: ValueError, TypeError: an argument has a value that it must not have."""
        for name, function in (("map", map), ("interleave", interleave)):
            if function is not None and not callable(function):
                raise TypeError("%s=%.100r: give %s" % (name, function, _FUNCTIONS[name]))
        if interleave is not None:
            mapping.check_row(interleave)
        if interleave is not None and image not in (None, False):
            raise ValueError("interleave= and image=: what interleave= gives is the script's own; decode it in map=")
        if not (cache is True or cache is False or cache is None or (isinstance(cache, str) and cache in ("memory", "disk"))):
            raise ValueError("cache=%.100r: give True or 'memory', 'disk', or False or None for none" % (cache,))
        deterministic = True if deterministic is None else deterministic
        if not isinstance(deterministic, bool):
            raise TypeError("deterministic=%.100r: give True, or False if rows may come in another order" % (deterministic,))
        self.map: Any = map
        self.image = None if image is False else image
        self.cache = "memory" if cache is True else cache or None
        self.interleave: Any = interleave
        self.prefetch = _ahead(prefetch)
        self.deterministic = deterministic
        #: batches at the start of the first pass that are left out: a job that goes on has read them before it was ended
        self.skip = 0

    @property
    def by_row(self) -> bool:
        """Whether something is done with each row before rows are batched."""
        return self.image is not None or self.interleave is not None

    def images(self, schema: List[Dict[str, Any]]) -> Optional[images.Images]:
        """Return the `images.Images` for `image=`, None if it was not given. Raises: ValueError: there is no such column."""
        return None if self.image is None else images.Images(self.image, schema)

    # -- the steps

    def called(self, element: Any) -> Any:
        """Call the script's function with a batch, as `tf.data` would call it."""
        return self.map(*element) if isinstance(element, tuple) else self.map(element)

    def mapped(self, dataset: Any, function: Callable[..., Any]) -> Any:
        """Map a dataset with several calls at once; the results keep their order unless `deterministic=False`."""
        return dataset.map(function, num_parallel_calls=AUTOTUNE, **self._order(dataset.map))

    def interleaved(self, files: Any) -> Any:
        """Return the elements of the datasets that `interleave=` makes of each row; several are read at the same time."""
        import tensorflow as tf

        fixed, others = [], []

        def blocks(row: Any) -> Any:
            made = self.interleave(row)
            if not isinstance(made, tf.compat.v2.data.Dataset):
                others.append(made)
            fixed.append(_of_one_shape(tf, made))
            # handing a single element from one thread to another costs more than reading it
            return made.batch(_BLOCK) if fixed[-1] else made

        try:
            some = files.interleave(blocks, num_parallel_calls=AUTOTUNE, **self._order(files.interleave))
        except Exception as e:
            if others:
                raise mapping.no_dataset(self.interleave, others[0]) from None
            raise mapping.refused(self.interleave, e, "interleave") from None
        return unbatched(tf, some) if fixed[-1] else some

    def last(self, dataset: Any) -> Any:
        """Add the end of every pipeline: TensorFlow does not shard it, and batches are made ahead."""
        import tensorflow as tf

        dataset = tf_data.unsharded(dataset)
        if not self.deterministic and not self._order(dataset.map):
            options = tf.data.Options()
            options.experimental_deterministic = False
            dataset = dataset.with_options(options)
        return dataset.prefetch(self.prefetch) if self.prefetch else dataset

    def finished(self, dataset: Any) -> Any:
        """Add the script's function (`map=`) and the end of the pipeline."""
        return self.last(dataset if self.map is None else self.by_script(self.mapped, dataset, self.map))

    def by_script(self, mapped: Callable[..., Any], *given: Any) -> Any:
        """Return `mapped(*given)`, which calls the script's function.

        Raises: TypeError, ValueError, NameError, AttributeError: TensorFlow cannot call the function; the error says why.
        """
        try:
            return mapped(*given)
        except Exception as e:
            raise mapping.refused(self.map, e) from None

    def in_turn(self, dataset: Any) -> Any:
        """Do as `finished`, for a stream that must not be read ahead."""
        return tf_data.not_ahead(tf_data.unsharded(dataset if self.map is None else self.by_script(dataset.map, self.map)))

    def _order(self, method: Callable[..., Any]) -> Dict[str, bool]:
        """Return {"deterministic": ...} if the method has this argument: TensorFlow 1.15 has it for a whole pipeline only."""
        return {"deterministic": self.deterministic} if "deterministic" in inspect.signature(method).parameters else {}


_FUNCTIONS = {
    "map": "a function of a batch: of its columns, or of (features, label) where label= is given",
    "interleave": "a function of a row's columns that returns a tf.data.Dataset: of the file it names, as a rule",
}


#: arguments of a stream's dataset
_OF_STREAMS = (
    "batch_size", "drop_remainder", "label", "defaults", "columns", "map", "image", "prefetch", "deterministic", "weights",
)  # fmt: skip
#: argument of a table's dataset -> why a stream's dataset does not have it
_NOT_OF_STREAMS = {
    "cache": "rows of a stream come once, so there is nothing to keep",
    "shuffle": "rows of a stream are given as they come; task_config.dataset(...).shuffle(n) mixes batches",
    "seed": "a stream has no shuffle",
    "repeat": "rows of a stream come once",
    "uneven": "nobody knows how many rows of a stream each worker gets",
    "split": "a stream is not split; each batch can be taken apart as it comes",
    "interleave": "rows of a stream are given one after the other; open files in task_config.dataset(...).interleave(f)",
}


def sized(dataset: Any, rows: int, batch_size: int, repeat: Optional[int], drop_remainder: bool) -> Any:
    """Return a dataset with a note of how many rows it has, for who tells how far the script is (`akrunner.worker.reached`).

    Args: rows: of one epoch; batch_size, repeat, drop_remainder: as for `BatchTaskConfig.dataset`.
    """
    epochs = None if repeat is None or repeat < 0 else int(repeat)
    batches = None if epochs is None else rows * epochs // batch_size if drop_remainder else -(-rows * epochs // batch_size)
    for one in (dataset, getattr(dataset, "_dataset", None)):
        if hasattr(one, "__dict__"):
            vars(one)[ROWS] = (rows, epochs, batches)
    return dataset


def noted(dataset: Any, *does: str) -> Any:
    """Return a dataset with a note for the input doctor (`waits.pipeline`) on what its function does.

    The names of the dataset's operations do not tell all of it.
    """
    for one in (dataset, getattr(dataset, "_dataset", None)):
        # TensorFlow 1 wraps each dataset in another. It is set in `vars`, because TensorFlow would track an attribute
        if does and hasattr(one, "__dict__"):
            vars(one)[DOES] = does
    return dataset


def _of_one_shape(tf: Any, dataset: Any) -> bool:
    """Whether a dataset's elements can be batched and unbatched again: they are tensors of fixed shapes."""
    v1 = tf.compat.v1.data
    kinds = tf.nest.flatten(v1.get_output_classes(dataset))
    shapes = tf.nest.flatten(v1.get_output_shapes(dataset))
    return all(kind is tf.Tensor for kind in kinds) and all(tf.TensorShape(shape).is_fully_defined() for shape in shapes)


class Order(object):
    """The pipeline of steps over rows, for one pass or several.

    Args:
        how: the steps that are asked for.
        buffer: rows of the shuffle's buffer; 0 for no shuffle.
        rows: the number of rows in one pass; None if unknown.
        place: the file name for a cache on disk.
        batch_size, repeat, drop_remainder, seed: as for `dataset`, checked.
    """

    def __init__(
        self, how: Reading, batch_size: int, buffer: int, repeat: Optional[int], drop_remainder: bool, seed: Optional[int],
        rows: Optional[int] = None, place: Optional[str] = None,
    ) -> None:  # fmt: skip
        self.how = how
        self.batch_size = batch_size
        self.buffer = buffer
        self.repeat = repeat
        self.drop_remainder = drop_remainder
        self.seed = seed
        self.rows = rows
        self.place = place

    def of_files(self, files: Any) -> Any:
        """Return the dataset if `interleave=` makes a dataset of each row. Args: files: the rows, as {column: scalar}."""
        if self.buffer:
            files = files.shuffle(max(1, self.rows or self.buffer), seed=self.seed)
        rows = self._rest(self._mixed(self.cached(self.how.interleaved(files))))
        return self.how.finished(rows.batch(self.batch_size, drop_remainder=self.drop_remainder))

    def of_images(self, rows: Any, decode: Callable[..., Any], finish: Callable[..., Any], image: images.Images) -> Any:
        """Return the dataset if a column of images is decoded.

        Args:
            rows: a dataset of single rows.
            decode: function of a row that returns its columns, with the pixels of the image.
            finish: function of a batch's columns that returns what the script gets.
            image: the value of `image=`.
        """
        if self.how.cache:
            rows = self._rest(self._mixed(self.cached(noted(self.how.mapped(rows, decode), *image.of_decoding()))))
            rows = noted(self._seeded(rows, image, tf_data.as_written(lambda row: row)), *image.of_finishing())
        else:
            rows = noted(
                self._seeded(self._rest(self._mixed(rows)), image, decode), *image.of_decoding(), *image.of_finishing()
            )
        batches = rows.batch(self.batch_size, drop_remainder=self.drop_remainder)
        return self.how.finished(batches.map(finish))

    def of_records(self, rows: Any, parse: Callable[..., Any]) -> Any:
        """Return the dataset of serialized Examples.

        Args:
            rows: a dataset of single records.
            parse: function of a batch of records that returns what the script gets.
        """
        late = self.how.cache is not None and not self.buffer and self.whole()
        if self.how.cache and not late:
            rows = self.cached(rows)
        if not late:
            rows = self._mixed(rows)
        # parse a whole batch at a time: one record at a time is 10 to 80 times slower
        batches = self._rest(rows.batch(self.batch_size, drop_remainder=self.drop_remainder), 1)
        if late:
            batches = self.cached(batches.map(parse))
            return self.how.finished(batches if self.repeat == 1 else batches.repeat(self.repeat))
        if self.how.map is None:
            # TensorFlow parses one batch with several threads; parsing several batches at once is no faster on few cores
            return self.how.last(batches.map(parse))
        return self.how.last(self.how.by_script(self.how.mapped, batches, lambda batch: self.how.called(parse(batch))))

    def of_parsed(self, rows: Any) -> Any:
        """Return the dataset of rows in memory. Args: rows: a dataset of single rows, as the script gets them."""
        batches = self._mixed(rows).batch(self.batch_size, drop_remainder=self.drop_remainder)
        return self.how.finished(self._rest(batches, 1))

    def whole(self) -> bool:
        """Whether every epoch has the same batches."""
        return self.repeat == 1 or (self.rows is not None and self.rows % self.batch_size == 0)

    def cached(self, dataset: Any) -> Any:
        if self.how.cache is None:
            return dataset
        return dataset.cache() if self.how.cache == "memory" else dataset.cache(self.place)

    def _mixed(self, rows: Any) -> Any:
        if self.buffer:
            rows = rows.shuffle(self.buffer, seed=self.seed)
        return rows if self.repeat == 1 else rows.repeat(self.repeat)

    def _rest(self, dataset: Any, of: Optional[int] = None) -> Any:
        """Return what follows the batches that are left out. Args: of: elements of the dataset in a batch; None: it has rows."""
        return dataset.skip(self.how.skip * (of or self.batch_size)) if self.how.skip else dataset

    def _seeded(self, rows: Any, image: images.Images, decode: Callable[..., Any]) -> Any:
        """Return the rows with their images decoded and finished; the changes follow the seed, if there is one."""
        if not image.augment or self.seed is None:
            return self.how.mapped(rows, image.as_written(lambda row: image.finished(decode(row))))
        import tensorflow as tf

        drawn = tf.data.Dataset.zip((rows, self._rest(images.seeded_draws(tf, self.seed))))
        return self.how.mapped(drawn, image.as_written(lambda row, draws: image.finished(decode(row), draws)))


def check_room(size: Optional[int], what: str) -> None:
    """Check that there is memory for a cache. Args: size: its bytes; what: what takes them, in words.

    Raises: ValueError: there is not enough.
    """
    free = _free()
    if size and free is not None and size > _SHARE * free:
        raise ValueError(
            "cache=True: %s take about %.1f GiB, and %.1f GiB of memory are free: cache='disk', or a smaller size"
            % (what, size / 2.0**30, free / 2.0**30)
        )


def _free() -> Optional[int]:
    """Return the bytes of memory that are free, on the machine and in the container; None if the system does not say."""
    rooms = []
    try:
        with open("/proc/meminfo") as f:
            rooms += [int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        pass
    groups = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
    for most, used in groups:
        try:
            with open(os.path.join("/sys/fs/cgroup", most)) as f, open(os.path.join("/sys/fs/cgroup", used)) as g:
                rooms.append(int(f.read()) - int(g.read()))
        except (OSError, ValueError):
            pass  # there is no such limit, or it is "max"
    return max(0, min(rooms)) if rooms else None


def check_stream(other: Dict[str, Any]) -> None:
    """Check that a stream's `dataset` was given no other arguments. Args: other: those. Raises: TypeError: there are some."""
    if not other:
        return
    name = sorted(other)[0]
    why = _NOT_OF_STREAMS.get(name) or "there is no such argument%s" % nearest(name, _OF_STREAMS + tuple(_NOT_OF_STREAMS))
    raise TypeError(
        "%s=: %s. The dataset of a stream takes %s and %s"
        % (name, why.rstrip("?"), ", ".join(_OF_STREAMS[:-1]), _OF_STREAMS[-1])
    )


def check_counts(batch_size: int, shuffle: Any = False, repeat: Optional[int] = 1, seed: Optional[int] = None) -> None:
    """Check the numbers given to `dataset` or `batches`.

    Raises:
        TypeError: one is not a whole number.
        ValueError: one is out of range.
    """
    if _whole("batch_size", batch_size) < 1:
        raise ValueError("batch_size=%r: a batch has one row at least" % (batch_size,))
    if not isinstance(shuffle, bool) and _whole("shuffle", shuffle or 0) < 0:
        raise ValueError("shuffle=%r: give True, or the buffer's size in rows" % (shuffle,))
    # -1 means endless to TensorFlow, too
    if repeat is not None and (_whole("repeat", repeat) < -1 or repeat == 0):
        raise ValueError("repeat=%r: give the number of epochs, 1 at least; None for ever" % (repeat,))
    if seed is not None:
        _whole("seed", seed)


def check_positive(name: str, value: Any) -> None:
    """Check a number that is 1 at least. Args: name: the argument's. Raises: TypeError, ValueError: it is none."""
    if _whole(name, value) < 1:
        raise ValueError("%s=%r: give 1 or more" % (name, value))


def check_seed(seed: Optional[int], shuffle: Union[bool, int], image: Any) -> None:
    """Check that a seed has a use. Args: image: an `images.Images`, or None. Raises: ValueError: nothing is random."""
    if seed is not None and not shuffle and not (image is not None and image.augment):
        raise ValueError(
            "seed=%r means nothing without shuffle=: rows come in their order; give shuffle=True, or leave it out" % (seed,)
        )


def _ahead(prefetch: Optional[int]) -> int:
    if prefetch is None:
        return _AHEAD
    if _whole("prefetch", prefetch) < AUTOTUNE:
        raise ValueError("prefetch=%r: give how many batches are made ahead, 0 for none, -1 (tf.data.AUTOTUNE)" % (prefetch,))
    return operator.index(prefetch)


def _whole(name: str, value: Any) -> int:
    """Return a whole number. Raises: TypeError: it is not one; ValueError: it does not fit 64 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    # operator.index takes True for 1
    if number is None or isinstance(value, bool):
        raise TypeError("%s=%.100r: give a whole number" % (name, value))
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("%s=%.100r: it is too large" % (name, value))
    return number
