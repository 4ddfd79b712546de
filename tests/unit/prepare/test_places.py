"""Directories that a job writes to: which are taken, which are made, and which errors name the parameter."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.prepare.places import check_directories, directory, made

NAMES = ("work_dir", "checkpoint_dir", "tensorboard")


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_that_is_there_or_can_be_made_is_taken_and_not_made(tmp_path: Path, name: str) -> None:
    for place in (tmp_path, tmp_path / "new", tmp_path / "a" / "b"):
        check_directories({name: str(place)})
    check_directories({name: None})
    check_directories({})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_no_directory_and_has_none_below_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(ConfigError, match=f"^{name}: {tmp_path}/f is a file; name a directory$"):
        check_directories({name: str(tmp_path / "f")})
    with pytest.raises(ConfigError, match=f"^{name}: cannot make {tmp_path}/f/a/b: {tmp_path}/f is a file$"):
        check_directories({name: str(tmp_path / "f" / "a" / "b")})


@pytest.mark.parametrize("name", NAMES)
def test_the_systems_own_directories_keep_no_files(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: /proc/x is the system's own"):
        check_directories({name: "/proc/x"})


def test_where_nothing_may_be_written_the_directory_that_refuses_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the root user may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ConfigError, match=f"^checkpoint_dir: nothing may be written in {tmp_path}$"):
        check_directories({"checkpoint_dir": str(tmp_path / "a" / "b")})


def test_only_a_work_directory_must_be_empty(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    check_directories({"checkpoint_dir": str(tmp_path), "tensorboard": str(tmp_path)})
    with pytest.raises(ConfigError, match=f"^work_dir: {tmp_path} is not empty; name a new directory$"):
        check_directories({"work_dir": str(tmp_path)})
    check_directories({"work_dir": str(tmp_path / "new")})


def test_a_directory_for_checkpoints_is_made_with_those_above_it(tmp_path: Path) -> None:
    place = str(tmp_path / "a" / "b")
    assert made(place) == place == made(place) and os.path.isdir(place)
    assert made(None) is None
    (tmp_path / "f").write_text("")
    with pytest.raises(ConfigError, match="^checkpoint_dir: cannot make .*f/x"):
        made(str(tmp_path / "f" / "x"))


def test_a_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert directory("work_dir", "a") == str(tmp_path / "a") == directory("work_dir", Path("a"))
    assert directory("work_dir", "~/w") == "/home/me/w" and directory("work_dir", f"file://{tmp_path}") == str(tmp_path)
    assert directory("work_dir", None) is None


@pytest.mark.parametrize(
    "name, instead",
    [("checkpoint_dir", "every task reaches"), ("tensorboard", "copy it afterwards"), ("work_dir", "copy what is kept")],
)
def test_a_url_is_refused_with_what_works_in_its_place(name: str, instead: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: oss://bucket/x is a URL, and {name} must be on this machine.*{instead}"):
        directory(name, "oss://bucket/x")
