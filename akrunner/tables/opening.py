"""Opens a job's input and its output, whatever they are. Here are those that `akrunner.io` does not know, tables by name
(`odps://project/tables/t/pt=v`) and folders of many small files; it opens all others, but for streams (`akrunner.running`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from akrunner.errors import ConfigError, DataError, SinkError, SourceError, WriteError
from akrunner.foreign import ours, redacted
from akrunner.io import formats, sinks, sources, systems
from akrunner.io.commits import behind_tables
from akrunner.io.csv_options import CsvOptions
from akrunner.io.layouts import PLAIN, Layout
from akrunner.io.limits import opened, with_rows
from akrunner.io.sinks import FileSink, PartsSink, SortedSink
from akrunner.io.sql import columns_read
from akrunner.io.systems.base import made_meanwhile
from akrunner.io.table import TableSource
from akrunner.io.writers import ExampleWriter
from akrunner.schema import Schema
from akrunner.spec import TaskSpec
from akrunner.tables import ddl, types
from akrunner.tables.chosen import store_for
from akrunner.tables.local_output import fits
from akrunner.tables.names import TableName, is_table
from akrunner.tables.store import TableInfo, TableOutput, TablePart, TableStore
from akrunner.wire.near import nearest


def open_input(
    source: Any,
    *,
    input_schema: Schema | None = None,
    input_format: str | None = None,
    input_csv: CsvOptions | None = None,
    select: str | None = None,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> TableSource:
    """Open a job's source as `akrunner.io.sources.open_source` does (see there); it may also be a table, or several, or a
    folder of many small files (`input_format` images, texts, lines)."""
    only = columns if select is None and input_schema is None else None
    names = [source] if is_table(source) else source
    tables = isinstance(names, (list, tuple)) and any(map(is_table, names))
    if formats.is_folder(input_format) and not tables:
        # most jobs read no folder, and need not wait for the import of what reads one
        from akrunner.folders.tables import SCHEMAS, open_folder

        # a database has no format
        systems.one_system(source, input_format)
        if input_csv is not None:
            raise SourceError(
                f"input_csv= (--input-csv) is for CSV, and input_format={input_format!r} (--input-format) is not; leave one out"
            )
        wanted = [field.name for field in input_schema] if input_schema is not None and select is None else only
        with ours(SourceError, "source: it cannot be read"):
            read = columns_read(select, SCHEMAS[str(input_format)]) if select is not None else None
            source, input_format = open_folder(source, str(input_format), wanted, read), None
    if tables:
        odd = next((one for one in names if not is_table(one)), None)
        if odd is not None:
            raise SourceError(f"source: {odd} is a path, and others are tables; give either")
        if input_format is not None:
            raise SourceError("input_format= is for files; the source is a table")
        if input_csv is not None:
            raise SourceError("input_csv= (--input-csv) is for files; the source is a table")
        with ours(SourceError, f"source: cannot read {names[0]}"):
            source = _tables([TableName.parse(one) for one in names], only)
    return sources.open_source(
        source,
        input_schema=input_schema,
        input_format=input_format,
        input_csv=input_csv,
        select=select,
        columns=columns,
        **options,
    )


def _tables(names: list[TableName], only: Sequence[str] | None) -> TableSource:
    """Return a source with the rows of several tables of the same columns, one after the other.

    The partition columns come last, without those that a name holds.

    Args:
        only: the columns to read, if all of them exist; None for all.
    """
    readings = [store_for(name.project).reading(name) for name in names]
    columns = [_columns(name, reading.info) for name, reading in zip(names, readings)]
    for name, other in zip(names[1:], columns[1:]):
        if not other.equals(columns[0]):
            raise SourceError(
                f"source: {name} has other columns ({_listed(other)}) than {names[0]} ({_listed(columns[0])}); "
                "input_schema= and select= are for tables of the same columns"
            )

    schema = columns[0]
    if only is not None and set(only) <= set(schema.names):
        schema = pa.schema([schema.field(name) for name in only])

    def rows() -> Iterator[pa.RecordBatch]:
        for name, reading in zip(names, readings):
            first, end = name.rows(reading.rows)
            yield from reading.read(schema.names, first, end - first)

    return TableSource(
        schema, rows, str(names[0]) if len(names) == 1 else f"{names[0]} and {len(names) - 1} more", replayable=True
    )


def _columns(name: TableName, info: TableInfo) -> pa.Schema:
    held = [key for key, _ in name.partition]
    partitions = [key.remove_metadata() for key in info.keys if key.name not in held]
    return pa.schema([*(field.remove_metadata() for field in info.columns), *partitions])


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


class NamedTableSink:
    """A table by name, or a partition of one, as the output of a job, as `FileSink` is. Without `overwrite`, rows are added, as INSERT INTO
    does.

    Args:
        path: the table's name.
        schema: of the rows.
    Raises:
        SinkError: the table does not exist (the message gives the SQL that makes it), or does not take these rows.
    """

    def __init__(self, path: str, schema: pa.Schema, form: str | None = None, overwrite: bool = False) -> None:
        self.path = path
        if form is not None:
            raise SinkError(f"output_format= (--output-format) is for files; {path} is a table")
        try:
            name = TableName.parse(path)
        except ConfigError as e:
            raise SinkError(f"output: {e}") from None
        name.for_output()
        store = store_for(name.project)
        if not store.exists(name.whole):
            raise SinkError(f"output: {missing(name, schema)}")
        check_fits(name, store.describe(name.whole), schema)
        self._store = store
        self._output = store.output(name, overwrite)
        self._over = False
        self._parts: dict[str, TablePart] = {}

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        self._write(task.name, batch)

    def write_rows(self, batch: pa.RecordBatch) -> None:
        """Append rows, without regard to the task that wrote them."""
        self._write("rows", batch)

    def _write(self, key: str, batch: pa.RecordBatch) -> None:
        if key not in self._parts:
            self._parts[key] = self._output.part(key)
        try:
            self._parts[key].write(batch)
        except DataError as e:
            raise WriteError(f"output: {e}") from e

    def commit(self) -> None:
        """Make the rows visible, because the job succeeded. Does nothing when called again."""
        if not self._over:
            self._output.commit()
            self._over = True

    def commit_with(self, store: TableStore, commit: Callable[[Sequence[TableOutput]], None]) -> None:
        """Commit together with the tables of the script's own writers; see `akrunner.engines.base.JoiningSink`."""
        if (store.kind, store.place) == (self._store.kind, self._store.place):
            commit([self._output])
            self._over = True
            return
        for part in self._parts.values():
            part.close()
        commit(())
        with behind_tables():
            self.commit()

    def restart(self) -> None:
        """Discard all rows written so far, because the job starts again."""
        self._parts = {}
        self._output.restart()

    def abort(self) -> None:
        """Discard the rows, because the job failed; the table stays as it was."""
        self._output.abort()


def check_fits(name: TableName, info: TableInfo, schema: pa.Schema) -> None:
    """Check that the table takes rows of this schema.

    Raises:
        SinkError: the table has no such column, or one of another type.
    """
    known = {field.name.lower(): field for field in info.columns}
    for field in schema:
        found = known.get(field.name.lower())
        if found is None and field.name.lower() in info.partitions:
            raise SinkError(
                f"output: {name.whole} is partitioned by {field.name}: its value stands in the name, /{field.name}=..., not "
                "in rows"
            )
        if found is None:
            raise SinkError(
                f"output: {name.whole} has no column {field.name!r} (it has "
                f"{', '.join(known)}){nearest(field.name, list(known))}"
            )
        if not fits(field.type, found.type):
            raise SinkError(
                f"output: column {field.name!r} of {name.whole} is {types.words_of(found)}, and the rows have {field.type} in "
                "it"
            )


def check_other(output: Any, names: Iterable[str], project: str | None) -> None:
    """Check that the script's own writers do not write the table that is the job's output.

    Raises:
        SinkError: they do.
    """
    if is_table(output) and any(TableName.parse(one, project).same(TableName.parse(output)) for one in names):
        raise SinkError(
            f"output: {output} is one of output_tables=, too: rows of output_schema= would take the place of those the "
            "script's own writers write, or they theirs; name another table"
        )


def missing(name: TableName, schema: pa.Schema) -> str:
    """Return the error message for a table that does not exist, with the SQL that makes one for these columns."""
    try:
        info = TableInfo(types.as_columns(schema), tuple(key for key, _ in name.partition))
        ddl.check_info(info)
        sql = ddl.create_sql(name.sql, info, lines=False)
    except ConfigError:
        sql = f"CREATE TABLE {name.sql} (name TYPE, ...);"
    return f'there is no table {name.whole}; make it with: akrunner tables sql "{sql}"'


RowsSink = FileSink | NamedTableSink | systems.TableSink
OutputSink = FileSink | PartsSink | SortedSink | NamedTableSink | systems.TableSink


def _table_sink(path: str, schema: pa.Schema, form: str | None, overwrite: bool) -> NamedTableSink | systems.TableSink:
    """Open a table by its name, or one in a database, to be written."""
    if is_table(path):
        return NamedTableSink(path, schema, form, overwrite)
    systems.check_no_format(path, form)
    with systems.of_parameter(SinkError, "output"):
        return systems.system_of(path).output(path, schema, overwrite)


def open_sink(
    path: str,
    schema: pa.Schema,
    write_examples: ExampleWriter,
    form: str | None = None,
    overwrite: bool = False,
    layout: Layout = PLAIN,
) -> OutputSink:
    """Open a job's output as `akrunner.io.sinks.sink_to` does (see there); it may also be a table by name, or one of a system
    of tables."""
    return opened(path, lambda: _open_sink(path, schema, write_examples, form, overwrite, layout))


def opened_later(
    path: str, write_examples: ExampleWriter, form: str | None, overwrite: bool, layout: Layout
) -> Callable[[pa.Schema], OutputSink]:
    """Return what opens a job's output when its first rows come, which know its columns; the arguments and errors are those of
    `open_sink`. If it is a table that is not there yet, another one must not have come until then."""

    def now(columns: pa.Schema) -> OutputSink:
        return open_sink(path, columns, write_examples, form, overwrite, layout)

    def later(columns: pa.Schema) -> OutputSink:
        with with_rows():
            return now(columns)

    before = now(pa.schema([])) if systems.is_system(path) else None
    if not isinstance(before, systems.TableSink) or not before.is_new:
        return later

    def still_new(columns: pa.Schema) -> OutputSink:
        sink = later(columns)
        if isinstance(sink, systems.TableSink) and not sink.is_new:
            raise made_meanwhile(sink.path)
        return sink

    return still_new


def _open_sink(
    path: str, schema: pa.Schema, write_examples: ExampleWriter, form: str | None, overwrite: bool, layout: Layout
) -> OutputSink:
    if is_table(path) or systems.is_system(path):
        layout.check_files(path)
        return _table_sink(path, schema, form, overwrite)
    systems.check_output(path)
    return sinks.sink_to(path, schema, write_examples, form, overwrite, layout)


def file_sink(
    path: str,
    schema: pa.Schema,
    write_examples: ExampleWriter,
    form: str | None = None,
    overwrite: bool = False,
) -> RowsSink:
    """Open a job's output as `open_sink` does, but as one file if it is no table."""
    return opened(path, lambda: _file_sink(path, schema, write_examples, form, overwrite))


def _file_sink(path: str, schema: pa.Schema, write_examples: ExampleWriter, form: str | None, overwrite: bool) -> RowsSink:
    if is_table(path) or systems.is_system(path):
        return _table_sink(path, schema, form, overwrite)
    systems.check_output(path)
    return FileSink(path, schema, write_examples, form, overwrite)


def check_reachable(names: Iterable[Any]) -> None:
    """Check, before a job is sent to other machines, that these tables are not on this machine.

    Raises:
        ConfigError: one of them is.
    """
    names = list(names)
    for name in filter(systems.is_system, names):
        if systems.system_of(name).in_files(name):
            raise ConfigError(
                f"detach: {redacted(name)} is a file of this machine, which a detached job cannot reach; give a server's "
                "table, or run the job attached"
            )
    for name in filter(is_table, names):
        store = store_for(TableName.parse(name).project)
        if store.kind == "local":
            raise ConfigError(
                f"detach: {name} is a table of this machine ({store.place}), which a detached job cannot reach; write it to a "
                f"place it can (akrunner tables get {name} s3://...), or run the job attached"
            )
