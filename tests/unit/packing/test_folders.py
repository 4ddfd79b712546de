"""A directory of files: which of them are listed, of what kind they are, and which folders are classes or splits."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import SourceError
from akrunner.folders import listing
from akrunner.folders.gathered import MTIME, NAME, SIZE
from akrunner.packing import folders
from akrunner.packing.index import CLASS, Index


def tree(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * len(name))
    return folder


def index(folder: Path, kind: str = "images", classes: bool = True, by_folder: bool = False) -> Index:
    table, base = listing.listed(str(folder))
    return folders.index_of(table, base, kind, str(folder), classes, by_folder)


def classes(of: Index) -> dict[str, str | None]:
    rows = zip(of.table.column(NAME).to_pylist(), of.table.column(CLASS).to_pylist())
    return {name.decode(): one for name, one in sorted(rows)}


def test_names_behind_a_url_are_whole_urls() -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe({"/test_folders/a/1.jpg": b"xy", "/test_folders/a/.hidden": b"x"})
    try:
        table, base = listing.listed("memory://test_folders")
        assert base is None and table.to_pylist() == [{NAME: b"memory:///test_folders/a/1.jpg", SIZE: 2, MTIME: 0}]
        found = folders.index_of(table, base, "images", "memory://test_folders", True, False)
        assert list(classes(found).values()) == ["a"]
    finally:
        fs.rm("/test_folders", recursive=True)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["a.JPG", "b.csv", "c.txt"], "images"),
        (["b.Parquet", "c.txt"], "rows"),
        (["c.TXT", "d.bin"], "texts"),
        (["a/d.text"], "texts"),
        (["a.avro"], "rows"),
        (["notes.xlsx", "a.txt", "b.npy", "c.npz"], "texts"),
    ],
)
def test_the_kind_is_that_of_the_names(tmp_path: Path, names: list[str], kind: str) -> None:
    table, _ = listing.listed(str(tree(tmp_path, *names)))
    assert folders.kind_of(table, str(tmp_path)) == kind


def test_names_of_no_kind_and_no_names_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=f"source: there are no files in {tmp_path}"):
        folders.kind_of(listing.listed(str(tmp_path))[0], str(tmp_path))
    # an array in each file may be one sample, or a table
    tree(tmp_path, "b.npy", "a.exe")
    with pytest.raises(SourceError, match=r"no images, texts or tables \(a\.exe \.\.\.\); kind= \(--kind\)"):
        folders.kind_of(listing.listed(str(tmp_path))[0], str(tmp_path))


def test_the_first_folders_are_the_classes_and_other_files_are_passed_over(tmp_path: Path) -> None:
    found = index(tree(tmp_path, "cat/1.jpg", "cat/old/2.png", "dog/3.jpg", "dog/notes.txt", "cat/z.md"))
    assert classes(found) == {"cat/1.jpg": "cat", "cat/old/2.png": "cat", "dog/3.jpg": "dog"}
    assert (found.passed, list(found.passed_over)) == (2, ["cat/z.md", "dog/notes.txt"])
    assert set(classes(index(tmp_path, classes=False)).values()) == {None}


def test_files_without_folders_have_no_classes(tmp_path: Path) -> None:
    assert classes(index(tree(tmp_path, "1.jpg", "2.jpg"))) == {"1.jpg": None, "2.jpg": None}


def test_where_no_name_fits_the_kind_all_files_are_taken(tmp_path: Path) -> None:
    assert len(index(tree(tmp_path, "a/1", "b/2"))) == 2
    assert len(index(tmp_path, "files")) == 2


def test_a_file_beside_the_folders_of_classes_is_an_error(tmp_path: Path) -> None:
    tree(tmp_path, "cat/1.jpg", "2.jpg")
    with pytest.raises(SourceError, match=r"1 file lies beside the folders of classes .*\(2\.jpg\): .*label='none'"):
        index(tmp_path)
    tree(tmp_path, "3.jpg", "4.jpg", "5.jpg")
    with pytest.raises(SourceError, match=r"4 files lie beside .*\(2\.jpg, 3\.jpg, 4\.jpg \.\.\.\)"):
        index(tmp_path)


def test_folders_that_are_called_as_splits_are_no_classes(tmp_path: Path) -> None:
    tree(tmp_path, "Train/a/1.jpg", "test/a/2.jpg")
    with pytest.raises(SourceError, match=r"the folders Train, test are splits by their names, not classes; split='folders'"):
        index(tmp_path)
    found = index(tmp_path, by_folder=True)
    assert set(classes(found).values()) == {"a"} and folders.folder_splits(found) == ["Train", "test"]
    # one folder of another name shows that they are classes
    assert set(classes(index(tree(tmp_path, "other/3.jpg"))).values()) == {"Train", "other", "test"}


def test_a_file_beside_the_folders_of_splits_is_an_error(tmp_path: Path) -> None:
    tree(tmp_path, "train/1.jpg", "2.jpg", "3.jpg")
    with pytest.raises(SourceError, match=r"2 files lie beside the folders of splits in .*\(2\.jpg, 3\.jpg\): move each"):
        index(tmp_path, by_folder=True)


def test_folders_of_classes_are_not_taken_for_splits_without_a_word(tmp_path: Path) -> None:
    plain = index(tree(tmp_path / "plain", "cat/1.jpg", "dog/2.jpg"), by_folder=True)
    with pytest.raises(SourceError, match=r"split='folders' \(--split folders\) .*\(cat, dog\), .* no classes.*label='none'"):
        folders.odd_splits(plain, str(tmp_path))
    deeper = index(tree(tmp_path / "deeper", "cat/big/1.jpg", "dog/small/2.jpg"), by_folder=True)
    (told,) = folders.odd_splits(deeper, str(tmp_path))
    assert "(cat, dog) are the splits, and the folders in them the classes" in told and "leave split= (--split) out" in told
    # the same classes in each, or a name of a split, show what is meant
    for names in (["fold1/cat/1.jpg", "fold2/cat/2.jpg"], ["a/cat/1.jpg", "train/dog/2.jpg"], ["Dev/1.jpg", "test/2.jpg"]):
        assert folders.odd_splits(index(tree(tmp_path / names[0][:2], *names), by_folder=True), str(tmp_path)) == []


def test_a_link_to_nothing_beside_folders_of_classes_is_a_broken_file_and_no_sign(tmp_path: Path) -> None:
    tree(tmp_path, "fold1/cat/1.jpg", "fold2/cat/2.jpg")
    (tmp_path / "fold1" / "x.jpg").symlink_to("gone.jpg")
    assert folders.odd_splits(index(tmp_path, by_folder=True), str(tmp_path)) == []


def test_odd_classes_are_told(tmp_path: Path) -> None:
    tree(tmp_path, "all/cat/1.jpg", "all/dog/2.jpg")
    (tmp_path / "empty").mkdir()
    empty, deeper = folders.odd_classes(index(tmp_path), ["all"], str(tmp_path))
    assert empty == f"1 folder of {tmp_path} has nothing to pack, and is no class: empty"
    assert deeper.startswith("all files are of one class, 'all'") and deeper.endswith(f"(cat, dog), pack {tmp_path}/all")
    tree(tmp_path, "more/cat/1.jpg", "more/dog/2.jpg")
    (tmp_path / "empty").rmdir()
    (same,) = folders.odd_classes(index(tmp_path), ["all", "more"], str(tmp_path))
    assert "(all, more), and each of them has the same folders (cat, dog)" in same
    # a file directly in the first folder shows that this is a class
    assert folders.odd_classes(index(tree(tmp_path, "all/0.jpg")), ["all", "more"], str(tmp_path)) == []
