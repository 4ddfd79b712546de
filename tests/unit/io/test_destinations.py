"""Which destination a path or URL has, and paths that have none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from akrunner.errors import SinkError
from akrunner.io import destinations
from akrunner.io.destinations import file_destination, folder_destination
from akrunner.io.local_destinations import LocalFile, LocalFolder, Straight
from akrunner.io.stores import Moved, MovedFolder, Upload, UploadFolder


class Bucket(MemoryFileSystem):
    """A store whose files are uploads."""

    protocol = ("s3", "s3a")
    cachable = False


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is on the store."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])


@pytest.mark.parametrize("written", ["{}/o.csv", "file://{}/o.csv", "~/o.csv"])
def test_a_path_of_this_machine_is_a_file_beside_its_place(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place = file_destination(written.format(tmp_path), False)
    assert type(place) is LocalFile and place.at is not None and os.path.dirname(place.at) == str(tmp_path)
    folder = folder_destination(written.format(tmp_path), False)
    assert type(folder) is LocalFolder and folder.at == folder.partial


def test_pipes_and_devices_are_written_straight(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", "/dev/stdout", str(tmp_path / "pipe")):
        place = file_destination(path, False)
        assert type(place) is Straight and place.at is None
    with pytest.raises(SinkError, match="is a file"):
        folder_destination(str(tmp_path / "pipe"), False)


def test_a_store_that_can_only_move_files() -> None:
    assert type(file_destination("memory://a/o.csv", False)) is Moved
    assert type(folder_destination("memory://a/o", False)) is MovedFolder


def test_a_store_of_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(destinations.fsspec.core, "url_to_fs", lambda url: (Bucket(), url.partition("://")[2]))
    assert type(file_destination("s3://b/o.csv", False)) is Upload
    assert type(folder_destination("s3://b/o", False)) is UploadFolder


@pytest.mark.parametrize("place", [file_destination, folder_destination])
def test_what_is_no_place(place: object, tmp_path: Path) -> None:
    assert callable(place)
    with pytest.raises(SinkError, match="output: the path has a NUL byte in it"):
        place("a\0.csv", False)
    with pytest.raises(SinkError, match="no file system is called nosuch://") as caught:
        place("nosuch://me:s3cret@h/o", False)
    assert "s3cret" not in str(caught.value) and str(caught.value).startswith("output: cannot open nosuch://")


def test_what_is_there_is_replaced_only_if_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("old")
    with pytest.raises(SinkError, match="o.csv exists; give overwrite=True"):
        file_destination(str(tmp_path / "o.csv"), False)
    file_destination(str(tmp_path / "o.csv"), True)
    with pytest.raises(SinkError, match="exists; give overwrite=True"):
        folder_destination(str(tmp_path), False)
    folder_destination(str(tmp_path), True)
    MemoryFileSystem().pipe_file("/a/o.csv", b"old")
    for place, path in ((file_destination, "memory://a/o.csv"), (folder_destination, "memory://a")):
        with pytest.raises(SinkError, match="exists; give overwrite=True"):
            place(path, False)
        place(path, True)


def test_rows_are_not_written_beside_those_of_a_lakehouse_table(tmp_path: Path) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    day = tmp_path / "t" / "day=1"
    day.mkdir()
    (day / "part-0.parquet").touch()
    for path in (tmp_path / "t" / "new", day):
        with pytest.raises(SinkError, match="would be files within the Delta table"):
            folder_destination(str(path), True)
    with pytest.raises(SinkError, match="would be files within the Delta table"):
        file_destination(str(day / "part-0.parquet"), True, lakes=True)
    file_destination(str(tmp_path / "t" / "notes.csv"), False).abort()
