"""PAI's `TableWriter`: writes rows of an output table from Python.

::

    write(values, indices)   one row or many, in any shape -> columns -> an ADD_ROWS frame when there are enough rows
    close()                  sends the rows that are left, and waits until the host confirms that it has all

In a process other than the task's own, each `write` sends its rows before it returns, because such a process may end in ways
that this module cannot notice.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from typing import Any, Dict, List, Set, Tuple

import numpy as np

from akrunner.worker import column_encoding as packing
from akrunner.worker.tables import asking
from akrunner.worker.tables.broker import REPLACED
from akrunner.worker.tables.errors import TableUseError
from akrunner.worker.tables.rows import check_arguments, text_of, whole
from akrunner.worker.tables.values import as_column, columns_of

_FLUSH_ROWS = 4096
_FRAME_ROWS = 1 << 16
_FRAME_BYTES = 8 << 20

#: this process's open writers: they may have unsent rows, even if the script has dropped them
_OPEN: Set[TableWriter] = set()


def close_all() -> bool:
    """Close the writers that the script has left open.

    Returns:
        Whether threads of the script may still try to write.
    Raises:
        TableError: the host has refused rows.
    """
    left = list(_OPEN)
    for writer in left:
        writer._ended = True
        writer.close()
    own = (threading.current_thread(), threading.main_thread())
    return bool(left) and any(one not in own and not one.name.startswith("akrunner") for one in threading.enumerate())


def _forked() -> None:
    """Reset the writers in a forked child: the parent sends the rows held at the fork, and no thread here has a lock."""
    for writer in list(_OPEN):
        writer._let_go()


os.register_at_fork(after_in_child=_forked)


class TableWriter(object):
    """Writes rows of an output table: PAI's `tf.python_io.TableWriter`. The rows are in the table once the job has succeeded.

    Opening the table empties it. Opening it again drops what this process has written with the same slice_id before, and the
    earlier writer takes no more rows.

    Args:
        table: the name of one of the job's outputs.
        slice_id: a number from 0; every task that writes this table needs one of its own.
    Raises:
        TableError: the table is not one of the job's outputs ("table xxx not predefined"); or another task, or process, writes
            this slice.
    """

    def __init__(self, table: Any, slice_id: Any = 0, **ignored: Any) -> None:
        check_arguments("TableWriter", ignored, "table slice_id")
        self._name = text_of(table)
        slice_id = whole("slice_id", slice_id)
        if not 0 <= slice_id < 1 << 63:
            raise ValueError("slice_id=%d must be 0 or more" % slice_id)
        told = asking.asker().write(self._name, slice_id, asking.process())
        self._writing = told["writing"]
        for earlier in list(_OPEN):
            if earlier._writing in told["replaces"]:
                earlier._replace()
        if told["replaces"]:
            sys.stderr.write(
                "TableWriter: %s is opened again: what was written with slice_id=%d before is dropped\n"
                % (self._name, slice_id)
            )
        self._columns = [column for column in told["columns"] if not column["partition"]]
        self._held: List[Dict[str, Tuple[Any, Any]]] = []
        self._held_rows = 0
        self._names: List[str] = []
        self._rows = 0
        self._closed = self._replaced = self._ended = False
        self._lock, self._opener = threading.RLock(), os.getpid()
        _OPEN.add(self)

    def _replace(self) -> None:
        """Close this writer without sending its rows: another writer has its slice now."""
        # without taking the lock: a thread that holds it may be waiting for the host
        self._replaced = self._closed = True
        _OPEN.discard(self)

    def _let_go(self) -> None:
        self._held, self._held_rows, self._names = [], 0, []
        self._lock = threading.RLock()

    def write(self, values: Any, indices: Any = None, allow_type_cast: bool = False) -> None:
        """Add one row, or several.

        Args:
            values: one row: a tuple, a list or a 1-D array of single values. Several rows: a list, tuple or structured array
                of rows, a 2-D array, or an iterator of rows (`zip`, a generator).
            indices: the numbers, from 0, of the columns to which the values belong; None: all columns. Columns that are left
                out are null, and so is a value None.
            allow_type_cast: whether a value of another type is converted to its column's type, if it can be.
        Raises:
            ValueError: a row has more or fewer values than columns.
            TableWriteError: a column cannot hold a value.
        """
        with self._lock:
            if self._replaced:
                raise TableUseError(REPLACED % self._name)
            if self._closed:
                broker = asking.broker()
                if self._ended and broker is not None:
                    broker.late(self._name, "1 row more")
                raise ValueError("table %s: its writer is closed" % self._name)
            chosen = self._chosen(indices)
            given = columns_of(values, len(chosen), self._name)
            if given is None:
                return
            batch = {}
            for column, one in zip(chosen, given):
                batch[column["name"]] = as_column(self._name, column, one, self._rows, allow_type_cast)
            self._hold([column["name"] for column in chosen], batch)

    def _chosen(self, indices: Any) -> List[Dict[str, Any]]:
        if indices is None:
            return self._columns
        if isinstance(indices, (int, float, np.generic, str)):
            indices = [indices]
        out = []
        for index in indices:
            named = [column for column in self._columns if column["name"] == index] if isinstance(index, str) else []
            at = -1 if isinstance(index, str) else whole("indices", index)
            if not named and not -1 < at < len(self._columns):
                raise ValueError(
                    "table %s has %d columns (%s); there is none %r in indices"
                    % (self._name, len(self._columns), ", ".join(column["name"] for column in self._columns), index)
                )
            out.append(named[0] if named else self._columns[at])
        if len({column["name"] for column in out}) < len(out):
            raise ValueError("table %s: indices=%r names a column twice" % (self._name, list(indices)))
        return out

    def _hold(self, names: List[str], batch: Any) -> None:
        if self._held and names != self._names:
            self._flush()
        self._names = names
        self._held.append(batch)
        rows = len(batch[names[0]][0])
        self._held_rows += rows
        self._rows += rows
        if self._held_rows >= _FLUSH_ROWS or asking.broker() is None:
            self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        held, self._held, self._held_rows = self._held, [], 0
        rows = sum(len(batch[self._names[0]][0]) for batch in held)
        packed = [_packed(name, [batch[name] for batch in held], rows) for name in self._names]
        asker = asking.asker()
        for count, payload in packing.pieces(rows, packed, _FRAME_ROWS, _FRAME_BYTES):
            asker.put(self._writing, count, payload)

    def close(self) -> None:
        """Send the rows that are left. The host has every row when this returns. Closing a writer twice is fine.

        In a child of the process that has opened the writer, this closes the writer for the child only: its rows are sent,
        and other processes can go on writing.

        Raises:
            TableError: the host refuses rows.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            _OPEN.discard(self)
            self._flush()
            if self._opener == os.getpid():
                asking.asker().close(self._writing)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        self.close()


def _packed(name: str, parts: List[Tuple[Any, Any]], rows: int) -> Tuple[Dict[str, Any], List[Any]]:
    """Return (header, buffers) of a column, for `akrunner.wire.column_layout`. Args: parts: results of `as_column`, in order."""
    values = [one for one, _ in parts]
    if isinstance(values[0], list):
        header = {"form": "blob", "dtype": "bytes"}
        buffers: List[Any] = list(packing.cut(list(itertools.chain.from_iterable(values))))
    else:
        joined = values[0] if len(values) == 1 else np.concatenate(values)
        header, buffers = {"form": "numbers", "dtype": joined.dtype.name}, [np.ascontiguousarray(joined)]
    valid = None
    if any(there is not None for _, there in parts):
        valid = np.concatenate([np.ones(len(one), bool) if there is None else there for one, there in parts])
    return packing.with_nulls(dict(header, name=name, shape=[rows]), buffers, valid)
