"""Where files lie that several machines read: disks, and stores as pyarrow opens them, which pyarrow's own local and mock file
systems stand for here."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

from akrunner.io import shared
from akrunner.io.shared import DISKS, Seen, Store


def local(monkeypatch: pytest.MonkeyPatch, **told: Any) -> Store:
    """A store whose files are this machine's. Args: told: what it says of each of them."""

    class Opened:
        """A file that says more of itself."""

        def __init__(self, file: pa.NativeFile) -> None:
            self._file = file

        def __enter__(self) -> Any:
            return SimpleNamespace(size=self._file.size, metadata=lambda: told or None)

        def __exit__(self, *error: object) -> None:
            self._file.close()

    class Files(Store):
        @property
        def _filesystem(self) -> Any:  # type: ignore[override]
            return pyarrow.fs.LocalFileSystem()

        def open(self, path: str) -> Any:
            return Opened(super().open(path))

    return Files("s3", {})


def test_a_file_on_a_disk(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo")
    with DISKS.open(str(path)) as file, DISKS.mapped(str(path)) as mapped, DISKS.stream(str(path)) as stream:
        assert file.read() == mapped.read() == b"one\ntwo" and stream.readline() == b"one\n" and stream.tell() == 4
    seen = DISKS.seen(str(path))
    assert seen == Seen(7, "", path.stat().st_mtime_ns) and not DISKS.away and DISKS.shown("/a") == "/a"
    os.utime(path, ns=(1, 1))
    assert DISKS.seen(str(path)) != seen, "written in place, as long as before"
    with pytest.raises(OSError):
        DISKS.seen(str(tmp_path / "no"))


def test_text_of_a_store_is_read_by_lines_and_from_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\n" * 1000)
    monkeypatch.setattr(Store, "_filesystem", pyarrow.fs.LocalFileSystem())
    with Store("s3", {}).stream(str(path)) as stream:
        assert stream.readline() == b"one\n" and stream.tell() == 4
        stream.seek(4004)
        assert stream.read(4) == b"two\n" and len(stream.read(1 << 20)) == 8000 - 4008


@pytest.mark.parametrize(
    ("told", "tag"),
    [
        ({b"ETag": b'"abc-2"', b"Last-Modified": b"today"}, "abc-2"),
        ({"etag": "CJ", "generation": "7"}, "CJ"),
        ({"generation": "7"}, "7"),
        ({b"Last-Modified": b"today"}, "today"),
    ],
)
def test_a_store_says_which_content_it_is(told: Any, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"123")
    assert local(monkeypatch, **{_text(name): value for name, value in told.items()}).seen(str(path)) == Seen(3, tag)


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else name


def test_one_without_tags_has_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"123")
    assert local(monkeypatch).seen(str(path)) == Seen(3, str(path.stat().st_mtime_ns))


def test_how_each_store_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}

    def note(name: str) -> Any:
        return lambda **given: made.update({name: given})

    for name in ("S3FileSystem", "GcsFileSystem", "HadoopFileSystem"):
        monkeypatch.setattr(pyarrow.fs, name, note(name))
    settings = {"s3": {"region": "r"}, "gs": {"anonymous": True}, "hdfs": {"host": "n", "port": 8020}}
    assert set(settings) == {"s3", "gs", "hdfs"}
    for scheme, given in settings.items():
        secrets: dict[str, Any] = {"s3": {"secret_key": "k"}, "gs": {}, "hdfs": {"extra_conf": {"a": "b"}}}
        Store(scheme, given, secrets[scheme])._filesystem  # noqa: B018
    s3 = made["S3FileSystem"]
    assert (s3["region"], s3["secret_key"], s3["connect_timeout"]) == ("r", "k", 5.0)
    # without a limit, pyarrow would try for a quarter of an hour
    assert made["GcsFileSystem"] == {"anonymous": True, "retry_time_limit": datetime.timedelta(seconds=10)}
    assert made["HadoopFileSystem"] == {"host": "n", "port": 8020, "extra_conf": {"a": "b"}}
    assert shared.DISKS.scheme == ""


def test_secrets_are_in_no_text_about_a_store() -> None:
    store = Store("s3", {"region": "r"}, {"access_key": "AKID", "secret_key": "very-secret", "session_token": ""})
    assert "secret" not in repr(store).replace("secrets", "") and "AKID" not in repr(store)
    assert store.hidden("no very-secret for AKID") == "no *** for ***"
    conf = {"a": "very", "b": "very-secret", "c": "True", "d": "3", "e": "pw1"}
    hadoop = Store("hdfs", {}, {"extra_conf": conf})
    assert hadoop.hidden("True: 3 of very-secret, pw1") == "True: 3 of ***, ***" and "pw1" not in repr(hadoop)
    assert store.shown("bucket/a.csv") == "s3://bucket/a.csv" and Store("hdfs", {}).shown("/a") == "hdfs:///a"
