"""Finds the statements that a run would refuse, without running them: `rehearsed` keeps the tables as the statements would
leave them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from akrunner.errors import AkrunnerError, ConfigError, SinkError, SourceError
from akrunner.tables import tunnel
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from akrunner.tables.rehearsed import RehearsedTables, Unforeseen
from akrunner.tables.sqltext import Words
from akrunner.tables.statements import Session, Statement, changes
from akrunner.tables.store import TableStore

#: words that precede the name of the table that a statement changes
_BEFORE_TABLES = ("table", "into", "overwrite", "to")


class Rehearsal:
    """The statements of one file, checked one after the other as if each had the changes of those before it.

    Attributes:
        unchecked: what of the last statement's file could not be checked, and why; "" if all was checked.
    """

    def __init__(
        self,
        store: Callable[[str], TableStore],
        project: str | None,
        folder: str = "",
        files: bool = False,
        tables: bool = False,
    ) -> None:
        """Begin with the tables as they are.

        Args:
            store: project -> where its tables are.
            project: the project of names that hold none.
            folder: of the file with the statements.
            files: whether programs that run between the statements may change files.
            tables: whether such programs may change tables.
        """
        self._base, self._folder = store, folder
        self._programs, self._blind = files, tables
        self._jobs = False
        self.unchecked = ""
        self._rehearsed: dict[str, RehearsedTables] = {}
        self._session = Session(self._kept, project, folder)
        #: files that the statements so far would write
        self._files: set[str] = set()

    def client(self, project: str | None) -> None:
        """Begin a new client, with `project` as the project of names that hold none."""
        self._session = Session(self._kept, project, self._folder)

    def store(self, project: str) -> TableStore:
        """Return a project's tables, as the statements so far would leave them.

        Raises:
            ConfigError: a part of the credentials is missing.
        """
        store = self._base(project)
        if not isinstance(store, LocalTables):
            return store
        return self._rehearsed.setdefault(store.place, RehearsedTables(store))

    def _kept(self, project: str) -> TableStore:
        """Return a project's tables, which statements may change.

        Raises:
            Unforeseen: a change could not be kept apart from the real tables, or other programs may have changed them.
        """
        store = self.store(project)
        if self._blind or not isinstance(store, RehearsedTables):
            raise Unforeseen
        return store

    def problem(self, statement: Statement) -> AkrunnerError | None:
        """Return the error with which a statement would be refused; None if it would not be, as far as that can be known.

        What the statement would change is changed for the next statements.
        """
        self.unchecked = ""
        for one in self._rehearsed.values():
            one.begin()
        try:
            if not self._tunnel(statement):
                self._session.run(statement)
        except Unforeseen:
            # only RENAME can have changed more of a table than its rows and partitions
            self._forget(statement, wholly="rename" in statement.text.lower())
            return self._missing(statement)
        except AkrunnerError as e:
            later = self._may_be_made(statement, e)
            self._forget(statement)
            return None if later else e
        for one in self._rehearsed.values():
            one.end()
        return None

    def job(self, outputs: Sequence[str], project: str | None) -> None:
        """Note that a job writes these tables, and may make files."""
        self._jobs = True
        for text in outputs:
            name = TableName.parse(text, project)
            store = self.store(name.project)
            if isinstance(store, RehearsedTables):
                try:
                    store.written(name)
                except (ConfigError, Unforeseen):
                    # the job's plan reports this error
                    store.forget(name)

    def _tunnel(self, statement: Statement) -> bool:
        """Check a download, which would write a file. Returns whether the statement is one, and needs no further check."""
        if statement.kind != "tunnel":
            return False
        asked = tunnel.parsed(statement.text, self._session.project)
        if asked.upload:
            return False
        path = tunnel.file_path(asked.file)
        # a job's script makes files, and is taken not to remove files that others need; a program may be `rm`
        gone = self._programs and os.path.isfile(path)
        self._files.add(path)
        tunnel.check_download(asked, self._kept, gone)
        if gone:
            self.unchecked = f"whether {asked.file} is still there: programs run before it"
        return True

    def _before(self, asked: tunnel.Tunnel) -> str:
        """Return words for what may make the file of an upload; "" if nothing does."""
        if self._programs:
            return f"the file {asked.file}: programs run before it, which may make or change it"
        if self._jobs:
            return f"the file {asked.file}: a script runs before it, which may make or change it"
        paths = {tunnel.file_path(one) for one in (asked.file, os.path.join(self._folder, asked.file))}
        made = any(one in paths or os.path.dirname(one) in paths for one in self._files)
        return f"the file {asked.file}: a download before it makes it" if made else ""

    def _missing(self, statement: Statement) -> AkrunnerError | None:
        """Return the error about the file of a tunnel command whose table cannot be followed; None if there is none."""
        if statement.kind == "tunnel":
            asked = tunnel.parsed(statement.text, self._session.project)
            try:
                if asked.upload:
                    tunnel.check_files(asked, self._folder)
                else:
                    path = tunnel.file_path(asked.file)
                    tunnel.check_target(asked, self._programs and os.path.isfile(path))
            except SourceError as e:
                self.unchecked = self._before(asked)
                return None if self.unchecked else e
            except SinkError as e:
                return e
        return None

    def _may_be_made(self, statement: Statement, error: AkrunnerError) -> bool:
        """Whether an upload fails only because its file is not there yet, or will have changed by then."""
        if statement.kind != "tunnel" or not isinstance(error, SourceError):
            return False
        try:
            asked = tunnel.parsed(statement.text, self._session.project)
            self._kept(asked.name.project).describe(asked.name)
        except (ConfigError, Unforeseen):
            return False
        self.unchecked = self._before(asked) if asked.upload else ""
        return bool(self.unchecked)

    def _forget(self, statement: Statement, wholly: bool = True) -> None:
        """Forget the tables that a statement changes, because its effect cannot be followed.

        Args:
            wholly: whether the columns of the tables are forgotten too.
        """
        for name in self._changed(statement):
            store = self.store(name.project)
            if isinstance(store, RehearsedTables):
                store.forget(name) if wholly else store.blur(name)

    def _changed(self, statement: Statement) -> list[TableName]:
        """Return the tables that a statement changes, even if the statement is wrong."""
        project = self._session.project
        found: list[TableName] = []
        try:
            if statement.kind == "tunnel":
                asked = tunnel.parsed(statement.text, project)
                found = [asked.name] if asked.upload else []
            elif statement.kind == "sql" and changes(statement):
                words = Words(statement.text, "")
                while not words.done():
                    if words.take().low in _BEFORE_TABLES:
                        words.maybe("table")
                        if not words.maybe("if", "exists"):
                            words.maybe("if", "not", "exists")
                        if words.peek().kind in ("word", "name"):
                            found.append(TableName.parse(words.table(), project))
        except ConfigError:
            pass  # the name in the statement is no name of a table
        return found
