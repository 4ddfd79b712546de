"""A bucket of OSS: what is listed, read and written by it, what is tried again, and what is left where an upload fails."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.tables import objects
from akrunner.tables.credentials import Credentials
from akrunner.tables.objects import Bucket, Found

KEYS = Credentials("id", "secret", "", "a file")


class RequestError(Exception):
    """No connection."""


class InconsistentError(Exception):
    """A checksum is another."""


class NoSuchUpload(Exception):
    """It is over."""

    status = 404


class Refused(Exception):
    """What a server answers. Attributes: status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status


class Oss:
    """oss2, with one bucket in memory. Attributes: done: what was asked for; fails: what the next calls of a name raise."""

    def __init__(self) -> None:
        self.exceptions = SimpleNamespace(
            RequestError=RequestError, InconsistentError=InconsistentError, NoSuchUpload=NoSuchUpload
        )
        self.models = SimpleNamespace(PartInfo=lambda number, tag, size, part_crc: (number, tag, size, part_crc))
        self.made: dict[str, Any] = {}
        self.done: list[Any] = []
        self.fails: dict[str, list[Exception]] = {}
        self.objects: dict[str, bytes] = {}
        self.parts: dict[int, bytes] = {}

    def Session(self, pool_size: int) -> str:
        return f"session of {pool_size}"

    def make_auth(self, key: str, secret: str, auth_version: str) -> tuple[str, ...]:
        return key, secret, auth_version

    def StsAuth(self, key: str, secret: str, token: str, auth_version: str) -> tuple[str, ...]:
        return key, secret, token, auth_version

    def Bucket(self, auth: Any, endpoint: str, name: str, **more: Any) -> Oss:
        if name == "Bad":
            raise ValueError("The bucket_name is invalid")
        self.made = {"auth": auth, "endpoint": endpoint, "name": name, **more}
        return self

    def _did(self, name: str, *what: Any) -> None:
        self.done.append((name, *what))
        if self.fails.get(name):
            raise self.fails[name].pop(0)

    def list_objects_v2(self, prefix: str, continuation_token: str, max_keys: int) -> Any:
        self._did("list", prefix, continuation_token)
        keys = [key for key in sorted(self.objects) if key.startswith(prefix) and key > continuation_token]
        page = [SimpleNamespace(key=key, size=len(self.objects[key]), etag=f"tag of {key}") for key in keys[:2]]
        return SimpleNamespace(
            object_list=page, is_truncated=len(keys) > 2, next_continuation_token=page[-1].key if page else ""
        )

    def get_object(self, key: str, byte_range: tuple[int, int], headers: dict[str, str]) -> io.BytesIO:
        self._did("get", key, byte_range, headers["If-Match"])
        return io.BytesIO(self.objects[key][byte_range[0] : byte_range[1] + 1])

    def put_object(self, key: str, data: bytes) -> None:
        self._did("put", key)
        self.objects[key] = data

    def init_multipart_upload(self, key: str) -> Any:
        self._did("init", key)
        return SimpleNamespace(upload_id="U")

    def upload_part(self, key: str, upload: str, number: int, data: bytes) -> Any:
        self._did("part", number, len(data))
        self.parts[number] = data
        return SimpleNamespace(etag=f"e{number}", crc=number * 10)

    def complete_multipart_upload(self, key: str, upload: str, parts: list[Any]) -> None:
        self._did("complete", parts)
        self.objects[key] = b"".join(self.parts[number] for number, *_ in parts)

    def abort_multipart_upload(self, key: str, upload: str) -> None:
        self._did("abort", upload)

    def head_object(self, key: str) -> None:
        self._did("head", key)
        if key not in self.objects:
            raise Refused(404)

    def batch_delete_objects(self, keys: list[str]) -> None:
        self._did("delete", len(keys))


@pytest.fixture
def oss(monkeypatch: pytest.MonkeyPatch) -> Oss:
    made = Oss()
    monkeypatch.setitem(sys.modules, "oss2", made)
    monkeypatch.delenv("OSS_REGION", raising=False)
    return made


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that would be slept."""
    slept: list[float] = []
    monkeypatch.setattr(objects.time, "sleep", slept.append)
    return slept


@pytest.fixture
def bucket(oss: Oss, pauses: list[float]) -> Bucket:
    return Bucket("b", "https://oss-cn-shanghai.aliyuncs.com", KEYS, 8)


@pytest.mark.parametrize(
    "endpoint, variable, region",
    [
        ("https://oss-cn-shanghai.aliyuncs.com", None, "cn-shanghai"),
        ("oss-cn-hangzhou-internal.aliyuncs.com", None, "cn-hangzhou"),
        ("https://b.OSS-ap-southeast-1.aliyuncs.com/", None, "ap-southeast-1"),
        ("https://oss-accelerate.aliyuncs.com", None, None),
        ("http://127.0.0.1:1", None, None),
        ("http://127.0.0.1:1", "cn-x", "cn-x"),
        ("https://oss-cn-shanghai.aliyuncs.com", "cn-x", "cn-x"),
    ],
)
def test_the_newer_signature_is_used_where_the_region_is_known(
    endpoint: str, variable: str | None, region: str | None, oss: Oss, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv("OSS_REGION", variable)
    made = Bucket("b", endpoint, KEYS, 8)
    assert made.endpoint == endpoint and oss.made["region"] == region and oss.made["session"] == "session of 8"
    assert oss.made["auth"] == ("id", "secret", "v4" if region else "v1") and oss.done == []


def test_a_temporary_key_goes_with_its_token(oss: Oss) -> None:
    Bucket("b", "http://x", Credentials("id", "secret", "", "a file", "token"), 1)
    assert oss.made["auth"] == ("id", "secret", "token", "v1")


def test_what_is_wrong_with_the_bucket_or_the_package_is_said(oss: Oss, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="invalid bucket 'Bad' at http://x: .*bucket_name is invalid"):
        Bucket("Bad", "http://x", KEYS, 1)
    monkeypatch.setitem(sys.modules, "oss2", None)
    with pytest.raises(ConfigError, match="buckets in OSS need oss2: "):
        Bucket("b", "http://x", KEYS, 1)


def test_a_list_goes_on_over_its_pages(oss: Oss, bucket: Bucket) -> None:
    oss.objects = {f"d/{number}": b"x" * number for number in range(5)} | {"e": b""}
    assert list(bucket.listed("d/")) == [Found(f"d/{number}", number, f"tag of d/{number}") for number in range(5)]
    assert oss.done == [("list", "d/", ""), ("list", "d/", "d/1"), ("list", "d/", "d/3")]
    assert list(bucket.listed("nothing")) == []


def test_a_piece_is_of_the_object_as_it_was_found(oss: Oss, bucket: Bucket) -> None:
    oss.objects["a"] = b"0123456789"
    assert bucket.piece(Found("a", 10, "T"), 3, 4) == b"3456"
    assert oss.done == [("get", "a", (3, 6), '"T"')]


def test_an_answer_that_is_cut_short_is_asked_for_again(oss: Oss, bucket: Bucket, pauses: list[float]) -> None:
    oss.objects["a"] = b"012"
    with pytest.raises(EOFError, match="3 of 4 bytes came"):
        bucket.piece(Found("a", 4, "T"), 0, 4)
    assert len(oss.done) == 5 and pauses == [0.5, 1.0, 2.0, 4.0]


class Broken(Exception):
    """Of a library below oss2."""

    __module__ = "urllib3.exceptions"


@pytest.mark.parametrize(
    "error",
    [RequestError(), InconsistentError(), Refused(500), Refused(503), Refused(429), Refused(408), Broken(), ConnectionError()],
    ids=repr,
)
def test_what_may_help_is_tried_again(error: Exception, oss: Oss, bucket: Bucket, pauses: list[float]) -> None:
    oss.fails["put"] = [error, error]
    bucket.put_bytes("a", b"1")
    assert oss.objects == {"a": b"1"} and pauses == [0.5, 1.0]
    oss.fails["put"] = [error] * 5
    with pytest.raises(type(error)):
        bucket.put_bytes("b", b"1")
    assert len(oss.done) == 3 + 5


@pytest.mark.parametrize("error", [Refused(403), Refused(404), ValueError("of ours"), PermissionError()], ids=repr)
def test_what_would_be_refused_again_is_not_tried(error: Exception, oss: Oss, bucket: Bucket, pauses: list[float]) -> None:
    oss.fails["put"] = [error]
    with pytest.raises(type(error)):
        bucket.put_bytes("a", b"1")
    assert len(oss.done) == 1 and pauses == []


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", 4)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], str]:
    def write(data: bytes) -> str:
        (tmp_path / "file").write_bytes(data)
        return str(tmp_path / "file")

    return write


def test_a_small_file_goes_at_once_and_what_is_added_meanwhile_does_not(
    small: None, oss: Oss, bucket: Bucket, file: Callable[[bytes], str]
) -> None:
    bucket.put_file("a", file(b"012345"), 4)
    bucket.put_file("empty", file(b""), 0)
    assert oss.objects == {"a": b"0123", "empty": b""} and oss.done == [("put", "a"), ("put", "empty")]


def test_a_large_file_goes_in_pieces_that_count_together(
    small: None, oss: Oss, bucket: Bucket, file: Callable[[bytes], str]
) -> None:
    oss.fails["part"] = [RequestError()]
    bucket.put_file("a", file(b"0123456789+"), 10)
    assert oss.objects == {"a": b"0123456789"}
    assert [one for one in oss.done if one[0] == "part"] == [("part", 1, 4), ("part", 1, 4), ("part", 2, 4), ("part", 3, 2)]
    assert oss.done[-1] == ("complete", [(1, "e1", 4, 10), (2, "e2", 4, 20), (3, "e3", 2, 30)])


def test_pieces_are_larger_where_there_would_be_too_many(
    small: None, oss: Oss, bucket: Bucket, file: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_MOST_PARTS", 2)
    bucket.put_file("a", file(b"x" * 20), 20)
    assert [one[2] for one in oss.done if one[0] == "part"] == [11, 9]


def test_an_upload_that_fails_is_ended(small: None, oss: Oss, bucket: Bucket, file: Callable[[bytes], str]) -> None:
    oss.fails["part"] = [Refused(403)]
    oss.fails["abort"] = [Refused(403)]
    with pytest.raises(Refused):
        bucket.put_file("a", file(b"0123456789"), 10)
    assert oss.done[-1] == ("abort", "U") and oss.objects == {}


def test_a_file_that_has_become_shorter_is_none(small: None, oss: Oss, bucket: Bucket, file: Callable[[bytes], str]) -> None:
    for size in (4, 10):
        with pytest.raises(FileNotFoundError, match="shorter meanwhile"):
            bucket.put_file("a", file(b"012"), size)
    assert oss.done == [("init", "a"), ("abort", "U")] and oss.objects == {}
    with pytest.raises(FileNotFoundError):
        bucket.put_file("a", "/nowhere", 1)


def test_an_answer_that_was_lost_when_all_was_there(
    small: None, oss: Oss, bucket: Bucket, file: Callable[[bytes], str]
) -> None:
    oss.objects["a"] = b"as the first try has left it"
    oss.fails["complete"] = [RequestError(), NoSuchUpload()]
    bucket.put_file("a", file(b"0123456789"), 10)
    assert oss.done[-1] == ("head", "a")
    oss.objects.clear()
    oss.fails["complete"] = [NoSuchUpload()]
    with pytest.raises(Refused, match="404"):
        bucket.put_file("a", file(b"0123456789"), 10)


def test_objects_are_removed_a_thousand_at_a_time(oss: Oss, bucket: Bucket) -> None:
    bucket.remove([str(number) for number in range(2001)])
    bucket.remove([])
    assert oss.done == [("delete", 1000), ("delete", 1000), ("delete", 1)]


def test_whether_it_may_be_written_is_seen_without_an_object(oss: Oss, bucket: Bucket) -> None:
    oss.fails["abort"] = [Refused(403)]
    bucket.check_writable("a")
    assert oss.done == [("init", "a"), ("abort", "U")] and oss.objects == {}
    oss.fails["init"] = [Refused(403)]
    with pytest.raises(Refused):
        bucket.check_writable("a")
