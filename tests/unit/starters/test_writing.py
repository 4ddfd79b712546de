"""All files of a project are written, or none; and no file of anybody else is touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from akrunner.errors import ConfigError, WriteError
from akrunner.starters import writing
from tests.guards import one_guard

__all__ = ["one_guard"]

FILES = {"a.py": b"a\n", "b.toml": b"", "data/one/1.csv": b"1\n", "data/two.csv": b"2\n"}


def found(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_directory_is_made_with_those_above_it(tmp_path: Path) -> None:
    writing.write(str(tmp_path / "x" / "y"), FILES)
    assert found(tmp_path / "x" / "y") == FILES
    assert everything(tmp_path / "x") == sorted(["y", "y/data", "y/data/one", *(f"y/{name}" for name in FILES)])


def test_a_relative_one_and_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writing.write("x/", FILES)
    writing.write(".", FILES)
    assert found(tmp_path) == {**FILES, **{f"x/{name}": content for name, content in FILES.items()}}


def test_files_that_are_there_are_named_and_stay(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a.py").write_text("mine")
    with pytest.raises(
        ConfigError, match=r"^a\.py is in .* already: give another directory, or --force, which replaces it and"
    ):
        writing.write(str(tmp_path), FILES)
    assert found(tmp_path) == {"mine": b"mine", "a.py": b"mine"}
    writing.write(str(tmp_path), FILES, force=True)
    assert found(tmp_path) == {"mine": b"mine", **FILES}


def test_an_error_names_five_of_many(tmp_path: Path) -> None:
    files = {f"{number}.png": b"." for number in range(9)}
    writing.write(str(tmp_path), files)
    with pytest.raises(ConfigError, match=r"^0\.png, 1\.png, 2\.png, 3\.png, 4\.png and 4 more files are in "):
        writing.write(str(tmp_path), files)
    with pytest.raises(ConfigError, match=r"^a\.py and b\.toml are in .* already"):
        (tmp_path / "two").mkdir()
        writing.write(str(tmp_path / "two"), {"a.py": b"", "b.toml": b""})
        writing.write(str(tmp_path / "two"), FILES)


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_file_is_in_the_way(force: bool, tmp_path: Path) -> None:
    (tmp_path / "a.py").mkdir()
    with pytest.raises(ConfigError, match=r"^a\.py is in the way of the project's files"):
        writing.write(str(tmp_path), FILES, force)
    (tmp_path / "a.py").rmdir()
    (tmp_path / "data").write_text("mine")
    with pytest.raises(ConfigError, match=r"data is in the way of the project's files"):
        writing.write(str(tmp_path), FILES, force)
    with pytest.raises(ConfigError, match=r"data is no directory: give another"):
        writing.write(str(tmp_path / "data" / "deeper"), FILES, force)
    assert found(tmp_path) == {"data": b"mine"}


def test_force_replaces_a_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.py").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "p" / "b.toml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"a\.py and b\.toml are"):
        writing.write(str(tmp_path / "p"), FILES)
    writing.write(str(tmp_path / "p"), FILES, force=True)
    assert found(tmp_path / "p") == FILES and (tmp_path / "elsewhere").read_text() == "mine"


def failing(call: Callable[..., None], at: int, error: BaseException) -> Callable[..., None]:
    """A function that calls another one, and raises at its so-manieth call: before it, or (negative) behind it."""
    calls = [0]

    def called(*arguments: object, **more: object) -> None:
        calls[0] += 1
        if calls[0] == at:
            raise error
        call(*arguments, **more)
        if calls[0] == -at:
            raise error

    return called


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [1, 2, 3, 4, -1, -2, -3, -4])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_failure_leaves_the_directory_as_it_was(
    is_there: bool, at: int, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "p"
    if is_there:
        writing.write(str(project), {name: b"old" for name in FILES} | {"mine": b"mine"})
        (project / "data" / "two.csv").unlink()
    before = everything(tmp_path), found(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing(os.replace, at, error))
        with pytest.raises(WriteError if isinstance(error, OSError) else KeyboardInterrupt):
            writing.write(str(project), FILES, force=True)
    assert (everything(tmp_path), found(tmp_path)) == before


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing.write(str(tmp_path), {"a.py": b"old"})
    monkeypatch.setattr(os, "link", failing(os.link, 1, NotImplementedError()))
    monkeypatch.setattr(os, "replace", failing(os.replace, -1, OSError(5, "Input/output error")))
    with pytest.raises(WriteError, match="nothing was written: .*input/output error"):
        writing.write(str(tmp_path), FILES, force=True)
    assert found(tmp_path) == {"a.py": b"old"}
