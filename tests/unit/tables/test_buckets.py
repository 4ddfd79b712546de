"""A job's places in OSS: which directory stands for a URI, at which host its bucket is, and what goes back at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner import leftovers
from akrunner.errors import ConfigError, SourceError, WriteError
from akrunner.tables import buckets
from akrunner.tables.buckets import Buckets
from akrunner.tables.credentials import Credentials
from akrunner.tables.objects import Found

HOST = "oss-cn-shanghai.aliyuncs.com"


class Cloud:
    """Buckets in memory. Attributes: objects: by bucket; opened: (bucket, endpoint) of each; done: what was written; fails: what writing raises."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, bytes]] = {}
        self.opened: list[tuple[str, str]] = []
        self.done: list[str] = []
        self.fails: Exception | None = None

    def __call__(self, name: str, endpoint: str, credentials: Credentials, threads: int) -> Bucket:
        self.opened.append((name, endpoint))
        return Bucket(self, name, endpoint)


class Bucket:
    def __init__(self, cloud: Cloud, name: str, endpoint: str) -> None:
        self._cloud, self.endpoint = cloud, endpoint
        self._objects = cloud.objects.setdefault(name, {})

    def listed(self, prefix: str) -> Iterator[Found]:
        return iter([Found(key, len(self._objects[key]), "") for key in sorted(self._objects) if key.startswith(prefix)])

    def piece(self, found: Found, start: int, size: int) -> bytes:
        return self._objects[found.key][start : start + size]

    def check_writable(self, key: str) -> None:
        self._cloud.done.append(f"check {key}")
        if self._cloud.fails is not None:
            raise self._cloud.fails

    def put_bytes(self, key: str, data: bytes) -> None:
        if self._cloud.fails is not None:
            raise self._cloud.fails
        self._objects[key] = data
        self._cloud.done.append(f"put {key}")

    def put_file(self, key: str, path: str, size: int) -> None:
        self.put_bytes(key, Path(path).read_bytes())

    def remove(self, keys: list[str]) -> None:
        for key in keys:
            del self._objects[key]
            self._cloud.done.append(f"remove {key}")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, unguarded: Path) -> None:
    """No process is started, nothing is named in the environment, and there are no credentials."""
    for name in ("AKRUNNER_TABLES", "OSS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(buckets, "oss_credentials", lambda: None)


@pytest.fixture
def cloud(bare: None, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    made = Cloud()
    monkeypatch.setattr(buckets, "Bucket", made)
    monkeypatch.setattr(buckets, "oss_credentials", lambda: Credentials("id", "secret", "", "a file"))
    return made


def test_without_credentials_a_bucket_is_a_directory(bare: None, tmp_path: Path) -> None:
    with Buckets(root=str(tmp_path)) as places:
        assert not places.remote("oss://b/x") and places.planned("oss://b/x") == f"{tmp_path}/oss/b/x"
        assert places.file("oss://b/x?host=h") == places.folder("oss://b/x") == f"{tmp_path}/oss/b/x"
        assert places.folder("oss://b.h/x/") == f"{tmp_path}/oss/b/x/"
        assert not (tmp_path / "oss").exists()
        assert places.kept("oss://b/m/") == f"{tmp_path}/oss/b/m/" and (tmp_path / "oss" / "b" / "m").is_dir()
        with pytest.raises(ConfigError, match="must be oss://bucket/path"):
            places.file("oss:///x")
        (tmp_path / "oss" / "b" / "f").touch()
        with pytest.raises(ConfigError, match="oss://b/f/m: cannot make its directory"):
            places.kept("oss://b/f/m")


def test_a_directory_that_is_named_wins_over_credentials(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Buckets({"b": str(tmp_path)}, host=HOST) as places:
        assert places.file("oss://b/x") == f"{tmp_path}/x"
        assert places.remote("oss://c/x") and not places.remote("oss://B/x")
    assert not Buckets(root=str(tmp_path)).remote("oss://c/x")
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path))
    assert not Buckets().remote("oss://c/x") and cloud.opened == []


@pytest.mark.parametrize(
    "uri, host, given, endpoint",
    [
        (f"oss://b.{HOST}/x", None, "", f"https://{HOST}"),
        (f"oss://b.{HOST}/x?host=other.aliyuncs.com", "third", "", f"https://{HOST}"),
        ("oss://b/x?role_arn=r&host=oss-cn-a.aliyuncs.com", "third", "", "https://oss-cn-a.aliyuncs.com"),
        ("oss://b/x", "https://oss-cn-b.aliyuncs.com/", "", "https://oss-cn-b.aliyuncs.com"),
        ("oss://b/x", "oss-cn-c", "", "https://oss-cn-c.aliyuncs.com"),
        ("oss://b/x", None, "http://127.0.0.1:1", "http://127.0.0.1:1"),
        (f"oss://b.{HOST}/x", None, "http://127.0.0.1:1", f"https://{HOST}"),
    ],
)
def test_where_a_bucket_is(
    uri: str, host: str | None, given: str, endpoint: str, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "oss_credentials", lambda: Credentials("id", "secret", given, "a file"))
    assert f"from {endpoint}, key found in a file)" in Buckets(host=host).planned(uri)
    assert cloud.opened == []


def test_an_endpoint_in_the_environment_is_that_of_every_bucket(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSS_ENDPOINT", "http://mine")
    assert "from http://mine," in Buckets(host="oss-cn-c").planned(f"oss://b.{HOST}/x")


@pytest.mark.parametrize(
    "uri, why",
    [
        ("oss://b/x", "oss://b/x names no host: write oss://bucket.oss-cn-shanghai.aliyuncs.com/..., or set OSS_ENDPOINT"),
        ("oss://b.evil.com/x", "evil.com is no host of Alibaba's, and is shown no key"),
        ("oss://b/x?host=aliyuncs.com.evil.com", "is no host of Alibaba's"),
        ("oss://b/x?host=evilaliyuncs.com", "is no host of Alibaba's"),
    ],
)
def test_a_host_that_is_not_known_is_shown_no_key(uri: str, why: str, cloud: Cloud) -> None:
    with Buckets() as places:
        with pytest.raises(ConfigError) as told:
            places.file(uri)
    assert why in str(told.value) and cloud.opened == []


def test_an_address_inside_of_the_cloud_is_changed_where_it_is_not_reached(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []

    def connect(address: Any, timeout: float) -> Any:
        tried.append(address)
        raise TimeoutError

    monkeypatch.setattr(buckets.socket, "create_connection", connect)
    cloud.objects["b"] = {"x": b"1"}
    said: list[str] = []
    with Buckets(say=said.append) as places:
        for _ in range(2):
            places.file("oss://b.oss-cn-shanghai-internal.aliyuncs.com/x")
    assert cloud.opened == [("b", f"https://{HOST}")] and tried == [("oss-cn-shanghai-internal.aliyuncs.com", 443)]
    assert said == [
        f"oss-cn-shanghai-internal.aliyuncs.com is reached only inside of Alibaba's cloud; {HOST} is taken",
        f"buckets: OSS at https://{HOST} (key found in a file)",
    ]


def test_one_file_is_here_when_its_path_is(cloud: Cloud) -> None:
    cloud.objects["b"] = {"code/a.tar.gz": b"1", "code/a.tar.gz.old": b"2"}
    with Buckets(host=HOST) as places:
        path = Path(places.file("oss://b/code/a.tar.gz"))
        assert path.read_bytes() == b"1" and [one.name for one in path.parent.iterdir()] == ["a.tar.gz"]
        with pytest.raises(SourceError, match=f"oss://b/code: there is no such object at https://{HOST}"):
            places.file("oss://b/code")
    assert not path.exists() and cloud.done == []


def test_a_folder_is_here_and_what_the_script_adds_goes_there(cloud: Cloud) -> None:
    cloud.objects["b"] = {"data/x": b"1", "data/y/z": b"2", "data2": b"3"}
    said: list[str] = []
    with Buckets(host=HOST, say=said.append) as places:
        path = Path(places.folder("oss://b/data/"))
        assert places.folder("oss://b/data2").endswith("/data2")
        assert (path / "y" / "z").read_bytes() == b"2" and (path.parent / "data2").is_file()
        assert places.folder("oss://b/none/").endswith("/none/")
        (path / "new").write_text("n")
        (path / "x").unlink()
    assert "oss://b/none/ is empty" in said
    assert cloud.done == ["put data/new"] and cloud.objects["b"]["data/x"] == b"1", "what is only read is not removed"


@pytest.mark.parametrize("uri, key", [("oss://b/m", "m/"), ("oss://b/m/", "m/"), ("oss://b", ""), ("oss://b/", "")])
def test_a_kept_directory_is_as_the_script_leaves_it(uri: str, key: str, cloud: Cloud) -> None:
    cloud.objects["b"] = {f"{key}old": b"1"}
    with Buckets(host=HOST, every=1000) as places:
        path = Path(places.kept(uri))
        assert [one.name for one in path.iterdir()] == ["old"]
        (path / "new").write_text("n")
        (path / "old").unlink()
    assert cloud.done == [f"check {key}.akrunner", f"put {key}new", f"remove {key}old"]
    assert cloud.objects["b"] == {f"{key}new": b"n"}


@pytest.mark.parametrize("uri, end", [("oss://b", "/b"), ("oss://b/", "/b/"), ("oss://b/?host=" + HOST, "/b/")])
def test_the_path_of_a_whole_bucket_ends_as_its_uri_does(uri: str, end: str, cloud: Cloud) -> None:
    with Buckets(host=HOST, every=1000) as places:
        path = places.kept(uri)
        assert path.endswith(end) and not path.endswith("//") and places.folder(uri) == path


@pytest.mark.parametrize("calls, ends", [("ff", ""), ("kk", "k"), ("fk", "k"), ("kf", "k"), ("fkfk", "k")])
def test_a_directory_that_is_named_again_is_copied_and_goes_back_once(calls: str, ends: str, cloud: Cloud) -> None:
    cloud.objects["b"] = {"m/old": b"1", "m/same": b"2"}
    said: list[str] = []
    with Buckets(host=HOST, every=1000, say=said.append) as places:
        named = [("kept" if one == "k" else "folder", "oss://b/m" + "/" * (number % 2)) for number, one in enumerate(calls)]
        paths = [getattr(places, how)(uri) for how, uri in named]
        assert [one.endswith("/m/") for one in paths] == [uri.endswith("/") for _, uri in named]
        path = Path(paths[0])
        assert {Path(one) for one in paths} == {path}
        (path / "new").write_text("n")
        (path / "old").unlink()
    assert sum("copied to this machine" in one for one in said) == 1
    assert [one for one in cloud.done if not one.startswith("check")] == ["put m/new", *["remove m/old"] * bool(ends)]


def test_a_directory_that_cannot_be_written_is_known_before_the_job(cloud: Cloud) -> None:
    cloud.fails = ValueError("refused")
    with Buckets(host=HOST) as places:
        with pytest.raises(ConfigError, match=f"oss://b/m: cannot be written at https://{HOST}: .*refused"):
            places.kept("oss://b/m")
        cloud.fails = None


@pytest.mark.parametrize("job_fails", [False, True])
def test_what_cannot_be_uploaded_stays_here_and_is_said(job_fails: bool, cloud: Cloud, unguarded: Path) -> None:
    said: list[str] = []

    def job() -> None:
        with Buckets(host=HOST, say=said.append, every=1000) as places:
            (Path(places.kept("oss://b/m")) / "new").write_text("n")
            cloud.fails = ValueError("refused")
            if job_fails:
                raise KeyError("the job's own")

    with pytest.raises(KeyError if job_fails else WriteError) as told:
        job()
    words = said[-1] if job_fails else str(told.value)
    kept = words.partition("The files are kept in ")[2]
    assert words.startswith("oss://b/m: cannot upload what the job has written there: ")
    assert Path(kept, "b", "m", "new").read_text() == "n" and os.path.dirname(kept) == str(unguarded)
    assert leftovers.remove(kept)


def test_a_job_that_fails_brings_what_it_has_written(cloud: Cloud) -> None:
    with pytest.raises(KeyError), Buckets(host=HOST, every=1000) as places:
        (Path(places.kept("oss://b/m")) / "new").write_text("n")
        raise KeyError
    assert cloud.objects["b"] == {"m/new": b"n"}


def test_a_bucket_is_opened_once(cloud: Cloud) -> None:
    cloud.objects["b"] = {"x": b"1", "y": b"2"}
    with Buckets(host=HOST) as places:
        for uri in ("oss://b/x", "oss://b/y", f"oss://B.{HOST}/x", "oss://b/x?host=oss-cn-other.aliyuncs.com"):
            places.file(uri)
    assert cloud.opened == [("b", f"https://{HOST}"), ("b", "https://oss-cn-other.aliyuncs.com")]
