"""A directory that `pack` has written, as an input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from akrunner import codec
from akrunner.errors import SourceError
from akrunner.io import packed, seals, sources
from akrunner.schema import Schema


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


def one_file(name: str, size: int, rows: int = 1) -> dict[str, Any]:
    return {"splits": {"train": {"rows": rows, "files": [{"name": name, "rows": 1, "bytes": size}]}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "0.tfrecord").write_bytes(b"abc")
    (tmp_path / "train" / "1.tfrecord").write_bytes(b"not listed")
    (tmp_path / packed.DESCRIPTION).write_text(seals.sealed(about()))
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


def test_a_link_is_the_split_it_leads_to_or_whose_place_it_has(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "link").symlink_to(folder / "train")
    (folder / "train").rename(folder / "elsewhere" / "moved")
    (folder / "train").symlink_to(folder / "elsewhere" / "moved")
    found = packed.find(folder / "train")
    assert found is not None and found.files.paths == [str(folder / "train" / "0.tfrecord")]
    (folder / "train").unlink()
    (folder / "elsewhere" / "moved").rename(folder / "train")
    found = packed.find(folder / "elsewhere" / "link")
    assert found is not None and found.files.paths == [str(folder / "train" / "0.tfrecord")]


def test_what_pack_has_not_written_is_none_of_it(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in (other, other / "x.csv", f"{folder}/train/*.tfrecord", folder / "train" / "0.tfrecord", "-", ""):
        assert packed.find(name) is None
    (other / "rows").mkdir()
    for text in ("[]", "{}", '{"made_by": "me"}', '{"a": 1}\n{"a": 2}\n', "null", '"akrunner pack"'):
        (other / packed.DESCRIPTION).write_text(text)
        assert packed.find(other) is None and packed.find(other / "rows") is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 99}, "later akrunner"),
        ({"splits": None}, "damaged"),
        ({"columns": [{}]}, "damaged"),
        ({"format": "exe"}, "damaged"),
        (one_file("../../etc/passwd", 1), "names files elsewhere"),
        (one_file("/etc/passwd", 1), "names files elsewhere"),
        (one_file("train/0.tfrecord", 4), "it was changed"),
        (one_file("train/9.tfrecord", 4), "is gone"),
        (one_file("train/0.tfrecord", 3, rows=2), "damaged .*train has 2 rows, and its files have 1 together"),
        ({"splits": {"train": {"rows": 0, "files": []}}}, "no rows"),
        ({"splits": {"test": {"rows": 0, "files": []}}}, ""),
    ],
)
def test_what_is_damaged_is_said(folder: Path, change: dict[str, Any], words: str) -> None:
    (folder / packed.DESCRIPTION).write_text(seals.sealed(about(**change)))
    if not words:
        assert packed.find(folder / "train") is None, "a directory that no split is"
        return
    with pytest.raises(SourceError, match=words):
        packed.find(folder / "train")


def test_the_columns_that_are_asked_for_are_those_that_were_packed(folder: Path) -> None:
    asked = Schema.parse("v array<float>")
    assert sources.open_source(folder / "train", read_examples=codec.read_examples, input_schema=asked).schema == asked.arrow
    for form in (None, "tfrecord"):
        with pytest.raises(SourceError, match=r"^input_schema: .* has no column 'vv' \(it has odd name, v\); did you mean 'v'"):
            sources.open_source(
                folder / "train", read_examples=codec.read_examples, input_format=form, input_schema=Schema.parse("vv bigint")
            )


def test_which_split_is_asked(folder: Path) -> None:
    with pytest.raises(SourceError, match="has the splits train, none"):
        packed.find(folder)
    with pytest.raises(SourceError, match="did you mean 'train'"):
        packed.find(folder / "trian")
    with pytest.raises(SourceError, match="did you mean 'dataset.json'"):
        packed.find(folder / "dataset.jsn")
    with pytest.raises(SourceError, match="no rows"):
        packed.find(folder / "none")


def test_the_description_stands_for_its_directory(folder: Path) -> None:
    name = folder / packed.DESCRIPTION
    with pytest.raises(SourceError, match=f"{folder} has the splits train, none; name one: {folder}/train"):
        packed.find(name)
    name.write_text(seals.sealed(about(splits={"train": about()["splits"]["train"]})))
    found = packed.find(name)
    assert found is not None and found.files.paths == [str(folder / "train" / "0.tfrecord")]


@pytest.mark.parametrize("text", ['{"a": 1}\n', "no JSON\n", "", '[{"a": 1}]'])
def test_a_table_of_the_users_own_with_that_name_is_not_looked_through(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "_read", lambda *_: pytest.fail("it was read"))
    (tmp_path / packed.DESCRIPTION).write_text(text)
    assert packed.find(tmp_path / packed.DESCRIPTION) is None
    assert packed.find(tmp_path / "gone" / packed.DESCRIPTION) is None


def harmed(folder: Path, harm: str) -> None:
    """Harm a description as people and disks do."""
    path = folder / packed.DESCRIPTION
    text = path.read_text()
    told = json.loads(text)
    if harm == "a file is left out":
        told["splits"]["train"] = {"rows": 0, "files": []}
    elif harm == "without its checksum":
        del told["checksum"]
    elif harm == "of another maker":
        told["made_by"] = "me"
    if harm in ("a file is left out", "without its checksum", "in another layout", "of another maker"):
        text = json.dumps(told)
    path.unlink()
    if harm != "gone":
        path.write_text({"cut short": text[:100], "empty": ""}.get(harm, text))


EDITED = ("a file is left out", "without its checksum", "in another layout")


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("harm", [*EDITED, "cut short", "empty", "of another maker", "gone"])
@pytest.mark.parametrize("form", ["parquet", "tfrecord"])
def test_no_directory_is_listed_in_place_of_a_description_that_is_not_whole(
    folder: Path, harm: str, kept: bool, form: str
) -> None:
    (folder / packed.DESCRIPTION).write_text(seals.sealed(about(format=form)))
    if kept:
        (folder / packed.STATE).mkdir()
        (folder / packed.STATE / packed.DESCRIPTION).write_text(seals.sealed(about(format=form)))
    harmed(folder, harm)
    if not kept and harm in ("gone", "of another maker"):
        assert packed.find(folder / "train") is None, "nothing says that pack was there"
        return
    what = "is gone" if harm == "gone" else "was edited" if harm in EDITED else "is damaged"
    again = "run `akrunner pack` again" if kept else "bring it back"
    for one in (folder / "train", folder, f"file://{folder}/train"):
        with pytest.raises(SourceError, match=rf"dataset\.json {what}.*{again}"):
            packed.find(one)
    (folder / "elsewhere").mkdir()
    link = folder / "elsewhere" / "link"
    link.symlink_to(folder / "train")
    for options in ({}, {"input_format": form}, {"input_schema": None}):
        with pytest.raises(SourceError, match=rf"dataset\.json {what}"):
            sources.open_source(str(link), read_examples=codec.read_examples, **options)


def test_what_is_not_packed_to_its_end_is_told_so(folder: Path) -> None:
    (folder / packed.DESCRIPTION).unlink()
    (folder / packed.STATE).mkdir()
    assert packed.find(folder / "train") is None, "a directory of that name with nothing of pack's in it"
    (folder / packed.STATE / "0001").mkdir()
    for name in (folder / "train", folder / "none"):
        with pytest.raises(
            SourceError, match="is not packed to its end, or somebody removed the file; run `akrunner pack` again"
        ):
            packed.find(name)


def test_shards_that_are_named_are_read_whatever_else_is_said(folder: Path) -> None:
    harmed(folder, "cut short")
    (folder / packed.STATE).mkdir()
    (folder / packed.STATE / "lock").touch()
    for name in (f"{folder}/train/*.tfrecord", folder / "train" / "0.tfrecord"):
        assert packed.find(name) is None
