"""Runs SQL over a table while the table is read, with DuckDB.

::

    long or deep text --> a process that only parses it, with a deadline  DuckDB's parser can be neither interrupted nor bounded
    query ------------->  a thread of its own                             Ctrl-C, `timeout=` and the job's end interrupt it
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

from akrunner import leftovers
from akrunner.errors import AkrunnerError, ConfigError, SourceError
from akrunner.foreign import ours
from akrunner.io.own_queries import connected
from akrunner.io.table import BATCH_ROWS, TableSource, opened_once
from akrunner.schema import replaced

#: the text that turns expressions into a query
_BEFORE, _BEHIND = "SELECT ", " FROM input"
#: the table in a query, and what it is called while its rows are copied for one that reads them more than once
_INPUT, _STREAM = re.compile(r"\binput\b", re.IGNORECASE), "akrunner_input"
#: what begins a part of a query that reads its table again and again, though it names it once
_REPEATS = re.compile(r"\b(?:recursive|pivot(?:_wider)?)\b", re.IGNORECASE)
#: what makes columns of values, so that the plan for a table without rows lacks the columns that these come from
_PIVOT = re.compile(r"\bpivot(?:_wider)?\b", re.IGNORECASE)
#: what in a query is no word of SQL: comments, texts and quoted names
_QUOTED = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$).*?\1""", re.DOTALL)
#: what DuckDB says of rows that come once if a query reads them again
_CONSUMED = "already been consumed"
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
#: the words with which a query begins, and how similar a misspelt word must be to be taken for one of them
_BEGINNINGS, _ALIKE = ("SELECT", "WITH", "FROM", "VALUES"), 0.7
#: the line of a query, and the marks below it, in an error of DuckDB's
_MADE = re.compile(r"(?P<head>LINE (?P<number>\d+): )(?P<line>.*)\n(?P<before> *)(?P<marks>\^+)")
#: what DuckDB says about a table that is not there, with one of its own in place of it
_OTHER_TABLES = re.compile(r'(?<=does not exist!)\nDid you mean "(?:sqlite|duckdb|pg)_\w+"\?')
_STATEMENT = re.compile(r"\s*(select|with|from|values)\b", re.IGNORECASE)
_STRING = re.compile(r"'(?:[^']|'')*'")
#: how many parts a name may have: with each part, DuckDB tries many more ways to look the name up
_PARTS = 20
_LONG_NAME = re.compile(rf'(?:\.\s*(?:\w+|"[^"]*")\s*){{{_PARTS}}}')
#: how many characters a query may have
_LONGEST = 1 << 20
#: shorter texts are parsed within a second, whatever they are; in longer ones DuckDB may read the text behind an unclosed
#: parenthesis again and again
_HARMLESS = 400
#: processor seconds that parsing a query may take, and how many seconds it may last on a busy machine
_PARSE_SECONDS = 3
_PARSE_WAIT = 30.0
_PARSER = """
import json, resource, sys
sys.path[:], query, seconds = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import duckdb
try:
    # parses it and runs none of it
    duckdb.connect(config={"enable_external_access": "false"}).execute("SELECT length(json_serialize_sql(?))", [query]).fetchall()
except duckdb.Error:
    pass  # DuckDB says so once more, to whoever asked
"""
#: DuckDB's types whose values change silently on their way into Arrow
_CHANGED = {
    "TIME WITH TIME ZONE": "whose zone Arrow would not keep",
    "BIT": "of which Arrow would have DuckDB's own bytes",
    "UHUGEINT": "whose highest numbers would be negative in Arrow",
}
_TICK = 0.1
#: how many seconds an interrupted query may take to end
_END_SECONDS = 5.0

_Given = TypeVar("_Given")


def selected(table: TableSource, select: str, left: Callable[[], float | None] | None = None) -> TableSource:
    """Return the result of a query as a table; the rows are computed as they are drawn.

    Args:
        table: the table, which the query calls `input`.
        select: a query, or only the expressions between SELECT and FROM.
        left: returns how many seconds the query may take to give its first rows, None: for ever; called when it begins, and once they are
            over, to raise an error of its own. None: for ever.
    Raises:
        SourceError: DuckDB refuses the query; the message has DuckDB's own words and caret.
    """
    query = _whole(select)
    is_query = query == select
    check_query(query, "select", SourceError)
    mixed = _check_case(query, table.schema)
    try:
        running = [_Query(table, query, left)]
    except SourceError as e:
        raise e if is_query else _as_written(e, select) from None
    first = running[0]
    if mixed is not None:
        first.close()
        raise mixed

    def again() -> Iterator[pa.RecordBatch]:
        # there is no limit here: the job that reads the table again has its own
        running[:] = [_Query(table, query, None)]
        return running[0].batches()

    def stop() -> None:
        running[0].stop()
        table.stop()

    # a query's rows are not those of any of the files, and nobody knows how many it has
    opened = opened_once(first.batches(), again)
    return dataclasses.replace(
        table, schema=first.schema, open=opened, files=None, held=None, each=None, stop=stop, extent=None
    )


def _whole(select: str) -> str:
    """Return a query, also if only the expressions between SELECT and FROM are given."""
    return select if _STATEMENT.match(select) else f"{_BEFORE}{select}{_BEHIND}"


def columns_read(select: str, schema: pa.Schema) -> set[str]:
    """Return the columns of a table whose values a query needs, as DuckDB's plan of it shows; all of them if it shows none.

    The result does not depend on the values of the others. Nothing is read; a query that DuckDB refuses needs all columns.
    Raises:
        SourceError: the query is too long, or nested too deep.
    """
    query = _whole(select)
    check_query(query, "select", SourceError)
    scans = _scans(query, schema)
    if not scans or any("Projections" not in one for one in scans) or _PIVOT.search(_QUOTED.sub(" ", query)):
        return set(schema.names)
    return {name for one in scans for name in _names(one, schema.names)}


def _names(scan: dict[str, Any], names: list[str]) -> set[str]:
    """Return which of a table's columns a scan reads."""
    # DuckDB writes a name as it is, with a line for each, and that of a part of a struct behind it
    lines = f"\n{_text(scan['Projections'])}\n"
    read = {name for name in names if f"\n{name}\n" in lines or f"\n{name}." in lines}
    filters = _text(scan.get("Filters"))
    if not any("'" in name for name in names):
        filters = _STRING.sub("''", filters)
    # the longest first: a column `x y` is no `x`
    some = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name)
    return read.union(re.findall(rf"(?<!\w)(?:{some})(?!\w)", filters))


def _text(told: Any) -> str:
    """Return what a plan says of something, which is a list if it has more than one line."""
    return "\n".join(told) if isinstance(told, list) else told or ""


def _check_case(query: str, schema: pa.Schema) -> SourceError | None:
    """Check that a query reads no columns whose names differ only in case, which DuckDB takes for one.

    Returns: the error to raise if DuckDB does run the query, for which it has shown no plan; its own reason to refuse it comes first.
    Raises:
        SourceError: it does, as DuckDB's plan shows.
    """
    alike: dict[str, list[str]] = {}
    # two columns of the very same name are told apart by a query, as a and a_1
    for name in dict.fromkeys(schema.names):
        alike.setdefault(name.lower(), []).append(name)
    mixed = [names for names in alike.values() if len(names) > 1]
    read = columns_read(query, schema) if mixed else set()
    for names in mixed:
        if read.intersection(names):
            wrong = SourceError(
                f"select: the names of the columns {' and '.join(map(repr, names))} differ only in case, and SQL would take them for one: "
                "rename them where the table is made; columns= (--columns) without select= tells them apart"
            )
            if not _scans(query, schema):
                return wrong
            raise wrong
    return None


def _reads_again(query: str, schema: pa.Schema) -> bool:
    """Whether a query may read its table more than once."""
    if _REPEATS.search(_QUOTED.sub(" ", query)):
        return True
    if len(_INPUT.findall(query)) < 2:
        return False
    scans = _scans(query, schema)
    # a query that also reads files has no plan
    return scans is None or len(scans) > 1


def _told(error: Exception) -> str:
    """Return what DuckDB says of a query that failed, without what only a program could follow."""
    if _CONSUMED in str(error):
        return (
            "the query reads its table again in a way that cannot be seen ahead, and the rows come once: name `input` once, in "
            "WITH t AS MATERIALIZED (FROM input) SELECT ... FROM t, and read t as often as you like"
        )
    return _OTHER_TABLES.sub("", str(error))


def _scans(query: str, schema: pa.Schema) -> list[dict[str, Any]] | None:
    """Return what DuckDB's plan says of each scan of the table that a query makes; none if DuckDB refuses the query. None: there is no
    plan, as the query also reads something else than the table."""
    import duckdb

    with contextlib.closing(duckdb.connect(config={"enable_external_access": "false"})) as connection:
        connection.register("given", pa.RecordBatchReader.from_batches(schema, iter(())))
        try:
            connection.execute("CREATE TABLE input AS SELECT * FROM given")
            # the plan must not be made for a table that is known to be empty
            connection.execute("SET disabled_optimizers='statistics_propagation'")
            plan = json.loads(connection.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchall()[0][1])
        except duckdb.PermissionException:
            return None
        except (duckdb.Error, ValueError, IndexError):
            return []
    return [node["extra_info"] for node in _nodes(plan) if "Table" in node.get("extra_info", {})]


def _nodes(plan: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in plan:
        yield node
        yield from _nodes(node.get("children", []))


def _as_written(error: SourceError, select: str) -> SourceError:
    """Return the error of a query that was made of expressions, changed to be about the text that the user wrote, without the
    words around it."""
    told, _, columns = str(error).rpartition("\n(")
    if "Parser Error" not in told:
        return SourceError(_MADE.sub(_moved, str(error)))
    if _FROM.search(select):
        # the expressions have a FROM of their own, so the user meant a whole query
        wrong = _misread(select)
        if not wrong:
            return SourceError(f"select: {select!r} is not a query that returns rows; one begins with SELECT")
        near = difflib.get_close_matches(select.split(None, 1)[0].upper(), _BEGINNINGS, 1, _ALIKE)
        meant = f"did you mean {near[0]}?" if near else "a query begins with SELECT; expressions alone have no FROM behind them"
        return SourceError(f"select: {wrong}\n{meant}\n({columns}")
    made = _MADE.sub(_moved, told)
    if made.endswith(f"{select}\n{' ' * (len('LINE 1: ') + len(select))}^"):
        # DuckDB stumbled over the text that was added behind the expressions
        made = made.replace('at or near "FROM"', "at its end")
    return SourceError(f"{made}\n({columns}")


def _misread(query: str) -> str:
    """Return the error of DuckDB's parser for a text; "" if the text is a statement of some kind."""
    import duckdb

    with contextlib.closing(connected()) as connection:
        try:
            # this parses the text and runs none of it
            connection.extract_statements(query)
        except duckdb.Error as e:
            return str(e)
    return ""


def _moved(found: re.Match[str]) -> str:
    """Return the line of a query that an error shows, and the marks below it, without what was added around the user's text."""
    head, line, at = found["head"], found["line"], len(found["before"])
    if found["number"] == "1" and line.startswith(_BEFORE):
        line, at = line.removeprefix(_BEFORE), at - len(_BEFORE)
    line = line.removesuffix(_BEHIND)
    end = len(head) + len(line)
    marks = found["marks"][: max(1, end - at)]
    return f"{head}{line}\n{' ' * min(at, end)}{marks}"


def check_query(query: str, parameter: str, kind: type[ConfigError]) -> None:
    """Check that DuckDB can parse a query.

    Raises:
        ConfigError: of the class `kind`: the query is so long, or nested so deep, that DuckDB's parser would run for ever or
            end the process.
    """
    if len(query) > _LONGEST:
        raise kind(f"{parameter}: the query has {len(query):,} characters; {_LONGEST:,} are allowed")
    if len(query) <= _HARMLESS:
        return
    if _LONG_NAME.search(_STRING.sub("''", query)):
        raise kind(f"{parameter}: a name in the query has more than {_PARTS} parts with dots between them: {query[:60]!r}...")
    told = json.dumps([sys.path, query, _PARSE_SECONDS]).encode()
    with ours(kind, f"{parameter}: the query cannot be looked at"):
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", _PARSER],
                input=told,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PARSE_WAIT,
            )
            good = done.returncode == 0
        except subprocess.TimeoutExpired:
            good = False
    if not good:
        raise kind(
            f"{parameter}: DuckDB cannot parse the query within {_PARSE_SECONDS} s: it is nested too deep, or a parenthesis "
            f"is not closed: {query[:60]!r}..."
        )


def heard(work: Callable[[], _Given], interrupt: Callable[[], Any] | None = None, seconds: float | None = None) -> _Given:
    """Do work that may take long inside DuckDB, in a thread of its own: in Python's first thread DuckDB would take Ctrl-C
    itself, and raise an error of its own for it.

    Args:
        interrupt: ends the work early; it is called again and again until the work has ended. None: the work cannot be ended,
            and runs to its end by itself.
        seconds: how long the work may take; None: for ever.
    Raises:
        BaseException: whatever `work` raises.
        TimeoutError: the work took longer.
    """
    given: list[_Given] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            given.append(work())
        except BaseException as e:
            failed.append(e)
        finally:
            done.set()

    # not `join`: if a signal interrupts it, it takes the thread for ended (Python 3.11)
    done = threading.Event()
    threading.Thread(target=run, name="akrunner-query", daemon=True).start()
    try:
        late = None if seconds is None else time.monotonic() + seconds
        # wait only for short times: where polars was imported, Ctrl-C does not wake a thread that waits
        while not done.wait(_TICK if late is None else max(0.0, min(_TICK, late - time.monotonic()))):
            if late is not None and time.monotonic() >= late:
                raise TimeoutError
    except BaseException:
        deadline = time.monotonic() + _END_SECONDS
        while interrupt is not None and not done.is_set() and time.monotonic() < deadline:
            interrupt()
            done.wait(_TICK)
        raise
    if failed:
        raise failed[0]
    return given[0]


class _Query:
    """A running query.

    Attributes:
        schema: the schema of its rows.
    """

    def __init__(self, table: TableSource, query: str, left: Callable[[], float | None] | None) -> None:
        """Start the query and wait for its first rows.

        Args: left: as in `selected`.
        Raises:
            SourceError: the query fails, or gives no row in time.
        """
        import duckdb

        self._query = query
        self._failed: list[AkrunnerError] = []
        self._connection = duckdb.connect(config={"temp_directory": leftovers.temp_directory()})
        in_utc(self._connection)
        self._rows: pa.RecordBatchReader | None = None
        # rows come once: those of a table that the query reads more than once are kept
        self._again = _reads_again(query, table.schema)
        reader = pa.RecordBatchReader.from_batches(table.schema, _kept(table.batches(), self._failed))
        try:
            # this refuses columns of types that DuckDB does not have
            self._connection.register(_STREAM if self._again else "input", reader)
            seconds = left() if left is not None else None
            rows = self._rows = heard(self._begun, self._connection.interrupt, seconds)
        except TimeoutError:
            if left is not None:
                left()
            raise SourceError(f"select: the query had given no row after {seconds:g} s (timeout=)") from None
        except duckdb.Error as e:
            if self._failed:
                raise self._failed[0] from None
            columns = ", ".join(table.schema.names)
            said = _told(e)
            raise SourceError(f"select: {said}\n(the table is called `input`; its columns: {columns})") from None
        finally:
            if self._rows is None:
                # a query that cannot be interrupted now keeps the connection; the error of that is not the one to report
                with contextlib.suppress(duckdb.Error):
                    self._connection.close()
        self.schema = rows.schema

    def _begun(self) -> pa.RecordBatchReader:
        if self._again:
            self._connection.execute(f"CREATE TEMP TABLE input AS FROM {_STREAM}")
        result = self._connection.sql(self._query)
        if result is None:
            raise SourceError(f"select: {self._query!r} is not a query that returns rows")
        return duckdb_reader(result)

    def batches(self) -> Iterator[pa.RecordBatch]:
        import duckdb

        try:
            yield from self._rows or ()
        except (duckdb.Error, pa.ArrowException, OSError) as e:
            raise self._failed[0] if self._failed else SourceError(f"select: {_told(e)}") from None
        finally:
            self._connection.close()

    def close(self) -> None:
        """End a query whose rows nobody has begun to read."""
        self.stop()
        self._connection.close()

    def stop(self) -> None:
        """Interrupt the query; a thread that is reading its rows gets an error."""
        import duckdb

        with contextlib.suppress(duckdb.Error):  # the connection is already closed
            self._connection.interrupt()


def _kept(batches: Iterator[pa.RecordBatch], failed: list[AkrunnerError]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; if they end with an error, append it to `failed`, as DuckDB would report it as an error of its own."""
    try:
        yield from batches
    except AkrunnerError as e:
        failed.append(e)
        raise


def in_utc(connection: Any) -> None:
    """Let what a connection of DuckDB makes of times be the same on every machine, whatever time zone the machine is in."""
    connection.execute("SET SESSION TimeZone = 'UTC'")


def duckdb_reader(relation: Any) -> pa.RecordBatchReader:
    """Return a reader of a DuckDB relation's rows as they are computed, by the method that the installed DuckDB has for this.

    Raises:
        SourceError: a column has a type whose values would change on their way into Arrow.
    """
    for column in getattr(relation, "description", None) or ():
        _check_type(column[0], column[1])
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(BATCH_ROWS)
    return relation.fetch_record_batch(BATCH_ROWS)


def interrupting(relation: Any) -> Callable[[], None] | None:
    """Return a function that ends a DuckDB relation's query early; None if the query cannot be ended.

    A relation does not tell its connection, but one of DuckDB's default connection (`duckdb.sql`) can be recognized and ended.
    This runs nothing: a relation that is not drawn stays a plan, and a result that is being read goes on.
    """
    import duckdb

    try:
        # DuckDB refuses this, without running it, if the two are of different connections
        relation.cross(duckdb.sql("SELECT 1"))
    except duckdb.Error:
        return None
    return lambda: duckdb.interrupt()


def _check_type(name: str, kind: Any, inside: bool = False) -> None:
    wrong = _CHANGED.get(str(kind))
    if wrong is not None:
        instead = f"SELECT {replaced(name)}" if not inside else "CAST it to VARCHAR where it is made"
        raise SourceError(
            f"source: column {name!r} has DuckDB's type {kind}, {wrong}; turn it into another in the query: {instead}"
        )
    if getattr(kind, "id", "") in ("list", "array", "struct", "map", "union"):
        for _, child in kind.children:
            _check_type(name, child, True)
