"""Directories and files that only the user may look into: who owns them, and where they are. (Their modes: `test_leftovers`.)"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from akrunner.leftovers import private
from akrunner.leftovers.private import private_dir, private_file, state_dir


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_directory_that_is_another_users_is_refused_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr(private.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="it is another user's") as told:
        private_dir(str(tmp_path))
    assert told.value.filename == str(tmp_path) and mode(tmp_path) == 0o755


def test_a_file_where_a_directory_is_to_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        private_dir(str(tmp_path / "file"))
    with pytest.raises(NotADirectoryError):
        private_dir(str(tmp_path / "file" / "in"))


def test_a_file_that_is_there_becomes_private_and_keeps_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one\n")
    path.chmod(0o644)
    with private_file(str(path), "a", encoding="utf-8") as file:
        file.write("é\n")
    assert mode(path) == 0o600 and path.read_text(encoding="utf-8") == "one\né\n"
    with pytest.raises(FileExistsError):
        private_file(str(path), "x")


def test_the_state_directory_is_in_the_home_where_nothing_else_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    # a relative path is none, as the specification of these variables says
    for value in (None, "", "state"):
        monkeypatch.delenv("XDG_STATE_HOME", raising=False) if value is None else monkeypatch.setenv("XDG_STATE_HOME", value)
        assert state_dir("x") == str(tmp_path / ".local" / "state" / "akrunner" / "x")
    assert mode(tmp_path / ".local" / "state" / "akrunner") == mode(tmp_path / ".local" / "state" / "akrunner" / "x") == 0o700


def test_a_state_directory_is_made_only_where_that_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_dir("x", make=False) is None and not list(tmp_path.iterdir())
    made = state_dir("x")
    assert made == state_dir("x", make=False) == str(tmp_path / "akrunner" / "x")


def test_no_state_directory_where_it_is_another_users_or_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_dir("x") is not None
    with monkeypatch.context() as patched:
        patched.setattr(private.os, "access", lambda path, mode: mode != os.W_OK)
        assert state_dir("x") is None
        assert state_dir("x", make=False) == str(tmp_path / "akrunner" / "x")
    monkeypatch.setattr(private.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert state_dir("x") is None and state_dir("x", make=False) is None


def test_what_is_on_a_disk_that_cannot_be_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = state_dir("x")
    assert made is not None
    # as it was copied there
    os.chmod(made, 0o755)

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(private.os, "chmod", read_only)
    assert state_dir("x", make=False) == made and state_dir("x") is None
    monkeypatch.setattr(private.os, "access", lambda path, mode: not mode & os.R_OK)
    assert state_dir("x", make=False) is None
