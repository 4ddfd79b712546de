"""Outputs on stores: uploads that count when they are completed, and files that are moved to their places."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from akrunner.errors import SinkError, WriteError
from akrunner.io import stores
from akrunner.io.stores import Moved, MovedFolder, Upload, UploadFolder, uploads


class Stream:
    """An upload of `Bucket`, as s3fs has them."""

    def __init__(self, bucket: Bucket, path: str, options: dict[str, Any]) -> None:
        self.bucket, self.path, self.options = bucket, path, options
        self.written = b""
        self.parts: list[dict[str, str]] = []
        self.blocksize = options["block_size"]
        self.closed = self.discarded = False
        self.buffer: Any = b"the last part"

    def write(self, data: bytes) -> None:
        self.written += data
        self.parts.append({"ETag": '"' + hashlib.md5(data, usedforsecurity=False).hexdigest() + '"'})

    def close(self) -> None:
        self.closed = True

    def tag(self) -> str:
        joined = b"".join(bytes.fromhex(part["ETag"].strip('"')) for part in self.parts)
        return f'"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(self.parts)}"'

    def commit(self) -> None:
        error = self.bucket.fails.get(self.path)
        if error is None or self.bucket.answers_are_lost:
            self.bucket.files[self.path] = self.written
            self.bucket.tags[self.path] = self.tag()
        if error is not None:
            raise error

    def discard(self) -> None:
        self.discarded = True
        raise OSError("it is gone already")


class Bucket:
    """A store in memory, in place of S3.

    Attributes:
        fails: the paths whose upload cannot be completed, and with what.
        answers_are_lost: whether such an upload is completed all the same.
    """

    protocol = ("s3", "s3a")

    def __init__(self, **files: bytes) -> None:
        self.files = {f"b/{name}": data for name, data in files.items()}
        self.tags: dict[str, str] = {}
        self.fails: dict[str, Exception] = {}
        self.answers_are_lost = False
        self.streams: list[Stream] = []

    def invalidate_cache(self) -> None:
        pass

    def find(self, path: str) -> list[str]:
        return sorted(name for name in self.files if name == path or name.startswith(path + "/"))

    def isfile(self, path: str) -> bool:
        return path in self.files

    def isdir(self, path: str) -> bool:
        return any(name.startswith(path.rstrip("/") + "/") for name in self.files)

    def exists(self, path: str) -> bool:
        return self.isfile(path) or self.isdir(path)

    def cat_file(self, path: str) -> bytes:
        return self.files[path]

    def pipe_file(self, path: str, value: bytes) -> None:
        self.files[path] = value

    def rm(self, paths: list[str]) -> None:
        for path in paths:
            del self.files[path]

    def info(self, path: str) -> dict[str, Any]:
        if path not in self.files:
            raise FileNotFoundError(path)
        return {"ETag": self.tags.get(path, '"other"')}

    def open(self, path: str, mode: str, **options: Any) -> Stream:
        assert mode == "wb" and options["autocommit"] is False
        self.streams.append(Stream(self, path, options))
        return self.streams[-1]


def upload(bucket: Bucket, overwrite: bool = False, target: str = "b/o.csv") -> Upload:
    return Upload(bucket, target, "s3://" + target, overwrite)


def folder(bucket: Bucket, overwrite: bool = False, target: str = "b/out") -> UploadFolder:
    return UploadFolder(bucket, target, "s3://" + target, overwrite)


def filled(place: Any, **files: bytes) -> None:
    place.make()
    for name, data in files.items():
        place.open(name).write(data)


def test_which_stores_have_uploads() -> None:
    class Google:
        protocol = "gs"

    assert uploads(Bucket()) and uploads(Google()) and not uploads(MemoryFileSystem())


# -- one upload


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_upload_is_there_when_it_is_completed(overwrite: bool) -> None:
    bucket = Bucket(**({"o.csv": b"old"} if overwrite else {}))
    before = dict(bucket.files)
    place = upload(bucket, overwrite)
    place.open().write(b"new")
    assert bucket.files == before and place.at is None
    place.commit()
    place.abort()
    assert bucket.files == {"b/o.csv": b"new"} and not bucket.streams[0].discarded


def test_an_upload_that_is_given_up_is_cancelled() -> None:
    bucket = Bucket()
    place = upload(bucket)
    place.abort()
    place.open().write(b"new")
    place.abort()
    (stream,) = bucket.streams
    # closed, so that nothing is sent when it is garbage-collected
    assert stream.discarded and stream.closed and not bucket.files


def test_a_file_that_came_meanwhile_is_left() -> None:
    bucket = Bucket()
    place = upload(bucket)
    place.open().write(b"new")
    bucket.files["b/o.csv"] = b"theirs"
    with pytest.raises(WriteError, match="s3://b/o.csv was created by somebody else"):
        place.commit()
    place.abort()
    assert bucket.files == {"b/o.csv": b"theirs"} and bucket.streams[0].discarded


def test_an_upload_whose_answer_was_lost_is_there() -> None:
    bucket = Bucket()
    bucket.fails["b/o.csv"], bucket.answers_are_lost = OSError("NoSuchUpload"), True
    place = upload(bucket)
    stream = place.open()
    stream.write(b"one")
    stream.write(b"two")
    place.commit()
    assert bucket.files == {"b/o.csv": b"onetwo"}


def test_an_upload_of_no_parts_that_failed_raises_what_the_store_said() -> None:
    bucket = Bucket()
    bucket.fails["b/o.csv"] = PermissionError("Access Denied")
    place = upload(bucket)
    place.open()
    with pytest.raises(PermissionError, match="Access Denied"):
        place.commit()
    place.abort()
    assert bucket.streams[0].discarded


@pytest.mark.parametrize("there", [None, b"of somebody else"])
def test_an_upload_that_failed_is_not_taken_for_another_file(there: bytes | None) -> None:
    bucket = Bucket(**({} if there is None else {"o.csv": there}))
    bucket.fails["b/o.csv"] = OSError("NoSuchUpload")
    place = upload(bucket, True)
    place.open().write(b"one")
    with pytest.raises(OSError):
        place.commit()
    assert bucket.files == ({} if there is None else {"b/o.csv": there})


@pytest.mark.parametrize(
    ("target", "overwrite", "words"),
    [
        ("b", False, "s3://b is a bucket; name a file in it"),
        ("b/", True, "is a bucket; name a file in it"),
        ("b/d", True, "s3://b/d is a directory"),
        ("b/o.csv", False, "s3://b/o.csv exists; give overwrite=True"),
    ],
)
def test_where_no_upload_can_be(target: str, overwrite: bool, words: str) -> None:
    bucket = Bucket(**{"o.csv": b"old", "d/x.csv": b"old"})
    with pytest.raises(SinkError, match=f"output: .*{words}"):
        upload(bucket, overwrite, target)
    assert not bucket.streams


def test_parts_grow_as_they_become_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_PARTS_OF_A_SIZE", 3)
    bucket = Bucket()
    stream = upload(bucket).open()
    sizes = []
    for _ in range(7):
        stream.write(b"x")
        sizes.append(bucket.streams[0].blocksize >> 20)
    assert sizes == [8, 8, 16, 16, 16, 32, 32]


def test_a_store_is_asked_before_the_job_starts_whether_an_upload_may_begin() -> None:
    class Server(Bucket):
        def __init__(self, *refused: str) -> None:
            super().__init__()
            self.refused = refused
            self.said: list[Any] = []

        def split_path(self, path: str) -> tuple[str, str, None]:
            first, _, rest = path.partition("/")
            return first, rest, None

        def call_s3(self, what: str, **given: str) -> dict[str, str]:
            self.said.append((what, given))
            if what in self.refused:
                raise PermissionError("Access Denied")
            return {"UploadId": "7"}

        def abort_mpu(self, *given: str) -> None:
            self.said.append(given)
            if "abort" in self.refused:
                raise PermissionError("Access Denied")

    for make, key in ((upload, "o.csv"), (folder, "out/part-0")):
        for server in (Server(), Server("abort")):
            make(server)
            assert server.said == [("create_multipart_upload", {"Bucket": "b", "Key": key}), ("b", key, "7")]
        with pytest.raises(PermissionError):
            make(Server("create_multipart_upload"))


# -- a directory of uploads


def test_a_directory_of_uploads_takes_the_place_of_the_old_files() -> None:
    bucket = Bucket(**{"out/part-0": b"old", "out/deep/part-9": b"old", "outer": b"theirs"})
    place = folder(bucket, True, "b/out/")
    assert place.empty()
    filled(place, **{"part-0": b"new", "part-1": b"more"})
    assert not place.empty() and bucket.files["b/out/part-0"] == b"old" and len(bucket.files) == 3
    place.commit()
    place.abort()
    assert bucket.files == {"b/out/part-0": b"new", "b/out/part-1": b"more", "b/outer": b"theirs"}


def test_a_directory_that_is_given_up_has_its_uploads_cancelled() -> None:
    bucket = Bucket(**{"out/part-0": b"old"})
    place = folder(bucket, True)
    filled(place, **{"part-0": b"new", "part-1": b"more"})
    place.abort()
    assert all(stream.discarded for stream in bucket.streams) and bucket.files == {"b/out/part-0": b"old"} and place.empty()


def test_files_that_came_meanwhile_are_left() -> None:
    bucket = Bucket()
    place = folder(bucket)
    filled(place, **{"part-0": b"new"})
    bucket.files["b/out/theirs"] = b"theirs"
    with pytest.raises(WriteError, match="s3://b/out was created by somebody else"):
        place.commit()
    assert bucket.files == {"b/out/theirs": b"theirs"}


def test_files_of_no_job_that_came_meanwhile_are_not_replaced(memory: MemoryFileSystem) -> None:
    bucket = Bucket(**{"out/part-0": b"old"})
    place = folder(bucket, True)
    filled(place, **{"part-0": b"new"})
    bucket.files["b/out/model.h5"] = b"theirs"
    with pytest.raises(WriteError, match="holds what no job has written .*It came while the job ran, and nothing was replaced"):
        place.commit()
    assert bucket.files == {"b/out/part-0": b"old", "b/out/model.h5": b"theirs"}
    memory.pipe_file("/a/out/part-0", b"old")
    moved = MovedFolder(memory, "/a/out", "memory://a/out", True)
    filled(moved, **{"part-0": b"new"})
    memory.pipe_file("/a/out/model.h5", b"theirs")
    with pytest.raises(WriteError, match="It came while the job ran"):
        moved.commit()
    moved.abort()
    assert content(memory) == {"/a/out/part-0": b"old", "/a/out/model.h5": b"theirs"}


def test_a_new_directory_is_complete_or_not_there() -> None:
    bucket = Bucket()
    bucket.fails["b/out/part-1"] = OSError("broke")
    place = folder(bucket)
    filled(place, **{"part-0": b"new", "part-1": b"more"})
    with pytest.raises(OSError):
        place.commit()
    assert bucket.files == {}


def test_a_directory_that_was_half_replaced_is_told() -> None:
    bucket = Bucket(**{"out/part-9": b"old", "out/part-1": b"old"})
    bucket.fails["b/out/part-1"] = OSError("broke in the middle")
    place = folder(bucket, True)
    filled(place, **{"part-0": b"new", "part-1": b"more"})
    with pytest.raises(WriteError, match="output: 1 of 2 files are in s3://b/out, the old ones too; .*broke in the middle"):
        place.commit()
    assert bucket.files["b/out/part-9"] == b"old"


def test_nothing_is_said_of_halves_where_the_first_upload_fails() -> None:
    bucket = Bucket(**{"out/part-0": b"old"})
    bucket.fails["b/out/part-0"] = OSError("broke")
    place = folder(bucket, True)
    filled(place, **{"part-0": b"new"})
    with pytest.raises(OSError, match="broke"):
        place.commit()
    assert bucket.files == {"b/out/part-0": b"old"}


@pytest.mark.parametrize(
    ("target", "overwrite", "words"),
    [
        ("b/", True, "s3://b/ is a bucket; name a directory in it"),
        ("b/o.csv", True, "s3://b/o.csv is a file; leave out the /"),
        ("b/d", False, "s3://b/d exists; give overwrite=True"),
        ("b/home", True, r"holds what no job has written \(thesis.tex\)"),
    ],
)
def test_where_no_directory_of_uploads_can_be(target: str, overwrite: bool, words: str) -> None:
    with pytest.raises(SinkError, match=f"output: .*{words}"):
        folder(Bucket(**{"o.csv": b"", "d/x.csv": b"", "home/thesis.tex": b""}), overwrite, target)


# -- stores that can only move


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryFileSystem:
    """A store that is empty."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    return fsspec.filesystem("memory", skip_instance_cache=True)


def content(fs: MemoryFileSystem) -> dict[str, bytes]:
    return {path: fs.cat_file(path) for path in fs.find("/")}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_moved_to_its_place_when_it_is_whole(memory: MemoryFileSystem, overwrite: bool) -> None:
    memory.makedirs("/a")
    if overwrite:
        memory.pipe_file("/a/o.csv", b"old")
    before = content(memory)
    place = Moved(memory, "/a/o.csv", "memory://a/o.csv", overwrite)
    assert content(memory) == before
    for _ in range(2):
        place.open().write(b"new")
        place.abort()
        assert content(memory) == before
    place.open().write(b"new")
    place.commit()
    place.abort()
    assert content(memory) == {"/a/o.csv": b"new"}


def test_a_file_of_somebody_else_is_not_moved_away(memory: MemoryFileSystem) -> None:
    place = Moved(memory, "/a/o.csv", "memory://a/o.csv", False)
    place.open().write(b"new")
    memory.pipe_file("/a/o.csv", b"theirs")
    with pytest.raises(WriteError, match="memory://a/o.csv was created by somebody else"):
        place.commit()
    place.abort()
    assert content(memory) == {"/a/o.csv": b"theirs"}
    with pytest.raises(SinkError, match="memory://a/o.csv exists"):
        Moved(memory, "/a/o.csv", "memory://a/o.csv", False)
    with pytest.raises(SinkError, match="memory://a is a directory"):
        Moved(memory, "/a", "memory://a", True)


def test_a_directory_is_moved_file_by_file_and_the_old_files_go(memory: MemoryFileSystem) -> None:
    for name in ("part-0", "part-9", "deep/part-7"):
        memory.pipe_file(f"/a/out/{name}", b"old")
    before = content(memory)
    place = MovedFolder(memory, "/a/out/", "memory://a/out/", True)
    filled(place, **{"part-0": b"given up"})
    place.abort()
    assert content(memory) == before and place.empty()
    filled(place, **{"part-0": b"new", "part-1": b"more"})
    place.commit()
    assert content(memory) == {"/a/out/part-0": b"new", "/a/out/part-1": b"more"}


def test_a_directory_that_came_meanwhile_is_left(memory: MemoryFileSystem) -> None:
    place = MovedFolder(memory, "/a/out", "memory://a/out", False)
    filled(place, **{"part-0": b"new"})
    memory.pipe_file("/a/out/theirs.csv", b"theirs")
    with pytest.raises(WriteError, match="memory://a/out was created by somebody else"):
        place.commit()
    place.abort()
    assert content(memory) == {"/a/out/theirs.csv": b"theirs"}
    with pytest.raises(SinkError, match="exists; give overwrite=True"):
        MovedFolder(memory, "/a/out", "memory://a/out", False)
    with pytest.raises(SinkError, match="is a file; leave out the /"):
        MovedFolder(memory, "/a/out/theirs.csv", "memory://a/out/theirs.csv", True)


@pytest.mark.parametrize("make", [Moved, MovedFolder])
def test_a_store_that_can_only_be_read(make: Any, memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(path: str, value: bytes) -> None:
        raise NotImplementedError

    monkeypatch.setattr(memory, "pipe_file", refuses)
    with pytest.raises(SinkError, match="output: this file system can only be read"):
        make(memory, "/a/o", "memory://a/o", False)


# -- files that are added


def test_uploads_are_added_and_the_manifest_comes_last() -> None:
    bucket = Bucket(**{"out/part-0": b"old", "out/_SUCCESS": b"before"})
    place = UploadFolder(bucket, "b/out", "s3://b/out", False, True)
    assert place.adds
    filled(place, **{"d=1/part-1": b"new", "part-2": b"more"})
    place.finish("part-2")
    assert len(bucket.files) == 2
    asked = []

    def seal(there: bytes | None, others: Sequence[str]) -> bytes:
        asked.append((there, sorted(others), sorted(bucket.files)))
        return b"after"

    place.commit(seal)
    new = {"b/out/d=1/part-1": b"new", "b/out/part-2": b"more"}
    assert bucket.files == {"b/out/part-0": b"old", "b/out/_SUCCESS": b"after", **new}
    assert asked == [(b"before", ["part-0"], ["b/out/_SUCCESS", "b/out/d=1/part-1", "b/out/part-0", "b/out/part-2"])]
    # nothing to add
    place = UploadFolder(bucket, "b/out", "s3://b/out", False, True)
    place.commit(seal)
    assert len(asked) == 1


def test_an_addition_that_fails_leaves_what_was_there() -> None:
    bucket = Bucket(**{"out/part-0": b"old"})
    bucket.fails["b/out/part-2"] = OSError("broke")
    place = UploadFolder(bucket, "b/out", "s3://b/out", False, True)
    filled(place, **{"part-1": b"new", "part-2": b"new"})
    with pytest.raises(OSError, match="broke"):
        place.commit()
    place.abort()
    assert bucket.files == {"b/out/part-0": b"old"}


def test_what_was_sent_is_no_longer_in_memory() -> None:
    bucket = Bucket()
    place = folder(bucket)
    filled(place, **{"part-0": b"new", "part-1": b""})
    place.finish("part-0")
    assert bucket.streams[0].closed and bucket.streams[0].buffer is None


def test_files_are_moved_beside_those_that_are_there(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/a/out/part-0", b"old")

    def adding() -> MovedFolder:
        place = MovedFolder(memory, "/a/out", "memory://a/out", False, True)
        filled(place, **{"d=1/part-1": b"new", "part-2": b"new"})
        place.finish("part-2")
        return place

    assert adding().adds
    place, real = adding(), memory.mv

    def breaks(one: str, other: str) -> None:
        if other.endswith("part-2"):
            raise OSError("broke")
        real(one, other)

    monkeypatch.setattr(memory, "mv", breaks)
    with pytest.raises(OSError, match="broke"):
        place.commit()
    place.abort()
    assert {path: data for path, data in content(memory).items() if "partial" not in path} == {"/a/out/part-0": b"old"}
    monkeypatch.setattr(memory, "mv", real)
    adding().commit(lambda there, others: b"sealed")
    new = {"/a/out/d=1/part-1": b"new", "/a/out/part-2": b"new"}
    found = {path: data for path, data in content(memory).items() if "partial" not in path}
    assert found == {"/a/out/part-0": b"old", "/a/out/_SUCCESS": b"sealed", **new}
