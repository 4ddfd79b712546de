"""One bucket of OSS, by oss2: what is in it, pieces of objects, uploads that count when they are complete. Tried again where that may help.

Needs `akrunner[odps]`, which is imported when a bucket is opened.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.tables.credentials import Credentials

#: of an upload; larger objects are sent in pieces of so much, or more: OSS takes ten thousand
PART_BYTES = 16 << 20
_MOST_PARTS = 9_000
_TRIES = 5
#: seconds, doubled with each try
_PAUSE = 0.25
_TIMEOUT = 60
_REGION = re.compile(r"(?:^|[/.])oss-([a-z0-9-]+?)(?:-internal)?\.aliyuncs\.com", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """An object. Attributes: tag: changes with its content."""

    key: str
    size: int
    tag: str


class Bucket:
    """See above. Threads may share it. Attributes: endpoint."""

    def __init__(self, name: str, endpoint: str, credentials: Credentials, threads: int) -> None:
        """Connect to nothing yet. Args: threads: that use it at a time. Raises: ConfigError: the package is not there."""
        with ours(ConfigError, "buckets in OSS need oss2"):
            import oss2

            self._oss: Any = oss2
        self.endpoint = endpoint
        named = next((one for one in _REGION.findall(endpoint) if not one.startswith("accelerate")), None)
        region = os.environ.get("OSS_REGION") or named
        # the newer signature names the region
        version = "v4" if region else "v1"
        keys = (credentials.access_id, credentials.access_key)
        if credentials.token:
            auth: Any = self._oss.StsAuth(*keys, credentials.token, auth_version=version)
        else:
            auth = self._oss.make_auth(*keys, auth_version=version)
        session = self._oss.Session(pool_size=threads)
        with ours(ConfigError, f"invalid bucket {name!r} at {endpoint}"):
            self._bucket = self._oss.Bucket(auth, endpoint, name, session=session, connect_timeout=_TIMEOUT, region=region)

    def listed(self, prefix: str) -> Iterator[Found]:
        """Objects whose keys begin so, sorted."""
        token = ""
        while True:
            page = self._again(functools.partial(self._bucket.list_objects_v2, prefix, continuation_token=token, max_keys=1000))
            for one in page.object_list:
                yield Found(one.key, one.size, one.etag)
            if not page.is_truncated:
                return
            token = page.next_continuation_token

    def piece(self, found: Found, start: int, size: int) -> bytes:
        """Bytes of an object as it was found. Raises: oss2's own: it has changed."""

        def read() -> Any:
            headers = {"If-Match": f'"{found.tag}"', "x-oss-range-behavior": "standard"}
            data = self._bucket.get_object(found.key, byte_range=(start, start + size - 1), headers=headers).read()
            if len(data) != size:
                raise EOFError(f"{len(data):,} of {size:,} bytes came")
            return data

        return bytes(self._again(read))

    def put_bytes(self, key: str, data: bytes) -> None:
        self._again(lambda: self._bucket.put_object(key, data))

    def put_file(self, key: str, path: str, size: int) -> None:
        """The first `size` bytes of a file, which may grow meanwhile. Raises: OSError: it is not there, or shorter."""
        with open(path, "rb") as file:
            if size <= PART_BYTES:
                self.put_bytes(key, _exactly(file, size))
                return
            upload = self._again(lambda: self._bucket.init_multipart_upload(key)).upload_id
            try:
                parts: list[Any] = []
                step = max(PART_BYTES, size // _MOST_PARTS + 1)
                for start in range(0, size, step):
                    parts.append(self._part(key, upload, len(parts) + 1, _exactly(file, min(step, size - start))))
                self._complete(key, upload, parts)
            except BaseException:
                with contextlib.suppress(Exception):
                    self._bucket.abort_multipart_upload(key, upload)
                raise

    def _part(self, key: str, upload: str, number: int, data: bytes) -> Any:
        sent = self._again(lambda: self._bucket.upload_part(key, upload, number, data))
        return self._oss.models.PartInfo(number, sent.etag, size=len(data), part_crc=sent.crc)

    def _complete(self, key: str, upload: str, parts: list[Any]) -> None:
        try:
            self._again(lambda: self._bucket.complete_multipart_upload(key, upload, parts))
        except self._oss.exceptions.NoSuchUpload:
            # an answer that was lost on its way: the second try finds no upload any more, but the object
            self._again(lambda: self._bucket.head_object(key))

    def remove(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), 1000):
            self._again(functools.partial(self._bucket.batch_delete_objects, list(keys[start : start + 1000])))

    def check_writable(self, key: str) -> None:
        """Begin an upload and end it: may it be written? Nothing is left. Raises: oss2's own."""
        upload = self._again(lambda: self._bucket.init_multipart_upload(key)).upload_id
        # who may begin one but not end it gets no error for that: it is empty
        with contextlib.suppress(Exception):
            self._bucket.abort_multipart_upload(key, upload)

    def _again(self, does: Callable[[], Any]) -> Any:
        """What it returns, after several tries if need be."""
        for number in range(1, _TRIES + 1):
            try:
                return does()
            except Exception as e:
                if number == _TRIES or not self._worth(e):
                    raise
            time.sleep(min(8.0, _PAUSE * 2**number))
        raise AssertionError

    def _worth(self, error: Exception) -> bool:
        if isinstance(error, (self._oss.exceptions.RequestError, self._oss.exceptions.InconsistentError)):
            return True
        status = getattr(error, "status", 0)
        return status in (408, 429) or status >= 500 or type(error) in (EOFError, ConnectionError) or _broken(error)


def _broken(error: Exception) -> bool:
    """Whether a connection broke while an answer was read: that comes as the lower library's own exception."""
    return type(error).__module__.partition(".")[0] in ("requests", "urllib3", "http")


def _exactly(file: Any, size: int) -> bytes:
    data = bytes(file.read(size))
    if len(data) != size:
        raise FileNotFoundError("the file has become shorter meanwhile")
    return data
