"""Runs the statements in a file for MaxCompute's client (`odpscmd -f`): SQL, `set`, `tunnel`, and PAI's commands."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner import leftovers
from akrunner.errors import AkrunnerError, ConfigError, ReadError, SinkError, SourceError, StatementError
from akrunner.tables import ddl
from akrunner.tables.altering import alter
from akrunner.tables.clauses import columns_of, described, is_query, names_in, partition_of
from akrunner.tables.insert import Insert, create_as, inserted, several
from akrunner.tables.names import Partition, TableName, check_project
from akrunner.tables.sql import Queries, column_names
from akrunner.tables.sqltext import Words, line_of, tokens
from akrunner.tables.store import SqlStore, TableStore
from akrunner.tables.tunnel import rows_of, tunnel

#: how many rows a SELECT gives at most, as in MaxCompute
MOST_ROWS = 10_000
_KNOWN = (
    "CREATE TABLE, DROP TABLE, ALTER TABLE, TRUNCATE TABLE, INSERT INTO | OVERWRITE, SELECT, DESC, SHOW TABLES | PARTITIONS | "
    "CREATE TABLE, COUNT, READ, ANALYZE TABLE, SET, USE, TUNNEL UPLOAD | DOWNLOAD, PAI"
)
#: things that CREATE and DROP name but that do not exist here -> what to do instead
_OTHERS = {
    "view": "CREATE TABLE v AS SELECT ... keeps the rows that a query has now, and WITH v AS (SELECT ...) SELECT ... names "
    "one for a statement",
    "function": "SQL has MaxCompute's own functions only",
    "resource": "a resource is a file: name it in -Dscript",
    "package": "tables of other projects are named project.table",
    "role": "whoever reads the directory reads the tables",
    "schema": "a project is made with its first table",
    "database": "a project is made with its first table",
}
#: statement on a transactional table -> a statement that does the same
_ANEW = {
    "delete": "INSERT OVERWRITE TABLE t SELECT * FROM t WHERE NOT nvl(CONDITION, false)",
    "update": "INSERT OVERWRITE TABLE t SELECT a, if(CONDITION, NEW, b) AS b FROM t, with all its columns",
    "merge": "INSERT OVERWRITE TABLE t SELECT nvl(s.k, t.k) AS k, if(s.k IS NULL, t.a, s.a) AS a FROM t FULL OUTER JOIN s ON "
    "t.k = s.k, with all its columns",
}
#: statements that change nothing; "add" is one because it only tells PAI's commands of a resource
_LOOKING = frozenset(
    ("set", "use", "select", "", "desc", "describe", "show", "list", "ls", "count", "read", "analyze", "explain", "add")
)


@dataclass(frozen=True)
class Statement:
    """One statement.

    Attributes:
        kind: "pai" (a whole `PAI -name ...`, as written), "set", "tunnel" or "sql".
        text: without the comments before it and the `;` behind it.
        line: its line in the file, from 1.
    """

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement.

    Attributes:
        statement: the statement.
        message: a sentence that says what it did; "" if the rows say it.
        rows: the rows of SELECT, DESC or SHOW; None for a statement that gives none.
        settings: what a `set` statement set; None for others.
    """

    statement: Statement
    message: str = ""
    rows: pa.Table | None = None
    settings: dict[str, str] | None = None


def split(text: str) -> list[Statement]:
    """Return the statements of a file.

    Raises:
        ConfigError: a quote or a comment is not closed; the message names the line.
    """
    found: list[Statement] = []
    at = 0
    while True:
        first = next(tokens(text, at), None)
        if first is None:
            return found
        if first.text == ";":
            at = first.end
            continue
        kind = first.low if first.low in ("pai", "set", "tunnel") else "sql"
        end = last = len(text)
        pieces: list[str] = []
        before = first.at
        for token in tokens(text, first.at, command=kind != "sql"):
            if token.text == ";":
                end, last = token.at, token.end
                break
            if kind != "sql":
                # there may be lines of comments between the words
                pieces.append(("\n" if "\n" in text[before : token.at] else " " if before < token.at else "") + token.text)
                before = token.end
        words = "".join(pieces) if kind != "sql" else text[first.at : end]
        found.append(Statement(kind, words.strip(), line_of(text, first.at)))
        at = last


@leftovers.together()
def run(
    text: str,
    store: Callable[[str], TableStore],
    project: str | None = None,
    pai: Callable[[Statement], Any] | None = None,
    said: Callable[[StatementResult], Any] | None = None,
    folder: str = "",
) -> list[StatementResult]:
    """Run statements, one after the other. An exception has the number of its statement, from 1, in `statement`.

    Args:
        store: project -> where its tables are (`chosen.store_for`).
        project: the project of names that hold none.
        pai: is called with each of PAI's commands; None makes them an error.
        said: is called with the result of each statement when it is done.
        folder: the directory of the statements' file (`Session`).
    Raises:
        ConfigError: a statement is unknown, or cannot be done; the message names the line, and nothing was changed.
        ReadError, StatementError, WriteError: a statement failed after an earlier one had changed something.
    """
    statements = split(text)
    for one in statements:
        if one.kind == "pai" and pai is None:
            raise ConfigError(f"line {one.line}: PAI's commands are for `akrunner pai`: akrunner pai -f FILE")
    session = Session(store, project, folder)
    results: list[StatementResult] = []
    for number, one in enumerate(statements, 1):
        try:
            if one.kind == "pai" and pai is not None:
                pai(one)
                session.changed = True
                result = StatementResult(one)
            else:
                result = session.run(one)
        except AkrunnerError as e:
            error = located(e, one, number - 1, session.changed) if len(statements) > 1 and one.kind != "pai" else e
            error.statement = number
            if error is e:
                raise
            raise error from e
        results.append(result)
        if said is not None:
            said(result)
    return results


def located(error: AkrunnerError, statement: Statement, before: int, changed: bool) -> AkrunnerError:
    """Return the error with the statement's line, if it names none, and in the class that says whether anything was changed.

    Args:
        before: how many statements are done.
        changed: whether one of them has changed something.
    """
    if not isinstance(error, ConfigError):
        return error
    words = str(error) if re.match(r"line \d+\b", str(error)) else f"line {statement.line}: {error}"
    if changed:
        kind = ReadError if isinstance(error, SourceError) else StatementError
        return kind(f"{words} (of the statements before it {before} are done)")
    return type(error)(words)


def changes(statement: Statement) -> bool:
    """Whether a statement, after it was run, has changed something; judged by its first words."""
    first = statement.text.lstrip("( \t\r\n").split(None, 1)[0].lower()
    if first == "with":
        first = _behind_with(statement.text)[1]
    return first not in _LOOKING


def _check_kind(words: Words) -> None:
    """Check that a statement creates or drops a table.

    Raises:
        ConfigError: it creates or drops something else.
    """
    said = [token.low for token in list(tokens(words.text))[:5]]
    other = next((one for one in said[1:4] if one in _OTHERS), None)
    if other is not None and "table" not in said[1 : said.index(other)]:
        raise ConfigError(
            f"{said[0]} {other}: the tables of this machine have no {other}s; {_OTHERS[other]}; known are {_KNOWN}"
        )


def _behind_with(text: str) -> tuple[int, str]:
    """Return (where the statement behind WITH begins, its first word: select, from or insert); (0, "") if there is none."""
    depth = 0
    for token in tokens(text):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth and token.low in ("select", "from", "insert"):
            return token.at, token.low
    return 0, ""


class Session:
    """The statements of one file, run one after the other.

    Attributes:
        project: the project of names that hold none; `use` changes it.
        changed: whether a statement has changed something.
    """

    def __init__(
        self, store: Callable[[str], TableStore], project: str | None, folder: str = "", changed: bool = False
    ) -> None:
        """Begin without settings.

        Args:
            folder: the directory of the file; `tunnel upload` looks there for files that are not in the current directory.
            changed: whether statements before this session have changed something.
        """
        self._store, self.project, self._folder = store, project, folder
        #: what `set` has set; MaxCompute gets it, and this machine's tables ignore it
        self._settings: dict[str, str] = {}
        self.changed = changed
        #: whether the current statement has found nothing to change
        self._idle = False

    @leftovers.together()
    def run(self, statement: Statement) -> StatementResult:
        """Run one statement.

        Raises:
            ConfigError: the statement is unknown, or cannot be done.
        """
        self._idle = False
        done = self._run(statement)
        self.changed = self.changed or (changes(statement) and not self._idle)
        return done

    def _run(self, statement: Statement) -> StatementResult:
        if statement.kind == "set":
            return self._set(statement)
        if statement.kind == "tunnel":
            return StatementResult(statement, tunnel(statement.text, self._store, self.project, self._folder))
        words = Words(statement.text, statement.text.split(None, 1)[0].lower())
        first = words.peek().low
        known: dict[str, Callable[[Words], tuple[str, pa.Table | None]]] = {
            "create": self._create,
            "drop": self._drop,
            "alter": self._alter,
            "truncate": self._truncate,
            "insert": self._insert,
            "select": self._select,
            "with": self._with,
            "desc": self._desc,
            "describe": self._desc,
            "show": self._show,
            "list": self._show,
            "ls": self._show,
            "use": self._use,
            "from": self._from,
            "count": self._count,
            "read": self._read,
            "analyze": self._analyze,
        }
        if words.peek().text == "(":
            first = "select"
        store = self._store(self.project) if self.project and first != "use" else None
        if first not in known and not isinstance(store, SqlStore):
            if first in ("merge", "update", "delete"):
                raise ConfigError(
                    f"{first.upper()}: the tables of this machine are non-transactional, on which MaxCompute refuses UPDATE, "
                    f"DELETE and MERGE, too; write the table anew, from itself: {_ANEW[first]}; PARTITION (...) behind t "
                    "writes one partition"
                )
            raise ConfigError(f"{words.peek().text[:40]!r} begins no statement that is known here; known are {_KNOWN}")
        message, rows = store.execute(statement.text, self._settings) if isinstance(store, SqlStore) else known[first](words)
        return StatementResult(statement, message, rows)

    def _set(self, statement: Statement) -> StatementResult:
        key, sign, value = statement.text[3:].partition("=")
        if not sign or not key.strip() or "\n" in value.strip():
            raise ConfigError(f"set: write SET key=value; {' '.join(statement.text.split())[:100]!r}")
        self._settings[key.strip()] = value.strip()
        return StatementResult(statement, f"set {key.strip()}={value.strip()}", settings={key.strip(): value.strip()})

    def _use(self, words: Words) -> tuple[str, pa.Table | None]:
        words.need("use")
        self.project = check_project(words.name("project"))
        words.end()
        return f"the project is {self.project}", None

    # -- names

    def _name(self, words: Words) -> TableName:
        return TableName.parse(words.table(), self.project).for_sql()

    def _partition(self, words: Words, name: TableName) -> TableName:
        """Take PARTITION (...), in which every key must have a value, and return the partition's name."""
        keys = partition_of(words, name)
        missing = next((key for key, value in keys if value is None), None)
        if missing is not None:
            raise words.wrong(f"the partition column {missing} has no value")
        partition: Partition = tuple((key, value or "") for key, value in keys)
        return name.at(partition)

    # -- tables

    def _create(self, words: Words) -> tuple[str, pa.Table | None]:
        _check_kind(words)
        made = ddl.parse_create(words.text)
        name = TableName.parse(made.table, self.project).for_sql()
        store = self._store(name.project)
        if made.if_not_exists and store.exists(name):
            self._idle = True
            return f"{name.sql} is there already, and stays as it is", None
        if made.like is not None:
            other = TableName.parse(made.like, self.project).for_sql()
            like = self._store(other.project).describe(other)
            store.create(name, dataclasses.replace(like, lifecycle=made.lifecycle), made.if_not_exists)
        elif made.select is not None:
            rows = create_as(made, name, self._store, self.project)
            return f"created {name.sql}, with {rows:,} row{'s' * (rows != 1)}", None
        elif made.info is not None:
            store.create(name, made.info, made.if_not_exists)
        return f"created {name.sql}", None

    def _drop(self, words: Words) -> tuple[str, pa.Table | None]:
        _check_kind(words)
        words.need("drop")
        words.need("table")
        if_exists = words.maybe("if", "exists")
        name = self._name(words)
        words.maybe("purge")
        words.end()
        store = self._store(name.project)
        if if_exists and not store.exists(name):
            self._idle = True
            return f"{name.sql} is not there", None
        store.drop(name, if_exists)
        return f"dropped {name.sql}", None

    def _truncate(self, words: Words) -> tuple[str, pa.Table | None]:
        words.need("truncate")
        words.need("table")
        name = self._name(words)
        if words.peek().low == "partition":
            name = self._partition(words, name)
        words.end()
        store = self._store(name.project)
        info = store.describe(name)
        parts = [name.at(one) for one in store.partitions(name)] if info.partitions else [name]
        of = "/".join(f"{key}={value}" for key, value in name.partition)
        if of and not parts:
            raise SinkError(f"truncate: {name.sql} has no partition {of}")
        store.commit([store.output(one, overwrite=True) for one in parts])
        return f"emptied {f'{of} of ' if of else ''}{name.sql}", None

    def _alter(self, words: Words) -> tuple[str, pa.Table | None]:
        words.need("alter")
        words.need("table")
        name = self._name(words)
        said, changed = alter(words, name, self._store(name.project), lambda: self._partition(words, name))
        self._idle = not changed
        return said, None

    # -- rows

    def _insert(self, words: Words) -> tuple[str, pa.Table | None]:
        return self._inserted([self._part_of(words)])

    def _inserted(self, parts: Sequence[Insert]) -> tuple[str, pa.Table | None]:
        rows = inserted(parts, self._store, self.project)
        done = (
            f"{'wrote' if one.overwrite else 'added'} {n:,} row{'s' * (n != 1)} to {one.name.sql}"
            for one, n in zip(parts, rows)
        )
        return "; ".join(done), None

    def _part_of(self, words: Words, before: str = "") -> Insert:
        """Parse an INSERT.

        Args:
            before: text before INSERT that belongs to its query: WITH.
        """
        words.need("insert")
        overwrite = words.maybe("overwrite")
        if not overwrite:
            words.need("into")
        words.maybe("table")
        name = self._name(words)
        keys = partition_of(words, name) if words.peek().low == "partition" else []
        columns: list[str] | None = None
        if words.peek().text == "(" and not is_query(words):
            columns = names_in(words)
        return Insert(name, keys, columns, before + words.rest(), overwrite)

    def _with(self, words: Words) -> tuple[str, pa.Table | None]:
        """Run WITH ... SELECT, WITH ... INSERT ... SELECT, or WITH ... FROM ... INSERT ... SELECT ... INSERT ... SELECT."""
        at, first = _behind_with(words.text)
        before, rest = words.text[:at], words.text[at:]
        if first == "from":
            return self._from(Words(rest, "from"), before)
        return self._inserted([self._part_of(Words(rest, "insert"), before)]) if first == "insert" else self._select(words)

    def _from(self, words: Words, before: str = "") -> tuple[str, pa.Table | None]:
        """Run FROM ... INSERT ... SELECT ... INSERT ... SELECT ...

        Args:
            before: the WITH clause before it.
        """
        return self._inserted([self._part_of(Words(one, "insert"), before) for one in several(words)])

    def _count(self, words: Words) -> tuple[str, pa.Table | None]:
        words.take()
        name = self._part(words)
        words.end()
        return "", pa.table({"_c0": pa.array([self._store(name.project).count(name)], pa.int64())})

    def _read(self, words: Words) -> tuple[str, pa.Table | None]:
        """Run `read t [(a, b)] [partition (...)] [10]`."""
        words.take()
        name = self._name(words)
        columns = names_in(words) if words.peek().text == "(" else None
        if words.peek().low == "partition":
            name = self._partition(words, name)
        most = MOST_ROWS if words.done() else words.number("how many rows")
        words.end()
        with self._store(name.project).reading(name) as reading:
            return "", rows_of(reading, columns, most, name).read_all()

    def _part(self, words: Words) -> TableName:
        name = self._name(words)
        return self._partition(words, name) if words.peek().low == "partition" else name

    def _analyze(self, words: Words) -> tuple[str, pa.Table | None]:
        words.take()
        words.need("table")
        name = self._part(words)
        words.need("compute", "statistics")
        self._store(name.project).describe(name.whole)
        return f"{name.sql}: rows are counted whenever they are asked for", None

    def _select(self, words: Words) -> tuple[str, pa.Table | None]:
        with Queries(self._store, self.project) as queries:
            reader = queries.rows(words.text)
            batches: list[pa.RecordBatch] = []
            left = MOST_ROWS
            for batch in queries.draw(reader):
                batches.append(batch.slice(0, left))
                left -= batches[-1].num_rows
                if not left:
                    break
            named = column_names(queries, reader.schema.names)
        table = pa.Table.from_batches(batches, schema=reader.schema).rename_columns(named)
        return "" if left else f"the first {MOST_ROWS:,} rows; CREATE TABLE ... AS SELECT keeps all", table

    # -- looking

    def _desc(self, words: Words) -> tuple[str, pa.Table | None]:
        words.take()
        words.maybe("extended")
        name = self._name(words)
        if words.peek().low == "partition":
            name = self._partition(words, name)
        words.end()
        info = self._store(name.project).describe(name)
        return described(name, info, self._store(name.project).count(name)), columns_of(info)

    def _show(self, words: Words) -> tuple[str, pa.Table | None]:
        words.take()
        if words.maybe("create", "table"):
            name = self._name(words)
            words.end()
            info = self._store(name.project).describe(name)
            return ddl.create_sql(name.table, info), None
        if words.maybe("partitions"):
            name = self._name(words)
            words.end()
            every = self._store(name.project).partitions(name)
            return "", pa.table({"partition": ["/".join(f"{key}={value}" for key, value in one) for one in every]})
        words.need("tables")
        project = words.name("project") if words.maybe("in") or words.maybe("from") else self.project
        words.maybe("like")
        pattern = words.string("a pattern") if not words.done() else "*"
        words.end()
        if not project:
            raise ConfigError(
                "show tables: of which project? give one (--project, AKRUNNER_PROJECT), or write SHOW TABLES IN project"
            )
        there = [one for one in self._store(project).tables(project) if fnmatch.fnmatch(one, pattern.replace("%", "*"))]
        return "", pa.table({"table": pa.array(there, pa.string())})
