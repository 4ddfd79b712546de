"""Parses CREATE TABLE statements, and writes them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from akrunner.errors import ConfigError
from akrunner.schema import check_name
from akrunner.tables import types
from akrunner.tables.sqltext import Words, quoted_name, quoted_text
from akrunner.tables.store import TableInfo

#: clauses about how a table is stored, which change nothing here
_STORED = ("stored", "tblproperties", "row", "clustered", "sorted", "range", "location", "with", "auto")

#: words that may follow the type of a column
_BEHIND_TYPE = ("comment", "not", "null", "default", "generated")


@dataclass(frozen=True)
class Create:
    """A parsed CREATE TABLE.

    Attributes:
        table: the table's name, as written.
        info: the table's definition; None for CREATE TABLE ... LIKE, and for AS SELECT, where the query gives the columns.
        if_not_exists: whether the statement says IF NOT EXISTS.
        like: the name of the table behind LIKE, as written; None for none.
        select: the query behind AS; None for none.
        lifecycle: days; None for none.
        comment: of the table; "" for none.
    """

    table: str
    info: TableInfo | None = None
    if_not_exists: bool = False
    like: str | None = None
    select: str | None = None
    lifecycle: int | None = None
    comment: str = ""


def parse_create(text: str) -> Create:
    """Parse a CREATE TABLE.

    Raises:
        ConfigError: the text is no CREATE TABLE of MaxCompute.
        SchemaError: a column's type is none of MaxCompute's.
    """
    words = Words(text, "create table")
    words.need("create")
    words.maybe("external")
    words.need("table")
    if_not_exists = words.maybe("if", "not", "exists")
    table = words.table()
    if words.maybe("like"):
        like = words.table()
        lifecycle = words.number("a number of days") if words.maybe("lifecycle") else None
        words.end()
        return Create(table, None, if_not_exists, like, lifecycle=lifecycle)
    columns = columns_of(words) if words.maybe("(") else None
    keys: list[pa.Field] = []
    comment, lifecycle, select = "", None, None
    while not words.done():
        if words.maybe("comment"):
            comment = words.string("a comment")
        elif words.maybe("partitioned", "by"):
            words.need("(")
            keys = list(map(_key, columns_of(words)))
        elif words.maybe("lifecycle"):
            lifecycle = words.number("a number of days")
        elif words.maybe("as") or (columns is None and words.peek().low in ("select", "with") and _is_query(words)):
            select = words.rest()
            break
        elif words.peek().low in _STORED:
            _skip(words)
        else:
            raise words.wrong("COMMENT, PARTITIONED BY, LIFECYCLE or AS was expected")
    if columns is None and select is None:
        raise words.wrong("its columns were expected: (name TYPE, ...)")
    if columns is not None and select is not None:
        raise words.wrong("a table made AS SELECT has the columns of the query; leave out those in parentheses")
    if columns is None:
        return Create(table, None, if_not_exists, select=select, lifecycle=lifecycle, comment=comment)
    kinds = tuple(map(types.words_of, keys))
    partitions = tuple(one.name for one in keys)
    info = TableInfo(pa.schema(columns), partitions, comment, lifecycle, kinds if set(kinds) != {"string"} else ())
    check_info(info)
    return Create(table, info, if_not_exists, lifecycle=lifecycle, comment=comment)


def _key(column: pa.Field) -> pa.Field:
    """Return `column`, if a table can be partitioned by it.

    Raises:
        ConfigError: MaxCompute does not allow its type for a partition column.
    """
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date(kind)):
        raise ConfigError(
            f"create table: partitioned by {column.name}, a {types.words_of(column)}: a partition's value is a text, a whole "
            f"number or a date, as in MaxCompute; write {column.name} STRING"
        )
    return column


def _is_query(words: Words) -> bool:
    return words.peek().low == "select" or "serdeproperties" not in words.rest()[:40].lower()


def check_info(info: TableInfo) -> None:
    """Check that a table can have these columns.

    Raises:
        ConfigError: there is no column, or one has no name, or two have the same name.
    """
    if not info.columns.names:
        raise ConfigError("create table: it has no column of its own")
    seen: set[str] = set()
    for name in [*info.columns.names, *info.partitions]:
        check_name(name)
        if not name or name.lower() in seen:
            raise ConfigError(
                f"create table: two columns are called {name!r}" if name else "create table: a column has no name"
            )
        seen.add(name.lower())


def columns_of(words: Words) -> list[pa.Field]:
    """Parse the list of columns whose opening parenthesis was already taken, up to and with its closing parenthesis."""
    found: list[pa.Field] = []
    while True:
        if words.maybe("primary", "key"):
            _parenthesised(words)
        else:
            found.append(_column(words))
        if words.maybe(")"):
            return found
        words.need(",")


def _column(words: Words) -> pa.Field:
    name = words.name("column").lower()
    begin, depth = words.peek().at, 0
    end = begin
    while not words.done():
        token = words.peek()
        if depth == 0 and (token.text in (",", ")") or token.low in _BEHIND_TYPE):
            break
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(token.text, 0)
        end = words.take().end
    if end == begin:
        raise words.wrong(f"the type of the column {name} was expected")
    kind, comment, nullable = words.text[begin:end], "", True
    while words.peek().text not in (",", ")"):
        if words.maybe("not", "null"):
            nullable = False
        elif words.maybe("null"):
            nullable = True
        elif words.maybe("comment"):
            comment = words.string("a comment")
        elif words.maybe("default"):
            _skip_default(words)
        else:
            raise words.wrong(f"behind the type of the column {name}, COMMENT or NOT NULL was expected")
    return types.field(name, kind, comment, nullable)


def _skip_default(words: Words) -> None:
    """Skip the value behind DEFAULT: a constant, with its sign, or an expression."""
    if words.peek().text in (",", ")"):
        raise words.wrong("a value was expected behind DEFAULT")
    depth = 0
    while not words.done():
        depth += {"(": 1, ")": -1}.get(words.take().text, 0)
        if depth == 0 and (words.peek().text in (",", ")") or words.peek().low in _BEHIND_TYPE):
            return


def _parenthesised(words: Words) -> None:
    words.need("(")
    depth = 1
    while depth:
        if words.done():
            raise words.wrong("a parenthesis is not closed")
        depth += {"(": 1, ")": -1}.get(words.take().text, 0)


def _skip(words: Words) -> None:
    """Skip a clause about how the table is stored."""
    words.take()
    words.maybe("as")
    while not words.done() and words.peek().low not in ("comment", "partitioned", "lifecycle", "as", *_STORED):
        if words.peek().text == "(":
            _parenthesised(words)
        elif words.maybe("into"):
            words.number("a number of buckets")
        else:
            words.take()


def create_sql(table: str, info: TableInfo, lines: bool = True) -> str:
    """Return the CREATE TABLE statement of a table, with its `;`.

    Args:
        table: the table's name in SQL.
        lines: whether each column has a line of its own.
    Raises:
        SchemaError: MaxCompute has no type for a column.
    """
    columns = [column_sql(column) for column in info.columns]
    parts = [f"CREATE TABLE {table} (" + ("\n    " + ",\n    ".join(columns) + "\n" if lines else ", ".join(columns)) + ")"]
    if info.comment:
        parts.append(f"COMMENT {quoted_text(info.comment)}")
    if info.partitions:
        parts.append(
            "PARTITIONED BY (" + ", ".join(f"{quoted_name(one.name)} {types.words_of(one).upper()}" for one in info.keys) + ")"
        )
    if info.lifecycle is not None:
        parts.append(f"LIFECYCLE {info.lifecycle}")
    return ("\n" if lines else " ").join(parts) + ";"


def column_sql(column: pa.Field) -> str:
    comment = types.comment_of(column)
    words = types.words_of(column)
    words = words.upper() if "`" not in words and "struct" not in words else words
    return (
        f"{quoted_name(column.name)} {words}"
        + ("" if column.nullable else " NOT NULL")
        + (f" COMMENT {quoted_text(comment)}" if comment else "")
    )
