"""`akrunner tables`: commands for tables by name, on this machine or in MaxCompute."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import typer
from rich.console import Console

import akrunner
from akrunner import argument_files
from akrunner.cli import lines, values
from akrunner.cli.given import flag
from akrunner.cli.guarded import emit, telling
from akrunner.cli.stderr import say
from akrunner.folders.words import harmless, printable
from akrunner.io.csv_options import CsvOptions
from akrunner.options.rows import ENDINGS, WRITTEN
from akrunner.prepare.schemas import schema_of
from akrunner.tables import clauses, ddl, files, grid, shown, statements
from akrunner.tables.chosen import check_project, store_for, told_of
from akrunner.tables.names import PROJECT_VARIABLE, TableName, is_table, project_of
from akrunner.tables.store import TableStore
from akrunner.tables.tunnel import rows_of

HELP = """
Show tables by name, fill them from files, and run SQL over them.

odps://PROJECT/tables/T is an --input and an --output of `run`, `train`, `predict` and `pai`, too; so is a partition of it, odps://PROJECT/tables/T/pt=1.
Tables are directories of Parquet files below AKRUNNER_TABLES (default: akrunner/tables in the user's data directory): Parquet files that are put
into PROJECT/T/ are a table. The name T alone is enough if --project or AKRUNNER_PROJECT names the project.

[bold]Examples[/bold]

  akrunner tables put iris.csv odps://demo/tables/iris

  akrunner tables sql --project demo "CREATE TABLE scored (id BIGINT, p DOUBLE) PARTITIONED BY (pt STRING)"

  akrunner run train.py -i odps://demo/tables/iris --output-schema "id bigint, p double" -o odps://demo/tables/scored/pt=1

  akrunner tables sql -p demo "SELECT p > 1 AS large, count(*) FROM scored WHERE pt = '1' GROUP BY p > 1"

  akrunner tables ls

  akrunner tables get odps://demo/tables/scored/pt=1 scored.parquet
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")
PROJECT = typer.Option(None, "--project", "-p", envvar=PROJECT_VARIABLE, help="The project of names without one.")
JSON, INPUT_SCHEMA, INPUT_FORMAT, INPUT_CSV = flag("as_json"), flag("input_schema"), flag("input_format"), flag("input_csv")
_TABLE = "odps://PROJECT/tables/T[/pt=VALUE], PROJECT.T or T."
_CELL = 60


def _store_of(project: str) -> TableStore:
    """Return the store of a project's tables. If it is not on this machine, say on stderr, once, where it is."""
    store = store_for(project)
    if store.kind != "local" and project:
        _say_once(told_of(project, store))
    return store


@functools.cache
def _say_once(sentence: str) -> None:
    say(sentence)


def say_stores(names: Iterable[str | None]) -> None:
    """Say on stderr where the tables among a job's inputs and outputs are, if they are not on this machine."""
    for name in names:
        if name is not None and is_table(name):
            _store_of(TableName.parse(name).project)


def say_asked(names: Sequence[str], project: str | None) -> None:
    """Say on stderr where the tables are that a script opens itself; they may be named without their project."""
    say_stores(names)
    if names and not all(map(is_table, names)):
        _store_of(project_of(project) or "")


@app.command("ls", help="List the tables, their rows and partitions.")
def ls(
    project: str | None = typer.Argument(None, help="Of this project. Default: of all, or of --project."),
    of: str | None = PROJECT,
    as_json: bool = JSON,
) -> None:
    one = project or of
    store = _store_of(one or "")
    if one is None and store.kind != "local":
        raise akrunner.ConfigError(f"tables ls: of which project of {store.place}? give one (--project, {PROJECT_VARIABLE})")
    if one is not None and store.kind == "local":
        check_project(one, store)
    names = [one.lower()] if one else store.projects()
    found: list[dict[str, Any]] = []
    for owner in names:
        found.extend(_rows(store, owner))
    if as_json:
        emit({"ok": True, "exit_code": 0, "place": store.place, "tables": found})
        return
    if not found:
        where = f"the project {one} has no tables" if one else "there are no tables"
        typer.echo(f"{where} in {store.place} (AKRUNNER_TABLES); `akrunner tables put FILE odps://PROJECT/tables/T` makes one")
        return
    _print(
        ["table", "rows", "columns", "partitions"],
        [[row["uri"], _count(row), row["columns"] or "", _parts(row)] for row in found],
    )
    for row in found:
        if row["error"]:
            typer.echo(harmless(f"{row['uri']}: {row['error']}"))


def _rows(store: TableStore, project: str) -> Iterator[dict[str, Any]]:
    """Yield a dict about each table of a project. A name that no project or table can have is listed, too, with the error."""
    try:
        tables = store.tables(project)
    except akrunner.ConfigError as e:
        yield _unread(project, e)
        return
    for table in tables:
        try:
            name = TableName.parse(f"odps://{project}/tables/{table}")
        except akrunner.ConfigError as e:
            yield _unread(f"{project}/{table}", e)
        else:
            yield _row(store, name)


def _unread(uri: str, error: akrunner.ConfigError) -> dict[str, Any]:
    return {"uri": uri, "rows": None, "columns": None, "partitioned_by": [], "partitions": 0, "error": str(error)}


def _row(store: TableStore, name: TableName) -> dict[str, Any]:
    """Return a dict about a table; if the table cannot be read, it has the error."""
    row: dict[str, Any] = {"uri": str(name), "rows": None, "columns": None, "partitioned_by": [], "partitions": 0, "error": ""}
    try:
        info = store.describe(name)
        row.update(columns=len(info.columns), partitioned_by=list(info.partitions), partitions=len(store.partitions(name)))
        row["rows"] = store.count(name)
    except akrunner.ConfigError as e:
        row["error"] = str(e)
    return row


def _count(row: dict[str, Any]) -> str:
    return f"{row['rows']:,}" if row["rows"] is not None else "?"


def _parts(row: dict[str, Any]) -> str:
    return f"{row['partitions']:,} by {', '.join(row['partitioned_by'])}" if row["partitioned_by"] else ""


@app.command("show", help="Show a table's columns, its partitions and its first rows.")
def show(
    table: str = typer.Argument(..., help=_TABLE),
    rows: int = typer.Option(10, min=0, help="How many rows to show."),
    project: str | None = PROJECT,
    as_json: bool = JSON,
) -> None:
    name = TableName.parse(table, project)
    store = _store_of(name.project)
    info = store.describe(name)
    partitions = ["/".join(f"{key}={value}" for key, value in one) for one in store.partitions(name)]
    with store.reading(name) as reading:
        count = reading.rows
        first = rows_of(reading, [*info.columns.names, *info.partitions], rows, name).read_all()
    columns = clauses.columns_of(info)
    if as_json:
        body: dict[str, Any] = {
            "ok": True,
            "exit_code": 0,
            "uri": name.at(name.partition).uri,
            "rows": count,
            "columns": columns.to_pylist(),
        }
        emit({**body, "partitions": partitions, "create": ddl.create_sql(name.sql, info), "first": _plain(first)})
        return
    typer.echo(harmless(clauses.described(name, info, count)))
    print_table(columns)
    if partitions:
        more = f", and {len(partitions) - 20} before them" if len(partitions) > 20 else ""
        typer.echo(printable(f"partitions: {', '.join(partitions[-20:])}{more}"))
    if first.num_rows:
        typer.echo("")
        print_table(first)


@app.command(
    "put", help="Add a file's rows to a table, by the names of its columns. A table that is not there is made for them."
)
def put(
    file: list[str] = typer.Argument(
        ..., help="FILE... TABLE: file, glob, directory or URL, of any format `run` reads; and the table."
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the rows that are there, as INSERT OVERWRITE does."),
    select: str | None = typer.Option(None, help="SQL over the file, called `input` in it."),
    input_schema: str | None = INPUT_SCHEMA,
    input_format: str | None = INPUT_FORMAT,
    input_csv: str | None = INPUT_CSV,
    no_header: bool = typer.Option(
        False,
        "--no-header",
        help="A CSV without a line of names: its columns are the table's by their places, or those of --input-schema.",
    ),
    project: str | None = PROJECT,
    as_json: bool = JSON,
) -> None:
    if len(file) < 2:
        raise akrunner.ConfigError("tables put: give a file and a table: akrunner tables put FILE odps://PROJECT/tables/T")
    name = TableName.parse(file[-1], project)
    source = file[0] if len(file) == 2 else file[:-1]
    done = files.put(
        source,
        name,
        _store_of(name.project),
        overwrite=overwrite,
        input_schema=schema_of(input_schema, "input_schema"),
        input_format=input_format,
        input_csv=CsvOptions.of(input_csv, "input_csv"),
        select=select,
        header=not no_header,
    )
    for note in done.notes:
        say(harmless(f"warning: {note}"))
    said = f"{'wrote' if overwrite else 'added'} {done.rows:,} row{'s' * (done.rows != 1)} to {name}"
    with telling(said):
        if as_json:
            emit(
                {
                    "ok": True,
                    "exit_code": 0,
                    "uri": name.at(name.partition).uri,
                    "rows": done.rows,
                    "created": done.created or None,
                }
            )
            return
        if done.created:
            typer.echo(done.created)
        typer.echo(said)


@app.command("get", help="Write a table's rows to a file; - for stdout, as JSON lines or CSV.")
def get(
    table: str = typer.Argument(..., help=_TABLE + " ?start=A&end=B: some of its rows."),
    file: str = typer.Argument(..., help=f"{ENDINGS}, or -."),
    columns: str | None = typer.Option(
        None, help="Columns to write, separated by commas. Default: all, with the partition columns that TABLE does not name."
    ),
    output_format: str | None = typer.Option(
        None,
        help=f"{WRITTEN}, where names do not tell; of -: jsonl, csv or arrow. Default of -: jsonl.",
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an existing file."),
    project: str | None = PROJECT,
    as_json: bool = JSON,
) -> None:
    name = TableName.parse(table, project)
    store = _store_of(name.project)
    wanted = [one.strip() for one in columns.split(",")] if columns is not None else None
    if lines.is_stdout(file):
        form = lines.form_of(file, output_format, as_json, None)
        with store.reading(name) as reading:
            rows = rows_of(reading, wanted if wanted is not None else files.read_columns(name, reading.info), name=name)
            lines.write(rows, form or "jsonl", rows.schema)
        return
    count = files.get(name, file, store, overwrite=overwrite, columns=wanted, output_format=output_format)
    said = f"wrote {count:,} row{'s' * (count != 1)} of {name} to {file}"
    with telling(said):
        emit({"ok": True, "exit_code": 0, "rows": count, "output": file}) if as_json else typer.echo(said)


_SQL_HELP = """
Run statements of MaxCompute's SQL, one after the other: CREATE, DROP, ALTER and TRUNCATE TABLE, INSERT, SELECT, DESC, SHOW TABLES, TUNNEL UPLOAD.

[bold]Examples[/bold]

  akrunner tables sql -p demo "CREATE TABLE t (id BIGINT, name STRING); INSERT INTO t VALUES (1, 'a'); SELECT * FROM t"

  akrunner tables sql -p demo -f prepare.sql
"""


@app.command("sql", help=_SQL_HELP)
def sql(
    text: str | None = typer.Argument(None, help="Statements, with ; between them."),
    file: str | None = typer.Option(None, "--file", "-f", help="File of statements."),
    var: list[str] = typer.Option([], help="NAME=VALUE for ${NAME}. Repeatable."),
    project: str | None = PROJECT,
    as_json: bool = JSON,
) -> None:
    if (text is None) == (file is None):
        raise akrunner.ConfigError("tables sql: give statements, or --file with a file of them")
    # imported here, as it loads the reader of shell scripts, which other users of this module do not need
    from akrunner.pai_mode.texts import filled

    given = filled(text if text is not None else _text_of(file or ""), values.pairs(var, "--var"))
    results: list[dict[str, Any]] = []
    try:
        said = (lambda one: results.append(_told(one))) if as_json else _say
        folder = os.path.dirname(os.path.abspath(os.path.expanduser(file))) if file is not None else ""
        statements.run(given, _store_of, project, said=said, folder=folder)
    except akrunner.AkrunnerError as e:
        e.results = results
        raise
    if as_json:
        emit({"ok": True, "exit_code": 0, "results": results})


def _told(one: statements.StatementResult) -> dict[str, Any]:
    """Return a statement's result, for JSON."""
    return {
        "line": one.statement.line,
        "statement": one.statement.text,
        "message": one.message,
        "rows": _plain(one.rows) if one.rows is not None else None,
    }


def _text_of(file: str) -> str:
    try:
        text = argument_files.decoded(argument_files.read(os.path.expanduser(file)))
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, ValueError) as e:
        raise akrunner.ConfigError(f"--file: cannot read {file}: {getattr(e, 'strerror', None) or e}") from None


def _say(result: statements.StatementResult) -> None:
    if result.message:
        typer.echo(harmless(result.message))
    if result.rows is not None:
        print_table(result.rows)


@app.command("drop", help="Remove a table, or partitions of it, with all rows.")
def drop(
    table: str = typer.Argument(..., help=_TABLE),
    if_exists: bool = typer.Option(False, "--if-exists", help="Succeed also if there is no such table or partition."),
    project: str | None = PROJECT,
    as_json: bool = JSON,
) -> None:
    name = TableName.parse(table, project).for_output()
    store = _store_of(name.project)
    there = store.exists(name)
    if name.partition:
        store.drop_partitions([name], if_exists)
    else:
        store.drop(name, if_exists)
    said = f"dropped {name}" if there else f"{name} is not there"
    with telling(said):
        emit({"ok": True, "exit_code": 0, "uri": name.at(name.partition).uri, "dropped": there}) if as_json else typer.echo(
            said
        )


def _plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as dicts of values that JSON can hold."""
    types = {field.name: field.type for field in rows.schema}
    return [{key: shown.plain(value, types[key]) for key, value in row.items()} for row in rows.to_pylist()]


def print_table(rows: pa.Table) -> None:
    """Print all rows of a table to stdout."""
    cells = [list(row) for row in zip(*map(shown.texts, rows.columns))]
    _print(rows.column_names, cells)
    if not cells:
        typer.echo("(no rows)")


def _print(titles: list[str], rows: list[list[Any]]) -> None:
    console = Console(highlight=False)
    # without a terminal, lines are as long as necessary
    told, fits = grid.lines(
        titles, [[_short(str(cell)) for cell in row] for row in rows], console.width if console.is_terminal else None
    )
    for line in told:
        typer.echo(line)
    more = grid.others(titles, fits, "a wider terminal shows them, --json has them all")
    if more:
        say(more)


def _short(cell: str) -> str:
    return cell if len(cell) <= _CELL else cell[: _CELL - 3] + "..."
