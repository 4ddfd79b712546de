"""Puts directories of local tables in place, and takes them away: all of them or none, even if the process is killed meanwhile.

::

    ROOT/.commit.*.partial     the plan of what to do: `plan.json`, and the new directories, named 0, 1, ...; the guard removes
                               it if the process dies
    ROOT/.commit               the same directory after one rename, which is the moment from which all of it counts. Then each
                               new directory moves to its place, the old directory moves into .commit, and .commit is removed.
                               If the process dies before that, the next process that looks at the tables does the rest
                               (`finish`); that process may be killed too, and the rest done again

All of this happens under the exclusive lock of `layout.locked`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from akrunner import leftovers
from akrunner.errors import SourceError
from akrunner.io.rename import swap, sync
from akrunner.io.unfinished import partial_of

_NAME = ".commit"
_PLAN = "plan.json"
#: a step: its number, and its entry in the plan
_Step = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class Move:
    """A change of one directory or file.

    Attributes:
        target: the directory, or file, of a table.
        staged: what replaces it; None if it is only removed.
    """

    target: str
    staged: str | None = None


def removed(path: str) -> None:
    """Remove a directory or a link that the guard would remove if this process died, and tell the guard to forget it."""
    if os.path.islink(path):
        os.remove(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
    leftovers.forget(path)


def carry_out(root: str, moves: Sequence[Move]) -> str:
    """Do all moves, or none.

    Returns:
        The path of a directory with what was replaced, for the caller to give to `removed`.
    Raises:
        OSError: a move failed; all are undone.
    """
    folder, counts = partial_of(os.path.join(root, "commit")), os.path.join(root, _NAME)
    leftovers.register(folder)
    steps: list[_Step] = []
    missing = sorted({above for move in moves for above in _missing(move)}, key=len, reverse=True)
    try:
        os.mkdir(folder)
        steps = list(enumerate(_gathered(root, folder, moves)))
        _write_plan(folder, steps)
        os.rename(folder, counts)
        _sync_folder(root)
        leftovers.forget(folder)
        for step in steps:
            _do(root, *step)
    except BaseException:
        if os.path.lexists(counts) and not os.path.lexists(folder):
            for step in reversed(steps):
                _undo(root, *step)
            for above in missing:
                with contextlib.suppress(OSError):
                    os.rmdir(above)
            removed(_over(root))
        removed(folder)
        raise
    return _over(root)


def is_left(root: str, locked: bool) -> bool:
    """Whether there is an unfinished commit of a process that has died.

    Args:
        locked: whether the caller holds the lock: then no living process is at work on a commit.
    """
    counts = os.path.join(root, _NAME)
    if not os.path.lexists(counts):
        return False
    if locked:
        return True
    pid, start = _plan(counts)["process"]
    return not start or leftovers.started(pid) != start


def finish(root: str) -> None:
    """Finish the commit of a process that has died, if there is one.

    Raises:
        SourceError: it cannot be finished.
    """
    counts = os.path.join(root, _NAME)
    if not os.path.lexists(counts):
        return
    plan = _plan(counts)
    try:
        for number, step in enumerate(plan["moves"]):
            _do(root, number, step)
        removed(_over(root))
    except OSError as e:
        raise SourceError(
            f"a process was killed while it put tables in place below {root}, and the rest cannot be done: {e}. Mend that, "
            "and run anything that looks at these tables, as whoever owns them; what is to be done is in "
            f"{os.path.join(counts, _PLAN)}"
        ) from None


def _gathered(root: str, folder: str, moves: Sequence[Move]) -> list[dict[str, Any]]:
    """Move the new directories into `folder`, and return the steps of the plan. Directories on another disk stay where they
    are.

    Raises:
        OSError: a directory cannot be moved.
    """
    swaps = _can_swap(folder)
    steps: list[dict[str, Any]] = []
    for number, move in enumerate(moves):
        _check(move.target)
        new: str | None = None
        inode: int | None = None
        if move.staged is not None:
            new = os.path.join(_NAME, str(number))
            if os.stat(os.path.dirname(move.staged)).st_dev == os.stat(folder).st_dev:
                os.rename(move.staged, os.path.join(folder, str(number)))
                inode = os.lstat(os.path.join(folder, str(number))).st_ino
            else:
                new = os.path.relpath(move.staged, root)
                inode = os.lstat(move.staged).st_ino
                leftovers.forget(move.staged)
        # the number of its inode tells whether a directory at the path "new" is the new one, or the old one after a swap; where
        # the file system cannot swap, it is always the new one, and inode numbers may not be stable there
        steps.append({"new": new, "inode": inode if swaps else None, "target": os.path.relpath(move.target, root)})
    return steps


def _check(target: str) -> None:
    """Check what can be known beforehand of the errors that a move would raise.

    Raises:
        OSError: the directory above `target` cannot be written.
    """
    above = os.path.dirname(target)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(13, os.strerror(13), above)


def _missing(move: Move) -> list[str]:
    """Return the directories that must be made above a new one."""
    found, above = [], os.path.dirname(move.target)
    while move.staged is not None and not os.path.isdir(above):
        found.append(above)
        above = os.path.dirname(above)
    return found


def _can_swap(folder: str) -> bool:
    names = [os.path.join(folder, name) for name in ("one", "other")]
    for name in names:
        os.mkdir(name)
    found = swap(names[0], names[1])
    for name in names:
        os.rmdir(name)
    return found


def _write_plan(folder: str, steps: list[_Step]) -> None:
    plan = {"process": [os.getpid(), leftovers.started(os.getpid())], "moves": [step for _, step in steps]}
    with open(os.path.join(folder, _PLAN), "xb") as file:
        file.write(json.dumps(plan).encode("utf-8"))
        sync(file)
    _sync_folder(folder)


def _plan(counts: str) -> dict[str, Any]:
    """Return the plan of a commit.

    Raises:
        SourceError: the file is missing, or was not written by `_write_plan`.
    """
    path = os.path.join(counts, _PLAN)
    try:
        with open(path, "rb") as file:
            plan: dict[str, Any] = json.loads(file.read())
            if not (isinstance(plan["moves"], list) and len(plan["process"]) == 2):
                raise ValueError("something is missing")
            return plan
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise SourceError(
            f"{path} is to say what a process that was killed was about to put in place, and cannot be read: {e}; if {counts} "
            "is not akrunner's, move it elsewhere"
        ) from None


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_to_do(root: str, step: dict[str, Any]) -> bool:
    """Whether the new directory of a step is not in its place yet."""
    new = os.path.join(root, step["new"])
    return os.path.lexists(new) and step["inode"] in (None, os.lstat(new).st_ino)


def _do(root: str, number: int, step: dict[str, Any]) -> None:
    """Do one step, or the rest of it.

    Raises:
        OSError: it failed.
    """
    target, old = os.path.join(root, step["target"]), _old(root, number)
    if step["new"] is None:
        if os.path.lexists(target) and not os.path.lexists(old):
            os.rename(target, old)
    elif _is_to_do(root, step):
        new = os.path.join(root, step["new"])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target) and (step["inode"] is None or not swap(new, target)):
            os.rename(target, old)
        if not os.path.lexists(target):
            os.rename(new, target)


def _undo(root: str, number: int, step: dict[str, Any]) -> None:
    """Undo one step of `_do`, whether or not it was done.

    Raises:
        OSError: it failed.
    """
    target, old = os.path.join(root, step["target"]), _old(root, number)
    if step["new"] is not None and not _is_to_do(root, step):
        new = os.path.join(root, step["new"])
        if os.path.lexists(new):
            swap(new, target)
        else:
            os.rename(target, new)
    if os.path.lexists(old):
        os.rename(old, target)


def _old(root: str, number: int) -> str:
    return os.path.join(root, _NAME, f"old-{number}")


def _over(root: str) -> str:
    """Mark the commit as done: rename its directory, and remove the plan's directories on other disks.

    Returns:
        The directory's new path, which the guard removes if this process dies.
    Raises:
        OSError: it cannot be renamed.
    """
    counts = os.path.join(root, _NAME)
    gone = partial_of(os.path.join(root, "commit"))
    elsewhere = [
        step["new"] for step in _plan(counts)["moves"] if step["new"] is not None and not step["new"].startswith(_NAME + os.sep)
    ]
    leftovers.register(gone)
    os.rename(counts, gone)
    for path in elsewhere:
        removed(os.path.join(root, path))
    return gone
