"""Directories of local tables put in place, and taken away: all of them, or none, also if the process is killed meanwhile.

::

    ROOT/.commit.*.partial     what is to happen: `plan.json`, and the new directories, called 0, 1, ...; it goes if the process dies
    ROOT/.commit               the same, from one rename on, which is the moment at which all of it counts. Then each directory takes its
                               place, what was there takes its own, and .commit is removed. Of a process that is gone whoever looks next
                               does the rest (`finish`), which may be killed, and done again

All of it is under the exclusive lock of `layout.locked`.
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
#: of a step: its number, and what the plan says of it
_Step = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class Move:
    """Attributes: target: a directory, or file, of a table; staged: what takes its place; None: it goes."""

    target: str
    staged: str | None = None


def removed(path: str) -> None:
    """Remove what goes if this process dies, and hold it no longer."""
    if os.path.islink(path):
        os.remove(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
    leftovers.forget(path)


def carry_out(root: str, moves: Sequence[Move]) -> str:
    """Do all of it, or nothing. Returns: a directory with what was there, for `removed`. Raises: OSError."""
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
    """Whether there is a commit of a process that is gone. Args: locked: whoever is at one would have the lock."""
    counts = os.path.join(root, _NAME)
    if not os.path.lexists(counts):
        return False
    if locked:
        return True
    pid, start = _plan(counts)["process"]
    return not start or leftovers.started(pid) != start


def finish(root: str) -> None:
    """Do what a process that is gone has left undone. Raises: SourceError: it cannot be done."""
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
            f"a process was killed while it put tables in place below {root}, and the rest cannot be done: {e}. Mend that, and run "
            f"anything that looks at these tables, as whoever owns them; what is to be done is in {os.path.join(counts, _PLAN)}"
        ) from None


def _gathered(root: str, folder: str, moves: Sequence[Move]) -> list[dict[str, Any]]:
    """The new directories come together in one; those of a project on another disk stay where they are. Raises: OSError."""
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
        # where nothing is swapped, what is at its place is new; and an inode's number may not be for ever there
        steps.append({"new": new, "inode": inode if swaps else None, "target": os.path.relpath(move.target, root)})
    return steps


def _check(target: str) -> None:
    """Raises: OSError: what would come up in the middle of it, as far as it can be known."""
    above = os.path.dirname(target)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(13, os.strerror(13), above)


def _missing(move: Move) -> list[str]:
    """Directories that are made for a new one."""
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
    """Raises: SourceError: it is none that `_write_plan` wrote."""
    path = os.path.join(counts, _PLAN)
    try:
        with open(path, "rb") as file:
            plan: dict[str, Any] = json.loads(file.read())
            if not (isinstance(plan["moves"], list) and len(plan["process"]) == 2):
                raise ValueError("something is missing")
            return plan
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise SourceError(
            f"{path} is to say what a process that was killed was about to put in place, and cannot be read: {e}; if {counts} is not "
            "akrunner's, move it elsewhere"
        ) from None


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_to_do(root: str, step: dict[str, Any]) -> bool:
    """Whether what is new is not in its place yet."""
    new = os.path.join(root, step["new"])
    return os.path.lexists(new) and step["inode"] in (None, os.lstat(new).st_ino)


def _do(root: str, number: int, step: dict[str, Any]) -> None:
    """One step, or the rest of it. Raises: OSError."""
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
    """A step of `_do`, whether or not it was done. Raises: OSError."""
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
    """All is done. Returns: where the rest is now, which goes if this process dies. Raises: OSError."""
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
