"""Outputs that also create their table, for `put` and CREATE TABLE AS."""

from __future__ import annotations

from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo, TableOutput, TablePart, TableStore


def new_table(store: TableStore, name: TableName, info: TableInfo) -> TableOutput:
    """Return an output that also creates its table: `commit` makes both the table and its rows visible, `abort` leaves neither.

    Raises:
        SinkError: the table exists.
    """
    return store.creating(name, info) if isinstance(store, LocalTables) else _Made(store, name, info)


class _Made:
    """An output for a store that must create the table first: `abort` drops the table."""

    def __init__(self, store: TableStore, name: TableName, info: TableInfo) -> None:
        self._store, self.name, self.info = store, name, info
        store.create(name.for_output().whole, info)
        self._kept = False
        try:
            self._output = store.output(name)
        except BaseException:
            store.drop(name.whole, if_exists=True)
            raise

    def part(self, key: str) -> TablePart:
        return self._output.part(key)

    def restart(self) -> None:
        self._output.restart()

    def commit(self) -> None:
        self._output.commit()
        self._kept = True

    def abort(self) -> None:
        self._output.abort()
        if not self._kept:
            self._kept = True
            self._store.drop(self.name.whole, if_exists=True)
