"""Tables as a file's statements would leave them, while none of the statements is run.

::

    a table no statement has changed    is read from the store
    a table that a statement changes    is kept here: its columns, its partitions and, if they are few, its rows
    what cannot be known                raises `Unforeseen`: nothing is refused that a run might accept
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import pyarrow as pa

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.tables import ddl, layout, local
from akrunner.tables.local_output import fitted_to
from akrunner.tables.local_reading import fields_of
from akrunner.tables.names import Partition, TableName
from akrunner.tables.store import (
    Reading,
    TableInfo,
    TableOutput,
    TablePart,
    asked_text,
    check_keys,
    key_scalar,
    key_text,
    known_partitions,
    whole_partition,
)

#: the largest number of rows that are read from a table to compute a query; if there are more, the query is only checked
FEW_ROWS = 1_000
#: the largest number of rows of a statement that are kept
_MOST_ROWS = 100_000
_Key = tuple[str, str]
#: rows: either those that a table or a partition has in the store, or those that a statement has written
_Piece: TypeAlias = TableName | pa.RecordBatch


class Unforeseen(Exception):
    """Raised if the effect of a statement depends on rows that have not been read."""


@dataclass
class _Table:
    """A table that a statement has changed.

    Attributes:
        info: the table's definition; None if there is no such table any more.
        parts: the rows of each partition; a table without partitions has the one key ().
        vague: whether the rows are not known, and there may be further partitions.
        unknown: whether it is not even known if the table exists.
    """

    info: TableInfo | None = None
    parts: dict[Partition, list[_Piece]] = field(default_factory=dict)
    vague: bool = False
    unknown: bool = False


class RehearsedTables:
    """A store of this machine's tables, which takes changes without making them. See `store.TableStore`.

    Attributes:
        guessed: whether, since `begin`, rows were asked for that are not read here.
    """

    kind = "local"

    def __init__(self, base: local.LocalTables) -> None:
        self._base = base
        self.place = base.place
        self.guessed = False
        self._touched: dict[_Key, TableName] = {}
        self._tables: dict[_Key, _Table] = {}

    # -- statements

    def begin(self) -> None:
        """Note that a statement begins."""
        self.guessed = False
        self._touched.clear()

    def end(self) -> None:
        """Note that the statement is done.

        If it has read rows that are not known, the rows it has written are not known either.
        """
        for name in list(self._touched.values()) if self.guessed else []:
            if self.exists(name.whole):
                self._own(name).vague = True

    def forget(self, name: TableName) -> None:
        """Note that it is not known what became of a table."""
        self._tables[_key(name)] = _Table(unknown=True)

    def blur(self, name: TableName) -> None:
        """Note that a table's rows and partitions are not known any more; of a table that did not exist, nothing is known."""
        try:
            self._own(name.whole).vague = True
        except (ConfigError, Unforeseen):
            self.forget(name)

    def written(self, name: TableName) -> None:
        """Note that a job may write a table or a partition.

        Raises:
            ConfigError: the job cannot write it.
        """
        table = self._own(name)
        assert table.info is not None
        whole_partition(name, table.info)
        table.vague = True

    def is_made(self, name: TableName) -> bool:
        """Whether a table exists only because a statement makes it."""
        table = self._tables.get(_key(name))
        return table is not None and table.info is not None and not self._base.exists(name.whole)

    # -- looking

    def describe(self, name: TableName) -> TableInfo:
        self._touched[_key(name)] = name
        table = self._known(name)
        if table is None:
            return self._base.describe(name)
        return self._info(table, name, SourceError)

    def exists(self, name: TableName) -> bool:
        table = self._known(name)
        if table is None:
            return self._base.exists(name)
        if table.info is None:
            return False
        found = not name.partition or bool(self._fitting(table, name))
        if not found and table.vague:
            raise Unforeseen
        return found

    def count(self, name: TableName) -> int:
        table = self._known(name)
        if table is None:
            return self._base.count(name)
        with self._standing(table, name) as reading:
            if table.vague:
                raise Unforeseen
            return reading.rows

    def reading(self, name: TableName) -> Reading:
        table = self._known(name)
        reading = self._base.reading(name) if table is None else self._standing(table, name)
        reading.drawn = reading.drawn and reading.rows <= FEW_ROWS
        self.guessed = self.guessed or not reading.drawn
        return reading

    def read(
        self, name: TableName, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        return self.reading(name).read_and_close(columns, start, rows)

    def partitions(self, name: TableName) -> list[Partition]:
        table = self._known(name)
        if table is None:
            return self._base.partitions(name)
        if not self._info(table, name, SourceError).partitions:
            return []
        if table.vague:
            raise Unforeseen
        return sorted(self._fitting(table, name))

    def tables(self, project: str) -> list[str]:
        found = set(self._base.tables(project))
        for (owner, name), table in self._tables.items():
            if owner == project.lower():
                (found.add if table.info is not None else found.discard)(name)
        return sorted(found)

    def projects(self) -> list[str]:
        return self._base.projects()

    # -- writing

    def output(self, name: TableName, overwrite: bool = True) -> _Output:
        name = name.for_output()
        self._touched[_key(name)] = name
        table = self._known(name)
        if table is None:
            self._base.check_output(name)
            info = self._base.describe(name)
        else:
            info = self._info(table, name, SinkError)
        return _Output(self, name, info, whole_partition(name, info), overwrite)

    def check_output(self, name: TableName) -> None:
        self.output(name)

    def create(self, name: TableName, info: TableInfo, if_not_exists: bool = False) -> None:
        ddl.check_info(info)
        ddl.create_sql(name.table, info)
        if self.exists(name.whole):
            if if_not_exists:
                return
            raise SinkError(local.there_already(name))
        self._touched[_key(name)] = name
        self._tables[_key(name)] = _Table(info, {} if info.partitions else {(): []})

    def drop(self, name: TableName, if_exists: bool = False) -> None:
        table = self._known(name)
        there = os.path.isdir(layout.table_dir(self.place, name)) if table is None else table.info is not None
        if not there and not if_exists:
            raise SinkError(local.nothing_to_drop(name, self.tables(name.project), self.place))
        self._tables[_key(name)] = _Table()

    def rename(self, name: TableName, table: str) -> None:
        to = TableName.parse(f"odps://{name.project}/tables/{table}")
        own = self._own(name)
        other = self._known(to)
        if os.path.lexists(layout.table_dir(self.place, to)) if other is None else other.info is not None:
            raise SinkError(local.no_new_name(name, to))
        self._tables[_key(name)], self._tables[_key(to)] = _Table(), own

    def add_columns(self, name: TableName, columns: Sequence[pa.Field]) -> None:
        table = self._own(name)
        assert table.info is not None
        table.info = local.with_columns(name, table.info, columns)

    def add_partitions(self, names: Sequence[TableName], if_not_exists: bool = False) -> None:
        table = self._own(names[0])
        assert table.info is not None
        new: list[Partition] = []
        for name in names:
            partition = whole_partition(name, table.info)
            spelled = self._spelled(table, partition)
            if (spelled in table.parts or partition in new) and not if_not_exists:
                raise SinkError(local.partition_there(name))
            new.append(spelled)
        for partition in new:
            table.parts.setdefault(partition, [])

    def drop_partitions(self, names: Sequence[TableName], if_exists: bool = False) -> None:
        table = self._own(names[0])
        found: list[Partition] = []
        for name in names:
            fitting = self._fitting(table, name)
            if not fitting and not if_exists:
                if table.vague:
                    raise Unforeseen
                raise SinkError(f"{name} does not exist: {known_partitions(sorted(table.parts))}")
            found += fitting
        for partition in found:
            table.parts.pop(partition, None)

    def commit(self, outputs: Sequence[TableOutput]) -> None:
        for output in cast("Sequence[_Output]", outputs):
            table = self._own(output.name)
            partition = self._spelled(table, output.partition)
            kept = [] if output.overwrite else table.parts.get(partition, [])
            table.parts[partition] = [*kept, *(batch for part in output.parts for batch in part.batches)]

    # -- of one table

    def _known(self, name: TableName) -> _Table | None:
        """Return what is kept of a table; None if no statement has changed it.

        Raises:
            Unforeseen: it is not known whether the table exists.
        """
        table = self._tables.get(_key(name))
        if table is not None and table.unknown:
            raise Unforeseen
        return table

    def _own(self, name: TableName) -> _Table:
        """Return what is kept of a table, for a statement that is about to change it.

        Raises:
            SinkError: the table does not exist.
        """
        self._touched[_key(name)] = name
        table = self._known(name)
        if table is None:
            if not self._base.exists(name.whole):
                raise SinkError(local.no_table_yet(name, self.tables(name.project), self.place))
            info = self._base.describe(name.whole)
            every: list[Partition] = self._base.partitions(name.whole) if info.partitions else [()]
            table = self._tables[_key(name)] = _Table(info, {one: [name.at(one)] for one in every})
        self._info(table, name, SinkError)
        return table

    def _info(self, table: _Table, name: TableName, kind: type[SourceError] | type[SinkError]) -> TableInfo:
        if table.info is None:
            raise kind(local.no_table_yet(name, self.tables(name.project), self.place))
        return table.info

    def _fitting(self, table: _Table, name: TableName) -> list[Partition]:
        """Return the partitions that a name fits.

        Raises:
            SourceError: the table is not partitioned by the keys in the name.
        """
        info = self._info(table, name, SourceError)
        check_keys(name, info, SourceError)
        wanted = dict(name.partition)
        asked = {key.name: asked_text(name, key, wanted[key.name], SourceError) for key in info.keys if key.name in wanted}
        return [one for one in table.parts if asked.items() <= dict(_canonical(info, one)).items()]

    def _spelled(self, table: _Table, partition: Partition) -> Partition:
        """Return a partition as an existing one is spelled: "1" and "01" of a BIGINT are the same."""
        assert table.info is not None
        return next((one for one in table.parts if _canonical(table.info, one) == partition), partition)

    def _standing(self, table: _Table, name: TableName) -> _Standing:
        fitting = sorted(self._fitting(table, name))
        if name.partition and not fitting:
            if table.vague:
                raise Unforeseen
            raise SourceError(f"source: {name} does not exist: {known_partitions(sorted(table.parts))}")
        info = self._info(table, name, SourceError)
        return _Standing(self._base, name, info, [(one, piece) for one in fitting for piece in table.parts[one]], table.vague)


class _Standing(Reading):
    """One state of a table that statements have changed, to be read."""

    def __init__(
        self,
        base: local.LocalTables,
        name: TableName,
        info: TableInfo,
        pieces: Sequence[tuple[Partition, _Piece]],
        vague: bool,
    ) -> None:
        self.info, self.drawn = info, not vague
        self._name = name
        self._pieces: list[tuple[Partition, Reading | pa.RecordBatch]] = []
        for partition, piece in pieces:
            opened = base.reading(piece) if isinstance(piece, TableName) else piece
            self._pieces.append((partition, opened))
        self.rows = sum(one.rows if isinstance(one, Reading) else one.num_rows for _, one in self._pieces)

    def read(self, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        fields = fields_of(self._name, self.info, columns)
        stop = self.rows if rows is None else min(self.rows, start + rows)
        return self._read(fields, start, stop) if self.drawn else iter(())

    def _read(self, fields: Sequence[pa.Field], start: int, stop: int) -> Iterator[pa.RecordBatch]:
        at = 0
        for partition, piece in self._pieces:
            for batch in piece.read() if isinstance(piece, Reading) else [piece]:
                first, last = max(start - at, 0), min(stop - at, batch.num_rows)
                at += batch.num_rows
                if first < last:
                    yield _chosen(batch.slice(first, last - first), fields, dict(partition))

    def close(self) -> None:
        for _, piece in self._pieces:
            if isinstance(piece, Reading):
                piece.close()


def _chosen(batch: pa.RecordBatch, fields: Sequence[pa.Field], partition: dict[str, str]) -> pa.RecordBatch:
    """Return the columns that are asked for; columns that were added after the rows are null."""
    columns = []
    for one in fields:
        if one.name in partition:
            columns.append(pa.repeat(key_scalar(one, partition[one.name]), batch.num_rows))
        elif one.name in batch.schema.names:
            columns.append(batch.column(one.name))
        else:
            columns.append(pa.nulls(batch.num_rows, one.type))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([one.remove_metadata() for one in fields]))


class _Part:
    """Rows that a statement writes. See `store.TablePart`.

    Attributes:
        rows: how many were written.
        batches: the rows.
    """

    def __init__(self, output: _Output) -> None:
        self._output = output
        self.rows = 0
        self.batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            Unforeseen: they are too many to be kept.
        """
        self.batches.append(fitted_to(batch, self._output.info, str(self._output.name.whole), self.rows))
        self.rows += batch.num_rows
        if self.rows > _MOST_ROWS:
            raise Unforeseen

    def close(self) -> None:
        """Do nothing: all rows are kept already."""


class _Output:
    """An output that keeps the rows in memory. See `store.TableOutput`.

    Attributes:
        partition: the partition that is written; () for a table without partitions.
        overwrite: whether the rows replace those that are there.
        parts: the parts so far.
    """

    def __init__(self, store: RehearsedTables, name: TableName, info: TableInfo, partition: Partition, overwrite: bool) -> None:
        self._store, self.name, self.info, self.partition, self.overwrite = store, name, info, partition, overwrite
        self.parts: list[_Part] = []

    def part(self, key: str) -> TablePart:
        self.parts.append(_Part(self))
        return self.parts[-1]

    def restart(self) -> None:
        self.parts.clear()

    def commit(self) -> None:
        self._store.commit([self])

    def abort(self) -> None:
        """Do nothing: the rows are only in memory."""


def _key(name: TableName) -> _Key:
    return name.project, name.table


def _canonical(info: TableInfo, partition: Partition) -> Partition:
    return tuple((key.name, key_text(key, value)) for key, (_, value) in zip(info.keys, partition))


__all__ = ["FEW_ROWS", "RehearsedTables", "Unforeseen"]
