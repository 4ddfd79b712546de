"""A job's directories in OSS, `oss://bucket.host/path`, as directories of this machine.

::

    with Buckets(roots, say=print) as buckets:
        buckets.file("oss://b.host/code/train.tar.gz")      a file that is read before the job starts: returns its local path
        buckets.folder("oss://b.host/data/")                a directory that the script reads: copied here before this returns
        buckets.kept("oss://b.host/models/m/")              checkpointDir: its objects are copied here; what the script writes
        ...  the job runs                                   is uploaded as the job runs
                                                            at the job's end, however it ends, the last files are uploaded,
                                                            and the directories made here are removed

With credentials for OSS (`credentials.oss_credentials`) the bucket is the one in the cloud. Without them, or if the user names
a directory for it (`--oss-root BUCKET=DIR`), it is a directory, `oss.local_path`, and nothing is copied.
"""

from __future__ import annotations

import os
import socket
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from akrunner import leftovers
from akrunner.errors import ConfigError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.tables.chosen import ROOT_VARIABLE
from akrunner.tables.credentials import Credentials, oss_credentials
from akrunner.tables.mirror import THREADS, Mirror
from akrunner.tables.objects import Bucket
from akrunner.tables.oss import local_path, parts_of
from akrunner.tables.upload import Upload

#: seconds between two uploads of what is new in a kept directory
EVERY = 20.0
_INTERNAL = "-internal.aliyuncs.com"
_REACHED_IN = 2.0


@dataclass(frozen=True)
class _Place:
    """What a URI of OSS names.

    Attributes:
        bucket: its name.
        key: of the object, or of the directory; "" for the whole bucket.
        endpoint: URL of the service that has the bucket.
        whole: whether the URI ends with `/`.
    """

    bucket: str
    key: str
    endpoint: str
    whole: bool


class Buckets:
    """The buckets that one job uses. Two threads must not use it at once."""

    def __init__(
        self,
        roots: Mapping[str, str] | None = None,
        host: str | None = None,
        root: str | None = None,
        say: Callable[[str], None] = lambda text: None,
        every: float = EVERY,
    ) -> None:
        """Find the credentials; open nothing yet.

        Args:
            roots: bucket -> its directory (`--oss-root BUCKET=DIR`); wins over credentials.
            host: the host of URIs that name none (`-DossHost`).
            root: the directory of the local tables; if given, or in AKRUNNER_TABLES, it wins over credentials too.
            say: is called with sentences: which bucket is taken from where, how far a copy is, and what failed and is tried
                again.
            every: seconds between two uploads of what is new in a kept directory.
        Raises:
            ConfigError: there are credentials, but a part of them is missing; the message names the part.
        """
        self._roots, self._host, self._root, self._say, self._every = dict(roots or {}), host, root, say, every
        local = root or os.environ.get(ROOT_VARIABLE)
        self._credentials: Credentials | None = None if local else oss_credentials()
        self._temp: str | None = None
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._hosts: dict[str, str] = {}
        self._said: set[str] = set()
        self._uploads: list[Upload] = []
        #: (endpoint, directory) that has been copied -> (their files then, whether they are kept, their upload)
        self._copied: dict[tuple[str, str], tuple[set[str], bool, Upload]] = {}

    def remote(self, uri: str) -> bool:
        """Whether the URI's bucket is in the cloud.

        Raises:
            ConfigError: the text is no URI of OSS.
        """
        return self._credentials is not None and parts_of(uri)[0] not in self._roots

    def planned(self, uri: str) -> str:
        """Return a clause for a dry run that says where a URI leads; nothing is opened.

        Raises:
            ConfigError: the text is no URI of OSS.
        """
        if not self.remote(uri):
            return local_path(uri, self._roots, self._root)
        assert self._credentials is not None
        return f"(a copy of {uri.partition('?')[0]} from {self._endpoint(uri)}, key found in {self._credentials.found})"

    def file(self, uri: str) -> str:
        """Copy one file, which is read before the job starts, and return its local path.

        Raises:
            ConfigError: there is no such object, or it cannot be read.
        """
        if not self.remote(uri):
            return local_path(uri, self._roots, self._root)
        place, mirror = self._mirror(uri)
        found = mirror.fetch(place.key, whole=False)
        if not found:
            raise SourceError(f"{uri}: there is no such object at {place.endpoint}")
        return os.path.join(mirror.root, place.key)

    def folder(self, uri: str) -> str:
        """Copy a directory (or a file) that the script reads, and return its local path, which ends with `/` if the URI does.

        What the script writes there is uploaded at the end.

        Raises:
            ConfigError: it cannot be read, or is larger than the free space of the disk.
        """
        if not self.remote(uri):
            return local_path(uri, self._roots, self._root)
        return self._followed(uri, False)

    def kept(self, uri: str) -> str:
        """Return the local path of a directory that the script writes; it ends with `/` if the URI does. Objects that are
        there are copied.

        Raises:
            ConfigError: it cannot be read, or cannot be written.
        """
        if not self.remote(uri):
            path = local_path(uri, self._roots, self._root)
            with ours(ConfigError, f"{uri}: cannot make its directory", path):
                os.makedirs(path, exist_ok=True)
            return path
        return self._followed(uri, True)

    def _followed(self, uri: str, kept: bool) -> str:
        place, mirror = self._mirror(uri)
        if kept:
            with ours(ConfigError, f"{uri}: cannot be written at {place.endpoint}"):
                mirror.bucket.check_writable(_below(place.key, ".akrunner"))
        path = os.path.join(mirror.root, place.key).rstrip("/")
        copy = (place.endpoint, path)
        if copy in self._copied:
            known, followed, upload = self._copied[copy]
            if followed or not kept:
                return path + "/" * place.whole
            # it was only to be read
            self._uploads.remove(upload)
        else:
            found = mirror.fetch(place.key, whole=True)
            if os.path.isfile(path):
                return path
            os.makedirs(path, exist_ok=True)
            if not found and not kept:
                self._say(f"{uri} is empty")
            known = {os.path.relpath(mirror.path(one), path) for one in found}
        upload = Upload(mirror.bucket, _below(place.key, ""), path, uri, known, kept, self._say)
        self._uploads.append(upload)
        self._copied[copy] = known, kept, upload
        if kept:
            upload.start(self._every)
        return path + "/" * place.whole

    # -- where

    def _mirror(self, uri: str) -> tuple[_Place, Mirror]:
        """Return what a URI names, and the local copy of its bucket.

        Raises:
            ConfigError: the text is no URI of OSS, or its bucket cannot be opened.
        """
        bucket, key = parts_of(uri)
        place = _Place(bucket, key, self._reached(self._endpoint(uri)), uri.partition("?")[0].endswith("/"))
        assert self._credentials is not None
        if place.endpoint not in self._said:
            self._said.add(place.endpoint)
            self._say(f"buckets: OSS at {place.endpoint} (key found in {self._credentials.found})")
        opened = self._buckets.get((bucket, place.endpoint))
        if opened is None:
            opened = self._buckets[bucket, place.endpoint] = Bucket(bucket, place.endpoint, self._credentials, THREADS)
        if self._temp is None:
            with ours(ConfigError, "cannot make a directory for buckets of OSS (TMPDIR)"):
                self._temp = leftovers.temp_folder("akrunner-oss-")
        return place, Mirror(opened, os.path.join(self._temp, bucket), uri, self._say)

    def _endpoint(self, uri: str) -> str:
        """Return the endpoint of a URI's bucket.

        Raises:
            ConfigError: neither the URI nor the settings name a host, or the host is none of Alibaba's.
        """
        assert self._credentials is not None
        everywhere = os.environ.get("OSS_ENDPOINT")
        if everywhere:
            return self._credentials.endpoint or everywhere
        authority, _, query = uri.partition("://")[2].partition("?")
        named = authority.partition("/")[0].partition(".")[2]
        asked = urllib.parse.parse_qs(query).get("host", [""])[0]
        host = (named or asked or self._host or "").strip().rstrip("/").rpartition("://")[2]
        if not host:
            if self._credentials.endpoint:
                return self._credentials.endpoint
            raise ConfigError(
                f"{uri} names no host: write oss://bucket.oss-cn-shanghai.aliyuncs.com/..., or set OSS_ENDPOINT (-DossHost)"
            )
        if "." not in host:
            host += ".aliyuncs.com"
        if not host.lower().endswith(".aliyuncs.com"):
            raise ConfigError(
                f"{uri}: {host} is no host of Alibaba's, and is shown no key; if it is right, set OSS_ENDPOINT=https://{host}"
            )
        return f"https://{host}"

    def _reached(self, endpoint: str) -> str:
        """Return the endpoint; if it is inside Alibaba's cloud and cannot be reached from here, return the public endpoint
        instead.
        """
        host = endpoint.rpartition("://")[2]
        if not host.endswith(_INTERNAL) or os.environ.get("OSS_ENDPOINT"):
            return endpoint
        if host not in self._hosts:
            self._hosts[host] = host
            try:
                socket.create_connection((host, 443), _REACHED_IN).close()
            except OSError:
                self._hosts[host] = host.replace(_INTERNAL, ".aliyuncs.com")
                self._say(f"{host} is reached only inside of Alibaba's cloud; {self._hosts[host]} is taken")
        return f"https://{self._hosts[host]}"

    # -- the end

    def __enter__(self) -> Buckets:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Upload what is new, and remove the copies.

        Raises:
            WriteError: the upload failed; the message names the directory that keeps the files. If the job failed too, the
                message goes to `say` instead, and the job's own exception continues.
        """
        failed: list[str] = []
        for upload in self._uploads:
            try:
                upload.finish()
            except WriteError as e:
                failed.append(str(e))
        temp, self._temp = self._temp, None
        if temp is None:
            return
        if not failed:
            leftovers.drop(temp)
            return
        leftovers.forget(temp)
        words = f"{'; '.join(failed)}. The files are kept in {temp}"
        if error is None:
            raise WriteError(words)
        self._say(words)


def _below(key: str, name: str) -> str:
    """Return the key of the object `name` in the directory `key`."""
    return f"{key.rstrip('/')}/{name}" if key else name
