"""Where runs are kept: makes, finds and removes their directories."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import re
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from akrunner.errors import ConfigError
from akrunner.history import record
from akrunner.leftovers import remove, state_dir
from akrunner.leftovers.private import private_file

_NEWEST, _PRUNED = "newest", "pruned"
#: environment variables that say how much is kept -> how much that is without them
DAYS, BYTES = "AKRUNNER_RUNS_DAYS", "AKRUNNER_RUNS_SIZE"
_DAYS, _BYTES = 30.0, 500_000_000
_DAY = 86_400.0
#: seconds from one look for old runs to the next
_LOOK_SECONDS = 3600.0
#: seconds in which a directory without a record may still get one
_NEW_SECONDS = 600.0
#: seconds after which a run of another machine is taken for lost if nothing of it was written
_SILENT_SECONDS = 900.0
#: seconds for which a new run waits for others that take their numbers
_LOCK_SECONDS = 2.0
_NAME = re.compile(r"r([1-9]\d{0,14})")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(i?)B?", re.IGNORECASE)


@dataclass(frozen=True)
class Bounds:
    """How much is kept: runs of the last `days`, of these the newest that have `size` bytes together."""

    days: float = _DAYS
    size: int = _BYTES


def bounds() -> Bounds:
    """Return what the environment says. Raises: ConfigError: it says nothing that can be understood."""
    days, size = os.environ.get(DAYS) or str(_DAYS), os.environ.get(BYTES) or str(_BYTES)
    return Bounds(days_of(days, DAYS), size_of(size, BYTES))


def days_of(text: str | float, name: str) -> float:
    """Return a number of days. Args: name: what it was given by. Raises: ConfigError: it is none."""
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise ConfigError(f"{name}={text}: give the number of days for which runs are kept")
    return days


def size_of(text: str | int, name: str) -> int:
    """Return a number of bytes, given as such or as "500MB". Args: name: what it was given by. Raises: ConfigError: it is none."""
    found = _SIZE.fullmatch(str(text).strip())
    if found is None:
        raise ConfigError(f"{name}={text}: give the bytes that runs may take together: 500MB, 2GiB, or a number")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " KMGT".index(found[2].upper() or " "))


def root(make: bool = True) -> str | None:
    """Return the directory of all runs; None if there is none, or it cannot be written. Args: make: make it if there is none."""
    return state_dir("runs", make)


def claim(folder: str) -> tuple[str, str]:
    """Make the directory of a new run, under a number that no run has had. Returns: its name, and its path. Raises: OSError: it
    cannot be made."""
    file = os.path.join(folder, _NEWEST)
    with contextlib.suppress(FileExistsError):
        private_file(file, "xb").close()
    with private_file(file, "r+b", buffering=0) as f:
        _lock(f.fileno())
        newest = 0
        with contextlib.suppress(ValueError):
            newest = int(f.read())
        for number in itertools.count(max(newest, *numbers(folder), 0) + 1):
            # ahead of the directory: whoever dies between the two leaves a number that nobody has
            f.seek(0)
            f.write(str(number).encode())
            f.truncate()
            path = os.path.join(folder, f"r{number}")
            # another process has the number if this one could not lock the file
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
                return f"r{number}", path
    raise AssertionError("numbers do not end")


def _lock(fd: int) -> None:
    """Lock a file until it is closed. A file system without locks, and a process that was stopped and has the lock, hold up no job."""
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as e:
            if e.errno not in (errno.EAGAIN, errno.EINTR) or time.monotonic() > until:
                return
        time.sleep(_LOCK_SECONDS / 1000)


def numbers(folder: str) -> list[int]:
    """Return the numbers of all runs that are there, the newest first."""
    with contextlib.suppress(OSError):
        return sorted((int(found[1]) for name in os.listdir(folder) if (found := _NAME.fullmatch(name))), reverse=True)
    return []


def path_of(folder: str, number: int) -> str:
    """Return the directory of a run."""
    return os.path.join(folder, f"r{number}")


def meant(folder: str, name: str) -> int:
    """Return the number of the run that a name means: "r42" or "42"; "last" for the newest, "last-1" for the one before.

    Raises: ConfigError: there is no such run.
    """
    there = numbers(folder)
    found = _NAME.fullmatch(name) or re.fullmatch(r"([1-9]\d{0,14})", name)
    if found and int(found[1]) in there:
        return int(found[1])
    back = re.fullmatch(r"last(?:-(\d{1,9}))?", name)
    at = int(back[1] or 0) if back else None
    if at is not None:
        # one that is being made, or was given up, has no record
        made = (number for number in there if os.path.exists(os.path.join(path_of(folder, number), record.FILE)))
        wanted = next(itertools.islice(made, at, None), None)
        if wanted is not None:
            return wanted
    if not there:
        raise ConfigError(f"run {name!r}: no run is kept yet in {folder}")
    if found or at is not None:
        raise ConfigError(
            f"run {name!r} is not kept (any more): the oldest is r{there[-1]}, the newest r{there[0]}; `akrunner runs` lists them"
        )
    raise ConfigError(f"run {name!r}: give its name, such as r{there[0]}, or last; `akrunner runs` lists them")


def is_name(name: str) -> bool:
    """Whether a text can only mean a run, and no job of Flink, whose ids begin with other letters."""
    return re.fullmatch(r"r\d+|last(-\d+)?", name) is not None


def prune(folder: str, keep: Bounds, spare: Collection[int] = ()) -> tuple[list[str], list[str]]:
    """Remove runs beyond the bounds, the oldest first; never one that is running.

    Args: spare: numbers of runs that stay in any case.
    Returns: the names of those that were removed, the oldest first, and of those that could not be removed.
    """
    now, total, gone, left = time.time(), 0, [], []
    for number in numbers(folder):
        path = path_of(folder, number)
        size, changed = _measured(path)
        total += size
        if number in spare or (now - changed <= keep.days * _DAY and total <= keep.size) or _is_busy(path, now):
            continue
        remove(path)
        if not os.path.exists(path):
            total -= size
            gone.append(f"r{number}")
        else:
            left.append(f"r{number}")
    return gone[::-1], left[::-1]


def prune_sometimes(folder: str, spare: Collection[int]) -> threading.Thread | None:
    """Remove runs beyond the bounds if nobody has done so for an hour, in a thread: the job that begins does not wait for a disk.

    Returns: the thread, None if there is nothing to do. If the process ends before, what is left is removed an hour later.
    Raises: ConfigError: as `bounds`.
    """
    stamp = os.path.join(folder, _PRUNED)
    keep = bounds()
    with contextlib.suppress(OSError):
        is_first = not os.path.exists(stamp)
        if not is_first and 0 <= time.time() - os.stat(stamp).st_mtime < _LOOK_SECONDS:
            return None
        private_file(stamp).close()
        os.utime(stamp)
        if not is_first:
            made = threading.Thread(target=prune, args=(folder, keep, spare), name="akrunner-prune", daemon=True)
            made.start()
            return made
    return None


def _is_busy(path: str, now: float) -> bool:
    try:
        found = record.read(path)
    except (OSError, ValueError):
        # one that is being made has no record yet
        with contextlib.suppress(OSError):
            return now - os.stat(path).st_mtime < _NEW_SECONDS
        return False
    return found.state == record.RUNNING and not is_gone(found, path)


def _measured(path: str) -> tuple[int, float]:
    """Return how many bytes of the disk a directory takes, and when something in it was last written."""
    size, changed = 0, 0.0
    for found in _inside(path):
        size += found.st_blocks * 512
        changed = max(changed, found.st_mtime)
    return size, changed


def is_gone(found: record.Record, path: str) -> bool:
    """Whether a run has begun and its process is gone. That of another machine (a container, a home directory of several machines) is
    taken for gone if nothing was written for a quarter of an hour: a job that runs writes all the time.

    Args:
        found: the record of the run.
        path: its directory.
    """
    if found.state != record.RUNNING or not found.host or not record.is_elsewhere(found):
        return record.is_lost(found)
    return time.time() - last_written(path) > _SILENT_SECONDS


def last_written(path: str) -> float:
    """Return when something in a run's directory was last written."""
    return _measured(path)[1]


def _inside(path: str) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError):
        yield os.lstat(path)
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _inside(entry.path)
                else:
                    with contextlib.suppress(OSError):
                        yield entry.stat(follow_symlinks=False)
