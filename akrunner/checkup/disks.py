"""Checks of the directories that jobs write to: whether they can be written, how much fits, on what kind of disk they are."""

from __future__ import annotations

import errno
import os
import shlex
import tempfile
import time
import uuid
from dataclasses import dataclass

from akrunner import leftovers
from akrunner.checks import path_shown
from akrunner.checkup.limits import gib
from akrunner.checkup.lines import BROKEN, LOOK, OK, Line
from akrunner.foreign import in_words
from akrunner.launch import cache
from akrunner.leftovers.private import state_base
from akrunner.tables.chosen import tables_root

#: free bytes, and free files: below the first number the check says "look here"; below the second it says "broken", as not even
#: a job of two rows runs
_LITTLE, _TOO_LITTLE = 5 << 30, 768 << 10
_FEW_NODES, _TOO_FEW_NODES = 1000, 12
_IN_MEMORY = ("tmpfs", "ramfs")
_NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "fuse.sshfs",
    "9p",
    "lustre",
    "ceph",
    "glusterfs",
    "beegfs",
    "fuse.s3fs",
    "fuse.gcsfuse",
)
#: words for a relative path, which names another directory wherever a command is run
_RELATIVE = "not absolute (it begins with no /)"
_ELSEWHERE = f"{_RELATIVE}: it is another directory wherever a command is run"
#: how many seconds a disk's clock may differ from this machine's
_SKEW = 2.0


@dataclass(frozen=True)
class Place:
    """A directory to check.

    Attributes:
        about: what it is for, in words.
        path: its path.
        knob: how to name another directory: a variable or an option.
        needed: whether no job runs without it.
        runs: whether programs in it are started.
    """

    about: str
    path: str
    knob: str
    needed: bool = True
    runs: bool = False


def places() -> list[Place]:
    """Return the directories that jobs write to by default."""
    return [
        Place("cache", cache.base(), "XDG_CACHE_HOME", needed=False, runs=True),
        Place("logs of failed jobs", state_base(), "XDG_STATE_HOME", needed=False),
        Place("local tables", tables_root(), "AKRUNNER_TABLES", needed=False),
    ]


def current() -> list[Line]:
    """Check the current directory, in which a command's relative paths are."""
    try:
        here = os.getcwd()
    except OSError as e:
        return [Line("current directory", BROKEN, f"it is gone ({in_words(e)})", "cd to one that is there")]
    return looked_at(Place("current directory", here, "cd", needed=False))


def temp() -> list[Line]:
    """Check the temp directory, in which the rows and scripts of jobs are."""
    named = os.environ.get("TMPDIR")
    try:
        folder = leftovers.temp_directory()
    except OSError as e:
        return [
            Line(
                "temp directory",
                BROKEN,
                f"there is none that can be written ({in_words(e)})",
                "TMPDIR=DIR names one, by its whole path",
            )
        ]
    lines = looked_at(Place("temp directory", folder, "TMPDIR=DIR, or --work-dir,"))
    if named and os.path.realpath(named) != os.path.realpath(folder):
        found, do = _unused(named)
        lines.append(Line("TMPDIR", LOOK, f"{found}, so {folder} is used in its place", do))
    elif named and not os.path.isabs(named):
        lines.append(Line("TMPDIR", LOOK, _ELSEWHERE, f"TMPDIR={folder}"))
    return lines


def _unused(named: str) -> tuple[str, str]:
    """Return (why the directory in TMPDIR is not used, what to do about it)."""
    if _odd(named):
        here = ", and from here it is no directory that can be written" if _odd(named) == _RELATIVE else ""
        return f"what it holds is {_odd(named)}{here}", "name a directory by its whole path, or unset TMPDIR"
    if not os.path.lexists(named):
        above = _nearest(named)
        below = _obstacle(above) if os.path.isdir(above) else ("it is no directory", "")
        if below:
            return f"{named} is not there, nor can it be made in {above}: {below[0]}", "name another directory, or unset TMPDIR"
        return f"{named} is not there", f"mkdir -p {shlex.quote(named)}, or unset TMPDIR"
    if os.path.islink(named) and not os.path.exists(named):
        return f"{named} is a link to what is not there", "make what it leads to, or unset TMPDIR"
    if not os.path.isdir(named):
        return f"{named} is a file, no directory", "name a directory, or unset TMPDIR"
    why, do = _obstacle(named) or ("it could not be written a moment ago", "look again")
    return f"{named}: {why}", f"{do or 'name another directory'}, or unset TMPDIR"


def _odd(path: str) -> str:
    """Return what is wrong with a path that is not absolute, or no path at all, "" if nothing is.

    The value may be a secret, and is not shown.
    """
    if os.path.isabs(path):
        return "" if path_shown(path, "") else "something that is no path"
    return _RELATIVE if path_shown("/" + path, "") else "something that is no path"


def looked_at(place: Place) -> list[Line]:
    """Check a directory, or the nearest existing directory above it."""
    path, do, bad = place.path, f"{place.knob} names another place", BROKEN if place.needed else LOOK
    if _odd(path):
        return [Line(place.about, bad, f"what names it is {_odd(path)}", do)]
    path = _nearest(path)
    made = "" if path == place.path else " (it will be made when it is needed)"
    if not os.path.isdir(path):
        above = "" if path == place.path else f"{place.path} cannot be made: "
        return [Line(place.about, bad, f"{above}{path} is no directory", do)]
    kind, device = kind_of(path)
    told = f"{place.path}{made}"
    obstacle = _obstacle(path)
    if obstacle:
        told = f"{place.path} is not there, and cannot be made in {path}" if made else place.path
        return [Line(place.about, bad, f"{told}: {obstacle[0]}", f"{obstacle[1]}, or {do}" if obstacle[1] else do)]
    system = os.statvfs(path)
    free = system.f_bavail * system.f_frsize
    told += f": {gib(free)} free" + (f" on {device}" if kind in _NETWORK else "")
    states: list[tuple[str, str]] = []
    if kind in _IN_MEMORY:
        told += f", in memory ({kind})"
        states.append((LOOK, "what is written there takes the memory that tasks need"))
    if kind in _NETWORK:
        told += f", over the network ({kind})"
        states.append((LOOK, "rows go through it"))
    if free < _LITTLE:
        states.append((bad if free < _TOO_LITTLE else LOOK, "a job's rows are written there before they are read: make room"))
    if system.f_files and system.f_favail < _FEW_NODES:
        told += f", {system.f_favail} more files fit"
        states.append((bad if system.f_favail < _TOO_FEW_NODES else LOOK, "remove small files"))
    if place.runs and system.f_flag & os.ST_NOEXEC:
        told += ", noexec"
        states.append((LOOK, "environments that are unpacked there cannot run"))
    state = next((one for one in (BROKEN, LOOK) if any(one == found for found, _ in states)), OK)
    elsewhere = f"{do} on a local disk" if kind in (*_IN_MEMORY, *_NETWORK) else do
    return [Line(place.about, state, told, "; ".join([words for _, words in states] + [elsewhere]) if states else "")]


def _nearest(path: str) -> str:
    """Return a path, or the nearest path above it that exists."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _obstacle(path: str) -> tuple[str, str] | None:
    """Try to write to a directory.

    Returns: (why nothing can be written, what to do about it or ""); None if it can be written, or only a limit of the size of
        files stopped it.
    """
    name = os.path.join(path, f".akrunner-{uuid.uuid4().hex}")
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as e:
        return _why(e, path)
    try:
        # in several writes: if the size of files is limited, the file is written up to the limit
        for _ in range(16):
            os.write(fd, b"\0" * 4096)
        os.fsync(fd)
    except OSError as e:
        # `limits.allowed` has a line about the size of files, so that there is no second line here
        return None if e.errno == errno.EFBIG else _why(e, path)
    finally:
        os.close(fd)
        os.remove(name)
    return None


def _why(error: OSError, path: str) -> tuple[str, str]:
    if error.errno == errno.EROFS:
        return "it is read-only", "mount it so that it can be written"
    if error.errno == errno.ENOENT or (error.errno in (errno.EACCES, errno.EPERM) and not os.geteuid()):
        return f"no file can be made there ({kind_of(path)[0] or 'its file system'} takes none)", ""
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"it cannot be written by this user (uid {os.geteuid()}; it is uid {os.stat(path).st_uid}'s)", ""
    if error.errno == errno.EDQUOT:
        return "this user's quota there is used up", "remove files of yours"
    if error.errno == errno.ENOSPC:
        system = os.statvfs(path)
        if system.f_files and not system.f_favail:
            return "no more files fit, however small (it has no inodes left)", "remove small files"
        return f"it is full: {gib(system.f_bavail * system.f_frsize)} free", "make room"
    return in_words(error), ""


def kind_of(path: str, mounts: str = "/proc/self/mounts") -> tuple[str, str]:
    """Return (type, device) of the file system that a directory is on; both are "" if the system does not say."""
    real, best = os.path.realpath(path), ("", "", "")
    try:
        with open(mounts, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
    except OSError:
        return "", ""
    for line in lines:
        words = line.split(" ")
        if len(words) < 3:
            continue
        where = words[1].replace("\\040", " ")
        inside = real == where or real.startswith(where.rstrip("/") + "/")
        # if two file systems are mounted on one directory, the later hides the earlier
        if inside and len(where) >= len(best[0]):
            best = (where, words[2], words[0])
    return best[1], best[2]


def clock() -> list[Line]:
    """Compare this machine's clock with the times of this program's files, and with the clock of the temp directory's disk.

    No server is asked for the time.
    """
    now = time.time()
    newest = max(os.path.getmtime(__file__), os.path.getmtime(os.__file__))
    shown = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(now))
    if newest > now + 60:
        return [
            Line(
                "clock",
                LOOK,
                f"{shown}, and files of this Python are newer",
                "set it (timedatectl, chronyd): signatures for object stores are refused, and caches are taken for old",
            )
        ]
    folder, skew = _disk_skew()
    if abs(skew) > _SKEW:
        said = f"the disk of {folder} is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
        return [Line("clock", LOOK, f"{shown}; {said}", "let both be set by the same time server")]
    return [Line("clock", OK, f"{shown}, as the temp directory's disk has it" if folder else shown)]


def _disk_skew() -> tuple[str, float]:
    """Return the temp directory, and the skew in seconds of the clock by which its disk dates files; ("", 0) if it cannot be told.

    For a network disk, it is the server's clock.
    """
    try:
        folder = leftovers.temp_directory()
        with tempfile.NamedTemporaryFile(prefix=".akrunner-", dir=folder) as f:
            f.write(b"now")
            f.flush()
            return folder, os.stat(f.name).st_mtime - time.time()
    except OSError:
        return "", 0.0


def shared_memory(path: str = "/dev/shm") -> list[Line]:
    """Check the shared memory of processes (/dev/shm), which usually has 64 MiB in containers."""
    size = _size(path)
    if size is None:
        return [
            Line(
                "shared memory",
                LOOK,
                f"there is no {path}",
                "docker run --shm-size 1g; NCCL and data loaders of several processes need it",
            )
        ]
    if size < 1 << 28:
        return [
            Line(
                "shared memory",
                LOOK,
                f"{path}: {gib(size)}",
                "docker run --shm-size 1g; NCCL and data loaders of several processes need more",
            )
        ]
    return [Line("shared memory", OK, f"{path}: {gib(size)}")]


def _size(path: str) -> int | None:
    try:
        system = os.statvfs(path)
    except OSError:
        return None
    return system.f_blocks * system.f_frsize
