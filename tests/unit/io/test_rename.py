"""Renames that replace nothing, and renames that swap, on a kernel that has them and on one that has not."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from akrunner.io import rename
from akrunner.io.rename import move_new, swap, sync


@pytest.fixture(params=["there", "not there"])
def call(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the kernel has the system call."""
    if request.param == "not there":
        monkeypatch.setattr(rename, "_renameat2", lambda source, target, flags: False)
    return str(request.param)


@pytest.mark.usefixtures("call")
def test_a_new_name_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    move_new(str(tmp_path / "a"), str(tmp_path / "é"))
    assert os.listdir(tmp_path) == ["é"] and (tmp_path / "é").read_text() == "a"


@pytest.mark.usefixtures("call")
@pytest.mark.parametrize("kind", ["file", "directory", "link that leads nowhere"])
def test_what_is_there_is_not_replaced(tmp_path: Path, kind: str) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("a")
    if kind == "file":
        target.write_text("b")
    elif kind == "directory":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError) as caught:
        move_new(str(source), str(target))
    assert caught.value.errno == errno.EEXIST and caught.value.filename == str(target)
    assert source.read_text() == "a" and os.path.lexists(target)


@pytest.mark.usefixtures("call")
def test_what_is_not_there_cannot_be_moved(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        move_new(str(tmp_path / "a"), str(tmp_path / "b"))


def test_two_names_are_swapped_or_nothing_is_done(tmp_path: Path, call: str) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    done = swap(str(tmp_path / "a"), str(tmp_path / "b"))
    # a file system without it says so
    assert done is False if call == "not there" else done in (True, False)
    assert [(tmp_path / name / "f").read_text() for name in ("a", "b")] == (["b", "a"] if done else ["a", "b"])


@pytest.mark.parametrize(("number", "told"), [(errno.EINVAL, False), (errno.ENOSYS, False), (errno.EPERM, False)])
def test_a_file_system_that_cannot_do_it_is_no_error(
    number: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kernel:
        def __init__(self, *given: object, **options: object) -> None:
            pass

        def renameat2(self, *given: object) -> int:
            return -1

    monkeypatch.setattr(rename.ctypes, "CDLL", Kernel)
    monkeypatch.setattr(rename.ctypes, "get_errno", lambda: number)
    (tmp_path / "a").write_text("a")
    assert swap(str(tmp_path / "a"), str(tmp_path / "b")) is told
    move_new(str(tmp_path / "a"), str(tmp_path / "b"))
    assert os.listdir(tmp_path) == ["b"]


def test_a_library_without_the_call_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rename.ctypes, "CDLL", lambda *given, **options: object())
    (tmp_path / "a").write_text("a")
    assert not swap(str(tmp_path / "a"), str(tmp_path / "b"))
    move_new(str(tmp_path / "a"), str(tmp_path / "b"))
    assert os.listdir(tmp_path) == ["b"]


def test_other_errors_of_the_kernel_are_raised(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    with pytest.raises(FileNotFoundError) as caught:
        swap(str(tmp_path / "a"), str(tmp_path / "b"))
    assert caught.value.filename == str(tmp_path / "b") and (tmp_path / "a").read_text() == "a"


def test_what_is_synced_is_in_the_file(tmp_path: Path) -> None:
    with open(tmp_path / "a", "wb") as stream:
        stream.write(b"held back")
        assert (tmp_path / "a").read_bytes() == b""
        sync(stream)
        assert (tmp_path / "a").read_bytes() == b"held back"
    with pytest.raises(io.UnsupportedOperation):
        sync(io.BytesIO())
