"""Databases that are one file on this machine: which file a URL names, and a new one that is there only when the job has succeeded."""

from __future__ import annotations

import os
from collections.abc import Sequence

from akrunner import leftovers
from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io.rename import move_new
from akrunner.io.systems.base import Url
from akrunner.io.unfinished import came_meanwhile, partial_of
from akrunner.wire.near import nearest

#: files that SQLite and DuckDB keep beside theirs while they write
_BESIDE = ("", "-journal", "-wal", "-shm", ".wal")


def path_of(url: Url, scheme: str) -> str:
    """The absolute path of the file, as SQLAlchemy reads such URLs: three slashes and a relative path, or four and an absolute one.

    Raises: ConfigError: the URL has a host, or no path.
    """
    rest = url.base.partition("://")[2]
    if not rest.startswith("/") or rest == "/":
        raise ConfigError(f"{url.shown}: write {scheme}:///FILE for a file here, {scheme}:////DIRECTORY/FILE for a whole path")
    if "\0" in rest:
        raise ConfigError(f"{url.shown}: the path has a NUL byte in it")
    return os.path.abspath(os.path.expanduser(rest[1:]))


def check_there(path: str, url: Url) -> None:
    """Raises: SourceError: there is no such file."""
    if not os.path.isfile(path):
        kind = "is a directory" if os.path.isdir(path) else "is not there"
        raise SourceError(f"source: {url.shown}: {path} {kind}")


def which_table(url: Url, there: Sequence[str]) -> str:
    """The table a URL names, or the only one there is. Raises: SourceError: which one is not said, or it is not there."""
    listed = f"{', '.join(there[:10])}{' and others' if len(there) > 10 else ''}" if there else "none"
    if url.table is None:
        if len(there) == 1:
            return there[0]
        raise SourceError(f"source: {url.shown}: which table? put ?table=NAME behind it (there are: {listed})")
    found = next((one for one in there if one.lower() == url.table.lower()), None)
    if found is None:
        raise SourceError(
            f"source: {url.shown}: there is no table {url.table!r} (there are: {listed}){nearest(url.table, list(there))}"
        )
    return found


class Target:
    """The file an output is written to. A new database is made under another name, so that there is none if the job fails.

    Attributes: at: what is to be opened; new: whether there is no database yet.
    """

    def __init__(self, path: str, shown: str) -> None:
        self._path, self._shown = path, shown
        self.new = not os.path.exists(path)
        self.at = path
        folder = os.path.dirname(path)
        if not self.new and not os.path.isfile(path):
            raise SinkError(f"output: {shown}: {path} is no file")
        if not os.path.isdir(folder):
            raise SinkError(f"output: {shown}: the directory {folder} is not there")
        if not os.access(folder, os.W_OK | os.X_OK) or not (self.new or os.access(path, os.W_OK)):
            raise SinkError(f"output: {shown}: nothing may be written to {path}")

    def begin(self) -> None:
        """From now on the file is made, and goes if this process dies."""
        if self.new:
            self.at = partial_of(self._path)
            for end in _BESIDE:
                leftovers.register(self.at + end)

    def commit(self) -> None:
        """Put a new database in its place; nobody has it open. Raises: WriteError: there is one by now."""
        if not self.new:
            return
        with open(self.at, "rb+") as file:
            os.fsync(file.fileno())
        try:
            move_new(self.at, self._path)
        except FileExistsError:
            raise came_meanwhile(self._shown) from None
        self.drop()

    def drop(self) -> None:
        """Remove what is left of a database that was to be new."""
        if self.new and self.at != self._path:
            for end in _BESIDE:
                leftovers.drop(self.at + end)
