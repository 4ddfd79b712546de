"""Iceberg tables, read and written by pyiceberg, which knows catalogs, snapshots, partitions and columns that were renamed.

::

    iceberg://CATALOG/NAMESPACE.TABLE    pyiceberg's own configuration says where the catalog is
    lake/sales, s3://bucket/sales        only to read: the newest file of metadata there

A table is read at one snapshot, file by file. Rows are written as one new snapshot, when the job has succeeded.
"""

from __future__ import annotations

import contextlib
import logging
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fsspec
import pyarrow as pa

from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.io import lakehouse
from akrunner.io.commits import closing, last_step
from akrunner.io.systems import lakes
from akrunner.io.systems.base import TableSink, Url, check_asked, slices
from akrunner.io.table import TableSource
from akrunner.io.unfinished import came_meanwhile
from akrunner.wire.near import nearest

_WHAT = "Iceberg tables"
#: how many bytes of rows are held in memory to be one file of data, or one of each partition that they are in
_FILE_BYTES = 128 << 20


class _Iceberg:
    """Iceberg tables as a `System`."""

    queries = False
    decimals: Sequence[str] = ()

    def in_files(self, url: str) -> bool:
        # where the tables of a catalog are, only the catalog knows
        return "://" not in url or url.startswith("file://")

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        place = Url.parse(url)
        place.check(("snapshot",))
        lakes.library("pyiceberg", "iceberg", _WHAT)
        with ours(SourceError, f"source: cannot read {place.shown}"), _loaded(place, SourceError) as (_, table):
            if table is None:
                raise SourceError(f"source: {place.shown}: there is no such table in the catalog")
        return of_table(table, columns, place.shown, _snapshot(place, table))

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        place = Url.parse(url)
        if not _in_catalog(place):
            raise SinkError(
                f"output: {place.shown} is an Iceberg table, which is written by way of its catalog: iceberg://CATALOG/NAMESPACE.TABLE"
            )
        place.check(lakes.OUT)
        lakes.library("pyiceberg", "iceberg", _WHAT)
        partition = lakes.partition_of(place)
        with ours(SinkError, f"output: cannot write {place.shown}"), _loaded(place, SinkError) as (catalog, table):
            if table is None:
                by = lakes.partition_by(place, partition)
                columns = lakes.new_columns(schema, partition, by, place.shown, narrow=False)
                _check_namespace(place, catalog)
            else:
                by = _partitioned_by(table)
                if partition or "partition_by" in place.options:
                    lakes.check_partition(partition, by, place.shown)
                if "partition_by" in place.options and lakes.partition_by(place, partition) != by:
                    raise SinkError(
                        f"output: {place.shown}: the table is there, and is partitioned by {', '.join(by) or 'no column'}; leave out "
                        "partition_by="
                    )
                columns = _columns(table.schema())
                if overwrite:
                    _planned(table.scan(), f"output: {place.shown}", SinkError)
        lakes.check_rows(columns, schema, partition, place.shown)
        target = lakes.Target(place, table, columns, by, partition, overwrite)
        return TableSink(place.shown, schema, lambda: _Writing(target), is_new=table is None and not overwrite)


SYSTEM = _Iceberg()


def of_table(table: Any, columns: Sequence[str] | None, shown: str, snapshot: int | None = None) -> TableSource:
    """Return a table of pyiceberg as a table, at one snapshot.

    Args:
        columns: the only columns that are wanted; None: all.
        shown: its name in errors.
        snapshot: the id of the snapshot, which is read with the columns that the table had then; None: the newest, with the columns
            that the table has now.
    Raises:
        SourceError: pyiceberg cannot read it, or it lacks a column.
    """
    lakes.library("pyiceberg", "iceberg", _WHAT)
    from pyiceberg.io.pyarrow import ArrowScan

    what = f"source: cannot read {shown}"
    with ours(SourceError, what):
        # without an id, pyiceberg gives columns that were added or renamed behind the newest snapshot; its files are planned below
        scan = table.scan(snapshot_id=snapshot)
        known = _columns(scan.projection())
        if columns is not None:
            check_asked(columns, known.names, shown)
            scan = scan.select(*columns)
            known = pa.schema([known.field(name) for name in columns])
        schema = pa.schema([field.with_nullable(True) for field in known])
        # in the order of their names, so that rows come in the same order each time
        tasks = sorted(_planned(scan, f"source: {shown}", SourceError), key=lambda task: str(task.file.file_path))
        reads = ArrowScan(scan.table_metadata, scan.io, scan.projection(), scan.row_filter, scan.case_sensitive)

    def batches() -> Iterator[pa.RecordBatch]:
        with ours(SourceError, what):
            for task in tasks:
                for batch in slices(_streamed(reads, task)):
                    arrays = [batch.column(field.name).cast(field.type) for field in schema]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return TableSource(schema, batches, shown, replayable=True)


def _planned(scan: Any, what: str, kind: type[SourceError | SinkError]) -> list[Any]:
    """Return the files that a scan reads, each with its deletes.

    Raises:
        AkrunnerError: of the class `kind`: the table has equality deletes.
    """
    try:
        return list(scan.plan_files())
    except ValueError as e:
        if "equality delete" not in str(e):
            raise
        raise kind(
            f"{what} has equality deletes (Flink writes them, for one), which pyiceberg cannot apply, so that deleted rows would be "
            "taken for rows of the table; let the engine that writes the table compact it first (rewrite_data_files)"
        ) from None


def _streamed(reads: Any, task: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file without those that were deleted."""
    from pyiceberg.io import pyarrow

    if not hasattr(reads, "_record_batches_from_scan_tasks_and_deletes") or not hasattr(pyarrow, "_read_all_delete_files"):
        yield from reads.to_record_batches([task])
        return
    # what is public reads all rows of a file before it gives the first
    deleted = pyarrow._read_all_delete_files(reads._io, [task])
    yield from reads._record_batches_from_scan_tasks_and_deletes([task], deleted)


def _in_catalog(place: Url) -> bool:
    return place.base.lower().startswith("iceberg://")


def _named(place: Url) -> tuple[str, str]:
    """Return the catalog and the table that a URL names.

    Raises:
        SourceError: it names no table.
    """
    catalog, _, table = place.base.partition("://")[2].partition("/")
    if not re.fullmatch(r"[^./]+(\.[^./]+)+", table):
        raise SourceError(f"{place.shown}: write iceberg://CATALOG/NAMESPACE.TABLE")
    return catalog or "default", table


@contextlib.contextmanager
def _loaded(place: Url, kind: type[SourceError | SinkError]) -> Iterator[tuple[Any, Any | None]]:
    """Yield the catalog and the table of pyiceberg that a URL or path names. The table is None if its catalog has no such table; the
    catalog is None if the URL names none."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    if not _in_catalog(place):
        yield None, _static(place)
        return
    parameter = "output" if kind is SinkError else "source"
    try:
        name, table = _named(place)
    except SourceError as e:
        raise kind(f"{parameter}: {e}") from None
    # what is closed are its connections; it opens others if it is asked again
    with closing(_catalog(name, f"{parameter}: {place.shown}", kind)) as catalog:
        try:
            found = catalog.load_table(table)
        except (NoSuchTableError, NoSuchNamespaceError):
            found = None
        yield catalog, found


def _catalog(name: str, what: str, kind: type[SourceError | SinkError]) -> Any:
    """Return a catalog of pyiceberg.

    Raises:
        AkrunnerError: of the class `kind`: nothing describes it.
    """
    from pyiceberg.catalog import list_catalogs, load_catalog

    try:
        return load_catalog(name)
    except ValueError:
        known = list_catalogs()
        if name in known:
            raise
        raise kind(
            f"{what}: pyiceberg knows no catalog {name!r} (it knows {', '.join(known) or 'none'}){nearest(name, known)}; describe it in "
            f".pyiceberg.yaml (in the home directory or the working directory), or in PYICEBERG_CATALOG__{name.upper()}__URI"
        ) from None


def _static(place: Url) -> Any:
    """Return the table whose root is a path or URL, as its newest file of metadata has it.

    Raises:
        SourceError: it is not clear which file that is.
    """
    from pyiceberg.table import StaticTable

    fs, root = fsspec.core.url_to_fs(place.base)
    newest = lakehouse.newest_metadata(fs, root.rstrip("/"))
    hint = posixpath.join(root, "metadata", "version-hint.text")
    if fs.exists(hint):
        version = fs.cat_file(hint).decode().strip()
        newest = [one for one in newest if re.match(rf"v{version}\.", posixpath.basename(one))] or newest
    if len(newest) != 1:
        raise SourceError(
            f"source: {place.shown}: {' and '.join(map(posixpath.basename, newest)) or 'no file'} may be the table's newest metadata; "
            "its catalog knows: iceberg://CATALOG/NAMESPACE.TABLE"
        )
    return StaticTable.from_metadata(newest[0] if "://" in newest[0] else fs.unstrip_protocol(newest[0]))


def _snapshot(place: Url, table: Any) -> int | None:
    given = place.options.get("snapshot")
    if given is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", given) or table.snapshot_by_id(int(given)) is None:
        there = ", ".join(str(one.snapshot_id) for one in table.metadata.snapshots[-5:]) or "none"
        raise SourceError(f"source: {place.shown}: there is no snapshot {given!r} (the newest are: {there})")
    return int(given)


def _check_namespace(place: Url, catalog: Any) -> None:
    from pyiceberg.exceptions import NoSuchNamespaceError

    namespace = _named(place)[1].rpartition(".")[0]
    try:
        catalog.load_namespace_properties(namespace)
    except NoSuchNamespaceError:
        raise SinkError(
            f"output: {place.shown}: the catalog has no namespace {namespace!r}; make it (pyiceberg create namespace {namespace})"
        ) from None


def _columns(schema: Any) -> pa.Schema:
    """Return the columns of a schema of pyiceberg, whose text may have other lengths than Arrow's usual type has."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    found = schema_to_pyarrow(schema, include_field_ids=False)
    return pa.schema([field.remove_metadata().with_type(_small(field.type)) for field in found])


def _small(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_small(kind.value_type)))
    return kind


def _partitioned_by(table: Any) -> list[str]:
    """Return the columns whose values are partitions."""
    from pyiceberg.transforms import IdentityTransform

    schema = table.schema()
    fields = table.spec().fields
    return [schema.find_column_name(one.source_id) for one in fields if isinstance(one.transform, IdentityTransform)]


def _form(table: Any) -> tuple[Any, ...]:
    return table.metadata.table_uuid, table.schema().schema_id, table.spec().spec_id


class _Writing(lakes.Waiting):
    """Writes rows as one new snapshot of an Iceberg table."""

    def commit(self) -> None:
        if self._target.table is not None and not self._target.overwrite and not self._kept.rows:
            return
        with _loaded(self._target.place, SinkError) as (catalog, now):
            self._commit(self._begun(catalog, now))

    def _commit(self, transaction: Any) -> None:
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        written: list[str] = []
        try:
            self._snapshot(transaction, written)
        except BaseException:
            _remove(transaction._table.io, written)
            raise
        # of any other error it is not known whether the catalog has the snapshot, and then its files must stay
        try:
            with _quietly():
                last_step(self._shown, transaction.commit_transaction, elsewhere=True)
        except (CommitFailedException, TableAlreadyExistsError, _refused()) as e:
            _remove(transaction._table.io, written)
            raise (lakes.conflict(self._shown, e) if self._target.table is not None else came_meanwhile(self._shown)) from None

    def close(self) -> None:
        super().close()
        if self._target.table is not None:
            self._target.table.catalog.close()

    def _begun(self, catalog: Any, now: Any | None) -> Any:
        """Return a transaction, which makes the table if there was none.

        Args:
            now: the table as it is now; None: there is none.
        Raises:
            WriteError: another writer has changed the table's columns or partitions, which the files would not have.
        """
        if self._target.table is not None:
            if now is None or _form(now) != _form(self._target.table):
                raise lakes.conflict(self._shown, ValueError("its columns or partitions are others now"))
            # what replaces rows is checked against what the table was when the output was opened
            return (self._target.table if self._target.overwrite else now).transaction()
        transaction = catalog.create_table_transaction(_named(self._target.place)[1], schema=self._target.columns)
        if self._target.by:
            with transaction.update_spec() as spec:
                for column in self._target.by:
                    spec.add_identity(column)
        return transaction

    def _snapshot(self, transaction: Any, written: list[str]) -> None:
        """Write the rows to files, and add the snapshot that has them to the transaction.

        Args:
            written: gets the path of each file.
        """
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        update = transaction.update_snapshot()
        snapshot = update.overwrite() if self._target.overwrite and self._target.table is not None else update.fast_append()
        changes = False
        for task in self._replaced(snapshot) if self._target.overwrite and self._target.table is not None else ():
            snapshot.delete_data_file(task.file)
            changes = True
        for rows in _gathered(self._kept.reader()):
            for file in _dataframe_to_data_files(transaction.table_metadata, rows, transaction._table.io):
                written.append(file.file_path)
                snapshot.append_data_file(file)
                changes = True
        if changes:
            snapshot.commit()

    def _replaced(self, snapshot: Any) -> list[Any]:
        """Return the files whose rows are replaced.

        Raises:
            WriteError: a file has other rows, too.
        """
        from pyiceberg.expressions import AlwaysTrue, And, EqualTo, IsNull

        assert self._target.table is not None
        if not self._target.partition:
            return list(self._target.table.scan().plan_files())
        told = [IsNull(name) if value is None else EqualTo(name, value) for name, value in self._target.partition.items()]
        wanted = told[0] if len(told) == 1 else And(*told)
        # of what other writers do meanwhile, only rows of this partition are a conflict
        snapshot.delete_by_predicate(wanted)
        tasks = list(self._target.table.scan(row_filter=wanted).plan_files())
        mixed = next((task for task in tasks if task.residual != AlwaysTrue()), None)
        if mixed is not None:
            raise WriteError(
                f"output: {self._shown}: the file {mixed.file.file_path} is older than the table's partitions, and has rows of several "
                "of them; rewrite the table's files first (rewrite_data_files), or replace the whole table"
            )
        return tasks


def _refused() -> type[Exception]:
    """Return what newer versions of pyiceberg raise if another writer has changed what a snapshot replaces."""
    from pyiceberg import exceptions

    found: type[Exception] = getattr(exceptions, "ValidationException", exceptions.CommitFailedException)
    return found


def _gathered(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield the rows in tables that each become a file."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        held.append(batch)
        size += batch.nbytes
        if size >= _FILE_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep pyiceberg's own words about a commit that it tries again from stderr: whether it succeeds is what the job tells."""
    logger = logging.getLogger("pyiceberg.table")

    def passes(record: logging.LogRecord) -> bool:
        return "retrying" not in record.getMessage()

    logger.addFilter(passes)
    try:
        yield
    finally:
        logger.removeFilter(passes)


def _remove(io: Any, paths: Sequence[str]) -> None:
    """Remove files that belong to no snapshot."""
    delete: Callable[[str], None] = io.delete
    for path in paths:
        with contextlib.suppress(Exception):
            delete(path)
