"""ALTER TABLE."""

from __future__ import annotations

from typing import Callable

from akrunner.errors import ConfigError
from akrunner.tables import ddl
from akrunner.tables.names import TableName
from akrunner.tables.sqltext import Words
from akrunner.tables.store import TableStore

#: what changes nothing here
_NOTHING = (
    ("set", "lifecycle"),
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


def alter(words: Words, name: TableName, store: TableStore, partition: Callable[[], TableName]) -> str:
    """Run what stands behind ALTER TABLE and the table's name. Args: partition: takes what stands behind PARTITION.

    Returns: what was done, in a sentence. Raises: ConfigError.
    """
    if words.maybe("rename", "to"):
        project, _, new = words.table().rpartition(".")
        words.end()
        if project and project.lower() != name.project:
            raise ConfigError(
                f"alter table: {name.sql} cannot be renamed into another project; CREATE TABLE {project}.{new} AS SELECT * FROM {name.sql} "
                "copies its rows"
            )
        store.rename(name, new)
        return f"renamed {name.sql} to {new}"
    of = partition() if words.peek().low == "partition" else name
    if any(words.maybe(*one) for one in _NOTHING):
        store.reading(of).close()
        return f"{name.sql}: lifecycle, comment and the like are accepted, and nothing is deleted by them"
    if of is not name:
        raise words.wrong("a partition can be touched, and no more: INSERT OVERWRITE its rows into another, and drop it")
    adds = words.maybe("add")
    if not adds and not words.maybe("drop"):
        raise words.wrong("ADD PARTITION, DROP PARTITION, ADD COLUMNS, RENAME TO or SET LIFECYCLE was expected")
    if adds and (words.maybe("columns") or words.maybe("column")):
        return _add_columns(words, name, store)
    lenient = words.maybe("if", "not", "exists") if adds else words.maybe("if", "exists")
    parts = [partition()]
    while words.maybe(",") or words.peek().low == "partition":
        parts.append(partition())
    words.end()
    (store.add_partitions if adds else store.drop_partitions)(parts, lenient)
    shown = ", ".join("/".join(f"{key}={value}" for key, value in part.partition) for part in parts)
    return f"{'added' if adds else 'dropped'} {shown} of {name.sql}"


def _add_columns(words: Words, name: TableName, store: TableStore) -> str:
    lenient = words.maybe("if", "not", "exists")
    words.need("(")
    columns = ddl.columns_of(words)
    words.end()
    there = store.describe(name).columns.names
    new = [one for one in columns if not (lenient and one.name in there)]
    if new:
        store.add_columns(name, new)
    return f"added {', '.join(one.name for one in new) or 'nothing'} to {name.sql}"
