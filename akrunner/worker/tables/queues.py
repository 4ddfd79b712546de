"""PAI's `TableRecordReader`: yields lines of tables in a graph; the tables' names come from a queue.

TensorFlow's own readers are operations in C++. This one takes a name from the queue, in the graph, when the table before it has
been read to its end, and yields the lines from Python, many at a time.
"""

from __future__ import annotations

import collections
import threading
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, List, Optional, Tuple, Union

import numpy as np

from akrunner.worker import placing
from akrunner.worker.tables.rows import READ_BY, Table, check_arguments, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TableRecordReader(object):
    """Yields rows of tables as lines of text.

    Args:
        csv_delimiter: the text between two columns. A null is an empty cell.
        selected_cols, excluded_cols, slice_id, slice_count: as in `TableRecordDataset`.
        num_threads, capacity, name: ignored.
    """

    def __init__(
        self, csv_delimiter: Union[str, bytes] = ",", selected_cols: str = "", excluded_cols: str = "", slice_count: int = 1,
        slice_id: int = 0, num_threads: int = 0, capacity: int = 0, name: Optional[str] = None, **ignored: Any,
    ) -> None:  # fmt: skip
        check_arguments("TableRecordReader", ignored, "csv_delimiter name " + READ_BY)
        self._delimiter = csv_delimiter.encode("utf-8") if isinstance(csv_delimiter, str) else csv_delimiter
        self._columns = selected_cols, excluded_cols
        self._slice = slice_id, slice_count
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> Any:
        self._names: Deque[str] = collections.deque()
        self._current: Optional[Tuple[str, Table]] = None
        self._lines: List[bytes] = []
        self._keys: List[bytes] = []
        self._at = 0
        self._produced = self._finished = 0
        return np.int64(0)

    def read(self, queue: Any, name: Optional[str] = None) -> Tuple[Any, Any]:
        """Return (key, line) of one row, as tensors.

        Raises:
            tf.errors.OutOfRangeError: when the tensors are run: the queue is closed, and has no more tables.
        """
        keys, lines = self.read_up_to(queue, 1)
        return _scalar(keys[0]), _scalar(lines[0])

    def read_up_to(self, queue: Any, num_records: Any, name: Optional[str] = None) -> Any:
        """Return (keys, lines) of up to num_records rows of one table, as tensors. Raises: as `read`."""
        import tensorflow as tf

        v1 = tf.compat.v1
        queue = getattr(queue, "queue", queue)

        def fetched(name: Any) -> Any:
            return tf.numpy_function(self._read, [name, tf.cast(num_records, tf.int64)], (tf.string, tf.string))

        def more(keys: Any, lines: Any) -> Tuple[Any, ...]:
            # as long as rows are left, no name is taken from the queue
            with tf.control_dependencies([keys]):
                wanted = tf.numpy_function(self._is_at_end, [], tf.bool)
                wanted.set_shape([])
                name = tf.cond(wanted, lambda: tf.reshape(queue.dequeue(), []), lambda: tf.constant(""))
            got = fetched(name)
            for one in got:
                one.set_shape([None])
            return tuple(got)

        none = tf.constant([], tf.string)
        shapes = (tf.TensorShape([None]), tf.TensorShape([None]))
        with placing.together():
            return v1.while_loop(
                lambda keys, lines: tf.equal(tf.size(lines), 0),
                more,
                (none, none),
                shape_invariants=shapes,
                parallel_iterations=1,
            )

    def num_records_produced(self, name: Optional[str] = None) -> Any:
        """Return the number of rows read so far, as a tensor."""
        return self._told(lambda: np.int64(self._produced))

    def num_work_units_completed(self, name: Optional[str] = None) -> Any:
        """Return the number of tables that have been read to their end, as a tensor."""
        return self._told(lambda: np.int64(self._finished))

    def reset(self, name: Optional[str] = None) -> Any:
        """Return an operation that drops the rest of the current table, and sets the counts to 0.

        The next table is read then.
        """
        return self._told(self._reset_now).op

    def _reset_now(self) -> Any:
        with self._lock:
            return self._reset()

    @property
    def supports_serialize(self) -> bool:
        return False

    @property
    def reader_ref(self) -> None:
        return None

    def _told(self, call: Callable[[], Any]) -> Any:
        import tensorflow as tf

        told = tf.numpy_function(call, [], tf.int64)
        told.set_shape([])
        return told

    # -- called by the graph

    def _is_at_end(self) -> Any:
        with self._lock:
            return np.bool_(not self._more())

    def _more(self) -> bool:
        """Whether there are rows left of the tables whose names have been taken from the queue."""
        while self._at >= len(self._lines):
            if self._current is None:
                if not self._names:
                    return False
                name = self._names.popleft()
                self._current = name, Table(name, *(self._columns + self._slice))
                self._chunks = self._current[1].rows().chunks()
            got = next(self._chunks, None)
            if got is None:
                self._current = None
                self._finished += 1
                continue
            first, rows, columns = got
            name, table = self._current
            self._lines, self._at = self._text(table, rows, columns), 0
            prefix = ("%s:" % name).encode("utf-8")
            self._keys = [prefix + b"%d" % (table.start + first + i) for i in range(rows)]
        return True

    def _read(self, name: Any, count: Any) -> Tuple[NDArray[Any], NDArray[Any]]:
        with self._lock:
            if len(name):
                self._names.append(text_of(name))
            if not self._more():
                return np.array([], object), np.array([], object)
            some = slice(self._at, self._at + int(count))
            keys, lines = self._keys[some], self._lines[some]
            self._at += len(lines)
            self._produced += len(lines)
            return np.array(keys, object), np.array(lines, object)

    def _text(self, table: Table, rows: int, columns: Dict[str, Any]) -> List[bytes]:
        cells = [_cells(*columns[column["name"]]) for column in table.columns]
        return list(map(self._delimiter.join, zip(*cells)))


def _cells(values: NDArray[Any], valid: Optional[NDArray[Any]]) -> List[bytes]:
    """Return a column's values as text that `tf.decode_csv` can read."""
    if values.dtype.kind == "O":
        out: List[bytes] = values.tolist()
    elif values.dtype.kind == "b":
        out = [b"true" if value else b"false" for value in values.tolist()]
    else:
        out = list(map(_ascii, map(repr, values.tolist())))
    if valid is not None:
        out = [value if there else b"" for value, there in zip(out, valid.tolist())]
    return out


def _ascii(text: str) -> bytes:
    return text.encode("ascii")


def _scalar(tensor: Any) -> Any:
    tensor.set_shape([])
    return tensor
