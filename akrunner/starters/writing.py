"""Files that are all written into a directory, or none of them.

::

    files ──► a hidden directory beside them, which the guard knows ──► each by a rename to its place
                                                                       a file that is replaced waits there until all are in place
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping

from akrunner import leftovers
from akrunner.checks import counted
from akrunner.errors import ConfigError, WriteError
from akrunner.foreign import ours

#: how many files an error names
_NAMED = 5


def write(directory: str, files: Mapping[str, bytes], force: bool = False) -> None:
    """Write files into a directory, which is made if it does not exist. Other files there stay as they are.

    Args:
        directory: the directory.
        files: path below it, with `/` -> what is in the file.
        force: replace the files that are there already.
    Raises:
        ConfigError: `directory` is no directory; a file is there already, without `force`; or something is in the way that is no file.
        WriteError: a file cannot be written. Then the directory is as it was.
    """
    _check(directory, files, force)
    with (
        ours(WriteError, f"{directory}: nothing was written", directory),
        _staged(directory) as stage,
        contextlib.ExitStack() as undo,
    ):
        for number, content in enumerate(files.values()):
            with open(os.path.join(stage, f"new-{number}"), "xb") as file:
                file.write(content)
        for number, name in enumerate(files):
            _put(
                os.path.join(stage, f"new-{number}"), os.path.join(directory, name), os.path.join(stage, f"old-{number}"), undo
            )
        # all are in place: nothing is undone any more
        undo.pop_all()


def _check(directory: str, files: Mapping[str, bytes], force: bool) -> None:
    """Check that nothing is in the way of the files. Raises: ConfigError: something is."""
    wrong = _no_directory(directory)
    if wrong is not None:
        raise ConfigError(f"{wrong} is no directory: give another")
    there = [name for name in files if os.path.lexists(os.path.join(directory, name))]
    blocked = [name for name in there if os.path.isdir(os.path.join(directory, name))]
    blocked += {one for name in files if (one := _no_directory(os.path.join(directory, os.path.dirname(name)))) is not None}
    if blocked:
        raise ConfigError(f"{_listed(blocked)} in the way of the project's files: give another directory")
    if there and not force:
        them = "it" if len(there) == 1 else "them"
        raise ConfigError(
            f"{_listed(there)} in {directory} already: give another directory, or --force, which replaces {them} and nothing else"
        )


def _listed(names: list[str]) -> str:
    """Return the first names, with how many more there are, and a verb: "a, b and c are"."""
    shown = names[:_NAMED]
    if len(names) > len(shown):
        return f"{', '.join(shown)} and {counted(len(names) - len(shown), 'more file')} are"
    return f"{shown[0]} is" if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]} are"


def _no_directory(path: str) -> str | None:
    """Return the part of a path that is there, and is no directory; None if a directory could be made there."""
    while path and not os.path.lexists(path):
        path = os.path.dirname(path)
    return path if path and not os.path.isdir(path) else None


@contextlib.contextmanager
def _staged(directory: str) -> Iterator[str]:
    """Make a hidden directory on the file system of a directory, which may not be there yet, and remove it behind the block."""
    above = os.path.abspath(directory)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    stage = os.path.join(above, f".akrunner-init-{uuid.uuid4().hex[:16]}")
    leftovers.register(stage)
    try:
        os.mkdir(stage, 0o700)
        yield stage
    finally:
        leftovers.drop(stage)


def _put(new: str, place: str, old: str, undo: contextlib.ExitStack) -> None:
    """Move a file to its place. What is to be done to undo it is put on a stack first, as a signal may come at any time.

    Args: new: the file; place: its place; old: where to keep the file that is there, if one is.
    """
    _make(os.path.dirname(place), undo)
    if os.path.lexists(place):
        undo.callback(_quietly, lambda: os.replace(old, place))
        try:
            # the old file stays in its place, too, until the new one takes it
            os.link(place, old, follow_symlinks=False)
        except (OSError, NotImplementedError):
            shutil.copy2(place, old, follow_symlinks=False)
    else:
        # whether it was moved shows in `new`
        undo.callback(_quietly, lambda: None if os.path.exists(new) else os.unlink(place))
    os.replace(new, place)


def _make(path: str, undo: contextlib.ExitStack) -> None:
    """Make a directory and those above it, as far as they are not there."""
    if path and not os.path.isdir(path):
        _make(os.path.dirname(path), undo)
        # only an empty one is removed
        undo.callback(_quietly, lambda: os.rmdir(path))
        os.mkdir(path)


def _quietly(step: Callable[[], None]) -> None:
    """Take a step of undoing; what it finds missing was not done."""
    with contextlib.suppress(OSError):
        step()
