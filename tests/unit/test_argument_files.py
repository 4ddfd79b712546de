"""Files of arguments: what is read, what is refused before anything waits for it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from akrunner import argument_files
from akrunner.argument_files import NotUtf8, decoded, read


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(b"1234567")
    assert (read(str(path)), read(str(path), 3)) == (b"1234567", b"123")
    assert read(os.devnull) == b""


@pytest.mark.parametrize("kind", ["a pipe", "a directory", "a device", "nothing"])
def test_what_is_no_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "there")
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a directory":
        os.mkdir(path)
    elif kind == "a device":
        path = "/dev/zero"
    said = {"nothing": "No such file", "a directory": "Is a directory"}.get(kind, f"it is {kind}, not a file")
    with pytest.raises(OSError, match=said):
        read(path)


@pytest.mark.parametrize(("most", "expected"), [(None, b"A=1\nB=2\n"), (5, b"A=1\nB")])
def test_the_pipe_of_a_shell_is_read_to_its_end(most: int | None, expected: bytes) -> None:
    source, sink = os.pipe()

    def end() -> None:
        os.write(sink, b"B=2\n")
        os.close(sink)

    late = threading.Timer(0.05, end)
    try:
        os.write(sink, b"A=1\n")
        late.start()
        assert read(f"/dev/fd/{source}", most) == expected
        # a flag of the pipe's would be its other readers', too
        assert os.get_blocking(source)
    finally:
        late.join()
        os.close(source)


def test_pipes_are_told_apart_where_there_is_no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(path: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "readlink", none)
    os.mkfifo(tmp_path / "there")
    with pytest.raises(OSError, match="it is a pipe, not a file"):
        read(str(tmp_path / "there"))
    source, sink = os.pipe()
    os.write(sink, b"A=1\n")
    os.close(sink)
    try:
        assert read(f"/dev/fd/{source}") == b"A=1\n"
    finally:
        os.close(source)


def test_a_pipe_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argument_files, "PIPE_SECONDS", 0.05)
    source, sink = os.pipe()
    try:
        os.write(sink, b"A=1\n")
        with pytest.raises(TimeoutError, match="a pipe whose writer has not ended within 0 s: write it to a file first"):
            read(f"/dev/fd/{source}")
    finally:
        os.close(source)
        os.close(sink)


def test_a_text_that_is_no_utf8_is_told_with_its_line() -> None:
    assert decoded("\ufeffgrün".encode()) == "grün"
    for data, words in (
        (b"a\nb\ngr\xfcn\n", r"^line 3 is not UTF-8 \(it has a byte 0xfc\); save it as UTF-8$"),
        ("\ufeffa\n".encode() + b"\xfc", "^line 2 is"),
        ("a = 1\n".encode("utf-16"), "^line 1 .* 0xff"),
    ):
        with pytest.raises(NotUtf8, match=words):
            decoded(data)
