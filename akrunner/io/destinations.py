"""Where an output is until the job has succeeded (its destination), on every kind of store.

::

    local file       .NAME.*.partial beside it       -> fsync, one rename
    local directory  .NAME.*.partial/ beside it      -> one rename, or a swap with the old one
    files added      as a directory                  -> the old files are linked beside the new ones, then one swap; on stores
                                                        each new file is completed or moved
    s3, gs           an upload, still invisible      -> completed; of a directory, each of its files; then the old ones go
    other stores     .NAME.*.partial on the store    -> moved file by file; then the old ones go
    pipe, device     is written directly

The old output is untouched until `commit`; `abort` leaves nothing new. If the host is killed, nothing stays on its own disks
(the guard or the next start removes it: `leftovers`). On s3 and gs an invisible upload stays until a rule of the bucket ends it
(AbortIncompleteMultipartUpload).
"""

from __future__ import annotations

import os
import posixpath
from typing import IO, Any, Protocol

import fsspec

from akrunner.checks import check_url
from akrunner.errors import SinkError
from akrunner.foreign import ours
from akrunner.io import lakehouse
from akrunner.io.local_destinations import LocalFile, LocalFolder, Straight
from akrunner.io.manifests import Seal
from akrunner.io.paths import is_local
from akrunner.io.piped import is_special
from akrunner.io.stores import Moved, MovedFolder, Upload, UploadFolder, uploads


class Destination(Protocol):
    """Where an output is until the job has succeeded.

    Attributes:
        at: the local path that is written; None on a store, and for a pipe or a device.
    """

    at: str | None

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class FileDestination(Destination, Protocol):
    """The destination of one file."""

    def open(self) -> IO[bytes]: ...


class FolderDestination(Destination, Protocol):
    """The destination of a directory of files.

    Attributes:
        partial: where the files are until `commit`; if that is a local directory, `at` is the same.
        most: how many files may be open at once.
        adds: whether there are files already to which those that are written are added.
    """

    partial: str
    most: int
    adds: bool

    def make(self) -> None: ...

    def open(self, name: str) -> IO[bytes]: ...

    def finish(self, name: str) -> None: ...

    def empty(self) -> bool: ...

    def commit(self, seal: Seal | None = None) -> None: ...


def file_destination(path: str, overwrite: bool, lakes: bool = False) -> FileDestination:
    """Return the destination of a file.

    Args:
        lakes: whether lakehouse tables keep their rows in such files.
    Raises:
        SinkError: the file may not be written there.
    """
    with ours(SinkError, f"output: cannot open {path}"):
        fs, target = _file_system(path)
        if lakes:
            lakehouse.check_output(fs, path, posixpath.dirname(target), is_local(fs))
        if is_local(fs):
            if is_special(target):
                return Straight(target, path)
            return LocalFile(target, path, overwrite)
        return Upload(fs, target, path, overwrite) if uploads(fs) else Moved(fs, target, path, overwrite)


def folder_destination(path: str, overwrite: bool, append: bool = False) -> FolderDestination:
    """Return the destination of a directory of files.

    Args:
        overwrite: whether the files take the place of those that are there.
        append: whether they are added to those that are there.
    Raises:
        SinkError: the directory may not be written there.
    """
    with ours(SinkError, f"output: cannot open {path}"):
        fs, target = _file_system(path)
        lakehouse.check_output(fs, path, target, is_local(fs))
        if is_local(fs):
            return LocalFolder(target, path, overwrite, append)
        made = UploadFolder if uploads(fs) else MovedFolder
        return made(fs, target, path, overwrite, append)


def _file_system(path: str) -> tuple[Any, str]:
    """Return (the file system of a path or URL, the path on it)."""
    expanded = os.path.expanduser(path)
    if "\0" in expanded:
        raise SinkError("output: the path has a NUL byte in it")
    check_url("output", expanded, SinkError)
    fs, target = fsspec.core.url_to_fs(expanded)
    return fs, target
