"""Where on the disk a local table is.

::

    ROOT/.lock                              locked while directories are put in place, and by readers while they open files
    ROOT/PROJECT/TABLE/_table.sql           the table's CREATE TABLE; without it, the Parquet files give the columns
    ROOT/PROJECT/TABLE/*.parquet            the table's rows
    ROOT/PROJECT/TABLE/pt=a/hh=1/*.parquet  the rows of a partition; characters that no file name may hold are written %XX
    ROOT/PROJECT/.TABLE.*.partial           directories that are being written, or removed
    ROOT/.commit                            directories that are being put in place (`renames`); if the process that does it
                                            dies, the next process that looks at the tables does the rest
    ROOT/oss/BUCKET/                        the files of a bucket (`oss`)
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

from akrunner import leftovers
from akrunner.errors import ConfigError, SourceError
from akrunner.io.formats import format_of
from akrunner.io.unfinished import is_partial, partial_of
from akrunner.tables import renames, waiting
from akrunner.tables.names import Partition, TableName
from akrunner.tables.renames import Move

TABLE_SQL = "_table.sql"
#: the directory below the root that holds OSS's buckets
BUCKETS = "oss"
_UNSAFE = re.compile(r"""[%/\\:*?"'<>|\[\]{}^=\x00-\x1f\x7f]""")
_ENDINGS = (".parquet", ".pq", ".parq")
#: a partition, and the path of its directory
Placed = tuple[Partition, str]
_NUMBERS = re.compile(r"(\d+)")


def table_dir(root: str, name: TableName) -> str:
    """Return the directory of a table.

    Raises:
        ConfigError: the project has the name of the directory for OSS's buckets.
    """
    if name.project == BUCKETS:
        raise ConfigError(f"a project of local tables cannot be called {BUCKETS}: that directory has the files of oss://")
    return os.path.join(root, name.project, name.table)


def partition_dir(name: str, value: str) -> str:
    """Return the name of the directory for one value of a partition column.

    Raises:
        ConfigError: no directory can have this name.
    """
    try:
        found = f"{name}={_UNSAFE.sub(lambda match: f'%{ord(match[0]):02X}', value)}"
        size = len(found.encode("utf-8"))
    except UnicodeEncodeError:
        raise ConfigError(f"invalid partition value {value!r}: it is no text that UTF-8 can hold") from None
    if size > 255:
        raise ConfigError(f"invalid partition value {value[:60]!r}...: it is too long for the name of a directory")
    return found


def place(root: str, name: TableName, partition: Partition) -> str:
    """Return the directory of a table, or of one of its partitions, whether or not it exists.

    Raises:
        OSError: the table's directory cannot be read.
    """
    folder = table_dir(root, name)
    spelled = os.path.join(folder, *(partition_dir(key, value) for key, value in partition))
    if partition and os.path.isdir(folder) and not os.path.isdir(spelled):
        names = tuple(key for key, _ in partition)
        others_way = [path for found, path in partitions_below(folder, names) if found == partition]
        if others_way:
            return others_way[0]
    return spelled


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key to sort texts by, in which digits count as numbers."""
    return tuple((0, int(part), part) if part.isdecimal() else (1, 0, part) for part in _NUMBERS.split(text) if part)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def data_files(folder: str) -> list[str]:
    """Return the names of the files with rows in a directory, in their order.

    Raises:
        SourceError: the directory has a file in another table format than Parquet.
        OSError: the directory cannot be read.
    """
    found = []
    for entry in _entries(folder):
        if entry.name.startswith((".", "_")) or entry.is_dir():
            continue
        if entry.name.lower().endswith(_ENDINGS):
            found.append(entry.name)
        elif format_of(entry.name) is not None:
            raise SourceError(
                f"{entry.path} is no Parquet file, and a local table is made of them; move it elsewhere, and "
                f"`akrunner tables put {entry.name} odps://...` adds its rows"
            )
    return sorted(found, key=natural)


def others(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries that people keep in a directory of rows beside the rows.

    Raises:
        OSError: the directory cannot be read.
    """
    return [
        entry
        for entry in _entries(folder)
        if entry.name != TABLE_SQL and (entry.is_dir() or not entry.name.lower().endswith(_ENDINGS) or entry.name[0] in "._")
    ]


def partitions_below(folder: str, names: tuple[str, ...]) -> list[Placed]:
    """Return all partitions there are, sorted, with their directories, whose names people may have spelled in another way.

    Raises:
        OSError: a directory cannot be read.
    """
    if not names:
        return [((), folder)]
    found: list[Placed] = []
    for entry in _entries(folder):
        key, sign, value = entry.name.partition("=")
        if not sign or entry.name.startswith(".") or key.lower() != names[0] or not entry.is_dir():
            continue
        found.extend((((names[0], unquote(value)), *rest), path) for rest, path in partitions_below(entry.path, names[1:]))
    return sorted(found, key=lambda one: [natural(value) for _, value in one[0]])


def partition_columns(folder: str) -> tuple[str, ...]:
    """Return the partition columns of a table without a CREATE TABLE, as the names of its directories say.

    Raises:
        OSError: a directory cannot be read.
    """
    for entry in sorted(_entries(folder), key=lambda one: one.name):
        key, sign, _ = entry.name.partition("=")
        if sign and key and not entry.name.startswith(".") and entry.is_dir():
            return (key.lower(), *partition_columns(entry.path))
    return ()


def visible(folder: str) -> list[str]:
    """Return the names of the directories in a directory, except hidden ones and those that are being written."""
    try:
        return sorted(
            entry.name for entry in _entries(folder) if entry.is_dir() and not is_partial(entry.name) and entry.name[0] != "."
        )
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def locked(root: str, exclusive: bool) -> Iterator[None]:
    """Hold the lock of all tables below `root` within the block.

    With a shared lock, no other process puts a table in place meanwhile; with an exclusive one, none begins to read a table
    either. If a process died while it put tables in place, the rest of its work is done before the block begins.

    Raises:
        SourceError: that rest cannot be done.
    """
    while True:
        with _flocked(root, exclusive) as held:
            left = renames.is_left(root, held)
            if left and exclusive:
                renames.finish(root)
            if exclusive or not left:
                yield
                return
        try:
            with _flocked(root, True):
                renames.finish(root)
        except PermissionError as e:
            raise SourceError(
                f"a process was killed while it put tables in place below {root}; look at them once as whoever owns them ({e})"
            ) from None


@contextlib.contextmanager
def _flocked(root: str, exclusive: bool) -> Iterator[bool]:
    """Hold the lock file within the block. Yields whether it could be locked.

    It could not if the file system has no locks, or if a reader finds no lock file that it may open.
    """
    path = os.path.join(root, ".lock")
    fd: int | None = None
    held = False
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666) if exclusive else _open_shared(path)
        if fd is not None:
            try:
                waiting.flock(
                    fd,
                    fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH,
                    f"{'writing' if exclusive else 'reading'} tables below {root}",
                )
                held = True
            except OSError as e:
                # such a file system has no locks
                if e.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    raise
        yield held
    finally:
        if fd is not None:
            os.close(fd)


def _open_shared(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        # no process has written yet; or the file is another user's, who lets no other user read it
        return None


def make_root(root: str) -> None:
    """Make the root directory if it is missing; a root made here is accessible to this user alone.

    Raises:
        OSError: it cannot be made.
    """
    if not os.path.isdir(root):
        os.makedirs(os.path.dirname(root), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(root, 0o700)


def stage(root: str, name: TableName) -> str:
    """Make a new directory beside a table's, which the guard removes if this process dies, and return its path.

    Raises:
        OSError: it cannot be made.
    """
    make_root(root)
    folder = os.path.join(root, name.project)
    os.makedirs(folder, exist_ok=True)
    path = partial_of(os.path.join(folder, name.table))
    leftovers.register(path)
    try:
        os.mkdir(path)
    except BaseException:
        leftovers.forget(path)
        raise
    return path


def puts(staged: str, target: str) -> list[Move]:
    """Return the moves that put a new table's directory in place.

    If a directory of that name exists, which is no table, the moves put the contents of the new directory into it.

    Raises:
        OSError: a directory cannot be read.
    """
    if not os.path.isdir(target):
        return [Move(target, staged)]
    names = sorted(os.listdir(staged), key=lambda one: one == TABLE_SQL)
    return [Move(os.path.join(target, name), os.path.join(staged, name)) for name in names]
