"""What running statements would refuse at once, said without running them: tables are kept as they would be (`rehearsed`)."""

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

#: words behind which a statement names the table that it changes
_BEFORE_TABLES = ("table", "into", "overwrite", "to")


class Rehearsal:
    """Statements of one file, and what each would be refused for after those before it. Attributes: unchecked: of the last one, what of its file could
    not be checked, and why; "": nothing."""

    def __init__(
        self,
        store: Callable[[str], TableStore],
        project: str | None,
        folder: str = "",
        files: bool = False,
        tables: bool = False,
    ) -> None:
        """Args: store: project -> where its tables are; project: of names without one; folder: of the file; files, tables: programs that are
        run between the statements may change any."""
        self._base, self._folder = store, folder
        self._programs, self._blind = files, tables
        self._jobs = False
        self.unchecked = ""
        self._rehearsed: dict[str, RehearsedTables] = {}
        self._session = Session(self._kept, project, folder)
        #: files that a statement writes
        self._files: set[str] = set()

    def client(self, project: str | None) -> None:
        """A new client begins. Args: project: of names without one."""
        self._session = Session(self._kept, project, self._folder)

    def store(self, project: str) -> TableStore:
        """Where a project's tables are, as the statements so far leave them. Raises: ConfigError: credentials are not whole."""
        store = self._base(project)
        if not isinstance(store, LocalTables):
            return store
        return self._rehearsed.setdefault(store.place, RehearsedTables(store))

    def _kept(self, project: str) -> TableStore:
        """As `store`, which statements may change. Raises: Unforeseen: they would change it for everybody; nobody knows what is in it."""
        store = self.store(project)
        if self._blind or not isinstance(store, RehearsedTables):
            raise Unforeseen
        return store

    def problem(self, statement: Statement) -> AkrunnerError | None:
        """Why a statement would be refused; None: it would not, as far as can be known. What it changes is changed for the next."""
        self.unchecked = ""
        for one in self._rehearsed.values():
            one.begin()
        try:
            if not self._tunnel(statement):
                self._session.run(statement)
        except Unforeseen:
            # none but RENAME may have changed more of a table than its rows and partitions
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
        """A job writes these tables, and may make files."""
        self._jobs = True
        for text in outputs:
            name = TableName.parse(text, project)
            store = self.store(name.project)
            if isinstance(store, RehearsedTables):
                try:
                    store.written(name)
                except (ConfigError, Unforeseen):
                    # of which the job's plan tells
                    store.forget(name)

    def _tunnel(self, statement: Statement) -> bool:
        """Whether a statement is done with: a download, which would write its file."""
        if statement.kind != "tunnel":
            return False
        asked = tunnel.parsed(statement.text, self._session.project)
        if asked.upload:
            return False
        path = tunnel.file_path(asked.file)
        # a job's script makes files, and takes none away that others need; a program may be rm
        gone = self._programs and os.path.isfile(path)
        self._files.add(path)
        tunnel.check_download(asked, self._kept, gone)
        if gone:
            self.unchecked = f"whether {asked.file} is still there: programs run before it"
        return True

    def _before(self, asked: tunnel.Tunnel) -> str:
        """What may make the file of an upload, in words; "": nothing."""
        if self._programs:
            return f"the file {asked.file}: programs run before it, which may make or change it"
        if self._jobs:
            return f"the file {asked.file}: a script runs before it, which may make or change it"
        paths = {tunnel.file_path(one) for one in (asked.file, os.path.join(self._folder, asked.file))}
        made = any(one in paths or os.path.dirname(one) in paths for one in self._files)
        return f"the file {asked.file}: a download before it makes it" if made else ""

    def _missing(self, statement: Statement) -> AkrunnerError | None:
        """Of an upload to a table that cannot be followed, what is wrong with its file."""
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
        """Whether an upload fails for a file that is not there yet, or is another by then."""
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
        """What a statement that cannot be followed would change is not known any more. Args: wholly: nor which columns it has."""
        for name in self._changed(statement):
            store = self.store(name.project)
            if isinstance(store, RehearsedTables):
                store.forget(name) if wholly else store.blur(name)

    def _changed(self, statement: Statement) -> list[TableName]:
        """The tables that a statement changes, also one that is wrong."""
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
            pass  # what it names there is no table
        return found
