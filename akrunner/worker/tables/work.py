"""PAI's `WorkQueue`: works, such as slices of tables, that all tasks take from one queue; who is quicker does more."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, Iterator, List, Optional

from akrunner.worker.tables import asking, errors
from akrunner.worker.tables.rows import check_arguments, text_of, whole
from akrunner.worker.tf_data import from_generator

#: of this process's queues: name -> [what it deals, how many there are]
_queues: Dict[str, List[Any]] = {}


def _named(name: str, deals: Any) -> str:
    """The name of a new queue, as TensorFlow names operations: as given, with a number where this process has another of that name, and with
    one more where it has another that deals the same, which may be used up. So the first of each task is one queue, the second another."""
    number, made = 0, name
    while _queues.setdefault(made, [deals, 0])[0] != deals:
        number += 1
        made = "%s_%d" % (name, number)
    again = _queues[made][1]
    _queues[made][1] += 1
    return "%s/%d" % (made, again) if again else made


def _least(name: str, value: Any, least: int) -> Optional[int]:
    """A whole number, or None. Raises: ValueError: it is none, or less."""
    if value is None:
        return None
    value = whole(name, value)
    if not least <= value < 1 << 63:
        raise ValueError("WorkQueue: %s=%d must be at least %d, or None" % (name, value, least))
    return int(value)


class WorkQueue(object):
    """Works that the host deals, to whichever task asks.

    Args:
        works: names of tables, or files; the same in every task.
        num_epochs: how often each is dealt; None: for ever.
        shuffle, seed: deal them in a random order, another in each epoch.
        prefix: put before each that is taken.
        num_slices: cut tables into so many slices, "...?start=0&end=100"; files stay whole.
        name: of the queue; tasks that give the same share it. Another queue of the same process with this name is another one, and shared
            with those that other tasks make as their second, third, ...
        num_clients: without meaning here.
    """

    def __init__(
        self, works: Any, num_epochs: Any = 1, shuffle: bool = True, seed: Any = None, prefix: Any = None,
        num_slices: Any = None, name: Any = "work_queue", num_clients: int = 1, **ignored: Any,
    ) -> None:  # fmt: skip
        check_arguments("WorkQueue", ignored, "works num_epochs shuffle seed prefix num_slices name num_clients")
        works = [works] if isinstance(works, (str, bytes)) else list(works)
        self._works = [text_of(work) for work in works]
        if not self._works:
            raise ValueError("WorkQueue: works is empty")
        self._epochs = _least("num_epochs", num_epochs, 1)
        self._shuffle, self._seed = bool(shuffle), _least("seed", seed, -(1 << 63))
        self._prefix = text_of(prefix) if prefix else ""
        self._slices = _least("num_slices", num_slices, 1)
        self._name = _named(text_of(name or "work_queue"), (self._works, self._epochs, self._shuffle, self._seed, self._slices))
        # all of them are told but once
        self._digest, self._told = hashlib.sha256(json.dumps(self._works).encode("utf-8")).hexdigest(), False
        self._taken = 0

    @property
    def works(self) -> List[str]:
        """As they were given."""
        return list(self._works)

    def next(self) -> str:
        """The next work, as text. Raises: OutOfRangeException: there is none left."""
        work = self._next()
        if work is None:
            raise errors.out_of_range()
        return work

    def _next(self) -> Optional[str]:
        asked = {"epochs": self._epochs, "shuffle": self._shuffle, "seed": self._seed, "slices": self._slices}
        works = [] if self._told else self._works
        work = asking.asker().take_work(queue=self._name, works=works, digest=self._digest, **asked)
        self._told = True
        if work is None:
            return None
        self._taken += 1
        return self._prefix + work

    def __iter__(self) -> Iterator[str]:
        return iter(self._next, None)

    def take(self) -> Any:
        """The next work, a string tensor: in a graph each run takes one. Raises: tf.errors.OutOfRangeError: there is none left."""
        import tensorflow as tf

        if tf.executing_eagerly():
            return tf.constant(self.next())
        return self._in_graph(tf)

    def _in_graph(self, tf: Any) -> Any:
        """A string tensor; what Python says by StopIteration TensorFlow calls OutOfRangeError."""

        def taken() -> bytes:
            work = self._next()
            if work is None:
                raise StopIteration(errors.END)
            return work.encode("utf-8")

        work = tf.numpy_function(taken, [], tf.string)
        work.set_shape([])
        return work

    def input_dataset(self) -> Any:
        """The works that this task takes, a `tf.data.Dataset` of strings."""
        import tensorflow as tf

        def works() -> Iterator[bytes]:
            for work in self:
                yield work.encode("utf-8")

        # one at a time: what is taken ahead of time another task cannot have
        dataset = from_generator(works, (tf.string, []))
        dataset.works_taken = self
        return dataset

    def input_producer(self) -> Any:
        """The works that this task takes, as a queue for readers (`tf.train.string_input_producer`)."""
        import tensorflow as tf

        v1 = tf.compat.v1
        queue = v1.FIFOQueue(1, [tf.string], shapes=[[]], name=self._name.replace("/", "_"))
        fill = queue.enqueue([self._in_graph(tf)])
        runner = v1.train.QueueRunner(
            queue,
            [fill],
            cancel_op=queue.close(cancel_pending_enqueues=True),
            queue_closed_exception_types=(tf.errors.OutOfRangeError,),
        )
        v1.train.add_queue_runner(runner)
        return queue

    def add_summary(self) -> None:
        """A scalar summary of how many works this task has taken."""
        import tensorflow as tf

        taken = tf.numpy_function(lambda: float(self._taken), [], tf.float64)
        taken.set_shape([])
        tf.compat.v1.summary.scalar("%s/taken" % self._name, tf.cast(taken, tf.float32))
