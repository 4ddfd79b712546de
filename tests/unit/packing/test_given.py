"""What a user gives to `pack`, and whether it becomes files with an index or tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.folders.gathered import NAME, SIZE
from akrunner.packing.given import Earlier, Given, given_of
from akrunner.packing.index import CLASS
from akrunner.packing.settings import PackArguments, settings_of


def given(source: Any, earlier: Earlier | None = None, **options: Any) -> Given:
    asked = PackArguments(source, "out", **options)
    return given_of(asked, settings_of(asked), earlier)


def files(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(of: Given) -> list[bytes]:
    assert of.index is not None
    return sorted(of.index.table.column(NAME).to_pylist())


def rows(of: Given) -> list[dict[str, Any]]:
    return [row for _, table in of.tables for batch in table.batches() for row in batch.to_pylist()]


def test_nothing_is_an_error_that_says_what_may_be_given() -> None:
    with pytest.raises(SourceError, match="source: nothing is given: .* a directory of images or texts"):
        given(None)


def test_a_directory_of_images_has_its_folders_as_classes(tmp_path: Path) -> None:
    files(tmp_path, cat__1_jpg="x", dog__2_png="y", dog__a_md="z")
    found = given(tmp_path)
    assert (found.kind, found.place, found.is_files, found.classes()) == ("images", str(tmp_path), True, ["cat", "dog"])
    assert names(found) == [b"cat/1.jpg", b"dog/2.png"]
    assert found.said == ["1 file is no image by its name, and was passed over: dog/a.md"]
    without = given(tmp_path, label="none")
    assert without.classes() == [] and without.asked == {"label": "none"}
    assert given(tmp_path, kind="files").kind == "files" and len(names(given(tmp_path, kind="files"))) == 3
    # what has to be the same in later runs
    kept = found.kept(settings_of(PackArguments("in", "out", seed=3)))
    assert (kept["kind"], kept["source"], kept["label"], kept["seed"]) == ("images", str(tmp_path), None, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": "kind"}, r"label='kind' \(--label\): the folders of a directory are its classes"),
        ({"columns": "a"}, r"columns= \(--columns\) is for text files that stand side by side"),
        ({"paths": "a"}, r"paths= \(--paths\) is for tables, and .* holds images"),
        ({"input_schema": "a int"}, r"input_schema= \(--input-schema\) is for tables, and .* holds images"),
        ({"kind": "rows"}, r"kind='rows' \(--kind rows\): by their names, the files in .* are images, not tables"),
        ({"kind": "pictures"}, "kind='pictures'"),
    ],
)
def test_options_that_mean_nothing_for_a_directory_of_images(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        given(files(tmp_path, a__1_jpg="x"), **options)


def test_folders_may_be_splits(tmp_path: Path) -> None:
    files(tmp_path, dev__cat__1_jpg="x", train__dog__2_jpg="x")
    found = given(tmp_path, split="folders")
    assert found.splits == ("dev", "train") and found.classes() == ["cat", "dog"]
    files(tmp_path, dataset_json__cat__1_jpg="x")
    with pytest.raises(SourceError, match=r"a folder in .* is called dataset\.json, as a file that pack writes"):
        given(tmp_path, split="folders")
    with pytest.raises(ConfigError, match=r"split='folders' \(--split folders\) is for a directory"):
        given({"a": [1]}, split="folders")


def test_several_directories_of_files_are_not_packed_at_once(tmp_path: Path) -> None:
    files(tmp_path, a__1_jpg="x", b__2_jpg="y")
    with pytest.raises(SourceError, match=f"{tmp_path}/a is a directory of images, and of these pack takes one at a time"):
        given([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(SourceError, match="give the directory that holds the images"):
        given([tmp_path / "a" / "1.jpg"])


def test_text_files_stand_side_by_side_or_one_behind_the_other(tmp_path: Path) -> None:
    files(tmp_path, text_txt="a\nb\n", label_txt="1\n2\n")
    beside = given([tmp_path / "text.txt", tmp_path / "label.txt"])
    assert rows(beside) == [{"text": "a", "label": "1"}, {"text": "b", "label": "2"}]
    assert beside.label == "label" and beside.said == ["the files stand side by side, as the columns text, label"]
    assert beside.asked == {"label": "label", "columns": ["text", "label"], "whole": True} and len(beside.tables) == 1
    behind = given(f"{tmp_path}/*.txt", columns="line")
    assert rows(behind) == [{"line": "1"}, {"line": "2"}, {"line": "a"}, {"line": "b"}]
    assert [name for name, _ in behind.tables] == [b"label.txt", b"text.txt"] and behind.home == str(tmp_path)
    assert behind.files is not None and behind.files.column(SIZE).to_pylist() == [4, 4]


def test_errors_of_text_files(tmp_path: Path) -> None:
    files(tmp_path, a_txt="1\n", b_txt="2\n")
    with pytest.raises(SourceError, match=f"source: there is no text file {tmp_path}/c.txt on this machine"):
        given(tmp_path / "c.txt")
    with pytest.raises(ConfigError, match=r"columns \(--columns\): 1 name for 2 files"):
        given([tmp_path / "a.txt", tmp_path / "b.txt"], columns="x")
    with pytest.raises(ConfigError, match=r"kind='files' \(--kind files\) takes a directory, and packs a row a file"):
        given(tmp_path / "a.txt", kind="files")


def test_a_table_in_memory_is_rows_and_has_its_column_of_classes() -> None:
    found = given({"x": [1.5, 2.5], "label": ["a", "b"]})
    assert (found.kind, found.label, found.place, found.files, found.is_files) == ("rows", "label", None, None, False)
    assert rows(found) == [{"x": 1.5, "label": "a"}, {"x": 2.5, "label": "b"}]
    assert given({"x": [1], "label": ["a"]}, label="none").label is None
    with pytest.raises(ConfigError, match=r"label \(--label\): there is no column 'lable'"):
        given({"x": [1], "label": ["a"]}, label="lable")


def test_a_column_without_a_value_is_packed_as_double() -> None:
    table = pa.table({"a": pa.nulls(2), "b": pa.array([[], None], pa.list_(pa.null())), "c": [1, 2]})
    found = given(table)
    assert found.tables[0][1].schema.types == [pa.float64(), pa.list_(pa.float64()), pa.int64()]
    assert [row["a"] for row in rows(found)] == [None, None]
    assert found.said == ["'a', 'b': without a value yet, and packed as double; input_schema= (--input-schema) says otherwise"]


def test_a_list_of_images_is_found_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    files(tmp_path, lists__images_csv="path,label,x\na.jpg,cat,1\nsub/b.jpg,dog,2\n", lists__a_jpg="12345")
    found = given(tmp_path / "lists" / "images.csv")
    assert found.index is not None and found.index.base == str(tmp_path / "lists")
    assert (found.kind, found.label, names(found)) == ("images", "label", [b"a.jpg", b"sub/b.jpg"])
    assert found.index.table.column(SIZE).to_pylist() == [5, -1] and found.index.table.column(CLASS).to_pylist() == [
        "cat",
        "dog",
    ]
    assert found.asked == {"label": "label", "paths": "path", "select": None} and "--kind rows" in found.said[0]
    assert [field.name for field in found.index.extra] == ["x"]
    elsewhere = given(tmp_path / "lists" / "images.csv", paths_in=tmp_path)
    assert elsewhere.index is not None and elsewhere.index.base == str(tmp_path)
    assert given(tmp_path / "lists" / "images.csv", kind="rows").index is None


def test_a_list_of_other_files_says_its_kind(tmp_path: Path) -> None:
    files(tmp_path, l_csv="file,n\na.txt,1\n", a_txt="x")
    found = given(tmp_path / "l.csv", kind="texts")
    assert (found.kind, names(found)) == ("texts", [b"a.txt"])
    assert found.said == ["column 'file' has the paths, by its name: the files it names are packed"]
    with pytest.raises(ConfigError, match=r"kind='files' \(--kind\): which column has the paths\? .* there are a, b"):
        given({"a": ["x"], "b": ["y"]}, kind="files")


@pytest.mark.parametrize(
    ("source", "options", "kind", "words"),
    [
        ({"pth": ["a"]}, {"paths": "path"}, ConfigError, r"paths \(--paths\): there is no column 'path' .*did you mean 'pth'"),
        ({"n": [1], "s": ["a"]}, {"paths": "n"}, ConfigError, r"column 'n' is int64, and paths are texts \(of these there is s\)"),
        ({"s": ["a"]}, {"paths": "s", "label": "s", "kind": "files"}, ConfigError, r"label \(--label\): 's' is the column of paths"),
        ({"s": ["a"]}, {"columns": "b"}, ConfigError, r"columns= \(--columns\) is for text files"),
        ({"s": ["a"], "path": ["b"]}, {"paths": "s", "kind": "files"}, SourceError, "column 'path' has the name of one that pack"),
        ({"s": ["a"], "label": ["b"]}, {"label": "s"}, SourceError, "column 'label' has the name of one that pack makes of 's'"),
        ({"s": ["a"]}, {"paths_in": "/"}, ConfigError, r"paths_in= \(--paths-in\) is for a table with a column of paths"),
        ({"s": ["a"]}, {"paths_in": "/no/where"}, ConfigError, r"paths_in \(--paths-in\): there is no directory /no/where"),
    ],
)  # fmt: skip
def test_errors_of_tables(source: Any, options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        given(source, **options)


def test_each_file_of_a_table_is_known_by_its_own_name(tmp_path: Path) -> None:
    files(tmp_path, day__1_csv="n\n1\n", day__2_csv="n\n2\n")
    found = given(tmp_path / "day")
    assert [name for name, _ in found.tables] == [b"1.csv", b"2.csv"] and rows(found) == [{"n": 1}, {"n": 2}]
    assert found.home == found.lies == str(tmp_path / "day")
    one = str(tmp_path / "day" / "1.csv")
    with pytest.raises(SourceError, match=f"source: {one} is named twice"):
        given([one, tmp_path / "day" / "1.csv"])
    with pytest.raises(SourceError, match=f"source: {one} is named twice"):
        given([one, one])
    (tmp_path / "link.csv").symlink_to(one)
    with pytest.raises(SourceError, match="are one file, and its rows would be packed twice"):
        given([one, tmp_path / "link.csv"])


def test_new_files_keep_the_names_that_they_would_have_had_before(tmp_path: Path) -> None:
    files(tmp_path, a__1_csv="n\n1\n")
    earlier = Earlier("out", {"source": str(tmp_path), "kind": "rows"}, 0, pa.schema([("n", pa.float64())]))
    found = given(tmp_path / "a", earlier)
    assert [name for name, _ in found.tables] == [b"a/1.csv"] and found.home == str(tmp_path)
    # and the types of what is packed
    assert found.tables[0][1].schema == earlier.table


@pytest.mark.parametrize(
    ("home", "ups", "lies", "fits"),
    [
        ("/d/a", 0, "/d/a", True),
        ("/d/a", 0, "/d/a/b", True),
        ("/d/a", 0, "/d", True),
        ("/d/a", 0, "/d/ab", False),
        ("/d/a", 1, "/d/b", True),
        (None, 0, "/d", False),
    ],
)
def test_the_directory_that_names_were_relative_to(home: str | None, ups: int, lies: str, fits: bool) -> None:
    assert Earlier("out", {"source": home}, ups).home_of(lies) == (home if fits else None)


def test_a_text_is_a_path_and_so_is_an_object_that_says_so(tmp_path: Path) -> None:
    class Place(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path)

    files(tmp_path, a__1_txt="x")
    assert names(given(Place())) == names(given(str(tmp_path))) == [b"a/1.txt"]


def test_a_format_of_folders_is_for_jobs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"input_format='images' .* is for run, train and predict; pack takes a directory"):
        given(files(tmp_path, cat__1_jpg="x"), input_format="images")
