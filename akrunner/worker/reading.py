"""How `task_config.dataset` reads: its arguments, checked, and put into the order that TensorFlow's guides recommend.

::

    rows   ->           [cache] shuffle repeat batch  parse                [cache] [map]  prefetch
    images -> [decode]  [cache] shuffle repeat decode, augment, batch              [map]  prefetch
    files  -> shuffle interleave [cache] shuffle repeat batch                      [map]  prefetch

What is kept (`cache=`) is what is the same in every epoch, as late as the order allows: never the order of a shuffle, never what `map=` or
`augment` made by chance.
"""

from __future__ import annotations

import inspect
import operator
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Union

from akrunner.wire.near import nearest
from akrunner.worker import images, mapping, tf_data
from akrunner.worker.tf_data import unbatched

if TYPE_CHECKING:
    pass

#: batches made ahead, if nobody says how many
_AHEAD = 2
#: elements of a file that go from one thread to another together
_BLOCK = 32
#: of the memory that is free, what a cache may take
_SHARE = 0.8
#: attribute of a dataset that we have made: facts about its function, beside those that its operations tell
DOES = "_akrunner_does"
#: as `tf.data.AUTOTUNE`
AUTOTUNE = -1


class Reading(object):
    """What a script asks of its dataset beyond its rows, checked: see `BatchTaskConfig.dataset` for each."""

    def __init__(
        self, map: Optional[Callable[..., Any]] = None, image: Any = None, cache: Union[bool, str, None] = False,
        interleave: Optional[Callable[..., Any]] = None, prefetch: Optional[int] = None, deterministic: Optional[bool] = True,
    ) -> None:  # fmt: skip
        """Raises: ValueError, TypeError: an argument is not what it may be."""
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

    @property
    def by_row(self) -> bool:
        """Whether something is to be done with each row before they are batched."""
        return self.image is not None or self.interleave is not None

    def images(self, schema: List[Dict[str, Any]]) -> Optional[images.Images]:
        """The `images.Images` that was asked for, None. Raises: ValueError: the columns have none."""
        return None if self.image is None else images.Images(self.image, schema)

    # -- the steps

    def called(self, element: Any) -> Any:
        """The script's own function of a batch, called as `tf.data` calls it."""
        return self.map(*element) if isinstance(element, tuple) else self.map(element)

    def mapped(self, dataset: Any, function: Callable[..., Any]) -> Any:
        """Many calls at once, in the order of what they are given unless that does not matter."""
        return dataset.map(function, num_parallel_calls=AUTOTUNE, **self._order(dataset.map))

    def interleaved(self, files: Any) -> Any:
        """What the datasets made of each of them give, read at the same time."""
        import tensorflow as tf

        fixed, others = [], []

        def blocks(row: Any) -> Any:
            made = self.interleave(row)
            if not isinstance(made, tf.compat.v2.data.Dataset):
                others.append(made)
            fixed.append(_of_one_shape(tf, made))
            # an element by itself costs more on its way from one thread to another than to be read
            return made.batch(_BLOCK) if fixed[-1] else made

        try:
            some = files.interleave(blocks, num_parallel_calls=AUTOTUNE, **self._order(files.interleave))
        except Exception as e:
            if others:
                raise mapping.no_dataset(self.interleave, others[0]) from None
            raise mapping.refused(self.interleave, e, "interleave") from None
        return unbatched(tf, some) if fixed[-1] else some

    def last(self, dataset: Any) -> Any:
        """The end of every pipeline: nobody shards it again, and batches are made while others are used."""
        import tensorflow as tf

        dataset = tf_data.unsharded(dataset)
        if not self.deterministic and not self._order(dataset.map):
            options = tf.data.Options()
            options.experimental_deterministic = False
            dataset = dataset.with_options(options)
        return dataset.prefetch(self.prefetch) if self.prefetch else dataset

    def finished(self, dataset: Any) -> Any:
        """The script's own function, and the end."""
        return self.last(dataset if self.map is None else self.by_script(self.mapped, dataset, self.map))

    def by_script(self, mapped: Callable[..., Any], *given: Any) -> Any:
        """`mapped(*given)`, which calls the script's own function. Raises: TypeError, ValueError and such: it does not fit; they say how."""
        try:
            return mapped(*given)
        except Exception as e:
            raise mapping.refused(self.map, e) from None

    def in_turn(self, dataset: Any) -> Any:
        """The same for a stream of which nothing may be drawn ahead."""
        return tf_data.not_ahead(tf_data.unsharded(dataset if self.map is None else self.by_script(dataset.map, self.map)))

    def _order(self, method: Callable[..., Any]) -> Dict[str, bool]:
        """{"deterministic": ...} where this TensorFlow takes it there: 1.15 has it for a whole pipeline only."""
        return {"deterministic": self.deterministic} if "deterministic" in inspect.signature(method).parameters else {}


_FUNCTIONS = {
    "map": "a function of a batch: of its columns, or of (features, label) where label= is given",
    "interleave": "a function of a row's columns that returns a tf.data.Dataset: of the file it names, as a rule",
}


#: arguments of a stream's dataset
_OF_STREAMS = (
    "batch_size", "drop_remainder", "label", "defaults", "columns", "map", "image", "prefetch", "deterministic", "weights",
)  # fmt: skip
#: arguments of a table's dataset -> why a stream's takes none
_NOT_OF_STREAMS = {
    "cache": "rows of a stream come once, so there is nothing to keep",
    "shuffle": "rows of a stream are given as they come; task_config.dataset(...).shuffle(n) mixes batches",
    "seed": "a stream has no shuffle",
    "repeat": "rows of a stream come once",
    "uneven": "nobody knows how many rows of a stream each worker gets",
    "split": "a stream is not split; each batch can be taken apart as it comes",
    "interleave": "rows of a stream are given one after the other; open files in task_config.dataset(...).interleave(f)",
}


def noted(dataset: Any, *does: str) -> Any:
    """The dataset, with what its function does for the input doctor (`waits.pipeline`), as the names of its operations do not tell all of it."""
    for one in (dataset, getattr(dataset, "_dataset", None)):
        # TensorFlow 1 wraps each dataset in another; set as an attribute, TensorFlow would track it
        if does and hasattr(one, "__dict__"):
            vars(one)[DOES] = does
    return dataset


def _of_one_shape(tf: Any, dataset: Any) -> bool:
    """Whether its elements can be put into batches, and taken out again."""
    v1 = tf.compat.v1.data
    kinds = tf.nest.flatten(v1.get_output_classes(dataset))
    shapes = tf.nest.flatten(v1.get_output_shapes(dataset))
    return all(kind is tf.Tensor for kind in kinds) and all(tf.TensorShape(shape).is_fully_defined() for shape in shapes)


class Order(object):
    """One pass over rows, or several, as `Reading` wants it.

    Args: how: a `Reading`; rows: of one pass, None: not known; place: file name for a cache on disk; the others: as of `dataset`, checked;
        buffer: of the shuffle, 0: none.
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
        """Datasets of what rows name. Args: files: a dataset of {column: scalar}."""
        if self.buffer:
            files = files.shuffle(max(1, self.rows or self.buffer), seed=self.seed)
        rows = self._mixed(self.cached(self.how.interleaved(files)))
        return self.how.finished(rows.batch(self.batch_size, drop_remainder=self.drop_remainder))

    def of_images(self, rows: Any, decode: Callable[..., Any], finish: Callable[..., Any], image: images.Images) -> Any:
        """Args: decode: a row -> its columns, the image's pixels among them; finish: a batch's columns -> what the script is given."""
        if self.how.cache:
            rows = self._mixed(self.cached(noted(self.how.mapped(rows, decode), *image.of_decoding())))
            rows = noted(self._seeded(rows, image, lambda row: row), *image.of_finishing())
        else:
            rows = noted(self._seeded(self._mixed(rows), image, decode), *image.of_decoding(), *image.of_finishing())
        batches = rows.batch(self.batch_size, drop_remainder=self.drop_remainder)
        return self.how.finished(batches.map(finish))

    def of_records(self, rows: Any, parse: Callable[..., Any]) -> Any:
        """Args: parse: serialized Examples of a batch -> what the script is given."""
        late = self.how.cache is not None and not self.buffer and self.whole()
        if self.how.cache and not late:
            rows = self.cached(rows)
        if not late:
            rows = self._mixed(rows)
        # parse a whole batch at a time: one record at a time is 10 to 80 times slower
        batches = rows.batch(self.batch_size, drop_remainder=self.drop_remainder)
        if late:
            batches = self.cached(batches.map(parse))
            return self.how.finished(batches if self.repeat == 1 else batches.repeat(self.repeat))
        if self.how.map is None:
            # TensorFlow parses a batch by several threads as it is; several at once are no quicker on few cores
            return self.how.last(batches.map(parse))
        return self.how.last(self.how.by_script(self.how.mapped, batches, lambda batch: self.how.called(parse(batch))))

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

    def _seeded(self, rows: Any, image: images.Images, decode: Callable[..., Any]) -> Any:
        """Rows with their images finished."""
        if not image.augment or self.seed is None:
            return self.how.mapped(rows, lambda row: image.finished(decode(row)))
        import tensorflow as tf

        drawn = tf.data.Dataset.zip((rows, images.seeded_draws(tf, self.seed)))
        return self.how.mapped(drawn, lambda row, draws: image.finished(decode(row), draws))


def check_room(size: Optional[int], what: str) -> None:
    """Raises: ValueError: so many bytes are not to be had. Args: what: takes them, in words."""
    free = _free()
    if size and free is not None and size > _SHARE * free:
        raise ValueError(
            "cache=True: %s take about %.1f GiB, and %.1f GiB of memory are free: cache='disk', or a smaller size"
            % (what, size / 2.0**30, free / 2.0**30)
        )


def _free() -> Optional[int]:
    """Bytes of memory that nobody uses; None: nobody says."""
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
            pass  # there is none, or "max"
    return max(0, min(rooms)) if rooms else None


def check_stream(other: Dict[str, Any]) -> None:
    """Args: other: what a stream's `dataset` was given and does not take. Raises: TypeError: there is something."""
    if not other:
        return
    name = sorted(other)[0]
    why = _NOT_OF_STREAMS.get(name) or "there is no such argument%s" % nearest(name, _OF_STREAMS + tuple(_NOT_OF_STREAMS))
    raise TypeError(
        "%s=: %s. The dataset of a stream takes %s and %s"
        % (name, why.rstrip("?"), ", ".join(_OF_STREAMS[:-1]), _OF_STREAMS[-1])
    )


def check_counts(batch_size: int, shuffle: Any = False, repeat: Optional[int] = 1, seed: Optional[int] = None) -> None:
    """Raises: ValueError, TypeError: they are no numbers that rows can be counted by."""
    if _whole("batch_size", batch_size) < 1:
        raise ValueError("batch_size=%r: a batch has one row at least" % (batch_size,))
    if not isinstance(shuffle, bool) and _whole("shuffle", shuffle or 0) < 0:
        raise ValueError("shuffle=%r: give True, or the buffer's size in rows" % (shuffle,))
    # -1 is for ever to TensorFlow, too
    if repeat is not None and (_whole("repeat", repeat) < -1 or repeat == 0):
        raise ValueError("repeat=%r: give the number of epochs, 1 at least; None for ever" % (repeat,))
    if seed is not None:
        _whole("seed", seed)


def check_seed(seed: Optional[int], shuffle: Union[bool, int], image: Any) -> None:
    """Args: shuffle: checked; image: an `images.Images`, None. Raises: ValueError: nothing is drawn by chance."""
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
    """A whole number. Raises: TypeError: it is none."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    # True counts as 1 there
    if number is None or isinstance(value, bool):
        raise TypeError("%s=%.100r: give a whole number" % (name, value))
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("%s=%.100r: it is too large" % (name, value))
    return number
