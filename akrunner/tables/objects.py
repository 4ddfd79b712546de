"""One bucket of OSS, through oss2: lists objects, reads pieces of them, and uploads files, each of which appears when it is
complete.

Requests that may succeed later are tried again. Needs `akrunner[odps]`, which is imported when a bucket is opened.
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

#: bytes of a piece: larger files are uploaded in pieces of this size, or larger ones, because OSS takes at most ten thousand
#: pieces
PART_BYTES = 16 << 20
_MOST_PARTS = 9_000
_TRIES = 5
#: seconds before another try, doubled with each try
_PAUSE = 0.25
_TIMEOUT = 60
_REGION = re.compile(r"(?:^|[/.])oss-([a-z0-9-]+?)(?:-internal)?\.aliyuncs\.com", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """An object of a bucket.

    Attributes:
        key: of the object.
        size: in bytes.
        tag: changes when the content does.
    """

    key: str
    size: int
    tag: str


class Bucket:
    """One bucket of OSS. Threads may share it.

    Attributes:
        endpoint: URL of the service.
    """

    def __init__(self, name: str, endpoint: str, credentials: Credentials, threads: int) -> None:
        """Prepare the client; connect to nothing yet.

        Args:
            threads: how many threads use the bucket at a time.
        Raises:
            ConfigError: oss2 is not installed, or the name or the endpoint is invalid.
        """
        with ours(ConfigError, "buckets in OSS need oss2"):
            import oss2

            self._oss: Any = oss2
        self.endpoint = endpoint
        named = next((one for one in _REGION.findall(endpoint) if not one.startswith("accelerate")), None)
        region = os.environ.get("OSS_REGION") or named
        # the newer signature includes the region
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
        """Yield the objects whose keys begin with `prefix`, sorted."""
        token = ""
        while True:
            page = self._again(functools.partial(self._bucket.list_objects_v2, prefix, continuation_token=token, max_keys=1000))
            for one in page.object_list:
                yield Found(one.key, one.size, one.etag)
            if not page.is_truncated:
                return
            token = page.next_continuation_token

    def piece(self, found: Found, start: int, size: int) -> bytes:
        """Return `size` bytes of an object, from `start` on.

        Raises:
            oss2's exceptions: the object has changed since it was found, or cannot be read.
        """

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
        """Upload the first `size` bytes of a file, which may grow meanwhile.

        Raises:
            OSError: the file does not exist, or has become shorter.
        """
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
            # the answer to the first try was lost: the second finds the upload gone, and the object there
            self._again(lambda: self._bucket.head_object(key))

    def remove(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), 1000):
            self._again(functools.partial(self._bucket.batch_delete_objects, list(keys[start : start + 1000])))

    def check_writable(self, key: str) -> None:
        """Begin an upload and abort it, to see whether the object may be written; nothing is left of it.

        Raises:
            oss2's exceptions: it may not.
        """
        upload = self._again(lambda: self._bucket.init_multipart_upload(key)).upload_id
        # a user who may begin an upload but not abort it gets no error for that: the upload is empty
        with contextlib.suppress(Exception):
            self._bucket.abort_multipart_upload(key, upload)

    def _again(self, does: Callable[[], Any]) -> Any:
        """Call `does` and return its result, trying again after errors that may pass."""
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
    """Whether a connection broke while an answer was read: the lower library raises an exception of its own for that."""
    return type(error).__module__.partition(".")[0] in ("requests", "urllib3", "http")


def _exactly(file: Any, size: int) -> bytes:
    data = bytes(file.read(size))
    if len(data) != size:
        raise FileNotFoundError("the file has become shorter meanwhile")
    return data
