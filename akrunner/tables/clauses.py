"""Parts of statements that several of them have: PARTITION (...), names in parentheses; and a table in words."""

from __future__ import annotations

import pyarrow as pa

from akrunner.tables import types
from akrunner.tables.names import TableName, check_value
from akrunner.tables.sqltext import Words
from akrunner.tables.store import TableInfo

#: what may stand before a constant in quotes
_TYPES = frozenset(("tinyint", "smallint", "int", "bigint", "date", "string"))


def partition_of(words: Words, name: TableName) -> list[tuple[str, str | None]]:
    """(key, value) of each behind PARTITION; None: it comes from the rows. Raises: ConfigError."""
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
    """A text in quotes, also behind its type (`date '2026-01-31'`); a number, with its sign; a word."""
    sign = next((one for one in ("-", "+") if words.maybe(one)), "")
    if not sign and words.peek().low in _TYPES and words.peek(1).kind == "text":
        words.take()
    if words.peek().kind == "text" and not sign:
        return words.string("a value")
    number = words.take().value
    if sign and not number.isascii():
        raise words.wrong("a number was expected behind the sign")
    return f"-{number}" if sign == "-" else number


def is_query(words: Words) -> bool:
    """Whether what stands in parentheses is a query, and not names of columns."""
    return words.rest()[1:].lstrip().lower().startswith(("select", "with", "("))


def names_in(words: Words) -> list[str]:
    words.need("(")
    found = [words.name("column")]
    while words.maybe(","):
        found.append(words.name("column"))
    words.need(")")
    return found


def described(name: TableName, info: TableInfo, rows: int) -> str:
    """A table in a line."""
    parts = [f"{name.sql}: {rows:,} row{'s' * (rows != 1)}", f"{len(info.columns)} column{'s' * (len(info.columns) != 1)}"]
    if info.partitions:
        parts.append(f"partitioned by {', '.join(info.partitions)}")
    if info.lifecycle is not None:
        parts.append(f"lifecycle {info.lifecycle} (nothing is deleted by it)")
    return ", ".join(parts) + (f"; {info.comment}" if info.comment else "")


def columns_of(info: TableInfo) -> pa.Table:
    """A row for each column."""
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
