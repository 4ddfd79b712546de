"""Whether a machine sees the files that it would read."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.taskmanager import sight
from akrunner.engines.flink.taskmanager.sight import place_from, unseen, word_of
from akrunner.io.shared import DISKS, Seen, Store


def broken(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


def test_files_are_seen_if_all_have_the_same_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "b").write_bytes(b"")

    def why(**sizes: int) -> str:
        return unseen(DISKS, [pb.File(path=str(tmp_path / name), bytes=size) for name, size in sizes.items()], broken)

    assert not why() and not why(a=3) and not why(a=3, b=0)
    assert why(a=2) == f"{tmp_path}/a has 3 bytes there, and 2 here"
    assert why(a=3, b=1) == f"{tmp_path}/b has 0 bytes there, and 1 here"
    assert why(a=3, c=0) == f"{tmp_path}/c is not there"
    assert "cannot read" in unseen(DISKS, [pb.File(path=str(tmp_path / "a" / "b"), bytes=0)], broken)


def test_a_place_travels_as_a_message() -> None:
    store = Store("s3", {"region": "r", "anonymous": True}, {"secret_key": "k"})
    for place in (DISKS, store):
        assert place_from(pb.Store.FromString(word_of(place).SerializeToString())) == place
    assert place_from(pb.Ask().store) is DISKS


class Far:
    """A store that is looked at. Args: said: what it answers, or raises."""

    away, scheme = True, "s3"

    def __init__(self, said: Any) -> None:
        self._said = said
        self.read: list[int] = []

    def seen(self, path: str) -> Seen:
        if callable(self._said):
            self._said()
        if isinstance(self._said, Exception):
            raise self._said
        return Seen(self._said, "tag")

    def open(self, path: str) -> Any:
        import contextlib

        return contextlib.nullcontext(SimpleNamespace(read=self.read.append))

    def shown(self, path: str) -> str:
        return f"s3://{path}"

    def hidden(self, text: str) -> str:
        return text.replace("very-secret", "***")


FILES = [pb.File(path="b/a", bytes=3)]


def test_a_file_of_a_store_is_read_a_little() -> None:
    far: Any = Far(3)
    assert unseen(far, FILES, broken) == "" and far.read == [1]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (4, "s3://b/a has 4 bytes there, and 3 here"),
        (FileNotFoundError("b/a"), "s3://b/a is not there"),
        (OSError("ACCESS_DENIED for very-secret"), "cannot read s3://b/a: ACCESS_DENIED for ***"),
        (TypeError("unexpected argument"), "cannot read s3://b/a: unexpected argument"),
        (AttributeError("no S3FileSystem"), "cannot read s3://b/a: no S3FileSystem"),
    ],
)
def test_why_a_store_is_not_read_is_said_without_its_secrets(said: Any, words: str) -> None:
    far: Any = Far(said)
    assert unseen(far, FILES, broken).replace("TypeError: ", "").replace("AttributeError: ", "") == words


def test_a_store_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "_SECONDS", 0.1)
    answers = threading.Event()
    far: Any = Far(lambda: answers.wait(60))
    assert unseen(far, FILES, lambda name, error: None) == "s3:// has not answered within 0.1 s"
    answers.set()
