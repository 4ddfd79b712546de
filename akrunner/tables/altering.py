"""Runs ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from akrunner.errors import ConfigError, SinkError
from akrunner.tables import ddl, types
from akrunner.tables.names import TableName
from akrunner.tables.sql import Queries
from akrunner.tables.sqltext import Words, quoted_name, quoted_text, tokens
from akrunner.tables.store import TableStore

_ANEW = "CREATE TABLE new AS SELECT ... FROM {} has the columns you name, and as you CAST them"
#: tokens that occur in a condition on partitions, but not in a list of their values
_CONDITION = frozenset(("<", ">", "!", "and", "or", "not", "in", "like", "rlike", "between", "(", "is"))
#: clauses that are accepted and change nothing
_NOTHING = (
    ("set", "comment"),
    ("set", "tblproperties"),
    ("enable", "lifecycle"),
    ("disable", "lifecycle"),
    ("changeowner", "to"),
    ("merge", "smallfiles"),
    ("compact",),
    ("touch",),
    ("set", "changelogs"),
)


def alter(words: Words, name: TableName, store: TableStore, partition: Callable[[], TableName]) -> tuple[str, bool]:
    """Run the clauses behind ALTER TABLE and the table's name.

    Args:
        partition: parses the clause PARTITION (...) that is next, and returns the partition's name.
    Returns:
        (a sentence that says what was done, whether there was anything to do).
    Raises:
        ConfigError: the clause is none that is known, or it cannot be done.
    """
    if words.maybe("change") or words.maybe("replace") or words.maybe("alter"):
        raise ConfigError(
            f"alter table: a column of the tables of this machine keeps its name and type; {_ANEW.format(name.sql)}"
        )
    if words.maybe("rename", "to"):
        project, _, new = words.table().rpartition(".")
        words.end()
        if project and project.lower() != name.project:
            raise ConfigError(
                f"alter table: {name.sql} cannot be renamed into another project; CREATE TABLE {project}.{new} AS SELECT * "
                f"FROM {name.sql} copies its rows"
            )
        store.rename(name, new)
        return f"renamed {name.sql} to {new}", True
    of = partition() if words.peek().low == "partition" else name
    sets_days = words.maybe("set", "lifecycle")
    if sets_days:
        words.number("a number of days")
    if sets_days or any(words.maybe(*one) for one in _NOTHING):
        if words.peek().low == "partition":
            of = partition()
        store.reading(of).close()
        return f"{name.sql}: lifecycle, comment and the like are accepted, and nothing is deleted by them", False
    if of is not name:
        raise words.wrong("a partition can be touched, and no more: INSERT OVERWRITE its rows into another, and drop it")
    adds = words.maybe("add")
    if not adds and not words.maybe("drop"):
        raise words.wrong("ADD PARTITION, DROP PARTITION, ADD COLUMNS, RENAME TO or SET LIFECYCLE was expected")
    if not adds and (words.maybe("columns") or words.maybe("column")):
        raise ConfigError(
            f"alter table: columns of the tables of this machine are added, and not dropped; {_ANEW.format(name.sql)}"
        )
    if adds and (words.maybe("columns") or words.maybe("column")):
        return _add_columns(words, name, store)
    lenient = words.maybe("if", "not", "exists") if adds else words.maybe("if", "exists")
    parts: list[TableName] = []
    first = True
    while first or words.maybe(",") or words.peek().low == "partition":
        first = False
        condition = None if adds else _filter(words)
        found = [partition()] if condition is None else _fitting(name, store, condition)
        if not found and not lenient:
            raise SinkError(
                f"alter table: {name.sql} has no partition with {condition}; DROP IF EXISTS PARTITION leaves it at that"
            )
        parts += found
    words.end()
    if not parts:
        return f"{name.sql} has no such partition", False
    if lenient and not any(store.exists(part) != adds for part in parts):
        return f"{name.sql} has {'these partitions already' if adds else 'no such partition'}", False
    (store.add_partitions if adds else store.drop_partitions)(parts, lenient)
    shown = ", ".join("/".join(f"{key}={value}" for key, value in part.partition) for part in parts)
    return f"{'added' if adds else 'dropped'} {shown} of {name.sql}", True


def _filter(words: Words) -> str | None:
    """Take the clause PARTITION (...) and return the condition in it.

    Returns None, and takes nothing, if the clause holds a list of values.
    """
    held, depth = [], 0
    for token in tokens(words.rest()):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        held.append(token)
        if token.text == ")" and not depth:
            break
    inner = held[2:-1]
    if not any(one.low in _CONDITION for one in inner):
        return None
    text = words.rest()[inner[0].at : inner[-1].end]
    for _ in held:
        words.take()
    return text


def _fitting(name: TableName, store: TableStore, condition: str) -> list[TableName]:
    """Return the partitions for which a condition is true.

    Raises:
        ConfigError: the text is no condition.
    """
    info, there = store.describe(name), store.partitions(name)
    if not there:
        return []
    rows = ", ".join(
        "(" + ", ".join([str(at), *(_valued(key, value) for key, (_, value) in zip(info.keys, one))]) + ")"
        for at, one in enumerate(there)
    )
    columns = ", ".join(map(quoted_name, ("odps_at", *info.partitions)))
    with Queries(lambda project: store, name.project) as queries:
        reader = queries.rows(f"SELECT odps_at FROM (VALUES {rows}) AS p({columns}) WHERE {condition}")
        chosen = sorted(at for batch in queries.draw(reader) for at in batch.column(0).to_pylist())
    return [name.at(there[at]) for at in chosen]


def _valued(key: pa.Field, value: str) -> str:
    """Return the value of a partition column as SQL."""
    return quoted_text(value) if pa.types.is_string(key.type) else f"cast({quoted_text(value)} as {types.words_of(key)})"


def _add_columns(words: Words, name: TableName, store: TableStore) -> tuple[str, bool]:
    lenient = words.maybe("if", "not", "exists")
    words.need("(")
    columns = ddl.columns_of(words)
    words.end()
    there = store.describe(name).columns.names
    new = [one for one in columns if not (lenient and one.name in there)]
    if new:
        store.add_columns(name, new)
    return f"added {', '.join(one.name for one in new) or 'nothing'} to {name.sql}", bool(new)
