"""Which modules are the user's own, and which belong to installed packages."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

import akrunner.launch.functions.users
from akrunner.launch.functions.users import is_users


def module(name: str, file: object) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__file__ = file  # type: ignore[assignment]
    return made


def at(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return str(path)


def test_a_file_beside_the_program_is_the_users(tmp_path: Path) -> None:
    assert is_users(module("train", at(tmp_path / "train.py")))
    assert is_users(module("pkg.part", at(tmp_path / "pkg" / "part.py")))


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_an_installed_package_is_not_the_users(tmp_path: Path, folder: str) -> None:
    assert not is_users(module("requests", at(tmp_path / "lib" / folder / "requests" / "__init__.py")))
    assert is_users(module("mine", at(tmp_path / f"my-{folder}" / "mine.py"))), "only like one in its name"


def test_the_standard_library_and_akrunner_are_not_the_users(tmp_path: Path) -> None:
    assert not is_users(json) and not is_users(akrunner.launch.functions.users)
    # whatever file such a module says it is from
    assert not is_users(module("json.more", at(tmp_path / "json.py")))
    assert not is_users(module("akrunner.more", at(tmp_path / "more.py")))


def test_a_module_without_a_source_file_is_not_the_users(tmp_path: Path) -> None:
    assert not is_users(module("gone", str(tmp_path / "gone.py")))
    assert not is_users(module("compiled", at(tmp_path / "compiled.so")))
    assert not is_users(module("namespace", None)) and not is_users(types.ModuleType("made"))
