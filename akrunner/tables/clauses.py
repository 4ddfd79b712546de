"""Clauses that several statements share: PARTITION (...), and names in parentheses; and descriptions of tables."""

from __future__ import annotations

import pyarrow as pa

from akrunner.tables import types
from akrunner.tables.names import TableName, check_value
from akrunner.tables.sqltext import Words
from akrunner.tables.store import TableInfo

#: types that may stand before a constant in quotes
_TYPES = frozenset(("tinyint", "smallint", "int", "bigint", "date", "string"))


def partition_of(words: Words, name: TableName) -> list[tuple[str, str | None]]:
    """Parse PARTITION (...) and return its (key, value) pairs; a value is None if the rows give it.

    Raises:
        ConfigError: the clause is malformed.
    """
    words.need("partition")
    words.need("(")
    found: list[tuple[str, str | None]] = []
    while True:
        key = words.name("partition column").lower()
        if any(key == known for known, _ in found):
            raise words.wrong(f"the partition column {key} is there twice")
        value: str | None = None
        if words.maybe("="):
            token = words.peek()
            if token.low == "null":
                raise words.wrong(f"the partition column {key} cannot be null: a text in quotes was expected")
            value = _constant(words)
            check_value(str(name), key, value)
        found.append((key, value))
        if words.maybe(")"):
            return found
        if not words.maybe(",") and not words.maybe("/"):
            raise words.wrong(
                f"the value of the partition column {key} is a constant: a number, or a text in quotes like {key}='2026-01-31'"
            )


def _constant(words: Words) -> str:
    """Take a constant: a text in quotes, also behind its type (`date '2026-01-31'`), a number with its sign, or a word."""
    sign = next((one for one in ("-", "+") if words.maybe(one)), "")
    if not sign and words.peek().low in _TYPES and words.peek(1).kind == "text":
        words.take()
    if words.peek().kind == "text" and not sign:
        return words.string("a value")
    number = words.take().value
    if sign and not (number.isascii() and number.isdigit()):
        raise words.wrong("a number was expected behind the sign")
    return f"-{number}" if sign == "-" else number


def is_query(words: Words) -> bool:
    """Whether the parentheses that follow hold a query, and not names of columns."""
    return words.rest()[1:].lstrip().lower().startswith(("select", "with", "("))


def names_in(words: Words) -> list[str]:
    words.need("(")
    found = [words.name("column")]
    while words.maybe(","):
        found.append(words.name("column"))
    words.need(")")
    return found


def described(name: TableName, info: TableInfo, rows: int) -> str:
    """Return one line that describes a table."""
    parts = [f"{name.sql}: {rows:,} row{'s' * (rows != 1)}", f"{len(info.columns)} column{'s' * (len(info.columns) != 1)}"]
    if info.partitions:
        parts.append(f"partitioned by {', '.join(info.partitions)}")
    if info.lifecycle is not None:
        parts.append(f"lifecycle {info.lifecycle} (nothing is deleted by it)")
    return ", ".join(parts) + (f"; {info.comment}" if info.comment else "")


def columns_of(info: TableInfo) -> pa.Table:
    """Return a table with one row for each column: its name, type and comment."""
    fields = list(info.columns)
    return pa.table(
        {
            "column": pa.array([*(field.name for field in fields), *info.partitions], pa.string()),
            "type": pa.array(
                [*(types.words_of(field) for field in fields), *(types.words_of(one) for one in info.keys)], pa.string()
            ),
            "comment": pa.array(
                [*(types.comment_of(field) for field in fields), *("partition" for _ in info.partitions)], pa.string()
            ),
        }
    )
