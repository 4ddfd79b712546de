"""Where on the disk a local table is.

::

    ROOT/.lock                                      held while directories are put in place, and by readers while they open files
    ROOT/PROJECT/TABLE/_table.sql                   its CREATE TABLE; without one, its Parquet files say its columns
    ROOT/PROJECT/TABLE/*.parquet                    its rows
    ROOT/PROJECT/TABLE/pt=a/hh=1/*.parquet          ... of a partition; what no file name may hold is %XX
    ROOT/PROJECT/.TABLE.*.partial                   what is being written, or removed
    ROOT/PROJECT/.TABLE.aside                       a table while another takes its place, where directories cannot be swapped; a process that
                                                    is killed meanwhile leaves it, and whoever looks next puts it back
    ROOT/oss/BUCKET/                                the files of a bucket (`oss`)
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
from typing import Iterator, List, Optional, Tuple
from urllib.parse import unquote

from akrunner import leftovers
from akrunner.errors import ConfigError, SourceError
from akrunner.io.paths import format_of
from akrunner.io.rename import move_new, swap
from akrunner.io.unfinished import is_partial, partial_of
from akrunner.tables.names import Partition, TableName

TABLE_SQL = "_table.sql"
#: the directory of OSS's buckets
BUCKETS = "oss"
_UNSAFE = re.compile(r"""[%/\\:*?"'<>|\[\]{}^=\x00-\x1f\x7f]""")
_ENDINGS = (".parquet", ".pq", ".parq")
#: a partition, and its directory
Placed = Tuple[Partition, str]
_NUMBERS = re.compile(r"(\d+)")
_ASIDE = ".aside"


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
    if partition and os.path.isdir(folder) and not there(spelled):
        names = tuple(key for key, _ in partition)
        others_way = [path for found, path in partitions_below(folder, names) if found == partition]
        if others_way:
            return others_way[0]
    return spelled


def natural(text: str) -> Tuple[Tuple[int, int, str], ...]:
    """A key to sort by: numbers in a text count as numbers."""
    return tuple((0, int(part), part) if part.isdigit() else (1, 0, part) for part in _NUMBERS.split(text) if part)


def _entries(folder: str) -> "List[os.DirEntry[str]]":
    with os.scandir(folder) as entries:
        return list(entries)


def data_files(folder: str) -> List[str]:
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


def others(folder: str) -> "List[os.DirEntry[str]]":
    """What else people keep in a directory of rows. Raises: OSError."""
    return [
        entry
        for entry in _entries(folder)
        if entry.name != TABLE_SQL and (entry.is_dir() or not entry.name.lower().endswith(_ENDINGS) or entry.name[0] in "._")
    ]


def partitions_below(folder: str, names: Tuple[str, ...]) -> List[Placed]:
    """All partitions there are, sorted, with their directories: people may have spelled those otherwise. Raises: OSError."""
    if not names:
        return [((), folder)]
    put_back(folder)
    found: List[Placed] = []
    for entry in _entries(folder):
        key, sign, value = entry.name.partition("=")
        if not sign or entry.name.startswith(".") or key.lower() != names[0] or not entry.is_dir():
            continue
        found.extend((((names[0], unquote(value)), *rest), path) for rest, path in partitions_below(entry.path, names[1:]))
    return sorted(found, key=lambda one: [natural(value) for _, value in one[0]])


def partition_columns(folder: str) -> Tuple[str, ...]:
    """What a table without a CREATE TABLE is partitioned by, as its directories say. Raises: OSError."""
    for entry in sorted(_entries(folder), key=lambda one: one.name):
        key, sign, _ = entry.name.partition("=")
        if sign and key and not entry.name.startswith(".") and entry.is_dir():
            return (key.lower(), *partition_columns(entry.path))
    return ()


def visible(folder: str) -> List[str]:
    """Directories in a directory, but those that are being written."""
    try:
        return sorted(
            entry.name for entry in _entries(folder) if entry.is_dir() and not is_partial(entry.name) and entry.name[0] != "."
        )
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def locked(root: str, exclusive: bool) -> Iterator[None]:
    """While in the block, nobody puts a table in place, or, if it is exclusive, nobody else does and nobody begins to read one."""
    path = os.path.join(root, ".lock")
    fd: Optional[int] = None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666) if exclusive else _open_shared(path)
        if fd is not None:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            except OSError as e:
                # a file system without locks
                if e.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    raise
        yield
    finally:
        if fd is not None:
            os.close(fd)


def _open_shared(path: str) -> Optional[int]:
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


def removed(path: str) -> None:
    """Remove what a `stage` made, or holds now."""
    if os.path.islink(path):
        os.remove(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
    leftovers.forget(path)


def put_new(staged: str, target: str) -> None:
    """Put a new table's directory in place; what is in it, where somebody made a directory of that name and no table. Raises: OSError."""
    if not os.path.isdir(target):
        put(staged, target)
        return
    for name in sorted(os.listdir(staged), key=lambda one: one == TABLE_SQL):
        os.rename(os.path.join(staged, name), os.path.join(target, name))


def put(staged: str, target: str) -> bool:
    """Put a directory in place, in one step, or, where directories cannot be swapped, in two; what was there is where it was. Returns: whether anything was. Raises: OSError."""
    if not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        move_new(staged, target)
        return False
    if swap(staged, target):
        return True
    aside = _aside(target)
    if os.path.lexists(aside):
        # of a process that was killed when the other was in place
        shutil.rmtree(aside)
    os.rename(target, aside)
    try:
        os.rename(staged, target)
    except BaseException:
        os.rename(aside, target)
        raise
    # from here on nobody wants it
    leftovers.register(aside)
    os.rename(aside, staged)
    leftovers.forget(aside)
    return True


def _aside(target: str) -> str:
    folder, name = os.path.split(target.rstrip("/"))
    return os.path.join(folder, f".{name}{_ASIDE}")


def there(target: str) -> bool:
    """Whether there is a directory; one that a killed process has set aside is put back. Whoever calls holds the lock."""
    if os.path.isdir(target):
        return True
    with contextlib.suppress(OSError):
        os.rename(_aside(target), target)
    return os.path.isdir(target)


def put_back(folder: str) -> None:
    """Put back what a killed process has set aside in a directory. Whoever calls holds the lock. Raises: OSError."""
    for entry in _entries(folder):
        if entry.name.startswith(".") and entry.name.endswith(_ASIDE):
            there(os.path.join(folder, entry.name[1 : -len(_ASIDE)]))


def made_dirs(path: str) -> List[str]:
    """Make a directory and those it is in. Returns: those that were not there, the outermost first. Raises: OSError; none is made."""
    missing: List[str] = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    made: List[str] = []
    try:
        for one in reversed(missing):
            os.mkdir(one)
            made.append(one)
    except BaseException:
        for one in reversed(made):
            os.rmdir(one)
        raise
    return made
