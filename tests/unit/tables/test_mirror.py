"""Objects of a bucket become files of a directory: those that are asked for, as far as they can be files, if there is room."""

from __future__ import annotations

import os
import shutil
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError, JobTimeoutError, SourceError
from akrunner.io.limits import limited
from akrunner.tables import mirror
from akrunner.tables.mirror import Mirror
from akrunner.tables.objects import Found


class Bucket:
    """Objects in memory. Attributes: asked: (key, first byte, bytes) of each piece."""

    endpoint = "https://oss"

    def __init__(self, **objects: bytes) -> None:
        self.objects = {key.replace("__", "/"): data for key, data in objects.items()}
        self.asked: list[tuple[str, int, int]] = []
        self.looked = 0
        self.fails: dict[str, Exception] = {}

    def listed(self, prefix: str) -> Iterator[Found]:
        for key in sorted(self.objects):
            if key.startswith(prefix):
                self.looked += 1
                yield Found(key, len(self.objects[key]), "tag")

    def piece(self, found: Found, start: int, size: int) -> bytes:
        if found.key in self.fails:
            raise self.fails[found.key]
        self.asked.append((found.key, start, size))
        return self.objects[found.key][start : start + size]


def copies(tmp_path: Path, bucket: Any, said: list[str] | None = None) -> Mirror:
    return Mirror(bucket, str(tmp_path / "b"), "oss://b/x", (said if said is not None else []).append)


def files(tmp_path: Path) -> dict[str, bytes]:
    root = tmp_path / "b"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_one_object_is_fetched_and_none_that_only_begins_so(tmp_path: Path) -> None:
    bucket = Bucket(a=b"1", ab=b"2", a__b=b"3")
    said: list[str] = []
    assert copies(tmp_path, bucket, said).fetch("a", whole=False) == ["a"]
    assert files(tmp_path) == {"a": b"1"} and said == []
    assert bucket.looked <= 2, "not all of a bucket is listed for one object"
    assert copies(tmp_path, bucket).fetch("nope", whole=False) == []


@pytest.mark.parametrize(
    "key, names",
    [
        ("a", ["a/b", "a/c/d"]),
        ("a/", ["a/b", "a/c/d"]),
        ("a/b", ["a/b"]),
        ("", ["a/b", "a/c/d", "ab"]),
        ("b", []),
    ],
)
def test_all_below_a_key(key: str, names: list[str], tmp_path: Path) -> None:
    bucket = Bucket(a__b=b"1", a__c__d=b"", ab=b"3")
    assert copies(tmp_path, bucket).fetch(key, whole=True) == names
    assert sorted(files(tmp_path)) == names


def test_a_file_comes_in_pieces_and_is_whole_when_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_PIECE", 4)
    bucket = Bucket(a=b"0123456789", b=b"")
    copies(tmp_path, bucket).fetch("", whole=True)
    assert bucket.asked == [("a", 0, 4), ("a", 4, 4), ("a", 8, 2)]
    assert files(tmp_path) == {"a": b"0123456789", "b": b""} and os.listdir(tmp_path / "b.coming") == []


def test_a_copy_takes_no_longer_than_the_job_that_wants_it(tmp_path: Path) -> None:
    began, over = threading.Event(), threading.Event()

    def piece(found: Found, start: int, size: int) -> bytes:
        began.set()
        over.wait(60)
        return b""

    bucket = Bucket(a=b"0123456789", b=b"1")
    bucket.piece = piece  # type: ignore[method-assign]
    try:
        with (
            limited(0.2, None),
            pytest.raises(JobTimeoutError, match="timeout=0.2 s and was stopped while it waited for the copy of oss://b/x"),
        ):
            threading.Timer(0.4, over.set).start()
            copies(tmp_path, bucket).fetch("", whole=True)
    finally:
        over.set()
    assert began.is_set()
    with limited(60, None):
        assert copies(tmp_path / "other", Bucket(a=b"1")).fetch("a", whole=False) == ["a"]


def test_a_file_that_is_there_is_replaced(tmp_path: Path) -> None:
    bucket = Bucket(a=b"1")
    copied = copies(tmp_path, bucket)
    copied.fetch("a", whole=False)
    bucket.objects["a"] = b"22"
    copied.fetch("a", whole=False)
    assert files(tmp_path) == {"a": b"22"} and copied.path("a") == str(tmp_path / "b" / "a")


def test_what_can_be_no_file_is_left_out_and_said(tmp_path: Path) -> None:
    bucket = Bucket(ok=b"1")
    for key in ("x//y", "../out", "a/./b", "nul\0", "long/" + "x" * 251, "marker/", "dir", "dir/in", "empty", "empty/in"):
        bucket.objects[key] = b"" if key in ("empty", "marker/") else b"2"
    said: list[str] = []
    copied = copies(tmp_path, bucket, said)
    assert copied.fetch("", whole=True) == ["dir/in", "empty/in", "ok"]
    assert said[0].startswith("oss://b/x: 6 objects cannot be files, and are left out: '../out', 'a/./b', ")
    assert sorted(files(tmp_path)) == ["dir/in", "empty/in", "ok"] and not (tmp_path / "out").exists()


def test_what_is_fetched_is_said_in_a_line(tmp_path: Path) -> None:
    said: list[str] = []
    copies(tmp_path, Bucket(a=b"x" * 2_000_000), said).fetch("", whole=True)
    copies(tmp_path, Bucket(a=b"1", b=b"2"), said).fetch("", whole=True)
    copies(tmp_path, Bucket(), said).fetch("", whole=True)
    assert [one.partition(", copied")[0].partition(",")[0] for one in said] == ["oss://b/x: 1 file", "oss://b/x: 2 files"]
    assert all(one.endswith("copied to this machine") for one in said)


def test_how_far_a_copy_is_is_said_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    now = [0.0]
    monkeypatch.setattr(mirror.time, "monotonic", lambda: now[0])
    progress = mirror._Progress("oss://b", 1200, 10_000_000, said.append)
    for seconds, size in ((4.0, 1_000_000), (5.5, 1_000_000), (6.0, 1_000_000), (11.0, 1_000_000)):
        now[0] = seconds
        progress.came(size)
        progress.done()
    assert (
        len(said) == 2
        and said[0].startswith("oss://b: 1 of 1,200 files, ")
        and said[1].startswith("oss://b: 3 of 1,200 files, ")
    )


def test_a_copy_that_has_no_room_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 0, 10))
    bucket = Bucket(a=b"x" * 11)
    with pytest.raises(
        ConfigError, match=r"oss://b/x has .*, and .* are free for a copy in .*set TMPDIR.*--oss-root BUCKET=DIR"
    ):
        copies(tmp_path, bucket).fetch("", whole=True)
    assert bucket.asked == []
    bucket.objects["a"] = b"x" * 10
    assert copies(tmp_path, bucket).fetch("", whole=True) == ["a"]


def test_a_copy_that_is_larger_than_is_allowed_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_MAX_DOWNLOAD", "1MB")
    bucket = Bucket(a=b"x" * 2_000_000)
    with pytest.raises(ConfigError, match="AKRUNNER_MAX_DOWNLOAD"):
        copies(tmp_path, bucket).fetch("", whole=True)
    assert bucket.asked == [] and files(tmp_path) == {}


def test_one_that_cannot_be_read_ends_the_copy(tmp_path: Path) -> None:
    bucket = Bucket(a=b"1", b=b"2")
    bucket.fails["b"] = ValueError("refused")
    with pytest.raises(SourceError, match="oss://b/x: cannot read it at https://oss: .*refused"):
        copies(tmp_path, bucket).fetch("", whole=True)
    assert "b" not in files(tmp_path)
