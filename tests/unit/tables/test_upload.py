"""New files of a directory go to a bucket in an order in which a checkpoint never names what is not there."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import WriteError
from akrunner.tables.upload import Upload


class Bucket:
    """Notes what is sent to it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.done: list[str] = []
        self.fails: Exception | None = None

    def put_bytes(self, key: str, data: bytes) -> None:
        if self.fails is not None:
            raise self.fails
        self.objects[key] = data
        self.done.append(f"+{key}")

    def put_file(self, key: str, path: str, size: int) -> None:
        self.put_bytes(key, Path(path).read_bytes()[:size])

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.done.append(f"-{key}")
            del self.objects[key]


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


def upload(bucket: Any, root: Path, known: Sequence[str] = (), deletes: bool = True, said: list[str] | None = None) -> Upload:
    return Upload(
        bucket, "models/m/", str(root), "oss://b/models/m/", known, deletes, (said if said is not None else []).append
    )


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_what_is_new_goes_up_once(bucket: Bucket, root: Path) -> None:
    sent = upload(bucket, root)
    write(root, a="1", deep__er__b="2")
    sent.look()
    sent.look()
    assert sorted(bucket.done) == ["+models/m/a", "+models/m/deep/er/b"]
    assert bucket.objects == {"models/m/a": b"1", "models/m/deep/er/b": b"2"}
    write(root, a="longer")
    os.utime(root / "deep" / "er" / "b", ns=(5, 5))
    sent.look()
    assert sorted(bucket.done[2:]) == ["+models/m/a", "+models/m/deep/er/b"] and bucket.objects["models/m/a"] == b"longer"


def test_what_was_brought_from_there_does_not_go_back(bucket: Bucket, root: Path) -> None:
    write(root, a="1", b="2")
    sent = upload(bucket, root, ["a", "never"])
    sent.look()
    assert bucket.done == ["+models/m/b"]


def test_a_checkpoint_is_written_behind_the_files_it_names(bucket: Bucket, root: Path) -> None:
    sent = upload(bucket, root)
    write(root, checkpoint="model-1", a_model="1", z__model="1", z__checkpoint="also")
    sent.look()
    assert sorted(bucket.done[:2]) == ["+models/m/a_model", "+models/m/z/model"]
    assert sorted(bucket.done[2:]) == ["+models/m/checkpoint", "+models/m/z/checkpoint"]


def test_what_a_checkpoint_said_is_read_before_the_files(bucket: Bucket, root: Path) -> None:
    """The script saves another one while files go up: what is uploaded is what named the files that are there."""
    sent = upload(bucket, root)
    write(root, checkpoint="model-1", model_1="1")
    real = bucket.put_file

    def slow(key: str, path: str, size: int) -> None:
        write(root, checkpoint="model-two", model_2="2")
        real(key, path, size)

    bucket.put_file = slow  # type: ignore[method-assign]
    sent.look()
    assert bucket.objects == {"models/m/checkpoint": b"model-1", "models/m/model_1": b"1"}
    sent.look()
    assert bucket.objects["models/m/checkpoint"] == b"model-two" and bucket.objects["models/m/model_2"] == b"2"


def test_a_large_file_called_checkpoint_is_one_like_others(bucket: Bucket, root: Path) -> None:
    with open(root / "checkpoint", "wb") as file:
        file.truncate((1 << 20) + 1)
    upload(bucket, root).look()
    assert len(bucket.objects["models/m/checkpoint"]) == (1 << 20) + 1


@pytest.mark.parametrize(
    "name",
    ["model.tempstate123", "events.tmp0a1f", "x.tmp", "y.part", "model-1_temp/part-0", "temp-1700000000/saved_model.pb"],
)
def test_what_a_program_is_about_to_rename_waits_for_the_end(name: str, bucket: Bucket, root: Path) -> None:
    sent = upload(bucket, root)
    write(root, a="1")
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("x")
    sent.look()
    assert bucket.done == ["+models/m/a"]
    sent.finish()
    assert bucket.done == ["+models/m/a", f"+models/m/{name}"]


@pytest.mark.parametrize("name", ["template", "x.partial", "my.tmpl", "temp/x", "attempt-1/x"])
def test_what_only_looks_so_goes_at_once(name: str, bucket: Bucket, root: Path) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("x")
    upload(bucket, root).look()
    assert bucket.done == [f"+models/m/{name}"]


def test_what_the_script_removes_goes_there_too_if_this_job_has_brought_it(bucket: Bucket, root: Path) -> None:
    bucket.objects = {"models/m/others": b"", "models/m/old": b""}
    write(root, old="1")
    sent = upload(bucket, root, ["old"])
    write(root, a="1", checkpoint="1")
    sent.look()
    for name in ("a", "old", "checkpoint"):
        (root / name).unlink()
    sent.look()
    sent.look()
    assert sorted(bucket.done[2:]) == ["-models/m/a", "-models/m/checkpoint", "-models/m/old"]
    assert bucket.objects == {"models/m/others": b""}
    write(root, a="again")
    sent.look()
    assert bucket.objects["models/m/a"] == b"again"


def test_nothing_is_removed_where_that_is_not_wanted(bucket: Bucket, root: Path) -> None:
    sent = upload(bucket, root, deletes=False)
    write(root, a="1")
    sent.look()
    (root / "a").unlink()
    sent.look()
    assert bucket.objects == {"models/m/a": b"1"}


def test_links_are_not_followed_and_pipes_not_read(bucket: Bucket, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    upload(bucket, root).finish()
    assert bucket.done == []


def test_a_file_that_is_gone_meanwhile_is_no_error(bucket: Bucket, root: Path) -> None:
    write(root, a="1")
    bucket.fails = FileNotFoundError()
    sent = upload(bucket, root)
    sent.look()
    bucket.fails = None
    sent.look()
    assert bucket.done == ["+models/m/a"]


def test_a_directory_that_is_gone_removes_nothing(bucket: Bucket, root: Path) -> None:
    sent = upload(bucket, root)
    write(root, a="1")
    sent.look()
    (root / "a").unlink()
    root.rmdir()
    sent.finish()
    assert bucket.done == ["+models/m/a"]


def test_what_cannot_be_uploaded_at_the_end_is_an_error(bucket: Bucket, root: Path) -> None:
    write(root, a="1")
    bucket.fails = ValueError("refused")
    with pytest.raises(WriteError, match=r"oss://b/models/m/: cannot upload what the job has written there: .*refused"):
        upload(bucket, root).finish()


def test_what_goes_wrong_meanwhile_is_said_once_and_tried_again(bucket: Bucket, root: Path) -> None:
    said: list[str] = []
    sent = upload(bucket, root, said=said)
    write(root, a="1")
    turns: list[Exception | None] = [ValueError("refused"), ValueError("refused"), None, ValueError("again")]

    def wait(every: float) -> bool:
        """In place of the seconds between looks: the next of these turns."""
        assert every == 20
        if not turns:
            return True
        bucket.fails = turns.pop(0)
        write(root, a="x" * len(turns))
        return False

    sent._over.wait = wait  # type: ignore[method-assign, assignment]
    sent._run(20)
    assert [one.partition("again: ")[2] for one in said] == ["ValueError: refused", "ValueError: again"]
    assert said[0].startswith("oss://b/models/m/: cannot upload what is new, and will try again: ")
    assert bucket.objects == {"models/m/a": b"x"}


def test_the_end_waits_for_the_look_that_is_under_way(bucket: Bucket, root: Path) -> None:
    sent = upload(bucket, root)
    sent.start(1000)
    write(root, a="1")
    sent.finish()
    assert bucket.done == ["+models/m/a"]
    assert not [thread for thread in threading.enumerate() if thread.name == "akrunner-upload"]
