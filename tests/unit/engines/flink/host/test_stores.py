"""How TaskManagers open a store that this process has open."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import fsspec
import pyarrow.fs
import pytest

from akrunner.engines.flink.host import stores
from akrunner.engines.flink.host.stores import Unshared, place_of
from akrunner.io.shared import DISKS, Store

KEYS = {"access_key": "AKID", "secret_key": "very-secret"}
SENT = {"endpoint_override": "10.0.0.9:9000", "scheme": "http"}


@dataclasses.dataclass
class Found:
    """What botocore finds. Without `refresh_needed`, it does not expire."""

    access_key: str = "AKID"
    secret_key: str = "very-secret"
    token: str | None = None


class Renewed(Found):
    def refresh_needed(self) -> bool:
        return False


class Client:
    """What s3fs asks the store with."""

    def __init__(self, endpoint: str, region: str, s3: Any) -> None:
        self.meta = SimpleNamespace(endpoint_url=endpoint, region_name=region, config=SimpleNamespace(s3=s3))


class S3:
    """s3fs's file system, as far as it says how it was opened."""

    protocol = ("s3", "s3a")

    def __init__(self, found: Any = None, endpoint: str = "http://10.0.0.9:9000", style: Any = None, **given: Any) -> None:
        async def credentials() -> Any:
            return found

        self.session = SimpleNamespace(get_credentials=credentials)
        self.s3 = Client(endpoint, "us-east-1", style)
        self.key = self.secret = self.token = None
        self.anon = self.requester_pays = self.version_aware = False
        self.s3_additional_kwargs: dict[str, Any] = {}
        self.client_kwargs: dict[str, Any] = {}
        vars(self).update(given)

    @property
    def loop(self) -> Any:
        # not before the test runs: its thread would stay behind in the process that has collected the tests
        return fsspec.asyn.get_loop()


def of(fs: Any, *paths: str, trusted: bool = True) -> Any:
    return place_of(fs, paths or ("bucket/a.parquet",), trusted)


def test_disks_are_disks() -> None:
    assert of(fsspec.filesystem("file"), "/a") is DISKS


@pytest.mark.parametrize(
    ("fs", "secrets"),
    [
        (S3(Found()), KEYS),
        (S3(Found(token="t")), {**KEYS, "session_token": "t"}),
        (S3(key="AKID", secret="very-secret"), KEYS),
        (S3(Renewed(), key="AKID", secret="very-secret"), KEYS),
        (S3(client_kwargs={"aws_access_key_id": "AKID", "aws_secret_access_key": "very-secret"}), KEYS),
        (S3(Renewed(token="t")), {}),
        (S3(None), {}),
    ],
)
def test_keys_are_sent_unless_they_expire(fs: Any, secrets: dict[str, str]) -> None:
    assert of(fs) == Store("s3", {"region": "us-east-1", **SENT}, secrets)
    # in clear text they do not travel
    assert of(fs, trusted=False) == Store("s3", {"region": "us-east-1", **SENT})


def test_nobodys_requests_need_no_keys() -> None:
    assert of(S3(Found(), anon=True)) == Store("s3", {"region": "us-east-1", **SENT, "anonymous": True})


def test_a_bucket_of_amazons_is_in_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyarrow.fs, "resolve_s3_region", lambda bucket: {"bucket": "eu-west-1"}[bucket])
    for endpoint in ("https://s3.amazonaws.com", "https://s3.us-east-1.amazonaws.com"):
        assert of(S3(endpoint=endpoint)) == Store("s3", {"region": "eu-west-1"})
    # if nobody says so, it is the client's
    assert of(S3(endpoint="https://s3.amazonaws.com"), "other/a") == Store("s3", {"region": "us-east-1"})
    # an address inside a network of one's own is one that was given
    inside = of(S3(endpoint="https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com"))
    assert inside.settings["endpoint_override"] == "bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com"


def test_the_style_of_addresses_is_the_clients() -> None:
    assert of(S3(style={"addressing_style": "virtual"})).settings["force_virtual_addressing"] is True
    assert "force_virtual_addressing" not in of(S3(style={"addressing_style": "path"})).settings


@pytest.mark.parametrize(
    ("fs", "paths", "words"),
    [
        (S3(), ("one/a", "two/a"), "several buckets"),
        (S3(requester_pays=True), (), "requester_pays"),
        (S3(version_aware=True), (), "version_aware"),
        (S3(s3_additional_kwargs={"SSECustomerKey": "k"}), (), "s3_additional_kwargs"),
        (S3(endpoint="http://minio/s3/"), (), "a path, which Arrow does not take"),
        (SimpleNamespace(protocol="gs", requester_pays=True), (), "requester_pays"),
        (SimpleNamespace(protocol="gs", requester_pays=False, version_aware=True), (), "version_aware"),
        (fsspec.filesystem("memory"), (), "they do not read memory://, but s3://, gs:// and hdfs://"),
    ],
)
def test_what_arrow_cannot_open_is_said(fs: Any, paths: tuple[str, ...], words: str) -> None:
    with pytest.raises(Unshared, match=words):
        of(fs, *paths)


def test_googles_storage_is_read_with_the_machines_own_credentials() -> None:
    google = SimpleNamespace(protocol=("gs", "gcs"), base="https://storage.googleapis.com/storage/v1/")
    google.requester_pays = google.version_aware = False
    google.credentials = SimpleNamespace(method="google_default")
    assert of(google) == Store("gs", {})
    google.base, google.credentials.method = "http://10.0.0.9:4443/storage/v1/", "anon"
    assert of(google) == Store("gs", {"endpoint_override": "10.0.0.9:4443", "scheme": "http", "anonymous": True})


def test_hdfs_has_a_name_node_and_a_user() -> None:
    hadoop = SimpleNamespace(protocol="hdfs", storage_options={"host": "name", "port": 8020, "user": "me", "kerb_ticket": "/t"})
    assert of(hadoop) == Store("hdfs", {"host": "name", "port": 8020, "user": "me"})
    hadoop.storage_options = {}
    assert of(hadoop) == Store("hdfs", {"host": "default", "port": 0})
    assert set(stores._MAKERS) == {"s3", "gs", "gcs", "hdfs"}


def test_what_hadoop_is_set_to_may_be_secret() -> None:
    conf = {"hadoop.rpc.protection": "privacy", "fs.s3a.secret.key": "very-secret"}
    hadoop = SimpleNamespace(protocol="hdfs", storage_options={"host": "name", "extra_conf": conf})
    found = of(hadoop)
    assert found == Store("hdfs", {"host": "name", "port": 0}, {"extra_conf": conf}) and "very-secret" not in repr(found)
    # without it, the machines would speak to the name node less safely
    with pytest.raises(
        Unshared, match=r"extra_conf=, which may have passwords, and with tls=False \(--flink-no-tls\) none is sent"
    ):
        place_of(hadoop, (), False)
