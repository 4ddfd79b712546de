"""Tables in MaxCompute, through PyODPS: its REST service for the tables' definitions, its tunnel for their rows, its SQL for
the rest.

Needs `akrunner[odps]`, which is imported when a store is made.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from akrunner.errors import AkrunnerError, ConfigError, SinkError, SourceError
from akrunner.foreign import ours
from akrunner.tables import ddl, types
from akrunner.tables.credentials import Credentials
from akrunner.tables.maxcompute_output import MaxComputeOutput, commit
from akrunner.tables.maxcompute_reading import THREADS, MaxComputeReading
from akrunner.tables.names import Partition, TableName
from akrunner.tables.store import (
    CHANGED,
    NOTHING_DROPPED,
    TableInfo,
    TableOutput,
    check_keys,
    known_partitions,
    no_table,
    whole_partition,
)

#: how many names of tables are fetched for an error message
_MOST_NAMES = 1000
#: how many rows a SELECT gives at most, as in MaxCompute's client
MOST_ROWS = 10_000
#: a partition's value with which the tunnel works
_VALUE = re.compile(r"[^,='\"/]+\Z")


def _quiet(kind: Any) -> Any:
    """Return a subclass of PyODPS's class that does not ask the service for the address of a web page which is not used here.

    PyODPS asks for it at once and, if the service does not answer, again and again.
    """
    return type("ODPS", (kind,), {"get_job_insight_host": lambda _: None})


class MaxComputeTables:
    """A store of tables in MaxCompute. See `store.TableStore`. Threads may share it.

    Attributes:
        place: the endpoint, and where the key was found.
    """

    kind = "maxcompute"

    def __init__(self, project: str, credentials: Credentials, threads: int = THREADS) -> None:
        """Prepare the client; connect to nothing yet.

        Args:
            threads: how many threads read one table at a time.
        Raises:
            ConfigError: PyODPS, or pandas, is not installed.
        """
        with ours(ConfigError, "tables in MaxCompute need PyODPS"):
            # PyODPS needs pandas to write Arrow data
            importlib.import_module("pandas")
            import odps
            from odps import accounts, tunnel

            account: Any = credentials.access_id
            key: str | None = credentials.access_key
            if credentials.token:
                account, key = accounts.StsAccount(account, key, credentials.token, expired_hours=None), None
            self._odps = _quiet(odps.ODPS)(
                account,
                key,
                project=project or credentials.project or None,
                endpoint=credentials.endpoint,
                tunnel_endpoint=credentials.tunnel or None,
                # spares another request for an address (see `_quiet`)
                logview_host="http://logview.odps.aliyun.com",
                overwrite_global=False,
            )
            self._tunnel = tunnel.TableTunnel
        self.project, self._threads = project or credentials.project, threads
        self.place = credentials.place

    # -- looking

    def describe(self, name: TableName) -> TableInfo:
        return self._info(name, SourceError)

    def exists(self, name: TableName) -> bool:
        with self._asking(SourceError, name):
            if not self._odps.exist_table(name.table, project=name.project):
                return False
            return not name.partition or bool(self._fitting(name, self._info(name, SourceError)))

    def count(self, name: TableName) -> int:
        with self.reading(name) as reading:
            return reading.rows

    def reading(self, name: TableName) -> MaxComputeReading:
        info = self._info(name, SourceError)
        with self._asking(SourceError, name):
            partitions: list[Partition] = self._fitting(name, info) if info.partitions else [()]
            if name.partition and not partitions:
                raise SourceError(f"source: {name} does not exist: {self._known_partitions(name, info)}")
        return MaxComputeReading(self, name, info, partitions, self._threads)

    def read(
        self, name: TableName, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        return self.reading(name).read_and_close(columns, start, rows)

    def partitions(self, name: TableName) -> list[Partition]:
        with self._asking(SourceError, name):
            info = self._info(name, SourceError)
            return self._fitting(name, info) if info.partitions else []

    def tables(self, project: str) -> list[str]:
        with ours(SourceError, f"source: cannot list the tables of {project}"):
            return sorted(table.name.lower() for table in self._odps.list_tables(project=project))

    def projects(self) -> list[str]:
        """Return the store's own project, or all projects that the key may see if it has none."""
        if self.project:
            return [self.project]
        with ours(SourceError, "source: cannot list the projects"):
            return sorted(project.name.lower() for project in self._odps.list_projects())

    @contextlib.contextmanager
    def _asking(self, kind: type[AkrunnerError], name: TableName) -> Iterator[None]:
        what = "output: cannot write" if kind is SinkError else "source: cannot read"
        with ours(kind, f"{what} {name} at {self.place}"):
            yield

    def _info(self, name: TableName, kind: type[ConfigError]) -> TableInfo:
        with self._asking(kind, name):
            from odps import errors

            table = self._odps.get_table(name.table, project=name.project)
            try:
                table.reload()
            except errors.NoSuchProject:
                raise
            except errors.NoSuchObject:
                raise kind(self._no_table(name)) from None
            schema = table.table_schema
            lifecycle = table.lifecycle if isinstance(table.lifecycle, int) and table.lifecycle > 0 else None
            return TableInfo(
                pa.schema([_field(column) for column in schema.simple_columns]),
                tuple(column.name.lower() for column in schema.partitions),
                table.comment or "",
                lifecycle,
                _key_types([str(column.type).lower() for column in schema.partitions]),
            )

    def _no_table(self, name: TableName) -> str:
        return f'{self._not_there(name)}; make it with `akrunner tables sql "CREATE TABLE {name.sql} (name TYPE, ...)"`'

    def _not_there(self, name: TableName) -> str:
        there = [table.name.lower() for table in itertools.islice(self._odps.list_tables(project=name.project), _MOST_NAMES)]
        return no_table(name, there, f"at {self.place}", all_of_them=len(there) < _MOST_NAMES)

    def _check_keys(self, name: TableName, info: TableInfo, kind: type[ConfigError]) -> None:
        check_keys(name, info, kind)
        for key, value in name.partition:
            if not _VALUE.match(value):
                raise kind(
                    f"invalid odps table path {str(name)!r}: MaxCompute's tunnel takes no value of {key} with , = / or a "
                    "quote in it"
                )

    def _fitting(self, name: TableName, info: TableInfo) -> list[Partition]:
        """Return all existing partitions that a name fits.

        Raises:
            SourceError: the table is not partitioned by the keys in the name.
        """
        self._check_keys(name, info, SourceError)
        table = self._odps.get_table(name.table, project=name.project)
        given = dict(name.partition)
        found = []
        if set(given) == set(info.partitions):
            # the name holds all keys: there is no need to list a thousand other partitions
            whole = tuple((key, given[key]) for key in info.partitions)
            return [whole] if not whole or table.exist_partition(_spec(whole)) else []
        for one in table.partitions:
            values = {key.lower(): value for key, value in one.partition_spec.kv.items()}
            if all(values.get(key) == value for key, value in given.items()):
                found.append(tuple((key, str(values[key])) for key in info.partitions))
        return sorted(found)

    def _known_partitions(self, name: TableName, info: TableInfo) -> str:
        return known_partitions(self._fitting(name.whole, info))

    # -- for readings and outputs

    def download(self, name: TableName, partition: Partition) -> Any:
        tunnel = self._tunnel(self._odps, project=name.project)
        return tunnel.create_download_session(self._at(name), partition_spec=_spec(partition) or None)

    def upload(self, name: TableName, partition: Partition, overwrite: bool) -> Any:
        tunnel = self._tunnel(self._odps, project=name.project)
        return tunnel.create_upload_session(self._at(name), partition_spec=_spec(partition) or None, overwrite=overwrite)

    def modified(self, name: TableName, partition: Partition) -> Any:
        """Return the time at which the rows of the table or the partition last changed, as the server reports it."""
        table = self._at(name)
        if partition:
            one = table.get_partition(_spec(partition))
            one.reload()
            return one.last_data_modified_time
        table.reload()
        return table.last_data_modified_time

    def _at(self, name: TableName) -> Any:
        return self._odps.get_table(name.table, project=name.project)

    # -- writing

    def output(self, name: TableName, overwrite: bool = True) -> MaxComputeOutput:
        info = self._info(name.for_output(), SinkError)
        whole = self._partition(name, info)
        with self._asking(SinkError, name):
            if whole and not self._at(name).exist_partition(_spec(whole)):
                self.execute(f"ALTER TABLE {name.sql} ADD IF NOT EXISTS PARTITION ({_sql_spec(whole)})")
            return MaxComputeOutput(self, name, info, whole, overwrite)

    def commit(self, outputs: Sequence[TableOutput]) -> None:
        commit(outputs)

    def check_output(self, name: TableName) -> None:
        self._partition(name, self._info(name.for_output(), SinkError))

    def _partition(self, name: TableName, info: TableInfo) -> Partition:
        """Return the partition that a name holds, whether or not it exists.

        Raises:
            SinkError: the name holds no partition, or only some of its keys.
        """
        self._check_keys(name, info, SinkError)
        return whole_partition(name, info)

    def create(self, name: TableName, info: TableInfo, if_not_exists: bool = False) -> None:
        ddl.check_info(info)
        with self._asking(SinkError, name):
            if self._odps.exist_table(name.table, project=name.project):
                if if_not_exists:
                    return
                raise SinkError(
                    f"{name.whole} exists; CREATE TABLE IF NOT EXISTS leaves it as it is, and `akrunner tables drop "
                    f"{name.sql}` removes it"
                )
            self.execute(ddl.create_sql(name.sql, info))

    def drop(self, name: TableName, if_exists: bool = False) -> None:
        with self._asking(SinkError, name):
            if not if_exists and not self._odps.exist_table(name.table, project=name.project):
                raise SinkError(f"{self._not_there(name)}; {NOTHING_DROPPED}")
        self.execute(f"DROP TABLE {'IF EXISTS ' * if_exists}{name.sql}")

    def rename(self, name: TableName, table: str) -> None:
        to = TableName.parse(f"odps://{name.project}/tables/{table}")
        self._there(name)
        self.execute(f"ALTER TABLE {name.sql} RENAME TO {to.table}")

    def add_columns(self, name: TableName, columns: Sequence[pa.Field]) -> None:
        self.execute(f"ALTER TABLE {name.sql} ADD COLUMNS ({', '.join(map(ddl.column_sql, columns))})")

    def add_partitions(self, names: Sequence[TableName], if_not_exists: bool = False) -> None:
        info = self._info(names[0], SinkError)
        specs = [_sql_spec(self._partition(name, info)) for name in names]
        what = " ".join(f"PARTITION ({spec})" for spec in specs)
        self.execute(f"ALTER TABLE {names[0].sql} ADD {'IF NOT EXISTS ' * if_not_exists}{what}")

    def drop_partitions(self, names: Sequence[TableName], if_exists: bool = False) -> None:
        info = self._info(names[0], SinkError)
        found: list[Partition] = []
        for name in names:
            if not name.partition:
                raise SinkError(f"drop partition: {name} names no partition")
            fitting = self._fitting(name, info)
            if not fitting and not if_exists:
                raise SinkError(f"{name} does not exist: {self._known_partitions(name, info)}")
            found += fitting
        if found:
            what = ", ".join(f"PARTITION ({_sql_spec(one)})" for one in dict.fromkeys(found))
            self.execute(f"ALTER TABLE {names[0].sql} DROP IF EXISTS {what}")

    def _there(self, name: TableName) -> None:
        """Check that a table exists.

        Raises:
            SinkError: it does not.
        """
        with self._asking(SinkError, name):
            if not self._odps.exist_table(name.table, project=name.project):
                raise SinkError(self._no_table(name))

    # -- SQL

    def execute(self, text: str, settings: Mapping[str, str] | None = None) -> tuple[str, pa.Table | None]:
        """Run one statement. See `store.SqlStore.execute`."""
        hints = {"odps.sql.type.system.odps2": "true", **(settings or {})}
        gives_rows = re.match(r"[\s(]*(select|with|values)\b", text, re.IGNORECASE) is not None
        with ours(SinkError, f"MaxCompute cannot run {' '.join(text.split())[:80]!r}"):
            instance = self._odps.execute_sql(text.strip().rstrip(";") + ";", project=self.project, hints=hints)
            if not gives_rows:
                CHANGED.append(f"what {' '.join(text.split())[:60]!r} names")
                told = "\n".join(str(one) for one in instance.get_task_results().values() if one).strip()
                return told or f"done (instance {instance.id})", None
            # the service sends at most MOST_ROWS rows
            with instance.open_reader(tunnel=True, arrow=True, limit=True) as reader:
                rows = reader.read_all().slice(0, MOST_ROWS)
        cut = rows.num_rows == MOST_ROWS
        return f"the first {MOST_ROWS:,} rows; CREATE TABLE ... AS SELECT keeps all" * cut, rows


def _field(column: Any) -> pa.Field:
    """Return a column from MaxCompute's description of it.

    Raises:
        SchemaError: its type is not known.
    """
    made = types.field(column.name.lower(), str(column.type).lower(), column.comment or "")
    return made if getattr(column, "nullable", True) is not False else made.with_nullable(False)


def _key_types(words: list[str]) -> tuple[str, ...]:
    return tuple(words) if set(words) - {"string"} else ()


def _spec(partition: Partition) -> str:
    """Return a partition in the form that PyODPS wants."""
    return ",".join(f"{key}={value}" for key, value in partition)


def _sql_spec(partition: Partition) -> str:
    """Return a partition in the form that SQL wants."""
    return ", ".join(f"{key}='{_escaped(value)}'" for key, value in partition)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
