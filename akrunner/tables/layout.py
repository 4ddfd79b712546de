"""Where on the disk a local table is.

::

    ROOT/.lock                                      held while directories are put in place, and by readers while they open files
    ROOT/PROJECT/TABLE/_table.sql                   its CREATE TABLE; without one, its Parquet files say its columns
    ROOT/PROJECT/TABLE/*.parquet                    its rows
    ROOT/PROJECT/TABLE/pt=a/hh=1/*.parquet          ... of a partition; what no file name may hold is %XX
    ROOT/PROJECT/.TABLE.*.partial                   what is being written, or removed
    ROOT/.commit                                    what is being put in place (`renames`); of a process that is gone whoever looks next does
                                                    the rest
    ROOT/oss/BUCKET/                                the files of a bucket (`oss`)
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
#: the directory of OSS's buckets
BUCKETS = "oss"
_UNSAFE = re.compile(r"""[%/\\:*?"'<>|\[\]{}^=\x00-\x1f\x7f]""")
_ENDINGS = (".parquet", ".pq", ".parq")
#: a partition, and its directory
Placed = tuple[Partition, str]
_NUMBERS = re.compile(r"(\d+)")


def table_dir(root: str, name: TableName) -> str:
    """Raises: ConfigError: the directory is another's."""
    if name.project == BUCKETS:
        raise ConfigError(f"a project of local tables cannot be called {BUCKETS}: that directory has the files of oss://")
    return os.path.join(root, name.project, name.table)


def partition_dir(name: str, value: str) -> str:
    """The directory of one partition column's value. Raises: ConfigError: no directory can be called so."""
    try:
        found = f"{name}={_UNSAFE.sub(lambda match: f'%{ord(match[0]):02X}', value)}"
        size = len(found.encode("utf-8"))
    except UnicodeEncodeError:
        raise ConfigError(f"invalid partition value {value!r}: it is no text that UTF-8 can hold") from None
    if size > 255:
        raise ConfigError(f"invalid partition value {value[:60]!r}...: it is too long for the name of a directory")
    return found


def place(root: str, name: TableName, partition: Partition) -> str:
    """The directory of a table, or of a partition of it, whether or not it is there. Raises: OSError."""
    folder = table_dir(root, name)
    spelled = os.path.join(folder, *(partition_dir(key, value) for key, value in partition))
    if partition and os.path.isdir(folder) and not os.path.isdir(spelled):
        names = tuple(key for key, _ in partition)
        others_way = [path for found, path in partitions_below(folder, names) if found == partition]
        if others_way:
            return others_way[0]
    return spelled


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key to sort by: numbers in a text count as numbers."""
    return tuple((0, int(part), part) if part.isdigit() else (1, 0, part) for part in _NUMBERS.split(text) if part)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def data_files(folder: str) -> list[str]:
    """Names of the files with rows in a directory, in their order.

    Raises: SourceError: somebody put a file there that is a table, but no Parquet file; OSError.
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
    """What else people keep in a directory of rows. Raises: OSError."""
    return [
        entry
        for entry in _entries(folder)
        if entry.name != TABLE_SQL and (entry.is_dir() or not entry.name.lower().endswith(_ENDINGS) or entry.name[0] in "._")
    ]


def partitions_below(folder: str, names: tuple[str, ...]) -> list[Placed]:
    """All partitions there are, sorted, with their directories: people may have spelled those otherwise. Raises: OSError."""
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
    """What a table without a CREATE TABLE is partitioned by, as its directories say. Raises: OSError."""
    for entry in sorted(_entries(folder), key=lambda one: one.name):
        key, sign, _ = entry.name.partition("=")
        if sign and key and not entry.name.startswith(".") and entry.is_dir():
            return (key.lower(), *partition_columns(entry.path))
    return ()


def visible(folder: str) -> list[str]:
    """Directories in a directory, but those that are being written."""
    try:
        return sorted(
            entry.name for entry in _entries(folder) if entry.is_dir() and not is_partial(entry.name) and entry.name[0] != "."
        )
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def locked(root: str, exclusive: bool) -> Iterator[None]:
    """While in the block, nobody puts a table in place, or, if it is exclusive, nobody else does and nobody begins to read one.

    What a process that is gone was putting in place is in place then. Raises: SourceError: it cannot be.
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
    """Gives: whether there is a lock."""
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
                # a file system without locks
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
        # nobody has written yet; or another user's, who keeps it to themselves
        return None


def make_root(root: str) -> None:
    """The root is this user's alone if it is made here. Raises: OSError."""
    if not os.path.isdir(root):
        os.makedirs(os.path.dirname(root), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(root, 0o700)


def stage(root: str, name: TableName) -> str:
    """A new directory beside a table's, that goes if this process dies. Raises: OSError."""
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
    """What puts a new table's directory in place; what is in it, where somebody made a directory of that name and no table. Raises: OSError."""
    if not os.path.isdir(target):
        return [Move(target, staged)]
    names = sorted(os.listdir(staged), key=lambda one: one == TABLE_SQL)
    return [Move(os.path.join(target, name), os.path.join(staged, name)) for name in names]
