"""Tables as directories of Parquet files on this machine (`layout` has where each is).

Several processes read and write them at once: what is read is a table as it was before a job, or after it.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Any, Iterator, List, Optional, Sequence, cast

import pyarrow as pa

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.schema import nearest
from akrunner.tables import ddl, layout, types
from akrunner.tables.local_output import LocalOutput, commit
from akrunner.tables.local_reading import LocalReading
from akrunner.tables.names import Partition, TableName
from akrunner.tables.store import NOTHING_DROPPED, TableInfo, TableOutput

#: of a disk that takes no more, or is broken: nothing an argument could mend
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class LocalTables:
    """See `store.TableStore`."""

    kind = "local"

    def __init__(self, root: str) -> None:
        """Args: root: the directory of all projects; it is made when something is first written."""
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
        self, name: TableName, columns: Optional[Sequence[str]] = None, start: int = 0, rows: Optional[int] = None
    ) -> Iterator[pa.RecordBatch]:
        reading = self.reading(name)
        return _until_read(reading, reading.read(columns, start, rows))

    def partitions(self, name: TableName) -> List[Partition]:
        with self._looking(name):
            info = self._info(name)
            return [one for one, _ in self._fitting(name, info)] if info.partitions else []

    def tables(self, project: str) -> List[str]:
        with ours(SourceError, f"source: cannot look into {self.place}"):
            # a name that is no project's has no tables
            whole = TableName.parse(f"odps://{project}/tables/any")
            return layout.visible(os.path.dirname(layout.table_dir(self.place, whole)))

    def projects(self) -> List[str]:
        with ours(SourceError, f"source: cannot look into {self.place}"):
            return [name for name in layout.visible(self.place) if name != layout.BUCKETS]

    @contextlib.contextmanager
    def _looking(self, name: TableName) -> Iterator[None]:
        with ours(SourceError, f"source: cannot read {name}"), layout.locked(self.place, exclusive=False):
            yield

    def info_at(self, folder: str) -> Optional[TableInfo]:
        """What the table in a directory is; None: there is none. Raises: SourceError: its files do not say."""
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

    def _found(self, folder: str) -> Optional[TableInfo]:
        """A directory somebody put Parquet files into."""
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
        return (
            f'{self._not_there(name)}; make it with `akrunner tables sql "CREATE TABLE {name.sql} (name TYPE, ...)"`, or from a file with '
            f"`akrunner tables put FILE {name.whole}`"
        )

    def _not_there(self, name: TableName) -> str:
        there = layout.visible(os.path.join(self.place, name.project))
        known = (
            f"the project {name.project} has {', '.join(there[:20])}" if there else f"the project {name.project} has no tables"
        )
        return f"there is no table {name.whole}: {known} in {self.place} (AKRUNNER_TABLES){nearest(name.table, there)}"

    def _fitting(self, name: TableName, info: TableInfo) -> List[layout.Placed]:
        """All partitions there are that a name fits. Raises: SourceError: the table is not partitioned so."""
        self._check_keys(name, info, SourceError)
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
                    f"source: {name.whole} is partitioned by {', '.join(info.partitions)}, and {os.path.join(folder, loose[0])} is in none of "
                    f"its partitions; move it to one, {info.partitions[0]}=..."
                )
        wanted = dict(name.partition)
        every = layout.partitions_below(folder, info.partitions)
        return [one for one in every if all(wanted.get(key, value) == value for key, value in one[0])]

    def _check_keys(self, name: TableName, info: TableInfo, kind: Any) -> None:
        for key, _ in name.partition:
            if key not in info.partitions:
                by = f"partitioned by {', '.join(info.partitions)}, not by {key}" if info.partitions else "not partitioned"
                raise kind(f"invalid odps table path {str(name)!r}: {name.whole} is {by}")

    def _known_partitions(self, name: TableName, info: TableInfo) -> str:
        every = layout.partitions_below(layout.table_dir(self.place, name), info.partitions)
        shown = ["/".join(f"{key}={value}" for key, value in one) for one, _ in every[-10:]]
        return f"the table has the partitions {', '.join(shown)}" if shown else "the table has no partition"

    # -- writing

    def output(self, name: TableName, overwrite: bool = True) -> LocalOutput:
        with self._writing(name.for_output()):
            info = self.info_at(layout.table_dir(self.place, name))
            if info is None:
                raise SinkError(self._no_table(name))
            return LocalOutput(self, name, info, self._whole_partition(name, info), overwrite)

    def creating(self, name: TableName, info: TableInfo) -> LocalOutput:
        """An output that makes its table: both are there from `commit` on, or neither is. Raises: SinkError: the table is there."""
        ddl.check_info(info)
        with self._writing(name.for_output()):
            self._check_new(name)
            return LocalOutput(self, name, info, self._whole_partition(name, info), True, creates=True)

    def _check_new(self, name: TableName) -> None:
        if self.info_at(layout.table_dir(self.place, name)) is not None:
            raise SinkError(
                f"{name.whole} exists; CREATE TABLE IF NOT EXISTS leaves it as it is, and `akrunner tables drop {name.sql}` removes it"
            )

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
                        layout.put_new(staged, target)
            finally:
                layout.removed(staged)

    def write_sql(self, folder: str, name: TableName, info: TableInfo) -> None:
        with open(os.path.join(folder, layout.TABLE_SQL), "w", encoding="utf-8") as file:
            file.write(ddl.create_sql(name.table, info) + "\n")

    def drop(self, name: TableName, if_exists: bool = False) -> None:
        target = layout.table_dir(self.place, name)
        with self._writing(name):
            if not os.path.isdir(target):
                if if_exists:
                    return
                raise SinkError(f"{self._not_there(name)}; {NOTHING_DROPPED}")
            self._take_away(name, [target])

    def _take_away(self, name: TableName, targets: List[str]) -> None:
        """Directories go, for everybody at once."""
        staged = layout.stage(self.place, name)
        try:
            with layout.locked(self.place, exclusive=True):
                for number, target in enumerate(targets):
                    os.rename(target, os.path.join(staged, str(number)))
        finally:
            layout.removed(staged)

    def rename(self, name: TableName, table: str) -> None:
        to = TableName.parse(f"odps://{name.project}/tables/{table}")
        with self._writing(name), layout.locked(self.place, exclusive=True):
            info = self.info_at(layout.table_dir(self.place, name))
            if info is None:
                raise SinkError(self._no_table(name))
            if os.path.lexists(layout.table_dir(self.place, to)):
                raise SinkError(f"{to} exists, and cannot be the new name of {name.whole}")
            os.rename(layout.table_dir(self.place, name), layout.table_dir(self.place, to))

    def add_partition(self, name: TableName, if_not_exists: bool = False) -> None:
        with self._writing(name):
            info = self._described(name)
            place = layout.place(self.place, name, self._whole_partition(name, info))
            with layout.locked(self.place, exclusive=True):
                if os.path.isdir(place) and not if_not_exists:
                    raise SinkError(f"{name} exists; ADD IF NOT EXISTS PARTITION leaves it as it is")
                os.makedirs(place, exist_ok=True)

    def drop_partition(self, name: TableName, if_exists: bool = False) -> None:
        with self._writing(name):
            info = self._described(name)
            if not name.partition:
                raise SinkError(f"drop partition: {name} names no partition")
            found = self._fitting(name, info)
            if not found and not if_exists:
                raise SinkError(f"{name} does not exist: {self._known_partitions(name.whole, info)}")
            self._take_away(name, [path for _, path in found])

    def _described(self, name: TableName) -> TableInfo:
        info = self.info_at(layout.table_dir(self.place, name))
        if info is None:
            raise SinkError(self._no_table(name))
        return info

    def _whole_partition(self, name: TableName, info: TableInfo) -> Partition:
        """The partition a name holds, in the table's order. Raises: SinkError: it is not one, but several or none."""
        self._check_keys(name, info, SinkError)
        given = dict(name.partition)
        missing = [key for key in info.partitions if key not in given]
        if missing:
            example = "/".join(f"{key}={given.get(key, '...')}" for key in info.partitions)
            raise SinkError(
                f"{name} is partitioned by {', '.join(info.partitions)}: name one partition of it, {name.whole}/{example}"
            )
        return tuple((key, given[key]) for key in info.partitions)

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


def _until_read(reading: LocalReading, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a reading that nobody else holds."""
    with reading:
        yield from batches
