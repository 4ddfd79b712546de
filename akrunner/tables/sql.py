"""Runs MaxCompute's queries over a store's tables, with DuckDB.

::

    text --sqlglot: Hive's dialect--> tree --> tables it names: a view of each, over one state of it
                                      tree --sqlglot: DuckDB's dialect--> rows, as they are computed

Before DuckDB gets a user's query it is shut in: it can open the files of these tables and no others, and nothing in a query
can undo that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from akrunner import leftovers
from akrunner.errors import ConfigError
from akrunner.io.sql import check_query, duckdb_reader, heard
from akrunner.tables import types
from akrunner.tables.functions import ABSENT, DATES, FORMAT, JAVA_DATES, JAVA_FORMAT, RENAMED, macros_for
from akrunner.tables.local_reading import LocalReading, literal, quoted
from akrunner.tables.meaning import ALONE, as_meant
from akrunner.tables.names import TableName
from akrunner.tables.refused import told, unparsed
from akrunner.tables.sqltext import Token, tokens
from akrunner.tables.store import Reading, TableStore

if TYPE_CHECKING:
    from sqlglot import exp

#: what gives rows without being a table, in MaxCompute and here
_GIVE_ROWS = frozenset(("explode", "posexplode", "inline", "unnest", "subquery"))
#: settings of DuckDB's that turn off what no query here needs
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
#: takes the names and the types of a query's columns; returns expressions over c0, c1, ..., as these columns are called
Selection = Callable[[list[str], list[str]], list[str]]


class Queries:
    """A connection to DuckDB with the tables that its queries name. Close it after the rows are read.

    Attributes:
        named: for each column of the last query, whether it has a name of its own.
    """

    def __init__(
        self,
        store: Callable[[str], TableStore],
        project: str | None,
        readings: dict[tuple[str, str], Reading] | None = None,
    ) -> None:
        """Prepare; the connection is opened by `with`.

        Args:
            store: project -> where its tables are.
            project: the project of names that hold none.
            readings: readings that several connections share, and that the caller closes; None if this connection closes its
                own.
        """
        self._store, self._project = store, project
        self._readings: dict[tuple[str, str], Reading] = {} if readings is None else readings
        self._shared = readings is not None
        self._viewed: set[tuple[str, str]] = set()
        self._made: set[str] = set()
        self._connection: Any = None
        self._temp = ""
        self._columns: list[str] = []
        self.named: list[bool] = []

    def __enter__(self) -> Queries:
        import duckdb

        # a directory of its own, because DuckDB may open what is in it, whatever other limits are set
        self._temp = leftovers.temp_folder("akrunner-sql-")
        try:
            self._connection = duckdb.connect(config={"temp_directory": self._temp, **_SETTINGS})
            # '20200101' = 20200101 is true in MaxCompute
            self._connection.execute("SET old_implicit_casting = true")
        except BaseException:
            leftovers.drop(self._temp)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()
        leftovers.drop(self._temp)
        if not self._shared:
            for reading in self._readings.values():
                reading.close()

    def rows(self, query: str, columns: Selection | None = None) -> pa.RecordBatchReader:
        """Return the rows of a query in MaxCompute's SQL. It must be the last query of this connection.

        Args:
            columns: chooses, in DuckDB's SQL, what is selected of the query's columns; None for all of them.
        Raises:
            ConfigError: the text is no query, or DuckDB refuses it.
            SourceError: there is no such table.
        """
        check_query(query, "sql", ConfigError)
        text = self._translated(query)
        self._shut_in()
        with told(self._columns):
            return heard(lambda: self._begun(text, columns), self._connection.interrupt)

    def execute(self, text: str, *columns: Any) -> Any:
        """Run a statement in DuckDB's own SQL, and return DuckDB's result.

        Raises:
            ConfigError: DuckDB refuses it.
        """
        with told():
            return heard(lambda: self._with_macros(text).execute(text, *columns), self._connection.interrupt)

    def register(self, name: str, rows: pa.RecordBatchReader) -> None:
        """Make rows available to `execute` under a name."""
        self._connection.register(name, rows)

    def reader(self, text: str) -> pa.RecordBatchReader:
        """Return the rows of a query in DuckDB's own SQL.

        Raises:
            ConfigError: DuckDB refuses it.
        """
        with told():
            return heard(lambda: self._begun(text, None), self._connection.interrupt)

    def draw(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a reader that `rows` or `reader` returned.

        Raises:
            ConfigError: a value could not be computed.
        """
        while True:
            with told():
                try:
                    batch = heard(reader.read_next_batch, self._connection.interrupt)
                except StopIteration:
                    return
            yield batch

    def _shut_in(self) -> None:
        """From now on, let DuckDB open only the files of the tables that the query names."""
        readings = [one for one in self._readings.values() if isinstance(one, LocalReading)]
        paths = [path for one in readings for path in one.paths]
        self._connection.execute(f"SET allowed_paths = [{', '.join(map(literal, paths))}]")
        # DuckDB resolves a path when it opens it: a file that another process has replaced by then is elsewhere below the root,
        # or has no name. A query cannot name anything else there, because no function of MaxCompute's reads files
        places = {"/proc/self/fd", f"/proc/{os.getpid()}/fd", *(os.path.realpath(one.root) for one in readings)}
        self._connection.execute(f"SET allowed_directories = [{', '.join(map(literal, sorted(places)))}]")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _with_macros(self, text: str) -> Any:
        """Return the connection, after making the functions of MaxCompute's that a text calls."""
        for name, macro in macros_for(text).items():
            if name not in self._made:
                self._connection.execute(macro)
                self._made.add(name)
        return self._connection

    def _relation(self, text: str) -> Any:
        return self._with_macros(text).sql(text)

    def _begun(self, text: str, columns: Selection | None) -> pa.RecordBatchReader:
        relation = self._relation(text)
        if relation is None:
            raise ConfigError("sql: it gives no rows")
        names = list(relation.columns)
        if columns is not None:
            aliases = ", ".join(f"c{number}" for number in range(len(names)))
            relation = self._relation(
                f"SELECT {', '.join(columns(names, list(map(str, relation.types))))} FROM ({text}) AS q({aliases})"
            )
        elif any(_final(kind) != kind for kind in map(str, relation.types)):
            kinds = [_final(str(kind)) for kind in relation.types]
            aliases = ", ".join(f"c{number}" for number in range(len(names)))
            chosen = ", ".join(f"CAST(c{number} AS {kind}) AS {quoted(names[number])}" for number, kind in enumerate(kinds))
            relation = self._relation(f"SELECT {chosen} FROM ({text}) AS q({aliases})")
        return duckdb_reader(relation if all(one.drawn for one in self._readings.values()) else relation.limit(0))

    def _translated(self, query: str) -> str:
        """Return the query in DuckDB's dialect, after making views of the tables it reads."""
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import ErrorLevel, SqlglotError

        try:
            tree = sqlglot.parse_one(_renamed(query), read="hive", error_level=ErrorLevel.IMMEDIATE)
        except SqlglotError as e:
            raise ConfigError(f"sql: {unparsed(e)}: {' '.join(query.split())[:200]}") from None
        except RecursionError:
            raise ConfigError("sql: the query is nested too deep") from None
        if not isinstance(tree, exp.Query):
            raise ConfigError(f"sql: it is no query: {' '.join(query.split())[:200]}")
        _check_places(tree)
        named = {one.alias.lower() for one in tree.find_all(exp.CTE)}
        for table in list(tree.find_all(exp.Table)):
            # DuckDB might take a name that is no word for the name of a file
            given = table.name.lower() in named and not table.db and re.fullmatch(r"\w+", table.name)
            if isinstance(table.this, exp.Identifier) and not given:
                self._view(table)
        selects = list(tree.find_all(exp.Select))
        if len(selects) == 1:
            infos = [reading.info for key, reading in self._readings.items() if key in self._viewed]
            self._columns = list(dict.fromkeys(name for one in infos for name in (*one.columns.names, *one.partitions)))
        for select in selects:
            self._choose_columns(select)
        self.named = [isinstance(one, (exp.Alias, exp.Column)) or one.is_star for one in tree.selects]
        for cast in list(tree.find_all(exp.Cast)):
            if cast.to.this in exp.DataType.INTEGER_TYPES:
                cast.set("this", exp.Anonymous(this="odps_whole", expressions=[cast.this]))
            if cast.to.this == exp.DataType.Type.TIMESTAMP:
                cast.set("to", exp.DataType.build("TIMESTAMP_NS", dialect="duckdb"))
        as_meant(tree)
        # inner calls first, because an outer call moves them
        for call in reversed(list(tree.find_all(exp.Anonymous))):
            if call.name.lower() in DATES:
                _set_format(call)
            if call.name.lower() == "max_pt":
                call.replace(exp.Literal.string(self._max_pt(call)))
        return str(tree.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE))

    def _choose_columns(self, select: exp.Select) -> None:
        """Replace a pattern in backticks by the columns it stands for: `(ds)?+.+` stands for all columns but ds."""
        from sqlglot import exp

        tables = [
            one for one in (select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or ())) if one
        ]
        chosen: list[Any] = []
        for one in select.expressions:
            pattern = one.name if isinstance(one, exp.Column) and one.this.args.get("quoted") else ""
            if not re.search(r"[()*+?|\[\]]", pattern):
                chosen.append(one)
                continue
            found: list[Any] = []
            known: list[str] = []
            for place in (table.this for table in tables):
                reading = self._readings.get((place.db, place.name)) if isinstance(place, exp.Table) else None
                if reading is None or (one.table and one.table.lower() != place.alias_or_name.lower()):
                    continue
                names = [*reading.info.columns.names, *reading.info.partitions]
                known += names
                found += [exp.column(name, place.alias_or_name, quoted=True) for name in names if _fits(pattern, name)]
            # a column may have the pattern's text as its name
            called = {*known, *(alias.alias.lower() for alias in select.root().find_all(exp.Alias))}
            if not found and pattern.lower() not in called:
                fits = f"fits none of {', '.join(known)}" if known else "is known over tables, and not over a subquery"
                raise ConfigError(f"sql: `{pattern}`, which stands for the columns whose names fit, {fits}; write their names")
            chosen += found or [one]
        select.set("expressions", chosen)

    def _view(self, table: exp.Table) -> None:
        from sqlglot import exp

        spelled = ".".join(part.name for part in table.parts)
        name = TableName.parse(spelled, self._project).for_sql()
        key = name.project, name.table
        if key not in self._readings:
            self._readings[key] = self._store(name.project).reading(name)
        if key not in self._viewed:
            self._viewed.add(key)
            reading = self._readings[key]
            target = f"{quoted(name.project)}.{quoted(name.table)}"
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name.project)}")
            if isinstance(reading, LocalReading):
                self._connection.execute(f"CREATE VIEW {target} AS {reading.query()}")
            else:
                self._copied(reading, target)
        if not table.alias:
            # the query may name its columns by the table's name
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("db", exp.to_identifier(name.project, quoted=True))
        table.set("this", exp.to_identifier(name.table, quoted=True))

    def _copied(self, reading: Reading, target: str) -> None:
        """Copy the rows of a table that DuckDB cannot read itself."""
        names = [*reading.info.columns.names, *reading.info.partitions]
        fields = [*reading.info.columns, *reading.info.keys]
        schema = pa.schema([field.remove_metadata() for field in fields])
        rows = pa.RecordBatchReader.from_batches(schema, reading.read(names))
        self._connection.register("copied", rows)
        self._connection.execute(f"CREATE TABLE {target} AS SELECT * FROM copied")
        self._connection.unregister("copied")

    def _max_pt(self, call: Any) -> str:
        """Return the value of the last partition that has rows, as MaxCompute's `max_pt` does."""
        name = TableName.parse(str(call.expressions[0].name) if call.expressions else "", self._project)
        store = self._store(name.project)
        for partition in reversed(store.partitions(name)):
            if store.count(name.at(partition[:1])):
                return partition[0][1]
        raise ConfigError(f"sql: max_pt: {name.whole} has no partition with rows")


def _renamed(query: str) -> str:
    """Return the query with other names for functions that sqlglot would take for functions of Hive's with the same name."""
    found = list(tokens(query))
    pieces, at = [], 0
    for number, token in enumerate(found[:-1]):
        if token.kind == "word" and found[number + 1].text == "(":
            if token.low in ABSENT:
                raise ConfigError(
                    f"sql: {token.low} is not among the functions of the tables of this machine; {ABSENT[token.low]}"
                )
            name = RENAMED.get((token.low, _arguments(found, number + 1)))
            if name is not None:
                pieces += [query[at : token.at], name]
                at = token.end
        if (token.low, found[number + 1].low) == ("grouping", "sets") and found[number - 1].low not in (",", "by"):
            pieces += [query[at : token.at], f", {ALONE} "]
            at = token.at
    return "".join([*pieces, query[at:]])


def _fits(pattern: str, name: str) -> bool:
    """Whether a pattern stands for this column."""
    but = re.fullmatch(r"\((.*)\)\?\+\.\+", pattern)
    try:
        # Java's `?+` is possessive: once it has matched, it does not backtrack
        return not re.fullmatch(but[1], name, re.I) if but is not None else re.fullmatch(pattern, name, re.I) is not None
    except re.error as e:
        raise ConfigError(f"sql: {pattern!r} in backticks is no column, and no pattern of columns: {e}") from None


def _check_places(tree: Any) -> None:
    """Check that rows come only from tables, and from functions of MaxCompute's: DuckDB has functions that read files.

    Raises:
        ConfigError: rows come from another function.
    """
    from sqlglot import exp

    for place in tree.find_all(exp.Table, exp.Lateral):
        source = place.this
        if isinstance(place, exp.Table) and isinstance(source, exp.Identifier):
            continue
        called = (
            source.name
            if isinstance(source, exp.Anonymous)
            else source.sql_name()
            if isinstance(source, exp.Func)
            else source.key
        )
        if called.lower() not in _GIVE_ROWS:
            raise ConfigError(
                f"sql: {called.lower()} is no function of MaxCompute's that gives rows; SQL reads tables, and no files: "
                "TUNNEL UPLOAD file table adds a file to a table, and so does `akrunner tables put`"
            )


def _set_format(call: Any) -> None:
    """Rewrite `to_date`, `to_char` and `date_format` in DuckDB's words.

    Raises:
        ConfigError: the format is computed, or has letters that are not known.
    """
    from sqlglot import exp

    value, given = call.expressions
    if not (isinstance(given, exp.Literal) and given.is_string):
        raise ConfigError("sql: the format of a date must be a text, like 'yyyymmdd'")
    java = call.name.lower() in JAVA_DATES
    letters = JAVA_FORMAT if java else FORMAT
    known, words = dict(letters), str(given.this) if java else str(given.this).lower()
    form = re.sub("|".join(known), lambda found: known[found[0]], words)
    if re.search("[A-Za-z]", re.sub("%[A-Za-z]", "", form)):
        raise ConfigError(f"sql: the format {given.this!r} of a date: letters that are known are {', '.join(known)}")
    name, kind = DATES[call.name.lower()]
    call.replace(exp.Anonymous(this=name, expressions=[exp.cast(value, kind, dialect="duckdb"), exp.Literal.string(form)]))


def _final(kind: str) -> str:
    """Return the type that a query's result has in MaxCompute if DuckDB has computed it in this one: a sum of whole numbers is
    a BIGINT, a time a DATETIME.
    """
    kind = re.sub(r"\b(HUGEINT|UBIGINT)\b", "BIGINT", kind)
    return re.sub(r"\bTIMESTAMP\b(?! WITH)", "TIMESTAMP_MS", kind)


def _arguments(found: list[Token], number: int) -> int:
    """Return how many arguments are in the parentheses that the token with this number opens."""
    depth, count = 0, 1
    if found[number + 1].text == ")":
        return 0
    for token in found[number:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth:
            return count
        count += token.text == "," and depth == 1
    return 0


def column_names(queries: Queries, names: list[str]) -> list[str]:
    """Return MaxCompute's names for the columns of a query. A column is named by its position, `_c0`, if it has no name of its
    own, or the name of an earlier column.
    """
    known = queries.named if len(queries.named) == len(names) else [re.fullmatch(r"\w+", name) is not None for name in names]
    low = [name.lower() for name in names]
    return [
        name if named and name.lower() not in low[:number] else f"_c{number}"
        for number, (name, named) in enumerate(zip(names, known))
    ]


def duckdb_type(field: pa.Field) -> str:
    return types.duckdb_words(field.type)


__all__ = ["Queries", "column_names", "duckdb_type", "literal", "quoted"]
