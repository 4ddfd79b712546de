"""PAI's `TableReader`: reads rows of a table as tuples, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from akrunner.worker.tables import errors
from akrunner.worker.tables.rows import READ_BY, Table, check_arguments, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: kind of a numpy type -> the Python type
_PYTHON = {"b": bool, "i": int, "u": int, "f": float}


class Records(List[Any]):
    """A list of rows as tuples, which also has the attributes of PAI's record array.

    `records["column"]` is an array of one column.

    Attributes:
        names: the names of the columns.
        dtype, shape: those that the record array has.
    """

    def __init__(self, rows: Iterable[Any], columns: List[Dict[str, Any]]) -> None:
        super(Records, self).__init__(rows)
        self._columns = columns

    @property
    def names(self) -> Tuple[str, ...]:
        return tuple(column["name"] for column in self._columns)

    @property
    def dtype(self) -> np.dtype[Any]:
        kinds = [object if column["dtype"] == "bytes" else column["dtype"] for column in self._columns]
        return np.dtype([(name, kind) for name, kind in zip(_unique(self.names), kinds)])

    @property
    def shape(self) -> Tuple[int]:
        return (len(self),)

    @property
    def size(self) -> int:
        return len(self)

    def tolist(self) -> List[Any]:
        return list(self)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, str):
            where = self.names.index(at)
            values = [row[where] for row in self]
            kind = self.dtype[where] if None not in values else object
            return np.array(values, kind)
        got = super(Records, self).__getitem__(at)
        return Records(got, self._columns) if isinstance(at, slice) else got


def _unique(names: Sequence[str]) -> List[str]:
    return [name if names.index(name) == i else "%s_%d" % (name, i) for i, name in enumerate(names)]


class TableReader(object):
    """Reads rows of a table in Python: PAI's `tf.python_io.TableReader`.

    Args:
        table: the table's name, which may end in ?start=A&end=B.
        selected_cols: the columns to read, "a,b", in that order.
        excluded_cols: in place of selected_cols, the columns to leave out. If neither is given, all columns are read but
            those by which the table is partitioned.
        slice_id, slice_count: read slice number slice_id, from 0, of slice_count slices of the rows.
        num_threads, capacity: ignored.
    Attributes:
        start_pos, end_pos: the slice's first row, and the row after its last one, as numbers of the table's rows.
        offset_pos: the number of the next row to be read.
    Raises:
        TableError: the job has no such table, or the table has no such column.
    """

    #: whether text is str, as in common_io, or bytes, as in TensorFlow
    TEXT = False

    def __init__(
        self, table: Any, selected_cols: Any = "", excluded_cols: Any = "", slice_id: Any = 0, slice_count: Any = 1,
        num_threads: int = 0, capacity: int = 0, **ignored: Any,
    ) -> None:  # fmt: skip
        check_arguments("TableReader", ignored, "table " + READ_BY)
        self._table = Table(table, selected_cols, excluded_cols, slice_id, slice_count)
        self._rows = self._table.rows()
        self.start_pos: int = self._table.start
        self.end_pos: int = self._table.stop
        self._at = 0
        self._chunk: Optional[Tuple[int, List[Any]]] = None
        self._closed = False

    @property
    def offset_pos(self) -> int:
        return self.start_pos + self._at

    def read(self, num_records: Any = 1, allow_smaller_final_batch: bool = False) -> Records:
        """Return the next rows as a list of tuples. Text is bytes (in common_io: str), and a null is None.

        Args:
            num_records: how many rows; there are fewer only if fewer are left.
            allow_smaller_final_batch: ignored: the last rows always come, however few they are.
        Raises:
            OutOfRangeException: no row is left. `common_io.exception`, `tf.errors` and `tf.python_io` have this same exception.
        """
        self._check()
        num_records = whole("num_records", num_records)
        if num_records < 1:
            raise ValueError("TableReader.read: num_records=%d must be at least 1" % num_records)
        out: List[Any] = []
        while len(out) < num_records:
            first, rows = self._tuples()
            if rows is None:
                break
            at = self._at - first
            some = rows[at : at + num_records - len(out)]
            out += some
            self._at += len(some)
        if not out:
            raise errors.out_of_range()
        return Records(out, self._table.columns)

    def _tuples(self) -> Tuple[int, Optional[List[Any]]]:
        """Return (first row, rows as tuples) of the chunk that contains the next row; (0, None) at the end."""
        if self._at >= self._rows.count:
            return 0, None
        if self._chunk is None or not self._chunk[0] <= self._at < self._chunk[0] + len(self._chunk[1]):
            # there is such a chunk, as the row is within the range
            found: Any = self._rows.chunk(self._rows.find(self._at))
            first, _, columns = found
            values = [self._listed(column, *columns[column["name"]]) for column in self._table.columns]
            self._chunk = first, list(zip(*values))
        return self._chunk

    def _listed(self, column: Dict[str, Any], values: NDArray[Any], valid: Optional[NDArray[Any]]) -> List[Any]:
        """Return a column as a list of Python values."""
        out: List[Any] = values.tolist()
        if self._python_type(column) is str:
            out = [value.decode("utf-8", "replace") for value in out]
        if valid is not None:
            out = [value if there else None for value, there in zip(out, valid.tolist())]
        return out

    def seek(self, offset: Any = 0) -> None:
        """Go to a row, counted from the slice's first row. Raises: OutOfRangeException: it is outside of the slice."""
        self._check()
        offset = whole("offset", offset)
        if offset < 0 or offset > self._rows.count:
            raise errors.out_of_range()
        self._at = offset

    def get_row_count(self) -> int:
        """Return the number of rows of the slice."""
        return self._rows.count

    def get_schema(self) -> Any:
        """Return a record array of the columns that are read: `colname`, `typestr` (MaxCompute's type), `pythontype`."""
        rows = [(c["name"], c["type"], self._python_type(c)) for c in self._table.columns]
        return np.array(rows, dtype=[("colname", "O"), ("typestr", "O"), ("pythontype", "O")]).view(np.recarray)

    def _python_type(self, column: Dict[str, Any]) -> type:
        if column["dtype"] == "bytes":
            return str if self.TEXT and not column["type"].lower().startswith("binary") else bytes
        return _PYTHON[np.dtype(column["dtype"]).kind]

    def close(self) -> None:
        """Close the reader; closing it twice is fine. The rows stay in the spool, for the next reader of the same range."""
        self._closed = True
        self._chunk = None

    def _check(self) -> None:
        if self._closed:
            raise ValueError("table %s: its reader is closed" % self._table.name)

    def __enter__(self) -> TableReader:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows that are left, one by one."""
        while True:
            first, rows = self._tuples()
            if rows is None:
                return
            for row in rows[self._at - first :]:
                self._at += 1
                yield row


class TextTableReader(TableReader):
    """The `TableReader` of common_io, which returns text as str."""

    TEXT = True
