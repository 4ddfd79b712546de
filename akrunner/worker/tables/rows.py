"""The rows of one range of one table, as chunks from a spool; and the choice of a reader's columns and rows."""

from __future__ import annotations

import bisect
import collections
import difflib
import os
import threading
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from akrunner.worker import chunks
from akrunner.worker.tables import asking
from akrunner.worker.tables.broker import CHUNK
from akrunner.worker.tables.errors import NoSuchColumn, TableError
from akrunner.worker.waits import timing

#: a chunk in a spool: its position and size in bytes, its first row, its number of rows
_Place = collections.namedtuple("_Place", "at size first rows")


class Table(object):
    """A part of a table.

    Attributes:
        name: the table's name.
        columns: [{"name", "type", "dtype", ...}], in the order in which they are read.
        start, stop: the part's first row, and the row after its last one, as numbers of the table's rows.
    Raises:
        TableError: there is no such table, or column.
        ValueError: there is no such slice.
    """

    def __init__(self, name: Any, selected: Any = "", excluded: Any = "", slice_id: Any = 0, slice_count: Any = 1) -> None:
        self.name = text_of(name)
        told = asking.asker().look(self.name)
        self.columns = chosen(self.name, told["columns"], selected, excluded)
        first, last = sliced(told["rows"], slice_id, slice_count)
        self.start, self.stop = told["start"] + first, told["start"] + last

    def rows(self) -> Rows:
        """Return the part's rows, which can be read as chunks."""
        return Rows(self.name, self.columns, self.start, self.stop)


def text_of(name: Any) -> str:
    """Return a table's name, given as a str, bytes, tensor, array, or a list of one of these."""
    if hasattr(name, "numpy"):
        name = name.numpy()
    if isinstance(name, np.ndarray) and name.shape == ():
        name = name.item()
    if isinstance(name, (list, tuple)) and len(name) == 1:
        name = name[0]
    if isinstance(name, bytes):
        name = name.decode("utf-8")
    if not isinstance(name, str):
        raise TypeError("a table's name must be text, not %s" % type(name).__name__)
    if name.encode("utf-8", "replace").decode("utf-8") != name:
        raise ValueError("%.60r is no text that UTF-8 can say" % name)
    return name.strip()


def whole(name: str, value: Any) -> int:
    """Return a whole number, given as any number or as text.

    Raises:
        ValueError: it is not one; the error names the argument.
    """
    try:
        made = int(value)
        if isinstance(value, (str, bytes)) or made == value:
            return made
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError("%s=%.60r must be a whole number" % (name, value))


def check_arguments(what: str, given: Iterable[str], known: str) -> None:
    """Check that no argument is misspelt.

    Other unknown arguments are ignored: PAI's readers and writers may have them in another version. But a misspelt slice
    argument, for example, would make every worker read every row.

    Args:
        what: the reader or writer, for the error.
        given: the names of the unknown arguments.
        known: the names of the known arguments, in one text.
    Raises:
        TypeError: a name is similar to a known one.
    """
    for name in given:
        near = difflib.get_close_matches(name, known.split(), 1, 0.75)
        if near:
            raise TypeError("%s has no argument %s; did you mean %s?" % (what, name, near[0]))


#: arguments that every reader has
READ_BY = "selected_cols excluded_cols slice_id slice_count num_threads capacity"


def sliced(rows: int, slice_id: Any, slice_count: Any) -> Tuple[int, int]:
    """Return a slice's first row, and the row after its last one.

    Slices are contiguous, and the first `rows % slice_count` of them have one row more than the others.
    """
    slice_id, slice_count = whole("slice_id", slice_id), whole("slice_count", slice_count)
    if slice_count < 1 or not 0 <= slice_id < slice_count:
        raise ValueError("slice_id=%d must be from 0 to slice_count - 1, and slice_count is %d" % (slice_id, slice_count))
    size, more = divmod(rows, slice_count)
    return slice_id * size + min(slice_id, more), (slice_id + 1) * size + min(slice_id + 1, more)


def names_of(given: Any) -> List[str]:
    """Return names of columns, given as "a, b" or as a list."""
    if given is None:
        return []
    if isinstance(given, bytes):
        given = given.decode("utf-8")
    parts = given.split(",") if isinstance(given, str) else list(given)
    return [part.strip().strip("`") for part in parts if part.strip()]


def chosen(table: str, columns: List[Dict[str, Any]], selected: Any, excluded: Any) -> List[Dict[str, Any]]:
    """Return the columns to read: the selected ones, in that order; or all but the excluded ones and the partition columns."""
    selected, excluded = names_of(selected), names_of(excluded)
    if selected and excluded:
        raise ValueError("table %s: give selected_cols or excluded_cols, not both" % table)
    known = {column["name"].lower(): column for column in columns}
    for name in selected + excluded:
        if name.lower() not in known:
            raise NoSuchColumn("table %s has no column %r; it has %s" % (table, name, ", ".join(c["name"] for c in columns)))
    if selected:
        return [known[name.lower()] for name in selected]
    left = {name.lower() for name in excluded}
    out = [c for c in columns if not c["partition"] and c["name"].lower() not in left]
    if not out:
        raise NoSuchColumn("table %s: excluded_cols leaves no column of %s" % (table, ", ".join(c["name"] for c in columns)))
    return out


class Rows(object):
    """The chunks of a range, in order. Any thread, and any process forked from this one, may read them.

    Attributes:
        count: the number of rows of the range.
    """

    def __init__(self, table: str, columns: List[Dict[str, Any]], start: int, stop: int) -> None:
        # a column that is read twice is requested once
        names = list(collections.OrderedDict((column["name"], None) for column in columns))
        self._schema = [{"name": column["name"], "dtype": column["dtype"], "shape": []} for column in columns]
        self._asked = (table, names, start, stop)
        self.count = stop - start
        self._places: List[_Place] = []
        self._firsts: List[int] = []
        self._end = 0
        self._known = 0
        self._whole = False
        self._spool: Optional[int] = None
        self._fd = -1
        self._lock, self._pid = threading.Lock(), os.getpid()

    def __del__(self) -> None:
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)

    def __getstate__(self) -> Dict[str, Any]:
        # for a process that is not forked from this one: it requests the rows, and opens the spool, by itself
        state = dict(self.__dict__, _places=[], _firsts=[], _end=0, _known=0, _whole=False, _spool=None, _fd=-1)
        del state["_lock"], state["_pid"]
        return state

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._pid = threading.Lock(), os.getpid()

    def _own(self) -> threading.Lock:
        if self._pid != os.getpid():
            # this process was forked; the thread that held the lock does not exist here
            self._lock, self._pid = threading.Lock(), os.getpid()
        return self._lock

    def chunk(self, number: int) -> Optional[Tuple[int, int, Dict[str, Tuple[Any, Any]]]]:
        """Wait for a chunk, and return (first row, number of rows, {column: (values, valid)}); None after the last chunk.

        Raises:
            TableError: the host cannot send the rows, or the spool is damaged.
            OSError: the rows cannot be spooled.
        """
        with timing.spending("table"):
            place = self._place(number)
            if place is None:
                return None
            payload = _exactly(self._fd, place.size, place.at)
        rows, columns = chunks.masked(payload, {c["name"]: c for c in self._schema}.values())
        if rows != place.rows:
            raise TableError("a chunk of %d rows holds %d" % (place.rows, rows))
        return place.first, rows, columns

    def find(self, row: int) -> int:
        """Return the number of the chunk that contains a row; the number after the last chunk's if none does."""
        while not self._places or row >= self._places[-1].first + self._places[-1].rows:
            if self._place(len(self._places)) is None:
                return len(self._places)
        return bisect.bisect_right(self._firsts, row) - 1

    def chunks(self, number: int = 0) -> Iterator[Tuple[int, int, Dict[str, Tuple[Any, Any]]]]:
        """Yield all chunks from a number on."""
        while True:
            got = self.chunk(number)
            if got is None:
                return
            yield got
            number += 1

    def _place(self, number: int) -> Optional[_Place]:
        with self._own():
            while number >= len(self._places):
                if self._whole and len(self._places) >= self._known:
                    return None
                if len(self._places) >= self._known:
                    self._ask()
                    continue
                size, rows = CHUNK.unpack(_exactly(self._fd, CHUNK.size, self._end))
                first = self._places[-1].first + self._places[-1].rows if self._places else 0
                self._places.append(_Place(self._end + CHUNK.size, size, first, rows))
                self._firsts.append(first)
                self._end += CHUNK.size + size
            return self._places[number]

    def _ask(self) -> None:
        asker = asking.asker()
        if self.count <= 0:
            self._whole = True
            return
        if self._spool is None:
            table, names, start, stop = self._asked
            told = asker.read(table, names, start, stop)
            self._spool = told["spool"]
            self._fd = os.open(told["path"], os.O_RDONLY | os.O_CLOEXEC)
        told = asker.more(self._spool, len(self._places))
        self._known, self._whole = told["chunks"], told["whole"]


def _exactly(fd: int, size: int, at: int) -> bytes:
    parts = []
    while size:
        part = os.pread(fd, size, at)
        if not part:
            raise TableError("a spool of a table's rows is cut short: is its disk full?")
        parts.append(part)
        at += len(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
