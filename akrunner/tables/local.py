"""Tables as directories of Parquet files on this machine (`layout` says where each directory is).

Several processes may read and write the tables at once: a reader sees a table as it was before a job, or as it is after it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.tables import ddl, layout, types
from akrunner.tables.local_output import LocalOutput, commit
from akrunner.tables.local_reading import LocalReading
from akrunner.tables.names import Partition, TableName
from akrunner.tables.renames import Move, carry_out, removed
from akrunner.tables.sqltext import quoted_name
from akrunner.tables.store import (
    CHANGED,
    NOTHING_DROPPED,
    TableInfo,
    TableOutput,
    asked_text,
    check_keys,
    key_text,
    known_partitions,
    no_table,
    whole_partition,
)

#: the errors of a disk that is full or broken: no argument of the user's could mend them
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class LocalTables:
    """A store of tables on this machine. See `store.TableStore`."""

    kind = "local"

    def __init__(self, root: str) -> None:
        """Check the directory; nothing is made yet.

        Args:
            root: the directory of all projects; it is made when a table is first written.
        Raises:
            ConfigError: `root` is a file, or has a NUL byte in it.
        """
        self.place = os.path.abspath(root)
        if "\0" in root:
            raise ConfigError("AKRUNNER_TABLES: the directory's name has a NUL byte in it")
        if os.path.exists(self.place) and not os.path.isdir(self.place):
            raise ConfigError(f"AKRUNNER_TABLES: {self.place} is a file; name a directory")

    # -- looking

    def describe(self, name: TableName) -> TableInfo:
        with self._looking(name):
            return self._info(name)

    def exists(self, name: TableName) -> bool:
        with self._looking(name):
            info = self.info_at(layout.table_dir(self.place, name))
            return info is not None and (not name.partition or bool(self._fitting(name, info)))

    def count(self, name: TableName) -> int:
        with self.reading(name) as reading:
            return reading.rows

    def reading(self, name: TableName) -> LocalReading:
        with self._looking(name):
            info = self._info(name)
            partitions = self._fitting(name, info)
            if name.partition and not partitions:
                raise SourceError(f"source: {name} does not exist: {self._known_partitions(name.whole, info)}")
            return LocalReading(self.place, name, info, partitions)

    def read(
        self, name: TableName, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        return self.reading(name).read_and_close(columns, start, rows)

    def partitions(self, name: TableName) -> list[Partition]:
        with self._looking(name):
            info = self._info(name)
            return [one for one, _ in self._fitting(name, info)] if info.partitions else []

    def tables(self, project: str) -> list[str]:
        with ours(SourceError, f"source: cannot look into {self.place}"):
            # raises an error for a name that no project can have
            whole = TableName.parse(f"odps://{project}/tables/any")
            folder = os.path.dirname(layout.table_dir(self.place, whole))
            with layout.locked(self.place, exclusive=False):
                return layout.visible(folder)

    def projects(self) -> list[str]:
        with ours(SourceError, f"source: cannot look into {self.place}"):
            return [name for name in layout.visible(self.place) if name != layout.BUCKETS]

    @contextlib.contextmanager
    def _looking(self, name: TableName) -> Iterator[None]:
        with ours(SourceError, f"source: cannot read {name}"), layout.locked(self.place, exclusive=False):
            yield

    def info_at(self, folder: str) -> TableInfo | None:
        """Return the definition of the table in a directory; None if there is no table.

        Raises:
            SourceError: the table's files do not give a definition.
        """
        path = os.path.join(folder, layout.TABLE_SQL)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return self._found(folder)
        try:
            info = ddl.parse_create(text.strip().removesuffix(";")).info
        except (ConfigError, UnicodeDecodeError) as e:
            raise SourceError(f"source: {path} is to hold the table's CREATE TABLE: {e}") from None
        if info is None:
            raise SourceError(f"source: {path} is to hold the table's CREATE TABLE, with its columns")
        return info

    def _found(self, folder: str) -> TableInfo | None:
        """Return the definition of a table in a directory that has Parquet files but no CREATE TABLE; None if it has no
        Parquet files.
        """
        if not os.path.isdir(folder):
            return None
        import pyarrow.parquet as pq

        names = layout.partition_columns(folder)
        for _, below in layout.partitions_below(folder, names):
            for file in layout.data_files(below):
                path = os.path.join(below, file)
                with ours(SourceError, f"source: cannot read {path} as parquet (is it whole?)"):
                    schema = types.as_columns(pq.read_schema(path))
                columns = pa.schema([field for field in schema if field.name not in names])
                info = TableInfo(columns, names)
                ddl.check_info(info)
                return info
        return None

    def _info(self, name: TableName) -> TableInfo:
        found = self.info_at(layout.table_dir(self.place, name))
        if found is None:
            raise SourceError(self._no_table(name))
        return found

    def _no_table(self, name: TableName) -> str:
        return no_table_yet(name, layout.visible(os.path.join(self.place, name.project)), self.place)

    def _fitting(self, name: TableName, info: TableInfo) -> list[layout.Placed]:
        """Return all existing partitions that a name fits.

        Raises:
            SourceError: the table is not partitioned by the keys in the name, or its directory has files or partitions of
                another layout.
        """
        check_keys(name, info, SourceError)
        wanted = dict(name.partition)
        asked = {key.name: asked_text(name, key, wanted[key.name], SourceError) for key in info.keys if key.name in wanted}
        folder = layout.table_dir(self.place, name)
        if not info.partitions:
            stray = layout.partition_columns(folder)
            if stray:
                raise SourceError(
                    f"source: {name.whole} is not partitioned, and {folder} has directories as if by {', '.join(stray)}"
                )
        else:
            loose = layout.data_files(folder)
            if loose:
                raise SourceError(
                    f"source: {name.whole} is partitioned by {', '.join(info.partitions)}, and "
                    f"{os.path.join(folder, loose[0])} is in none of its partitions; move it to one, {info.partitions[0]}=..."
                )
        every = layout.partitions_below(folder, info.partitions)
        if not info.partition_types:
            return [one for one in every if all(asked.get(key, value) == value for key, value in one[0])]
        found = []
        for partition, path in every:
            with _odd_key(path):
                spelled = {key.name: key_text(key, value) for key, (_, value) in zip(info.keys, partition)}
            if all(spelled[key] == value for key, value in asked.items()):
                found.append((partition, path))
        return found

    def _known_partitions(self, name: TableName, info: TableInfo) -> str:
        every = layout.partitions_below(layout.table_dir(self.place, name), info.partitions)
        return known_partitions([one for one, _ in every])

    # -- writing

    def output(self, name: TableName, overwrite: bool = True) -> LocalOutput:
        with self._writing(name.for_output()):
            return LocalOutput(self, name, *self._checked(name), overwrite)

    def check_output(self, name: TableName) -> None:
        with self._writing(name.for_output()):
            self._checked(name)

    def _checked(self, name: TableName) -> tuple[TableInfo, Partition]:
        """Return the definition of a table, and the partition that is to be written.

        Raises:
            SinkError: there is no such table, or the name does not hold one whole partition.
            SourceError: the directory has files that cannot belong to a table.
        """
        info = self._described(name)
        partition = whole_partition(name, info)
        with layout.locked(self.place, exclusive=False):
            place = layout.place(self.place, name, partition)
            if os.path.isdir(place):
                layout.data_files(place)
        return info, partition

    def creating(self, name: TableName, info: TableInfo) -> LocalOutput:
        """Return an output that also creates its table: `commit` puts the table and its rows in place, both or neither.

        Raises:
            SinkError: the table exists.
        """
        ddl.check_info(info)
        with self._writing(name.for_output()):
            with layout.locked(self.place, exclusive=False):
                self._check_new(name)
            return LocalOutput(self, name, info, whole_partition(name, info), True, creates=True)

    def _check_new(self, name: TableName) -> None:
        if self.info_at(layout.table_dir(self.place, name)) is not None:
            raise SinkError(there_already(name))

    def commit(self, outputs: Sequence[TableOutput]) -> None:
        commit(self, cast("Sequence[LocalOutput]", outputs))

    def create(self, name: TableName, info: TableInfo, if_not_exists: bool = False) -> None:
        ddl.check_info(info)
        with self._writing(name):
            staged = layout.stage(self.place, name)
            try:
                self.write_sql(staged, name, info)
                with layout.locked(self.place, exclusive=True):
                    target = layout.table_dir(self.place, name)
                    if not if_not_exists:
                        self._check_new(name)
                    if self.info_at(target) is None:
                        removed(carry_out(self.place, layout.puts(staged, target)))
                        CHANGED.append(str(name.whole))
            finally:
                removed(staged)

    def write_sql(self, folder: str, name: TableName, info: TableInfo) -> None:
        with open(os.path.join(folder, layout.TABLE_SQL), "w", encoding="utf-8") as file:
            file.write(ddl.create_sql(name.table, info) + "\n")

    def drop(self, name: TableName, if_exists: bool = False) -> None:
        target = layout.table_dir(self.place, name)
        with self._writing(name):
            with layout.locked(self.place, exclusive=False):
                found = os.path.isdir(target)
            if not found:
                if if_exists:
                    return
                raise SinkError(nothing_to_drop(name, layout.visible(os.path.join(self.place, name.project)), self.place))
            self._take_away([target])
            CHANGED.append(f"{name.whole} (dropped)")

    def _take_away(self, targets: list[str]) -> None:
        """Remove directories, for all readers at the same moment: all of them, or none."""
        with layout.locked(self.place, exclusive=True):
            for target in targets:
                if not os.path.lexists(target):
                    raise SinkError(f"{target} was dropped meanwhile; {NOTHING_DROPPED}")
            old = carry_out(self.place, [Move(target) for target in targets])
        removed(old)

    def rename(self, name: TableName, table: str) -> None:
        to = TableName.parse(f"odps://{name.project}/tables/{table}")
        with self._writing(name), layout.locked(self.place, exclusive=True):
            info = self.info_at(layout.table_dir(self.place, name))
            if info is None:
                raise SinkError(self._no_table(name))
            if os.path.lexists(layout.table_dir(self.place, to)):
                raise SinkError(no_new_name(name, to))
            os.rename(layout.table_dir(self.place, name), layout.table_dir(self.place, to))
            CHANGED.append(f"{name.whole} (is {to} now)")

    def add_columns(self, name: TableName, columns: Sequence[pa.Field]) -> None:
        with self._writing(name), layout.locked(self.place, exclusive=True):
            folder = layout.table_dir(self.place, name)
            info = self.info_at(folder)
            if info is None:
                raise SinkError(self._no_table(name))
            more = with_columns(name, info, columns)
            staged = layout.stage(self.place, name)
            try:
                self.write_sql(staged, name, more)
                os.replace(os.path.join(staged, layout.TABLE_SQL), os.path.join(folder, layout.TABLE_SQL))
                CHANGED.append(str(name.whole))
            finally:
                removed(staged)

    def add_partitions(self, names: Sequence[TableName], if_not_exists: bool = False) -> None:
        with self._writing(names[0]):
            info = self._described(names[0])
            partitions = [whole_partition(name, info) for name in names]
            staged = layout.stage(self.place, names[0])
            try:
                with layout.locked(self.place, exclusive=True):
                    places = [layout.place(self.place, names[0], one) for one in partitions]
                    for number, (name, place) in enumerate(zip(names, places)):
                        if (os.path.isdir(place) or place in places[:number]) and not if_not_exists:
                            raise SinkError(partition_there(name))
                    wanted = [place for place in dict.fromkeys(places) if not os.path.isdir(place)]
                    moves = [Move(place, os.path.join(staged, str(number))) for number, place in enumerate(wanted)]
                    for move in moves:
                        os.mkdir(str(move.staged))
                    old = carry_out(self.place, moves)
                CHANGED.extend(str(name) for name in names)
                removed(old)
            finally:
                removed(staged)

    def drop_partitions(self, names: Sequence[TableName], if_exists: bool = False) -> None:
        with self._writing(names[0]):
            info = self._described(names[0])
            found: list[str] = []
            with layout.locked(self.place, exclusive=False):
                for name in names:
                    if not name.partition:
                        raise SinkError(f"drop partition: {name} names no partition")
                    fitting = [path for _, path in self._fitting(name, info)]
                    if not fitting and not if_exists:
                        raise SinkError(f"{name} does not exist: {self._known_partitions(name.whole, info)}")
                    found += fitting
            self._take_away(list(dict.fromkeys(found)))
            CHANGED.extend(f"{name} (dropped)" for name in names)

    def _described(self, name: TableName) -> TableInfo:
        with layout.locked(self.place, exclusive=False):
            info = self.info_at(layout.table_dir(self.place, name))
        if info is None:
            raise SinkError(self._no_table(name))
        return info

    @contextlib.contextmanager
    def _writing(self, name: TableName) -> Iterator[None]:
        with ours(SinkError, f"output: {name}", self.place):
            try:
                yield
            except OSError as e:
                if e.errno not in _FULL:
                    raise
                with ours(WriteError, f"output: cannot write {name}", self.place):
                    raise


def no_table_yet(name: TableName, there: Sequence[str], place: str) -> str:
    """Return the error message for a table that does not exist, with the commands that make it.

    Args:
        there: names of the tables of its project.
    """
    keys = ", ".join(f"{quoted_name(key)} STRING" for key, _ in name.partition)
    by = f" PARTITIONED BY ({keys})" if keys else ""
    return (
        f'{no_table(name, there, _where(place))}; make it with `akrunner tables sql "CREATE TABLE {name.sql} (name TYPE, '
        f'...){by}"`, its types '
        f"BIGINT, DOUBLE, STRING, ..., or from a file with `akrunner tables put FILE {name.whole}`"
    )


def nothing_to_drop(name: TableName, there: Sequence[str], place: str) -> str:
    return f"{no_table(name, there, _where(place))}; {NOTHING_DROPPED}"


def _where(place: str) -> str:
    return f"in {place} (AKRUNNER_TABLES)"


def there_already(name: TableName) -> str:
    return (
        f"{name.whole} exists; CREATE TABLE IF NOT EXISTS leaves it as it is, and `akrunner tables drop {name.sql}` removes it"
    )


def no_new_name(name: TableName, to: TableName) -> str:
    return f"{to} exists, and cannot be the new name of {name.whole}"


def partition_there(name: TableName) -> str:
    return f"{name} exists; ADD IF NOT EXISTS PARTITION leaves it as it is"


def with_columns(name: TableName, info: TableInfo, columns: Sequence[pa.Field]) -> TableInfo:
    """Return the definition of a table with further columns.

    Raises:
        ConfigError: the table cannot have these columns.
    """
    more = dataclasses.replace(info, columns=pa.schema([*info.columns, *columns]))
    ddl.check_info(more)
    if any(not one.nullable for one in columns):
        raise SinkError(f"{name.sql}: a column that is added is null in the rows that are there, and cannot be NOT NULL")
    return more


@contextlib.contextmanager
def _odd_key(path: str) -> Iterator[None]:
    """Turn a SinkError of the block into a SourceError that names the directory of the partition.

    Raises:
        SourceError: the value in the directory's name is none of its column's type.
    """
    try:
        yield
    except SinkError as e:
        raise SourceError(f"source: {path}: {e}; rename or remove this directory") from None
