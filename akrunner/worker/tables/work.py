"""PAI's `WorkQueue`: works, such as slices of tables, that all tasks take from one queue. A quicker task does more of them."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, Iterator, List, Optional

from akrunner.worker.tables import asking, errors
from akrunner.worker.tables.rows import check_arguments, text_of, whole
from akrunner.worker.tf_data import from_generator

#: this process's queues: name -> [what they deal, how many queues of this name there are]
_queues: Dict[str, List[Any]] = {}


def _named(name: str, deals: Any) -> str:
    """Return the name of a new queue.

    As with TensorFlow's operations, the name gets a number if this process has a queue of that name that deals something
    else. If it has a queue of that name that deals the same, which may be used up, the name gets another number. So the first
    such queues of all tasks are one shared queue, the second ones another.

    Args:
        name: the name that the script gives.
        deals: what the queue deals.
    """
    number, made = 0, name
    while _queues.setdefault(made, [deals, 0])[0] != deals:
        number += 1
        made = "%s_%d" % (name, number)
    again = _queues[made][1]
    _queues[made][1] += 1
    return "%s/%d" % (made, again) if again else made


def _least(name: str, value: Any, least: int) -> Optional[int]:
    """Return a whole number, or None. Raises: ValueError: the value is not a whole number, or is too small."""
    if value is None:
        return None
    value = whole(name, value)
    if not least <= value < 1 << 63:
        raise ValueError("WorkQueue: %s=%d must be at least %d, or None" % (name, value, least))
    return int(value)


class WorkQueue(object):
    """A queue of works, which the host deals to the tasks as they ask.

    Args:
        works: names of tables, or files; the same in every task.
        num_epochs: how often each work is dealt; None: without end.
        shuffle, seed: whether the works are dealt in a random order, another one in each epoch; and the seed of the orders.
        prefix: a text that is put before each work.
        num_slices: tables are cut into so many slices, "...?start=0&end=100"; files are not cut.
        name: the queue's name. Tasks that give the same name share the queue. If a process makes a second queue of the same
            name, that is another queue, shared with the second queues of the other tasks, and so on.
        num_clients: ignored.
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
        # the host is told the works with the first request only
        self._digest, self._told = hashlib.sha256(json.dumps(self._works).encode("utf-8")).hexdigest(), False
        self._taken = 0

    @property
    def works(self) -> List[str]:
        """The works as they were given."""
        return list(self._works)

    def next(self) -> str:
        """Take the next work, and return it as text. Raises: OutOfRangeException: no work is left."""
        work = self._next()
        if work is None:
            raise errors.out_of_range()
        return work

    def _next(self) -> Optional[str]:
        work = asking.asker().take_work(
            queue=self._name,
            works=[] if self._told else self._works,
            digest=self._digest,
            epochs=self._epochs,
            shuffle=self._shuffle,
            seed=self._seed,
            slices=self._slices,
        )
        self._told = True
        if work is None:
            return None
        self._taken += 1
        return self._prefix + work

    def __iter__(self) -> Iterator[str]:
        return iter(self._next, None)

    def take(self) -> Any:
        """Return the next work as a string tensor; in a graph, each run of it takes one.

        Raises:
            tf.errors.OutOfRangeError: none is left.
        """
        import tensorflow as tf

        if tf.executing_eagerly():
            return tf.constant(self.next())
        return self._in_graph(tf)

    def _in_graph(self, tf: Any) -> Any:
        """Return a string tensor that takes a work when it is run. TensorFlow turns StopIteration into OutOfRangeError."""

        def taken() -> bytes:
            work = self._next()
            if work is None:
                raise StopIteration(errors.END)
            return work.encode("utf-8")

        work = tf.numpy_function(taken, [], tf.string)
        work.set_shape([])
        return work

    def input_dataset(self) -> Any:
        """Return the works that this task takes, as a `tf.data.Dataset` of strings."""
        import tensorflow as tf

        def works() -> Iterator[bytes]:
            for work in self:
                yield work.encode("utf-8")

        # one at a time: a work that is taken in advance is lost to the other tasks
        dataset = from_generator(works, (tf.string, []))
        dataset.works_taken = self
        return dataset

    def input_producer(self) -> Any:
        """Return the works that this task takes, as a queue for readers (like `tf.train.string_input_producer`)."""
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
        """Add a scalar summary of how many works this task has taken."""
        import tensorflow as tf

        taken = tf.numpy_function(lambda: float(self._taken), [], tf.float64)
        taken.set_shape([])
        tf.compat.v1.summary.scalar("%s/taken" % self._name, tf.cast(taken, tf.float32))
