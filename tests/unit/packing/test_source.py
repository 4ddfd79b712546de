"""What `pack` takes a source for: directories and text files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.folders.gathered import SIZE
from akrunner.packing.settings import PackArguments, settings_of
from akrunner.packing.source import _check_no_web_directory, given_of
from tests.unit.packing.sources import files, given, names, rows


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


def test_folders_of_classes_are_no_splits_unless_without_classes(tmp_path: Path) -> None:
    files(tmp_path, cat__1_jpg="x", dog__2_jpg="x")
    with pytest.raises(SourceError, match=r"--split folders\) makes splits of the folders of .*\(cat, dog\)"):
        given(tmp_path, split="folders")
    found = given(tmp_path, split="folders", label="none")
    assert found.splits == ("cat", "dog") and found.classes() == []


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


def test_a_text_is_a_path_and_so_is_an_object_that_says_so(tmp_path: Path) -> None:
    class Place(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path)

    files(tmp_path, a__1_txt="x")
    assert names(given(Place())) == names(given(str(tmp_path))) == [b"a/1.txt"]


def test_a_format_of_folders_is_taken_as_a_kind(tmp_path: Path) -> None:
    files(tmp_path, cat__1_jpg="x", cat__1_txt="a\nb\n", lines_log="a\nb\n")
    for form in ("images", "texts"):
        assert given(tmp_path, input_format=form).kind == given(tmp_path, input_format=form, kind=form).kind == form
    assert rows(given(tmp_path / "lines.log", input_format="lines")) == [{"text": "a"}, {"text": "b"}]
    assert given([tmp_path / "cat" / "1.txt"], input_format="lines", kind="rows").kind == "rows"
    for source, words, options in (
        (tmp_path, r"input_format='images' \(--input-format images\) is not for kind='files'", {"kind": "files"}),
        (tmp_path / "lines.log", r"takes one directory; of a table .* kind='images'", {}),
        ({"x": [1]}, "takes one directory", {}),
    ):
        with pytest.raises(ConfigError, match=words):
            given(source, input_format="images", **options)
    with pytest.raises(
        ConfigError, match=r"takes text files so, of a directory by a pattern \('DIR/\*\.txt'\), and packs a row a"
    ):
        given(tmp_path, input_format="lines")
    with pytest.raises(
        ConfigError, match=r"without paths= \(--paths\); --input-format csv --input-csv header=path --paths path makes"
    ):
        given(tmp_path / "lines.log", input_format="lines", paths="x")


def test_lines_that_name_files_are_told(tmp_path: Path) -> None:
    files(
        tmp_path,
        cat__1_jpg="x",
        paths_txt="cat/1.jpg\n",
        label_txt="cat\n",
        bins_txt="paths.txt\n",
        none_txt="a\nb\n",
        empty_txt="",
    )
    told = given(tmp_path / "paths.txt")
    assert (
        "1 of 1 values look like paths or URLs: --input-format csv --input-csv header=path --paths path packs the"
        in told.said[-1]
    )
    assert told.hint == told.said[-1]
    assert "--input-csv header=path --paths path --kind texts packs these" in given(tmp_path / "bins.txt").hint
    assert "a CSV with the columns paths,label packs" in given([tmp_path / "paths.txt", tmp_path / "label.txt"]).hint
    assert "header=path --paths path packs the" in given(f"{tmp_path}/p*.txt").hint
    for name, options in (("paths", {"kind": "rows"}), ("none", {}), ("empty", {})):
        assert given(tmp_path / f"{name}.txt", **options).hint == ""
    (tmp_path / "broken.txt").write_bytes(b"a.jpg\n\xff\n")
    assert given(tmp_path / "broken.txt").hint == ""
    with pytest.raises(
        ConfigError,
        match=r"the files that its lines name add input_format='csv', input_csv='header=path', paths='path' \(--input-format csv",
    ):
        given(tmp_path / "paths.txt", kind="images")
    # what is recommended works, also if the paths do not look like those of images
    files(tmp_path, urls_txt="https://h/1/200\nhttps://h/2/200\n")
    assert "--paths path packs the files they name" in given(tmp_path / "urls.txt").hint
    for name, paths in (("paths.txt", [b"cat/1.jpg"]), ("urls.txt", [b"https://h/1/200", b"https://h/2/200"])):
        assert names(given(tmp_path / name, input_format="csv", input_csv="header=path", paths="path")) == paths


def test_a_list_without_names_of_columns_is_told(tmp_path: Path) -> None:
    files(tmp_path, list_csv="cat/1.jpg,cat\ncat/2.jpg,cat\n", bins_csv="1,list.csv,x\n2,list.csv,x\n")
    header = "--input-csv header=path,label --paths path"
    told = given(tmp_path / "list.csv")
    assert f"looks like a row, too: {header} packs the files they name" in told.hint
    assert f": {header} packs it, too" in given(tmp_path / "list.csv", paths="cat/1.jpg").said[0]
    assert "--input-csv header=label,path,c1 --paths path --kind files packs these" in given(tmp_path / "bins.csv").hint
    for options in ({"paths": "path"}, {"kind": "images"}):
        with pytest.raises(ConfigError, match=f"; if the first line is a row and has no names, {header} gives these"):
            given(tmp_path / "list.csv", **options)
    assert names(given(tmp_path / "list.csv", input_csv="header=path,label")) == [b"cat/1.jpg", b"cat/2.jpg"]
    # the columns of a file are not those of its directories, and other settings stay
    (tmp_path / "t" / "year=2026").mkdir(parents=True)
    (tmp_path / "t" / "year=2026" / "a.csv").write_text("cat/1.jpg;cat\ncat/2.jpg;cat\n")
    instead = "--input-csv delimiter=semicolon,header=path,label --paths path"
    assert f"too: {instead} packs" in given(tmp_path / "t", input_csv="delimiter=;").hint
    assert names(given(tmp_path / "t", input_csv="delimiter=semicolon,header=path,label", paths="path")) == [
        b"cat/1.jpg",
        b"cat/2.jpg",
    ]
    # a column may have the name of a file, and names of columns of other tables are no rows
    files(tmp_path, plain_csv="n,data\n1,cat/1.jpg\n")
    (tmp_path / "data").touch()
    assert "--paths data packs" in given(tmp_path / "plain.csv").hint
    assert "--paths a.jpg packs" in given({"a.jpg": ["cat/1.jpg", "cat/2.jpg"]}).hint


def test_what_is_given_is_read_by_the_settings() -> None:
    asked = PackArguments({"x": [1, 2]}, "out")
    assert given_of(asked, settings_of(asked)).kind == "rows"


@pytest.mark.parametrize(
    ("url", "kind", "refused"),
    [
        ("http://h/cat/", "images", True), ("https://h/cat/?a=1", None, True), ("http://h/cat", "texts", True),
        ("http://h/cat", None, False), ("http://h/cat.csv", "images", False), ("s3://h/cat/", "images", False), ("cat/", "images", False),
    ],
)  # fmt: skip
def test_a_directory_on_a_web_server_is_asked_for_as_a_list(url: str, kind: str | None, refused: bool) -> None:
    if not refused:
        _check_no_web_directory([url], kind)
        return
    with pytest.raises(SourceError, match="a web server, which cannot be listed; give a list of the URLs of its files") as e:
        given_of(PackArguments(url, "out", kind=kind), settings_of(PackArguments(url, "out")))
    assert "input_format=" not in str(e.value) or not url.endswith("/")


def test_text_files_side_by_side_are_not_called_as_columns_that_pack_makes(tmp_path: Path) -> None:
    files(tmp_path, text_txt="a\n", label_txt="x\n", other_txt="y\n")
    every = [tmp_path / f"{name}.txt" for name in ("text", "label", "other")]
    with pytest.raises(
        SourceError, match=r"column 'label_name' has the name of one that pack makes of 'label'; columns= \(--col"
    ):
        given(every, columns="text,label,label_name")
    with pytest.raises(SourceError, match=r"column 'label' has the name of one that pack makes of 'other'; .* label='none'"):
        given(every, label="other")
    assert given(every, columns="text,label,label_name", label="none").label is None
