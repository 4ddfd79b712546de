"""An OSS for oss2 and ossfs: objects in memory, lists, ranges, uploads in parts, signatures that are checked, and faults by switch."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from oss2.auth import Auth

ACCESS_ID, ACCESS_KEY = "LTAItestoss", "test-Secret-of-oss"
_PAGE = 1000
#: the client tries five times
_FAILS = 3


@dataclass
class Faults:
    """Attributes: errors: (status, n): every n-th request; drop: every n-th is not answered; cut: how many answers break in the middle;
    late: how many uploads are completed and answered with a 500; refuse: nothing may be written; page: objects in one list."""

    errors: tuple[int, int] = (0, 0)
    drop: int = 0
    cut: int = 0
    late: int = 0
    refuse: bool = False
    page: int = _PAGE


class Oss:
    """Attributes: url; objects: bucket -> key -> bytes; faults; requests: (method, path); uploads: begun, and neither completed nor ended."""

    def __init__(self, bucket: str = "bkt") -> None:
        self.objects: dict[str, dict[str, bytes]] = {bucket: {}}
        self.faults = Faults()
        self.requests: list[tuple[str, str]] = []
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.lock = threading.RLock()
        self._count = 0
        self._failed: Counter[str] = Counter()
        server = self

        class Handler(_Handler):
            place = server

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def __enter__(self) -> Oss:
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    def environment(self) -> dict[str, str]:
        return {"OSS_ACCESS_KEY_ID": ACCESS_ID, "OSS_ACCESS_KEY_SECRET": ACCESS_KEY, "OSS_ENDPOINT": self.url}

    def keys(self, bucket: str = "bkt") -> list[str]:
        return sorted(self.objects[bucket])

    def fate(self, request: str) -> tuple[int, bool]:
        """(status to answer with, 0: as it is; whether to hang up) of the next request. What comes from several threads may be the n-th each time it is tried:
        a request fails as often as its client bears."""
        with self.lock:
            self._count += 1
            status, nth = self.faults.errors
            fails, drops = (bool(n and self._count % n == 0) for n in (nth, self.faults.drop))
            if fails or drops:
                self._failed[request] += 1
                if self._failed[request] > _FAILS:
                    return 0, False
            return (status if fails else 0), drops


class _Wrong(Exception):
    """What is answered: status, code."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    place: Oss

    def log_message(self, *_: Any) -> None:
        pass

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.place.requests.append((self.command, self.path))
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        try:
            status, drop = self.place.fate(f"{self.command} {self.path} {self.headers.get('Range')}")
            if drop:
                self.close_connection = True
                return
            self._check(bucket, key, query)
            if status:
                raise _Wrong(status, "InternalError")
            if bucket not in self.place.objects:
                raise _Wrong(404, "NoSuchBucket")
            if self.place.faults.refuse and self.command in ("PUT", "POST", "DELETE"):
                raise _Wrong(403, "AccessDenied")
            getattr(self, f"_{self.command.lower()}")(bucket, key, query, body)
        except _Wrong as e:
            self._reply(e.args[0], f"<Error><Code>{e.args[1]}</Code><Message>{e.args[1]}</Message></Error>".encode())
        except ConnectionError:
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

    def _check(self, bucket: str, key: str, query: dict[str, str]) -> None:
        """The signature. Raises: _Wrong."""
        given = self.headers.get("Authorization") or ""
        if given.startswith("OSS4-HMAC-SHA256 "):
            return self._check_v4(given, bucket, key, query)
        name, _, signature = given.removeprefix("OSS ").partition(":")
        if name != ACCESS_ID:
            raise _Wrong(403, "InvalidAccessKeyId")
        signed = sorted((k.lower(), v) for k, v in self.headers.items() if k.lower().startswith("x-oss-"))
        known = sorted((k, v) for k, v in query.items() if k in Auth._subresource_key_set)
        resource = f"/{bucket}/{key}" + ("?" + "&".join(f"{k}={v}" if v else k for k, v in known) if known else "")
        head = [self.command, *(self.headers.get(one) or "" for one in ("Content-MD5", "Content-Type", "Date"))]
        text = "\n".join([*head, *(f"{k}:{v}" for k, v in signed), resource])
        wanted = base64.b64encode(hmac.new(ACCESS_KEY.encode(), text.encode(), hashlib.sha1).digest()).decode()
        if wanted != signature:
            raise _Wrong(403, "SignatureDoesNotMatch")

    def _check_v4(self, given: str, bucket: str, key: str, query: dict[str, str]) -> None:
        """The newer signature. Raises: _Wrong."""
        said = dict(one.split("=", 1) for one in given.partition(" ")[2].replace(" ", "").split(","))
        name, *scope = said["Credential"].split("/")
        if name != ACCESS_ID:
            raise _Wrong(403, "InvalidAccessKeyId")
        headers = {k.lower(): v.strip() for k, v in self.headers.items()}
        signed = [
            f"{k}:{v}\n" for k, v in sorted(headers.items()) if k.startswith("x-oss-") or k in ("content-type", "content-md5")
        ]
        words = [(quote(k, safe=""), quote(v, safe="")) for k, v in query.items()]
        asked = "&".join(f"{k}={v}" if v else k for k, v in sorted(words))
        path = quote(f"/{bucket}/{key}" if bucket else "/", safe="/")
        whole = "\n".join([self.command, path, asked, "".join(signed), "", headers["x-oss-content-sha256"]])
        digest = hashlib.sha256(whole.encode()).hexdigest()
        text = "\n".join(["OSS4-HMAC-SHA256", headers["x-oss-date"], "/".join(scope), digest])
        made = b"aliyun_v4" + ACCESS_KEY.encode()
        for one in scope:
            made = hmac.new(made, one.encode(), hashlib.sha256).digest()
        if hmac.new(made, text.encode(), hashlib.sha256).hexdigest() != said["Signature"]:
            raise _Wrong(403, "SignatureDoesNotMatch")

    def _get(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> None:
        objects = self.place.objects[bucket]
        if not key and "bucketInfo" in query:
            fields = {"Name": bucket, "CreationDate": "2026-01-01T00:00:00.000Z", "StorageClass": "Standard", "ExtranetEndpoint": "x", "IntranetEndpoint": "y", "Location": "l"}  # fmt: skip
            inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
            owner = "<Owner><ID>1</ID><DisplayName>1</DisplayName></Owner><AccessControlList><Grant>private</Grant></AccessControlList>"
            return self._reply(200, f"<BucketInfo><Bucket>{inner}{owner}</Bucket></BucketInfo>".encode())
        if not key:
            return self._list(objects, query)
        if key not in objects:
            raise _Wrong(404, "NoSuchKey")
        data = objects[key]
        wanted = self.headers.get("If-Match")
        if wanted and wanted.strip('"') != _tag(data):
            raise _Wrong(412, "PreconditionFailed")
        found = re.match(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if not found:
            return self._reply(200, data, self._head_of(data))
        first = int(found[1]) if found[1] else max(0, len(data) - int(found[2]))
        last = min(int(found[2]), len(data) - 1) if found[1] and found[2] else len(data) - 1
        piece = data[first : last + 1]
        self._reply(206, piece, {**self._head_of(data), "Content-Range": f"bytes {first}-{last}/{len(data)}"})

    def _list(self, objects: dict[str, bytes], query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("marker") or query.get("start-after") or ""
        most = min(int(query.get("max-keys", "100")), self.place.faults.page)
        names: dict[str, bytes | None] = {}
        for key in sorted(objects):
            if key.startswith(prefix):
                rest = key[len(prefix) :]
                if delimiter and delimiter in rest:
                    names.setdefault(prefix + rest.partition(delimiter)[0] + delimiter, None)
                else:
                    names[key] = objects[key]
        shown = [(name, data) for name, data in names.items() if name > after]
        page, more = shown[:most], len(shown) > most
        code = quote if query.get("encoding-type") == "url" else escape
        text = f"<Name>b</Name><Prefix>{code(prefix)}</Prefix><MaxKeys>{most}</MaxKeys><KeyCount>{len(page)}</KeyCount>"
        text += "<EncodingType>url</EncodingType>" * (code is quote) + f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            text += "".join(f"<{name}>{code(page[-1][0])}</{name}>" for name in ("NextContinuationToken", "NextMarker"))
        for name, data in page:
            if data is None:
                text += f"<CommonPrefixes><Prefix>{code(name)}</Prefix></CommonPrefixes>"
                continue
            fields = {"Key": code(name), "LastModified": "2026-01-01T00:00:00.000Z", "ETag": f'"{_tag(data)}"', "Type": "Normal", "Size": str(len(data)), "StorageClass": "Standard"}  # fmt: skip
            text += "<Contents>" + "".join(f"<{k}>{v}</{k}>" for k, v in fields.items()) + "</Contents>"
        self._reply(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())

    def _head(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> None:
        data = self.place.objects[bucket].get(key)
        if data is None:
            raise _Wrong(404, "NoSuchKey")
        self._reply(200, b"", {**self._head_of(data), "Content-Length": str(len(data)), "x-oss-object-type": "Normal"})

    def _put(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> None:
        objects = self.place.objects[bucket]
        copied = self.headers.get("x-oss-copy-source")
        if copied:
            body = self.place.objects[bucket][unquote(copied).lstrip("/").partition("/")[2]]
        if "uploadId" in query:
            if query["uploadId"] not in self.place.uploads:
                raise _Wrong(404, "NoSuchUpload")
            self.place.uploads[query["uploadId"]][int(query["partNumber"])] = body
        else:
            objects[key] = body
        tag = f'"{_tag(body)}"'
        text = f"<CopyObjectResult><ETag>{tag}</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></CopyObjectResult>"
        self._reply(200, text.encode() if copied else b"", {"ETag": tag})

    def _delete(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            self.place.uploads.pop(query["uploadId"], None)
        else:
            self.place.objects[bucket].pop(key, None)
        self._reply(204, b"")

    def _post(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> None:
        objects = self.place.objects[bucket]
        if "uploads" in query:
            with self.place.lock:
                name = f"u{len(self.place.requests)}"
                self.place.uploads[name] = {}
            text = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
            return self._reply(200, f"<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>".encode())
        if "uploadId" in query:
            parts = self.place.uploads.pop(query["uploadId"], None)
            if parts is None:
                raise _Wrong(404, "NoSuchUpload")
            objects[key] = b"".join(parts[number] for number in sorted(parts))
            if self.place.faults.late:
                self.place.faults.late -= 1
                raise _Wrong(500, "InternalError")
            return self._reply(200, b"<CompleteMultipartUploadResult/>", {"ETag": f'"{_tag(objects[key])}"'})
        if "append" in query:
            objects[key] = objects.get(key, b"") + body
            return self._reply(200, b"", {"x-oss-next-append-position": str(len(objects[key])), "ETag": '"a"'})
        if "delete" in query:
            for name in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                objects.pop(unquote(name), None)
            return self._reply(200, b"<DeleteResult></DeleteResult>")
        raise _Wrong(400, "InvalidRequest")

    def _head_of(self, data: bytes) -> dict[str, str]:
        return {"ETag": f'"{_tag(data)}"', "Last-Modified": formatdate(usegmt=True), "Content-Type": "application/octet-stream"}

    def _reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        cut = status == 206 and len(body) > 10 and self.place.faults.cut > 0
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "x-oss-request-id": "r1", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut:
            self.place.faults.cut -= 1
            self.close_connection = True
            body = body[:10]
        self.wfile.write(body)


def _tag(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().upper()


@pytest.fixture
def oss(monkeypatch: pytest.MonkeyPatch) -> Iterator[Oss]:
    """A server with an empty bucket bkt, and the environment that leads to it."""
    monkeypatch.delenv("AKRUNNER_TABLES", raising=False)
    with Oss() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server
