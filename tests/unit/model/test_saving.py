"""Saving a SavedModel: what a zip of it holds, where it may go, and what is there if the last step fails. `tests/unit/test_model.py` saves whole models."""

from __future__ import annotations

import io
import os
import shutil
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from akrunner.errors import ModelError, WriteError
from akrunner.model import saving
from akrunner.model.saving import check_target, save, zipped


class Leftovers:
    """Attributes: held: what would be removed if this process died."""

    def __init__(self) -> None:
        self.held: list[str] = []

    def register(self, path: str) -> None:
        self.held.append(path)

    def drop(self, path: str) -> None:
        self.held.remove(path)
        shutil.rmtree(path) if os.path.isdir(path) else Path(path).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def leftovers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Leftovers]:
    """No guard is started; whatever is held is let go."""
    made = Leftovers()
    monkeypatch.setattr(saving, "leftovers", made)
    yield made
    assert made.held == []


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "model", "new")


def saved(path: Path, graph: str) -> Path:
    (path / "variables").mkdir(parents=True)
    (path / "assets").mkdir()
    (path / "saved_model.pb").write_text(graph)
    (path / "variables" / "variables.index").write_text("ä" * 10)
    return path


def content(path: Path) -> dict[str, str | None]:
    return {p.relative_to(path).as_posix(): p.read_text() if p.is_file() else None for p in path.rglob("*")}


def test_a_zip_has_the_models_name_above_its_files_and_its_empty_directories(model: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(zipped(str(model) + "/"))) as archive:
        assert archive.namelist() == [
            "model/", "model/assets/", "model/saved_model.pb", "model/variables/", "model/variables/variables.index",
        ]  # fmt: skip
        assert archive.read("model/saved_model.pb") == b"new"
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_same_files_make_the_same_zip_whenever_they_were_written(model: Path) -> None:
    before = zipped(str(model))
    os.utime(model / "saved_model.pb", (1, 1))
    assert zipped(str(model)) == before
    (model / "saved_model.pb").write_text("other")
    assert zipped(str(model)) != before


def test_a_directory_is_copied_with_what_is_empty_in_it(model: Path, tmp_path: Path) -> None:
    save(str(model), str(tmp_path / "above" / "it"))
    assert content(tmp_path / "above" / "it") == content(model)
    assert os.listdir(tmp_path / "above") == ["it"]


def test_a_model_that_is_replaced_is_the_new_one_alone(model: Path, tmp_path: Path) -> None:
    old = saved(tmp_path / "there", "old")
    (old / "fingerprint.pb").write_text("only the old one has it")
    save(str(model), str(old))
    assert content(old) == content(model)


def test_the_old_model_is_back_if_the_new_one_cannot_take_its_place(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = saved(tmp_path / "there", "old")
    rename, calls = os.rename, []

    def second_fails(one: str, other: str) -> None:
        calls.append(other)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        rename(one, other)

    monkeypatch.setattr(saving, "swap", lambda one, other: False)
    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(WriteError, match=f"^model_out: cannot write {old}: "):
        save(str(model), str(old))
    assert (old / "saved_model.pb").read_text() == "old" and len(calls) == 3
    assert sorted(os.listdir(tmp_path)) == ["model", "there"]


def test_where_names_cannot_be_swapped_the_old_model_goes_when_the_new_one_is_there(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = saved(tmp_path / "there", "old")
    monkeypatch.setattr(saving, "swap", lambda one, other: False)
    save(str(model), str(old))
    assert content(old) == content(model) and sorted(os.listdir(tmp_path)) == ["model", "there"]


def test_on_a_store_the_file_that_makes_it_a_model_comes_last(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = fsspec.filesystem("memory")
    moved: list[str] = []
    move = type(fs).mv

    def noted(self: Any, one: str, other: str, **more: Any) -> None:
        moved.append(other)
        move(self, one, other, **more)

    monkeypatch.setattr(type(fs), "mv", noted)
    try:
        save(str(model), "memory://saving/m")
        assert moved == ["/saving/m/variables/variables.index", "/saving/m/saved_model.pb"]
        assert fs.cat_file("/saving/m/saved_model.pb") == b"new"
        assert fs.ls("/saving", detail=False) == ["/saving/m"], "nothing half-written is left"
    finally:
        fs.rm("/saving", recursive=True)


def test_what_cannot_be_sent_along_is_refused_before_anything_is_written(model: Path, tmp_path: Path) -> None:
    (model / "assets" / "away").symlink_to("/etc/hostname")
    with pytest.raises(WriteError, match="^model_out: .*away is a link to /etc/hostname"):
        save(str(model), str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_a_place_where_something_is_needs_overwrite(model: Path, tmp_path: Path) -> None:
    there = str(saved(tmp_path / "there", "old"))
    with pytest.raises(ModelError, match=rf"^model_out: {there} exists; give overwrite=True \(--overwrite\)"):
        check_target(there, False)
    check_target(there, True)
    (tmp_path / "empty").mkdir()
    check_target(str(tmp_path / "empty"), False)


def test_a_zip_may_replace_a_zip_and_no_directory(tmp_path: Path) -> None:
    (tmp_path / "m.zip").write_text("")
    check_target(str(tmp_path / "m.zip"), True)
    (tmp_path / "d.zip").mkdir()
    (tmp_path / "d.zip" / "saved_model.pb").write_text("")
    with pytest.raises(ModelError, match="d.zip is a directory; leave out .zip"):
        check_target(str(tmp_path / "d.zip"), True)


def test_no_model_is_saved_where_the_system_keeps_no_files() -> None:
    with pytest.raises(ModelError, match="^model_out: /proc/model is the system's own"):
        check_target("/proc/model", True)


def test_a_password_in_a_url_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    there = types.SimpleNamespace(protocol="ftp", exists=lambda place: True, isdir=lambda place: False)
    monkeypatch.setattr(saving, "_file_system", lambda uri: (there, "bucket/m"))
    with pytest.raises(ModelError, match="exists") as told:
        check_target("ftp://me:secret@host/bucket/m", False)
    assert "secret" not in str(told.value)
