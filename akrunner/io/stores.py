"""Destinations on object stores and other file systems of fsspec: uploads that count only once they are completed, or files
that are moved."""

from __future__ import annotations

import contextlib
import hashlib
import posixpath
from typing import IO, Any, cast

from akrunner.errors import SinkError, WriteError
from akrunner.foreign import ours, redacted
from akrunner.io.manifests import NAME, Seal
from akrunner.io.paths import protocols
from akrunner.io.unfinished import (
    came_meanwhile,
    check_ours,
    check_still_ours,
    exists_already,
    folder_exists_already,
    is_directory,
    is_file,
    partial_of,
)

#: size of the first parts of an upload; each part is held in memory until it is sent
_PART_BYTES = 8 << 20
#: S3 takes ten thousand parts; after each thousand the size of a part doubles, so that 8 TB fit
_PARTS_OF_A_SIZE = 1000
#: how many files of a directory may be open at once; each holds some 30 MB in memory
_OPEN_FILES = 50


def uploads(fs: Any) -> bool:
    """Whether a file on this file system is an upload that counts only once it is completed, and that can be cancelled
    before."""
    return bool({"s3", "gs"} & set(protocols(fs)))


class Upload:
    """An upload to the final name.

    Attributes:
        at: None.
    """

    at: str | None = None

    def __init__(self, fs: Any, target: str, shown: str, overwrite: bool) -> None:
        self._fs, self._target, self._shown, self._overwrite = fs, target, shown, overwrite
        fs.invalidate_cache()
        if "/" not in target.strip("/"):
            raise SinkError(f"output: {redacted(shown)} is a bucket; name a file in it")
        if fs.isdir(target):
            raise is_directory(shown)
        if not overwrite and fs.exists(target):
            raise exists_already(shown)
        _probe(fs, target)
        self._stream: Any = None

    def open(self) -> IO[bytes]:
        self._stream = _started(self._fs, self._target)
        return cast(IO[bytes], _Growing(self._stream))

    def commit(self) -> None:
        if not self._overwrite:
            self._fs.invalidate_cache()
            if self._fs.exists(self._target):
                raise came_meanwhile(self._shown)
        self._stream.close()
        _complete(self._fs, self._target, self._stream)
        self._stream = None

    def abort(self) -> None:
        if self._stream is not None:
            _discard(self._stream)
            self._stream = None


class UploadFolder:
    """A directory of uploads, one for each file, to its final name; all are completed at the end.

    Attributes:
        partial, most, adds: as in `akrunner.io.destinations.FolderDestination`.
    """

    at: str | None = None
    most = _OPEN_FILES

    def __init__(self, fs: Any, target: str, shown: str, overwrite: bool, append: bool = False) -> None:
        self._fs, self._shown, self._overwrite, self._append = fs, shown, overwrite, append
        self.partial = self._target = target.rstrip("/")
        fs.invalidate_cache()
        if "/" not in self._target:
            raise SinkError(f"output: {redacted(shown)} is a bucket; name a directory in it")
        if fs.isfile(self._target):
            raise is_file(shown)
        held = self._held()
        if held and not overwrite and not append:
            raise folder_exists_already(shown)
        check_ours(shown, held)
        self.adds = append and bool(held)
        _probe(fs, posixpath.join(self._target, "part-0"))
        self._streams: dict[str, Any] = {}

    def _held(self) -> list[str]:
        self._fs.invalidate_cache()
        try:
            return [path for path in self._fs.find(self._target) if path.rstrip("/") != self._target]
        except FileNotFoundError:
            return []

    def make(self) -> None:
        """Do nothing: an object store has no directories to make."""

    def open(self, name: str) -> IO[bytes]:
        path = posixpath.join(self._target, name)
        self._streams[path] = _started(self._fs, path)
        return cast(IO[bytes], _Growing(self._streams[path]))

    def finish(self, name: str) -> None:
        """Send all of a file; it still counts only from `commit` on."""
        stream = self._streams[posixpath.join(self._target, name)]
        stream.close()
        if getattr(stream, "parts", None):
            # else the last part would stay in memory until the upload is completed
            stream.buffer = None

    def empty(self) -> bool:
        return not self._streams

    def commit(self, seal: Seal | None = None) -> None:
        """Complete the uploads.

        Args:
            seal: makes the directory's manifest.
        """
        for stream in self._streams.values():
            if not stream.closed:
                stream.close()
        old = self._held()
        if old and not self._overwrite and not self._append:
            raise came_meanwhile(self._shown)
        if self._overwrite:
            check_still_ours(self._shown, old)
        if self._append and not self._streams:
            return
        done: list[str] = []
        try:
            for path, stream in self._streams.items():
                _complete(self._fs, path, stream)
                done.append(path)
            stays = _sealed(self._fs, self._target, seal, old if self._append else [])
            stale = [path for path in old if path not in self._streams and path not in stays]
            if stale and not self._append:
                self._fs.rm(stale)
        except Exception as e:
            raise self._half(e, done) from e
        self._streams = {}

    def _half(self, error: Exception, done: list[str]) -> Exception:
        """Return the error to raise when only some of the files were completed. Those of a new directory are removed again."""
        if not done:
            return error
        if not self._overwrite:
            with contextlib.suppress(Exception):
                self._fs.rm(done)
                return error
        with ours(WriteError, f"output: {len(done)} of {len(self._streams)} files are in {self._shown}, the old ones too; run "
        "it again with overwrite=True (--overwrite)"):  # fmt: skip
            raise error
        raise AssertionError

    def abort(self) -> None:
        for stream in self._streams.values():
            _discard(stream)
        self._streams = {}


def _sealed(fs: Any, folder: str, seal: Seal | None, old: list[str]) -> list[str]:
    """Write a directory's manifest, in one request, and return its path in a list; [] if there is to be none.

    Args:
        old: the paths of the files that were there before and stay.
    """
    path = posixpath.join(folder, NAME)
    names = [posixpath.relpath(one, folder) for one in old if one != path]
    text = seal(fs.cat_file(path) if path in old else None, names) if seal is not None else None
    if text is None:
        return []
    fs.pipe_file(path, text)
    return [path]


def _started(fs: Any, path: str) -> Any:
    return fs.open(path, "wb", block_size=_PART_BYTES, autocommit=False)


class _Growing:
    """A stream that makes the parts of an upload larger as they become many."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._next = _PARTS_OF_A_SIZE

    def write(self, data: Any) -> None:
        self._stream.write(data)
        if len(getattr(self._stream, "parts", None) or ()) >= self._next:
            self._next += _PARTS_OF_A_SIZE
            self._stream.blocksize *= 2


def _probe(fs: Any, path: str) -> None:
    """Begin an upload and cancel it: this fails if the bucket is missing, may not be written, or the clock is wrong."""
    if not hasattr(fs, "abort_mpu"):
        return
    bucket, key, _ = fs.split_path(path)
    begun = fs.call_s3("create_multipart_upload", Bucket=bucket, Key=key)
    # a user who may begin an upload but not cancel it needs no error: the upload is empty; and a second try may find it
    # gone
    with contextlib.suppress(OSError):
        fs.abort_mpu(bucket, key, begun["UploadId"])


def _complete(fs: Any, path: str, stream: Any) -> None:
    tag = _tag_of(stream)
    try:
        stream.commit()
    except Exception:
        # the store's answer may have been lost: then the second try finds no upload any more, but the file
        fs.invalidate_cache()
        try:
            there = fs.info(path).get("ETag", "").strip('"')
        except Exception:
            there = ""
        if tag is None or there != tag:
            raise
        stream.buffer = None
    stream.mpu = None


def _tag_of(stream: Any) -> str | None:
    """Return the ETag that S3 will give the content of a finished upload; None if it cannot be told."""
    parts = getattr(stream, "parts", None)
    if not parts:
        return None
    try:
        digests = b"".join(bytes.fromhex(part["ETag"].strip('"')) for part in parts)
    except ValueError:
        return None
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"


def _discard(stream: Any) -> None:
    # else the stream would upload the rest when it is garbage-collected
    stream.closed = True
    with contextlib.suppress(Exception):
        stream.discard()


# -- file systems that can only move files


class Moved:
    """A file that is written under another name on the store, then moved.

    Attributes:
        at: None.
    """

    at: str | None = None

    def __init__(self, fs: Any, target: str, shown: str, overwrite: bool) -> None:
        self._fs, self._target, self._shown, self._overwrite = fs, target, shown, overwrite
        fs.invalidate_cache()
        if fs.isdir(target):
            raise is_directory(shown)
        if not overwrite and fs.exists(target):
            raise exists_already(shown)
        self._partial = partial_of(target)
        _check_writable(fs, self._partial)
        self._stream: Any = None

    def open(self) -> IO[bytes]:
        self._stream = self._fs.open(self._partial, "wb")
        return cast(IO[bytes], self._stream)

    def commit(self) -> None:
        self._stream.close()
        self._fs.invalidate_cache()
        if not self._overwrite and self._fs.exists(self._target):
            raise came_meanwhile(self._shown)
        self._fs.mv(self._partial, self._target)
        self._stream = None

    def abort(self) -> None:
        if self._stream is None:
            return
        with contextlib.suppress(Exception):
            self._stream.close()
        with contextlib.suppress(Exception):
            self._fs.rm_file(self._partial)
        self._stream = None


class MovedFolder:
    """A directory that is written under another name on the store, then moved file by file.

    Attributes:
        partial, most, adds: as in `akrunner.io.destinations.FolderDestination`.
    """

    at: str | None = None
    most = _OPEN_FILES

    def __init__(self, fs: Any, target: str, shown: str, overwrite: bool, append: bool = False) -> None:
        self._fs, self._shown, self._overwrite, self._append = fs, shown, overwrite, append
        self._target = target.rstrip("/")
        fs.invalidate_cache()
        if fs.isfile(self._target):
            raise is_file(shown)
        held = self._held()
        if held and not overwrite and not append:
            raise folder_exists_already(shown)
        check_ours(shown, held)
        self.adds = append and bool(held)
        self.partial = partial_of(self._target)
        _check_writable(fs, self.partial)
        self._streams: dict[str, Any] = {}

    def _held(self) -> list[str]:
        self._fs.invalidate_cache()
        return [path for path in self._fs.find(self._target)] if self._fs.exists(self._target) else []

    def make(self) -> None:
        self._fs.makedirs(self.partial, exist_ok=True)

    def open(self, name: str) -> IO[bytes]:
        path = posixpath.join(self.partial, name)
        if "/" in name:
            self._fs.makedirs(posixpath.dirname(path), exist_ok=True)
        self._streams[name] = self._fs.open(path, "wb")
        return cast(IO[bytes], self._streams[name])

    def finish(self, name: str) -> None:
        """Send all of a file."""
        self._streams[name].close()

    def empty(self) -> bool:
        return not self._streams

    def commit(self, seal: Seal | None = None) -> None:
        """Move the files into place.

        Args:
            seal: makes the directory's manifest.
        """
        for stream in self._streams.values():
            stream.close()
        old = self._held()
        if old and not self._overwrite and not self._append:
            raise came_meanwhile(self._shown)
        if self._overwrite:
            check_still_ours(self._shown, old)
        if self._append and not self._streams:
            self.abort()
            return
        self._fs.makedirs(self._target, exist_ok=True)
        done: list[str] = []
        try:
            for name in self._streams:
                path = posixpath.join(self._target, name)
                if "/" in name:
                    self._fs.makedirs(posixpath.dirname(path), exist_ok=True)
                self._fs.mv(posixpath.join(self.partial, name), path)
                done.append(path)
            stays = _sealed(self._fs, self._target, seal, old if self._append else [])
        except Exception:
            if not self._overwrite:
                # so that the directory is as it was
                with contextlib.suppress(Exception):
                    self._fs.rm(done)
            raise
        stale = [path for path in old if posixpath.relpath(path, self._target) not in self._streams and path not in stays]
        if stale and not self._append:
            self._fs.rm(stale)
        self.abort()

    def abort(self) -> None:
        for stream in self._streams.values():
            with contextlib.suppress(Exception):
                stream.close()
        self._streams = {}
        with contextlib.suppress(Exception):
            self._fs.rm(self.partial, recursive=True)


def _check_writable(fs: Any, path: str) -> None:
    """Check, with an empty file, that a path can be written.

    Raises:
        SinkError: the file system is read-only.
        Exception: whatever the file system raises when the file is written.
    """
    try:
        fs.pipe_file(path, b"")
    except NotImplementedError:
        raise SinkError("output: this file system can only be read") from None
    with contextlib.suppress(FileNotFoundError):
        fs.rm_file(path)
