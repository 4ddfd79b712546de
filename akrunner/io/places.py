"""Where an output is kept until the job has succeeded, on every kind of store.

::

    local file       .NAME.*.partial beside it       -> fsync, one rename
    local directory  .NAME.*.partial/ beside it      -> one rename, or a swap with the old one
    s3, gs           an upload, which nobody sees    -> completed; of a directory, each of its files; then the old ones go
    other stores     .NAME.*.partial on the store    -> moved file by file; then the old ones go
    pipe, device     is written straight

Until `commit` the old output is untouched; `abort` leaves nothing new. A host that is killed leaves nothing on its own disks
(`leftovers`); on s3 and gs an upload nobody sees, which a rule of the bucket ends (AbortIncompleteMultipartUpload).
"""

from __future__ import annotations

import os
from typing import IO, Any, Protocol

import fsspec

from akrunner.checks import check_url
from akrunner.errors import SinkError
from akrunner.foreign import ours
from akrunner.io.local_places import LocalFile, LocalFolder, Straight, is_special
from akrunner.io.paths import is_local
from akrunner.io.stores import Moved, MovedFolder, Upload, UploadFolder, uploads


class Place(Protocol):
    """Attributes: at: the local path written, None on a store."""

    at: str | None

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class FilePlace(Place, Protocol):
    """One file."""

    def open(self) -> IO[bytes]: ...


class FolderPlace(Place, Protocol):
    """A directory of files. Attributes: partial: where they are meanwhile; `at` is the same if it is local."""

    partial: str

    def make(self) -> None: ...

    def open(self, name: str) -> IO[bytes]: ...

    def empty(self) -> bool: ...


def file_place(path: str, overwrite: bool) -> FilePlace:
    """Raises: SinkError: nothing may be written there."""
    with ours(SinkError, f"output: cannot open {path}"):
        fs, target = _file_system(path)
        if is_local(fs):
            if is_special(target):
                return Straight(target, path)
            return LocalFile(target, path, overwrite)
        return Upload(fs, target, path, overwrite) if uploads(fs) else Moved(fs, target, path, overwrite)


def folder_place(path: str, overwrite: bool) -> FolderPlace:
    """Raises: SinkError: nothing may be written there."""
    with ours(SinkError, f"output: cannot open {path}"):
        fs, target = _file_system(path)
        if is_local(fs):
            return LocalFolder(target, path, overwrite)
        return UploadFolder(fs, target, path, overwrite) if uploads(fs) else MovedFolder(fs, target, path, overwrite)


def _file_system(path: str) -> tuple[Any, str]:
    """(the file system of a path or URL, the path there)."""
    expanded = os.path.expanduser(path)
    if "\0" in expanded:
        raise SinkError("output: the path has a NUL byte in it")
    check_url("output", expanded, SinkError)
    fs, target = fsspec.core.url_to_fs(expanded)
    return fs, target
