"""Where files lie that several machines read themselves: on disks that all of them have, or in a store that pyarrow opens.

::

    host    fsspec's file system -> scheme, settings, secrets --(a Flink job's TLS)--> agent    pyarrow's file system -> bytes

Flink's Python, in which agents run, brings pyarrow and, as a rule, no fsspec.
"""

from __future__ import annotations

import datetime
import functools
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, cast

import pyarrow as pa

from akrunner.foreign import redacted

#: seconds that S3 may take to accept a connection, and to send more of an answer
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 30.0
#: how often a request to S3 is tried
_TRIES = 5
#: seconds for which a request to Google's storage is tried again. pyarrow holds Python's lock meanwhile, and an agent that is silent for
#: 20 seconds counts as stopped
_AGAIN_SECONDS = 10.0
#: shorter values of settings are no secrets
_SHORTEST = 3
#: how much of a text is fetched at once, at least
_BUFFER_BYTES = 1 << 20


class Unshared(Exception):
    """Other machines cannot read a table; the text says why, as half a sentence."""


@dataclass(frozen=True)
class Seen:
    """The state of a file.

    Attributes:
        bytes: its size.
        tag: what the store calls this content, an ETag or a time; "" on disks.
        changed: when it was last changed, as this machine sees it, in nanoseconds; 0 in stores, whose tags say it.
    """

    bytes: int
    tag: str = ""
    changed: int = 0


class Disks:
    """The file systems of this machine.

    Attributes:
        scheme: "".
        away: whether each request takes a journey, so that few large requests are better than many small ones.
    """

    scheme = ""
    away = False

    def open(self, path: str) -> pa.NativeFile:
        """Return the bytes of a file, which can be sought in. The caller closes it. Raises: OSError: it cannot be opened."""
        return pa.OSFile(path)

    def mapped(self, path: str) -> pa.NativeFile:
        """Return the same, in memory as far as it is read, if that is possible."""
        return pa.memory_map(path)

    def stream(self, path: str) -> IO[bytes]:
        """Return the same as an object of Python's own kind, with buffer."""
        return open(path, "rb")

    def seen(self, path: str) -> Seen:
        """Return the state of a file now. Raises: OSError: it cannot be seen."""
        found = os.stat(path)
        return Seen(found.st_size, "", found.st_mtime_ns)

    def shown(self, path: str) -> str:
        """Return a file's name for errors."""
        return path

    def hidden(self, text: str) -> str:
        """Return a text without the store's secrets."""
        return redacted(text)


@dataclass(frozen=True)
class Store:
    """A store, as pyarrow opens it. Has the same methods as `Disks`.

    Attributes:
        scheme: s3, gs or hdfs.
        settings: arguments of pyarrow's file system, which may be shown.
        secrets: arguments that may not; one may be a mapping (HDFS' `extra_conf`), of which every value is a secret.
    """

    scheme: str
    settings: Mapping[str, Any]
    secrets: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict, repr=False)

    away = True

    @functools.cached_property
    def _filesystem(self) -> Any:
        from pyarrow import fs

        made, more = _CLASSES[self.scheme]
        return getattr(fs, made)(**self.settings, **self.secrets, **more(fs))

    def open(self, path: str) -> pa.NativeFile:
        return self._filesystem.open_input_file(path)

    def mapped(self, path: str) -> pa.NativeFile:
        return self.open(path)

    def stream(self, path: str) -> IO[bytes]:
        return cast(IO[bytes], io.BufferedReader(cast(io.RawIOBase, self.open(path)), _BUFFER_BYTES))

    def seen(self, path: str) -> Seen:
        with self.open(path) as file:
            size, told = file.size(), file.metadata()
        told = {_text(name).lower(): _text(value) for name, value in (told or {}).items()}
        tag = told.get("etag", "").strip('"') or told.get("generation") or told.get("last-modified")
        if not tag:
            # HDFS has no tags; its times are those of one clock
            tag = str(self._filesystem.get_file_info(path).mtime_ns)
        return Seen(size, tag)

    def shown(self, path: str) -> str:
        return redacted(f"{self.scheme}://{path}")

    def hidden(self, text: str) -> str:
        plain = [one for one in self.secrets.values() if isinstance(one, str) and one]
        of_maps = {
            str(value)
            for one in self.secrets.values()
            if not isinstance(one, str)
            for value in one.values()
            if _is_telling(value)
        }
        return redacted(text, (*plain, *sorted(of_maps, key=len, reverse=True)))


def _is_telling(value: object) -> bool:
    """Whether a setting may be a secret: hiding `true` and `3` would only make a text unreadable."""
    return len(str(value)) >= _SHORTEST and str(value).lower() not in ("true", "false")


#: the disks of this machine
DISKS = Disks()
Place = Disks | Store


def _of_s3(fs: Any) -> dict[str, Any]:
    return {
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": _ANSWER_SECONDS,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
    }


def _of_google(fs: Any) -> dict[str, Any]:
    return {"retry_time_limit": datetime.timedelta(seconds=_AGAIN_SECONDS)}


def _of_hadoop(fs: Any) -> dict[str, Any]:
    return {}


#: scheme -> (the name of the class in `pyarrow.fs`, its further arguments)
_CLASSES: dict[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "s3": ("S3FileSystem", _of_s3),
    "gs": ("GcsFileSystem", _of_google),
    "hdfs": ("HadoopFileSystem", _of_hadoop),
}


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
