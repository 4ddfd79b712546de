"""Databases that are one file on this machine: which file a URL names, and a new file that exists only once the job has
succeeded."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from akrunner import leftovers
from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io.rename import move_new
from akrunner.io.systems.base import Url
from akrunner.io.unfinished import came_meanwhile, partial_of
from akrunner.wire.near import nearest

#: the endings of files that SQLite and DuckDB keep beside a database while they write it
_BESIDE = ("", "-journal", "-wal", "-shm", ".wal")


def path_of(url: Url, scheme: str) -> str:
    """Return the absolute path of the file. As in SQLAlchemy, the URL has three slashes and a relative path, or four slashes
    and an absolute one.

    Raises:
        ConfigError: the URL has a host, or no path.
    """
    rest = url.base.partition("://")[2]
    if not rest.startswith("/") or rest == "/":
        raise ConfigError(f"{url.shown}: write {scheme}:///FILE for a file here, {scheme}:////DIRECTORY/FILE for a whole path")
    if "\0" in rest:
        raise ConfigError(f"{url.shown}: the path has a NUL byte in it")
    # two slashes at the beginning, which stay, are a host's to SQLite: sqlite:////$PWD/a.db has them
    return re.sub(r"\A//+", "/", os.path.abspath(os.path.expanduser(rest[1:])))


def check_there(path: str, url: Url) -> None:
    """Check that the file exists.

    Raises:
        SourceError: it does not.
    """
    if not os.path.isfile(path):
        kind = "is a directory" if os.path.isdir(path) else "is not there"
        folder, name = os.path.split(path)
        near = nearest(name, os.listdir(folder)) if os.path.isdir(folder) else ""
        raise SourceError(f"source: {url.shown}: {path} {kind}{near}")


def which_table(url: Url, there: Sequence[str]) -> str:
    """Return the table that a URL names, or the only table there is.

    Raises:
        SourceError: the URL names no table and there is not exactly one, or the table does not exist.
    """
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


def check_distinct(names: Sequence[str], shown: str, system: str) -> None:
    """Check that no two columns are one to a database, which does not tell capitals of ASCII from small letters.

    Args:
        system: the database's name in errors.
    Raises:
        SinkError: two are.
    """
    seen: dict[bytes, str] = {}
    for name in names:
        # of bytes, only ASCII's letters have a small one
        other = seen.setdefault(name.encode(errors="surrogatepass").lower(), name)
        if other != name:
            raise SinkError(
                f"output: {shown}: columns {other!r} and {name!r} are one to {system}, which does not tell capitals from small "
                "letters; give one of them another name"
            )


class Target:
    """The file to which an output is written. A new database is made under another name, so that none exists if the job fails.

    Attributes:
        at: the path of the file to open.
        new: whether there is no database yet.
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
        """Register a new file, which exists from now on, to be removed if this process dies."""
        if self.new:
            self.at = partial_of(self._path)
            for end in _BESIDE:
                leftovers.register(self.at + end)

    def commit(self) -> None:
        """Move a new database to its path. No connection to it may be open.

        Raises:
            WriteError: another process has made a file there meanwhile.
        """
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
        """Remove what is left of a new database that was not completed."""
        if self.new and self.at != self._path:
            for end in _BESIDE:
                leftovers.drop(self.at + end)
