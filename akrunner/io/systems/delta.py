"""Delta tables, read and written by deltalake (delta-rs), which knows the log, deletion vectors and columns that were renamed.

::

    lake/sales, s3://bucket/sales           where there is a _delta_log
    delta:///lake/sales, delta+s3://...     also where the first job is to make the table

A table is read at one version, by one thread, so that its rows come in the same order each time. Rows are written as one new
version, when the job has succeeded.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from akrunner import leftovers
from akrunner.checks import whole_of
from akrunner.column_types import is_octets
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.io.commits import last_step, still_runs
from akrunner.io.rename import drop_empty, missing
from akrunner.io.systems import lakes
from akrunner.io.systems.base import TableSink, Url, check_asked, quoted
from akrunner.io.systems.database_file import path_of
from akrunner.io.table import BATCH_ROWS, TableSource
from akrunner.io.unfinished import came_meanwhile, is_passed_over, partial_of

#: settings of DataFusion, which reads for deltalake
_READING = {"datafusion.execution.target_partitions": "1", "datafusion.execution.batch_size": str(BATCH_ROWS)}
#: the files that deltalake writes, and the directories of a partitioned table
_PART = re.compile(r"part-\d{5}-.*\.parquet$|[^/]+=")
_WHAT = "Delta tables"
#: a disk with so many times the bytes of the rows, as they wait, is large enough for their files of Parquet
_SPACE = 2


class _Delta:
    """Delta tables as a `System`."""

    queries = False
    decimals: Sequence[str] = ()

    def in_files(self, url: str) -> bool:
        return "://" not in _place(Url.parse(url))

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        place = Url.parse(url)
        place.check(("version", "timestamp"))
        lakes.library("deltalake", "delta", _WHAT)
        with ours(SourceError, f"source: cannot read {place.shown}"):
            table = _at_version(place)
        return of_table(table, columns, place.shown)

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        place = Url.parse(url)
        place.check(lakes.OUT)
        lakes.library("deltalake", "delta", _WHAT)
        partition = lakes.partition_of(place)
        with ours(SinkError, f"output: cannot write {place.shown}"):
            table = _table(_place(place))
        if table is None:
            uri = _place(place)
            if "://" not in uri:
                lakes.check_place(uri, place.shown, "a Delta table")
                _check_empty(uri, place.shown)
            by = lakes.partition_by(place, partition)
            columns = lakes.new_columns(schema, partition, by, place.shown, narrow=True)
            _check_labels(columns, by, place.shown)
            if schema.names and set(by) >= set(columns.names):
                # the values of these columns are in the names of directories only
                raise SinkError(
                    f"output: {place.shown}: the table would be partitioned by all of its columns ({', '.join(columns.names)}), and "
                    "Delta's files would have none; name fewer in partition_by="
                )
        else:
            by = list(table.metadata().partition_columns)
            lakes.check_partition(partition, by, place.shown)
            _check_labels(_columns(table), by, place.shown)
            if "partition_by" in place.options and lakes.partition_by(place, partition) != by:
                raise SinkError(
                    f"output: {place.shown}: the table is there, and is partitioned by {', '.join(by) or 'no column'}; leave out "
                    "partition_by="
                )
            columns = _columns(table)
            _check_writable(table, overwrite, place.shown)
        lakes.check_rows(columns, schema, partition, place.shown)
        target = lakes.Target(place, table, columns, by, partition, overwrite)
        return TableSink(place.shown, schema, lambda: _Writing(target), _local(place), table is None and not overwrite)


def _check_empty(path: str, shown: str) -> None:
    """Check that a directory in which a table is to be made has no files of others, which no reader would find any more.

    Raises:
        SinkError: it has.
    """
    if not os.path.isdir(path):
        return
    # a job that was killed may have left files of a table without a log
    odd = next((one for one in sorted(os.listdir(path)) if not is_passed_over(one) and not _PART.match(one)), None)
    if odd is not None:
        raise SinkError(
            f"output: {shown}: the directory has other files ({odd}), which readers would not find beside a Delta table; name an empty "
            "directory, or one that is not there yet"
        )


def _check_labels(columns: pa.Schema, by: Sequence[str], shown: str) -> None:
    """Check that a table is not partitioned by bytes, which deltalake writes into the names of directories as other ones.

    Args:
        columns: the table's columns; those of a new table are not known yet before the first rows, unless their schema is given.
    Raises:
        SinkError: it is.
    """
    odd = next((name for name in by if name in columns.names and is_octets(columns.field(name).type)), None)
    if odd is not None:
        raise SinkError(
            f"output: {shown}: column {odd!r} is {columns.field(odd).type}, and Delta would keep other bytes in the names of directories: "
            "partition by a column of text, whole numbers, dates or booleans"
        )


SYSTEM = _Delta()


def of_table(table: Any, columns: Sequence[str] | None, shown: str) -> TableSource:
    """Return a deltalake.DeltaTable as a table, at the version at which it is.

    Args:
        columns: the only columns that are wanted; None: all.
        shown: its name in errors.
    Raises:
        SourceError: deltalake cannot read it, or it lacks a column.
    """
    lakes.library("deltalake", "delta", _WHAT)
    what = f"source: cannot read {shown}"
    schema = _columns(table)
    if columns is not None:
        check_asked(columns, schema.names, shown)
        schema = pa.schema([schema.field(name) for name in columns])

    def reader(end: str = "") -> pa.RecordBatchReader:
        from deltalake import QueryBuilder

        asked = (
            QueryBuilder(_READING).register("t", table).execute(f"SELECT {', '.join(map(quoted, schema.names))} FROM t{end}")
        )
        return pa.RecordBatchReader.from_stream(asked)

    with ours(SourceError, what):
        # a feature that deltalake does not know is told now, before the job starts
        reader(" LIMIT 0").read_all()

    def batches() -> Iterator[pa.RecordBatch]:
        with ours(SourceError, what):
            for batch in reader():
                # DataFusion has types of its own for text
                yield pa.RecordBatch.from_arrays(
                    [one.cast(field.type) for one, field in zip(batch.columns, schema)], schema=schema
                )

    return TableSource(schema, batches, shown, replayable=True)


def _place(place: Url) -> str:
    """Return what deltalake calls the table: an absolute path, or a URL."""
    base = place.base
    scheme = base.partition("://")[0].lower() if "://" in base else ""
    if scheme == "delta":
        return path_of(place, "delta")
    base = base[len("delta+") :] if scheme.startswith("delta+") else base
    if "://" not in base or base.startswith("file://"):
        return os.path.abspath(os.path.expanduser(re.sub(r"^file://(localhost)?", "", base)))
    return re.sub(r"^gcs://", "gs://", base)


def _local(place: Url) -> str | None:
    """Return the path of a table on this machine; None if it is elsewhere."""
    uri = _place(place)
    return None if "://" in uri else uri


def _table(uri: str, version: int | None = None) -> Any | None:
    """Return the DeltaTable at a path or URL; None if there is none."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        if "://" not in uri and not os.path.isdir(os.path.join(uri, "_delta_log")):
            return None
        return DeltaTable(uri, version=version, storage_options=lakes.endpoint_options(uri) or None)
    except TableNotFoundError as e:
        if "scheme" in str(e):
            raise
        return None


def _at_version(place: Url) -> Any:
    """Return the DeltaTable that a URL names, at its `version=` or `timestamp=`.

    Raises:
        SourceError: there is none, or it has no such version.
    """
    version, moment = place.options.get("version"), place.options.get("timestamp")
    if version is not None and moment is not None:
        raise SourceError(f"source: {place.shown}: version= and timestamp= name two states of the table; give one")
    number = whole_of(version) if version is not None else None
    if version is not None and number is None:
        raise SourceError(f"source: {place.shown}: version= is a whole number, not {version!r}")
    latest = _table(_place(place))
    if latest is None:
        raise SourceError(f"source: {place.shown}: there is no Delta table (a directory with _delta_log in it)")
    if number is not None:
        if number > latest.version():
            raise SourceError(f"source: {place.shown}: there is no version {number}; the newest is {latest.version()}")
        latest.load_as_version(number)
    if moment is not None:
        _load_at(latest, moment, place.shown)
    return latest


def _load_at(table: Any, moment: str, shown: str) -> None:
    """Go to the version that a table had at a moment.

    Raises:
        SourceError: it is no moment, or there was no table yet. (deltalake gives the first version for any moment before it.)
    """
    try:
        # a + of a URL's query part is a space
        at = datetime.datetime.fromisoformat(re.sub(r" (\d\d:?\d\d)$", r"+\1", moment) if "T" in moment else moment)
    except ValueError:
        raise SourceError(f"source: {shown}: timestamp= is a moment such as 2026-01-02T03:04:05Z, not {moment!r}") from None
    at = at if at.tzinfo is not None else at.replace(tzinfo=datetime.UTC)
    table.load_as_version(at)
    made = next((one.get("timestamp") for one in table.history(1)), None)
    if isinstance(made, int) and made > at.timestamp() * 1000:
        first = datetime.datetime.fromtimestamp(made / 1000, datetime.UTC)
        raise SourceError(
            f"source: {shown}: the table's oldest version that is still there is of {first.isoformat(timespec='seconds')}, which is "
            "behind timestamp="
        )


def _columns(table: Any) -> pa.Schema:
    """Return the columns of a DeltaTable in types that Arrow has everywhere."""
    return pa.schema([field.remove_metadata() for field in pa.schema(table.schema().to_arrow())])


def _check_writable(table: Any, overwrite: bool, shown: str) -> None:
    if overwrite and table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
        raise SinkError(
            f"output: {shown}: the table only takes more rows (delta.appendOnly); leave out overwrite= (--overwrite)"
        )


class _Writing(lakes.Waiting):
    """Writes rows as one new version of a Delta table."""

    def commit(self) -> None:
        local = _local(self._target.place)
        new = missing(local) if local is not None else []
        try:
            if local is not None:
                self._check_space(local)
            # deltalake writes the files, and commits them, in one call
            last_step(self._shown, self._written, elsewhere=True)
        except BaseException as e:
            if new and not still_runs(e):
                drop_empty([os.path.join(new[0], "_delta_log"), *new])
            raise

    def _check_space(self, path: str) -> None:
        """Write the rows once for a trial if the table's disk is small beside them: on a full disk, a thread of deltalake dies with words
        of its own on stderr.

        Args:
            path: the table's directory.
        Raises:
            WriteError: the disk is full.
        """
        folder = next(one for one in (path, *map(str, Path(path).parents)) if os.path.isdir(one))
        if not self._kept.rows or shutil.disk_usage(folder).free > _SPACE * self._kept.size:
            return
        trial = partial_of(os.path.join(folder, "trial.parquet"))
        leftovers.register(trial)
        try:
            # the error says how much is free as long as the file is there
            with (
                ours(WriteError, f"output: cannot write {self._shown}", path),
                pq.ParquetWriter(trial, self._kept.schema, compression="snappy") as writer,
            ):
                for batch in self._kept.reader():
                    writer.write_batch(batch)
        finally:
            leftovers.drop(trial)

    def _written(self) -> None:
        from deltalake import CommitProperties, write_deltalake
        from deltalake.exceptions import CommitFailedError, DeltaError

        target, rows = self._target, self._kept.reader()
        try:
            if target.table is None:
                uri = _place(target.place)
                write_deltalake(
                    uri, rows, mode="error", partition_by=target.by or None, storage_options=lakes.endpoint_options(uri) or None
                )
            elif not target.overwrite:
                if self._kept.rows:
                    write_deltalake(target.table, rows, mode="append")
            elif target.partition:
                # deltalake refuses this if another writer has added rows to the partition meanwhile
                write_deltalake(target.table, rows, mode="overwrite", predicate=self._predicate())
            else:
                # a second try would silently replace also what another writer has added meanwhile
                once = CommitProperties(max_commit_retries=0)
                write_deltalake(target.table, rows, mode="overwrite", commit_properties=once)
        except CommitFailedError as e:
            raise lakes.conflict(self._shown, e) from None
        except DeltaError as e:
            if target.table is None and "already exists" in str(e):
                raise came_meanwhile(self._shown) from None
            raise

    def _predicate(self) -> str:
        """Return SQL that is true of the rows of the partition."""
        told = []
        for name, value in self._target.partition.items():
            kind = self._target.columns.field(name).type
            if value is None:
                told.append(f"{quoted(name)} IS NULL")
                continue
            text = "'" + value.replace("'", "''") + "'"
            number = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
            told.append(f"{quoted(name)} = {value if number else f'CAST({text} AS DATE)' if pa.types.is_date(kind) else text}")
        return " AND ".join(told)
