"""The rows that a job writes to a local table.

::

    part(key)      each task has a file of its own, ROOT/PROJECT/.TABLE.*.partial/NUMBER.parquet
    commit         finishes and syncs the files; then, under the lock, links the files that stay beside the new ones, and swaps
                   the directory with the directory of the table or the partition, for all outputs or for none (`renames`)
    abort, a kill  the directory is removed, and the table is as it was
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import decoded, first_wrong, truths_of
from akrunner.column_types import NUMBERS, Family, family_of
from akrunner.errors import DataError, WriteError
from akrunner.foreign import ours
from akrunner.io.formats import parquet
from akrunner.io.rename import sync
from akrunner.io.writers import Gate, Writer
from akrunner.schema import is_list, to_floats
from akrunner.tables import layout, types
from akrunner.tables.names import Partition, TableName
from akrunner.tables.renames import Move, carry_out, removed
from akrunner.tables.store import CHANGED, TableInfo
from akrunner.wire.near import nearest

#: a float differs from a decimal of it by no more than this share of it: a double has 15 to 17 digits that mean something
_SAME = 1e-12

if TYPE_CHECKING:
    from akrunner.tables.local import LocalTables


class LocalPart:
    """The rows that one task writes to a local table. See `store.TablePart`. Its file is made with its first rows.

    Attributes:
        rows: how many rows were written.
        path: of its file; "" if there is none.
    """

    def __init__(self, output: LocalOutput, number: int) -> None:
        self._output, self._number = output, number
        self._gate: Gate | None = None
        self._stream: IO[bytes] | None = None
        self._writer: Writer | None = None
        self._closed = False
        self.path = ""
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if self._closed:
            raise WriteError(f"output: {self._output.name}: rows were written to a part that is closed")
        fitted = fitted_to(batch, self._output.info, str(self._output.name.whole), self.rows)
        with self._output.told():
            if self._writer is None:
                self.path = os.path.join(self._output.staged(), f"{self._number}.new")
                self._stream = open(self.path, "xb")
                self._gate = Gate(self._stream)
                self._writer = parquet.FORMAT.writer(cast(IO[bytes], self._gate), self._output.schema)
            self._writer.write(fitted)
        self.rows += batch.num_rows

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._writer is None or self._stream is None:
            return
        with self._output.told():
            self._writer.close()
            sync(self._stream)
            self._stream.close()
        self._writer = None

    def drop(self) -> None:
        """Discard the rows, and remove the file."""
        self._closed = True
        if self._gate is not None:
            self._gate.shut()
        for one in (self._writer, self._stream):
            with contextlib.suppress(Exception):
                if one is not None:
                    one.close()
        self._writer = self._stream = None
        with contextlib.suppress(OSError):
            if self.path:
                os.remove(self.path)
        self.path = ""


class LocalOutput:
    """What a job writes to a local table or partition. See `store.TableOutput`.

    Attributes:
        schema: the columns of the files.
    """

    def __init__(
        self,
        store: LocalTables,
        name: TableName,
        info: TableInfo,
        partition: Partition,
        overwrite: bool,
        creates: bool = False,
    ) -> None:
        """Make an output; nothing is written yet.

        Args:
            creates: whether the output creates the table too.
        """
        self.name, self.info = name, info
        self.schema = pa.schema([field.remove_metadata() for field in info.columns])
        self._store, self._partition, self._overwrite = store, partition, overwrite
        self._creates = creates
        self._lock = threading.Lock()
        self._parts: dict[str, LocalPart] = {}
        self._made = 0
        self._stage: str | None = None
        self._over = False

    def part(self, key: str) -> LocalPart:
        with self._lock:
            if self._over:
                raise WriteError(f"output: {self.name} is committed, or given up")
            earlier = self._parts.pop(key, None)
            if earlier is not None:
                earlier.drop()
            self._made += 1
            self._parts[key] = LocalPart(self, self._made)
            return self._parts[key]

    def staged(self) -> str:
        """Return the directory that is going to be the table's, or the partition's; make it if it is missing."""
        with self._lock:
            if self._stage is None:
                self._stage = layout.stage(self._store.place, self.name)
            return self._stage

    def told(self) -> Any:
        return ours(WriteError, f"output: cannot write {self.name}", self._store.place)

    def restart(self) -> None:
        with self._lock:
            parts, self._parts = list(self._parts.values()), {}
        for part in parts:
            part.drop()

    def commit(self) -> None:
        commit(self._store, [self])

    def abort(self) -> None:
        self.restart()
        self._over = True
        if self._stage is not None:
            removed(self._stage)
            self._stage = None

    def finish(self) -> None:
        """Close the parts, so that all rows are on the disk."""
        for part in self._parts.values():
            part.close()
        self.staged()

    def moves(self) -> list[Move]:
        """Return the moves that put the rows in place. The caller holds the lock, and carries the moves out.

        Raises:
            WriteError: the table was dropped, or made anew with other columns, while rows were written.
            OSError: the files cannot be put into place.
        """
        folder = layout.table_dir(self._store.place, self.name)
        found = self._store.info_at(folder)
        if found is None and self._creates:
            return self._new_table(folder)
        if found is None or found != self.info:
            changed = "was dropped" if found is None else "was made anew with other columns"
            raise WriteError(f"output: {self.name.whole} {changed} while rows were written; they are given up")
        target = layout.place(self._store.place, self.name, self._partition)
        staged = self.staged()
        kept = [] if self._overwrite or not os.path.isdir(target) else layout.data_files(target)
        for number, old in enumerate(kept):
            _link(os.path.join(target, old), os.path.join(staged, _file_name(number)))
        self._name_parts(staged, len(kept))
        if os.path.isdir(target):
            _keep_others(target, staged)
        sql = os.path.join(folder, layout.TABLE_SQL)
        if not self._partition and os.path.exists(sql):
            shutil.copy2(sql, os.path.join(staged, layout.TABLE_SQL))
        elif not self._partition:
            self._store.write_sql(staged, self.name, self.info)
        shown = os.stat(target if os.path.isdir(target) else folder).st_mode & 0o777
        os.chmod(staged, shown)
        return [Move(target, staged)]

    def _name_parts(self, staged: str, number: int) -> None:
        """Rename the files of the parts, numbered from `number` in the order of their keys."""
        for key in sorted(self._parts, key=layout.natural):
            part = self._parts[key]
            if part.path:
                os.rename(part.path, os.path.join(staged, _file_name(number)))
                number += 1

    def _new_table(self, folder: str) -> list[Move]:
        """Return the moves that create the table and put the rows in it."""
        staged = self.staged()
        self._name_parts(staged, 0)
        if self._partition:
            # the directory of the partition moves into a directory for the table
            outer = layout.stage(self._store.place, self.name)
            inner = os.path.join(outer, *(layout.partition_dir(key, value) for key, value in self._partition))
            os.makedirs(os.path.dirname(inner), exist_ok=True)
            os.rename(staged, inner)
            removed(staged)
            self._stage = staged = outer
        self._store.write_sql(staged, self.name, self.info)
        return layout.puts(staged, folder)

    def done(self) -> None:
        """Mark the output as committed, and remove its directory."""
        self._over = True
        if self._stage is not None:
            removed(self._stage)
            self._stage = None


def commit(store: LocalTables, outputs: Sequence[LocalOutput]) -> None:
    """Commit all outputs, or none.

    Raises:
        WriteError: it failed.
    """
    for output in outputs:
        output.finish()
    if not outputs:
        return
    layout.make_root(store.place)
    moves: list[Move] = []
    with layout.locked(store.place, exclusive=True):
        for output in outputs:
            with output.told():
                moves += output.moves()
        with outputs[0].told():
            old = carry_out(store.place, moves)
            CHANGED.extend(str(output.name) for output in outputs)
    removed(old)
    for output in outputs:
        output.done()


def _file_name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _keep_others(target: str, staged: str) -> None:
    """Carry what people keep beside the rows (a README) over into the new directory."""
    for entry in layout.others(target):
        kept = os.path.join(staged, entry.name)
        if entry.is_dir(follow_symlinks=False):
            shutil.copytree(entry.path, kept, symlinks=True, copy_function=_link)
        elif entry.is_symlink():
            os.symlink(os.readlink(entry.path), kept)
        else:
            _link(entry.path, kept)


def _link(source: str, target: str) -> None:
    """Link a file under another name, or copy it if the file system has no links."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)


def fitted_to(batch: pa.RecordBatch, info: TableInfo, table: str, first: int = 0) -> pa.RecordBatch:
    """Return the batch with the table's columns, in the table's order and types; columns that it lacks are null.

    Args:
        first: the number of its first row, for messages.
    Raises:
        DataError: the table has no such column, or a value does not fit.
    """
    given: dict[str, pa.Array] = {}
    known = info.columns.names
    for name, column in zip(batch.schema.names, batch.columns):
        low = name.lower()
        if low in info.partitions:
            raise DataError(
                f"{table} is partitioned by {low}: its value stands in the table's name, /{low}=..., not in rows", column=name
            )
        if low not in known:
            raise DataError(f"{table} has no column {name!r} (it has {', '.join(known)}){nearest(low, known)}", column=name)
        if low in given:
            raise DataError(f"{table}: the column {name!r} is written twice", column=name)
        given[low] = column
    columns = []
    for field in info.columns:
        column = given[field.name] if field.name in given else pa.nulls(batch.num_rows, field.type)
        columns.append(_fitted(column, field, table, first))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([field.remove_metadata() for field in info.columns]))


def _fitted(column: pa.Array, field: pa.Field, table: str, first: int) -> pa.Array:
    if column.type != field.type:
        words = types.words_of(field)
        if not fits(column.type, field.type):
            raise DataError(
                f"column {field.name!r} of {table} is {words}, and {column.type} was written to it", column=field.name
            )
        try:
            column = _cast(column, field.type)
        except pa.ArrowException as e:
            row = first + first_wrong(len(column), lambda start, stop: _cast(column[start:stop], field.type), pa.ArrowException)
            raise DataError(
                f"row {row}, column {field.name!r} of {table} is {words}, and a value does not fit: {e}",
                row=row,
                column=field.name,
            ) from None
    if not field.nullable and column.null_count:
        row = first + int(truths_of(column.is_null()).argmax())
        raise DataError(
            f"row {row}, column {field.name!r} of {table} is NOT NULL, and a null was written to it", row=row, column=field.name
        )
    return column


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_floating(column.type) and pa.types.is_floating(target):
        return to_floats(column, target)
    if pa.types.is_integer(column.type) and pa.types.is_floating(target):
        # as in SQL: a whole number with more digits than a double has is rounded
        return column.cast(target, safe=False)
    if pa.types.is_integer(column.type) and pa.types.is_decimal(target):
        # Arrow refuses a decimal that is too short for the integer type, even if the values would fit
        column = column.cast(pa.decimal128(20, 0))
    made = column.cast(target)
    _check_same(column, made)
    return made


def _check_same(given: pa.Array, made: pa.Array) -> None:
    """Check what Arrow casts without a word: numbers to truths, floats to decimals, and times to dates.

    Raises:
        pa.ArrowInvalid: a value has changed.
    """
    given, made = decoded(given), decoded(made)
    while is_list(given.type) and is_list(made.type):
        given, made = pc.list_flatten(given), pc.list_flatten(made)
    if pa.types.is_struct(given.type) and pa.types.is_struct(made.type):
        for one, other in zip(given.flatten(), made.flatten()):
            _check_same(one, other)
        return
    if pa.types.is_timestamp(given.type) and pa.types.is_date(made.type):
        given = pc.local_timestamp(given) if given.type.tz is not None else given
        back = made.cast(given.type)
    elif pa.types.is_boolean(made.type) and not pa.types.is_null(given.type):
        back = made.cast(given.type)
    elif pa.types.is_floating(given.type) and pa.types.is_decimal(made.type):
        back = made.cast(given.type)
        # Arrow's way back may miss the nearest float; Python's does not
        rows = pc.indices_nonzero(pc.not_equal(back, given))
        given, made = given.take(rows), made.take(rows)
        back = to_floats(pa.array(list(map(float, made.to_pylist())), pa.float64()), given.type)
        # a column of many places may cut a float behind its last digit that means anything
        rows = pc.indices_nonzero(pc.greater(pc.abs(pc.subtract(back, given)), pc.multiply(pc.abs(given), _SAME)))
        given, made, back = given.take(rows), made.take(rows), back.take(rows)
    else:
        return
    row = pc.index(pc.equal(back, given), pa.scalar(False)).as_py()
    if row >= 0:
        raise pa.ArrowInvalid(f"{given[row].as_py()} would be {made[row].as_py()}")


def fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type may be written to a column of another: numbers to numbers, text to text, times to times."""
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return fits(given.value_type, wanted)
    if pa.types.is_nested(given) or pa.types.is_nested(wanted):
        return bool(pa.types.is_nested(given) and pa.types.is_nested(wanted))
    return _family(given) == _family(wanted) != ""


def _family(kind: pa.DataType) -> str:
    family = family_of(kind)
    if family in NUMBERS or family is Family.DECIMAL:
        return "number"
    if family in (Family.TEXT, Family.OCTETS):
        return "text"
    return "time" if family in (Family.MOMENT, Family.DATE) else ""


__all__ = ["LocalOutput", "LocalPart", "commit", "fits", "fitted_to"]
