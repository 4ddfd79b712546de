"""A directory that `pack` has written, as an input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import SourceError
from akrunner.io import packed


def about(**more: Any) -> dict[str, Any]:
    columns = [{"name": "odd name", "type": "bigint"}, {"name": "v", "type": "array<float>"}]
    splits = {
        "train": {"rows": 1, "files": [{"name": "train/0.tfrecord", "rows": 1, "bytes": 3}]},
        "none": {"rows": 0, "files": []},
    }
    return {
        "made_by": packed.MADE_BY,
        "version": packed.VERSION,
        "format": "tfrecord",
        "columns": columns,
        "splits": splits,
        **more,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "0.tfrecord").write_bytes(b"abc")
    (tmp_path / "train" / "1.tfrecord").write_bytes(b"not listed")
    (tmp_path / packed.DESCRIPTION).write_text(json.dumps(about()))
    return tmp_path


def test_a_split_is_the_files_that_are_listed(folder: Path) -> None:
    for name in (folder / "train", f"{folder}/train/", f"file://{folder}/train"):
        found = packed.find(name)
        assert (
            found is not None
            and found.files.paths == [str(folder / "train" / "0.tfrecord")]
            and found.files.format == "tfrecord"
        )
        assert found.schema is not None and found.schema.names == ["odd name", "v"]


def test_what_pack_has_not_written_is_none_of_it(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in (other, other / "x.csv", f"{folder}/train/*.tfrecord", folder / "train" / "0.tfrecord", "-", ""):
        assert packed.find(name) is None
    for text in ("", "{", "[]", "{}", "[" * 100_000, '{"made_by": "me"}'):
        (other / packed.DESCRIPTION).write_text(text)
        assert packed.find(other) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 99}, "later akrunner"),
        ({"splits": None}, "damaged"),
        ({"columns": [{}]}, "damaged"),
        ({"format": "exe"}, "damaged"),
        ({"splits": {"train": {"files": [{"name": "../../etc/passwd", "bytes": 1}]}}}, "damaged"),
        ({"splits": {"train": {"files": [{"name": "/etc/passwd", "bytes": 1}]}}}, "damaged"),
        ({"splits": {"train": {"files": [{"name": "train/0.tfrecord", "bytes": 4}]}}}, "it was changed"),
        ({"splits": {"train": {"files": [{"name": "train/9.tfrecord", "bytes": 4}]}}}, "is gone"),
        ({"splits": {"train": {"files": []}}}, "no rows"),
        ({"splits": {"test": {"files": []}}}, ""),
    ],
)
def test_what_is_damaged_is_said(folder: Path, change: dict[str, Any], words: str) -> None:
    (folder / packed.DESCRIPTION).write_text(json.dumps(about(**change)))
    if not words:
        assert packed.find(folder / "train") is None, "a directory that no split is"
        return
    with pytest.raises(SourceError, match=words):
        packed.find(folder / "train")


def test_which_split_is_asked(folder: Path) -> None:
    with pytest.raises(SourceError, match="has the splits train, none"):
        packed.find(folder)
    with pytest.raises(SourceError, match="did you mean 'train'"):
        packed.find(folder / "trian")
    with pytest.raises(SourceError, match="no rows"):
        packed.find(folder / "none")
