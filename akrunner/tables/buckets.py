"""A job's places in OSS, `oss://bucket.host/path`, as directories of this machine.

::

    with Buckets(roots, say=print) as buckets:
        buckets.file("oss://b.host/code/train.tar.gz")      read before the start: where the file is now
        buckets.folder("oss://b.host/data/")                read by the script: all of it is here when this returns
        buckets.kept("oss://b.host/models/m/")              checkpointDir: what is there is here; what the script writes goes there as the
        ...  the job runs                                   job goes, and at the end, however it ends
                                                            ends: the last files go there; directories made here are removed

With credentials for OSS (`credentials.oss_credentials`) the bucket is the one of the cloud; without, or where a directory is named for it
(`--oss-root BUCKET=DIR`), it is a directory, `oss.local_path`, and nothing is copied.
"""

from __future__ import annotations

from types import TracebackType
from typing import Callable, Mapping, Optional, Type

from akrunner.tables.oss import local_path


class Buckets:
    """The places of one job. Not for two threads at once."""

    def __init__(
        self,
        roots: Optional[Mapping[str, str]] = None,
        host: Optional[str] = None,
        root: Optional[str] = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Open nothing yet.

        Args:
            roots: bucket -> its directory (`--oss-root BUCKET=DIR`); wins over credentials.
            host: of URIs that name none (`-DossHost`).
            root: of the local tables; given, or in AKRUNNER_TABLES, it wins over credentials, too.
            say: is told, in sentences, which buckets are taken from where, how far a copy is, and what goes wrong and is tried again.
        Raises: ConfigError: credentials are there, but something of them is missing; it says what.
        """
        self._roots, self._host, self._root, self._say = roots, host, root, say

    def planned(self, uri: str) -> str:
        """Half a sentence for a dry run: where a URI leads; nothing is opened. Raises: ConfigError: it is no such URI."""
        return local_path(uri, self._roots, self._root)

    def file(self, uri: str) -> str:
        """The path of one file, which is read before the job starts. Raises: ConfigError: there is none, or it cannot be read."""
        return local_path(uri, self._roots, self._root)

    def folder(self, uri: str) -> str:
        """The path of a directory (or of a file) the script reads; ends with `/` if the URI does.

        Raises: ConfigError: it cannot be read, or is larger than the disk.
        """
        return local_path(uri, self._roots, self._root)

    def kept(self, uri: str) -> str:
        """The path of a directory the script writes, and reads if it holds something; ends with `/` if the URI does.

        Raises: ConfigError: it cannot be read, or not be written.
        """
        return local_path(uri, self._roots, self._root)

    def __enter__(self) -> "Buckets":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Write back what is new. Raises: WriteError: it could not be; the message names the directory that has it. (If the job
        failed, it is said, and the job's own exception goes on.)"""
